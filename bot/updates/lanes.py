"""From accepted updates to turns: in the order of their lanes, bursts merged, poison set aside.

A turn is begun, handled, committed with its messages, and sent. After a kill, a turn without an
answer is handled again; of one with an answer only the messages are sent that were not.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from traceback import format_tb
from typing import Final

from bot.metrics import Metrics, UpdateResult
from bot.pending import PendingTurn, Placeholder, TurnState, pending
from bot.retries import DATABASE, retry_forever
from bot.telegram.sender import Sender
from bot.updates.bursts import (
    INLINE,
    LARGEST_BURST,
    chat_of,
    comes_in_parts,
    group_burst,
    is_follow_up,
    is_part_of_burst,
    is_same_turn,
    lane_of,
    message_in,
    number,
    part,
)
from bot.updates.current import CurrentTurn, Superseded
from db.models import OutboxRow, UpdateRow
from db.records import Payload, ReceivedUpdate, TurnTaken
from db.repositories.inbox import BegunTurn, Inbox

log = logging.getLogger(__name__)

MAX_DETACHED: Final = 32
"""More inline queries at once are dropped: a user who types on asks again."""
PRESS_SECONDS: Final = 0.3
"""How long a press waits for the turn before its own until it is acknowledged."""
FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_BURST: Final = timedelta(seconds=5)
DIED: Final = "the process died while this update was answered"
UNREADABLE: Final = "the library cannot read it"

SHARED_TRIES: Final = 2
"""Tries of a turn beside others. After a crash nobody can tell which of the turns that ran caused
it, so a turn that was cut off so often runs alone: only it can be to blame then."""


class Unreadable(Exception):
    """The library cannot read an update: something that it needs is missing or malformed."""


Lock = Callable[[str], AbstractAsyncContextManager[bool]]
"""Holds a lane while it is entered; yields False if another process holds it."""


async def ignore(payload: Payload) -> None:
    """Do nothing about an update."""


def lock_of_one_process(lane: str) -> AbstractAsyncContextManager[bool]:
    """Hold a lane where there is no other process."""
    return nullcontext(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accepts updates and runs their turns, those of a lane one after the other by their ids.

    `handle` runs the turn of an update, `give_up` tells the user of one that is set aside after
    `max_tries`; failures that `is_transient` recognises, of a database that is away, do not count.
    A process runs a lane while it holds its `lock`; `unowned` returns the lanes with work that no
    process runs. At most `concurrency` turns run side by side, once `ready` is set.

    The next part of an album, or of what is forwarded, is awaited for `burst`; any other turn
    begins at once. An update that belongs to a turn and arrives before its commit restarts the turn
    together with it; without a `burst` nothing is merged then. `acknowledge_press` answers the
    press of a button whose turn has to wait. `sleep` takes the waits between tries.
    """

    inbox: Inbox
    sender: Sender
    metrics: Metrics
    handle: Callable[[Payload], Awaitable[None]]
    readable: Callable[[Payload], bool]
    give_up: Callable[[Payload, str], Awaitable[None]]
    is_transient: Callable[[Exception], bool]
    acknowledge_press: Callable[[Payload], Awaitable[None]] = ignore
    burst: timedelta
    max_tries: int
    lock: Lock = lock_of_one_process
    unowned: Callable[[], Awaitable[Iterable[str]]]
    concurrency: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(64))
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    active: set[int] = field(default_factory=set)
    _recheck: dict[str, bool] = field(default_factory=dict)
    """The lanes that have a task, and whether its queue is to be read once more."""
    _current: dict[str, CurrentTurn] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _detached: set[asyncio.Task[None]] = field(default_factory=set)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _exclusive: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Store updates and schedule their lanes; when this returns they are committed."""
        for payload in payloads:
            if INLINE in payload:
                self._detach(self.handle, payload)
            elif is_follow_up(payload) and (current := self._current.get(lane_of(payload))):
                self._detach(partial(self._acknowledge_late_press, current), payload)
        queued = [received(payload) for payload in payloads if INLINE not in payload]
        for update in await self.inbox.accept(queued) if queued else ():
            self.schedule(update.lane)
            self.metrics.update("accepted")
            if self.burst and update.lane in self._current:
                self._current[update.lane].take_in(update.payload)

    async def take_in(self, lane: str) -> None:
        """Let the turn that runs in a lane take in corrections that another process accepted."""
        current = self._current.get(lane)
        if current is None or not self.burst:
            return
        first = current.payloads[0]["update_id"]
        for row in waiting_behind(first, await self.inbox.waiting(lane)):
            current.take_in(row.payload)

    async def schedule_unowned(self) -> None:
        """Schedule the lanes with work that no process runs: after a crash, or to retry."""
        for lane in await self.unowned():
            if lane not in self._recheck:
                self.schedule(lane)

    def schedule(self, lane: str) -> None:
        """Run a lane; if it runs here already, it reads its queue once more before it ends."""
        runs = lane in self._recheck
        self._recheck[lane] = True
        if not runs:
            task = asyncio.create_task(self._run_until_empty(lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run_until_empty(self, lane: str) -> None:
        try:
            await self.ready.wait()
            while self._recheck[lane]:
                await self.run(lane)
        except Exception as error:
            log.error("A lane stops until it is scheduled again: %s", format_location(error))  # noqa: TRY400
        finally:
            # No await between the last look at the flag and this: no `schedule` can be lost.
            del self._recheck[lane]

    async def run(self, lane: str) -> None:
        """Run the turns of a lane until none waits, another process holds it, or we stop."""
        while True:
            async with self.concurrency:
                if lane in self._recheck:
                    self._recheck[lane] = False
                waiting = await retry_forever(lambda: self.inbox.waiting(lane))
                if not waiting or self._stopping.is_set():
                    return
                # The holder reads the queue again after it has let go, so that a process which
                # finds the lane held may leave what waits to it.
                async with self.lock(lane) as acquired:
                    if not acquired or self._stopping.is_set():
                        return
                    await self._run_next(lane, waiting)

    async def finish(self, seconds: float) -> bool:
        """Begin no turn any more and wait for those that run; return whether all ended in time.

        Updates that wait are left to the next start, or to another replica.
        """
        self._stopping.set()
        if not self.active:
            return True
        self._idle.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Cancel what still runs."""
        tasks = [*self._tasks, *self._detached]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _detach(self, work: Callable[[Payload], Awaitable[None]], payload: Payload) -> None:
        """Do what nobody waits for any more in a moment: it is not stored, and in no lane."""

        async def run() -> None:
            try:
                await work(payload)
            except Exception as error:
                log.error("An update was not answered at once: %s", format_location(error))  # noqa: TRY400

        is_open = self.ready.is_set() and not self._stopping.is_set()
        if is_open and len(self._detached) < MAX_DETACHED:
            task = asyncio.create_task(run())
            self._detached.add(task)
            task.add_done_callback(self._detached.discard)

    async def _acknowledge_late_press(self, current: CurrentTurn, payload: Payload) -> None:
        await asyncio.sleep(PRESS_SECONDS)
        if self._current.get(lane_of(payload)) is current:
            await self.acknowledge_press(payload)

    async def _run_next(self, lane: str, waiting: Sequence[UpdateRow]) -> None:
        """Run the turn of the first update that waits, and of those that belong to it."""
        first = waiting[0]
        self.active.add(first.update_id)
        current = self._current[lane] = CurrentTurn(first.payload)
        try:
            others = await self._wait_for_burst(lane, first, waiting)
            async with self._exclusive if first.tries >= SHARED_TRIES else nullcontext():
                begun = await retry_forever(lambda: self.inbox.begin(first.update_id, others))
                if begun is not None:
                    self._count(begun)
                    await self._run_and_deliver(begun, current)
        except TurnTaken:
            log.warning("The turn of update %s is run by another process now", first.update_id)
        finally:
            current.end()
            self._current.pop(lane, None)
            self.active.discard(first.update_id)
            if not self.active:
                self._idle.set()

    def _count(self, begun: BegunTurn) -> None:
        if begun.update.tries == 1:
            waited = self.now() - begun.update.received_at
            self.metrics.turn_started(waited.total_seconds())
        for _ in begun.payloads[1:]:
            self.metrics.update("coalesced")

    async def _run_and_deliver(self, begun: BegunTurn | None, current: CurrentTurn) -> None:
        """Handle, commit and send a turn; begin it again after a correction or a failure."""
        while begun is not None:
            turn = begin_pending(begun, current.state)
            if begun.update.tries > self.max_tries:
                await self._set_aside(begun, turn, DIED)
                return
            if begun.outbox is not None:
                await self._send(turn, begun.outbox)
                return
            current.begin(begun.payloads, turn)
            try:
                with pending(turn):
                    await current.handle(self.handle)
            except Superseded:
                begun = await self._restart(begun, turn, current)
            except Unreadable:
                await self._set_aside(begun, turn, UNREADABLE, "unreadable")
                return
            except Exception as error:
                begun = await self._handle_failure(begun, turn, current, error)
            else:
                # From here on a correction is a turn of its own.
                turn.is_open = False
                await self._commit(turn)
                await self._send(turn, turn.messages)
                return

    async def _commit(self, turn: PendingTurn, error: str | None = None) -> None:
        """Store a turn with its messages, if no other process has begun it."""
        await retry_forever(
            lambda: self.inbox.commit(
                turn.update_id, turn.epoch, turn.ended, turn.messages, error=error
            )
        )

    async def _send(self, turn: PendingTurn, messages: Sequence[OutboxRow]) -> None:
        """Send the messages of a turn that is committed, and end it."""
        update_id, epoch = turn.update_id, turn.epoch

        async def hold() -> None:
            await retry_forever(lambda: self.inbox.hold(update_id, epoch))

        turn.delivered(await self.sender.deliver(messages, hold))
        await retry_forever(lambda: self.inbox.done(update_id, epoch, turn.traces))

    async def _restart(
        self, begun: BegunTurn, turn: PendingTurn, current: CurrentTurn
    ) -> BegunTurn:
        """Begin a turn again together with its corrections."""
        update = begun.update
        waiting = await retry_forever(lambda: self.inbox.waiting(lane_of(update.payload)))
        corrections = list[UpdateRow]()
        for row in waiting_behind(update.update_id, waiting):
            payloads = [*current.payloads, *(correction.payload for correction in corrections)]
            if is_same_turn(payloads, row.payload) and self.readable(row.payload):
                corrections.append(row)
                self.metrics.update("coalesced")
        ids = [row.update_id for row in corrections]
        restarted = await retry_forever(
            lambda: self.inbox.restart(update.update_id, turn.epoch, ids)
        )
        state = turn.state
        current.state = TurnState(
            before=state.spent, trace=state.trace, placeholder=state.placeholder
        )
        return restarted

    async def _handle_failure(
        self, begun: BegunTurn, turn: PendingTurn, current: CurrentTurn, error: Exception
    ) -> BegunTurn | None:
        """Begin a turn that failed again, a while later; return None if it was set aside."""
        update, counts = begun.update, not self.is_transient(error)
        turn.state.ledger, current.state = None, turn.state
        if not counts:
            log.warning("The turn of update %s waits: %s", update.update_id, type(error).__name__)
            await self.sleep(DATABASE.longest)
        else:
            failed = (update.update_id, update.tries, format_location(error))
            log.error("The turn of update %s failed, try %s: %s", *failed)
            if update.tries >= self.max_tries:
                await self._set_aside(begun, turn, type(error).__name__)
                return None
            await self.sleep(FIRST_WAIT_SECONDS * 2**update.tries)
        return await retry_forever(lambda: self.inbox.begin(update.update_id, counts=counts))

    async def _wait_for_burst(
        self, lane: str, first: UpdateRow, waiting: Sequence[UpdateRow]
    ) -> list[int]:
        """Return the ids of the updates that were sent in one go with the first.

        The queue is read again if updates arrived since `waiting` was read, and while more parts
        are to come.
        """
        if not is_part_of_burst(first.payload):
            return []
        if self._recheck.get(lane):
            waiting = await retry_forever(lambda: self.inbox.waiting(lane))
        # `received_at` is the time of the replica that accepted an update, whose clock may be ahead
        # of ours: our own clock bounds the wait.
        latest = time.monotonic() + LONGEST_BURST.total_seconds()
        while True:
            rows = [first, *waiting_behind(first.update_id, waiting)]
            group = group_burst(rows, self.burst, self.readable)
            newest = group[-1]
            end = min(newest.received_at + self.burst, first.received_at + LONGEST_BURST)
            remaining = end - self.now()
            is_whole = not comes_in_parts(newest.payload) or len(group) >= LARGEST_BURST
            if is_whole or remaining <= timedelta(0) or time.monotonic() > latest:
                return [row.update_id for row in group[1:]]
            await asyncio.sleep(min(remaining, LONGEST_BURST).total_seconds())
            waiting = await retry_forever(lambda: self.inbox.waiting(lane))

    async def _set_aside(
        self,
        begun: BegunTurn,
        turn: PendingTurn,
        error: str,
        result: UpdateResult = "set_aside",
    ) -> None:
        """Give an update up: tell the user and the admins, and let the lane go on."""
        update = begun.update
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
                await self.give_up(update.payload, error)
        except Exception as failure:
            log.error("Nobody is told of update %s: %s", update.update_id, format_location(failure))  # noqa: TRY400
        await self._commit(turn, error)
        self.metrics.update(result)
        turn.delivered(await self.sender.deliver(turn.messages))
        await retry_forever(lambda: self.inbox.save_traces(turn.traces))


def begin_pending(begun: BegunTurn, state: TurnState | None) -> PendingTurn:
    """Return the turn that begins; `state` is that of an earlier try, if there was one."""
    update = begun.update
    state = state or TurnState(placeholder=Placeholder(update.placeholder_id))
    return PendingTurn(update.update_id, update.epoch, update.tries, update.received_at, state)


def waiting_behind(update_id: int, waiting: Sequence[UpdateRow]) -> list[UpdateRow]:
    """Return the updates after one; an update that is to be retried belongs to no other turn."""
    return [row for row in waiting if row.update_id > update_id and row.state == "waiting"]


def received(payload: Payload) -> ReceivedUpdate:
    """Return what is stored of an update beside its payload."""
    message_id = number(message_in(payload).get("message_id"))
    return ReceivedUpdate(
        update_id=payload["update_id"],
        chat_id=chat_of(payload),
        lane=lane_of(payload),
        payload=payload,
        message_id=message_id if part(payload, "message") else None,
        edits=message_id if part(payload, "edited_message") else None,
    )


def format_location(error: Exception) -> str:
    """Return the type and the traceback of an error without its text, which may be a user's."""
    return f"{type(error).__name__}\nTraceback:\n{''.join(format_tb(error.__traceback__))}"
