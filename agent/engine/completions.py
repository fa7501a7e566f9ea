"""Read the answers of a model's server: a chat completion, whole or in chunks, or an error.

Takes plain data: the client builds its types without validation, so that servers which leave fields
out, or send other types than OpenAI, are read as well.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from agent import lengths
from agent.engine.errors import ModelUnavailable
from agent.engine.messages import ECHOED, LLMResponse, OnText, ToolCall, Usage
from agent.text import storable

FINISH_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
    **dict.fromkeys(("safety", "recitation", "prohibited_content"), "content_filter"),
    **dict.fromkeys(("error", "abort", "insufficient_system_resource"), "interrupted"),
}
"""Finish reasons of other servers, in the words of OpenAI; `interrupted` is ours."""
WHOLE: Final = frozenset({"role", "id", "type", "index", "name", "format", "signature"})
"""Fields of a chunk that come whole, by some servers in every chunk; others come in pieces."""


def read_completion(data: Mapping[str, Any], model: str) -> LLMResponse:
    """Read a chat completion, tolerant of what other servers leave out or write otherwise."""
    choice = _first(data.get("choices"))
    message = _mapping(choice.get("message"))
    finish = str(choice.get("finish_reason") or ("stop" if choice else "no_choices")).lower()
    calls = message.get("tool_calls")
    calls = calls[: lengths.TOOL_CALLS] if isinstance(calls, list) else []
    return LLMResponse(
        content=_text(message.get("content"))[: lengths.ANSWER + 1],
        tool_calls=tuple(_tool_call(_mapping(call)) for call in calls),
        finish_reason=FINISH_REASONS.get(finish, finish),
        refusal=_text(message.get("refusal")) or None,
        usage=_usage(_mapping(data.get("usage"))),
        model=storable(str(data.get("model") or model)),
        has_reasoning=bool(message.get("reasoning_content") or message.get("reasoning")),
        echo=_echo(message),
    )


class StreamedCompletion:
    """The chunks of a chat completion put together; `on_text` is called when its content begins.

    The client's own accumulator fails on calls without an index and on content in parts, and joins
    the ids that some servers repeat in every chunk.
    """

    def __init__(self, model: str, on_text: OnText | None = None) -> None:
        self._model, self._on_text = model, on_text
        self._message: dict[str, Any] = {}
        self._completion: dict[str, Any] = {}
        self._finish: str | None = None
        self.first_token_ns: int | None = None

    @property
    def text(self) -> str:
        """Return the content so far."""
        return str(self._message.get("content", ""))

    @property
    def has_usage(self) -> bool:
        """Return True if the server has told the tokens that it counted."""
        return "usage" in self._completion

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next chunk."""
        self._completion |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        choice = _first(chunk.get("choices"))
        self._finish = choice.get("finish_reason") or self._finish
        delta = dict(_mapping(choice.get("delta") or choice.get("message")))
        delta["content"], had_text = _text(delta.get("content")), bool(self.text)
        self._message = _merged(self._message, delta)
        if self.first_token_ns is None and any(delta[name] for name in delta.keys() - {"role"}):
            self.first_token_ns = time.time_ns()
        if self._on_text is not None and self.text and not had_text:
            self._on_text(lambda: self.text)

    def completion(self) -> dict[str, Any]:
        """Return the completion that a server which does not stream would have answered with.

        Raises:
            ModelUnavailable: the stream ended in the middle.
        """
        if self._finish is None and not self.has_usage:
            raise ModelUnavailable(f"{self._model} broke its answer off")
        choice = {"message": self._message, "finish_reason": self._finish}
        return {**self._completion, "choices": [choice] if self._finish or self._message else []}


def _merged(known: Any, piece: Any) -> Any:
    """Return a value of a streamed message with its next piece."""
    if isinstance(known, str) and isinstance(piece, str):
        return known + piece
    if isinstance(known, dict) and isinstance(piece, Mapping):
        joined = dict(known)
        for name, value in piece.items():
            if value is not None:
                before = known.get(name)
                joined[name] = (before or value) if name in WHOLE else _merged(before, value)
        return joined
    if isinstance(known, list) and isinstance(piece, list):
        items = list(known)
        for item in piece:
            at = _continued(items, _mapping(item))
            items[at : at + 1] = [_merged(items[at], item) if at < len(items) else item]
        return items
    return piece


