"""Schedule accepted updates.

In each chat one turn runs at a time, in the order of the updates. A few chats have turns at once.

The updates of a chat wait in a queue of their own, which is called a lane. Only one process runs a
lane at a time (`bot.updates.locks`). What happens to one update is in `bot.updates.life`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent.engine.errors import log_failure
from bot.metrics import Metrics
from bot.tasks import run_all, run_and_log_errors, run_every
from bot.turn import RunningTurns, TurnFilter
from bot.updates.joining import (
    INLINE,
    as_int,
    chat_of,
    get_object,
    is_quick,
    lane_of,
    sender_of,
)
from bot.updates.life import Lane, UpdateRunner, run_unless
from bot.updates.locks import Locks
from db.models import UpdateRow
from db.repositories.inbox import Inbox, Payload

log = logging.getLogger(__name__)

MAX_TURNS: Final = 64
"""How many turns this process runs at once.

Turns of quick lanes do not count: those of presses, of Stop and of quick commands.
"""
MAX_INLINE_QUERIES: Final = 32
"""How many inline queries are answered at once.

A query beyond them is dropped, and so is a query that arrives before the scheduler is ready. When
the user types the next letter, Telegram sends another query.
"""


@dataclass(slots=True, eq=False)
class RunningLane:
    """A lane that this process runs, and the task that runs it."""

    lane: Lane
    task: asyncio.Task[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Accepts updates and runs their turns, in each lane in the order of the update ids.

    A process runs a lane only while it holds the lane's lock. If it loses the lock, it cancels the
    turn that runs, because another process may have begun the same turn. No turn begins before
    `ready` is set. `answer_inline` answers inline queries, which are not stored.
    """

    inbox: Inbox
    update_runner: UpdateRunner[Any]
    answer_inline: Callable[[Payload], Awaitable[None]]
    running_turns: RunningTurns
    """The turns that run in this process. Other processes may ask to stop them."""
    locks: Locks
    metrics: Metrics
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _lanes: dict[str, RunningLane] = field(default_factory=dict)
    _inline: set[asyncio.Task[None]] = field(default_factory=set)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _dangerous_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a turn runs that may have ended a process in an earlier try.

    So only one such turn runs at once.
    """
    _slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_TURNS)
    )
    """Taken by each turn that runs, except quick ones."""

    @property
    def running(self) -> dict[str, asyncio.Task[None]]:
        """Return the tasks of the lanes that this process runs, by the names of the lanes."""
        tasks = {}
        for name, running_lane in self._lanes.items():
            tasks[name] = running_lane.task
        return tasks

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Store updates and schedule their lanes. Answer inline queries, which are not stored."""
        rows = [row_of(payload) for payload in payloads if INLINE not in payload]
        if rows:
            await self.inbox.accept(rows)
        for row in rows:
            self.schedule(str(row.lane))
            self.metrics.count_update("accepted")
        for payload in payloads:
            may_start = self.ready.is_set() and len(self._inline) < MAX_INLINE_QUERIES
            if INLINE in payload and may_start:
                self._start_inline(payload)

    def _start_inline(self, payload: Payload) -> None:
        """Answer an inline query in the background. Such queries wait for no lane."""

        async def answer() -> None:
            await self.answer_inline(payload)

        answering = run_and_log_errors("answering an inline query", answer)
        task = asyncio.create_task(answering)
        self._inline.add(task)
        task.add_done_callback(self._inline.discard)

    def schedule(self, name: str) -> None:
        """Tell the task of a lane that updates may wait. Start the task if there is none."""
        running = self._lanes.get(name)
        if running is None:
            lane = Lane(name)
            running = RunningLane(lane, asyncio.create_task(self._run_lane(lane)))
            self._lanes[name] = running
        running.lane.new_updates.set()

    async def watch(self) -> None:
        """Take over lanes that no process runs, and act on notices of others. Never return."""
        await run_all(self._listen, self._take_over)

    async def _take_over(self) -> None:
        """Look for lanes that no process runs, again and again."""
        description = "looking for lanes that nobody runs"
        await run_every(self.locks.poll_seconds, description, self.schedule_unowned)

    async def _listen(self) -> None:
        """Act on notices of other processes.

        A notice says that a lane has new updates, or that a user stops turns.
        """
        async for notice in self.locks.listen():
            if "lane" not in notice:
                self.running_turns.stop(TurnFilter(**notice))
                continue
            running = self._lanes.get(notice["lane"])
            if running:
                running.lane.new_updates.set()

    async def schedule_unowned(self) -> None:
        """Schedule lanes in which updates wait and which no process runs.

        These are lanes of a process that crashed, and those of an update that is tried again.
        """
        names = await self.locks.find_unowned()
        unowned = [name for name in names if name not in self._lanes]
        if unowned:
            log.info("Taking over %s lanes that nobody runs", len(unowned))
        for name in unowned:
            self.schedule(name)

    async def finish(self, grace_seconds: float = 0) -> None:
        """Begin no more turns, and cancel those that still run after `grace_seconds`.

        Waiting updates are handled by another replica or after the next start.
        """
        self._closing.set()
        # Until `ready` is set, the tasks of the lanes only wait for it, and no turn runs.
        if self.running and self.ready.is_set():
            await asyncio.wait(self.running.values(), timeout=grace_seconds)
        tasks = [*self._inline, *self.running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run_next(self, lane: Lane) -> bool:
        """Run the next turn of a lane.

        Return False if no update waits, if another process runs the lane, or if the bot stops.
        """
        if is_quick(lane.name):
            # A press must not wait for answers, and a Stop least of all.
            waiting = await self.update_runner.list_unfinished(lane)
            return await self._run_first(lane, waiting)
        async with self._slots:
            waiting = await self.update_runner.list_unfinished(lane)
            # A process may have died in a turn that was tried before.
            is_dangerous = bool(waiting) and waiting[0].tries > 0
            if not is_dangerous:
                return await self._run_first(lane, waiting)
        # Dangerous turns run one after the other. They take no slots, so that other turns need not
        # wait for them.
        async with self._dangerous_turn:
            # While this turn waited, another process may have run it.
            waiting = await self.update_runner.list_unfinished(lane)
            return await self._run_first(lane, waiting)

    async def _run_first(self, lane: Lane, waiting: Sequence[UpdateRow]) -> bool:
        """Run the turn of the first waiting update. Return whether it was run."""
        if not waiting or self._closing.is_set():
            return False
        # If the lane is locked, nothing needs to be done here: the process with the lock calls
        # `run_next` once more after its turn, and then finds these updates.
        async with self.locks.lock(lane.name) as acquired:
            if not acquired or self._closing.is_set():
                return False

            lock_is_lost = self.locks.watch_loss(lane.name)

            async def run_turn() -> None:
                await self.update_runner.run(lane, waiting)

            await run_unless(lock_is_lost.wait, run_turn)
        return True

    async def _run_lane(self, lane: Lane) -> None:
        """Run the updates of a lane in order, until none is left."""
        try:
            await self.ready.wait()
            while lane.new_updates.is_set():
                lane.new_updates.clear()
                while await self.run_next(lane):
                    pass
        except Exception as error:
            log_failure("A lane stops until it is scheduled again", error)
        finally:
            # Between the last check of `new_updates` and this line there must be no await.
            # Otherwise `schedule` could set `new_updates` of a lane whose task reads it no more.
            # After an error, the updates wait until `schedule_unowned` finds them.
            del self._lanes[lane.name]


def row_of(payload: Payload) -> UpdateRow:
    """Return the row of an update."""
    message = get_object(payload, "message") or get_object(payload, "edited_message")
    return UpdateRow(
        update_id=payload["update_id"],
        chat_id=chat_of(payload),
        lane=lane_of(payload),
        payload=dict(payload),
        # `as_int` returns 0 if there is no id.
        message_id=as_int(message.get("message_id")) or None,
        user_id=sender_of(payload),
    )
