"""The locks of lanes, and the lock of the leader, the one replica that runs the shared tasks.

One process at a time runs a lane. On SQLite there is one process; on Postgres a lock is an advisory
lock of our session, so Postgres releases it when the process dies: it needs no heartbeat and no
clock. It releases all when it restarts. So a process that lost its connection takes back its locks,
and then waits for the other processes to do so. If two processes run a lane all the same, the epoch
of the turn decides.

Corrections and Stop reach the process that runs a turn by NOTIFY. A NOTIFY locks the whole database
at its commit, so it is sent only if the lane is locked by another process.
"""

import asyncio
import fcntl
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, LiteralString, NoReturn

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agent.retrying import Backoff, retry
from bot.tasks import AsyncFunction, run_shutdown_step, run_until
from db.engine import POSTGRES_OPTIONS
from db.repositories.inbox import Inbox

log = logging.getLogger(__name__)

LEADER: Final = "/leader"
"""The name of the leader's lock; no lane is called so."""
LEAD_SECONDS: Final = 1.0
"""Seconds between the tries of a process to become the leader."""
POLL_SECONDS: Final = 1.0
"""Seconds between searches for lanes that no process runs; they also notice a lost connection."""

SETTLE_SECONDS: Final = POLL_SECONDS * 2
"""A lane is taken over when two searches in a row have found it unlocked: a process that lost its
connection has taken back its locks by then."""
ANSWER_SECONDS: Final = 5
QUICK_RETRY: Final = Backoff(first_wait=0.2)
SERVER_KEEPALIVE: Final = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
)
"""Options by which the server notices within about 11 s that our machine is gone."""
AWAY: Final = (psycopg.Error, OSError)
"""Errors of a Postgres that is away."""

TAKE: Final = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
RELEASE: Final = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
TAKE_BACK: Final = """
SELECT lane FROM unnest(%s::text[]) AS lane
WHERE NOT pg_try_advisory_lock(hashtextextended(lane, 0))
"""
UNOWNED: Final = """
SELECT lane, pg_backend_pid() FROM updates
WHERE state IN ('waiting', 'answered') AND lane IS NOT NULL
GROUP BY lane
HAVING hashtextextended(lane, 0) NOT IN (
    SELECT (classid::bigint << 32) | objid::bigint
    FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND datname = current_database() AND pid <> pg_backend_pid()
)
ORDER BY min(update_id) LIMIT 1000
"""
NOTIFY: Final = "SELECT pg_notify('lanes', %s)"
STOP: Final = """
SELECT pg_notify('lanes', %s), EXISTS (
    SELECT FROM updates WHERE chat_id = %s AND tries > 0
    AND state IN ('waiting', 'answered') AND lane !~ '^(stop|aside)'
)
"""
POOLED: Final = (
    "Postgres is reached through a pooler in transaction mode, which breaks the locks of lanes: "
    "connect directly, or through one in session mode"
)


class AlreadyRunning(Exception):
    """Another process answers people from this database; stop it first."""


