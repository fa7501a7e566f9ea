"""Which update is processed when: one at a time and in order within a chat, chats side by side."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Final
from weakref import WeakValueDictionary

from telegram import Update
from telegram.ext import BaseUpdateProcessor

MAX_WAITING: Final = 10_000
"""How many updates may wait in memory for their turn."""


class ChatOrder(BaseUpdateProcessor):
    """Processes the updates of one chat one after another, and up to `chats` chats at once.

    The order is that of arrival: an `asyncio.Lock` serves those who wait for it in order.
    """

    def __init__(self, chats: int = 64) -> None:
        super().__init__(MAX_WAITING)
        self._places = asyncio.Semaphore(chats)
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def do_process_update(self, update: object, coroutine: Awaitable[Any]) -> None:
        """Wait until the chat's earlier updates are done and there is a place, then process."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        chat = update.effective_chat if isinstance(update, Update) else None
        key = chat.id if chat else 0
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with lock, self._places:
                await coroutine
        finally:
            if isinstance(coroutine, Coroutine):
                coroutine.close()  # one that was cancelled while it waited never ran

    async def cancel(self) -> int:
        """Cancel what is still being processed or waits; how many updates that were."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    async def initialize(self) -> None:
        """Nothing is needed."""

    async def shutdown(self) -> None:
        """Nothing is held."""
