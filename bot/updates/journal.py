"""Durable execution of turns on DBOS: accepted before acknowledged, resumed after a crash.

Every update is a workflow whose id is derived from the update's id, so a redelivery is the same
turn. Workflows wait in one queue that is partitioned by chat: one at a time in a chat, in order.
What a step returned is recorded, and a turn that is run again goes on behind its last step.
"""

import asyncio
import logging
import sqlite3
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext

from agent.engine.run import StepsChanged

if TYPE_CHECKING:
    from dbos import DBOSConfig

log = logging.getLogger(__name__)

R = TypeVar("R")
RunTurn = Callable[[int], Awaitable[None]]
Workflow = Callable[[int], Coroutine[Any, Any, None]]

QUEUE: Final = "turns"
WORKFLOW: Final = "turn"
FORGET_PAGE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableSettings:
    """Where turns are recorded and how eagerly they are looked for; times are seconds.

    `url` is a synchronous SQLAlchemy URL. `executor_id` names this process: a start with the same
    name resumes its turns at once, those of other names are taken over. `version` is pinned, so
    that turns which an earlier release began are finished by a later one.
    """

    url: str
    executor_id: str
    version: str
    poll_seconds: float
    turns_at_once: int
    retention: timedelta


def journal_url(database_url: str) -> str:
    """Where turns are recorded: on SQLite in a file beside, so that neither waits for a lock."""
    scheme, _, rest = database_url.partition("://")
    if not scheme.startswith("sqlite"):
        return database_url
    path = Path(rest.removeprefix("/")).expanduser()
    return f"sqlite:///{path.with_name(f'{path.stem}-turns{path.suffix}')}"


def executor_name(database_url: str, given: str | None) -> str:
    """The name of this process: SQLite has but one; elsewhere each start has one of its own."""
    return "local" if database_url.startswith("sqlite") else given or f"replica-{uuid.uuid4()}"


@dataclass(slots=True)
class DurableTurns:
    """The queue of turns of this process. It is also the journal of the turns it runs."""

    settings: DurableSettings
    workflow: Workflow
    ready: asyncio.Event
    active: set[int] = field(default_factory=set)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: bool = False

    async def enqueue(self, update_id: int, lane: str, retry: int = 0) -> None:
        """Have the turn of an update run in its lane's order; once, however often it is called."""
        from dbos import DBOS, SetEnqueueOptions, SetWorkflowID  # noqa: PLC0415

        with (
            SetWorkflowID(workflow_id(update_id, retry)),
            SetEnqueueOptions(queue_partition_key=lane),
        ):
            await DBOS.enqueue_workflow_async(QUEUE, self.workflow, update_id)

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """A step of the running turn; outside of a turn it simply runs.

        Raises:
            StepsChanged: another step is recorded at this place of the turn.
        """
        from dbos import DBOS  # noqa: PLC0415
        from dbos import error as dbos_errors  # noqa: PLC0415

        if DBOS.workflow_id is None:
            return await run()

        async def recorded() -> R:
            return await run()

        try:
            return await DBOS.run_step_async({"name": name}, recorded)
        except dbos_errors.DBOSUnexpectedStepError as error:
            raise StepsChanged(name) from error

    async def steps_recorded(self) -> Sequence[str]:
        """The names of the running turn's recorded steps: what it did, whether it made progress."""
        from dbos import DBOS  # noqa: PLC0415

        turn = DBOS.workflow_id
        if turn is None:
            return ()
        # Not `to_thread`, which carries the turn's context along: DBOS would record the question
        # itself as a step, and answer it from the record ever after.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, _steps, turn)

    async def finish(self, seconds: float) -> bool:
        """Begin no turn any more and wait for those that run, so long at most; whether none does.

        Turns that were waiting stay so, for the next start or another replica.
        """
        self._stopping = True
        if not self.active:
            return True
        self._idle.clear()
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def running(self, update_id: int, run: RunTurn) -> None:
        """Run a turn, and know that it runs; before all is ready and at the end, hold it back."""
        await self.ready.wait()
        if self._stopping:
            await asyncio.Event().wait()
        self.active.add(update_id)
        try:
            await run(update_id)
        finally:
            self.active.discard(update_id)
            if not self.active:
                self._idle.set()

    async def forget(self) -> int:
        """Delete the record of turns that ended before the retention time; how many there were."""
        from dbos import DBOS  # noqa: PLC0415

        before = (datetime.now(UTC) - self.settings.retention).isoformat()
        gone = 0
        while True:
            ended = await DBOS.list_workflows_async(
                status=["SUCCESS", "ERROR", "CANCELLED"],
                end_time=before,
                limit=FORGET_PAGE,
                load_input=False,
                load_output=False,
            )
            if ended:
                await DBOS.delete_workflows_async([each.workflow_id for each in ended])
            gone += len(ended)
            if len(ended) < FORGET_PAGE:
                return gone