class Locks:
    """The locks of lanes in a single process, which gets every lock."""

    are_shared = False

    poll_seconds: float = 5.0
    """Seconds between searches for lanes that nobody runs: for updates that an operator retries."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        """Lock a lane for the block; yield False if another process has locked it."""
        yield True

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when this process loses the lock of a lane."""
        return asyncio.Event()

    async def stop(self, wanted: Mapping[str, int]) -> bool:
        """Ask other processes to stop turns; return whether a turn of that chat has begun there."""
        return False

    async def notices(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the notices of other processes for ever: a lane, or turns to stop."""
        await asyncio.Event().wait()
        yield {}  # pragma: no cover

    async def unowned(self) -> list[str]:
        """Return the lanes that have work but no process."""
        return await self._inbox.list_lanes()


class ReplicaLocks(Locks):
    """The locks that this process shares with others, by one connection to Postgres at `url`."""

    are_shared = True
    poll_seconds = POLL_SECONDS

    def __init__(self, url: str) -> None:
        given = conninfo_to_dict(url.replace("postgresql+psycopg://", "postgresql://", 1))
        options = f"{given.get('options', '')} {SERVER_KEEPALIVE}"
        self._address = make_conninfo("", **given | POSTGRES_OPTIONS | {"options": options})
        self._connection: psycopg.AsyncConnection | None = None
        self._using = asyncio.Lock()
        self._held = dict[str, asyncio.Event]()
        """The lanes whose locks we hold, each with an event that is set when it is lost."""
        self._pid = 0
        """The server process of our connection; 0 before the first."""
        self._unlocked: Sequence[str] | None = None
        """The lanes that the last search found; None before the first."""

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        """Lock a lane for the block; yield False if another process has locked it.

        That process is then notified that updates arrived. Wait if Postgres is away.
        """
        take = partial(self._execute, TAKE, lane)
        ((acquired,),) = await retry(
            take,
            max_tries=None,
            should_retry=lambda error: isinstance(error, AWAY),
            description="Locking a lane",
        )
        if acquired:
            self._held[lane] = asyncio.Event()
        else:
            # If the notice is lost, a correction in the update becomes a turn of its own.
            with suppress(*AWAY):
                await self._execute(NOTIFY, json.dumps({"lane": lane}))
        try:
            yield acquired
        finally:
            if self._held.pop(lane, None):
                # Without a connection the lock is gone already.
                with suppress(*AWAY):
                    await self._execute(RELEASE, lane)

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when this process loses the lock of a lane."""
        return self._held[lane]

    async def stop(self, wanted: Mapping[str, int]) -> bool:
        """Ask other processes to stop turns; return whether a turn of that chat has begun."""
        try:
            ((_, has_begun),) = await self._execute(STOP, json.dumps(wanted), wanted.get("chat_id"))
        except AWAY as error:
            log.warning("No other process could be asked to stop: %s", type(error).__name__)
            return False
        return bool(has_begun)

    async def notices(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the notices of other processes for ever: a `lane` with updates, or turns to stop.

        They arrive on a separate connection. Notices are lost while it is being restored.
        """
        while True:
            try:
                connecting = psycopg.AsyncConnection.connect(self._address, autocommit=True)
                async with await connecting as connection:
                    await connection.execute("LISTEN lanes")
                    async for notice in connection.notifies():
                        # Ours comes back to us: by then it could stop a turn that began since.
                        if notice.pid != self._pid:
                            yield json.loads(notice.payload)
            except AWAY as error:
                log.warning("Notices of other processes are lost: %s", type(error).__name__)
                await asyncio.sleep(POLL_SECONDS)

    async def unowned(self) -> list[str]:
        """Return the lanes that have work but no process.

        The first call returns all of them, later calls only those that the previous call found too.

        Raises:
            OSError, psycopg.Error: Postgres is away.
        """
        rows = await retry(partial(self._execute, UNOWNED), max_tries=2, backoff=QUICK_RETRY)
        if any(pid != self._pid for _, pid in rows):
            log.error(POOLED)
        before, self._unlocked = self._unlocked, [lane for lane, _ in rows]
        return [lane for lane in self._unlocked if before is None or lane in before]

    async def close(self) -> None:
        """Close the connection, and so release every lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*AWAY):
                await connection.close()

    async def _execute(self, statement: LiteralString, *values: object) -> Sequence[Any]:
        """Return the rows of a statement; close the connection if there is no answer.

        Raises:
            OSError, psycopg.Error: Postgres is away.
        """
        async with self._using:
            try:
                async with asyncio.timeout(ANSWER_SECONDS + SETTLE_SECONDS):
                    connection = self._connection or await self._connect()
                    cursor = await connection.execute(statement, values)
                    return await cursor.fetchall()
            except BaseException:
                await self.close()
                raise

    async def _connect(self) -> psycopg.AsyncConnection:
        """Open the connection. After a loss, take back our locks and wait for others to do so."""
        connecting = psycopg.AsyncConnection.connect(self._address, autocommit=True)
        self._connection = connection = await connecting
        if self._pid:
            taken = await connection.execute(TAKE_BACK, [[*self._held]])
            for (lane,) in await taken.fetchall():
                self._held.pop(lane).set()
            await asyncio.sleep(SETTLE_SECONDS)
        # Asked for by SQL: behind a pooler the protocol tells another number.
        (row,) = await (await connection.execute("SELECT pg_backend_pid()")).fetchall()
        self._pid = row[0]
        return connection


@asynccontextmanager
async def open_locks(url: str, inbox: Inbox) -> AsyncIterator[Locks]:
    """Open the locks of lanes, which several processes share on Postgres.

    An SQLite file has one process: another would take its turns for interrupted.

    Raises:
        AlreadyRunning: another process answers from this SQLite file.
    """
    if url.startswith("sqlite"):
        with _single_process(Path(url.partition(":///")[2])):
            yield Locks(inbox)
        return
    locks = ReplicaLocks(url)
    try:
        yield locks
    finally:
        await run_shutdown_step("the locks of lanes", locks.close)


@contextmanager
def _single_process(file: Path) -> Iterator[None]:
    path = file.expanduser()
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"Another process answers people from {path}; stop it first, or use Postgres "
                "to run several."
            ) from None
        yield


async def while_leading(locks: Locks, lead: AsyncFunction) -> NoReturn:
    """Run `lead` while this process leads: until it loses the leader's lock."""
    while True:
        async with locks.lock(LEADER) as leads:
            if leads:
                await run_until(locks.lost(LEADER), lead)
        await asyncio.sleep(LEAD_SECONDS)
