"""What several updates make one turn; told from raw JSON, in which anything may stand anywhere."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from agent import lengths
from agent.repositories import AcceptedUpdate, Payload
from bot.telegram.render import utf16_units

LARGEST_BURST: Final = 50
LARGEST_ID: Final = 2**63 - 1
"""Ids are stored as 64 bits."""

FOREIGN: Final = ("forward_origin", "via_bot")
"""What a message has that somebody else wrote: it was forwarded, or another bot made it."""
KINDS: Final = ("message", "edited_message", "callback_query", "my_chat_member")


def chat_of(payload: Payload) -> int:
    """The id of the chat an update is from, 0 for one without."""
    return number(part(message_in(payload), "chat").get("id"))


def lane_of(payload: Payload) -> str:
    """Whom an update waits for: the others of its chat, or those of the same kind of button there.

    A button whose data begins with a kind ("v:…") does not wait for the turn that runs: whoever
    presses it is to see at once that it was heard.
    """
    chat_id = str(chat_of(payload))
    kind, colon, _ = str(part(payload, "callback_query").get("data", "")).partition(":")
    return f"{kind[:16]}-{chat_id}" if colon else chat_id


def message_in(payload: Payload) -> Payload:
    """The message an update brings, or the one that a button stands under; empty without one."""
    found = next((part(payload, kind) for kind in KINDS if kind in payload), {})
    return part(found, "message") if "data" in found else found


def part(payload: Payload, name: str) -> Payload:
    """An object inside another, empty if it is none."""
    found = payload.get(name)
    return found if isinstance(found, Mapping) else {}


def number(value: object) -> int:
    """An id, 0 for what is none."""
    return value if type(value) is int and abs(value) <= LARGEST_ID else 0


def together(
    updates: Sequence[AcceptedUpdate], burst: timedelta, readable: Callable[[Payload], bool]
) -> list[AcceptedUpdate]:
    """The updates from the first on that make one turn with it; what cannot be read stays alone."""
    group = [updates[0]]
    for update in updates[1:LARGEST_BURST]:
        if not belongs(group[-1], update, burst) or not readable(update.payload):
            break
        group.append(update)
    return group if len(group) == 1 or readable(updates[0].payload) else group[:1]


def belongs(earlier: AcceptedUpdate, later: AcceptedUpdate, burst: timedelta) -> bool:
    """Whether `later` was sent in one go with `earlier`: of one album, or in quick succession."""
    one, other = message_in(earlier.payload), message_in(later.payload)
    if not (is_part_of_burst(earlier.payload) and is_part_of_burst(later.payload)):
        return False
    album = one.get("media_group_id")
    same_person = one.get("from") == other.get("from")
    same_thread = one.get("message_thread_id") == other.get("message_thread_id")
    # Updates that were fetched together were received at the same moment, burst or none.
    quick = bool(burst) and later.received_at - earlier.received_at <= burst
    return (
        same_person
        and same_thread
        and (quick or bool(album and album == other.get("media_group_id")))
    )


def is_part_of_burst(payload: Payload) -> bool:
    """Whether more may belong to this update: a message with words or of an album, no command."""
    message = part(payload, "message")
    words, _ = words_of(message)
    if not _is_wellformed(message):
        return False
    is_text = "text" in message and not words.startswith("/")
    return bool(words and is_text) or "media_group_id" in message


def _is_wellformed(message: Payload) -> bool:
    words, marks = words_of(message)
    return isinstance(words, str) and all(
        isinstance(each, Mapping) and type(each.get("offset")) is int for each in marks
    )


def words_of(message: Payload) -> tuple[Any, Sequence[Any]]:
    """What a message says, text or caption, and the entities in it, if that is what they are."""
    kind, marks = ("text", "entities") if message.get("text") else ("caption", "caption_entities")
    found = message.get(marks)
    return message.get(kind) or "", found if isinstance(found, list) else ()


def joined(payloads: Sequence[Payload]) -> Payload:
    """One update of all: one message of theirs, no longer than may be, and the id of the first."""
    first = payloads[0]
    if len(payloads) == 1 and not _is_too_long(part(first, "message")):
        return first
    message = one_message([message_in(payload) for payload in payloads])
    return {"update_id": first["update_id"], "message": message}


def _is_too_long(message: Payload) -> bool:
    words, marks = words_of(message)
    return _is_wellformed(message) and (
        len(words) > lengths.MESSAGE or len(marks) > lengths.ENTITIES
    )


def one_message(messages: Sequence[Payload]) -> dict[str, Any]:
    """The last of these messages, with the words of all.

    Whom they address is kept: who is mentioned, and the message that the first reply was to. So is
    that one of them is not of who sent it: then the whole is no command of theirs.
    """
    words, entities = _words(messages)
    message = dict(messages[-1]) | {"text": words, "entities": entities}
    if not words:
        del message["text"], message["entities"]
    replied = [each["reply_to_message"] for each in messages if "reply_to_message" in each]
    foreign = {kind: each[kind] for each in messages for kind in FOREIGN if kind in each}
    return message | foreign | ({"reply_to_message": replied[0]} if replied else {})


def _words(messages: Sequence[Payload]) -> tuple[str, list[dict[str, Any]]]:
    """The words of messages, a line each, and the entities in them, as far as they are read."""
    said, entities = "", list[dict[str, Any]]()
    for each in messages:
        words, marks = words_of(each)
        left = lengths.MESSAGE - len(said) - bool(said)
        if not words or left <= 0:
            continue
        said += "\n" if said else ""
        start, words = utf16_units(said), words[:left]
        end = utf16_units(words)
        whole = [each for each in marks if each["offset"] + number(each.get("length")) <= end]
        entities += [{**mark, "offset": mark["offset"] + start} for mark in whole]
        said += words
    return said, entities[: lengths.ENTITIES]
