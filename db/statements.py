"""Statements that differ between SQLite and Postgres, and records made of rows."""

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from db.models import Base

T = TypeVar("T")


def to_record(kind: type[T], row: sa.Row[Any], **others: object) -> T:
    """Return a dataclass instance from the row's columns of the same names and `others`."""
    field_names = {field.name for field in fields(cast("Any", kind))}
    values: dict[str, object] = {}
    for name, value in row._mapping.items():
        if name not in field_names:
            continue
        if isinstance(value, list):  # of JSON: a record does not change
            values[name] = tuple(value)
        else:
            values[name] = value
    return kind(**values | others)


def _insert(dialect: str, model: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """Return an insert in a dialect, which supports ON CONFLICT."""
    if dialect == "sqlite":
        return sqlite.insert(model.__table__)
    return postgresql.insert(model.__table__)


@cache
def _insert_new(dialect: str, model: type[Base]) -> sa.Insert:
    return _insert(dialect, model).on_conflict_do_nothing()


@cache
def _upsert(dialect: str, model: type[Base], columns: tuple[str, ...]) -> sa.Insert:
    """Return the statement of `upsert`, which every turn needs and which is slow to build."""
    statement = _insert(dialect, model)
    keys = model.__table__.primary_key.columns.keys()
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


async def insert_new(session: AsyncSession, *rows: Base) -> int:
    """Insert rows, except those that conflict with stored ones; return how many were new."""
    if not rows:
        return 0
    dialect = session.get_bind().dialect.name
    statement = _insert_new(dialect, type(rows[0]))
    values = [_values_of(row) for row in rows]
    result = await session.execute(statement, values)
    return cast("sa.CursorResult[Any]", result).rowcount


async def upsert(session: AsyncSession, *rows: Base) -> None:
    """Insert rows, or update those with the same primary key, which keep columns not set here."""
    if not rows:
        return
    dialect = session.get_bind().dialect.name
    values = [_values_of(row) for row in rows]
    statement = _upsert(dialect, type(rows[0]), tuple(values[0]))
    await session.execute(statement, values)


def _values_of(row: Base) -> dict[str, object]:
    """Return the values of the columns that are set in a row."""
    values: dict[str, object] = {}
    for name, value in vars(row).items():
        if name in row.__table__.columns:
            values[name] = value
    return values
