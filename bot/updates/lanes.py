"""From an accepted update to its turn: bursts joined, handlers called, poison set aside."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from traceback import format_tb
from typing import Final, Protocol

from telegram import Bot, Update
from telegram.ext import ApplicationHandlerStop

from agent.engine.run import Journal, StepsChanged
from agent.repositories import AcceptedUpdate, Payload, ReceivedUpdate, UpdateRepository
from bot.metrics import Metrics, UpdateResult
from bot.telegram.handlers import AnyApplication
from bot.turn import retry_forever
from bot.updates.bursts import (
    LARGEST_BURST,
    chat_of,
    is_part_of_burst,
    joined,
    lane_of,
    message_in,
    number,
    part,
    together,
)

log = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_BURST: Final = timedelta(seconds=5)
SEND_STEP: Final = "telegram."
"""How the names of steps begin in which something is sent."""

TRIES_IN_COMPANY: Final = 2
"""How often a turn may be interrupted without progress before it is run alone. Who of those that
ran when a process died has killed it is not known; so tries count only when it can be."""


UNREADABLE: Final = "the library cannot read it"


class Unreadable(Exception):
    """No update can be made of a payload: what the library needs of it is not as it should be."""


class TurnQueue(Journal, Protocol):
    """Where turns wait, those of a lane in order, and where their steps are recorded."""

    @property
    def active(self) -> Set[int]: ...  # noqa: D102
    async def enqueue(self, update_id: int, lane: str, retry: int = 0) -> None: ...  # noqa: D102
    async def steps_recorded(self) -> Sequence[str]: ...  # noqa: D102
    async def finish(self, seconds: float) -> bool: ...  # noqa: D102
    async def forget(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accepts updates and runs the turn of each, in the order of its lane.

    `burst` is how long after a message the next one still belongs to the same turn. An update that
    fails `max_tries` times is set aside, and `give_up` tells the person; so is one that kills the
    process as often without a step of progress while no other suspect is running. `sleep` takes
    the waits between tries.
    """

    updates: UpdateRepository
    queue: TurnQueue
    metrics: Metrics
    handle: Callable[[Payload], Awaitable[None]]
    readable: Callable[[Payload], bool]
    give_up: Callable[[Payload, str], Awaitable[None]]
    burst: timedelta
    max_tries: int
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def accept(self, payloads: Sequence[Payload]) -> None:
        """Take responsibility for updates: when this returns all are committed, in one go."""
        for payload in await self.updates.accept([received(each) for each in payloads]):
            await self.queue.enqueue(payload["update_id"], lane_of(payload))
            self.metrics.update("accepted")

    async def run(self, update_id: int) -> None:
        """Run the turn of an update; leave alone what is over, or part of another turn."""
        begun, progress = await retry_forever(lambda: self.updates.begun(update_id, 0)), 0
        if begun:
            progress = len(await retry_forever(self.queue.steps_recorded))
            begun = await retry_forever(lambda: self.updates.begun(update_id, progress))
        async with self._alone if begun >= TRIES_IN_COMPANY else nullcontext():
            await self._try(update_id, progress)

    async def retry_asked(self) -> int:
        """Enqueue what an operator wants tried again; how many updates that were.

        Until the turn has begun it is asked for again: its id makes it the same each time.
        """
        asked = await self.updates.to_retry()
        for update in asked:
            await self.queue.enqueue(update.update_id, lane_of(update.payload), update.retries)
        return len(asked)

    async def _try(self, update_id: int, progress: int) -> None:
        for failures in count(1):
            update = await retry_forever(lambda: self.updates.begin(update_id, progress))
            if update is None or update.state != "waiting":
                return
            if update.tries > TRIES_IN_COMPANY + self.max_tries:
                await self._set_aside(update, "the process died while this update was answered")
                return
            try:
                await self._turn(update)
            except StepsChanged as step:
                await self._begin_anew(update, str(step))
                return
            except Unreadable:
                await self._set_aside(update, UNREADABLE, "unreadable")
                return
            except Exception as error:
                where = place(error)
                log.error("The turn of update %s failed, try %s: %s", update_id, failures, where)  # noqa: TRY400
                if failures >= self.max_tries:
                    await self._set_aside(update, type(error).__name__)
                    return
                await self.sleep(FIRST_WAIT_SECONDS * 2**failures)
            else:
                return

    async def _turn(self, update: AcceptedUpdate) -> None:
        # Neither end is a step: both find what they did before, if the turn is run again.
        payloads = await retry_forever(lambda: self._take(update))
        await self.handle(joined(payloads))
        await retry_forever(lambda: self.updates.done(update.update_id))

    async def _take(self, first: AcceptedUpdate) -> list[Payload]:
        """The updates of this turn: the first, and what was sent in one go with it."""
        if first.tries == 1:
            self.metrics.turn_started((self.now() - first.received_at).total_seconds())
        # Another replica's clock, which said when updates were received, may be ahead of ours.
        latest = time.monotonic() + LONGEST_BURST.total_seconds()
        while True:
            waiting = await self.updates.waiting(first.chat_id, first.update_id)
            others = [each for each in waiting if each.update_id != first.update_id]
            group = together([first, *others], self.burst, self.readable)
            over = self._over(first, group)
            if over <= timedelta(0) or time.monotonic() > latest:
                break
            await asyncio.sleep(min(over, LONGEST_BURST).total_seconds())
        taken = await self.updates.take([each.update_id for each in group], first.update_id)
        for _ in taken[1:]:
            self.metrics.update("coalesced")
        return [dict(update.payload) for update in taken]

    def _over(self, first: AcceptedUpdate, group: Sequence[AcceptedUpdate]) -> timedelta:
        """How long until this burst is over."""
        newest = group[-1]
        if not is_part_of_burst(newest.payload) or len(group) >= LARGEST_BURST:
            return timedelta(0)
        end = min(newest.received_at + self.burst, first.received_at + LONGEST_BURST)
        return end - self.now()

    async def _begin_anew(self, update: AcceptedUpdate, step: str) -> None:
        """A turn whose record fits no more is forgotten and run, unless something was sent in it.

        The new one is a retry, as if an operator had asked for it.
        """
        recorded = await retry_forever(self.queue.steps_recorded)
        if any(name.startswith(SEND_STEP) for name in recorded):
            log.warning("Update %s was answered before its turn changed", update.update_id)
            await retry_forever(lambda: self.updates.done(update.update_id))
            return
        log.warning("The turn of update %s changed at step %s: begun anew", update.update_id, step)
        await retry_forever(lambda: self.updates.set_aside(update.update_id, "StepsChanged"))
        await retry_forever(lambda: self.updates.ask_retry(update.update_id))

    async def _set_aside(
        self, update: AcceptedUpdate, error: str, result: UpdateResult = "set_aside"
    ) -> None:
        log.error(
            "Update %s is set aside: %s. `sommelier updates list` shows it, "
            "`sommelier updates retry %s` has it tried again.",
            update.update_id,
            error,
            update.update_id,
        )
        await retry_forever(lambda: self.updates.set_aside(update.update_id, error))
        self.metrics.update(result)
        try:
            await self.give_up(update.payload, error)
        except Exception as failure:
            log.error("Nobody was told of update %s: %s", update.update_id, place(failure))  # noqa: TRY400


