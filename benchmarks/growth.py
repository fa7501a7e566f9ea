"""What a database costs when it has grown: `python -m benchmarks.growth` prints a table.

The product's own calls run on SQLite and on Postgres, over a small database and over one that is a
hundred times larger (1,000,000 messages, 200,000 traces). For each call the table shows its slowest
statement in both, and whether the plan of one reads a whole table.
"""

import asyncio
import sys
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from bot.resources import Stores
from bot.turn import Turn
from db.budgets import DailyBudgets
from db.engine import Sessions, create_engine
from db.export_queue import RowQueue
from db.models import TraceRow
from db.repositories.outbox import Outbox
from db.repositories.people import MemoryRepository, MessageRepository
from db.repositories.statistics import StatisticsRepository, Week
from db.repositories.turns import TurnRepository, export_turns
from db.repositories.unmet import UnmetWishes
from db.schema import upgrade_schema
from db.traces import SqlTraceStore
from tests.crash.harness import postgres
from tests.databases import KINDS, Databases

LARGE: Final = 1_000_000
NOW: Final = datetime(2026, 10, 31, 23, 59, 40, tzinfo=UTC)
"""The end of a day, when what is summed up of that day takes longest."""
CHAT: Final = 77
RUNS: Final = 5
LONGEST: Final = 200
"""Characters of a plan that are shown."""

# A row for each number from 1 to :rows; `time` is that of the row, the last one at NOW.
NUMBERS: Final = {
    "sqlite": """
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows),
        rows AS (SELECT n, n % 5000 + 1 AS chat,
            strftime('%Y-%m-%d %H:%M:%f000', :now, '-' || ((:rows - n) * 20) || ' seconds')
            AS time, '{}' AS object, '[]' AS list, CAST('' AS BLOB) AS bytes FROM numbers)
    """,
    "postgresql": """
        WITH rows AS (SELECT n, n % 5000 + 1 AS chat,
            CAST(:now AS timestamptz) - (:rows - n) * interval '20 seconds' AS time,
            '{}'::json AS object, '[]'::json AS list, ''::bytea AS bytes
            FROM generate_series(1, :rows) AS n)
    """,
}
TABLES: Final = {
    "turns": (
        2,
        "turn_id, chat_id, user_id, at, outcome, seconds, requests, retries, cost_usd, trace_id,"
        " verdict, comment",
        "n, chat, chat, time, 'answered', 2, 2, 0, 0.001, 'trace' || n,"
        " CASE WHEN n % 50 = 0 THEN 'disliked' END, ''",
    ),
    "messages": (
        1,
        "chat_id, role, content, wine_ids, created_at, turn_id, thread_id, attachment, answer",
        "(n + 1) / 2 % 5000 + 1, CASE WHEN n % 2 = 1 THEN 'user' ELSE 'assistant' END,"
        " 'Something red for lamb, under 25 euros', list, time, (n + 1) / 2, 0, '', ''",
    ),
    "traces": (
        5,
        'trace_id, started_at, ended_at, "user", question, outcome, level, cost_usd, error_types,'
        " name, state, due_at, refusal, record",
        "'trace' || n, time, time, 'user' || chat, 'Something red', 'answered', 'DEFAULT', 0.001,"
        " list, 'chat', 'sent', time, '', bytes",
    ),
    "scores": (
        5,
        "score_id, trace_id, observation_id, name, value, kind, comment, at, state, due_at,"
        " refusal",
        "'score' || n, 'trace' || n, '', 'outcome', list, 'NUMERIC', '', time, 'sent', time, ''",
    ),
    "updates": (
        10,
        "update_id, chat_id, lane, payload, received_at, state, turn_id, tries, epoch, calls",
        "n, chat, '' || chat, object, time, 'done', n, 1, 1, list",
    ),
    "outbox": (
        10,
        "turn_id, update_id, chat_id, follows, kind, html, buttons, file_name, message_id",
        "n, n, chat, false, 'message', '', list, '', n",
    ),
    "facts": (10, "user_id, kind, value, said, at", "chat, 'like', n, '', time"),
    "concerns": (10, "user_id, chat_id, name, at", "chat, chat, n, time"),
    "taste_ratings": (
        10,
        "user_id, turn_id, taste, is_liked, at",
        "chat, n, 'grapes=Merlot' || n, true, time",
    ),
    "presses": (10, "chat_id, message_id, action, at", "chat, n, 'rate', time"),
}
"""For each table one row for so many messages, its columns and their values."""


