"""Make the record of a turn: its row, its part of the conversation, and its trace."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from agent.engine.run import Span
from agent.language import truncate_at_boundary
from agent.tracing.records import TraceRecord
from agent.turn import Reply, StoredMessage
from bot.outgoing import Delivery
from bot.question import Question
from db.models import TurnRow
from db.repositories.turns import EndedTurn

STORED_CHARS: Final = 2000
"""The most characters of a message that are stored; users get the full text."""
OpenRoot = Callable[[TraceRecord, str, int], Span]
"""Opens the root span of a trace with an input, at a time in nanoseconds since the epoch."""


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
