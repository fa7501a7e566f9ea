"""A collector's cellar of 800 wines, made anew, as CellarTracker exports it.

Eighty wines in ten vintages each. Their windows are relative to the present year, so that some are
young, some ready and some past their best in whatever year this runs.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

YEAR: Final = datetime.now(UTC).year
VINTAGES: Final = 10
LIST_TITLES: Final = (
    "iWine Quantity Pending Size Price Currency Vintage Wine Locale Type Color Producer Varietal "
    "Country Region SubRegion Appellation BeginConsume EndConsume"
).split()
INVENTORY_TITLES: Final = (
    "Barcode iWine Location Bin Size Currency Price StoreName PurchaseDate BottleNote Vintage Wine "
    "Locale Type Color Producer Varietal Country Region SubRegion Appellation "
    "BeginConsume EndConsume"
).split()
UNKNOWN: Final = "Unknown"
"""What CellarTracker writes for a region that it does not know."""
KINDS: Final = Path(__file__).with_name("collected_wines.csv")
"""Wines with their price in euros, and in which years after the vintage they are at their best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A wine of the cellar, as the collector's program has it."""

    number: int
    producer: str
    wine: str
    kind: str
    varietal: str
    country: str
    region: str
    appellation: str
    price: int
    vintage: int
    first_year: int
    last_year: int
    count: int
    size: str
    place: tuple[str, str]
    """The location and the bin."""

    @property
    def colour(self) -> str:
        """Return the colour without the kind: "White" of "White - Sparkling"."""
        return self.kind.partition(" - ")[0]

    @property
    def state(self) -> Literal["young", "ready", "late"]:
        """Return whether the wine is young, ready or late in this year."""
        if self.first_year > YEAR:
            return "young"
        return "late" if self.last_year < YEAR else "ready"


def collect(count: int = 800) -> list[Listed]:
    """Return the first wines of the cellar, vintage after vintage."""
    _, *kinds = csv.reader(KINDS.read_text("utf-8").splitlines())
    wines: list[Listed] = []
    for number in range(1, count + 1):
        index = (number - 1) % len(kinds)
        age = 3 + 2 * ((number - 1) // len(kinds)) + index % 3
        wines.append(_make(number, kinds[index], YEAR - age))
    return wines


def _make(number: int, kind: Sequence[str], vintage: int) -> Listed:
    producer, wine, kind_name, varietal, country, region, appellation, *numbers = kind
    price, first, last = map(int, numbers)
    sizes = {0: "1.5L", 7: "375ml"}
    return Listed(
        number=number,
        producer=producer,
        wine=wine,
        kind=kind_name,
        varietal=varietal,
        country=country,
        region=region,
        appellation=appellation,
        price=price,
        vintage=vintage,
        first_year=vintage + first,
        last_year=vintage + last,
        count=1 + number * 7 % 8 if number % 40 else 12,
        size=sizes.get(number % 25, "750ml"),
        place=(
            "Cellar" if number % 3 else "Rack",
            f"{'ABCDEFGH'[number % 8]}{number // 8}",
        ),
    )


def export_list(
    wines: Sequence[Listed], delimiter: str = ",", encoding: str = "cp1252"
) -> bytes:
    """Return the list export: a row for each wine, with a count."""
    rows = [
        [wine.number, wine.count, 0, wine.size, wine.price, "EUR", *_facts(wine)]
        for wine in wines
    ]
    return _write([LIST_TITLES, *rows], delimiter, encoding)


def export_inventory(
    wines: Sequence[Listed], delimiter: str = ",", encoding: str = "cp1252"
) -> bytes:
    """Return the inventory export: a row for each bottle, with its barcode and place."""
    return _write([INVENTORY_TITLES, *_bottles(wines)], delimiter, encoding)


def _bottles(wines: Sequence[Listed]) -> Iterator[list[object]]:
    for wine in wines:
        bought = f"5/{1 + wine.number % 28}/{min(wine.vintage + 3, YEAR)}"
        for bottle in range(wine.count):
            barcode = f"{1_000_000_000 + 100 * wine.number + bottle}"
            offer = [wine.size, "EUR", wine.price, "Weinhandlung Schmidt", bought, ""]
            yield [barcode, wine.number, *wine.place, *offer, *_facts(wine)]


def _facts(wine: Listed) -> list[object]:
    name = f"{wine.producer} {wine.wine}"
    locale = f"{wine.country}, {wine.region}, {wine.appellation}"
    origin = [wine.country, wine.region, UNKNOWN, wine.appellation]
    kinds = [wine.kind, wine.colour, wine.producer, wine.varietal]
    return [
        wine.vintage,
        name,
        locale,
        *kinds,
        *origin,
        wine.first_year,
        wine.last_year,
    ]


def _write(rows: Sequence[Sequence[object]], delimiter: str, encoding: str) -> bytes:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue().encode(encoding)
