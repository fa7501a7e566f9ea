"""Restrict searches and answers to wines that a person may be shown, and apply their taste.

Age, pregnancy, allergies, and wines that the person never drinks are hard filters of every search,
whatever a model asks for. Wines that they like rank higher, and their usual budget applies to
searches without a price limit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, cast, get_args

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
"""The number of alcohol-free wines that come first for a person who had better not drink."""
MAX_OFFERED_FIRST_IF_LIKELY: Final = 1
"""The number of alcohol-free wines that come first if a person only probably should not drink."""
MAX_VALUES: Final = 12
"""The most values of a filter, and the most wines of a result."""
EXCLUDABLE_FILTERS: Final = ("grapes", "countries", "regions", "styles")
"""The filters that have a counterpart such as `without_grapes`, which excludes."""
UNDECLARED_ALLERGENS: Final = frozenset({"grapes"})
"""The allergens that labels do not declare, so that no filter can exclude them."""

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
NAMES_OF_FACTS: Final = {
    "hate": "never drinks",
    "like": "likes",
    "rated": "likes",
    "budget": "usually spends",
    "note": "notes",
}
"""The names of the kinds of facts for a model, in this order."""
OWNED_RULE: Final = "This guest owns {count} bottles."
NOTHING_OWNED_RULE: Final = "This guest has told of no bottles of their own."
UNKNOWN_GUEST_RULE: Final = "Nothing is known of this guest."

Taste = Mapping[str, tuple[str, ...]]
"""A kind of wine, such as dry reds, as filters with values. `text` has words of tasting notes."""


def format_taste(taste: Taste) -> str:
    """Return a taste as the value of a fact: `bodies=full|medium_full;styles=red`."""
    return ";".join(f"{name}={'|'.join(taste[name])}" for name in sorted(taste))


def parse_taste(value: str) -> Taste:
    """Return the taste that `format_taste` has written. Unknown filters are left out."""
    taste: dict[str, tuple[str, ...]] = {}
    for part in value.split(";"):
        name, _, values = part.partition("=")
        if name in SOFT_FILTERS or name == "text":
            taste[name] = tuple(values.split("|"))
    return taste


def get_tastes(
    kind: Literal["hate", "like", "rated"], facts: Iterable[Fact]
) -> list[Taste]:
    """Return the tastes that a person has said they hate or like, or has liked by ratings."""
    return [parse_taste(fact.value) for fact in facts if fact.kind == kind]


class Budget(NamedTuple):
    """The lowest and highest price that a person pays. A limit that is not set is None."""

    min_price: float | None
    max_price: float | None
    currency: Currency


def parse_budget(value: str) -> Budget:
    """Return the budget in the value of a fact.

    It is `40 EUR` (at most 40), `15-30 EUR`, or `60- EUR` (at least 60).
    """
    amount, _, currency = value.partition(" ")
    low, _, high = amount.rpartition("-")
    min_price = float(low) if low else None
    max_price = float(high) if high else None
    return Budget(min_price, max_price, Currency(currency))


def matches(wine: Wine, taste: Taste) -> bool:
    """Return whether the known facts of a wine match every filter of a taste."""
    if not taste:
        return False
    return all(_has_value(wine, name, values) for name, values in taste.items())


def _has_value(wine: Wine, name: str, values: Sequence[str]) -> bool:
    """Return whether a wine is known to have one of the values of a filter."""
    if name in get_args(NameKind):
        return _has_grape_or_origin(wine, cast("NameKind", name), values)
    text = f"{wine.notes} {wine.name}"
    if OAKY in values:
        return speaks_of_oak(f" {normalize(text)} ")
    if name == "text":
        stems = set(map(stem, split_words(text)))
        wanted = map(stem, split_words(" ".join(values)))
        return not stems.isdisjoint(wanted)
    properties: Mapping[str, set[Any]] = {  # "red" may be a style or a colour
        "styles": {wine.style, wine.colour},
        "colours": {wine.style, wine.colour},
        "sweetness": {wine.sweetness},
        "bodies": {wine.body},
        "tannins": {wine.tannin},
        "acidities": {wine.acidity},
        "foods": {*wine.foods},
    }
    if name not in properties:
        return False
    return not properties[name].isdisjoint(values)


def _has_grape_or_origin(wine: Wine, kind: NameKind, names: Sequence[str]) -> bool:
    """Return whether a wine has one of these grapes, countries or regions.

    If its grapes are unknown, they are looked for on its label.
    """
    if kind == "countries":
        return _share_name(kind, names, [wine.country])
    if kind == "grapes" and wine.grapes:
        return _share_name(kind, names, wine.grapes)
    text = wine.label
    if kind == "regions":
        text = f"{wine.region} / {wine.appellation} / {wine.name}"
    normalized = f" {normalize(text)} "
    for name in names:
        for variant in synonyms(kind, name):
            if f" {variant} " in normalized:
                return True
    return False


def _share_name(kind: NameKind, names: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether one of the names is a synonym of one of the others."""
    canonical = {canonical_name(kind, name) for name in names}
    return any(canonical_name(kind, other) in canonical for other in others)


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
    if wine.abv is None:
        # A wine that is sold as alcohol-free may have up to `MAX_ABV`, unless its label says less.
        return max_abv >= MAX_ABV
    return wine.abv <= max_abv


