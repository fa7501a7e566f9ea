"""Read the turns of a period in numbers, which the database computes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, get_args

from sqlalchemy import ColumnElement, and_, func, select

from agent.turn import TurnOutcome
from db.engine import SqlRepository
from db.models import TurnRow

Durations = Counter[int]
"""How many turns took so many tenths of a second."""
Condition = ColumnElement[bool]
WEEK_DAYS: Final = 7
OUTCOMES: Final[Sequence[TurnOutcome]] = get_args(TurnOutcome)
API_USER: Final = 0
"""The id that stands for the HTTP API, which is not a person."""
IS_PERSON: Final = TurnRow.user_id != API_USER
PEOPLE: Final = func.count(TurnRow.user_id.distinct()).filter(IS_PERSON)
"""The number of people among the users of turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStatistics:
    """The turns of a period in numbers. `outcomes` has the number of turns for each outcome."""

    turns: int = 0
    people: int = 0
    retried: int = 0
    cost_usd: float = 0.0
    median_seconds: float = 0.0
    """Half of the turns took no longer."""
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
        days: list[date] = []
        for days_before_last in reversed(range(WEEK_DAYS)):
            days.append(self.last - timedelta(days=days_before_last))
        return days

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
        durations_of_week: Durations = Counter()
        for day in week.days:
            next_day = day + timedelta(days=1)
            is_on_day = _is_between(midnight(day), midnight(next_day))
            durations = await self._read_durations(is_on_day)
            durations_of_week.update(durations)
            statistics = await self._summarize(is_on_day, durations)
            by_day.append(statistics)
        is_in_week = _is_between(week.start, week.end)
        people = await self._count_people(is_in_week)
        total = _add_up(by_day, people, durations_of_week)
        return WeekStatistics(week, tuple(by_day), total)

    async def _summarize(
        self, is_on_day: Condition, durations: Durations
    ) -> TurnStatistics:
        """Return the statistics of the turns of a day, which have these durations."""
        turn_count = func.count()
        query = select(
            turn_count.label("turns"),
            PEOPLE.label("people"),
            turn_count.filter(TurnRow.retries > 0).label("retried"),
            func.sum(TurnRow.cost_usd).label("cost_usd"),
            turn_count.filter(TurnRow.verdict == "liked").label("liked"),
            turn_count.filter(TurnRow.verdict == "disliked").label("disliked"),
            *_count_outcomes(),
        )
        [row] = await self._rows(query.where(is_on_day))
        return TurnStatistics(
            turns=row.turns,
            people=row.people,
            retried=row.retried,
            cost_usd=row.cost_usd or 0.0,
            median_seconds=_find_seconds(durations, 0.5),
            slow_seconds=_find_seconds(durations, 0.95),
            liked=row.liked,
            disliked=row.disliked,
            outcomes=tuple([getattr(row, outcome) for outcome in OUTCOMES]),
        )

    async def _read_durations(self, is_on_day: Condition) -> Durations:
        """Return the number of turns of each duration, rounded to tenths of a second."""
        tenths = func.round(TurnRow.seconds * 10)
        counts = select(tenths, func.count()).where(is_on_day)
        rows = await self._rows(counts.group_by(tenths))
        durations: Durations = Counter()
        for rounded, turn_count in rows:
            durations[int(rounded)] = turn_count
        return durations

    async def _count_people(self, is_in_week: Condition) -> int:
        """Return how many people wrote in a week."""
        people = await self._first_value(select(PEOPLE).where(is_in_week))
        return people or 0


def _count_outcomes() -> list[ColumnElement[int]]:
    """Return a column for each outcome, with the number of turns that ended so."""
    counts: list[ColumnElement[int]] = []
    for outcome in OUTCOMES:
        has_outcome = TurnRow.outcome == outcome
        count = func.count().filter(has_outcome).label(outcome)
        counts.append(count)
    return counts


def _is_between(start: datetime, end: datetime) -> Condition:
    """Return the condition for the turns from `start` on and before `end`."""
    return and_(TurnRow.at >= start, TurnRow.at < end)


def _find_seconds(durations: Durations, share: float) -> float:
    """Return within how many seconds this share of the turns ended, or 0 if there are no turns."""
    min_ended = share * durations.total()
    ended = 0
    for tenths in sorted(durations):
        ended += durations[tenths]
        if ended >= min_ended:
            return tenths / 10
    return 0.0


def _add_up(
    days: Sequence[TurnStatistics],
    people: int,
    durations: Durations,
) -> TurnStatistics:
    """Return the numbers of all days together.

    `people` is the number of people who wrote on these days. `durations` are those of all turns.
    Neither follows from the numbers of the days.
    """
    outcomes_by_day = [day.outcomes for day in days]
    counts_by_outcome = zip(*outcomes_by_day, strict=True)
    return TurnStatistics(
        turns=sum(day.turns for day in days),
        people=people,
        retried=sum(day.retried for day in days),
        cost_usd=sum(day.cost_usd for day in days),
        median_seconds=_find_seconds(durations, 0.5),
        slow_seconds=_find_seconds(durations, 0.95),
        liked=sum(day.liked for day in days),
        disliked=sum(day.disliked for day in days),
        outcomes=tuple([sum(counts) for counts in counts_by_outcome]),
    )


def midnight(day: date) -> datetime:
    """Return the start of a day in UTC."""
    return datetime.combine(day, time(), UTC)
