"""Set up tracing: mask traces, send them to a server, and fetch managed prompts.

A trace or a score is stored as a row, and sent until it arrives. If the process dies after sending
a row and before recording that, the row is sent again. The second row has the same id, so the
server replaces the first one. One of four things happens to a row that is due:

- It is sent.
- The server refuses it for good. Then it is kept with the server's words, and only
  `sommelier traces resend` sends it again.
- This program cannot encode it. Then it is set aside for a while.
- The server is not available. Then it is sent later.

Langfuse's client takes a second to import. So a thread imports it when there is something to send.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Row

from agent.engine.run import Prompt
from agent.servers import Backoff
from agent.tracing.langfuse_project import ManagedPrompts, Project, Refused, Unavailable
from agent.tracing.masking import Masking
from bot.tasks import in_background, run_shutdown_step
from config import Settings
from db.engine import Sessions
from db.export_queue import RowQueue
from db.models import DeletionRow, ScoreRow, TraceRow, utc_now
from db.repositories.people import MemoryUpkeep
from db.traces import unpack

if TYPE_CHECKING:
    from agent.tracing.delivery import LangfuseApi, OtlpServer
    from agent.tracing.encoding import TraceEncoder

log = logging.getLogger(__name__)

NO_LANGFUSE_KEYS: Final = ("sommelier", "-")
"""The made-up keys of a client that sends to OpenTelemetry only."""
REQUEST_SECONDS: Final = 30
PROMPT_LABEL: Final = "production"
MAX_BATCH: Final = 16
"""How many rows a process claims at once."""
POLL_SECONDS: Final = 2.0
"""The time between two checks for rows to send."""
CLAIM_TIME: Final = timedelta(minutes=10)
"""How long a process may take to send the rows that it has claimed."""
SEND_BACKOFF: Final = Backoff(first_wait=2.0, max_wait=300.0)
DELETE_BACKOFF: Final = Backoff(first_wait=5.0, max_wait=3600.0)
MAX_TRACE_DELAY: Final = 2 * CLAIM_TIME
"""How long after the deletion of a user's data the traces of turns that ran then may arrive."""


def masking_of(settings: Settings) -> Masking:
    """Return the masking of texts before they are shown or sent."""
    return Masking(settings.trace_content, settings.secrets)


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """Return a function from the id of a trace to its address. Without Langfuse, return None."""
    if not settings.langfuse_keys:
        return None
    # Langfuse redirects this link to the project of the trace.
    traces_url = f"{settings.langfuse_base_url.rstrip('/')}/trace/"
    return lambda trace_id: f"{traces_url}{trace_id}"


def project_of(settings: Settings) -> Project:
    """Return the configured project of Langfuse, or one with made-up keys without Langfuse."""
    return Project(
        settings.langfuse_keys or NO_LANGFUSE_KEYS,
        settings.langfuse_base_url,
        version=version("sommelier"),
        environment=settings.langfuse_tracing_environment,
        release=settings.langfuse_release or version("sommelier"),
    )


def trace_encoder(settings: Settings) -> "TraceEncoder":
    """Return the encoder of traces. Its `client` is Langfuse's, which has prompts and data sets."""
    from agent.tracing.encoding import get_trace_encoder  # noqa: PLC0415 - takes a second

    return get_trace_encoder(project_of(settings))


def langfuse_api(settings: Settings, seconds: float = REQUEST_SECONDS) -> "LangfuseApi":
    """Return the API of the configured project. A request may take `seconds`."""
    from agent.tracing.delivery import LangfuseApi  # noqa: PLC0415 - takes a second

    return LangfuseApi(project_of(settings), seconds=seconds)


def trace_server(settings: Settings) -> "OtlpServer":
    """Return the configured server: Langfuse if its keys are set, or else OpenTelemetry's."""
    if settings.langfuse_keys:
        return langfuse_api(settings)
    from agent.tracing.delivery import OtlpServer  # noqa: PLC0415 - takes a second

    url = f"{settings.otel_exporter_otlp_endpoint}/v1/traces"
    headers = settings.otlp_headers
    return OtlpServer(project_of(settings), url, headers, seconds=REQUEST_SECONDS)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Mapping[str, Prompt]]:
    """Yield the prompts that are managed in Langfuse, and keep them up to date during the block.

    There are none without Langfuse's keys.
    """
    if not settings.langfuse_keys:
        yield {}
        return
    prompts = ManagedPrompts(lambda: trace_encoder(settings).client, PROMPT_LABEL)
    async with in_background(prompts.refresh):
        yield prompts.current


@asynccontextmanager
async def open_exporter(
    settings: Settings,
    sessions: Sessions,
    on_loss: Callable[[int], None] = lambda count: None,
) -> AsyncIterator[None]:
    """Send traces and scores while the block runs, and once more at its end.

    Do nothing if no server is configured.
    """
    if not settings.sends_traces:
        yield
        return
    exporter = Exporter(lambda: trace_server(settings), sessions, on_loss)
    try:
        async with in_background(exporter.run):
            yield
        await run_shutdown_step("tracing", exporter.send_due)
    finally:
        await run_shutdown_step("tracing", exporter.aclose)


