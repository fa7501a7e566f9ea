"""Real processes of the bot, the messages they are sent, and what became of each message."""

import asyncio
import itertools
import os
import random
import signal
import socket
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import psycopg

from config import load_settings
from db.engine import Sessions, create_engine
from db.schema import upgrade_schema
from db.wines.catalogue_import import load_starter
from tests.crash.doubles import EchoModel, Watch, WatchedBotApi, sleep_until
from tests.databases import FAST_POSTGRES, Databases, postgres_server
from tests.doubles.bot_api import TOKEN
from tests.doubles.server import JsonObject
from tests.processes import Process

READY_SECONDS = 60
"""A limit that no start of a process comes near."""
WAITING = "SELECT COUNT(*) FROM updates WHERE state IN ('waiting', 'answered')"


@contextmanager
def postgres(*, fast: bool = True) -> Iterator[Any]:
    """Run a Postgres server of its own; a fast one loses what it committed in a power cut."""
    folder = Path(tempfile.mkdtemp(prefix="sommelier-crash-"))
    server = postgres_server(folder, FAST_POSTGRES if fast else "max_connections = 200")
    try:
        yield server
    finally:
        server.cleanup()


_stocked: dict[str | None, str] = {}
"""By server (None is SQLite) the URL of a database to copy, which no process uses."""
_folder = tempfile.TemporaryDirectory(prefix="sommelier-stocked-")


async def new_database(server_url: str | None, folder: Path) -> str:
    """Return the URL of a new database, migrated and with the starter catalogue."""
    kind = "postgres" if server_url else "sqlite"
    if server_url not in _stocked:
        template = Databases(kind, Path(_folder.name), server_url).create()
        _stocked[server_url] = template
        engine = create_engine(template)
        await upgrade_schema(engine)
        await load_starter(Sessions(engine))
        await engine.dispose()
    return Databases(kind, folder, server_url).create(_stocked[server_url])


@dataclass
class Bot:
    """One process of the bot; it can be killed and started again."""

    environment: Mapping[str, str]
    log: Path
    port: int
    process: Process | None = None
    kills: int = 0

    def start(self) -> None:
        environment = {
            **self.environment,
            "HTTP_PORT": str(self.port),
            "PGAPPNAME": self.name,
        }
        with self.log.open("ab") as log:
            self.process = Process("run", environment=environment, stderr=log.fileno())

    def kill(self) -> None:
        """Kill the process with `kill -9`; may be called from any thread."""
        if self.process is not None:
            self.process.kill()
            self.kills += 1

    def reap(self) -> None:
        """Wait until the process has gone."""
        if self.process is not None:
            self.process.wait()
            self.process = None

    async def stop(self, seconds: float = 40) -> tuple[int | None, float]:
        """Send SIGTERM; return the exit status, None if it had to be killed, and the seconds."""
        if (process := self.process) is None:
            return 0, 0
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        await sleep_until(lambda: process.poll() is not None, seconds)
        status = process.poll()
        process.kill()
        self.reap()
        return status, time.monotonic() - began

    async def ready(self) -> None:
        """Return once updates can be taken."""
        address = f"http://127.0.0.1:{self.port}"
        async with (
            asyncio.timeout(READY_SECONDS),
            httpx.AsyncClient(base_url=address) as client,
        ):
            while self.process is not None and self.process.poll() is None:
                with suppress(httpx.HTTPError):
                    response = await client.get("/readyz")
                    if response.status_code == 200:
                        return
                await asyncio.sleep(0.05)
        last_words = self.said()[-3000:]
        raise AssertionError(f"it ended:\n{last_words}")

    @property
    def name(self) -> str:
        """Return the name by which Postgres knows the process."""
        return f"bot-{self.port}"

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


