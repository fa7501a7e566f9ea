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
from agent.query_reading.aromas import find_aromas, is_aroma
from agent.safety.state import SafetyState
from agent.sommelier.queries import SOFT_FILTERS, Catalogue, WineQuery, WineSearchResult
from agent.sommelier.vocabulary import (
    OAKY,
    Allergen,
    Currency,
    NameKind,
    Style,
    find_canonical_name,
    list_synonyms,
    normalize,
    speaks_of_oak,
)
from agent.sommelier.wine import Wine
from agent.text import split_words
from agent.turn import Fact, Person, get_person

MAX_ABV: Final = 0.5
"""The strongest wine that counts as alcohol-free, in % vol."""
MAX_ABV_IF_FORBIDDEN: Final = 0.05
"""The strongest wine for a person who must not have alcohol, in % vol."""
MAX_OFFERED_FIRST: Final = 3
"""The number of alcohol-free wines that come first for a person who had better not drink."""
MAX_OFFERED_FIRST_IF_LIKELY: Final = 1
"""The number of alcohol-free wines that come first if a person only probably should not drink."""
KIND_FILTERS: Final = frozenset({"styles", "colours"})
"""The filters that say which kind of wine is wanted, such as a red."""
MAX_VALUES: Final = 12
"""The most values of a filter, and the most wines of a result, as `WineQuery` allows."""
EXCLUDABLE_FILTERS: Final = ("grapes", "countries", "regions", "styles")
"""The filters that have a counterpart such as `without_grapes`, which excludes."""
UNDECLARED_ALLERGENS: Final = frozenset({"grapes"})
"""The allergens that labels do not declare, so that no filter can exclude them."""

