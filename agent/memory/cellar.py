"""A person's own bottles: the wine that a name tells of, and when to drink it. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from agent.fallback import wine_called
from agent.sommelier.serving import best_years
from agent.sommelier.wine import OWN, Currency, Style, Wine, folded
from agent.text import pattern, words
from agent.turn import Bottles, Fact

MAX_BOTTLES: Final = 999
"""Of one wine, in one change."""
MAX_NAME: Final = 120
YEARS: Final = range(1900, 2101)
CURRENCIES: Final = {"€": Currency.EUR, "$": Currency.USD, "£": Currency.GBP} | {
    code.lower(): code for code in Currency
}
"""The currencies by their signs and codes."""
_TOKEN: Final = pattern(r"[0-9]+(?:[.,][0-9]{1,2})?|[€$£]|[^\s€$£]+")
_NUMBER: Final = pattern(r"\A[0-9]{1,5}(?:[.,][0-9]{1,2})?\Z")


def read_bottles(text: str) -> Bottles | None:
    """Return the bottles of a line such as "6 Barolo 2016 45 EUR"; None without a name.

    The number in front is their count, 1 if there is none, and the last one the price of each.
    """
    tokens = _TOKEN.findall(text[: 2 * MAX_NAME])
    currency = next((CURRENCIES[token.lower()] for token in tokens if _is_sign(token)), None)
    tokens = [token for token in tokens if not _is_sign(token)]
    count = 1
    if tokens and tokens[0].isdecimal() and 0 < int(tokens[0]) <= MAX_BOTTLES:
        count = int(tokens.pop(0))
    price = None
    if len(tokens) > 1 and _NUMBER.search(tokens[-1]) and (currency or not _is_year(tokens[-1])):
        price = float(tokens.pop().replace(",", "."))
    year = next((int(token) for token in tokens if _is_year(token)), None)
    name = " ".join(token for token in tokens if not _is_year(token))[:MAX_NAME]
    if not any(map(str.isalpha, name)):
        return None
    return bottles_of(guess_wine(name, year, price, currency or Currency.EUR), count)


def _is_sign(token: str) -> bool:
    return token.lower() in CURRENCIES


def _is_year(token: str) -> bool:
    return token.isdecimal() and int(token) in YEARS


def bottles_of(wine: Wine, count: int, **facts: Any) -> Bottles:
    """Return so many bottles of a wine."""
    own = wine.model_copy(update={"id": OWN})
    known = own.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    return Bottles(key=folded(own.label), wine=known, count=count, **facts)


def guess_wine(
    name: str,
    year: int | None = None,
    price: float | None = None,
    currency: Currency = Currency.EUR,
) -> Wine:
    """Return a wine with the facts that its name tells; a red one if the name tells no style."""
    title = name[:1].upper() + name[1:]
    facts: dict[str, Any] = {"vintage": year, "price": price, "currency": currency}
    known = wine_called(title, OWN, **facts) or wine_called(title, OWN, Style.RED, **facts)
    assert known is not None  # noqa: S101 - with a style there always is one
    return known


def wine_of(bottles: Bottles) -> Wine:
    """Return the wine of a person's bottles, with an id that starts with `OWN`."""
    facts = {"producer": "", "country": "", **bottles.wine, "id": f"{OWN}{bottles.id}"}
    return Wine.model_validate(facts)


def bottles_in_stock(bottles: Sequence[Bottles]) -> list[Bottles]:
    """Return the bottles with a count above 0."""
    return [item for item in bottles if item.count]


def take_bottles(bottles: Sequence[Bottles], name: str, count: int | None) -> Bottles | None:
    """Return the change that removes bottles from a cellar, with a negative count.

    `name` is the id of a wine or words of its label; the label with the most of these words is
    taken. Return None if there is no such wine. Without a count all its bottles are removed, and
    never more than there are.
    """
    name_words = set(words(name))
    in_stock = bottles_in_stock(bottles)

    def rank(item: Bottles) -> int:
        return len(name_words.intersection(words(wine_of(item).label)))

    by_id = next((item for item in in_stock if f"{OWN}{item.id}" == name.strip()), None)
    found = by_id or max(in_stock, key=rank, default=None)
    if found is None or not (by_id or rank(found)):
        return None
    return replace(found, count=-min(found.count, count or found.count))


def drinking_window(bottles: Bottles) -> tuple[int, int] | None:
    """Return the first and last year in which a wine is at its best; None if unknown."""
    wine = wine_of(bottles)
    first, last = bottles.drink_from, bottles.drink_until
    if first and last:
        return first, last
    if wine.vintage is None:
        return (first or last or 0, last or first or 0) if first or last else None
    begin, end = best_years(wine)
    return first or wine.vintage + begin, last or wine.vintage + end


def state_of(bottles: Bottles, year: int) -> Literal["young", "ready", "late", "unknown"]:
    """Return whether a year is before the best years of a wine, in them, or past them."""
    window = drinking_window(bottles)
    if window is None:
        return "unknown"
    return "young" if year < window[0] else "late" if year > window[1] else "ready"


def due_in(bottles: Sequence[Bottles], facts: Sequence[Fact], year: int) -> list[Bottles]:
    """Return the bottles whose best years begin or end in this one, and were not yet due in it."""
    known = {fact.value for fact in facts if fact.kind == "setting"}
    return [
        item
        for item in bottles_in_stock(bottles)
        if year in (drinking_window(item) or ()) and due_fact(item, year).value not in known
    ]


def due_fact(bottles: Bottles, year: int) -> Fact:
    """Return the setting that remembers a reminder of a wine in a year."""
    return Fact("setting", f"due {bottles.key}={year}")
