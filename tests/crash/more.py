"""Databases that restart, clocks that go back, releases that follow one another, and the like."""

import asyncio
import itertools
import json
import math
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Literal

import psutil  # type: ignore[import-untyped]
import psycopg
from sqlalchemy import make_url

from agent.i18n import say
from db.engine import create_engine
from db.schema import upgrade_schema
from tests.crash.doubles import MARK, shown, sleep_until
from tests.crash.harness import (
    Bot,
    Server,
    Stage,
    downgrade,
    free_port,
    new_database,
    release_before,
    stage,
)
from tests.crash.scenarios import Result, judged, owner, start

WAITING = "SELECT COUNT(*) FROM updates WHERE state = 'waiting'"
SHUTDOWN = 5
"""SHUTDOWN_SECONDS of the test of stopping."""


async def database_restarts(folder: Path, server: Server, restarts: int = 5) -> list[Result]:
    """Postgres stops and starts again while people write."""
    name = f"Postgres restarted {restarts} times"
    dice = random.Random(3)
    async with stage(folder, server=server, replicas=2) as on:
        await start(on.bots)
        on.model.seconds = 0.2
        for _ in range(restarts):
            writing = asyncio.create_task(write(on, dice, messages=40, seconds=4))
            await asyncio.sleep(1.5)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(dice.uniform(0, 2))
            await asyncio.to_thread(server.start)
            await writing
        began = time.monotonic()
        await on.answered(200)
        drained = time.monotonic() - began
        await asyncio.sleep(1)
        statuses = [(await bot.stop())[0] for bot in on.bots]
        return [
            *judged(name, on, quiet=False),
            asked_twice(name, on),
            Result(name, "seconds until the rest was answered", f"{drained:.1f}"),
            Result(name, "exit statuses", str(statuses), set(statuses) == {0}),
        ]


def asked_twice(name: str, on: Stage) -> Result:
    """About how many messages the model was asked more than once."""
    asked = Counter(one.mark for one in on.model.asked)
    twice = [mark for mark, times in asked.items() if times > 1]
    return Result(name, "model asked twice", str(len(twice)), not twice)


async def write(on: Stage, dice: random.Random, *, messages: int, seconds: float) -> None:
    """People of 30 chats write so many messages in so many seconds."""
    for _ in range(messages):
        on.say(1001 + dice.randrange(30))
        await asyncio.sleep(seconds / messages)


async def fairness(
    folder: Path, chats: int = 200, each: int = 5, pause: float = 20
) -> list[Result]:
    """Many chats, each of which writes a message every `pause` seconds, and a model of 200 ms."""
    name = f"{chats} chats × {each}, a message every {pause:g} s"
    async with stage(folder) as on:
        await start(on.bots)
        on.model.seconds = 0.2
        await asyncio.gather(
            *(paced(on, 1001 + n, each, pause, pause * n / chats) for n in range(chats))
        )
        await on.answered(120)
        await sleep_until(lambda: not on.records.product(WAITING)[0][0], 10)
        waits, ends = await measured(on)
        ratio = max(ends.values()) / median(ends.values())
        return [
            *judged(name, on),
            Result(name, "accept to start of turn, p50 / p95 / max, ms", spread(waits)),
            Result(name, "seconds per turn, slowest chat ÷ median chat", f"{ratio:.2f}", ratio < 3),
        ]


async def paced(on: Stage, chat: int, each: int, pause: float, first: float) -> None:
    await asyncio.sleep(first)
    for number in range(each):
        on.say(chat)
        if number < each - 1:
            await asyncio.sleep(pause)


async def measured(on: Stage) -> tuple[list[float], dict[int, float]]:
    """Seconds from accept to the first request of each turn, and by chat those of the mean turn."""
    starts = {on.updates[one.mark]: one.time for one in on.model.asked}
    rows = on.records.product("SELECT update_id, chat_id, received_at FROM updates")
    by_chat: dict[int, list[float]] = {}
    for update_id, chat_id, received in rows:
        by_chat.setdefault(chat_id, []).append(starts[update_id] - _epoch(received))
    waits = [each for waited in by_chat.values() for each in waited]
    mean = {chat: sum(each) / len(each) + on.model.seconds for chat, each in by_chat.items()}
    return waits, mean


