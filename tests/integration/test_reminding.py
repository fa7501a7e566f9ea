"""Reminders of one's own bottles: once a month, in the day of people, never twice."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast
from zoneinfo import ZoneInfo

from agent.memory.cellar import bottles_of
from agent.sommelier.wine import Style, Wine
from agent.turn import Change, Fact
from bot.telegram.conversation import Conversation
from bot.telegram.reminders import OFF, Reminding
from db.engine import Sessions
from db.repositories.broadcasts import Broadcasts
from db.repositories.people import MemoryRepository
from db.repositories.turns import TurnRepository

ADA, BOB, CLEO = 7100471, 8200482, 9300493
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLACE = {"country": "Italy", "region": "Barolo", "style": Style.RED}
DUE, YOUNG = (
    bottles_of(Wine(id="own:", producer="", name="Barolo", vintage=vintage, **PLACE), 6)
    for vintage in (2018, 2024)
)


async def test_who_owns_what_is_due_is_reminded_once_a_month_in_their_day(
    sessions: Sessions,
) -> None:
    off = (Fact("setting", OFF),)
    await TurnRepository(sessions).change(
        [
            Change(user_id=ADA, bottles=(DUE, YOUNG)),
            Change(user_id=BOB, bottles=(YOUNG,)),
            Change(user_id=CLEO, bottles=(DUE,), learned=off),
        ]
    )
    repositories = SimpleNamespace(memory=MemoryRepository(sessions))
    talk = cast("Conversation", SimpleNamespace(repositories=repositories))
    reminding, broadcasts = Reminding(talk=talk, now=lambda: NOON), Broadcasts(sessions)
    await replace(reminding, zone=ZoneInfo("Asia/Tokyo")).round()
    assert await broadcasts.unsent(9) == []
    june = replace(reminding, now=lambda: NOON.replace(month=6))
    for later in (reminding, reminding, june):
        await later.round()
    (message,) = await broadcasts.unsent(9)
    assert (message.chat_id, "Barolo 2018" in message.html) == (ADA, True)
    assert message.buttons[0][0][1] == "rm:off"
