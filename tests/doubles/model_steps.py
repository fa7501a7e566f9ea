"""How a scripted model answers: one constructor for every behaviour worth a test."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.doubles.server import JsonObject


@dataclass(frozen=True)
class Step:
    """How one request is answered. Made by the functions below.

    A `message` becomes a completion; `body` is sent as it is. `usage` is prompt and completion
    tokens, counted as characters / 4 when None. `seconds` pass first. Streamed, it comes in pieces
    of `piece` characters, `pause` seconds apart.
    """

    message: JsonObject | None = None
    finish_reason: str = "stop"
    usage: tuple[int, int] | None = None
    cached: int = 0
    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0
    piece: int = 4
    pause: float = 0
    ending: Literal["whole", "cut", "reset", "silent"] = "whole"


Script = Step | Callable[[JsonObject], Step]
"""A step, or a function of the request's JSON that returns one."""


def answer(
    content: str,
    finish_reason: str = "stop",
    usage: tuple[int, int] | None = None,
    cached: int = 0,
) -> Step:
    """The assistant says `content`; `cached` prompt tokens came from the cache."""
    return Step({"content": content}, finish_reason, usage, cached)


def answer_json(answer_object: object, finish_reason: str = "stop") -> Step:
    """The assistant says an object as JSON."""
    return answer(json.dumps(answer_object, ensure_ascii=False), finish_reason)


def call(name: str, arguments: JsonObject | str, id: str | None = None) -> JsonObject:
    """One call for `tool_calls`; a `str` is sent raw. Without `id`: call_1, call_2 … per server."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": raw}}


def tool_call(name: str, arguments: JsonObject | str, id: str | None = None) -> Step:
    """The assistant asks for one tool."""
    return tool_calls([call(name, arguments, id)])


def tool_calls(calls: Sequence[JsonObject], content: str | None = None) -> Step:
    """The assistant asks for several tools at once, and may say something beside."""
    return Step({"content": content, "tool_calls": list(calls)}, "tool_calls")


def refusal(text: str) -> Step:
    """The assistant refuses, in the field that is for it."""
    return Step({"content": None, "refusal": text})


def null_content() -> Step:
    """A message that says nothing."""
    return Step({"content": None})


def reasoning_only(text: str, content: str | None = None) -> Step:
    """A message that only holds thoughts, as some open models leave it."""
    return Step({"content": content, "reasoning_content": text})


def no_choices() -> Step:
    """A completion without choices."""
    return raw(json.dumps({"id": "x", "object": "chat.completion", "choices": []}).encode())


def raw(body: bytes, status: int = 200, content_type: str = "application/json") -> Step:
    """Any bytes."""
    return Step(body=body, status=status, content_type=content_type)


def error(
    status: int, body: JsonObject | None = None, headers: Mapping[str, str] | None = None
) -> Step:
    """An HTTP error, in OpenAI's shape unless `body` is given."""
    content = body or error_body(f"The server answers {status}.")
    return Step(body=json.dumps(content).encode(), status=status, headers=headers or {})


def hang(seconds: float, then: Step | None = None) -> Step:
    """Nothing for `seconds`, then the step `then`; without one the connection is closed."""
    return replace(then or Step(ending="silent"), seconds=seconds)


def paced(step: Step, tokens_per_second: float = 40, piece: int = 4) -> Step:
    """The step, streamed so fast; a token has four characters."""
    return replace(step, pause=piece / 4 / tokens_per_second, piece=piece)


def reset() -> Step:
    """The connection is reset before any byte of an answer."""
    return Step(ending="reset")


def cut(content: str = "This answer will never arrive whole.") -> Step:
    """Headers and half of a body, then the end of the connection."""
    return replace(answer(content), ending="cut")


def error_body(message: str, kind: str = "invalid_request_error") -> JsonObject:
    """An error as OpenAI words it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
