"""Put messages into the outbox of a turn, and deliver them to Telegram, never twice.

A request without a response (a timeout, a cut connection) may have arrived, so it is not repeated:
a user may rarely miss a part of an answer, but never gets it twice.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import httpx2
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Message
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.ext import ExtBot

from agent.i18n import translate
from agent.retrying import Backoff, Sleep
from agent.text import pattern
from bot.question import Delivery, DeliveryError, Destination, current_turn
from bot.telegram.render import split_messages
from db.engine import call_or_default, retry_forever
from db.models import OutboxRow
from db.repositories.inbox import Inbox
from db.repositories.people import ChatRepository

log = logging.getLogger(__name__)

MAX_TRIES: Final = 8
"""The most requests for one message, those after a 429 included."""
BACKOFF: Final = Backoff(first_wait=0.5, max_wait=30.0)
HTML_TAG: Final = pattern(r"<[^>]*>")
RECORD_SECONDS: Final = 4.0
"""Seconds for which a stop waits until a message on its way is recorded."""
NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.WriteError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)
MAX_DATA: Final = 64
"""Bytes of the data of a button in Telegram."""


class Button(NamedTuple):
    """A button under a message; a press returns `data`, at most `MAX_DATA` bytes of UTF-8."""

    label: str
    data: str


ButtonRows = tuple[tuple[Button, ...], ...]
"""Buttons side by side in rows."""


def in_rows(buttons: Sequence[Button], count: int) -> ButtonRows:
    """Return buttons in rows of so many."""
    return tuple(tuple(buttons[at : at + count]) for at in range(0, len(buttons), count))


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends messages and stores in `chats` which chats can be reached.

    Messages of a turn wait in its outbox until it is committed. `sleep` waits between tries; the
    bot's rate limiter does all other waiting.
    """

    bot: ExtBot[Any]
    chats: ChatRepository
    outbox: Inbox
    sleep: Sleep = asyncio.sleep

    async def send(self, to: Destination, markdown: str, buttons: ButtonRows = ()) -> Delivery:
        """Send Markdown as one or more messages, in order, with the buttons under the last."""
        return await self._send_or_collect(messages_of(to, [markdown], buttons))

    async def send_file(self, to: Destination, name: str, content: bytes) -> Delivery:
        """Send a file of this name."""
        return await self._send_or_collect(
            [message_to(to, kind="document", file_name=name, file=content)]
        )

    async def reachable(self, chat_id: int) -> None:
        """Store that a chat can be reached: somebody wrote from it."""
        await self._store(self.chats.set_reachable, chat_id)

    async def _store(self, call: Callable[..., Awaitable[None]], *chat_ids: int) -> None:
        """Store what is known of a chat; if that fails, users are answered anyway."""
        problem = f"What is known of chat {chat_ids[0]} could not be stored"
        await call_or_default(partial(call, *chat_ids), None, problem)

    async def _send_or_collect(self, messages: Sequence[OutboxRow]) -> Delivery:
        if (turn := current_turn()) is None:
            return await self.deliver(messages)
        turn.messages += messages
        return Delivery()

    async def deliver(self, messages: Sequence[OutboxRow]) -> Delivery:
        """Send messages in order, and record each at once. Never raises a Telegram error.

        After an error the messages that `follow` are not tried, except after an ambiguous error,
        when the first may have arrived. If this is cancelled, a message on its way is recorded
        first, since the next start would send it again.
        """
        delivery, failed = Delivery(), None
        for message in messages:
            if failed and message.follows:
                continue
            delivering = asyncio.create_task(self._deliver_message(message))
            try:
                sent = await asyncio.shield(delivering)
            except asyncio.CancelledError:
                await asyncio.wait([delivering], timeout=RECORD_SECONDS)
                raise
            failed = sent.error if sent.error != "ambiguous" else None
            delivery += sent
        if delivery.error:
            chat_id, error = messages[0].chat_id, delivery.error
            log.warning("Answer to chat %s was not delivered whole: %s", chat_id, error)
        return delivery

    async def _deliver_message(self, message: OutboxRow) -> Delivery:
        """Send one message; if Telegram refuses an answer, send its plain text, else an apology."""
        began = time.time_ns()
        sent = last = await self._try(message)
        if message.turn_id is not None and not message.follows:
            for html in (HTML_TAG.sub("", message.html), translate("apology")):
                if last.error == "rejected":
                    message.html, message.buttons, message.edits = html, [], None
                    last = await self._try(message)
                    sent += last
        message.message_id = next(iter(sent.message_ids), None)
        message.error = sent.error if message.message_id is None else None
        if message.id is not None:
            await retry_forever(lambda: self.outbox.record_delivery(message))
        return replace(sent, began_ns=began, ended_ns=time.time_ns())

    async def _try(self, message: OutboxRow) -> Delivery:
        """Send one message; if it fails and a retry may help, change it or wait, and try again."""
        kind: DeliveryError = "network"
        for tries in range(1, MAX_TRIES + 1):
            try:
                return Delivery((await request(self.bot, message),), tries)
            except ChatMigrated as error:
                await self._follow(message, error.new_chat_id)
                continue
            except TelegramError as error:
                kind = kind_of(error)
            is_edit = message.edits is not None
            if kind == "unreachable":
                is_lost = partial(self.chats.set_reachable, is_reachable=False)
                await self._store(is_lost, message.chat_id)
            if kind == "unreachable" or (kind in ("rejected", "ambiguous") and not is_edit):
                return Delivery(tries=tries, error=kind)
            if kind == "rejected":
                message.edits = None  # the message is gone, or may be edited no more
            elif kind != "rate_limited" and tries < MAX_TRIES:  # after a 429 the rate limiter waits
                await self.sleep(BACKOFF.draw_wait(tries))
        return Delivery(tries=MAX_TRIES, error=kind)

    async def _follow(self, message: OutboxRow, new_id: int) -> None:
        """Send a message where its group has gone; there topics and messages have other ids."""
        await self._store(self.chats.migrated, message.chat_id, new_id)
        message.chat_id, message.thread_id = new_id, None
        message.reply_to = message.edits = None


