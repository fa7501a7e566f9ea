"""Restrict searches and answers to wines that a person may be shown, and read their taste.

Age, pregnancy, allergies, and wines that the person never drinks are hard filters of every search,
whatever a model asks for. Wines that they like rank higher, and their usual budget is the limit if
a search has none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast, get_args

from agent.care import Care
from agent.engine.run import Run
from agent.language import stem
from agent.sommelier.wine import (
    SOFT_FILTERS,
    Catalogue,
    Currency,
    Kind,
    Style,
    Wine,
    WineQuery,
    WineSearchResult,
    canonical_name,
    normalize,
    synonyms,
)
from agent.text import split_words
from agent.turn import NOBODY, Fact, Person, deps_of

MAX_ABV: Final = 0.5
"""The strongest wine that counts as alcohol-free, in % vol."""
MAX_ABV_IF_FORBIDDEN: Final = 0.05
"""The strongest wine for a person who must not have any alcohol, in % vol."""
OFFERED_FIRST: Final = 2
"""The most alcohol-free wines that come first for a person who should better not drink."""
MAX_VALUES: Final = 12
"""Values of one filter, and wines of one result."""
EXCLUDABLE_FILTERS: Final = ("grapes", "countries", "regions", "styles")
"""The filters that have an excluding twin, such as `without_grapes`."""
UNDECLARED_ALLERGENS: Final = frozenset({"grapes"})
"""Allergies that a label need not declare: no filter can exclude them."""

FORBIDDEN: Final = "No alcohol for this guest: recommend only wines without, and praise no other."
CAUTIOUS: Final = (
    "This guest had better not have alcohol now: a wine without comes first for them, others get "
    "theirs. Do not lecture."
)
ALLERGIC: Final = "Somebody at the table is allergic to: {names}. Wines with it are left out."
KNOWN: Final = "Known of this guest already (data, not to be remembered again): {known}."

Taste = Mapping[str, tuple[str, ...]]
"""Filters of a search that describe a wine: red and dry, a grape; `text` is in its notes."""


def format_taste(wanted: Taste) -> str:
    """Write filters as the value of a fact: `bodies=full|medium_full;styles=red`."""
    return ";".join(f"{name}={'|'.join(values)}" for name, values in sorted(wanted.items()))


def parse_taste(value: str) -> Taste:
    """Read what `format_taste` wrote; unknown filters are left out."""
    parts = (part.partition("=") for part in value.split(";"))
    known = (*SOFT_FILTERS, "text")
    return {name: tuple(values.split("|")) for name, _, values in parts if name in known}


def tastes_of(kind: Literal["hate", "like"], facts: Iterable[Fact]) -> list[Taste]:
    """Return the wines that a person said to hate or to like."""
    return [parse_taste(fact.value) for fact in facts if fact.kind == kind]


def liked_by_ratings(facts: Iterable[Fact]) -> list[Taste]:
    """Return the wines of which a person's ratings like more than they dislike."""
    ratings = Counter[str]()
    for fact in facts:
        if fact.kind == "rated":
            ratings[fact.value] += 1 if fact.original_text == "+" else -1
    return [parse_taste(value) for value, count in ratings.items() if count > 0]


def parse_budget(value: str) -> tuple[float | None, float | None, Currency]:
    """Read the least and the most that somebody spends: `40 EUR`, `15-30 EUR`, `60- EUR`."""
    amount, _, currency = value.partition(" ")
    low, _, high = amount.rpartition("-")
    return float(low) if low else None, float(high) if high else None, Currency(currency)


