"""What was measured, as tables: one shape for the screen and for the documentation."""

import datetime
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.environments import FLOOR, OURS, TRACED, Entry
from benchmarks.measure import Costs, Growth, Plan
from benchmarks.scenario import KINDS

MOST_RATIO: Final = 1.5
MOST_MORE_MS: Final = 8.0
MOST_GROWTH_MIB: Final = 1.0
NOTHING: Final = "–"


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first column names the rows."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Measured:
    """All that one run found out."""

    plan: Plan
    costs: Mapping[Entry, Costs]
    growths: Mapping[Entry, Growth]
    skipped: Mapping[Entry, str]
    versions: Mapping[Entry, str]


def grids(measured: Measured) -> list[Grid]:
    """Everything to show, goals first."""
    parts = [goals(measured)]
    if measured.costs:
        parts += [cpu(measured), wall(measured), sent(measured)]
    if measured.growths:
        parts.append(memory(measured))
    return [*parts, candidates(measured)]


def goals(measured: Measured) -> Grid:
    """What is promised, and what was measured."""
    rows = [*cost_goals(measured.costs), *(memory_goal(*each) for each in measured.growths.items())]
    return Grid("Goals", ("goal", "measured", "reached"), rows)


def cost_goals(costs: Mapping[Entry, Costs]) -> list[tuple[str, str, str]]:
    """The goals of processor time and of bytes sent."""
    if FLOOR not in costs or OURS not in costs:
        return []
    ours, floor = costs[OURS], costs[FLOOR]
    rows = [
        goal(f"CPU of a {kind.name} turn, × floor", ours.ratio(kind.name, floor), MOST_RATIO)
        for kind in KINDS[:3]
    ]
    if TRACED in costs:
        for kind in KINDS:
            more = costs[TRACED].more_ms(kind.name, ours)
            rows.append(
                goal(f"CPU that tracing adds to a {kind.name} turn, ms", more, MOST_MORE_MS)
            )
    if ours.attempts:
        rows.append(goal("bytes sent by attempt 5", ours.attempts[4], ours.attempts[1]))
    return rows


def memory_goal(entry: Entry, growth: Growth) -> tuple[str, str, str]:
    """No growth: what is within the noise of the allocator."""
    name = f"memory grown over {growth.turns:,} turns, MiB ({entry.name})"
    rss = None if growth.rss_mib is None else growth.rss_mib[1] - growth.rss_mib[0]
    return goal(name, rss, MOST_GROWTH_MIB)


def goal(name: str, value: float | None, most: float) -> tuple[str, str, str]:
    """One goal: it is reached if the value is at most so much."""
    reached = value is not None and value <= most
    return f"{name} ≤ {number(most)}", number(value), "yes" if reached else "NO"


def number(value: float | None) -> str:
    """A number as a person reads it."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def cpu(measured: Measured) -> Grid:
    """Processor time by kind of turn, and its ratio to the floor."""
    floor = measured.costs[FLOOR]

    def cell(costs: Costs, kind: str) -> str:
        ratio = costs.ratio(kind, floor)
        return NOTHING if ratio is None else f"{costs.cpu_ms(kind):.2f} (×{ratio:.2f})"

    return by_kind("CPU per turn, ms (× the floor's in the same run)", measured, cell)


def wall(measured: Measured) -> Grid:
    """Time by kind of turn."""
    return by_kind("Time per turn, ms", measured, lambda costs, kind: number(costs.wall_ms(kind)))


def by_kind(title: str, measured: Measured, cell: Callable[[Costs, str], str]) -> Grid:
    """A row for each candidate, a column for each kind of turn."""
    rows = [
        (entry.name, *(problem_or(costs, kind.name, cell) for kind in KINDS))
        for entry, costs in measured.costs.items()
    ]
    rows += [(entry.name, *("skipped" for _ in KINDS)) for entry in measured.skipped]
    return Grid(title, ("", *(kind.name for kind in KINDS)), rows)


def problem_or(costs: Costs, kind: str, cell: Callable[[Costs, str], str]) -> str:
    """The cell, or what the candidate raised."""
    return costs.errors.get(kind) or cell(costs, kind)


def sent(measured: Measured) -> Grid:
    """Bytes on the wire, heads of requests included."""
    rows = [
        (
            entry.name,
            *(bytes_or_nothing(costs.sent(kind.name)) for kind in KINDS),
            *(bytes_or_nothing(costs.attempts[i] if costs.attempts else None) for i in (1, 4)),
        )
        for entry, costs in measured.costs.items()
    ]
    header = ("", *(kind.name for kind in KINDS), "attempt 2", "attempt 5")
    return Grid("Bytes sent per turn, and by two attempts of a failing turn", header, rows)


def bytes_or_nothing(count: float | None) -> str:
    """A number of bytes."""
    return NOTHING if count is None else f"{count:,.0f}"


def memory(measured: Measured) -> Grid:
    """Highest memory of every candidate; growth where it was measured."""
    rows = []
    for entry in measured.costs or measured.growths:
        costs, growth = measured.costs.get(entry), measured.growths.get(entry)
        rss = growth.rss_mib if growth else None
        rows.append(
            (
                entry.name,
                number(costs.peak_mib if costs else None),
                f"{rss[0]:.2f} → {rss[1]:.2f}" if rss else NOTHING,
                f"{growth.objects[0]:,} → {growth.objects[1]:,}" if growth else NOTHING,
            )
        )
    turns, warm_up = measured.plan.memory_turns, measured.plan.memory_warm_up
    grown = f"over {turns:,} turns after {warm_up:,}"
    return Grid(
        "Memory, MiB", ("", "highest", f"resident, {grown}", f"live objects, {grown}"), rows
    )


def candidates(measured: Measured) -> Grid:
    """Who took part, with versions; who did not, with the reason."""
    rows = [(entry.name, measured.versions[entry], entry.note) for entry in measured.versions]
    rows += [(entry.name, "skipped", why) for entry, why in measured.skipped.items()]
    return Grid("Candidates", ("", "versions", "note"), rows)


def machine(today: datetime.date) -> str:
    """Where and when, in general terms."""
    return (
        f"{today.isoformat()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )


def show(console: Console, parts: Sequence[Grid]) -> None:
    """Print the tables."""
    for part in parts:
        table = Table(title=part.title, title_justify="left", title_style="bold")
        for position, name in enumerate(part.header):
            table.add_column(name, justify="left" if position == 0 else "right")
        for row in part.rows:
            table.add_row(*row)
        console.print(table)
