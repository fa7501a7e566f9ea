"""Derive what a list does not say of a wine from its name, its tags and tables of names.

What cannot be known stays unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from agent.query_reading.tables import find_profile, load_lexicon
from agent.query_reading.tokens import strip_plural
from agent.sommelier.vocabulary import Style, known_names, normalize, synonyms
from agent.tables import StrictModel, read_toml
from db.wines.lists.cells import read_country, read_style
from db.wines.lists.words import load_words

MAX_WORDS: Final = 6
"""The most words of a name in the tables."""
CACHED_TEXTS: Final = 2048
COLOURS: Final = ("rose", "red", "white", "orange")
"""Styles that are colours too, the most telling first: "Blanc de Noirs Rosé"."""
STYLES_OF_ANY_COLOUR: Final = frozenset(
    {"sparkling", "sweet", "fortified", "alcohol_free"}
)
MIN_GRAPE_LETTERS: Final = 4
"""Shorter names of grapes are words of other languages too."""


class WinePlace(StrictModel):
    """Holds what is known of a place in `places.toml`."""

    name: str = ""
    country: str = ""
    region: str = ""
    style: str = ""
    always: bool = False
    grapes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NameFact:
    """Says what a name in a text stands for: one of the fields is set."""

    style: str = ""
    sweetness: str = ""
    grape: str = ""
    country: str = ""
    place: WinePlace | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The cells of a listed wine with those that were derived, which `derived` names."""

    cells: Mapping[str, str]
    derived: tuple[str, ...]


def complete(cells: Mapping[str, str], clues: Sequence[str]) -> Completed:
    """Return cells with the missing style, colour, sweetness, grapes and places, if known."""
    known = dict(cells)
    if read_style(known.get("style", "")) not in set(Style):
        known.pop("style", None)  # such as "wine"
    texts = [
        *clues,
        cells.get("name", ""),
        cells.get("appellation", ""),
        cells.get("region", ""),
    ]
    facts = [fact for text in texts for fact in find_facts(text)]
    place = _find_place(facts, known.get("country", ""))
    derived = _derive_place(known, facts, place)
    grapes = _find_grapes(known, facts, place)
    style = known.get("style", "") or _find_style(clues, cells, place, grapes)
    found = {
        **derived,
        "grapes": "; ".join(grapes),
        "style": style,
        "colour": _find_colour(style, facts),
        "sweetness": next((fact.sweetness for fact in facts if fact.sweetness), ""),
    }
    new = {
        field: value for field, value in found.items() if value and field not in known
    }
    return Completed(known | new, tuple(new))


def _find_place(facts: Sequence[NameFact], country: str) -> WinePlace | None:
    """Return the most telling place of the country: an appellation rather than a region."""
    places = [fact.place for fact in facts if fact.place]
    if country:
        places = [place for place in places if place.country == read_country(country)]
    return max(places, key=_telling, default=None)


def _telling(place: WinePlace) -> tuple[bool, bool, int]:
    is_within_region = normalize(place.name) != normalize(place.region)
    return bool(place.style or place.grapes), is_within_region, len(place.name)


def _derive_place(
    known: Mapping[str, str], facts: Sequence[NameFact], place: WinePlace | None
) -> dict[str, str]:
    """Return the country, region and appellation that the facts tell."""
    if place is None:
        return {"country": next((fact.country for fact in facts if fact.country), "")}
    found = {"country": place.country, "region": place.region}
    is_region = normalize(place.name) == normalize(place.region)
    if not is_region and not known.get("appellation"):
        found["appellation"] = place.name
    return found


def _find_grapes(
    known: Mapping[str, str], facts: Sequence[NameFact], place: WinePlace | None
) -> tuple[str, ...]:
    """Return the grapes that the file or the facts name, or else those of the place."""
    if known.get("grapes"):
        return (known["grapes"],)
    named = tuple(dict.fromkeys(fact.grape for fact in facts if fact.grape))
    if named or place is None:
        return named
    return place.grapes


def _find_style(
    clues: Sequence[str],
    cells: Mapping[str, str],
    place: WinePlace | None,
    grapes: Sequence[str],
) -> str:
    """Return the style that a clue or the name says, or else that of the place or the grape."""
    for clue in clues:
        if style := _pick_style(find_facts(clue)):
            return style
    if place and place.always:
        return place.style
    named = _pick_style(find_facts(cells.get("name", "")))
    if named or (place and place.style):
        return named or (place.style if place else "")
    profile = find_profile(grapes)
    return profile.style if profile else ""


