"""Read the wines that a model copied from the pages of a PDF file, or from a photo of a list.

A model may copy wrongly. So the wines of which it was not certain are marked, and each page that it
could not read is reported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent.sommelier.attachment import ReadWine
from agent.sommelier.vocabulary import OfferKind
from db.wines.lists.columns import drop_empty
from db.wines.lists.listed import ListedWine, OfferCells, Reading
from db.wines.lists.packing import Packing, read_packing
from db.wines.lists.problems import Problem
from db.wines.lists.titles import split_title

READ_BY_MODEL: Final = "read by a model"


@dataclass(frozen=True, slots=True)
class ListPage:
    """The wines that a model read on a page.

    `unreadable` is the number of lines that the model could not read. `is_read` is False if
    the model gave no valid answer about the page.
    """

    wines: Sequence[ReadWine] = ()
    unreadable: int = 0
    is_read: bool = True


def read_pages(pages: Sequence[ListPage]) -> Reading:
    """Return the wines of all pages. The line of a wine is the number of its page."""
    listed: list[ListedWine] = []
    problems: list[Problem] = []
    for number, page in enumerate(pages, start=1):
        for wine in page.wines:
            listed.append(_to_listed_wine(wine, number))
        if not page.is_read:
            problem = Problem("of this number could not be read", number, "page")
            problems.append(problem)
        if page.unreadable:
            problem = Problem(
                "lines of this page could not be read",
                line=number,
                column="page",
                value=str(page.unreadable),
            )
            problems.append(problem)
    return Reading(
        profile=READ_BY_MODEL,
        listed=tuple(listed),
        problems=tuple(problems),
    )


def _to_listed_wine(wine: ReadWine, page: int) -> ListedWine:
    """Return a wine that a model has read on a page as a wine of a list."""
    full_name = wine.name or wine.producer or wine.line
    title = split_title(full_name, wine.producer)
    vintage = title.vintage
    if wine.vintage:
        vintage = str(wine.vintage)
    cells = {
        "producer": title.producer,
        "name": title.name or wine.name or wine.producer,
        "vintage": vintage,
        "region": wine.region,
        "style": wine.style or "",
    }
    derived: tuple[str, ...] = ()
    if wine.sure != "certain":
        derived = (f"read: {wine.sure}",)
    return ListedWine(
        line=page,
        cells=drop_empty(cells),
        offers=tuple(_read_offers(wine)),
        derived=derived,
    )


def _read_offers(wine: ReadWine) -> Iterator[OfferCells]:
    """Yield what the line sells, a bottle unless it says otherwise, and then the glass."""
    currency = wine.currency or ""
    is_only_by_glass = wine.price is None and wine.glass_price is not None
    if not is_only_by_glass:
        packing = read_packing(wine.line)
        # If the line names a glass, that is what `glass_price` is for.
        if packing is None or packing.kind is OfferKind.GLASS:
            packing = Packing(OfferKind.BOTTLE)
        yield OfferCells(
            kind=packing.kind,
            size_ml=packing.size_ml,
            price=_write_price(wine.price),
            currency=currency,
        )
    if wine.glass_price is not None:
        yield OfferCells(
            kind=OfferKind.GLASS,
            price=_write_price(wine.glass_price),
            currency=currency,
        )


def _write_price(price: float | None) -> str:
    """Return a price as a cell, or "" if it is unknown."""
    if price is None:
        return ""
    return f"{price:.2f}"
