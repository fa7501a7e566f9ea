"""What durability costs: `python -m benchmarks.durability` writes its table to docs/benchmarks.md.

The product and the same answerer under plain python-telegram-bot, each as a process, get the same
messages from a Bot API double and the same answers from a model that replies at once.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, answer_json

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- cost of durability -->", "<!-- end of cost of durability -->"
CHATS, MESSAGES = 100, 5
IDLE_SECONDS = 10
PACED_MESSAGES, PACE_SECONDS = 40, 0.25
ANSWER = {"response_type": "informational", "intro": "A fine wine, I think."}
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figures:
    """What was measured of one bot."""

    name: str
    idle_percent: float
    start_ms: float | None
    reply_p50_ms: float
    reply_p95_ms: float
    turns_a_second: float
    cpu_ms_a_turn: float


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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(bot_api: BotApi, count: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while len(bot_api.messages()) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(bot_api.messages())} of {count} messages were answered")
        time.sleep(0.01)


def measure(name: str, module: str, *, metrics: bool) -> Figures:
    """Idle, then one message after another, then all at once."""
    with (
        BotApi() as bot_api,
        ModelServer(default=answer_json(ANSWER)) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        port = free_port()
        environment = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "TELEGRAM_MESSAGES_PER_SECOND": "0",
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": model.base_url,
            "XDG_DATA_HOME": folder,
            "BURST_SECONDS": "0",
            "HTTP_PORT": str(port),
        }
        command = [sys.executable, "-m", module, *(["run"] if metrics else [])]
        with process(command, environment) as bot:
            bot_api.say("warm up", chat_id=1)
            wait_for(bot_api, 1)
            time.sleep(2)
            before = cpu_seconds(bot.pid)
            time.sleep(IDLE_SECONDS)
            idle = (cpu_seconds(bot.pid) - before) / IDLE_SECONDS * 100
            waits = one_by_one(bot_api)
            start = mean_start_ms(port) if metrics else None
            sent, before = len(bot_api.messages()), cpu_seconds(bot.pid)
            began = time.monotonic()
            for _ in range(MESSAGES):
                for chat in range(CHATS):
                    bot_api.say("What is tannin?", chat_id=5000 + chat)
            wait_for(bot_api, sent + CHATS * MESSAGES)
            seconds, turns = time.monotonic() - began, CHATS * MESSAGES
            cpu = (cpu_seconds(bot.pid) - before) / turns * 1000
            p50, p95 = waits[len(waits) // 2], waits[int(len(waits) * 0.95)]
    return Figures(name, idle, start, p50, p95, turns / seconds, cpu)


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


def mean_start_ms(port: int) -> float:
    """The mean time from accepting an update to the start of its turn, as /metrics tells it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        text = page.read().decode()
    total, count = (
        float(re.search(rf"^sommelier_start_seconds_{part} (\S+)", text, re.M)[1])  # type: ignore[index]
        for part in ("sum", "count")
    )
    return total / count * 1000


def table(rows: list[Figures]) -> str:
    """The figures as Markdown."""
    head = (
        "| | idle CPU, % of a core | accept to start of turn, ms (mean) | message to reply, ms "
        "(p50 / p95) | turns a second, 100 chats at once | CPU per turn, ms |\n"
        "| :-- | --: | --: | --: | --: | --: |\n"
    )
    lines = [
        f"| {row.name} | {row.idle_percent:.1f} | "
        f"{'–' if row.start_ms is None else f'{row.start_ms:.0f}'} | "
        f"{row.reply_p50_ms:.0f} / {row.reply_p95_ms:.0f} | {row.turns_a_second:.0f} | "
        f"{row.cpu_ms_a_turn:.1f} |"
        for row in rows
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
    "`python -m benchmarks.durability`: the product (SQLite, each update and each step committed "
    "to disk) beside the same answerer under plain python-telegram-bot, which forgets what it has "
    "not answered when it is killed. The burst wait of 0.8 s is off here, and so are Telegram's "
    "limits."
)


def main() -> None:
    """Measure both, print the table and write it down."""
    rows = [
        measure("this project, durable", "bot", metrics=True),
        measure("plain python-telegram-bot", "benchmarks.plain_bot", metrics=False),
    ]
    measured = table(rows)
    print(measured)
    write(measured)


if __name__ == "__main__":
    main()
