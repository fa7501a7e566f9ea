"""Where traces and verdicts go, what may be shown of them, and the page that shows them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from agent.engine.run import Prompts
from agent.engine.span import TraceRecord
from agent.prompts import REPOSITORY
from agent.tracing.exporter import Exporter, HttpClient
from agent.tracing.langfuse import (
    LangfuseClient,
    LangfuseTraces,
    delete_traces,
    trace_url,
)
from agent.tracing.managed import REQUEST_SECONDS, LangfusePrompts, PromptStore
from agent.tracing.masking import Masking, prepared
from agent.tracing.otlp import Origin, OtlpTraces
from bot.forgetting import Forgetting
from bot.tasks import bounded
from config import Settings
from db.engine import Sessions
from db.repositories.privacy import SqlDeletionRepository
from db.repositories.traces import SqlTraceStore, TraceRows
from db.repositories.turns import SqlFeedbackRepository

if TYPE_CHECKING:
    pass


def langfuse_client(
    settings: Settings, seconds: float | None = None, *, waits_longer: bool = False
) -> LangfuseClient | None:
    """A client of Langfuse; None without its keys. A request takes `seconds`, or as it is set."""
    tracing = settings.tracing
    if tracing.langfuse_keys is None:
        return None
    seconds = seconds or tracing.timeout_seconds
    url, longer = tracing.base_url, waits_longer
    return LangfuseClient(*tracing.langfuse_keys, url, seconds=seconds, waits_longer=longer)


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """What makes a link of a trace's id; None where traces are seen here alone."""
    tracing = settings.tracing
    return partial(trace_url, tracing.base_url) if tracing.langfuse_keys else None


@asynccontextmanager
async def open_exporter(settings: Settings, sessions: Sessions) -> AsyncIterator[Exporter | None]:
    """What brings traces and verdicts to where they are read; None where they are only kept.

    With Langfuse's keys that is Langfuse, else any backend of OpenTelemetry. What is left at the
    end is tried once more.
    """
    tracing = settings.tracing
    if not tracing.is_exported:
        yield None
        return
    traces = SqlTraceStore(sessions)
    origin = Origin(tracing.environment, tracing.release, version("sommelier"))
    langfuse = langfuse_client(settings, waits_longer=True)
    client = langfuse or otlp_client(settings)
    if langfuse is None:
        send = OtlpTraces(client, origin).send
        exporter = Exporter(traces, send, where=str(tracing.otlp_url))
    else:
        there = LangfuseTraces(langfuse, origin, words(settings))
        feedback = SqlFeedbackRepository(sessions)
        exporter = Exporter(traces, there.send, "Langfuse", feedback, there.deliver)
    try:
        yield exporter
    finally:
        await bounded("tracing", exporter.round)
        await bounded("tracing", client.aclose)


def otlp_client(settings: Settings) -> HttpClient:
    """A client of the backend that OpenTelemetry's own variables name."""
    tracing = settings.tracing
    return HttpClient(
        str(tracing.otlp_url),
        name="The OTLP endpoint",
        check="OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS",
        seconds=tracing.timeout_seconds,
        headers=dict(tracing.otlp_headers),
        waits_longer=True,
    )


@asynccontextmanager
async def open_forgetting(settings: Settings, sessions: Sessions) -> AsyncIterator[Forgetting]:
    """What forgets people, in Langfuse too if its keys are set."""
    deletions, client = SqlDeletionRepository(sessions), langfuse_client(settings)
    if client is None:
        yield Forgetting(deletions=deletions)
        return
    try:
        yield Forgetting(deletions=deletions, elsewhere=partial(delete_traces, client))
    finally:
        await bounded("forgetting", client.aclose)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Prompts]:
    """The prompts in use: with Langfuse's keys those managed there, kept up to date."""
    client, tracing = langfuse_client(settings, REQUEST_SECONDS), settings.tracing
    if client is None:
        yield REPOSITORY
        return
    store, seconds = PromptStore(client), tracing.prompt_seconds
    prompts = LangfusePrompts(store, label=tracing.prompt_label, every_seconds=seconds)
    await prompts.start()
    try:
        yield prompts
    finally:
        await bounded("the prompts", prompts.close)


def trace_rows(settings: Settings) -> TraceRows:
    """How traces are kept: what may be shown of them, to be sent where that is wanted."""
    return TraceRows(prepare_trace(settings), settings.tracing.is_exported)


def prepare_trace(settings: Settings) -> Callable[[TraceRecord], TraceRecord]:
    """Makes of a trace what may be shown of it."""
    return partial(prepared, content=settings.tracing.content, secrets=settings.secrets)


def words(settings: Settings) -> Callable[[str], str]:
    """What may be shown to admins of what people wrote."""
    shown = hide(settings)
    return lambda text: str(shown(text) or "")


def hide(settings: Settings) -> Callable[[object], object]:
    """What may be shown of data that stands in no trace; nothing if no content may leave."""
    if settings.tracing.content == "none":
        return lambda data: None
    return Masking(settings.tracing.content, (), settings.secrets).value
