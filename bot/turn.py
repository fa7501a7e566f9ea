"""How the bot replies: a turn is traced, delivered, remembered; never silence, never twice."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from telegram import Bot, Update

from agent.engine.journal import NO_JOURNAL, Journal
from agent.engine.limits import UNLIMITED, Allowance
from agent.engine.span import Span, SpanUpdate
from agent.repositories import (
    MessageRepository,
    TurnRecord,
)
from agent.sommelier.service import Reply
from agent.text import truncate_at_boundary
from agent.tracing.recorder import Recorder
from agent.tracing.records import trace_id_of
from bot.budgets import Budgets, with_note
from bot.metrics import Metrics
from bot.telegram import texts
from bot.telegram.incoming import destination, message_of, names_of, people_of, typing
from bot.telegram.outgoing import Outgoing, Rows
from bot.telegram.sender import Delivery, Destination, Sender

log = logging.getLogger(__name__)

R = TypeVar("R")

PATIENCE_SECONDS: Final = (0.2, 0.5, 1.0)
"""How long a database that does not answer is waited for before each further try."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a turn came to, and the messages that say it, in order."""

    reply: Reply
    messages: tuple[Outgoing, ...]


Work = Callable[[Span, Allowance], Awaitable[Answered]]
"""What makes the answer of a turn, within its allowance. Never raises, except when cancelled."""


