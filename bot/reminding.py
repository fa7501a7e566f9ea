"""Reminds people of their own bottles: once a month at most, in their day, as a turn like others.

What is due is accepted like an update, under an id that person and month make: so it is sent once,
whoever else runs and whatever is killed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from agent.memory.cellar import due_in
from agent.repositories import MemoryRepository

COMMAND: Final = "/remind"
HOURS: Final = range(10, 20)
"""Of the day in which somebody may be reminded."""
MONTHS: Final = 1000
"""Ids of one person: there are so many months from the first on."""
FIRST_YEAR: Final = 2020
REMINDED: Final = "reminded={}"
OFF: Final = "reminders=off"

Accept = Callable[[Sequence[Mapping[str, Any]]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminding:
    """Finds who is to be reminded, and has it done; `zone` is where people live."""

    memory: MemoryRepository
    accept: Accept
    zone: tzinfo = UTC
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def round(self) -> None:
        """Accept a reminder for each person to whom one is due now."""
        now = self.now().astimezone(self.zone)
        if now.hour not in HOURS:
            return
        for user_id in await self.memory.owners(without=(OFF, reminded_in(now))):
            facts, bottles = await self.memory.facts(user_id), await self.memory.bottles(user_id)
            if due_in(bottles, facts, now.year):
                await self.accept([reminder(user_id, now)])


def reminded_in(now: datetime) -> str:
    """Return the setting of who was reminded this month."""
    return REMINDED.format(f"{now:%Y-%m}")


def reminder(user_id: int, now: datetime) -> dict[str, Any]:
    """Return an update that is the reminder of a person in a month, as if they had asked."""
    month = ((now.year - FIRST_YEAR) * 12 + now.month) % MONTHS
    message = {
        "message_id": 0,
        "date": int(now.timestamp()),
        "chat": {"id": user_id, "type": "private"},
        "from": {"id": user_id, "is_bot": False, "first_name": ""},
        "text": COMMAND,
        "entities": [{"type": "bot_command", "offset": 0, "length": len(COMMAND)}],
    }
    return {"update_id": -(user_id * MONTHS + month), "message": message}
