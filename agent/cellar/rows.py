"""Rows of a cellar: short ones for a model, and lines of Markdown for the user."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from agent.cellar.index import IndexedItem, name_size
from agent.cellar.items import (
    USUAL_SIZE_ML,
    find_drinking_window,
    find_state,
    to_wine,
)
from agent.formatting import format_date, format_money, format_volume
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.vocabulary import Currency, format_money_for_model
from agent.sommelier.wine import CELLAR_PREFIX, Wine
from agent.turn import CellarItem, Drink

MAX_MODEL_CHARS: Final = 3_000
"""The longest result of own_cellar."""
RESERVED_CHARS: Final = 120
"""The part of the result that is reserved for the sentence about further rows."""
MAX_ROW_NAME_CHARS: Final = 60
MAX_ROW_PLACE_CHARS: Final = 24
MAX_ROW_NOTE_CHARS: Final = 200
MAX_NOTED_ROWS: Final = 5
"""The most rows that are shown with the notes of the guest."""
MAX_SHOWN_ITEMS: Final = 100
"""The most wines of a cellar that one message lists."""
COLUMNS: Final = (
    "wine_id | bottles | name | style | origin | price | best years | size | "
    "place | note"
)
STATES_FOR_MODEL: Final = {
    "late": "past",
    "young": "wait",
    "ready": "now",
    "unknown": "",
}


def fit_rows(
    rows: Sequence[str], content: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """Return the content of a result with as many whole rows as fit, and their number."""
    room = MAX_MODEL_CHARS - RESERVED_CHARS
    room -= _count_json_chars(content)
    shown = []
    for row in rows:
        room -= _count_json_chars(row) + 1  # a comma follows
        if room < 0:
            break
        shown.append(row)
    content = content | {"rows": shown}
    hidden_count = len(rows) - len(shown)
    if hidden_count:
        content["more"] = f"and {hidden_count} more like these: filter, to see others"
    return content, len(shown)


def _count_json_chars(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def describe_row(indexed: IndexedItem, *, is_noted: bool = False) -> str:
    """Return a row of `COLUMNS` for a model, of about 100 characters, cut after its last cell."""
    item = indexed.item
    wine = item.wine
    price = ""
    if wine.get("price") is not None:
        currency = Currency(wine.get("currency", "EUR"))
        price = format_money_for_model(wine["price"], currency)
    size = ""
    if item.size_ml:
        size = f"{item.size_ml} ml"
    cells = [
        f"{CELLAR_PREFIX}{item.number}",
        str(item.count),
        _shorten_label(wine),
        wine.get("style", ""),
        _find_origin(wine),
        price,
        _format_years_for_model(indexed),
        size,
        item.place[:MAX_ROW_PLACE_CHARS],
    ]
    if is_noted:
        cells.append(item.note[:MAX_ROW_NOTE_CHARS])
    return " | ".join(cells).rstrip(" |")


def _shorten_label(wine: Mapping[str, Any]) -> str:
    """Return the producer, the name and the vintage, the first two cut to 60 characters."""
    title = wine["name"]
    producer = wine.get("producer", "")
    if producer not in title:
        title = f"{producer} {title}"
    title = title[:MAX_ROW_NAME_CHARS]
    vintage = wine.get("vintage") or ""
    return f"{title} {vintage}".strip()


def _find_origin(wine: Mapping[str, Any]) -> str:
    """Return the most precise origin of a wine that is known, or ""."""
    for field in ("appellation", "region", "country"):
        name = wine.get(field)
        if name:
            return str(name)
    return ""


def _format_years_for_model(indexed: IndexedItem) -> str:
    """Return the state and the best years, such as `now 2023-2041`, or "" if unknown."""
    if indexed.window is None:
        return ""
    state = STATES_FOR_MODEL[indexed.state]
    if indexed.is_due_soon:
        state = "soon"
    first, last = indexed.window
    return f"{state} {first}-{last}"


def describe_drink(drink: Drink) -> str:
    """Return a row about an opened bottle for a model."""
    cells = (
        f"{drink.at:%Y-%m-%d}",
        to_drunk_wine(drink).label,
        drink.rating,
        drink.note,
    )
    return " | ".join(filter(None, cells))


def to_drunk_wine(drink: Drink) -> Wine:
    """Return the wine of an opened bottle."""
    item = CellarItem(key=drink.key, wine=drink.wine, count=0)
    return to_wine(item)


def format_drinks(drinks: Iterable[Drink]) -> str:
    """Return a line of Markdown for each opened bottle: date, wine, rating and note."""
    lines = []
    for drink in drinks:
        label = escape(to_drunk_wine(drink).label)
        parts = [format_date(drink.at.date()), f"**{label}**"]
        for opinion in (drink.rating, drink.note):
            if opinion:
                parts.append(escape(opinion))
        lines.append(" · ".join(parts))
    return "\n".join(lines)


def format_drunk(drinks: Sequence[Drink], cellar: Iterable[CellarItem]) -> str:
    """Return the sentence that confirms opened bottles, or "" if there are none.

    The sentence says how to add an opinion of the first bottle, by the number of its wine.
    """
    if not drinks:
        return ""
    numbers = {item.key: item.number for item in cellar}
    first_number = numbers.get(drinks[0].key, 1)
    sentence = translate("cellar_drunk", number=first_number)
    return f"{sentence}\n{format_drinks(drinks)}"


def count_bottles(bottles: int, wines: int) -> str:
    """Return the numbers of bottles and of different wines: `4 bottles (3 wines)`."""
    return translate(
        "bottles_of_wines",
        bottles=translate("bottle_count", count=bottles),
        wines=translate("wine_count", count=wines),
    )


def format_items(
    items: Iterable[CellarItem],
    year: int,
    heading: str,
    limit: int = MAX_SHOWN_ITEMS,
) -> str:
    """Return a heading and a line of Markdown for each item, up to a limit."""
    listed = list(items)
    lines = [format_item(item, year) for item in listed[:limit]]
    hidden_count = len(listed) - limit
    if hidden_count > 0:
        lines.append(translate("cellar_more", count=hidden_count))
    return "\n".join([heading, *lines])


def format_item(item: CellarItem, year: int) -> str:
    """Return the count of an item, its wine, size, price, best years, place, note and number."""
    parts = list(_list_item_parts(item, year))
    if item.note:
        note = escape(item.note)
        parts.append(translate("memory_note", what=note))
    if item.number:
        parts.append(translate("cellar_number", number=str(item.number)))
    return " · ".join(parts)


def _list_item_parts(item: CellarItem, year: int) -> Iterator[str]:
    """Yield the count and the wine, its size, price, best years and place."""
    wine = to_wine(item)
    name = f"**{escape(wine.label)}**"
    if not item.count:
        yield name
        yield translate("cellar_gone")
        return
    yield f"{item.count} × {name}"
    if item.size_ml and item.size_ml != USUAL_SIZE_ML:
        yield format_size(item)
    if wine.price is not None:
        price = format_money(wine.price, wine.currency)
        yield translate("cellar_each", price=price)
    window = find_drinking_window(item)
    if window is not None:
        first, last = window
        state = find_state(window, year)
        shown_year = last
        if state == "young":
            shown_year = first
        yield translate(f"cellar_{state}", year=str(shown_year))
    if item.place:
        yield escape(item.place)


def format_size(item: CellarItem) -> str:
    """Return the size of a bottle as users read it: "Magnum 1.5 L", "375 mL"."""
    size = format_volume(item.size_ml or USUAL_SIZE_ML)
    if name_size(item) == "magnum":
        return f"Magnum {size}"
    return size


def this_year() -> int:
    """Return the year by which a cellar is judged."""
    return datetime.now(UTC).year
