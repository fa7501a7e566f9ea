"""Answer the messages of a chat: one turn each, with pictures and voices, and after corrections."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError
from telegram import Bot, Update
from telegram.ext import BaseHandler, ContextTypes

from agent.conversation import StoredMessage
from agent.engine.errors import or_else
from agent.engine.run import Run
from agent.i18n import say
from agent.markdown import escape
from agent.senses.speech import Heard
from agent.sommelier.attachment import Attached, Attachment
from agent.sommelier.history import window
from agent.sommelier.safety import care_in
from agent.sommelier.service import Answerer
from agent.tracing.recorder import trace_id_of
from agent.turn import Bottles, Change, Fact, Reply
from bot.outgoing import Delivery, Rows
from bot.pending import TurnState, is_retry, pending_turn
from bot.question import Kind, Question
from bot.resources import Repositories, Resources
from bot.retries import retry_briefly, retry_forever
from bot.telegram.messages import (
    answer_meant,
    destination,
    is_addressed,
    message_of,
    names_of,
    people_of,
    with_context,
    without_words,
    wording,
)
from bot.telegram.sender import Sender
from bot.turn import Turns
from db.records import EndedTurn

log = logging.getLogger(__name__)

Context = ContextTypes.DEFAULT_TYPE
AnyHandler = BaseHandler[Any, Any, Any]

PICTURE: Final = "[picture]"
"""Stored as the words of a message that has none."""
SOMEBODY_ELSE: Final = "…"
"""Stands for a message of another person of a group."""
MAX_LEAD_CHARS: Final = 300
"""The longest transcription shown above an answer."""


def question_of(
    update: Update, bot: Bot, text: str, *, kind: Kind = "chat", remembered: bool = True
) -> Question:
    """Return the question of an update; its trace has the same id when the turn is run again."""
    chat_id, user_id = people_of(update)
    turn, typed = pending_turn(), (update.message and update.message.text) or ""
    return Question(
        id=update.update_id,
        text=text,
        kind=kind,
        typed=typed if typed.startswith("/") else text,
        accepted_at=turn.update.received_at if turn else None,
        interruptions=turn.update.tries - 1 if turn else 0,
        state=turn.state if turn else TurnState(),
        chat_id=chat_id,
        user_id=user_id,
        names=names_of(update),
        trace_id=trace_id_of(bot.id, chat_id, update.update_id),
        to=destination(update) if update.effective_message else None,
        remembered=remembered,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """The pictures or the voice of a message, to be read in its turn.

    `read` reads pictures, and returns None if no model can see them: then `note` stands below the
    answer. `hear` transcribes a voice, `asks` makes a question of the words, `aloud` returns the
    answer as audio, if it is to be read aloud.
    """

    read: Callable[[Run], Awaitable[Attachment | None]] | None = None
    note: str = ""
    hear: Callable[[Run], Awaitable[Heard]] | None = None
    asks: Callable[[str], str] = str
    aloud: Callable[[Reply, Run], Awaitable[bytes]] | None = None


NOTHING: Final = Enclosed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Answers updates; an answer may look back on `history_messages` earlier messages."""

    resources: Resources
    turns: Turns
    sender: Sender
    answerer: Answerer
    history_messages: int = 20

    @property
    def repositories(self) -> Repositories:
        """Return the repositories."""
        return self.resources.repositories

    async def say(self, update: Update, markdown: str, buttons: Rows = ()) -> Delivery:
        """Answer an update with a text."""
        return await self.sender.send(destination(update), markdown, buttons)

    async def facts(self, update: Update) -> Sequence[Fact]:
        """Return the facts stored of a user."""
        _, user_id = people_of(update)
        return await retry_briefly(lambda: self.repositories.memory.facts(user_id))

    async def bottles(self, update: Update) -> Sequence[Bottles]:
        """Return the cellar of a user, bottles that were drunk included."""
        _, user_id = people_of(update)
        return await retry_briefly(lambda: self.repositories.memory.bottles(user_id))

    async def change(
        self,
        update: Update,
        *,
        learned: tuple[Fact, ...] = (),
        unlearned: tuple[Fact, ...] = (),
        bottles: tuple[Bottles, ...] = (),
        undo_id: int = 0,
    ) -> None:
        """Change what is stored of a user, with the commit of the turn.

        The change can be undone under its `undo_id`, if it has one.
        """
        _, user_id = people_of(update)
        change = Change(
            user_id=user_id,
            learned=learned,
            unlearned=unlearned,
            bottles=bottles,
            undo_id=undo_id,
        )
        await self.save([change])

    async def save(self, changes: Sequence[Change]) -> None:
        """Store changes with the commit of the turn that runs, or now."""
        if (turn := pending_turn()) is not None:
            turn.ended.append(EndedTurn(None, changes=tuple(changes)))
        else:
            await self.repositories.turns.change(changes)

    async def text(self, update: Update, context: Context) -> None:
        """Answer a message of words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        words = wording(message, context.bot)
        text = with_context(words, message, context.bot)
        if text == words and (reply := without_words(words)):
            await self.say(update, say(reply))
            return
        question = question_of(update, context.bot, text)
        await self.respond(question, answer_meant(message, context.bot))

    async def edited(self, update: Update, context: Context) -> None:
        """Run the last turn again on the new words of an edited message."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        if not (message.text or "").startswith("/") and await self._undo(update):
            await self.text(update, context)
        else:
            await self.say(update, say("edited"))

    async def _undo(self, update: Update) -> bool:
        """Forget the turn of a message; return False if it was not the last turn."""
        to, message, repositories = destination(update), message_of(update), self.repositories
        turn_id = await retry_forever(
            lambda: repositories.inbox.turn_of(to.chat_id, message.message_id)
        )
        if turn_id is None:
            return False
        is_undone = await repositories.messages.undo(
            to.chat_id, turn_id, thread_id=to.thread_id or 0
        )
        # A try that was cut off may have undone it already.
        return is_undone or is_retry()

    async def respond(
        self, question: Question, about: int | None = None, enclosed: Enclosed = NOTHING
    ) -> None:
        """Answer a question; `about` is the id of the bot's message that it replies to."""
        answer = _Answer(self, question, about, enclosed)
        await self.turns.turn(question, answer.work, hear=answer.hear if enclosed.hear else None)


