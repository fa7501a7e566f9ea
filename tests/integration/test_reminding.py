"""Reminders of one's own bottles: once a month, in the day of people, never twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.memory.cellar import bottles_of, due_in, told_in
from agent.sommelier.wine import Style, Wine
from agent.turn import Change, Fact
from bot.telegram.memory import OFF, Reminding, reminded_in, reminder
from db.engine import Sessions
from db.repositories.people import SqlMemoryRepository
from db.repositories.turns import SqlTurnRepository
from tests.databases import migrated_sqlite

ADA, BOB, CLEO = 7100471, 8200482, 9300493
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
BAROLO = Wine(
    id="own:",
    producer="",
    name="Barolo",
    vintage=2018,
    country="Italy",
    region="Barolo",
    style=Style.RED,
)


@dataclass
class Inbox:
    """Takes what is accepted."""

    updates: list[Mapping[str, Any]] = field(default_factory=list)

    async def accept(self, updates: Sequence[Mapping[str, Any]]) -> None:
        self.updates += updates


async def test_who_owns_what_is_due_is_reminded_once_a_month_in_their_day(tmp_path: Path) -> None:
    engine = await migrated_sqlite(tmp_path / "reminding.sqlite3")
    sessions = Sessions(engine)
    turns, memory, inbox = SqlTurnRepository(sessions), SqlMemoryRepository(sessions), Inbox()
    due, young = bottles_of(BAROLO, 6), bottles_of(replace_vintage(2024), 6)
    off = (Fact("setting", OFF),)
    await turns.change(
        [
            Change(user_id=ADA, bottles=(due, young)),
            Change(user_id=BOB, bottles=(young,)),
            Change(user_id=CLEO, bottles=(due,), learned=off),
        ]
    )
    reminding = Reminding(memory=memory, accept=inbox.accept, now=lambda: NOON)
    night = replace(reminding, zone=ZoneInfo("Asia/Tokyo"))
    await night.round()
    assert inbox.updates == []
    await reminding.round()
    await reminding.round()  # nobody has taken it yet: it is the same update
    assert [each["message"]["chat"]["id"] for each in inbox.updates] == [ADA, ADA]
    assert len({each["update_id"] for each in inbox.updates}) == 1

    told = (Fact("setting", reminded_in(NOON)), told_in(due, 2026))
    await turns.change([Change(user_id=ADA, learned=told)])
    await reminding.round()
    june = replace(reminding, now=lambda: NOON.replace(month=6))
    await june.round()
    assert len(inbox.updates) == 2
    facts = await memory.facts(ADA)
    assert due_in(await memory.bottles(ADA), facts, 2026) == []
    assert [each.key for each in due_in(await memory.bottles(ADA), facts, 2032)] == [young.key]
    await engine.dispose()


def replace_vintage(year: int) -> Wine:
    return BAROLO.model_copy(update={"vintage": year})


def test_a_reminder_of_a_person_and_month_has_an_id_of_its_own() -> None:
    months = [datetime(year, month, 1, tzinfo=UTC) for year in (2026, 2027) for month in (1, 2, 12)]
    ids = {reminder(user, each)["update_id"] for user in (ADA, BOB, 2**52) for each in months}
    assert len(ids) == 3 * len(months)
    assert all(-(2**63) < each < 0 for each in ids)