def _epoch(received: str | datetime | int | float) -> float:
    if isinstance(received, (int, float)):
        return received / 1e6 if received > 1e12 else float(received)
    moment = received if isinstance(received, datetime) else datetime.fromisoformat(received)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def spread(seconds: Sequence[float]) -> str:
    ordered = sorted(each * 1000 for each in seconds)
    at = [ordered[min(len(ordered) - 1, math.ceil(len(ordered) * p) - 1)] for p in (0.5, 0.95, 1)]
    return " / ".join(f"{each:.0f}" for each in at)


async def backlog_of_one(folder: Path, waiting: int = 10_000) -> list[Result]:
    """One chat has thousands of messages waiting; how long do others wait then?"""
    name = f"one chat with {waiting:,} waiting"
    async with stage(folder) as on:
        await start(on.bots)
        on.model.seconds = 0.2
        alone = await rounds(on, 1001)
        flood(on, chat=999, waiting=waiting)
        beside = await rounds(on, 3001)
        left = on.records.product("SELECT COUNT(*) FROM updates WHERE state = 'waiting'")[0][0]
        failed = on.records.failed_turns()
        slower = median(beside) / median(alone)
        return [
            Result(name, "accept to start without it, p50 / p95 / max, ms", spread(alone)),
            Result(name, "accept to start beside it, p50 / p95 / max, ms", spread(beside)),
            Result(name, "median beside ÷ without", f"{slower:.2f}", slower < 2),
            Result(name, "still waiting at the end", str(left), left > waiting * 0.9),
            Result(name, "turns that failed", str(len(failed)), not failed),
        ]


async def rounds(on: Stage, first: int) -> list[float]:
    """30 chats write 3 messages each; seconds from accept to start of turn."""
    began = max([0, *on.updates.values()])
    await asyncio.gather(*(paced(on, first + n, 3, 4, n * 4 / 30) for n in range(30)))
    if not await on.answered(60):
        raise AssertionError(f"without an answer: {on.tally().lost}")
    starts = {on.updates[one.mark]: one.time for one in on.model.asked if one.mark in on.updates}
    mine = {i for i in on.updates.values() if i > began}
    rows = on.records.product("SELECT update_id, received_at FROM updates WHERE chat_id > 1000")
    return [starts[i] - _epoch(at) for i, at in rows if i in mine]


def flood(on: Stage, chat: int, waiting: int) -> None:
    """Insert waiting messages of a chat, and let it write one more."""
    received, updates = datetime.now(UTC).replace(tzinfo=None), []
    for number in range(1, waiting + 1):
        new = 1000 + number
        said = {
            "message_id": number,
            "date": 0,
            "chat": {"id": chat, "type": "private", "first_name": "Bob"},
            "from": {"id": chat, "is_bot": False, "first_name": "Bob"},
            "text": f"Question 999-{number}: which wine?",
        }
        payload = json.dumps({"update_id": new, "message": said})
        updates.append((new, chat, str(chat), number, payload, str(received), "waiting"))
    on.records.insert_product(
        "INSERT INTO updates (update_id, chat_id, lane, message_id, payload, received_at, state,"
        " tries, progress, retries) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0)",
        updates,
    )
    on.api.say("And now?", chat)


async def stopping(folder: Path) -> list[Result]:
    """SIGTERM under load, and the next start."""
    name = "SIGTERM under load"
    async with stage(folder, settings={"SHUTDOWN_SECONDS": str(SHUTDOWN)}) as on:
        await start(on.bots)
        on.model.seconds = 2
        for number in range(90):
            on.say(1001 + number % 30)
        await sleep_until(lambda: bool(on.model.asked), 20)
        status, seconds = await on.bots[0].stop()
        left = len(on.tally().lost)
        await start(on.bots)
        await on.answered(90)
        await asyncio.sleep(1)
        last, _ = await on.bots[0].stop()
        return [
            Result(name, "exit status", str(status), status == 0),
            Result(name, "seconds to exit", f"{seconds:.1f}", seconds < SHUTDOWN + 5),
            Result(name, "messages left to the next start", str(left), left > 0),
            Result(name, "exit status of the next", str(last), last == 0),
            *judged(name, on),
        ]


