"""The life of one update: begin, handle, commit, deliver, or set aside.

A later update that belongs to the turn restarts it. A turn that keeps failing is set aside. After a
crash, a turn that was not committed is handled again. A turn that was committed only sends those of
its messages that were not sent.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from traceback import format_tb
from typing import Final, Generic, Protocol, TypeVar

from agent.engine.errors import log_failure
from agent.writing_calls import WritingCalls
from bot.metrics import Metrics
from bot.turn import Delivery, Hold, Turn
from bot.updates.joining import comes_in_parts, is_same_turn, join, payer_of
from db.engine import DATABASE_BACKOFF, is_transient, retry_forever
from db.models import OutboxRow, UpdateRow
from db.repositories.inbox import Inbox, Payload
from db.repositories.outbox import TurnTaken

log = logging.getLogger(__name__)

RETRY_BASE_SECONDS: Final = 0.2
"""The wait after try N is this times 2**N: 0.4 s after the first try."""
# These errors are stored with an update that is set aside.
DIED: Final = "the process died while this update was being answered"
CANNOT_READ: Final = "the library cannot read it"

R = TypeVar("R")
T = TypeVar("T", bound=Turn)


class UnreadableUpdate(Exception):
    """The library cannot parse an update: a required field is missing or malformed."""


class Handlers(Protocol[T]):
    """Answers updates, as `bot.telegram.dispatch.Dispatcher` does."""

    def open_turn(self, row: UpdateRow) -> T:
        """Return the turn of an update."""
        ...

    async def handle(self, payload: Payload, turn: T) -> None:
        """Handle an update. Raise UnreadableUpdate if it cannot be parsed."""
        ...

    async def give_up(self, payload: Payload, turn: T, error: str) -> None:
        """Tell the user that their update is set aside. The turn collects the notice."""
        ...

    def is_readable(self, payload: Payload) -> bool:
        """Return whether an update can be parsed."""
        ...


class Deliverer(Protocol):
    """Sends messages, as `bot.telegram.sender.Sender` does."""

    async def deliver(self, messages: Sequence[OutboxRow], hold: Hold) -> Delivery:
        """Send messages in order. Record each one as soon as it is sent."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn has ended: its answer was sent, or it was set aside."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The try has failed, and another one follows."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Later updates belong to the turn, which starts again with them."""

    ids: Sequence[int]
    """The ids of the later updates."""


Result = Ended | Retry | Restart


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue in which updates of a chat wait."""

    name: str
    new_updates: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be updates that the lane's task has not read."""


