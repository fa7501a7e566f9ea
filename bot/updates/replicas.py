"""The lanes of several replicas, on Postgres: DBOS runs each on one of them at a time.

A workflow is a lane that was woken: it runs the lane's turns in the order of their updates, so what
order workflows come in decides nothing. What a turn did is in the journal; DBOS records no step.

Turns of replicas that died are taken over by one that lives. The sign of life of a replica is a
session advisory lock, which Postgres drops when the replica's connection goes. A lock that is free
may be one that Postgres's own restart dropped and its owner is about to take again; so it must stay
free for longer than that takes before its owner counts as dead, and whoever lost the connection too
begins to watch anew.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, cast

import psycopg
from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext

log = logging.getLogger(__name__)

QUEUE: Final = "turns"
WORKFLOW: Final = "turn"
FORGET_PAGE: Final = 1000

SCAN_SECONDS: Final = 1.0
"""How often we look, and how soon we notice that our own connection has gone."""

DEAD_SECONDS: Final = 6.0
"""How long a sign of life must be missing."""

KEEPALIVE: Final = (
    "connect_timeout=5 keepalives_idle=5 keepalives_interval=2 keepalives_count=3 "
    "options='-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3'"
)
"""Either side of the connection notices within some 11 s that the other's machine is gone."""

NAMESPACE: Final = 0x50_4D_4C_52
"""The first half of our advisory lock ids, so that they meet nobody else's."""

HELD: Final = """
SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND classid = %s AND granted AND datname = current_database()
"""


def lock_id(executor_id: str) -> int:
    """The second half of a replica's lock id: 31 bits of a hash of its name."""
    return int.from_bytes(hashlib.sha256(executor_id.encode()).digest()[:4]) >> 1


def libpq_url(url: str) -> str:
    """A SQLAlchemy URL as libpq reads it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """Where lanes are queued and how eagerly they are looked for; times are seconds.

    `url` is a SQLAlchemy URL. `executor_id` names this process: a start with the same name resumes
    its turns at once, those of other names are taken over. `version` is pinned, so that lanes which
    an earlier release began are finished by a later one.
    """

    url: str
    executor_id: str
    version: str
    poll_seconds: float
    at_once: int


@asynccontextmanager
async def open_queue(
    settings: ReplicaSettings, run: Callable[[str], Awaitable[None]]
) -> AsyncIterator["ReplicaQueue"]:
    """The queue of lanes; `run` runs one, and runs it again after a crash.

    There is one per process, as DBOS itself is. At the end what still runs stays resumable, and
    this process must end then.
    """
    engine = _engine(settings.url)
    DBOS(config=_config(settings, engine))

    @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
    async def turn(lane: str) -> None:
        await run(lane)

    DBOS.launch()
    try:
        await DBOS.register_queue_async(
            QUEUE,
            partition_concurrency=1,
            worker_concurrency=settings.at_once,
            polling_interval_sec=settings.poll_seconds,
            on_conflict="always_update",
        )
        yield ReplicaQueue(turn)
    finally:
        await _destroy()
        engine.dispose()


@dataclass(frozen=True, slots=True)
class ReplicaQueue:
    """The queue of lanes of all replicas; each lane is run by one of them at a time."""

    _workflow: Callable[[str], Any]

    async def wake(self, lane: str, update_id: int, retry: int = 0) -> None:
        """Have a lane run, once for an update and its so manieth retry."""
        with (
            SetWorkflowID(workflow_id(update_id, retry)),
            SetEnqueueOptions(queue_partition_key=lane),
        ):
            await DBOS.enqueue_workflow_async(QUEUE, self._workflow, lane)

    async def forget(self, older_than: timedelta) -> int:
        """Delete the record of lanes that were run before; how many there were."""
        before = (datetime.now(UTC) - older_than).isoformat()
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
    """The id under which an update wakes its lane."""
    suffix = f"-retry-{retry}" if retry else ""
    return f"lane-of-{update_id:020d}{suffix}"


async def _destroy() -> None:
    """End DBOS, which takes the loop's default executor with it; what closes later needs one."""
    loop, executor = asyncio.get_running_loop(), ThreadPoolExecutor()
    end = partial(DBOS.destroy, workflow_completion_timeout_sec=0, destroy_registry=True)
    await loop.run_in_executor(executor, end)
    loop.set_default_executor(executor)


