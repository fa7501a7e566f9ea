"""The scenarios of the crash test: what is done to the bot, and what is counted then.

Each returns rows of a table.
"""

import asyncio
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.doubles import BOUNDARIES, MARK, Boundary, sleep_until
from tests.crash.harness import WAITING, Bot, Stage, stage

FINISH_SECONDS = 20
SET_ASIDE = "SELECT update_id, error FROM updates WHERE state = 'set_aside'"
CORRECTING = {"JOIN_SECONDS": "0.8"}


@dataclass(frozen=True)
class Result:
    """A row: what was measured, and whether it is as it must be."""

    scenario: str
    what: str
    value: str
    ok: bool = True


@dataclass(frozen=True)
class Moment:
    """The moment of a kill: at a boundary, `seconds` after it; or when a step is recorded."""

    boundary: Boundary | None = None
    step: str | None = None
    seconds: float = 0


def plan(kills: int) -> list[Moment]:
    """Return every boundary and every step in turn, and a random moment for each third kill."""
    dice = random.Random(11)
    watched = [
        *(Moment(boundary) for boundary in BOUNDARIES),
        Moment(step="committed"),
        Moment(step="sent"),
    ]
    moments = []
    for number in range(kills):
        moment = watched[(number - number // 3) % len(watched)]
        if number % 3 == 2:
            moment = Moment(seconds=dice.uniform(0, 1.5))
        elif (moment.boundary or "").endswith(("answered", "fetched")):
            # The bot works on it by then.
            moment = Moment(moment.boundary, seconds=dice.uniform(0, 0.04))
        moments.append(moment)
    return moments


async def crashes(
    folder: Path,
    moments: Sequence[Moment],
    *,
    messages: int,
    chats: int,
    server_url: str | None = None,
    replicas: int = 1,
) -> list[Result]:
    """`kill -9` at each of the moments, while users write."""
    dice, kills = random.Random(7), len(moments)
    name = f"{kills} kills, {'Postgres' if server_url else 'SQLite'} × {replicas}"
    async with stage(folder, server_url=server_url, replicas=replicas) as on:
        await on.start()
        for number, moment in enumerate(moments):
            share = messages * (number + 1) // kills - messages * number // kills
            on.model.seconds = dice.choice([0, 0.05, 0.2])
            chosen = [1001 + dice.randrange(chats) for _ in range(share)]
            for chat in chosen[::2]:
                on.say(chat)
            # Some die as they start; but one that died in the same step again and again would be
            # set aside, as it should be, so most get some way first.
            if number % 5:
                await on.ready()
                await is_recorded(on, "sent", 3)
                await asyncio.sleep(dice.uniform(0.5, 1.5))
            await kill_at(on, moment, dice, chosen[1::2])
        await on.answered(120)
        await asyncio.sleep(1)
        await on.ready()
        statuses = await exit_statuses(name, on)
        await on.note_kill()
        return [
            statuses,
            *judge(name, on),
            Result(name, "kills", str(sum(bot.kills for bot in on.bots))),
        ]


async def kill_at(
    on: Stage, moment: Moment, dice: random.Random, chats: Sequence[int]
) -> None:
    """Kill a process at a moment, note what was out and recorded, and start it again.

    Meanwhile messages are written to the chats.
    """
    victim, struck, killed = dice.choice(on.bots), threading.Event(), list[Bot]()

    def strike(bot: Bot) -> None:
        bot.kill()
        killed.append(bot)
        struck.set()

    def strike_port(port: int) -> None:
        bot = on.owner(port) or victim
        threading.Timer(
            moment.seconds, strike, [bot]
        ).start() if moment.seconds else strike(bot)

    if moment.boundary:
        on.watch.arm(moment.boundary, strike_port, passes=dice.randrange(3))
    for chat in chats:
        on.say(chat)
    if moment.boundary:
        await sleep_until(struck.is_set, 8)
        on.watch.arm(None, strike_port)
    elif moment.step:
        await is_recorded(on, moment.step, 8)
    await asyncio.sleep(moment.seconds)
    if not struck.is_set():
        strike(victim)
    killed[0].reap()
    await on.note_kill()
    killed[0].start()


async def is_recorded(on: Stage, step: str, seconds: float) -> bool:
    """Return whether one more turn has this step recorded within so many seconds."""
    before, deadline = on.recorded(step), time.monotonic() + seconds
    while time.monotonic() < deadline:
        if on.recorded(step) > before:
            return True
        await asyncio.sleep(0.002)
    return False


async def exit_statuses(name: str, on: Stage) -> Result:
    """Stop all processes; return whether they ended well."""
    statuses = [(await bot.stop())[0] for bot in on.bots]
    return Result(name, "exit statuses", str(statuses), set(statuses) == {0})


def judge(name: str, on: Stage, *, quiet: bool = True) -> list[Result]:
    """Return what became of the messages, and of the turns behind them.

    If `quiet`, the logs must have no traceback.
    """
    reordered, repeated, replies = list[str](), Counter[str](), on.api.replies()
    for chat, found in replies.items():
        got = [mark for mark in found if mark != "?"]
        due = [mark for mark in on.marks(chat) if mark in got]
        pairs = zip(dict.fromkeys(got), due, strict=False)
        reordered += [mark for mark, expected in pairs if mark != expected]
        repeated.update(Counter(got) - Counter(due))
    other = sum(found.count("?") for found in replies.values())
    lost, duplicated, failed = on.lost(), repeated - on.unrecorded, on.query(SET_ASIDE)
    states = dict(on.query("SELECT state, COUNT(*) FROM updates GROUP BY state"))
    tracebacks = sum(bot.said().count("Traceback") for bot in on.bots)
    return [
        Result(name, "messages", str(len(on.updates))),
        Result(name, "lost", shown(lost), not lost),
        Result(name, "reordered", shown(reordered), not reordered),
        Result(name, "duplicated", shown([*duplicated]), not duplicated),
        Result(
            name,
            "duplicated, killed between send and record",
            str((repeated & on.unrecorded).total()),
        ),
        Result(name, "replies of another kind", str(other), not other),
        Result(name, "turns that failed", shown(failed), not failed),
        Result(
            name, "updates by state", str(states), set(states) <= {"done", "joined"}
        ),
        Result(
            name, "tracebacks in the logs", str(tracebacks), not (quiet and tracebacks)
        ),
    ]


def shown(found: Sequence[object]) -> str:
    """Return how many there are, and the first of them."""
    return str(len(found)) + (f": {', '.join(map(str, found[:6]))}" if found else "")


async def database_restarts(
    folder: Path, server: Any, restarts: int = 5
) -> list[Result]:
    """Stop and start Postgres while users write."""
    name, dice = f"Postgres restarted {restarts} times", random.Random(3)
    async with stage(
        folder, server_url=server.get_uri(driver="psycopg"), replicas=2
    ) as on:

        async def write() -> None:
            for _ in range(40):
                on.say(1001 + dice.randrange(30))
                await asyncio.sleep(0.1)

        await on.start()
        on.model.seconds = 0.2
        for _ in range(restarts):
            writing = asyncio.create_task(write())
            await asyncio.sleep(1.5)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(dice.uniform(0, 2))
            await asyncio.to_thread(server.start)
            await writing
        await on.answered(200)
        await asyncio.sleep(1)
        twice = [mark for mark, times in Counter(on.model.asked).items() if times > 1]
        return [
            await exit_statuses(name, on),
            *judge(name, on, quiet=False),
            Result(name, "messages that the model was asked about twice", shown(twice)),
        ]


async def stopping(folder: Path) -> list[Result]:
    """Send SIGTERM under load, and start again."""
    name = "SIGTERM under load"
    async with stage(folder) as on:
        await on.start()
        on.model.seconds = 2
        for number in range(90):
            on.say(1001 + number % 30)
        await sleep_until(lambda: bool(on.model.asked), 20)
        status, seconds = await on.bots[0].stop()
        remaining = len(on.lost())
        await on.start()
        await on.answered(90)
        await asyncio.sleep(1)
        return [
            Result(name, "exit status", str(status), status == 0),
            Result(
                name, "seconds to exit", f"{seconds:.1f}", seconds < FINISH_SECONDS + 5
            ),
            Result(
                name, "messages left to the next start", str(remaining), remaining > 0
            ),
            await exit_statuses(name, on),
            *judge(name, on),
        ]


async def frozen_replica(
    folder: Path, server_url: str, messages: int = 60
) -> list[Result]:
    """Cut one of two replicas off from Postgres while it stands still; then let it go on.

    What it was about to send, the other replica has sent by then.
    """
    name = "a replica that stands still without its locks"
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}'"
    async with stage(folder, server_url=server_url, replicas=2) as on:
        await on.start()
        on.model.seconds = 1
        for number in range(messages):
            on.say(1001 + number % 20)
        await sleep_until(lambda: len(on.model.asked) > messages // 4, 20)
        frozen = on.bots[0]
        assert frozen.process is not None
        frozen.process.send_signal(signal.SIGSTOP)
        on.query(cut.format(frozen.name))
        await on.note_kill()
        await sleep_until(lambda: not on.query(WAITING)[0][0], 30)
        frozen.process.send_signal(signal.SIGCONT)
        await sleep_until(lambda: "is run by another process" in frozen.said(), 10)
        await on.answered(60)
        await on.all_taken()
        fenced = frozen.said().count("is run by another process now")
        return [
            await exit_statuses(name, on),
            *judge(name, on),
            Result(name, "turns it may not go on with", str(fenced), fenced > 0),
        ]


async def corrections(folder: Path, server_url: str, rounds: int) -> list[Result]:
    """Have users correct their questions on SQLite, and on Postgres with two replicas."""
    async with stage(folder, settings=CORRECTING) as on:
        found = await corrected("corrections, SQLite", on, rounds)
    async with stage(
        folder, server_url=server_url, replicas=2, settings=CORRECTING
    ) as on:
        return found + await corrected("corrections, Postgres × 2", on, rounds)


async def corrected(name: str, on: Stage, rounds: int = 8) -> list[Result]:
    """Have users add to what they asked; every other time a process dies as it takes that in.

    The replicas get every message in turns, so a correction seldom comes to the one that runs its
    turn.
    """
    dice, pairs, together = random.Random(5), list[tuple[str, str]](), list[int]()
    await on.start()
    for number in range(rounds):
        # So long that no machine is too slow to correct what is asked.
        on.model.seconds = 10
        before = len(answers(on))
        firsts = [on.say(1001 + chat) for chat in range(12)]
        await sleep_until(lambda: len({*on.model.asked}) >= 12, 20)
        on.model.seconds = 0.8
        new = [(first, on.say(1001 + chat)) for chat, first in enumerate(firsts)]
        if number % 2:
            await asyncio.sleep(dice.uniform(0, 0.3))
            await kill_at(on, Moment(), dice, ())
            await on.ready()
        await on.all_taken()
        pairs += new
        if not number % 2:
            together.append(sum(pair in answers(on)[before:] for pair in new))
        on.model.asked.clear()
    named = Counter(mark for answer in answers(on) for mark in answer)
    marks = [mark for pair in pairs for mark in pair]
    lost = [mark for mark in marks if not named[mark]]
    twice = [mark for mark in marks if named[mark] > 1 + on.unrecorded[mark]]
    other = [text for text in on.api.sent() if not MARK.search(text)]
    failed = on.query(SET_ASIDE)
    return [
        await exit_statuses(name, on),
        Result(name, "messages", str(len(marks))),
        Result(name, "lost", shown(lost), not lost),
        Result(name, "answered twice", shown(twice), not twice),
        Result(name, "replies of another kind", shown(other), not other),
        Result(name, "kills", str(sum(bot.kills for bot in on.bots))),
        Result(
            name, "pairs of 12 answered together", str(together), set(together) == {12}
        ),
        Result(name, "turns that failed", shown(failed), not failed),
    ]


def answers(on: Stage) -> list[tuple[str, ...]]:
    """Return the messages that each reply names."""
    return [
        tuple(MARK.findall(message.get("text", ""))) for message in on.api.messages()
    ]
