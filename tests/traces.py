"""Traces to store and to show, and their way to a Langfuse double."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.engine.messages import TokenUsage
from agent.engine.run import PromptRef, SpanLevel, SpanType
from agent.tracing.delivery import LangfuseApi
from agent.tracing.langfuse_project import Project
from agent.tracing.records import OpenSpan, TraceRecord
from bot.tracing import Exporter
from db.engine import Sessions
from db.models import utc_now
from db.traces import SqlTraceStore, TraceRows
from tests.doubles.otlp import OtlpReceiver


async def save_traces(store: SqlTraceStore, traces: Sequence[TraceRecord]) -> None:
    prepared = [await store.rows.prepare(trace) for trace in traces]
    async with store.sessions.begin() as session:
        for trace in prepared:
            await store.rows.save(session, trace, store.now())


async def deliver(
    receiver: OtlpReceiver, sessions: Sessions, *traces: TraceRecord
) -> list[int]:
    lost = list[int]()
    await save_traces(SqlTraceStore(sessions, rows=TraceRows(is_exported=True)), traces)
    async with exporter_to(receiver, sessions) as exporter:
        exporter.on_loss = lost.append
        assert await exporter.send_due() == 0
    return lost


async def export(sessions: Sessions, receiver: OtlpReceiver) -> float:
    """Send a receiver what waits; return how many seconds to wait before the next look."""
    async with exporter_to(receiver, sessions) as exporter:
        return await exporter.send_due()


@asynccontextmanager
async def exporter_to(
    receiver: OtlpReceiver,
    sessions: Sessions,
    now: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Exporter]:
    """What sends to a receiver all that waits in a database."""
    async with aclosing(
        Exporter(lambda: api_of(receiver), sessions, now=now)
    ) as exporter:
        yield exporter


def api_of(receiver: OtlpReceiver, seconds: float = 30) -> LangfuseApi:
    return LangfuseApi(project_of(receiver), seconds=seconds)


def project_of(receiver: OtlpReceiver) -> Project:
    keys = receiver.public_key, receiver.secret_key
    return Project(keys, receiver.base_url, "1.2.3", release="1.2.3")


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def nanoseconds(moment: datetime) -> int:
    return (
        (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    )


def bare_trace(
    trace_id: str,
    at: datetime = NOON,
    level: SpanLevel = "DEFAULT",
    question: str = "a red?",
) -> TraceRecord:
    trace, start = TraceRecord(trace_id, "5e55", "0f0f"), nanoseconds(at)
    root = trace.open_root(question, start)
    root.update(level=level, ended_ns=start + 500_000_000)
    return trace


def retried_trace(trace_id: str = "ab" * 16, at: datetime = NOON) -> TraceRecord:
    """A turn whose first answer named a wine that no tool returned; then the fallback answered."""
    trace, start = TraceRecord(trace_id, "5e55", "0f0f", ("Ada",)), nanoseconds(at)

    def add(name: str, kind: SpanType, parent: OpenSpan, **fields: Any) -> OpenSpan:
        begin = start + len(trace.spans) * 1_000_000
        span = parent.child(name, kind, **fields)
        span.update(started_ns=begin, ended_ns=begin + 250_000_000)
        return span

    root = trace.open_root("a red for\nlamb under 25", start)
    outcome = {
        "outcome": "fallback",
        "retried": True,
        "retry_count": 1,
        "cost_usd": 0.0042,
    }
    root.update(output="Try the **Guigal**.", level="WARNING", metadata=outcome)
    root.update(metadata={"error_types": ["grounding", "model_error"]})
    root.update(ended_ns=start + 250_000_000)
    add("guard.input", "guardrail", root, output=[])
    tool = add(
        "tool.search_wines", "tool", root, input='{"style":"red"}', metadata={"step": 1}
    )
    add("retrieve.wines", "retriever", tool, output={"found": 3})
    messages = [
        {"role": "system", "content": "You are a sommelier."},
        {"role": "user", "content": "a red for lamb"},
        {"role": "assistant", "content": "{}"},
        {
            "role": "user",
            "content": "Your previous response failed validation: wines.0.id.",
        },
    ]
    failure = {"attempt": 1, "error_type": "grounding", "validation_path": "wines.0.id"}
    answer = add("llm.answer", "generation", root, input=messages, level="WARNING")
    answer.update(
        output="\n".join(f'{{"line": {number}}}' for number in range(10)),
        model="gpt-4o",
        usage=TokenUsage(prompt_tokens=1200, completion_tokens=56, cached_tokens=1000),
        cost_usd=0.0042,
        prompt=PromptRef("sommelier", 3, "production", is_fallback=False),
        first_token_ns=answer.record.started_ns + 100_000_000,
        metadata={"step": 2, **failure},
    )
    add(
        "telegram.send",
        "span",
        root,
        level="ERROR",
        metadata={"error_type": "TimedOut"},
    )
    root.score("structured_retries", 1, "NUMERIC")
    root.score("outcome", "fallback", "CATEGORICAL")
    trace.summarize()
    root.update(ended_ns=start + 1_830_000_000)
    return trace
