"""Read the turns of a period in numbers, which the database computes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, get_args

from sqlalchemy import func, select

from agent.turn import TurnOutcome
from db.engine import SqlRepository
from db.models import TurnRow

WEEK_DAYS: Final = 7
OUTCOMES: Final[Sequence[TurnOutcome]] = get_args(TurnOutcome)
API_USER: Final = 0
"""The id that stands for the HTTP API, which is not a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStatistics:
    """The turns of a period in numbers. `outcomes` has the number of turns for each outcome."""

    turns: int = 0
    people: int = 0
    retried: int = 0
    cost_usd: float = 0.0
    median_seconds: float = 0.0
    slow_seconds: float = 0.0
    """95 % of the turns took no longer."""
    liked: int = 0
    disliked: int = 0
    outcomes: tuple[int, ...] = (0,) * len(OUTCOMES)

    def count(self, outcome: TurnOutcome) -> int:
        """Return the number of turns with an outcome."""
        return self.outcomes[OUTCOMES.index(outcome)]


@dataclass(frozen=True, slots=True)
class Week:
    """The seven days (UTC) that end with `last`."""

    last: date

    @property
    def days(self) -> list[date]:
        """Return the days, the oldest first."""
        first = self.last - timedelta(days=WEEK_DAYS - 1)
        return [first + timedelta(days=number) for number in range(WEEK_DAYS)]

    @property
    def start(self) -> datetime:
        """Return the first moment of the week."""
        return midnight(self.days[0])

    @property
    def end(self) -> datetime:
        """Return the first moment after the week."""
        return midnight(self.last + timedelta(days=1))

    def move(self, weeks: int) -> "Week":
        """Return the week that is `weeks` later, or earlier if negative."""
        return Week(self.last + timedelta(weeks=weeks))


@dataclass(frozen=True, slots=True)
class WeekStatistics:
    """The numbers of each day of a week, and those of the whole week."""

    week: Week
    by_day: tuple[TurnStatistics, ...]
    total: TurnStatistics


class StatisticsRepository(SqlRepository):
    """The turns in numbers."""

    async def summarize_week(self, week: Week) -> WeekStatistics:
        """Return the numbers of a week."""
        by_day: list[TurnStatistics] = []
        for day in week.days:
            next_day = day + timedelta(days=1)
            by_day.append(await self.summarize(midnight(day), midnight(next_day)))
        total = await self.summarize(week.start, week.end)
        return WeekStatistics(week, tuple(by_day), total)

    async def summarize(self, start: datetime, end: datetime) -> TurnStatistics:
        """Return the numbers of the turns from `start` until before `end`."""
        # `place` numbers the turns from the quickest on. The median is read off it, because SQLite
        # has no function for that.
        ranked = (
            select(
                TurnRow,
                func.row_number().over(order_by=TurnRow.seconds).label("place"),
                func.count().over().label("total"),
            )
            .where(TurnRow.at >= start, TurnRow.at < end)
            .subquery()
        )
        turn = ranked.c
        people = func.count(turn.user_id.distinct()).filter(turn.user_id != API_USER)
        is_in_slower_half = turn.place >= 0.5 * turn.total
        is_slow = turn.place >= 0.95 * turn.total
        by_outcome = [
            func.count().filter(turn.outcome == outcome).label(outcome)
            for outcome in OUTCOMES
        ]
        query = select(
            func.count().label("turns"),
            people.label("people"),
            func.count().filter(turn.retries > 0).label("retried"),
            func.sum(turn.cost_usd).label("cost_usd"),
            func.min(turn.seconds).filter(is_in_slower_half).label("median_seconds"),
            func.min(turn.seconds).filter(is_slow).label("slow_seconds"),
            func.count().filter(turn.verdict == "liked").label("liked"),
            func.count().filter(turn.verdict == "disliked").label("disliked"),
            *by_outcome,
        )
        [row] = await self._rows(query)
        return TurnStatistics(
            turns=row.turns,
            people=row.people,
            retried=row.retried,
            cost_usd=row.cost_usd or 0.0,
            median_seconds=row.median_seconds or 0.0,
            slow_seconds=row.slow_seconds or 0.0,
            liked=row.liked,
            disliked=row.disliked,
            outcomes=tuple(getattr(row, name) for name in OUTCOMES),
        )


def midnight(day: date) -> datetime:
    """Return the start of a day in UTC."""
    return datetime.combine(day, time(), UTC)
