"""Open what the settings say of traces: what they show, where they go, whose prompts are used.

Langfuse's client takes a second to load: it is loaded in a thread, when there is something to send.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from agent.engine.run import Prompt
from agent.retrying import Backoff
from agent.tracing.masking import Masking
from agent.tracing.prompts import ManagedPrompts
from agent.tracing.records import StoredScore
from bot.exporter import Channel, Exporter
from bot.tasks import beside, bounded
from config import Settings
from db.engine import Sessions
from db.models import ScoreRow, TraceRow, loaded, utc_now
from db.repositories.privacy import SqlPersonalData
from db.repositories.traces import RowQueue, Rows, unpacked

if TYPE_CHECKING:
    from langfuse import Langfuse

    from agent.tracing.delivery import Backend, LangfuseApi
    from agent.tracing.observations import Observations, Project

log = logging.getLogger(__name__)

LOCAL_KEYS: Final = ("sommelier", "-")  # of a client that sends nothing to Langfuse
DELIVERY = "agent.tracing.delivery"
REQUEST_SECONDS = 30
PROMPT_LABEL: Final = "production"
SETTLED: Final = timedelta(seconds=30)
"""The time for which a trace may still be on its way when its user is forgotten."""
AGAIN: Final = Backoff(first_wait=5.0, max_wait=3600.0)


def masking_of(settings: Settings) -> Masking:
    """Return how words are masked before they are shown or sent."""
    return Masking(settings.trace_content, settings.secrets)


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """Return the function that makes a link of a trace's id; None without Langfuse."""
    base_url = settings.langfuse_base_url.rstrip("/")
    # Langfuse finds the project of a trace by itself.
    return (lambda trace_id: f"{base_url}/trace/{trace_id}") if settings.langfuse_keys else None


def langfuse_of(settings: Settings) -> "Langfuse":
    """Return Langfuse's client, which sends spans and scores by itself."""
    from agent.tracing.observations import langfuse_client  # noqa: PLC0415 - takes a second

    return langfuse_client(_project(settings), seconds=REQUEST_SECONDS)


async def langfuse_api(settings: Settings, seconds: float = REQUEST_SECONDS) -> "LangfuseApi":
    """Return the API of the configured project; a request takes at most `seconds`."""
    await asyncio.to_thread(import_module, DELIVERY)
    from agent.tracing.delivery import LangfuseApi  # noqa: PLC0415 - imported by a thread

    keys = settings.langfuse_keys or LOCAL_KEYS
    return LangfuseApi(keys, settings.langfuse_base_url, seconds=seconds)


async def otlp_backend(settings: Settings) -> "Backend":
    """Return the backend that OpenTelemetry's own variables name."""
    await asyncio.to_thread(import_module, DELIVERY)
    from agent.tracing.delivery import Backend  # noqa: PLC0415 - imported by a thread

    url = f"{settings.otel_exporter_otlp_endpoint}/v1/traces"
    return Backend(url, settings.otlp_headers, seconds=REQUEST_SECONDS)


def _observations(settings: Settings) -> "Observations":
    from agent.tracing.observations import observations_of  # noqa: PLC0415 - takes a second

    return observations_of(_project(settings))


def _project(settings: Settings) -> "Project":
    from agent.tracing.observations import Project  # noqa: PLC0415 - takes a second

    return Project(
        settings.langfuse_keys or LOCAL_KEYS,
        settings.langfuse_base_url,
        version("sommelier"),
    )


@asynccontextmanager
async def send_traces(
    settings: Settings, sessions: Sessions, on_loss: Callable[[int], None] = lambda count: None
) -> AsyncIterator[None]:
    """Send traces and scores beside the block and once at its end, if there is a server for them.

    With Langfuse's keys they go to Langfuse, else to any backend of OpenTelemetry.
    """
    if not settings.is_exported:
        yield
        return
    async with AsyncExitStack() as stack:

        async def open_channels() -> Sequence[Channel]:
            langfuse = await langfuse_api(settings) if settings.langfuse_keys else None
            backend = langfuse or await otlp_backend(settings)
            stack.push_async_callback(bounded, "tracing", backend.aclose)
            channels = [traces_to(backend, sessions, lambda: _observations(settings))]
            if langfuse is not None:
                channels.append(scores_to(langfuse, sessions))
            return channels

        exporter = Exporter(open_channels, on_loss)
        async with beside(exporter.run):
            yield
        await bounded("tracing", exporter.round)


def traces_to(
    backend: "Backend",
    sessions: Sessions,
    observations: "Callable[[], Observations]",
    now: Callable[[], datetime] = utc_now,
) -> Channel:
    """Return the channel of traces to a backend; `observations` is called in a thread."""

    def encode(rows: Rows) -> bytes:
        return observations().encode([unpacked(row.record) for row in rows])

    async def send(rows: Rows) -> int:
        return await backend.export(await asyncio.to_thread(encode, rows))

    return Channel("traces", RowQueue(sessions, TraceRow, now), send)


def scores_to(
    api: "LangfuseApi",
    sessions: Sessions,
    now: Callable[[], datetime] = utc_now,
) -> Channel:
    """Return the channel of scores to Langfuse."""

    async def send(rows: Rows) -> int:
        return await api.send_scores([loaded(StoredScore, row) for row in rows])

    return Channel("scores", RowQueue(sessions, ScoreRow, now), send)


async def forget_people(settings: Settings, personal: SqlPersonalData) -> None:
    """Delete the remaining traces of users of whom the database has deleted everything.

    They are those that unfinished turns stored since, and those in Langfuse. What failed, or found
    something, is due again.
    """
    for deletion in await personal.due():
        found = await personal.sweep(deletion)
        if settings.langfuse_keys:
            try:
                async with aclosing(await langfuse_api(settings)) as api:
                    found += await api.delete_traces(deletion.user, deletion.at)
            except Exception as error:
                log.warning("Traces in Langfuse are still there, and deleted later: %s", error)
                found += 1
        if found or datetime.now(UTC) - deletion.at < SETTLED:
            await personal.postpone(deletion, AGAIN.after(deletion.tries + 1))
        else:
            await personal.finish(deletion)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Mapping[str, Prompt]]:
    """Open the prompts in use: with Langfuse's keys those managed there, kept up to date."""
    if not settings.langfuse_keys:
        yield {}
        return
    prompts = ManagedPrompts(lambda: _observations(settings).client, PROMPT_LABEL)
    async with beside(prompts.refresh):
        yield prompts.current
