"""Getting an answer through to Telegram: in parts, waiting when told, never twice.

A request that was sent and got no response (a time-out, a cut connection) may have arrived, so it
is not sent again: a person misses a part of an answer, rarely, but never reads it twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Literal, TypeVar

import httpx
from telegram import Bot, LinkPreviewOptions, ReplyParameters
from telegram.constants import ParseMode
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from agent.engine.journal import NO_JOURNAL
from agent.repositories import ChatRepository, ChatState
from bot.telegram.outgoing import Rows, keyboard
from bot.telegram.rate_limit import Pace, Sleep
from bot.telegram.render import split_messages, visible_text

log = logging.getLogger(__name__)

R = TypeVar("R")
Step = Callable[[str, Callable[[], Awaitable[R]]], Awaitable[R]]
"""How one message is sent durably: `agent.engine.journal.Journal.step`."""

DeliveryError = Literal["unreachable", "rejected", "ambiguous", "rate_limited", "network"]

MAX_TRIES: Final = 8
"""How often one message is tried in all, waits that Telegram asked for included."""

BACK_OFF_SECONDS: Final = 0.5
"""The wait after the first try; it doubles with every further one."""

LONGEST_BACK_OFF_SECONDS: Final = 30.0

GONE: Final = (
    "chat not found",
    "deactivated",
    "peer_id_invalid",
    "chat_write_forbidden",
    "rights to send",
)
"""What a 400 says, in lower case, when nothing can be sent to a chat any more; so does any 403."""

NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an answer goes: a chat, a topic of it, and the message it replies to."""

    chat_id: int
    thread_id: int | None = None
    reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of an answer: its message ids in order, all requests made, the last error.

    `unreachable`: the person blocked the bot, or the chat is gone. `rejected`: Telegram refused the
    message itself. `ambiguous`: a message may or may not have arrived. `rate_limited`: Telegram
    kept asking to wait. `network`: Telegram could not be reached.
    """

    message_ids: tuple[int, ...] = ()
    tries: int = 0
    error: DeliveryError | None = None

    def __add__(self, later: "Delivery") -> "Delivery":
        return Delivery(
            self.message_ids + later.message_ids,
            self.tries + later.tries,
            later.error or self.error,
        )


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends answers, at Telegram's pace, and remembers in `chats` where they can go.

    Without `chats` nothing is remembered. `sleep` takes the waits between tries, `pace` all others.
    """

    bot: Bot
    pace: Pace
    chats: ChatRepository | None = None
    sleep: Sleep = asyncio.sleep

    async def send(
        self,
        to: Destination,
        markdown: str,
        *,
        buttons: Rows = (),
        step: Step[Delivery] = NO_JOURNAL.step,
    ) -> Delivery:
        """Send Markdown as one or more messages, in order. Never raises a Telegram error.

        The buttons stand under the last message.

        Each message is one step, "telegram.send.1" and so on, which returns its own `Delivery`.
        After an error the rest is not tried, save after an ambiguous one, when it may well get
        through. A chat known to be unreachable is not tried: `tries` is 0 then.
        """
        delivery = Delivery()
        parts = split_messages(markdown)
        for number, html in enumerate(parts, 1):
            there = to if number == 1 else replace(to, reply_to=None)
            message = _Message(there, html, buttons=buttons if number == len(parts) else ())
            part = await step(f"telegram.send.{number}", partial(self._send, message))
            delivery += part
            if part.error not in (None, "ambiguous"):
                break
        if delivery.error and delivery.tries:
            log.warning("Answer to chat %s was not delivered whole: %s", to.chat_id, delivery.error)
        return delivery

    async def send_document(
        self,
        to: Destination,
        name: str,
        content: bytes,
        *,
        step: Step[Delivery] = NO_JOURNAL.step,
    ) -> Delivery:
        """Send a file of this name as one step, "telegram.document"; like a message otherwise."""
        message = _Message(to, "", file=(name, content))
        return await step("telegram.document", partial(self._send, message))

    async def send_photo(
        self,
        to: Destination,
        name: str,
        content: bytes,
        *,
        step: Step[Delivery] = NO_JOURNAL.step,
    ) -> Delivery:
        """Send a picture of this name as one step, "telegram.photo"; like a message otherwise."""
        message = _Message(to, "", file=(name, content), is_photo=True)
        return await step("telegram.photo", partial(self._send, message))

    async def reachable(self, chat_id: int) -> None:
        """Somebody wrote from this chat: it is tried again from now on."""
        if self.chats is not None:
            await _heeded(self.chats.reachable(chat_id), chat_id)

    async def _send(self, message: "_Message") -> Delivery:
        state = await self._state(message.to.chat_id)
        if state.unreachable is not None:
            log.info("Nothing is sent to chat %s: %s", state.chat_id, state.unreachable)
            return Delivery(error="unreachable")
        if state.chat_id != message.to.chat_id:
            message = message.moved(state.chat_id)
        tries = 0
        while True:
            tries += 1
            await self.pace.wait(message.to.chat_id)
            try:
                return Delivery((await _request(self.bot, message),), tries)
            except TelegramError as error:
                another = await self._after(error, message, tries)
                if another is None or tries == MAX_TRIES:
                    return Delivery(tries=tries, error=_kind(error))
                message = another

    async def _after(
        self, error: TelegramError, message: "_Message", tries: int
    ) -> "_Message | None":
        """The message to send in another try, once that may begin; None if there must be none."""
        chat_id = message.to.chat_id
        if isinstance(error, ChatMigrated):
            await self._remember_migration(chat_id, error.new_chat_id)
            return message.moved(error.new_chat_id)
        if message.as_html and "can't parse entities" in str(error).lower():
            log.error("Telegram rejected the HTML of an answer, it goes as plain text")
            return replace(message, text=visible_text(message.text), as_html=False)
        if isinstance(error, RetryAfter):
            self.pace.hold(chat_id, _seconds(error))
            return message
        kind = _kind(error)
        if kind == "network" and tries < MAX_TRIES:
            await self.sleep(min(BACK_OFF_SECONDS * 2 ** (tries - 1), LONGEST_BACK_OFF_SECONDS))
            return message
        if kind == "unreachable" and self.chats is not None:
            await _heeded(self.chats.unreachable(chat_id, str(error)), chat_id)
        return None

    async def _state(self, chat_id: int) -> ChatState:
        state = None
        if self.chats is not None:
            state = await _heeded(self.chats.state(chat_id), chat_id)
        return state or ChatState(chat_id)

    async def _remember_migration(self, chat_id: int, to: int) -> None:
        if self.chats is not None:
            await _heeded(self.chats.migrated(chat_id, to), chat_id)


