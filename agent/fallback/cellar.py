"""Answers by rules about the bottles that a user owns: what to drink, what is past, how many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from agent.cellar.items import YEARS, items_in_stock, to_wine
from agent.cellar.removal import identifying_words
from agent.cellar.rows import format_drinks, format_items, this_year
from agent.cellar.search import (
    CellarQuery,
    FoundItem,
    Readiness,
    find_drinks,
    search_cellar,
    select_named,
)
from agent.i18n import translate
from agent.markdown import unescape
from agent.query_reading.request import Request
from agent.query_reading.tables import load_lexicon, load_pairings
from agent.query_reading.tokens import strip_plural
from agent.sommelier.filters import may_be_shown
from agent.sommelier.queries import get_pairing
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.vocabulary import Currency, normalize, to_euros
from agent.text import split_words
from agent.turn import CellarItem, Person, Reply

MAX_ROWS: Final = 10
MAX_TONIGHT: Final = 3
READINESS: Final[tuple[Readiness, ...]] = ("past", "wait", "soon", "now")
"""The first of these that a message says decides: "not ready" has "ready" in it."""
MAX_OPENED: Final = 10


@dataclass(frozen=True, slots=True)
class OwnBottles:
    """Holds what a user's cellar has for a message.

    With `is_for_tonight`, they may be drunk now, and the shop's wines are shown beside them.
    """

    text: str
    found: tuple[FoundItem, ...] = ()
    is_for_tonight: bool = False

    @property
    def reply(self) -> Reply:
        """Return the answer from the cellar alone; its first wines get buttons."""
        wines = tuple(to_wine(each.item) for each in self.found[:MAX_TONIGHT])
        answer = SommelierResponse(response_type="informational", intro=unescape(self.text))
        return Reply(
            text=self.text,
            wines=wines if self.is_for_tonight else (),
            structured_answer=answer,
        )


def find_own_bottles(request: Request, person: Person) -> OwnBottles | None:
    """Return what the cellar of a person has for a request, or None if it is not about it."""
    items = items_in_stock(person.bottles)
    said = request.cellar_words
    if "drunk" in said and person.drinks:
        return _find_opened(request, person)
    if not items:
        return None
    place = _find_place(request.text, items)
    readiness = next((name for name in READINESS if name in said), None)
    is_about_own = bool("own" in said or readiness or place)
    is_for_tonight = "tonight" in said and readiness in (None, "now")
    if not is_about_own and not is_for_tonight:
        return None
    if "count" in said or place:
        is_for_tonight = False
    elif request.dishes and readiness is None:
        is_for_tonight = True
    if is_for_tonight:
        readiness = readiness or "now"
    query = _build_query(request, readiness, place)
    found = _search(request, query, items, person)
    if not found and is_for_tonight and not is_about_own:
        return None
    return OwnBottles(_describe(found, is_for_tonight=is_for_tonight), found, is_for_tonight)


def _build_query(request: Request, readiness: Readiness | None, place: str) -> CellarQuery:
    filters: dict[str, Any] = {
        "styles": (*request.values("styles"), *request.values("colours")),
        "grapes": request.values("grapes"),
        "regions": request.values("regions") or request.values("countries"),
        "foods": tuple(dict.fromkeys(f for d in request.dishes.values() for f in d.foods))[:6],
    }
    currency = request.filters.get("currency")
    known = Currency(currency) if currency in set(Currency) else Currency.EUR
    for name in ("min_price", "max_price"):
        amount = request.filters.get(name)
        filters[name] = None if amount is None else to_euros(amount, known)
    return CellarQuery(readiness=readiness, place=place, **filters)


def _search(
    request: Request, query: CellarQuery, items: Sequence[CellarItem], person: Person
) -> tuple[FoundItem, ...]:
    """Return the items that a person may drink; for tonight, unknown windows if none is ready."""
    words = _name_words(request)
    named = _select_named(items, words)
    if named is None:
        return ()
    pairing = load_pairings().get(get_pairing(request)) if request.dishes else None
    found = search_cellar(named, query, this_year(), pairing)
    if not found and query.readiness == "now":
        anything = search_cellar(
            named, query.model_copy(update={"readiness": None}), this_year(), pairing
        )
        found = [each for each in anything if each.state == "unknown"]
    without_facts = replace(person, facts=())
    if person.safety.allergies or person.safety.forbids_alcohol:
        found = [each for each in found if may_be_shown(to_wine(each.item), without_facts)]
    return tuple(found)


def _select_named(items: Sequence[CellarItem], words: Sequence[str]) -> Sequence[CellarItem] | None:
    """Return the items that words and years of a message name; None if a name is of no item.

    Words that are on no label, such as "which", do not count; a year must be a vintage.
    """
    years = {int(word) for word in words if word.isdecimal()}
    selected = [item for item in items if not years or item.wine.get("vintage") in years]
    if years and not selected:
        return None
    names = [word for word in words if not word.isdecimal()]
    return (select_named(selected, names) if names else []) or selected


def _name_words(request: Request) -> list[str]:
    """Return the words of a message that may be names: those that no table has, and the years."""
    words = [word for word in split_words(request.text) if word.isdecimal()]
    years = [word for word in words if word.isascii() and int(word) in YEARS]
    names = identifying_words(request.text) - _table_words()
    return [*years, *sorted(name for name in names if not name.isdecimal())]


@cache
def _table_words() -> frozenset[str]:
    """Return the single words that the tables of requests have: filters are made of them."""
    return frozenset(key[0] for key in load_lexicon() if len(key) == 1) | {"cellar", "bin"}


def _find_place(text: str, items: Sequence[CellarItem]) -> str:
    """Return the longest place of bottles that a message names, or an empty string.

    A part of a place that has a digit names it too: "G33" of "Rack, G33".
    """
    said = f" {normalize(text)} "
    places: set[str] = set()
    for place in {item.place for item in items if item.place}:
        normalized = normalize(place)
        places.add(normalized)
        places.update(word for word in normalized.split() if any(map(str.isdigit, word)))
    named = [place for place in places if len(place) > 1 and f" {place} " in said]
    return max(named, key=len, default="")


def _describe(found: Sequence[FoundItem], *, is_for_tonight: bool) -> str:
    if not found:
        return translate("cellar_no_match")
    items = [each.item for each in found]
    if is_for_tonight:
        items = items[:MAX_TONIGHT]
        return format_items(items, this_year(), translate("cellar_tonight"))
    count = sum(item.count for item in items)
    heading = translate("cellar_found", count=count, wines=len(items))
    return format_items(items, this_year(), heading, MAX_ROWS)


def _find_opened(request: Request, person: Person) -> OwnBottles:
    """Return what the user thought of the bottles that a request names."""
    words = _name_words(request)
    years = [word for word in words if word.isdecimal()]
    names = [word for word in words if strip_plural(word) not in years]
    drinks = find_drinks(person.drinks, " ".join(names)) or [*person.drinks]
    drinks = [each for each in drinks if not years or str(each.wine.get("vintage")) in years]
    if not drinks:
        return OwnBottles(translate("cellar_history_none"))
    lines = format_drinks(drinks[:MAX_OPENED])
    return OwnBottles(f"{translate('cellar_history')}\n{lines}")
