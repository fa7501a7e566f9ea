"""The numbers of the last days as a table for a phone. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from agent.turn_records import DayStats

LABEL_WIDTH: Final = 13
COLUMN_WIDTH: Final = 10
FOOTNOTE: Final = "7 days: people and times are those of the highest day."


def stats_table(days: Sequence[DayStats]) -> str:
    """Today, which is the last of `days`, beside all of them; at most 34 characters wide."""
    rows = [("", "today", f"{len(days)} days")]
    for label, cell in ROWS:
        rows.append((label, cell(days[-1:]), cell(days)))
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


def _turns(days: Sequence[DayStats]) -> int:
    return sum(day.turns for day in days)


def _share(part: int, whole: int) -> str:
    return f"{part} {part / whole:4.0%}" if whole else "0"


def _outcomes(*names: str) -> Callable[[Sequence[DayStats]], str]:
    def cell(days: Sequence[DayStats]) -> str:
        part = sum(day.outcomes.get(name, 0) for day in days for name in names)
        return _share(part, _turns(days))

    return cell


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"


ROWS: Final[tuple[tuple[str, Callable[[Sequence[DayStats]], str]], ...]] = (
    ("people", lambda days: str(max(day.people for day in days))),
    ("turns", lambda days: amount(_turns(days))),
    ("retried", lambda days: _share(sum(day.retried for day in days), _turns(days))),
    ("failed", _outcomes("failed")),
    ("salvaged", _outcomes("salvaged")),
    ("fallback", _outcomes("fallback")),
    ("refused", _outcomes("refused")),
    ("cost", lambda days: money(sum(day.cost_usd for day in days))),
    ("tokens", lambda days: amount(sum(day.tokens for day in days))),
    ("median", lambda days: _seconds(max(day.median_seconds for day in days))),
    ("95 % within", lambda days: _seconds(max(day.p95_seconds for day in days))),
    ("👍 / 👎", lambda days: f"{sum(d.liked for d in days)} / {sum(d.disliked for d in days)}"),
)
