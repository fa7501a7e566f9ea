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
        """The names of the recorded steps by update id; of a turn that is over "over" as well."""
        found: dict[int, set[str]] = {}
        for update_id, name in self.product("SELECT update_id, name FROM steps"):
            found.setdefault(update_id, set()).add(name)
        for (update_id,) in self.product("SELECT update_id FROM updates WHERE state = 'done'"):
            found.setdefault(update_id, set()).add(OVER)
        return found

    def recorded(self, step: str) -> int:
        """How many turns have a step recorded, or are over."""
        query = (
            f"SELECT (SELECT COUNT(*) FROM steps WHERE name = '{step}') + "
            "(SELECT COUNT(*) FROM updates WHERE state = 'done')"
        )
        return int(self.product(query)[0][0])

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
