"""Lock lanes, and choose the leading process: the one replica that does the shared tasks.

A lane is the queue of a chat's updates. Only one process at a time may run it. With SQLite there is
only one process at all. With Postgres, a lock is an advisory lock of the process's session.
Postgres releases it when the process dies, without heartbeats or clocks. But Postgres releases all
locks when it restarts. Therefore a process that has lost its connection locks its lanes again, and
then waits until the other processes have done the same. Should two processes still run a lane, only
the one that has begun the turn last can commit it (its epoch is the current one).

If a user corrects a message or presses Stop, another process may run the turn. A NOTIFY of Postgres
informs that process. The commit of a NOTIFY locks the whole database, so it is sent only if another
process has locked the lane.
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

from agent.servers import Backoff, retry
from bot.tasks import AsyncFunction, run_shutdown_step, run_until
from db.engine import POSTGRES_OPTIONS
from db.repositories.inbox import Inbox

log = logging.getLogger(__name__)

LEADER: Final = "/leader"
"""The name of the leading process's lock. No lane has this name."""
LEAD_SECONDS: Final = 1.0
"""Seconds between the attempts of a process to become the leading one."""
POLL_SECONDS: Final = 1.0
"""Seconds between searches for lanes that no process runs.

A search also notices that the connection is lost.
"""
SETTLE_SECONDS: Final = POLL_SECONDS * 2
"""How long a process waits after it has locked its lanes again.

A lane is taken over if two searches in a row find it unlocked. By then, all processes that have
lost their connections have locked their lanes again.
"""
ANSWER_SECONDS: Final = 5
"""How many seconds to wait for the result of a statement."""
QUICK_RETRY: Final = Backoff(first_wait=0.2)
SERVER_KEEPALIVE: Final = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
)
"""Options with which the server notices within about 11 s that this machine has failed."""
CONNECTION_ERRORS: Final = (psycopg.Error, OSError)
"""Errors that are raised while Postgres is unavailable."""

LOCK: Final = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
UNLOCK: Final = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
LOCK_AGAIN: Final = """
SELECT lane FROM unnest(%s::text[]) AS lane
WHERE NOT pg_try_advisory_lock(hashtextextended(lane, 0))
"""
# Postgres shows the 64 bits of an advisory lock as two numbers, with `objsubid` 1.
FIND_UNOWNED: Final = """
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
SEND_NOTICE: Final = "SELECT pg_notify('lanes', %s)"
# This also returns whether a turn of the chat has begun. Turns of quick lanes do not count.
SEND_STOP: Final = """
SELECT pg_notify('lanes', %s), EXISTS (
    SELECT FROM updates WHERE chat_id = %s AND tries > 0
    AND state IN ('waiting', 'answered') AND lane !~ '^(stop|aside)'
)
"""
POOLER_WARNING: Final = (
    "Postgres is reached through a pooler in transaction mode, which breaks the locks of lanes: "
    "connect directly, or through one in session mode"
)


class AlreadyRunning(Exception):
    """Another process runs the bot with this database: stop it first."""


class Locks:
    """The locks of lanes for a single process, which gets every lock."""

    are_shared = False

    poll_seconds: float = 5.0
    """Seconds between searches for lanes that no process runs.

    A lane is in this state if an operator has an update in it tried again.
    """

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        """Lock a lane for the block. Yield whether this process has got the lock."""
        yield True

    def watch_loss(self, lane: str) -> asyncio.Event:
        """Return an event that is set when this process loses the lock of a lane."""
        return asyncio.Event()

    async def stop_elsewhere(self, fields: Mapping[str, int]) -> bool:
        """Ask other processes to stop the turns that have these fields, such as `chat_id`.

        Return whether a turn of that chat has begun in one of them.
        """
        return False

    async def listen(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the notices of other processes, forever.

        A notice names a `lane` with new updates, or the fields of turns to stop.
        """
        await asyncio.Event().wait()
        yield {}  # pragma: no cover

    async def find_unowned(self) -> list[str]:
        """Return the lanes with waiting updates that no process runs."""
        return await self._inbox.list_lanes()


class ReplicaLocks(Locks):
    """Locks that several processes share through Postgres. Each process uses one connection."""

    are_shared = True
    poll_seconds = POLL_SECONDS

    def __init__(self, url: str) -> None:
        # SQLAlchemy's address names the driver, too.
        plain_url = url.replace("postgresql+psycopg://", "postgresql://", 1)
        parameters = conninfo_to_dict(plain_url)
        own_options = parameters.get("options", "")
        options = {"options": f"{own_options} {SERVER_KEEPALIVE}"}
        self._address = make_conninfo("", **parameters | POSTGRES_OPTIONS | options)
        self._connection: psycopg.AsyncConnection | None = None
        self._connection_in_use = asyncio.Lock()
        self._locked: dict[str, asyncio.Event] = {}
        """The lanes that this process has locked, each with an event for the loss of its lock."""
        self._pid = 0
        """The id of the server's process for the connection, or 0 before the first connection."""
        self._last_unowned: Sequence[str] | None = None
        """The lanes that the last search found, or None before the first search."""

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        """Lock a lane for the block, and yield True. Wait while Postgres is not available.

        If another process has locked the lane, notify it of the new updates, and yield False.
        """
        rows = await retry(
            partial(self._execute, LOCK, lane),
            max_tries=None,
            should_retry=_is_connection_error,
            description="Locking a lane",
        )
        ((is_acquired,),) = rows
        if is_acquired:
            self._locked[lane] = asyncio.Event()
        else:
            # A notice may be lost. Then a correction gets a turn of its own, instead of restarting
            # the turn that it corrects.
            with suppress(*CONNECTION_ERRORS):
                await self._execute(SEND_NOTICE, json.dumps({"lane": lane}))
        try:
            yield is_acquired
        finally:
            is_still_locked = self._locked.pop(lane, None) is not None
            if is_still_locked:
                # If the connection is lost, Postgres has released the lock already.
                with suppress(*CONNECTION_ERRORS):
                    await self._execute(UNLOCK, lane)

    def watch_loss(self, lane: str) -> asyncio.Event:
        """Return an event that is set when this process loses the lock of a lane."""
        loss = self._locked.get(lane)
        if loss is None:
            # The lock has been lost since the lane was locked.
            loss = asyncio.Event()
            loss.set()
        return loss

    async def stop_elsewhere(self, fields: Mapping[str, int]) -> bool:
        """Ask other processes to stop the turns that have these fields, such as `chat_id`.

        Return whether a turn of that chat has begun in any process.
        """
        notice = json.dumps(fields)
        chat_id = fields.get("chat_id")
        try:
            ((_, has_begun),) = await self._execute(SEND_STOP, notice, chat_id)
        except CONNECTION_ERRORS as error:
            log.warning(
                "No other process could be asked to stop: %s", type(error).__name__
            )
            return False
        return bool(has_begun)

    async def listen(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the notices of other processes, forever.

        A notice names a `lane` with new updates, or the fields of turns to stop. Notices arrive on
        a connection of their own, and are lost while it is interrupted.
        """
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(
                    self._address, autocommit=True
                )
                async with connection:
                    await connection.execute("LISTEN lanes")
                    async for notice in connection.notifies():
                        # Skip our own notices: a Stop could hit a turn that began after it.
                        if notice.pid != self._pid:
                            yield json.loads(notice.payload)
            except CONNECTION_ERRORS as error:
                log.warning(
                    "Notices of other processes are lost: %s", type(error).__name__
                )
                await asyncio.sleep(POLL_SECONDS)

    async def find_unowned(self) -> list[str]:
        """Return the lanes with waiting updates that no process runs.

        The first call returns all these lanes. Later calls return only those that the call before
        has found, too.

        Raises:
            OSError, psycopg.Error: Postgres is not available.
        """
        find = partial(self._execute, FIND_UNOWNED)
        rows = await retry(find, max_tries=2, backoff=QUICK_RETRY)
        unowned = []
        pids = set()
        for lane, pid in rows:
            unowned.append(lane)
            pids.add(pid)
        # Behind a pooler, another process of the server may have executed the statement.
        if pids - {self._pid}:
            log.error(POOLER_WARNING)
        previous = self._last_unowned
        self._last_unowned = unowned
        if previous is None:
            return unowned
        return [lane for lane in unowned if lane in previous]

    async def close(self) -> None:
        """Close the connection, which releases every lock."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            with suppress(*CONNECTION_ERRORS):
                await connection.close()

    async def _execute(
        self, statement: LiteralString, *values: object
    ) -> Sequence[Any]:
        """Return the rows of a statement. After an error or a timeout, close the connection.

        Raises:
            OSError, psycopg.Error: Postgres is not available.
        """
        # If the caller is cancelled, the statement still ends: to interrupt it would close the
        # connection, and with it every lock.
        running = asyncio.create_task(self._execute_alone(statement, values))
        return await asyncio.shield(running)

    async def _execute_alone(
        self, statement: LiteralString, values: Sequence[object]
    ) -> Sequence[Any]:
        """Execute a statement when no other one runs. After an error, close the connection."""
        async with self._connection_in_use:
            try:
                async with asyncio.timeout(ANSWER_SECONDS + SETTLE_SECONDS):
                    connection = self._connection or await self._connect()
                    cursor = await connection.execute(statement, values)
                    return await cursor.fetchall()
            except BaseException:
                await self.close()
                raise

    async def _connect(self) -> psycopg.AsyncConnection:
        """Open the connection. After a loss, lock the lanes of this process again.

        Then wait until the other processes have done the same. A lane that another process has
        locked meanwhile is lost.
        """
        connection = await psycopg.AsyncConnection.connect(
            self._address, autocommit=True
        )
        self._connection = connection
        was_connected = self._pid != 0
        if was_connected:
            cursor = await connection.execute(LOCK_AGAIN, [list(self._locked)])
            for (lane,) in await cursor.fetchall():
                loss = self._locked.pop(lane)
                loss.set()
            await asyncio.sleep(SETTLE_SECONDS)
        # Asked by SQL, because behind a pooler the protocol reports the id of another process.
        cursor = await connection.execute("SELECT pg_backend_pid()")
        ((self._pid,),) = await cursor.fetchall()
        return connection


def _is_connection_error(error: Exception) -> bool:
    return isinstance(error, CONNECTION_ERRORS)


@asynccontextmanager
async def open_locks(url: str, inbox: Inbox) -> AsyncIterator[Locks]:
    """Open the locks of lanes. On Postgres several processes share them.

    Only one process may use an SQLite file: a second one would begin the running turns again.

    Raises:
        AlreadyRunning: another process runs the bot with this SQLite file.
    """
    if url.startswith("sqlite"):
        _, _, path = url.partition(":///")
        with _single_process(Path(path)):
            yield Locks(inbox)
        return
    locks = ReplicaLocks(url)
    try:
        yield locks
    finally:
        await run_shutdown_step("the locks of lanes", locks.close)


@contextmanager
def _single_process(file: Path) -> Iterator[None]:
    """Lock the file of an SQLite database for the block, so that only one process uses it."""
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
    """Run `lead` whenever this process is the leading one, until it loses the lock."""
    while True:
        async with locks.lock(LEADER) as is_leader:
            if is_leader:
                await run_until(locks.watch_loss(LEADER), lead)
        await asyncio.sleep(LEAD_SECONDS)
