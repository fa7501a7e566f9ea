"""From an accepted update to its turn: bursts joined, handlers called, poison set aside."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, Protocol

from telegram import Bot, Update
from telegram.ext import ApplicationHandlerStop

from agent.engine.run import Journal, StepsChanged
from agent.repositories import AcceptedUpdate, Payload, UpdateRepository
from bot.metrics import Metrics
from bot.telegram.handlers import AnyApplication
from bot.telegram.render import utf16_units
from bot.turn import retry_forever

LARGEST_BURST: Final = 50

log = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_BURST: Final = timedelta(seconds=5)
SEND_STEP: Final = "telegram."
"""How the names of steps begin in which something is sent."""

TRIES_IN_COMPANY: Final = 2
"""How often a turn may be interrupted without progress before it is run alone. Who of those that
ran when a process died has killed it is not known; so tries count only when it can be."""


def chat_of(payload: Payload) -> int:
    """The id of the chat an update is from, 0 for one without."""
    return int(message_in(payload).get("chat", {}).get("id", 0))


def lane_of(payload: Payload) -> str:
    """Whom an update waits for: the others of its chat, or those of the same kind of button there.

    A button whose data begins with a kind ("v:…") does not wait for the turn that runs: whoever
    presses it is to see at once that it was heard.
    """
    chat_id = str(chat_of(payload))
    kind, colon, _ = str(payload.get("callback_query", {}).get("data", "")).partition(":")
    return f"{kind[:16]}-{chat_id}" if colon else chat_id


def message_in(payload: Payload) -> Mapping[str, Any]:
    """The message an update brings, or the one that a button stands under; empty without one."""
    kinds = ("message", "edited_message", "callback_query", "my_chat_member")
    found: Mapping[str, Any] = next((payload[kind] for kind in kinds if kind in payload), {})
    inner: Mapping[str, Any] = found.get("message", found) if "data" in found else found
    return inner


def together(updates: Sequence[AcceptedUpdate], burst: timedelta) -> list[AcceptedUpdate]:
    """The updates from the first on that make one turn with it."""
    group = [updates[0]]
    for update in updates[1:LARGEST_BURST]:
        if not belongs(group[-1], update, burst):
            break
        group.append(update)
    return group


def belongs(earlier: AcceptedUpdate, later: AcceptedUpdate, burst: timedelta) -> bool:
    """Whether `later` was sent in one go with `earlier`: of one album, or in quick succession."""
    one, other = message_in(earlier.payload), message_in(later.payload)
    if not (is_part_of_burst(earlier.payload) and is_part_of_burst(later.payload)):
        return False
    album = one.get("media_group_id")
    same_person = one.get("from") == other.get("from")
    same_thread = one.get("message_thread_id") == other.get("message_thread_id")
    quick = later.received_at - earlier.received_at <= burst
    return (
        same_person
        and same_thread
        and (quick or bool(album and album == other.get("media_group_id")))
    )


def is_part_of_burst(payload: Payload) -> bool:
    """Whether more may belong to this update: a message with words or of an album, no command."""
    message = payload.get("message") or {}
    text = message.get("text", "")
    return bool(text and not text.startswith("/")) or "media_group_id" in message


def joined(payloads: Sequence[Payload]) -> Payload:
    """One update of all: one message of theirs, and the id of the first."""
    if len(payloads) == 1:
        return payloads[0]
    message = one_message([message_in(payload) for payload in payloads])
    return {"update_id": payloads[0]["update_id"], "message": message}


def one_message(messages: Sequence[Payload]) -> dict[str, Any]:
    """The last of these messages, with the words of all.

    Whom they address is kept: who is mentioned, and the message that the first reply was to.
    """
    words, entities = _words(messages)
    message = dict(messages[-1]) | {"text": words, "entities": entities}
    if not words:
        del message["text"], message["entities"]
    replied = [each["reply_to_message"] for each in messages if "reply_to_message" in each]
    return message | ({"reply_to_message": replied[0]} if replied else {})


def _words(messages: Sequence[Payload]) -> tuple[str, list[dict[str, Any]]]:
    """The words of messages, a line each, and the entities in them."""
    words, entities = "", list[dict[str, Any]]()
    for each in messages:
        said = each.get("text") or each.get("caption")
        if not said:
            continue
        words += "\n" if words else ""
        marks = each.get("entities" if each.get("text") else "caption_entities", ())
        start = utf16_units(words)
        entities += [{**mark, "offset": mark["offset"] + start} for mark in marks]
        words += said
    return words, entities


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
    give_up: Callable[[Payload, str], Awaitable[None]]
    burst: timedelta
    max_tries: int
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def accept(self, payload: Payload) -> None:
        """Take responsibility for an update: when this returns it is committed."""
        update_id, chat_id = int(payload["update_id"]), chat_of(payload)
        message_id = int(message_in(payload).get("message_id", 0))
        if "edited_message" in payload and await self.updates.reword(chat_id, message_id, payload):
            return
        known = message_id if "message" in payload else None
        await self.updates.accept(update_id, chat_id, payload, known)
        await self.queue.enqueue(update_id, lane_of(payload))
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
            except Exception as error:
                log.exception("The turn of update %s failed, try %s", update_id, failures)
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
            group = together(
                [first, *(u for u in waiting if u.update_id != first.update_id)], self.burst
            )
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

    async def _set_aside(self, update: AcceptedUpdate, error: str) -> None:
        log.error(
            "Update %s is set aside: %s. `sommelier updates list` shows it, "
            "`sommelier updates retry %s` has it tried again.",
            update.update_id,
            error,
            update.update_id,
        )
        await retry_forever(lambda: self.updates.set_aside(update.update_id, error))
        self.metrics.update("set_aside")
        await self.give_up(update.payload, error)


async def dispatch(application: AnyApplication, payload: Payload) -> None:
    """Give an update to the first handler of each group that takes it; errors come through.

    A handler that raises `ApplicationHandlerStop` is the last.
    """
    update = Update.de_json(dict(payload), application.bot)
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


def readable(payload: Payload, bot: Bot) -> Update:
    """An update, or as much of it as says where it came from, if that cannot be read."""
    try:
        return Update.de_json(dict(payload), bot)
    except Exception:
        chat = {"id": chat_of(payload), "type": "private"}
        message = {"message_id": 0, "date": 0, "chat": chat}
        update = {"update_id": payload["update_id"], "message": message}
        return Update.de_json(update, bot)
