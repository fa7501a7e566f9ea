"""Run accepted updates as turns: one after another in each chat.

The steps of a turn: begin, handle, commit with its messages, send. A later update that belongs to
the turn restarts it. A turn that keeps failing is set aside. After a crash, a turn that was not
committed is handled again; a committed turn only sends the messages that were not sent yet.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from traceback import format_tb
from typing import Final

from agent.engine.errors import log_failure
from bot.metrics import Metrics
from bot.question import CurrentTurn, Delivery, set_current_turn
from bot.tasks import run_all, run_and_log_errors, run_every
from bot.telegram.dispatch import Dispatcher, UnreadableUpdate
from bot.telegram.sender import Sender
from bot.updates.bursts import (
    INLINE,
    as_int,
    chat_of,
    comes_in_parts,
    is_same_turn,
    lane_of,
    merge,
    section,
)
from bot.updates.locks import Locks
from db.engine import DATABASE_BACKOFF, is_transient, retry_forever
from db.models import OutboxRow, UpdateRow
from db.repositories.inbox import Inbox, Payload, TurnTaken

log = logging.getLogger(__name__)

MAX_TURNS: Final = 64
"""Maximum concurrent turns of this process."""
MAX_INLINE_QUERIES: Final = 32
"""Maximum concurrent inline queries. Others are dropped: the next letter typed sends a new one."""
RETRY_BASE_SECONDS: Final = 0.2
"""The delay after try n is this times 2**n: 0.4 s after the first."""
DIED: Final = "the process died while this update was being answered"
CANNOT_READ: Final = "the library cannot read it"

SUSPECT_TRIES: Final = 2
"""Of the turns started this many times, only one runs at a time.

