"""Run accepted updates as turns: in order per chat, with bursts merged, failing ones set aside.

A turn is begun, handled, committed with its messages, and sent. After a crash, a turn without an
answer is handled again. A turn with an answer only sends the messages that were not sent yet.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from traceback import format_tb
from typing import TYPE_CHECKING, Final

from bot.metrics import Metrics, UpdateResult
from bot.outgoing import Delivery
from bot.pending import PendingTurn, Placeholder, TurnState, set_pending_turn
from bot.retries import DATABASE_BACKOFF, retry_forever
from bot.telegram.dispatch import Dispatcher, UnreadableUpdate
from bot.telegram.sender import Sender
from bot.updates.accept import UNREADABLE_PAYLOAD
from bot.updates.bursts import (
    INLINE,
    as_int,
    chat_of,
    comes_in_parts,
    group_burst,
    is_follow_up,
    is_same_turn,
    lane_of,
    merge,
    section,
)
from db.engine import Unstorable, is_transient
from db.models import OutboxRow, UpdateRow
from db.records import Payload
from db.repositories.inbox import RETRY, BegunTurn, Inbox, TurnTaken

if TYPE_CHECKING:
    from bot.leading import Locks

log = logging.getLogger(__name__)

TURNS_AT_ONCE: Final = 64
MAX_UNQUEUED: Final = 32
"""The most inline queries at once. More are dropped: the next letter typed sends a new one."""
RETRY_BASE_SECONDS: Final = 0.2
"""The delay after try n is this times 2**n, so 0.4 s after the first."""
RECORD_SECONDS: Final = 5.0
"""Seconds for which a stop waits until messages that are being sent are recorded."""
DIED: Final = "the process died while this update was answered"
CANNOT_READ: Final = "the library cannot read it"

SUSPECT_TRIES: Final = 2
"""Turns that were begun this often are suspects and run one at a time.

