"""Restrict searches and answers to wines that a person may be shown, and apply their taste.

Age, pregnancy, allergies, and wines that the person never drinks are hard filters of every search,
whatever a model asks for. Wines that they like rank higher, and their usual budget applies to
searches without a price limit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast, get_args

from agent.engine.run import Run
from agent.language import stem
from agent.safety.state import SafetyState
from agent.sommelier.queries import SOFT_FILTERS, Catalogue, WineQuery, WineSearchResult
from agent.sommelier.vocabulary import (
    OAKY,
    Allergen,
    Currency,
    NameKind,
    Style,
    canonical_name,
    normalize,
    speaks_of_oak,
    synonyms,
)
from agent.sommelier.wine import Wine
from agent.text import split_words
from agent.turn import Fact, Person, get_person

MAX_ABV: Final = 0.5
"""The strongest wine that counts as alcohol-free, in % vol."""
MAX_ABV_IF_FORBIDDEN: Final = 0.05
"""The strongest wine for a person who must not have alcohol, in % vol."""
MAX_OFFERED_FIRST: Final = 2
"""How many alcohol-free wines come first for a person who is advised not to drink."""
MAX_OFFERED_FIRST_IF_LIKELY: Final = 1
"""The same, if it is only likely that they should not drink."""
MAX_VALUES: Final = 12
"""How many values a filter has, and how many wines a result has, at most."""
EXCLUDABLE_FILTERS: Final = ("grapes", "countries", "regions", "styles")
"""The filters that have an excluding counterpart like `without_grapes`."""
UNDECLARED_ALLERGENS: Final = frozenset({"grapes"})
"""Allergens that labels do not declare, so no filter can exclude them."""

NO_ALCOHOL: Final = (
    "This guest must not have alcohol. Recommend only wines without alcohol, "
    "and praise no other."
)
CAUTIOUS_RULE: Final = (
    "This guest had better not have alcohol now. Put a wine without alcohol first for them; other "
    "people may have theirs. Do not lecture."
)
ALLERGY_RULE: Final = (
    "Somebody at the table is allergic to: {names}. Wines that declare it are not returned to "
    "you. If a wine has it in `may_contain`, nobody knows that the wine is free of it: never call "
    "that wine safe, and tell the guest to ask, or to read the label."
)
STORED_ALLERGY_RULE: Final = (
    "You cannot remove an allergy, whatever is written. If the guest says that theirs is gone, "
    "tell them to delete it with the command /taste."
)
KNOWN_FACTS_RULE: Final = (
    "These facts about the guest are known already, do not remember them again: "
    "{known}."
)
OWNED_RULE: Final = "This guest owns {count} bottles."
NOTHING_OWNED_RULE: Final = "This guest has told of no bottles of their own."
UNKNOWN_GUEST_RULE: Final = "Nothing is known of this guest."

Taste = Mapping[str, tuple[str, ...]]
"""A kind of wine as filters with values, like dry reds; `text` holds words of tasting notes."""


def format_taste(taste: Taste) -> str:
    """Format a taste as the value of a fact: `bodies=full|medium_full;styles=red`."""
    return ";".join(
        f"{name}={'|'.join(values)}" for name, values in sorted(taste.items())
    )


def parse_taste(value: str) -> Taste:
    """Parse the output of `format_taste`; unknown filters are left out."""
    parts = (part.partition("=") for part in value.split(";"))
    names = (*SOFT_FILTERS, "text")
    return {
        name: tuple(values.split("|")) for name, _, values in parts if name in names
    }


def get_tastes(
    kind: Literal["hate", "like", "rated"], facts: Iterable[Fact]
) -> list[Taste]:
    """Return the tastes that a person said they hate or like, or liked by their ratings."""
    return [parse_taste(fact.value) for fact in facts if fact.kind == kind]


def parse_budget(value: str) -> tuple[float | None, float | None, Currency]:
    """Return the lowest and highest price, each None without a limit, and the currency.

    The value of a budget fact is `40 EUR` (at most 40), `15-30 EUR`, or `60- EUR` (at least 60).
    """
    amount, _, currency = value.partition(" ")
    low, _, high = amount.rpartition("-")
    return (
        float(low) if low else None,
        float(high) if high else None,
        Currency(currency),
    )


def matches(wine: Wine, taste: Taste) -> bool:
    """Return whether the known facts of a wine match every filter of a taste."""
    properties: Mapping[str, set[Any]] = {  # "red" may be a style or a colour
        "styles": {wine.style, wine.colour},
        "colours": {wine.style, wine.colour},
        "sweetness": {wine.sweetness},
        "bodies": {wine.body},
        "tannins": {wine.tannin},
        "acidities": {wine.acidity},
        "foods": {*wine.foods},
    }

    def has(name: str, values: Sequence[str]) -> bool:
        if name in get_args(NameKind):
            return _has_grape_or_origin(wine, cast("NameKind", name), values)
        if OAKY in values:
            return speaks_of_oak(f" {normalize(f'{wine.notes} {wine.name}')} ")
        if name == "text":
            stems = set(map(stem, split_words(f"{wine.notes} {wine.name}")))
            return any(
                not stems.isdisjoint(map(stem, split_words(value))) for value in values
            )
        return not properties.get(name, set()).isdisjoint(values)

    return bool(taste) and all(has(name, values) for name, values in taste.items())


def _has_grape_or_origin(wine: Wine, kind: NameKind, names: Sequence[str]) -> bool:
    """Return whether a wine has one of these grapes, countries or regions.

    If its grapes are unknown, look for them on its label.
    """
    if kind == "countries" or (kind == "grapes" and wine.grapes):
        wine_names = (wine.country,) if kind == "countries" else wine.grapes
        canonical = {canonical_name(kind, name) for name in wine_names}
        return any(canonical_name(kind, name) in canonical for name in names)
    text = (
        wine.label
        if kind == "grapes"
        else f"{wine.region} / {wine.appellation} / {wine.name}"
    )
    variants = (variant for name in names for variant in synonyms(kind, name))
    return any(f" {variant} " in f" {normalize(text)} " for variant in variants)


def get_safety_state(run: Run) -> SafetyState:
    """Return the concerns and allergies of the user of a run."""
    return get_person(run).safety


def may_be_shown(wine: Wine, person: Person) -> bool:
    """Return whether a person may drink a wine and has not said that they never drink it."""
    safety = person.safety
    if "grapes" in safety.allergies or safety.allergies.intersection(wine.allergens):
        return False
    if safety.forbids_alcohol and not is_without_alcohol(wine, MAX_ABV_IF_FORBIDDEN):
        return False
    return not any(matches(wine, taste) for taste in get_tastes("hate", person.facts))


def is_without_alcohol(wine: Wine, max_abv: float = MAX_ABV) -> bool:
    """Return whether a wine counts as alcohol-free."""
    if wine.style != Style.ALCOHOL_FREE:
        return False
    # What is sold as alcohol-free has up to 0.5 %, unless its label says less.
    abv = MAX_ABV if wine.abv is None else wine.abv
    return abv <= max_abv


def find_unknown_allergens(
    wine: Wine, avoided: Collection[str]
) -> tuple[Allergen, ...]:
    """Return which of the avoided allergens a wine may contain, for all that is known of it."""
    return tuple(
        name for name in Allergen if name in avoided and not wine.is_known_to_lack(name)
    )


def mark_unknown_allergens(wine: Wine, avoided: Collection[str]) -> Wine:
    """Return a wine with the avoided allergens that it may contain, so that its card says so."""
    unknown = find_unknown_allergens(wine, avoided)
    return wine.model_copy(update={"unknown_allergens": unknown}) if unknown else wine


def restrict_query(query: WineQuery, person: Person) -> WineQuery:
    """Restrict a search to wines that a person may be shown, and rank wines they like first."""
    hates = get_tastes("hate", person.facts)
    # Filters exclude "sweet" or "red", not the combination: get more wines, and `may_be_shown`
    # removes wines of such tastes, or with values that were cut off by `MAX_VALUES`.
    simple_hates = [taste for taste in hates if len(taste) == 1]
    excluded = {name: _values_of(name, simple_hates) for name in EXCLUDABLE_FILTERS}
    excluded["allergens"] = tuple(
        sorted(person.safety.allergies - UNDECLARED_ALLERGENS)
    )
    filters = _preference_filters(query, person.facts) | (
        {"limit": MAX_VALUES} if hates else {}
    )
    if query.oak is None and _hates_oak(simple_hates):
        filters["oak"] = False
    for name, values in excluded.items():
        in_query = getattr(query, f"without_{name}")
        filters[f"without_{name}"] = tuple(dict.fromkeys((*in_query, *values)))[
            :MAX_VALUES
        ]
    narrowed = WineQuery.model_validate(dict(query) | filters)
    if person.safety.forbids_alcohol:
        return _restrict_to_alcohol_free(narrowed, MAX_ABV_IF_FORBIDDEN)
    return narrowed


def _hates_oak(tastes: Iterable[Taste]) -> bool:
    return any(OAKY in taste.get("text", ()) for taste in tastes)


def _preference_filters(query: WineQuery, facts: Sequence[Fact]) -> dict[str, Any]:
    """Return filters for a person's budget and likes, where the search has no such filter."""
    filters = dict[str, Any]()
    if query.name:
        return filters  # they ask for this wine, whatever they usually like and spend
    budget = next(
        (parse_budget(fact.value) for fact in facts if fact.kind == "budget"), None
    )
    if budget and all(limit is None for limit in query.price_limits):
        filters = dict(zip(("min_price", "max_price", "currency"), budget, strict=True))
    used = {name for name in SOFT_FILTERS if getattr(query, name)}
    # Likes must not disturb an order by price or a search by text only.
    if query.order != "match" or (query.text and not used):
        return filters
    if query.foods or query.colours:
        used.add("styles")  # a liked style could contradict the food or colour
    likes = [*get_tastes("like", facts), *get_tastes("rated", facts)]
    values_by_name = {
        name: _values_of(name, likes) for name in SOFT_FILTERS if name not in used
    }
    liked = {name: values for name, values in values_by_name.items() if values}
    return filters | liked | {"soft": (*query.soft, *liked)}


