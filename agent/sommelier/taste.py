"""Read the taste of a person from the facts that are stored of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from agent.language import stem
from agent.sommelier.wine import Currency, Kind, SoftFilter, Wine, folded, key, money, names
from agent.text import words
from agent.turn import Fact

Wanted = Mapping[str, tuple[str, ...]]
"""Filters of a search that describe a wine: red and dry, a grape; `text` is in its notes."""
Budget = tuple[float | None, float | None, Currency]
"""The least and the most that somebody usually spends on a bottle."""


@dataclass(frozen=True, slots=True)
class Taste:
    """The wines that a person hates and likes, with their own words, and their usual budget."""

    hates: tuple[tuple[Wanted, str], ...] = ()
    likes: tuple[tuple[Wanted, str], ...] = ()
    budget: Budget | None = None


def written(wanted: Wanted) -> str:
    """Write filters as the value of a fact: `bodies=full|medium_full;styles=red`."""
    return ";".join(f"{name}={'|'.join(values)}" for name, values in sorted(wanted.items()))


def read(value: str) -> Wanted:
    """Read what `written` wrote; unknown filters are left out."""
    parts = (part.partition("=") for part in value.split(";"))
    known = (*get_args(SoftFilter), "text")
    return {name: tuple(values.split("|")) for name, _, values in parts if name in known}


def taste_of(facts: Iterable[Fact]) -> Taste:
    """Return the taste that facts tell; ratings count as likes where more like than dislike."""
    tastes: dict[str, list[tuple[Wanted, str]]] = {"hate": [], "like": []}
    ratings, budget = Counter[str](), None
    for fact in facts:
        if fact.kind in tastes:
            tastes[fact.kind].append((read(fact.value), fact.original_text))
        elif fact.kind == "rated":
            ratings[fact.value] += 1 if fact.original_text == "+" else -1
        elif fact.kind == "budget":
            budget = budget_of(fact.value)
    liked = ((read(value), "") for value, count in ratings.items() if count > 0)
    return Taste(tuple(tastes["hate"]), (*tastes["like"], *liked), budget)


def budget_of(value: str) -> Budget:
    """Read what somebody usually spends: `40 EUR`, `15-30 EUR`, `60- EUR`."""
    amount, _, currency = value.partition(" ")
    low, _, high = amount.rpartition("-")
    return float(low) if low else None, float(high) if high else None, Currency(currency)


def spending(budget: Budget) -> str:
    """Write a budget for a model: `from €15 up to €30`."""
    low, high, currency = budget
    ends = (("from", low), ("up to", high))
    return " ".join(f"{word} {money(end, currency)}" for word, end in ends if end is not None)


def is_of(wine: Wine, wanted: Wanted) -> bool:
    """Tell whether a wine is all of this, as far as is known of it."""
    return bool(wanted) and all(_is(wine, name, values) for name, values in wanted.items())


def _is(wine: Wine, name: str, values: Sequence[str]) -> bool:
    if name in get_args(Kind):
        return _comes_of(wine, cast("Kind", name), values)
    if name == "text":
        noted = {stem(word) for word in words(f"{wine.notes} {wine.name}")}
        return any(noted & {stem(word) for word in words(value)} for value in values)
    facts: Mapping[str, Collection[object]] = {
        "styles": (wine.style, wine.colour),
        "colours": (wine.style, wine.colour),
        "sweetness": (wine.sweetness,),
        "bodies": (wine.body,),
        "tannins": (wine.tannin,),
        "acidities": (wine.acidity,),
        "foods": wine.foods,
    }
    return any(fact in values for fact in facts.get(name, ()))


def _comes_of(wine: Wine, kind: Kind, values: Sequence[str]) -> bool:
    """Tell whether a wine is of a grape, region or country; by its label if no grape is known."""
    if kind == "countries" or (kind == "grapes" and wine.grapes):
        own = (wine.country,) if kind == "countries" else wine.grapes
        return bool({key(kind, name) for name in own} & {key(kind, value) for value in values})
    text = wine.label if kind == "grapes" else f"{wine.region} / {wine.appellation} / {wine.name}"
    known = (name for value in values for name in names(kind, value))
    return any(f" {name} " in f" {folded(text)} " for name in known)
