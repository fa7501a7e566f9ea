"""Kinds of places, and what they are called in the language that is spoken in a place."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from agent.places.distinct import countries, names_in, stems, words
from agent.tables import Strict, read_toml

ENGLISH: Final = "en"
Names = Annotated[tuple[str, ...], BeforeValidator(names_in)]
Listed = Annotated[tuple[str, ...], BeforeValidator(lambda text: tuple(text.split(", ")))]


class Category(Strict):
    """A kind of place: what people call it, the hint for the model, and ten phrases of its own.

    Each phrase followed by the place is a query without a model. Behind the colon of the hint are
    words for this kind of place, with commas between them.
    """

    label: str
    hint: str
    phrases: Annotated[tuple[str, ...], Field(min_length=10, max_length=10)]


class Language(Strict):
    """Where a language is spoken, and its words for kinds of places and specialities."""

    names: Names
    also: Annotated[tuple[str, ...], Field(min_length=9, max_length=9)]
    kinds: dict[str, Listed]


class _Languages(Strict):
    """The content of `languages.toml`."""

    neutral: Names
    languages: dict[str, Language]


@cache
def categories() -> Mapping[str, Category]:
    """Return every category by its key."""
    found = read_toml(dict[str, Category], Path(__file__).with_name("categories.toml"))
    return MappingProxyType(found)


def languages() -> Mapping[str, Language]:
    """Return every language but English by its code (ISO 639-1)."""
    return _languages().languages


@cache
def _languages() -> _Languages:
    return read_toml(_Languages, Path(__file__).with_name("languages.toml"))


def category_named(name: str) -> str:
    """Return the key of a category as a person may write it: "wine bars", "WINE_BAR", "Weinbar".

    Known are its key, its label, its phrases, the words of its hint, and its names in other
    languages; where two categories have the same, the first is meant.

    Raises:
        ValueError: there is none; the message lists the categories.
    """
    asked = stems(name)
    for key in categories():
        if asked in _names(key):
            return key
    raise ValueError(f"there is no category {name.strip()[:40]!r}; use {', '.join(categories())}")


@cache
def _names(key: str) -> tuple[list[str], ...]:
    category = categories()[key]
    hinted = category.hint.rpartition(":")[2].split(",")
    abroad = (name for language in languages().values() for name in language.kinds[key])
    return tuple(map(stems, (key, category.label, *category.phrases, *hinted, *abroad)))


def phrases(category: str, place: str) -> tuple[str, ...]:
    """Return ten phrases that look for a category, in the language of a place where it is known."""
    known = languages().get(language_of_place(place))
    if known is None:
        return categories()[category].phrases
    names = known.kinds[category]
    shortest = min(names, key=lambda name: (len(name.split()), len(name)))
    return names[0], *(f"{shortest} {speciality}" for speciality in known.also)


def language_of_place(place: str) -> str:
    """Return the code of the language that is spoken in a place; empty where it is not known.

    The last town or country that `languages.toml` knows tells it.
    """
    said = f" {' '.join(words(place))} "
    places = {name: said.rfind(f" {name} ") for name in _spoken()}
    last = max(places, key=lambda name: (places[name], len(name)))
    return _spoken()[last] if places[last] >= 0 else ""


@cache
def _spoken() -> Mapping[str, str]:
    """Return the language of each name; a country that has several is left out."""
    neutral = _languages().neutral
    found = {name: ENGLISH for name in countries() if name not in neutral}
    return found | {name: code for code, language in languages().items() for name in language.names}
