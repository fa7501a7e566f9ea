"""A wine list that somebody showed, searched as the catalogue is: by what is known of its wines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, get_args

from agent.sommelier.taste import is_of
from agent.sommelier.wine import (
    Currency,
    ReadWine,
    SoftFilter,
    Wine,
    WineQuery,
    WineSearchResult,
    in_euros,
)
from agent.text import words

WANTED: Final = tuple(each for each in get_args(SoftFilter) if not each.endswith("_abv"))
UNWANTED: Final = {
    "without_styles": "styles",
    "without_grapes": "grapes",
    "without_countries": "countries",
    "without_regions": "regions",
}
OFTEN_UNKNOWN: Final = {
    "bodies": "body",
    "tannins": "tannin",
    "acidities": "acidity",
    "sweetness": "sweetness",
}
"""What no list tells of most wines: one of which it is not known passes."""

AsWine = Callable[[ReadWine], Wine | None]
"""Tells what a wine of a list is; None if nobody can."""


class ListCatalogue:
    """Fulfils `Catalogue` with the wines of a list; prices are the list's, in its currency."""

    def __init__(self, read: Iterable[ReadWine], as_wine: AsWine) -> None:
        self.read = {each.id: each for each in read}
        found = {each.id: as_wine(each) for each in self.read.values()}
        self.wines = {id: wine for id, wine in found.items() if wine is not None}

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Find wines of the list that pass every filter of `query`, best match first."""
        query = in_currency_of(self.read.values(), query)
        wines = at_prices_meant(self.wines.values(), self.read, query)
        found = [wine for wine in wines if passes(wine, query)]
        missed = {wine.id: missing(wine, query) for wine in found}
        said = {*words(query.text)}

        def rank(wine: Wine) -> tuple[float, int, int]:
            price, sign = wine.price_in_euros, -1 if query.order == "dearest" else 1
            dear = (
                0.0 if query.order == "match" else float("inf") if price is None else sign * price
            )
            return dear, len(missed[wine.id]), -len(said & {*words(wine.said)})

        found.sort(key=rank)
        relax = {} if found else self._relaxed(query)
        return WineSearchResult(
            wines=tuple(found[: query.limit]), total=len(found), relax=relax, missed=missed
        )

    async def similar(self, wine_id: str, query: WineQuery) -> WineSearchResult:
        """Find others of the list; of these nobody knows which are most alike."""
        others = query.model_copy(update={"not_ids": (*query.not_ids, wine_id)})
        return await self.search(others)

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """Return the wines of the list with these ids."""
        return [self.wines[each] for each in wine_ids if each in self.wines]

    async def count(self) -> int:
        """Return how many wines of the list are known."""
        return len(self.wines)

    def found(self, wines: Iterable[Wine]) -> dict[str, object]:
        """Return wines as evidence: as they were read."""
        return {wine.id: self.read[wine.id] for wine in wines}

    def _relaxed(self, query: WineQuery) -> Mapping[str, int]:
        """How many wines there are with each filter left out."""
        without: dict[str, dict[str, Any]] = {
            name: {name: ()} for name in WANTED if getattr(query, name) and name not in query.soft
        }
        if query.min_price is not None or query.max_price is not None:
            without["price"] = {"min_price": None, "max_price": None}
        wider = {name: query.model_copy(update=update) for name, update in without.items()}
        return {
            name: sum(passes(wine, each) for wine in self.wines.values())
            for name, each in wider.items()
        }


def in_currency_of(read: Iterable[ReadWine], query: WineQuery) -> WineQuery:
    """Return a search whose prices are those of a list, if no other currency was named."""
    currency = next((each.currency for each in read if each.price), Currency.EUR)
    named = "currency" in query.model_fields_set
    return query if named else query.model_copy(update={"currency": currency})


def at_prices_meant(
    wines: Iterable[Wine], read: Mapping[str, ReadWine], query: WineQuery
) -> list[Wine]:
    """Return wines at the prices that a limit means: by the glass where no bottle is so cheap."""
    bottles = [in_euros(each.price, each.currency) for each in read.values() if each.price]
    limit = query.max_price
    is_of_bottles = limit is None or in_euros(limit, query.currency) >= min(bottles, default=0)
    if is_of_bottles:
        return [*wines]
    return [wine.model_copy(update={"price": read[wine.id].glass_price}) for wine in wines]


def passes(wine: Wine, query: WineQuery) -> bool:
    """Tell whether a wine is all that a search excludes by."""
    hard = (name for name in WANTED if getattr(query, name) and name not in query.soft)
    return all(_is(wine, name, query) for name in hard) and is_allowed(wine, query)


def is_allowed(wine: Wine, query: WineQuery) -> bool:
    """Tell whether a wine is within the limits of a search, and nothing that it leaves out."""
    out = ((of, getattr(query, name)) for name, of in UNWANTED.items())
    return (
        wine.id not in query.not_ids
        and not {*query.without_allergens} & {*wine.allergens}
        and not any(values and is_of(wine, {of: values}) for of, values in out)
        and _within(wine.price_in_euros, query.min_price, query.max_price, query.currency)
        and _within(wine.abv, query.min_abv, query.max_abv)
    )


def _within(
    value: float | None, low: float | None, high: float | None, currency: Currency | None = None
) -> bool:
    """Whether a value is within limits; what is not known is not."""
    if low is None and high is None:
        return True
    ends = [end if end is None or not currency else in_euros(end, currency) for end in (low, high)]
    least, most = ends
    return value is not None and (least or 0) <= value and (most is None or value <= most)


def missing(wine: Wine, query: WineQuery) -> tuple[str, ...]:
    """Return the filters of a search that rank, and that a wine does not meet."""
    soft = (name for name in WANTED if name in query.soft and getattr(query, name))
    return tuple(name for name in soft if not _is(wine, name, query))


def _is(wine: Wine, name: str, query: WineQuery) -> bool:
    is_unknown = name in OFTEN_UNKNOWN and getattr(wine, OFTEN_UNKNOWN[name]) is None
    return is_unknown or is_of(wine, {name: getattr(query, name)})
