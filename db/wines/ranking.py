"""The order of the wines of a search, and variety among those that are equally good.

A query can put some wines before all others: wines in stock, wines with a name or an offer that it
asks for, or wines that say that they are vegan. Apart from this, wines are ranked by the following,
in this order:

1. The points for soft filters.
2. How many words of the text are in the wine's name, producer or origin. Then, unless the query
   limits prices, wines that are expensive compared with the others come later.
3. The points for requested foods that suit a wine, and for the place of a requested grape in its
   blend. Pairings are data, so they count more than words.
4. How well the text matches (BM25).
5. If the query asks for wines without alcohol, their strength. If it asks for a price, or for wines
   like another one, how far a wine is from it.
6. Variety: a producer, a region and a price band are repeated as little as possible, and
   alcohol-free wines come last.
7. A shuffle by wine and query. An alphabetical order would prefer a few producers.

If the order is `cheapest` or `dearest`, the price in euros comes first, and wines without a price
come last. The text then only puts wines that match it before the others.

Every rank is a number, and the lowest is the best. A rank that counts something good is therefore
negative. A rank may also be a test: wines for which it is false (0) come before those for which it
is true (1).
"""

import heapq
import zlib
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter
from statistics import median
from typing import Final, NamedTuple

from agent.language import stop_words
from agent.query_reading.request import SCALES
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import (
    Colour,
    Food,
    Style,
    Sweetness,
    find_canonical_name,
    has_phrase,
    list_known_names,
    normalize,
    to_euros,
)
from agent.sommelier.wine import VEGAN_WORD, Wine
from agent.text import split_words
from db.wines.entries import Entry
from db.wines.filters import FIELDS_BY_FILTER, Filters, Predicate
from db.wines.likeness import distance_from

Key = Callable[[Entry], float]
"""A number by which wines are ordered, the lowest first."""
Ranks = tuple[float, ...]
"""The values of several keys for a wine, the most important first."""
Trait = tuple[str, object]
"""A trait of a wine: its kind and its value. So a producer and a place of one name stay apart."""
RankedEntry = tuple[Ranks, float, Entry]
"""A wine behind its first ranks and its points, which are those of a `Candidate`."""

CANDIDATES: Final = 96
"""The number of best wines from which a varied selection is chosen."""
MAX_WORDS: Final = 32
"""The number of words of a text that are searched for."""
FILLER_WORDS: Final = frozenset(
    "something anything wine wines bottle bottles please want like would could find show give need "
    "good nice best great get got let us".split()
)
"""Words that say nothing about the wanted wine, in addition to stop words."""
POINTS: Final[Mapping[str, int]] = {
    "foods": 60,
    "styles": 60,
    "colours": 50,
    "sweetness": 40,
    "grapes": 40,
    "regions": 40,
    "countries": 30,
    "bodies": 20,
    "tannins": 20,
    "acidities": 20,
    "min_abv": 20,
    "max_abv": 20,
}
"""The points of a wine that meets a soft filter."""
EXTRA_FOOD_POINTS: Final = 10
"""The points for each further requested food that suits a wine."""
PRICE_BANDS_EUR: Final = (12, 20, 35, 70, 150)
"""The prices at which one band of prices ends and the next one begins."""
EXPENSIVE_FACTOR: Final = 2
"""Wines above this multiple of the median price are expensive."""
SHUFFLE_PRIME: Final = 2**31 - 1
"""The modulus of the shuffle. It is a prime, so that no factor maps many wines to one number."""
UNSHUFFLED_FIELDS: Final = {
    "text",
    "not_ids",
    "order",
    "limit",
    "soft",
    "vegan",
    "name",
    "offer",
}
"""The fields of a query that do not change the shuffle."""
FILTER_WORDS: Final = frozenset(
    word
    for values in (Style, Colour, Sweetness, Food)
    for value in values
    for word in split_words(value)
)
"""Words such as "red" for which there is a filter. They do not name a wine."""


