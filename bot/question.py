"""Define questions, the state and records of their turns, and the delivery of their answers."""

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal

from agent.engine.run import NOTHING_SPENT, Ledger, Run, Span, Spent, Stop
from agent.language import truncate_at_boundary
from agent.tracing.records import TraceRecord
from agent.turn import Change, Fact, Reply, StoredMessage
from db.models import OutboxRow, TurnRow, UpdateRow
from db.repositories.turns import EndedTurn

Kind = Literal["chat", "ask", "quotes", "find", "rewrite", "label", "voice"]
"""The kind of a turn; its trace has this name."""
OpenRoot = Callable[[TraceRecord, str, int], Span]
"""Opens the root span of a trace with an input, at a time in nanoseconds since the epoch."""
MAX_STORED_CHARS: Final = 2000
"""Maximum characters of a message that are stored; users get the full text."""
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

    def __add__(self, later: "Delivery") -> "Delivery":
        return Delivery(
            self.message_ids + later.message_ids,
            self.tries + later.tries,
            later.error or self.error,
            self.began_ns or later.began_ns,
            later.ended_ns or self.ended_ns,
        )


@dataclass(slots=True, kw_only=True)
class TurnState:
    """The state of a turn, which all its tries share."""

    stop: Stop = field(default_factory=Stop)
    spent_before: Spent = NOTHING_SPENT
    """The usage of earlier tries."""
    trace: TraceRecord | None = None
    """The trace of earlier tries."""
    ledger: Ledger | None = None
    """The usage of the present try."""
    placeholder_id: int | None = None
    """The id of the message that showed progress in a group; the answer replaces it."""
    facts: Sequence[Fact] | None = None
    """The facts about the user; None if they were not read before the turn began."""
    is_forgotten: bool = False
    """Whether the user deleted the conversation during the turn."""

    @property
    def spent(self) -> Spent:
        """Return the usage of all tries so far."""
        return self.ledger.spent if self.ledger else self.spent_before