@dataclass(frozen=True, slots=True)
class _Message:
    """One message as it is about to be sent."""

    to: Destination
    text: str
    as_html: bool = True
    buttons: Rows = ()
    file: tuple[str, bytes] | None = None
    is_photo: bool = False

    def moved(self, chat_id: int) -> "_Message":
        """The same for the group's new chat, where topics and message ids are others."""
        return replace(self, to=Destination(chat_id))


async def _request(bot: Bot, message: _Message) -> int:
    reply = None
    if message.to.reply_to is not None:
        reply = ReplyParameters(message.to.reply_to, allow_sending_without_reply=True)
    if message.file is not None:
        name, content = message.file
        send = bot.send_photo if message.is_photo else bot.send_document
        sent = await send(
            message.to.chat_id,
            content,
            filename=name,
            message_thread_id=message.to.thread_id,
            reply_parameters=reply,
        )
        return sent.message_id
    sent = await bot.send_message(
        message.to.chat_id,
        message.text,
        parse_mode=ParseMode.HTML if message.as_html else None,
        message_thread_id=message.to.thread_id,
        reply_parameters=reply,
        reply_markup=keyboard(message.buttons),
        link_preview_options=LinkPreviewOptions(is_disabled=True),
    )
    return sent.message_id


async def _heeded(memory: Awaitable[R], chat_id: int) -> R | None:
    """What the memory of chats says, None if it is out of order: people are answered without."""
    try:
        return await memory
    except Exception:
        log.exception("What is known of chat %s could not be read or stored", chat_id)
        return None


def _seconds(error: RetryAfter) -> float:
    told = error.retry_after
    return told.total_seconds() if isinstance(told, timedelta) else told


def _kind(error: TelegramError) -> DeliveryError:
    said = str(error).lower()
    if isinstance(error, RetryAfter):
        return "rate_limited"
    if isinstance(error, Forbidden) or any(words in said for words in GONE):
        return "unreachable"
    if isinstance(error, NetworkError) and not isinstance(error, BadRequest):
        return "ambiguous" if _may_have_arrived(error) else "network"
    # A 200 whose body cannot be read is a bare TelegramError.
    return "ambiguous" if type(error) is TelegramError else "rejected"


def _may_have_arrived(error: NetworkError) -> bool:
    """Whether the request was sent, as far as is known, and no response came.

    A response with an error status has no cause, or a TelegramError if its body was no JSON.
    """
    cause = error.__cause__
    return cause is not None and not isinstance(cause, (TelegramError, *NEVER_SENT))
