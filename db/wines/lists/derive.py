"""Derive what a list does not say about a wine, from its name, its tags, and tables of names.

What these do not say stays unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from agent.query_reading.request import STYLES_OF_ANY_COLOUR
from agent.query_reading.tables import find_profile, load_lexicon
from agent.query_reading.tokens import strip_plural
from agent.sommelier.vocabulary import Style, list_known_names, list_synonyms, normalize
from agent.tables import StrictModel, read_toml
from db.wines.lists.cells import read_country, read_style
from db.wines.lists.listed import Cells
from db.wines.lists.words import load_words

MAX_WORDS: Final = 6
"""How many words a name in the tables has at most."""
CACHED_TEXTS: Final = 2048
"""For how many texts the names in them are kept: many cells of a list are the same."""
COLOURS: Final = ("rose", "red", "white", "orange")
"""The styles that are also colours. If a text names several, the first one here counts."""
MIN_GRAPE_LETTERS: Final = 4
"""A shorter name of a grape is not used: it is often also a word of another language."""


Stems = tuple[str, ...]
"""The words of a name or a text, without the endings of plurals."""


class WinePlace(StrictModel):
    """A place and the wines from there, as `places.toml` has them.

    If `always`, no other style is allowed there, and "Blanc" in a title is a part of a name.
    """

    name: str = ""
    country: str = ""
    region: str = ""
    style: str = ""
    always: bool = False
    grapes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NameFact:
    """The meaning of a name in a text. At most one field is set."""

    style: str = ""
    sweetness: str = ""
    grape: str = ""
    country: str = ""
    place: WinePlace | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The cells of a listed wine, with those that were derived. `derived` names the latter."""

    cells: Cells
    derived: tuple[str, ...]


def complete(cells: Cells, clues: Sequence[str]) -> Completed:
    """Return the cells with those that are missing and can be derived.

    These are the style, the colour, the sweetness, the grapes and the places.
    """
    known = dict(cells)
    style = known.get("style", "")
    if read_style(style) not in set(Style):
        # Such a cell, for example "wine", does not say the style.
        known.pop("style", None)
        style = ""
    texts = list(clues)
    for column in ("name", "appellation", "region"):
        texts.append(cells.get(column, ""))
    facts = _collect_facts(texts)
    place = _find_place(facts.places, known.get("country", ""))
    found = _derive_place(known, facts.countries, place)
    grapes = _find_grapes(known, facts.grapes, place)
    found["grapes"] = "; ".join(grapes)
    if not style:
        style = _find_style(clues, cells, place, grapes)
    found["style"] = style
    found["colour"] = _find_colour(style, facts.styles)
    if facts.sweetness:
        found["sweetness"] = facts.sweetness[0]
    derived: dict[str, str] = {}
    for column, value in found.items():
        if value and column not in known:
            derived[column] = value
    return Completed(known | derived, tuple(derived))


@dataclass(slots=True)
class _FactsByKind:
    """The facts of each kind that texts state about a wine, in the order of the texts."""

    styles: list[str] = field(default_factory=list)
    sweetness: list[str] = field(default_factory=list)
    grapes: list[str] = field(default_factory=list)
    countries: list[str] = field(default_factory=list)
    places: list[WinePlace] = field(default_factory=list)


def _collect_facts(texts: Sequence[str]) -> _FactsByKind:
    """Return what the names in texts stand for."""
    facts = _FactsByKind()
    for text in texts:
        for fact in find_facts(text):
            if fact.style:
                facts.styles.append(fact.style)
            if fact.sweetness:
                facts.sweetness.append(fact.sweetness)
            if fact.grape:
                facts.grapes.append(fact.grape)
            if fact.country:
                facts.countries.append(fact.country)
            if fact.place:
                facts.places.append(fact.place)
    return facts


def _find_place(places: Sequence[WinePlace], country: str) -> WinePlace | None:
    """Return the most telling place in the country, or None.

    An appellation says more than a region.
    """
    if country:
        name = read_country(country)
        places = [place for place in places if place.country == name]
    return max(places, key=_rank_place, default=None)


def _rank_place(place: WinePlace) -> tuple[bool, bool, int]:
    """Return a sort key that is higher for a place that says more about a wine."""
    tells_style_or_grapes = bool(place.style or place.grapes)
    is_within_region = not _is_region(place)
    return tells_style_or_grapes, is_within_region, len(place.name)


def _is_region(place: WinePlace) -> bool:
    """Return whether a place is a whole region, not one within a region."""
    return normalize(place.name) == normalize(place.region)


def _derive_place(
    known: Cells,
    countries: Sequence[str],
    place: WinePlace | None,
) -> dict[str, str]:
    """Return the country, region and appellation that follow from a place.

    Without a place, return the first country.
    """
    if place is not None:
        found = {"country": place.country, "region": place.region}
        if not _is_region(place) and not known.get("appellation"):
            found["appellation"] = place.name
        return found
    if countries:
        return {"country": countries[0]}
    return {}


def _find_grapes(
    known: Cells,
    named: Sequence[str],
    place: WinePlace | None,
) -> Sequence[str]:
    """Return the grapes that the file has, or that a text names, or else those of the place."""
    listed = known.get("grapes")
    if listed:
        return [listed]
    if named:
        return list(dict.fromkeys(named))
    if place is not None:
        return place.grapes
    return []


