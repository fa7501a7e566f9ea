"""The life of a turn, whoever asks: traced, within its budget, answered, stored, delivered."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

from agent.care.concerns import Care, read_care
from agent.deps import deps_of
from agent.engine.errors import or_else
from agent.engine.run import Run, ShowDraft
from agent.engine.span import NO_SPAN, Span
from agent.i18n import FAHRENHEIT, in_fahrenheit, is_chosen, say, speak
from agent.memory.changes import with_changes_told
from agent.repositories import (
    EndedTurn,
    MemoryRepository,
    MessageRepository,
    StoredMessage,
    TurnRecord,
)
from agent.text import spoken_in, truncate_at_boundary
from agent.tracing.recorder import Recorder, RootSpan, tell_root
from agent.turn import (
    SHARED,
    UNDER_AGE,
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
from bot.outgoing import Delivery, Destination, Outgoing, Rows
from bot.pending import Course, pending_turn
from bot.retries import retry_briefly
from bot.telegram.drafts import Drafts
from bot.telegram.sender import Sender, message_to, messages_of
from db.models import OutboxRow

log = logging.getLogger(__name__)

SPOKEN: Final = "answer.ogg"
LOOK_UPS: Final = frozenset({"ask", "quotes", "find", "rewrite"})
"""Kinds of turns that answer, or help to answer, from documents or the web."""
Kind = Literal["chat", "ask", "quotes", "find", "rewrite", "label", "voice"]
"""What a turn is; its trace is named so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, who asks it, and where the answer goes.

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
"""Returns the words of a question that was spoken; empty if they were not understood."""
Show = Callable[[Any], Sequence[Outgoing]]
"""Makes the messages of what a reply was made of, its `answer`."""
FollowUps = Callable[[Question, Reply], Rows]
"""Makes the buttons of what may be wanted next of a reply."""
Save = Callable[[EndedTurn, Sequence[OutboxRow]], Awaitable[None]]
"""Stores a turn and its messages to send, whole or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Runs turns; what they need is passed in.

    `run` is what each starts from. Without a `sender` nothing is delivered. `save` stores a turn
    that no update began, the lane that runs it stores any other; without `save` only its `messages`
    are stored. `max_content_length` is how many characters of a message are. `hashed` makes the id
    of a chat or a user unrecognisable for traces, `follow_ups` and `rating` make the buttons under
    an answer. `may_be_lost` tells whether the last answer of a chat may not have arrived.
    `elsewhere` has other processes stop what they work on, and says whether they have begun
    anything in that chat.
    """

    run: Run = field(default_factory=Run)
    tracer: Recorder | None = None
    hashed: Callable[[str, int], str] = lambda kind, value: ""
    sender: Sender | None = None
    drafts: Drafts | None = None
    messages: MessageRepository | None = None
    max_content_length: int = 0
    budgets: Budgets | None = None
    save: Save | None = None
    rating: Callable[[int], Rows] = lambda turn_id: ()
    follow_ups: FollowUps = lambda question, reply: ()
    metrics: Metrics = field(default_factory=Metrics)
    carer: Carer = field(default_factory=Carer)
    may_be_lost: Callable[[int], Awaitable[bool]] | None = None
    memory: MemoryRepository | None = None
    elsewhere: Callable[[Mapping[str, int]], Awaitable[bool]] | None = None
    under_way: dict[int, Question] = field(default_factory=dict)

    async def turn(
        self, question: Question, work: Work, show: Show | None = None, hear: Hear | None = None
    ) -> Reply:
        """Run one turn; its reply is an apology if `work` fails.

        The text of the reply is sent, or the messages that `show` makes of its answer. What is
        asked are the words that `hear` returns, if it is given.
        """
        began, root = question.accepted_at or datetime.now(UTC), self._open_trace(question)
        self.under_way[question.id] = question
        try:
            with root as span:
                question, reply = await self._answer(question, work, hear, span)
            messages = await self._messages(question, reply, show)
        except BaseException as error:
            self.under_way.pop(question.id, None)
            await self._save_broken(question, root, error)
            raise
        seconds = max(0.0, (datetime.now(UTC) - began).total_seconds())
        reply = replace(reply, seconds=seconds)
        await self._commit(question, reply, messages, root)
        self.metrics.turn_ended(
            reply.outcome, seconds=seconds, requests=reply.spent.requests, retries=reply.retries
        )
        return reply

    async def _answer(
        self, question: Question, work: Work, hear: Hear | None, span: Span
    ) -> tuple[Question, Reply]:
        """Return the reply to a question, and the question as it was heard."""
        async with self._show_progress(question) as draft:
            run = await self._begin(question, span, draft)
            if hear is not None:
                question = await self._hear(question, run, hear)
            care = await self.carer.care_for(
                question.text, question.chat_id, question.user_id, span
            )
            facts = question.course.facts
            person = await self.person(question.chat_id, question.user_id, care, facts)
            settings = settings_of(person.facts)
            if span.trace is not None:
                span.trace.is_hidden = settings.get("traces") == "numbers"
            run = replace(run, deps=replace(deps_of(run), person=person))
            work = self.carer.work(person, work, is_look_up=question.kind in LOOK_UPS)
            reply = await worked_on(run, work)
            undo_id = question.id if question.to is not None else 0
            reply = with_changes_told(reply, person, question.text, undo_id)
            reply = await self._within_budget(question, run, reply)
            record_turn(span, reply)
            if settings.get("temperature") == FAHRENHEIT and question.kind == "chat":
                reply = replace(reply, text=in_fahrenheit(reply.text))
            reply = await self._with_lost_note(question, reply)
        return question, replace(reply, spent=run.ledger.spent)

    async def _begin(self, question: Question, span: Span, draft: ShowDraft | None) -> Run:
        """Return the run of a turn, within what the day's budgets leave."""
        allowance = await self._allowance(question)
        run = self.run.turn(
            span=span,
            limits=allowance.narrowed(self.run.limits),
            show=draft,
            stop=question.course.stop,
            before=question.course.before,
        )
        if allowance.used_up:
            run = replace(run, deps=replace(deps_of(run), models={}))
        question.course.ledger, question.course.allowance = run.ledger, allowance
        return run

    async def _hear(self, question: Question, run: Run, hear: Hear) -> Question:
        """Return a spoken question with its words, and answer in their language."""
        question = replace(question, text=await hear(run))
        if not is_chosen() and (language := spoken_in(question.text)):
            speak(language)
        run.span.update(input=question.text)
        return question

    async def _messages(
        self, question: Question, reply: Reply, show: Show | None
    ) -> list[OutboxRow]:
        """Return the messages of a reply, with the buttons that belong under the last."""
        if question.to is None or self.sender is None:
            return []
        *others, last = rendered(reply, show)
        buttons = self.follow_ups(question, reply)
        buttons += self.rating(question.id) if reply.outcome != "care" else ()
        last = replace(last, buttons=last.buttons + buttons)
        to = replace(question.to, edits=question.course.placeholder.message_id)
        messages = list[OutboxRow]()
        for outgoing in (*others, last):
            there = to.next if messages else to
            parts = await messages_of(there, outgoing.markdown, outgoing.buttons)
            for part in parts:
                part.follows = bool(messages)
                messages.append(part)
        if reply.audio:
            messages.append(message_to(to.next, kind="voice", file_name=SPOKEN, file=reply.audio))
        return messages

    async def _commit(
        self, question: Question, reply: Reply, messages: list[OutboxRow], span: Span
    ) -> None:
        """Store a turn and its messages, and deliver them: the lane does, if an update began it."""
        ended = self._ended(question, reply, span)
        deliver = partial(self._record_delivery, question.id, span)
        if ended is not None and ended.record is not None:
            for message in messages:
                message.turn_id = question.id
        question.course.placeholder.message_id = None
        if (turn := pending_turn()) is not None:
            turn.ended += [ended] if ended else []
            turn.messages += messages
            turn.delivered = deliver
        elif self.save is not None and ended is not None:
            store = partial(retry_briefly, partial(self.save, ended, messages))
            await or_else(store, None, f"What turn {question.id} took could not be stored")
        if self.save is None and question.is_remembered:
            await self.remember(question, reply)
        if turn is None:
            deliver(await self.sender.deliver(messages) if self.sender else Delivery())

    def _ended(self, question: Question, reply: Reply, span: Span) -> EndedTurn | None:
        """Return what is stored of a turn; None if turns are not stored."""
        if self.save is None:
            return None
        record = TurnRecord(
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
            error_types=reply.error_types,
            trace_id=span.trace_id,
            root_id=span.span_id,
        )
        said = self._said(question, reply) if question.is_remembered else ()
        return EndedTurn(record, said, span.trace, reply.changes)

    def _record_delivery(self, turn_id: int, root: Span, delivery: Delivery) -> None:
        """End a turn that is delivered: add to its trace what became of its messages."""
        self.under_way.pop(turn_id, None)
        if not delivery.tries:
            return
        self.metrics.telegram_send(delivery.error)
        with root.child("telegram.send", "span") as send:
            send.update(
                metadata={
                    "message_id": delivery.message_ids[-1] if delivery.message_ids else None,
                    "tries": delivery.tries,
                    "error": delivery.error,
                },
                level="ERROR" if delivery.error else "DEFAULT",
                started_ns=delivery.began_ns or None,
                ended_ns=delivery.ended_ns or None,
            )
        if delivery.error not in (None, "ambiguous"):
            root.update(level="ERROR", metadata={"send_error": delivery.error})
        if root.trace is not None:
            tell_root(root.trace)

    async def _save_broken(self, question: Question, root: Span, error: BaseException) -> None:
        """Store the trace of a turn that nobody runs again: who asked has gone, say."""
        if isinstance(error, asyncio.CancelledError):
            question.course.trace = root.trace
        if pending_turn() is not None and isinstance(root, RootSpan) and self.tracer is not None:
            if isinstance(error, Exception):
                self.tracer.hold(root.trace)
            return
        if self.save is None or root.trace is None:
            return
        reply = Reply(text="", outcome="failed", error_types=(type(error).__name__,))
        if (ended := self._ended(replace(question, remembered=False), reply, root)) is not None:
            store = partial(retry_briefly, partial(self.save, ended, ()))
            await or_else(store, None, f"What turn {question.id} took could not be stored")

    async def give_up(self, question: Question, error: str) -> None:
        """Say the last word of a turn that failed for good: to the person, and on its trace."""
        with self._open_trace(question, goes_on=True) as span:
            reply = Reply(text=say("set_aside"), outcome="failed", error_types=(error,))
            metadata = {"outcome": "failed", "error_types": error}
            span.update(output=reply.text, level="ERROR", metadata=metadata)
            span.score("outcome", "failed", "CATEGORICAL")
        question = replace(question, remembered=False)
        to = question.to and replace(question.to, edits=question.course.placeholder.message_id)
        messages = await messages_of(to, reply.text) if to else []
        await self._commit(question, reply, messages, span)

    async def stop_everywhere(self, *, is_forgotten: bool = False, **of: int) -> bool:
        """Stop turns as `stop` does, in other processes too."""
        here = self.stop(is_forgotten=is_forgotten, **of)
        if self.elsewhere is None:
            return here
        return await self.elsewhere({"is_forgotten": is_forgotten, **of}) or here

    def stop(self, *, is_forgotten: bool = False, **of: int) -> bool:
        """Stop the turns of questions with these values in their fields; return whether any runs.

        Of a question that is forgotten at once nothing becomes a part of a conversation.
        """
        under_way = self.under_way.values()
        asked = [one for one in under_way if of == {name: getattr(one, name) for name in of}]
        for question in asked:
            question.course.is_forgotten = is_forgotten
            question.course.stop.ask()
        return bool(asked)

    async def person(
        self, chat_id: int, user_id: int, care: Care, facts: Sequence[Fact] | None = None
    ) -> Person:
        """Return what is known of who asks, `facts` where they were read; care alone on failure."""
        memory = self.memory
        if memory is None or not user_id:
            return Person(care)

        async def remembered() -> Person:
            known = await memory.facts(user_id) if facts is None else facts
            is_seen = chat_id == user_id or Fact("setting", SHARED.format(chat_id)) in known
            bottles = await memory.bottles(user_id) if is_seen else ()
            held = {fact.value for fact in known if fact.kind == "allergy"}
            held |= {"under_age"} if Fact("setting", UNDER_AGE) in known else set()
            return Person(care.holding(held), tuple(known), tuple(bottles), user_id)

        what = "What is remembered of a person could not be read"
        return await or_else(remembered, Person(care), what)

    async def _with_lost_note(self, question: Question, reply: Reply) -> Reply:
        """Return the reply, with a note if the one before it may not have arrived."""
        if self.may_be_lost is None or question.to is None:
            return reply
        read, what = partial(self.may_be_lost, question.chat_id), "The turn before is not known"
        if not await or_else(read, False, what):
            return reply
        return replace(reply, notes=(*reply.notes, say("may_be_lost")))

    async def helped(self, question: Question) -> bool:
        """Tell somebody in a crisis where help is to be had, where no turn is due; else False."""

        async def nothing(run: Run) -> Reply:
            return Reply(text="")

        if not read_care(question.text).is_crisis:
            return False
        await self.turn(question, nothing)
        return True

    async def remember(self, question: Question, reply: Reply) -> None:
        """Make a question and its reply the newest of the chat's conversation."""
        messages, chat_id = self.messages, question.chat_id
        if messages is None:
            return

        async def create() -> None:
            for said in self._said(question, reply):
                await messages.create(
                    chat_id,
                    said.role,
                    said.content,
                    said.wine_ids,
                    turn_id=question.id,
                    thread_id=said.thread_id,
                )

        store = partial(retry_briefly, create)
        await or_else(store, None, f"A turn of chat {chat_id} could not be stored")

    def _said(self, question: Question, reply: Reply) -> tuple[StoredMessage, ...]:
        """Return what is remembered of a turn: people still get the full text."""
        asked = truncate_at_boundary(question.text, self.max_content_length)
        said = truncate_at_boundary(reply.text, self.max_content_length)
        thread = question.thread_id
        return (
            StoredMessage("user", asked, thread_id=thread, attachment=reply.attachment),
            StoredMessage("assistant", said, reply.wine_ids, thread_id=thread),
        )

    def _open_trace(self, question: Question, *, goes_on: bool = False) -> RootSpan | Span:
        """Open the root span of a turn; run again after a crash, it is the same trace."""
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
            goes_on=goes_on,
        )
        if question.interruptions:
            root.update(metadata={"resumed": question.interruptions})
        if question.course.trace is not None:
            root.add_superseded(question.course.trace)
        return root

    def _show_progress(self, question: Question) -> AbstractAsyncContextManager[ShowDraft | None]:
        """Show that the answer forms until it is there; yield what takes drafts of it, or None."""
        if self.drafts is None or question.to is None:
            return nullcontext()
        return self.drafts.forming(question.to, question.id, question.course.placeholder)

    async def _allowance(self, question: Question) -> Allowance:
        """Return what a turn may use; unlimited if there are no budgets or the read fails."""
        if self.budgets is None:
            return UNLIMITED
        read = partial(self.budgets.allowance, question.id, question.user_id)
        what = "What was used today could not be read"
        return await or_else(partial(retry_briefly, read), UNLIMITED, what)

    async def _within_budget(self, question: Question, run: Run, reply: Reply) -> Reply:
        """Return the reply with a note on budgets; it is a fallback if they left no model."""
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
            is_first = await or_else(partial(retry_briefly, warn), False, what)
            note = note if is_first else None
        return replace(reply, notes=(*reply.notes, note.text)) if note else reply


def rendered(reply: Reply, show: Show | None = None) -> list[Outgoing]:
    """Return the messages of a reply, its notes below the last."""
    if show is None or reply.answer is None:
        return [Outgoing(reply.shown)]
    *others, last = show(reply.answer)
    return [*others, replace(last, markdown=with_notes(last.markdown, reply.notes))]