def received(payload: Payload) -> ReceivedUpdate:
    """What is told of an update before it is read."""
    message_id = number(message_in(payload).get("message_id"))
    return ReceivedUpdate(
        update_id=payload["update_id"],
        chat_id=chat_of(payload),
        payload=payload,
        message_id=message_id if part(payload, "message") else None,
        edits=message_id if part(payload, "edited_message") else None,
    )


def place(error: Exception) -> str:
    """Where an error was raised, and of which kind it is: its words may be a person's."""
    return f"{type(error).__name__}\nTraceback:\n{''.join(format_tb(error.__traceback__))}"


async def dispatch(application: AnyApplication, payload: Payload) -> None:
    """Give an update to the first handler of each group that takes it; errors come through.

    A handler that raises `ApplicationHandlerStop` is the last.

    Raises:
        Unreadable: the library cannot make an update of it.
    """
    update = read(payload, application.bot)
    for group in sorted(application.handlers):
        for handler in application.handlers[group]:
            check = handler.check_update(update)
            if check is None or check is False:
                continue
            context = application.context_types.context.from_update(update, application)
            try:
                await handler.handle_update(update, application, check, context)
            except ApplicationHandlerStop:
                return
            break


def read(payload: Payload, bot: Bot) -> Update:
    """The update that a payload is.

    Raises:
        Unreadable: the library cannot make one of it.
    """
    try:
        return Update.de_json(dict(payload), bot)
    except Exception as error:
        raise Unreadable(type(error).__name__) from None


def is_readable(payload: Payload, bot: Bot) -> bool:
    """Whether the library can make an update of a payload."""
    try:
        read(payload, bot)
    except Unreadable:
        return False
    return True


def origin(payload: Payload, bot: Bot) -> Update | None:
    """The update, or as much of it as says where it came from; None if nobody is to be told of it.

    What cannot be read is a matter to people only if somebody wrote it to the bot alone.
    """
    with suppress(Unreadable):
        return read(payload, bot)
    sender, chat_id = part(message_in(payload), "from"), chat_of(payload)
    if chat_id <= 0 or sender.get("is_bot") is not False:
        return None
    chat = {"id": chat_id, "type": "private"}
    person = {"id": chat_id, "is_bot": False, "first_name": ""}
    known = {"message_id": 0, "date": 0, "chat": chat, "from": person}
    return Update.de_json({"update_id": payload["update_id"], "message": known}, bot)
