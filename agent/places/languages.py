"""The language that is spoken in a place, and how places are searched for in it. Pure.

Told by the last name of a town or country that `languages.toml` knows, else by the script.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agent.places.distinct import countries, is_chinese, words
from agent.text import pattern

ENGLISH: Final = "en"
LONGEST_NAME: Final = 4
"""Words of a place's name."""
SCRIPTS: Final = {
    "el": pattern(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "uk": pattern("[іїєґІЇЄҐ]"),
    "ru": pattern(r"[\u0400-\u04ff]"),
    "ka": pattern(r"[\u10a0-\u10ff]"),
    "he": pattern(r"[\u0590-\u05ff]"),
    "ja": pattern(r"[\u3040-\u30ff]"),
    "ko": pattern(r"[\uac00-\ud7af]"),
    "zh": pattern(r"[\u3400-\u9fff]"),
}
"""In the order in which they tell a language: some letters are of one alone."""

Name = tuple[str, ...]


def _names(said: str) -> tuple[Name, ...]:
    return tuple(tuple(words(name)) for name in said.split(","))


def _listed(said: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in said.split(","))


class Language(BaseModel):
    """Where it is spoken, what kinds of places are called, and what is looked for beside."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: Annotated[tuple[Name, ...], BeforeValidator(_names)]
    also: Annotated[tuple[str, ...], Field(min_length=9, max_length=9)]
    kinds: dict[str, Annotated[tuple[str, ...], BeforeValidator(_listed)]]


class _Data(BaseModel):
    """What `languages.toml` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    neutral: Annotated[tuple[Name, ...], BeforeValidator(_names)]
    languages: dict[str, Language]


@cache
def _data() -> _Data:
    return _Data.model_validate(
        tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    )


def languages() -> Mapping[str, Language]:
    """Return every language but English by its code (ISO 639-1)."""
    return _data().languages


@cache
def _spoken() -> Mapping[Name, str]:
    """The language of each name; none where a country has several."""
    found = dict.fromkeys(countries(), ENGLISH) | dict.fromkeys(_data().neutral, "")
    return found | {name: code for code, language in languages().items() for name in language.names}


def language_of_place(place: str) -> str:
    """Return the code of the language that is spoken in a place; empty where it is not known."""
    told = [code for code in _told(words(place)) if code]
    if told:
        return told[-1]
    return next((code for code, script in SCRIPTS.items() if script.search(place)), "")


def _told(said: list[str]) -> Iterator[str]:
    at = 0
    while at < len(said):
        sizes = (
            size for size in range(LONGEST_NAME, 0, -1) if tuple(said[at : at + size]) in _spoken()
        )
        size = next(sizes, 0)
        if size:
            yield _spoken()[tuple(said[at : at + size])]
        elif is_chinese(said[at]):
            yield from _inside(said[at])
        at += size or 1


def _inside(written: str) -> Iterator[str]:
    """The language of a name within what is written without spaces: 渋谷 in 東京都渋谷区."""
    for name, code in _spoken().items():
        if len(name) == 1 and is_chinese(name[0]) and name[0] in written:
            yield code


def phrases(language: str, category: str) -> tuple[str, ...]:
    """Return ten phrases that look for a category; none for a language that has none here."""
    known = languages().get(language)
    if known is None:
        return ()
    names = known.kinds[category]
    short = min(names, key=lambda name: (len(name.split()), len(name)))
    return names[0], *(f"{short} {also}" for also in known.also)


@cache
def names_of(category: str) -> tuple[str, ...]:
    """Return what a category is called in every language."""
    return tuple(name for each in languages().values() for name in each.kinds[category])
