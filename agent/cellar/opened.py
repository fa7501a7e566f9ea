"""Opened bottles: which one a line names, and what was thought of it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from agent.cellar.items import find_item_by_id
from agent.cellar.removal import (
    NUMBER_SIGN,
    Found,
    Removal,
    TooFew,
    Unclear,
    find_item_to_remove,
    parse_removal,
)
from agent.text import pattern
from agent.turn import CellarItem, Drink

MAX_NOTE_CHARS: Final = 500
_NUMBERED: Final = pattern(r"(?s)\A#?([0-9]{1,5})(?:[\s:,.]+(.*))?\z")
"""The number of an item, and the rest of a line."""
_RATED: Final = pattern(
    r"(?s)\A([0-9]{1,3}(?:[.,][0-9])?(?:\s?/\s?[0-9]{1,3})?|[★*]{1,5})(?:[\s:,.]+(.*))?\z"
)
"""A rating, such as "92", "4/5" or "★★★★", and the rest of a line."""


def read_opened(items: Sequence[CellarItem], line: str) -> tuple[Removal, str, str]:
    """Return the bottles that a line says were opened, a rating and a note.

    A number alone, or before a rating or a note, is that of an item. If the rest is the name of
    another wine, as in "2 Barolo", both may be meant.
    """
    line = line.strip()
    count, name = parse_removal(line)
    named = find_item_to_remove(items, name, count)
    numbered = _NUMBERED.search(line)
    item = find_item_by_id(items, numbered[1]) if numbered else None
    if numbered is None or item is None:
        return named, "", ""
    rest = (numbered[2] or "").strip()
    is_name = isinstance(named, Found | TooFew) and not line.startswith(NUMBER_SIGN)
    if (
        rest
        and is_name
        and isinstance(named, Found | TooFew)
        and named.item.key != item.key
    ):
        return Unclear((item, replace(named.item, count=abs(named.item.count)))), "", ""
    rating, note = _split_rating(rest)
    return Found(replace(item, count=-1)), rating, note


def _split_rating(text: str) -> tuple[str, str]:
    """Return the rating at the beginning of a text, if there is one, and the rest as a note."""
    rated = _RATED.search(text)
    if rated is None:
        return "", text[:MAX_NOTE_CHARS]
    return rated[1].strip(), (rated[2] or "").strip()[:MAX_NOTE_CHARS]


def open_bottle(
    item: CellarItem, at: datetime, rating: str = "", note: str = ""
) -> tuple[Drink, ...]:
    """Return the entry of the drinking history for an item with a negative count."""
    return (Drink(key=item.key, wine=item.wine, at=at, rating=rating, note=note),)


def attach_note(
    items: Sequence[CellarItem], drinks: Sequence[Drink], line: str
) -> tuple[Drink, Drink] | None:
    """Return the last opened bottle of item 12 for "12 92 lovely", before and after, or None."""
    numbered = _NUMBERED.search(line.strip())
    if numbered is None:
        return None
    item = next((each for each in items if str(each.number) == numbered[1]), None)
    drink = next((each for each in drinks if item and each.key == item.key), None)
    if drink is None:
        return None
    rating, note = _split_rating((numbered[2] or "").strip())
    return drink, replace(drink, rating=rating or drink.rating, note=note or drink.note)