@dataclass
class Stage:
    """The doubles, a database, the processes, and every message that users wrote.

    `updates` maps the mark of a message to its update, in the order of writing. `unrecorded` counts
    how often a reply was out, and not recorded, when a process was killed.
    """

    api: WatchedBotApi
    model: EchoModel
    watch: Watch
    database_url: str
    bots: list[Bot]
    updates: dict[str, int] = field(default_factory=dict)
    unrecorded: Counter[str] = field(default_factory=Counter)
    _queues: dict[int, asyncio.Queue[JsonObject]] = field(default_factory=dict)
    _deliveries: list[asyncio.Task[None]] = field(default_factory=list)
    _next: Iterator[int] = field(default_factory=itertools.count)

    async def start(self) -> None:
        """Start all processes; return once they take updates."""
        for bot in self.bots:
            bot.start()
        await self.ready()

    async def ready(self) -> None:
        """Return once all processes take updates."""
        await asyncio.gather(*(bot.ready() for bot in self.bots))

    def say(self, chat: int) -> str:
        """Write the next message of a chat; return its mark."""
        mark = f"{chat}-{len(self.marks(chat)) + 1}"
        self.updates[mark] = self.write(chat, f"Question {mark}: which wine?")
        return mark

    def marks(self, chat: int) -> list[str]:
        """Return the marks of the messages of a chat."""
        return [mark for mark in self.updates if mark.startswith(f"{chat}-")]

    def write(self, chat: int, text: str) -> int:
        """Write something that is no question; return the id of the update."""
        update_id = self.api.say(text, chat)
        if len(self.bots) > 1:
            if chat not in self._queues:
                self._queues[chat] = asyncio.Queue()
                self._deliveries.append(
                    asyncio.create_task(self._deliver(self._queues[chat]))
                )
            self._queues[chat].put_nowait(self.api._updates[-1])
        return update_id

    async def _deliver(self, queue: asyncio.Queue[JsonObject]) -> None:
        """Deliver as Telegram does: one by one in a chat, again and again until a 200."""
        secret = load_settings(None, {"TELEGRAM_BOT_TOKEN": TOKEN}).webhook_secret
        headers = {"X-Telegram-Bot-Api-Secret-Token": secret}
        async with httpx.AsyncClient(timeout=10, headers=headers) as client:
            while True:
                update, status = await queue.get(), 0
                while status != 200:
                    bot = self.bots[next(self._next) % len(self.bots)]
                    with suppress(httpx.HTTPError):
                        url = f"http://127.0.0.1:{bot.port}/telegram/webhook"
                        status = (await client.post(url, json=update)).status_code
                    await asyncio.sleep(0 if status == 200 else 0.05)

    def owner(self, port: int) -> Bot | None:
        """Return the process that has a connection from this port."""
        for bot in self.bots:
            with suppress(psutil.Error):
                found = (
                    psutil.Process(bot.process.pid).net_connections("tcp")
                    if bot.process
                    else ()
                )
                if any(connection.laddr.port == port for connection in found):
                    return bot
        return None

    def recorded(self, step: str) -> set[int]:
        """Return the updates whose turns have this step recorded, "committed" or "sent"."""
        outbox = "SELECT update_id FROM outbox WHERE update_id IS NOT NULL"
        done = "SELECT update_id FROM updates WHERE state = 'done'"
        is_sent = " AND message_id IS NOT NULL" if step == "sent" else ""
        return {found for (found,) in self.query(outbox + is_sent) + self.query(done)}

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        if self.database_url.startswith("sqlite"):
            path = self.database_url.partition(":///")[2]
            with closing(sqlite3.connect(path, timeout=20)) as connection:
                return connection.execute(query).fetchall()
        address = self.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    async def close(self) -> None:
        """Kill all processes, and deliver no more."""
        for task in self._deliveries:
            task.cancel()
        await asyncio.gather(*self._deliveries, return_exceptions=True)
        for bot in self.bots:
            bot.kill()
            bot.reap()

    async def note_kill(self) -> None:
        """Note which replies were out and not recorded when a process was just killed."""
        await asyncio.sleep(0.1)
        recorded = await asyncio.to_thread(self.recorded, "sent")
        replied = {mark for marks in self.api.replies().values() for mark in marks}
        self.unrecorded.update(
            mark
            for mark in replied & self.updates.keys()
            if self.updates[mark] not in recorded
        )

    def lost(self) -> list[str]:
        """Return the messages that have no reply yet."""
        return [
            *self.updates.keys()
            - {m for marks in self.api.replies().values() for m in marks}
        ]

    async def answered(self, seconds: float) -> bool:
        """Return whether every message has its reply within so many seconds."""
        return await sleep_until(lambda: not self.lost(), seconds)

    async def all_taken(self, seconds: float = 30) -> bool:
        """Return whether within so many seconds all is accepted and no turn waits."""
        accepted = "SELECT COUNT(*) FROM updates"
        query, count = self.query, len(self.updates)
        return await sleep_until(
            lambda: query(accepted)[0][0] >= count and not query(WAITING)[0][0], seconds
        )


def free_port() -> int:
    """Return a free port, of those that the system gives to no process that asks for any.

    A bot that is killed comes back to its port: nothing else must have taken it meanwhile.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@asynccontextmanager
async def stage(
    folder: Path,
    *,
    server_url: str | None = None,
    replicas: int = 1,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Stage]:
    """Set a stage with `replicas` processes, not yet started; several are reached by webhook."""
    url = await new_database(server_url, folder)
    watch = Watch()
    with WatchedBotApi(watch) as api, EchoModel(watch) as model:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "SSL_CERT_DIR": str(folder),
            "XDG_DATA_HOME": str(folder),
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": api.base_url,
            "TELEGRAM_MESSAGES_PER_SECOND": "0",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "sk-secret",
            "DATABASE_URL": url,
            "JOIN_SECONDS": "0",
            "UPDATE_MAX_TRIES": "9",
            **settings,
        }
        if replicas > 1:
            environment["WEBHOOK_URL"] = "https://bot.example"
        bots = [
            Bot(environment, folder / f"{port}.log", port)
            for port in (free_port() for _ in range(replicas))
        ]
        on = Stage(api, model, watch, url, bots)
        try:
            yield on
        finally:
            await on.close()