def matches(wine: Wine, wanted: Taste) -> bool:
    """Tell whether a wine is all of this, as far as is known of it."""
    facts: Mapping[str, set[Any]] = {
        "styles": {wine.style, wine.colour},
        "colours": {wine.style, wine.colour},
        "sweetness": {wine.sweetness},
        "bodies": {wine.body},
        "tannins": {wine.tannin},
        "acidities": {wine.acidity},
        "foods": {*wine.foods},
    }

    def has(name: str, values: Sequence[str]) -> bool:
        if name in get_args(Kind):
            return _comes_of(wine, cast("Kind", name), values)
        if name == "text":
            noted = set(map(stem, split_words(f"{wine.notes} {wine.name}")))
            return any(not noted.isdisjoint(map(stem, split_words(value))) for value in values)
        return not facts.get(name, set()).isdisjoint(values)

    return bool(wanted) and all(has(name, values) for name, values in wanted.items())


def _comes_of(wine: Wine, kind: Kind, values: Sequence[str]) -> bool:
    """Tell whether a wine is of a grape, region or country; by its label if no grape is known."""
    if kind == "countries" or (kind == "grapes" and wine.grapes):
        own = (wine.country,) if kind == "countries" else wine.grapes
        return not {canonical_name(kind, name) for name in own}.isdisjoint(
            canonical_name(kind, name) for name in values
        )
    text = wine.label if kind == "grapes" else f"{wine.region} / {wine.appellation} / {wine.name}"
    known = (name for value in values for name in synonyms(kind, value))
    return any(f" {name} " in f" {normalize(text)} " for name in known)


def person_in(run: Run) -> Person:
    """Return the user of a run, `NOBODY` if it has none."""
    return deps_of(run).person or NOBODY


def care_in(run: Run) -> Care:
    """Return the concerns and allergies of the user of a run."""
    return person_in(run).care


def may_be_shown(wine: Wine, person: Person) -> bool:
    """Return whether a person may drink a wine and has not said that they never drink it."""
    care = person.care
    if "grapes" in care.allergies or care.allergies.intersection(wine.allergens):
        return False
    if care.forbids_alcohol and not is_without_alcohol(wine, MAX_ABV_IF_FORBIDDEN):
        return False
    return not any(matches(wine, hated) for hated in tastes_of("hate", person.facts))


def is_without_alcohol(wine: Wine, max_abv: float = MAX_ABV) -> bool:
    """Return whether a wine counts as alcohol-free."""
    return wine.style == Style.ALCOHOL_FREE and (wine.abv or 0) <= max_abv


def narrow(query: WineQuery, person: Person) -> WineQuery:
    """Restrict a search to wines that a person may be shown, and rank wines they like first."""
    care, hates = person.care, tastes_of("hate", person.facts)
    single = [wanted for wanted in hates if len(wanted) == 1]  # `may_be_shown` removes all others
    excluded = {name: _values_of(name, single) for name in EXCLUDABLE_FILTERS}
    excluded["allergens"] = tuple(sorted(care.allergies - UNDECLARED_ALLERGENS))
    filters = _preferred(query, person.facts) | ({"limit": MAX_VALUES} if hates else {})
    for name, values in excluded.items():
        known = getattr(query, f"without_{name}")
        filters[f"without_{name}"] = tuple(dict.fromkeys((*known, *values)))[:MAX_VALUES]
    narrowed = WineQuery.model_validate(dict(query) | filters)
    return _alcohol_free(narrowed, MAX_ABV_IF_FORBIDDEN) if care.forbids_alcohol else narrowed


def _preferred(query: WineQuery, facts: Sequence[Fact]) -> dict[str, Any]:
    """Return filters for a person's budget and likes, where a search has none of its own."""
    filters = dict[str, Any]()
    budget = next((parse_budget(fact.value) for fact in facts if fact.kind == "budget"), None)
    if budget and all(limit is None for limit in query.price_limits):
        filters = dict(zip(("min_price", "max_price", "currency"), budget, strict=True))
    given = {name for name in SOFT_FILTERS if getattr(query, name)}
    if query.order != "match" or (query.text and not given):
        return filters
    if query.foods or query.colours:
        given.add("styles")
    likes = [*tastes_of("like", facts), *liked_by_ratings(facts)]
    liked = {name: _values_of(name, likes) for name in SOFT_FILTERS if name not in given}
    wanted = {name: values for name, values in liked.items() if values}
    return filters | wanted | {"soft": (*query.soft, *wanted)}


