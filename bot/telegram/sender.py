"""Messages with buttons, and getting them through to Telegram: in parts, never twice.

A request that was sent and got no response (a time-out, a cut connection) may have arrived, so it
is not sent again: a person misses a part of an answer, rarely, but never reads it twice.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal, TypeVar

import httpx2
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.constants import ParseMode
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from agent.engine.errors import Backoff, Sleep, or_else, retry
from agent.engine.run import NO_JOURNAL, Journal
from agent.markdown import live
from agent.repositories import ChatRepository
from agent.text import run_in_thread_if_large
from bot.telegram.connection import RateLimit
from bot.telegram.render import split_messages, utf16_units, visible_text

log = logging.getLogger(__name__)

R = TypeVar("R")

MAX_TRIES: Final = 8
"""How often one message is tried in all, waits that Telegram asked for included."""

BACKOFF: Final = Backoff(first=0.5, longest=30.0)
GONE: Final = (
    "chat not found",
    "deactivated",
    "peer_id_invalid",
    "chat_write_forbidden",
    "rights to send",
)
"""What a 400 says, in lower case, when nothing can be sent to a chat any more; so does any 403."""

NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.WriteError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message; `data` comes back when it is pressed, at most 64 bytes of UTF-8."""

    label: str
    data: str


Rows = tuple[tuple[Button, ...], ...]
"""Buttons side by side in rows."""


def in_rows(buttons: Sequence[Button], count: int) -> Rows:
    """Buttons in rows of so many."""
    return tuple(tuple(buttons[at : at + count]) for at in range(0, len(buttons), count))


