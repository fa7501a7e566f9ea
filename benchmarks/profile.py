"""`python -m benchmarks.profile`: what one turn runs through, and how often it asks the database.

The bot as it runs, with a scripted model and a scripted Telegram: after turns that load what is
loaded once, one turn with one tool is looked at. Nothing here is a time, so a busy machine
changes nothing of it; `tests/acceptance/test_price.py` holds the numbers to limits.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from unittest.mock import patch

from sqlalchemy import event
from sqlalchemy.engine import Engine

from benchmarks.growth import databases
from bot import app
from bot.resources import open_database
from bot.updates.locks import Locks, ReplicaLocks
from config import load_settings
from db.engine import create_engine
from db.schema import upgrade_schema
from tests.databases import KINDS
from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import eventually
from tests.running import whole_bot

ROOT = Path(__file__).parents[1]
ROOMS = ("agent", "bot", "db")
INFORMATIONAL = {
    "response_type": "informational",
    "intro": "Yes, there are some.",
    "closing": "",
}
LOADING, LOOKED_AT, MOST_TURNS = 2, 3, 30
"""Turns that load what is loaded once, and those behind them beside which nothing was done."""
ROUND = ("bot.tasks", "run_and_log_errors")
"""The function with which what is done by the clock begins, every few seconds."""
END = "DELETE FROM outbox"
"""A statement of the transaction by which a turn ends."""


@dataclass
class TurnPrice:
    """The price of a turn: calls of our functions, statements, transactions that wrote."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    statements: list[str] = field(default_factory=list)
    commits: int = 0
    has_ended: bool = False
    _began_at: dict[CodeType, int] = field(default_factory=dict)

    @property
    def modules(self) -> Counter[str]:
        """Count the functions of each module that ran."""
        return Counter(module for module, _ in self.calls)

    def copy(self) -> "TurnPrice":
        """Return what was counted so far."""
        return TurnPrice(self.calls.copy(), [*self.statements], self.commits)

    def clear(self) -> None:
        """Count anew."""
        self.calls.clear()
        self.statements.clear()
        self.commits, self.has_ended = 0, False

    def called(self, frame: FrameType, kind: str, _: object) -> None:
        """Count a call; that a coroutine goes on is none. See `sys.setprofile`."""
        code = frame.f_code
        if kind != "call" or not code.co_filename.startswith(str(ROOT)):
            return
        module = (
            code.co_filename.removeprefix(f"{ROOT}/")
            .removesuffix(".py")
            .replace("/", ".")
        )
        began_at = self._began_at.setdefault(code, frame.f_lasti)
        if module.startswith(ROOMS) and frame.f_lasti <= began_at:
            self.calls[module, code.co_qualname] += 1

    def executed(self, *given: object) -> None:
        """Count a statement; see `before_cursor_execute`."""
        self.statements.append(" ".join(str(given[2]).split()))

    def committed(self, _: object) -> None:
        """Count a commit."""
        self.commits += 1
        self.has_ended = any(statement.startswith(END) for statement in self.statements)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens until the block ends, but not in threads.

        What is masked or parsed in a thread would be counted or not, as a thread happens to be new.
        """
        event.listen(Engine, "before_cursor_execute", self.executed)
        event.listen(Engine, "commit", self.committed)
        sys.setprofile(self.called)
        try:
            yield
        finally:
            sys.setprofile(None)
            event.remove(Engine, "before_cursor_execute", self.executed)
            event.remove(Engine, "commit", self.committed)


async def price_of_a_turn(folder: Path, database_url: str) -> TurnPrice:
    """Return the price of a turn in which a tool finds the wine that a user asks for."""
    price, prices = TurnPrice(), list[TurnPrice]()
    with BotApi() as telegram, ModelServer() as model:
        environment = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": telegram.base_url,
            "OPENAI_API_KEY": "price",
            "OPENAI_BASE_URL": model.base_url,
            "DATABASE_URL": database_url,
            "XDG_DATA_HOME": str(folder),
        }
        # To stock it takes longer than all that is counted.
        engine = create_engine(database_url)
        await upgrade_schema(engine)
        await engine.dispose()
        async with open_database(load_settings(None, environment)):
            pass
        # Rounds would run beside each turn of a machine that is slow enough.
        locks = patch.object(Locks, "poll_seconds", 3600)
        replicas = patch.object(ReplicaLocks, "poll_seconds", 3600)
        broadcasts = patch.object(app, "BROADCAST_SECONDS", 3600)
        with price.counting(), locks, replicas, broadcasts:
            async with whole_bot(environment):
                for number in range(1, MOST_TURNS + 1):
                    price.clear()
                    await turn(number, price, telegram, model)
                    if number > LOADING and ROUND not in price.calls:
                        prices.append(price.copy())
                    if len(prices) == LOOKED_AT:
                        break
    return min(prices, key=lambda price: price.calls.total())


async def turn(
    number: int, price: TurnPrice, telegram: BotApi, model: ModelServer
) -> None:
    """Ask, and wait until the turn has ended."""
    search = tool_call("search_wines", {"styles": ["red"], "foods": ["lamb"]})
    model.script(search, answer_json(INFORMATIONAL))
    telegram.say(
        "A red for lamb with Gugelhupf, please"
    )  # not certain: the model searches
    await telegram.wait_for_message(number, timeout=240)
    await eventually(
        lambda: price.has_ended,
        seconds=30,
        otherwise=lambda: f"a turn does not end: {price.statements}",
    )


def main() -> None:
    """Print what a turn takes on each kind of database."""
    with tempfile.TemporaryDirectory() as folder, databases() as made:
        for kind in KINDS:
            print(f"\n{kind}")
            show(asyncio.run(price_of_a_turn(Path(folder), made[kind].create())))


def show(price: TurnPrice) -> None:
    """Print what a turn takes."""
    for module, count in sorted(price.modules.items()):
        print(f"{count:4} {module}")
    print(*price.statements, sep="\n")
    print(f"{len(price.modules)} modules, {len(price.calls)} functions, ", end="")
    print(f"{price.calls.total()} calls, {len(price.statements)} statements, ", end="")
    print(f"{price.commits} commits")


if __name__ == "__main__":
    main()
