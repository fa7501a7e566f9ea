"""The common parts of all tables: their base, types of columns, and partial indexes."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

BigInt = Annotated[int, mapped_column(sa.BigInteger)]
Key = Annotated[
    int, mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
]
TextKey = Annotated[str, mapped_column(primary_key=True)]
_COUNTER_TYPE: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")
CounterKey = Annotated[int, mapped_column(_COUNTER_TYPE, primary_key=True)]
"""A key that the database increments. SQLite does so only if its type is INTEGER."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A datetime with the time zone UTC, also on SQLite, which stores no time zones."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(
        self, value: datetime | None, dialect: sa.Dialect
    ) -> datetime | None:
        """Return the datetime in UTC. Raise ValueError for a datetime without a time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime without a time zone cannot be stored")
        return value.astimezone(UTC)

    def process_result_value(
        self, value: datetime | None, dialect: sa.Dialect
    ) -> datetime | None:
        """Return the datetime with the time zone UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            # SQLite has stored it without the time zone.
            return value.replace(tzinfo=UTC)
        return value.astimezone(UTC)


class Base(DeclarativeBase):
    """The base of all tables. It gives constraints names, so that migrations can refer to them."""

    __table__: ClassVar[sa.Table]
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: Final = {
        datetime: UtcDateTime,
        dict[str, Any]: sa.JSON,
        list[str]: sa.JSON,
    }


def partial_index(name: str, *columns: str, where: sa.TextClause) -> sa.Index:
    """Return an index on the rows of a table that meet a condition."""
    return sa.Index(name, *columns, sqlite_where=where, postgresql_where=where)


class SchemaSupportRow(Base):
    """A single row, which has the revision of the oldest release that can use this schema."""

    __tablename__ = "schema_support"

    oldest_revision: Mapped[TextKey]
