"""Group the updates that make one turn. They are raw JSON, in which any field may be malformed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent import size_limits
from db.repositories.inbox import Payload

LARGEST_BURST: Final = 50
GROUP_SECONDS: Final = 1
"""In a group, a user's next message is for the bot if it follows within this time."""
MAX_ID: Final = 2**63 - 1
"""Ids are stored as 64 bits."""

INLINE: Final = "inline_query"
"""The update of a user who types after the bot's name in any chat; it is soon outdated."""
STOPPED: Final = "stopped_message_generation"
"""The update of the Stop button under a draft; python-telegram-bot does not know it."""
ALBUM: Final = "album"
"""The field of a merged message with the files of all, in their order."""
FORWARD: Final = "forward_"
"""The prefix of the fields of a forwarded message; those before Bot API 7 had other names."""
BY_BOTS: Final = ("via_bot", "sender_business_bot")
"""The fields of a message that a bot made: inline, or writing for a business account."""
UNQUOTED: Final = (*BY_BOTS, "caption", "caption_entities")
KINDS: Final = ("message", "edited_message", "callback_query", "message_reaction", STOPPED)
FOLLOW_UP: Final = "n"
"""The prefix of the data of a follow-up button."""
STOP: Final = "/stop"
QUICK_COMMANDS: Final = frozenset({"/new", "/start", "/help", "/settings"})
"""Commands that do not wait for the answer to an earlier question."""


def chat_of(payload: Payload) -> int:
    """Return the id of the chat of an update, 0 if it has none."""
    return as_int(section(message_in(payload), "chat").get("id"))


def lane_of(payload: Payload) -> str:
    """Return the lane of an update: its chat or topic, or the lane beside it for quick updates.

    Buttons ("v:…") and quick commands have a lane beside that of the chat: they do not wait for the
    running turn, but for each other, so that a press sees the choice of the press before. /stop
    waits for nothing. A follow-up button ("n:…") is a question, and waits in the lane of the chat.
    """
    chat_id, message = chat_of(payload), message_in(payload)
    button = str(section(payload, "callback_query").get("data", "")).partition(":")[0]
    command = str(section(payload, "message").get("text", ""))[:64].partition(" ")[0].lower()
    command = command.partition("@")[0]
    if STOPPED in payload or command == STOP:
        return f"stop-{chat_id}"
    if button not in ("", FOLLOW_UP) or command in QUICK_COMMANDS:
        return f"aside-{chat_id}"
    topic = as_int(message.get("message_thread_id")) if message.get("is_topic_message") else 0
    return f"{chat_id}.{topic}" if topic else str(chat_id)


def message_in(payload: Payload) -> Payload:
    """Return the message of an update, or that above a pressed button; empty without one."""
    found = next((section(payload, kind) for kind in KINDS if kind in payload), {})
    return section(found, "message") if "data" in found else found


def section(payload: Payload, name: str) -> Payload:
    """Return an object inside another, empty if there is none."""
    found = payload.get(name)
    return found if isinstance(found, Mapping) else {}


def as_int(value: object) -> int:
    """Return a value if it is an integer of 64 bits, else 0."""
    return value if type(value) is int and abs(value) <= MAX_ID else 0


def is_same_turn(payloads: Sequence[Payload], later: Payload) -> bool:
    """Return whether an update belongs to the turn of these, which has sent nothing yet.

    It does if it edits one of their messages, or if their user writes more; in a group, where
    they may speak to others, only within a second.
    """
    if edited := section(later, "edited_message"):
        ids = {as_int(message_in(payload).get("message_id")) for payload in payloads}
        is_edit = as_int(edited.get("message_id")) in ids - {0}
        return is_edit and is_part_of_burst({"message": edited})
    if len(payloads) >= LARGEST_BURST or not all(map(is_part_of_burst, (payloads[0], later))):
        return False
    last, new = message_in(payloads[-1]), message_in(later)
    seconds = as_int(new.get("date")) - as_int(last.get("date"))
    is_same_user = all(last.get(name) == new.get(name) for name in ("from", "message_thread_id"))
    return is_same_user and (chat_of(later) > 0 or seconds <= GROUP_SECONDS)


def is_part_of_burst(payload: Payload) -> bool:
    """Return whether an update may be one of several: text, no command, or a part of an album."""
    message = section(payload, "message")
    text = str(message.get("text") or "")
    return bool(text and not text.startswith("/")) or "media_group_id" in message


def comes_in_parts(payload: Payload) -> bool:
    """Return whether more parts may be on their way: of an album, or of forwarded messages."""
    message = section(payload, "message")
    return "media_group_id" in message or is_forwarded(message)


def is_forwarded(message: Payload) -> bool:
    """Return whether a message was forwarded."""
    return any(name.startswith(FORWARD) and message[name] is not None for name in message)


def is_foreign(message: Payload) -> bool:
    """Return whether the words are not the sender's: it was forwarded, or made by a bot."""
    return is_forwarded(message) or any(message.get(name) is not None for name in BY_BOTS)


def merge(payloads: Sequence[Payload]) -> Payload:
    """Return one update with the text of all, cut at its limit, and the id of the first."""
    if len(payloads) == 1:
        return payloads[0]
    messages = dict[int, Payload]()
    for place, message in enumerate(map(message_in, payloads)):
        # An edit takes the place of the message that it edits.
        messages[as_int(message.get("message_id")) or -place] = message
    return {"update_id": payloads[0]["update_id"], "message": merge_messages([*messages.values()])}


def merge_messages(messages: Sequence[Payload]) -> dict[str, Any]:
    """Return the last of these messages with the text of all, and the first message replied to.

    Text of others becomes a quote if the user added words of their own.
    """
    if not all(map(is_foreign, messages)):
        messages = [_quoted(message) if is_foreign(message) else message for message in messages]
    text = "\n".join(filter(None, map(_words, messages)))[: size_limits.MESSAGE_CHARS]
    merged = dict(messages[-1]) | ({"text": text, "entities": []} if text else {})
    if len(files := [file for message in messages if (file := file_in(message))]) > 1:
        merged[ALBUM] = files
    replied = next((found for message in messages if (found := message.get("reply_to_message"))), 0)
    return merged | ({"reply_to_message": replied} if replied else {})


def file_in(message: Payload) -> Payload:
    """Return the picture, in its largest size, or the document of a message; empty without."""
    sizes = message.get("photo")
    largest = sizes[-1] if isinstance(sizes, list) and sizes else message.get("document")
    return largest if isinstance(largest, Mapping) else {}


def _words(message: Payload) -> str:
    return str(message.get("text") or message.get("caption") or "")[: size_limits.MESSAGE_CHARS]


def _quoted(message: Payload) -> Payload:
    """Return a message of others with its text as a quote."""
    plain = {
        name: value
        for name, value in message.items()
        if name not in UNQUOTED and not name.startswith(FORWARD)
    }
    return plain | {"text": "\n".join(f"> {line}" for line in _words(message).splitlines())}