class Exporter:
    """Sends the waiting traces and scores to a server. After errors it waits longer and longer.

    `open_server` is called once, in a thread, before the first rows are sent. `on_loss` is called
    with the number of rows that were refused for good. Several replicas may send at the same time:
    only one of them claims a row.
    """

    def __init__(
        self,
        open_server: Callable[[], "OtlpServer"],
        sessions: Sessions,
        on_loss: Callable[[int], None] = lambda count: None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.traces = RowQueue(sessions, TraceRow, now)
        self.scores = RowQueue(sessions, ScoreRow, now)
        self.on_loss = on_loss
        self._open_server = open_server
        self._server: OtlpServer | None = None
        self._failures = 0

    async def run(self) -> None:
        """Send rows until cancelled. Rows that are left are sent after the next start."""
        while True:
            wait = await self.send_due()
            await asyncio.sleep(wait or POLL_SECONDS)

    async def send_due(self) -> float:
        """Send all due rows. If that fails, log the error.

        Return the seconds to wait before the next attempt, which is 0 after a success.
        """
        try:
            if self._server is None:
                self._server = await asyncio.to_thread(self._open_server)
            await self.send_traces(self._server)
            await self.send_scores(self._server)
        except Exception as error:
            self._failures += 1
            is_first = self._failures == 1
            if is_first:
                reason = type(error).__name__
                if isinstance(error, Unavailable):
                    reason = str(error)
                log.warning("Traces wait, and are sent later: %s", reason)
            return SEND_BACKOFF.draw_wait(self._failures)
        if self._failures:
            log.info("Traces are sent again")
            self._failures = 0
        return 0.0

    async def send_traces(self, server: "OtlpServer") -> None:
        """Send the due traces."""

        async def send(row: Row[Any]) -> None:
            trace = await asyncio.to_thread(unpack, row.record, row.delivery)
            await server.send_trace(trace)

        await self._send_rows(self.traces, send)

    async def send_scores(self, server: "OtlpServer") -> None:
        """Send the due scores."""
        await self._send_rows(self.scores, server.send_score)

    async def _send_rows(
        self, queue: RowQueue, send: Callable[[Row[Any]], Awaitable[None]]
    ) -> None:
        """Send the due rows of a queue one by one, so that a bad row does not stop the others."""
        while True:
            async with queue.claimed(MAX_BATCH, CLAIM_TIME) as rows:
                sent: list[Row[Any]] = []
                for row in rows:
                    if await self._send_row(queue, row, send):
                        sent.append(row)
                await queue.settle(sent)
            if len(rows) < MAX_BATCH:
                return

    async def _send_row(
        self,
        queue: RowQueue,
        row: Row[Any],
        send: Callable[[Row[Any]], Awaitable[None]],
    ) -> bool:
        """Send a row. Return False if it was refused or set aside."""
        try:
            await send(row)
        except Refused as error:
            self.on_loss(1)
            log.warning("Refused, and kept for `sommelier traces resend`: %s", error)
            await queue.refuse(row, str(error))
            return False
        except Unavailable:
            # `send_due` tries all rows again later.
            raise
        except Exception as error:
            # The mistake is in this program. The next release may be able to encode the row.
            reason = f"it cannot be encoded ({type(error).__name__})"
            log.warning("A trace or score is set aside: %s", reason)
            await queue.set_aside(row, reason)
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        if self._server is not None:
            await self._server.aclose()


async def forget_people(settings: Settings, upkeep: MemoryUpkeep) -> None:
    """Delete the traces in Langfuse of users whose data were deleted from the database.

    A deletion is repeated until it finds no more traces.
    """
    deletions = await upkeep.list_due_deletions()
    if deletions:
        # The write-ahead log of SQLite may hold words of a turn that ended after the last try. A
        # checkpoint removes them.
        await upkeep.sessions.checkpoint()
    for deletion in deletions:
        # Turns that ran at the time of a recent deletion may still send traces to Langfuse.
        is_recent = datetime.now(UTC) - deletion.at < MAX_TRACE_DELAY
        may_be_more = False
        if settings.langfuse_keys:
            may_be_more = await _delete_traces(settings, deletion)
        if may_be_more or is_recent:
            seconds = DELETE_BACKOFF.draw_wait(deletion.tries + 1)
            await upkeep.postpone_deletion(deletion, seconds)
        else:
            await upkeep.finish_deletion(deletion)


async def _delete_traces(settings: Settings, deletion: DeletionRow) -> bool:
    """Delete a user's traces in Langfuse. Return whether there may be more of them."""
    try:
        async with aclosing(await asyncio.to_thread(langfuse_api, settings)) as api:
            return await api.delete_traces(deletion.user, deletion.at)
    except Exception as error:
        log.warning("Traces in Langfuse are still there, and deleted later: %s", error)
        return True
