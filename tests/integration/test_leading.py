"""What keeps a bot going whose processes hang, lose their locks, or die."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from bot.leading import while_leading
from bot.watchdog import watchdog
from tests.doubles.server import eventually


async def test_a_process_whose_event_loop_hangs_ends() -> None:
    ended: list[bool] = []
    with watchdog(0.1, lambda: ended.append(True)):
        await asyncio.sleep(0.3)
        assert ended == []
        time.sleep(0.5)  # noqa: ASYNC251 - this is the hang
        await asyncio.sleep(0)
    assert ended == [True]


class Locks:
    """The lock of who leads, which is lost when it is told."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def lost(self, lane: str) -> asyncio.Event:
        return self.event

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        yield not self.event.is_set()


async def test_who_lost_the_lock_leads_no_more() -> None:
    leads: list[str] = []

    async def lead(stopped: asyncio.Event) -> None:
        leads.append("began")
        try:
            await stopped.wait()
        finally:
            leads.append("ended")

    locks, stopped = Locks(), asyncio.Event()
    task = asyncio.create_task(while_leading(cast("Any", locks), [lead])(stopped))
    await eventually(lambda: leads == ["began"], seconds=5, otherwise=lambda: str(leads))
    locks.event.set()
    await eventually(lambda: leads == ["began", "ended"], seconds=5, otherwise=lambda: str(leads))
    stopped.set()
    await task
