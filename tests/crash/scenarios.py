"""The scenarios of the crash test: what is done to the bot, and what is counted then.

Each returns rows of a table.
"""

import asyncio
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import psutil  # type: ignore[import-untyped]

from db.engine import create_engine
from db.schema import upgrade_schema
from tests.crash.doubles import BOUNDARIES, MARK, Boundary, sleep_until
from tests.crash.harness import Bot, Server, Stage, stage

STEPS = ("committed", "sent")
"""The steps of a plain turn, in their order."""


@dataclass(frozen=True)
class Result:
    """A row: what was measured, and whether it is as it must be."""

    scenario: str
    what: str
    value: str
    ok: bool = True


@dataclass(frozen=True)
class Moment:
    """When a kill strikes: at a boundary, `seconds` after it; or when a step is recorded."""

    name: str
    boundary: Boundary | None = None
    step: str | None = None
    seconds: float = 0


def plan(kills: int) -> list[Moment]:
    """Return every boundary and every step in turn, and a random moment for each third kill."""
    dice = random.Random(11)
    watched = [
        *(Moment(name, boundary=name, seconds=_late(name, dice)) for name in BOUNDARIES),
        *(Moment(f"{name} recorded", step=name) for name in STEPS),
    ]
    moments = []
    for number in range(kills):
        if number % 3 == 2:
            moments.append(Moment("at random", seconds=dice.uniform(0, 1.5)))
        else:
            at = watched[(number - number // 3) % len(watched)]
            moments.append(Moment(at.name, at.boundary, at.step, _late(at.name, dice)))
    return moments


def _late(name: str, dice: random.Random) -> float:
    """What is asked or done is hit at once; what is answered, while the bot works on it."""
    return 0 if name.endswith(("asked", "done")) else dice.uniform(0, 0.04)


async def crashes(
    folder: Path,
    moments: Sequence[Moment],
    *,
    messages: int,
    chats: int,
    server: Server | None = None,
    replicas: int = 1,
) -> list[Result]:
    """`kill -9` at each of the moments, while people write."""
    dice, kills = random.Random(7), len(moments)
    name = f"{kills} kills, {'Postgres' if server else 'SQLite'} × {replicas}"
    async with stage(folder, server=server, replicas=replicas) as on:
        await start(on.bots)
        for number, moment in enumerate(moments):
            share = messages * (number + 1) // kills - messages * number // kills
            on.model.seconds = dice.choice([0, 0.05, 0.2])
            to = [1001 + dice.randrange(chats) for _ in range(share)]
            say(on, to[::2])
            # Some die as they start; but one that died in the same step again and again would be
            # set aside, as it should be, so most get some way first.
            if number % 5:
                await asyncio.gather(*(bot.ready() for bot in on.bots))
                await recorded(on, STEPS[-1], 3)
                await asyncio.sleep(dice.uniform(0.5, 1.5))
            await kill_at(on, moment, dice, to[1::2])
        began = time.monotonic()
        await on.answered(120)
        drained = time.monotonic() - began
        await asyncio.sleep(1)
        await asyncio.gather(*(bot.ready() for bot in on.bots))
        statuses = await exit_statuses(name, on)
        await on.note_kill()
        return [
            statuses,
            *judged(name, on),
            Result(name, "kills", str(sum(bot.kills for bot in on.bots))),
            Result(name, "seconds until the rest was answered", f"{drained:.1f}"),
        ]


async def exit_statuses(name: str, on: Stage) -> Result:
    """Stop all processes, and tell whether they ended well."""
    statuses = [(await bot.stop())[0] for bot in on.bots]
    return Result(name, "exit statuses", str(statuses), set(statuses) == {0})


async def start(bots: Sequence[Bot]) -> None:
    for bot in bots:
        bot.start()
    await asyncio.gather(*(bot.ready() for bot in bots))


async def kill_at(on: Stage, moment: Moment, dice: random.Random, to: Sequence[int]) -> None:
    """Kill a process at a moment, note what was out and recorded, and start it again.

    Meanwhile messages are written to the chats `to`.
    """
    victim = dice.choice(on.bots)
    struck = threading.Event()
    killed: list[Bot] = []

    def strike(bot: Bot) -> None:
        bot.kill()
        killed.append(bot)
        struck.set()

    def strike_port(port: int) -> None:
        bot = owner(on.bots, port) or victim
        if moment.seconds:
            threading.Timer(moment.seconds, strike, [bot]).start()
        else:
            strike(bot)

    if moment.boundary:
        on.watch.arm(moment.boundary, strike_port, passes=dice.randrange(3))
        say(on, to)
        await sleep_until(struck.is_set, 8)
        on.watch.disarm()
        await asyncio.sleep(moment.seconds)
    elif moment.step:
        say(on, to)
        await recorded(on, moment.step, 8)
    else:
        say(on, to)
        await asyncio.sleep(moment.seconds)
    if not struck.is_set():
        strike(victim)
    killed[0].reap()
    await on.note_kill()
    killed[0].start()


def say(on: Stage, to: Sequence[int]) -> None:
    for chat in to:
        on.say(chat)


def owner(bots: Sequence[Bot], port: int) -> Bot | None:
    """The bot that has a connection from this port."""
    for bot in bots:
        if bot.process is None:
            continue
        try:
            connections = psutil.Process(bot.process.pid).net_connections("tcp")
        except psutil.Error:
            continue
        if any(each.laddr.port == port for each in connections):
            return bot
    return None


async def recorded(on: Stage, step: str, seconds: float) -> bool:
    """Whether a turn more has this step recorded, within so many seconds."""

    before = on.records.count(step)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if on.records.count(step) > before:
            return True
        await asyncio.sleep(0.002)
    return False


def judged(name: str, on: Stage, *, quiet: bool = True) -> list[Result]:
    """What became of the messages, and of the turns behind them; `quiet`: without a traceback."""
    found, failed = on.tally(), on.records.failed_turns()
    states = dict(on.records.query("SELECT state, COUNT(*) FROM updates GROUP BY state"))
    tracebacks = sum(bot.said().count("Traceback") for bot in on.bots)
    return [
        Result(name, "messages", str(found.sent)),
        Result(name, "lost", _shown(found.lost), not found.lost),
        Result(name, "reordered", _shown(found.reordered), not found.reordered),
        Result(name, "duplicated", _shown(found.duplicated), not found.duplicated),
        Result(name, "duplicated, killed between send and record", _shown(found.explained)),
        Result(name, "replies of another kind", str(found.other), not found.other),
        Result(name, "model calls paid twice", _shown(on.paid_twice), not on.paid_twice),
        Result(
            name, "two turns of a chat at once", _shown(twice := on.model.overlapping), not twice
        ),
        Result(name, "turns that failed", _shown([str(each) for each in failed]), not failed),
        Result(name, "updates by state", str(states), set(states) <= {"done", "taken"}),
        Result(name, "tracebacks in the logs", str(tracebacks), not (quiet and tracebacks)),
    ]


def _shown(marks: Sequence[str]) -> str:
    return str(len(marks)) + (f": {', '.join(marks[:6])}" if marks else "")


WAITING = "SELECT COUNT(*) FROM updates WHERE state IN ('waiting', 'answered')"
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
        asked = Counter(one.mark for one in on.model.asked)
        twice = sum(times > 1 for times in asked.values())
        return [
            await exit_statuses(name, on),
            *judged(name, on, quiet=False),
            Result(name, "messages that the model was asked about twice", str(twice), not twice),
            Result(name, "seconds until the rest was answered", f"{drained:.1f}"),
        ]


async def write(on: Stage, dice: random.Random, *, messages: int, seconds: float) -> None:
    """People of 30 chats write so many messages in so many seconds."""
    for _ in range(messages):
        on.say(1001 + dice.randrange(30))
        await asyncio.sleep(seconds / messages)


async def stopping(folder: Path, _server: Server) -> list[Result]:
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
        on.records.query(cut.format(on.bots[0].name))
        await on.note_kill()
        sending = {i for i, names in on.records.steps().items() if names == {"committed"}}
        on.unrecorded.update(mark for mark, i in on.updates.items() if i in sending)
        await sleep_until(lambda: not on.records.query(WAITING)[0][0], 30)
        process.send_signal(signal.SIGCONT)
        await sleep_until(lambda: "is run by another process" in on.bots[0].said(), 10)
        await on.answered(60)
        await all_done(on)
        fenced = on.bots[0].said().count("is run by another process now")
        return [
            await exit_statuses(name, on),
            *(row for row in judged(name, on) if "at once" not in row.what),
            Result(name, "turns it may not go on with", str(fenced), fenced > 0),
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
    failed = on.records.failed_turns()
    return [
        await exit_statuses(name, on),
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
    return await sleep_until(lambda: on.records.query(every)[0][0] >= len(on.updates), seconds)


async def all_taken(on: Stage, seconds: float = 30) -> bool:
    """Whether no turn is to be run any more within so many seconds."""
    return await all_accepted(on) and await sleep_until(
        lambda: not on.records.query(WAITING)[0][0], seconds
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


async def upgrade(folder: Path, server: Server, messages: int = 60) -> list[Result]:
    """A process dies in its turns; the next one upgrades the tables first, and answers them."""

    async def scenario(name: str, on: Stage) -> list[Result]:
        (bot,) = on.bots
        on.model.seconds = 0.5
        await start(on.bots)
        for number in range(messages):
            on.say(1001 + number % 20)
        await sleep_until(lambda: on.records.count("committed") > 10, 20)
        bot.kill()
        bot.reap()
        await on.note_kill()
        engine = create_engine(on.database_url)
        await upgrade_schema(engine)
        await engine.dispose()
        await start(on.bots)
        await on.answered(60)
        await all_done(on)
        return judged(name, on)

    return await on_both("upgrade with updates waiting", scenario, folder, server)


async def all_done(on: Stage, seconds: float = 20) -> bool:
    """Whether every message's turn is over within so many seconds."""
    done = "SELECT COUNT(*) FROM updates WHERE state = 'done'"
    return await sleep_until(lambda: on.records.query(done)[0][0] == len(on.updates), seconds)
