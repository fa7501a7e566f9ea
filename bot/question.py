"""Questions and where their answers go, the state of their turns, and the records of these."""

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
STORED_CHARS: Final = 2000
"""The most characters of a message that are stored; users get the full text."""
DeliveryError = Literal["unreachable", "rejected", "ambiguous", "rate_limited", "network"]


@dataclass(frozen=True, slots=True)
class Destination:
    """The chat and topic of an answer, and the message it replies to, or ours that it replaces."""

    chat_id: int
    thread_id: int | None = None
    reply_to: int | None = None
    edits: int | None = None

    @property
    def is_group(self) -> bool:
        """Return whether the chat is a group."""
        return self.chat_id < 0

    @property
    def next(self) -> "Destination":
        """Return the destination of the messages that follow, which reply to nothing."""
        return replace(self, reply_to=None, edits=None)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of sending an answer: message ids in order, number of requests, last error.

    `unreachable`: the user blocked the bot, or the chat is gone. `rejected`: Telegram refused the
    message itself. `ambiguous`: a message may or may not have arrived. `rate_limited`: Telegram
    kept asking to wait. `network`: Telegram could not be reached. Sending took from `began_ns` to
    `ended_ns` (since the epoch).
    """

    message_ids: tuple[int, ...] = ()
    tries: int = 0
    error: DeliveryError | None = None
    began_ns: int = field(default=0, compare=False)
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
    """The state of a turn in all its tries: its usage, its progress message, how others stop it.

    `spent_before` and `trace` are those of earlier tries, whose usage still counts. `facts` are
    those of the user, if they were read before the turn began.
    """

    stop: Stop = field(default_factory=Stop)
    spent_before: Spent = NOTHING_SPENT
    trace: TraceRecord | None = None
    ledger: Ledger | None = None
    placeholder_id: int | None = None
    facts: Sequence[Fact] | None = None
    is_forgotten: bool = False

    @property
    def spent(self) -> Spent:
        """Return the usage of all tries so far."""
        return self.ledger.spent if self.ledger else self.spent_before


@dataclass(slots=True, kw_only=True)
class CurrentTurn(TurnState):
    """The turn of an update while it is handled: its messages, and what is stored with them.

    `on_delivery` is called with the result of sending the messages; at last, and if there are none,
    with an empty one.
    """

    update: UpdateRow
    messages: list[OutboxRow] = field(default_factory=list)
    ended: list[EndedTurn] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    on_delivery: Callable[[Delivery], None] = lambda delivery: None

    def restart(self) -> None:
        """Prepare for another try, without what the last one has collected."""
        self.spent_before, self.ledger, self.stop = self.spent, None, Stop()
        self.messages, self.ended, self.changes = [], [], []


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, the user who asks it, and the destination of the answer.

    `id` is the id of the update; a random negative one if no update asked. Without `to` the reply
    is only returned. `session` and `user` stand for the chat and the user in traces, `names` are
    masked there. Only a question that is `in_history` is stored in the conversation. The trace
    shows the question as it was `typed`, when it was accepted, and how often it was interrupted.
    `transcribe` returns the text of a voice question.
    """

    text: str
    id: int = field(default_factory=lambda: -1 - secrets.randbits(62))
    chat_id: int = 0
    user_id: int = 0
    session: str = ""
    user: str = ""
    names: tuple[str, ...] = ()
    trace_id: str | None = None
    to: Destination | None = None
    in_history: bool = True
    kind: Kind = "chat"
    typed: str = ""
    accepted_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    interruptions: int = 0
    state: TurnState = field(default_factory=TurnState)
    transcribe: Callable[[Run], Awaitable[str]] | None = None

    @property
    def thread_id(self) -> int:
        """Return the topic of the chat, 0 without topics."""
        return (self.to.thread_id or 0) if self.to else 0

    @property
    def is_in_history(self) -> bool:
        """Return whether the question becomes a part of the conversation."""
        return self.in_history and not self.state.is_forgotten

    @property
    def seconds(self) -> float:
        """Return how many seconds ago the question was accepted."""
        return max(0.0, (datetime.now(UTC) - self.accepted_at).total_seconds())


@dataclass(frozen=True, slots=True)
class RunningTurns:
    """The questions whose turns run here, by id; stops them.

    `stop_elsewhere` asks other processes to stop turns, and returns whether one of that chat has
    begun anywhere.
    """

    stop_elsewhere: Callable[[Mapping[str, int]], Awaitable[bool]] | None = None
    questions: dict[int, Question] = field(default_factory=dict)

    def add(self, question: Question) -> None:
        """Add a question whose turn begins."""
        self.questions[question.id] = question

    def remove(self, question: Question) -> None:
        """Remove a question whose turn has ended here."""
        self.questions.pop(question.id, None)

    def stop(self, *, is_forgotten: bool = False, **values: int) -> bool:
        """Stop the turns of questions with these values in their fields; return whether any runs.

        If `is_forgotten`, their questions and answers do not become a part of the conversation.
        """
        is_running = False
        for question in self.questions.values():
            if all(getattr(question, name) == value for name, value in values.items()):
                question.state.is_forgotten, is_running = is_forgotten, True
                question.state.stop.ask()
        return is_running

    async def stop_everywhere(self, *, is_forgotten: bool = False, **values: int) -> bool:
        """Stop turns as `stop` does, in other processes too."""
        is_running = self.stop(is_forgotten=is_forgotten, **values)
        if self.stop_elsewhere is not None:
            is_running |= await self.stop_elsewhere({"is_forgotten": is_forgotten, **values})
        return is_running


_current_turn: ContextVar[CurrentTurn | None] = ContextVar("current turn", default=None)


def current_turn() -> CurrentTurn | None:
    """Return the turn that is handled in this context, None outside of one."""
    return _current_turn.get()


def is_retry() -> bool:
    """Return whether an earlier try of the turn in this context was cut off or failed."""
    turn = current_turn()
    return turn is not None and turn.update.tries > 1


@contextmanager
def set_current_turn(turn: CurrentTurn) -> Iterator[None]:
    """Collect the messages and changes made in the block for the commit of a turn."""
    token = _current_turn.set(turn)
    try:
        yield
    finally:
        _current_turn.reset(token)


def open_trace(open_root: OpenRoot, question: Question) -> Span:
    """Open the root span of a turn; run again after a crash, it has the ids of its first try.

    Spans of a try that failed, or that another message made void, are part of the trace.
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
    for span in earlier.spans[1:] if earlier else ():
        span.trace, span.level, span.metadata["superseded"] = trace, "DEFAULT", True
        trace.spans.append(span)
    return root


def ended_turn(question: Question, reply: Reply, root: Span) -> EndedTurn:
    """Return the record of a turn that ended; a message is cut at `STORED_CHARS`."""
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
    said: tuple[StoredMessage, ...] = ()
    if question.is_in_history:
        asked = truncate_at_boundary(question.text, STORED_CHARS)
        answered = truncate_at_boundary(reply.text, STORED_CHARS)
        thread = question.thread_id
        said = (
            StoredMessage("user", asked, thread_id=thread, attachment=reply.attachment),
            StoredMessage("assistant", answered, reply.wine_ids, thread_id=thread),
        )
    return EndedTurn(record, said, root.trace, reply.changes)


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
