"""Reminders of one's own bottles: once a month, in the day of people, never twice."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from zoneinfo import ZoneInfo

from agent.memory.cellar import bottles_of, due_in
from agent.sommelier.wine import Style, Wine
from agent.turn import Change, Fact
from bot.telegram.conversation import Conversation
from bot.telegram.reminders import OFF, Reminding
from db.engine import Sessions
from db.repositories.broadcasts import Broadcasts
from db.repositories.people import MemoryRepository
from db.repositories.turns import TurnRepository
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


async def test_who_owns_what_is_due_is_reminded_once_a_month_in_their_day(tmp_path: Path) -> None:
    engine = await migrated_sqlite(tmp_path / "reminding.sqlite3")
    sessions = Sessions(engine)
    turns, memory = TurnRepository(sessions), MemoryRepository(sessions)
    due, young = bottles_of(BAROLO, 6), bottles_of(replace_vintage(2024), 6)
    off = (Fact("setting", OFF),)
    await turns.change(
        [
            Change(user_id=ADA, bottles=(due, young)),
            Change(user_id=BOB, bottles=(young,)),
            Change(user_id=CLEO, bottles=(due,), learned=off),
        ]
    )
    talk = cast("Conversation", SimpleNamespace(repositories=SimpleNamespace(memory=memory)))
    reminding = Reminding(talk=talk, now=lambda: NOON)
    broadcasts = Broadcasts(sessions)
    await replace(reminding, zone=ZoneInfo("Asia/Tokyo")).round()
    assert await broadcasts.unsent(9) == []
    for _ in range(2):
        await reminding.round()
    june = replace(reminding, now=lambda: NOON.replace(month=6))
    await june.round()
    (message,) = await broadcasts.unsent(9)
    assert (message.chat_id, "Barolo 2018" in message.html) == (ADA, True)
    assert message.buttons[0][0][1] == "rm:off"
    facts = await memory.facts(ADA)
    assert due_in(await memory.bottles(ADA), facts, 2026) == []
    assert [each.key for each in due_in(await memory.bottles(ADA), facts, 2032)] == [young.key]
    await engine.dispose()


def replace_vintage(year: int) -> Wine:
    return BAROLO.model_copy(update={"vintage": year})