@dataclass
class Statement:
    """A statement that a call has made, with its parameters, and how long it took."""

    text: str
    parameters: Any
    milliseconds: float


@dataclass
class Recorder:
    """Records the statements of an engine."""

    engine: AsyncEngine
    statements: list[Statement] = field(default_factory=list)
    _began: float = 0.0

    def __post_init__(self) -> None:
        sa.event.listen(self.engine.sync_engine, "before_cursor_execute", self._begin)
        sa.event.listen(self.engine.sync_engine, "after_cursor_execute", self._end)

    def _begin(self, *_: object) -> None:
        self._began = time.perf_counter()

    def _end(
        self, _c: object, _cursor: object, text: str, parameters: object, *_: object
    ) -> None:
        took = (time.perf_counter() - self._began) * 1000
        self.statements.append(Statement(text, parameters, took))


Call = tuple[str, Callable[[], Awaitable[object]]]


def calls_of(sessions: Sessions) -> Iterator[Call]:
    """Yield the product's calls over tables that grow, each with what it is for."""

    def now() -> datetime:
        return NOW

    messages = MessageRepository(sessions, now)
    turns = TurnRepository(sessions, now)
    statistics = StatisticsRepository(sessions, now)
    budgets = DailyBudgets(sessions, now, person_requests=1_000_000, total_cost_usd=1e6)
    memory = MemoryRepository(sessions, now)
    traces = SqlTraceStore(sessions, now)
    queue = RowQueue(sessions, TraceRow, now)
    stores = Stores(sessions)
    stores.retention.now = now
    week_ago = NOW - timedelta(days=7)
    yield "history of a turn", lambda: messages.list_recent(CHAT)
    yield "history, replying", lambda: messages.list_recent(CHAT, last_turn_id=CHAT - 1)
    yield "facts of a user", lambda: memory.list_facts(CHAT)
    yield "concerns of a user", lambda: memory.list_concerns(CHAT, CHAT)
    yield "budgets of a turn", lambda: budgets.reserve(1, CHAT)
    yield "waiting updates", lambda: stores.inbox.list_unfinished(str(CHAT))
    yield "lanes to run", stores.inbox.list_lanes
    yield "backlog", stores.inbox.measure_backlog
    yield "turn of a message", lambda: turns.find_by_message(CHAT, CHAT)
    yield "turn of a question", lambda: turns.find_by_question(CHAT, CHAT, 10**9)
    yield "last turn of a chat", lambda: turns.find_last(CHAT)
    yield "unsent broadcasts", lambda: stores.broadcasts.list_unsent(10)
    yield "delivered broadcasts", stores.broadcasts.list_delivered
    yield "traces to send", lambda: queue.claim(16, timedelta(minutes=10))
    yield "problems of traces", queue.list_problems
    yield "list of traces", lambda: traces.list_summaries(20, since=week_ago)
    yield "last trace", lambda: _read_last(traces)
    yield "a week by day", lambda: statistics.summarize_week(Week(NOW.date()))
    yield (
        "unmet wishes",
        lambda: UnmetWishes(sessions, now).list_between(week_ago, NOW, str),
    )
    yield (
        "disliked of a week",
        lambda: export_turns(sessions, str, week_ago, disliked=True),
    )
    yield "/export of a user", lambda: memory.export(CHAT, f"user{CHAT}")
    yield "a group that moves", lambda: Outbox(sessions, now).migrate(-1, -2)
    users = count(
        CHAT + 1
    )  # another one in each run, with all that is stored of a user
    yield "/forget of a user", lambda: stores.commits.save(_forget(next(users)))
    yield "old messages", lambda: stores.retention.delete_messages(timedelta(days=3650))
    yield "old turns", lambda: stores.retention.delete_turns(timedelta(days=3650))
    yield "old updates", lambda: stores.retention.delete_updates(timedelta(days=3650))
    yield "expired memory", stores.retention.delete_expired
    yield "old presses", lambda: stores.retention.delete_presses(timedelta(days=3650))
    yield "old traces", lambda: stores.retention.delete_traces(timedelta(days=3650))


