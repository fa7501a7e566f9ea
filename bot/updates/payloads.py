"""Updates as Telegram delivers them: where they came from, and whom they wait for. Pure."""

from collections.abc import Mapping
from typing import Any

Payload = Mapping[str, Any]


def chat_of(payload: Payload) -> int:
    """The id of the chat an update is from, 0 for one without."""
    return int(message_in(payload).get("chat", {}).get("id", 0))


def lane_of(payload: Payload) -> str:
    """Whom an update waits for: the others of its chat, or those of the same kind of button there.

    A button whose data begins with a kind ("v:…") does not wait for the turn that runs: whoever
    presses it is to see at once that it was heard.
    """
    chat_id = str(chat_of(payload))
    kind, colon, _ = str(payload.get("callback_query", {}).get("data", "")).partition(":")
    return f"{kind[:16]}-{chat_id}" if colon else chat_id


def message_in(payload: Payload) -> Mapping[str, Any]:
    """The message an update brings, or the one that a button stands under; empty without one."""
    kinds = ("message", "edited_message", "callback_query", "my_chat_member")
    found: Mapping[str, Any] = next((payload[kind] for kind in kinds if kind in payload), {})
    inner: Mapping[str, Any] = found.get("message", found) if "data" in found else found
    return inner
