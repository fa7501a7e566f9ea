"""The turn: one object for the whole life of an update, or of a question from elsewhere.

A handler gets it, and what it wants done it collects here: replies, changes, forgetting. One commit
carries that out (`db.commit`); only then are messages sent. Before the commit only drafts, typing
and the acknowledgement of a press go out.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from agent.engine.parsing import CurrentDraft
from agent.engine.run import NOTHING_BILLED, BilledUsage, Run, Span, Stop, Usage
from agent.language import truncate_at_boundary
from agent.size_limits import STORED_CHARS
from agent.tracing.records import SENDING, TraceRecord
from agent.turn import Change, Fact, Reply, StoredMessage, get_chosen_settings
from agent.writing_calls import WritingCalls
from db.budgets import UNLIMITED, RemainingBudget
from db.changes.base import StoredChange
from db.changes.forgetting import ForgetConversation, ForgetUser
from db.changes.memory import ChangeMemory
from db.commit import Commit, Fence
from db.models import TurnRow

TurnKind = Literal["chat", "ask", "quotes", "find", "rewrite", "label", "voice"]
"""The kind of a turn; its trace has this name."""
OpenRoot = Callable[[TraceRecord, str, int], Span]
"""Opens the root span of a trace with an input, at a time in nanoseconds since the epoch."""
Transcribe = Callable[[Run], Awaitable[str]]
DeliveryError = Literal[
    "unreachable",  # the user blocked the bot, or the chat does not exist
    "rejected",  # Telegram rejected the message itself
    "ambiguous",  # the message may or may not have arrived
    "rate_limited",  # Telegram asked to wait, too often
    "network",  # Telegram could not be reached
]


@dataclass(frozen=True, slots=True)
class Destination:
    """The chat of an answer, and its position there."""

    chat_id: int
    thread_id: int | None = None
    """The topic of the chat."""
    reply_to: int | None = None
    """The id of the message that the answer replies to."""
    edits: int | None = None
    """The id of the bot's message that the answer replaces."""

    @property
    def is_group(self) -> bool:
        """Return whether the chat is a group."""
        return self.chat_id < 0

    @property
    def next(self) -> "Destination":
        """Return the destination of further messages, which neither reply nor replace."""
        return replace(self, reply_to=None, edits=None)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of sending an answer."""

    message_ids: tuple[int, ...] = ()
    tries: int = 0
    """The number of requests."""
    error: DeliveryError | None = None
    """The last error."""
    began_ns: int = field(default=0, compare=False)
    """The time when sending began, in nanoseconds since the epoch."""
    ended_ns: int = field(default=0, compare=False)
    texts: tuple[str, ...] = field(default=(), compare=False)
    """The delivered messages, as HTML."""

    def __add__(self, later: "Delivery") -> "Delivery":
        return Delivery(
            self.message_ids + later.message_ids,
            self.tries + later.tries,
            later.error or self.error,
            self.began_ns or later.began_ns,
            later.ended_ns or self.ended_ns,
            self.texts + later.texts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Holds what is asked in a turn."""

    text: str
    kind: TurnKind = "chat"
    typed: str = ""
    """The input shown in the trace, if it differs from `text`."""
    transcribe: Transcribe | None = None
    """Returns the text of a voice question."""


class Hold:
    """The hold on a turn that no update began: no other process can take it over.

    Nothing of such a turn is stored before its end, because no other try follows. The hold on the
    turn of an update is `bot.updates.life.UpdateHold`.
    """

    async def is_current(self) -> bool:
        """Return whether no other process has taken over the turn."""
        return True

    async def save_placeholder(self, message_id: int) -> None:
        """Store the id of the message that shows the progress of a turn in a group."""


def _ignore_delivery(delivery: Delivery) -> None:
    return None


