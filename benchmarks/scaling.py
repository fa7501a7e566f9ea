"""What grows with replicas, chats, history: `python -m benchmarks.scaling` prints tables.

The bot as it runs, by webhook, with Telegram and a model in this process that answer at once and
cost as little as they can. `points` or `history` as an argument measures only that.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import psycopg
from sqlalchemy import text

from benchmarks.durability import ANSWER, TICKS, commits, cpu_seconds
from db.engine import create_engine
from tests.crash.harness import Bot, Server, free_port, new_database, postgres
from tests.crash.scenarios import start
from tests.doubles.bot_api import TOKEN

ROOT: Final = Path(__file__).parents[1]
SECRET: Final = "a-webhook-secret"
SENDERS: Final = 40
"""Connections to the webhook, as many as Telegram opens unless told otherwise."""
REPLICAS: Final = (1, 2, 4)
CHATS: Final = (10, 100, 1_000, 10_000)
LEAST: Final = 500
"""Messages of a point, or one of each chat if that is more."""
HISTORY: Final = 1_000_000
NEWCOMER: Final = 20_001
"""The first of the chats that have no history: one's own makes a turn dearer, up to 20 messages."""
PAIRS: Final = 6
BATCH: Final = 300

COMPLETION: Final = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "gpt-4o",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": json.dumps(ANSWER)},
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930},
    }
).encode()
ME: Final = b'{"ok":true,"result":{"id":1,"is_bot":true,"first_name":"S","username":"s_bot"}}'
SENT: Final = (
    b'{"ok":true,"result":{"message_id":9,"date":0,"chat":{"id":1,"type":"private"},"text":"x"}}'
)

FILL: Final = {
    "postgresql": "FROM generate_series(1, {n}) AS n",
    "sqlite": "FROM (WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {n}) "
    "SELECT n FROM s) AS s",
}
ROWS: Final = (
    "INSERT INTO messages (chat_id, role, content, wine_ids, created_at, turn_id) "
    "SELECT 1 + n % 10000, CASE n % 2 WHEN 0 THEN 'user' ELSE 'assistant' END, "
    "'Something that was said about a wine, of a usual length for a chat.', '[]', "
    "'2026-01-01 00:00:00', n / 2 {rows}",
    "INSERT INTO turns (turn_id, chat_id, user_id, at, outcome, seconds, requests, retries, tokens,"
    " cost_usd, error_types) SELECT n, 1 + n % 10000, 1 + n % 10000, '2026-01-01 00:00:00', "
    "'answered', 1, 1, 0, 900, 0.001, '[]' {half}",
    "INSERT INTO updates (update_id, chat_id, lane, payload, received_at, state, turn_id, tries, "
    "progress, epoch, retries) SELECT n, 1 + n % 10000, '', '{{}}', '2026-01-01 00:00:00', 'done', "
    "n, 1, 0, 1, 0 {half}",
)


class Doubles(asyncio.Protocol):
    """A connection of a bot to Telegram or to the model; `sent` has the time of each answer."""

    def __init__(self, sent: dict[int, list[float]]) -> None:
        self._sent = sent
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n") + 4) > 3:
            head = self._buffer[:end].lower()
            length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            whole = end + int(length or 0)
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end:whole], self._buffer[whole:]
            answer = self._answer(head.partition(b" http/")[0], body)
            said = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            self._transport.write(said % len(answer) + answer)

    def _answer(self, path: bytes, body: bytes) -> bytes:
        if path.endswith(b"/chat/completions"):
            return COMPLETION
        if path.endswith(b"/sendmessage"):
            chat = int(body.partition(b"chat_id=")[2].partition(b"&")[0])
            self._sent.setdefault(chat, []).append(time.monotonic())
            return SENT
        return ME if path.endswith(b"/getme") else b'{"ok":true,"result":true}'