class Candidate(NamedTuple):
    """A wine that has passed the filters, with its ranks.

    `first` has the ranks that come before everything else, such as stock, a name or a price.
    `points` are the points of the wine as a negative number. `others` has the ranks that count
    last, such as how well the text matches.
    """

    first: Ranks
    points: float
    others: Ranks
    shuffle: int
    entry: Entry

    @property
    def ranks(self) -> Ranks:
        """Return all ranks, the most important first."""
        return (*self.first, self.points, *self.others)


def extract_words(text: str) -> tuple[str, ...]:
    """Return the normalised words of `text`, each once, without stop words and filler words."""
    ignored = stop_words() | FILLER_WORDS
    words: list[str] = []
    for word in split_words(text):
        if word not in ignored:
            words.append(word)
    unique_words = tuple(dict.fromkeys(words))
    return unique_words[:MAX_WORDS]


def find_best(
    entries: Sequence[Entry],
    query: WineQuery,
    soft: Filters,
    matches: Mapping[int, float],
    like: Wine | None,
) -> list[Candidate]:
    """Return the best candidates, the best one first.

    `entries` have passed the hard filters, and get points for the filters in `soft`. `matches` has
    the numbers of the wines that match the text, each with how well it matches. `like` is the wine
    to which the query asks for similar ones.
    """
    # Without words to search for, the text does not order the wines.
    text_matches = matches if extract_words(query.text) else None
    first_keys = list(_first_keys(query, text_matches))
    point_keys = list(_point_keys(query, soft))
    other_keys = list(_other_keys(query, text_matches, like))
    seed = query.model_dump_json(exclude=UNSHUFFLED_FIELDS)
    checksum = zlib.crc32(seed.encode())
    # Another query gives another factor, and so another shuffle. The factor has at most 30 bits, so
    # it is less than the prime, and it is odd, so it is never 0.
    factor = (checksum >> 2) | 1
    candidates: list[Candidate] = []
    for first, points, entry in _find_front(entries, first_keys, point_keys):
        others = tuple([key(entry) for key in other_keys])
        shuffle = (entry.shuffle * factor) % SHUFFLE_PRIME
        candidate = Candidate(first, points, others, shuffle, entry)
        candidates.append(candidate)
    return heapq.nsmallest(CANDIDATES, candidates, key=_order)


def _find_front(
    entries: Sequence[Entry],
    first_keys: Sequence[Key],
    point_keys: Sequence[Key],
) -> list[RankedEntry]:
    """Return the wines that may be among the best, by their first ranks and their points.

    The other ranks take longer to find, so they are found only for these wines.
    """
    ranked: list[RankedEntry] = []
    for entry in entries:
        first = tuple([key(entry) for key in first_keys])
        # Negative, because the lowest rank is the best.
        points = -sum([key(entry) for key in point_keys])
        ranked.append((first, points, entry))
    if len(ranked) <= CANDIDATES:
        return ranked
    all_ranks = [(first, points) for first, points, _ in ranked]
    best_ranks = heapq.nsmallest(CANDIDATES, all_ranks)
    last_of_best = best_ranks[-1]
    # There may be more than `CANDIDATES` of these, because wines can be equal to the last one.
    front: list[RankedEntry] = []
    for first, points, entry in ranked:
        if (first, points) <= last_of_best:
            front.append((first, points, entry))
    return front


def _order(candidate: Candidate) -> tuple[object, ...]:
    """Return the sort key of a candidate. The key ends with the id, so no two keys are equal."""
    return (
        candidate.first,
        candidate.points,
        candidate.others,
        candidate.shuffle,
        candidate.entry.wine.id,
    )


def _first_keys(query: WineQuery, matches: Container[int] | None) -> Iterator[Key]:
    """Yield the keys that come before all others, the most important first."""
    if query.name and query.offer is not None:
        # A search for an offer of another kind puts that offer first.
        yield lambda entry: entry.wine.offers[0].kind != query.offer
    if query.name or not query.in_stock_only:
        yield lambda entry: not entry.in_stock
    if query.name:
        yield _named_words_key(query.name)
    if query.order != "match":
        yield from _price_keys(query, matches)
    if query.vegan:
        yield lambda entry: not has_phrase(entry.text, (VEGAN_WORD,))


