"""What a server wants back beside a message of its own model's: thoughts, signatures of calls.

DeepSeek and Gemini refuse (400) a request in which their own tool calls came back without it. It
travels within a turn only, and only to the model that said it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent.engine.messages import Echo, Message

ECHOED: Final = ("reasoning_content", "reasoning_details", "extra_content")
THOUGHTS: Final = "reasoning_content"
NOTE: Final = "echo"
"""Where a message of a conversation keeps its echo; it is sent to nobody."""


def echo_of(message: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> Echo | None:
    """What of a server's message is to come back beside what was read of it; None if nothing."""
    echo = Echo(_echoed(message), tuple(map(_echoed, calls)))
    return echo if echo.message or any(echo.calls) else None


def _echoed(said: Mapping[str, Any]) -> dict[str, Any]:
    """An empty text counts: DeepSeek misses that too. What no request can hold does not."""
    found = {name: said[name] for name in ECHOED if said.get(name) is not None}
    return {name: value for name, value in found.items() if _is_json(value)}


def _is_json(value: object) -> bool:
    """Whether a value read from JSON can be written again: Python reads NaN and any depth."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def noted(message: Message, echo: Echo | None) -> Message:
    """A message of a conversation, with what its author wants back."""
    return message | {NOTE: echo} if echo else message


def as_sent(messages: Sequence[Message], model: int) -> list[Message]:
    """The messages of a conversation as the turn's model at this place is sent them."""
    return [_as_sent(each, model) if NOTE in each else each for each in messages]


def _as_sent(message: Message, model: int) -> Message:
    echo: Echo = message[NOTE]
    plain = {name: value for name, value in message.items() if name != NOTE}
    if echo.model != model:
        return plain
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [
            {**call, **more} for call, more in zip(calls, echo.calls, strict=True)
        ]
    return {**plain, **echo.message}


def without_echoes(message: Message) -> Message:
    """A message for a server that knows nothing beside the words and the calls."""
    plain = {name: value for name, value in message.items() if name not in ECHOED}
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [
            {name: value for name, value in call.items() if name not in ECHOED} for call in calls
        ]
    return plain


def with_thoughts(message: Message) -> Message:
    """A message for a server that wants thoughts beside whatever an assistant ever said."""
    return {THOUGHTS: ""} | message if message.get("role") == "assistant" else message
