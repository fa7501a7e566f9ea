"""What people told of themselves and own, over SQL; it changes with the end of a turn alone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from agent.person import Bottles, Change, Fact
from db.engine import SqlRepository
from db.models import BottleRow, CareRow, FactRow, insert_into, loaded, storable, table_of, upsert
from db.repositories.privacy import forget, forget_elsewhere

FACTS: Final = table_of(FactRow)
BOTTLES: Final = table_of(BottleRow)
THEIRS: Final[BindParameter[int]] = bindparam("user_id")
OF_PERSON: Final = select(FACTS).where(FACTS.c.user_id == THEIRS).order_by(FACTS.c.at)
OWNED: Final = select(BOTTLES).where(BOTTLES.c.user_id == THEIRS).order_by(BOTTLES.c.id)


class SqlMemoryRepository(SqlRepository):
    """Fulfils `agent.repositories.MemoryRepository` on SQLite and Postgres alike."""

    async def facts(self, user_id: int) -> list[Fact]:
        return await self._sessions.read(
            lambda on: [loaded(Fact, row) for row in on.execute(OF_PERSON, {"user_id": user_id})]
        )

    async def bottles(self, user_id: int) -> list[Bottles]:
        return await self._sessions.read(
            lambda on: [loaded(Bottles, row) for row in on.execute(OWNED, {"user_id": user_id})]
        )


def change(on: Connection, changes: Sequence[Change], now: datetime) -> None:
    """Make the changes of a turn; in the transaction that ends it, so once."""
    for each in changes:
        for fact in each.unlearned:
            _unlearn(on, each.user_id, fact)
        for fact in each.learned:
            row = {"user_id": each.user_id, "turn_id": 0, "said": storable(fact.said), "at": now}
            own = {"kind": fact.kind, "value": storable(fact.value)}
            on.execute(upsert(on, FactRow), row | own)
        for bottles in each.bottles:
            _add(on, each.user_id, bottles, now)
        if each.forget:
            forget(on, each.user_id, each.forget)
            forget_elsewhere(on, each.forget, now)


def _unlearn(on: Connection, user_id: int, fact: Fact) -> None:
    """Delete a fact; an allergy is held of each chat that it was told in, too."""
    row = FACTS.c
    same = (row.kind == fact.kind) & (row.value == fact.value)
    on.execute(delete(FACTS).where(row.user_id == user_id, same))
    if fact.kind == "allergy":
        told = (CareRow.user_id == user_id) & (CareRow.told == fact.value)
        on.execute(delete(table_of(CareRow)).where(told))


def _add(on: Connection, user_id: int, bottles: Bottles, now: datetime) -> None:
    """Add bottles to those of the same wine, or take them away; there are never less than none."""
    this = (BOTTLES.c.user_id == user_id) & (BOTTLES.c.key == storable(bottles.key))
    known = on.execute(select(BOTTLES).where(this)).one_or_none()
    told = {
        "wine": dict(bottles.wine),
        "drink_from": bottles.drink_from,
        "drink_until": bottles.drink_until,
        "note": storable(bottles.note),
    }
    told = {name: value for name, value in told.items() if value or known is None}
    count = max(0, (known._mapping["count"] if known else 0) + bottles.count)
    if known is not None:
        on.execute(update(BOTTLES).where(this).values(**told, count=count, at=now))
        return
    row = {"user_id": user_id, "key": storable(bottles.key), "count": count, "at": now}
    on.execute(insert_into(on, BottleRow), row | told)
