"""Answer messages in the context of their conversation, and in the language of their user."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError
from telegram import Update
from telegram.ext import BaseHandler, CallbackQueryHandler, CommandHandler, MessageHandler, filters
from telegram.ext.filters import BaseFilter

from agent.engine.run import Run
from agent.i18n import current_language, set_app_language, set_language, translate
from agent.languages import ENGLISH
from agent.sommelier.attachment import Attachment
from agent.turn import Fact, Reply, StoredMessage, get_chosen_settings
from bot.telegram.chat import ChatTurn
from bot.telegram.messages import (
    TYPED_BY_USER,
    id_of_replied_answer,
    is_addressed,
    is_overheard,
    language_written,
    message_of,
    text_without_mentions,
    with_quotations,
)
from bot.turn import Question
from db.repositories.people import MemoryRepository

AnyHandler = BaseHandler[Any, Any, Any]
Handle = Callable[..., Coroutine[Any, Any, None]]
"""A handler function; its arguments are an update and its `ChatTurn`."""

MAX_HISTORY_MESSAGES: Final = 20
"""Maximum earlier messages that the model sees."""
HIDDEN_MESSAGE: Final = "…"
"""Shown to the model instead of a message of another person in a group."""
CHOSEN_LANGUAGE_KEY: Final = "language"
"""The setting with the language that a user chose, or `AS_WRITTEN`."""
WRITTEN_LANGUAGE_KEY: Final = "written"
"""The setting with the language a user wrote last; at first, the language of their Telegram app."""
AS_WRITTEN: Final = "auto"
"""The choice to be answered in the language of the last message."""


async def answer_question(
    turn: ChatTurn, question: Question, replied_answer_id: int | None = None
) -> None:
    """Answer a question; `replied_answer_id` is the bot message that the user replied to."""
    history = await load_history(turn, replied_answer_id)

    async def make_reply(run: Run) -> Reply:
        return await ask_agent(turn, question.text, run, history)

    await turn.services.runner.run(turn, question, make_reply)


async def ask_agent(
    turn: ChatTurn,
    text: str,
    run: Run,
    history: Sequence[StoredMessage],
    new_attachment: Attachment | None = None,
) -> Reply:
    """Return the answer to a text; it may refer to new pictures or the latest earlier ones."""
    attachment = new_attachment or attachment_in(history)
    return await turn.services.answerer.answer(text, run, attachment, history=history)


async def load_history(
    turn: ChatTurn, replied_answer_id: int | None = None
) -> Sequence[StoredMessage]:
    """Return the messages before a question, at most `MAX_HISTORY_MESSAGES`.

    If it replies to an answer of the bot, return the messages up to that answer. The turn that this
    one takes back, because its message was edited, is left out.
    """
    chat_id, repositories = turn.chat_id, turn.repositories
    replied_turn_id: int | None = None
    if replied_answer_id:
        replied = await repositories.turns.find_by_message(chat_id, replied_answer_id)
        replied_turn_id = replied.turn_id if replied else None
    messages = await repositories.messages.list_recent(
        chat_id,
        MAX_HISTORY_MESSAGES,
        thread_id=turn.thread_id,
        last_turn_id=replied_turn_id,
    )
    # An interrupted try of this turn may have stored its messages.
    hidden_turns = {turn.id, turn.taken_back_id}
    history = [message for message in messages if message.turn_id not in hidden_turns]
    if turn.is_group:
        history = [as_visible_to(turn.user_id, message, replied_turn_id) for message in history]
    return history


async def answer_text(update: Update, turn: ChatTurn) -> None:
    """Answer a text message."""
    message = message_of(update)
    if not is_addressed(message):
        return
    text = with_quotations(text_without_mentions(message), message)
    if not text:
        turn.reply(translate("text_only"))
        return
    await answer_question(turn, turn.ask(text), id_of_replied_answer(message))


def on_command(
    names: str | Sequence[str], handle: Handle, only: BaseFilter = filters.ALL
) -> AnyHandler:
    """Return a handler of commands with these names, if users typed them themselves."""
    return CommandHandler(names, handle, filters=TYPED_BY_USER & only)


def on_press(prefix: str, handle: Handle) -> AnyHandler:
    """Return a handler of presses on buttons whose data begins with `prefix`."""
    return CallbackQueryHandler(handle, pattern=f"^{prefix}")


def on_message(only: BaseFilter, handle: Handle) -> AnyHandler:
    """Return a handler of the messages that the filter `only` accepts."""
    return MessageHandler(only, handle)


def attachment_in(history: Sequence[StoredMessage]) -> Attachment | None:
    """Return the contents of the last pictures of a conversation; None if there were none."""
    stored = next((message.attachment for message in reversed(history) if message.attachment), "")
    if not stored:
        return None
    try:
        return Attachment.model_validate_json(stored).model_copy(update={"is_new": False})
    except ValidationError:  # an earlier release stored it in another form
        return None


def as_visible_to(
    user_id: int, message: StoredMessage, replied_turn_id: int | None
) -> StoredMessage:
    """Return a message of a group as the model may see it when this user asks.

    The messages and pictures of other users are hidden, except those of the turn replied to.
    """
    is_visible = message.role == "assistant" or message.user_id == user_id
    is_replied_to = replied_turn_id is not None and message.turn_id == replied_turn_id
    if is_visible or is_replied_to:
        return message
    return replace(message, content=HIDDEN_MESSAGE, attachment="")


async def set_language_of_turn(update: Update, turn: ChatTurn) -> None:
    """Set the language of the replies, and collect the written language if it has changed."""
    user = update.effective_user
    set_language(user.language_code if user else None)
    set_app_language(user.language_code if user else None)
    if user is None or is_overheard(update):
        return
    settings = get_chosen_settings(await turn.load_facts())
    stored = settings.get(WRITTEN_LANGUAGE_KEY)
    known = language_written(update) or stored
    written = known or current_language()
    if settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN) != AS_WRITTEN:
        set_language(settings[CHOSEN_LANGUAGE_KEY], is_chosen=True)
    elif known:  # otherwise that of the app stays, which may have no catalogue
        set_language(known)
    if written != (stored or ENGLISH):  # without a setting, the default is English anyway
        store_setting(turn, settings, WRITTEN_LANGUAGE_KEY, written)


def store_setting(turn: ChatTurn, settings: Mapping[str, str], name: str, value: str) -> None:
    """Collect a setting of the user; `settings` are the current values."""
    if not turn.has_memory or value == settings.get(name):
        return
    old = (Fact("setting", f"{name}={settings[name]}"),) if name in settings else ()
    new = (Fact("setting", f"{name}={value}"),)
    turn.change_memory(added_facts=new, removed_facts=old)


async def load_language(memory: MemoryRepository, user_id: int) -> str | None:
    """Return the stored language of a user; None if it is unknown."""
    return language_from_settings(get_chosen_settings(await memory.list_facts(user_id)))


def language_from_settings(settings: Mapping[str, str]) -> str | None:
    """Return the language for a user with these settings; None if it is unknown."""
    chosen = settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN)
    return chosen if chosen != AS_WRITTEN else settings.get(WRITTEN_LANGUAGE_KEY)
