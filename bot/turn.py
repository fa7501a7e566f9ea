"""The turn: one object for the whole life of an update from Telegram.

A question from the terminal, the HTTP API or a command has a turn too.

A handler receives the turn, and collects in it whatever shall happen: replies, changes of stored
data, forgetting. One commit carries all of this out (`db.commit`). The messages are sent only after
the commit. Before it the bot sends only drafts, "typing" and the acknowledgement of a press.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from agent.engine.current_draft import CurrentDraft
from agent.engine.run import (
    NOTHING_BILLED,
    BilledUsage,
    Run,
    Span,
    SpanLevel,
    Stop,
    Usage,
)
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
"""The kind of a turn, which is also the name of its trace."""
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
    """The place of an answer: a chat, a topic of it, and the message it belongs to."""

    chat_id: int
    thread_id: int | None = None
    """The topic of the chat."""
    reply_to: int | None = None
    """The id of the message that the answer replies to."""
    replaced_id: int | None = None
    """The id of the bot's message that the answer replaces."""

    @property
    def is_group(self) -> bool:
        """Return whether the chat is a group."""
        return self.chat_id < 0

    @property
    def for_further_messages(self) -> "Destination":
        """Return the destination of further messages, which neither reply nor replace."""
        return replace(self, reply_to=None, replaced_id=None)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of sending an answer."""

    message_ids: tuple[int, ...] = ()
    requests: int = 0
    """The number of requests to Telegram. It is 0 if there was nothing to send."""
    error: DeliveryError | None = None
    """The last error."""
    began_ns: int = field(default=0, compare=False)
    """The time when sending began, in nanoseconds since the epoch, or 0 if it is not known."""
    ended_ns: int = field(default=0, compare=False)
    """The time when sending ended, in nanoseconds since the epoch, or 0 if it is not known."""
    texts: tuple[str, ...] = field(default=(), compare=False)
    """The delivered messages, as HTML."""

    def __add__(self, later: "Delivery") -> "Delivery":
        """Return the result of this delivery and a later one together."""
        last_error = later.error or self.error
        first_began_ns = self.began_ns or later.began_ns
        last_ended_ns = later.ended_ns or self.ended_ns
        return Delivery(
            message_ids=self.message_ids + later.message_ids,
            requests=self.requests + later.requests,
            error=last_error,
            began_ns=first_began_ns,
            ended_ns=last_ended_ns,
            texts=self.texts + later.texts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question that a turn answers."""

    text: str
    kind: TurnKind = "chat"
    trace_input: str = ""
    """The input that the trace shows. If it is empty, the trace shows `text`."""
    transcribe: Transcribe | None = None
    """Returns the text of a voice question. For a written question it is None."""


class Hold:
    """Says whether this process still runs a turn, and stores the progress of the turn.

    This class is for turns without an update, such as a question from the terminal. Nothing of such
    a turn is stored before its end, so no other process can take it over. Turns of updates use the
    subclass `bot.updates.life.UpdateHold`.
    """

    async def is_current(self) -> bool:
        """Return whether this process still runs the turn. Without an update it always does."""
        return True

    async def save_placeholder(self, message_id: int) -> None:
        """Store the id of the group message that shows the turn's progress.

        Without an update nothing is stored: no other process could use the id.
        """


def _ignore_delivery(delivery: Delivery) -> None:
    return None


