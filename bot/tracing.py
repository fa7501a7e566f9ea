"""Set up tracing: mask traces, send them to a server, and fetch managed prompts.

Stored traces and scores are sent until they arrive. If the process dies after sending a row and
before recording that, the row is sent again and, having the same id, replaces itself. A row is
either sent, refused (kept with the server's words, and sent again only by `sommelier traces
resend`), or sent later.

Langfuse's client takes a second to import, so a thread imports it when there is something to send.
"""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Row

from agent.engine.run import Prompt
from agent.retrying import Backoff
from agent.tracing.langfuse_project import ManagedPrompts, Project, Refused, Unavailable
from agent.tracing.masking import Masking
from agent.tracing.records import TraceRecord
from bot.tasks import in_background, run_shutdown_step
from config import Settings
from db.engine import Sessions
from db.models import ScoreRow, TraceRow, utc_now
from db.repositories.people import MemoryUpkeep
from db.repositories.traces import RowQueue, Rows, unpack

if TYPE_CHECKING:
    from agent.tracing.delivery import Backend, LangfuseApi
    from agent.tracing.encoding import TraceEncoder

log = logging.getLogger(__name__)

NO_LANGFUSE_KEYS: Final = ("sommelier", "-")  # for a client that sends to OpenTelemetry only
REQUEST_SECONDS: Final = 30
PROMPT_LABEL: Final = "production"
MAX_BATCH: Final = 32
POLL_SECONDS: Final = 2.0  # between two checks for rows to send
MAX_SCORES: Final = 16
CLAIM_TIME: Final = timedelta(minutes=10)  # longer than all requests for the claimed rows together
SEND_BACKOFF: Final = Backoff(first_wait=2.0, max_wait=300.0)
DELETE_BACKOFF: Final = Backoff(first_wait=5.0, max_wait=3600.0)
MAX_TRACE_DELAY: Final = 2 * CLAIM_TIME
"""The time after a user's deletion in which traces of running turns may still be stored."""


def masking_of(settings: Settings) -> Masking:
    """Return the masking of texts before they are shown or sent."""
    return Masking(settings.trace_content, settings.secrets)


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """Return a function that returns the link of a trace id; None without Langfuse."""
    base_url = settings.langfuse_base_url.rstrip("/")
    # Langfuse redirects this link to the project of the trace.
    return (lambda trace_id: f"{base_url}/trace/{trace_id}") if settings.langfuse_keys else None


def project_of(settings: Settings) -> Project:
    """Return the configured project of Langfuse; one with other keys without Langfuse."""
    return Project(
        settings.langfuse_keys or NO_LANGFUSE_KEYS,
        settings.langfuse_base_url,
        version=version("sommelier"),
        environment=settings.langfuse_tracing_environment,
        release=settings.langfuse_release or version("sommelier"),
    )


def trace_encoder(settings: Settings) -> "TraceEncoder":
    """Return what has Langfuse's client, for traces, prompts and data sets."""
    from agent.tracing.encoding import get_trace_encoder  # noqa: PLC0415 - takes a second

    return get_trace_encoder(project_of(settings))


async def langfuse_api(settings: Settings, seconds: float = REQUEST_SECONDS) -> "LangfuseApi":
    """Return the API of the configured project; a request takes at most `seconds`."""
    delivery = await asyncio.to_thread(import_module, "agent.tracing.delivery")
    api: LangfuseApi = delivery.LangfuseApi(project_of(settings), seconds=seconds)
    return api


async def otlp_backend(settings: Settings) -> "Backend":
    """Return the backend that OpenTelemetry's standard variables configure."""
    delivery = await asyncio.to_thread(import_module, "agent.tracing.delivery")
    url, headers = f"{settings.otel_exporter_otlp_endpoint}/v1/traces", settings.otlp_headers
    project = project_of(settings)
    backend: Backend = delivery.Backend(project, url, headers, seconds=REQUEST_SECONDS)
    return backend


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Mapping[str, Prompt]]:
    """Open the prompts managed in Langfuse, and keep them up to date; empty without its keys."""
    if not settings.langfuse_keys:
        yield {}
        return
    prompts = ManagedPrompts(lambda: trace_encoder(settings).client, PROMPT_LABEL)
    async with in_background(prompts.refresh):
        yield prompts.current


@asynccontextmanager
async def open_exporter(
    settings: Settings, sessions: Sessions, on_loss: Callable[[int], None] = lambda count: None
) -> AsyncIterator[None]:
    """Send traces and scores while the block runs and once at its end, if a server is configured.

    The server is Langfuse if its keys are set, else a backend of OpenTelemetry.
    """
    if not settings.sends_traces:
        yield
        return
    async with AsyncExitStack() as stack:

        async def open_backend() -> "Backend":
            backend = await trace_backend(settings)
            stack.push_async_callback(run_shutdown_step, "tracing", backend.aclose)
            return backend

        exporter = Exporter(open_backend, *export_queues(sessions), on_loss)
        async with in_background(exporter.run):
            yield
        await run_shutdown_step("tracing", exporter.send_due)


