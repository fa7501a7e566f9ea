"""Read the wines that a model transcribed from the pages of a PDF file, or from a photo of a list.

What a model copies may be wrong, so what it was not sure of is named, and so is each page that it
could not read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.sommelier.attachment import ReadWine
from agent.sommelier.vocabulary import OfferKind
from db.wines.lists.listed import ListedWine, OfferCells, Reading
from db.wines.lists.packing import Packing, read_packing
from db.wines.lists.problems import Problem
from db.wines.lists.titles import split_title

READ_BY_MODEL: Final = "read by a model"


@dataclass(frozen=True, slots=True)
class ListPage:
    """What was read of a page. `is_read` is False if the model gave no valid answer."""

    wines: Sequence[ReadWine] = ()
    unreadable: int = 0
    is_read: bool = True


def read_pages(pages: Sequence[ListPage]) -> Reading:
    """Return the wines of all pages; the line of each is the number of its page."""
    listed: list[ListedWine] = []
    problems: list[Problem] = []
    for number, page in enumerate(pages, start=1):
        listed += [_list_wine(wine, number) for wine in page.wines]
        if not page.is_read:
            problems.append(Problem("of this number could not be read", number, "page"))
        if page.unreadable:
            problem = Problem("lines of this page could not be read", number, "page")
            problems.append(replace(problem, value=str(page.unreadable)))
    return Reading(
        profile=READ_BY_MODEL, listed=tuple(listed), problems=tuple(problems)
    )


def _list_wine(wine: ReadWine, page: int) -> ListedWine:
    """Return a wine that was read, in the words of the list."""
    title = split_title(wine.name or wine.producer or wine.line, wine.producer)
    cells = {
        "producer": title.producer,
        "name": title.name or wine.name or wine.producer,
        "vintage": str(wine.vintage) if wine.vintage else title.vintage,
        "region": wine.region,
        "style": wine.style or "",
    }
    is_certain = wine.sure == "certain"
    return ListedWine(
        line=page,
        cells={field: cell for field, cell in cells.items() if cell},
        offers=tuple(_read_offers(wine)),
        derived=() if is_certain else (f"read: {wine.sure}",),
    )


def _read_offers(wine: ReadWine) -> Iterator[OfferCells]:
    """Yield the bottle, or what the line names instead, and the glass."""
    currency = wine.currency or ""
    if wine.price is not None or wine.glass_price is None:
        price = "" if wine.price is None else f"{wine.price:.2f}"
        sold = read_packing(wine.line) or Packing(OfferKind.BOTTLE)
        if sold.kind is OfferKind.GLASS:  # its price is the other one
            sold = Packing(OfferKind.BOTTLE)
        yield OfferCells(
            kind=sold.kind, size_ml=sold.size_ml, price=price, currency=currency
        )
    if wine.glass_price is not None:
        price = f"{wine.glass_price:.2f}"
        yield OfferCells(kind=OfferKind.GLASS, price=price, currency=currency)