def _other_keys(
    query: WineQuery,
    matches: Mapping[int, float] | None,
    like: Wine | None,
) -> Iterator[Key]:
    """Yield the keys that order wines with the same points, the most important first."""
    if matches is not None:
        yield lambda entry: -matches.get(entry.number, 0.0)
    if query.alcohol_free:
        yield lambda entry: entry.wine.abv or 0.0
    if query.around is not None:
        around = to_euros(query.around, query.currency)
        # The filter of prices lets only wines with a price pass. The 0.0 is for the type checker.
        yield lambda entry: abs((entry.price or 0.0) - around)
    if like:
        yield distance_from(like)


def _price_keys(query: WineQuery, matches: Container[int] | None) -> Iterator[Key]:
    """Yield the keys that order wines by price.

    Wines without a price come last. Among the others, those that match the text come first.
    """
    sign = 1 if query.order == "cheapest" else -1
    yield lambda entry: entry.price is None
    if matches is not None:
        yield lambda entry: entry.number not in matches
    yield lambda entry: sign * (entry.price or 0.0)


def _named_words_key(name: str) -> Key:
    """Return the key that counts how many words of `name` a wine has in its name or producer.

    The more words, the better the rank. Words in a place or a grape are not counted.
    """
    words = frozenset(split_words(name))

    def rank(entry: Entry) -> int:
        wine_words = split_words(f"{entry.name} {entry.wine.producer}")
        shared = words.intersection(wine_words)
        return -len(shared)

    return rank


def _point_keys(query: WineQuery, soft: Filters) -> Iterator[Key]:
    """Yield the keys that give points for soft filters.

    Foods and grapes get points even if they are hard filters.
    """
    for name, is_met in soft.items():
        if name in SCALES:
            yield _scale_points(name, getattr(query, name))
        elif name not in ("foods", "grapes"):
            yield _points_if(is_met, POINTS[name])
    if query.foods:
        foods = frozenset(query.foods)
        yield _food_points(foods)
    if query.grapes:
        grapes = {find_canonical_name("grapes", name) for name in query.grapes}
        yield _grape_points(grapes)


def _points_if(is_met: Predicate, points: int) -> Key:
    """Return the key that gives points to wines that meet a filter."""
    return lambda entry: points if is_met(entry) else 0


def _scale_points(name: str, requested: Sequence[str]) -> Key:
    """Return the key that gives points for a requested value of a scale, such as "full".

    A value next to a requested one gets half of the points.
    """
    field = FIELDS_BY_FILTER[name]
    scale = SCALES[name]
    requested_indices = [scale.index(value) for value in requested]
    points_by_value: dict[str | None, int] = {}
    for index, value in enumerate(scale):
        steps = min([abs(index - other) for other in requested_indices])
        if steps == 0:
            points_by_value[value] = POINTS[name]
        elif steps == 1:
            points_by_value[value] = POINTS[name] // 2

    def points(entry: Entry) -> int:
        value = getattr(entry.wine, field)
        return points_by_value.get(value, 0)

    return points


def _food_points(foods: frozenset[Food]) -> Key:
    """Return the key that gives points to wines that suit requested foods.

    The first food gives most of the points, and each further one gives a few.
    """

    def points(entry: Entry) -> int:
        suited = foods.intersection(entry.wine.foods)
        if not suited:
            return 0
        further_count = len(suited) - 1
        return POINTS["foods"] + EXTRA_FOOD_POINTS * further_count

    return points


def _grape_points(grapes: set[str]) -> Key:
    """Return the key that gives points to wines with a requested grape.

    If the grape is not the main one of the wine, which is its first, the wine gets half of them.
    """

    def points(entry: Entry) -> int:
        if grapes.isdisjoint(entry.grapes):
            return 0
        if entry.grapes[0] in grapes:
            return POINTS["grapes"]
        return POINTS["grapes"] // 2

    return points


