"""Tell when a wine is at its best, and how warm it is served, by its names and its style."""

from functools import cache
from pathlib import Path
from typing import Final

from agent.sommelier.wine import Body, Style, Wine, folded
from agent.tables import Strict, read_toml

FULL: Final = frozenset({Body.MEDIUM_FULL, Body.FULL})

Range = tuple[int, int]


class _Tables(Strict):
    """The content of `serving.toml`: years after the vintage, and degrees Celsius."""

    sources: list[str]
    names: dict[str, Range]
    styles: dict[Style, Range]
    degrees: dict[Style, Range]
    degrees_if_full: dict[Style, Range]


@cache
def _tables() -> _Tables:
    return read_toml(_Tables, Path(__file__).with_suffix(".toml"))


def best_years(wine: Wine) -> Range:
    """Return from and until how many years after its vintage a wine is at its best."""
    label = " / ".join((wine.label, wine.region, wine.appellation, *wine.grapes))
    named, tables = f" {folded(label)} ", _tables()
    # A rosé is drunk young, whatever it is called.
    names = {} if wine.style is Style.ROSE else tables.names
    found = next((years for name, years in names.items() if f" {name} " in named), None)
    return found or tables.styles[wine.style]


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
    told = {"serve": f"{low}-{high} °C"}
    if years := drinking_years(wine):
        told["usually_best"] = f"{years[0]}-{years[1]}"
    return told
