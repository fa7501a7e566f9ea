"""Decide which updates belong to one turn, and join them.

Here updates are raw JSON. Any field may be missing or malformed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent import size_limits
from bot.telegram_accounts import SHARED_ACCOUNTS
from db.models import UpdateRow
from db.repositories.inbox import Payload

MAX_JOINED_UPDATES: Final = 50
"""How many updates a turn may have. Without a limit, a flood would never be answered."""
GROUP_SECONDS: Final = 1
"""In a group, the next message of a user joins the turn only if it follows within this time."""
MAX_COMMAND_CHARS: Final = 64
"""Only so many characters of a message are read to find its command, because it may be long."""
MAX_ID: Final = 2**63 - 1
"""Ids are stored as 64 bits."""

INLINE: Final = "inline_query"
"""The kind of an update about a query, which a user types after the bot's name in any chat."""
STOPPED_DRAFT: Final = "stopped_message_generation"
"""The kind of an update about the Stop button under a draft. The library cannot parse it."""
ALBUM: Final = "album"
"""The field of a joined message that lists the files of all its messages."""
FORWARD: Final = "forward_"
"""The prefix of the fields that only a forwarded message has, such as `forward_origin`."""
BY_BOT: Final = ("via_bot", "sender_business_bot")
"""The fields that only a message by a bot has: sent inline, or for a business account."""
REMOVED_FROM_QUOTES: Final = (*BY_BOT, "caption", "caption_entities")
"""The fields that a message loses when its text becomes a quote."""
KINDS: Final = (
    "message",
    "edited_message",
    "callback_query",
    "message_reaction",
    STOPPED_DRAFT,
)
"""The kinds of updates that are stored. Each is the name of a field of the update."""
FOLLOW_UP: Final = "n"
"""The prefix of the data of a follow-up button, which asks a question."""
STOP: Final = "/stop"
STOP_LANE: Final = "stop-"
"""The beginning of the name of a lane for /stop and the Stop button."""
ASIDE_LANE: Final = "aside-"
"""The beginning of the name of a lane for presses and quick commands."""
QUICK_COMMANDS: Final = frozenset({"/new", "/start", "/help", "/settings"})
"""Commands that do not wait for the answer to an earlier question."""


def chat_of(payload: Payload) -> int:
    """Return the id of the chat of an update, or 0 if it has none."""
    chat = get_object(message_in(payload), "chat")
    return as_int(chat.get("id"))


def sender_of(payload: Payload) -> int | None:
    """Return the id of the user who sent an update, or None if a channel did."""
    # One field has the content of the update. Its name depends on the kind of the update.
    for name in payload:
        content = get_object(payload, name)
        # A reaction has "user" instead of "from".
        sender = get_object(content, "from") or get_object(content, "user")
        if sender:
            # `as_int` returns 0 if there is no id.
            return as_int(sender.get("id")) or None
    return None


def lane_of(payload: Payload) -> str:
    """Return the name of the lane of an update. A lane is a queue in which updates wait in order.

    Questions wait in the lane of their chat or topic. A press on a follow-up button is a question.
    Other presses and quick commands of a chat have a second lane. There they do not wait for the
    answer to a question, but for each other, so that a press sees the effect of the press before.
    /stop has a third lane.
    """
    chat_id = chat_of(payload)
    command = _command_of(payload)
    if STOPPED_DRAFT in payload or command == STOP:
        return f"{STOP_LANE}{chat_id}"
    if command in QUICK_COMMANDS or _is_quick_press(payload):
        return f"{ASIDE_LANE}{chat_id}"
    message = message_in(payload)
    topic = as_int(message.get("message_thread_id"))
    if topic and message.get("is_topic_message"):
        return f"{chat_id}.{topic}"
    return str(chat_id)


def _command_of(payload: Payload) -> str:
    """Return the first word of a message, without the name of a bot: "/stop" for "/Stop@bot"."""
    text = str(get_object(payload, "message").get("text", ""))
    first_word, _, _ = text[:MAX_COMMAND_CHARS].partition(" ")
    command, _, _ = first_word.partition("@")
    return command.lower()


def _is_quick_press(payload: Payload) -> bool:
    """Return whether an update is a press on a button that does not ask a question."""
    press = get_object(payload, "callback_query")
    if "data" not in press:
        return False
    button, _, _ = str(press["data"]).partition(":")
    return button != FOLLOW_UP


def is_quick(lane: str) -> bool:
    """Return whether the updates of a lane, such as presses, do not wait for answers."""
    return lane.startswith((STOP_LANE, ASIDE_LANE))


def payer_of(row: UpdateRow) -> int | None:
    """Return the id of the user on whose budget a question counts.

    If the user is not known, return the id of the chat. Return None for an update that asks no
    model.
    """
    if is_quick(row.lane or ""):
        return None
    if row.user_id is None or row.user_id in SHARED_ACCOUNTS:
        return row.chat_id
    return row.user_id


def message_in(payload: Payload) -> Payload:
    """Return the message of an update, or the one whose button was pressed, or {}."""
    for kind in KINDS:
        if kind not in payload:
            continue
        content = get_object(payload, kind)
        is_press = "data" in content
        if is_press:
            return get_object(content, "message")
        return content
    return {}


def get_object(payload: Payload, name: str) -> Payload:
    """Return the object in a field, or {} if the field is missing or is not an object."""
    value = payload.get(name)
    if isinstance(value, Mapping):
        return value
    return {}