NO_ALCOHOL_RULE: Final = (
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
    parts: list[str] = []
    for name in sorted(taste):
        values = "|".join(taste[name])
        parts.append(f"{name}={values}")
    return ";".join(parts)


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
    """Return the tastes of a person: what they never drink, what they like, or rated well."""
    return [parse_taste(fact.value) for fact in facts if fact.kind == kind]


class Budget(NamedTuple):
    """The lowest and highest price that a person pays. A limit that is not set is None."""

    min_price: float | None
    max_price: float | None
    currency: Currency


def parse_budget(value: str) -> Budget:
    """Return the budget in the value of a fact.

    The value is `40 EUR` (at most 40), `15-30 EUR`, or `60- EUR` (at least 60).
    """
    amount, _, currency = value.partition(" ")
    low, _, high = amount.rpartition("-")
    min_price = float(low) if low else None
    max_price = float(high) if high else None
    return Budget(min_price, max_price, Currency(currency))


def matches(wine: Wine, taste: Taste) -> bool:
    """Return whether the known facts of a wine match every filter of a taste.

    An empty taste matches no wine.
    """
    if not taste:
        return False
    for name, values in taste.items():
        if not _has_value(wine, name, values):
            return False
    return True


def _has_value(
    wine: Wine,
    name: str,
    values: Sequence[str],
) -> bool:
    """Return whether a wine is known to have one of the values of a filter."""
    if name in get_args(NameKind):
        return _has_grape_or_origin(wine, cast("NameKind", name), values)
    text = f"{wine.notes} {wine.name}"
    if OAKY in values:
        return speaks_of_oak(f" {normalize(text)} ")
    if name == "text":
        return _has_taste(wine, values)
    style_or_colour = {wine.style, wine.colour}  # "red" may be either
    values_of_wine: Mapping[str, set[Any]] = {
        "styles": style_or_colour,
        "colours": style_or_colour,
        "sweetness": {wine.sweetness},
        "bodies": {wine.body},
        "tannins": {wine.tannin},
        "acidities": {wine.acidity},
        "foods": set(wine.foods),
    }
    if name not in values_of_wine:
        return False
    return not values_of_wine[name].isdisjoint(values)


def _has_taste(wine: Wine, tastes: Sequence[str]) -> bool:
    """Return whether a wine has one of some tastes: an aroma, or a word of its notes or name."""
    aromas: set[str] = set()
    words: list[str] = []
    for taste in tastes:
        if is_aroma(taste):
            aromas.add(taste)
        else:
            words.append(taste)
    if aromas:
        known_aromas = find_aromas(wine.notes, wine.notes_language)
        if not aromas.isdisjoint(known_aromas):
            return True
    wine_stems = _list_stems(f"{wine.notes} {wine.name}")
    wanted_stems = _list_stems(" ".join(words))
    return not wine_stems.isdisjoint(wanted_stems)


def _list_stems(text: str) -> set[str]:
    return {stem(word) for word in split_words(text)}


def _has_grape_or_origin(
    wine: Wine,
    kind: NameKind,
    names: Sequence[str],
) -> bool:
    """Return whether a wine has one of these grapes, countries or regions.

    If the grapes of the wine are unknown, the names are looked for on its label.
    """
    if kind == "countries":
        return _share_name(kind, names, [wine.country])
    if kind == "grapes" and wine.grapes:
        return _share_name(kind, names, wine.grapes)
    text = wine.label
    if kind == "regions":
        text = f"{wine.region} / {wine.appellation} / {wine.name}"
    padded_text = f" {normalize(text)} "
    for name in names:
        for variant in list_synonyms(kind, name):
            # The spaces keep a name from being found within a word.
            if f" {variant} " in padded_text:
                return True
    return False


def _share_name(
    kind: NameKind,
    names: Sequence[str],
    others: Sequence[str],
) -> bool:
    """Return whether one of the names is a synonym of one of the others."""
    canonical_names = {find_canonical_name(kind, name) for name in names}
    for other in others:
        if find_canonical_name(kind, other) in canonical_names:
            return True
    return False


def get_safety_state(run: Run) -> SafetyState:
    """Return the concerns and allergies of the user of a run."""
    return get_person(run).safety


def may_be_shown(wine: Wine, person: Person) -> bool:
    """Return whether a person may drink a wine and has not said that they never drink it.

    Wine without alcohol is not for minors either.
    """
    safety = person.safety
    if safety.is_under_age:
        return False
    if "grapes" in safety.allergies:
        return False  # every wine is made of grapes
    if safety.allergies.intersection(wine.allergens):
        return False
    if safety.forbids_alcohol and not is_without_alcohol(wine, MAX_ABV_IF_FORBIDDEN):
        return False
    hated_tastes = get_tastes("hate", person.facts)
    return not any(matches(wine, taste) for taste in hated_tastes)


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
    """Return the avoided allergens of which it is not known that a wine is free of them."""
    unknown: list[Allergen] = []
    for allergen in Allergen:
        if allergen in avoided and not wine.is_known_to_lack(allergen):
            unknown.append(allergen)
    return tuple(unknown)


def should_warn_of_alcohol(wine: Wine, person: Person) -> bool:
    """Return whether the card of a wine must tell a person that it contains alcohol."""
    return person.safety.marks_alcohol and not is_without_alcohol(wine)


def mark_wine(wine: Wine, person: Person, avoided: Collection[str]) -> Wine:
    """Return a wine with what its card must say to a person.

    This is the avoided allergens that it may contain, and that it has alcohol.
    """
    update: dict[str, Any] = {}
    unknown = find_unknown_allergens(wine, avoided)
    if unknown:
        update["unknown_allergens"] = unknown
    if should_warn_of_alcohol(wine, person):
        update["warns_of_alcohol"] = True
    if not update:
        return wine
    return wine.model_copy(update=update)


def restrict_query(query: WineQuery, person: Person) -> WineQuery:
    """Return a search for wines that a person may be shown, which ranks those they like first."""
    filters = _preference_filters(query, person.facts)
    hates = get_tastes("hate", person.facts)
    # Filters exclude "sweet" or "red", but not their combination. So get more wines, and
    # `may_be_shown` removes wines of such tastes, or with values that were cut off by `MAX_VALUES`.
    if hates:
        filters["limit"] = MAX_VALUES
    simple_hates = [taste for taste in hates if len(taste) == 1]
    if query.oak is None:
        for taste in simple_hates:
            if OAKY in taste.get("text", ()):
                filters["oak"] = False
    for name in EXCLUDABLE_FILTERS:
        hated_values = _values_of(name, simple_hates)
        filters[f"without_{name}"] = _add_values(query, f"without_{name}", hated_values)
    allergens = sorted(person.safety.allergies - UNDECLARED_ALLERGENS)
    filters["without_allergens"] = _add_values(query, "without_allergens", allergens)
    restricted_query = WineQuery.model_validate(dict(query) | filters)
    if person.safety.forbids_alcohol:
        return _restrict_to_alcohol_free(restricted_query, MAX_ABV_IF_FORBIDDEN)
    return restricted_query


def _add_values(
    query: WineQuery,
    name: str,
    values: Sequence[str],
) -> tuple[str, ...]:
    """Return the values of a filter of a query, and further ones."""
    own_values = getattr(query, name)
    distinct = dict.fromkeys([*own_values, *values])
    return tuple(distinct)[:MAX_VALUES]


def _preference_filters(query: WineQuery, facts: Sequence[Fact]) -> dict[str, Any]:
    """Return filters for a person's budget and likes, where the search has no such filter."""
    filters: dict[str, Any] = {}
    if query.name:
        return filters  # the person asks for this wine, whatever they usually like and spend
    has_price_limit = any(limit is not None for limit in query.price_limits)
    if not has_price_limit:
        filters |= _budget_filters(facts)
    used = {name for name in SOFT_FILTERS if getattr(query, name)}
    # Likes must not disturb an order by price or a search by text only.
    is_by_text_only = query.text and not used
    if query.order != "match" or is_by_text_only:
        return filters
    if query.foods or query.colours:
        used.add("styles")  # a liked style could contradict the food or colour
    likes = get_tastes("like", facts) + get_tastes("rated", facts)
    liked: dict[str, Sequence[str]] = {}
    for name in SOFT_FILTERS:
        values = _values_of(name, likes)
        if values and name not in used:
            liked[name] = values
    soft = (*query.soft, *liked)
    return {**filters, **liked, "soft": soft}


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
    distinct = tuple(dict.fromkeys(values))
    return distinct[:MAX_VALUES]


def _restrict_to_alcohol_free(query: WineQuery, max_abv: float) -> WineQuery:
    """Return a search for alcohol-free wines, which are only ranked by filters that may be soft."""
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
    catalogue: Catalogue,
    query: WineQuery,
    person: Person,
) -> WineSearchResult:
    """Return the wines of a search that a person may be shown.

    If the person's usual budget excludes all wines, the search is repeated without it. For a person
    who had better not drink, alcohol-free wines come first.
    """
    restricted_query = restrict_query(query, person)
    result = await _search_as_allowed(person, catalogue, restricted_query)
    if not result.wines:
        facts = [fact for fact in person.facts if fact.kind != "budget"]
        has_budget = len(facts) < len(person.facts)
        if has_budget:
            person_without_budget = replace(person, facts=tuple(facts))
            query_without_budget = restrict_query(query, person_without_budget)
            result = await _search_as_allowed(person, catalogue, query_without_budget)
    result = _limit_to_query(result, query)
    asks_for_alcohol_free = query.alcohol_free or Style.ALCOHOL_FREE in query.styles
    if not person.safety.prefers_alcohol_free or query.like or asks_for_alcohol_free:
        return result
    alcohol_free_query = _restrict_to_alcohol_free(restricted_query, MAX_ABV)
    first = await _find_offered_first(person, catalogue, alcohol_free_query)
    first = _limit_to_query(first, query)
    return _put_first(first, result, query.limit)


