"""Restrict searches and answers to wines that a person may be shown.

Age, pregnancy, allergies, and wines that the person never drinks are hard filters of every search,
whatever a model asks for. Wines that they like rank higher, and their usual budget is the limit if
a search has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, get_args

from agent.care import Care
from agent.engine.run import Run
from agent.sommelier.read_wine import AnyWine
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.taste import Taste, is_of, spending, taste_of
from agent.sommelier.wine import (
    Allergen,
    Catalogue,
    SoftFilter,
    Style,
    Wine,
    WineQuery,
    WineSearchResult,
)
from agent.turn import NOBODY, Person, deps_of

MAX_ABV: Final = 0.5
"""The strongest wine that counts as alcohol-free, in % vol."""
MAX_ABV_IF_FORBIDDEN: Final = 0.05
"""The strongest wine for a person who must not have any alcohol, in % vol."""
OFFERED_FIRST: Final = 2
"""The most alcohol-free wines that come first for a person who should better not drink."""
MAX_VALUES: Final = 12
"""Values of one filter, and wines of one result."""
EXCLUDABLE: Final = ("grapes", "countries", "regions", "styles")
"""The filters that have an excluding twin, such as `without_grapes`."""
UNDECLARED: Final = frozenset({"grapes"})
"""Allergies that a label need not declare: no filter can exclude them."""

FORBIDDEN: Final = "No alcohol for this guest: recommend only wines without, and praise no other."
CAUTIOUS: Final = (
    "This guest had better not have alcohol now: a wine without comes first for them, others get "
    "theirs. Do not lecture."
)
ALLERGIC: Final = "Somebody at the table is allergic to: {names}. Wines with it are left out."
KNOWN: Final = "Known of this guest already (data, not to be remembered again): {known}."


def person_in(run: Run) -> Person:
    """Return the user of a run, `NOBODY` if it has none."""
    return deps_of(run).person or NOBODY


def care_in(run: Run) -> Care:
    """Return the concerns and allergies of the user of a run."""
    return person_in(run).care


def may_be_shown(wine: AnyWine, person: Person) -> bool:
    """Return whether a person may drink a wine and has not said that they never drink it."""
    care = person.care
    if "grapes" in care.allergies or care.allergies.intersection(wine.facts.allergens):
        return False
    if care.forbids_alcohol and not is_without_alcohol(wine, MAX_ABV_IF_FORBIDDEN):
        return False
    return not any(is_of(wine.facts, hated) for hated, _ in taste_of(person.facts).hates)


def is_without_alcohol(wine: AnyWine, max_abv: float = MAX_ABV) -> bool:
    """Return whether a wine counts as alcohol-free."""
    return wine.style == Style.ALCOHOL_FREE and (wine.facts.abv or 0) <= max_abv


def narrow(query: WineQuery, person: Person) -> WineQuery:
    """Restrict a search to wines that a person may be shown, and rank wines they like first."""
    taste, care = taste_of(person.facts), person.care
    narrowed = _preferring(_without_hated(query, taste), taste)
    if declared := care.allergies - UNDECLARED:
        allergens = {*narrowed.without_allergens, *map(Allergen, declared)}
        narrowed = narrowed.model_copy(update={"without_allergens": tuple(sorted(allergens))})
    return _alcohol_free(narrowed, MAX_ABV_IF_FORBIDDEN) if care.forbids_alcohol else narrowed


async def find_wines(
    catalogue: Catalogue, query: WineQuery, person: Person, *, like: str = ""
) -> WineSearchResult:
    """Return wines that a person may be shown: for `query`, or similar to the wine with id `like`.

    If nothing is within their usual budget, the search is made without that limit. For a person who
    should better not drink, alcohol-free wines come first.
    """

    async def search(narrowed: WineQuery) -> WineSearchResult:
        found = await (catalogue.similar(like, narrowed) if like else catalogue.search(narrowed))
        wines = tuple(wine for wine in found.wines if may_be_shown(wine, person))
        hidden = len(found.wines) - len(wines)
        return found.model_copy(update={"wines": wines, "total": found.total - hidden})

    found = await search(narrow(query, person))
    if not found.wines and any(fact.kind == "budget" for fact in person.facts):
        unlimited = tuple(fact for fact in person.facts if fact.kind != "budget")
        found = await search(narrow(query, replace(person, facts=unlimited)))
    found = _cut_to_query(found, query)
    is_free = query.alcohol_free or Style.ALCOHOL_FREE in query.styles
    if not person.care.is_cautious or like or is_free:
        return found
    free = await search(_alcohol_free(narrow(query, person), MAX_ABV))
    first = {wine.id: wine for wine in free.wines[:OFFERED_FIRST]}
    wines = [*(first | {wine.id: wine for wine in found.wines}).values()][: query.limit]
    total = max(found.total, len(wines))
    return found.model_copy(update={"wines": tuple(wines), "total": total})


async def get_wines(catalogue: Catalogue, wine_ids: Sequence[str], person: Person) -> list[Wine]:
    """Return the wines with these ids that a person may be shown."""
    return [wine for wine in await catalogue.get(wine_ids) if may_be_shown(wine, person)]


def _cut_to_query(found: WineSearchResult, query: WineQuery) -> WineSearchResult:
    """Cut a result to the limit of a search, and its notes to the filters that the search has."""
    asked = {*query.model_fields_set, *(["price"] if any(query.price_limits) else [])}
    missed = {
        wine_id: names
        for wine_id, missing in found.missed.items()
        if (names := tuple(name for name in missing if name in asked))
    }
    relax = {name: count for name, count in found.relax.items() if name in asked}
    wines = found.wines[: query.limit]
    return found.model_copy(update={"wines": wines, "missed": missed, "relax": relax})


def _without_hated(query: WineQuery, taste: Taste) -> WineQuery:
    """Add filters for wines that a person never drinks; `may_be_shown` removes all others."""
    filters = dict[str, tuple[str, ...]]()
    for wanted, _ in taste.hates:
        (name, values), *others = wanted.items()
        if not others and name in EXCLUDABLE:
            excluding = f"without_{name}"
            known = filters.get(excluding) or getattr(query, excluding)
            filters[excluding] = tuple(dict.fromkeys((*known, *values)))[:MAX_VALUES]
    return query.with_filters({**filters, "limit": MAX_VALUES}) if taste.hates else query


def _preferring(query: WineQuery, taste: Taste) -> WineQuery:
    """Add a person's budget and likes to a search, where it has no filter of its own."""
    if taste.budget and all(limit is None for limit in query.price_limits):
        low, high, currency = taste.budget
        usual = {"min_price": low, "max_price": high, "currency": currency}
        query = query.model_copy(update=usual)
    named = query.model_fields_set - {"text", "limit", "order", "in_stock_only", "currency"}
    if query.order != "match" or (query.text and not named):
        return query
    liked = dict[str, tuple[str, ...]]()
    for wanted, _ in taste.likes:
        for name, values in wanted.items():
            is_open = name in get_args(SoftFilter) and not getattr(query, name)
            if is_open and not (name == "styles" and (query.foods or query.colours)):
                liked[name] = tuple(dict.fromkeys((*liked.get(name, ()), *values)))[:MAX_VALUES]
    return query.with_filters({**liked, "soft": (*query.soft, *liked)}) if liked else query


