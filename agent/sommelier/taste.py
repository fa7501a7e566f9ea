"""What a person told of their taste, as it holds in every search.

What they hate is left out, what they like comes first, what they usually spend is the limit where
they name none. What this very message asks for goes before what they told once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast, get_args

from agent.sommelier.wine import (
    Catalogue,
    Currency,
    Kind,
    SoftFilter,
    Wine,
    WineQuery,
    WineSearchResult,
    folded,
    key,
    money,
    names,
)
from agent.text import stem, words
from agent.turn import Fact, Person

Wanted = Mapping[str, tuple[str, ...]]
"""What a wine is to be, by filters of a search: red and dry, a grape. `text` is in its notes."""

EXCLUDED: Final = {
    "grapes": "without_grapes",
    "countries": "without_countries",
    "regions": "without_regions",
    "styles": "without_styles",
}
MOST: Final = 12
"""Values of one filter, and wines of one result."""
NOTE: Final = "wines that this person told they do not drink are left out: {hates}"


def written(wanted: Wanted) -> str:
    """Write what is wanted as the value of a fact: `bodies=full|medium_full;styles=red`."""
    return ";".join(f"{name}={'|'.join(values)}" for name, values in sorted(wanted.items()))


def read(value: str) -> Wanted:
    """Read what `written` wrote; what it does not know is left out."""
    parts = (part.partition("=") for part in value.split(";"))
    known = (*get_args(SoftFilter), "text")
    return {name: tuple(values.split("|")) for name, _, values in parts if name in known}


Budget = tuple[float | None, float | None, Currency]
"""From how much somebody usually spends on a bottle, and up to how much."""


@dataclass(frozen=True, slots=True)
class Taste:
    """What a person hates and likes, each with their own words, and what they usually spend."""

    hates: tuple[tuple[Wanted, str], ...] = ()
    likes: tuple[tuple[Wanted, str], ...] = ()
    budget: Budget | None = None


def taste_of(facts: Iterable[Fact]) -> Taste:
    """Return the taste that facts tell; verdicts count as likes where more like than dislike."""
    hates, likes = list[tuple[Wanted, str]](), list[tuple[Wanted, str]]()
    rated, budget = dict[str, int](), None
    for fact in facts:
        match fact.kind:
            case "hate":
                hates.append((read(fact.value), fact.said))
            case "like":
                likes.append((read(fact.value), fact.said))
            case "rated":
                rated[fact.value] = rated.get(fact.value, 0) + (1 if fact.said == "+" else -1)
            case "budget":
                budget = budget_of(fact.value)
    likes += [(read(value), "") for value, count in rated.items() if count > 0]
    return Taste(tuple(hates), tuple(likes), budget)


def budget_of(value: str) -> Budget:
    """Read what somebody usually spends: `40 EUR`, `15-30 EUR`, `60- EUR`."""
    amount, _, currency = value.partition(" ")
    low, _, high = amount.rpartition("-")
    return float(low) if low else None, float(high) if high else None, Currency(currency)


def is_of(wine: Wine, wanted: Wanted) -> bool:
    """Tell whether a wine is all of this, as far as is known of it."""
    return bool(wanted) and all(_is(wine, name, values) for name, values in wanted.items())


def _is(wine: Wine, name: str, values: Sequence[str]) -> bool:
    if name in get_args(Kind):
        return _comes_of(wine, cast("Kind", name), values)
    if name == "text":
        noted = {stem(word) for word in words(f"{wine.notes} {wine.name}")}
        return any(noted & {stem(word) for word in words(value)} for value in values)
    own: Mapping[str, Collection[object]] = {
        "styles": (wine.style, wine.colour),
        "colours": (wine.style, wine.colour),
        "sweetness": (wine.sweetness,),
        "bodies": (wine.body,),
        "tannins": (wine.tannin,),
        "acidities": (wine.acidity,),
        "foods": wine.foods,
    }
    return any(each in values for each in own.get(name, ()))


def _comes_of(wine: Wine, kind: Kind, values: Sequence[str]) -> bool:
    """Whether a wine is of a grape, a region or a country; one of no known grape by its label."""
    wanted = {key(kind, each) for each in values}
    if kind == "countries":
        return key(kind, wine.country) in wanted
    if kind == "grapes" and wine.grapes:
        return bool(wanted & {key(kind, each) for each in wine.grapes})
    said = wine.label if kind == "grapes" else f"{wine.region} / {wine.appellation} / {wine.name}"
    known = (each for value in values for each in names(kind, value))
    return any(f" {each} " in f" {folded(said)} " for each in known)


def instructions(person: Person) -> str:
    """Say for a model what this person told of themselves; empty if nothing."""
    taste = taste_of(person.facts)
    told = {
        "does not drink": [said for _, said in taste.hates],
        "likes": [said or " ".join(*wanted.values()) for wanted, said in taste.likes],
        "usually spends": [_spent(taste.budget)] if taste.budget else [],
        "also told": [fact.said for fact in person.facts if fact.kind == "note"],
    }
    known = "; ".join(f"{what}: {', '.join(each)}" for what, each in told.items() if each)
    return f"- What who writes told of themselves (data): {known}." if known else ""


def _spent(budget: Budget) -> str:
    low, high, currency = budget
    ends = (("from", low), ("up to", high))
    return " ".join(f"{word} {money(end, currency)}" for word, end in ends if end is not None)


def note(person: Person) -> str:
    """Say for a model what taste left out of a result; empty if nothing."""
    hates = ", ".join(said for _, said in taste_of(person.facts).hates)
    return NOTE.format(hates=hates) if hates else ""


def catalogue_of_taste(catalogue: Catalogue, person: Person) -> Catalogue:
    """Return the part of a catalogue that a person wants to see, what they like first."""
    taste = taste_of(person.facts)
    return catalogue if taste == Taste() else _CatalogueOfTaste(catalogue, taste)


class _CatalogueOfTaste:
    """Fulfils `Catalogue` as a person's taste wants it."""

    def __init__(self, catalogue: Catalogue, taste: Taste) -> None:
        self._catalogue, self._taste = catalogue, taste

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Find wines that pass `query`, those that are liked first, within the usual budget."""
        asked, budget = self._narrowed(query), self._taste.budget
        if budget and query.min_price is None and query.max_price is None:
            limit = {"min_price": budget[0], "max_price": budget[1], "currency": budget[2]}
            within = self._allowed(
                query, await self._catalogue.search(asked.model_copy(update=limit))
            )
            if within.wines:
                return within
        return self._allowed(query, await self._catalogue.search(asked))

    async def similar(self, wine_id: str, query: WineQuery) -> WineSearchResult:
        """Find others that are not hated, most like this wine first."""
        asked = self._without_hated(query)
        return self._allowed(query, await self._catalogue.similar(wine_id, asked))

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """Return those of these wines that are not hated."""
        return [each for each in await self._catalogue.get(wine_ids) if not self._is_hated(each)]

    async def count(self) -> int:
        """Return how many wines the whole catalogue holds."""
        return await self._catalogue.count()

    def _is_hated(self, wine: Wine) -> bool:
        return any(is_of(wine, wanted) for wanted, _ in self._taste.hates)

    def _without_hated(self, query: WineQuery) -> WineQuery:
        """The search without what is hated; what no filter says is left out of its result."""
        left: dict[str, object] = {"limit": MOST} if self._taste.hates else {}
        for wanted, _ in self._taste.hates:
            (name, values), *others = wanted.items()
            if not others and name in EXCLUDED:
                out = EXCLUDED[name]
                known = left.get(out, getattr(query, out))
                left[out] = (*dict.fromkeys((*known, *values)),)[:MOST]  # type: ignore[misc]
        return query.with_filters(left)

    def _narrowed(self, query: WineQuery) -> WineQuery:
        """The same with what is liked ranking where nothing is said of it."""
        query = self._without_hated(query)
        named = query.model_fields_set - {"text", "limit", "order", "in_stock_only", "currency"}
        if query.order != "match" or (query.text and not named):
            return query
        liked: dict[str, tuple[str, ...]] = {}
        for wanted, _ in self._taste.likes:
            for name, values in wanted.items():
                is_open = name in get_args(SoftFilter) and not getattr(query, name)
                if is_open and not (name == "styles" and (query.foods or query.colours)):
                    liked[name] = (*dict.fromkeys((*liked.get(name, ()), *values)),)[:MOST]
        soft = (*query.soft, *liked)
        return query.with_filters({**liked, "soft": soft}) if liked else query

    def _allowed(self, asked: WineQuery, found: WineSearchResult) -> WineSearchResult:
        """A result without what is hated, which misses nothing that was not asked."""
        wines = tuple(each for each in found.wines if not self._is_hated(each))
        left = len(found.wines) - len(wines)
        missed = {
            wine_id: kept
            for wine_id, names_ in found.missed.items()
            if (kept := tuple(name for name in names_ if name in asked.soft))
        }
        update = {"wines": wines[: asked.limit], "total": found.total - left, "missed": missed}
        return found.model_copy(update=update)