def keyboard(rows: Rows) -> InlineKeyboardMarkup | None:
    """The buttons as Telegram takes them; None without any."""
    shown = [
        [InlineKeyboardButton(each.label, callback_data=each.data) for each in row] for row in rows
    ]
    return InlineKeyboardMarkup(shown) if shown else None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message in Markdown, and the buttons under it."""

    markdown: str
    buttons: Rows = ()


FileKind = Literal["document", "photo", "voice"]
DeliveryError = Literal["unreachable", "rejected", "ambiguous", "rate_limited", "network"]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an answer goes: a chat, a topic of it, and the message it replies to.

    With `edits` it takes the place of a message of ours. An answer goes to where somebody has just
    written from: whether that can be reached is not looked up.
    """

    chat_id: int
    thread_id: int | None = None
    reply_to: int | None = None
    edits: int | None = None
    is_answer: bool = False

    @property
    def is_group(self) -> bool:
        """Whether others than who asked are there, too."""
        return self.chat_id < 0

    @property
    def next(self) -> "Destination":
        """Where what follows goes: it replies to nothing and is a message of its own."""
        return replace(self, reply_to=None, edits=None)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of an answer: its message ids in order, all requests made, the last error.

    `unreachable`: the person blocked the bot, or the chat is gone. `rejected`: Telegram refused the
    message itself. `ambiguous`: a message may or may not have arrived. `rate_limited`: Telegram
    kept asking to wait. `network`: Telegram could not be reached. It was sent from `began_ns` to
    `ended_ns` (since the epoch), also where a turn that goes on only reads so.
    """

    message_ids: tuple[int, ...] = ()
    tries: int = 0
    error: DeliveryError | None = None
    began_ns: int = field(default=0, compare=False)
    ended_ns: int = field(default=0, compare=False)

    def __add__(self, later: "Delivery") -> "Delivery":
        return Delivery(
            self.message_ids + later.message_ids,
            self.tries + later.tries,
            later.error or self.error,
            self.began_ns or later.began_ns,
            later.ended_ns or self.ended_ns,
        )


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends answers, within Telegram's limits, and remembers in `chats` where they can go.

    Each message is a step of `journal`. Without `chats` nothing is remembered. `sleep` takes the
    waits between tries, `rate_limit` all others.
    """

    bot: Bot
    rate_limit: RateLimit
    chats: ChatRepository | None = None
    journal: Journal = NO_JOURNAL
    sleep: Sleep = asyncio.sleep

    async def send(self, to: Destination, markdown: str, buttons: Rows = ()) -> Delivery:
        """Send Markdown as one or more messages, in order. Never raises a Telegram error.

        The buttons stand under the last message.

        Each message is one step, "telegram.send.1" and so on, which returns its own `Delivery`.
        After an error the rest is not tried, save after an ambiguous one, when it may well get
        through. A chat known to be unreachable is not tried: `tries` is 0 then.
        """
        delivery = Delivery()
        split = partial(split_messages, markdown)
        parts = await run_in_thread_if_large(split, size=len(markdown))
        for number, html in enumerate(parts, 1):
            there = to if number == 1 else to.next
            message = _Message(there, html, buttons=buttons if number == len(parts) else ())
            part = await self.journal.step(f"telegram.send.{number}", partial(self._send, message))
            delivery += part
            if part.error not in (None, "ambiguous"):
                break
        if delivery.error and delivery.tries:
            log.warning("Answer to chat %s was not delivered whole: %s", to.chat_id, delivery.error)
        return delivery

    async def send_file(
        self, to: Destination, name: str, content: bytes, *, kind: FileKind = "document"
    ) -> Delivery:
        """Send a file of this name as one step; like a message otherwise."""
        message = _Message(to, "", file=(name, content), kind=kind)
        return await self.journal.step(f"telegram.{kind}", partial(self._send, message))

    async def ask(self, to: Destination, html: str, placeholder: str) -> Delivery:
        """Send a message that asks for a reply, as one step; `placeholder` stands in the field."""
        message = _Message(to, html, placeholder=placeholder)
        return await self.journal.step("telegram.ask", partial(self._send, message))

    async def reachable(self, chat_id: int) -> None:
        """Try a chat again from now on: somebody wrote from it."""
        if self.chats is not None:
            await _stored(partial(self.chats.reachable, chat_id), chat_id)

    async def _send(self, message: "_Message") -> Delivery:
        began = time.time_ns()
        sent = await self._tried(message)
        return replace(sent, began_ns=began, ended_ns=time.time_ns())

    async def _tried(self, message: "_Message") -> Delivery:
        chat_id, state = message.to.chat_id, None
        if self.chats is not None and not message.to.is_answer:
            state = await _stored(partial(self.chats.state, chat_id), chat_id)
        if state is not None and state.unreachable is not None:
            log.info("Nothing is sent to chat %s: %s", state.chat_id, state.unreachable)
            return Delivery(error="unreachable")
        if state is not None and state.chat_id != chat_id:
            message = message.moved(state.chat_id)
        tries, mended = 0, message

        async def request() -> int:
            nonlocal message, mended, tries
            tries, message = tries + 1, mended
            await self.rate_limit.wait(message.to.chat_id)
            try:
                return await _request(self.bot, message)
            except TelegramError as error:
                mended = await self._mended(message, error)
                raise

        def may_go_again(error: Exception) -> bool | float:
            if mended is not message:
                return 0.0
            return _is_passing(error, twice_is_once=message.to.edits is not None)

        try:
            message_id = await retry(
                request, tries=MAX_TRIES, on=may_go_again, backoff=BACKOFF, sleep=self.sleep
            )
        except TelegramError as error:
            return Delivery(tries=tries, error=_kind(error))
        return Delivery((message_id,), tries)

    async def _mended(self, message: "_Message", error: TelegramError) -> "_Message":
        """The message as a further try would send it; what the error tells is remembered."""
        chat_id = message.to.chat_id
        if isinstance(error, ChatMigrated):
            if self.chats is not None:
                migrate = partial(self.chats.migrated, chat_id, error.new_chat_id)
                await _stored(migrate, chat_id)
            return message.moved(error.new_chat_id)
        if isinstance(error, RetryAfter):
            self.rate_limit.hold(chat_id, seconds_of(error))
        elif message.to.edits is not None and _is_gone(error):
            return replace(message, to=replace(message.to, edits=None))
        elif message.as_html and "can't parse entities" in str(error).lower():
            log.error("Telegram rejected the HTML of an answer, it goes as plain text")
            return replace(message, as_html=False)
        elif _kind(error) == "unreachable" and self.chats is not None:
            await _stored(partial(self.chats.unreachable, chat_id, str(error)), chat_id)
        return message


