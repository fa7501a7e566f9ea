"""The numbers of the last days as a table for a phone. Pure."""

from collections.abc import Callable
from typing import Final

from agent.repositories import DayStats, Stats

LABEL_WIDTH: Final = 13
COLUMN_WIDTH: Final = 10


def stats_table(stats: Stats) -> str:
    """Today beside all the days; at most 34 characters wide."""
    rows = [("", "today", f"{len(stats.days)} days")]
    rows += [(label, cell(stats.today), cell(stats.all)) for label, cell in ROWS]
    return "\n".join(
        f"{label:<{LABEL_WIDTH}}{today:>{COLUMN_WIDTH}}{all_days:>{COLUMN_WIDTH}}".rstrip()
        for label, today, all_days in rows
    )


def money(amount: float) -> str:
    """US dollars, to the digits that say something."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def amount(number: int) -> str:
    """A number in at most 9 characters."""
    if number < 1_000_000:
        return f"{number:,}"
    return f"{number / 1e6:.1f} M" if number < 1e9 else f"{number / 1e9:.1f} G"


def _share(part: int, whole: int) -> str:
    count = str(part) if part < 100_000 else f"{part // 1000}k"
    return f"{count} {part / whole:4.0%}" if whole else "0"


def _outcome(name: str) -> Callable[[DayStats], str]:
    return lambda day: _share(day.outcomes.get(name, 0), day.turns)


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"


ROWS: Final[tuple[tuple[str, Callable[[DayStats], str]], ...]] = (
    ("people", lambda day: amount(day.people)),
    ("turns", lambda day: amount(day.turns)),
    ("retried", lambda day: _share(day.retried, day.turns)),
    ("failed", _outcome("failed")),
    ("salvaged", _outcome("salvaged")),
    ("fallback", _outcome("fallback")),
    ("refused", _outcome("refused")),
    ("cost", lambda day: money(day.cost_usd)),
    ("tokens", lambda day: amount(day.tokens)),
    ("median", lambda day: _seconds(day.median_seconds)),
    ("95 % within", lambda day: _seconds(day.p95_seconds)),
    ("👍 / 👎", lambda day: f"{day.liked} / {day.disliked}"),
)
