"""Read cells as people write them: numbers, currencies, styles and words of seven languages."""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final, get_args, get_origin

from agent.sommelier.vocabulary import (
    Colour,
    Currency,
    Style,
    canonicalize,
    list_known_names,
    list_synonyms,
    normalize,
    parse_currency,
)
from agent.sommelier.wine import Wine
from agent.text import pattern, sanitize
from db.wines.lists.words import load_words

NUMBER: Final = pattern(
    r"(?i)\A(?:[a-z]{3}|[€$£¥])?\s*"
    r"([1-9]\d{0,2}(?:[.,'\x{2019}\x{a0} ]\d{3})+|\d+)([.,]\d+)?"
    r"[.,]?[-\x{2013}]?\s*(?:[a-z]{3}|[€$£¥]|%(?:\s*vol\.?)?)?\z"
)
"""A number such as `1.234,50 €`, `CHF 12.-` and `13,5 % vol`.

Group 1 is the whole number with its thousands separators, and group 2 has the decimals.
"""
MAX_NOTE_CHARS: Final = 5_000
LIST_SEPARATORS: Final = str.maketrans(dict.fromkeys(",/|&+\n", ";"))
"""Replaces by a semicolon whatever else may separate the items of a list."""
ABSENT: Final = frozenset({"", "-", "–", "—", "x", "/"})
"""What a cell holds if a wine is not offered in the way of its column, such as by the glass."""


def read_number(text: str) -> str:
    """Return a number in Python's format. Return any other text unchanged."""
    number = NUMBER.match(text)
    if number is None:
        return text
    digits = "".join(filter(str.isdigit, number[1]))
    decimals = number[2] or ""
    return digits + decimals.replace(",", ".")


def is_number(text: str) -> bool:
    """Return whether a text is a number, maybe with its currency."""
    return NUMBER.match(text) is not None


def find_currency(text: str) -> Currency | None:
    """Return the currency in a text like `Preis (CHF)` or `12 €`, or None."""
    words_and_signs = [*normalize(text).split(), *text]
    for part in words_and_signs:
        currency = parse_currency(part)
        if currency:
            return currency
    return None


def read_style(text: str, allowed: Collection[str] = tuple(Style)) -> str:
    """Return the style in a cell like `Rotwein` or `Red - Fortified`, or else the cell."""
    # The spaces let only whole words match.
    padded = f" {normalize(text)} "
    for style, phrases in load_words()["styles"].items():
        if style not in allowed:
            continue
        for phrase in [*phrases, normalize(style)]:
            if f" {phrase} " in padded:
                return style
    return text.lower()


def read_colour(text: str) -> str:
    """Return the colour in a cell, or else the cell."""
    return read_style(text, allowed=tuple(Colour))


def read_count(text: str) -> int | None:
    """Return the whole number in a cell such as `12`, `12.0`, `1.200` or `-3`, or None."""
    without_sign = text.removeprefix("-")
    whole, _, decimals = read_number(without_sign).partition(".")
    is_whole = not decimals.strip("0")
    if not whole.isdecimal() or not is_whole:
        return None
    count = int(whole)
    if text.startswith("-"):
        return -count
    return count


def read_stock(text: str) -> str:
    """Return "yes" or "no" for a number of bottles or a word such as "sold out".

    Return an unknown word as it is.
    """
    count = read_count(text)
    if count is None:
        return translate_word("words", text)
    if count > 0:
        return "yes"
    return "no"


def translate_word(table: str, text: str) -> str:
    """Return the value that a table of `words.toml` gives for a cell, or else the cell."""
    word = normalize(text)
    for value, words in load_words()[table].items():
        if word in words:
            return value
    return text.lower()


def read_country(text: str) -> str:
    """Return the English name of a country, or else the cell."""
    if normalize(text) not in list_known_names("countries"):
        return text
    usual_name = list_synonyms("countries", text)[0]
    return usual_name.title()


def split_list(text: str, read: Callable[[str], str] = str.lower) -> list[str]:
    """Return the items of a list in a cell, each converted by `read`, none of them twice."""
    items: list[str] = []
    parts = text.translate(LIST_SEPARATORS).split(";")
    for part in parts:
        item = read(part.strip(" ."))
        if item and item not in items:
            items.append(item)
    return items


def strip_percentage(grape: str) -> str:
    """Return the name of a grape without its share: "Sangiovese" for "95% Sangiovese"."""
    words: list[str] = []
    for word in grape.split():
        is_share = word[:1].isdecimal()
        if not is_share:
            words.append(word)
    return " ".join(words)


def read_allergen(text: str) -> str:
    """Return the allergen that a word names, or else the word."""
    return translate_word("allergens", text)


def make_slug(text: str) -> str:
    """Return an id in lower-case ASCII, such as `trimbach-riesling-2021`.

    Words in other alphabets are left out, so that it may be empty.
    """
    words = [word for word in normalize(text).split() if word.isascii()]
    return "-".join(words)


def read_cell(field: str, text: str) -> object:
    """Return the value that a cell gives for a field of `Wine`, to be validated by the model.

    The field's own reader reads the cell. A field without one is read by its type.
    """
    reader = CELL_READERS.get(field)
    if reader:
        return reader(text)
    annotation = Wine.model_fields[field].annotation
    if get_origin(annotation) is tuple:
        return split_list(text)
    # `int | None` has the arguments `int` and `NoneType`, `int` has none.
    types = get_args(annotation) or (annotation,)
    value_type = types[0]
    if issubclass(value_type, bool):
        return translate_word("words", text)
    if issubclass(value_type, int | float):
        return read_number(text)
    if issubclass(value_type, StrEnum):
        return canonicalize(text)
    return text


def _read_grapes(text: str) -> list[str]:
    return split_list(text, strip_percentage)


def _read_sweetness(text: str) -> str:
    return translate_word("sweetness", text)


def _read_body(text: str) -> str:
    return translate_word("body", text)


def _read_level(text: str) -> str:
    return translate_word("levels", text)


def _read_notes(text: str) -> str:
    return sanitize(text, MAX_NOTE_CHARS)


def _read_allergens(text: str) -> list[str]:
    return split_list(text, read_allergen)


CELL_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "id": make_slug,
    "vintage": str,
    "country": read_country,
    "grapes": _read_grapes,
    "style": read_style,
    "colour": read_colour,
    "sweetness": _read_sweetness,
    "body": _read_body,
    "acidity": _read_level,
    "tannin": _read_level,
    "notes": _read_notes,
    "allergens": _read_allergens,
}
"""The readers of fields for which the type does not determine how a cell is read."""
