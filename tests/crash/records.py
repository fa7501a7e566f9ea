"""What is recorded of turns, read from the database beside the bot."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from bot.updates.journal import journal_url
from bot.updates.takeover import libpq_url


@dataclass(frozen=True)
class Records:
    """The tables of turns and updates of the database at `database_url`."""

    database_url: str

    def steps(self) -> dict[int, set[str]]:
        """The names of the recorded steps by update id."""
        rows = self.turns("SELECT workflow_uuid, function_name FROM {}operation_outputs")
        found: dict[int, set[str]] = {}
        for turn, name in rows:
            found.setdefault(int(turn.split("-")[1]), set()).add(name)
        return found

    def failed_turns(self) -> list[tuple[str, str]]:
        """Turns that ended in any other way than well: those are lost."""
        return self.turns(
            "SELECT workflow_uuid, status FROM {}workflow_status "
            "WHERE status NOT IN ('SUCCESS', 'ENQUEUED', 'PENDING')"
        )

    def starts(self) -> dict[int, float]:
        """When the first step of each update's turn began, seconds of the epoch."""
        rows = self.turns(
            "SELECT workflow_uuid, MIN(started_at_epoch_ms) FROM {}operation_outputs "
            "GROUP BY workflow_uuid"
        )
        return {int(turn.split("-")[1]): ms / 1000 for turn, ms in rows}

    def turns(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the tables of turns; {} stands for their schema."""
        url = journal_url(self.database_url)
        if url.startswith("sqlite"):
            return _sqlite(url.removeprefix("sqlite:///"), query.format(""))
        return _postgres(url, query.format("dbos."))

    def product(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the product's own tables."""
        if self.database_url.startswith("sqlite"):
            return _sqlite(self.database_url.partition(":///")[2], query)
        return _postgres(self.database_url, query)

    def insert_turns(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert into SQLite's tables of turns."""
        path = journal_url(self.database_url).removeprefix("sqlite:///")
        _insert(path, statement, rows)

    def insert_product(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert into the product's own tables in SQLite."""
        _insert(self.database_url.partition(":///")[2], statement, rows)


def _insert(path: str, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    connection = sqlite3.connect(path, timeout=20)
    try:
        with connection:
            connection.executemany(statement, rows)
    finally:
        connection.close()


def _sqlite(path: str, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path, timeout=20)
    try:
        with connection:
            return connection.execute(query).fetchall()
    finally:
        connection.close()


def _postgres(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []
