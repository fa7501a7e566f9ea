"""Set up tracing: mask traces, send them to a server, and fetch managed prompts.

Stored traces and scores are sent until they arrive. If the process dies after sending a row and
before recording that, the row is sent again and, having the same id, replaces itself. A row is
either sent, permanently refused (kept, logged, not sent again), or sent later.

Langfuse's client takes a second to import, so a thread imports it when there is something to send.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from agent.engine.run import Prompt
from agent.retrying import Backoff
from agent.tracing.langfuse_project import REFUSALS, ManagedPrompts, Project, Unavailable
from agent.tracing.masking import Masking
from bot.tasks import in_background, run_shutdown_step
from config import Settings
from db.engine import Sessions
from db.models import ScoreRow, TraceRow, utc_now
from db.repositories.people import MemoryRepository
from db.repositories.traces import RowQueue, Rows, unpack

if TYPE_CHECKING:
    from langfuse import Langfuse

    from agent.tracing.delivery import Backend, LangfuseApi

log = logging.getLogger(__name__)

NO_LANGFUSE_KEYS: Final = ("sommelier", "-")  # for a client that sends to OpenTelemetry only
REQUEST_SECONDS: Final = 30
PROMPT_LABEL: Final = "production"
MAX_BATCH: Final = 32
POLL_SECONDS: Final = 2.0  # between two checks for rows to send
CLAIM_TIME: Final = timedelta(minutes=10)  # longer than all requests of a batch together
SEND_BACKOFF: Final = Backoff(first_wait=2.0, max_wait=300.0)
DELETE_BACKOFF: Final = Backoff(first_wait=5.0, max_wait=3600.0)
MAX_TRACE_DELAY: Final = timedelta(seconds=30)
"""The time after a user's deletion in which traces of running turns may still be stored."""


def masking_of(settings: Settings) -> Masking:
    """Return the masking of texts before they are shown or sent."""
    return Masking(settings.trace_content, settings.secrets)


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """Return a function that returns the link of a trace id; None without Langfuse."""
    base_url = settings.langfuse_base_url.rstrip("/")
    # Langfuse redirects this link to the project of the trace.
    return (lambda trace_id: f"{base_url}/trace/{trace_id}") if settings.langfuse_keys else None


def _project(settings: Settings) -> Project:
    return Project(
        settings.langfuse_keys or NO_LANGFUSE_KEYS,
        settings.langfuse_base_url,
        version("sommelier"),
    )


def langfuse_of(settings: Settings) -> "Langfuse":
    """Return Langfuse's client, which sends spans and scores in the background."""
    from agent.tracing.delivery import langfuse_client  # noqa: PLC0415 - takes a second

    return langfuse_client(_project(settings), seconds=REQUEST_SECONDS)


async def langfuse_api(settings: Settings, seconds: float = REQUEST_SECONDS) -> "LangfuseApi":
    """Return the API of the configured project; a request takes at most `seconds`."""
    await asyncio.to_thread(import_module, "agent.tracing.delivery")
    from agent.tracing.delivery import LangfuseApi  # noqa: PLC0415 - imported by a thread

    return LangfuseApi(_project(settings), seconds=seconds)


async def otlp_backend(settings: Settings) -> "Backend":
    """Return the backend that OpenTelemetry's standard variables configure."""
    await asyncio.to_thread(import_module, "agent.tracing.delivery")
    from agent.tracing.delivery import Backend  # noqa: PLC0415 - imported by a thread

    url = f"{settings.otel_exporter_otlp_endpoint}/v1/traces"
    return Backend(_project(settings), url, settings.otlp_headers, seconds=REQUEST_SECONDS)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Mapping[str, Prompt]]:
    """Open the prompts managed in Langfuse, and keep them up to date; empty without its keys."""
    if not settings.langfuse_keys:
        yield {}
        return

    def client() -> "Langfuse":
        from agent.tracing.delivery import get_trace_encoder  # noqa: PLC0415 - takes a second

        return get_trace_encoder(_project(settings)).client

    prompts = ManagedPrompts(client, PROMPT_LABEL)
    async with in_background(prompts.refresh):
        yield prompts.current


@asynccontextmanager
async def send_traces(
    settings: Settings, sessions: Sessions, on_loss: Callable[[int], None] = lambda count: None
) -> AsyncIterator[None]:
    """Send traces and scores while the block runs and once at its end, if a server is configured.

    The server is Langfuse if its keys are set, else a backend of OpenTelemetry.
    """
    if not settings.sends_traces:
        yield
        return
    async with AsyncExitStack() as stack:

        async def open_channels() -> Sequence[Channel]:
            langfuse = await langfuse_api(settings) if settings.langfuse_keys else None
            backend = langfuse or await otlp_backend(settings)
            stack.push_async_callback(run_shutdown_step, "tracing", backend.aclose)
            scores = [score_channel(langfuse, sessions)] if langfuse else []
            return [trace_channel(backend, sessions), *scores]

        exporter = Exporter(open_channels, on_loss)
        async with in_background(exporter.run):
            yield
        await run_shutdown_step("tracing", exporter.send_due)