def find_unknown_allergens(
    wine: Wine, avoided: Collection[str]
) -> tuple[Allergen, ...]:
    """Return which of the avoided allergens a wine may contain, as far as is known."""
    return tuple(
        name for name in Allergen if name in avoided and not wine.is_known_to_lack(name)
    )


def mark_unknown_allergens(wine: Wine, avoided: Collection[str]) -> Wine:
    """Return a wine with the avoided allergens that it may contain, so that its card says so."""
    unknown = find_unknown_allergens(wine, avoided)
    if not unknown:
        return wine
    return wine.model_copy(update={"unknown_allergens": unknown})


def restrict_query(query: WineQuery, person: Person) -> WineQuery:
    """Return a search for wines that a person may be shown, which ranks those they like first."""
    filters = _preference_filters(query, person.facts)
    hates = get_tastes("hate", person.facts)
    # Filters exclude "sweet" or "red", but not their combination. So get more wines, and
    # `may_be_shown` removes wines of such tastes, or with values that were cut off by `MAX_VALUES`.
    if hates:
        filters["limit"] = MAX_VALUES
    one_filter_hates = [taste for taste in hates if len(taste) == 1]
    hates_oak = any(OAKY in taste.get("text", ()) for taste in one_filter_hates)
    if query.oak is None and hates_oak:
        filters["oak"] = False
    excluded = {name: _values_of(name, one_filter_hates) for name in EXCLUDABLE_FILTERS}
    excluded["allergens"] = sorted(person.safety.allergies - UNDECLARED_ALLERGENS)
    for name, values in excluded.items():
        in_query = getattr(query, f"without_{name}")
        distinct = dict.fromkeys([*in_query, *values])
        filters[f"without_{name}"] = tuple(distinct)[:MAX_VALUES]
    narrowed_query = WineQuery.model_validate(dict(query) | filters)
    if person.safety.forbids_alcohol:
        return _restrict_to_alcohol_free(narrowed_query, MAX_ABV_IF_FORBIDDEN)
    return narrowed_query


def _preference_filters(query: WineQuery, facts: Sequence[Fact]) -> dict[str, Any]:
    """Return filters for a person's budget and likes, where the search has no such filter."""
    filters: dict[str, Any] = {}
    if query.name:
        return filters  # the person asks for this wine, whatever they usually like and spend
    if all(limit is None for limit in query.price_limits):
        filters |= _budget_filters(facts)
    used = {name for name in SOFT_FILTERS if getattr(query, name)}
    # Likes must not disturb an order by price or a search by text only.
    if query.order != "match" or (query.text and not used):
        return filters
    if query.foods or query.colours:
        used.add("styles")  # a liked style could contradict the food or colour
    likes = [*get_tastes("like", facts), *get_tastes("rated", facts)]
    liked: dict[str, Sequence[str]] = {}
    for name in SOFT_FILTERS:
        values = _values_of(name, likes)
        if values and name not in used:
            liked[name] = values
    return filters | liked | {"soft": (*query.soft, *liked)}


def _budget_filters(facts: Sequence[Fact]) -> dict[str, Any]:
    """Return the price limits of a person's budget, or none."""
    for fact in facts:
        if fact.kind == "budget":
            return parse_budget(fact.value)._asdict()
    return {}


def _values_of(name: str, tastes: Iterable[Taste]) -> Sequence[str]:
    """Return the values that tastes have for a filter, without duplicates."""
    values: list[str] = []
    for taste in tastes:
        values += taste.get(name, ())
    return tuple(dict.fromkeys(values))[:MAX_VALUES]


