"""Read the bottles of users: those that they own and those that they have opened."""

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import func, select

from agent.turn import CellarItem, Drink
from db.engine import SqlRepository
from db.models import BottleRow, DrinkRow
from db.statements import to_record

MAX_DRINKS: Final = 1_000
"""How many opened bottles a turn reads at most."""
MIN_KEPT_ITEMS: Final = 200
"""A cellar with fewer items is read anew each time."""
MAX_KEPT_CELLARS: Final = 16

Items = tuple[CellarItem, ...]
Version = tuple[int, datetime | None, int | None]
"""What differs after each change of a cellar.

It has the number of items, the time of the last change, and the sum of the years in which the user
was reminded of items: a reminder does not count as a change.
"""
NO_BOTTLES: Final[Version] = (0, None, None)


class KeptCellar(NamedTuple):
    """The items of a cellar, and its version when they were read."""

    version: Version
    items: Items


@dataclass(eq=False)
class CellarRepository(SqlRepository):
    """The cellars of users. Large ones are kept in memory until they change."""

    _kept: OrderedDict[int, KeptCellar] = field(default_factory=OrderedDict)
    """The kept cellars by user. The one that was read last is at the end."""

    async def list_bottles(self, user_id: int) -> Items:
        """Return the wines that a user owns or owned, sorted by their last change.

        A large cellar is the same tuple each time, until this or another process changes it.
        """
        version = await self._find_version(user_id)
        # Taken out here and put back below, so that it becomes the last one.
        kept = self._kept.pop(user_id, None)
        if version == NO_BOTTLES:
            return ()
        if kept is not None and kept.version == version:
            items = kept.items
        else:
            items = await self._read_bottles(user_id)
        if len(items) >= MIN_KEPT_ITEMS:
            self._kept[user_id] = KeptCellar(version, items)
        if len(self._kept) > MAX_KEPT_CELLARS:
            self._kept.popitem(last=False)
        return items

    async def list_drinks(self, user_id: int) -> list[Drink]:
        """Return the last `MAX_DRINKS` bottles that a user has opened, the newest first."""
        newest_first = (
            select(DrinkRow.__table__)
            .where(DrinkRow.user_id == user_id)
            .order_by(DrinkRow.at.desc())
            .limit(MAX_DRINKS)
        )
        rows = await self._rows(newest_first)
        return [to_record(Drink, row) for row in rows]

    async def _find_version(self, user_id: int) -> Version:
        """Return values that change whenever the cellar of the user changes."""
        query = select(
            func.count(),
            func.max(BottleRow.at),
            func.sum(BottleRow.reminded_year),
        )
        [row] = await self._rows(query.where(BottleRow.user_id == user_id))
        count, changed_at, reminded_years = row
        return count, changed_at, reminded_years

    async def _read_bottles(self, user_id: int) -> Items:
        """Read the wines of a user, sorted by their last change."""
        last_change_last = (
            select(BottleRow.__table__)
            .where(BottleRow.user_id == user_id)
            .order_by(BottleRow.at, BottleRow.id)
        )
        rows = await self._rows(last_change_last)
        return tuple([to_record(CellarItem, row) for row in rows])
