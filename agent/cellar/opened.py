"""Read lines about opened bottles: "12 92 lovely" rates a bottle of item 12."""

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
"""The length to which the note about an opened bottle is cut."""
_NUMBER: Final = pattern(r"(?s)\A#?([0-9]{1,5})(?:[\s:,.]+(.*))?\z")
"""The number of an item, and the rest of a line: "12", "#12 lovely"."""
_RATING: Final = pattern(
    r"(?s)\A([0-9]{1,3}(?:[.,][0-9])?(?:\s?/\s?[0-9]{1,3})?|[★*]{1,5})(?:[\s:,.]+(.*))?\z"
)
"""A rating, such as "92", "4/5" or "★★★★", and the rest of a line."""


def read_opened(items: Sequence[CellarItem], line: str) -> tuple[Removal, str, str]:
    """Return the bottles that were opened according to a line, their rating and a note.

    A number that stands alone, or before a rating or a note, is the number of an item. If a name
    follows, as in "2 Barolo", the number may also be a count. Then both items may be meant.
    """
    line = line.strip()
    count, name = parse_removal(line)
    named = find_item_to_remove(items, name, count)
    number, rest = _split_number(line)
    item = find_item_by_id(items, number)
    if item is None:
        return named, "", ""
    may_be_count = bool(rest) and not line.startswith(NUMBER_SIGN)
    if may_be_count and isinstance(named, Found | TooFew):
        # The count of bottles that were found is negative.
        count = abs(named.item.count)
        named_item = replace(named.item, count=count)
        if named_item.key != item.key:
            return Unclear((item, named_item)), "", ""
    rating, note = _split_rating(rest)
    opened = replace(item, count=-1)
    return Found(opened), rating, note


def _split_number(line: str) -> tuple[str, str]:
    """Return the number of an item at the beginning of a line, or "", and the rest."""
    match = _NUMBER.search(line)
    if match is None:
        return "", line
    rest = match[2] or ""
    return match[1], rest.strip()


def _split_rating(text: str) -> tuple[str, str]:
    """Return the rating at the beginning of a text, or "", and the rest as a note."""
    match = _RATING.search(text)
    if match is None:
        return "", text[:MAX_NOTE_CHARS]
    rest = match[2] or ""
    note = rest.strip()[:MAX_NOTE_CHARS]
    return match[1].strip(), note


def open_bottle(
    item: CellarItem,
    at: datetime,
    rating: str = "",
    note: str = "",
) -> Drink:
    """Return the entry of the drinking history for an opened bottle of an item."""
    return Drink(
        key=item.key,
        wine=item.wine,
        at=at,
        rating=rating,
        note=note,
    )


def attach_note(
    items: Sequence[CellarItem],
    drinks: Sequence[Drink],
    line: str,
) -> tuple[Drink, Drink] | None:
    """Return the opened bottle that a line rates, as it was and with the new rating and note.

    "12 92 lovely" rates the bottle of item 12 that was opened last. If the line has no rating or no
    note, the old one is kept. Return None if the line rates no opened bottle.
    """
    number, rest = _split_number(line.strip())
    rating, note = _split_rating(rest)
    keys = {item.key for item in items if str(item.number) == number}
    for drink in drinks:  # the last opened bottle comes first
        if drink.key in keys:
            rating = rating or drink.rating
            note = note or drink.note
            rated = replace(drink, rating=rating, note=note)
            return drink, rated
    return None