@dataclass(slots=True, kw_only=True)
class CurrentTurn(TurnState):
    """The turn of an update while it is handled; the lists are committed together at its end."""

    update: UpdateRow
    messages: list[OutboxRow] = field(default_factory=list)
    ended: list[EndedTurn] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    on_delivery: Callable[[Delivery], None] = lambda delivery: None
    """Called with the result of sending, and with an empty `Delivery` when the turn leaves here."""

    def restart(self) -> None:
        """Prepare for another try: keep the usage, discard the collected messages and changes."""
        self.spent_before = self.spent
        self.ledger = None
        self.stop = Stop()
        self.messages, self.ended, self.changes = [], [], []


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, the user who asks it, and the destination of the answer."""

    text: str
    id: int = field(default_factory=lambda: -1 - secrets.randbits(62))
    """The id of the update; a random negative number for other questions."""
    chat_id: int = 0
    user_id: int = 0
    session: str = ""
    """The name of the chat in traces."""
    user: str = ""
    """The name of the user in traces."""
    names: tuple[str, ...] = ()
    """Names of people, which are masked in traces."""
    trace_id: str | None = None
    to: Destination | None = None
    """Without a destination the reply is only returned."""
    in_history: bool = True
    """Whether to store the question and its answer in the conversation."""
    kind: Kind = "chat"
    typed: str = ""
    """The input shown in the trace, if it differs from `text`."""
    accepted_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    interruptions: int = 0
    """The number of earlier tries."""
    state: TurnState = field(default_factory=TurnState)
    transcribe: Callable[[Run], Awaitable[str]] | None = None
    """Returns the text of a voice question."""

    @property
    def thread_id(self) -> int:
        """Return the id of the topic; 0 if there is none."""
        return (self.to.thread_id or 0) if self.to else 0

    @property
    def is_remembered(self) -> bool:
        """Return whether the question and its answer are stored in the conversation."""
        return self.in_history and not self.state.is_forgotten

    @property
    def seconds(self) -> float:
        """Return how many seconds ago the question was accepted."""
        return max(0.0, (datetime.now(UTC) - self.accepted_at).total_seconds())


@dataclass(frozen=True, slots=True)
class RunningTurns:
    """The questions, by id, whose turns run in this process.

    `stop_elsewhere` asks other processes to stop turns. It returns whether a turn of that chat has
    begun in any process.
    """

    stop_elsewhere: Callable[[Mapping[str, int]], Awaitable[bool]] | None = None
    questions: dict[int, Question] = field(default_factory=dict)

    def add(self, question: Question) -> None:
        """Add a question when its turn begins."""
        self.questions[question.id] = question

    def remove(self, question: Question) -> None:
        """Remove a question when its turn ends or leaves this process."""
        self.questions.pop(question.id, None)

    def stop(self, *, is_forgotten: bool = False, **fields: int) -> bool:
        """Stop the turns of the questions with these field values; return whether there are any.

        If `is_forgotten`, their questions and answers are not stored in the conversation.
        """
        is_running = False
        for question in self.questions.values():
            if all(getattr(question, name) == value for name, value in fields.items()):
                is_running = True
                question.state.is_forgotten = is_forgotten
                question.state.stop.request()
        return is_running

    async def stop_everywhere(self, *, is_forgotten: bool = False, **fields: int) -> bool:
        """Stop turns like `stop`, also in other processes."""
        is_running = self.stop(is_forgotten=is_forgotten, **fields)
        if self.stop_elsewhere is not None:
            is_running |= await self.stop_elsewhere({"is_forgotten": is_forgotten, **fields})
        return is_running


_current_turn: ContextVar[CurrentTurn | None] = ContextVar("current turn", default=None)


def current_turn() -> CurrentTurn | None:
    """Return the turn that is handled in this context; None if there is none."""
    return _current_turn.get()


def is_retry() -> bool:
    """Return whether an earlier try of the turn in this context failed or was interrupted."""
    turn = current_turn()
    return turn is not None and turn.update.tries > 1


@contextmanager
def set_current_turn(turn: CurrentTurn) -> Iterator[None]:
    """Make `turn` the current turn of the block, to collect its messages and changes."""
    token = _current_turn.set(turn)
    try:
        yield
    finally:
        _current_turn.reset(token)


def open_trace(open_root: OpenRoot, question: Question) -> Span:
    """Open the root span of a turn.

    All tries of a turn, even those before a crash, have the same trace id. The spans of earlier
    tries in this process become a part of the trace, marked as superseded.
    """
    trace = TraceRecord(
        question.trace_id or "",
        session=question.session,
        user=question.user,
        names=question.names,
        name=question.kind,
    )
    started_ns = int(question.accepted_at.timestamp() * 1e9)
    text = question.typed or question.text
    root = open_root(trace, text, started_ns)
    if question.interruptions:
        root.update(metadata={"resumed": question.interruptions})
    earlier = question.state.trace
    for span in earlier.spans[1:] if earlier else ():  # all but the root
        span.trace = trace
        span.level = "DEFAULT"
        span.metadata["superseded"] = True
        trace.spans.append(span)
    return root


def build_ended_turn(question: Question, reply: Reply, root: Span) -> EndedTurn:
    """Return the record of a turn that ended; messages are cut at `MAX_STORED_CHARS`."""
    trace: TraceRecord | None = root.trace
    record = TurnRow(
        turn_id=question.id,
        chat_id=question.chat_id,
        user_id=question.user_id,
        at=datetime.now(UTC),
        outcome=reply.outcome,
        seconds=reply.seconds,
        requests=reply.spent.requests,
        retries=reply.retries,
        cost_usd=reply.spent.cost_usd,
        trace_id=trace.trace_id if trace else None,
        root_id=trace.root.span_id if trace else None,
    )
    messages: tuple[StoredMessage, ...] = ()
    if question.is_remembered:
        question_text = truncate_at_boundary(question.text, MAX_STORED_CHARS)
        reply_text = truncate_at_boundary(reply.text, MAX_STORED_CHARS)
        thread = question.thread_id
        messages = (
            StoredMessage("user", question_text, thread_id=thread, attachment=reply.attachment),
            StoredMessage("assistant", reply_text, reply.wine_ids, thread_id=thread),
        )
    return EndedTurn(record, messages, root.trace, reply.changes)


def trace_delivery(root: Span, delivery: Delivery) -> None:
    """Add the delivery of a turn's messages to its trace."""
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
        root.trace.summarize()
