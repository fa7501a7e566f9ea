"""Make statements that differ between SQLite and Postgres, and make records of rows."""

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from db.models import Base

T = TypeVar("T")


def to_record(record_type: type[T], row: sa.Row[Any], **others: object) -> T:
    """Return a record, which is a dataclass, made of a row.

    A field has the value of the column with its name. `others` are values of further fields.
    """
    field_names = {field.name for field in fields(cast("Any", record_type))}
    values: dict[str, object] = {}
    for name, value in row._mapping.items():
        if name not in field_names:
            continue
        if isinstance(value, list):
            # A column of JSON. A record must not change, so it gets a tuple.
            values[name] = tuple(value)
        else:
            values[name] = value
    return record_type(**values | others)


def _insert(dialect: str, model: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """Return an insert statement of a dialect, which can have ON CONFLICT."""
    if dialect == "sqlite":
        return sqlite.insert(model.__table__)
    return postgresql.insert(model.__table__)


@cache
def _insert_new(dialect: str, model: type[Base]) -> sa.Insert:
    return _insert(dialect, model).on_conflict_do_nothing()


@cache
def _upsert(dialect: str, model: type[Base], columns: tuple[str, ...]) -> sa.Insert:
    """Return the statement of `upsert`.

    It is cached: every turn needs it, and building it is slow.
    """
    statement = _insert(dialect, model)
    keys = model.__table__.primary_key.columns.keys()
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


async def insert_new(session: AsyncSession, *rows: Base) -> int:
    """Insert the rows that do not conflict with stored ones. Return how many these are."""
    if not rows:
        return 0
    dialect = session.get_bind().dialect.name
    statement = _insert_new(dialect, type(rows[0]))
    values = [_values_of(row) for row in rows]
    result = await session.execute(statement, values)
    return cast("sa.CursorResult[Any]", result).rowcount


async def upsert(session: AsyncSession, *rows: Base) -> None:
    """Insert rows, or update those with the same primary key.

    An updated row keeps the columns that are not set in the given row.
    """
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
