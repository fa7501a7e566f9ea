"""What is remembered, in one place: the repositories over one database, and what is forgotten."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self

from bot.service import Task, calmly
from bot.stopping import unless
from db.engine import Sessions
from db.repositories.broadcasts import SqlBroadcastRepository
from db.repositories.chats import SqlChatRepository
from db.repositories.feedback import SqlFeedbackRepository
from db.repositories.messages import SqlMessageRepository
from db.repositories.people import SqlPeopleRepository
from db.repositories.traces import SqlTraceStore
from db.repositories.turns import SqlTurnRepository
from db.repositories.updates import SqlUpdateRepository

FORGET_SECONDS: Final = 3600.0

Forget = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The repositories of one database."""

    messages: SqlMessageRepository
    updates: SqlUpdateRepository
    chats: SqlChatRepository
    turns: SqlTurnRepository
    feedback: SqlFeedbackRepository
    people: SqlPeopleRepository
    broadcasts: SqlBroadcastRepository
    traces: SqlTraceStore

    @classmethod
    def of(cls, sessions: Sessions) -> Self:
        """Those of this database."""
        return cls(
            messages=SqlMessageRepository(sessions),
            updates=SqlUpdateRepository(sessions),
            chats=SqlChatRepository(sessions),
            turns=SqlTurnRepository(sessions),
            feedback=SqlFeedbackRepository(sessions),
            people=SqlPeopleRepository(sessions),
            broadcasts=SqlBroadcastRepository(sessions),
            traces=SqlTraceStore(sessions),
        )

    def retention(self, *, turns: timedelta, traces: timedelta) -> Sequence[Forget]:
        """What forgets turns and traces that are older."""
        return (lambda: self.turns.forget(turns), lambda: self.traces.forget(traces))


async def forget(what: Sequence[Forget]) -> None:
    """Forget once; what cannot be done now is done the next time."""
    for each in what:
        await calmly("forgetting what is old", each)


def forgetting(what: Sequence[Forget]) -> Task:
    """Forget now, and every hour."""

    async def run(stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            await forget(what)
            await unless(stopped, asyncio.sleep(FORGET_SECONDS))

    return run
