"""From accepted updates to turns: in the order of their lanes, bursts merged, poison set aside.

A turn is begun, handled, committed with its messages, and sent. After a kill, a turn without an
answer is handled again; of one with an answer only the messages are sent that were not.
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
from bot.pending import PendingTurn, Placeholder, TurnState, pending
from bot.retries import DATABASE, retry_forever
from bot.telegram.dispatch import Dispatcher, Unreadable
from bot.telegram.sender import Sender
from bot.updates.accept import UNREADABLE
from bot.updates.bursts import (
    INLINE,
    chat_of,
    comes_in_parts,
    group_burst,
    is_follow_up,
    is_same_turn,
    lane_of,
    merge,
    number,
    part,
)
from db.engine import Unstorable, is_passing
from db.models import OutboxRow, UpdateRow
from db.records import Payload
from db.repositories.inbox import RETRY, BegunTurn, Inbox, TurnTaken

if TYPE_CHECKING:
    from bot.leading import Locks

log = logging.getLogger(__name__)

TURNS_AT_ONCE: Final = 64
MAX_DETACHED: Final = 32
"""More inline queries at once are dropped: a user who types on asks again."""
FIRST_WAIT_SECONDS: Final = 0.2
RECORD_SECONDS: Final = 5.0
"""How long a stop waits for the record of messages that are on their way."""
DIED: Final = "the process died while this update was answered"
CANNOT_READ: Final = "the library cannot read it"

SHARED_TRIES: Final = 2
"""Tries of a turn beside others. After a crash nobody can tell which of the turns that ran caused
it, so a turn that was cut off so often runs alone: only it can be to blame then."""


class Superseded(Exception):
    """A correction arrived: the turn begins again together with it."""


@dataclass(slots=True, eq=False)
class Lane:
    """A lane that has a task, and the updates of the turn that runs in it."""

    name: str
    recheck: bool = True
    """Whether the queue is to be read once more before the task ends."""
    payloads: Sequence[Payload] = ()
    is_corrected: bool = False
    handling: asyncio.Task[None] | None = None
    task: asyncio.Task[None] | None = None

    def take_in(self, payload: Payload) -> None:
        """Cancel the turn if this update corrects it and it is not handled yet."""
        is_new = self.payloads and payload["update_id"] > self.payloads[-1]["update_id"]
        if self.is_corrected or not is_new or not is_same_turn(self.payloads, payload):
            return
        # Between two tries there is nothing to cancel: `handle` sees the flag.
        self.is_corrected = self.handling is None or self.handling.cancel()

    async def handle(self, handle: Callable[[Payload], Awaitable[None]]) -> None:
        """Handle the updates of the turn as one.

        Raises:
            Superseded: a correction arrived meanwhile.
        """
        if self.is_corrected:
            raise Superseded
        handling = self.handling = asyncio.ensure_future(handle(merge(self.payloads)))
        try:
            await handling
        except asyncio.CancelledError:
            # Closing cancels our own task too, perhaps together with a correction.
            task = asyncio.current_task()
            if not self.is_corrected or (task and task.cancelling()):
                raise
            raise Superseded from None
        except Exception:
            self.handling = None
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accepts updates and runs their turns, those of a lane one after the other by their ids.

    A process runs a lane while it holds its lock; turns begin once `ready` is set. An update whose
    turn failed `max_tries` times is set aside; failures of a database that is away do not count.

    The next part of an album, or of forwarded messages, is awaited for `burst`; any other turn
    begins at once. An update that belongs to a turn and arrives before its commit restarts the turn
    together with it; without a `burst` nothing is merged then.
    """

    inbox: Inbox
    sender: Sender
    dispatcher: Dispatcher
    locks: "Locks"
    metrics: Metrics
    burst: timedelta
    max_tries: int
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _lanes: dict[str, Lane] = field(default_factory=dict)
    _detached: set[asyncio.Task[None]] = field(default_factory=set)
    _sending: set[asyncio.Task[object]] = field(default_factory=set)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no more message may be sent."""
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TURNS_AT_ONCE))
    _exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def active(self) -> list[Lane]:
        """Return the lanes in which a turn runs."""
        return [lane for lane in self._lanes.values() if lane.payloads]

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Store updates and schedule their lanes; when this returns they are committed."""
        for payload in payloads:
            if INLINE in payload:
                self._detach(self.dispatcher.handle, payload)
            elif is_follow_up(payload) and any(
                lane.name == lane_of(payload) for lane in self.active
            ):
                self._detach(self.dispatcher.acknowledge_press, payload)
        for row in await self._store([row_of(payload) for payload in payloads]):
            self.schedule(str(row.lane))
            self.metrics.update("accepted")
            if self.burst and (lane := self._lanes.get(str(row.lane))):
                lane.take_in(row.payload)

    async def _store(self, rows: Sequence[UpdateRow]) -> Sequence[UpdateRow]:
        """Store updates; of one that the database does not take, its number alone."""
        queued = [row for row in rows if INLINE not in row.payload]
        try:
            return await self.inbox.accept(queued)
        except Unstorable:
            if len(queued) == 1:
                queued[0].payload = dict(UNREADABLE)
                return await self.inbox.accept(queued)
            return [stored for row in queued for stored in await self._store([row])]

    async def take_in(self, name: str) -> None:
        """Let the turn that runs in a lane take in corrections that another process accepted."""
        lane = self._lanes.get(name)
        if lane is not None and lane.payloads and self.burst:
            first = lane.payloads[0]["update_id"]
            for row in _behind(first, await self.inbox.waiting(name)):
                lane.take_in(row.payload)

    async def schedule_unowned(self) -> None:
        """Schedule the lanes with work that no process runs: after a crash, or to retry."""
        for name in await self.locks.unowned():
            if name not in self._lanes:
                self.schedule(name)

    def schedule(self, name: str) -> None:
        """Run a lane; if it runs here already, it reads its queue once more before it ends."""
        if lane := self._lanes.get(name):
            lane.recheck = True
            return
        lane = self._lanes[name] = Lane(name)
        lane.task = asyncio.create_task(self._run(lane))

    async def _run(self, lane: Lane) -> None:
        try:
            await self.ready.wait()
            while lane.recheck:
                lane.recheck = False
                while await self.run_next(lane):
                    pass
        except Exception as error:
            log.error("A lane stops until it is scheduled again: %s", format_location(error))  # noqa: TRY400
        finally:
            # No await between the last look at the flag and this: no `schedule` can be lost.
            del self._lanes[lane.name]

    async def run_next(self, lane: Lane) -> bool:
        """Run the next turn of a lane; return False if none waits or another process holds it."""
        async with self._slots:
            if self._stopping.is_set() or not (waiting := await self._waiting(lane)):
                return False
            # The holder reads the queue again after it has let go, so that a process which finds
            # the lane held may leave what waits to it.
            async with self.locks.lock(lane.name) as acquired:
                if not acquired or self._stopping.is_set():
                    return False
                first, lane.payloads, lane.is_corrected = waiting[0], (waiting[0].payload,), False
                try:
                    await self._run_turn(lane, first, await self._burst_behind(lane, waiting))
                except TurnTaken:
                    log.warning(
                        "The turn of update %s is run by another process now", first.update_id
                    )
                finally:
                    lane.payloads, lane.handling = (), None
        return True

    async def finish(self, seconds: float) -> bool:
        """Begin no turn any more and wait for those that run; return whether all ended in time.

        Updates that wait are left to the next start, or to another replica.
        """
        self._stopping.set()
        if not (running := [lane.task for lane in self.active if lane.task]):
            return True
        _, unfinished = await asyncio.wait(running, timeout=seconds)
        self._closing.set()
        if unfinished and self._sending:
            # A message that is on its way is recorded, or the next start would send it again.
            await asyncio.wait([*self._sending], timeout=RECORD_SECONDS)
        return not unfinished

    async def close(self) -> None:
        """Cancel what still runs."""
        tasks = [*self._detached, *(lane.task for lane in self._lanes.values() if lane.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _detach(self, handle: Callable[[Payload], Awaitable[None]], payload: Payload) -> None:
        """Handle what nobody waits for any more in a moment: it is not stored, and in no lane."""

        async def run() -> None:
            try:
                await handle(payload)
            except Exception as error:
                log.error("An update was not answered at once: %s", format_location(error))  # noqa: TRY400

        is_open = self.ready.is_set() and not self._stopping.is_set()
        if is_open and len(self._detached) < MAX_DETACHED:
            task = asyncio.create_task(run())
            self._detached.add(task)
            task.add_done_callback(self._detached.discard)

    async def _waiting(self, lane: Lane) -> Sequence[UpdateRow]:
        return await retry_forever(lambda: self.inbox.waiting(lane.name))

    async def _burst_behind(self, lane: Lane, waiting: Sequence[UpdateRow]) -> list[int]:
        """Return the ids of the updates that were sent in one go with the first."""
        first = waiting[0]
        if first.turn_id is not None:
            return []
        if self.burst and comes_in_parts(first.payload):
            await asyncio.sleep(self.burst.total_seconds())
            waiting = await self._waiting(lane)
        rows = [first, *_behind(first.update_id, waiting)]
        group = group_burst(rows, self.burst, self.dispatcher.is_readable)
        return [row.update_id for row in group[1:]]

    async def _run_turn(self, lane: Lane, first: UpdateRow, others: Sequence[int]) -> None:
        """Run a turn until its answer is sent or it is set aside."""
        state = TurnState(placeholder=Placeholder(first.placeholder_id))
        async with self._exclusive if first.tries >= SHARED_TRIES else nullcontext():
            begun = await retry_forever(lambda: self.inbox.begin(first.update_id, others))
            if begun is not None and begun.update.tries == 1:
                waited = datetime.now(UTC) - begun.update.received_at
                self.metrics.turn_started(waited.total_seconds())
            for _ in others:
                self.metrics.update("coalesced")
            while begun is not None:
                begun = await self._try(lane, begun, state)

    async def _try(self, lane: Lane, begun: BegunTurn, state: TurnState) -> BegunTurn | None:
        """Handle, commit and send a turn; return the next try after a correction or a failure."""
        turn = PendingTurn(begun.update, state)
        if begun.update.tries > self.max_tries:
            await self._set_aside(turn, DIED)
        elif begun.outbox is not None:
            await self._deliver(turn, begun.outbox)
        else:
            lane.payloads = begun.payloads
            return await self._handle(lane, turn)
        return None

    async def _handle(self, lane: Lane, turn: PendingTurn) -> BegunTurn | None:
        try:
            with pending(turn):
                await lane.handle(self.dispatcher.handle)
        except Superseded:
            return await self._restart(lane, turn)
        except Unreadable:
            await self._set_aside(turn, CANNOT_READ, "unreadable")
        except Exception as error:
            return await self._handle_failure(turn, error)
        else:
            # From here on a correction is a turn of its own.
            await self._deliver(turn)
        return None

    async def _deliver(self, turn: PendingTurn, outbox: Sequence[OutboxRow] | None = None) -> None:
        """Commit a turn unless its messages are in the `outbox`; send them, and end it."""

        async def hold() -> None:
            self._check_open()
            await retry_forever(lambda: self.inbox.hold(turn.update))

        delivery, task = Delivery(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a lane runs in a task
        try:
            if outbox is None:
                await self._commit(turn)
            self._check_open()
            self._sending.add(task)
            delivery = await self.sender.deliver(turn.messages if outbox is None else outbox, hold)
        finally:
            turn.delivered(delivery)
            self._sending.discard(task)
        await retry_forever(lambda: self.inbox.done(turn.update, turn.traces))

    def _check_open(self) -> None:
        """Cancel a turn that would send its next message while the process ends."""
        if self._closing.is_set():
            raise asyncio.CancelledError

    async def _commit(self, turn: PendingTurn, error: str | None = None) -> None:
        """Store a turn with its messages, if no other process has begun it."""
        await retry_forever(
            lambda: self.inbox.commit(turn.update, turn.ended, turn.messages, error=error)
        )

    async def _restart(self, lane: Lane, turn: PendingTurn) -> BegunTurn | None:
        """Begin a turn again together with its corrections."""
        lane.is_corrected, lane.handling = False, None
        update, payloads, ids = turn.update, [*lane.payloads], list[int]()
        for row in _behind(update.update_id, await self._waiting(lane)):
            if is_same_turn(payloads, row.payload) and self.dispatcher.is_readable(row.payload):
                payloads.append(row.payload)
                ids.append(row.update_id)
                self.metrics.update("coalesced")
        turn.state.restart()
        return await retry_forever(
            lambda: self.inbox.begin(update.update_id, ids, epoch=update.epoch)
        )

    async def _handle_failure(self, turn: PendingTurn, error: Exception) -> BegunTurn | None:
        """Begin a turn that failed again, a while later; return None if it was set aside."""
        update, counts = turn.update, not is_passing(error)
        if not counts:
            log.warning("The turn of update %s waits: %s", update.update_id, type(error).__name__)
            await asyncio.sleep(DATABASE.longest)
        else:
            failed = (update.update_id, update.tries, format_location(error))
            log.error("The turn of update %s failed, try %s: %s", *failed)
            if update.tries >= self.max_tries:
                await self._set_aside(turn, type(error).__name__)
                return None
            await asyncio.sleep(FIRST_WAIT_SECONDS * 2**update.tries)
        turn.state.restart()
        return await retry_forever(lambda: self.inbox.begin(update.update_id, counts=counts))

    async def _set_aside(
        self, turn: PendingTurn, error: str, result: UpdateResult = "set_aside"
    ) -> None:
        """Give an update up: tell the user and the admins, and let the lane go on."""
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
            with pending(turn):
                await self.dispatcher.give_up(update.payload, error)
        except Exception as failure:
            log.error("Nobody is told of update %s: %s", update.update_id, format_location(failure))  # noqa: TRY400
        await self._commit(turn, error)
        self.metrics.update(result)
        turn.delivered(await self.sender.deliver(turn.messages))
        await retry_forever(lambda: self.inbox.save_traces(turn.traces))


def _behind(update_id: int, waiting: Sequence[UpdateRow]) -> list[UpdateRow]:
    """Return the updates after one; an update that is to be retried belongs to no other turn."""
    return [row for row in waiting if row.update_id > update_id and row.state != RETRY]


def row_of(payload: Payload) -> UpdateRow:
    """Return the row of an update."""
    message = part(payload, "message") or part(payload, "edited_message")
    return UpdateRow(
        update_id=payload["update_id"],
        chat_id=chat_of(payload),
        lane=lane_of(payload),
        payload=dict(payload),
        message_id=number(message.get("message_id")) or None,
    )


def format_location(error: Exception) -> str:
    """Return the type and the traceback of an error without its text, which may be a user's."""
    return f"{type(error).__name__}\nTraceback:\n{''.join(format_tb(error.__traceback__))}"
