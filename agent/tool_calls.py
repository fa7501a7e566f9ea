"""A model's tool calls as they go back into the messages, in a form that every server accepts."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agent.messages import Message, ToolCall


def with_unique_ids(calls: Sequence[ToolCall], step: int, taken: set[str]) -> list[ToolCall]:
    """The calls, with ids that are empty or taken replaced: each id is answered exactly once."""
    unique = []
    for position, call in enumerate(calls):
        name = call.id if call.id and call.id not in taken else f"call_{step}_{position}"
        taken.add(name)
        unique.append(replace(call, id=name))
    return unique


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
                    "arguments": call.arguments if _is_json_object(call.arguments) else "{}",
                },
            }
            for call in calls
        ],
    }


NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
