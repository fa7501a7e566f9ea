"""What keeps a bot going whose processes hang, lose their locks, or die."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from bot.leading import while_leading
from tests.doubles.server import eventually

HANGING = """
import asyncio, time
from bot.tasks import end_when_hanging

async def main():
    watching = asyncio.create_task(end_when_hanging(0.2))
    await asyncio.sleep(0.5)
    print("works", flush=True)
    time.sleep(10)

asyncio.run(main())
"""


def test_a_process_whose_event_loop_hangs_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=9, check=False
    )
    assert (ended.stdout, ended.returncode) == ("works\n", 1)
    assert "time.sleep" in ended.stderr or "Timeout" in ended.stderr


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

    async def lead() -> None:
        leads.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            leads.append("ended")

    locks = Locks()
    task = asyncio.create_task(while_leading(cast("Any", locks), lead))
    await eventually(lambda: leads == ["began"], seconds=5, otherwise=lambda: str(leads))
    locks.event.set()
    await eventually(lambda: leads == ["began", "ended"], seconds=5, otherwise=lambda: str(leads))
    task.cancel()
