"""A queue of turns in memory: order and lanes as in the product, no record of any step."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from bot.updates.journal import DurableSettings, Run

R = TypeVar("R")


class Lanes:
    """Runs the turns of a lane one after the other, those of different lanes side by side."""

    def __init__(self, settings: DurableSettings, run: Run) -> None:
        self.settings = settings
        self.active: set[int] = set()
        self._run = run
        self._known: set[tuple[int, int]] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def enqueue(self, update_id: int, lane: str, retry: int = 0) -> None:
        """Have the turn of an update run, once."""
        if (update_id, retry) in self._known or self._stopping:
            return
        self._known.add((update_id, retry))
        task = asyncio.create_task(self._turn(update_id, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _turn(self, update_id: int, lane: str) -> None:
        async with self._locks.setdefault(lane, asyncio.Lock()):
            if self._stopping:
                return
            self.active.add(update_id)
            try:
                await self._run(update_id)
            finally:
                self.active.discard(update_id)

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run it."""
        return await run()

    async def steps_recorded(self) -> Sequence[str]:
        """None is."""
        return ()

    async def finish(self, seconds: float) -> bool:
        """Begin no turn any more and wait for those that run, so long at most."""
        self._stopping = True
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        return not self.active

    async def forget(self) -> int:
        """Nothing is recorded."""
        return 0

    async def close(self) -> None:
        """Cut off what still runs."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def open_lanes(settings: DurableSettings, run: Run) -> AsyncIterator[Lanes]:
    """In place of `bot.updates.journal.open_turns`."""
    lanes = Lanes(settings, run)
    try:
        yield lanes
    finally:
        await lanes.close()
