"""From turns to the numbers of each day. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from math import ceil
from statistics import median
from typing import NamedTuple

from agent.turn_records import DayStats, Stats


class CountedTurn(NamedTuple):
    """What of a turn is counted."""

    at: datetime
    user_id: int
    outcome: str
    retries: int
    tokens: int
    cost_usd: float
    seconds: float
    verdict: str | None


def stats_of(turns: Sequence[CountedTurn], first: date, last: date) -> Stats:
    """The numbers of every day (UTC) from `first` to `last`, those without turns included."""
    of_day: dict[date, list[CountedTurn]] = defaultdict(list)
    for turn in turns:
        of_day[turn.at.astimezone(UTC).date()].append(turn)
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    by_day = tuple(_counted(day, of_day[day]) for day in days)
    return Stats(by_day, _counted(first, turns))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


def _counted(day: date, turns: Sequence[CountedTurn]) -> DayStats:
    seconds = [turn.seconds for turn in turns]
    verdicts = Counter(turn.verdict for turn in turns)
    return DayStats(
        day=day,
        people=len({turn.user_id for turn in turns if turn.user_id}),  # 0: the HTTP API
        turns=len(turns),
        retried=sum(turn.retries > 0 for turn in turns),
        outcomes=dict(Counter(turn.outcome for turn in turns)),
        liked=verdicts["liked"],
        disliked=verdicts["disliked"],
        tokens=sum(turn.tokens for turn in turns),
        cost_usd=sum(turn.cost_usd for turn in turns),
        median_seconds=median(seconds) if seconds else 0.0,
        p95_seconds=percentile(seconds, 0.95),
    )