def messages_of(to: Destination, texts: Sequence[str], buttons: ButtonRows = ()) -> list[OutboxRow]:
    """Return texts in Markdown as messages that Telegram takes; the buttons are under the last."""
    parts = [html for text in texts for html in split_messages(text)]
    messages = [
        message_to(to if number == 0 else to.next, html=html, follows=number > 0)
        for number, html in enumerate(parts)
    ]
    if messages:
        messages[-1].buttons = [[list(button) for button in row] for row in buttons]
    return messages


def message_to(to: Destination, **content: Any) -> OutboxRow:
    """Return a message for a destination."""
    return OutboxRow(
        chat_id=to.chat_id, thread_id=to.thread_id, reply_to=to.reply_to, edits=to.edits, **content
    )


def keyboard(rows: Iterable[Iterable[Button]]) -> InlineKeyboardMarkup | None:
    """Return buttons as Telegram takes them; None without any."""
    keys = [
        [InlineKeyboardButton(label, callback_data=data) for label, data in row] for row in rows
    ]
    return InlineKeyboardMarkup(keys) if keys else None


async def request(bot: Bot, message: OutboxRow) -> int:
    """Ask Telegram to send a message, or to put it in the place of another; return its id.

    Raises:
        TelegramError: Telegram refuses it, or is not reached.
    """
    where: dict[str, Any] = {
        "message_thread_id": message.thread_id,
        "reply_to_message_id": message.reply_to,
    }
    if message.file is not None:
        send: Callable[..., Awaitable[Message]] = getattr(bot, f"send_{message.kind}")
        sent = await send(message.chat_id, message.file, filename=message.file_name, **where)
        return sent.message_id
    content: dict[str, Any] = {
        "text": message.html,
        "reply_markup": keyboard([[Button(*pair) for pair in row] for row in message.buttons]),
    }
    if message.edits is None:
        return (await bot.send_message(message.chat_id, **content, **where)).message_id
    try:
        await bot.edit_message_text(chat_id=message.chat_id, message_id=message.edits, **content)
    except BadRequest as error:
        # A turn that was cut off may have replaced the message with this text already.
        if "not modified" not in str(error).lower():
            raise
    return message.edits


def kind_of(error: TelegramError) -> DeliveryError:
    """Return what an error means for a message."""
    said = str(error).lower()
    if isinstance(error, RetryAfter):
        return "rate_limited"
    if isinstance(error, Forbidden) or "chat not found" in said:
        return "unreachable"
    if isinstance(error, NetworkError) and not isinstance(error, BadRequest):
        return "ambiguous" if _may_have_arrived(error) else "network"
    # A 200 whose body cannot be read is a bare TelegramError.
    return "ambiguous" if type(error) is TelegramError else "rejected"


def _may_have_arrived(error: NetworkError) -> bool:
    """Return whether the request may have been sent, and no response came.

    A response with an error status has no cause, or a TelegramError if its body was no JSON.
    """
    cause = error.__cause__
    return cause is not None and not isinstance(cause, (TelegramError, *NEVER_SENT))