@dataclass(slots=True, kw_only=True, eq=False)
class Turn:
    """Holds who asks, what earlier tries left, and what this try has collected.

    An update has several tries, if one fails or if a correction arrives. `id`, `stop` and what was
    spent are the same for all; `restart` empties what was collected.
    """

    id: int = field(default_factory=lambda: -1 - secrets.randbits(62))
    """The id of the update; a random negative number for other questions."""
    accepted_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    try_number: int = 1
    chat_id: int = 0
    """0 for a question that belongs to no conversation."""
    user_id: int = 0
    """The user to whom facts and bottles belong. A negative id is that of a chat, which stands for
    its anonymous members; 0 is a program. Neither owns anything."""
    to: Destination | None = None
    """The place of the reply in Telegram; None elsewhere."""
    session: str = ""
    """The name of the chat in traces."""
    user: str = ""
    """The name of the user in traces."""
    names: tuple[str, ...] = ()
    """Names of people, which are masked in traces."""
    trace_id: str | None = None
    facts: Sequence[Fact] | None = None
    """The facts about the user; None if they were not read yet."""
    taken_back_id: int | None = None
    """The id of the earlier turn that this one takes back, because its message was edited."""
    taken_back: Change | None = None
    """The change of memory that the earlier turn has made; None if there was none."""

    stop: Stop = field(default_factory=Stop)
    budget: RemainingBudget = UNLIMITED
    """What the present try may use, and has reserved."""
    billed_before: BilledUsage = NOTHING_BILLED
    """The usage of earlier tries."""
    usage: Usage | None = None
    """The usage of the present try; what it has spent includes earlier tries."""
    earlier_trace: TraceRecord | None = None
    """The trace of earlier tries."""
    placeholder_id: int | None = None
    """The id of the message that showed progress in a group; the answer replaces it."""
    calls: WritingCalls = field(default_factory=WritingCalls)
    """The calls of tools that may write, those of earlier tries too."""

    commit: Commit = field(init=False)
    on_delivery: Callable[[Delivery], None] = _ignore_delivery
    """Called with the result of sending, and with an empty `Delivery` when the turn leaves here."""
    hold: Hold = field(default_factory=Hold)

    def __post_init__(self) -> None:
        self.commit = Commit(fence=self._fence())

    @property
    def thread_id(self) -> int:
        """Return the id of the topic; 0 if there is none."""
        return (self.to.thread_id or 0) if self.to else 0

    @property
    def is_group(self) -> bool:
        """Return whether others read along."""
        return self.chat_id < 0

    @property
    def has_memory(self) -> bool:
        """Return whether facts and bottles can be stored for the user."""
        return self.user_id > 0

    @property
    def billed(self) -> BilledUsage:
        """Return the usage of all tries so far."""
        return self.usage.billed if self.usage else self.billed_before

    @property
    def seconds(self) -> float:
        """Return how many seconds ago the turn was accepted."""
        return max(0.0, (datetime.now(UTC) - self.accepted_at).total_seconds())

    def change(self, *changes: StoredChange) -> None:
        """Collect changes that the commit makes."""
        self.commit.changes.extend(changes)

    def change_memory(self, **fields: Any) -> None:
        """Collect a change of the user's facts and bottles; `fields` are those of `Change`."""
        self.change(ChangeMemory(Change(user_id=self.user_id, **fields)))

    def forget_conversation(self) -> None:
        """Collect the deletion of this conversation."""
        self.change(ForgetConversation(self.chat_id, self.thread_id))

    def forget_user(self) -> None:
        """Collect the deletion of all data of the user."""
        self.change(ForgetUser(self.user_id, self.user))

    def restart(self) -> None:
        """Prepare another try: keep the usage and a requested stop, discard what was collected."""
        self.billed_before = self.billed
        self.usage = None
        if (
            not self.stop.is_requested
        ):  # an old Stop is bound to the block that has ended
            self.stop = Stop()
        if self.calls.made:
            self.calls.begin_try()
        self.facts = None
        self.taken_back_id, self.taken_back = None, None
        self.commit = Commit(fence=self._fence())

    def show(self, question: Question, reply: Reply, *, has_buttons: bool) -> None:
        """Collect the messages that show a reply; only a chat in Telegram has any."""

    async def render(self) -> None:
        """Render the collected messages before the commit; only a chat in Telegram has any."""

    @asynccontextmanager
    async def show_progress(self) -> AsyncIterator[CurrentDraft | None]:
        """Show the draft that is yielded until the block ends; yield None if none is shown."""
        yield None

    def open_trace(self, open_root: OpenRoot, question: Question) -> Span:
        """Open the root span of the turn.

        All tries, even those before a crash, have the same trace id. The spans of earlier tries in
        this process become a part of the trace, marked as superseded.
        """
        trace = TraceRecord(
            self.trace_id or "",
            session=self.session,
            user=self.user,
            names=self.names,
            name=question.kind,
        )
        # The user may have chosen that traces have only numbers, no texts.
        trace.is_hidden = (
            get_chosen_settings(self.facts or ()).get("traces") == "numbers"
        )
        started_ns = int(self.accepted_at.timestamp() * 1e9)
        root = open_root(trace, question.typed or question.text, started_ns)
        if self.try_number > 1:
            root.update(metadata={"resumed": self.try_number - 1})
        # Not the root.
        earlier_spans = self.earlier_trace.spans[1:] if self.earlier_trace else []
        for span in earlier_spans:
            span.level = "DEFAULT"
            span.metadata["superseded"] = True
            trace.spans.append(span)
        return root

    def end(
        self,
        question: Question,
        reply: Reply,
        trace: TraceRecord | None,
        *,
        in_history: bool = True,
    ) -> None:
        """Collect the record of the turn, its changes, its trace and its messages.

        What does not go into the history, as an apology, has no buttons either.
        """
        self.commit.trace = trace
        self.commit.record = TurnRow(
            turn_id=self.id,
            chat_id=self.chat_id,
            user_id=self.user_id,
            at=datetime.now(UTC),
            outcome=reply.outcome,
            seconds=reply.seconds,
            requests=reply.billed.requests,
            retries=reply.retries,
            cost_usd=reply.billed.cost_usd,
            trace_id=trace.trace_id if trace else None,
            root_id=trace.root.span_id if trace else None,
            lack=reply.lack,
            hides_words=trace is not None and trace.is_hidden,
        )
        if in_history and self.chat_id:
            self.commit.history = self._history(question, reply)
        self.change(*(ChangeMemory(change) for change in reply.changes))
        self.show(question, reply, has_buttons=in_history)

    def collected(self) -> Commit:
        """Return all that was collected, to be committed."""
        # Who asks is known only after the update was parsed.
        self.commit.fence = self._fence()
        return self.commit

    def _history(self, question: Question, reply: Reply) -> tuple[StoredMessage, ...]:
        """Return the question and its answer, cut at `STORED_CHARS`."""
        asked = truncate_at_boundary(question.text, STORED_CHARS)
        answered = truncate_at_boundary(reply.text, STORED_CHARS)
        thread_id = self.thread_id
        return (
            StoredMessage(
                "user", asked, thread_id=thread_id, attachment=reply.attachment
            ),
            StoredMessage(
                "assistant",
                answered,
                reply.wine_ids,
                thread_id=thread_id,
                answer=reply.stored_answer,
            ),
        )

    def _fence(self) -> Fence:
        return Fence(
            accepted_at=self.accepted_at,
            chat_id=self.chat_id,
            thread_id=self.thread_id,
            user=self.user,
        )


