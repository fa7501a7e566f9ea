"""What streaming gives and costs: `python -m benchmarks.streaming` prints a table.

The product with a model that streams 40 tokens a second, with one that takes as long and answers
whole, and plain python-telegram-bot with the latter. All look wines up, and recommend two.
"""

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import mean

from benchmarks.durability import PLAIN, cpu_seconds, points, process, wait_for
from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer_json,
    hang,
    paced,
    tool_call,
)
from tests.doubles.server import JsonObject

TOKENS_A_SECOND = 40
TURNS, APART_SECONDS, ROUNDS = 40, 0.25, 2
QUESTION = "A red for lamb, for table {}?"
WORDS = "For your lamb"
"""How the answer begins: what is shown before says what is done."""
WINE = re.compile(r'"wine_id":"([^"]+)"')
ASKED = re.compile(r"table (\d+)")
ANSWER = {
    "response_type": "recommendation",
    "intro": f"{WORDS}, something with grip. Each of them is dry and has the tannin it takes.",
    "closing": "Serve it cool, in a large glass. Open it an hour before. Let it breathe a little.",
}
SAID = (
    "It is fresh and has a fine tannin for the meat. Serve it at 16 degrees.",
    "It is rounder and softer. It suits the meat when it comes with a dark sauce.",
)
STREAMED, WHOLE = (
    "this project, streaming",
    "this project, a model that does not stream",
)


@dataclass(frozen=True)
class Figures:
    """Milliseconds after a message; processor time a turn."""

    signs: Sequence[float]
    words: Sequence[float]
    words_after_token: Sequence[float]
    answers: Sequence[float]
    cpu_ms: float


class Talker(ModelServer):
    """Looks wines up and recommends them; knows when it began to write each answer."""

    def __init__(self, *, streams: bool) -> None:
        super().__init__(default=self._say, streaming="yes" if streams else "no")
        self.began: dict[int, float] = {}

    def _say(self, body: JsonObject) -> Step:
        messages = body["messages"]
        last = messages[-1]
        if last["role"] != "tool":
            step = tool_call("search_wines", {"styles": ["red"], "limit": 2})
        else:
            table = ASKED.findall(json.dumps(messages))[-1]
            self.began[int(table)] = time.monotonic()
            wines = dict.fromkeys(WINE.findall(last["content"]))
            told = [
                {"wine_id": w, "description": s}
                for w, s in zip(wines, SAID, strict=False)
            ]
            step = answer_json(ANSWER | {"wines": told})
        if body.get("stream"):
            return paced(step, TOKENS_A_SECOND)
        tokens = len(json.dumps(step.message)) / 4
        return hang(tokens / TOKENS_A_SECOND, step)


def measure(module: str, *, streams: bool) -> Figures:
    """Run many turns, some of them at a time."""
    with (
        BotApi() as bot_api,
        Talker(streams=streams) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        environment = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "TELEGRAM_MESSAGES_PER_SECOND": "0",
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": model.base_url,
            "XDG_DATA_HOME": folder,
            "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/bench.sqlite3",
        }
        with process([sys.executable, "-m", *module.split()], environment) as bot:
            bot_api.say(QUESTION.format(0), chat_id=99)
            wait_for(bot_api, 1)
            time.sleep(6)  # until what is loaded later is loaded
            requests, cpu, asked = len(model.requests), cpu_seconds(bot.pid), {}
            for table in range(100, 100 + TURNS):
                asked[table] = time.monotonic()
                bot_api.say(QUESTION.format(table), chat_id=table)
                time.sleep(APART_SECONDS)
            wait_for(bot_api, 1 + TURNS)
            cpu = cpu_seconds(bot.pid) - cpu
        if len(model.requests) - requests != 2 * TURNS:
            raise RuntimeError(
                f"{len(model.requests) - requests} requests for {TURNS} turns"
            )
        signs = dict(
            first(bot_api, ("sendChatAction", "sendMessageDraft", "sendMessage"))
        )
        words = dict(first(bot_api, ("sendMessageDraft", "sendMessage"), WORDS))
        answers = dict(first(bot_api, ("sendMessage",)))
        return Figures(
            [(signs[chat] - at) * 1000 for chat, at in asked.items()],
            [(words[chat] - at) * 1000 for chat, at in asked.items()],
            [(words[chat] - model.began[chat]) * 1000 for chat in asked],
            [(answers[chat] - at) * 1000 for chat, at in asked.items()],
            cpu / TURNS * 1000,
        )


def first(
    bot_api: BotApi, methods: Sequence[str], said: str = ""
) -> Iterator[tuple[int, float]]:
    """Yield the chats with the time of their first such message that has these words."""
    for call in reversed(list(bot_api.calls)):
        if call.method in methods and said in str(call.params.get("text", "")):
            yield int(call.params["chat_id"]), call.time


def table(rounds: Mapping[str, Sequence[Figures]]) -> str:
    """Write the figures as Markdown: means of all rounds, ratios in the same round."""
    lines = [
        "| | to the first sign of life, ms (p50 / p95 / p99) | to the first useful words, ms | "
        "the words after the model was asked for them, ms | to the answer, ms | CPU a turn, ms | "
        "× without streaming |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    ]
    for name, rows in rounds.items():
        ratio = mean(
            row.cpu_ms / whole.cpu_ms
            for row, whole in zip(rows, rounds[WHOLE], strict=True)
        )
        spread = [
            points([value for row in rows for value in getattr(row, what)])
            for what in ("signs", "words", "words_after_token", "answers")
        ]
        cpu = mean(row.cpu_ms for row in rows)
        lines.append(f"| {name} | {' | '.join(spread)} | {cpu:.1f} | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all in turns, and print the table."""
    bots = {
        PLAIN: ("benchmarks.plain_bot", False),
        WHOLE: ("bot run", False),
        STREAMED: ("bot run", True),
    }
    rounds: dict[str, list[Figures]] = {name: [] for name in bots}
    for _ in range(ROUNDS):
        for name, (module, streams) in bots.items():
            rounds[name].append(measure(module, streams=streams))
    measured = (
        f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[2]:.1f}: {ROUNDS} rounds "
        f"of {TURNS} turns, one every {APART_SECONDS:g} s.\n\n{table(rounds)}"
    )
    print(measured)


if __name__ == "__main__":
    main()