def workflow_id(update_id: int, retry: int = 0) -> str:
    """The id of an update's turn; zero-padded, so that ids of one instant sort by update."""
    suffix = f"-retry-{retry}" if retry else ""
    return f"update-{update_id:020d}{suffix}"


def _steps(turn: str) -> Sequence[str]:
    from dbos import DBOS  # noqa: PLC0415

    return [step["function_name"] for step in DBOS.list_workflow_steps(turn, load_output=False)]


@asynccontextmanager
async def open_turns(
    settings: DurableSettings, run: RunTurn, ready: asyncio.Event
) -> AsyncIterator[DurableTurns]:
    """The queue of turns; `run` processes one update and is run again after a crash.

    Turns begin when `ready` is set.

    There is one per process, as DBOS itself is. At the end nothing new is begun; turns that are
    still running stay resumable, and this process must end then.
    """
    from dbos import DBOS  # noqa: PLC0415

    engine = None
    if settings.url.startswith("sqlite"):
        _prepare_sqlite(settings.url)
    else:
        engine = _postgres_engine(settings.url)
    DBOS(config=_config(settings, engine))

    @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
    async def turn(update_id: int) -> None:
        await turns.running(update_id, run)

    turns = DurableTurns(settings, turn, ready)
    DBOS.launch()
    try:
        await DBOS.register_queue_async(
            QUEUE,
            partition_concurrency=1,
            worker_concurrency=settings.turns_at_once,
            polling_interval_sec=settings.poll_seconds,
            on_conflict="always_update",
        )
        yield turns
    finally:
        await _destroy()
        if engine is not None:
            engine.dispose()


async def _destroy() -> None:
    """End DBOS, which takes the loop's default executor with it; what closes later needs one."""
    from dbos import DBOS  # noqa: PLC0415

    loop, executor = asyncio.get_running_loop(), ThreadPoolExecutor()
    end = partial(DBOS.destroy, workflow_completion_timeout_sec=0, destroy_registry=True)
    await loop.run_in_executor(executor, end)
    loop.set_default_executor(executor)


def _config(settings: DurableSettings, engine: Engine | None) -> "DBOSConfig":
    config: dict[str, Any] = {
        "name": "sommelier",
        "system_database_url": settings.url,
        "system_database_engine": engine,
        "application_version": settings.version,
        "executor_id": settings.executor_id,
        "log_level": "WARNING",
        "enable_otlp": False,
        "use_listen_notify": False,
    }
    return cast("DBOSConfig", config)


def _postgres_engine(url: str) -> Engine:
    """DBOS's own engine, but for one thing: no failure to connect is ever final.

    DBOS waits for a database that is away, and knows that it is by the text of the error; one of
    psycopg's texts it does not know ("connection is bad"). A step that has run, and whose record
    is refused so, would be run again.
    """
    engine = create_engine(
        url,
        pool_size=20,
        max_overflow=0,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "connect_timeout": 10,
            "options": "-c idle_in_transaction_session_timeout=60000",
        },
    )

    def mark(context: ExceptionContext) -> None:
        if context.connection is None:
            context.is_disconnect = True

    event.listen(engine, "handle_error", mark)
    return engine


def _prepare_sqlite(url: str) -> None:
    """Write-ahead logging is a property of the file, and DBOS does not ask for it."""
    path = Path(url.removeprefix("sqlite:///"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