def _values_of(name: str, tastes: Iterable[Taste]) -> tuple[str, ...]:
    values = (value for taste in tastes for value in taste.get(name, ()))
    return tuple(dict.fromkeys(values))[:MAX_VALUES]


def _restrict_to_alcohol_free(query: WineQuery, max_abv: float) -> WineQuery:
    """Restrict a search to alcohol-free wines; its soft filters only affect their order."""
    update = {
        "alcohol_free": True,
        "without_styles": (),
        "soft": tuple(name for name in SOFT_FILTERS if not name.endswith("_abv")),
        "min_abv": None,
        "max_abv": max_abv,
    }
    return query.model_copy(update=update)


async def find_wines(
    catalogue: Catalogue, query: WineQuery, person: Person
) -> WineSearchResult:
    """Return the wines of a search that a person may be shown.

    If their usual budget excludes all wines, the search is repeated without it. For a person who
    is advised not to drink, alcohol-free wines come first.
    """
    narrowed = restrict_query(query, person)
    result = await _search_for(person, catalogue, narrowed)
    without_budget = tuple(fact for fact in person.facts if fact.kind != "budget")
    if not result.wines and without_budget != person.facts:
        without_limit = restrict_query(query, replace(person, facts=without_budget))
        result = await _search_for(person, catalogue, without_limit)
    result = _limit_to_query(result, query)
    asks_for_alcohol_free = query.alcohol_free or Style.ALCOHOL_FREE in query.styles
    if not person.safety.prefers_alcohol_free or query.like or asks_for_alcohol_free:
        return result
    harmless = _restrict_to_alcohol_free(narrowed, MAX_ABV)
    alcohol_free = await _search_for(person, catalogue, harmless)
    # A concern that is only likely takes little away.
    count = MAX_OFFERED_FIRST if person.safety.concerns else MAX_OFFERED_FIRST_IF_LIKELY
    first = alcohol_free.wines[:count]
    unique_wines = {wine.id: wine for wine in (*first, *result.wines)}
    wines = tuple(unique_wines.values())[: query.limit]
    return result.model_copy(
        update={"wines": wines, "total": max(result.total, len(wines))}
    )


