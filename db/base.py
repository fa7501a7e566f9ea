"""What every table is made of: the declarative base, and column types for both databases."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    DateTime,
    Dialect,
    LargeBinary,
    MetaData,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeEngine


class Base(DeclarativeBase):
    """All tables, with constraint names that migrations can rely on."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment in UTC, also in SQLite, which stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; a naive moment is an error rather than a guess."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment without a time zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Aware again."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Vector(TypeDecorator[Sequence[float]]):
    """32-bit floats: a blob in SQLite, an array in Postgres, which pgvector reads as its own."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type of the database at hand."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(ARRAY(REAL))
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(
        self, value: Sequence[float] | None, dialect: Dialect
    ) -> list[float] | bytes | None:
        """As the database stores it."""
        if value is None:
            return None
        return list(value) if dialect.name == "postgresql" else array("f", value).tobytes()

    def process_result_value(self, value: Any, dialect: Dialect) -> Sequence[float] | None:
        """Numbers again."""
        return array("f", value) if isinstance(value, bytes) else value
