"""The tables of the catalogue: wines, their offers, and how often their pages were opened."""

from collections.abc import Mapping
from datetime import date, datetime
from types import NoneType
from typing import Any, Final, get_args, get_origin

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from agent.sommelier.wine import Wine, stored_wine_fields
from db.models.base import Base, TextKey

ColumnType = type[sa.types.TypeEngine[Any]]

COLUMN_TYPES: Final[Mapping[type, ColumnType]] = {
    bool: sa.Boolean,
    int: sa.Integer,
    float: sa.Double,
    str: sa.String,
}
"""The types of columns, by the types of a wine's fields.

The first type that fits is taken. So `bool` stands before `int`, of which it is a subclass. A field
with several values is not among them: its column is JSON.
"""


def _make_column(name: str, annotation: Any) -> sa.Column[Any]:
    """Return the column of a field of `Wine`. The column can be null if the field can be None."""
    if get_origin(annotation) is tuple:
        return sa.Column(name, sa.JSON, nullable=False)
    # `int | None` has the arguments `int` and `NoneType`. `int` has no arguments.
    types = get_args(annotation) or (annotation,)
    is_nullable = NoneType in types
    value_type = types[0]
    for field_type, column_type in COLUMN_TYPES.items():
        if issubclass(value_type, field_type):
            return sa.Column(name, column_type, nullable=is_nullable)
    raise TypeError(
        f"the field {name} of a wine has the type {annotation}: add it to COLUMN_TYPES"
    )


def _wine_columns() -> tuple[sa.Column[Any], ...]:
    """Return the columns of the stored fields that are not written in `WineRow`."""
    columns: list[sa.Column[Any]] = []
    other_fields = stored_wine_fields() - {"id", "grapes"}
    for name in sorted(other_fields):
        annotation = Wine.model_fields[name].annotation
        columns.append(_make_column(name, annotation))
    return tuple(columns)


class WineRow(Base):
    """A wine of the catalogue.

    Each field of `Wine` that is stored has a column. This class names the columns that are used in
    statements. `_wine_columns` makes the others.
    """

    __tablename__ = "wines"
    # SQLAlchemy adds these columns to the table, and to the class under their names.
    __table_args__ = _wine_columns()

    id: Mapped[TextKey]
    grapes: Mapped[list[str]]
    source: Mapped[str]
    """The name of the wine list that the wine is from. `Wine` has no such field."""


class CatalogueVersionRow(Base):
    """The version of all wines together, in a single row. Each import of wines raises it by one."""

    __tablename__ = "catalogue"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[int]


class OfferRow(Base):
    """An offer of a wine. `position` is its place among the offers of the wine, from 0 on.

    `changed_at` is when the staff changed the offer, or None if the offer is as in its list.
    """

    __tablename__ = "offers"

    wine_id: Mapped[str] = mapped_column(
        sa.ForeignKey("wines.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str]
    size_ml: Mapped[int | None]
    price: Mapped[float | None]
    currency: Mapped[str]
    stock: Mapped[int | None]
    in_stock: Mapped[bool]
    changed_at: Mapped[datetime | None]


class ClickRow(Base):
    """The number of times that a button opened the page of a wine in a week.

    `week` is the Monday of this week.
    """

    __tablename__ = "clicks"

    wine_id: Mapped[TextKey]
    week: Mapped[date] = mapped_column(primary_key=True)
    count: Mapped[int]