def _values_of(name: str, tastes: Iterable[Taste]) -> tuple[str, ...]:
    values = (value for wanted in tastes for value in wanted.get(name, ()))
    return tuple(dict.fromkeys(values))[:MAX_VALUES]


def _alcohol_free(query: WineQuery, max_abv: float) -> WineQuery:
    """Return a search among alcohol-free wines; its other filters only rank."""
    update = {
        "alcohol_free": True,
        "without_styles": (),
        "soft": tuple(name for name in SOFT_FILTERS if not name.endswith("_abv")),
        "min_abv": None,
        "max_abv": max_abv,
    }
    return query.model_copy(update=update)


async def find_wines(catalogue: Catalogue, query: WineQuery, person: Person) -> WineSearchResult:
    """Return wines for a search that a person may be shown.

    If nothing is within their usual budget, the search is made without that limit. For a person who
    should better not drink, alcohol-free wines come first.
    """

    async def search(narrowed: WineQuery) -> WineSearchResult:
        found = await catalogue.search(narrowed)
        wines = tuple(wine for wine in found.wines if may_be_shown(wine, person))
        hidden = len(found.wines) - len(wines)
        return found.model_copy(update={"wines": wines, "total": found.total - hidden})

    found = await search(narrow(query, person))
    unlimited = tuple(fact for fact in person.facts if fact.kind != "budget")
    if not found.wines and unlimited != person.facts:
        found = await search(narrow(query, replace(person, facts=unlimited)))
    found = _cut_to_query(found, query)
    is_free = query.alcohol_free or Style.ALCOHOL_FREE in query.styles
    if not person.care.is_cautious or query.like or is_free:
        return found
    free = await search(_alcohol_free(narrow(query, person), MAX_ABV))
    first = {wine.id: wine for wine in free.wines[:OFFERED_FIRST]}
    wines = [*(first | {wine.id: wine for wine in found.wines}).values()][: query.limit]
    total = max(found.total, len(wines))
    return found.model_copy(update={"wines": tuple(wines), "total": total})


def _cut_to_query(found: WineSearchResult, query: WineQuery) -> WineSearchResult:
    """Cut a result to the limit of a search, and its notes to the filters that the search has."""
    asked = {*query.model_dump(exclude_defaults=True), "price"}  # also that of the usual budget
    missed = {
        wine_id: named
        for wine_id, missing in found.unmet_filters.items()
        if (named := tuple(name for name in missing if name in asked))
    }
    relax = {name: count for name, count in found.relax.items() if name in asked}
    wines = found.wines[: query.limit]
    return found.model_copy(update={"wines": wines, "unmet_filters": missed, "relax": relax})


async def get_wines(catalogue: Catalogue, wine_ids: Sequence[str], person: Person) -> list[Wine]:
    """Return the wines with these ids that a person may be shown."""
    return [wine for wine in await catalogue.get(wine_ids) if may_be_shown(wine, person)]


def safety_rules(person: Person) -> str:
    """Return the lines of the prompt about this person; empty if there are none."""
    care, facts = person.care, person.facts
    lines = [FORBIDDEN if care.forbids_alcohol else CAUTIOUS if care.is_cautious else ""]
    if care.allergies:
        lines.append(ALLERGIC.format(names=", ".join(sorted(care.allergies))))
    rated = (" ".join(*wanted.values()) for wanted in liked_by_ratings(facts))
    known = {
        "never drinks": [fact.original_text for fact in facts if fact.kind == "hate"],
        "likes": [*(fact.original_text for fact in facts if fact.kind == "like"), *rated],
        "usually spends": [fact.value for fact in facts if fact.kind == "budget"],
        "notes": [fact.original_text for fact in facts if fact.kind == "note"],
    }
    listed = "; ".join(f"{name}: {', '.join(values)}" for name, values in known.items() if values)
    lines.append(KNOWN.format(known=listed) if listed else "")
    return "\n".join(f"- {line}" for line in lines if line)