After a crash nobody can tell which of the running turns caused it, so it counts against each. With
one suspect at a time, a further crash counts against one suspect only. Turns with fewer tries still
run beside it."""


class Superseded(Exception):
    """A correction arrived: the turn has to be handled again together with it."""


@dataclass(slots=True, eq=False)
class Lane:
    """A lane that has a task, and the updates of the turn that runs in it."""

    name: str
    recheck: bool = True
    """True if the task has to read the queue once more before it ends."""
    payloads: Sequence[Payload] = ()
    is_corrected: bool = False
    handler: asyncio.Task[None] | None = None
    task: asyncio.Task[None] | None = None

    def begin(self, payload: Payload) -> None:
        """Note the first update of the turn that begins."""
        self.payloads = (payload,)
        self.is_corrected = False

    def restart_if_corrected(self, payload: Payload) -> None:
        """Cancel the running handler if `payload` corrects the turn."""
        is_new = bool(self.payloads) and payload["update_id"] > self.payloads[-1]["update_id"]
        if self.is_corrected or not is_new or not is_same_turn(self.payloads, payload):
            return
        if self.handler is None:
            # Between two tries no handler runs: `is_corrected` stops the next `run`.
            self.is_corrected = True
        else:
            # False if the handler has ended: the correction is then a turn of its own.
            self.is_corrected = self.handler.cancel()

    async def run(self, handle: Callable[[Payload], Awaitable[None]]) -> None:
        """Handle the updates of the turn as one merged update.

        Raises:
            Superseded: a correction arrived meanwhile.
        """
        if self.is_corrected:
            raise Superseded
        self.handler = asyncio.ensure_future(handle(merge(self.payloads)))
        try:
            await self.handler
        except asyncio.CancelledError:
            # A shutdown cancels this task as well as the handler: then the turn must not restart.
            task = asyncio.current_task()
            is_shutdown = task is not None and task.cancelling() > 0
            if is_shutdown or not self.is_corrected:
                raise
            raise Superseded from None
        except Exception:
            # The turn may be tried again: until then, `is_corrected` notes a correction.
            self.handler = None
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accepts updates and runs their turns: those of one lane in the order of their ids.

    A process runs a lane while it holds the lane's lock. Turns begin once `ready` is set. An update
    whose turn failed `max_tries` times is set aside; failures of an unavailable database do not
    count.

    A turn with an album or a forwarded message waits `burst_window` for further parts. Any other
    turn begins at once. A correction that arrives before the commit restarts the turn with both
    updates. With a `burst_window` of zero, corrections are turns of their own.
    """

    inbox: Inbox
    sender: Sender
    dispatcher: Dispatcher
    locks: "Locks"
    metrics: Metrics
    burst_window: timedelta
    max_tries: int
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _lanes: dict[str, Lane] = field(default_factory=dict)
    _unqueued: set[asyncio.Task[None]] = field(default_factory=set)
    _sending: set[asyncio.Task[object]] = field(default_factory=set)
    _no_new_turns: asyncio.Event = field(default_factory=asyncio.Event)
    _no_new_messages: asyncio.Event = field(default_factory=asyncio.Event)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TURNS_AT_ONCE))
    _exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def active(self) -> list[Lane]:
        """Return the lanes in which a turn runs."""
        return [lane for lane in self._lanes.values() if lane.payloads]

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Store updates and schedule their lanes; when this returns they are committed."""
        queued = list[UpdateRow]()
        busy = {lane.name for lane in self.active}
        for payload in payloads:
            if INLINE in payload:
                self._handle_unqueued(self.dispatcher.handle, payload)
                continue
            queued.append(row_of(payload))
            if is_follow_up(payload) and lane_of(payload) in busy:
                # The press itself waits in the lane; the user is told so now.
                self._handle_unqueued(self.dispatcher.acknowledge_press, payload)
        for row in await self._store(queued):
            self.schedule(str(row.lane))
            self.metrics.update("accepted")
            if self.burst_window and (lane := self._lanes.get(str(row.lane))):
                lane.restart_if_corrected(row.payload)

    async def _store(self, rows: Sequence[UpdateRow]) -> Sequence[UpdateRow]:
        """Store updates. If the database rejects one, store only its id."""
        try:
            return await self.inbox.accept(rows)
        except Unstorable:
            stored = list[UpdateRow]()
            for row in rows:
                stored += await self._store_one(row)
            return stored

    async def _store_one(self, row: UpdateRow) -> Sequence[UpdateRow]:
        try:
            return await self.inbox.accept([row])
        except Unstorable:
            row.payload = dict(UNREADABLE_PAYLOAD)
            return await self.inbox.accept([row])

    async def check_corrections(self, name: str) -> None:
        """Restart the turn of a lane if another process accepted a correction of it."""
        lane = self._lanes.get(name)
        if lane is not None and lane.payloads and self.burst_window:
            first = lane.payloads[0]["update_id"]
            for row in _later_updates(first, await self.inbox.list_waiting(name)):
                lane.restart_if_corrected(row.payload)

    async def schedule_unowned(self) -> None:
        """Schedule the lanes that have work but no process: after a crash, or for a retry."""
        unowned = [name for name in await self.locks.unowned() if name not in self._lanes]
        if unowned:
            log.info("Taking over %s lanes that nobody runs", len(unowned))
        for name in unowned:
            self.schedule(name)

    def schedule(self, name: str) -> None:
        """Start a task for a lane. If it has one, the task will read the queue once more."""
        if lane := self._lanes.get(name):
            lane.recheck = True
            return
        lane = self._lanes[name] = Lane(name)
        lane.task = asyncio.create_task(self._run_lane(lane))

    async def _run_lane(self, lane: Lane) -> None:
        try:
            await self.ready.wait()
            while lane.recheck:
                lane.recheck = False
                while await self.run_next(lane):
                    pass
        except Exception as error:
            log.error("A lane stops until it is scheduled again: %s", format_traceback(error))  # noqa: TRY400
        finally:
            # No await may come between the last check of `recheck` and this: a `schedule` meanwhile
            # would set `recheck` of a lane that nobody runs any more.
            del self._lanes[lane.name]

    async def run_next(self, lane: Lane) -> bool:
        """Run the next turn of a lane. Return False if none waits or another process runs it."""
        async with self._slots:
            if self._no_new_turns.is_set():
                return False
            waiting = await self._list_waiting(lane)
            if not waiting:
                return False
            # Skipping a locked lane is safe: the process with the lock calls `run_next` again after
            # releasing it, and so finds these updates.
            async with self.locks.lock(lane.name) as acquired:
                if not acquired or self._no_new_turns.is_set():
                    return False
                first = waiting[0]
                lane.begin(first.payload)
                try:
                    await self._run_turn(lane, first, await self._burst_ids(lane, waiting))
                except TurnTaken:
                    log.warning(
                        "The turn of update %s is run by another process now", first.update_id
                    )
                finally:
                    lane.payloads, lane.handler = (), None
        return True

    async def finish(self, seconds: float) -> bool:
        """Stop beginning turns and wait for the running ones; return whether all ended in time.

        Waiting updates are left to the next start, or to another replica.
        """
        self._no_new_turns.set()
        unfinished = set[asyncio.Task[None]]()
        if running := [lane.task for lane in self.active if lane.task]:
            _, unfinished = await asyncio.wait(running, timeout=seconds)
        self._no_new_messages.set()
        if unfinished and self._sending:
            # A message that is on its way is recorded, or the next start would send it again.
            await asyncio.wait([*self._sending], timeout=RECORD_SECONDS)
        return not unfinished

    async def close(self) -> None:
        """Cancel the tasks that still run."""
        tasks = [*self._unqueued, *(lane.task for lane in self._lanes.values() if lane.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _handle_unqueued(
        self, handle: Callable[[Payload], Awaitable[None]], payload: Payload
    ) -> None:
        """Handle an update at once, without storing it; drop it if too many are being handled."""

        async def run() -> None:
            try:
                await handle(payload)
            except Exception as error:
                log.error("An unqueued update was not handled: %s", format_traceback(error))  # noqa: TRY400

        is_open = self.ready.is_set() and not self._no_new_turns.is_set()
        if is_open and len(self._unqueued) < MAX_UNQUEUED:
            task = asyncio.create_task(run())
            self._unqueued.add(task)
            task.add_done_callback(self._unqueued.discard)

    async def _list_waiting(self, lane: Lane) -> Sequence[UpdateRow]:
        return await retry_forever(lambda: self.inbox.list_waiting(lane.name))

    async def _burst_ids(self, lane: Lane, waiting: Sequence[UpdateRow]) -> list[int]:
        """Return the ids of the updates that belong to the turn of the first waiting one."""
        first = waiting[0]
        if first.turn_id is not None:
            return []
        if self.burst_window and comes_in_parts(first.payload):
            await asyncio.sleep(self.burst_window.total_seconds())
            waiting = await self._list_waiting(lane)
        rows = [first, *_later_updates(first.update_id, waiting)]
        group = group_burst(rows, self.burst_window, self.dispatcher.is_readable)
        return [row.update_id for row in group[1:]]

    async def _run_turn(self, lane: Lane, first: UpdateRow, others: Sequence[int]) -> None:
        """Run a turn until its answer is sent or it is set aside."""
        state = TurnState(placeholder=Placeholder(first.placeholder_id))
        is_suspect = first.tries >= SUSPECT_TRIES
        lock = self._exclusive if is_suspect else nullcontext()
        async with lock:
            begun = await retry_forever(lambda: self.inbox.begin(first.update_id, others))
            if begun is not None and begun.update.tries == 1:
                waited = datetime.now(UTC) - begun.update.received_at
                self.metrics.turn_started(waited.total_seconds())
            for _ in others:
                self.metrics.update("coalesced")
            while begun is not None:
                begun = await self._run_try(lane, begun, state)

    async def _run_try(self, lane: Lane, begun: BegunTurn, state: TurnState) -> BegunTurn | None:
        """Handle, commit and send a turn; return it begun again after a correction or a failure."""
        turn = PendingTurn(begun.update, state)
        if begun.update.tries > self.max_tries:
            await self._set_aside(turn, DIED)
        elif begun.outbox is not None:
            await self._deliver(turn, begun.outbox)
        else:
            lane.payloads = begun.payloads
            return await self._handle_update(lane, turn)
        return None

    async def _handle_update(self, lane: Lane, turn: PendingTurn) -> BegunTurn | None:
        try:
            with set_pending_turn(turn):
                await lane.run(self.dispatcher.handle)
        except Superseded:
            return await self._restart(lane, turn)
        except UnreadableUpdate:
            await self._set_aside(turn, CANNOT_READ, "unreadable")
        except Exception as error:
            return await self._handle_failure(turn, error)
        else:
            # From here on a correction no longer restarts the turn: it is a turn of its own.
            await self._deliver(turn)
        return None

    async def _deliver(self, turn: PendingTurn, outbox: Sequence[OutboxRow] | None = None) -> None:
        """Commit a turn unless `outbox` holds its messages, send the messages, mark it done."""

        async def check_ownership() -> None:
            self._cancel_if_closing()
            await retry_forever(lambda: self.inbox.check_ownership(turn.update))

        delivery, task = Delivery(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a lane runs in a task
        try:
            if outbox is None:
                await self._commit(turn)
            self._cancel_if_closing()
            self._sending.add(task)
            delivery = await self.sender.deliver(
                turn.messages if outbox is None else outbox, check_ownership
            )
        finally:
            # Also if nothing was sent, since the turn has ended: `delivery` is then empty.
            turn.on_delivery(delivery)
            self._sending.discard(task)
        await retry_forever(lambda: self.inbox.end(turn.update, turn.traces))

    def _cancel_if_closing(self) -> None:
        """Raise CancelledError if the process ends, so that a turn sends no further message."""
        if self._no_new_messages.is_set():
            raise asyncio.CancelledError

    async def _commit(self, turn: PendingTurn, error: str | None = None) -> None:
        """Store a turn with its messages, unless another process has begun it."""
        await retry_forever(
            lambda: self.inbox.commit(turn.update, turn.ended, turn.messages, error=error)
        )

    async def _restart(self, lane: Lane, turn: PendingTurn) -> BegunTurn | None:
        """Begin a turn again together with its corrections."""
        lane.is_corrected, lane.handler = False, None
        update = turn.update
        payloads = [*lane.payloads]
        ids: list[int] = []
        for row in _later_updates(update.update_id, await self._list_waiting(lane)):
            if is_same_turn(payloads, row.payload) and self.dispatcher.is_readable(row.payload):
                payloads.append(row.payload)
                ids.append(row.update_id)
                self.metrics.update("coalesced")
        turn.state.restart()
        return await retry_forever(lambda: self.inbox.restart(update, ids))

    async def _handle_failure(self, turn: PendingTurn, error: Exception) -> BegunTurn | None:
        """Wait, then begin a failed turn again; return None if it was set aside.

        A try that failed because the database was unavailable does not count.
        """
        update = turn.update
        is_counted = not is_transient(error)
        if not is_counted:
            log.warning("The turn of update %s waits: %s", update.update_id, type(error).__name__)
            await asyncio.sleep(DATABASE_BACKOFF.max_wait)
        else:
            log.error(
                "The turn of update %s failed, try %s: %s",
                update.update_id,
                update.tries,
                format_traceback(error),
            )
            if update.tries >= self.max_tries:
                await self._set_aside(turn, type(error).__name__)
                return None
            await asyncio.sleep(RETRY_BASE_SECONDS * 2**update.tries)
        turn.state.restart()
        return await retry_forever(
            lambda: self.inbox.begin(update.update_id, is_counted=is_counted)
        )

    async def _set_aside(
        self, turn: PendingTurn, error: str, result: UpdateResult = "set_aside"
    ) -> None:
        """Give up an update: tell the user and the admins, so that the lane can continue."""
        update = turn.update
        log.error(
            "Update %s is set aside: %s. `sommelier updates list` shows it, "
            "`sommelier updates retry %s` has it tried again.",
            update.update_id,
            error,
            update.update_id,
        )
        turn.messages.clear()
        turn.ended.clear()
        try:
            with set_pending_turn(turn):
                await self.dispatcher.give_up(update.payload, error)
        except Exception as failure:
            log.error("Update %s: nobody was told: %s", update.update_id, format_traceback(failure))  # noqa: TRY400
        await self._commit(turn, error)
        self.metrics.update(result)
        turn.on_delivery(await self.sender.deliver(turn.messages))
        await retry_forever(lambda: self.inbox.save_traces(turn.traces))


def _later_updates(update_id: int, waiting: Sequence[UpdateRow]) -> list[UpdateRow]:
    """Return the updates after `update_id`, without those that an admin retries.

    A retried update is always a turn of its own.
    """
    return [row for row in waiting if row.update_id > update_id and row.state != RETRY]


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


def format_traceback(error: Exception) -> str:
    """Return the type and the traceback of an error without its text, which may be a user's."""
    return f"{type(error).__name__}\nTraceback:\n{''.join(format_tb(error.__traceback__))}"