@dataclass(slots=True, kw_only=True, eq=False)
class Turn:
    """Holds who asks, the usage of earlier tries, and what the present try has collected.

    A try is one run of the handlers over the update. Another try follows if one fails, or if a
    correction of the user arrives. All tries of a turn share `id`, `stop` and the usage. `restart`
    discards what the last try has collected.
    """

    id: int = field(default_factory=lambda: -1 - secrets.randbits(62))
    """The id of the update, or a random negative number if there is no update."""
    accepted_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    try_number: int = 1
    chat_id: int = 0
    """0 for a question that belongs to no conversation."""
    user_id: int = 0
    """The id of the user who asks.

    An anonymous member of a group has the negative id of the chat. A program, such as a client of
    the HTTP API, has the id 0. Facts and bottles are stored for a user only (`has_memory`).
    """
    to: Destination | None = None
    """The place of the reply in Telegram, or None for a question from elsewhere."""
    trace_session: str = ""
    """The hash or name that stands for the chat in traces."""
    trace_user: str = ""
    """The hash or name that stands for the user in traces."""
    names: tuple[str, ...] = ()
    """Names of people, which are masked in traces."""
    trace_id: str | None = None
    facts: Sequence[Fact] | None = None
    """The facts about the user, or None if they were not read yet."""
    taken_back_turn_id: int | None = None
    """The id of the earlier turn that this one takes back, because its message was edited."""
    taken_back_change: Change | None = None
    """The change of memory that the earlier turn has made, if any."""

    stop: Stop = field(default_factory=Stop)
    budget: RemainingBudget = UNLIMITED
    """The part of the daily budgets that is reserved for the present try."""
    billed_before: BilledUsage = NOTHING_BILLED
    """The requests, tokens and cost of earlier tries."""
    usage: Usage | None = None
    """The usage of the present try, or None before the try has a run.

    Its `billed` starts with `billed_before`, so it is the sum of all tries.
    """
    earlier_trace: TraceRecord | None = None
    """The trace of earlier tries."""
    placeholder_id: int | None = None
    """The id of the message that shows progress in a group. The answer will replace it."""
    calls: WritingCalls = field(default_factory=WritingCalls)
    """The calls of tools that may write. The calls of earlier tries are among them."""

    commit: Commit = field(init=False)
    on_delivery: Callable[[Delivery], None] = _ignore_delivery
    """Called with the result when the messages of the turn have been sent.

    Called with an empty `Delivery` if this process will send nothing, for example because another
    process has taken over the turn.
    """
    hold: Hold = field(default_factory=Hold)

    def __post_init__(self) -> None:
        self.commit = Commit(fence=self._fence())

    @property
    def thread_id(self) -> int:
        """Return the id of the topic, or 0 if there is none."""
        if self.to is None:
            return 0
        return self.to.thread_id or 0

    @property
    def is_group(self) -> bool:
        """Return whether the chat is a group, where others read along."""
        return self.chat_id < 0

    @property
    def has_memory(self) -> bool:
        """Return whether facts and bottles can be stored for the user."""
        return self.user_id > 0

    @property
    def billed(self) -> BilledUsage:
        """Return the requests, tokens and cost of all tries so far."""
        if self.usage is None:
            return self.billed_before
        return self.usage.billed

    @property
    def seconds(self) -> float:
        """Return how many seconds ago the turn was accepted."""
        elapsed = datetime.now(UTC) - self.accepted_at
        # Another machine may have accepted the turn, with a clock that is ahead of this one.
        return max(0.0, elapsed.total_seconds())

    def change(self, *changes: StoredChange) -> None:
        """Collect changes that the commit makes."""
        self.commit.changes.extend(changes)

    def change_memory(self, change: Change) -> None:
        """Collect a change of the user's facts and bottles."""
        self.change(ChangeMemory(change))

    def forget_conversation(self) -> None:
        """Collect the deletion of this conversation."""
        self.change(ForgetConversation(self.chat_id, self.thread_id))

    def forget_user(self) -> None:
        """Collect the deletion of all data of the user."""
        self.change(ForgetUser(self.user_id, self.trace_user))

    def restart(self) -> None:
        """Prepare the next try: discard what was collected, keep the usage and a requested stop."""
        self.billed_before = self.billed
        self.usage = None
        self.calls.begin_try()
        self.facts = None
        self.taken_back_turn_id = None
        self.taken_back_change = None
        self.commit = Commit(fence=self._fence())

    def show(self, question: Question, reply: Reply, *, has_buttons: bool) -> None:
        """Collect the messages that show a reply.

        Outside Telegram nothing is collected: the caller of the runner shows the reply itself.
        `bot.telegram.chat.ChatTurn` overrides this method and the next two.
        """

    async def render(self) -> None:
        """Render the collected messages before the commit. Outside Telegram there are none."""

    @asynccontextmanager
    async def show_progress(self) -> AsyncIterator[CurrentDraft | None]:
        """Show the progress of the turn in the chat until the block ends.

        Yields the draft to which the answer is written while it forms. Yields None if no progress
        is shown, as outside Telegram.
        """
        yield None

    def open_trace(self, open_root: OpenRoot, question: Question) -> Span:
        """Open the root span of the turn.

        All tries, even those before a crash, have the same trace id. The spans of earlier tries in
        this process become a part of the trace, marked as superseded.
        """
        trace = TraceRecord(
            self.trace_id or "",
            session=self.trace_session,
            user=self.trace_user,
            names=self.names,
            name=question.kind,
        )
        trace.is_hidden = hides_words(self.facts or ())
        started_ns = int(self.accepted_at.timestamp() * 1e9)
        root = open_root(trace, question.trace_input or question.text, started_ns)
        if self.try_number > 1:
            root.update(metadata={"resumed": self.try_number - 1})
        if self.earlier_trace is not None:
            # The new root replaces the earlier one, which is the first span.
            for span in self.earlier_trace.spans[1:]:
                # An error of an earlier try must not make the whole trace one with an error.
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

        A reply that is not an answer, such as an apology, is kept out of the history
        (`in_history` is false). Such a reply has no buttons either.
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
        for change in reply.changes:
            self.change_memory(change)
        self.show(question, reply, has_buttons=in_history)

    def complete_commit(self) -> Commit:
        """Return the commit of all that was collected, with its final fence."""
        # The commit was created before the update was parsed, so its fence lacks chat and user.
        self.commit.fence = self._fence()
        return self.commit

    def _history(self, question: Question, reply: Reply) -> tuple[StoredMessage, ...]:
        """Return the question and its answer, cut at `STORED_CHARS`."""
        asked = StoredMessage(
            "user",
            truncate_at_boundary(question.text, STORED_CHARS),
            thread_id=self.thread_id,
            attachment=reply.attachment,
        )
        answered = StoredMessage(
            "assistant",
            truncate_at_boundary(reply.text, STORED_CHARS),
            reply.wine_ids,
            thread_id=self.thread_id,
            answer=reply.stored_answer,
        )
        return asked, answered

    def _fence(self) -> Fence:
        """Return the fence, which keeps the commit from storing what was forgotten meanwhile."""
        return Fence(
            accepted_at=self.accepted_at,
            chat_id=self.chat_id,
            thread_id=self.thread_id,
            user=self.trace_user,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFilter:
    """Selects turns by their ids. None means that any id is selected."""

    id: int | None = None
    chat_id: int | None = None
    thread_id: int | None = None
    user_id: int | None = None

    def selects(self, turn: Turn) -> bool:
        """Return whether a turn has all the ids that are not None."""
        for wanted, actual in (
            (self.id, turn.id),
            (self.chat_id, turn.chat_id),
            (self.thread_id, turn.thread_id),
            (self.user_id, turn.user_id),
        ):
            is_any_allowed = wanted is None
            if not is_any_allowed and wanted != actual:
                return False
        return True

    def as_notice(self) -> Mapping[str, int]:
        """Return the ids that are not None, by name, for a notice to other processes."""
        ids = asdict(self)
        return {name: value for name, value in ids.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RunningTurns:
    """The turns that run in this process, by id."""

    stop_elsewhere: Callable[[Mapping[str, int]], Awaitable[bool]] | None = None
    """Asks other processes to stop turns. The argument is a `TurnFilter` as a notice.

    Returns whether any process has begun a turn of the filter's chat.
    """
    turns: dict[int, Turn] = field(default_factory=dict)

    def add(self, turn: Turn) -> None:
        """Add a turn when it begins."""
        self.turns[turn.id] = turn

    def remove(self, turn: Turn) -> None:
        """Remove a turn when it ends or leaves this process."""
        self.turns.pop(turn.id, None)

    def stop(self, turns: TurnFilter) -> bool:
        """Stop turns of this process. Return whether there are any."""
        is_running = False
        for turn in self.turns.values():
            if turns.selects(turn):
                is_running = True
                turn.stop.request()
        return is_running

    async def stop_everywhere(self, turns: TurnFilter) -> bool:
        """Stop turns of this and all other processes. Return whether there may be any."""
        is_running = self.stop(turns)
        if self.stop_elsewhere is not None:
            is_running |= await self.stop_elsewhere(turns.as_notice())
        return is_running


def hides_words(facts: Sequence[Fact]) -> bool:
    """Return whether the user has chosen that traces keep figures only, and no words."""
    return get_chosen_settings(facts).get("traces") == "numbers"


def trace_delivery(root: Span, delivery: Delivery) -> None:
    """Add the delivery of a turn's messages to its trace."""
    sent_count = len(delivery.message_ids)
    last_id: int | None = None
    if delivery.message_ids:
        last_id = delivery.message_ids[-1]
    level: SpanLevel = "DEFAULT"
    if delivery.error:
        level = "ERROR"
    with root.child(SENDING, "span") as send:
        send.update(
            output="\n\n".join(delivery.texts) or None,
            metadata={
                "message_id": last_id,
                "messages": sent_count,
                "failed_requests": delivery.requests - sent_count,
                "error": delivery.error,
            },
            level=level,
            started_ns=delivery.began_ns or None,
            ended_ns=delivery.ended_ns or None,
        )
    if root.trace is not None:
        root.trace.summarize()