def as_int(value: object) -> int:
    """Return the value if it is a 64-bit integer, or else 0."""
    # `isinstance` would accept True, which is an instance of int, too.
    if type(value) is int and abs(value) <= MAX_ID:
        return value
    return 0


def is_same_turn(payloads: Sequence[Payload], later: Payload) -> bool:
    """Return whether a later update belongs to the turn of `payloads`, which has no answer yet.

    The update does if it edits one of their messages, or if the same user writes one more message.
    In a group the update must follow within `GROUP_SECONDS`, because the user may also write to
    others there. A message that replies to another message joins only messages that reply to the
    same one.
    """
    edited = get_object(later, "edited_message")
    if edited:
        return _is_edit_of(payloads, edited)
    if len(payloads) >= MAX_JOINED_UPDATES:
        return False
    if not may_join(payloads[0]) or not may_join(later):
        return False
    last_message = message_in(payloads[-1])
    new_message = message_in(later)
    for name in ("from", "message_thread_id"):
        if last_message.get(name) != new_message.get(name):
            return False
    if _replied_id(last_message) != _replied_id(new_message):
        return False
    is_group = chat_of(later) <= 0  # Telegram gives groups negative ids
    if not is_group:
        return True
    last_date = as_int(last_message.get("date"))
    new_date = as_int(new_message.get("date"))
    return new_date - last_date <= GROUP_SECONDS


def _is_edit_of(payloads: Sequence[Payload], edited: Payload) -> bool:
    """Return whether an edited message may join the turn that has its first version."""
    edited_id = _id_of(edited)
    has_id = edited_id != 0
    ids = [_id_of(message_in(payload)) for payload in payloads]
    return has_id and edited_id in ids and may_join({"message": edited})


def _id_of(message: Payload) -> int:
    return as_int(message.get("message_id"))


def _replied_id(message: Payload) -> int:
    return _id_of(get_object(message, "reply_to_message"))


def may_join(payload: Payload) -> bool:
    """Return whether an update may be one of several in a turn: a text, or a part of an album."""
    message = get_object(payload, "message")
    if "media_group_id" in message:
        return True
    text = str(message.get("text") or "")
    return text != "" and not text.startswith("/")


def comes_in_parts(payload: Payload) -> bool:
    """Return whether further parts may follow an update: of an album, or forwarded messages."""
    message = get_object(payload, "message")
    return "media_group_id" in message or is_forwarded(message)


def is_forwarded(message: Payload) -> bool:
    """Return whether a message was forwarded."""
    for name, value in message.items():
        if name.startswith(FORWARD) and value is not None:
            return True
    return False


def is_foreign(message: Payload) -> bool:
    """Return whether the text is not the sender's own: it was forwarded, or made by a bot."""
    if is_forwarded(message):
        return True
    return any(message.get(name) is not None for name in BY_BOT)


def join(payloads: Sequence[Payload]) -> Payload:
    """Return one update with the id of the first one, and with the texts and files of all.

    A text over the limit is cut.
    """
    if len(payloads) == 1:
        return payloads[0]
    messages: dict[int, Payload] = {}
    for index, payload in enumerate(payloads):
        message = message_in(payload)
        # A message without an id gets a number that no message has.
        message_id = _id_of(message) or -index
        # An edit has the id of the message that it edits, and so replaces it.
        messages[message_id] = message
    joined = join_messages(list(messages.values()))
    return {"update_id": payloads[0]["update_id"], "message": joined}


def join_messages(messages: Sequence[Payload]) -> dict[str, Any]:
    """Return the last message, with the texts and files of all of them.

    The result has the `reply_to_message` of the first message that has one. If the user wrote
    some of the texts, those of others become quotes.
    """
    is_all_foreign = all(is_foreign(message) for message in messages)
    if not is_all_foreign:
        messages = [_as_own(message) for message in messages]
    joined = dict(messages[-1])
    texts = [_text_of(message) for message in messages]
    text = "\n".join(filter(None, texts))
    if text:
        joined["text"] = text[: size_limits.MESSAGE_CHARS]
        # The entities of one message have other positions in the joined text.
        joined["entities"] = []
    files = []
    for message in messages:
        file = file_in(message)
        if file:
            files.append(file)
    if len(files) > 1:
        joined[ALBUM] = files
    for message in messages:
        replied = message.get("reply_to_message")
        if replied:
            joined["reply_to_message"] = replied
            break
    return joined


def file_in(message: Payload) -> Payload:
    """Return the picture of a message in its largest size, or its document, or {}."""
    sizes = message.get("photo")
    if not isinstance(sizes, list) or not sizes:
        return get_object(message, "document")
    largest = sizes[-1]
    if isinstance(largest, Mapping):
        return largest
    return {}


def _text_of(message: Payload) -> str:
    """Return the text of a message, or the caption of its file."""
    text = message.get("text") or message.get("caption") or ""
    return str(text)[: size_limits.MESSAGE_CHARS]


def _as_own(message: Payload) -> Payload:
    """Return a message by others as a message of the sender that quotes its text."""
    if not is_foreign(message):
        return message
    own: dict[str, Any] = {}
    for name, value in message.items():
        if name not in REMOVED_FROM_QUOTES and not name.startswith(FORWARD):
            own[name] = value
    lines = [f"> {line}" for line in _text_of(message).splitlines()]
    own["text"] = "\n".join(lines)
    return own
