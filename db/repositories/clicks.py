"""Count presses of the buttons that open the pages of wines, by wine and week."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from sqlalchemy import Date, bindparam, desc, func, select, text

from db.engine import SqlRepository
from db.models import ClickRow

MAX_LISTED: Final = 10
_COUNT_PRESS: Final = text("""
    INSERT INTO clicks (wine_id, week, count) VALUES (:wine_id, :week, 1)
    ON CONFLICT (wine_id, week) DO UPDATE SET count = clicks.count + 1
""").bindparams(bindparam("week", type_=Date))


@dataclass(frozen=True, slots=True)
class ClickCount:
    """The number of presses of the button that opens the page of a wine."""

    wine_id: str
    presses: int


class ClickRepository(SqlRepository):
    """Reads how often pages were opened."""

    async def list_most_pressed(self, weeks: int) -> Sequence[ClickCount]:
        """Return the wines with the most presses in the last `weeks`, this week included."""
        earlier_weeks = timedelta(weeks=weeks - 1)
        first_week = self._monday() - earlier_weeks
        presses = func.sum(ClickRow.count)
        most_pressed = (
            select(ClickRow.wine_id, presses)
            .where(ClickRow.week >= first_week)
            .group_by(ClickRow.wine_id)
            .order_by(desc(presses), ClickRow.wine_id)
            .limit(MAX_LISTED)
        )
        rows = await self._rows(most_pressed)
        return [ClickCount(wine_id, count) for wine_id, count in rows]

    def _monday(self) -> date:
        """Return the Monday of this week, which stands for the week in the table."""
        today = self.now().date()
        return today - timedelta(days=today.weekday())


class Clicks(ClickRepository):
    """Counts presses. It keeps nothing about the person who pressed."""

    async def count(self, wine_id: str) -> None:
        """Count a press in this week, and commit."""
        values = {"wine_id": wine_id, "week": self._monday()}
        async with self.sessions.begin() as session:
            await session.execute(_COUNT_PRESS, values)
