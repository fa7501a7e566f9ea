"""Find the query for a wine that a message asks for by its name."""

from typing import Final

from agent.query_reading.asked_names import AskedName, read_asked_name
from agent.query_reading.request import Request, read_request
from agent.sommelier.building_queries import USUAL_OFFERS, build_query
from agent.sommelier.queries import (
    MAX_NAME_CHARS,
    MAX_RESULTS,
    Catalogue,
    WineQuery,
)
from agent.sommelier.vocabulary import OfferKind
from agent.sommelier.wine import Wine
from agent.text import split_words

NAMED_FILTERS: Final = frozenset({"grapes", "regions", "countries", "offer"})
"""The filters whose values may be part of a wine's name, as in "Jadot Chablis magnum"."""
MIN_MISSPELT_LETTERS: Final = 7
"""The minimum length of a word that may be a misspelt name."""


async def find_asked_query(
    catalogue: Catalogue, text: str, language: str
) -> WineQuery | None:
    """Return the query for a wine that a message asks for by its name, or None if it asks for none.

    "Do you have red Burgundy by Jadot?" is looked up as a name first. If no wine has this name, the
    known words become filters ("red", "Burgundy"), and the others the name ("Jadot"). A short
    message, such as "Jadot", is read as a name only if a wine has that name.
    """
    asked = read_asked_name(text, language)
    if asked is None:
        return None
    query = await _find_named_query(catalogue, asked)
    if query is not None:
        return query
    return await _find_near_query(catalogue, asked, read_request(text, language))


async def _find_named_query(catalogue: Catalogue, asked: AskedName) -> WineQuery | None:
    """Return the query for wines that have the name: all of its words, or those of one clause."""
    names = [asked.name, asked.core]
    if asked.asks_for_stock:
        names += asked.clauses
    for name in names:
        query = _make_name_query(asked, name)
        result = await catalogue.search(query)
        if result.wines and _is_meant(asked, result.wines[0]):
            return query
    return None


async def _find_near_query(
    catalogue: Catalogue, asked: AskedName, request: Request
) -> WineQuery | None:
    """Return the query for a name that no wine has, or None if the message may be another wish.

    The query finds, in this order of preference: wines with a name near it; wines with its known
    words as filters and the others as the name; or no wine, which says that there is none.
    """
    query = _make_name_query(asked, asked.core)
    other_filters = request.filters.keys() - NAMED_FILTERS
    has_other_wish = bool(request.dishes or other_filters)
    result = await catalogue.search(query)
    near_wines = result.other_vintages
    if not near_wines and not has_other_wish:
        near_wines = result.mentioned
    if near_wines and _is_meant(asked, near_wines[0]):
        return query
    may_be_name = asked.asks_for_stock or asked.is_certain
    if not may_be_name or asked.is_kind:
        return None
    if request.inclusions:
        query_with_filters = _make_query_with_filters(asked, request)
        result = await catalogue.search(query_with_filters)
        if result.total:
            return query_with_filters
    if has_other_wish and not asked.is_certain:
        return None  # "do you have something bubbly without alcohol?" names no wine
    return query


def _make_query_with_filters(asked: AskedName, request: Request) -> WineQuery:
    """Return the query that has the known words as filters, and the others as the name."""
    name = asked.unknown[:MAX_NAME_CHARS]
    # The guest asks for this wine, so it is found although it may be sold out.
    changes = {"name": name, "text": "", "in_stock_only": False}
    return build_query(request).model_copy(update=changes)


def _make_name_query(asked: AskedName, name: str) -> WineQuery:
    """Return the query for the wines of a name, with the offer that is asked for."""
    offer = None
    if asked.offer not in USUAL_OFFERS:
        offer = OfferKind(asked.offer)
    return WineQuery(name=name[:MAX_NAME_CHARS], offer=offer, limit=MAX_RESULTS)


def _is_meant(asked: AskedName, wine: Wine) -> bool:
    """Return whether a message means the wine that its words find, and not a dish or a place."""
    if asked.asks_for_stock and not asked.has_dish:
        return True
    if asked.unknown:
        return _may_have_word_of(asked.unknown, wine)
    # "Mouton" alone is a dish, and "Chablis" alone is a place.
    if not asked.asks_for_stock:
        return False
    label_words = set(split_words(wine.label))
    return label_words.issuperset(split_words(asked.core))


def _may_have_word_of(name: str, wine: Wine) -> bool:
    """Return whether a wine that was found by a name has a word of it, perhaps misspelt."""
    wine_words = split_words(f"{wine.label} {wine.appellation} {wine.region}")
    for word in split_words(name):
        if word in wine_words:
            return True
        # The search compares a long word by its letters, so it may be a misspelt word of the wine.
        if len(word) >= MIN_MISSPELT_LETTERS:
            return True
    return False