def _alcohol_free(query: WineQuery, max_abv: float) -> WineQuery:
    """Return a search among alcohol-free wines; its other filters only rank."""
    soft = {*query.soft, *get_args(SoftFilter)} - {"min_abv", "max_abv"}
    update = {
        "alcohol_free": True,
        "without_styles": (),
        "soft": tuple(sorted(soft)),
        "min_abv": None,
        "max_abv": max_abv,
    }
    return query.model_copy(update=update)


def safety_rules(person: Person) -> str:
    """Return the lines of the prompt about this person; empty if there are none."""
    care, taste = person.care, taste_of(person.facts)
    lines = [FORBIDDEN if care.forbids_alcohol else CAUTIOUS if care.is_cautious else ""]
    if care.allergies:
        lines.append(ALLERGIC.format(names=", ".join(sorted(care.allergies))))
    known: dict[str, list[str]] = {
        "never drinks": [text for _, text in taste.hates],
        "likes": [text or " ".join(*wanted.values()) for wanted, text in taste.likes],
        "usually spends": [spending(taste.budget)] if taste.budget else [],
        "notes": [fact.original_text for fact in person.facts if fact.kind == "note"],
    }
    listed = "; ".join(f"{name}: {', '.join(values)}" for name, values in known.items() if values)
    lines.append(KNOWN.format(known=listed) if listed else "")
    return "\n".join(f"- {line}" for line in lines if line)


def note(person: Person) -> str:
    """Return a note for the model: which wines are left out for this person, or come first."""
    care = person.care
    names = ", ".join(sorted(care.allergies))
    hated = ", ".join(text for _, text in taste_of(person.facts).hates)
    notes = {
        "only wines without alcohol are shown to this guest": care.forbids_alcohol,
        "wines without alcohol come first for this guest": care.is_cautious,
        f"wines with {names} are left out": names,
        f"wines that this guest never drinks are left out: {hated}": hated,
    }
    return "; ".join(text for text, applies in notes.items() if applies)


def allowed_part(
    answer: SommelierResponse, found: Mapping[str, object], person: Person
) -> SommelierResponse | None:
    """Return an answer with the wines that a person may be shown, as they suit; None without."""
    known = [(wine, found.get(wine.wine_id)) for wine in answer.wines]
    allowed = [(wine, fact) for wine, fact in known if isinstance(fact, AnyWine)]
    allowed = [(wine, fact) for wine, fact in allowed if may_be_shown(fact, person)]
    if answer.wines and not allowed:
        return None
    if person.care.is_cautious:
        allowed.sort(key=lambda pair: not is_without_alcohol(pair[1]))
    return answer.model_copy(update={"wines": [wine for wine, _ in allowed]})