def _continued(items: list[Any], piece: Mapping[str, Any]) -> int:
    """Return the index of the item that a piece continues; of a new item the next index.

    A piece without an index continues the last item, unless it has an id or a type of its own.
    """
    for at in range(len(items)) if piece.get("index") is not None else range(len(items))[-1:]:
        item = _mapping(items[at])
        same_index = piece.get("index") in (None, item.get("index"))
        if same_index and all(piece.get(name) in (None, item.get(name)) for name in ("id", "type")):
            return at
    return len(items)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _text(content: object) -> str:
    """Return content as one string; some servers send a list of parts, or the JSON they parsed."""
    if isinstance(content, list):
        parts = (part if isinstance(part, str) else _mapping(part).get("text") for part in content)
        content = "".join(part for part in parts if isinstance(part, str))
    return _json_text(content)


def _json_text(value: object) -> str:
    """Return text as it is, nothing as no text, anything else as JSON."""
    if value is None:
        return ""
    return storable(value if isinstance(value, str) else json.dumps(value))


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _mapping(call.get("function"))
    return ToolCall(
        storable(str(call.get("id") or "")),
        _text(function.get("name"))[: lengths.NAME],
        _json_text(function.get("arguments"))[: lengths.ARGUMENTS + 1],
        _echo(call),
    )


def _usage(usage: Mapping[str, Any]) -> Usage:
    prompt = _count(usage.get("prompt_tokens"))
    details = _mapping(usage.get("prompt_tokens_details"))
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return Usage(prompt, _count(usage.get("completion_tokens")), min(prompt, _count(cached)))


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < math.inf else 0


def _echo(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message or call that its server wants back; an empty text counts."""
    return {name: written[name] for name in ECHOED if written.get(name) is not None}


NO_CALL: Final = "does not match the expected"
"""Words of llama.cpp about an answer in JSON that is no call of a tool."""
TOO_LONG: Final = (
    "context length", "context_length", "context size", "context_size", "context window",
    "prompt is too long", "input is too long", "too many tokens", "maximum number of tokens",
    "exceeds the available context", "longer than the maximum",
)  # fmt: skip
"""Words about a request's length, as servers write them."""
TRANSIENT: Final = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which another try may help."""

Meaning = Literal["filtered", "unreadable", "too_long", "transient", "rejected"]
"""The meaning of a server's error: a content filter did not let the question pass; the server could
not read what the model wrote beside tools; the request is longer than the model takes in; another
try may help; the request will fail again."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error of a server: its status, its body, and the headers if it came before a stream."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def within(cls, body: object) -> "ServerError":
        """Return an error that came with status 200; 502 if it names no status."""
        code = _mapping(body).get("code")
        return cls(code if isinstance(code, int) and 400 <= code < 600 else 502, body)

    @property
    def text(self) -> str:
        """Return the server's own words: at most 300 characters, not what was sent to it."""
        body = _first(self.body) or self.body
        inner = _mapping(body).get("error", body)
        said = _mapping(inner).get("message", inner)
        return " ".join(str(_without_input(said) or "").split())[:300]

    @property
    def meaning(self) -> Meaning:
        """Tell what it means."""
        kinds = {str(_mapping(self.body).get(name)) for name in ("code", "type")}
        words = f"{kinds} {self.text}".lower()
        is_own = self.status >= 500
        if kinds & {"content_filter", "content_policy_violation"}:
            return "filtered"
        if is_own and NO_CALL in words:
            return "unreadable"
        if (is_own or self.status in {400, 413, 422}) and any(said in words for said in TOO_LONG):
            return "too_long"
        if "insufficient_quota" in kinds:  # a 429 that no wait mends
            return "rejected"
        return "transient" if is_own or self.status in TRANSIENT else "rejected"

    @property
    def may_be_of_a_parameter(self) -> bool:
        """Return True if the server may not know a parameter; some call that their own failure."""
        names_format = "grammar" in self.text or "response_format" in self.text
        return self.status in {400, 422} or (self.status in {500, 501} and names_format)

    @property
    def retry_after(self) -> float | None:
        """Return how many seconds the server asks us to wait, None if it does not say."""
        for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
            try:
                return max(0.0, float(self.headers[name]) / unit)
            except (KeyError, ValueError):
                continue
        try:
            date = parsedate_to_datetime(self.headers.get("retry-after", ""))
        except ValueError:
            return None
        return max(0.0, date.timestamp() - time.time())


def _without_input(node: object) -> object:
    """Return the errors of a server that validates, without the input they repeat."""
    if isinstance(node, list):
        return [_without_input(item) for item in node]
    if isinstance(node, Mapping):
        return {key: _without_input(value) for key, value in node.items() if key != "input"}
    return node
