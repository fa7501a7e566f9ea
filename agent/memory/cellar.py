"""A person's own bottles: the wine that a name tells of, when to drink it, and its words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from agent.fallback.searching import wine_from_name
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.wine import (
    CELLAR_PREFIX,
    Currency,
    Style,
    Wine,
    drinking_years,
    format_money,
    normalize,
    parse_currency,
)
from agent.text import pattern, split_words
from agent.turn import CellarItem, Fact

MAX_BOTTLES: Final = 999
"""Of one wine, in one change."""
MAX_NAME: Final = 120
YEARS: Final = range(1900, 2101)
UNKNOWN_WINDOW_END: Final = 9999
"""Sorts a wine of which no best years are known behind all others."""
DrinkingState = Literal["young", "ready", "late", "unknown"]
_TOKEN: Final = pattern(r"[0-9]+(?:[.,][0-9]{1,2})?|[€$£]|[^\s€$£]+")
_NUMBER: Final = pattern(r"\A[0-9]{1,5}(?:[.,][0-9]{1,2})?\Z")


def parse_cellar_item(text: str) -> CellarItem | None:
    """Return the bottles of a line such as "6 Barolo 2016 45 EUR"; None without a name.

    The number in front is their count, 1 if there is none, and the last one the price of each.
    """
    tokens = _TOKEN.findall(text[: 2 * MAX_NAME])
    currency = next(filter(None, map(parse_currency, tokens)), None)
    tokens = [token for token in tokens if not parse_currency(token)]
    count, price = 1, None
    if tokens and tokens[0].isdecimal() and 0 < int(tokens[0]) <= MAX_BOTTLES:
        count = int(tokens.pop(0))
    if len(tokens) > 1 and _NUMBER.search(tokens[-1]) and (currency or not _is_year(tokens[-1])):
        price = float(tokens.pop().replace(",", "."))
    name = " ".join(tokens)[:MAX_NAME]
    if not any(map(str.isalpha, name)):
        return None
    return to_cellar_item(guess_wine(name, price=price, currency=currency or Currency.EUR), count)


def _is_year(token: str) -> bool:
    return token.isdecimal() and int(token) in YEARS


def to_cellar_item(wine: Wine, count: int, **facts: Any) -> CellarItem:
    """Return so many bottles of a wine."""
    own = wine.model_copy(update={"id": CELLAR_PREFIX})
    known = own.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    return CellarItem(key=normalize(own.label), wine=known, count=count, **facts)


def guess_wine(name: str, price: float | None = None, currency: Currency = Currency.EUR) -> Wine:
    """Return a wine with the facts that its name tells; a red one if the name tells no style."""
    parts = name.split()
    year = next((int(part) for part in parts if _is_year(part)), None)
    title = " ".join(part for part in parts if not _is_year(part)) or name
    title = title[:1].upper() + title[1:]
    facts: dict[str, Any] = {"vintage": year, "price": price, "currency": currency}
    known = wine_from_name(title, CELLAR_PREFIX, **facts) or wine_from_name(
        title, CELLAR_PREFIX, Style.RED, **facts
    )
    assert known is not None  # noqa: S101 - with a style there always is one
    return known


def to_wine(bottles: CellarItem) -> Wine:
    """Return the wine of a person's bottles, with an id that starts with `CELLAR_PREFIX`."""
    facts = {"producer": "", "country": "", **bottles.wine, "id": f"{CELLAR_PREFIX}{bottles.id}"}
    return Wine.model_validate(facts)


def items_in_stock(bottles: Sequence[CellarItem]) -> list[CellarItem]:
    """Return the bottles with a count above 0."""
    return [item for item in bottles if item.count]


def find_removal(bottles: Sequence[CellarItem], name: str, count: int | None) -> CellarItem | None:
    """Return the change that removes bottles from a cellar, with a negative count.

    `name` is the id of a wine or words of its label. Return None if there is no such wine. Without
    a count all its bottles are removed, and never more than there are.
    """
    name_words = set(split_words(name))

    def rank(item: CellarItem) -> int:
        return len(name_words.intersection(split_words(to_wine(item).label)))

    found = find_item_by_id(bottles, name)
    if found is None:
        found = max(filter(rank, items_in_stock(bottles)), key=rank, default=None)
    return replace(found, count=-min(found.count, count or found.count)) if found else None


def find_item_by_id(bottles: Sequence[CellarItem], wine_id: str) -> CellarItem | None:
    """Return the bottles in stock with the id that own_cellar returned, or None."""
    in_stock = items_in_stock(bottles)
    return next((item for item in in_stock if f"{CELLAR_PREFIX}{item.id}" == wine_id.strip()), None)


def drinking_window(bottles: CellarItem) -> tuple[int, int] | None:
    """Return the first and last year in which a wine is at its best; None if unknown."""
    first, last = bottles.drink_from, bottles.drink_until
    begin, end = drinking_years(to_wine(bottles)) or (last, first)
    window = first or begin, last or end
    return (window[0], window[1]) if window[0] and window[1] else None


def get_drinking_state(
    bottles: CellarItem, year: int
) -> Literal["young", "ready", "late", "unknown"]:
    """Return whether a year is before the best years of a wine, in them, or past them."""
    window = drinking_window(bottles)
    if window is None:
        return "unknown"
    return "young" if year < window[0] else "late" if year > window[1] else "ready"


def find_due_items(
    bottles: Sequence[CellarItem], facts: Sequence[Fact], year: int
) -> list[CellarItem]:
    """Return the bottles whose best years begin or end in this one, and were not yet due in it."""
    return [
        item
        for item in items_in_stock(bottles)
        if year in (drinking_window(item) or ()) and reminder_fact(item, year) not in facts
    ]


def reminder_fact(bottles: CellarItem, year: int) -> Fact:
    """Return the setting that remembers a reminder of a wine in a year."""
    return Fact("setting", f"due {bottles.key}={year}")


def cellar(bottles: Iterable[CellarItem], year: int, heading: str) -> str:
    """Return a line of Markdown for each wine, below a heading."""
    return "\n".join([heading, *(_line(item, year) for item in bottles)])


def format_cellar(bottles: Iterable[CellarItem], year: int) -> str:
    """Return all that a person owns, the wines with least time left first."""
    found = items_in_stock([*bottles])
    if not found:
        return translate("cellar_none")
    found.sort(key=lambda item: ((drinking_window(item) or (0, UNKNOWN_WINDOW_END))[1], item.key))
    count = sum(item.count for item in found)
    return cellar(found, year, translate("cellar_all", count=str(count)))


def _line(bottles: CellarItem, year: int) -> str:
    """Return how many bottles there are of which wine, their price, and when to drink them."""
    wine, window, state = (
        to_wine(bottles),
        drinking_window(bottles),
        get_drinking_state(bottles, year),
    )
    name = f"**{escape(wine.label)}**"
    if bottles.count:
        facts = [f"{bottles.count} × {name}"]
        if wine.price is not None:
            facts.append(translate("cellar_each", price=format_money(wine.price, wine.currency)))
        if window is not None:
            end = window[0 if state == "young" else 1]
            facts.append(translate(f"cellar_{state}", year=str(end)))
    else:
        facts = [name, translate("cellar_gone")]
    if bottles.note:
        facts.append(translate("memory_note", what=escape(bottles.note)))
    return " · ".join(facts)
