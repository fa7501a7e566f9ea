"""The life of one update: begin, handle, commit, deliver, or set aside.

A later update that belongs to the turn restarts it. A turn that keeps failing is set aside. After a
crash, a turn that was not committed is handled again; a committed turn only sends the messages that
were not sent yet.
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
"""The delay after try n is this times 2**n: 0.4 s after the first."""
DIED: Final = "the process died while this update was being answered"
CANNOT_READ: Final = "the library cannot read it"

R = TypeVar("R")
T = TypeVar("T", bound=Turn)


class UnreadableUpdate(Exception):
    """The library cannot parse an update: a required field is missing or malformed."""


class Handlers(Protocol[T]):
    """Answers updates; `bot.telegram.dispatch.Dispatcher` does."""

    def open_turn(self, row: UpdateRow) -> T:
        """Return the turn of an update."""
        ...

    async def handle(self, payload: Payload, turn: T) -> None:
        """Handle an update; raise UnreadableUpdate if it cannot be parsed."""
        ...

    async def give_up(self, payload: Payload, turn: T, error: str) -> None:
        """Collect a notice for the user that their update is set aside."""
        ...

    def is_readable(self, payload: Payload) -> bool:
        """Return whether an update can be parsed."""
        ...


class Deliverer(Protocol):
    """Sends messages; `bot.telegram.sender.Sender` does."""

    async def deliver(self, messages: Sequence[OutboxRow], hold: Hold) -> Delivery:
        """Send messages in order, and record each one."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn has ended: its answer was sent, or it was set aside."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The try failed; another one follows."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Other updates belong to the turn, which starts again with them."""

    ids: Sequence[int]


Result = Ended | Retry | Restart


@dataclass(frozen=True, slots=True)
class Lane:
    """A chat's queue of updates.

    `new_updates` is set when there are updates that nobody has read.
    """

    name: str
    new_updates: asyncio.Event = field(default_factory=asyncio.Event)


