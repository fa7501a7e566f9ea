"""Read Telegram's messages: their user, their destination and their text."""

from typing import Final

from telegram import CallbackQuery, Chat, Message, Update, User
from telegram.constants import ChatType
from telegram.ext import filters

from agent import size_limits
from agent.query_reading.phrases import detect_language
from agent.safety.concerns import FORWARDED_HEADER
from agent.text import Pattern, pattern
from bot.turn import Destination
from bot.updates.joining import SHARED_ACCOUNTS, is_foreign

COMMAND: Final = pattern(r"\s*/\S+\s*")
QUERY_COMMAND: Final = pattern(r"\s*/(find|quotes|cellar)\b")
"""A command with words to look for: they are no sentence, and say nothing of a user's language."""
MAX_DETECTION_CHARS: Final = 1_000
"""Maximum characters from which the language of a message is detected."""


def message_of(update: Update) -> Message:
    """Return the message of an update, or the message whose button was pressed."""
    assert update.effective_message is not None  # noqa: S101 - the filters let nothing else through
    return update.effective_message


def press_of(update: Update) -> CallbackQuery:
    """Return the button press of an update."""
    assert update.callback_query is not None  # noqa: S101 - the handlers let nothing else through
    return update.callback_query


def is_private(update: Update) -> bool:
    """Return whether the chat is private."""
    return message_of(update).chat.type == ChatType.PRIVATE


def chat_and_user_ids(update: Update) -> tuple[int, int]:
    """Return the ids of the chat and of the user.

    Without a user of its own, as for an anonymous admin, the chat's id stands for both.
    """
    chat_id = 0
    if update.effective_chat is not None:
        chat_id = update.effective_chat.id
    user = update.effective_user
    if user is None or user.id in SHARED_ACCOUNTS:
        return chat_id, chat_id
    return chat_id, user.id


def names_of(update: Update) -> tuple[str, ...]:
    """Return the names of the sender, the user replied to and the chat, to mask them in traces."""
    people: list[User | Chat | None] = [update.effective_user]
    message = update.effective_message
    if message is not None and message.reply_to_message is not None:
        people.append(message.reply_to_message.from_user)
    people.append(update.effective_chat)
    names = []
    for person in people:
        if person is None or getattr(person, "is_bot", False):
            continue
        for name in (person.first_name, person.last_name, person.username):
            if name:
                names.append(name[: size_limits.NAME_CHARS])
    return tuple(dict.fromkeys(names))


def destination(update: Update) -> Destination:
    """Return the destination of the answer: the topic of the message; in groups as a reply."""
    message = message_of(update)
    thread: int | None = None
    if message.is_topic_message:
        thread = message.message_thread_id
    reply_to: int | None = None
    if not is_private(update):
        reply_to = message.message_id
    return Destination(message.chat.id, thread, reply_to)


def is_addressed(message: Message) -> bool:
    """Return whether a message is meant for the bot.

    In a group, these mention the bot, reply to it, or add its name to a command.
    """
    if message.chat.type == ChatType.PRIVATE:
        return True
    if id_of_replied_answer(message) is not None:
        return True
    return _mention(message).search(text_of(message)) is not None


def text_of(message: Message) -> str:
    """Return the text of a message, or the caption of its picture or file."""
    return message.text or message.caption or ""


def written_message(update: Update) -> Message | None:
    """Return the message that a user has written or edited; None for a button press."""
    return update.message or update.edited_message


def is_overheard(update: Update) -> bool:
    """Return whether an update is a message between others in a group."""
    message = written_message(update)
    if message is None or (message.text or "").startswith("/"):
        return False
    return not is_addressed(message)


def is_own(message: Message) -> bool:
    """Return whether the sender wrote the message: no forwarded text, and no text of a bot."""
    return not is_foreign(message.to_dict(recursive=False))


def language_written(update: Update) -> str:
    """Return the language of a message that the user wrote; "" if it is not clear.

    The words of a query are none: an Italian may look for a "wine bar in London".
    """
    message = written_message(update)
    if message is None or not is_own(message):
        return ""
    if QUERY_COMMAND.match(message.text or ""):
        return ""
    return detect_language(text_after_command(message)[:MAX_DETECTION_CHARS])


def text_without_mentions(message: Message) -> str:
    """Return the text of a message without mentions of the bot."""
    return _mention(message).sub(" ", text_of(message)).strip()


def text_after_command(message: Message) -> str:
    """Return the text of a message without a command at its beginning."""
    text = text_of(message)
    command = COMMAND.match(text)
    if command is not None:
        text = text[command.end() :]
    return text.strip()


def with_quotations(text: str, message: Message) -> str:
    """Return the text of a message with the text of others as a Markdown quote.

    A forwarded text is itself quoted. Otherwise the selected quotation, or the message replied to,
    is quoted below; an answer of the bot is not, because the conversation contains it.
    """
    if not is_own(message):
        return f"{FORWARDED_HEADER}\n{_as_quote(text)}"
    replied = message.reply_to_message
    if message.quote is not None:
        return f"{text}\n\n{_as_quote(message.quote.text)}".strip()
    if replied is None or id_of_replied_answer(message) is not None:
        return text
    return f"{text}\n\n{_as_quote(text_of(replied))}".strip()


def id_of_replied_answer(message: Message) -> int | None:
    """Return the id of the bot's message that a message replies to; None if there is none."""
    replied = message.reply_to_message
    if replied is None or replied.from_user is None:
        return None
    if replied.from_user.id != message.get_bot().id:
        return None
    return replied.message_id


def _as_quote(text: str) -> str:
    lines = text[: size_limits.MESSAGE_CHARS // 2].strip().splitlines()
    return "\n".join(f"> {line}" for line in lines)


def _mention(message: Message) -> Pattern:
    """Return a pattern that matches mentions of the bot."""
    return pattern(rf"(?i)@{message.get_bot().username}\b")


class _OwnText(filters.MessageFilter):
    def filter(self, message: Message) -> bool:
        return is_own(message)


TYPED_BY_USER: Final = filters.UpdateType.MESSAGE & _OwnText()
"""Messages that users wrote themselves. Only these may be commands: users who forward a command, or
send the text of another bot, may not know its effect here."""
