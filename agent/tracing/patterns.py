"""What masking looks for, as data (`masking.toml`); credentials by their form, or a word. Pure."""

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from agent import text as linear
from agent.text import Match, Pattern

FILE: Final = Path(__file__).with_name("masking.toml")
FRAGMENT: Final = linear.pattern(r"<([a-z_]+)>")
SHORTEST_CREDENTIAL: Final = 8  # characters, with the word before it


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    trade_names: str
    location_keys: frozenset[str]
    words: Mapping[str, list[str]]
    fragments: Mapping[str, str]
    patterns: Mapping[str, str | list[str]]
    iban_lengths: Mapping[int, str]


@cache
def table() -> _Table:
    """Return what stands in the file."""
    return _Table.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))


def pattern(name: str) -> Pattern:
    """Return a pattern by its name in the file."""
    return _patterns()[name]


@cache
def _patterns() -> Mapping[str, Pattern]:
    sources = {
        name: each if isinstance(each, str) else f"(?:{'|'.join(each)})"
        for name, each in table().patterns.items()
    }
    return {name: linear.pattern(_filled(source)) for name, source in sources.items()}


def _filled(text: str) -> str:
    parts = {**table().fragments, **{name: "|".join(each) for name, each in table().words.items()}}
    return FRAGMENT.sub(lambda found: _filled(parts[found[1]]), text)


@cache
def _secret_words() -> tuple[str, ...]:
    return (*table().words["password_word"], *table().words["secret_word"][1:])


@cache
def trade_names() -> frozenset[str]:
    """Return the names of people that are words of every other trace."""
    return frozenset(table().trade_names.split())


def without_credentials(text: str) -> str:
    """Mask tokens, keys, passwords that are named as such, and userinfo of addresses."""
    if len(text) < SHORTEST_CREDENTIAL:
        return text
    text = pattern("token").sub(_masked_token, text)
    if "PRIVATE KEY" in text:
        text = pattern("private_key").sub("[token]", text)
    if ":" in text:
        text = pattern("bot_token").sub("[token]", text)
    if "@" in text and "://" in text:
        text = pattern("userinfo").sub("://[token]@", text)
    lowered = text.lower()
    if "bearer" in lowered:
        text = pattern("bearer").sub(_masked_bearer, text)
    if any(map(lowered.__contains__, _secret_words())):
        text = pattern("assigned").sub(_masked_assignment, text)
    return text


def is_fresh(text: str, start: int) -> bool:
    r"""Tell whether no word and no id goes on at `start`; an escaped line's end (`\n`) is none.

    ASCII only: where a script writes no spaces, a number may stand right behind a letter.
    """
    before = text[max(0, start - 2) : start]
    in_a_word = before[-1:].isascii() and (before[-1:].isalnum() or before[-1:] == "_")
    return not in_a_word or before in ("\\n", "\\r", "\\t")


def is_secret(key: str, value: str) -> bool:
    """Tell whether `value`, under such a key, is a credential: `{"api_key": "0fd3..."}`."""
    word = _secret_word(key[-32:])
    if not word:
        return False
    one_word = len(value) >= 6 and not any(map(str.isspace, value))
    return _is_credential(word, value) or (one_word and _names_nothing_else(key[-32:]))


@lru_cache(maxsize=1024)
def _names_nothing_else(key: str) -> bool:
    return bool(pattern("names_nothing_else").search(key))


@lru_cache(maxsize=1024)
def _secret_word(key: str) -> str:
    found = pattern("names_a_secret").search(key)
    return found[0] if found else ""


def _masked_token(found: Match) -> str:
    """The mask of a key; words with hyphens have no capital, and no digits but a year's."""
    start, key = found.start(), found[0]
    written = key == key.lower() and not any(each.isdigit() for each in key[:-4])
    whole = is_fresh(found.string, start) and found.string[start - 1 : start] != "-"
    return "[token]" if whole and not written else key


def _masked_bearer(found: Match) -> str:
    word, value = found.groups()
    opaque = len(value) >= 20 or any(each.isdigit() for each in value)
    return f"{word}[token]" if opaque else found[0]


def _masked_assignment(found: Match) -> str:
    before, value = found.groups()
    first, more, rest = value.partition("&")  # as in an address, where another may follow
    if more and _is_credential(before, first):
        return f"{before}[token]{more}{rest}"
    return f"{before}[token]" if _is_credential(before, value) else found[0]


def _is_credential(word: str, value: str) -> bool:
    """After a word for a password anything with a digit; after others only what nobody reads."""
    if not any(each.isdigit() for each in value):
        return False
    if pattern("password").search(word):
        return len(value) >= 6
    if pattern("hexadecimal").fullmatch(value):
        return True
    if not pattern("base64").fullmatch(value) or pattern("file_name").fullmatch(value):
        return False
    mixed = value not in (value.lower(), value.upper())
    return mixed or bool(pattern("scattered").fullmatch(value))
