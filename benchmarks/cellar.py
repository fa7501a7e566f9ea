"""`python -m benchmarks.cellar`: CPU of one call of own_cellar over a cellar of 3,000 wines.

The floor is a bare loop over the same items that compares one field of each. The first call after a
change of the cellar also folds its texts, once for each version.
"""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox
from agent.memory.tools import memory_tools
from agent.turn import CellarItem, Deps, Person
from db.wines.lists.cellar import read_cellar
from tests.cellars import collect, export_list

WINES: Final = 3_000
REPEATS: Final = 15
CALLS: Final[dict[str, dict[str, Any]]] = {
    "everything": {},
    "what is past": {"readiness": "past"},
    "ripe and red for duck": {"styles": ["red"], "foods": ["duck"], "readiness": "now"},
    "a name": {"text": "Barolo"},
    "grape and region": {"regions": ["Mosel"], "grapes": ["Riesling"]},
    "a price": {"min_price": 200, "readiness": "now"},
}


def main() -> None:
    """Measure, and print a table."""
    listed = read_cellar(export_list(collect(WINES))).items
    items = tuple(
        replace(item, number=number) for number, item in enumerate(listed, start=1)
    )
    toolbox, run = (
        Toolbox(memory_tools()),
        Run(deps=Deps(person=Person(bottles=items, user_id=7))),
    )
    table = Table("Call", "CPU, ms", "× floor", "characters", box=None)
    floor = median([_measure_floor(items) for _ in range(REPEATS)])
    first, _ = asyncio.run(_measure(toolbox, run, {}))
    table.add_row("floor: compare a field of each", f"{floor:.2f}", "1", "")
    table.add_row(
        "the first after a change", f"{first:.1f}", f"{first / floor:.0f}", ""
    )
    for name, arguments in CALLS.items():
        samples = [
            asyncio.run(_measure(toolbox, run, arguments)) for _ in range(REPEATS)
        ]
        milliseconds = median([sample[0] for sample in samples])
        cells = (
            f"{milliseconds:.1f}",
            f"{milliseconds / floor:.0f}",
            f"{samples[0][1]:,}",
        )
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    console.print(
        f"{len(items):,} wines, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )


def _measure_floor(items: Sequence[CellarItem]) -> float:
    """Return the milliseconds of CPU that a bare loop over the items takes."""
    start = time.process_time()
    found: list[CellarItem] = []
    for item in items:
        if item.wine.get("style") == "red":
            found.append(item)
    return (time.process_time() - start) * 1_000


async def _measure(
    toolbox: Toolbox, run: Run, arguments: dict[str, Any]
) -> tuple[float, int]:
    """Return the milliseconds of CPU of a call, and the length of its result."""
    call = ToolCall("1", "own_cellar", json.dumps(arguments))
    start = time.process_time()
    result = await toolbox.call(call, run.for_turn())
    return (time.process_time() - start) * 1_000, len(result.text)


if __name__ == "__main__":
    main()
