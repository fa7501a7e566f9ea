"""The time of a search of wines, by filters and by names: `python -m benchmarks.search`.

The starter list as it is, and the same wines 20,000 times with other producers and names. Beside
the time stands its ratio to a floor, measured in the same run: one pass over all wines that
looks at a single field of each. Compare ratios: a time is that of this machine and its load.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from random import Random
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from agent.query_reading.tables import load_profiles
from agent.sommelier.queries import WineQuery, WineSearchResult
from agent.sommelier.vocabulary import Style
from agent.sommelier.wine import Wine
from db.wines.catalogue_import import STARTER
from db.wines.lists.importing import read_catalogue
from db.wines.search import WineIndex

MANY: Final = 20_000
AIMS_MS: Final = {"starter": 2, "many": 20}
REPEATS: Final = 30
SYLLABLES: Final = (
    "bar mon ti ver ro sel la pin do gra cas tel no fer ric ven zo mar".split()
)
QUERIES: Final = {
    "filters": WineQuery(styles=(Style.RED,), max_price=25.0, countries=("Italy",)),
    "filters and foods": WineQuery(
        styles=(Style.RED,), foods=("lamb",), max_price=25.0, soft=("styles", "foods")
    ),
    "filters and text": WineQuery(styles=(Style.WHITE,), text="smoky flint"),
    "nothing found": WineQuery(styles=(Style.RED,), max_price=1.0),
    "like another": WineQuery(like="0"),
    "a name": WineQuery(name="penfolds"),
    "a name with a typing error": WineQuery(name="penfalds shiras"),
    "a name without spaces": WineQuery(name="vegasicilia"),
    "no such name": WineQuery(name="screaming eagle"),
    "a name in a sentence": WineQuery(
        name="a bottle called Tignanello that my uncle had at his wedding in Florence"
    ),
}


def invent_names(random: Random) -> Iterator[str]:
    """Yield words as producers and wines have them."""
    while True:
        count = random.randint(2, 4)
        yield "".join(random.choices(SYLLABLES, k=count)).capitalize()


def multiply(wines: Sequence[Wine], count: int) -> list[Wine]:
    """Return so many wines: the given ones, then others like them with invented names."""
    names = invent_names(Random(49))
    multiplied = list(wines)
    for number, wine in enumerate(islice(cycle(wines), count - len(wines))):
        own = {
            "id": f"{wine.id}-{number}",
            "producer": f"{next(names)} {next(names)}",
            "name": f"{wine.name} {next(names)}",
        }
        multiplied.append(wine.model_copy(update=own))
    return multiplied


def measure(function: Callable[[], object]) -> float:
    """Return the median time of a call in milliseconds, after a first one."""
    function()
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1000 * median(times)


def main() -> None:
    """Print the time of each query over both lists."""
    starter = read_catalogue(STARTER).wines
    load_profiles()  # read once
    lists = {"starter": starter, "many": multiply(starter, MANY)}
    table = Table("search, CPU")
    for name, wines in lists.items():
        table.add_column(
            f"{len(wines):,} wines, aim {AIMS_MS[name]} ms", justify="right"
        )
        table.add_column("× floor", justify="right")
    indexes = {name: WineIndex(wines) for name, wines in lists.items()}
    floors = {name: measure_floor(wines) for name, wines in lists.items()}
    table.add_row("floor: a pass over one field", *_cells(floors, floors))
    for title, query in QUERIES.items():
        own = query.model_copy(update={"like": starter[0].id}) if query.like else query
        times = {name: measure_search(index, own) for name, index in indexes.items()}
        table.add_row(title, *_cells(times, floors))
    Console().print(table)


def measure_floor(wines: Sequence[Wine]) -> float:
    """Return the time of one pass over the wines that looks at a single field of each."""

    def find_red() -> list[Wine]:
        return [wine for wine in wines if wine.style is Style.RED]

    return measure(find_red)


def measure_search(index: WineIndex, query: WineQuery) -> float:
    """Return the time of a search."""

    def search() -> WineSearchResult:
        return index.search(query)

    return measure(search)


def _cells(times: dict[str, float], floors: dict[str, float]) -> Iterator[str]:
    """Yield each time and its ratio to the floor of its list."""
    for name, milliseconds in times.items():
        yield f"{milliseconds:.2f} ms"
        yield f"{milliseconds / floors[name]:,.0f}"


if __name__ == "__main__":
    main()
