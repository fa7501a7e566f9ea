"""`python -m benchmarks`: measure turns of this loop beside other libraries, and print a table.

Each candidate runs in a process of its own, in an environment of its own; in each repeat all of
them take turns, in rotated order, so that a busy machine is busy for all.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.environments import (
    ENTRIES,
    OURS,
    PEERS,
    Entry,
    NotInstalled,
    python_of,
    versions,
)
from benchmarks.scenario import KINDS
from benchmarks.worker import Worker, served, working

TURNS, WARM_UP, REPEATS = 100, 30, 5
QUICK = (15, 5, 3)
Samples = dict[str, list[float]]
"""Milliseconds of CPU a turn, by kind of turn, one for each repeat."""


def main() -> None:
    """Measure as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--ours", action="store_true", help="without the peers")
    arguments = parser.parse_args()
    console, pythons = Console(), dict[Entry, Path]()
    for entry in ENTRIES:
        if arguments.ours and entry in PEERS:
            continue
        try:
            pythons[entry] = python_of(entry)
        except NotInstalled as error:
            console.print(f"{entry.name} is left out: {error}")
    with console.status("measuring"):
        samples = compare(
            pythons, *(QUICK if arguments.quick else (TURNS, WARM_UP, REPEATS))
        )
    known = {entry: versions(entry, python) for entry, python in pythons.items()}
    console.print(table(samples, known))
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def compare(
    pythons: Mapping[Entry, Path], turns: int, warm_up: int, repeats: int
) -> dict[Entry, Samples]:
    """Return what every candidate costs; it has no samples of a kind that it cannot do."""
    samples: dict[Entry, Samples] = {entry: {} for entry in pythons}
    with ExitStack() as stack:
        base_url = stack.enter_context(served())
        workers = {
            entry: stack.enter_context(working(entry.module, python, base_url))
            for entry, python in pythons.items()
        }
        for entry, worker in workers.items():
            for kind in KINDS:
                if worker.cpu_ms(kind.name, warm_up) is not None:
                    samples[entry][kind.name] = []
        for repeat in range(repeats):
            for kind in KINDS:
                measure(workers, samples, kind.name, turns, repeat)
    return samples


def measure(
    workers: Mapping[Entry, Worker],
    samples: Mapping[Entry, Samples],
    kind: str,
    turns: int,
    repeat: int,
) -> None:
    """Add one sample of a kind of turn for all who can do it, begun at another one each time."""
    listed = [entry for entry in workers if kind in samples[entry]]
    start = repeat % len(listed)
    for entry in listed[start:] + listed[:start]:
        cpu = workers[entry].cpu_ms(kind, turns)
        if cpu is None:
            raise RuntimeError(
                f"{entry.name} failed in the middle: {workers[entry].last_words()}"
            )
        samples[entry][kind].append(cpu)


def table(samples: Mapping[Entry, Samples], known: Mapping[Entry, str]) -> Table:
    """Return the milliseconds of CPU a turn, and how many times the floor's in the same repeat."""
    shown = Table("", *(kind.name for kind in KINDS), "versions", "note")
    shown.title = "CPU per turn, ms (× the floor's in the same repeat, median)"
    floor = samples[ENTRIES[0]]
    for entry, costs in samples.items():
        cells = [cell(costs.get(kind.name, ()), floor[kind.name]) for kind in KINDS]
        style = "bold" if entry is OURS else ""
        shown.add_row(entry.name, *cells, known[entry], entry.note, style=style)
    return shown


def cell(costs: Sequence[float], floor: Sequence[float]) -> str:
    """Return the median of some costs, and of their ratios to the floor."""
    if not costs:
        return "–"
    ratios = [cost / least for cost, least in zip(costs, floor, strict=True)]
    return f"{median(costs):.2f} (×{median(ratios):.2f})"


if __name__ == "__main__":
    main()
