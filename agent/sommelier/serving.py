"""Tell when a wine is at its best, and how warm it is served, by its names and its style."""

from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator

from agent.sommelier.wine import Body, Style, Wine, folded
from agent.tables import StrictModel, read_toml

UNNAMED: Final = frozenset({Style.ROSE, Style.SWEET, Style.FORTIFIED})
"""Styles of which a grape tells nothing."""
FULL: Final = frozenset({Body.MEDIUM_FULL, Body.FULL})

Range = tuple[int, int]


class _Tables(StrictModel):
    """The content of `serving.toml`: years after the vintage, and degrees Celsius."""

    sources: list[str]
    reds: Annotated[frozenset[str], BeforeValidator(str.split)]
    names: dict[str, Range]
    grapes: dict[str, Range]
    styles: dict[Style, Range]
    degrees: dict[Style, Range]
    degrees_if_full: dict[Style, Range]


@cache
def _tables() -> _Tables:
    return read_toml(_Tables, Path(__file__).with_suffix(".toml"))


def best_years(wine: Wine) -> Range:
    """Return from and until how many years after its vintage a wine is at its best."""
    tables, style = _tables(), wine.style
    by_place = f"{wine.label} / {wine.region} / {wine.appellation}"
    by_grape = f"{wine.label} / {' '.join(wine.grapes[:1])}"
    searched = [] if style is Style.ROSE else [(tables.names, by_place)]  # rosé is drunk young
    searched += [] if style in UNNAMED else [(tables.grapes, by_grape)]
    for named, text in searched:
        label = f" {folded(text)} "
        for name, years in named.items():
            is_of_reds = style is Style.WHITE and name in tables.reds
            if f" {name} " in label and not is_of_reds:
                return years
    return tables.styles[style]


def drinking_years(wine: Wine) -> Range | None:
    """Return from and until which year a wine is at its best; None without a vintage."""
    if wine.vintage is None:
        return None
    begin, end = best_years(wine)
    return wine.vintage + begin, wine.vintage + end


def serving(wine: Wine) -> dict[str, str]:
    """Return what a guest asks next of a wine: when to drink it, and how warm."""
    tables = _tables()
    full = tables.degrees_if_full if wine.body in FULL else {}
    low, high = full.get(wine.style) or tables.degrees[wine.style]
    facts = {"serve": f"{low}-{high} °C"}
    if years := drinking_years(wine):
        facts["usually_best"] = f"{years[0]}-{years[1]}"
    return facts
