"""Answer messages in the context of their conversation; `Conversation` is passed to handlers."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError
from telegram import Update
from telegram.ext import BaseHandler, CallbackQueryHandler, CommandHandler, MessageHandler, filters
from telegram.ext.filters import BaseFilter

from agent.engine.run import Run
from agent.i18n import ENGLISH, current_language, set_language, translate
from agent.sommelier.answer import to_history
from agent.sommelier.attachment import Attachment
from agent.sommelier.service import Answerer
from agent.tracing.records import trace_id_of
from agent.turn import Change, Fact, Reply, StoredMessage, get_chosen_settings
from bot.question import Question, current_turn
from bot.resources import Repositories, Resources
from bot.telegram.messages import (
    TYPED_BY_USER,
    chat_and_user_ids,
    destination,
    id_of_replied_answer,
    is_addressed,
    is_overheard,
    language_written,
    message_of,
    names_of,
    text_without_mentions,
    with_quotations,
)
from bot.telegram.sender import ButtonRows, Sender
from bot.turn import TurnRunner

AnyHandler = BaseHandler[Any, Any, Any]
Handle = Callable[..., Coroutine[Any, Any, None]]
"""A handler function; its arguments are an update and the `Conversation`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Answers updates, and stores facts about their users.

    `trace_hash(kind, id)` returns the hash that stands for a chat or user in traces.
    """

    resources: Resources
    turns: TurnRunner
    sender: Sender
    answerer: Answerer
    trace_hash: Callable[[str, int], str]

    @property
    def repositories(self) -> Repositories:
        """Return the repositories."""
        return self.resources.repositories

    async def run_turn(self, question: Question, replied_answer_id: int | None = None) -> None:
        """Answer a question; `replied_answer_id` is the bot message that the user replied to."""
        history = await self.load_history(question, replied_answer_id)

        async def make_reply(run: Run) -> Reply:
            return await self.ask_agent(question.text, run, history)

        await self.turns.run_turn(question, make_reply)

    async def reply(self, update: Update, markdown: str, buttons: ButtonRows = ()) -> None:
        """Reply to an update with a fixed text, without a turn."""
        await self.sender.send(destination(update), markdown, buttons)

    def build_question(self, update: Update, text: str, **fields: Any) -> Question:
        """Return the question of an update; `fields` are additional fields of `Question`.

        The trace id depends only on the update, so all tries share a trace.
        """
        chat_id, user_id = chat_and_user_ids(update)
        message_text = (update.message and update.message.text) or ""
        is_command = message_text.startswith("/")
        if (current := current_turn()) is not None:  # the turn of a queued update
            fields["state"] = current
            fields["accepted_at"] = current.update.received_at
            fields["interruptions"] = current.update.tries - 1
        return Question(
            id=update.update_id,
            text=text,
            typed=message_text if is_command else text,  # `text` leaves out the command's name
            chat_id=chat_id,
            user_id=user_id,
            session=self.trace_hash("chat", chat_id),
            user=self.trace_hash("user", user_id),
            names=names_of(update),
            trace_id=trace_id_of(update.get_bot().id, chat_id, update.update_id),
            to=destination(update) if update.effective_message else None,
            **fields,
        )

    async def ask_agent(
        self,
        text: str,
        run: Run,
        history: Sequence[StoredMessage],
        new_attachment: Attachment | None = None,
    ) -> Reply:
        """Return the answer to a text; it may refer to new pictures or the latest earlier ones."""
        attachment = new_attachment or attachment_in(history)
        run = replace(run, history=to_history(history))
        return await self.answerer.answer(text, run, attachment)

    async def load_history(
        self, question: Question, replied_answer_id: int | None = None
    ) -> Sequence[StoredMessage]:
        """Return the messages before a question, at most `MAX_HISTORY_MESSAGES`.

        If it replies to an answer of the bot, return the messages up to that answer.
        """
        chat_id, repositories = question.chat_id, self.repositories
        replied_turn_id: int | None = None
        if replied_answer_id:
            replied = await repositories.turns.find_by_message(chat_id, replied_answer_id)
            replied_turn_id = replied.turn_id if replied else None
        history = await repositories.messages.list_recent(
            chat_id,
            MAX_HISTORY_MESSAGES,
            thread_id=question.thread_id,
            last_turn_id=replied_turn_id,
        )
        # An interrupted try of this turn may have stored its messages.
        history = [message for message in history if message.turn_id != question.id]
        if chat_id < 0:  # Telegram's ids of groups are negative
            user_id = question.user_id
            history = [as_visible_to(user_id, message, replied_turn_id) for message in history]
        return history

    async def load_facts(self, update: Update) -> Sequence[Fact]:
        """Return the stored facts about a user, as they were when the turn began."""
        current = current_turn()
        if current is not None and current.facts is not None:
            return current.facts
        _, user_id = chat_and_user_ids(update)
        return await self.repositories.memory.list_facts(user_id)

    async def change_memory(self, update: Update, **fields: Any) -> None:
        """Change a user's memory when the running turn is committed; without a turn, now."""
        change = Change(user_id=chat_and_user_ids(update)[1], **fields)
        if (current := current_turn()) is not None:
            current.changes.append(change)
        else:
            await self.repositories.turns.apply([change])

    async def store_setting(
        self, update: Update, settings: Mapping[str, str], name: str, value: str
    ) -> None:
        """Store a setting of a user; `settings` are the current values."""
        if value != settings.get(name):
            old = (Fact("setting", f"{name}={settings[name]}"),) if name in settings else ()
            new = (Fact("setting", f"{name}={value}"),)
            await self.change_memory(update, added_facts=new, removed_facts=old)

    async def detect_and_store_language(self, update: Update) -> None:
        """Set the language of the replies; store the written language and the turn's facts."""
        user = update.effective_user
        set_language(user.language_code if user else None)
        if user is None or is_overheard(update):
            return
        facts = await self.repositories.memory.list_facts(user.id)
        if (turn := current_turn()) is not None:
            turn.facts = facts
        settings = get_chosen_settings(facts)
        stored = settings.get(WRITTEN_LANGUAGE_KEY)
        written = language_written(update) or stored or current_language()
        is_chosen = settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN) != AS_WRITTEN
        set_language(settings[CHOSEN_LANGUAGE_KEY] if is_chosen else written, is_chosen=is_chosen)
        if written != (stored or ENGLISH):  # without a setting, the default is English anyway
            await self.store_setting(update, settings, WRITTEN_LANGUAGE_KEY, written)

    async def load_language(self, user_id: int) -> str | None:
        """Return the stored language of a user; None if it is unknown."""
        facts = await self.repositories.memory.list_facts(user_id)
        return language_from_settings(get_chosen_settings(facts))


def language_from_settings(settings: Mapping[str, str]) -> str | None:
    """Return the language for a user with these settings; None if it is unknown."""
    chosen = settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN)
    return chosen if chosen != AS_WRITTEN else settings.get(WRITTEN_LANGUAGE_KEY)


async def answer_text(update: Update, conversation: Conversation) -> None:
    """Answer a text message."""
    message = message_of(update)
    if not is_addressed(message):
        return
    text = with_quotations(text_without_mentions(message), message)
    if text:
        question = conversation.build_question(update, text)
        await conversation.run_turn(question, id_of_replied_answer(message))
    else:
        await conversation.reply(update, translate("text_only"))


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