async def unrecorded(turn: TurnRecord) -> None:
    """Where nothing is kept of turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """What every handler answers with; what it needs is passed in.

    `hashed` makes the id of a user or a chat unrecognisable for traces, `record` keeps what a turn
    came to, `rating` makes the buttons under the answer of a turn. `max_content_length` is how
    many characters of a message are remembered, `budgets` what a turn may use.
    """

    message_repo: MessageRepository
    tracer: Recorder
    hashed: Callable[[str, int], str]
    sender: Sender
    journal: Journal = NO_JOURNAL
    record: Callable[[TurnRecord], Awaitable[None]] = unrecorded
    rating: Callable[[int], Rows] = lambda turn_id: ()
    budgets: Budgets | None = None
    metrics: Metrics = field(default_factory=Metrics)
    max_content_length: int = 2000

    async def turn(
        self, question: str, update: Update, bot: Bot, work: Work, *, remembered: bool = True
    ) -> None:
        """One turn: traced, answered by `work` while typing is shown, delivered, remembered."""
        started = time.monotonic()
        with self._traced(question, update, bot) as span:
            async with typing(bot, destination(update)):
                allowance = await self._allowance(update)
                answered = await work(span, allowance)
            note = await self._note(update, allowance, answered.reply)
            if note:
                span.update(output=f"{answered.reply.text}\n\n{note}")
            delivery = await self._deliver(update, with_note(answered.messages, note), span)
            turn = self._record_of(update, answered.reply, span, delivery)
            turn = replace(turn, seconds=time.monotonic() - started)
            kept = (question, answered.reply) if remembered else None
            await self._keep(turn, kept)
        self.metrics.turn_ended(
            answered.reply.outcome,
            seconds=turn.seconds,
            requests=turn.requests,
            retries=turn.retries,
        )

    async def give_up(self, update: Update, error: str) -> None:
        """The last word of a turn that failed for good: to the person, and on its trace."""
        chat = update.effective_chat
        if chat is None:
            return
        message = update.effective_message
        question = (message.text or "") if message else ""
        with self._traced(question, update, self.sender.bot, goes_on=True) as span:
            reply = Reply(texts.SET_ASIDE, (), "failed", error_types=(error,))
            metadata = {"outcome": "failed", "error_types": error}
            span.update(output=reply.text, level="ERROR", metadata=metadata)
            span.score("outcome", "failed", "CATEGORICAL")
            with span.child("telegram.send", "span") as send:
                delivery = await self.sender.send(Destination(chat.id), reply.text)
                send.update(**seen(delivery))
            await self._keep(self._record_of(update, reply, span, delivery), None)

    def _traced(
        self, question: str, update: Update, bot: Bot, *, goes_on: bool = False
    ) -> AbstractContextManager[Span]:
        """The root span of an update's turn; run again after a crash, it is the same trace."""
        chat_id, user_id = people_of(update)
        return self.tracer.turn(
            input=question,
            session=self.hashed("chat", chat_id),
            user=self.hashed("user", user_id),
            trace_id=trace_id_of(bot.id, chat_id, update.update_id),
            names=names_of(update),
            resumable=self.journal is not NO_JOURNAL and not goes_on,
            goes_on=goes_on,
        )

    async def _allowance(self, update: Update) -> Allowance:
        """What a turn may use, as a step if there are budgets; all it wants if that is unknown."""
        budgets, (_, user_id) = self.budgets, people_of(update)
        if budgets is None or not budgets.are_set:
            return UNLIMITED

        async def read() -> Allowance:
            try:
                return await patiently(lambda: budgets.allowance(update.update_id, user_id))
            except Exception:
                log.exception("What a person used today could not be read; going on without")
                return UNLIMITED

        return await self.journal.step("allowance", read)

    async def _note(self, update: Update, allowance: Allowance, reply: Reply) -> str:
        """What is told of budgets below an answer; a step where it is told only once a day."""
        budgets, (_, user_id) = self.budgets, people_of(update)
        note = budgets.note(allowance, reply) if budgets else None
        if budgets is None or note is None:
            return ""
        people, day = budgets.people, note.once_on

        async def is_first() -> bool:
            try:
                return day is None or await patiently(lambda: people.warned(user_id, day))
            except Exception:
                log.exception("Whether a person knows of their budget could not be read")
                return False

        told = day is None or await self.journal.step("warned", is_first)
        return f"_({note.text})_" if told else ""

    def _record_of(
        self, update: Update, reply: Reply, span: Span, delivery: Delivery
    ) -> TurnRecord:
        chat_id, user_id = people_of(update)
        return TurnRecord(
            turn_id=update.update_id,
            chat_id=chat_id,
            user_id=user_id,
            at=datetime.now(UTC),
            outcome=reply.outcome,
            requests=reply.requests,
            retries=reply.retries,
            tokens=reply.tokens,
            cost_usd=reply.cost_usd,
            error_types=reply.error_types,
            trace_id=span.trace_id,
            root_id=span.span_id,
            message_ids=delivery.message_ids,
        )

    async def remember(self, update: Update, question: str, reply: Reply) -> None:
        """Make a question and its reply the newest of the chat's conversation."""
        await self._remember(message_of(update).chat.id, update.update_id, question, reply)

    async def say(self, update: Update, markdown: str) -> Delivery:
        """Answer `update` with a sentence of the bot's own."""
        return await self.sender.send(destination(update), markdown, step=self.journal.step)

    async def _deliver(self, update: Update, messages: Sequence[Outgoing], span: Span) -> Delivery:
        """Send an answer; one that Telegram refuses as a whole is replaced by a sentence."""
        step, to = self.journal.step, destination(update)
        with span.child("telegram.send", "span") as send:
            delivery = Delivery()
            for number, each in enumerate(self._rated(update, messages)):
                there = to if number == 0 else replace(to, reply_to=None)
                delivery += await self.sender.send(
                    there, each.markdown, buttons=each.buttons, step=step
                )
                if delivery.error not in (None, "ambiguous"):
                    break
            if delivery.error == "rejected" and not delivery.message_ids:
                delivery += await self.sender.send(to, texts.FAILED, step=step)
            self.metrics.telegram_send(delivery.error)
            send.update(**seen(delivery))
        if delivery.error not in (None, "ambiguous"):
            span.update(level="ERROR", metadata={"send_error": delivery.error})
        return delivery

    def _rated(self, update: Update, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """The messages of an answer, with the buttons to rate it under the last."""
        *others, last = messages
        return [*others, replace(last, buttons=last.buttons + self.rating(update.update_id))]

    async def _keep(self, turn: TurnRecord, said: tuple[str, Reply] | None) -> None:
        """Keep what a turn came to, and what was said if it is a part of the conversation."""
        if said is not None:
            await self._remember(turn.chat_id, turn.turn_id, *said)
        try:
            await patiently(lambda: self.record(turn))
        except Exception:
            log.exception("What a turn of chat %s took could not be stored", turn.chat_id)

    async def _remember(self, chat_id: int, turn_id: int, question: str, reply: Reply) -> None:
        def kept(text: str) -> str:
            return truncate_at_boundary(text, self.max_content_length)

        try:
            await patiently(
                lambda: self.message_repo.create(chat_id, "user", kept(question), turn_id=turn_id)
            )
            await patiently(
                lambda: self.message_repo.create(
                    chat_id, "assistant", kept(reply.text), reply.wine_ids, turn_id=turn_id
                )
            )
        except Exception:
            log.exception("A turn of chat %s could not be stored", chat_id)


def seen(delivery: Delivery) -> SpanUpdate:
    """What the trace shows of a delivery."""
    metadata = {
        "message_id": delivery.message_ids[-1] if delivery.message_ids else None,
        "tries": delivery.tries,
        "error": delivery.error,
    }
    return {"metadata": metadata, "level": "ERROR" if delivery.error else "DEFAULT"}


async def patiently(call: Callable[[], Awaitable[R]]) -> R:
    """What `call` returns, tried again for a second or two: a database that restarts is soon back.

    Raises what the last try raises.
    """
    for wait in PATIENCE_SECONDS:
        try:
            return await call()
        except Exception as error:
            log.info("The database did not answer (%s), trying again", type(error).__name__)
        await asyncio.sleep(wait)
    return await call()