async def dead_replica(
    folder: Path, server: Server, *, replicas: int = 3, messages: int = 90
) -> list[Result]:
    """One of the replicas is killed and never comes back."""
    name = "a replica that stays dead"
    async with stage(folder, server=server, replicas=replicas) as on:
        await start(on.bots)
        on.model.seconds = 0.5
        killed_one: list[Bot] = []

        def kill_asker(port: int) -> None:
            asker = owner(on.bots, port) or on.bots[0]
            asker.kill()
            killed_one.append(asker)

        on.watch.arm("model asked", kill_asker, passes=messages // 5)
        for number in range(messages):
            on.say(1001 + number % 30)
        await sleep_until(lambda: bool(killed_one), 30)
        on.bots.remove(killed_one[0])
        killed_one[0].reap()
        killed = time.monotonic()
        await on.note_kill()
        await on.answered(60)
        seconds = time.monotonic() - killed
        await asyncio.sleep(1)
        for bot in on.bots:
            await bot.stop()
        taken = sum(bot.said().count("Taking over") for bot in on.bots)
        return [
            Result(name, "seconds until all were answered", f"{seconds:.1f}", seconds < 30),
            Result(name, "take-overs", str(taken), taken > 0),
            *judged(name, on),
        ]


async def frozen_replica(folder: Path, server: Server, messages: int = 60) -> list[Result]:
    """One of two replicas is cut off from Postgres and stands still; then it goes on.

    What it was sending it sends then.
    """
    name = "a replica that stands still without its locks"
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'"
    async with stage(folder, server=server, replicas=2) as on:
        await start(on.bots)
        on.model.seconds = 1
        for number in range(messages):
            on.say(1001 + number % 20)
        await sleep_until(lambda: len(on.model.asked) > messages // 4, 20)
        process = on.bots[0].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        on.records.product(cut.format(on.bots[0].name))
        await on.note_kill()
        sending = [i for i, names in on.records.steps().items() if names == {"model"}]
        on.unrecorded.update(mark for i in sending for mark in on.marks_of(i))
        await sleep_until(lambda: not on.records.product(WAITING)[0][0], 30)
        process.send_signal(signal.SIGCONT)
        await sleep_until(lambda: "is run by another process" in on.bots[0].said(), 10)
        await on.answered(60)
        await all_done(on)
        fenced = on.bots[0].said().count("is run by another process now")
        statuses = [(await bot.stop())[0] for bot in on.bots]
        return [
            *(one for one in judged(name, on) if "at once" not in one.what),
            Result(name, "turns it may not go on with", str(fenced), fenced > 0),
            Result(name, "exit statuses", str(statuses), set(statuses) == {0}),
        ]


async def two_pollers(folder: Path) -> list[Result]:
    """Two processes with two databases poll with one token."""
    name = "two processes polling with one token"
    async with stage(folder) as on:
        other = await new_database(None, folder)
        environment = {**on.bots[0].environment, "DATABASE_URL": other}
        on.bots.append(Bot(environment, folder / "other.log", free_port()))
        await start(on.bots)
        said = "409 Conflict: another process is polling"
        clear = await sleep_until(lambda: any(said in bot.said() for bot in on.bots), 20)
        statuses = [(await bot.stop())[0] for bot in on.bots]
        return [
            Result(name, "the log says so", str(clear), clear),
            Result(name, "exit statuses", str(statuses), set(statuses) == {0}),
        ]


async def on_both(
    name: str,
    scenario: Callable[[str, Stage], Coroutine[None, None, list[Result]]],
    folder: Path,
    server: Server,
    replicas: int = 1,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> list[Result]:
    """A scenario on SQLite, and on Postgres with so many replicas."""
    async with stage(folder, settings=settings) as on:
        found = await scenario(f"{name}, SQLite", on)
    async with stage(folder, server=server, replicas=replicas, settings=settings) as on:
        return found + await scenario(f"{name}, Postgres × {replicas}", on)


class Clock:
    """The time of day of processes: an hour earlier whenever it is set back, while they run."""

    def __init__(self, folder: Path) -> None:
        self._file, self._hours = folder / "clock", 0
        self._file.write_bytes(bytes(8))
        library, source = folder / "clock.so", Path(__file__).with_name("clock.c")
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True)
        self.settings = {"LD_PRELOAD": str(library), "CLOCK_FILE": str(self._file)}

    def set_back(self) -> None:
        self._hours += 1
        with self._file.open("r+b") as file:
            file.write((-3600 * self._hours).to_bytes(8, sys.byteorder, signed=True))


async def clock(folder: Path, server: Server, rounds: int = 6) -> list[Result]:
    """The clock is set back an hour while updates wait, again and again, and over a kill.

    It is that of the processes, by a library of C; without a compiler nothing is found.
    """
    if shutil.which("cc") is None:
        return []
    hours = Clock(folder)

    async def scenario(name: str, on: Stage) -> list[Result]:
        await start(on.bots)
        on.model.seconds = 0.5
        for number in range(rounds):
            for chat in range(20):
                on.say(1001 + chat)
            await all_accepted(on)
            hours.set_back()
            if number == rounds // 2:
                await die(on, on.bots[0])
        await on.answered(120)
        await all_done(on)
        last = on.records.product(
            "SELECT received_at FROM updates WHERE update_id IN "
            "(SELECT MIN(update_id) FROM updates UNION SELECT MAX(update_id) FROM updates) "
            "ORDER BY update_id"
        )
        earlier = (_epoch(last[0][0]) - _epoch(last[1][0])) / 3600
        return [
            *judged(name, on),
            Result(name, "hours the last came before the first", f"{earlier:.1f}", earlier > 0.9),
        ]

    name = "clock set back an hour"
    return await on_both(name, scenario, folder, server, replicas=2, settings=hours.settings)


CORRECTING = {"BURST_SECONDS": "0.8"}


async def corrections(folder: Path, server: Server, rounds: int = 8) -> list[Result]:
    """People add to what they asked while it is answered, and a process dies as it takes that in.

    The replicas get every message in turns, so what belongs to a turn seldom comes to who runs it.
    """
    scenario = partial(corrected, rounds=rounds)
    return await on_both("corrections", scenario, folder, server, replicas=2, settings=CORRECTING)


async def corrected(name: str, on: Stage, rounds: int) -> list[Result]:
    """People write twice, time and again; every other time a process dies meanwhile."""
    dice = random.Random(5)
    await start(on.bots)
    asked, together = list[tuple[str, str]](), list[int]()
    for number in range(rounds):
        # So long that no machine is too slow to correct what is asked.
        on.model.seconds = 10
        before = len(answers(on))
        firsts = [on.say(1001 + chat) for chat in range(12)]
        await all_asked(on, firsts)
        on.model.seconds = 0.8
        pairs = [(first, on.say(1001 + chat)) for chat, first in enumerate(firsts)]
        if number % 2:
            await asyncio.sleep(dice.uniform(0, 0.3))
            await die(on, dice.choice(on.bots))
            await asyncio.gather(*(bot.ready() for bot in on.bots))
        await all_taken(on)
        asked += pairs
        if not number % 2:
            together.append(sum(pair in answers(on)[before:] for pair in pairs))
        on.model.asked.clear()
    found = answers(on)
    marks = [mark for pair in asked for mark in pair]
    named = Counter(mark for one in found for mark in one)
    lost = [mark for mark in marks if not named[mark]]
    twice = [mark for mark in marks if named[mark] > 1 + on.unrecorded[mark]]
    other = [text for text in on.api.sent() if not MARK.search(text)]
    statuses = [(await bot.stop())[0] for bot in on.bots]
    failed = on.records.failed_turns()
    return [
        Result(name, "messages", str(len(marks))),
        Result(name, "lost", str(len(lost)), not lost),
        Result(name, "answered twice", str(len(twice)), not twice),
        Result(name, "replies of another kind", str(other[:3]), not other),
        Result(name, "kills", str(sum(bot.kills for bot in on.bots))),
        Result(
            name,
            "pairs answered together, of 12, without a kill",
            ", ".join(map(str, together)),
            set(together) == {12},
        ),
        Result(name, "turns that failed", str(len(failed)), not failed),
        Result(name, "exit statuses", str(statuses), set(statuses) == {0}),
    ]


def answers(on: Stage) -> list[tuple[str, ...]]:
    """The messages that each reply names."""
    return [tuple(MARK.findall(message.get("text", ""))) for message in on.api.messages()]


async def all_asked(on: Stage, marks: Sequence[str], seconds: float = 20) -> bool:
    """Whether the model was asked about all of these within so many seconds."""
    return await sleep_until(lambda: {one.mark for one in on.model.asked} >= set(marks), seconds)


async def all_accepted(on: Stage, seconds: float = 10) -> bool:
    """Whether everything that was written is in the database within so many seconds."""
    every = "SELECT COUNT(*) FROM updates"
    return await sleep_until(lambda: on.records.product(every)[0][0] >= len(on.updates), seconds)


async def all_taken(on: Stage, seconds: float = 30) -> bool:
    """Whether no turn is to be run any more within so many seconds."""
    return await all_accepted(on) and await sleep_until(
        lambda: not on.records.product(WAITING)[0][0], seconds
    )


async def stops(folder: Path, server: Server, chats: int = 12) -> list[Result]:
    """Everybody asks, and says /stop; the replicas get every message in turns."""

    async def scenario(name: str, on: Stage) -> list[Result]:
        await start(on.bots)
        on.model.seconds = 60
        firsts = [on.say(1001 + chat) for chat in range(chats)]
        await all_asked(on, firsts)
        # One more of somebody else, so that what is stopped is not where it was asked.
        on.write(2001, "/help")
        began = time.monotonic()
        for chat in range(chats):
            on.write(1001 + chat, "/stop")
        await sleep_until(lambda: len(on.api.messages()) > chats, 10)
        seconds = time.monotonic() - began
        await all_taken(on)
        stopped = sum(text.startswith("Stopped.") for text in on.api.sent())
        other = len(on.api.sent()) - 1 - stopped
        return [
            Result(name, "answers that were stopped, of 12", str(stopped), stopped == chats),
            Result(name, "replies of another kind", str(other), not other),
            Result(name, "seconds until all were stopped", f"{seconds:.1f}", seconds < 5),
        ]

    return await on_both("stops", scenario, folder, server, replicas=2, settings=CORRECTING)


async def die(on: Stage, bot: Bot) -> None:
    """Kill a process and start it again."""
    bot.kill()
    bot.reap()
    await on.note_kill()
    bot.start()


async def upgrade(folder: Path, server: Server, each: int = 3) -> list[Result]:
    """The release before dies in its turns; this one upgrades the tables and goes on with them.

    Without git it is this code that dies, with the tables of before.
    """
    before = release_before(folder)

    async def scenario(name: str, on: Stage) -> list[Result]:
        (bot,) = on.bots
        on.model.seconds = 0.5
        if before:
            await downgrade(on.database_url)
            bot.code = before
        await start(on.bots)
        for chat in range(20 * each):
            on.say(1001 + chat % 20)
        await sleep_until(lambda: on.records.recorded("model") > 10, 20)
        bot.kill()
        bot.reap()
        await on.note_kill()
        if bot.code is None:
            await downgrade(on.database_url)
        engine = create_engine(on.database_url)
        await upgrade_schema(engine)
        await engine.dispose()
        bot.code = None
        await start(on.bots)
        await on.answered(60)
        await all_done(on)
        paid = len(on.paid)
        return [*judged(name, on), Result(name, "model calls paid before", str(paid), paid > 0)]

    return await on_both("upgrade from the release before", scenario, folder, server)


async def kept_connections(folder: Path, server: Server, each: int = 12) -> list[Result]:
    """Telegram closes connections at sends: one in ten before it sends, one in ten after."""
    moments: Sequence[Literal["", "before", "after"]] = ("", "", "", "before", "", "", "", "after")

    async def scenario(name: str, on: Stage) -> list[Result]:
        on.api.closings = itertools.cycle([*moments, "", ""])
        await start(on.bots)
        on.model.seconds = 0.05
        for _ in range(each):
            for chat in range(20):
                on.say(1001 + chat)
            await all_done(on)
        on.api.closings = itertools.repeat("")
        for chat in range(20):
            on.say(1001 + chat)
        await all_done(on)
        lost, said = on.tally().lost, {shown(text): text for text in on.api.sent()}
        query = "SELECT turn_id FROM turns WHERE CAST(error_types AS VARCHAR) LIKE '%ambig%'"
        unsure = {mark for (found,) in on.records.product(query) for mark in on.marks_of(found)}
        untold = [
            later
            for marks in on.sent.values()
            for earlier, later in itertools.pairwise(marks)
            if earlier in unsure and say("may_be_lost") not in said.get(later, say("may_be_lost"))
        ]
        unknown = sorted(set(lost) - unsure)
        return [
            *(one for one in judged(name, on) if one.what != "lost"),
            Result(name, "closed before they were sent", str(len(lost)), len(lost) > each),
            Result(name, "lost without a trace", str(len(unknown)), not unknown),
            Result(name, "not told with the next answer", str(len(untold)), not untold),
        ]

    return await on_both("connections closed at sends", scenario, folder, server)


async def all_done(on: Stage, seconds: float = 20) -> bool:
    """Whether every message's turn is over within so many seconds."""
    done = "SELECT COUNT(*) FROM updates WHERE state = 'done'"
    return await sleep_until(lambda: on.records.product(done)[0][0] == len(on.updates), seconds)


async def outages(folder: Path, seconds: float = 20) -> list[Result]:
    """The database is locked, or the disk is full, while people write."""
    return [
        *await outage(folder, f"database locked for {seconds:g} s", locked, seconds),
        *await outage(folder, f"disk full for {seconds:g} s", full, seconds),
    ]


async def outage(
    folder: Path,
    name: str,
    trouble: Callable[[Stage, float], Coroutine[None, None, None]],
    seconds: float,
) -> list[Result]:
    """People of 20 chats write before, during and after a trouble of the database."""
    async with stage(folder) as on:
        await start(on.bots)
        on.model.seconds = 0.5
        for chat in range(20):
            on.say(1001 + chat)
        await asyncio.sleep(0.3)
        troubled = asyncio.create_task(trouble(on, seconds))
        await asyncio.sleep(1)
        for chat in range(20):
            on.say(1001 + chat)
        await troubled
        for chat in range(20):
            on.say(1001 + chat)
        await on.answered(60)
        await sleep_until(lambda: not on.records.product(WAITING)[0][0], 10)
        kept = on.records.product("SELECT COUNT(*) FROM messages")[0][0]
        refused = on.bots[0].said().count("OperationalError")
        status, _ = await on.bots[0].stop()
        return [
            *judged(name, on),
            asked_twice(name, on),
            Result(name, "messages in the history", str(kept), kept == 120),
            Result(name, "records refused", str(refused), refused > 0 or seconds < 10),
            Result(name, "exit status", str(status), status == 0),
        ]


async def locked(on: Stage, seconds: float) -> None:
    """Another process writes and does not commit."""
    connection = sqlite3.connect(on.database_url.partition(":///")[2], isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    await asyncio.sleep(seconds)
    connection.execute("COMMIT")
    connection.close()


async def full(on: Stage, seconds: float) -> None:
    """The bot may write nothing behind the first bytes of a file."""
    process = on.bots[0].process
    assert process is not None
    psutil.Process(process.pid).rlimit(psutil.RLIMIT_FSIZE, (4096, -1))
    await asyncio.sleep(seconds)
    psutil.Process(process.pid).rlimit(psutil.RLIMIT_FSIZE, (-1, -1))


async def lost_file(folder: Path) -> list[Result]:
    """The file of the database is deleted, and replaced, under a running bot."""
    return [
        *await without_file(folder, "SQLite file deleted", Path.unlink),
        *await without_file(folder, "SQLite file replaced", replaced),
    ]


def replaced(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copyfile(path, copy)
    copy.rename(path)


async def without_file(folder: Path, name: str, lose: Callable[[Path], None]) -> list[Result]:
    async with stage(folder) as on:
        await start(on.bots)
        on.say(1001)
        await on.answered(20)
        path, bot = Path(on.database_url.partition(":///")[2]), on.bots[0]
        lose(path)
        on.say(1001)
        process = bot.process
        assert process is not None
        await sleep_until(lambda: process.poll() is not None, 15)
        clear = f"sommelier: The database {path} was deleted or replaced" in bot.said()
        return [
            Result(name, "exit status", str(process.poll()), process.poll() == 1),
            Result(name, "one line says why", str(clear), clear),
            Result(name, "not acknowledged", str(on.api.pending), on.api.pending == 1),
        ]


async def dropped_connections(folder: Path, server: Server, rounds: int = 20) -> list[Result]:
    """Postgres drops every connection of the bot, again and again, while people write."""
    name = f"all connections dropped {rounds} times"
    drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    async with stage(folder, server=server) as on:
        await start(on.bots)
        on.model.seconds = 0.2
        database = make_url(on.database_url).database
        address = server.get_uri(driver="psycopg").replace("postgresql+psycopg://", "postgresql://")
        with psycopg.connect(address, autocommit=True) as connection:
            for _ in range(rounds):
                for chat in range(4):
                    on.say(1001 + chat)
                await asyncio.sleep(0.3)
                connection.execute(drop, (database,))
        await on.answered(120)
        await sleep_until(lambda: not on.records.product(WAITING)[0][0], 10)
        kept = on.records.product("SELECT COUNT(*) FROM messages")[0][0]
        return [
            *judged(name, on, quiet=False),
            asked_twice(name, on),
            Result(name, "messages in the history", str(kept), kept == 8 * rounds),
        ]
