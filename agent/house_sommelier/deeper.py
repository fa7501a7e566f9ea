"""A second look into the cellar, when the first one found too little that may be offered. Pure.

A search returns a few wines. Where an exclusion that no filter can say rules most of them out,
there may be others below: the same search is made again, once for each price band. Where they leave
one of several courses without a wine, that course is searched for by itself.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from agent.house_sommelier.followups import Request
from agent.house_sommelier.intent import SEARCH, Wish
from agent.house_sommelier.results import Found, ListedWine
from agent.house_sommelier.screening import offered
from agent.sommelier.money import Currency, in_euros
from agent.sommelier.wine import Food, WineQuery

_BANDS: Final = (0, 12, 20, 35, 70, 100_000)
_LIMITS: Final = ("min_price", "max_price", "currency")
_LIMIT: Final = 12
ENOUGH: Final = 3
"""How many wines an answer shows."""
_CAREFUL: Final = ("styles", "max_price", "currency", "without_allergens")


def look_deeper(request: Request, found: Sequence[Found]) -> tuple[Wish, ...]:
    """The searches to make after the first, empty if it was not the first or will do."""
    first = found[0]
    if len(found) != 1 or first.tool != SEARCH:
        return ()
    fit = offered(first.wines, request)
    left = len(fit)
    if request.care:
        return () if left else _careful(request.query)
    if fit and (missed := unserved(fit[:ENOUGH], request.said.courses)):
        return tuple(_wish(_for_course(request.query, each)) for each in missed)
    enough = left >= min(ENOUGH, len(first.wines))
    return () if enough or first.total <= len(first.wines) else _bands(request.query)


def _for_course(query: WineQuery, course: tuple[str, ...]) -> WineQuery:
    return query.model_copy(update={"foods": tuple(map(Food, course))})


def unserved(
    wines: Sequence[ListedWine], courses: Sequence[tuple[str, ...]]
) -> Sequence[tuple[str, ...]]:
    """The courses, of several, that none of these wines goes with; at most as many as are shown."""
    missed = [each for each in courses if not any(set(each) & set(wine.foods) for wine in wines)]
    return missed[:ENOUGH] if len(courses) > 1 else ()


def served(wines: Sequence[ListedWine], courses: Sequence[tuple[str, ...]]) -> Sequence[ListedWine]:
    """As many wines as are shown: one for each course as far as there is one, then the best."""
    chosen: list[ListedWine] = []
    for course in courses if len(courses) > 1 else ():
        if unserved(chosen, [course, ()])[:1] == [course]:
            chosen += [wine for wine in wines if set(course) & set(wine.foods)][:1]
    return [*chosen, *(wine for wine in wines if wine not in chosen)][:ENOUGH]


def _careful(query: WineQuery) -> tuple[Wish, ...]:
    """Any wine without alcohol, whatever it goes with."""
    wider = {name: getattr(query, name) for name in _CAREFUL if name in query.model_fields_set}
    if wider.keys() == query.model_fields_set:
        return ()
    return (_wish(WineQuery.model_validate(wider)),)


def _bands(query: WineQuery) -> tuple[Wish, ...]:
    low = in_euros(query.min_price or 0, query.currency)
    high = _BANDS[-1] if query.max_price is None else in_euros(query.max_price, query.currency)
    bands = [(max(low, start), min(high, end)) for start, end in pairwise(_BANDS)]
    return tuple(
        _wish(query.model_copy(update=dict(zip(_LIMITS, (start, end, Currency.EUR), strict=True))))
        for start, end in bands
        if start < end
    )


def _wish(query: WineQuery) -> Wish:
    arguments = query.model_dump(mode="json", exclude_defaults=True)
    return Wish(SEARCH, {**arguments, "limit": _LIMIT})
