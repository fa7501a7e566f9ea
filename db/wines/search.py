"""Search the wines of the catalogue in memory.

Hard filters exclude wines and soft filters rank them. A short result says which filters to relax.
"""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import Final

from agent.sommelier.queries import WineQuery, WineSearchResult
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine
from db.wines.entries import Entry, make_entry, select_offered
from db.wines.filters import Filters, build_filters
from db.wines.names import NameIndex
from db.wines.ranking import choose_varied, extract_words, find_best, rank_by_preference
from db.word_index import WordIndex

MIN_WINES: Final = 3
"""Results with fewer wines say which filters to relax."""
UNTOLD_FILTERS: Final = frozenset({"in_stock_only", "not_ids"})
"""Filters that say nothing of what is wanted: with these alone, a wine must match the text."""

NAME_FILTER: Final = "name"
MAX_CLOSEST: Final = 3
"""How many of the closest names are told if no wine has the name asked for."""


class WineIndex:
    """All wines, and what a search needs of them. It does not change."""

    def __init__(self, wines: Sequence[Wine]) -> None:
        self.wines_by_id: Mapping[str, Wine] = {wine.id: wine for wine in wines}
        self._entries = [make_entry(number, wine) for number, wine in enumerate(wines)]
        self._words = WordIndex()
        for entry in self._entries:
            self._words.add(entry.number, "", (), entry.text)
        self._words.build()
        self._names = NameIndex(self._entries)

    def search(self, query: WineQuery) -> WineSearchResult:
        """Find wines that pass every filter of `query`, best match first."""
        like = self.wines_by_id.get(query.like)
        if query.like and like is None:
            return WineSearchResult()
        entries = self._select_entries(query)
        terms = extract_words(query.text)
        matches = self._words.search(" ".join(terms), len(self._entries)) if terms else None
        named = self._names.find(query.name) if query.name else None
        narrowing = _Narrowing(query, matches, named)
        found = narrowing.find(entries)
        relax = narrowing.count_relaxed(entries, found) if len(found) < MIN_WINES else {}
        chosen: list[Entry] = []
        for entries_alike in _split_by_allergens(found, query, narrowing.soft):
            best = find_best(entries_alike, query, narrowing.soft, matches or {}, like)
            ranked = [((), item) for item in best] if like else rank_by_preference(best, query)
            chosen += choose_varied(ranked, query.limit - len(chosen))
        return WineSearchResult(
            wines=tuple(entry.wine for entry in chosen),
            total=len(found),
            relax=relax,
            unmet_filters=narrowing.list_unmet(chosen),
            closest=self._find_closest(query.name) if named is not None and not found else (),
        )

    def _find_closest(self, name: str) -> tuple[Wine, ...]:
        numbers = self._names.find_closest(name, MAX_CLOSEST)
        return tuple(self._entries[number].wine for number in numbers)

    def _select_entries(self, query: WineQuery) -> list[Entry]:
        """Return the wines to search, each with the offer that the query asks for first."""
        entries = self._entries
        if query.like:
            entries = [entry for entry in entries if entry.wine.id != query.like]
        if query.offer is not None:
            entries = select_offered(entries, query.offer)
        return entries


def _split_by_allergens(
    found: Sequence[Entry], query: WineQuery, soft: Filters
) -> Sequence[Sequence[Entry]]:
    """Return the wines that are known to lack what the query avoids, then the others.

    What a label does not declare may be in a wine all the same, so such wines come later. But a
    wine that suits the dish and must be asked about comes before one that does not suit it.
    """
    avoided = {*query.without_allergens, *(NON_VEGAN_ALLERGENS if query.vegan else ())}
    if not avoided:
        return [found]
    groups: list[list[Entry]] = [[], [], [], []]
    for entry in found:
        is_suited = all(is_met(entry) for is_met in soft.values())
        is_known = all(map(entry.wine.is_known_to_lack, avoided))
        groups[2 * (not is_suited) + (not is_known)].append(entry)
    return groups


class _Narrowing:
    """The filters of a query, and the numbers of the wines that match its text and its name.

    `matches` is None if the query has no text, `named` if it has no name.
    """

    def __init__(
        self,
        query: WineQuery,
        matches: Mapping[int, float] | None,
        named: Container[int] | None,
    ) -> None:
        filters = build_filters(query)
        if named is not None:
            filters[NAME_FILTER] = lambda entry: entry.number in named
        self.soft: Filters = {name: filters[name] for name in filters if name in query.soft}
        self._hard: Filters = {name: filters[name] for name in filters if name not in query.soft}
        self._matches = matches
        self._is_alike = bool(query.like)

    def find(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the wines that pass all hard filters."""
        passing = list(entries)
        for is_met in self._hard.values():
            passing = [entry for entry in passing if is_met(entry)]
        return self._select_matching(passing, {*self._hard})

    def count_relaxed(self, entries: Sequence[Entry], found: Sequence[Entry]) -> dict[str, int]:
        """Return the number of wines without each filter, for filters whose removal adds wines."""
        passing = list[Entry]()
        failing_one = defaultdict[str, list[Entry]](list)
        for entry in entries:
            unmet = [name for name, is_met in self._hard.items() if not is_met(entry)]
            if not unmet:
                passing.append(entry)
            elif len(unmet) == 1:
                failing_one[unmet[0]].append(entry)
        counts = {
            name: len(self._select_matching([*passing, *failing_one[name]], {*self._hard} - {name}))
            for name in self._hard
            if name != NAME_FILTER
        }
        return {name: count for name, count in counts.items() if count > len(found)}

    def list_unmet(self, entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
        """Return the soft filters that wines do not meet, by the ids of the wines."""
        unmet = {
            entry.wine.id: tuple(name for name, is_met in self.soft.items() if not is_met(entry))
            for entry in entries
        }
        return {wine_id: names for wine_id, names in unmet.items() if names}

    def _select_matching(self, entries: list[Entry], hard: set[str]) -> list[Entry]:
        """Return the wines that match the text, if the filters say nothing of what is wanted."""
        if self._matches is None or self._is_alike or {*hard, *self.soft} - UNTOLD_FILTERS:
            return entries
        return [entry for entry in entries if entry.number in self._matches]
