"""Read Telegram's messages: their user, their destination and their text."""

from typing import Final

from telegram import CallbackQuery, Chat, Message, Update, User
from telegram.constants import ChatType
from telegram.ext import filters

from agent import size_limits
from agent.query_reading.turn_language import FORWARDED_HEADER
from agent.text import Pattern, pattern
from bot.telegram_accounts import SHARED_ACCOUNTS
from bot.turn import Destination
from bot.updates.joining import is_foreign

COMMAND: Final = pattern(r"\s*/\S+\s*")
QUERY_COMMAND: Final = pattern(r"\s*/(find|quotes|cellar)\b")
"""A command followed by words to look for, which may be in another language than the user's."""
MAX_QUOTE_CHARS: Final = size_limits.MESSAGE_CHARS // 2
"""A quote may take up half of a message, so that the user's own words have room, too."""


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

    An anonymous admin writes as the chat itself. Then the chat's id stands for the user, too.
    """
    chat_id = 0
    if update.effective_chat is not None:
        chat_id = update.effective_chat.id
    user = update.effective_user
    if user is None or user.id in SHARED_ACCOUNTS:
        return chat_id, chat_id
    return chat_id, user.id


def names_of(update: Update) -> tuple[str, ...]:
    """Return the names that traces must not contain.

    These are the names of the sender, of the chat, and of the user to whose message the sender
    replies.
    """
    named: list[User | Chat | None] = [update.effective_user]
    message = update.effective_message
    if message is not None and message.reply_to_message is not None:
        named.append(message.reply_to_message.from_user)
    named.append(update.effective_chat)
    names = []
    for user_or_chat in named:
        # The name of a bot is not a secret.
        is_bot = isinstance(user_or_chat, User) and user_or_chat.is_bot
        if user_or_chat is None or is_bot:
            continue
        for name in (
            user_or_chat.first_name,
            user_or_chat.last_name,
            user_or_chat.username,
        ):
            if name:
                names.append(name[: size_limits.NAME_CHARS])
    # This removes repeated names, and keeps the order.
    return tuple(dict.fromkeys(names))


def destination(update: Update) -> Destination:
    """Return where the answer goes: to the topic of the message, in a group as a reply to it."""
    message = message_of(update)
    thread_id: int | None = None
    if message.is_topic_message:
        thread_id = message.message_thread_id
    reply_to: int | None = None
    if not is_private(update):
        reply_to = message.message_id
    return Destination(message.chat.id, thread_id, reply_to)


def is_addressed(message: Message) -> bool:
    """Return whether a message is meant for the bot, as all messages in a private chat are.

    In a group it must mention the bot, reply to the bot, or be a command with the bot's name.
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
    """Return the message that a user has written or edited, or None for the press of a button."""
    return update.message or update.edited_message


def is_overheard(update: Update) -> bool:
    """Return whether an update is a message in a group that is not meant for the bot."""
    message = written_message(update)
    if message is None:
        return False
    is_command = (message.text or "").startswith("/")
    return not is_command and not is_addressed(message)


def is_own(message: Message) -> bool:
    """Return whether the sender wrote the message, and did not forward it or take it from a bot."""
    return not is_foreign(message.to_dict(recursive=False))


def text_to_detect(update: Update) -> str:
    """Return the words of the user by which the language of a turn is decided, or "".

    The words that a user looks for are none: an Italian may look for a "wine bar in London".
    """
    message = written_message(update)
    if message is None or not is_own(message):
        return ""
    if QUERY_COMMAND.match(message.text or ""):
        return ""
    return text_after_command(message)


def text_without_mentions(message: Message) -> str:
    """Return the text of a message without mentions of the bot."""
    text = _mention(message).sub(" ", text_of(message))
    return text.strip()


def text_after_command(message: Message) -> str:
    """Return the text of a message without a command at its beginning."""
    text = text_of(message)
    command = COMMAND.match(text)
    if command is not None:
        text = text[command.end() :]
    return text.strip()


def with_quotations(text: str, message: Message) -> str:
    """Return the text of a message, with what others wrote as a Markdown quote.

    A forwarded text is quoted as a whole. If the user replies to a message, the part of it that the
    user has selected, or all of it, is quoted below the text. An answer of the bot is not quoted:
    the stored conversation contains it.
    """
    if not is_own(message):
        return f"{FORWARDED_HEADER}\n{_as_quote(text)}"
    if message.quote is not None:
        return f"{text}\n\n{_as_quote(message.quote.text)}".strip()
    replied = message.reply_to_message
    if replied is None or id_of_replied_answer(message) is not None:
        return text
    return f"{text}\n\n{_as_quote(text_of(replied))}".strip()


def id_of_replied_answer(message: Message) -> int | None:
    """Return the id of the bot's message to which a message replies, or None."""
    replied = message.reply_to_message
    if replied is None or replied.from_user is None:
        return None
    if replied.from_user.id != message.get_bot().id:
        return None
    return replied.message_id


def _as_quote(text: str) -> str:
    """Return the first part of a text as a Markdown quote."""
    quoted = text[:MAX_QUOTE_CHARS].strip()
    return "\n".join(f"> {line}" for line in quoted.splitlines())


def _mention(message: Message) -> Pattern:
    """Return a pattern that matches mentions of the bot."""
    return pattern(rf"(?i)@{message.get_bot().username}\b")


class _OwnText(filters.MessageFilter):
    def filter(self, message: Message) -> bool:
        return is_own(message)


TYPED_BY_USER: Final = filters.UpdateType.MESSAGE & _OwnText()
"""Messages that users wrote themselves.

Only these may be commands. Users who forward a command, or send the text of another bot, may not
know what it does here.
"""
