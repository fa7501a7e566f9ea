"""Put messages into the outbox of a turn, and deliver them to Telegram, never twice.

A request that got no response (a timeout, a cut connection) may have arrived, so it is not sent
again: rarely a user misses a part of an answer, but never reads it twice.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

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
from telegram.ext import ExtBot

from agent.engine.errors import or_else
from agent.i18n import say
from agent.markdown import live
from agent.retrying import Backoff, Sleep, retry
from agent.text import MAX_INLINE_CHARS
from bot.outgoing import Button, Delivery, DeliveryError, Destination, FileKind, Rows
from bot.pending import pending_turn
from bot.retries import retry_forever
from bot.telegram.render import split_messages, utf16_units, visible_text
from db.models import OutboxRow
from db.repositories.people import ChatRepository

log = logging.getLogger(__name__)

R = TypeVar("R")

MAX_TRIES: Final = 8
"""The most requests for one message, after a 429 too."""

BACKOFF: Final = Backoff(first=0.5, longest=30.0)
GONE: Final = (
    "chat not found",
    "deactivated",
    "peer_id_invalid",
    "chat_write_forbidden",
    "rights to send",
)
"""Texts of a 400, in lower case, that mean as any 403 that a chat cannot be reached any more."""

NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.WriteError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


def keyboard(rows: Rows) -> InlineKeyboardMarkup | None:
    """Return buttons as Telegram takes them; None without any."""
    keys = [
        [InlineKeyboardButton(label, callback_data=data) for label, data in row] for row in rows
    ]
    return InlineKeyboardMarkup(keys) if keys else None


class Outbox(Protocol):
    """Stores that messages were sent."""

    async def sent(self, message: OutboxRow) -> None:
        """Store the id of a message that was sent, or why it never will be."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends messages and stores in `chats` which chats can be reached.

    Messages of a turn wait in its outbox until it is committed. `sleep` waits between tries; the
    bot's rate limiter does all other waiting.
    """

    bot: ExtBot[Any]
    chats: ChatRepository | None = None
    outbox: Outbox | None = None
    sleep: Sleep = asyncio.sleep

    async def send(self, to: Destination, markdown: str, buttons: Rows = ()) -> Delivery:
        """Send Markdown as one or more messages, in order, with the buttons under the last."""
        return await self._say(await messages_of(to, markdown, buttons))

    async def send_file(
        self, to: Destination, name: str, content: bytes, *, kind: FileKind = "document"
    ) -> Delivery:
        """Send a file of this name."""
        return await self._say([message_to(to, kind=kind, file_name=name, file=content)])

    async def ask(
        self, to: Destination, html: str, placeholder: str, asks_about: int | None = None
    ) -> Delivery:
        """Send a message that asks for a reply; `placeholder` is shown where it is written."""
        return await self._say(
            [message_to(to, html=html, placeholder=placeholder, asks_about=asks_about)]
        )

    async def reachable(self, chat_id: int) -> None:
        """Try a chat again from now on: somebody wrote from it."""
        if self.chats is not None:
            await _stored(partial(self.chats.reachable, chat_id), chat_id)

    async def _say(self, messages: Sequence[OutboxRow]) -> Delivery:
        if (turn := pending_turn()) is None:
            return await self.deliver(messages)
        turn.messages += messages
        return Delivery()

    async def deliver(
        self,
        messages: Sequence[OutboxRow],
        hold: Callable[[], Awaitable[None]] | None = None,
    ) -> Delivery:
        """Send messages in order, each stored at once as sent. Never raises a Telegram error.

        After an error what `follows` is not tried, save after an ambiguous one, when it may well
        get through. A chat known to be unreachable is not tried: `tries` is 0 then. `hold` raises
        if another process has taken the messages over.
        """
        delivery, failed = Delivery(), None
        for number, message in enumerate(messages):
            if failed and message.follows:
                sent = Delivery(error=failed)
            else:
                if number and hold is not None:
                    await hold()
                sent = await self._delivered(message)
            failed = sent.error if sent.error != "ambiguous" else None
            delivery += sent
        if delivery.error and delivery.tries:
            chat_id, error = messages[0].chat_id, delivery.error
            log.warning("Answer to chat %s was not delivered whole: %s", chat_id, error)
        return delivery

    async def _delivered(self, message: OutboxRow) -> Delivery:
        """Send one message; one that Telegram refuses is replaced by a sentence."""
        began = time.time_ns()
        sent = await self._tried(message)
        if sent.error == "rejected" and message.turn_id is not None and not message.follows:
            message.html, message.buttons, message.edits = say("apology"), [], None
            sent += await self._tried(message)
        message.message_id, message.error = next(iter(sent.message_ids), None), sent.error
        if message.message_id is not None:
            message.error = None
        is_stored = message.id is not None or message.asks_about is not None
        if self.outbox is not None and is_stored:
            await retry_forever(partial(self.outbox.sent, message))
        return replace(sent, began_ns=began, ended_ns=time.time_ns())

    async def _tried(self, message: OutboxRow) -> Delivery:
        state = None
        if self.chats is not None and not message.is_answer:
            state = await _stored(partial(self.chats.state, message.chat_id), message.chat_id)
        if state is not None and state.unreachable is not None:
            log.info("Nothing is sent to chat %s: %s", state.chat_id, state.unreachable)
            return Delivery(error="unreachable")
        if state is not None and state.chat_id != message.chat_id:
            _move(message, state.chat_id)
        attempt = _Attempt(message)

        async def request() -> int:
            attempt.begin()
            try:
                return await _request(self.bot, attempt)
            except TelegramError as error:
                attempt.is_mended = await self._mend(attempt, error)
                raise

        def may_go_again(error: Exception) -> bool | float:
            if attempt.is_mended:
                return 0.0
            return _is_passing(error, twice_is_once=message.edits is not None)

        try:
            message_id = await retry(
                request, tries=MAX_TRIES, on=may_go_again, backoff=BACKOFF, sleep=self.sleep
            )
        except TelegramError as error:
            return Delivery(tries=attempt.tries, error=_kind(error))
        return Delivery((message_id,), attempt.tries)

    async def _mend(self, attempt: "_Attempt", error: TelegramError) -> bool:
        """Change a message so that a further try may succeed, and remember what the error tells.

        Return whether it was changed.
        """
        message = attempt.message
        chat_id = message.chat_id
        if isinstance(error, ChatMigrated):
            if self.chats is not None:
                migrate = partial(self.chats.migrated, chat_id, error.new_chat_id)
                await _stored(migrate, chat_id)
            _move(message, error.new_chat_id)
            return True
        if message.edits is not None and _is_gone(error):
            message.edits = None
            return True
        if attempt.as_html and "can't parse entities" in str(error).lower():
            log.error("Telegram rejected the HTML of an answer, it goes as plain text")
            attempt.as_html = False
            return True
        if _kind(error) == "unreachable" and self.chats is not None:
            await _stored(partial(self.chats.unreachable, chat_id, str(error)), chat_id)
        return False


@dataclass(slots=True)
class _Attempt:
    """A message as it is being sent."""

    message: OutboxRow
    as_html: bool = True
    tries: int = 0
    is_mended: bool = False

    def begin(self) -> None:
        """Count a try."""
        self.tries, self.is_mended = self.tries + 1, False


async def messages_of(to: Destination, markdown: str, buttons: Rows = ()) -> list[OutboxRow]:
    """Return Markdown as messages that Telegram takes, with the buttons under the last."""
    if len(markdown) > MAX_INLINE_CHARS:
        parts = await asyncio.to_thread(split_messages, markdown)
    else:
        parts = split_messages(markdown)
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
        chat_id=to.chat_id,
        thread_id=to.thread_id,
        reply_to=to.reply_to,
        edits=to.edits,
        is_answer=to.is_answer,
        **content,
    )


def _move(message: OutboxRow, chat_id: int) -> None:
    """Send a message to a group's new chat, where topics and message ids are others."""
    message.chat_id = chat_id
    message.thread_id = message.reply_to = message.edits = None