async def _read_last(traces: SqlTraceStore) -> None:
    with suppress(zlib.error):  # the records are empty here
        await traces.get("last")


def _forget(user_id: int) -> Any:
    turn = Turn(user_id=user_id, trace_user=f"user{user_id}")
    turn.forget_user()
    return turn.complete_commit()


async def fill(engine: AsyncEngine, rows: int) -> None:
    """Fill the tables for so many messages."""
    numbers = NUMBERS[engine.dialect.name]
    for table, (each, columns, row) in TABLES.items():
        statement = f"{numbers} INSERT INTO {table} ({columns}) SELECT {row} FROM rows"
        async with engine.begin() as connection:
            values = {"rows": rows // each, "now": NOW.isoformat()}
            await connection.execute(sa.text(statement), values)
    if engine.dialect.name == "sqlite":
        return  # the product lets it plan without statistics
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text("VACUUM ANALYZE"))


async def measure(url: str, rows: int) -> dict[str, tuple[Statement, str]]:
    """Fill a database, make each call, and return its slowest statement with the plan."""
    engine = create_engine(url)
    await upgrade_schema(engine)
    await fill(engine, rows)
    recorder = Recorder(engine)
    slowest: dict[str, tuple[Statement, str]] = {}
    for name, call in calls_of(Sessions(engine)):
        runs: list[list[Statement]] = []
        for _ in range(RUNS):
            recorder.statements = []
            await call()
            runs.append(recorder.statements)
        # Of each statement the fastest run counts: other work on the machine slows some.
        fastest = [min(same, key=_milliseconds) for same in zip(*runs, strict=False)]
        worst = max(fastest, key=_milliseconds)
        slowest[name] = (worst, await explain(engine, worst))
    await engine.dispose()
    return slowest


def _milliseconds(statement: Statement) -> float:
    return statement.milliseconds


async def explain(engine: AsyncEngine, statement: Statement) -> str:
    """Return the plan of a statement in one line."""
    word = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    async with engine.connect() as connection:
        try:
            result = await connection.exec_driver_sql(
                f"{word} {statement.text}", statement.parameters
            )
        except sa.exc.DBAPIError as error:
            return f"no plan: {type(error.orig).__name__}"
        rows: Sequence[Any] = result.all()
    return " | ".join(str(row[-1]).strip() for row in rows)


@contextmanager
def databases() -> Iterator[dict[str, Databases]]:
    """Yield what makes databases of each kind."""
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        url = server.get_uri(driver="psycopg")
        yield {
            kind: Databases(kind, Path(folder), url if kind == "postgres" else None)
            for kind in KINDS
        }


def main() -> None:
    """Print a table for each kind of database; the argument is the number of messages."""
    large = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    with databases() as made:
        for kind in KINDS:
            small = asyncio.run(measure(made[kind].create(), max(large // 100, 1000)))
            grown = asyncio.run(measure(made[kind].create(), large))
            print(
                f"\n{kind}: slowest statement of a call, ms, small and {large:,} messages"
            )
            for name, (statement, plan) in grown.items():
                before = small[name][0].milliseconds
                print(
                    f"{name:24}{before:8.2f}{statement.milliseconds:9.2f}  {plan[:LONGEST]}"
                )


if __name__ == "__main__":
    main()
