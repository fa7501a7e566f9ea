"""What an update says: whether the bot is meant, its words, who asks, where an answer goes."""

import unicodedata
from collections.abc import Mapping
from typing import Final

from telegram import Bot, CallbackQuery, Message, MessageEntity, Update
from telegram.constants import ChatType

from agent import lengths
from agent.markdown import live
from agent.text import pattern
from agent.tracing.recorder import trace_id_of
from bot.telegram.sender import Destination
from bot.turn import Course, Kind, Question
from bot.updates.journal import running_turn

FORWARDED: Final = "[forwarded, written by somebody else]"

COMMAND: Final = pattern(r"\s*/\S+\s*")

SENT: Final[Mapping[str, str]] = {
    "sticker": "sent_emoji",
    "animation": "sent_emoji",
    "contact": "sent_contact",
    "poll": "sent_poll",
    "checklist": "sent_poll",
    "dice": "sent_dice",
    "game": "sent_dice",
}
"""The sentence for what is sent instead of words, by the field of a message that holds it."""


def question_of(
    update: Update, bot: Bot, text: str, *, kind: Kind = "chat", remembered: bool = True
) -> Question:
    """What an update asks, and where the answer goes; run again, it is the same trace."""
    chat_id, user_id = people_of(update)
    turn, typed = running_turn(), (update.message and update.message.text) or ""
    return Question(
        id=update.update_id,
        text=text,
        kind=kind,
        typed=typed if typed.startswith("/") else text,
        accepted_at=turn.accepted_at if turn else None,
        interruptions=turn.interruptions if turn else 0,
        course=turn.course if turn else Course(),
        chat_id=chat_id,
        user_id=user_id,
        names=names_of(update),
        trace_id=trace_id_of(bot.id, chat_id, update.update_id),
        to=destination(update) if update.effective_message else None,
        remembered=remembered,
    )


def is_addressed(message: Message, bot: Bot) -> bool:
    """Whether a message is meant for the bot.

    In a private chat each is; in a group those that mention it, reply to it or command it by name.
    """
    if message.chat.type == ChatType.PRIVATE:
        return True
    return replied_to_bot(message, bot) or any(
        _names(entity, text, bot) for entity, text in _entities(message).items()
    )


def wording(message: Message, bot: Bot) -> str:
    """What a message says, without the mentions that only address the bot."""
    text = message.text or message.caption or ""
    for entity, words in _entities(message).items():
        if entity.type == MessageEntity.MENTION and _names(entity, words, bot):
            text = text.replace(words, " ", 1)
    return text.strip()


def behind_command(text: str) -> str:
    """What a message says behind its command."""
    command = COMMAND.match(text)
    return text[command.end() if command else 0 :].strip()


def without_words(text: str) -> str:
    """Name the sentence for a message that has no words of its own; empty for one that has."""
    links = [each for each in live(text) if each.kind == "address"]
    own = "".join(
        text[before.end if before else 0 : after.start if after else len(text)]
        for before, after in zip([None, *links], [*links, None], strict=True)
    )
    if any(map(str.isalnum, own)):
        return ""
    if links:
        return "sent_link"
    return "sent_emoji" if any(unicodedata.category(each) == "So" for each in own) else "empty"


def with_context(words: str, message: Message, bot: Bot) -> str:
    """What a message asks, with the words that it points at fenced below: somebody else's.

    That is what is quoted, or what a person wrote whom it replies to. Forwarded words are no wish
    of who sends them. A reply to an answer of the bot is known from the conversation.
    """
    if message.forward_origin is not None:
        return f"{FORWARDED}\n{_fenced(words)}"
    replied = message.reply_to_message
    if message.quote is not None:
        return f"{words}\n\n{_fenced(message.quote.text)}".strip()
    if replied is None or replied_to_bot(message, bot):
        return words
    said = _fenced(replied.text or replied.caption or "")
    return f"{words}\n\n{said}".strip() if said else words


def replied_to_bot(message: Message, bot: Bot) -> bool:
    """Whether a message is a reply to one of the bot's."""
    replied = message.reply_to_message
    return bool(replied and replied.from_user and replied.from_user.id == bot.id)


def _fenced(said: str) -> str:
    lines = said[: lengths.MESSAGE // 2].strip().splitlines()
    return "\n".join(f"> {line}" for line in lines)


def _entities(message: Message) -> dict[MessageEntity, str]:
    if message.text:
        return message.parse_entities()
    return message.parse_caption_entities()


def _names(entity: MessageEntity, text: str, bot: Bot) -> bool:
    """Whether a mention or a command is of this bot."""
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == bot.id
    if entity.type in (MessageEntity.MENTION, MessageEntity.BOT_COMMAND):
        return text.lower().endswith(f"@{bot.username}".lower())
    return False


def message_of(update: Update) -> Message:
    """The message that an update is, or whose button was pressed."""
    assert update.effective_message is not None  # noqa: S101 - the filters let nothing else through
    return update.effective_message


def press_of(update: Update) -> CallbackQuery:
    """The press on a button that an update is."""
    assert update.callback_query is not None  # noqa: S101 - the handlers let nothing else through
    return update.callback_query


def is_private(update: Update) -> bool:
    """Whether nobody else is in the chat."""
    return message_of(update).chat.type == ChatType.PRIVATE


def people_of(update: Update) -> tuple[int, int]:
    """The ids of the chat and of the person an update is from; of the chat if nobody says."""
    chat, user = update.effective_chat, update.effective_user
    chat_id = chat.id if chat else 0
    return chat_id, user.id if user else chat_id


def names_of(update: Update) -> tuple[str, ...]:
    """What the people of a conversation are called: names that a trace must not show."""
    message = update.effective_message
    replied = message.reply_to_message.from_user if message and message.reply_to_message else None
    people = [update.effective_user, replied, update.effective_chat]
    names = [
        getattr(each, part)
        for each in people
        if each is not None and not getattr(each, "is_bot", False)
        for part in ("first_name", "last_name", "username")
    ]
    return tuple(dict.fromkeys(name[: lengths.NAME] for name in names if name))


def destination(update: Update) -> Destination:
    """Where an answer goes: the same topic, as a reply unless there are only two in the chat."""
    message = message_of(update)
    thread = message.message_thread_id if message.is_topic_message else None
    reply_to = None if message.chat.type == ChatType.PRIVATE else message.message_id
    return Destination(message.chat.id, thread, reply_to)
