"""An answer that comes in chunks: put together as if it had come whole, and shown while it grows.

Chunks are read as tolerantly as a whole completion: of servers whose chunks hold whole calls, lists
of parts, or no index, and of those that answer whole although they were asked to stream. Shown are
only whole sentences and whole values, held to the same rules as the final answer: what is not
grounded already is left out. Nothing is computed before somebody asks for it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from pydantic_core import from_json

from agent import lengths
from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import ModelResponseInvalid, ModelUnavailable, log_failure
from agent.engine.messages import read_body, text_of
from agent.engine.parsing import ParseResult, without_thoughts
from agent.engine.run import Run
from agent.markdown import visible
from agent.text import last_sentence_end, pattern

EVENT_STREAM: Final = "text/event-stream"
STREAM_BYTES: Final = 8 * lengths.ANSWER_BYTES
"""The events of a stream: each token brings some 250 bytes around it."""
JOINED: Final = ("refusal", "reasoning_content", "reasoning")
"""What of a message comes in pieces, beside its content."""

Text = Callable[[], str]
"""What a model has written so far, whenever it is asked for."""
Heard = Callable[[Text], None]
"""Takes what a model writes, as soon as there is something."""


class StreamedCompletion:
    """The body of a chat completion while it arrives; `heard` is told when its content begins."""

    def __init__(self, model: str, heard: Heard = lambda text: None) -> None:
        self._model, self._heard = model, heard
        self._rest, self._bytes, self._size = b"", 0, 0
        self._content: list[str] = []
        self._joined: dict[str, list[str]] = {name: [] for name in JOINED}
        self._calls: list[dict[str, Any]] = []
        self._message: dict[str, Any] = {}
        self._body: dict[str, Any] = {}
        self._finish: str | None = None
        self.first_token_ns = 0
        self.is_done = False

    @property
    def text(self) -> str:
        """The content so far."""
        return "".join(self._content)

    @property
    def has_usage(self) -> bool:
        """Whether the server has said what it counted."""
        return bool(self._body.get("usage"))

    def feed(self, data: bytes) -> None:
        """Take what arrived of the body of the response.

        Raises:
            ModelResponseInvalid: it is too long, or no stream of completions.
        """
        self._bytes += len(data)
        if self._bytes > STREAM_BYTES or self._size > lengths.ANSWER_BYTES:
            limit = STREAM_BYTES if self._bytes > STREAM_BYTES else lengths.ANSWER_BYTES
            raise ModelResponseInvalid(f"{self._model} answered with over {limit} bytes")
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line.strip())

    def body(self) -> dict[str, Any]:
        """Make the body that a server which does not stream would have answered with.

        Raises:
            ModelUnavailable: the stream ended in the middle.
        """
        self._line(self._rest.strip())
        if self._body.get("error"):
            return {"error": self._body["error"]}
        if self._finish is None and not self.is_done:
            raise ModelUnavailable(f"{self._model} broke its answer off")
        said = {name: "".join(parts) for name, parts in self._joined.items() if parts}
        message: dict[str, Any] = {**self._message, **said, "content": self.text}
        if self._calls:
            calls = [{**each, "function": _whole(each["function"])} for each in self._calls]
            message["tool_calls"] = [
                {name: value for name, value in each.items() if name != "index"} for each in calls
            ]
        began = bool(self._finish or self._message or self.text or said or self._calls)
        choices = [{"message": message, "finish_reason": self._finish}] if began else []
        return {**self._body, "choices": choices}

    def _line(self, line: bytes) -> None:
        """One line of server-sent events; only data matters, one line of it each."""
        if not line.startswith(b"data:"):
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            self.is_done = True
        elif data:
            self._chunk(read_body(data, self._model))

    def _chunk(self, chunk: Mapping[str, Any]) -> None:
        for name in ("model", "usage", "error"):
            if chunk.get(name):
                self._body[name] = chunk[name]
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            self._add(delta)

    def _add(self, delta: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls")
        pieces = [self._add_call(call) for call in calls] if isinstance(calls, list) else []
        for name in JOINED:
            if delta.get(name) is not None:
                pieces.append(text_of(delta[name]))
                self._joined[name].append(pieces[-1])
        for name in ("role", "extra_content"):
            if delta.get(name) is not None:
                self._message[name] = delta[name]
        if isinstance(details := delta.get("reasoning_details"), list):
            _join_details(self._message.setdefault("reasoning_details", []), details)
        content = text_of(delta.get("content"))
        self._size += len(content) + sum(map(len, pieces))
        if not self.first_token_ns and (content or pieces):
            self.first_token_ns = time.time_ns()
        if content:
            self._content.append(content)
            if len(self._content) == 1:
                self._heard(lambda: self.text)

    def _add_call(self, call: object) -> str:
        """Add a piece of a call to what is known of it; the piece of its arguments."""
        if not isinstance(call, Mapping):
            return ""
        function = call.get("function")
        piece: Mapping[str, Any] = function if isinstance(function, Mapping) else {}
        known = self._call_of(call)
        for name, value in call.items():
            if name != "function" and value is not None:
                known[name] = known.get(name) or value
        said, arguments = known["function"], piece.get("arguments")
        said["name"] = said.get("name") or piece.get("name")
        whole = "" if arguments is None else text_of(arguments)
        said["arguments"].append(whole)
        return whole

    def _call_of(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The call that a piece belongs to; without an index, the last, unless it has another id.

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


def _whole(function: Mapping[str, Any]) -> dict[str, Any]:
    return {**function, "arguments": "".join(function["arguments"])}


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


T = TypeVar("T")

CONTROL: Final = pattern(r"[\x00-\x1f]")
MISSING: Final = object()


@dataclass(slots=True)
class Drafts(Generic[T]):
    """The drafts of one question; a run that shows none, or a contract that has none, makes none.

    A new text takes the place of the one before.
    """

    run: Run
    contract: OutputContract[T]
    evidence: Evidence
    _text: Text = field(default=lambda: "")
    _made: tuple[Mapping[str, Any] | None, ParseResult[T] | None] = (None, None)

    @property
    def listener(self) -> Heard | None:
        """What listens to a model while it writes, if drafts are wanted."""
        are_wanted = self.run.show is not None and self.contract.partial is not None
        return self.heard if are_wanted else None

    def heard(self, text: Text) -> None:
        """Offer drafts of what a model begins to write."""
        self._text, self._made = text, (None, None)
        if self.run.show is not None:
            self.run.show(self.markdown)

    def markdown(self) -> str:
        """What may be shown now, in Markdown; empty if nothing."""
        result = self.result()
        return result.text if result else ""

    def result(self) -> ParseResult[T] | None:
        """What of the answer may be shown now; None if nothing."""
        text = self._text()
        if len(text) > lengths.ON_THE_LOOP:
            return self._made[1]  # what is that long is worth no chat's waiting
        if (value := settled(without_thoughts(text))) != self._made[0]:
            self._made = value, draft_of(value, self.contract, self.evidence)
        return self._made[1]


def draft_of(
    value: Mapping[str, Any] | None, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T] | None:
    """Find what may be shown of an answer of which so much is known; None if nothing."""
    if contract.partial is None or value is None:
        return None
    try:
        answer = contract.partial(value, evidence)
        shown = "" if answer is None else visible(contract.render(answer, evidence))
    except Exception as error:
        log_failure("a draft could not be made", error)
        return None
    if answer is None or not shown.strip():
        return None
    return ParseResult(shown, contract.ids(answer), answer=answer, path="draft")


def settled(text: str) -> dict[str, Any] | None:
    """Read what will not change any more of an object that is still being written.

    Of a text that has not ended these are its sentences, save the last. None: nothing yet, or no
    object.
    """
    begun = CONTROL.sub(" ", text[text.find("{") :]) if "{" in text else ""
    try:
        growing = from_json(begun, allow_partial="trailing-strings")
        whole = from_json(begun, allow_partial=True)
    except (ValueError, RecursionError):
        return None
    found = _settled(growing, whole)
    return found if isinstance(found, dict) else None


def _settled(growing: Any, whole: Any) -> Any:
    if isinstance(growing, str):
        end = (
            len(growing) if isinstance(whole, str) else last_sentence_end(growing, len(growing) - 1)
        )
        return growing[:end]
    if isinstance(growing, Mapping):
        named = whole if isinstance(whole, Mapping) else {}
        return {key: _settled(value, named.get(key, MISSING)) for key, value in growing.items()}
    if isinstance(growing, list):
        known = whole if isinstance(whole, list) else []
        ends = [*known, *([MISSING] * (len(growing) - len(known)))]
        return [_settled(value, end) for value, end in zip(growing, ends, strict=True)]
    return growing if whole is not MISSING else None
