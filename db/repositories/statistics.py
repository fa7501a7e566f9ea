"""Read the turns of a period in numbers, which the database computes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, get_args

from sqlalchemy import ColumnElement, func, select

from agent.turn import TurnOutcome
from db.engine import SqlRepository
from db.models import TurnRow

TurnsByTenths = Counter[int]
"""How many turns took so many tenths of a second."""
WEEK_DAYS: Final = 7
OUTCOMES: Final[Sequence[TurnOutcome]] = get_args(TurnOutcome)
API_USER: Final = 0
"""The id that stands for the HTTP API, which is not a person."""
PEOPLE: Final = func.count(TurnRow.user_id.distinct()).filter(
    TurnRow.user_id != API_USER
)


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
    """Reads the turns in numbers.

    No statement sorts all turns of a week. Each statement reads the turns of one day, and the days
    are added up. Only people are counted over the whole week, because one may write on several
    days.
    """

    async def summarize_week(self, week: Week) -> WeekStatistics:
        """Return the numbers of a week."""
        by_day: list[TurnStatistics] = []
        times_of_week: TurnsByTenths = Counter()
        for day in week.days:
            start, end = midnight(day), midnight(day + timedelta(days=1))
            times = await self._count_by_tenths(start, end)
            times_of_week.update(times)
            by_day.append(await self._summarize(start, end, times))
        people = await self._count_people(week.start, week.end)
        return WeekStatistics(
            week, tuple(by_day), _add_up(by_day, people, times_of_week)
        )

    async def _summarize(
        self, start: datetime, end: datetime, times: TurnsByTenths
    ) -> TurnStatistics:
        """Return the statistics of the turns between two times. `times` has their durations."""
        by_outcome = [
            func.count().filter(TurnRow.outcome == outcome).label(outcome)
            for outcome in OUTCOMES
        ]
        query = select(
            func.count().label("turns"),
            PEOPLE.label("people"),
            func.count().filter(TurnRow.retries > 0).label("retried"),
            func.sum(TurnRow.cost_usd).label("cost_usd"),
            func.count().filter(TurnRow.verdict == "liked").label("liked"),
            func.count().filter(TurnRow.verdict == "disliked").label("disliked"),
            *by_outcome,
        )
        [row] = await self._rows(query.where(*_are_between(start, end)))
        return TurnStatistics(
            turns=row.turns,
            people=row.people,
            retried=row.retried,
            cost_usd=row.cost_usd or 0.0,
            median_seconds=_find_seconds(times, 0.5),
            slow_seconds=_find_seconds(times, 0.95),
            liked=row.liked,
            disliked=row.disliked,
            outcomes=tuple(getattr(row, name) for name in OUTCOMES),
        )

    async def _count_by_tenths(self, start: datetime, end: datetime) -> TurnsByTenths:
        """Return the number of turns of each duration, rounded to tenths of a second."""
        tenths = func.round(TurnRow.seconds * 10)
        query = select(tenths, func.count()).where(*_are_between(start, end))
        times: TurnsByTenths = Counter()
        for rounded, turns in await self._rows(query.group_by(tenths)):
            times[int(rounded)] = turns
        return times

    async def _count_people(self, start: datetime, end: datetime) -> int:
        """Return how many people wrote between two times."""
        query = select(PEOPLE).where(*_are_between(start, end))
        return await self._first_value(query) or 0


def _are_between(start: datetime, end: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the turns from `start` on and before `end`."""
    return TurnRow.at >= start, TurnRow.at < end


def _find_seconds(times: TurnsByTenths, share: float) -> float:
    """Return within how many seconds this share of the turns ended, or 0 if there are no turns."""
    ended = 0
    for tenths in sorted(times):
        ended += times[tenths]
        if ended >= share * times.total():
            return tenths / 10
    return 0.0


def _add_up(
    days: Sequence[TurnStatistics], people: int, times: TurnsByTenths
) -> TurnStatistics:
    """Return the numbers of all days together.

    `people` is the number of people who wrote on these days. `times` has the durations of all
    turns. Neither follows from the numbers of the days.
    """
    counts_by_outcome = zip(*[day.outcomes for day in days], strict=True)
    return TurnStatistics(
        turns=sum(day.turns for day in days),
        people=people,
        retried=sum(day.retried for day in days),
        cost_usd=sum(day.cost_usd for day in days),
        median_seconds=_find_seconds(times, 0.5),
        slow_seconds=_find_seconds(times, 0.95),
        liked=sum(day.liked for day in days),
        disliked=sum(day.disliked for day in days),
        outcomes=tuple(sum(counts) for counts in counts_by_outcome),
    )


def midnight(day: date) -> datetime:
    """Return the start of a day in UTC."""
    return datetime.combine(day, time(), UTC)
