"""The items of a user's cellar: make them from texts and wines, and say when to drink them."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from agent.cellar.wine_from_name import wine_from_name
from agent.numerals import is_year
from agent.sommelier.offers import Offer, read_typed_price
from agent.sommelier.serving import drinking_years
from agent.sommelier.vocabulary import Currency, Style, normalize, parse_currency
from agent.sommelier.wine import CELLAR_PREFIX, Wine, wine_fields
from agent.text import pattern
from agent.turn import MAX_CELLAR_ITEMS, CellarItem

MAX_BOTTLES: Final = 999
"""The maximum count of one wine in one change."""
COUNTS: Final = range(1, MAX_BOTTLES + 1)
MAX_NAME_CHARS: Final = 120
"""The maximum length of the name of a wine."""
USUAL_SIZE_ML: Final = 750
"""The size of a bottle if none is stated."""
MAX_DUE_ITEMS: Final = 5
"""The most items of a reminder."""
MAX_CACHED_WINDOWS: Final = 20_000
DrinkingState = Literal["young", "ready", "late", "unknown"]
Window = tuple[int, int]
"""The first and last year in which a wine is at its best."""
_TOKEN: Final = pattern(r"[0-9]+(?:[.,][0-9]{1,2})?|[€$£]|[^\s€$£]+")
"""A number, a sign of a currency or a word: "45€" has two."""
_TIMES: Final = pattern(r"(?is)\A([0-9]{1,3})\s?[x×]\s+(.*)\z")
"""A count and a name: "6 x Barolo"."""


def parse_cellar_item(text: str) -> CellarItem | None:
    """Parse a line like "6 Barolo 2016 45 EUR": count (default 1), name, and price per bottle.

    The count may be written as in "6 x Barolo" and "6x Barolo". Return None if there is no name.
    """
    text = text[: 2 * MAX_NAME_CHARS]
    times = _TIMES.search(text)
    if times is not None:
        text = f"{times[1]} {times[2]}"
    tokens = []
    currency: Currency | None = None
    for token in _TOKEN.findall(text):
        token_currency = parse_currency(token)
        if token_currency is None:
            tokens.append(token)
        elif currency is None:  # the first one counts
            currency = token_currency
    count = _take_count(tokens)
    price = _take_price(tokens, has_currency=currency is not None)
    name = " ".join(tokens)[:MAX_NAME_CHARS]
    if not any(map(str.isalpha, name)):
        return None
    wine = guess_wine(name, price, currency or Currency.EUR)
    return to_cellar_item(wine, count)


def _take_count(tokens: list[str]) -> int:
    """Remove the count from the beginning of a line, and return it, or 1 if there is none."""
    if not tokens or not tokens[0].isdecimal():
        return 1
    count = int(tokens[0])
    if count not in COUNTS:
        return 1
    del tokens[0]
    return count


def _take_price(tokens: list[str], *, has_currency: bool) -> float | None:
    """Remove the price from the end of a line, and return it, or None if there is none."""
    if len(tokens) < 2:
        return None
    price = read_typed_price(tokens[-1], has_currency=has_currency)
    if price is not None:
        del tokens[-1]
    return price


def to_cellar_item(wine: Wine, count: int, **facts: Any) -> CellarItem:
    """Return a cellar item with `count` bottles of a wine. `facts` are its other fields.

    Bottles of one wine in several sizes are several items.
    """
    stored_names = set()
    for name, field in wine_fields().items():
        if field.in_cellar:
            stored_names.add(name)
    fields = wine.model_dump(mode="json", exclude_defaults=True, include=stored_names)
    if wine.price is not None:
        fields["price"] = wine.price
        fields["currency"] = wine.currency.value
    # With a cellar id, a label without a vintage does not end in "NV".
    cellar_wine = wine.model_copy(update={"id": CELLAR_PREFIX})
    label = cellar_wine.label
    size_ml = facts.get("size_ml")
    if size_ml:
        label += f" {size_ml} ml"
    key = normalize(label)
    return CellarItem(key=key, wine=fields, count=count, **facts)


def guess_wine(
    name: str,
    price: float | None = None,
    currency: Currency = Currency.EUR,
    style: Style | None = None,
    **stated: Any,
) -> Wine:
    """Return a wine with the facts that are stated, and others that its name implies.

    The wine is red if no style is stated or implied.
    """
    years = []
    other_words = []
    for word in name.split():
        if is_year(word):
            years.append(int(word))
        else:
            other_words.append(word)
    title = " ".join(other_words) or name
    title = title[:1].upper() + title[1:]
    facts = {"price": price, "currency": currency, **stated}
    if years:
        facts["vintage"] = years[0]
    wine = wine_from_name(title, CELLAR_PREFIX, style, **facts)
    if wine is None:
        wine = wine_from_name(title, CELLAR_PREFIX, Style.RED, **facts)
    assert wine is not None  # noqa: S101 - it is None only without a style
    return wine


def to_wine(item: CellarItem) -> Wine:
    """Return the wine of a cellar item, with an id that starts with `CELLAR_PREFIX`."""
    fields = {
        "producer": "",
        "country": "",
        **item.wine,
        "id": f"{CELLAR_PREFIX}{item.number}",
    }
    return Wine.model_validate(fields)


def find_items_with_room(
    new: Sequence[CellarItem], stored: Collection[CellarItem]
) -> list[CellarItem]:
    """Return the new items for which there is room. Items of stored wines always have room."""
    stored_keys = {item.key for item in stored}
    room = max(0, MAX_CELLAR_ITEMS - len(stored_keys))
    added_keys = []
    for item in new:
        if item.key not in stored_keys:
            added_keys.append(item.key)
    keys_with_room = stored_keys.union(added_keys[:room])
    return [item for item in new if item.key in keys_with_room]


def select_in_stock(items: Iterable[CellarItem]) -> list[CellarItem]:
    """Return the items with a count above 0."""
    return [item for item in items if item.count]


def find_item_by_id(items: Sequence[CellarItem], wine_id: str) -> CellarItem | None:
    """Return the item in stock with an id, as own_cellar returns it, or None."""
    number = wine_id.strip().removeprefix(CELLAR_PREFIX)
    for item in items:
        if item.count and str(item.number) == number:
            return item
    return None


def find_drinking_window(item: CellarItem) -> Window | None:
    """Return the first and last year in which a wine is at its best, or None if unknown.

    The years that the user stated come first. If the user stated only one, and no others are known
    from the wine, that year is the whole window.
    """
    first = item.drink_from
    last = item.drink_until
    if first and last:
        return first, last
    usual_window = _find_usual_window(item)
    if usual_window is not None:
        usual_first, usual_last = usual_window
        return first or usual_first, last or usual_last
    only_year = first or last
    if only_year:
        return only_year, only_year
    return None


class _AgeingFacts(NamedTuple):
    """The facts of a wine by which the tables say when it is at its best."""

    style: str
    vintage: int
    producer: str
    name: str
    region: str
    appellation: str
    grapes: tuple[str, ...]
    """The first grape, or none."""
    price: float | None
    currency: str


def _find_usual_window(item: CellarItem) -> Window | None:
    """Return the window from the tables, or None without a vintage or a style."""
    wine = item.wine
    has_facts = wine.get("vintage") and wine.get("style")
    if not has_facts:
        return None
    grapes = wine.get("grapes", ())
    facts = _AgeingFacts(
        style=wine["style"],
        vintage=wine["vintage"],
        producer=wine.get("producer", ""),
        name=wine["name"],
        region=wine.get("region", ""),
        appellation=wine.get("appellation", ""),
        grapes=tuple(grapes[:1]),
        price=wine.get("price"),
        currency=wine.get("currency", Currency.EUR.value),
    )
    return _read_tables(facts)


@lru_cache(MAX_CACHED_WINDOWS)
def _read_tables(facts: _AgeingFacts) -> Window | None:
    currency = Currency(facts.currency)
    offer = Offer(price=facts.price, currency=currency)
    wine = Wine(
        id=CELLAR_PREFIX,
        producer=facts.producer,
        name=facts.name,
        vintage=facts.vintage,
        country="",
        region=facts.region,
        appellation=facts.appellation,
        grapes=facts.grapes,
        style=Style(facts.style),
        offers=(offer,),
    )
    return drinking_years(wine)


def find_state(window: Window | None, year: int) -> DrinkingState:
    """Return the state in a year of a wine with this drinking window."""
    if window is None:
        return "unknown"
    first, last = window
    if year < first:
        return "young"
    if year > last:
        return "late"
    return "ready"


class _DueItem(NamedTuple):
    """An item for a reminder, and the last of its best years."""

    last_year: int
    item: CellarItem


def find_due_items(items: Sequence[CellarItem], year: int) -> list[CellarItem]:
    """Return the items for a reminder in a year: their best years begin or end in it.

    At most `MAX_DUE_ITEMS` are returned, and none twice in a year. Items with the earliest last
    year come first. Among those of the same year, larger stocks come first.
    """
    due: list[_DueItem] = []
    for item in select_in_stock(items):
        window = find_drinking_window(item)
        if window is None or item.reminded_year == year:
            continue
        first, last = window
        if year in (first, last):
            due.append(_DueItem(last, item))
    due.sort(key=_rank_due)
    return [entry.item for entry in due[:MAX_DUE_ITEMS]]


def _rank_due(due: _DueItem) -> tuple[int, int]:
    return due.last_year, -due.item.count