def _pick_style(facts: Sequence[NameFact]) -> str:
    """Return the first style of the table that the facts name: a red port is fortified."""
    named = {fact.style for fact in facts if fact.style}
    return next((style for style in load_words()["styles"] if style in named), "")


def _find_colour(style: str, facts: Sequence[NameFact]) -> str:
    """Return the colour that the facts name for a style that comes in several."""
    if read_style(style) not in STYLES_OF_ANY_COLOUR:
        return ""
    named = {fact.style for fact in facts if fact.style}
    return next((colour for colour in COLOURS if colour in named), "")


@lru_cache(CACHED_TEXTS)
def find_facts(text: str) -> tuple[NameFact, ...]:
    """Return what the names in a text stand for, in order; the longest name wins."""
    stems = tuple(strip_plural(word) for word in normalize(text).split())
    facts: list[NameFact] = []
    index = 0
    while index < len(stems):
        length = _match_length(stems, index)
        if length:
            facts.append(_facts_by_name()[stems[index : index + length]])
        index += max(length, 1)
    return tuple(facts)


def starts_with_fact(text: str) -> bool:
    """Return whether a text begins with the name of a grape, a place or a style."""
    stems = tuple(strip_plural(word) for word in normalize(text).split())
    return bool(stems) and _match_length(stems, 0) > 0


def _match_length(stems: tuple[str, ...], start: int) -> int:
    """Return the number of words of the longest name that begins at `start`, or 0."""
    for length in range(min(MAX_WORDS, len(stems) - start), 0, -1):
        if stems[start : start + length] in _facts_by_name():
            return length
    return 0


@cache
def _facts_by_name() -> Mapping[tuple[str, ...], NameFact]:
    """Return what names stand for, by their words; places come before grapes before styles."""
    facts: dict[tuple[str, ...], NameFact] = {}
    for country in known_names("countries"):
        facts[_key(country)] = NameFact(country=read_country(country))
    for sweetness, names in load_words()["sweetness"].items():
        facts |= {_key(name): NameFact(sweetness=sweetness) for name in names}
    for style, names in load_words()["styles"].items():
        in_titles = load_words()["title_styles"].get(style, frozenset())
        facts |= {_key(name): NameFact(style=style) for name in names | in_titles}
    for name in known_names("grapes"):
        facts[_key(name)] = NameFact(grape=synonyms("grapes", name)[0].title())
    facts |= _facts_of_lexicon()
    facts |= {_key(place.name): NameFact(place=place) for place in _places()}
    for name in load_words()["title_styles"]["ignored"]:
        facts[_key(name)] = NameFact()
    return facts


def _facts_of_lexicon() -> Iterator[tuple[tuple[str, ...], NameFact]]:
    """Yield the names of grapes, regions and countries in all languages that messages know."""
    places = {normalize(place.region): place for place in _places()}
    places |= {normalize(place.name): place for place in _places()}
    for key, by_language in load_lexicon().items():
        for meanings in by_language.values():
            if grapes := meanings.get("grapes", ()):
                if len("".join(key)) >= MIN_GRAPE_LETTERS:
                    yield key, NameFact(grape=grapes[0])
            elif regions := meanings.get("regions", ()):
                place = places.get(normalize(regions[0]))
                if place:
                    yield key, NameFact(place=place)
            elif countries := meanings.get("countries", ()):
                yield key, NameFact(country=read_country(countries[0]))


def _key(name: str) -> tuple[str, ...]:
    return tuple(strip_plural(word) for word in normalize(name).split())


@cache
def _places() -> tuple[WinePlace, ...]:
    """Return all places, the regions themselves included."""
    file = Path(__file__).with_name("places.toml")
    table = read_toml(dict[str, dict[str, dict[str, WinePlace]]], file)
    places: list[WinePlace] = []
    for country, regions in table.items():
        for region, names in regions.items():
            if region:
                places.append(
                    WinePlace(name=region, country=read_country(country), region=region)
                )
            for name, place in names.items():
                own_region = {
                    "name": name,
                    "country": read_country(country),
                    "region": region,
                }
                places.append(place.model_copy(update=own_region))
    return tuple(places)
