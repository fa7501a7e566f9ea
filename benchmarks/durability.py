"""What durability costs: `python -m benchmarks.durability` prints a table.

The product on SQLite and on Postgres, and the same answerer under plain python-telegram-bot, each
as a process, get the same messages from a Bot API double and the same answers from a model that
replies at once. They take turns, and each figure is the mean of all rounds.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

import psycopg

from tests.crash.harness import new_database, postgres
from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, answer_json

ROOT = Path(__file__).parents[1]
CHATS, MESSAGES = 100, 5
PACED_MESSAGES, PACE_SECONDS = 120, 0.1
TURNS = 2000
"""How many turns there were in all when memory is looked at again."""
ANSWER = {"response_type": "informational", "intro": "A fine wine, I think."}
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
ROUNDS = 2
POINTS = (0.5, 0.95, 0.99)
PLAIN = "plain python-telegram-bot"


@dataclass(frozen=True)
class Figures:
    """What was measured of one bot; of a sign of life that it does not give, nothing."""

    signs_ms: Sequence[float]
    replies_ms: Sequence[float]
    cpu_ms_a_turn: float
    turns_a_second: float
    commits_a_turn: float
    memory_mb: float
    later_memory_mb: float


@contextmanager
def process(
    command: list[str], environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a bot, and tell it to stop at the end."""
    started = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | environment, stderr=subprocess.DEVNULL
    )
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            started.kill()


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6


def wait_for(bot_api: BotApi, count: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while len(bot_api.calls_of("sendMessage")) < count:
        if time.monotonic() > deadline:
            found = len(bot_api.calls_of("sendMessage"))
            raise RuntimeError(f"{found} of {count} messages were answered")
        time.sleep(0.1)  # counting takes time from the bots


def measure(module: str, server: Any = None) -> Figures:
    """Send one message after another, then all at once, then many more."""
    with (
        BotApi() as bot_api,
        ModelServer(default=answer_json(ANSWER)) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        url = asyncio.run(
            new_database(server and server.get_uri(driver="psycopg"), Path(folder))
        )
        environment = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "TELEGRAM_MESSAGES_PER_SECOND": "0",
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": model.base_url,
            "XDG_DATA_HOME": folder,
            "DATABASE_URL": url,
            "JOIN_SECONDS": "0",
        }
        command = [sys.executable, "-m", *module.split()]
        with process(command, environment):  # which stocks the database
            bot_api.say("What is tannin?", chat_id=1)
            wait_for(bot_api, 1)
        bot_api.say("What is tannin?", chat_id=1)
        with process(command, environment) as bot:
            wait_for(bot_api, 2)
            time.sleep(6)  # until what is loaded later is loaded
            signs, replies = one_by_one(bot_api)
            turns = CHATS * MESSAGES
            before, done = cpu_seconds(bot.pid), commits(url)
            seconds = all_at_once(bot_api, turns)
            cpu, memory = cpu_seconds(bot.pid) - before, memory_mb(bot.pid)
            done = commits(url) - done
            all_at_once(bot_api, TURNS - turns)
            return Figures(
                signs_ms=signs,
                replies_ms=replies,
                cpu_ms_a_turn=cpu / turns * 1000,
                turns_a_second=turns / seconds,
                commits_a_turn=done / turns,
                memory_mb=memory,
                later_memory_mb=memory_mb(bot.pid),
            )


def all_at_once(bot_api: BotApi, messages: int) -> float:
    """Return the seconds until so many messages of all chats, sent at once, were answered."""
    sent, began = len(bot_api.calls_of("sendMessage")), time.monotonic()
    for number in range(messages):
        bot_api.say("What is tannin?", chat_id=5000 + number % CHATS)
    wait_for(bot_api, sent + messages)
    return time.monotonic() - began


def commits(url: str) -> int:
    """Count the transactions that wrote to a database so far."""
    if url.startswith("sqlite"):
        # SQLite counts them at this place of the index of its write-ahead log.
        index = Path(url.partition(":///")[2] + "-shm")
        return (
            int.from_bytes(index.read_bytes()[8:12], sys.byteorder)
            if index.exists()
            else 0
        )
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        # Postgres numbers the transactions that write, and no others.
        asked = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        (count,) = connection.execute(asked).fetchone() or (0,)
        return int(count)


def one_by_one(bot_api: BotApi) -> tuple[list[float], list[float]]:
    """Return the milliseconds from the only message of a chat to "typing", and to its reply."""
    began = {}
    for chat in range(100, 100 + PACED_MESSAGES):
        sent, began[chat] = len(bot_api.calls_of("sendMessage")), time.monotonic()
        bot_api.say("What is tannin?", chat_id=chat)
        wait_for(bot_api, sent + 1)
        time.sleep(PACE_SECONDS)
    signs, replies = (
        [
            (call.time - began[chat]) * 1000
            for call in bot_api.calls_of(method)
            if (chat := int(call.params["chat_id"])) in began
        ]
        for method in ("sendChatAction", "sendMessage")
    )
    return signs, replies


def points(values: Sequence[float]) -> str:
    """Write some points of a distribution."""
    ordered = sorted(values)
    if not ordered:
        return "–"
    return " / ".join(
        f"{ordered[int((len(ordered) - 1) * point)]:.0f}" for point in POINTS
    )


def table(rounds: Mapping[str, Sequence[Figures]]) -> str:
    """Write the figures as Markdown: means of all rounds, ratios to plain in the same round."""
    head = (
        "| | CPU a turn, ms | × plain | turns a second | × plain | commits a turn | accept to "
        "typing, ms (p50 / p95 / p99) | accept to answer, ms (p50 / p95 / p99) | memory after 500, "
        "2,000 turns, MB |\n| :-- | --: | --: | --: | --: | --: | --: | --: | --: |\n"
    )
    lines = []
    for name, rows in rounds.items():
        pairs = list(zip(rows, rounds[PLAIN], strict=True))
        cpu = mean(row.cpu_ms_a_turn / plain.cpu_ms_a_turn for row, plain in pairs)
        speed = mean(row.turns_a_second / plain.turns_a_second for row, plain in pairs)
        lines.append(
            f"| {name} | {mean(row.cpu_ms_a_turn for row in rows):.1f} | {cpu:.2f} | "
            f"{mean(row.turns_a_second for row in rows):.0f} | {speed:.2f} | "
            f"{mean(row.commits_a_turn for row in rows):.1f} | "
            f"{points([ms for row in rows for ms in row.signs_ms])} | "
            f"{points([ms for row in rows for ms in row.replies_ms])} | "
            f"{mean(row.memory_mb for row in rows):.0f}, "
            f"{mean(row.later_memory_mb for row in rows):.0f} |"
        )
    return head + "\n".join(lines)


def main() -> None:
    """Measure all in turns, and print the table."""
    with postgres(fast=False) as server:
        bots: dict[str, Callable[[], Figures]] = {
            PLAIN: lambda: measure("benchmarks.plain_bot"),
            "this project, SQLite": lambda: measure("bot run"),
            "this project, Postgres": lambda: measure("bot run", server),
        }
        rounds = [{name: take() for name, take in bots.items()} for _ in range(ROUNDS)]
    load = os.getloadavg()[2]
    measured = (
        f"{date.today()}, {os.cpu_count()} cores, load {load:.1f}: means of {ROUNDS} rounds in "
        f"turns.\n\n{table({name: [figures[name] for figures in rounds] for name in bots})}"
    )
    print(measured)


if __name__ == "__main__":
    main()
