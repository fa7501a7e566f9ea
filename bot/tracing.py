"""Where traces go, what may be shown of them, and whose prompts are used, by the settings.

Langfuse's client takes a second to load: it is loaded in a thread, when there is something to send.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from agent.deps import Prompts
from agent.prompts import REPOSITORY
from agent.tracing.exporter import Channel, Exporter
from agent.tracing.masking import Masking, masked_trace
from agent.tracing.prompts import ManagedPrompts
from agent.tracing.records import TraceRecord
from bot.forgetting import Forgetting
from bot.tasks import bounded
from config import Settings
from db.engine import Sessions
from db.repositories.privacy import DeletionRepository
from db.repositories.scores import score_queue
from db.repositories.traces import TraceRows, trace_queue

if TYPE_CHECKING:
    from langfuse import Langfuse

    from agent.tracing.delivery import Backend, LangfuseApi
    from agent.tracing.observations import Observations, Origin

LOCAL_KEYS = ("sommelier", "-")
"""What the client is made with that sends nothing to Langfuse."""
REQUEST_SECONDS = 30.0
PROMPT_SECONDS = 60.0
"""How often prompts are fetched."""


def trace_rows(settings: Settings) -> TraceRows:
    """Return how traces are stored: what may be shown of them, to be sent where that is wanted."""
    return TraceRows(prepare_trace(settings), settings.tracing.is_exported, words(settings))


def prepare_trace(settings: Settings) -> Callable[[TraceRecord], TraceRecord]:
    """Return what makes of a trace what may be shown of it."""
    return partial(masked_trace, content=settings.tracing.content, secrets=settings.secrets)


def words(settings: Settings) -> Callable[[str], str]:
    """Return what makes of people's words what admins may be shown of them."""
    shown = hide(settings)
    return lambda text: str(shown(text) or "")


def hide(settings: Settings) -> Callable[[object], object]:
    """Return what makes of data what may be shown of it; nothing if no content may leave."""
    if settings.tracing.content == "none":
        return lambda data: None
    return Masking(settings.tracing.content, (), settings.secrets).value


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """Return what makes a link of a trace's id; None where traces are seen here alone."""
    base_url = settings.tracing.base_url.rstrip("/")
    # Langfuse finds the project of a trace by itself.
    return (
        (lambda trace_id: f"{base_url}/trace/{trace_id}") if settings.tracing.has_langfuse else None
    )


def langfuse_of(settings: Settings) -> "Langfuse":
    """Return Langfuse's client for a command: it sends what it is told by itself."""
    from agent.tracing.observations import langfuse_client  # noqa: PLC0415 - takes a second

    tracing = settings.tracing
    return langfuse_client(
        tracing.langfuse_keys or LOCAL_KEYS,
        tracing.base_url,
        _origin(settings),
        mask=hide(settings),
        seconds=REQUEST_SECONDS,
    )


async def langfuse_api(settings: Settings, seconds: float = REQUEST_SECONDS) -> "LangfuseApi":
    """Return the API of the configured project; a request takes at most `seconds`."""
    tracing = settings.tracing

    def load() -> "type[LangfuseApi]":
        from agent.tracing.delivery import LangfuseApi  # noqa: PLC0415 - takes a second

        return LangfuseApi

    made = await asyncio.to_thread(load)
    return made(tracing.langfuse_keys or LOCAL_KEYS, tracing.base_url, seconds=seconds)


async def otlp_backend(settings: Settings) -> "Backend":
    """Return the backend that OpenTelemetry's own variables name."""
    tracing = settings.tracing

    def load() -> "type[Backend]":
        from agent.tracing.delivery import Backend  # noqa: PLC0415 - takes a second

        return Backend

    made = await asyncio.to_thread(load)
    return made(
        f"{str(tracing.otlp_url).rstrip('/')}/v1/traces",
        name="The OTLP endpoint",
        check="OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS",
        seconds=REQUEST_SECONDS,
        headers={name: value.get_secret_value() for name, value in tracing.otlp_headers},
    )


def _observations(settings: Settings) -> "Observations":
    from agent.tracing.observations import observations_of  # noqa: PLC0415 - takes a second

    tracing = settings.tracing
    return observations_of(
        tracing.langfuse_keys or LOCAL_KEYS,
        tracing.base_url,
        _origin(settings),
        mask=hide(settings),
        conventions=not settings.tracing.has_langfuse,
    )


def _origin(settings: Settings) -> "Origin":
    from agent.tracing.observations import Origin  # noqa: PLC0415 - takes a second

    tracing = settings.tracing
    return Origin(environment=tracing.environment, version=version("sommelier"))


@asynccontextmanager
async def open_exporter(settings: Settings, sessions: Sessions) -> AsyncIterator[Exporter | None]:
    """Open what sends traces and scores to where they are read; None where they are only stored.

    With Langfuse's keys that is Langfuse, else any backend of OpenTelemetry. What is left at the
    end is tried once more.
    """
    if not settings.tracing.is_exported:
        yield None
        return
    async with AsyncExitStack() as stack:

        async def open_channels() -> Sequence[Channel[Any]]:
            api = await langfuse_api(settings) if settings.tracing.has_langfuse else None
            backend = api or await otlp_backend(settings)
            stack.push_async_callback(bounded, "tracing", backend.aclose)
            from agent.tracing.delivery import sender  # noqa: PLC0415 - loaded above

            send = sender(backend, partial(_observations, settings), version("sommelier"))
            channels: list[Channel[Any]] = [Channel("traces", trace_queue(sessions), send)]
            if api is not None:
                send_scores = partial(api.send_scores, environment=settings.tracing.environment)
                channels.append(Channel("scores", score_queue(sessions), send_scores))
            return channels

        where = "Langfuse" if settings.tracing.has_langfuse else str(settings.tracing.otlp_url)
        exporter = Exporter(open_channels, where)
        yield exporter
        await bounded("tracing", exporter.round)


@asynccontextmanager
async def open_forgetting(settings: Settings, sessions: Sessions) -> AsyncIterator[Forgetting]:
    """Open what forgets people, in Langfuse too if its keys are set."""

    async def delete_traces(user: str, before: datetime) -> int:
        async with aclosing(await langfuse_api(settings)) as api:
            return await api.delete_traces(user, before)

    elsewhere = delete_traces if settings.tracing.has_langfuse else None
    yield Forgetting(deletions=DeletionRepository(sessions), delete_elsewhere=elsewhere)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Prompts]:
    """Open the prompts in use: with Langfuse's keys those managed there, kept up to date."""
    tracing = settings.tracing
    if not settings.tracing.has_langfuse:
        yield REPOSITORY
        return
    prompts = ManagedPrompts(
        lambda: _observations(settings).client,
        label=tracing.prompt_label,
        every_seconds=PROMPT_SECONDS,
    )
    refreshing = asyncio.create_task(prompts.refresh())
    try:
        yield prompts
    finally:
        refreshing.cancel()
        await asyncio.wait([refreshing])
