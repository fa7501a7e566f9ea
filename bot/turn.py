"""The life of a turn, whoever asks: traced, within its allowance, worked on, delivered, kept."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal, TypeVar

from agent.care.concerns import Care, read_care
from agent.deps import deps_of
from agent.engine.errors import Backoff, or_else, retry
from agent.engine.limits import NOTHING_SPENT, Ledger, Spent
from agent.engine.run import NO_JOURNAL, Journal, Run, ShowDraft, Stop
from agent.engine.span import NO_SPAN, Span, TraceRecord
from agent.i18n import FAHRENHEIT, in_fahrenheit, is_chosen, say, speak
from agent.repositories import MemoryRepository, MessageRepository, StoredMessage, TurnRecord
from agent.text import spoken_in, truncate_at_boundary
from agent.tracing.recorder import Recorder, RootSpan
from agent.turn import (
    SHARED,
    UNDER_AGE,
    Change,
    Fact,
    Person,
    Reply,
    Work,
    settings_of,
    with_notes,
    worked_on,
)
from agent.turn_trace import BUDGET, record_turn
from bot.budgets import UNLIMITED, Allowance, Budgets
from bot.care import Carer
from bot.metrics import Metrics
from bot.telegram.drafts import Drafts, Placeholder
from bot.telegram.sender import Delivery, Destination, Outgoing, Rows, Sender

log = logging.getLogger(__name__)

R = TypeVar("R")

FOR_GOOD: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is wrong in a call itself; no database that is down answers so."""
DATABASE: Final = Backoff(first=0.4, longest=2.0)
BRIEF_TRIES: Final = 4
MAY_BE_LOST: Final = "send_ambiguous"
"""Among the errors of a turn: nobody knows whether its answer arrived."""
SPOKEN: Final = "answer.ogg"
LOST_BY: Final[Mapping[str | None, tuple[str, ...]]] = {"ambiguous": (MAY_BE_LOST,)}


LOOK_UPS: Final = frozenset({"ask", "quotes", "find", "rewrite"})
"""Kinds of turns that answer, or help to answer, from documents or the web."""
Kind = Literal["chat", "ask", "quotes", "find", "rewrite", "label", "voice"]
"""What a turn is; its trace is named so."""