def _restrict_to_alcohol_free(query: WineQuery, max_abv: float) -> WineQuery:
    """Return a search for alcohol-free wines, whose soft filters only affect the order."""
    soft = [name for name in SOFT_FILTERS if not name.endswith("_abv")]
    update = {
        "alcohol_free": True,
        "without_styles": (),
        "soft": tuple(soft),
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
    narrowed_query = restrict_query(query, person)
    result = await _search_for(person, catalogue, narrowed_query)
    without_budget = tuple(fact for fact in person.facts if fact.kind != "budget")
    if not result.wines and without_budget != person.facts:
        person_without_budget = replace(person, facts=without_budget)
        unlimited_query = restrict_query(query, person_without_budget)
        result = await _search_for(person, catalogue, unlimited_query)
    result = _limit_to_query(result, query)
    asks_for_alcohol_free = query.alcohol_free or Style.ALCOHOL_FREE in query.styles
    if not person.safety.prefers_alcohol_free or query.like or asks_for_alcohol_free:
        return result
    count = MAX_OFFERED_FIRST
    if not person.safety.concerns:
        count = MAX_OFFERED_FIRST_IF_LIKELY
    alcohol_free_query = _restrict_to_alcohol_free(narrowed_query, MAX_ABV)
    alcohol_free = await _search_for(person, catalogue, alcohol_free_query)
    wines_by_id: dict[str, Wine] = {}
    for wine in (*alcohol_free.wines[:count], *result.wines):
        wines_by_id.setdefault(wine.id, wine)
    wines = tuple(wines_by_id.values())[: query.limit]
    update = {"wines": wines, "total": max(result.total, len(wines))}
    return result.model_copy(update=update)


async def _search_for(
    person: Person, catalogue: Catalogue, narrowed_query: WineQuery
) -> WineSearchResult:
    """Return the result of a search without the wines that a person may not be shown."""
    result = await catalogue.search(narrowed_query)
    avoided = narrowed_query.without_allergens
    wines = _list_allowed(result.wines, person, avoided)
    hidden_count = len(result.wines) - len(wines)
    update = {
        "wines": wines,
        "total": result.total - hidden_count,
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
    """Return a result within the limit of a query, which names only the filters of the query.

    Filters that were added for a person are not named.
    """
    # The price is named in any case, because the usual budget may have limited it.
    shown_names = {*query.model_dump(exclude_defaults=True), "price"}
    unmet: dict[str, tuple[str, ...]] = {}
    for wine_id, names in result.unmet_filters.items():
        own_names = tuple(name for name in names if name in shown_names)
        if own_names:
            unmet[wine_id] = own_names
    relax = result.relax
    update = {
        "wines": result.wines[: query.limit],
        "unmet_filters": unmet,
        "relax": {name: relax[name] for name in relax if name in shown_names},
    }
    return result.model_copy(update=update)


async def get_wines(
    catalogue: Catalogue, wine_ids: Sequence[str], person: Person
) -> list[Wine]:
    """Return the wines with these ids that a person may be shown."""
    wines = await catalogue.get(wine_ids)
    return list(_list_allowed(wines, person, person.safety.allergies))


def guest_rules(person: Person) -> str:
    """Return the lines of the prompt about this person."""
    safety = person.safety
    rules: list[str] = []
    if safety.forbids_alcohol:
        rules.append(NO_ALCOHOL)
    elif safety.prefers_alcohol_free:
        rules.append(CAUTIOUS_RULE)
    if safety.allergies:
        rules.append(ALLERGY_RULE.format(names=", ".join(sorted(safety.allergies))))
        if person.user_id:
            rules.append(STORED_ALLERGY_RULE)
    known = _describe_facts(person.facts)
    if known:
        rules.append(KNOWN_FACTS_RULE.format(known=known))
    count = sum(item.count for item in person.bottles)
    if person.user_id and count:
        rules.append(OWNED_RULE.format(count=count))
    elif person.user_id:
        rules.append(NOTHING_OWNED_RULE)
    return "\n".join(f"- {rule}" for rule in rules or [UNKNOWN_GUEST_RULE])


def _describe_facts(facts: Iterable[Fact]) -> str:
    """Return the facts about a person for a model: `likes: oaky, red; usually spends: 40 EUR`."""
    known: dict[str, list[str]] = {name: [] for name in NAMES_OF_FACTS.values()}
    for fact in facts:
        text = fact.original_text
        if fact.kind == "budget":
            text = fact.value
        elif fact.kind == "rated":
            (values,) = parse_taste(fact.value).values()  # a rated taste has one filter
            text = " ".join(values)
        if fact.kind in NAMES_OF_FACTS:
            known[NAMES_OF_FACTS[fact.kind]].append(text)
    parts = [f"{name}: {', '.join(texts)}" for name, texts in known.items() if texts]
    return "; ".join(parts)