def _find_style(
    clues: Sequence[str],
    cells: Cells,
    place: WinePlace | None,
    grapes: Sequence[str],
) -> str:
    """Return the style that a clue or the name states, or else that of the place or the grapes."""
    for clue in clues:
        style = _pick_style(clue)
        if style:
            return style
    if place and place.always:
        return place.style
    style = _pick_style(cells.get("name", ""))
    if style:
        return style
    if place and place.style:
        return place.style
    profile = find_profile(grapes)
    if profile is None:
        return ""
    return profile.style


def _pick_style(text: str) -> str:
    """Return the style that a text names, or "".

    Of several, the first one in `words.toml` counts: a red port is fortified.
    """
    named = {fact.style for fact in find_facts(text)}
    for style in load_words()["styles"]:
        if style in named:
            return style
    return ""


def _find_colour(style: str, named: Sequence[str]) -> str:
    """Return the colour that a text names, for a style whose wines have several colours."""
    if read_style(style) not in STYLES_OF_ANY_COLOUR:
        return ""
    for colour in COLOURS:
        if colour in named:
            return colour
    return ""


@lru_cache(CACHED_TEXTS)
def find_facts(text: str) -> tuple[NameFact, ...]:
    """Return what the names in a text stand for, in order. Of two names, the longer one counts."""
    stems = _stems(text)
    facts: list[NameFact] = []
    index = 0
    while index < len(stems):
        name = _match_name(stems, index)
        if name:
            facts.append(_facts_by_name()[name])
            index += len(name)
        else:
            index += 1
    return tuple(facts)


def starts_with_fact(text: str) -> bool:
    """Return whether a text begins with the name of a grape, a place or a style."""
    name = _match_name(_stems(text), 0)
    return len(name) > 0


def _match_name(stems: Stems, start: int) -> Stems:
    """Return the longest known name among the words that begin at `start`, or ()."""
    longest = min(MAX_WORDS, len(stems) - start)
    for length in range(longest, 0, -1):
        name = stems[start : start + length]
        if name in _facts_by_name():
            return name
    return ()


@cache
def _facts_by_name() -> Mapping[Stems, NameFact]:
    """Return what names stand for, by their words.

    If a name has several meanings, it is rather a place than a grape, and rather a grape than a
    style: what is written last below replaces what was there.
    """
    words = load_words()
    facts: dict[Stems, NameFact] = {}
    for country in list_known_names("countries"):
        usual_name = read_country(country)
        facts[_stems(country)] = NameFact(country=usual_name)
    for sweetness, names in words["sweetness"].items():
        for name in names:
            facts[_stems(name)] = NameFact(sweetness=sweetness)
    for style, names in words["styles"].items():
        names_in_titles = words["title_styles"].get(style, frozenset())
        for name in names | names_in_titles:
            facts[_stems(name)] = NameFact(style=style)
    for name in list_known_names("grapes"):
        usual_name = list_synonyms("grapes", name)[0]
        facts[_stems(name)] = NameFact(grape=usual_name.title())
    facts |= _facts_of_lexicon()
    for place in _places():
        facts[_stems(place.name)] = NameFact(place=place)
    for name in words["title_styles"]["ignored"]:
        facts[_stems(name)] = NameFact()
    return facts


def _facts_of_lexicon() -> Iterator[tuple[Stems, NameFact]]:
    """Yield the names of grapes, regions and countries in all languages of messages."""
    places: dict[str, WinePlace] = {}
    # Any place stands for its region, until the region itself is added.
    for place in _places():
        places[normalize(place.region)] = place
    for place in _places():
        places[normalize(place.name)] = place
    for stems, meanings_by_language in load_lexicon().items():
        for meanings in meanings_by_language.values():
            grapes = meanings.get("grapes", ())
            regions = meanings.get("regions", ())
            countries = meanings.get("countries", ())
            if grapes:
                letters = "".join(stems)
                if len(letters) >= MIN_GRAPE_LETTERS:
                    yield stems, NameFact(grape=grapes[0])
            elif regions:
                region = normalize(regions[0])
                if region in places:
                    yield stems, NameFact(place=places[region])
            elif countries:
                country = read_country(countries[0])
                yield stems, NameFact(country=country)


def _stems(text: str) -> Stems:
    """Return the words of a text without the endings of plurals. Names are compared by these."""
    words = normalize(text).split()
    return tuple([strip_plural(word) for word in words])


@cache
def _places() -> tuple[WinePlace, ...]:
    """Return all places. The regions are among them."""
    file = Path(__file__).with_name("places.toml")
    table = read_toml(dict[str, dict[str, dict[str, WinePlace]]], file)
    places: list[WinePlace] = []
    for country, regions in table.items():
        for region, places_of_region in regions.items():
            origin = {"country": read_country(country), "region": region}
            if region:
                places.append(WinePlace(name=region, **origin))
            for name, place in places_of_region.items():
                named_place = place.model_copy(update={"name": name, **origin})
                places.append(named_place)
    return tuple(places)
