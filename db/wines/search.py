"""Search the wines of the catalogue in memory.

Hard filters leave wines out. Soft filters only rank them. A result with few wines says which
filters the guest could relax.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from agent.sommelier.claims import mentions_kind
from agent.sommelier.queries import WineQuery, WineSearchResult
from agent.sommelier.vocabulary import Allergen
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine
from db.wines.entries import Entry, make_entry, put_offer_first
from db.wines.filters import Filters, build_filters
from db.wines.names import NameIndex
from db.wines.ranking import choose_varied, extract_words, find_best, group_equals
from db.word_index import WordIndex

MIN_WINES: Final = 3
"""A result with fewer wines says which filters to relax."""
UNTELLING_FILTERS: Final = frozenset({"in_stock_only", "not_ids"})
"""Filters that do not say what is wanted. If a query has no others, its text must be matched."""
NAME_FILTER: Final = "name"
OFFER_FILTER: Final = "offer"
MAX_CLOSEST: Final = 3
"""How many similar wines are returned if no wine has the name that was asked for."""

Wines = tuple[Wine, ...]
Matches = Mapping[int, float]
"""The wines that match a text, by their numbers, each with how well it matches."""


class WineIndex:
    """All wines of the catalogue, and the indexes that a search needs. It does not change."""

    def __init__(self, wines: Sequence[Wine]) -> None:
        self.wines_by_id: Mapping[str, Wine] = {wine.id: wine for wine in wines}
        self._entries: list[Entry] = []
        self._words = WordIndex()
        for number, wine in enumerate(wines):
            entry = make_entry(number, wine)
            self._entries.append(entry)
            self._words.add(number, title="", headings=(), text=entry.text)
        self._words.build()
        self._names = NameIndex(self._entries)

    @property
    def names(self) -> NameIndex:
        """Return the names of the wines."""
        return self._names

    def search(self, query: WineQuery) -> WineSearchResult:
        """Return the wines that pass every hard filter of `query`, the best match first."""
        like = self.wines_by_id.get(query.like)
        if query.like and like is None:
            return WineSearchResult()
        matches = self._match_text(query.text)
        named: Collection[int] | None = None
        if query.name:
            named = self._names.find(query.name)
        narrowing = _Narrowing(query, matches, named)
        entries = self._select_entries(query, named)
        found = narrowing.find(entries)
        chosen = narrowing.choose(found, like)
        relax: Mapping[str, int] = {}
        if len(found) < MIN_WINES:
            relax = self._count_relaxed(query, narrowing, entries, len(found))
        similar: Mapping[str, Wines] = {}
        if query.name and not named:
            similar = self._find_similar(query.name, narrowing)
        return WineSearchResult(
            wines=_wines_of(chosen),
            total=len(found),
            unmet_filters=narrowing.list_unmet(chosen),
            relax=relax,
            **similar,
        )

    def _match_text(self, text: str) -> Matches | None:
        """Return the wines that match a text, or None if no word of the text says anything."""
        words = extract_words(text)
        if not words:
            return None
        return self._words.search(
            " ".join(words),
            limit=len(self._entries),
        )

    def _select_entries(
        self, query: WineQuery, named: Collection[int] | None
    ) -> list[Entry]:
        """Return the wines to search: all, or only the `named` ones if the query asks for a name.

        If the query asks for an offer, such as a glass, it is the first offer of each wine.
        """
        if named is None:
            entries = self._entries
        else:
            entries = self._entries_of(sorted(named))
        if query.like:
            entries = [entry for entry in entries if entry.wine.id != query.like]
        if query.offer is None:
            return entries
        selected: list[Entry] = []
        for entry in entries:
            offered = put_offer_first(entry, query.offer)
            if offered is not None:
                selected.append(offered)
            elif query.name:
                # A guest who asks for a wine by its name is told about it in any case.
                selected.append(entry)
        return selected

    def _count_relaxed(
        self,
        query: WineQuery,
        narrowing: "_Narrowing",
        entries: Sequence[Entry],
        found_count: int,
    ) -> dict[str, int]:
        """Return, for each filter that costs wines, how many there would be without it."""
        counts = narrowing.count_relaxed(entries)
        if query.offer is not None and not query.name:
            without_offer = narrowing.find(self._entries)
            counts[OFFER_FILTER] = len(without_offer)
        helpful: dict[str, int] = {}
        for name, count in counts.items():
            if count > found_count:
                helpful[name] = count
        return helpful

    def _find_similar(self, name: str, narrowing: "_Narrowing") -> dict[str, Wines]:
        """Return the wines that are most like a name that no wine has, as a field of a result.

        These are other vintages of the wine. If there are none, these are wines that the name
        mentions within a longer text, or else wines with a similar name. The wines pass all other
        filters.
        """
        similar_numbers = {
            "other_vintages": sorted(self._names.find_other_vintages(name)),
            "mentioned": self._names.find_mentioned(name),
            "closest": self._names.find_closest(name),
        }
        for field, numbers in similar_numbers.items():
            entries = self._entries_of(numbers)
            similar = narrowing.select_without_name(entries)
            if similar:
                in_stock_first = sorted(similar, key=lambda entry: not entry.in_stock)
                shown = in_stock_first[:MAX_CLOSEST]
                return {field: _wines_of(shown)}
        return {}

    def _entries_of(self, numbers: Iterable[int]) -> list[Entry]:
        return [self._entries[number] for number in numbers]


def _wines_of(entries: Iterable[Entry]) -> Wines:
    return tuple([entry.wine for entry in entries])


def _split_by_allergens(
    found: Sequence[Entry],
    query: WineQuery,
    soft: Filters,
) -> Sequence[Sequence[Entry]]:
    """Return the wines in groups, those first that are known to lack the allergens to avoid.

    An allergen that a list does not state may be in a wine all the same: the guest must ask. But a
    wine that meets the soft filters comes before one that does not, even if the guest must ask.
    """
    avoided = set(query.without_allergens)
    if query.vegan:
        avoided |= NON_VEGAN_ALLERGENS
    if not avoided:
        return [found]
    # Each group by whether its wines meet the soft filters, and whether they are known to lack the
    # allergens.
    groups: dict[tuple[bool, bool], list[Entry]] = {
        (True, True): [],
        (True, False): [],
        (False, True): [],
        (False, False): [],
    }
    for entry in found:
        is_suited = all(is_met(entry) for is_met in soft.values())
        is_known = all(_is_known_to_lack(entry.wine, name) for name in avoided)
        groups[is_suited, is_known].append(entry)
    return list(groups.values())


def _is_known_to_lack(wine: Wine, allergen: Allergen) -> bool:
    """Return whether a wine is known to lack an allergen.

    No wine is free of sulphites, so one without added ones comes first.
    """
    if allergen is Allergen.SULPHITES:
        return mentions_kind("unsulphured", wine.source_text)
    return wine.is_known_to_lack(allergen)


class _Narrowing:
    """The filters of a query, and the numbers of the wines that match its text and its name.

    `matches` is None if the query has no text. `named` is None if the query has no name.
    """

    def __init__(
        self,
        query: WineQuery,
        matches: Matches | None,
        named: Collection[int] | None,
    ) -> None:
        filters = build_filters(query)
        if named is not None:
            filters[NAME_FILTER] = lambda entry: entry.number in named
        self.soft: Filters = {}
        self._hard: Filters = {}
        for name, is_met in filters.items():
            if name in query.soft:
                self.soft[name] = is_met
            else:
                self._hard[name] = is_met
        self._query = query
        self._matches = matches

    def find(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the wines that pass all hard filters."""
        passing = list(entries)
        for is_met in self._hard.values():
            passing = [entry for entry in passing if is_met(entry)]
        return self._select_matching(passing, self._hard)

    def choose(self, found: Sequence[Entry], like: Wine | None) -> list[Entry]:
        """Return the best of the wines that were found, the best first, as many as are wanted.

        `like` is the wine to which the query asks for similar ones.
        """
        query = self._query
        chosen: list[Entry] = []
        for group in _split_by_allergens(found, query, self.soft):
            best = find_best(group, query, self.soft, self._matches or {}, like)
            equals = group_equals(best, query)
            places_left = query.limit - len(chosen)
            chosen += choose_varied(equals, places_left)
        return chosen

    def select_without_name(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the wines that pass all hard filters except the name."""
        passing = list(entries)
        for name, is_met in self._hard.items():
            if name != NAME_FILTER:
                passing = [entry for entry in passing if is_met(entry)]
        return passing

    def count_relaxed(self, entries: Sequence[Entry]) -> dict[str, int]:
        """Return, for each hard filter except the name, how many wines there are without it."""
        passing: list[Entry] = []
        # The wines that fail a single filter, by that filter.
        failing_only: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            unmet = self._find_unmet(entry)
            if not unmet:
                passing.append(entry)
            elif len(unmet) == 1:
                failing_only[unmet[0]].append(entry)
        counts: dict[str, int] = {}
        for name in self._hard:
            if name == NAME_FILTER:
                continue
            passing_others = passing + failing_only[name]
            other_filters = [other for other in self._hard if other != name]
            found = self._select_matching(passing_others, other_filters)
            counts[name] = len(found)
        return counts

    def _find_unmet(self, entry: Entry) -> list[str]:
        """Return the first hard filters that a wine does not meet, two at most."""
        unmet: list[str] = []
        for name, is_met in self._hard.items():
            if is_met(entry):
                continue
            unmet.append(name)
            if len(unmet) == 2:
                # To relax one filter does not help this wine: the others need not be tried.
                break
        return unmet

    def list_unmet(self, entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
        """Return the soft filters that each wine does not meet, by the ids of the wines.

        Among them is the offer, if the wine has not the kind that was asked for.
        """
        wanted_kind = self._query.offer
        unmet: dict[str, tuple[str, ...]] = {}
        for entry in entries:
            wine = entry.wine
            names: list[str] = []
            for name, is_met in self.soft.items():
                if not is_met(entry):
                    names.append(name)
            kind = wine.offers[0].kind
            if wanted_kind is not None and kind != wanted_kind:
                names.append(OFFER_FILTER)
            if names:
                unmet[wine.id] = tuple(names)
        return unmet

    def _select_matching(
        self, entries: list[Entry], hard_names: Iterable[str]
    ) -> list[Entry]:
        """Return the wines that match the text. If filters say what is wanted, return all wines."""
        matches = self._matches
        if matches is None or self._query.like:
            return entries
        filter_names = {*hard_names, *self.soft}
        if not filter_names <= UNTELLING_FILTERS:
            return entries
        return [entry for entry in entries if entry.number in matches]
