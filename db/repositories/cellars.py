"""Read the bottles of users: those that they own, and those that they have opened."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import func, select

from agent.turn import CellarItem, Drink
from db.engine import SqlRepository
from db.models import BottleRow, DrinkRow
from db.statements import to_record

MAX_DRINKS: Final = 1_000
"""The most opened bottles that a turn reads."""
MIN_KEPT_ITEMS: Final = 200
"""A smaller cellar is read anew each time."""
MAX_KEPT_CELLARS: Final = 16

Version = tuple[int, datetime | None, int | None]
"""The number of items of a cellar, the time of its last change, which grows with each, and the sum
of the years in which the user was reminded of items."""
NO_BOTTLES: Final[Version] = (0, None, None)


@dataclass(eq=False)
class CellarRepository(SqlRepository):
    """The cellars of users; large ones are kept in memory until they change."""

    _kept: OrderedDict[int, tuple[Version, tuple[CellarItem, ...]]] = field(
        default_factory=OrderedDict
    )

    async def list_bottles(self, user_id: int) -> tuple[CellarItem, ...]:
        """Return the wines that a user owns or owned, sorted by their last change.

        It is the same tuple until the cellar changes, by whichever process.
        """
        version = await self._find_version(user_id)
        if version == NO_BOTTLES:
            self._kept.pop(user_id, None)
            return ()
        kept = self._kept.pop(user_id, None)
        if kept is None or kept[0] != version:
            kept = version, await self._read_bottles(user_id)
        items = kept[1]
        if len(items) >= MIN_KEPT_ITEMS:
            self._kept[user_id] = kept
        if len(self._kept) > MAX_KEPT_CELLARS:
            self._kept.popitem(last=False)
        return items

    async def list_drinks(self, user_id: int) -> list[Drink]:
        """Return the bottles that a user has opened, the last one first; not more than some."""
        drunk = select(DrinkRow.__table__).where(DrinkRow.user_id == user_id)
        rows = await self._rows(drunk.order_by(DrinkRow.at.desc()).limit(MAX_DRINKS))
        return [to_record(Drink, row) for row in rows]

    async def _find_version(self, user_id: int) -> Version:
        parts = func.count(), func.max(BottleRow.at), func.sum(BottleRow.reminded_year)
        ((count, changed_at, reminded),) = await self._rows(
            select(*parts).where(BottleRow.user_id == user_id)
        )
        return count, changed_at, reminded

    async def _read_bottles(self, user_id: int) -> tuple[CellarItem, ...]:
        owned = select(BottleRow.__table__).where(BottleRow.user_id == user_id)
        rows = await self._rows(owned.order_by(BottleRow.at, BottleRow.id))
        return tuple(to_record(CellarItem, row) for row in rows)