@dataclass
class Stage:
    """Running bots on one database, and what they were sent."""

    bots: Sequence[Bot]
    url: str
    sent: dict[int, list[float]]
    postmaster: int | None
    _ids: int = field(default_factory=lambda: int(time.time() * 1000))

    async def write(self, chats: Sequence[int]) -> list[float]:
        """One message of each of these chats, at once; seconds from each to its answer."""
        waiting, began = list(enumerate(chats)), dict[int, list[float]]()
        due = {chat: len(self.sent.get(chat, ())) for chat in chats}
        for chat in chats:
            due[chat] += 1

        async def sender(number: int) -> None:
            port = self.bots[number % len(self.bots)].port
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while waiting:
                count, chat = waiting.pop(0)
                began.setdefault(chat, []).append(time.monotonic())
                writer.write(posted(self._ids + count, chat))
                head = await reader.readuntil(b"\r\n\r\n")
                assert b" 200 " in head[:20], head
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
            writer.close()

        await asyncio.gather(*(sender(number) for number in range(SENDERS)))
        self._ids += len(chats)
        deadline = time.monotonic() + 600
        while any(len(self.sent.get(chat, ())) < count for chat, count in due.items()):
            if time.monotonic() > deadline:
                raise RuntimeError("not every message was answered")
            await asyncio.sleep(0.02)
        return [
            end - begin
            for chat, begins in began.items()
            for begin, end in zip(begins, self.sent[chat][-len(begins) :], strict=True)
        ]

    def cpu(self) -> tuple[float, float]:
        """Processor seconds of the bots, and of Postgres, so far."""
        bots = sum(cpu_seconds(bot.process.pid) for bot in self.bots if bot.process)
        return bots, cpu_of_all(self.postmaster) if self.postmaster else 0.0


def posted(update_id: int, chat: int) -> bytes:
    """The request by which Telegram delivers a message."""
    person = {"id": chat, "is_bot": False, "first_name": "Ada"}
    said = {
        "message_id": update_id % 2**31,
        "date": int(time.time()),
        "chat": {"id": chat, "type": "private", "first_name": "Ada"},
        "from": person,
        "text": "What is tannin?",
    }
    body = json.dumps({"update_id": update_id, "message": said}).encode()
    return (
        b"POST /telegram/webhook HTTP/1.1\r\nhost: bot\r\ncontent-type: application/json\r\n"
        b"x-telegram-bot-api-secret-token: %s\r\ncontent-length: %d\r\n\r\n%s"
        % (SECRET.encode(), len(body), body)
    )


def postmaster(url: str) -> int:
    """The process id of a Postgres server: the parent of any of its connections."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        stat = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
        return int(stat.rsplit(")", 1)[1].split()[1])


def cpu_of_all(postmaster: int) -> float:
    """Processor seconds of a Postgres server: of its processes, and of those that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = stat.read_text().partition(" ")
        except OSError:
            continue
        fields = rest.rsplit(")", 1)[1].split()
        if int(number) == postmaster:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            ticks += sum(map(int, fields[11:13]))
    return ticks / TICKS


@asynccontextmanager
async def stage(
    url: str, folder: Path, replicas: int, server: Server | None
) -> AsyncIterator[Stage]:
    """So many replicas on a database, ready."""
    sent: dict[int, list[float]] = {}
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(partial(Doubles, sent), "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    environment = os.environ | {
        "XDG_DATA_HOME": str(folder),
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_BASE_URL": address,
        "TELEGRAM_MESSAGES_PER_SECOND": "0",
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": "bench",
        "DATABASE_URL": url,
        "BURST_SECONDS": "0",
        "WEBHOOK_URL": "https://bot.example",
        "WEBHOOK_SECRET": SECRET,
        "LOG_LEVEL": "ERROR",
    }
    bots = [
        Bot(environment, folder / f"{number}-{time.monotonic()}.log", free_port(), ROOT)
        for number in range(replicas)
    ]
    try:
        await start(bots)
        made = Stage(bots, url, sent, postmaster(url) if server else None)
        await made.write(range(1, 40 * replicas))  # what is loaded once
        yield made
    finally:
        for bot in bots:
            await bot.stop()
        listener.close()


@dataclass(frozen=True)
class Point:
    """A measured point; `waits` are seconds."""

    replicas: int
    chats: int
    turns_a_second: float
    bot_ms: float
    postgres_ms: float
    commits: float
    connections: int
    waits: Sequence[float]


async def point(on: Stage, chats: int) -> Point:
    """Everybody writes at once; then ten a second."""
    messages = max(LEAST, chats)
    before, done, began = on.cpu(), commits(on.url), time.monotonic()
    await on.write([1 + number % chats for number in range(messages)])
    seconds = time.monotonic() - began
    after, committed = on.cpu(), commits(on.url) - done
    waits = []
    for number in range(50):
        waits += await on.write([1 + number % chats])
        await asyncio.sleep(0.05)
    return Point(
        replicas=len(on.bots),
        chats=chats,
        turns_a_second=messages / seconds,
        bot_ms=(after[0] - before[0]) / messages * 1000,
        postgres_ms=(after[1] - before[1]) / messages * 1000,
        commits=committed / messages,
        connections=connections(on.url),
        waits=sorted(waits),
    )


