"""Read Telegram's messages: their user, their destination and their words."""

from typing import Final

from telegram import CallbackQuery, Message, Update
from telegram.constants import ChatType
from telegram.ext import filters

from agent import size_limits
from agent.care import FORWARDED_HEADER
from agent.language import detect_language
from agent.text import Pattern, pattern
from bot.question import Destination
from bot.updates.bursts import is_foreign

COMMAND: Final = pattern(r"\s*/\S+\s*")
MAX_READ_CHARS: Final = 1_000
"""Characters of a message in which its language is looked for."""


def message_of(update: Update) -> Message:
    """Return the message of an update, or the one whose button was pressed."""
    assert update.effective_message is not None  # noqa: S101 - the filters let nothing else through
    return update.effective_message


def press_of(update: Update) -> CallbackQuery:
    """Return the press on a button of an update."""
    assert update.callback_query is not None  # noqa: S101 - the handlers let nothing else through
    return update.callback_query


def is_private(update: Update) -> bool:
    """Return whether nobody else is in the chat."""
    return message_of(update).chat.type == ChatType.PRIVATE


def chat_and_user_ids(update: Update) -> tuple[int, int]:
    """Return the ids of the chat and of the user; of the chat twice if no user is named."""
    chat, user = update.effective_chat, update.effective_user
    chat_id = chat.id if chat else 0
    return chat_id, user.id if user else chat_id


def names_of(update: Update) -> tuple[str, ...]:
    """Return the names of the people of a conversation, which a trace must not show."""
    message = update.effective_message
    replied = message.reply_to_message.from_user if message and message.reply_to_message else None
    people = [update.effective_user, replied, update.effective_chat]
    names = [
        getattr(person, field)
        for person in people
        if person is not None and not getattr(person, "is_bot", False)
        for field in ("first_name", "last_name", "username")
    ]
    return tuple(dict.fromkeys(name[: size_limits.NAME_CHARS] for name in names if name))


def destination(update: Update) -> Destination:
    """Return the destination of an answer: in its topic, in a group as a reply."""
    message = message_of(update)
    thread = message.message_thread_id if message.is_topic_message else None
    reply_to = None if message.chat.type == ChatType.PRIVATE else message.message_id
    return Destination(message.chat.id, thread, reply_to)


def is_addressed(message: Message) -> bool:
    """Return whether a message is meant for the bot.

    In a group those are that mention it, reply to it or command it by name.
    """
    if message.chat.type == ChatType.PRIVATE:
        return True
    if id_of_replied_answer(message) is not None:
        return True
    return bool(_mention(message).search(message.text or message.caption or ""))


def written_in(update: Update) -> Message | None:
    """Return the message that a user has written or edited; None for a press."""
    return update.message or update.edited_message


def is_overheard(update: Update) -> bool:
    """Return whether an update is a message to others."""
    message = written_in(update)
    is_command = message is not None and (message.text or "").startswith("/")
    return message is not None and not is_command and not is_addressed(message)


def is_own(message: Message) -> bool:
    """Return whether the words of a message are those of its sender."""
    return not is_foreign(message.to_dict(recursive=False))


def language_written(update: Update) -> str | None:
    """Return the language of a user's own message; None if that is not clear."""
    message = written_in(update)
    if message is None or not is_own(message):
        return None
    return detect_language(behind_command(message)[:MAX_READ_CHARS])


def without_mentions(message: Message) -> str:
    """Return the words of a message without the mentions that only address the bot."""
    return _mention(message).sub(" ", message.text or message.caption or "").strip()


def behind_command(message: Message) -> str:
    """Return the words of a message without the command that they begin with."""
    text = message.text or message.caption or ""
    command = COMMAND.match(text)
    return text[command.end() if command else 0 :].strip()


def with_quotations(words: str, message: Message) -> str:
    """Return the words of a message, with the words of others that it points at quoted below.

    Those are a quotation, or the message of a person that it replies to. Forwarded words, and those
    of another bot, are quoted too. A reply to an answer of the bot is known from the conversation.
    """
    if not is_own(message):
        return f"{FORWARDED_HEADER}\n{_quoted(words)}"
    replied = message.reply_to_message
    if message.quote is not None:
        return f"{words}\n\n{_quoted(message.quote.text)}".strip()
    if replied is None or id_of_replied_answer(message) is not None:
        return words
    return f"{words}\n\n{_quoted(replied.text or replied.caption or '')}".strip()


def id_of_replied_answer(message: Message) -> int | None:
    """Return the id of the bot's message that a message replies to, or None."""
    replied = message.reply_to_message
    if replied is None or replied.from_user is None:
        return None
    return replied.message_id if replied.from_user.id == message.get_bot().id else None


def _quoted(text: str) -> str:
    lines = text[: size_limits.MESSAGE_CHARS // 2].strip().splitlines()
    return "\n".join(f"> {line}" for line in lines)


def _mention(message: Message) -> Pattern:
    """Return the pattern of the bot's name, as people mention it."""
    return pattern(rf"(?i)@{message.get_bot().username}\b")


class _Own(filters.MessageFilter):
    def filter(self, message: Message) -> bool:
        return is_own(message)


TYPED_BY_USER: Final = filters.UpdateType.MESSAGE & _Own()
"""Messages that users wrote themselves: only those are commands. Users who forward words, or send
those of another bot, may not know the effect here."""
