"""Turns of replicas that died are taken over by one that lives; on Postgres only.

The sign of life of a replica is a session advisory lock, which Postgres drops when the replica's
connection goes. A lock that is free may be one that Postgres's own restart dropped and its owner is
about to take again; so it must stay free for longer than that takes before its owner counts as
dead, and whoever lost the connection too begins to watch anew.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Set
from contextlib import suppress
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bot.updates.journal import QUEUE, DurableSettings

log = logging.getLogger(__name__)

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


class Takeover:
    """Holds this replica's sign of life, and looks for replicas that have lost theirs."""

    def __init__(self, settings: DurableSettings) -> None:
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
        from dbos import DBOS  # noqa: PLC0415

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
        from dbos import DBOS  # noqa: PLC0415

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
