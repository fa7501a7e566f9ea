"""Large cellars: read once for each version, by whichever process they were changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agent.turn import CellarItem, Change
from db.changes.forgetting import ForgetMemory
from db.changes.memory import ChangeMemory
from db.engine import Sessions
from db.repositories.cellars import MIN_KEPT_ITEMS, CellarRepository
from tests.stored import make

ADA = 71
ITEMS = tuple(
    CellarItem(
        key=f"wine {number}", wine={"name": f"Wine {number}", "style": "red"}, count=2
    )
    for number in range(MIN_KEPT_ITEMS)
)


async def test_a_large_cellar_is_the_same_tuple_until_it_changes(
    sessions: Sessions,
) -> None:
    reader = CellarRepository(sessions)
    await make(sessions, ChangeMemory(Change(user_id=ADA, bottles=ITEMS)))
    items = await reader.list_bottles(ADA)
    assert await reader.list_bottles(ADA) is items
    noted = replace(ITEMS[0], count=0, note="ripe")
    an_hour_ago = datetime.now(UTC) - timedelta(
        hours=1
    )  # a replica whose clock is late
    change = ChangeMemory(Change(user_id=ADA, bottles=(noted,)))
    await make(sessions, change, now=lambda: an_hour_ago)
    assert "ripe" in [item.note for item in await reader.list_bottles(ADA)]
    await make(sessions, ForgetMemory(ADA))
    assert await reader.list_bottles(ADA) == ()


async def test_one_user_never_reads_the_cellar_of_another(sessions: Sessions) -> None:
    reader = CellarRepository(sessions)
    now = datetime.now(UTC)
    for user_id in (ADA, ADA + 1):
        wines = tuple(replace(item, place=f"of {user_id}") for item in ITEMS)
        change = ChangeMemory(Change(user_id=user_id, bottles=wines))
        await make(sessions, change, now=lambda: now)
    for user_id in (ADA, ADA + 1, ADA):
        places = {item.place for item in await reader.list_bottles(user_id)}
        assert places == {f"of {user_id}"}
