"""Answer the messages of a chat, with the messages before them as context."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError
from telegram import Update
from telegram.ext import BaseHandler, ContextTypes

from agent.engine.run import Run
from agent.i18n import translate
from agent.sommelier.attachment import Attachment, TurnAttachment
from agent.sommelier.history import window
from agent.sommelier.service import Answerer
from agent.tracing.recorder import trace_id_of
from agent.turn import Bottles, Change, Fact, Reply, StoredMessage
from bot.outgoing import Delivery, Rows
from bot.pending import is_retry, pending_turn
from bot.question import Question
from bot.resources import Repositories, Resources
from bot.telegram.messages import (
    destination,
    is_addressed,
    message_of,
    names_of,
    people_of,
    replied_answer_id,
    with_context,
    without_mentions,
    wordless_reply,
)
from bot.telegram.sender import Sender
from bot.turn import Turns
from db.records import EndedTurn

Context = ContextTypes.DEFAULT_TYPE
AnyHandler = BaseHandler[Any, Any, Any]

PICTURE: Final = "[picture]"
"""Stored as the text of a picture without a caption."""
SOMEBODY_ELSE: Final = "…"
"""Shown to the model instead of a message of another person of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Answers updates; the model sees at most `history_messages` earlier messages.

    `hashed(kind, id)` returns the name of a chat or user in traces.
    """

    resources: Resources
    turns: Turns
    sender: Sender
    answerer: Answerer
    hashed: Callable[[str, int], str]
    history_messages: int = 20

    @property
    def repositories(self) -> Repositories:
        """Return the repositories."""
        return self.resources.repositories

    async def text(self, update: Update, context: Context) -> None:
        """Answer a text message."""
        message = message_of(update)
        if not is_addressed(message):
            return
        words = without_mentions(message)
        text = with_context(words, message)
        if text == words and (reply := wordless_reply(words)):
            await self.say(update, translate(reply))
            return
        await self.respond(self.question(update, text), replied_answer_id(message))

    async def edited(self, update: Update, context: Context) -> None:
        """Run the last turn again with the new text of an edited message."""
        message = message_of(update)
        if not is_addressed(message):
            return
        if not (message.text or "").startswith("/") and await self._undo_turn(update):
            await self.text(update, context)
        else:
            await self.say(update, translate("edited"))

    async def respond(self, question: Question, about: int | None = None) -> None:
        """Answer a question; `about` is the id of the bot's message that it replies to."""
        history = await self.history(question, about)

        async def work(run: Run) -> Reply:
            return await self.answer(question.text, run, history)

        await self.turns.run_turn(question, work)

    async def say(self, update: Update, markdown: str, buttons: Rows = ()) -> Delivery:
        """Reply to an update with a text, without a turn."""
        return await self.sender.send(destination(update), markdown, buttons)

    def question(self, update: Update, text: str, **fields: Any) -> Question:
        """Return the question of an update; all tries of its turn have one trace id.

        `fields` are additional fields of the question.
        """
        (chat_id, user_id), bot = people_of(update), update.get_bot()
        pending, typed = pending_turn(), (update.message and update.message.text) or ""
        if pending is not None:
            fields["state"] = pending.state
            fields["accepted_at"] = pending.update.received_at
            fields["interruptions"] = pending.update.tries - 1
        return Question(
            id=update.update_id,
            text=text,
            typed=typed if typed.startswith("/") else text,
            chat_id=chat_id,
            user_id=user_id,
            session=self.hashed("chat", chat_id),
            user=self.hashed("user", user_id),
            names=names_of(update),
            trace_id=trace_id_of(bot.id, chat_id, update.update_id),
            to=destination(update) if update.effective_message else None,
            **fields,
        )

    async def answer(
        self,
        text: str,
        run: Run,
        history: Sequence[StoredMessage],
        picture: Attachment | None = None,
    ) -> Reply:
        """Return the answer to a text and to the contents of its picture."""
        attached = TurnAttachment(picture) if picture else attached_in(history)
        run = replace(run, history=window(history))
        text = "" if text == PICTURE else text
        return await self.answerer.answer(text, run, *((attached,) if attached else ()))

    async def history(
        self, question: Question, about: int | None = None
    ) -> Sequence[StoredMessage]:
        """Return the messages before a question.

        If the question replies to an answer (`about`), the messages of that turn come last.
        """
        chat_id, thread_id, repositories = question.chat_id, question.thread_id, self.repositories
        history = await repositories.messages.recent(
            chat_id, self.history_messages, thread_id=thread_id
        )
        # A try of this turn that was cut off may have stored its messages.
        history = [message for message in history if message.turn_id != question.id]
        replied = await repositories.turns.of_message(chat_id, about) if about else None
        replied_id = replied.turn_id if replied else None
        if chat_id < 0:
            history = [shown_to(question.user_id, message, replied_id) for message in history]
        if replied_id is None:
            return history
        return sorted(history, key=lambda message: message.turn_id == replied_id)

    async def facts(self, update: Update) -> Sequence[Fact]:
        """Return the facts stored of a user, as they were when the turn began."""
        turn, (_, user_id) = pending_turn(), people_of(update)
        known = turn.state.facts if turn is not None else None
        return known if known is not None else await self.repositories.memory.facts(user_id)

    async def bottles(self, update: Update) -> Sequence[Bottles]:
        """Return the cellar of a user, bottles that were drunk included."""
        _, user_id = people_of(update)
        return await self.repositories.memory.bottles(user_id)

    async def change(self, update: Update, **fields: Any) -> None:
        """Change the memory of a user, with the commit of the turn.

        `fields` are those of `Change`.
        """
        _, user_id = people_of(update)
        await self.save(Change(user_id=user_id, **fields))

    async def save(self, change: Change) -> None:
        """Store a change with the commit of the turn that runs, or now."""
        if (turn := pending_turn()) is not None:
            turn.ended.append(EndedTurn(None, changes=(change,)))
        else:
            await self.repositories.turns.change([change])

    async def _undo_turn(self, update: Update) -> bool:
        """Forget the turn of a message; return False if it was not the last turn."""
        to, message, repositories = destination(update), message_of(update), self.repositories
        turn_id = await repositories.inbox.find_turn(to.chat_id, message.message_id)
        if turn_id is None:
            return False
        is_undone = await repositories.messages.undo(
            to.chat_id, turn_id, thread_id=to.thread_id or 0
        )
        # A try that was cut off may have undone it already.
        return is_undone or is_retry()


def attached_in(history: Sequence[StoredMessage]) -> TurnAttachment | None:
    """Return the contents of the last pictures of a conversation, if there were any."""
    stored = next((message.attachment for message in reversed(history) if message.attachment), "")
    try:
        return (
            TurnAttachment(Attachment.model_validate_json(stored), is_new=False) if stored else None
        )
    except ValidationError:  # of an earlier release
        return None


def shown_to(user_id: int, message: StoredMessage, replied_id: int | None) -> StoredMessage:
    """Return a message of a group as the model sees it when this user asks.

    It does not see the messages of other users, except those of the turn that is replied to.
    """
    is_shared = message.role == "assistant" or message.user_id == user_id
    if is_shared or message.turn_id == replied_id:
        return message
    return replace(message, content=SOMEBODY_ELSE)