def _config(settings: ReplicaSettings, engine: Engine) -> DBOSConfig:
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


def _engine(url: str) -> Engine:
    """DBOS's own engine, but for one thing: no failure to connect is ever final.

    DBOS waits for a database that is away, and knows that it is by the text of the error; one of
    psycopg's texts it does not know ("connection is bad"): a lane that has run would be held for
    failed.
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


class Takeover:
    """Holds this replica's sign of life, and looks for replicas that have lost theirs."""

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._connection: psycopg.AsyncConnection | None = None
        self._missing_since: dict[str, float] = {}

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self._live()
                    await self._scan()
                except (psycopg.Error, OSError) as error:
                    log.warning("The sign of life is interrupted: %s", type(error).__name__)
                    await self._disconnect()
                    await asyncio.sleep(0.5)
                else:
                    await asyncio.sleep(SCAN_SECONDS)
        finally:
            await self._disconnect()

    async def _live(self) -> None:
        """Hold our own lock, and notice when the connection that held it has gone."""
        if self._connection is None or self._connection.closed:
            address = make_conninfo(libpq_url(self._settings.url), **conninfo_to_dict(KEEPALIVE))
            self._connection = await psycopg.AsyncConnection.connect(address, autocommit=True)
            await self._lock("SELECT pg_advisory_lock(%s, %s)", self._settings.executor_id)
        await self._connection.execute("SELECT 1")

    async def _scan(self) -> None:
        pending = await DBOS.list_workflows_async(
            status="PENDING", queue_name=QUEUE, load_input=False, load_output=False
        )
        others = {each.executor_id for each in pending if each.executor_id}
        others.discard(self._settings.executor_id)
        alive = await self._held()
        for name in self._dead({name for name in others if lock_id(name) not in alive}):
            await self._take(name, [w.workflow_id for w in pending if w.executor_id == name])

    def _dead(self, missing: Set[str]) -> list[str]:
        """Those of the missing who have been so for too long."""
        now = time.monotonic()
        self._missing_since = {name: self._missing_since.get(name, now) for name in missing}
        return sorted(n for n, since in self._missing_since.items() if now - since > DEAD_SECONDS)

    async def _held(self) -> set[int]:
        """The lock ids that are held; looked at, not tried, or watchers would see each other."""
        assert self._connection is not None  # noqa: S101 - _live() comes first
        cursor = await self._connection.execute(HELD, (NAMESPACE,))
        return {int(row[0]) for row in await cursor.fetchall()}

    async def _take(self, executor_id: str, workflow_ids: list[str]) -> None:
        """Resume a dead replica's turns in their order, unless another replica is doing so."""
        if not await self._lock("SELECT pg_try_advisory_lock(%s, %s)", executor_id):
            return
        try:
            still = await DBOS.list_workflows_async(
                status="PENDING", executor_id=executor_id, load_input=False, load_output=False
            )
            ids = sorted({each.workflow_id for each in still} & set(workflow_ids))
            if ids:
                log.warning("Taking over %s turns of %s, which died", len(ids), executor_id)
                await DBOS.resume_workflows_async(ids, queue_name=QUEUE)
        finally:
            await self._lock("SELECT pg_advisory_unlock(%s, %s)", executor_id)

    async def _lock(self, statement: str, executor_id: str) -> bool:
        assert self._connection is not None  # noqa: S101 - _live() comes first
        cursor = await self._connection.execute(
            statement.encode(), (NAMESPACE, lock_id(executor_id))
        )
        row = await cursor.fetchone()
        return bool(row and row[0])

    async def _disconnect(self) -> None:
        self._missing_since.clear()
        if self._connection is not None:
            with suppress(psycopg.Error, OSError):
                await self._connection.close()
            self._connection = None