@dataclass(frozen=True, slots=True)
class _Message:
    """One message as it is about to be sent."""

    to: Destination
    text: str
    as_html: bool = True
    buttons: Rows = ()
    file: tuple[str, bytes] | None = None
    kind: FileKind = "document"
    placeholder: str = ""

    def moved(self, chat_id: int) -> "_Message":
        """The same for the group's new chat, where topics and message ids are others."""
        return replace(self, to=Destination(chat_id))


def reply_to(to: Destination) -> ReplyParameters | None:
    """What an answer replies to, whether it is still there or not."""
    if to.reply_to is None:
        return None
    return ReplyParameters(to.reply_to, allow_sending_without_reply=True)


async def _request(bot: Bot, message: _Message) -> int:
    if message.to.edits is not None:
        return await _edit(bot, message, message.to.edits)
    reply = reply_to(message.to)
    if message.file is not None:
        name, content = message.file
        send: Callable[..., Awaitable[Message]] = getattr(bot, f"send_{message.kind}")
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
        **_formatted(message),
        message_thread_id=message.to.thread_id,
        reply_parameters=reply,
        reply_markup=_markup(message),
        link_preview_options=NO_PREVIEW,
    )
    return sent.message_id


async def _edit(bot: Bot, message: _Message, message_id: int) -> int:
    """Put a message in the place of another; if it stands there already, that is well."""
    try:
        await bot.edit_message_text(
            chat_id=message.to.chat_id,
            message_id=message_id,
            **_formatted(message),
            reply_markup=keyboard(message.buttons),
            link_preview_options=NO_PREVIEW,
        )
    except BadRequest as error:
        if "not modified" not in str(error).lower():
            raise
    return message_id


def _formatted(message: _Message) -> dict[str, Any]:
    """The text as HTML, or plain: then nothing in it can be tapped."""
    if message.as_html:
        return {"text": message.text, "parse_mode": ParseMode.HTML}
    text = visible_text(message.text)
    code = [
        MessageEntity(
            "code", utf16_units(text[: found.start]), utf16_units(text[found.start : found.end])
        )
        for found in live(text)
    ]
    return {"text": text, "entities": code}


def _markup(message: _Message) -> ForceReply | InlineKeyboardMarkup | None:
    if message.placeholder:
        return ForceReply(selective=True, input_field_placeholder=message.placeholder)
    return keyboard(message.buttons)


async def _stored(call: Callable[[], Awaitable[R]], chat_id: int) -> R | None:
    """What the database says of a chat, None if it is out of order: people are answered without."""
    return await or_else(call, None, f"What is known of chat {chat_id} could not be read or stored")


def seconds_of(error: RetryAfter) -> float:
    """How long Telegram wants to be left alone."""
    told = error.retry_after
    return told.total_seconds() if isinstance(told, timedelta) else told


def _is_passing(error: Exception, *, twice_is_once: bool) -> bool | float:
    """Whether the same message may get through later; a 429 waits in the rate limit alone."""
    if isinstance(error, RetryAfter):
        return 0.0
    kind = _kind(error) if isinstance(error, TelegramError) else ""
    return kind == "network" or (twice_is_once and kind == "ambiguous")


def _is_gone(error: TelegramError) -> bool:
    """Whether the message that was to be edited is not there, or may be edited no more."""
    said = str(error).lower()
    return isinstance(error, BadRequest) and ("to edit" in said or "can't be edited" in said)


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
