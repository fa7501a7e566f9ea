"""A chat completion, whole or in chunks, read into an `LLMResponse`.

Takes plain data: the client builds its types without validation, so that servers which leave fields
out, or send other types than OpenAI, are read as well.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent import lengths
from agent.engine.dialect import ECHOED
from agent.engine.errors import ModelResponseInvalid, ModelUnavailable
from agent.engine.messages import Echo, Heard, LLMResponse, ToolCall, Usage, sendable

FINISH_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
    **dict.fromkeys(("safety", "recitation", "prohibited_content"), "content_filter"),
    **dict.fromkeys(("error", "abort", "insufficient_system_resource"), "interrupted"),
}
"""Finish reasons of other servers, in the words of OpenAI; `interrupted` is ours."""
PIECES: Final = ("refusal", "reasoning_content", "reasoning")
"""Fields of a message that come in pieces, beside its content."""


def read_completion(data: Mapping[str, Any], model: str) -> LLMResponse:
    """Read a chat completion, tolerant of what other servers leave out or write otherwise."""
    choice = _first(data.get("choices"))
    message = _mapping(choice.get("message"))
    finish = str(choice.get("finish_reason") or ("stop" if choice else "no_choices")).lower()
    calls = _calls(message)
    return LLMResponse(
        content=text_of(message.get("content"))[: lengths.ANSWER + 1],
        tool_calls=tuple(map(_tool_call, calls)),
        finish_reason=FINISH_REASONS.get(finish, finish),
        refusal=text_of(message.get("refusal")) or None,
        usage=_usage(data.get("usage")),
        model=sendable(str(data.get("model") or model)),
        has_reasoning=bool(message.get("reasoning_content") or message.get("reasoning")),
        echo=echo_of(message, calls),
    )


def reported_error(data: Mapping[str, Any]) -> object:
    """Return the error that a server reports with status 200, in place of a completion."""
    return None if data.get("choices") or data.get("usage") else data.get("error")


class StreamedCompletion:
    """The chunks of a chat completion put together; `heard` is told when its content begins.

    Reads chunks that hold whole calls, lists of parts, or calls without an index.
    """

    def __init__(self, model: str, heard: Heard) -> None:
        self._model, self._heard = model, heard
        self._size = 0
        self._content: list[str] = []
        self._pieces: dict[str, list[str]] = {name: [] for name in PIECES}
        self._calls: list[dict[str, Any]] = []
        self._message: dict[str, Any] = {}
        self._completion: dict[str, Any] = {}
        self._finish: str | None = None
        self.first_token_ns = 0

    @property
    def text(self) -> str:
        """Return the content so far."""
        return "".join(self._content)

    @property
    def has_usage(self) -> bool:
        """Return True if the server has said what it counted."""
        return bool(self._completion.get("usage"))

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next chunk.

        Raises:
            ModelResponseInvalid: the answer is too long.
        """
        self._completion |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        choice = _first(chunk.get("choices"))
        self._finish = choice.get("finish_reason") or self._finish
        self._add(_mapping(choice.get("delta") or choice.get("message")))
        if self._size > lengths.ANSWER_BYTES:
            problem = f"{self._model} answered with over {lengths.ANSWER_BYTES} bytes"
            raise ModelResponseInvalid(problem)

    def completion(self) -> dict[str, Any]:
        """Return the completion that a server which does not stream would have answered with.

        Raises:
            ModelUnavailable: the stream ended in the middle.
        """
        if self._finish is None and not self.has_usage:
            raise ModelUnavailable(f"{self._model} broke its answer off")
        said = {name: "".join(parts) for name, parts in self._pieces.items() if parts}
        message: dict[str, Any] = {**self._message, **said, "content": self.text}
        if self._calls:
            message["tool_calls"] = [*map(_joined_call, self._calls)]
        began = bool(self._finish or self._message or self.text or said or self._calls)
        choices = [{"message": message, "finish_reason": self._finish}] if began else []
        return {**self._completion, "choices": choices}

    def _add(self, delta: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls")
        pieces = [self._add_call(call) for call in calls] if isinstance(calls, list) else []
        for name in PIECES:
            if delta.get(name) is not None:
                pieces.append(text_of(delta[name]))
                self._pieces[name].append(pieces[-1])
        for name in ("role", "extra_content"):
            if delta.get(name) is not None:
                self._message[name] = delta[name]
        if isinstance(details := delta.get("reasoning_details"), list):
            _join_details(self._message.setdefault("reasoning_details", []), details)
        content = text_of(delta.get("content"))
        self._size += len(content) + sum(map(len, pieces))
        if not self.first_token_ns and (content or any(pieces)):
            self.first_token_ns = time.time_ns()
        if content:
            self._content.append(content)
            if len(self._content) == 1:
                self._heard(lambda: self.text)

    def _add_call(self, piece: object) -> str:
        """Add a piece to the call that it belongs to, and return its part of the arguments."""
        call = _mapping(piece)
        function = _mapping(call.get("function"))
        known = self._call_of(call)
        for name, value in call.items():
            if name != "function" and value is not None:
                known[name] = known.get(name) or value
        said = known["function"]
        said["name"] = said.get("name") or function.get("name")
        arguments = _json_text(function.get("arguments"))
        said["arguments"].append(arguments)
        return arguments

    def _call_of(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call that a piece belongs to; without an index the last, unless another id.

        No more calls are kept than are looked at.
        """
        index, name = call.get("index"), call.get("id")
        if index is not None:
            known = next((each for each in self._calls if each.get("index") == index), None)
        else:
            last = self._calls[-1] if self._calls else None
            known = None if last is None or name not in (None, last.get("id")) else last
        if known is None:
            known = {"function": {"arguments": []}}
            if len(self._calls) < lengths.TOOL_CALLS:
                self._calls.append(known)
        return known


def _joined_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    joined = {**function, "arguments": "".join(function["arguments"])}
    return {name: value for name, value in call.items() if name != "index"} | {"function": joined}


def _join_details(known: list[Any], pieces: list[Any]) -> None:
    """Put pieces of thoughts to those of the same index, their texts one behind the other."""
    for piece in pieces:
        last = known[-1] if known else None
        if not (isinstance(piece, Mapping) and isinstance(last, dict)) or (
            piece.get("index"),
            piece.get("type"),
        ) != (last.get("index"), last.get("type")):
            known.append(dict(piece) if isinstance(piece, Mapping) else piece)
            continue
        for name, value in piece.items():
            is_text = name in {"text", "summary"} and isinstance(value, str)
            last[name] = f"{last.get(name) or ''}{value}" if is_text else value


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def text_of(content: object) -> str:
    """Return content as one string; some servers send a list of parts, or the JSON they parsed."""
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    return sendable(_json_text(content))


def _part(part: object) -> str:
    said = part if isinstance(part, str) else _mapping(part).get("text")
    return said if isinstance(said, str) else ""


def _json_text(value: object) -> str:
    """Return text as it is, nothing as no text, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value)
    except RecursionError:
        return ""


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return list(map(_mapping, calls[: lengths.TOOL_CALLS])) if isinstance(calls, list) else []


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _mapping(call.get("function"))
    return ToolCall(
        sendable(str(call.get("id") or "")),
        text_of(function.get("name"))[: lengths.NAME],
        sendable(_json_text(function.get("arguments")))[: lengths.ARGUMENTS + 1],
    )


def _usage(usage: object) -> Usage:
    counted = _mapping(usage)
    details = _mapping(counted.get("prompt_tokens_details"))
    prompt = _count(counted.get("prompt_tokens"))
    cached = details.get("cached_tokens") or counted.get("prompt_cache_hit_tokens")
    return Usage(prompt, _count(counted.get("completion_tokens")), min(prompt, _count(cached)))


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < math.inf else 0


def echo_of(message: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> Echo | None:
    """Return the fields of a server's message that are to come back to it; None if there are none.

    An empty text counts: DeepSeek misses that too.
    """
    echo = Echo(_echoed(message), tuple(map(_echoed, calls)))
    return echo if echo.message or any(echo.calls) else None


def _echoed(said: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: said[name] for name in ECHOED if said.get(name) is not None}
    return {name: value for name, value in found.items() if _is_json(value)}


def _is_json(value: object) -> bool:
    """Return True if a value read from JSON can be written: Python reads NaN and any depth."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True
