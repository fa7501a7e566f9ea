"""The life of a turn: begin, read the user once, run, commit, send."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from agent.care.concerns import read_care
from agent.deps import deps_of
from agent.engine.errors import or_else
from agent.engine.run import Run, ShowDraft
from agent.engine.span import NO_SPAN, Span
from agent.i18n import FAHRENHEIT, in_fahrenheit, is_chosen, say, speak
from agent.memory.changes import with_changes_told
from agent.text import language_of
from agent.tracing.recorder import Recorder, RootSpan
from agent.tracing.records import TraceRecord
from agent.turn import Person, Reply, Work, settings_of, worked_on
from agent.turn_trace import BUDGET, record_turn
from bot.budgets import UNLIMITED, Budgets
from bot.care import Carer
from bot.metrics import Metrics
from bot.outgoing import Delivery, Rows
from bot.pending import pending_turn
from bot.question import Question, RunningTurns
from bot.retries import retry_briefly
from bot.telegram.drafts import Drafts
from bot.telegram.replies import Show, reply_messages
from bot.telegram.sender import Sender, messages_of
from bot.turn_record import conversation_part, ended_turn, seconds_since, trace_delivery
from db.models import OutboxRow
from db.records import EndedTurn
from db.repositories.people import MessageRepository

STORED_CHARS: Final = 2000
"""The characters of a message that are stored at most; users get the full text."""
LOOK_UPS: Final = frozenset({"ask", "quotes", "find", "rewrite"})
"""Kinds of turns that answer, or help to answer, from documents or the web."""

Hear = Callable[[Run], Awaitable[str]]
"""Returns the words of a spoken question; empty if they were not understood."""
Save = Callable[[EndedTurn, Sequence[OutboxRow]], Awaitable[None]]
"""Stores a turn and its messages to send, whole or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Runs turns.

    Every turn starts from `run`. Without a `sender` nothing is delivered. `save` stores a turn that
    no update began; the lane that runs an update stores its turn. `hashed` makes the ids of chats
    and users unrecognisable for traces, `buttons` makes those below an answer. `may_be_lost`
    returns whether the last answer of a chat may not have arrived.
    """

    run: Run = field(default_factory=Run)
    carer: Carer = field(default_factory=Carer)
    budgets: Budgets | None = None
    tracer: Recorder | None = None
    hashed: Callable[[str, int], str] = lambda kind, value: ""
    metrics: Metrics = field(default_factory=Metrics)
    sender: Sender | None = None
    drafts: Drafts | None = None
    buttons: Callable[[Question, Reply], Rows] = lambda question, reply: ()
    messages: MessageRepository | None = None
    save: Save | None = None
    may_be_lost: Callable[[int], Awaitable[bool]] | None = None
    running: RunningTurns = field(default_factory=RunningTurns)

    async def turn(
        self, question: Question, work: Work, show: Show | None = None, hear: Hear | None = None
    ) -> Reply:
        """Run one turn and return its reply, an apology if `work` fails.

        The text of the reply is sent, or the messages that `show` makes of its answer. If `hear` is
        given, the question is the words that it returns.
        """
        began = question.accepted_at or datetime.now(UTC)
        question = replace(question, accepted_at=began)
        root = self._open_trace(question)
        self.running.add(question)
        try:
            with root as span:
                question, reply = await self._answer(question, work, hear, span)
            messages = await self._messages(question, reply, show)
        except BaseException as error:
            self.running.remove(question.id)
            await self._store_aborted(question, root, error)
            raise
        await self._commit(question, reply, messages, root)
        self.metrics.turn_ended(
            reply.outcome,
            seconds=reply.seconds,
            requests=reply.spent.requests,
            retries=reply.retries,
        )
        return reply

    async def _answer(
        self, question: Question, work: Work, hear: Hear | None, span: Span
    ) -> tuple[Question, Reply]:
        """Return the question as it was understood, and its reply."""
        async with self._show_progress(question) as show_draft:
            run = await self._begin(question, span, show_draft)
            if hear is not None:
                question = await self._transcribe(question, run, hear)
            person = await self._read_person(question, span)
            run = replace(run, deps=replace(deps_of(run), person=person))
            work = self.carer.work(person, work, is_look_up=question.kind in LOOK_UPS)
            reply = await worked_on(run, work)
            return question, await self._finish(question, run, person, reply)

    async def _begin(self, question: Question, span: Span, show_draft: ShowDraft | None) -> Run:
        """Return the run of a turn, within the remaining budgets of the day."""
        state, allowance = question.state, UNLIMITED
        if self.budgets is not None:
            allowance = await self.budgets.begin(question.id, question.user_id)
        run = self.run.turn(
            span=span,
            limits=allowance.narrowed(self.run.limits),
            show=show_draft,
            stop=state.stop,
            before=state.before,
        )
        if allowance.used_up:
            run = replace(run, deps=replace(deps_of(run), models={}))
        state.ledger, state.allowance = run.ledger, allowance
        return run

    async def _transcribe(self, question: Question, run: Run, hear: Hear) -> Question:
        """Return a spoken question with its words, and answer in their language."""
        question = replace(question, text=await hear(run))
        if not is_chosen() and (language := language_of(question.text)):
            speak(language)
        run.span.update(input=question.text)
        return question

    async def _read_person(self, question: Question, span: Span) -> Person:
        """Read once what is known of the user; their settings decide what the trace shows."""
        user_id, chat_id = question.user_id, question.chat_id
        care = await self.carer.care_for(question.text, chat_id, user_id, span)
        person = await self.carer.person(chat_id, user_id, care, question.state.facts)
        if span.trace is not None:
            span.trace.is_hidden = settings_of(person.facts).get("traces") == "numbers"
        return person

    async def _finish(self, question: Question, run: Run, person: Person, reply: Reply) -> Reply:
        """Return the reply with its notes and its usage, and record it in the trace."""
        undo_id = question.id if question.to is not None else 0
        reply = with_changes_told(reply, person, question.text, undo_id)
        reply = await self._with_budget_notes(question, run, reply)
        record_turn(run.span, reply)
        text, notes = reply.text, reply.notes
        if settings_of(person.facts).get("temperature") == FAHRENHEIT and question.kind == "chat":
            text = in_fahrenheit(text)
        if await self._may_be_lost(question):
            notes = (*notes, say("may_be_lost"))
        seconds = seconds_since(question.accepted_at)
        return replace(reply, text=text, notes=notes, spent=run.ledger.spent, seconds=seconds)

    async def _with_budget_notes(self, question: Question, run: Run, reply: Reply) -> Reply:
        """Return the reply with notes on budgets; it is a fallback if they forbade the model."""
        if self.budgets is None:
            return reply
        allowance, spent = question.state.allowance, run.ledger.spent
        by_rules = reply.outcome == "fallback" or (reply.outcome == "answered" and not run.models)
        if self.run.models and by_rules and allowance.after(spent).used_up:
            errors = (BUDGET, *reply.error_types)
            reply = replace(reply, outcome="fallback", notes=(), error_types=errors)
        is_over = BUDGET in reply.error_types
        notes = await self.budgets.notes(allowance, spent, question.user_id, is_over=is_over)
        return replace(reply, notes=(*reply.notes, *notes))

    async def _may_be_lost(self, question: Question) -> bool:
        """Return whether the answer before this one may not have arrived."""
        if self.may_be_lost is None or question.to is None:
            return False
        read = partial(self.may_be_lost, question.chat_id)
        return await or_else(read, False, "The last answer could not be read")

    async def _messages(
        self, question: Question, reply: Reply, show: Show | None
    ) -> list[OutboxRow]:
        """Return the messages of a reply; the first replaces the message that showed progress."""
        if question.to is None or self.sender is None:
            return []
        to = replace(question.to, edits=question.state.placeholder.message_id)
        buttons = self.buttons(question, reply)
        return await reply_messages(reply, to, buttons=buttons, show=show)

    async def _commit(
        self, question: Question, reply: Reply, messages: list[OutboxRow], root: Span
    ) -> None:
        """Store a turn and send its messages; the lane does both if an update began it."""
        ended = ended_turn(question, reply, root, STORED_CHARS)
        for message in messages:
            message.turn_id = question.id
        question.state.placeholder.message_id = None
        record_delivery = partial(self._record_delivery, question.id, root)
        if (pending := pending_turn()) is not None:
            pending.ended.append(ended)
            pending.messages += messages
            pending.delivered = record_delivery
            return
        await self._save(ended, messages)
        record_delivery(await self.sender.deliver(messages) if self.sender else Delivery())

    async def _save(self, ended: EndedTurn, messages: Sequence[OutboxRow] = ()) -> None:
        """Store a turn; a user gets the answer even if the database stays away."""
        if (save := self.save) is not None:
            store = partial(retry_briefly, lambda: save(ended, messages))
            await or_else(store, None, "A turn could not be stored")

    def _record_delivery(self, turn_id: int, root: Span, delivery: Delivery) -> None:
        """End a turn that was sent, and add the delivery of its messages to the trace."""
        self.running.remove(turn_id)
        if delivery.tries:
            self.metrics.telegram_send(delivery.error)
            trace_delivery(root, delivery)

    async def _store_aborted(
        self, question: Question, root: RootSpan | Span, error: BaseException
    ) -> None:
        """Keep the trace of a turn that was cut off or failed before it had a reply."""
        if isinstance(error, asyncio.CancelledError):
            # A correction may have cancelled it: the next try of the turn goes on with this trace.
            question.state.trace = root.trace
        if pending_turn() is None:
            reply = Reply(text="", outcome="failed", error_types=(type(error).__name__,))
            question = replace(question, remembered=False)
            await self._save(ended_turn(question, reply, root))
        elif isinstance(error, Exception) and isinstance(root, RootSpan) and self.tracer:
            self.tracer.hold(root.trace)

    async def give_up(self, question: Question, error: str) -> None:
        """End a turn that failed for good: tell the user, and record it in the trace."""
        reply = Reply(text=say("set_aside"), outcome="failed", error_types=(error,))
        with self._open_trace(question, goes_on=True) as root:
            metadata = {"outcome": "failed", "error_types": error}
            root.update(output=reply.text, level="ERROR", metadata=metadata)
            root.score("outcome", "failed", "CATEGORICAL")
        to = question.to and replace(question.to, edits=question.state.placeholder.message_id)
        messages = await messages_of(to, reply.text) if to else []
        await self._commit(replace(question, remembered=False), reply, messages, root)

    async def offer_help(self, question: Question) -> bool:
        """Offer help to a user in a crisis, where no turn is due; return whether it was needed."""

        async def nothing(run: Run) -> Reply:
            return Reply(text="")

        if not read_care(question.text).is_crisis:
            return False
        await self.turn(question, nothing)
        return True

    async def remember(self, question: Question, reply: Reply) -> None:
        """Add a question and its reply to the conversation of the chat."""
        if (messages := self.messages) is None:
            return
        for message in conversation_part(question, reply, STORED_CHARS):
            create = partial(
                messages.create,
                question.chat_id,
                message.role,
                message.content,
                message.wine_ids,
                turn_id=question.id,
                thread_id=message.thread_id,
            )
            store = partial(retry_briefly, create)
            await or_else(store, None, "A conversation could not be stored")

    def _open_trace(self, question: Question, *, goes_on: bool = False) -> RootSpan | Span:
        """Open the root span of a turn; run again after a crash, it is the same trace."""
        if self.tracer is None:
            return NO_SPAN
        accepted = question.accepted_at
        trace = TraceRecord(
            question.trace_id or "",
            session=question.session or self.hashed("chat", question.chat_id),
            user=question.user or self.hashed("user", question.user_id),
            names=question.names,
            name=question.kind,
        )
        started_ns = int(accepted.timestamp() * 1e9) if accepted else None
        text = question.typed or question.text
        root = self.tracer.turn(trace, text, started_ns=started_ns, goes_on=goes_on)
        if question.interruptions:
            root.update(metadata={"resumed": question.interruptions})
        if question.state.trace is not None:
            root.add_superseded(question.state.trace)
        return root

    def _show_progress(self, question: Question) -> AbstractAsyncContextManager[ShowDraft | None]:
        """Show a typing indicator or drafts until the block ends; yield what shows a draft."""
        if self.drafts is None or question.to is None:
            return nullcontext()
        return self.drafts.forming(question.to, question.id, question.state.placeholder)
