"""A change of a cellar is undone whole: counts, notes, places, windows, what was drunk."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.cellar.items import select_in_stock
from agent.turn import CellarItem, Change, Drink
from db.changes.cellar import StoreList
from db.changes.memory import ChangeMemory
from db.engine import Sessions
from db.repositories.people import MemoryRepository
from tests.stored import make

NAMES = ("Barolo", "Chablis", "Rioja")
START = datetime(2026, 1, 1, tzinfo=UTC)
EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def listed(draw: st.DrawFn) -> tuple[CellarItem, ...]:
    """Items of a list, each wine once."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    return tuple(draw(item(name)) for name in names)


def item(name: str) -> st.SearchStrategy[CellarItem]:
    def build(count: int, price: float | None, **facts: Any) -> CellarItem:
        wine: dict[str, Any] = {"name": name, "style": "red"}
        if price is not None:
            wine |= {"price": price, "currency": "EUR"}
        return CellarItem(key=name.lower(), wine=wine, count=count, **facts)

    texts = st.sampled_from(["", "A", "B"])
    return st.builds(
        build,
        count=st.integers(1, 12),
        price=st.sampled_from([None, 20.0, 45.0]),
        drink_from=st.sampled_from([None, 2020, 2024]),
        drink_until=st.sampled_from([None, 2030, 2040]),
        note=texts,
        place=texts,
        bought=texts,
    )


class Cellar:
    """The cellar of a user in a database."""

    def __init__(self, sessions: Sessions, user_id: int) -> None:
        self.sessions = sessions
        self.user_id = user_id

    async def store(
        self, items: tuple[CellarItem, ...], mode: Any, undo_id: int = 0
    ) -> None:
        await make(self.sessions, StoreList(self.user_id, items, mode, undo_id))

    async def drink(self, key: str, undo_id: int) -> None:
        (opened,) = [each for each in (await self.state())[0] if each.key == key]
        drink = Drink(
            key=key, wine=opened.wine, at=START + timedelta(days=undo_id), note="good"
        )
        bottles = (replace(opened, count=-1),)
        await self.change(bottles=bottles, drinks=(drink,), undo_id=undo_id)

    async def change(self, **fields: Any) -> None:
        await make(self.sessions, ChangeMemory(Change(user_id=self.user_id, **fields)))

    async def undo(self, undo_id: int) -> None:
        await self.change(reverts_id=undo_id)

    async def state(self) -> tuple[list[CellarItem], list[Drink]]:
        memory = MemoryRepository(self.sessions)
        items = select_in_stock(await memory.list_bottles(self.user_id))
        items.sort(key=lambda each: each.key)
        return items, await memory.list_drinks(self.user_id)


user_ids = iter(range(1_000, 1_000_000))


@EXAMPLES
@given(owned=listed(), file=listed(), mode=st.sampled_from(["replace", "add"]))
async def test_undo_of_a_list_restores_the_cellar(
    sessions: Sessions,
    owned: tuple[CellarItem, ...],
    file: tuple[CellarItem, ...],
    mode: str,
) -> None:
    cellar = Cellar(sessions, next(user_ids))
    await cellar.store(owned, "add")
    await cellar.drink(owned[0].key, undo_id=1)
    before = await cellar.state()
    await cellar.store(file, mode, undo_id=2)
    await cellar.undo(2)
    assert await cellar.state() == before
    await cellar.undo(2)  # a second press
    assert await cellar.state() == before


@EXAMPLES
@given(first=listed(), file=listed())
async def test_a_list_that_is_stored_three_times_is_stored_once(
    sessions: Sessions, first: tuple[CellarItem, ...], file: tuple[CellarItem, ...]
) -> None:
    cellar = Cellar(sessions, next(user_ids))
    await cellar.store(first, "add")
    await cellar.store(file, "replace")
    once = await cellar.state()
    for _ in range(2):
        await cellar.store(file, "replace")
    assert await cellar.state() == once


async def test_undo_of_a_list_keeps_what_was_changed_since(sessions: Sessions) -> None:
    cellar = Cellar(sessions, next(user_ids))
    barolo = CellarItem(key="barolo", wine={"name": "Barolo"}, count=6, place="A1")
    await cellar.store((barolo,), "add")
    await cellar.store(
        (replace(barolo, count=9, place="B2", note="ripe"),), "replace", undo_id=1
    )
    await cellar.drink("barolo", undo_id=2)
    await cellar.store((replace(barolo, count=0, place="C3"),), "add")
    await cellar.undo(1)
    ((now,), drunk) = await cellar.state()
    assert (now.count, now.place, now.note) == (5, "C3", "")
    assert [drink.note for drink in drunk] == ["good"]
    await cellar.undo(2)
    ((now,), drunk) = await cellar.state()
    assert (now.count, now.place, drunk) == (6, "C3", [])


async def test_undo_adds_as_many_bottles_as_were_there_to_remove(
    sessions: Sessions,
) -> None:
    cellar = Cellar(sessions, next(user_ids))
    barolo = CellarItem(key="barolo", wine={"name": "Barolo"}, count=2)
    await cellar.store((barolo,), "add")
    await cellar.change(bottles=(replace(barolo, count=-5),), undo_id=1)
    await cellar.undo(1)
    assert [each.count for each in (await cellar.state())[0]] == [2]
