"""What is done to the bot, and what is counted then. Each scenario returns rows of a table."""

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.crash.doubles import BOUNDARIES, Boundary, sleep_until
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
