"""What all handlers stand on: whom the bot talks with, and the turns that come of it."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from telegram import Update
from telegram.ext import BaseHandler, ContextTypes, filters

from agent.engine.run import Run
from agent.i18n import say
from agent.markdown import escape
from agent.person import Bottles, Change, Fact
from agent.repositories import StoredMessage, window
from agent.senses.speech import Heard
from agent.sommelier.attachment import Attached, Attachment
from agent.sommelier.caring import care_in
from agent.sommelier.service import Answerer
from agent.turn import Reply
from bot.resources import Repositories, Resources
from bot.telegram.buttons import Rows
from bot.telegram.incoming import (
    destination,
    is_addressed,
    message_of,
    people_of,
    question_of,
    replied_to_bot,
    with_context,
    without_words,
    wording,
)
from bot.telegram.sender import Delivery, Sender
from bot.turn import Question, Turns, retry_briefly, retry_forever

log = logging.getLogger(__name__)

R = TypeVar("R")

Context = ContextTypes.DEFAULT_TYPE
AnyHandler = BaseHandler[Any, Any, Any]

TYPED: Final = filters.UpdateType.MESSAGE & ~filters.FORWARDED & ~filters.VIA_BOT
"""What somebody wrote themselves: only that is a command. Who forwards words, or sends those that
another bot made, may not know what they do here."""
PICTURE: Final = "[picture]"
"""What is remembered as the words of a message that has none."""
SOMEBODY_ELSE: Final = "…"
"""What stands for what another person of a group asked."""
LONGEST_LEAD: Final = 300
"""Characters of what was heard, as it is told above an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """What a question comes with beside its words, each read in its turn.

    `read` reads pictures, to nothing if nobody can see them: then `note` stands below the answer.
    `hear` hears what was said, `aloud` reads the answer aloud if it is to be.
    """

    read: Callable[[Run], Awaitable[Attachment | None]] | None = None
    note: str = ""
    hear: Callable[[Run], Awaitable[Heard]] | None = None
    aloud: Callable[[Reply, Run], Awaitable[bytes]] | None = None


NOTHING: Final = Enclosed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The conversation with people.

    `save` keeps changes of what is known of them with the end of the turn. `history_messages` is
    how many earlier messages an answer may look back on.
    """

    resources: Resources
    turns: Turns
    sender: Sender
    answerer: Answerer
    save: Callable[[Sequence[Change]], Awaitable[None]]
    history_messages: int

    @property
    def repositories(self) -> Repositories:
        """Where things are kept."""
        return self.resources.repositories

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Do something as a step of the turn: run again, it has the same result."""
        return await self.sender.journal.step(name, run)

    async def say(self, update: Update, markdown: str, buttons: Rows = ()) -> Delivery:
        """Answer an update with a sentence."""
        return await self.sender.send(destination(update), markdown, buttons)

    async def facts(self, update: Update) -> Sequence[Fact]:
        """Read what is remembered of who an update is from."""
        _, user_id = people_of(update)
        return await retry_briefly(partial(self.repositories.memory.facts, user_id))

    async def bottles(self, update: Update) -> Sequence[Bottles]:
        """Read what bottles somebody has told of, drunk ones too."""
        _, user_id = people_of(update)
        return await retry_briefly(partial(self.repositories.memory.bottles, user_id))

    async def change(
        self,
        update: Update,
        *,
        learned: tuple[Fact, ...] = (),
        unlearned: tuple[Fact, ...] = (),
        bottles: tuple[Bottles, ...] = (),
    ) -> None:
        """Change what is remembered of who an update is from, with the end of the turn."""
        _, user_id = people_of(update)
        change = Change(user_id=user_id, learned=learned, unlearned=unlearned, bottles=bottles)
        await self.save([change])

    async def text(self, update: Update, context: Context) -> None:
        """A message to answer: one turn."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        words = wording(message, context.bot)
        question = with_context(words, message, context.bot)
        if question == words and (unworded := without_words(words)):
            await self.say(update, say(unworded))
            return
        replied = message.reply_to_message if replied_to_bot(message, context.bot) else None
        asked = question_of(update, context.bot, question)
        await self.respond(asked, replied.message_id if replied else None)

    async def edited(self, update: Update, context: Context) -> None:
        """An edited message: the last turn is run again on its new words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        is_undone = not (message.text or "").startswith("/") and await self._undone(update)
        await (self.text(update, context) if is_undone else self.say(update, say("edited")))

    async def _undone(self, update: Update) -> bool:
        """Whether the turn that a message became part of was the last, and is forgotten now."""
        to, message, kept = destination(update), message_of(update), self.repositories
        find = partial(kept.updates.turn_of, to.chat_id, message.message_id)
        turn_id = await self.step("turn_of", partial(retry_forever, find))
        if turn_id is None:
            return False
        undo = partial(kept.messages.undo, to.chat_id, turn_id, thread_id=to.thread_id or 0)
        return await self.step("undo", undo)

    async def respond(
        self, question: Question, about: int | None = None, enclosed: Enclosed = NOTHING
    ) -> None:
        """One turn: the answer to a question, and `about` which message of the bot it is."""
        answer = _Answer(self, question, about, enclosed)
        await self.turns.turn(question, answer.work, hear=answer.hear if enclosed.hear else None)


