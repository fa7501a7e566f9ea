"""What durability costs: `python -m benchmarks.durability` writes its table to docs/benchmarks.md.

The product on SQLite and on Postgres, and the same answerer under plain python-telegram-bot, each
as a process, get the same messages from a Bot API double and the same answers from a model that
replies at once. They take turns, and each figure is the mean of all rounds.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg

from tests.crash.harness import Server, new_database, postgres
from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, answer_json

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- cost of durability -->", "<!-- end of cost of durability -->"
CHATS, MESSAGES = 100, 5
IDLE_SECONDS = 10
PACED_MESSAGES, PACE_SECONDS = 40, 0.25
ANSWER = {"response_type": "informational", "intro": "A fine wine, I think."}
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
ROUNDS = 2


@dataclass(frozen=True)
class Figures:
    """What was measured of one bot."""

    idle_percent: float
    reply_p50_ms: float
    reply_p95_ms: float
    turns_a_second: float
    cpu_ms_a_turn: float
    switches_a_turn: float
    commits_a_turn: float
    memory_mb: float


@contextmanager
def process(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A bot, told to stop at the end."""
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
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wait_for(bot_api: BotApi, count: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while len(bot_api.messages()) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(bot_api.messages())} of {count} messages were answered")
        time.sleep(0.01)


def measure(module: str, server: Server | None = None) -> Figures:
    """Idle, then one message after another, then all at once."""
    with (
        BotApi() as bot_api,
        ModelServer(default=answer_json(ANSWER)) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        url = asyncio.run(new_database(server, Path(folder)))
        environment = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "TELEGRAM_MESSAGES_PER_SECOND": "0",
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": model.base_url,
            "XDG_DATA_HOME": folder,
            "DATABASE_URL": url,
            "BURST_SECONDS": "0",
        }
        command = [sys.executable, "-m", *module.split()]
        with process(command, environment) as bot:
            bot_api.say("warm up", chat_id=1)
            wait_for(bot_api, 1)
            time.sleep(2)
            before = cpu_seconds(bot.pid)
            time.sleep(IDLE_SECONDS)
            idle = (cpu_seconds(bot.pid) - before) / IDLE_SECONDS * 100
            waits = one_by_one(bot_api)
            sent, turns = len(bot_api.messages()), CHATS * MESSAGES
            before, switches, done = cpu_seconds(bot.pid), switched(bot.pid), commits(url)
            began = time.monotonic()
            for _ in range(MESSAGES):
                for chat in range(CHATS):
                    bot_api.say("What is tannin?", chat_id=5000 + chat)
            wait_for(bot_api, sent + turns)
            seconds = time.monotonic() - began
            return Figures(
                idle_percent=idle,
                reply_p50_ms=waits[len(waits) // 2],
                reply_p95_ms=waits[int(len(waits) * 0.95)],
                turns_a_second=turns / seconds,
                cpu_ms_a_turn=(cpu_seconds(bot.pid) - before) / turns * 1000,
                switches_a_turn=(switched(bot.pid) - switches) / turns,
                commits_a_turn=(commits(url) - done) / turns,
                memory_mb=int(Path(f"/proc/{bot.pid}/statm").read_text().split()[1]) * PAGE / 1e6,
            )


def switched(pid: int) -> int:
    """How often any thread of a process gave up a core so far."""
    lines = [
        line
        for task in Path(f"/proc/{pid}/task").iterdir()
        for line in (task / "status").read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def commits(url: str) -> int:
    """How many transactions wrote to a database so far; 0 of one that nobody wrote to."""
    if url.startswith("sqlite"):
        # SQLite counts them at this place of the index of its write-ahead log.
        index = Path(url.partition(":///")[2] + "-shm")
        return int.from_bytes(index.read_bytes()[8:12], sys.byteorder) if index.exists() else 0
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        asked = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        (count,) = connection.execute(asked).fetchone() or (0,)
        return int(count)


def one_by_one(bot_api: BotApi) -> list[float]:
    """Milliseconds from a message to its reply, sorted, each chat's first and only message."""
    waits = []
    for number in range(PACED_MESSAGES):
        sent, began = len(bot_api.messages()), time.monotonic()
        bot_api.say("What is tannin?", chat_id=100 + number)
        wait_for(bot_api, sent + 1)
        waits.append((time.monotonic() - began) * 1000)
        time.sleep(PACE_SECONDS)
    return sorted(waits)


def table(rows: Mapping[str, Figures]) -> str:
    """The figures as Markdown."""
    head = (
        "| | idle CPU, % of a core | CPU a turn, ms | turns a second | commits a turn | context "
        "switches a turn | message to reply, ms (p50 / p95) | memory, MB |\n"
        "| :-- | --: | --: | --: | --: | --: | --: | --: |\n"
    )
    lines = [
        f"| {name} | {row.idle_percent:.1f} | {row.cpu_ms_a_turn:.1f} | {row.turns_a_second:.0f} | "
        f"{row.commits_a_turn:.1f} | {row.switches_a_turn:.0f} | {row.reply_p50_ms:.0f} / "
        f"{row.reply_p95_ms:.0f} | {row.memory_mb:.0f} |"
        for name, row in rows.items()
    ]
    return head + "\n".join(lines)


def write(measured: str) -> None:
    """Put the table between its markers."""
    text = DOCS.read_text("utf-8")
    block = f"{BEGIN}\n\n{measured}\n\n{END}"
    if BEGIN in text:
        text = re.sub(f"{BEGIN}.*?{END}", lambda _: block, text, flags=re.DOTALL)
    else:
        text = f"{text.rstrip()}\n\n## What durability costs\n\n{INTRODUCTION}\n\n{block}\n"
    DOCS.write_text(text, "utf-8")


INTRODUCTION = (
    "`python -m benchmarks.durability`: the product on SQLite and Postgres (each update and each "
    "step committed to disk) beside the same answerer under plain python-telegram-bot, which "
    "forgets what it has not answered when it is killed. 100 chats write 5 messages each at once; "
    "idle and one by one before. The burst wait of 0.8 s is off here, and so are Telegram's limits."
)


def mean(rounds: Sequence[Figures]) -> Figures:
    """The mean of each figure."""
    named = [asdict(each) for each in rounds]
    return Figures(**{name: sum(each[name] for each in named) / len(named) for name in named[0]})


def main() -> None:
    """Measure all in turns, print the table and write it down."""
    with postgres() as server:
        bots: dict[str, Callable[[], Figures]] = {
            "plain python-telegram-bot": lambda: measure("benchmarks.plain_bot"),
            "this project, SQLite": lambda: measure("bot run"),
            "this project, Postgres": lambda: measure("bot run", server),
        }
        rounds = [{name: take() for name, take in bots.items()} for _ in range(ROUNDS)]
    measured = table({name: mean([each[name] for each in rounds]) for name in bots})
    print(measured)
    write(measured)


if __name__ == "__main__":
    main()