@dataclass(slots=True)
class _Answer:
    """Answers one question; a voice is transcribed before the answer is worked out."""

    talk: Conversation
    question: Question
    about: int | None
    enclosed: Enclosed
    heard: Heard = field(default_factory=Heard)
    text: str = ""

    async def hear(self, run: Run) -> str:
        """Return the question of a voice message; show the transcription while it is answered."""
        assert self.enclosed.hear is not None  # noqa: S101 - it is not called without
        self.heard = await self.enclosed.hear(run)
        if transcription := self.heard.transcript.text:
            self.text = self.enclosed.asks(transcription)
            if run.show is not None:
                run.show(lambda: lead_of(self.heard))
        return self.text

    async def work(self, run: Run) -> Reply:
        """Return the reply, in view of the messages before it."""
        if (instead := self._instead(run)) is not None:
            return instead
        enclosed, text = self.enclosed, self.text or self.question.text
        picture = await enclosed.read(run) if enclosed.read else None
        history = await self._history()
        run = replace(run, history=window(history))
        attached = Attached(picture) if picture else attached_in(history)
        text = "" if text == PICTURE else text
        reply = await self.talk.answerer.answer(text, run, *((attached,) if attached else ()))
        note = (enclosed.note,) if enclosed.note and picture is None else ()
        return replace(
            reply,
            notes=(*reply.notes, *note),
            attachment=picture.model_dump_json() if picture else "",
            lead=lead_of(self.heard),
            audio=await enclosed.aloud(reply, run) if enclosed.aloud else b"",
        )

    def _instead(self, run: Run) -> Reply | None:
        """Return the reply where alcohol is not offered, or the voice was not understood."""
        care, why = care_in(run), self.heard.why
        if self.enclosed.read and care.forbids_alcohol:
            return Reply(text=self.talk.turns.carer.help.why(care), outcome="care")
        if why:
            errors = (f"voice_{why}",)
            return Reply(text=say("not_heard"), outcome="fallback", error_types=errors)
        return None

    async def _history(self) -> Sequence[StoredMessage]:
        """Return the messages before, those of the turn that is replied to last."""
        history, about = await self._recent(), await self._replied_turn()
        if self.question.chat_id < 0:
            user_id = self.question.user_id
            history = [as_read_by(user_id, message, about) for message in history]
        replied = [message for message in history if about is not None and message.turn_id == about]
        return [*(message for message in history if message not in replied), *replied]

    async def _recent(self) -> Sequence[StoredMessage]:
        """Return the stored messages of the chat, without those of an earlier try of this turn."""
        chat_id, talk = self.question.chat_id, self.talk

        async def recent() -> Sequence[StoredMessage]:
            return await talk.repositories.messages.recent(
                chat_id, talk.history_messages, thread_id=self.question.thread_id
            )

        what = f"The history of chat {chat_id} could not be read; answering without"
        messages = await or_else(lambda: retry_briefly(recent), (), what)
        return [message for message in messages if message.turn_id != self.question.id]

    async def _replied_turn(self) -> int | None:
        """Return the id of the turn whose answer is replied to."""
        if (about := self.about) is None:
            return None
        turns, chat_id = self.talk.repositories.turns, self.question.chat_id
        what = "The turn that is replied to could not be read"
        turn = await or_else(lambda: turns.of_message(chat_id, about), None, what)
        return turn.turn_id if turn else None


def lead_of(heard: Heard) -> str:
    """Return the line above an answer that shows a transcription; empty without one."""
    words = escape(" ".join(heard.transcript.text.split())[:MAX_LEAD_CHARS])
    return f"_{say('heard', words=words)}_" if words else ""


def attached_in(history: Sequence[StoredMessage]) -> Attached | None:
    """Return what was read from the last pictures of a conversation, if anything was."""
    stored = next((message.attachment for message in reversed(history) if message.attachment), "")
    try:
        return Attached(Attachment.model_validate_json(stored), now=False) if stored else None
    except ValidationError:  # of an earlier release
        return None


def as_read_by(user_id: int, message: StoredMessage, about: int | None) -> StoredMessage:
    """Return a message of a group as it counts for one user.

    The wishes of others rule out nothing here, except in the turn `about` that is replied to.
    """
    is_shared = message.role == "assistant" or message.user_id == user_id
    if is_shared or message.turn_id == about:
        return message
    return replace(message, content=SOMEBODY_ELSE)