@dataclass(slots=True)
class _Answer:
    """The work of one turn, and what was heard in it."""

    talk: Conversation
    question: Question
    about: int | None
    enclosed: Enclosed
    heard: Heard = field(default_factory=Heard)

    async def hear(self, run: Run) -> str:
        """The words of a question that is spoken; they are shown while the answer forms."""
        assert self.enclosed.hear is not None  # noqa: S101 - it is not called without
        self.heard = await self.enclosed.hear(run)
        if run.show is not None and self.heard.transcript.text:
            run.show(lambda: lead_of(self.heard))
        return self.heard.transcript.text

    async def work(self, run: Run) -> Reply:
        """The answer; what came earlier is known from when the question was read."""
        if (instead := self._instead(run)) is not None:
            return instead
        enclosed, asked = self.enclosed, self.heard.transcript.text or self.question.text
        read = await enclosed.read(run) if enclosed.read else None
        history = await self._history()
        run = replace(run, history=window(history))
        attached = Attached(read) if read else attached_in(history)
        given = (attached,) if attached else ()
        asked = "" if asked == PICTURE else asked
        reply = await self.talk.answerer.answer(asked, run, *given)
        note = (enclosed.note,) if enclosed.note and read is None else ()
        return replace(
            reply,
            notes=(*reply.notes, *note),
            attachment=read.model_dump_json() if read else "",
            lead=lead_of(self.heard),
            audio=await enclosed.aloud(reply, run) if enclosed.aloud else b"",
        )

    def _instead(self, run: Run) -> Reply | None:
        """What is said instead of an answer: no wines from pictures to some, nothing was heard."""
        care, why = care_in(run), self.heard.why
        if self.enclosed.read and care.forbids_alcohol:
            return Reply(text=self.talk.turns.carer.help.why(care), outcome="care")
        if why:
            text, errors = say("not_heard"), (f"voice_{why}",)
            return Reply(text=text, outcome="fallback", error_types=errors)
        return None

    async def _history(self) -> Sequence[StoredMessage]:
        """What was said before, the turn that the question is about last."""
        history, meant = await self._said(), await self._meant()
        if self.question.chat_id < 0:
            history = [heard_by(self.question.user_id, each, meant) for each in history]
        newest = [each for each in history if meant is not None and each.turn_id == meant]
        return [*(each for each in history if each not in newest), *newest]

    async def _said(self) -> Sequence[StoredMessage]:
        """What was said before, also if the turn is run again and has kept its own words."""
        chat_id, thread = self.question.chat_id, self.question.thread_id
        messages, most = self.talk.repositories.messages, self.talk.history_messages
        recent = partial(messages.recent, chat_id, most, thread_id=thread)
        try:
            said = await retry_briefly(recent)
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", chat_id)
            return ()
        return [message for message in said if message.turn_id != self.question.id]

    async def _meant(self) -> int | None:
        """The id of the turn that is replied to."""
        if self.about is None:
            return None
        try:
            find = self.talk.repositories.turns.of_message
            turn = await find(self.question.chat_id, self.about)
        except Exception as error:
            log.warning("What is replied to could not be read: %s", type(error).__name__)
            return None
        return turn.turn_id if turn else None


def lead_of(heard: Heard) -> str:
    """The line above an answer that says what was heard; empty if nothing was."""
    said = escape(" ".join(heard.transcript.text.split())[:LONGEST_LEAD])
    return f"_{say('heard', words=said)}_" if said else ""


def attached_in(history: Sequence[StoredMessage]) -> Attached | None:
    """What was read from pictures last in a conversation, if anything was."""
    found = next((each.attachment for each in reversed(history) if each.attachment), "")
    try:
        return Attached(Attachment.model_validate_json(found), now=False) if found else None
    except ValidationError:  # of an earlier release
        return None


def heard_by(user_id: int, said: StoredMessage, meant: int | None) -> StoredMessage:
    """What was said in a group as one of its people means it.

    What others asked is their own wish and rules out nothing here, but in the turn that is `meant`:
    that one was replied to.
    """
    is_shared = said.role == "assistant" or said.user_id == user_id or said.turn_id == meant
    return said if is_shared else replace(said, content=SOMEBODY_ELSE)
