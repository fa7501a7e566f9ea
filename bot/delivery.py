"""Getting an answer through to Telegram: in parts, waiting when told, never twice.

A request that was sent and got no response (a time-out, a cut connection) may have arrived, so it
is not sent again: a person misses a part of an answer, rarely, but never reads it twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal

import httpx
from telegram import Bot, LinkPreviewOptions, ReplyParameters
from telegram.constants import ParseMode
from telegram.error import BadRequest, Forbidden, NetworkError, RetryAfter, TelegramError

from bot.render import split_messages, visible_text

log = logging.getLogger(__name__)

DeliveryError = Literal["unreachable", "rejected", "ambiguous", "rate_limited", "network"]

MAX_TRIES: Final = 4
"""How often one message is tried in all, waits that Telegram asked for included."""

BACK_OFF_SECONDS: Final = 0.5
"""The wait after the first network error; it doubles with every further one."""

Sleep = Callable[[float], Awaitable[None]]


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


async def deliver(
    bot: Bot, to: Destination, markdown: str, *, sleep: Sleep = asyncio.sleep
) -> Delivery:
    """Send Markdown as one or more messages, in order. Never raises a Telegram error.

    After an error the rest is not tried, save after an ambiguous one, when it may well get through.
    """
    delivery = Delivery()
    for index, html in enumerate(split_messages(markdown)):
        part = await _send(bot, to if index == 0 else replace(to, reply_to=None), html, sleep)
        delivery += part
        if part.error not in (None, "ambiguous"):
            break
    if delivery.error:
        log.warning("Answer to chat %s was not delivered whole: %s", to.chat_id, delivery.error)
    return delivery


async def _send(bot: Bot, to: Destination, html: str, sleep: Sleep) -> Delivery:
    text, parse_mode = html, True
    for tries in range(1, MAX_TRIES + 1):
        try:
            return Delivery((await _request(bot, to, text, parse_mode),), tries)
        except TelegramError as error:
            if parse_mode and "can't parse entities" in str(error).lower():
                log.error("Telegram rejected the HTML of an answer, it goes as plain text")  # noqa: TRY400
                text, parse_mode = visible_text(html), False
                continue
            wait = _wait(error, tries)
            if wait is None or tries == MAX_TRIES:
                return Delivery(tries=tries, error=_kind(error))
        await sleep(wait)
    return Delivery(tries=MAX_TRIES, error="rejected")


async def _request(bot: Bot, to: Destination, text: str, as_html: bool) -> int:
    reply = None
    if to.reply_to is not None:
        reply = ReplyParameters(to.reply_to, allow_sending_without_reply=True)
    message = await bot.send_message(
        to.chat_id,
        text,
        parse_mode=ParseMode.HTML if as_html else None,
        message_thread_id=to.thread_id,
        reply_parameters=reply,
        link_preview_options=LinkPreviewOptions(is_disabled=True),
    )
    return message.message_id


def _wait(error: TelegramError, tries: int) -> float | None:
    """Seconds to wait before another try, None when there must not be one."""
    if isinstance(error, RetryAfter):
        told = error.retry_after
        return told.total_seconds() if isinstance(told, timedelta) else told
    return BACK_OFF_SECONDS * 2 ** (tries - 1) if _kind(error) == "network" else None


def _kind(error: TelegramError) -> DeliveryError:
    if isinstance(error, RetryAfter):
        return "rate_limited"
    if isinstance(error, Forbidden) or "chat not found" in str(error).lower():
        return "unreachable"
    if isinstance(error, BadRequest) or not isinstance(error, NetworkError):
        return "rejected"
    return "ambiguous" if _may_have_arrived(error) else "network"


def _may_have_arrived(error: NetworkError) -> bool:
    """Whether the request was sent, as far as is known, and no response came."""
    cause = error.__cause__
    never_sent = httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout
    return isinstance(cause, httpx.TransportError) and not isinstance(cause, never_sent)