@dataclass(frozen=True, slots=True)
class Channel:
    """A queue of traces or scores with the function that sends a batch of its rows.

    `send` returns how many parts of the batch were refused, and raises `Unavailable`.
    """

    name: str
    queue: RowQueue
    send: Callable[[Rows], Awaitable[int]]


def trace_channel(
    backend: "Backend", sessions: Sessions, now: Callable[[], datetime] = utc_now
) -> Channel:
    """Return the channel that sends traces to a backend."""

    async def send(rows: Rows) -> int:
        traces = await asyncio.to_thread(lambda: [unpack(row.record) for row in rows])
        return await backend.send_traces(traces)

    return Channel("traces", RowQueue(sessions, TraceRow, now), send)


def score_channel(
    api: "LangfuseApi", sessions: Sessions, now: Callable[[], datetime] = utc_now
) -> Channel:
    """Return the channel that sends scores to Langfuse."""
    return Channel("scores", RowQueue(sessions, ScoreRow, now), api.send_scores)


@dataclass(slots=True)
class Exporter:
    """Sends the waiting rows of channels, with a growing backoff after errors.

    `open_channels` is called once, before the first rows are sent. `on_loss` is called with the
    number of parts that were permanently refused. Several replicas may send concurrently: each row
    is claimed by one of them.
    """

    open_channels: Callable[[], Awaitable[Sequence[Channel]]]
    on_loss: Callable[[int], None] = lambda count: None
    _channels: Sequence[Channel] = ()
    _failures: int = 0

    async def run(self) -> None:
        """Send rows until cancelled; the remaining rows are sent after the next start."""
        while True:
            wait = await self.send_due()
            await asyncio.sleep(wait or POLL_SECONDS)

    async def send_due(self) -> float:
        """Send all due rows. Log errors, and return the seconds to wait after one, else 0."""
        try:
            self._channels = self._channels or await self.open_channels()
            for channel in self._channels:
                while rows := await channel.queue.claim(MAX_BATCH, CLAIM_TIME):
                    try:
                        await self._send(channel, rows)
                    except (Exception, asyncio.CancelledError):
                        await channel.queue.release(rows)
                        raise
        except Exception as error:
            self._failures += 1
            if self._failures == 1:
                log.warning("Traces wait, and are sent later: %s", _reason(error))
            return SEND_BACKOFF.draw_wait(self._failures)
        if self._failures:
            log.info("Traces are sent again")
        self._failures = 0
        return 0.0

    async def _send(self, channel: Channel, rows: Rows) -> None:
        """Send a batch. If it is refused, send its rows one by one, to lose only the bad row."""
        try:
            refused = await channel.send(rows)
        except Exception as error:
            if isinstance(error, Unavailable) and error.status not in REFUSALS:
                raise
            if len(rows) > 1:
                for row in rows:
                    await self._send(channel, [row])
                return
            self.on_loss(1)
            log.warning("One of the %s is refused for good: %s", channel.name, _reason(error))
            await channel.queue.settle(rows, refused=True)
            return
        await channel.queue.settle(rows)
        if refused:
            self.on_loss(refused)
            log.warning("%d parts of %s are refused for good", refused, channel.name)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else type(error).__name__


async def forget_people(settings: Settings, memory: MemoryRepository) -> None:
    """Delete the remaining traces of users whose data was deleted from the database.

    These are the traces that running turns stored afterwards, and those in Langfuse. A deletion is
    repeated until it finds nothing more.
    """
    for deletion in await memory.list_due_deletions():
        remaining = await memory.delete_leftovers(deletion)
        if settings.langfuse_keys:
            try:
                async with aclosing(await langfuse_api(settings)) as api:
                    remaining += await api.delete_traces(deletion.user, deletion.at)
            except Exception as error:
                log.warning("Traces in Langfuse are still there, and deleted later: %s", error)
                remaining += 1  # repeat this deletion
        if remaining or datetime.now(UTC) - deletion.at < MAX_TRACE_DELAY:
            await memory.postpone_deletion(deletion, DELETE_BACKOFF.draw_wait(deletion.tries + 1))
        else:
            await memory.finish_deletion(deletion)