def group_equals(
    candidates: Sequence[Candidate], query: WineQuery
) -> Sequence[Sequence[Entry]]:
    """Return the wines in groups that are equally good, the best group first.

    The candidates are in the order of their ranks. Unless the query orders them by a price, a name
    or another wine, wines named in the text come first and expensive wines last.
    """
    is_ordered_by_query = query.order != "match" or query.name or query.like
    if is_ordered_by_query:
        no_preference: Ranks = ()
        preferences: Sequence[Ranks] = [no_preference] * len(candidates)
    else:
        preferences = _find_preferences(candidates, query)
    with_preferences = zip(preferences, candidates, strict=True)
    groups: defaultdict[tuple[Ranks, Ranks], list[Entry]] = defaultdict(list)
    # Candidates with the same preference stay in the order of their ranks, as `sorted` is stable.
    for preference, candidate in sorted(with_preferences, key=itemgetter(0)):
        groups[preference, candidate.ranks].append(candidate.entry)
    return list(groups.values())


def _find_preferences(
    candidates: Sequence[Candidate], query: WineQuery
) -> Sequence[Ranks]:
    """Return ranks of each candidate that consider whether it is named and whether it is expensive.

    A candidate is named if the text has words of its name, producer or origin. Its first ranks and
    its points for soft filters count more than both.
    """
    naming_words = _find_naming_words(query.text)
    max_usual_price = _find_max_usual_price(candidates, query)
    has_soft_filter = any(getattr(query, name) for name in query.soft)
    preferences: list[Ranks] = []
    for candidate in candidates:
        entry = candidate.entry
        points = 0.0
        if has_soft_filter:
            # Otherwise all points are for hard filters, which count less than the name.
            points = candidate.points
        named_count = 0
        if naming_words:
            words = split_words(f"{entry.name} {entry.wine.producer} {entry.origin}")
            named = naming_words.intersection(words)
            named_count = len(named)
        is_expensive = entry.price is not None and entry.price > max_usual_price
        preference = (*candidate.first, points, -named_count, is_expensive)
        preferences.append(preference)
    return preferences


def _find_max_usual_price(candidates: Sequence[Candidate], query: WineQuery) -> float:
    """Return the price above which wines are expensive compared with the other candidates.

    If the query limits prices, or if no price is known, return infinity: no wine is expensive.
    """
    has_limit = any(limit is not None for limit in query.price_limits)
    prices: list[float] = []
    for candidate in candidates:
        price = candidate.entry.price
        if price is not None:
            prices.append(price)
    if has_limit or not prices:
        return inf
    return EXPENSIVE_FACTOR * median(prices)


def _find_naming_words(text: str) -> set[str]:
    """Return the words of a text that may belong to a wine's name, producer or origin.

    Grapes and words of filters are left out, because they do not name a wine.
    """
    # With spaces around the text, its first and last words are found like the others.
    text = f" {normalize(text)} "
    # The longest names come first, so that "pinot" leaves nothing of "pinot noir" behind.
    longest_first = sorted(list_known_names("grapes"), key=len, reverse=True)
    for name in longest_first:
        text = text.replace(f" {name} ", " ")
    words = extract_words(text)
    return set(words) - FILTER_WORDS


def choose_varied(groups: Sequence[Sequence[Entry]], limit: int) -> list[Entry]:
    """Return at most `limit` wines from the best groups.

    Within a group, prefer wines whose producer, place and price band were chosen least often.
    """
    chosen: list[Entry] = []
    trait_counts: Counter[Trait] = Counter()

    def count_repeats(entry: Entry) -> tuple[int, ...]:
        traits = _list_traits(entry)
        producer, place, band = [trait_counts[trait] for trait in traits]
        # A wine without alcohol is rarely wanted, so it comes last among equals.
        is_alcohol_free = entry.wine.style is Style.ALCOHOL_FREE
        # Place and price band count the same. If their sums are equal, the band decides.
        return producer, place + band, band, is_alcohol_free

    for group in groups:
        remaining = list(group)
        while remaining and len(chosen) < limit:
            entry = min(remaining, key=count_repeats)
            remaining.remove(entry)
            chosen.append(entry)
            traits = _list_traits(entry)
            trait_counts.update(traits)
        if len(chosen) == limit:
            break
    return chosen


def _list_traits(entry: Entry) -> Sequence[Trait]:
    """Return the traits of a wine that should differ between the chosen wines."""
    price_band: int | None = None
    if entry.price is not None:
        price_band = bisect(PRICE_BANDS_EUR, entry.price)
    return [
        ("producer", entry.wine.producer),
        ("place", entry.origin),
        ("band", price_band),
    ]