After a crash the tries of all running turns have increased, and the cause is not known. If such
turns run one at a time, the next crash increases only the tries of the turn that causes it."""


@dataclass(slots=True, eq=False)
class Lane:
    """Updates of one chat (`lane_of` returns which), handled in order by a task.

    `new_updates` is set when there are updates the task has not read.
    """

    name: str
    new_updates: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accepts updates and runs their turns, in each lane in the order of the update ids.

    A process runs a lane while it holds the lane's lock. Turns begin once `ready` is set. An update
    whose turn failed `max_tries` times is set aside; failures because of an unavailable database do
    not count.

    An update that belongs to the running turn (an edit, a correction, a further part) joins it: if
    it arrives before the commit, the turn is restarted with it. A turn with an album or a forwarded
    message first waits `burst_seconds` for further parts. If this is 0, every update is a turn of
    its own.
    """

    inbox: Inbox
    sender: Sender
    dispatcher: Dispatcher
    locks: Locks
    metrics: Metrics
    burst_seconds: float
    max_tries: int
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _lanes: dict[str, Lane] = field(default_factory=dict)
    _inline: set[asyncio.Task[None]] = field(default_factory=set)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_TURNS))
    _exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def running(self) -> list[asyncio.Task[None]]:
        """Return the tasks of the lanes in use."""
        return [lane.task for lane in self._lanes.values() if lane.task]

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Commit updates and schedule their lanes; answer inline queries without storing them."""
        rows = [row_of(payload) for payload in payloads if INLINE not in payload]
        if rows:
            await self.inbox.accept(rows)
        for row in rows:
            self.schedule(str(row.lane))
            self.metrics.count_update("accepted")
        for payload in payloads:
            if INLINE in payload and self.ready.is_set() and len(self._inline) < MAX_INLINE_QUERIES:
                handle = partial(self.dispatcher.handle, payload)
                task = asyncio.create_task(run_and_log_errors("answering an inline query", handle))
                self._inline.add(task)
                task.add_done_callback(self._inline.discard)

    def schedule(self, name: str) -> None:
        """Wake the task of a lane to read its queue; start the task if there is none."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(name)
            lane.task = asyncio.create_task(self._run_lane(lane))
        lane.new_updates.set()

    async def watch(self) -> None:
        """Take over lanes that no process runs, and act on notices of other processes, forever."""
        description = "looking for lanes that nobody runs"
        take_over = partial(run_every, self.locks.poll_seconds, description, self.schedule_unowned)
        await run_all(self._listen, take_over)

    async def _listen(self) -> None:
        """Act on notices: that a lane has new updates, or that a user stops turns."""
        async for notice in self.locks.notices():
            if "lane" not in notice:
                self.dispatcher.conversation.turns.running.stop(**notice)
            elif lane := self._lanes.get(notice["lane"]):
                lane.new_updates.set()

    async def schedule_unowned(self) -> None:
        """Schedule lanes with updates that no process runs: after a crash, or for a retry."""
        unowned = [name for name in await self.locks.unowned() if name not in self._lanes]
        if unowned:
            log.info("Taking over %s lanes that nobody runs", len(unowned))
        for name in unowned:
            self.schedule(name)

    async def finish(self, grace_seconds: float = 0) -> None:
        """Begin no more turns, and cancel those that still run after `grace_seconds`.

        Waiting updates are handled by another replica or after the next start.
        """
        self._closing.set()
        if self.running and self.ready.is_set():
            await asyncio.wait(self.running, timeout=grace_seconds)
        tasks = [*self._inline, *self.running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run_next(self, lane: Lane) -> bool:
        """Run the next turn of a lane.

        Return False if no updates wait, another process runs the lane, or the bot stops.
        """
        async with self._slots:
            if self._closing.is_set():
                return False
            waiting = await self._list_unfinished(lane)
            if not waiting:
                return False
            # Skipping a locked lane is safe: the process with the lock calls `run_next` again after
            # releasing it; then it will see these updates.
            async with self.locks.lock(lane.name) as acquired:
                if not acquired or self._closing.is_set():
                    return False
                await self._run_turn(lane, waiting)
        return True

    async def _run_lane(self, lane: Lane) -> None:
        try:
            await self.ready.wait()
            while lane.new_updates.is_set():
                lane.new_updates.clear()
                while await self.run_next(lane):
                    pass
        except Exception as error:
            log_failure("A lane stops until it is scheduled again", error)
        finally:
            # There must be no await between the last check of `new_updates` and this line:
            # otherwise `schedule` could wake a lane whose task has ended. After an error, the
            # updates wait for `schedule_unowned`.
            del self._lanes[lane.name]

    async def _run_turn(self, lane: Lane, waiting: Sequence[UpdateRow]) -> None:
        """Run the turn of the first waiting update until its answer is sent or it is set aside."""
        first = waiting[0]
        joining: Sequence[int] | None = ()
        if first.turn_id is None:  # the turn was not begun before
            if self.burst_seconds and comes_in_parts(first.payload):
                await asyncio.sleep(self.burst_seconds)
                waiting = await self._list_unfinished(lane)
            joining = self._find_joining(waiting, [first.payload])
        turn = CurrentTurn(update=first, placeholder_id=first.placeholder_id)
        is_suspect = first.tries >= SUSPECT_TRIES
        try:
            async with self._exclusive if is_suspect else nullcontext():
                while joining is not None:
                    joining = await self._run_try(lane, turn, joining)
        except TurnTaken:
            log.warning("The turn of update %s is run by another process now", first.update_id)
        finally:
            # The turn leaves this process. After a delivery, this second call changes nothing.
            turn.on_delivery(Delivery())

    async def _run_try(
        self, lane: Lane, turn: CurrentTurn, joining: Sequence[int]
    ) -> Sequence[int] | None:
        """Begin, handle, commit and send a turn; `joining` are the ids of updates that join it.

        Return None if the turn has ended, the ids of updates that join it if it must be restarted,
        or () if it must be retried.
        """
        row = turn.update
        tries = row.tries + 1
        turn.restart()
        for _ in joining:
            self.metrics.count_update("coalesced")  # the name of joining in metrics
        # `begin` also updates `row.tries` and `row.epoch`.
        payloads, outbox = await retry_forever(partial(self.inbox.begin, row, joining, tries=tries))
        # Only now, because only the process that began a turn may set it aside. If the row has an
        # error, an earlier process has set the turn aside, but its apology must still be sent.
        if tries > self.max_tries and row.error is None:
            await self._set_aside(turn, DIED)
            return None
        if outbox is None:  # not committed yet
            try:
                with set_current_turn(turn):
                    joining = await self._handle(lane, payloads)
                if joining:
                    row.tries = 0  # a restart is not a failure, and the turn is longer now
                    return joining
                # After this, no update can join the turn: a correction begins another turn.
                await self._commit(turn)
            except UnreadableUpdate:
                await self._set_aside(turn, CANNOT_READ)
                return None
            except Exception as error:
                return () if await self._wait_or_set_aside(turn, error) else None
            outbox = turn.messages
        await self._deliver_and_end(turn, outbox)
        return None

    async def _handle(self, lane: Lane, payloads: Sequence[Payload]) -> Sequence[int]:
        """Handle the updates of a turn as one update. If others join it, stop; return their ids."""

        async def wait_for_joining() -> Sequence[int]:
            while True:
                await lane.new_updates.wait()
                lane.new_updates.clear()
                waiting = await self._list_unfinished(lane)
                joining = self._find_joining(waiting, payloads)
                if joining:
                    return joining

        handling = asyncio.create_task(self.dispatcher.handle(merge(payloads)))
        watching = asyncio.create_task(wait_for_joining())
        try:
            done, _ = await asyncio.wait([handling, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (handling, watching):
                task.cancel()
            await asyncio.wait([handling, watching])
        if handling not in done:
            return watching.result()
        handling.result()  # raises the error of the handler, if it failed
        return ()

    def _find_joining(self, waiting: Sequence[UpdateRow], payloads: Sequence[Payload]) -> list[int]:
        """Return the ids of waiting updates that belong to the turn of `payloads`."""
        if not self.burst_seconds:
            return []
        together, ids = [*payloads], list[int]()
        for row in waiting:
            # An update retried by an admin keeps its own turn.
            is_later = row.turn_id is None and row.update_id > payloads[0]["update_id"]
            belongs = is_later and is_same_turn(together, row.payload)
            if belongs and self.dispatcher.is_readable(row.payload):
                together.append(row.payload)
                ids.append(row.update_id)
        return ids

    async def _list_unfinished(self, lane: Lane) -> Sequence[UpdateRow]:
        return await retry_forever(partial(self.inbox.list_unfinished, lane.name))

    async def _commit(self, turn: CurrentTurn, error: str | None = None) -> None:
        """Commit the messages and changes of a turn; `error` is the reason if it is set aside."""
        commit = partial(self.inbox.commit, turn.update, turn.ended, turn.messages, turn.changes)
        await retry_forever(partial(commit, error=error))

    async def _deliver_and_end(self, turn: CurrentTurn, messages: Sequence[OutboxRow]) -> None:
        """Send the messages of a committed turn, and end it."""
        turn.on_delivery(await self.sender.deliver(messages))
        traces = [ended.trace for ended in turn.ended if ended.trace is not None]
        await retry_forever(partial(self.inbox.end, turn.update, traces))

    async def _wait_or_set_aside(self, turn: CurrentTurn, error: Exception) -> bool:
        """Wait before the next try of a failed turn, or set it aside; return whether it waited."""
        update_id, tries, kind = turn.update.update_id, turn.update.tries, type(error).__name__
        if is_transient(error):
            log.warning("The turn of update %s waits: %s", update_id, kind)
            await asyncio.sleep(DATABASE_BACKOFF.max_wait)
            turn.update.tries -= 1  # a failure because of the database does not count
            return True
        # Do not log the error message: it may contain text of the user.
        frames = "".join(format_tb(error.__traceback__))
        text = "The turn of update %s failed, try %s: %s\nTraceback:\n%s"
        log.error(text, update_id, tries, kind, frames)
        if tries >= self.max_tries:
            await self._set_aside(turn, kind)
            return False
        await asyncio.sleep(RETRY_BASE_SECONDS * 2**tries)
        return True

    async def _set_aside(self, turn: CurrentTurn, error: str) -> None:
        """Give up on an update so that the lane can continue; notify the user."""
        row = turn.update
        turn.restart()
        log.error(
            "Update %s is set aside: %s. `sommelier updates list` shows it, "
            "`sommelier updates retry` tries it again.",
            row.update_id,
            error,
        )
        try:
            with set_current_turn(turn):
                await self.dispatcher.give_up(row.payload, error)
        except Exception as failure:
            log_failure(f"The user could not be notified about update {row.update_id}", failure)
        await self._commit(turn, error)
        self.metrics.count_update("set_aside")
        await self._deliver_and_end(turn, turn.messages)


def row_of(payload: Payload) -> UpdateRow:
    """Return the row of an update."""
    message = section(payload, "message") or section(payload, "edited_message")
    return UpdateRow(
        update_id=payload["update_id"],
        chat_id=chat_of(payload),
        lane=lane_of(payload),
        payload=dict(payload),
        message_id=as_int(message.get("message_id")) or None,
    )
