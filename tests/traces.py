"""Traces to keep and to show."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from agent.engine.messages import Usage
from agent.engine.span import Level, PromptRef, ScoreRecord, SpanRecord, TraceRecord
from agent.repositories import TraceQueue, TraceSummary
from agent.tracing.exporter import Exporter
from agent.tracing.langfuse import LangfuseClient, LangfuseTraces
from agent.tracing.otlp import Origin
from tests.doubles.otlp import OtlpReceiver


async def deliver(
    receiver: OtlpReceiver, *traces: TraceRecord, origin: Origin | None = None
) -> int:
    """Send these traces to a receiver; how many parts of them it refused."""
    async with langfuse_traces(receiver, origin) as destination:
        return await destination.send(traces)


async def export(queue: TraceQueue, receiver: OtlpReceiver) -> float:
    """Send a receiver what waits; how many seconds to wait before the next look."""
    async with langfuse_traces(receiver) as destination:
        return await Exporter(queue, destination.send, where="Langfuse").round()


@asynccontextmanager
async def langfuse_traces(
    receiver: OtlpReceiver, origin: Origin | None = None, seconds: float = 30
) -> AsyncIterator[LangfuseTraces]:
    """What delivers traces to a receiver."""
    keys = receiver.public_key, receiver.secret_key
    client = LangfuseClient(*keys, receiver.base_url, seconds=seconds, waits_longer=True)
    try:
        yield LangfuseTraces(client, origin or Origin())
    finally:
        await client.aclose()


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SUMMARY = TraceSummary(
    trace_id="ab" * 16,
    started_at=NOON,
    ended_at=NOON + timedelta(seconds=1.83),
    session="5e55",
    user="0f0f",
    question="a red for lamb under 25",
    outcome="fallback",
    level="WARNING",
    retry_count=1,
    cost_usd=0.0042,
    tokens=1256,
    error_types=("grounding", "model_error"),
)
"""What a list shows of `retried_trace()`."""


def nanoseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def bare_trace(
    trace_id: str, at: datetime = NOON, level: Level = "DEFAULT", question: str = "a red?"
) -> TraceRecord:
    """A turn of one span, half a second long."""
    start = nanoseconds(at)
    root = SpanRecord(
        "0" * 16, None, "turn", "agent", start, start + 500_000_000, question, level=level
    )
    return TraceRecord(trace_id, "5e55", "0f0f", spans=[root])


def retried_trace(trace_id: str = "ab" * 16, at: datetime = NOON) -> TraceRecord:
    """A turn whose first answer named a wine that no tool returned; then the house answered."""
    start = nanoseconds(at)

    def span(number: int, parent: int | None, name: str, kind: str, **known: object) -> SpanRecord:
        return SpanRecord(
            span_id=f"{number:016x}",
            parent_id=None if parent is None else f"{parent:016x}",
            name=name,
            kind=kind,  # type: ignore[arg-type]
            started_ns=start + number * 1_000_000,
            ended_ns=start + number * 1_000_000 + 250_000_000,
            **known,  # type: ignore[arg-type]
        )

    usage = Usage(prompt_tokens=1200, completion_tokens=56, cached_tokens=1000)
    feedback = "Your previous response failed validation: wines.0.id: no tool returned it."
    root = span(
        0,
        None,
        "turn",
        "agent",
        input="a red for\nlamb under 25",
        output="Try the **Guigal**.",
        level="WARNING",
        metadata={
            "outcome": "fallback",
            "retried": "yes",
            "retry_count": 1,
            "error_types": "grounding,model_error",
            "cost_usd": 0.0042,
        },
    )
    root.ended_ns = start + 1_830_000_000
    spans = [
        root,
        span(1, 0, "guard.input", "guardrail", output=[]),
        span(2, 0, "tool.search_wines", "tool", input='{"style":"red"}', metadata={"step": 1}),
        span(3, 2, "retrieve.wines", "retriever", output={"found": 3}),
        span(
            4,
            0,
            "llm.answer",
            "generation",
            input=[
                {"role": "system", "content": "You are a sommelier."},
                {"role": "user", "content": "a red for lamb"},
                {"role": "assistant", "content": "{}"},
                {"role": "user", "content": feedback},
            ],
            output="\n".join(f'{{"line": {number}}}' for number in range(10)),
            level="WARNING",
            model="gpt-4o",
            usage=usage,
            cost_usd=0.0042,
            prompt=PromptRef("sommelier", 3, "production", is_fallback=False),
            metadata={
                "step": 2,
                "attempt": 1,
                "error_type": "grounding",
                "validation_path": "wines.0.id",
            },
        ),
        span(5, 0, "telegram.send", "span", level="ERROR", metadata={"error_type": "TimedOut"}),
    ]
    scores = {
        "structured_retries": ScoreRecord("structured_retries", 1, "NUMERIC"),
        "outcome": ScoreRecord("outcome", "fallback", "CATEGORICAL"),
    }
    return TraceRecord(trace_id, "5e55", "0f0f", ("Ada",), spans, scores)
