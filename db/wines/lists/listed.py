"""The wines of a list in the words of the file, as a profile finds them, before any check."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.sommelier.vocabulary import OfferKind
from db.wines.lists.problems import Problem

Cells = Mapping[str, str]
"""The cells of a row by the fields as which they are read."""
NamedColumn = tuple[str, str]
"""The name of a column, and the field as which it is read, or "" if it is unused."""

NO_LIST: Final = "a sheet without a list of wines"
"""Why a sheet of a workbook is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferCells:
    """An offer in the words of the file.

    `stock` is a number or a word such as "sold out", or blank if the file says nothing. `in_stock`
    is set if the program of the shop itself decides whether the wine can be bought: some go on
    selling when nothing is left. It then counts instead of `stock`.
    """

    kind: OfferKind = OfferKind.BOTTLE
    size_ml: int | None = None
    price: str = ""
    currency: str = ""
    stock: str = ""
    in_stock: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWine:
    """A wine in the words of the file.

    `cells` has the cell of each field. `clues` are other texts that may state the missing fields,
    the most telling first: a type, tags, the heading above the wine. `derived` names the cells that
    were guessed from others. `tells_allergens` says that the table has a column for allergens, so
    that an empty cell there means that the wine contains none.
    """

    line: int
    cells: Cells
    offers: tuple[OfferCells, ...] = (OfferCells(),)
    clues: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    tells_allergens: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that is no wine for sale, such as a gift card, and why."""

    line: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of reading a file. `headings` are the headings between the wines."""

    profile: str
    listed: tuple[ListedWine, ...]
    left_out: tuple[LeftOut, ...] = ()
    problems: tuple[Problem, ...] = ()
    columns: tuple[NamedColumn, ...] = ()
    headings: tuple[str, ...] = ()
