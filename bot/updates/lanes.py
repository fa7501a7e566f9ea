"""From accepted updates to turns: in the order of their lanes, bursts merged, poison set aside.

A turn is begun, handled, committed with its messages, and sent. After a kill a turn without an
answer is handled again; one with an answer is only sent, as far as it was not.
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

from agent.repositories import Payload, ReceivedUpdate, TurnTaken
from bot.metrics import Metrics, UpdateResult
from bot.outgoing import Delivery
from bot.pending import PendingTurn, Placeholder, TurnState, pending
from bot.retries import DATABASE, retry_forever
from bot.telegram.sender import Sender
from bot.updates.bursts import (
    INLINE,
    LARGEST_BURST,
    chat_of,
    comes_in_parts,
    is_follow_up,
    is_part_of_burst,
    joined,
    joins,
    lane_of,
    message_in,
    number,
    part,
    together,
)
from db.models import OutboxRow, UpdateRow
from db.repositories.inbox import BegunTurn, Inbox

log = logging.getLogger(__name__)

MOST_IN_PASSING: Final = 32
"""More inline queries at once are left alone: who types on asks again."""
HEARD_SECONDS: Final = 0.3
"""How long a press waits for the turn before its own until it is told that it was heard."""
FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_BURST: Final = timedelta(seconds=5)
DIED: Final = "the process died while this update was answered"
UNREADABLE: Final = "the library cannot read it"

TRIES_IN_COMPANY: Final = 2
"""How often a turn may be cut off before it is run alone: after a crash we cannot tell which of the
turns that ran has caused it."""


class Unreadable(Exception):
    """No update can be made of a payload: what the library needs of it is not as it should be."""


class Superseded(Exception):
    """Something was said that belongs to the turn which runs."""


class _Current:
    """The turn that runs in a lane, as those see it who say more while it does."""

    def __init__(self, payloads: Sequence[Payload]) -> None:
        self.payloads = payloads
        self.turn: PendingTurn | None = None
        self.state: TurnState | None = None
        self._has_more = False
        self._task: asyncio.Task[object] | None = None

    def run(self, payloads: Sequence[Payload], turn: PendingTurn) -> None:
        """Run a turn of these updates from now on; what came before it began is among them."""
        self.payloads, self.turn = payloads, turn

    def hear(self, payload: Payload) -> None:
        """Cut the turn off if this belongs to it, and its answer is not committed."""
        if self._has_more or not joins(self.payloads, payload):
            return
        if self._task is None:
            self._has_more = True
        elif self.turn is not None and self.turn.is_open:
            self._has_more = True
            self._task.cancel()

    def end(self) -> None:
        """End the turn, whatever became of it."""
        if self.turn is not None:
            self.turn.delivered(Delivery())

    async def until_superseded(self, handle: Callable[[Payload], Awaitable[None]]) -> None:
        """Let the turn be handled.

        Raises:
            Superseded: something was said meanwhile that belongs to it.
        """
        if self._has_more:
            self._has_more = False
            raise Superseded
        self._task = task = asyncio.current_task()
        try:
            await handle(joined(self.payloads))
        except asyncio.CancelledError:
            # Stopping cancels too: only a cancellation of ours alone is taken back.
            if not self._has_more or task is None or task.uncancel():
                raise
            self._has_more = False
            raise Superseded from None
        finally:
            self._task = None


Lock = Callable[[str], AbstractAsyncContextManager[bool]]
"""Holds a lane while it is entered; False: another process does."""


async def left_alone(payload: Payload) -> None:
    """Tell nobody anything."""


def of_one_process(lane: str) -> AbstractAsyncContextManager[bool]:
    """Hold a lane where there is no other process."""
    return nullcontext(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accepts updates and runs their turns, those of a lane one after the other by their ids.

    A lane is run by the process that holds its `lock`; who does looks once more when it has let go,
    so whoever finds it held may go away. `unowned` are the lanes that nobody runs and somebody
    should.

    `burst` is how long after a part of an album, or a forwarded message, the next one is awaited; a
    turn of anything else begins at once. What belongs to it and comes before its answer is
    committed has it begin anew, together; with no `burst` nothing is merged then. `places` is how
    many turns run side by side.

    An update whose turn fails or dies `max_tries` times is set aside, and `give_up` tells the
    person. What fails because the database is away, which `passing` tells, does not count. `sleep`
    takes the waits between tries. Turns begin once `ready` is set. `heard_press` tells who presses
    a button whose turn has to wait that it was heard.
    """

    inbox: Inbox
    sender: Sender
    metrics: Metrics
    handle: Callable[[Payload], Awaitable[None]]
    readable: Callable[[Payload], bool]
    give_up: Callable[[Payload, str], Awaitable[None]]
    passing: Callable[[Exception], bool]
    heard_press: Callable[[Payload], Awaitable[None]] = left_alone
    burst: timedelta
    max_tries: int
    lock: Lock = of_one_process
    unowned: Callable[[], Awaitable[Iterable[str]]]
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(64))
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    active: set[int] = field(default_factory=set)
    _woken: dict[str, bool] = field(default_factory=dict)
    _current: dict[str, "_Current"] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _passing: set[asyncio.Task[None]] = field(default_factory=set)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Take responsibility for updates: when this returns all are committed, in one go."""
        for payload in payloads:
            if INLINE in payload:
                self._in_passing(self.handle, payload)
            elif is_follow_up(payload) and (current := self._current.get(lane_of(payload))):
                self._in_passing(partial(self._tell_heard, current), payload)
        queued = [received(each) for each in payloads if INLINE not in each]
        for each in await self.inbox.accept(queued) if queued else ():
            self.wake(each.lane)
            self.metrics.update("accepted")
            if self.burst and each.lane in self._current:
                self._current[each.lane].hear(each.payload)

    async def heard(self, lane: str) -> None:
        """Take what another process accepted for a lane as if it had come here."""
        current = self._current.get(lane)
        if current is None or not self.burst:
            return
        first = current.payloads[0]["update_id"]
        for each in behind(first, await self.inbox.waiting(lane)):
            current.hear(each.payload)

    async def _tell_heard(self, current: "_Current", payload: Payload) -> None:
        await asyncio.sleep(HEARD_SECONDS)
        if self._current.get(lane_of(payload)) is current:
            await self.heard_press(payload)

    def _in_passing(self, do: Callable[[Payload], Awaitable[None]], payload: Payload) -> None:
        """Do what nobody waits for any more in a moment: it is not kept, and in no lane."""

        async def done() -> None:
            try:
                await do(payload)
            except Exception as error:
                log.error("An update was not answered at once: %s", place(error))  # noqa: TRY400

        is_open = self.ready.is_set() and not self._stopping.is_set()
        if is_open and len(self._passing) < MOST_IN_PASSING:
            task = asyncio.create_task(done())
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def look(self) -> None:
        """Wake the lanes that nobody runs: what somebody left, or an operator wants tried again."""
        for lane in await self.unowned():
            if lane not in self._woken:
                self.wake(lane)

    def wake(self, lane: str) -> None:
        """Have a lane run; one that runs here looks once more whether anything waits."""
        runs = lane in self._woken
        self._woken[lane] = True
        if not runs:
            task = asyncio.create_task(self._work(lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def run(self, lane: str) -> None:
        """Run the turns of a lane until none waits, or while it is ours; none once stopping."""
        while True:
            async with self.places:
                if lane in self._woken:
                    self._woken[lane] = False
                waiting = await retry_forever(lambda: self.inbox.waiting(lane))
                if not waiting or self._stopping.is_set():
                    return
                async with self.lock(lane) as ours:
                    if not ours or self._stopping.is_set():
                        return
                    await self._run(lane, waiting)

    async def _work(self, lane: str) -> None:
        try:
            await self.ready.wait()
            while self._woken[lane]:
                await self.run(lane)
        except Exception as error:
            log.error("A lane stands still until it is woken again: %s", place(error))  # noqa: TRY400
        finally:
            del self._woken[lane]

    async def finish(self, seconds: float) -> bool:
        """Begin no turn any more and wait for those that run, so long at most; whether none does.

        Turns that were waiting stay so, for the next start or another replica.
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
        """Cut off what still runs."""
        tasks = [*self._tasks, *self._passing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, lane: str, waiting: Sequence[UpdateRow]) -> None:
        first = waiting[0]
        self.active.add(first.update_id)
        current = self._current[lane] = _Current((first.payload,))
        try:
            others = await self._sent_with(lane, first, waiting)
            async with self._alone if first.tries >= TRIES_IN_COMPANY else nullcontext():
                begin = partial(self.inbox.begin, first.update_id, others)
                if (begun := await retry_forever(begin)) is not None:
                    self._count(begun)
                    await self._live(begun, current)
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

    async def _live(self, begun: BegunTurn | None, current: "_Current") -> None:
        """Handle, commit and send a turn that has begun; begin it again if that is to be."""
        while begun is not None:
            turn, update = turn_of(begun, current.state), begun.update
            if update.tries > self.max_tries:
                await self._set_aside(begun, turn, DIED)
                return
            if begun.outbox is not None:
                await self._send(turn, begun.outbox)
                return
            current.run(begun.payloads, turn)
            try:
                with pending(turn):
                    await current.until_superseded(self.handle)
            except Superseded:
                begun = await self._restart(begun, turn, current)
            except Unreadable:
                await self._set_aside(begun, turn, UNREADABLE, "unreadable")
                return
            except Exception as error:
                begun = await self._begin_again(begun, turn, current, error)
            else:
                turn.is_open = False
                commit = partial(self.inbox.commit, turn.update_id, turn.epoch)
                await retry_forever(partial(commit, turn.ended, turn.messages))
                await self._send(turn, turn.messages)
                return

    async def _send(self, turn: PendingTurn, messages: Sequence[OutboxRow]) -> None:
        """Send the messages of a turn that is committed, and end it."""
        hold = partial(self.inbox.hold, turn.update_id, turn.epoch)
        turn.delivered(await self.sender.deliver(messages, partial(retry_forever, hold)))
        await retry_forever(partial(self.inbox.done, turn.update_id, turn.epoch, turn.traces))

    async def _restart(self, begun: BegunTurn, turn: PendingTurn, current: "_Current") -> BegunTurn:
        """Begin a turn anew together with what was said while it ran."""
        update = begun.update
        lane = lane_of(update.payload)
        waiting = await retry_forever(lambda: self.inbox.waiting(lane))
        further = list[UpdateRow]()
        for row in behind(update.update_id, waiting):
            taken = [*current.payloads, *(other.payload for other in further)]
            if joins(taken, row.payload) and self.readable(row.payload):
                further.append(row)
        ids = [row.update_id for row in further]
        restart = partial(self.inbox.restart, update.update_id, turn.epoch, ids)
        again = await retry_forever(restart)
        for _ in further:
            self.metrics.update("coalesced")
        current.state = TurnState(
            before=turn.state.spent, trace=turn.state.trace, placeholder=turn.state.placeholder
        )
        return again

    async def _begin_again(
        self, begun: BegunTurn, turn: PendingTurn, current: "_Current", error: Exception
    ) -> BegunTurn | None:
        """Begin a turn that failed again, a while later; None if it was set aside."""
        update, counts = begun.update, not self.passing(error)
        turn.state.ledger, current.state = None, turn.state
        if not counts:
            log.warning("The turn of update %s waits: %s", update.update_id, type(error).__name__)
            await self.sleep(DATABASE.longest)
        else:
            failed = (update.update_id, update.tries, place(error))
            log.error("The turn of update %s failed, try %s: %s", *failed)
            if update.tries >= self.max_tries:
                await self._set_aside(begun, turn, type(error).__name__)
                return None
            await self.sleep(FIRST_WAIT_SECONDS * 2**update.tries)
        return await retry_forever(partial(self.inbox.begin, update.update_id, counts=counts))

    async def _sent_with(
        self, lane: str, first: UpdateRow, waiting: Sequence[UpdateRow]
    ) -> list[int]:
        """What was sent in one go with an update; what comes in parts is awaited.

        What came since it was looked what is `waiting` is looked for once more.
        """
        if not is_part_of_burst(first.payload):
            return []
        if self._woken.get(lane):
            waiting = await retry_forever(lambda: self.inbox.waiting(lane))
        # Another replica's clock, which said when updates were received, may be ahead of ours.
        latest = time.monotonic() + LONGEST_BURST.total_seconds()
        while True:
            group = together([first, *behind(first.update_id, waiting)], self.burst, self.readable)
            over = self._over(first, group)
            in_parts = comes_in_parts(group[-1].payload)
            if over <= timedelta(0) or not in_parts or time.monotonic() > latest:
                return [each.update_id for each in group[1:]]
            await asyncio.sleep(min(over, LONGEST_BURST).total_seconds())
            waiting = await retry_forever(lambda: self.inbox.waiting(lane))

    def _over(self, first: UpdateRow, group: Sequence[UpdateRow]) -> timedelta:
        """How long until this burst is over."""
        newest = group[-1]
        if not is_part_of_burst(newest.payload) or len(group) >= LARGEST_BURST:
            return timedelta(0)
        end = min(newest.received_at + self.burst, first.received_at + LONGEST_BURST)
        return end - self.now()

    async def _set_aside(
        self,
        begun: BegunTurn,
        turn: PendingTurn,
        error: str,
        result: UpdateResult = "set_aside",
    ) -> None:
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
            log.error("Nobody is told of update %s: %s", update.update_id, place(failure))  # noqa: TRY400
        commit = partial(self.inbox.commit, update.update_id, turn.epoch, error=error)
        await retry_forever(partial(commit, turn.ended, turn.messages))
        self.metrics.update(result)
        turn.delivered(await self.sender.deliver(turn.messages))
        await retry_forever(partial(self.inbox.save_traces, turn.traces))


def turn_of(begun: BegunTurn, state: TurnState | None) -> PendingTurn:
    """Return the turn that begins; `state` is that of a try which is void."""
    update = begun.update
    state = state or TurnState(placeholder=Placeholder(update.placeholder_id))
    return PendingTurn(update.update_id, update.epoch, update.tries, update.received_at, state)


def behind(update_id: int, waiting: Sequence[UpdateRow]) -> list[UpdateRow]:
    """Those behind an update; what an operator has tried again belongs to no other."""
    return [each for each in waiting if each.update_id > update_id and each.state == "waiting"]


def received(payload: Payload) -> ReceivedUpdate:
    """What is told of an update before it is read."""
    message_id = number(message_in(payload).get("message_id"))
    return ReceivedUpdate(
        update_id=payload["update_id"],
        chat_id=chat_of(payload),
        lane=lane_of(payload),
        payload=payload,
        message_id=message_id if part(payload, "message") else None,
        edits=message_id if part(payload, "edited_message") else None,
    )


def place(error: Exception) -> str:
    """Where an error was raised, and of which kind it is: its words may be a person's."""
    return f"{type(error).__name__}\nTraceback:\n{''.join(format_tb(error.__traceback__))}"
