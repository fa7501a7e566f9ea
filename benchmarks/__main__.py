"""`python -m benchmarks`: measure turns of this loop beside other libraries, and print tables."""

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.environments import (
    ENTRIES,
    FLOOR,
    OURS,
    TRACED,
    TYPED,
    Entry,
    NotInstalled,
    earlier,
    python_of,
    versions,
)
from benchmarks.measure import FULL, QUICK, compare, growths
from benchmarks.report import Measured, grids, show


def main() -> None:
    """Measure as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--memory", action="store_true", help="only the growth of memory")
    parser.add_argument("--ours", action="store_true", help="without the peers")
    parser.add_argument(
        "--earlier", type=Path, metavar="CHECKOUT", help="measure an earlier checkout beside this"
    )
    arguments = parser.parse_args()
    console = Console()
    started = time.monotonic()
    entries: tuple[Entry, ...] = ENTRIES
    if arguments.memory:
        entries = OURS, TRACED
    elif arguments.ours:
        entries = FLOOR, TYPED, OURS, TRACED
    if arguments.earlier:
        entries = *entries, *earlier(arguments.earlier.resolve())
    measured = measure(console, entries, quick=arguments.quick, memory_only=arguments.memory)
    show(console, grids(measured))
    console.print(f"{time.monotonic() - started:.0f} s")


def measure(
    console: Console, entries: Sequence[Entry], *, quick: bool, memory_only: bool
) -> Measured:
    """Build what is missing, then measure."""
    plan = QUICK if quick else FULL
    with console.status("") as status:
        pythons, skipped = environments(entries, status.update)
        costs = {} if memory_only else compare(pythons, plan, status.update)
        status.update(f"memory over {plan.memory_turns:,} turns")
        ours = {entry: pythons[entry] for entry in (OURS, TRACED)}
        grown = asyncio.run(growths(ours, plan))
    known = {entry: versions(entry, python) for entry, python in pythons.items()}
    return Measured(plan, costs, grown, skipped, known)


def environments(
    entries: Sequence[Entry], progress: Callable[[str], None]
) -> tuple[dict[Entry, Path], dict[Entry, str]]:
    """The interpreter of each candidate, or why it has none."""
    pythons: dict[Entry, Path] = {}
    skipped: dict[Entry, str] = {}
    for entry in entries:
        progress(f"environment of {entry.name}")
        try:
            pythons[entry] = python_of(entry)
        except NotInstalled as error:
            skipped[entry] = str(error)
    return pythons, skipped


if __name__ == "__main__":
    main()
