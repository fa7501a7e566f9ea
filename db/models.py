"""The tables. Rows are what is stored; `agent.wine` and `agent.ports` hold what others see."""

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

FULL_TEXT: Final = "wines_fts"
"""The full-text index: a virtual table in SQLite, a generated column in Postgres. Only migrations
know how it is made; comparisons of schema and models leave out every name that starts with it."""


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


class WineRow(Base):
    """One wine of the catalogue, with the folded forms that filters compare."""

    __tablename__ = "wines"

    # SQLite's full-text index refers to wines by an integer that survives VACUUM.
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    id: Mapped[str] = mapped_column(String, unique=True)
    producer: Mapped[str]
    name: Mapped[str]
    vintage: Mapped[int | None]
    country: Mapped[str]
    region: Mapped[str]
    appellation: Mapped[str]
    style: Mapped[str] = mapped_column(String, index=True)
    colour: Mapped[str | None]
    sweetness: Mapped[str | None]
    body: Mapped[str | None]
    acidity: Mapped[str | None]
    tannin: Mapped[str | None]
    abv: Mapped[float | None]
    price: Mapped[float | None]
    currency: Mapped[str]
    notes: Mapped[str]
    in_stock: Mapped[bool]

    price_in_euros: Mapped[float | None] = mapped_column(index=True)
    country_key: Mapped[str] = mapped_column(String, index=True)
    places: Mapped[str]
    shuffle: Mapped[int] = mapped_column(BigInteger)
    search_text: Mapped[str]

    grapes: Mapped[list["WineGrapeRow"]] = relationship(
        order_by="WineGrapeRow.position", viewonly=True
    )
    foods: Mapped[list["WineFoodRow"]] = relationship(
        order_by="WineFoodRow.position", viewonly=True
    )
    allergens: Mapped[list["WineAllergenRow"]] = relationship(
        order_by="WineAllergenRow.position", viewonly=True
    )


class WineGrapeRow(Base):
    """A grape of a wine; `grape_key` is the same for all names of one grape."""

    __tablename__ = "wine_grapes"
    __table_args__ = (Index(None, "grape_key", "wine_id"),)

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    grape: Mapped[str]
    grape_key: Mapped[str]


class WineFoodRow(Base):
    """A food that a wine suits."""

    __tablename__ = "wine_foods"
    __table_args__ = (Index(None, "food", "wine_id"),)

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    food: Mapped[str] = mapped_column(String, primary_key=True)
    position: Mapped[int]


class WineAllergenRow(Base):
    """An allergen that a wine contains."""

    __tablename__ = "wine_allergens"
    __table_args__ = (Index(None, "allergen", "wine_id"),)

    wine_id: Mapped[str] = mapped_column(
        ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    allergen: Mapped[str] = mapped_column(String, primary_key=True)
    position: Mapped[int]


class MessageRow(Base):
    """One message of a chat."""

    __tablename__ = "messages"
    __table_args__ = (Index(None, "chat_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    chat_id: Mapped[int] = mapped_column(BigInteger)
    role: Mapped[str]
    content: Mapped[str]
    wine_ids: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