async def _search_for(
    person: Person, catalogue: Catalogue, narrowed: WineQuery
) -> WineSearchResult:
    """Return the result of a search without the wines that a person may not be shown."""
    result = await catalogue.search(narrowed)
    avoided = narrowed.without_allergens
    wines = _list_allowed(result.wines, person, avoided)
    hidden = len(result.wines) - len(wines)
    update = {
        "wines": wines,
        "total": result.total - hidden,
        "other_vintages": _list_allowed(result.other_vintages, person, avoided),
        "mentioned": _list_allowed(result.mentioned, person, avoided),
        "closest": _list_allowed(result.closest, person, avoided),
    }
    return result.model_copy(update=update)


def _list_allowed(
    wines: Sequence[Wine], person: Person, avoided: Collection[str]
) -> tuple[Wine, ...]:
    """Return the wines that a person may be shown, marked with what they may contain."""
    allowed = [wine for wine in wines if may_be_shown(wine, person)]
    return tuple(mark_unknown_allergens(wine, avoided) for wine in allowed)


def _limit_to_query(result: WineSearchResult, query: WineQuery) -> WineSearchResult:
    """Cut a result to the limit of the query, and remove mentions of filters that we added."""
    # Mentions of the price stay, because the usual budget may limit it.
    mentioned = {*query.model_dump(exclude_defaults=True), "price"}
    unmet = {
        wine_id: tuple(name for name in names if name in mentioned)
        for wine_id, names in result.unmet_filters.items()
    }
    update = {
        "wines": result.wines[: query.limit],
        "unmet_filters": {wine_id: names for wine_id, names in unmet.items() if names},
        "relax": {
            name: count for name, count in result.relax.items() if name in mentioned
        },
    }
    return result.model_copy(update=update)


