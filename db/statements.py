"""Make statements that differ between SQLite and Postgres, and make records of rows."""

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from db.models import Base

T = TypeVar("T")
Model = type[Base]


def to_record(record_type: type[T], row: sa.Row[Any], **others: object) -> T:
    """Return a record, which is a dataclass, made of a row.

    A field has the value of the column with its name. `others` are values of further fields.
    """
    columns = row._mapping
    values: dict[str, object] = {}
    for field in fields(cast("Any", record_type)):
        if field.name not in columns:
            continue
        value = columns[field.name]
        if isinstance(value, list):
            # A column of JSON. A record must not change, so it gets a tuple.
            value = tuple(value)
        values[field.name] = value
    values |= others
    return record_type(**values)


def _insert(dialect: str, model: Model) -> postgresql.Insert | sqlite.Insert:
    """Return an insert statement of a dialect, which can have ON CONFLICT."""
    if dialect == "sqlite":
        return sqlite.insert(model.__table__)
    return postgresql.insert(model.__table__)


# The next two are cached: every turn needs these statements, and building them is slow.


@cache
def _insert_new(dialect: str, model: Model) -> sa.Insert:
    """Return the statement of `insert_new`."""
    statement = _insert(dialect, model)
    return statement.on_conflict_do_nothing()


@cache
def _upsert(
    dialect: str,
    model: Model,
    columns: tuple[str, ...],
) -> sa.Insert:
    """Return the statement of `upsert` for rows in which these columns are set."""
    statement = _insert(dialect, model)
    keys = model.__table__.primary_key.columns.keys()
    new_values: dict[str, object] = {}
    for name in columns:
        if name not in keys:
            # In SQL, `excluded` is the row that could not be inserted.
            new_values[name] = statement.excluded[name]
    return statement.on_conflict_do_update(index_elements=keys, set_=new_values)


async def insert_new(session: AsyncSession, *rows: Base) -> int:
    """Insert the rows that do not conflict with stored ones. Return how many these are."""
    if not rows:
        return 0
    model = type(rows[0])
    statement = _insert_new(_dialect_of(session), model)
    values = [_values_of(row) for row in rows]
    # Without this option, an insertion into Postgres returns -1 instead of the number of rows.
    options = {"preserve_rowcount": True}
    result = await session.execute(statement, values, execution_options=options)
    return cast("sa.CursorResult[Any]", result).rowcount


async def upsert(session: AsyncSession, *rows: Base) -> None:
    """Insert rows, or update those with the same primary key.

    In all rows, the same columns must be set. An updated row keeps its other columns.
    """
    if not rows:
        return
    model = type(rows[0])
    values = [_values_of(row) for row in rows]
    columns = tuple(values[0])
    statement = _upsert(_dialect_of(session), model, columns)
    await session.execute(statement, values)


def _dialect_of(session: AsyncSession) -> str:
    """Return the name of the database of a session: "sqlite" or "postgresql"."""
    return session.get_bind().dialect.name


def _values_of(row: Base) -> dict[str, object]:
    """Return the values of the columns that are set in a row."""
    values: dict[str, object] = {}
    for name, value in vars(row).items():
        if name in row.__table__.columns:
            values[name] = value
    return values