@dataclass(slots=True)
class Course:
    """What others know of a turn while it runs, and how they end it.

    `before` and `trace` are of tries that a further message made void: what they used still counts.
    All of them show their answer in the message of `placeholder`. `facts` are those of who asks,
    where they were read as it began.
    """

    stop: Stop = field(default_factory=Stop)
    before: Spent = NOTHING_SPENT
    trace: TraceRecord | None = None
    ledger: Ledger | None = None
    placeholder: Placeholder = field(default_factory=Placeholder)
    facts: Sequence[Fact] | None = None
    allowance: Allowance = UNLIMITED
    is_forgotten: bool = False

    @property
    def spent(self) -> Spent:
        """What was used so far, by all tries."""
        return self.ledger.spent if self.ledger else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, by whom, and where the answer goes.

    `id` is that of the update; of a question that came otherwise it is negative. Without `to` the
    reply is only returned. `session` and `user` stand for the chat and the person in traces,
    `names` are what people are called there: they are masked. Of a question that is not
    `remembered` nothing becomes a part of the conversation. A trace shows it as it was `typed`,
    from when it was accepted, and how often its turn was interrupted.
    """

    id: int
    text: str
    chat_id: int = 0
    user_id: int = 0
    session: str = ""
    user: str = ""
    names: tuple[str, ...] = ()
    trace_id: str | None = None
    to: Destination | None = None
    remembered: bool = True
    kind: Kind = "chat"
    typed: str = ""
    accepted_at: datetime | None = None
    interruptions: int = 0
    course: Course = field(default_factory=Course)

    @property
    def thread_id(self) -> int:
        """The topic of the chat, 0 without topics."""
        return (self.to.thread_id or 0) if self.to else 0

    @property
    def is_remembered(self) -> bool:
        """Whether it becomes a part of the conversation."""
        return self.remembered and not self.course.is_forgotten


Hear = Callable[[Run], Awaitable[str]]
"""Tells the words of a question that was spoken; empty if they were not understood."""

Show = Callable[[Any], Sequence[Outgoing]]
"""Makes the messages of what a reply was made of, its `answer`."""


FollowUps = Callable[[Question, Reply], Rows]
"""Makes the buttons of what may be wanted next of a reply."""

Keep = Callable[
    [TurnRecord, Sequence[StoredMessage], TraceRecord | None, Sequence[Change]], Awaitable[None]
]
"""Keeps, whole or not at all, what a turn came to, what was said in it, its trace, and what it
changes of a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Runs turns; what they need is passed in.

    `run` is what each starts from. Without a `sender` nothing is delivered; `keep` keeps what a
    turn came to and what was said, without it `messages` the latter alone; `max_content_length` is
    how many characters of a message are. `hashed` makes the id of a chat or a user unrecognisable
    for traces, `follow_ups` and `rating` make the buttons under the answer of a turn. `carer` knows
    who is not to drink, `memory` what is remembered of people, `last_errors` those of the
    turn of a chat that ended last. `elsewhere` has other processes stop what they work on, and says
    whether they have begun anything in that chat.
    """

    run: Run = field(default_factory=Run)
    tracer: Recorder | None = None
    hashed: Callable[[str, int], str] = lambda kind, value: ""
    journal: Journal = NO_JOURNAL
    sender: Sender | None = None
    drafts: Drafts | None = None
    messages: MessageRepository | None = None
    max_content_length: int = 0
    budgets: Budgets | None = None
    keep: Keep | None = None
    rating: Callable[[int], Rows] = lambda turn_id: ()
    follow_ups: FollowUps = lambda question, reply: ()
    metrics: Metrics = field(default_factory=Metrics)
    carer: Carer = field(default_factory=Carer)
    last_errors: Callable[[int], Awaitable[Collection[str]]] | None = None
    memory: MemoryRepository | None = None
    elsewhere: Callable[[Mapping[str, int]], Awaitable[bool]] | None = None
    under_way: dict[int, Question] = field(default_factory=dict)

    async def stop_everywhere(self, *, is_forgotten: bool = False, **of: int) -> bool:
        """Do what `stop` does, in other processes too."""
        here = self.stop(is_forgotten=is_forgotten, **of)
        if self.elsewhere is None:
            return here
        return await self.elsewhere({"is_forgotten": is_forgotten, **of}) or here

    def stop(self, *, is_forgotten: bool = False, **of: int) -> bool:
        """Stop what is worked on of questions with these values in their fields.

        False if nothing is. Of what is forgotten at once nothing becomes a part of a conversation.
        """
        under_way = self.under_way.values()
        asked = [each for each in under_way if of == {name: getattr(each, name) for name in of}]
        for each in asked:
            each.course.is_forgotten = is_forgotten
            each.course.stop.ask()
        return bool(asked)

    async def turn(
        self, question: Question, work: Work, show: Show | None = None, hear: Hear | None = None
    ) -> Reply:
        """Run one turn; its reply is an apology if `work` fails.

        The text of the reply is sent, or the messages that `show` makes of its answer. What is
        asked are the words that `hear` tells, if it is given.
        """
        began, root = question.accepted_at or datetime.now(UTC), self._trace(question)
        self.under_way[question.id] = question
        try:
            question, reply, delivery = await self._lived(question, work, show, hear, root)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                question.course.trace = root.trace
            await self._keep_broken(question, root, error)
            raise
        finally:
            del self.under_way[question.id]
        seconds = max(0.0, (datetime.now(UTC) - began).total_seconds())
        reply = replace(reply, seconds=seconds)
        await self._keep(question, reply, delivery, root)
        self.metrics.turn_ended(
            reply.outcome,
            seconds=reply.seconds,
            requests=reply.spent.requests,
            retries=reply.retries,
        )
        return reply

    async def _lived(
        self,
        question: Question,
        work: Work,
        show: Show | None,
        hear: Hear | None,
        root: RootSpan | Span,
    ) -> tuple[Question, Reply, Delivery]:
        with root as span:
            async with self._forming(question) as draft:
                allowance = await self._allowance(question)
                run = self.run.turn(
                    span=span,
                    journal=self.journal,
                    limits=allowance.narrowed(self.run.limits),
                    show=draft,
                    stop=question.course.stop,
                    before=question.course.before,
                )
                if allowance.used_up:
                    run = replace(run, deps=replace(deps_of(run), models={}))
                question.course.ledger, question.course.allowance = run.ledger, allowance
                if hear is not None:
                    question = replace(question, text=await hear(run))
                    if not is_chosen() and (heard := spoken_in(question.text)):
                        speak(heard)
                    span.update(input=question.text)
                care = await self.carer.care_for(
                    question.text, question.chat_id, question.user_id, span
                )
                told = question.course.facts
                person = await self.person(question.chat_id, question.user_id, care, told)
                own = settings_of(person.facts)
                if span.trace is not None:
                    span.trace.is_hidden = own.get("traces") == "numbers"
                run = replace(run, deps=replace(deps_of(run), person=person))
                work = self.carer.work(person, work, is_look_up=question.kind in LOOK_UPS)
                reply = await self._within_budget(question, run, await worked_on(run, work))
                record_turn(span, reply)
                if own.get("temperature") == FAHRENHEIT and question.kind == "chat":
                    reply = replace(reply, text=in_fahrenheit(reply.text))
                reply = await self._with_what_was_lost(question, reply)
            messages = rendered(reply, show)
            if question.to is not None:
                *others, last = messages
                further = self.follow_ups(question, reply)
                further += self.rating(question.id) if reply.outcome != "care" else ()
                messages = [*others, replace(last, buttons=last.buttons + further)]
            delivery = await self._send(question, messages, span)
            if reply.audio and question.to is not None and self.sender is not None:
                await self.sender.send_file(question.to, SPOKEN, reply.audio, kind="voice")
        return question, replace(reply, spent=run.ledger.spent), delivery

    async def person(
        self, chat_id: int, user_id: int, care: Care, told: Sequence[Fact] | None = None
    ) -> Person:
        """What is known of who asks, `told` where it was read; care alone if that cannot be."""
        memory = self.memory
        if memory is None or not user_id:
            return Person(care)

        async def remembered() -> Person:
            facts = await memory.facts(user_id) if told is None else told
            is_seen = chat_id == user_id or Fact("setting", SHARED.format(chat_id)) in facts
            bottles = await memory.bottles(user_id) if is_seen else ()
            held = {each.value for each in facts if each.kind == "allergy"}
            held |= {"under_age"} if Fact("setting", UNDER_AGE) in facts else set()
            return Person(care.holding(held), tuple(facts), tuple(bottles), user_id)

        what = "What is remembered of a person could not be read"
        return await or_else(remembered, Person(care), what)

    async def _keep_broken(self, question: Question, root: Span, error: BaseException) -> None:
        """Keep what is left of a turn that nobody runs again: who asked has gone, say."""
        if self.journal is NO_JOURNAL and root.trace is not None:
            reply = Reply(text="", outcome="failed", error_types=(type(error).__name__,))
            await self._keep(replace(question, remembered=False), reply, Delivery(), root)

    async def _with_what_was_lost(self, question: Question, reply: Reply) -> Reply:
        """The reply, which says so if the one before it may not have arrived."""
        if self.last_errors is None or question.to is None:
            return reply
        read = partial(self.last_errors, question.chat_id)
        if MAY_BE_LOST not in await or_else(
            read, (), f"The turn before {question.id} is not known"
        ):
            return reply
        return replace(reply, notes=(*reply.notes, say("may_be_lost")))

    async def helped(self, question: Question) -> bool:
        """Whether somebody in a crisis was told where help is to be had, where no turn is due."""

        async def nothing(run: Run) -> Reply:
            return Reply(text="")

        if not read_care(question.text).is_crisis:
            return False
        await self.turn(question, nothing)
        return True

    async def give_up(self, question: Question, error: str) -> None:
        """Say the last word of a turn that failed for good: to the person, and on its trace."""
        with self._trace(question, goes_on=True) as span:
            reply = Reply(text=say("set_aside"), outcome="failed", error_types=(error,))
            metadata = {"outcome": "failed", "error_types": error}
            span.update(output=reply.text, level="ERROR", metadata=metadata)
            span.score("outcome", "failed", "CATEGORICAL")
            delivery = await self._send(question, [Outgoing(reply.text)], span)
        await self._keep(replace(question, remembered=False), reply, delivery, span)

    def unrecorded_steps(self) -> "Turns":
        """The same, none of whose steps is recorded."""
        sender = replace(self.sender, journal=NO_JOURNAL) if self.sender else None
        return replace(self, journal=NO_JOURNAL, sender=sender)

    async def remember(self, question: Question, reply: Reply) -> None:
        """Make a question and its reply the newest of the chat's conversation."""
        messages, chat_id = self.messages, question.chat_id
        if messages is None:
            return

        async def create() -> None:
            for each in self._said(question, reply):
                await messages.create(
                    chat_id,
                    each.role,
                    each.content,
                    each.wine_ids,
                    turn_id=question.id,
                    thread_id=each.thread_id,
                )

        store = partial(retry_briefly, create)
        await or_else(store, None, f"A turn of chat {chat_id} could not be stored")

    def _said(self, question: Question, reply: Reply) -> tuple[StoredMessage, ...]:
        """What is remembered of a turn: people still get the full text."""
        asked = truncate_at_boundary(question.text, self.max_content_length)
        said = truncate_at_boundary(reply.text, self.max_content_length)
        thread = question.thread_id
        return (
            StoredMessage("user", asked, thread_id=thread, attachment=reply.attachment),
            StoredMessage("assistant", said, reply.wine_ids, thread_id=thread),
        )

    def _trace(self, question: Question, *, goes_on: bool = False) -> RootSpan | Span:
        """The root span of a turn; run again after a crash, it is the same trace."""
        if self.tracer is None:
            return NO_SPAN
        accepted = question.accepted_at
        root = self.tracer.turn(
            input=question.typed or question.text,
            name=question.kind,
            started_ns=int(accepted.timestamp() * 1e9) if accepted else None,
            session=question.session or self.hashed("chat", question.chat_id),
            user=question.user or self.hashed("user", question.user_id),
            trace_id=question.trace_id,
            names=question.names,
            resumable=self.journal is not NO_JOURNAL and not goes_on,
            goes_on=goes_on,
        )
        if question.interruptions:
            root.update(metadata={"resumed": question.interruptions})
        if question.course.trace is not None:
            root.add_superseded(question.course.trace)
        return root

    def _forming(self, question: Question) -> AbstractAsyncContextManager[ShowDraft | None]:
        """Show that the answer forms, until it is there; what takes drafts of it, if any are."""
        if self.drafts is None or question.to is None:
            return nullcontext()
        return self.drafts.forming(question.to, question.id, question.course.placeholder)

    async def _allowance(self, question: Question) -> Allowance:
        """What a turn may use, as a step if there are budgets; all it wants if that is unknown."""
        budgets = self.budgets
        if budgets is None:
            return UNLIMITED
        read = partial(retry_briefly, partial(budgets.allowance, question.id, question.user_id))
        known = partial(or_else, read, UNLIMITED, "What was used today could not be read")
        return await self.journal.step("allowance", known)

    async def _within_budget(self, question: Question, run: Run, reply: Reply) -> Reply:
        """The reply with what is to be told of budgets; one that they left to rules says so."""
        by_rules = reply.outcome == "fallback" or (reply.outcome == "answered" and not run.models)
        allowance = question.course.allowance
        if self.run.models and by_rules and allowance.after(run.ledger.spent).used_up:
            errors = (BUDGET, *reply.error_types)
            reply = replace(reply, outcome="fallback", notes=(), error_types=errors)
        budgets = self.budgets
        if budgets is None:
            return reply
        over = BUDGET in reply.error_types
        note = budgets.note(allowance, run.ledger.spent, is_over=over)
        if note is not None and note.once_on is not None:
            warn = partial(budgets.people.warned, question.user_id, note.once_on)
            what = "Whether a person knows of their budget could not be read"
            is_first = partial(or_else, partial(retry_briefly, warn), False, what)
            note = note if await self.journal.step("warned", is_first) else None
        return replace(reply, notes=(*reply.notes, note.text)) if note else reply

    async def _send(self, question: Question, messages: Sequence[Outgoing], span: Span) -> Delivery:
        """Send an answer; one that Telegram refuses as a whole is replaced by a sentence."""
        delivery, sender, placeholder = Delivery(), self.sender, question.course.placeholder
        if question.to is None or sender is None:
            return delivery
        to = replace(question.to, edits=placeholder.message_id)
        with span.child("telegram.send", "span") as send:
            for number, each in enumerate(messages):
                there = to if number == 0 else to.next
                delivery += await sender.send(there, each.markdown, each.buttons)
                if delivery.error not in (None, "ambiguous"):
                    break
            if delivery.error == "rejected" and not delivery.message_ids:
                delivery += await sender.send(to, say("apology"))
            placeholder.message_id = None
            self.metrics.telegram_send(delivery.error)
            metadata = {
                "message_id": delivery.message_ids[-1] if delivery.message_ids else None,
                "tries": delivery.tries,
                "error": delivery.error,
            }
            send.update(
                metadata=metadata,
                level="ERROR" if delivery.error else "DEFAULT",
                started_ns=delivery.began_ns or None,
                ended_ns=delivery.ended_ns or None,
            )
        if delivery.error not in (None, "ambiguous"):
            span.update(level="ERROR", metadata={"send_error": delivery.error})
        return delivery

    async def _keep(self, question: Question, reply: Reply, delivery: Delivery, span: Span) -> None:
        """Keep what was said, if it is a part of the conversation, and what the turn came to."""
        keep = self.keep
        if keep is None:
            if question.is_remembered:
                await self.remember(question, reply)
            return
        said = self._said(question, reply) if question.is_remembered else ()
        ended = TurnRecord(
            turn_id=question.id,
            chat_id=question.chat_id,
            user_id=question.user_id,
            at=datetime.now(UTC),
            outcome=reply.outcome,
            seconds=reply.seconds,
            requests=reply.spent.requests,
            retries=reply.retries,
            tokens=reply.spent.tokens,
            cost_usd=reply.spent.cost_usd,
            error_types=reply.error_types + LOST_BY.get(delivery.error, ()),
            trace_id=span.trace_id,
            root_id=span.span_id,
            message_ids=delivery.message_ids,
        )
        store = partial(retry_briefly, partial(keep, ended, said, span.trace, reply.changes))
        await or_else(store, None, f"What turn {question.id} took could not be stored")


def rendered(reply: Reply, show: Show | None = None) -> list[Outgoing]:
    """The messages of a reply, its notes below the last."""
    if show is None or reply.answer is None:
        return [Outgoing(reply.shown)]
    *others, last = show(reply.answer)
    return [*others, replace(last, markdown=with_notes(last.markdown, reply.notes))]


async def retry_briefly(call: Callable[[], Awaitable[R]]) -> R:
    """Return what `call` returns, tried again for a second or two: a database is soon back.

    Raises:
        Exception: what the last try raised.
    """
    return await retry(call, tries=BRIEF_TRIES, on=_may_pass, backoff=DATABASE)


async def retry_forever(call: Callable[[], Awaitable[R]]) -> R:
    """Return what `call` returns, however long the database refuses: no turn is lost for that.

    Raises:
        Exception: the call itself is wrong, and would be for ever.
    """
    what = "A call of the database"
    return await retry(call, tries=None, on=_may_pass, backoff=DATABASE, what=what)


def _may_pass(error: Exception) -> bool:
    return not isinstance(error, FOR_GOOD)
