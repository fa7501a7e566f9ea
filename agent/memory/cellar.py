"""A user's cellar: parse and change its items, say when to drink them, format them as text."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Literal

from agent.formatting import format_money
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.queries import wine_from_name
from agent.sommelier.serving import drinking_years
from agent.sommelier.wine import (
    CELLAR_PREFIX,
    Currency,
    Style,
    Wine,
    normalize,
    parse_currency,
)
from agent.sommelier.wine_fields import wine_fields
from agent.text import pattern
from agent.turn import MAX_CELLAR_ITEMS, CellarItem, Fact

MAX_BOTTLES: Final = 999
"""The maximum count of one wine in one change."""
MAX_NAME_CHARS: Final = 120
MAX_SHOWN_ITEMS: Final = 100
"""The most wines of a cellar that one message lists."""
YEARS: Final = range(1900, 2101)
UNKNOWN_WINDOW_END: Final = 9999
"""The year by which a wine without a known drinking window is sorted, after all others."""
DrinkingState = Literal["young", "ready", "late", "unknown"]
_TOKEN: Final = pattern(r"[0-9]+(?:[.,][0-9]{1,2})?|[€$£]|[^\s€$£]+")
_NUMBER: Final = pattern(r"\A[0-9]{1,5}(?:[.,][0-9]{1,2})?\Z")


def parse_cellar_item(text: str) -> CellarItem | None:
    """Parse a line like "6 Barolo 2016 45 EUR": count (default 1), name, and price per bottle.

    Return None if there is no name.
    """
    tokens = _TOKEN.findall(text[: 2 * MAX_NAME_CHARS])
    currency = next(filter(None, map(parse_currency, tokens)), None)
    tokens = [token for token in tokens if not parse_currency(token)]
    count = 1
    price = None
    if tokens and tokens[0].isdecimal() and 0 < int(tokens[0]) <= MAX_BOTTLES:
        count = int(tokens.pop(0))
    if len(tokens) > 1 and _NUMBER.search(tokens[-1]) and (currency or not _is_year(tokens[-1])):
        price = float(tokens.pop().replace(",", "."))
    name = " ".join(tokens)[:MAX_NAME_CHARS]
    if not any(map(str.isalpha, name)):
        return None
    return to_cellar_item(guess_wine(name, price=price, currency=currency or Currency.EUR), count)


def _is_year(token: str) -> bool:
    return token.isdecimal() and int(token) in YEARS


def to_cellar_item(wine: Wine, count: int, **facts: Any) -> CellarItem:
    """Return a cellar item with `count` bottles of a wine; `facts` are its other fields."""
    kept = {name for name, field in wine_fields().items() if field.in_cellar}
    fields = wine.model_dump(mode="json", exclude_defaults=True, include=kept)
    if wine.price is not None:
        fields |= {"price": wine.price, "currency": wine.currency.value}
    # With a cellar id, a label without a vintage does not end in "NV".
    label = wine.model_copy(update={"id": CELLAR_PREFIX}).label
    return CellarItem(key=normalize(label), wine=fields, count=count, **facts)


def guess_wine(
    name: str,
    price: float | None = None,
    currency: Currency = Currency.EUR,
    style: Style | None = None,
    **stated: Any,
) -> Wine:
    """Return a wine with the facts that its name implies, but for those that are stated.

    It is a red wine if no style is stated or implied.
    """
    words = name.split()
    year = next((int(word) for word in words if _is_year(word)), None)
    title = " ".join(word for word in words if not _is_year(word)) or name
    title = title[:1].upper() + title[1:]
    facts = {"vintage": year, "price": price, "currency": currency, **stated}
    wine = wine_from_name(title, CELLAR_PREFIX, style, **facts)
    wine = wine or wine_from_name(title, CELLAR_PREFIX, Style.RED, **facts)
    assert wine is not None  # noqa: S101 - it is None only without a style
    return wine


def to_wine(item: CellarItem) -> Wine:
    """Return the wine of a cellar item, with an id that starts with `CELLAR_PREFIX`."""
    fields = {"producer": "", "country": "", **item.wine, "id": f"{CELLAR_PREFIX}{item.id}"}
    return Wine.model_validate(fields)


def find_items_with_room(
    new: Sequence[CellarItem], stored: Collection[CellarItem]
) -> list[CellarItem]:
    """Return the new items that fit beside the stored ones, those of known wines in any case."""
    known = {item.key for item in stored}
    room = max(0, MAX_CELLAR_ITEMS - len(known))
    unknown = [item.key for item in new if item.key not in known]
    fitting = known.union(unknown[:room])
    return [item for item in new if item.key in fitting]


def items_in_stock(items: Iterable[CellarItem]) -> list[CellarItem]:
    """Return the items with a count above 0."""
    return [item for item in items if item.count]


def find_item_by_id(items: Sequence[CellarItem], wine_id: str) -> CellarItem | None:
    """Return the item in stock with an id that own_cellar returned, or None."""
    in_stock = items_in_stock(items)
    return next((item for item in in_stock if f"{CELLAR_PREFIX}{item.id}" == wine_id.strip()), None)


def find_drinking_window(item: CellarItem) -> tuple[int, int] | None:
    """Return the first and last year in which a wine is at its best; None if unknown.

    The user's years take precedence. If they stated only one, and the others are not known from the
    wine, that year is the whole window.
    """
    usual_first, usual_last = drinking_years(to_wine(item)) or (item.drink_until, item.drink_from)
    first = item.drink_from or usual_first
    last = item.drink_until or usual_last
    return (first, last) if first and last else None


def get_drinking_state(item: CellarItem, year: int) -> DrinkingState:
    """Return whether a wine is too young, ready, or past its best in a year."""
    window = find_drinking_window(item)
    if window is None:
        return "unknown"
    first, last = window
    return "young" if year < first else "late" if year > last else "ready"


def find_due_items(
    items: Sequence[CellarItem], facts: Sequence[Fact], year: int
) -> list[CellarItem]:
    """Return the items whose drinking windows begin or end in `year`, without earlier reminders."""
    return [
        item
        for item in items_in_stock(items)
        if year in (find_drinking_window(item) or ()) and reminder_fact(item, year) not in facts
    ]


def reminder_fact(item: CellarItem, year: int) -> Fact:
    """Return the setting that records that the user was reminded of an item in a year."""
    return Fact("setting", f"due {item.key}={year}")


def format_items(items: Iterable[CellarItem], year: int, heading: str) -> str:
    """Return a heading and a line of Markdown for each item, for the first ones if many."""
    listed = list(items)
    lines = [_format_item(item, year) for item in listed[:MAX_SHOWN_ITEMS]]
    if len(listed) > MAX_SHOWN_ITEMS:
        lines.append(translate("cellar_more", count=len(listed) - MAX_SHOWN_ITEMS))
    return "\n".join([heading, *lines])


def format_cellar(items: Iterable[CellarItem], year: int) -> str:
    """Return all items in stock as Markdown, first those that must be drunk soonest."""

    def window_end(item: CellarItem) -> int:
        window = find_drinking_window(item)
        return window[1] if window else UNKNOWN_WINDOW_END

    in_stock = sorted(items_in_stock(items), key=lambda item: (window_end(item), item.key))
    if not in_stock:
        return translate("cellar_none")
    count = sum(item.count for item in in_stock)
    return format_items(in_stock, year, translate("cellar_all", count=count))


def _format_item(item: CellarItem, year: int) -> str:
    """Return the count of an item, its wine, price, drinking window and note."""
    wine, window = to_wine(item), find_drinking_window(item)
    name = f"**{escape(wine.label)}**"
    if item.count:
        parts = [f"{item.count} × {name}"]
        if wine.price is not None:
            parts.append(translate("cellar_each", price=format_money(wine.price, wine.currency)))
        if window is not None:
            state = get_drinking_state(item, year)
            limit = window[0 if state == "young" else 1]
            parts.append(translate(f"cellar_{state}", year=str(limit)))
    else:
        parts = [name, translate("cellar_gone")]
    if item.note:
        parts.append(translate("memory_note", what=escape(item.note)))
    return " · ".join(parts)