def connections(url: str) -> int:
    """How many connections to a database of Postgres are open."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        (count,) = connection.execute(asked).fetchone() or (0,)
        return int(count) - 1


async def points(folder: Path, server: Server) -> tuple[list[Point], float]:
    """Replicas by chats, on one database that grows; by how many bytes a turn."""
    found = []
    url = await new_database(server, folder)
    before, first = size(url)
    for replicas in REPLICAS:
        async with stage(url, folder, replicas, server) as on:
            for chats in CHATS:
                found.append(await point(on, chats))
                print(row_of(found[-1]), flush=True)
    after, last = size(url)
    return found, (after - before) / (last - first)


def size(url: str) -> tuple[int, int]:
    """The bytes of a database, and the turns in it."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        asked = "SELECT pg_database_size(current_database()), (SELECT count(*) FROM turns)"
        bytes_, turns = connection.execute(asked).fetchone() or (0, 0)
        return int(bytes_), int(turns)


def row_of(each: Point) -> str:
    """A row of the table."""
    p50, p95 = (each.waits[int((len(each.waits) - 1) * at)] * 1000 for at in (0.5, 0.95))
    return (
        f"| {each.replicas} | {each.chats:,} | {each.turns_a_second:.0f} | {each.bot_ms:.1f} | "
        f"{each.postgres_ms:.1f} | {each.commits:.1f} | {each.connections} | "
        f"{p50:.0f} / {p95:.0f} |"
    )


async def fill(url: str, rows: int) -> None:
    """Give a database a history."""
    engine = create_engine(url)
    source = FILL[engine.dialect.name]
    async with engine.begin() as connection:
        for statement in ROWS:
            made = statement.format(rows=source.format(n=rows), half=source.format(n=rows // 2))
            if engine.dialect.name == "sqlite":
                made = made.replace("'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.000000'")
            await connection.execute(text(made))
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("VACUUM"))
        await connection.execute(text("ANALYZE"))
    await engine.dispose()


async def history(folder: Path, server: Server | None) -> tuple[float, float]:
    """What a turn costs with a long history by what it costs with a short one: CPU, and time."""
    async with AsyncExitStack() as stack:
        stages = []
        for rows in (10, HISTORY):
            url = await new_database(server, folder)
            await fill(url, rows)
            stages.append(await stack.enter_async_context(stage(url, folder, 1, server)))
        ratios, waits = [], []
        for number in range(PAIRS):
            costs = {}
            for on in stages if number % 2 else reversed(stages):
                before = sum(on.cpu())
                await on.write([NEWCOMER + each % 100 for each in range(BATCH)])
                cpu = sum(on.cpu()) - before
                alone = [(await on.write([NEWCOMER + 200 + each]))[0] for each in range(30)]
                costs[id(on)] = cpu, median(alone)
            (short, quick), (long, slow) = (costs[id(on)] for on in stages)
            ratios.append(long / short)
            waits.append(slow / quick)
        return median(ratios), median(waits)


def noted(rows: Sequence[str]) -> str:
    """A table, and on what machine it was measured."""
    where = f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[2]:.1f}."
    return f"{where}\n\n" + "\n".join(rows)


async def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name, postgres(fast=False) as server:
        folder = Path(name)
        if "points" in arguments or not arguments:
            head = (
                "| replicas | chats | turns a second, all at once | CPU of the bots a turn, ms | "
                "CPU of Postgres a turn, ms | commits a turn | connections | accept to answer, one "
                "at a time, ms (p50 / p95) |"
            )
            found, bytes_ = await points(folder, server)
            rows = [head, "|" + " --: |" * 8, *map(row_of, found)]
            print(noted(rows), f"\nThe database grew by {bytes_:,.0f} bytes a turn.")
        if "history" in arguments or not arguments:
            rows = ["| | CPU a turn | time a turn |", "| :-- | --: | --: |"]
            for kind, where in {"SQLite": None, "Postgres": server}.items():
                cpu, seconds = await history(folder, where)
                rows.append(f"| {kind}: {HISTORY:,} messages ÷ 10 | {cpu:.2f} | {seconds:.2f} |")
                print(rows[-1], flush=True)
            print(noted(rows))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