class UpdateHold(Hold):
    """The hold of this process on the turn of an update.

    The row of an update has a number, the epoch. A process that begins the turn increments it. Then
    all earlier processes have lost their hold.
    """

    def __init__(self, inbox: Inbox, row: UpdateRow, *, are_shared: bool) -> None:
        self._inbox = inbox
        self._row = row
        self._are_shared = are_shared
        """Whether other processes may take over turns."""

    async def is_current(self) -> bool:
        """Return whether no other process has begun the turn."""
        if not self._are_shared:
            return True
        return await retry_forever(self._inbox.is_current, self._row)

    async def save_placeholder(self, message_id: int) -> None:
        """Store the id of the group message that shows the progress of the turn."""
        await retry_forever(self._inbox.save_placeholder, self._row, message_id)

    async def save_calls(self, calls: Sequence[str]) -> None:
        """Store the calls of tools that may write, before the last of them is made."""
        await retry_forever(self._inbox.save_calls, self._row, calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRunner(Generic[T]):
    """Runs the turns of updates.

    An update whose handler has failed `max_tries` times is set aside. Failures because the database
    was not available do not count. An update in whose turn the process died is set aside one try
    earlier. After the first death, the scheduler runs its turn apart from all others.

    An update may belong to the running turn, such as an edit or a further part of an album. If it
    arrives before the commit, it joins the turn, which starts again with it. A turn with an album
    or a forwarded message first waits `join_seconds` for further parts. If `join_seconds` is 0,
    every update is a turn of its own.
    """

    inbox: Inbox
    deliverer: Deliverer
    handlers: Handlers[T]
    metrics: Metrics
    join_seconds: float
    max_tries: int
    are_shared: bool = False
    """Whether other processes may take over turns."""

    async def run(self, lane: Lane, waiting: Sequence[UpdateRow]) -> None:
        """Run the turn of the first waiting update until its answer is sent or it is set aside."""
        row = waiting[0]
        turn = self.handlers.open_turn(row)
        hold = UpdateHold(self.inbox, row, are_shared=self.are_shared)
        turn.hold = hold
        turn.calls = WritingCalls(tuple(row.calls), save=hold.save_calls)
        # A process that survives its tries takes them off the count, or ends the update. So the
        # tries that are counted here are those in which an earlier process has died.
        deaths = row.tries
        try:
            await self._run_tries(lane, waiting, row, turn, deaths)
        except TurnTaken:
            log.warning(
                "The turn of update %s is run by another process now", row.update_id
            )
        except asyncio.CancelledError:
            await self._release(row)
            raise
        finally:
            # This process has nothing more to do for the turn. If its delivery was reported before,
            # this call changes nothing.
            turn.on_delivery(Delivery())

    async def _run_tries(
        self,
        lane: Lane,
        waiting: Sequence[UpdateRow],
        row: UpdateRow,
        turn: T,
        deaths: int,
    ) -> None:
        """Run tries of a turn until it ends. In `deaths` earlier tries, a process died."""
        joining_ids: Sequence[int] = ()
        is_new = row.turn_id is None
        if is_new:
            joining_ids = await self._wait_for_parts(lane, waiting)
        while True:
            match await self._run_try(lane, row, turn, joining_ids, deaths):
                case Ended():
                    return
                case Retry():
                    # The updates that joined the turn in an earlier try still belong to it.
                    joining_ids = ()
                case Restart(ids):
                    joining_ids = ids
            # This process has survived the try.
            deaths = 0

    async def _wait_for_parts(
        self, lane: Lane, waiting: Sequence[UpdateRow]
    ) -> Sequence[int]:
        """Return the ids of the updates that belong to the turn of the first one.

        If the first update may have further parts, first wait until they have arrived.
        """
        first = waiting[0].payload
        if self.join_seconds and comes_in_parts(first):
            await asyncio.sleep(self.join_seconds)
            waiting = await self.list_unfinished(lane)
        return self._find_joining_ids(waiting, [first])

    async def _run_try(
        self,
        lane: Lane,
        row: UpdateRow,
        turn: T,
        joining_ids: Sequence[int],
        deaths: int,
    ) -> Result:
        """Begin, handle, commit and send a turn, which the updates with these ids join."""
        for _ in joining_ids:
            self.metrics.count_update("joined")
        # `begin` also updates `row.tries` and `row.epoch`.
        tries = row.tries + 1
        payloads, unsent, budget = await retry_forever(
            self.inbox.begin, row, joining_ids, tries=tries, payer_id=payer_of(row)
        )
        turn.restart()
        turn.budget = budget
        turn.try_number = row.tries
        # A turn in which the process dies gets one try less than others. The limit is at least 1,
        # because with 0 every turn would be set aside before its first try.
        max_deaths = max(1, self.max_tries - 1)
        # If the row has an error, an earlier process has set the update aside. Then only the
        # apology has to be sent, below.
        is_set_aside = row.error is not None
        # This check comes after `begin`, because only the process that has begun a turn may set its
        # update aside.
        if deaths >= max_deaths and not is_set_aside:
            await self._set_aside(row, turn, DIED)
            return Ended()
        if unsent is not None:
            # An earlier process has committed the turn.
            await self._deliver_and_end(row, turn, unsent)
            return Ended()
        return await self._answer(lane, row, turn, payloads)

    async def _answer(
        self, lane: Lane, row: UpdateRow, turn: T, payloads: Sequence[Payload]
    ) -> Result:
        """Handle, commit and send a turn that has begun."""
        try:
            later_ids = await self._handle(lane, turn, payloads)
            if later_ids:
                # A restart is not a failure, so the count of tries begins anew.
                row.tries = 0
                return Restart(later_ids)
            # From here on, no update can join the turn. A later correction begins another turn.
            await self._commit(row, turn)
        except UnreadableUpdate:
            await self._set_aside(row, turn, CANNOT_READ)
            return Ended()
        except Exception as error:
            return await self._wait_or_set_aside(row, turn, error)
        await self._deliver_and_end(row, turn, turn.commit.outgoing)
        return Ended()

    async def _handle(
        self, lane: Lane, turn: T, payloads: Sequence[Payload]
    ) -> Sequence[int]:
        """Handle the updates of a turn as if they were a single one.

        If later updates join the turn, stop and return their ids. Otherwise return no ids.
        """

        async def wait_for_joining() -> Sequence[int]:
            """Wait for updates that join the turn, such as corrections. Return their ids."""
            while True:
                await lane.new_updates.wait()
                lane.new_updates.clear()
                waiting = await self.list_unfinished(lane)
                if turn.stop.is_requested:
                    # After a Stop, the user writes a new question.
                    continue
                ids = self._find_joining_ids(waiting, payloads)
                if ids:
                    return ids

        async def handle() -> None:
            await self.handlers.handle(join(payloads), turn)

        joining_ids = await run_unless(wait_for_joining, handle)
        if joining_ids is None:
            # The updates were handled before others joined the turn.
            return ()
        return joining_ids

    def _find_joining_ids(
        self, waiting: Sequence[UpdateRow], payloads: Sequence[Payload]
    ) -> list[int]:
        """Return the ids of the waiting updates that belong to the turn of `payloads`."""
        if not self.join_seconds:
            return []
        first_id = payloads[0]["update_id"]
        turn_payloads = list(payloads)
        ids: list[int] = []
        for row in waiting:
            # An update that an operator has tried again keeps the turn that it had.
            has_own_turn = row.turn_id is not None
            is_later = row.update_id > first_id
            if has_own_turn or not is_later:
                continue
            if not is_same_turn(turn_payloads, row.payload):
                continue
            if self.handlers.is_readable(row.payload):
                turn_payloads.append(row.payload)
                ids.append(row.update_id)
        return ids

    async def list_unfinished(self, lane: Lane) -> Sequence[UpdateRow]:
        """Return the updates of a lane whose turns have not ended, in order."""
        return await retry_forever(self.inbox.list_unfinished, lane.name)

    async def _commit(self, row: UpdateRow, turn: T, error: str | None = None) -> None:
        """Commit what a turn has collected. `error` is the reason if the turn is set aside."""
        await turn.render()
        commit = turn.complete_commit()
        await retry_forever(self.inbox.commit, row, commit, error=error)

    async def _deliver_and_end(
        self, row: UpdateRow, turn: T, messages: Sequence[OutboxRow]
    ) -> None:
        """Send the messages of a committed turn, and end it."""
        delivery = await self.deliverer.deliver(messages, turn.hold)
        turn.on_delivery(delivery)
        await retry_forever(self.inbox.end, row, turn.commit.trace)

    async def _wait_or_set_aside(
        self, row: UpdateRow, turn: T, error: Exception
    ) -> Result:
        """Wait before the next try of a failed turn, or set it aside."""
        error_name = type(error).__name__
        if is_transient(error):
            log.warning("The turn of update %s waits: %s", row.update_id, error_name)
            await asyncio.sleep(DATABASE_BACKOFF.max_wait)
            # A failure because of the database does not count.
            row.tries -= 1
            return Retry()
        # The message of the error is not logged, because it may contain a text of the user.
        frames = "".join(format_tb(error.__traceback__))
        log.error(
            "The turn of update %s failed, try %s: %s\nTraceback:\n%s",
            row.update_id,
            row.tries,
            error_name,
            frames,
        )
        if row.tries >= self.max_tries:
            await self._set_aside(row, turn, error_name)
            return Ended()
        await asyncio.sleep(RETRY_BASE_SECONDS * 2**row.tries)
        return Retry()

    async def _set_aside(self, row: UpdateRow, turn: T, error: str) -> None:
        """Give up on an update, so that the lane can go on, and tell the user."""
        # What the failed try has collected is discarded.
        turn.restart()
        log.error(
            "Update %s is set aside: %s. `sommelier updates list` shows it, "
            "`sommelier updates retry` tries it again.",
            row.update_id,
            error,
        )
        try:
            await self.handlers.give_up(row.payload, turn, error)
        except Exception as failure:
            log_failure(
                f"The user could not be notified about update {row.update_id}", failure
            )
        await self._commit(row, turn, error)
        self.metrics.count_update("set_aside")
        await self._deliver_and_end(row, turn, turn.commit.outgoing)

    async def _release(self, row: UpdateRow) -> None:
        """Take a cancelled try off the count, because cancelling is not a failure.

        A try is cancelled when the process stops or has lost the lane.
        """
        try:
            await self.inbox.release(row)
        except Exception as error:
            log_failure(
                f"The try of update {row.update_id} counts, though it was cancelled",
                error,
            )


async def run_unless(
    interrupt: Callable[[], Coroutine[object, object, R]],
    function: Callable[[], Coroutine[object, object, object]],
) -> R | None:
    """Run a function until it ends, or until `interrupt` ends.

    If `interrupt` ends first, cancel the function, and return the result of `interrupt`. If the
    function ends first, return None.

    Raises:
        Exception: the error of the one that ended first.
    """
    running = asyncio.create_task(function())
    waiting = asyncio.create_task(interrupt())
    try:
        done, _ = await asyncio.wait(
            [running, waiting], return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in (running, waiting):
            task.cancel()
        # This retrieves both errors. Otherwise asyncio would log one as never retrieved.
        await asyncio.gather(running, waiting, return_exceptions=True)
    if running in done:
        # If the function has failed, this raises its error.
        running.result()
        return None
    return waiting.result()
