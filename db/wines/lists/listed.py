"""What a profile finds in a list: a wine in the words of the file, before it is checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.sommelier.vocabulary import OfferKind
from db.wines.lists.problems import Problem

NO_LIST: Final = "a sheet without a list of wines"
"""Why a sheet of a workbook is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferCells:
    """An offer in the words of the file.

    `stock` is a number or a word such as "sold out", and blank if the file does not say.
    `in_stock` decides if the program of the shop does, as where it sells on without stock.
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

    `cells` are by field of a wine. `clues` are texts that may tell the rest of it, the most
    telling first: its type, its tags, the heading above it. `derived` names the cells that were
    guessed from others. `tells_allergens` means that its table has a column for them, so that a
    wine without any contains none.
    """

    line: int
    cells: Mapping[str, str]
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
    """Holds what a profile found in a file.

    `columns` pairs each column name with what it is read as, "" if it is not used.
    """

    profile: str
    listed: tuple[ListedWine, ...]
    left_out: tuple[LeftOut, ...] = ()
    problems: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    headings: tuple[str, ...] = ()
