"""The messages of a request to a model, read as a conversation. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.engine.feedback import is_feedback
from agent.engine.messages import Message
from agent.text import pattern

_WINE_IDS: Final = pattern(r"\[wine ids: ([^\]\n]*)\]")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier message of the person, and the reply with the wines it showed, in order."""

    request: str
    reply: str = ""
    wine_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one tool call of this turn was and returned."""

    tool: str
    arguments: str
    content: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the person asks now, what was said before, and what the tools returned since."""

    request: str
    before: tuple[Exchange, ...] = ()
    results: tuple[ToolResult, ...] = ()


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """The conversation in `messages`; feedback to a model is nobody's request."""
    asked = [at for at, message in enumerate(messages) if _is_request(message)]
    if not asked:
        return Conversation(request="")
    before = [_exchange(messages[start:end]) for start, end in pairwise(asked)]
    now = messages[asked[-1] :]
    return Conversation(text_of(now[0]), tuple(before), tuple(_results(now)))


def text_of(message: Message) -> str:
    """The text of a message, whose content may be a string, a list of parts, or missing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part
    )


def _is_request(message: Message) -> bool:
    return message.get("role") == "user" and not is_feedback(text_of(message))


def _exchange(messages: Sequence[Message]) -> Exchange:
    replies = [text_of(message) for message in messages if message.get("role") == "assistant"]
    reply = replies[-1] if replies else ""
    listed = _WINE_IDS.search(reply)
    ids = (part.strip() for part in (listed[1] if listed else "").split(","))
    return Exchange(text_of(messages[0]), reply, tuple(part for part in ids if part))


def _results(messages: Sequence[Message]) -> list[ToolResult]:
    calls = {str(call["id"]): call["function"] for message in messages for call in _calls(message)}
    return [
        _result(calls.get(str(message.get("tool_call_id")), {}), text_of(message))
        for message in messages
        if message.get("role") == "tool"
    ]


def _result(call: Mapping[str, object], content: str) -> ToolResult:
    return ToolResult(str(call.get("name", "")), str(call.get("arguments", "")), content)


def _calls(message: Message) -> Sequence[Mapping[str, Mapping[str, object]]]:
    return message.get("tool_calls") or ()
