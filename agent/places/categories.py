"""Kinds of places, and what they are called in several languages."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from agent import text
from agent.tables import StrictModel, read_toml

MIN_STEM: Final = 3
TRANSLITERATED: Final = text.pattern("aa|oo|[aou]e")
"""An umlaut, å or ø as it is written on a keyboard without them."""
PLURAL: Final = text.pattern(r"(?:ies|oes|ao|os|as|hi|he|en|es|er|[yisxeoaыиаь])\Z")
"""The endings that tell the singular of a word from its plural, in some languages."""


def words(phrase: str) -> list[str]:
    """Return the words of a text in one spelling: no case, no accents, `o` for `ö`, `oe`, `ø`."""
    return [TRANSLITERATED.sub(lambda found: found[0][0], word) for word in text.words(phrase)]


def stem(word: str) -> str:
    """Return a word without its plural ending, if enough of it is left."""
    stripped = PLURAL.sub("", word)
    return stripped if len(stripped) >= MIN_STEM else word


def stems(phrase: str) -> list[str]:
    """Return the words of a text without their plural endings."""
    return [stem(word) for word in words(phrase)]


class Category(StrictModel):
    """A kind of place: what people call it, the hint for the model, and ten phrases of its own.

    Each phrase followed by the place is a query without a model. Behind the colon of the hint are
    words for this kind of place, with commas between them.
    """

    label: str
    hint: str
    phrases: Annotated[tuple[str, ...], Field(min_length=10, max_length=10)]


@cache
def categories() -> Mapping[str, Category]:
    """Return every category by its key."""
    return read_toml(dict[str, Category], Path(__file__).with_name("categories.toml"))


@cache
def _names_abroad() -> Mapping[str, Mapping[str, str]]:
    """Return the names of every category in every language but English, with commas between."""
    return read_toml(dict[str, dict[str, str]], Path(__file__).with_name("languages.toml"))


def name_in(language: str, category: str) -> str:
    """Return what a category is called in a language, in English if that is not known."""
    listed = _names_abroad().get(language, {}).get(category)
    return listed.partition(",")[0] if listed else categories()[category].label


def category_named(name: str) -> str:
    """Return the key of a category as a person may write it: "wine bars", "WINE_BAR", "Weinbar".

    Known are its key, its label, its phrases, the words of its hint, and its names in other
    languages; where two categories share one, the first is meant.

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
    abroad = (name for kinds in _names_abroad().values() for name in kinds[key].split(","))
    return tuple(map(stems, (key, category.label, *category.phrases, *hinted, *abroad)))


def phrases(category: str, language: str) -> tuple[str, ...]:
    """Return ten phrases that look for a category, its name in a language first."""
    known = categories()[category].phrases
    if language not in _names_abroad():
        return known
    name = name_in(language, category)
    return (name, *[phrase for phrase in known if stems(phrase) != stems(name)][:9])