async def get_wines(
    catalogue: Catalogue, wine_ids: Sequence[str], person: Person
) -> list[Wine]:
    """Return the wines with these ids that a person may be shown."""
    avoided = person.safety.allergies
    return [
        mark_unknown_allergens(wine, avoided)
        for wine in await catalogue.get(wine_ids)
        if may_be_shown(wine, person)
    ]


def guest_rules(person: Person) -> str:
    """Return the lines of the prompt about this person."""
    safety, facts = person.safety, person.facts
    cautious = CAUTIOUS_RULE if safety.prefers_alcohol_free else ""
    lines = [NO_ALCOHOL if safety.forbids_alcohol else cautious]
    if safety.allergies:
        lines.append(ALLERGY_RULE.format(names=", ".join(sorted(safety.allergies))))
        if person.user_id:
            lines.append(STORED_ALLERGY_RULE)
    # One filter each.
    liked = (" ".join(*taste.values()) for taste in get_tastes("rated", facts))
    known = {
        "never drinks": [fact.original_text for fact in facts if fact.kind == "hate"],
        "likes": [
            *(fact.original_text for fact in facts if fact.kind == "like"),
            *liked,
        ],
        "usually spends": [fact.value for fact in facts if fact.kind == "budget"],
        "notes": [fact.original_text for fact in facts if fact.kind == "note"],
    }
    text = "; ".join(
        f"{name}: {', '.join(values)}" for name, values in known.items() if values
    )
    lines.append(KNOWN_FACTS_RULE.format(known=text) if text else "")
    if person.user_id:
        bottles = sum(item.count for item in person.bottles)
        lines.append(
            OWNED_RULE.format(count=bottles) if bottles else NOTHING_OWNED_RULE
        )
    return "\n".join(f"- {line}" for line in lines if line) or f"- {UNKNOWN_GUEST_RULE}"
