"""Databases that restart, chats that must not wait, stopping, and a replica that stays dead."""

import asyncio
import math
import random
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

from bot.durable import QUEUE, workflow_id
from tests.crash.doubles import sleep_until
from tests.crash.harness import Bot, Server, Stage, stage
from tests.crash.scenarios import Result, judged, start

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
            *judged(name, on),
            Result(name, "seconds until the rest was answered", f"{drained:.1f}"),
            Result(name, "exit statuses", str(statuses), set(statuses) == {0}),
        ]


async def write(on: Stage, dice: random.Random, *, messages: int, seconds: float) -> None:
    """People of 30 chats write so many messages in so many seconds."""
    for _ in range(messages):
        on.say(1001 + dice.randrange(30))
        await asyncio.sleep(seconds / messages)


async def fairness(folder: Path, chats: int = 200, each: int = 5, pause: float = 20) -> list[Result]:
    """Many chats, each of which writes a message every `pause` seconds, and a model of 200 ms."""
    name = f"{chats} chats × {each}, a message every {pause:g} s"
    async with stage(folder) as on:
        await start(on.bots)
        on.model.seconds = 0.2
        await asyncio.gather(
            *(paced(on, 1001 + n, each, pause, pause * n / chats) for n in range(chats))
        )
        await on.answered(120)
        waits, ends = await measured(on)
        ratio = max(ends.values()) / median(ends.values())
        return [
            *judged(name, on),
            Result(name, "accept to start of turn, p50 / p95 / max, ms", _spread(waits)),
            Result(name, "seconds per turn, slowest chat ÷ median chat", f"{ratio:.2f}", ratio < 3),
        ]


async def paced(on: Stage, chat: int, each: int, pause: float, first: float) -> None:
    await asyncio.sleep(first)
    for number in range(each):
        on.say(chat)
        if number < each - 1:
            await asyncio.sleep(pause)


async def measured(on: Stage) -> tuple[list[float], dict[int, float]]:
    """Seconds from accept to the start of each turn, and by chat those to the mean turn's end."""
    starts = await asyncio.to_thread(on.records.starts)
    rows = on.records.product("SELECT update_id, chat_id, received_at FROM updates")
    ended = {
        int(turn.split("-")[1]): ms / 1000
        for turn, ms in on.records.turns(
            "SELECT workflow_uuid, MAX(completed_at_epoch_ms) FROM {}operation_outputs "
            "GROUP BY workflow_uuid"
        )
    }
    waits, by_chat = [], {}
    for update_id, chat_id, received in rows:
        if update_id not in starts:
            continue
        accepted = _epoch(received)
        waits.append(starts[update_id] - accepted)
        by_chat.setdefault(chat_id, []).append(ended[update_id] - accepted)
    return waits, {chat: sum(each) / len(each) for chat, each in by_chat.items()}


def _epoch(received: str | datetime | int | float) -> float:
    if isinstance(received, (int, float)):
        return received / 1e6 if received > 1e12 else float(received)
    moment = received if isinstance(received, datetime) else datetime.fromisoformat(received)
    return (moment if moment.tzinfo else moment.replace(tzinfo=_utc())).timestamp()


def _spread(seconds: Sequence[float]) -> str:
    ordered = sorted(each * 1000 for each in seconds)
    at = [ordered[min(len(ordered) - 1, math.ceil(len(ordered) * p) - 1)] for p in (0.5, 0.95, 1)]
    return " / ".join(f"{each:.0f}" for each in at)
