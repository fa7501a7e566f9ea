"""A model's tool calls as they go back into the messages, in a form that every server accepts."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from agent.engine.messages import Message, ToolCall


def ids_in(messages: Sequence[Message]) -> set[str]:
    """The ids of the tool calls in a conversation so far."""
    return {call["id"] for message in messages for call in message.get("tool_calls") or ()}


def with_unique_ids(calls: Sequence[ToolCall], taken: set[str]) -> list[ToolCall]:
    """The calls, with ids that are odd or taken replaced: each id is answered exactly once."""
    unique = []
    for call in calls:
        usable = ID.fullmatch(call.id) and call.id not in taken
        name = call.id if usable else _free_id(taken)
        taken.add(name)
        unique.append(replace(call, id=name))
    return unique


def _free_id(taken: set[str]) -> str:
    """An id that is not taken, of nine letters and digits: some servers accept no other."""
    ids = (f"call{number:05}" for number in count(len(taken)))
    return next(each for each in ids if each not in taken)


def assistant_message(content: str, calls: Sequence[ToolCall]) -> Message:
    """The assistant message that a turn's tool results answer, in a form every server accepts."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": NOT_IN_A_NAME.sub("_", call.name)[:64] or "unknown",
                    "arguments": _arguments(call.arguments),
                },
            }
            for call in calls
        ],
    }


NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,40}")
"""What OpenAI accepts as an id: no more than 40 characters."""


def json_object(text: str) -> dict[str, Any]:
    """The arguments a model wrote; none at all count as an empty object.

    Raises:
        ValueError: they are no JSON object; the message says so, without the text.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "a number JSON has not, or nested too deeply")
        raise ValueError(f"the arguments are not valid JSON ({reason})") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("the arguments must be a JSON object")  # noqa: TRY004
    return value


def is_whole(call: ToolCall) -> bool:
    """Whether a call's arguments were written to their end."""
    try:
        return bool(call.arguments.strip()) and json_object(call.arguments) is not None
    except ValueError:
        return False


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _arguments(text: str) -> str:
    """Arguments as they go back: what is no JSON object is a 400 with some servers."""
    try:
        return text if json_object(text) else "{}"
    except ValueError:
        return "{}"
