"""What an update's payload says: its chat, its lane, and what was sent in one go with it. Pure."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from agent.repositories import AcceptedUpdate, Payload

LARGEST_BURST: Final = 50


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


def together(updates: Sequence[AcceptedUpdate], burst: timedelta) -> list[AcceptedUpdate]:
    """The updates from the first on that make one turn with it."""
    group = [updates[0]]
    for update in updates[1:LARGEST_BURST]:
        if not belongs(group[-1], update, burst):
            break
        group.append(update)
    return group


def belongs(earlier: AcceptedUpdate, later: AcceptedUpdate, burst: timedelta) -> bool:
    """Whether `later` was sent in one go with `earlier`: of one album, or in quick succession."""
    one, other = message_in(earlier.payload), message_in(later.payload)
    if not (is_part_of_burst(earlier.payload) and is_part_of_burst(later.payload)):
        return False
    album = one.get("media_group_id")
    same_person = one.get("from") == other.get("from")
    same_thread = one.get("message_thread_id") == other.get("message_thread_id")
    quick = later.received_at - earlier.received_at <= burst
    return (
        same_person
        and same_thread
        and (quick or bool(album and album == other.get("media_group_id")))
    )


def is_part_of_burst(payload: Payload) -> bool:
    """Whether more may belong to this update: a message with words or of an album, no command."""
    message = payload.get("message") or {}
    text = message.get("text", "")
    return bool(text and not text.startswith("/")) or "media_group_id" in message


def joined(payloads: Sequence[Payload]) -> Payload:
    """One update of all: one message of theirs, and the id of the first."""
    if len(payloads) == 1:
        return payloads[0]
    message = one_message([message_in(payload) for payload in payloads])
    return {"update_id": payloads[0]["update_id"], "message": message}


def one_message(messages: Sequence[Payload]) -> dict[str, Any]:
    """The last of these messages, with the words of all.

    Whom they address is kept: who is mentioned, and the message that the first reply was to.
    """
    words, entities = _words(messages)
    message = dict(messages[-1]) | {"text": words, "entities": entities}
    if not words:
        del message["text"], message["entities"]
    replied = [each["reply_to_message"] for each in messages if "reply_to_message" in each]
    return message | ({"reply_to_message": replied[0]} if replied else {})


def _words(messages: Sequence[Payload]) -> tuple[str, list[dict[str, Any]]]:
    """The words of messages, a line each, and the entities in them."""
    words, entities = "", list[dict[str, Any]]()
    for each in messages:
        said = each.get("text") or each.get("caption")
        if not said:
            continue
        words += "\n" if words else ""
        marks = each.get("entities" if each.get("text") else "caption_entities", ())
        start = _units(words)
        entities += [{**mark, "offset": mark["offset"] + start} for mark in marks]
        words += said
    return words, entities


def _units(text: str) -> int:
    """How long a text is for Telegram: UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