def reply_parameters(message_id: int | None) -> ReplyParameters | None:
    """Return what a message replies to, which may not be there any more."""
    if message_id is None:
        return None
    return ReplyParameters(message_id, allow_sending_without_reply=True)


async def _request(bot: Bot, attempt: _Attempt) -> int:
    message = attempt.message
    if message.edits is not None:
        return await _edit(bot, attempt, message.edits)
    where: dict[str, Any] = {
        "message_thread_id": message.thread_id,
        "reply_parameters": reply_parameters(message.reply_to),
    }
    if message.file is not None:
        send: Callable[..., Awaitable[Message]] = getattr(bot, f"send_{message.kind}")
        sent = await send(message.chat_id, message.file, filename=message.file_name, **where)
        return sent.message_id
    sent = await bot.send_message(
        message.chat_id,
        **_formatted(attempt),
        **where,
        reply_markup=_markup(message),
        link_preview_options=NO_PREVIEW,
    )
    return sent.message_id


async def _edit(bot: Bot, attempt: _Attempt, message_id: int) -> int:
    """Put a message in the place of another; if it stands there already, that is well."""
    try:
        await bot.edit_message_text(
            chat_id=attempt.message.chat_id,
            message_id=message_id,
            **_formatted(attempt),
            reply_markup=_keyboard_of(attempt.message),
            link_preview_options=NO_PREVIEW,
        )
    except BadRequest as error:
        if "not modified" not in str(error).lower():
            raise
    return message_id


def _formatted(attempt: _Attempt) -> dict[str, Any]:
    """Return the text as HTML, or plain: then nothing in it can be tapped."""
    html = attempt.message.html
    if attempt.as_html:
        return {"text": html, "parse_mode": ParseMode.HTML}
    text = visible_text(html)
    code = [
        MessageEntity(
            "code", utf16_units(text[: found.start]), utf16_units(text[found.start : found.end])
        )
        for found in live(text)
    ]
    return {"text": text, "entities": code}


def _markup(message: OutboxRow) -> ForceReply | InlineKeyboardMarkup | None:
    if message.placeholder:
        return ForceReply(selective=True, input_field_placeholder=message.placeholder)
    return _keyboard_of(message)


def _keyboard_of(message: OutboxRow) -> InlineKeyboardMarkup | None:
    return keyboard(tuple(tuple(Button(*pair) for pair in row) for row in message.buttons))


async def _stored(call: Callable[[], Awaitable[R]], chat_id: int) -> R | None:
    """Return the result of a call of the database; None if it fails: users are answered anyway."""
    return await or_else(call, None, f"What is known of chat {chat_id} could not be read or stored")


def _is_passing(error: Exception, *, twice_is_once: bool) -> bool | float:
    """Return whether a message may get through later; after a 429 the rate limiter waits."""
    if isinstance(error, RetryAfter):
        return 0.0
    kind = _kind(error) if isinstance(error, TelegramError) else ""
    return kind == "network" or (twice_is_once and kind == "ambiguous")


def _is_gone(error: TelegramError) -> bool:
    """Return whether the message to edit is gone, or may be edited no more."""
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
    """Return whether the request may have been sent, and no response came.

    A response with an error status has no cause, or a TelegramError if its body was no JSON.
    """
    cause = error.__cause__
    return cause is not None and not isinstance(cause, (TelegramError, *NEVER_SENT))