class UpdateHold(Hold):
    """The hold on the turn of an update. It is lost when another process raises the epoch."""

    def __init__(self, inbox: Inbox, row: UpdateRow, *, are_shared: bool) -> None:
        self._inbox = inbox
        self._row = row
        self._are_shared = are_shared

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
class UpdateLife(Generic[T]):
    """Runs the turns of updates.

    An update whose handler failed `max_tries` times is set aside; failures because of an
    unavailable database do not count. An update in whose turn the process died is set aside one try
    earlier; after the first time the scheduler runs its turn apart from all others.

    An update that belongs to the running turn (an edit, a correction, a further part) joins it: if
    it arrives before the commit, the turn is restarted with it. A turn with an album or a forwarded
    message first waits `join_seconds` for further parts. If this is 0, every update is a turn of
    its own.
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
        # Every try that a process survives ends with the update, or is not counted.
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
            # The turn leaves this process. After a delivery, this second call changes nothing.
            turn.on_delivery(Delivery())

    async def _run_tries(
        self,
        lane: Lane,
        waiting: Sequence[UpdateRow],
        row: UpdateRow,
        turn: T,
        deaths: int,
    ) -> None:
        joining: Sequence[int] = ()
        if row.turn_id is None:  # the turn was not begun before
            joining = await self._wait_for_parts(lane, waiting)
        while True:
            match await self._run_try(lane, row, turn, joining, deaths):
                case Ended():
                    return
                case Retry():
                    joining = ()
                case Restart(ids):
                    joining = ids
            deaths = 0

    async def _wait_for_parts(
        self, lane: Lane, waiting: Sequence[UpdateRow]
    ) -> Sequence[int]:
        """Return the ids of the updates that belong to the first; wait if parts may follow."""
        first = waiting[0].payload
        if self.join_seconds and comes_in_parts(first):
            await asyncio.sleep(self.join_seconds)
            waiting = await self.list_unfinished(lane)
        return self._find_joining(waiting, [first])

    async def _run_try(
        self,
        lane: Lane,
        row: UpdateRow,
        turn: T,
        joining: Sequence[int],
        deaths: int,
    ) -> Result:
        """Begin, handle, commit and send a turn; `joining` are the ids of updates that join it."""
        for _ in joining:
            self.metrics.count_update("joined")
        # `begin` also updates `row.tries` and `row.epoch`.
        tries = row.tries + 1
        payloads, unsent, budget = await retry_forever(
            self.inbox.begin, row, joining, tries=tries, payer_id=payer_of(row)
        )
        turn.restart()
        turn.budget = budget
        turn.try_number = row.tries
        # Only the process that has begun a turn may set it aside. If the row has an error, an
        # earlier process has set it aside, but its apology must still be sent.
        max_deaths = max(1, self.max_tries - 1)
        if deaths >= max_deaths and row.error is None:
            await self._set_aside(row, turn, DIED)
            return Ended()
        if unsent is not None:  # committed by an earlier process
            await self._deliver_and_end(row, turn, unsent)
            return Ended()
        try:
            later_ids = await self._handle(lane, turn, payloads)
            if later_ids:
                row.tries = 0  # a restart is not a failure, and the turn is longer now
                return Restart(later_ids)
            # After this, no update can join the turn: a correction begins another turn.
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
        """Handle the updates of a turn as one. If others join it, stop; return their ids."""

        async def wait_for_joining() -> Sequence[int]:
            while True:
                await lane.new_updates.wait()
                lane.new_updates.clear()
                waiting = await self.list_unfinished(lane)
                if turn.stop.is_requested:
                    continue  # what is written after a Stop is a question of its own
                joining = self._find_joining(waiting, payloads)
                if joining:
                    return joining

        async def handle() -> None:
            await self.handlers.handle(join(payloads), turn)

        joining = await run_unless(wait_for_joining, handle)
        return joining or ()

    def _find_joining(
        self, waiting: Sequence[UpdateRow], payloads: Sequence[Payload]
    ) -> list[int]:
        """Return the ids of waiting updates that belong to the turn of `payloads`."""
        if not self.join_seconds:
            return []
        joined = [*payloads]
        ids: list[int] = []
        for row in waiting:
            # An update retried by an admin keeps its own turn.
            is_later = row.turn_id is None and row.update_id > payloads[0]["update_id"]
            belongs = is_later and is_same_turn(joined, row.payload)
            if belongs and self.handlers.is_readable(row.payload):
                joined.append(row.payload)
                ids.append(row.update_id)
        return ids

    async def list_unfinished(self, lane: Lane) -> Sequence[UpdateRow]:
        """Return the updates of a lane whose turns have not ended, in order."""
        return await retry_forever(self.inbox.list_unfinished, lane.name)

    async def _commit(self, row: UpdateRow, turn: T, error: str | None = None) -> None:
        """Commit what a turn has collected; `error` is the reason if it is set aside."""
        await turn.render()
        await retry_forever(self.inbox.commit, row, turn.complete_commit(), error=error)

    async def _deliver_and_end(
        self, row: UpdateRow, turn: T, messages: Sequence[OutboxRow]
    ) -> None:
        """Send the messages of a committed turn, and end it."""
        turn.on_delivery(await self.deliverer.deliver(messages, turn.hold))
        await retry_forever(self.inbox.end, row, turn.commit.trace)

    async def _wait_or_set_aside(
        self, row: UpdateRow, turn: T, error: Exception
    ) -> Result:
        """Wait before the next try of a failed turn, or set it aside."""
        kind = type(error).__name__
        if is_transient(error):
            log.warning("The turn of update %s waits: %s", row.update_id, kind)
            await asyncio.sleep(DATABASE_BACKOFF.max_wait)
            row.tries -= 1  # a failure because of the database does not count
            return Retry()
        # Do not log the error message: it may contain text of the user.
        frames = "".join(format_tb(error.__traceback__))
        text = "The turn of update %s failed, try %s: %s\nTraceback:\n%s"
        log.error(text, row.update_id, row.tries, kind, frames)
        if row.tries >= self.max_tries:
            await self._set_aside(row, turn, kind)
            return Ended()
        await asyncio.sleep(RETRY_BASE_SECONDS * 2**row.tries)
        return Retry()

    async def _set_aside(self, row: UpdateRow, turn: T, error: str) -> None:
        """Give up on an update so that the lane can continue; notify the user."""
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
        """Do not count a try that was cancelled because the process stops or has lost its lane."""
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
    """Run a function; as soon as `interrupt` ends, cancel the function, and return its result.

    Return None if the function ends first.

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
        # Both errors are retrieved, or the second one would be logged as "never retrieved".
        await asyncio.gather(running, waiting, return_exceptions=True)
    if running in done:
        running.result()  # raises the error of the function, if it failed
        return None
    return waiting.result()