@dataclass(frozen=True, slots=True)
class RunningTurns:
    """The turns, by id, that run in this process.

    `stop_elsewhere` asks other processes to stop turns. It returns whether a turn of that chat has
    begun in any process.
    """

    stop_elsewhere: Callable[[Mapping[str, int]], Awaitable[bool]] | None = None
    turns: dict[int, Turn] = field(default_factory=dict)

    def add(self, turn: Turn) -> None:
        """Add a turn when it begins."""
        self.turns[turn.id] = turn

    def remove(self, turn: Turn) -> None:
        """Remove a turn when it ends or leaves this process."""
        self.turns.pop(turn.id, None)

    def stop(self, **fields: int) -> bool:
        """Stop the turns with these field values; return whether there are any."""
        is_running = False
        for turn in self.turns.values():
            if all(getattr(turn, name) == value for name, value in fields.items()):
                is_running = True
                turn.stop.request()
        return is_running

    async def stop_everywhere(self, **fields: int) -> bool:
        """Stop turns like `stop`, also in other processes."""
        is_running = self.stop(**fields)
        if self.stop_elsewhere is not None:
            is_running |= await self.stop_elsewhere(fields)
        return is_running


def trace_delivery(root: Span, delivery: Delivery) -> None:
    """Add the delivery of a turn's messages to its trace."""
    with root.child(SENDING, "span") as send:
        send.update(
            output="\n\n".join(delivery.texts) or None,
            metadata={
                "message_id": delivery.message_ids[-1]
                if delivery.message_ids
                else None,
                "messages": len(delivery.message_ids),
                "failed_requests": delivery.tries - len(delivery.message_ids),
                "error": delivery.error,
            },
            level="ERROR" if delivery.error else "DEFAULT",
            started_ns=delivery.began_ns or None,
            ended_ns=delivery.ended_ns or None,
        )
    if root.trace is not None:
        root.trace.summarize()
