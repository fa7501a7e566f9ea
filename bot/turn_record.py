"""What is stored of a turn: its record, its part of the conversation, the delivery in its trace."""

from datetime import UTC, datetime

from agent.conversation import StoredMessage
from agent.engine.span import Span
from agent.text import truncate_at_boundary
from agent.tracing.recorder import summarize
from agent.turn import Reply
from bot.outgoing import Delivery
from bot.question import Question
from db.models import TurnRow
from db.records import EndedTurn


def ended_turn(question: Question, reply: Reply, root: Span, max_length: int = 0) -> EndedTurn:
    """Return what is stored of a turn that ended; a message is cut at `max_length`."""
    record = TurnRow(
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
        error_types=[*reply.error_types],
        trace_id=root.trace_id,
        root_id=root.span_id,
    )
    said = conversation_part(question, reply, max_length) if question.is_remembered else ()
    return EndedTurn(record, said, root.trace, reply.changes)


def conversation_part(
    question: Question, reply: Reply, max_length: int
) -> tuple[StoredMessage, ...]:
    """Return the messages that a conversation remembers of a turn, cut; the user gets it all."""
    asked = truncate_at_boundary(question.text, max_length)
    answered = truncate_at_boundary(reply.text, max_length)
    thread = question.thread_id
    return (
        StoredMessage("user", asked, thread_id=thread, attachment=reply.attachment),
        StoredMessage("assistant", answered, reply.wine_ids, thread_id=thread),
    )


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
        summarize(root.trace)


def seconds_since(moment: datetime | None) -> float:
    """Return how many seconds ago something was, never fewer than 0."""
    return max(0.0, (datetime.now(UTC) - moment).total_seconds()) if moment else 0.0