async def _find_offered_first(
    person: Person,
    catalogue: Catalogue,
    alcohol_free_query: WineQuery,
) -> WineSearchResult:
    """Return the alcohol-free wines that come first for a person who had better not drink.

    Those of the kind that is wanted come before others. Once wines were shown, one of another kind
    is only added if none of the kind is left, so that wines with alcohol can follow.
    """
    count = MAX_OFFERED_FIRST
    if not person.safety.concerns:
        count = MAX_OFFERED_FIRST_IF_LIKELY
    kind_query = _make_hard(alcohol_free_query, KIND_FILTERS)
    of_kind = await _search_dish_first(person, catalogue, kind_query)
    if alcohol_free_query.not_ids:
        if of_kind.wines:
            return of_kind.model_copy(update={"wines": of_kind.wines[:count]})
        count = MAX_OFFERED_FIRST_IF_LIKELY
    of_any_kind = await _search_dish_first(person, catalogue, alcohol_free_query)
    return _put_first(of_kind, of_any_kind, count)


def _make_hard(query: WineQuery, names: Collection[str]) -> WineQuery:
    """Return a search in which these filters exclude wines."""
    soft = tuple(name for name in query.soft if name not in names)
    return query.model_copy(update={"soft": soft})


def _put_first(
    first: WineSearchResult,
    result: WineSearchResult,
    limit: int,
) -> WineSearchResult:
    """Return a result with the wines of another first, and with at most `limit` wines."""
    wines_by_id: dict[str, Wine] = {}
    for wine in (*first.wines, *result.wines):
        wines_by_id.setdefault(wine.id, wine)
    unmet_filters = {**result.unmet_filters, **first.unmet_filters}
    distinct = tuple(wines_by_id.values())
    shown = distinct[:limit]
    total = max(result.total, len(shown))
    update = {"wines": shown, "total": total, "unmet_filters": unmet_filters}
    return result.model_copy(update=update)


