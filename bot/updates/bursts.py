"""What several updates make one turn; told from raw JSON, in which anything may stand anywhere."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from agent import lengths
from agent.repositories import Payload
from bot.telegram.render import utf16_units
from db.models import UpdateRow

LARGEST_BURST: Final = 50
GROUP_SECONDS: Final = 1
"""How much later somebody in a group still speaks to the bot."""
LARGEST_ID: Final = 2**63 - 1
"""Ids are stored as 64 bits."""

FORWARD: Final = "forward_"
"""What the fields begin with that a forwarded message has, in the Bot API before 7 others."""
INLINE: Final = "inline_query"
"""What somebody types in any chat behind the name of the bot: nobody waits for it for long."""
STOPPED: Final = "stopped_message_generation"
"""What Telegram sends when the button under a draft is pressed; the library does not know it."""
ALBUM: Final = "album"
"""What a message has that was made of several: the file of each, in their order."""
BY_BOTS: Final = ("via_bot", "sender_business_bot")
"""What a message has that a bot made: one that was typed to, or one that writes in an account."""
FENCED: Final = (*BY_BOTS, "entities", "caption", "caption_entities")
KINDS: Final = (
    *("message", "edited_message", "callback_query", "message_reaction", "my_chat_member"),
    STOPPED,
)
FOLLOW_UP: Final = "n"
"""What the data of a button begins with by which somebody goes on."""
STOP: Final = "/stop"
PASSING: Final = frozenset({"/new", "/start", "/help", "/settings", "/language"})
"""Commands that do not wait for the answer to what was asked before."""


def chat_of(payload: Payload) -> int:
    """The id of the chat an update is from, 0 for one without."""
    return number(part(message_in(payload), "chat").get("id"))


def lane_of(payload: Payload) -> str:
    """Whom an update waits for: the others of its topic, or those of its chat that go aside.

    A button ("v:…"), and a command that is no question, does not wait for the turn that runs:
    whoever presses it is to see at once that it was heard, and what they chose before holds by
    then. /stop waits for nothing. A follow-up ("n:…") is a question.
    """
    chat_id, message = chat_of(payload), message_in(payload)
    kind = str(part(payload, "callback_query").get("data", "")).partition(":")[0]
    command = str(part(payload, "message").get("text", ""))[:64].partition(" ")[0].lower()
    command = command.partition("@")[0]
    if STOPPED in payload or command == STOP:
        return f"stop-{chat_id}"
    if (kind and not is_follow_up(payload)) or command in PASSING:
        return f"aside-{chat_id}"
    topic = number(message.get("message_thread_id")) if message.get("is_topic_message") else 0
    return f"{chat_id}.{topic}" if topic else str(chat_id)


def is_follow_up(payload: Payload) -> bool:
    """Whether somebody pressed a button by which they go on."""
    pressed = str(part(payload, "callback_query").get("data", ""))
    return pressed.startswith(f"{FOLLOW_UP}:")


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
    updates: Sequence[UpdateRow], burst: timedelta, readable: Callable[[Payload], bool]
) -> list[UpdateRow]:
    """The updates from the first on that make one turn with it; what cannot be read stays alone."""
    group = [updates[0]]
    for update in updates[1:LARGEST_BURST]:
        if not belongs(group[-1], update, burst) or not readable(update.payload):
            break
        group.append(update)
    return group if len(group) == 1 or readable(updates[0].payload) else group[:1]


def belongs(earlier: UpdateRow, later: UpdateRow, burst: timedelta) -> bool:
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


def joins(payloads: Sequence[Payload], later: Payload) -> bool:
    """Whether what comes while a turn of these runs is meant for it.

    That is what the same person writes then, in a group only at once, and the edit of a message.
    """
    if edited := part(later, "edited_message"):
        ids = {number(message_in(each).get("message_id")) for each in payloads}
        is_ours = number(edited.get("message_id")) in ids - {0}
        return is_ours and is_part_of_burst({"message": edited})
    if len(payloads) >= LARGEST_BURST or not is_part_of_burst(later):
        return False
    one, other = message_in(payloads[-1]), message_in(later)
    same = all(one.get(name) == other.get(name) for name in ("from", "message_thread_id"))
    apart = number(other.get("date")) - number(one.get("date"))
    return same and is_part_of_burst(payloads[0]) and (chat_of(later) > 0 or apart <= GROUP_SECONDS)


def is_part_of_burst(payload: Payload) -> bool:
    """Whether more may belong to this update: a message with words or of an album, no command."""
    message = part(payload, "message")
    words, _ = words_of(message)
    if not _is_wellformed(message):
        return False
    is_text = "text" in message and not words.startswith("/")
    return bool(words and is_text) or "media_group_id" in message


def comes_in_parts(payload: Payload) -> bool:
    """Whether more of the same is on its way: of an album, or of what was forwarded in one go."""
    message = part(payload, "message")
    return "media_group_id" in message or is_forwarded(message)


def is_forwarded(message: Payload) -> bool:
    """Whether somebody wrote a message elsewhere, and it was sent on."""
    return any(name.startswith(FORWARD) and message[name] is not None for name in message)


def is_foreign(message: Payload) -> bool:
    """Whether its words are not those of who sent it: it was forwarded, or a bot made it."""
    by_bot = any(message.get(name) is not None for name in BY_BOTS)
    return is_forwarded(message) or by_bot


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
    messages = list[Payload]()
    for each in map(message_in, payloads):
        # The edited form stands in the place of the message.
        at = next((at for at, known in enumerate(messages) if _is_edit(known, each)), None)
        if at is None:
            messages.append(each)
        else:
            messages[at] = each
    message = one_message(messages)
    return {"update_id": first["update_id"], "message": message}


def _is_edit(message: Payload, later: Payload) -> bool:
    of = number(message.get("message_id"))
    return bool(of) and of == number(later.get("message_id"))


def _is_too_long(message: Payload) -> bool:
    words, marks = words_of(message)
    return _is_wellformed(message) and (
        len(words) > lengths.MESSAGE or len(marks) > lengths.ENTITIES
    )


def one_message(messages: Sequence[Payload]) -> dict[str, Any]:
    """The last of these messages, with the words of all.

    Whom they address is kept: who is mentioned, and the message that the first reply was to. Words
    of others among their own are fenced.
    """
    if not all(map(is_foreign, messages)):
        messages = [_fenced(each) if is_foreign(each) else each for each in messages]
    words, entities = _words(messages)
    message = dict(messages[-1]) | {"text": words, "entities": entities}
    if not words:
        del message["text"], message["entities"]
    if len(files := [file for each in messages if (file := file_in(each))]) > 1:
        message[ALBUM] = files
    replied = [each["reply_to_message"] for each in messages if "reply_to_message" in each]
    return message | ({"reply_to_message": replied[0]} if replied else {})


def file_in(message: Payload) -> Payload:
    """The picture, in its largest size, or the document that a message brings; empty without."""
    sizes = message.get("photo")
    largest = sizes[-1] if isinstance(sizes, list) and sizes else message.get("document")
    return largest if isinstance(largest, Mapping) else {}


def _fenced(message: Payload) -> Payload:
    """What others wrote as a quote in one's own words."""
    said = words_of(message)[0][: lengths.MESSAGE]
    plain = {
        name: each
        for name, each in message.items()
        if name not in FENCED and not name.startswith(FORWARD)
    }
    return plain | {"text": "\n".join(f"> {line}" for line in said.splitlines())}


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