async def trace_backend(settings: Settings) -> "Backend":
    """Return the configured server: Langfuse if its keys are set, else OpenTelemetry's."""
    return await (langfuse_api(settings) if settings.langfuse_keys else otlp_backend(settings))


def export_queues(
    sessions: Sessions, now: Callable[[], datetime] = utc_now
) -> tuple[RowQueue, RowQueue]:
    """Return the queues of traces and of scores."""
    return RowQueue(sessions, TraceRow, now), RowQueue(sessions, ScoreRow, now)


@dataclass(slots=True)
class Exporter:
    """Sends the waiting traces and scores to a server, with a growing backoff after errors.

    `open_backend` is called once, before the first rows are sent. `on_loss` is called with the
    number of parts that were permanently refused. Several replicas may send concurrently: each row
    is claimed by one of them.
    """

    open_backend: Callable[[], Awaitable["Backend"]]
    traces: RowQueue
    scores: RowQueue
    on_loss: Callable[[int], None] = lambda count: None
    _backend: "Backend | None" = None
    _failures: int = 0

    async def run(self) -> None:
        """Send rows until cancelled; the remaining rows are sent after the next start."""
        while True:
            wait = await self.send_due()
            await asyncio.sleep(wait or POLL_SECONDS)

    async def send_due(self) -> float:
        """Send all due rows. Log errors, and return the seconds to wait after one, else 0."""
        try:
            backend = self._backend = self._backend or await self.open_backend()
            await self.send_traces(backend)
            if backend.takes_scores:
                await self.send_scores(backend)
        except Exception as error:
            self._failures += 1
            if self._failures == 1:
                reason = str(error) if isinstance(error, Unavailable) else type(error).__name__
                log.warning("Traces wait, and are sent later: %s", reason)
            return SEND_BACKOFF.draw_wait(self._failures)
        if self._failures:
            log.info("Traces are sent again")
        self._failures = 0
        return 0.0

    async def send_traces(self, backend: "Backend") -> None:
        """Send the due traces in batches."""
        while True:
            async with self.traces.claimed(MAX_BATCH, CLAIM_TIME) as rows:
                if not rows:
                    return
                await self._send_batch(backend, rows)

    async def _send_batch(self, backend: "Backend", rows: Rows) -> None:
        """Send some traces. If they are refused, send them one by one, to lose only the bad one."""
        try:
            rejected = await backend.send_traces(await asyncio.to_thread(_unpack_all, rows))
        except Refused as error:
            if len(rows) == 1:
                await self._refuse(self.traces, rows, error)
                return
            for row in rows:
                await self._send_batch(backend, [row])
            return
        await self.traces.settle(rows)
        if rejected:
            self.on_loss(rejected)
            log.warning("%d spans are refused for good", rejected)

    async def send_scores(self, backend: "Backend") -> None:
        """Send the due scores one by one, as servers of every version take them."""
        while True:
            async with self.scores.claimed(MAX_SCORES, CLAIM_TIME) as rows:
                if not rows:
                    return
                sent = [row for row in rows if await self._send_score(backend, row)]
                await self.scores.settle(sent)

    async def _send_score(self, backend: "Backend", row: Row[Any]) -> bool:
        """Send a score; return False if it is refused."""
        try:
            await backend.send_score(row)
        except Refused as error:
            await self._refuse(self.scores, [row], error)
            return False
        return True

    async def _refuse(self, queue: RowQueue, rows: Rows, error: Refused) -> None:
        """Keep a row that the server refused, with the server's words."""
        self.on_loss(1)
        log.warning("Refused, and kept for `sommelier traces resend`: %s", error)
        await queue.settle(rows, refusal=str(error))


def _unpack_all(rows: Rows) -> list[TraceRecord]:
    try:
        return [unpack(row.record) for row in rows]
    except (zlib.error, ValueError) as error:
        raise Refused(f"a stored trace cannot be read ({type(error).__name__})") from None


async def forget_people(settings: Settings, upkeep: MemoryUpkeep) -> None:
    """Delete the traces in Langfuse of users whose data was deleted from the database.

    A deletion is repeated until it finds nothing more.
    """
    for deletion in await upkeep.list_due_deletions():
        if not deletion.tries:
            await upkeep.sessions.checkpoint()
        remaining = 0
        if settings.langfuse_keys:
            try:
                async with aclosing(await langfuse_api(settings)) as api:
                    remaining = await api.delete_traces(deletion.user, deletion.at)
            except Exception as error:
                log.warning("Traces in Langfuse are still there, and deleted later: %s", error)
                remaining = 1  # repeat this deletion
        if remaining or datetime.now(UTC) - deletion.at < MAX_TRACE_DELAY:
            await upkeep.postpone_deletion(deletion, DELETE_BACKOFF.draw_wait(deletion.tries + 1))
        else:
            await upkeep.finish_deletion(deletion)