async def _search_as_allowed(
    person: Person,
    catalogue: Catalogue,
    restricted_query: WineQuery,
) -> WineSearchResult:
    """Return the wines of a search that a person may be shown."""
    if person.safety.forbids_alcohol:
        return await _search_dish_first(person, catalogue, restricted_query)
    return await _search_for(person, catalogue, restricted_query)


async def _search_dish_first(
    person: Person,
    catalogue: Catalogue,
    restricted_query: WineQuery,
) -> WineSearchResult:
    """Return the wines without alcohol of a search, those that suit its dish first.

    There are few such wines, so that the other filters of the search would often outweigh the dish.
    """
    result = await _search_for(person, catalogue, restricted_query)
    if not restricted_query.foods:
        return result
    query_for_dish = _make_hard(restricted_query, {"foods"})
    for_dish = await _search_for(person, catalogue, query_for_dish)
    return _put_first(for_dish, result, restricted_query.limit)


async def _search_for(
    person: Person,
    catalogue: Catalogue,
    restricted_query: WineQuery,
) -> WineSearchResult:
    """Return the result of a search without the wines that a person may not be shown."""
    result = await catalogue.search(restricted_query)
    avoided = restricted_query.without_allergens
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
    wines: Sequence[Wine],
    person: Person,
    avoided: Collection[str],
) -> tuple[Wine, ...]:
    """Return the wines that a person may be shown, marked with what they may contain."""
    allowed: list[Wine] = []
    for wine in wines:
        if may_be_shown(wine, person):
            allowed.append(mark_wine(wine, person, avoided))
    return tuple(allowed)


def _limit_to_query(result: WineSearchResult, query: WineQuery) -> WineSearchResult:
    """Return a result within the limit of a query, without filters that the query does not have.

    Such filters were added for a person.
    """
    # The price is named in any case, because the usual budget may have limited it.
    named_filters = {*query.model_dump(exclude_defaults=True), "price"}
    unmet: dict[str, tuple[str, ...]] = {}
    for wine_id, names in result.unmet_filters.items():
        named = tuple(name for name in names if name in named_filters)
        if named:
            unmet[wine_id] = named
    relax: dict[str, int] = {}
    for name, count in result.relax.items():
        if name in named_filters:
            relax[name] = count
    wines = result.wines[: query.limit]
    update = {"wines": wines, "unmet_filters": unmet, "relax": relax}
    return result.model_copy(update=update)


async def get_wines(
    catalogue: Catalogue,
    wine_ids: Sequence[str],
    person: Person,
) -> list[Wine]:
    """Return the wines with these ids that a person may be shown."""
    wines = await catalogue.get(wine_ids)
    return list(_list_allowed(wines, person, person.safety.allergies))


def guest_rules(person: Person) -> str:
    """Return the lines of the prompt about this person."""
    safety = person.safety
    rules: list[str] = []
    if safety.forbids_alcohol:
        rules.append(NO_ALCOHOL_RULE)
    elif safety.prefers_alcohol_free:
        rules.append(CAUTIOUS_RULE)
    if safety.allergies:
        names = ", ".join(sorted(safety.allergies))
        rules.append(ALLERGY_RULE.format(names=names))
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
    if not rules:
        rules.append(UNKNOWN_GUEST_RULE)
    return "\n".join(f"- {rule}" for rule in rules)


def _describe_facts(facts: Iterable[Fact]) -> str:
    """Return the facts about a person for a model: `likes: oaky, red; usually spends: 40 EUR`."""
    texts_by_name: dict[str, list[str]] = {}
    for name in NAMES_OF_FACTS.values():
        texts_by_name[name] = []
    for fact in facts:
        if fact.kind in NAMES_OF_FACTS:
            name = NAMES_OF_FACTS[fact.kind]
            texts_by_name[name].append(_describe_fact(fact))
    parts: list[str] = []
    for name, texts in texts_by_name.items():
        if texts:
            listed = ", ".join(texts)
            parts.append(f"{name}: {listed}")
    return "; ".join(parts)


def _describe_fact(fact: Fact) -> str:
    """Return a fact for a model, in the words of the user if they stated it."""
    if fact.kind == "budget":
        return fact.value
    if fact.kind == "rated":
        (values,) = parse_taste(fact.value).values()  # a rated taste has one filter
        return " ".join(values)
    return fact.original_text
