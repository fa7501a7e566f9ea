"""Change the bottles of a user, and return what was changed, so that it can be undone."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.turn import CELLAR_FACTS, MAX_CELLAR_ITEMS, CellarItem, Change
from db.models import BottleRow


async def change_bottles(
    session: AsyncSession,
    change: Change,
    now: datetime,
) -> Change:
    """Change the bottles, and return the change as it was made, with what it has overwritten.

    New wines beyond `MAX_CELLAR_ITEMS` are left out. A change that undoes another adds none.
    """
    if not change.bottles:
        return change
    rows = await _lock_rows(session, change.user_id)
    stored_keys = set(rows)
    at = _time_of_change(rows.values(), now)
    if not change.is_inverse:
        _add_rows(session, change, rows)
    made: list[CellarItem] = []
    overwritten: dict[str, CellarItem] = {}
    for item in change.bottles:
        row = rows.get(item.key)
        if row is None:
            continue
        before = _to_item(row)
        after = change.apply_to(before, item)
        added_count = after.count - before.count
        made.append(replace(item, count=added_count))
        is_stored = item.key in stored_keys
        if is_stored and _facts_of(after) != _facts_of(before):
            overwritten[item.key] = before
        _save_item(row, after, at)
    await session.flush()
    return replace(change, bottles=tuple(made), overwritten=overwritten)


async def _lock_rows(session: AsyncSession, user_id: int) -> dict[str, BottleRow]:
    """Return the rows of a user by their keys.

    Counts are read, and written later: no other replica can change them in between.
    """
    owned = select(BottleRow).where(BottleRow.user_id == user_id)
    rows = await session.scalars(owned.with_for_update())
    return {row.key: row for row in rows}


def _add_rows(
    session: AsyncSession, change: Change, rows: dict[str, BottleRow]
) -> None:
    """Add a row for each new wine of a change, up to `MAX_CELLAR_ITEMS`."""
    numbers = [row.number for row in rows.values()]
    last_number = max(numbers, default=0)
    for item in change.bottles:
        is_full = len(rows) >= MAX_CELLAR_ITEMS
        if item.key in rows or is_full:
            continue
        last_number += 1
        row = _make_row(change.user_id, item, last_number)
        rows[item.key] = row
        session.add(row)


def _time_of_change(rows: Collection[BottleRow], now: datetime) -> datetime:
    """Return the time to store for this change, which is later than that of any change before.

    Readers compare it to know whether the cellar has changed. `now` alone does not do: the clock of
    the replica that made the last change may be ahead.
    """
    if not rows:
        return now
    last_change = max(row.at for row in rows)
    return max(now, last_change + timedelta(microseconds=1))


def _make_row(
    user_id: int,
    item: CellarItem,
    number: int,
) -> BottleRow:
    """Return the row of a new item, as yet without bottles: the change then adds them."""
    return BottleRow(
        user_id=user_id,
        key=item.key,
        number=number,
        count=0,
        wine={},
        note="",
        size_ml=item.size_ml,
        place="",
        bought="",
    )


def _to_item(row: BottleRow) -> CellarItem:
    """Return the item that a row stores."""
    return CellarItem(
        key=row.key,
        count=row.count,
        number=row.number,
        size_ml=row.size_ml,
        **_facts_of(row),
    )


def _facts_of(item: BottleRow | CellarItem) -> dict[str, Any]:
    """Return the fields of an item that a change may overwrite, by their names."""
    return {name: getattr(item, name) for name in CELLAR_FACTS}


def _save_item(
    row: BottleRow,
    item: CellarItem,
    at: datetime,
) -> None:
    """Write a changed item into its row."""
    for name, fact in _facts_of(item).items():
        setattr(row, name, fact)
    row.count = item.count
    row.at = at
