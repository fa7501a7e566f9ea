"""One wine held against what is expected of the wines of an answer."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evals.dataset import Expectation
from agent.money import in_euros
from agent.wine import Wine

WORD: Final = re.compile(r"[^\W\d_]+")


def within_budget(wine: Wine, expect: Expectation) -> bool:
    """Whether a wine keeps to the price limits, compared in euros at the product's own rates."""
    if expect.min_price is None and expect.max_price is None:
        return True
    price = wine.price_in_euros
    if price is None:
        return False
    low = in_euros(expect.min_price, expect.currency) if expect.min_price else 0.0
    high = in_euros(expect.max_price, expect.currency) if expect.max_price else price
    return low <= price <= high


def has_filters(expect: Expectation) -> bool:
    """Whether anything but the price is asked of the wines."""
    return any(check.asked(expect) for check in _CHECKS)


def broken_filters(wine: Wine, expect: Expectation) -> Iterator[str]:
    """What a wine does not keep to, the price left aside."""
    for check in _CHECKS:
        if check.asked(expect) and (problem := check.problem(wine, expect)):
            yield problem


def fold(text: str) -> str:
    """`text` in lower case and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@dataclass(frozen=True, slots=True)
class _Check:
    """A field of the expectations that a property of every wine is held against.

    Wanted values must meet the wine's, unwanted ones must not.
    """

    field: str
    values: Callable[[Wine], Sequence[str | None]]
    wanted: bool = True

    def asked(self, expect: Expectation) -> bool:
        return bool(getattr(expect, self.field))

    def problem(self, wine: Wine, expect: Expectation) -> str | None:
        asked = [fold(str(value)) for value in getattr(expect, self.field)]
        found = [fold(str(value)) for value in self.values(wine) if value]
        met = [a for a in asked for f in found if a == f]
        if self.wanted:
            return None if met else f"{'/'.join(found) or 'nothing known'} for {self.field}"
        return f"{met[0]} ({self.field})" if met else None


@dataclass(frozen=True, slots=True)
class _AbvCheck:
    """The alcohol, which is a number; a wine that does not say has too much."""

    def asked(self, expect: Expectation) -> bool:
        return expect.max_abv is not None

    def problem(self, wine: Wine, expect: Expectation) -> str | None:
        most = expect.max_abv if expect.max_abv is not None else 100.0
        return None if wine.abv is not None and wine.abv <= most else f"{wine.abv}% vol."


_CHECKS: Final[Sequence[_Check | _AbvCheck]] = (
    _Check("styles", lambda wine: [wine.style]),
    _Check("colours", lambda wine: [wine.colour]),
    _Check("sweetness", lambda wine: [wine.sweetness]),
    _Check("bodies", lambda wine: [wine.body]),
    _Check("foods", lambda wine: wine.foods),
    _Check("countries", lambda wine: [wine.country]),
    _Check("regions", lambda wine: [wine.region, wine.appellation]),
    _Check("grapes", lambda wine: wine.grapes),
    _Check("without_styles", lambda wine: [wine.style], wanted=False),
    _Check("without_bodies", lambda wine: [wine.body], wanted=False),
    _Check("without_countries", lambda wine: [wine.country], wanted=False),
    _Check("without_regions", lambda wine: [wine.region, wine.appellation], wanted=False),
    _Check("without_grapes", lambda wine: wine.grapes, wanted=False),
    _Check("without_allergens", lambda wine: wine.allergens, wanted=False),
    _Check("without_notes", lambda wine: WORD.findall(wine.notes), wanted=False),
    _AbvCheck(),
)
