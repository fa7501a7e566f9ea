"""Read the turns of a time in numbers, computed by the database."""

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
    """The turns of a time in numbers; `outcomes` counts those of each of `OUTCOMES`."""

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
    """The seven days (UTC) up to a last one."""

    last: date

    @property
    def days(self) -> list[date]:
        """Return the days, the oldest first."""
        return [
            self.last - timedelta(days=before) for before in reversed(range(WEEK_DAYS))
        ]

    @property
    def start(self) -> datetime:
        """Return the first moment of the week."""
        return midnight(self.days[0])

    @property
    def end(self) -> datetime:
        """Return the moment after the week."""
        return midnight(self.last + timedelta(days=1))

    def move(self, weeks: int) -> "Week":
        """Return the week so many weeks later."""
        return Week(self.last + timedelta(weeks=weeks))


@dataclass(frozen=True, slots=True)
class WeekStatistics:
    """The numbers of each day of a week, and of all its turns together."""

    week: Week
    by_day: tuple[TurnStatistics, ...]
    total: TurnStatistics


class StatisticsRepository(SqlRepository):
    """The turns in numbers."""

    async def summarize_week(self, week: Week) -> WeekStatistics:
        """Return the numbers of a week."""
        by_day = [
            await self.summarize(midnight(day), midnight(day + timedelta(days=1)))
            for day in week.days
        ]
        return WeekStatistics(
            week, tuple(by_day), await self.summarize(week.start, week.end)
        )

    async def summarize(self, start: datetime, end: datetime) -> TurnStatistics:
        """Return the numbers of the turns of a time."""
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
        is_not_faster = turn.place >= 0.5 * turn.total
        is_slow = turn.place >= 0.95 * turn.total
        query = select(
            func.count().label("turns"),
            people.label("people"),
            func.count().filter(turn.retries > 0).label("retried"),
            func.sum(turn.cost_usd).label("cost_usd"),
            func.min(turn.seconds).filter(is_not_faster).label("median_seconds"),
            func.min(turn.seconds).filter(is_slow).label("slow_seconds"),
            func.count().filter(turn.verdict == "liked").label("liked"),
            func.count().filter(turn.verdict == "disliked").label("disliked"),
            *(
                func.count().filter(turn.outcome == name).label(name)
                for name in OUTCOMES
            ),
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
