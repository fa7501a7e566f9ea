"""What is recorded of turns, read from the database beside the bot."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

OVER = "over"


@dataclass(frozen=True)
class Records:
    """The tables of turns and updates of the database at `database_url`."""

    database_url: str

    def steps(self) -> dict[int, set[str]]:
        """How far turns are recorded, by update id: "committed", "sent", "over"."""
        found: dict[int, set[str]] = {}
        outbox = "SELECT update_id, message_id FROM outbox WHERE update_id IS NOT NULL"
        for update_id, message_id in self.product(outbox):
            names = {"committed"} if message_id is None else {"committed", "sent"}
            found.setdefault(update_id, set()).update(names)
        for (update_id,) in self.product("SELECT update_id FROM updates WHERE state = 'done'"):
            found.setdefault(update_id, set()).add(OVER)
        return found

    def recorded(self, step: str) -> int:
        """How many turns have a step recorded, or are over."""
        return sum(bool({step, OVER} & names) for names in self.steps().values())

    def failed_turns(self) -> list[tuple[Any, ...]]:
        """Updates that were set aside."""
        return self.product("SELECT update_id, error FROM updates WHERE state = 'set_aside'")

    def product(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the product's own tables."""
        if self.database_url.startswith("sqlite"):
            return _sqlite(self.database_url.partition(":///")[2], query)
        return _postgres(self.database_url, query)

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
    with psycopg.connect(_libpq(url), autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://", 1)
