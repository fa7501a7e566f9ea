"""The lanes of several replicas, on Postgres: a lock has one process at a time run each of them.

It is an advisory lock of a session of ours, so it goes with the process that holds it, by itself:
no heartbeat has to be tuned, no clocks are compared. What it cannot tell is whether a free lock is
one that Postgres' own restart dropped and whose owner is about to take it again. So whoever lost
the connection takes back what it held, and nothing else for a while; and what nobody seems to run
is looked at a few times before somebody else does. Should a lane be run twice all the same, it is
the epoch of its turn that says whose it is.

What belongs to a turn that runs elsewhere, and that it is to stop, is told by NOTIFY. That takes a
lock of the whole database at its commit, so it is sent only when a lane is found held.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agent.engine.errors import Backoff, retry
from bot.retries import retry_forever

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""How often it is looked for lanes that nobody runs, and so for the loss of our own connection."""

LOOKS: Final = 2
"""How often a lane must have been seen so; whoever lost its connection is back by then."""

SETTLE_SECONDS: Final = LOOK_SECONDS * LOOKS
ANSWER_SECONDS: Final = 5
TOLD_SECONDS: Final = 0.1
"""How long more is waited for when something was told: psycopg looks ten times a second then."""
AT_ONCE: Final = Backoff(first=0.2)

KEEPALIVE: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
}
THEIRS: Final = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
"""Either side of the connection notices within some 11 s that the other's machine is gone."""

TAKE: Final = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
LET_GO: Final = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
TAKE_BACK: Final = """
SELECT lane FROM unnest(%s::text[]) AS lane
WHERE NOT pg_try_advisory_lock(hashtextextended(lane, 0))
"""
UNOWNED: Final = """
SELECT lane, pg_backend_pid() FROM updates
WHERE state IN ('waiting', 'answered', 'retry') AND lane IS NOT NULL
GROUP BY lane
HAVING hashtextextended(lane, 0) NOT IN (
    SELECT (classid::bigint << 32) | objid::bigint
    FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND datname = current_database() AND pid <> pg_backend_pid()
)
ORDER BY min(update_id) LIMIT 1000
"""
CHANNEL: Final = "lanes"
TELL: Final = "SELECT pg_notify('lanes', %s)"
STOP: Final = """
SELECT pg_notify('lanes', %s), EXISTS (
    SELECT FROM updates
    WHERE chat_id = %s AND state IN ('waiting', 'answered') AND tries > 0 AND lane NOT LIKE '/%%'
)
"""
POOLED: Final = (
    "Postgres is reached through a pooler in transaction mode, which breaks the locks of lanes: "
    "connect directly, or through one in session mode"
)


class ReplicaLocks:
    """The locks of lanes that this process holds, all by one connection to Postgres at `url`."""

    look_seconds = LOOK_SECONDS

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when the lock of a lane that is held here was lost."""
        return self._lost.setdefault(lane, asyncio.Event())

    def __init__(self, url: str) -> None:
        given = conninfo_to_dict(url.replace("postgresql+psycopg://", "postgresql://", 1))
        options = f"{given.get('options', '')} {THEIRS}"
        self._address = make_conninfo("", **given | KEEPALIVE | {"options": options})
        self._connection: psycopg.AsyncConnection | None = None
        self._using = asyncio.Lock()
        self._held: set[str] = set()
        self._lost: dict[str, asyncio.Event] = {}
        self._pid: int | None = None
        self._settled_at = 0.0
        self._seen: Counter[str] | None = None

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        """Hold a lane, waiting for Postgres if it is away.

        False if another process does, which is told that something came for it.
        """
        ours = bool(await retry_forever(lambda: self._take(lane)))
        if not ours:
            with suppress(psycopg.Error, OSError):  # then it will be a turn of its own
                await self._ask(TELL, json.dumps({"lane": lane}))
        try:
            yield ours
        finally:
            if lane in self._held:
                self._held.discard(lane)
                with suppress(psycopg.Error, OSError):  # it went with the connection
                    await self._ask(LET_GO, lane)

    async def stop(self, asked: Mapping[str, int]) -> bool:
        """Tell other processes what to stop; False if no turn of that chat is begun."""
        try:
            ((_, is_begun),) = await self._ask(STOP, json.dumps(asked), asked.get("chat_id"))
        except (psycopg.Error, OSError) as error:
            log.warning("No other process was told to stop: %s", type(error).__name__)
            return False
        return bool(is_begun)

    async def told(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what other processes tell, for ever: of a `lane`, or what to stop.

        By a connection of its own, made again when it is lost; what is told meanwhile is lost too.
        """
        while True:
            try:
                connecting = psycopg.AsyncConnection.connect(self._address, autocommit=True)
                async with await connecting as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    while True:
                        await _readable(connection.fileno())
                        async for said in connection.notifies(timeout=TOLD_SECONDS):
                            if said.pid != self._pid:
                                yield json.loads(said.payload)
            except (psycopg.Error, OSError) as error:
                log.warning("Other processes are not heard: %s", type(error).__name__)
                await asyncio.sleep(LOOK_SECONDS)

    async def unowned(self) -> list[str]:
        """The lanes in which something waits and that nobody runs; at the start all of them.

        Raises:
            OSError, psycopg.Error: Postgres is away.
        """
        rows = await retry(lambda: self._ask(UNOWNED), tries=2, backoff=AT_ONCE)
        if any(pid != self._pid for _, pid in rows):
            log.error(POOLED)
        lanes = [lane for lane, _ in rows]
        if self._seen is None:
            self._seen = Counter()
            return lanes
        self._seen = Counter({lane: self._seen[lane] + 1 for lane in lanes})
        if new := list(self._seen.values()).count(LOOKS):
            log.warning("Taking over %s lanes that nobody runs", new)
        return [lane for lane in lanes if self._seen[lane] >= LOOKS]

    async def close(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            with suppress(psycopg.Error, OSError):
                await self._connection.close()
            self._connection = None

    async def _take(self, lane: str) -> bool:
        for (ours,) in await self._ask(TAKE, lane):
            if ours:
                self._held.add(lane)
            return bool(ours)
        await asyncio.sleep(self._unsettled)
        return await self._take(lane)

    @property
    def _unsettled(self) -> float:
        """How many seconds others are left to take back what they held."""
        return max(0.0, self._settled_at - time.monotonic())

    async def _ask(self, statement: LiteralString, *values: object) -> Sequence[Any]:
        """What Postgres answers; if it does not, the connection is closed, and nothing is held.

        Nothing if a lane is to be taken and others may come first.

        Raises:
            OSError, psycopg.Error: it is away.
        """
        async with self._using:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    connection = self._connection or await self._connect()
                    if statement == TAKE and self._unsettled:
                        return ()
                    cursor = await connection.execute(statement, values)
                    return await cursor.fetchall()
            except BaseException:
                await self.close()
                raise

    async def _connect(self) -> psycopg.AsyncConnection:
        """Connect; at any time but the first, take back what was held."""
        self._connection = connection = await psycopg.AsyncConnection.connect(
            self._address, autocommit=True
        )
        if self._pid is not None:
            self._settled_at = time.monotonic() + SETTLE_SECONDS
            lost = await connection.execute(TAKE_BACK, [sorted(self._held)])
            gone = {lane for (lane,) in await lost.fetchall()}
            self._held -= gone
            for lane in gone & self._lost.keys():
                self._lost.pop(lane).set()
        (row,) = await (await connection.execute("SELECT pg_backend_pid()")).fetchall()
        self._pid = row[0]
        return connection


async def _readable(file: int) -> None:
    """Return when something can be read."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
