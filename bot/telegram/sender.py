"""Deliver committed messages to Telegram, each at most once.

After a timeout or a lost connection, nobody knows whether Telegram received the request. The
request is not repeated then: in rare cases a user misses a part of an answer, but nobody gets it
twice.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import httpx2
from telegram import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    Message,
)
from telegram.constants import KeyboardButtonStyle
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
from agent.servers import Backoff, Sleep
from agent.text import Match, in_thread_if_long, pattern
from bot.telegram.rate_limit import COUNTED, RateLimit
from bot.telegram.render import split_messages
from bot.turn import Delivery, DeliveryError, Destination, Hold
from db.engine import call_or_default, retry_forever
from db.models import OutboxRow
from db.repositories.outbox import Outbox, TurnTaken

log = logging.getLogger(__name__)

MAX_TRIES: Final = 8
"""The maximum number of requests for one message, including those after a 429."""
BACKOFF: Final = Backoff(first_wait=0.5, max_wait=30.0)
HTML_TAG: Final = pattern(r"<(/?)([a-z]*)[^>]*>")
"""A tag, with its slash and its name: "</b>", `<a href="…">`."""
PROTECTING_TAGS: Final = ("a", "code", "pre")
"""The tags in whose text Telegram does not turn addresses and @names into links."""
RECORD_SECONDS: Final = 4.0
"""How long a cancelled delivery waits until the message in flight is sent and recorded."""
NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.WriteError,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)
"""The errors after which Telegram certainly has not received the request."""
AMBIGUOUS: Final = Delivery(requests=1, error="ambiguous")
"""The result of a request that Telegram may or may not have received."""
LASTING: Final = Hold()
"""The hold on messages of no turn. It never ends, because only one process sends them."""
MAX_DATA_BYTES: Final = 64
"""Telegram's limit for the callback data of a button."""
# The style of a button follows from its data, so the outbox need not store the style.
DELETING: Final = pattern(r":forget|t:.*|a:[0-9]+:block|ci:replace:.*")
"""The data of red buttons: delete all data, forget a fact, block a user, replace a cellar."""
CONFIRMING: Final = pattern(r"b:[0-9]+:send|a:[0-9]+:allow|ci:add:.*|q[sn]:.*")
"""The data of green buttons: send a broadcast, allow a user, add a list, ask the shop."""


class Button(NamedTuple):
    """A button under a message.

    A press sends `data` back to the bot: at most `MAX_DATA_BYTES` of UTF-8. If `data` is an address
    (`https://…`), a press opens the page instead.
    """

    label: str
    data: str


ButtonRows = tuple[tuple[Button, ...], ...]


def in_rows(buttons: Sequence[Button], count: int) -> ButtonRows:
    """Return buttons in rows of at most `count`."""
    rows: list[tuple[Button, ...]] = []
    for start in range(0, len(buttons), count):
        row = buttons[start : start + count]
        rows.append(tuple(row))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends the messages of the outbox, and records the result of each at once.

    `rate_limit` delays each request until it is allowed. `sleep` waits after an error.
    """

    bot: ExtBot[Any]
    outbox: Outbox
    rate_limit: RateLimit
    sleep: Sleep = asyncio.sleep

    async def deliver(
        self, messages: Sequence[OutboxRow], hold: Hold = LASTING
    ) -> Delivery:
        """Send messages in order, and record each one immediately.

        No error of Telegram is raised: the result contains the last one. If a message fails, the
        parts that continue it (`follows`) are skipped. After an ambiguous error they are sent,
        because the first part may have arrived.

        Raises:
            TurnTaken: another process has taken over the turn of the messages.
        """
        delivery = Delivery()
        is_failed = False
        for message in messages:
            if is_failed and message.follows:
                continue
            result = await self._deliver_message(message, hold)
            is_failed = _ends_message(result)
            # A change of buttons is no part of the answer, so its result does not count.
            if message.kind != "buttons":
                delivery += result
        if delivery.error:
            log.warning(
                "The messages to chat %s were not all delivered: %s",
                messages[0].chat_id,
                delivery.error,
            )
        return delivery

    async def _deliver_message(self, message: OutboxRow, hold: Hold) -> Delivery:
        """Send and record one message.

        If Telegram rejects the first message of an answer, send its plain text. If that is rejected
        too, send an apology.
        """
        began_ns = time.time_ns()
        delivery = await self._send_with_retries(message, hold)
        is_answer = message.turn_id is not None and message.file is None
        is_first = not message.follows
        if is_answer and is_first and delivery.error == "rejected":
            delivery += await self._send_simpler(message, hold)
        # Only the texts that have reached the chat belong to the result.
        texts: tuple[str, ...] = ()
        if delivery.message_ids and message.html:
            texts = (message.html,)
        await self._record(message, delivery)
        ended_ns = time.time_ns()
        return replace(delivery, began_ns=began_ns, ended_ns=ended_ns, texts=texts)

    async def _send_simpler(self, message: OutboxRow, hold: Hold) -> Delivery:
        """Send the plain text of a rejected message, or else an apology."""
        # Telegram may have rejected any of these parts, so all of them are left out.
        message.buttons = []
        message.edits = None
        message.picture = ""
        message.html = to_plain_html(message.html)
        delivery = await self._send_with_retries(message, hold)
        if delivery.error != "rejected":
            return delivery
        message.html = translate("apology")
        return delivery + await self._send_with_retries(message, hold)

    async def _record(self, message: OutboxRow, delivery: Delivery) -> None:
        """Store the result of sending a message. After a failure, skip its further parts."""
        if delivery.message_ids:
            message.message_id = delivery.message_ids[0]
            message.error = None
        else:
            message.message_id = None
            message.error = delivery.error
        is_in_outbox = message.id is not None
        if not is_in_outbox:
            return
        skip_rest = _ends_message(delivery)
        record = partial(self.outbox.record_delivery, message, skip_rest=skip_rest)
        recording = asyncio.create_task(retry_forever(record))
        try:
            await asyncio.shield(recording)
        except asyncio.CancelledError:
            # The message was sent. If this were not recorded, the next start would send it again.
            await asyncio.wait([recording], timeout=RECORD_SECONDS)
            raise

    async def _send_with_retries(self, message: OutboxRow, hold: Hold) -> Delivery:
        """Send one message. Repeat the request after errors that may pass.

        If Telegram rejects an edit, send a new message instead.

        Raises:
            TurnTaken: another process has taken over the turn, and sends the message.
        """
        # This is reported if every request is answered with the new id of a migrated chat.
        error_kind: DeliveryError = "network"
        for tries in range(1, MAX_TRIES + 1):
            await self.rate_limit.wait(message.chat_id, counts=_is_counted(message))
            # The wait may have been long, so the hold is checked only after it.
            if not await hold.is_current():
                raise TurnTaken
            try:
                message_id = await self._request(message)
            except ChatMigrated as error:
                await self._redirect(message, error.new_chat_id)
                continue
            except TelegramError as error:
                error_kind = classify_error(error)
            else:
                return Delivery((message_id,), requests=tries)
            if error_kind == "unreachable":
                await self._store(self.outbox.set_unreachable, message.chat_id)
            if not _may_try_again(message, error_kind):
                return Delivery(requests=tries, error=error_kind)
            await self._prepare_next_try(message, error_kind, tries)
        return Delivery(requests=MAX_TRIES, error=error_kind)

    async def _prepare_next_try(
        self, message: OutboxRow, error_kind: DeliveryError, tries: int
    ) -> None:
        """Make a new message of a rejected edit, or wait after an error that may pass."""
        if error_kind == "rejected":
            # The message to edit was deleted or is too old, so the next try sends a new one.
            message.edits = None
            return
        # After a 429 (`rate_limited`), the rate limit itself delays the next request.
        needs_wait = error_kind != "rate_limited"
        is_last_try = tries == MAX_TRIES
        if needs_wait and not is_last_try:
            await self.sleep(BACKOFF.draw_wait(tries))

    async def _request(self, message: OutboxRow) -> int:
        """Make one request, and return the id of the message.

        If the delivery is cancelled, first wait for the response, so that the result can be
        recorded. If the response does not come in time, the message may have arrived, so it is
        never sent again.
        """
        sending = asyncio.create_task(request(self.bot, message))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            delivery = await _wait_for_result(sending)
            # An edit can be repeated, because it adds no message. So it need not be recorded.
            may_repeat = message.edits is not None and delivery == AMBIGUOUS
            if delivery is not None and not may_repeat:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RECORD_SECONDS):
                        await self._record(message, delivery)
            raise

    async def _store(
        self, store: Callable[..., Awaitable[None]], *chat_ids: int
    ) -> None:
        """Store what sending has revealed about a chat. If that fails, only log it."""
        problem = f"What is known of chat {chat_ids[0]} could not be stored"
        await call_or_default(partial(store, *chat_ids), None, problem)

    async def _redirect(self, message: OutboxRow, new_chat_id: int) -> None:
        """Address a message to the supergroup that replaced its group."""
        await self._store(self.outbox.migrate, message.chat_id, new_chat_id)
        message.chat_id = new_chat_id
        # Ids of topics and messages of the old group are not valid in the new one.
        message.thread_id = None
        message.reply_to = None
        message.edits = None


async def _wait_for_result(sending: asyncio.Task[int]) -> Delivery | None:
    """Wait for a request in flight. Return its result, or None if it certainly sent nothing."""
    await asyncio.wait([sending], timeout=RECORD_SECONDS)
    if not sending.done():
        sending.cancel()
        return AMBIGUOUS
    error = sending.exception()
    if error is None:
        message_id = sending.result()
        return Delivery((message_id,), requests=1)
    if isinstance(error, TelegramError) and classify_error(error) == "ambiguous":
        return AMBIGUOUS
    return None


def _may_try_again(message: OutboxRow, error_kind: DeliveryError) -> bool:
    """Return whether a message may be sent again after an error of this kind."""
    # An edit can be repeated even if it arrived, because it adds no message.
    is_edit = message.edits is not None
    match error_kind:
        case "unreachable":
            return False
        case "ambiguous":
            return is_edit
        case "rejected":
            # A rejected edit of a text becomes a new message. Buttons alone cannot become one.
            return is_edit and message.kind != "buttons"
        case _:
            return True


def _ends_message(delivery: Delivery) -> bool:
    """Return whether a message certainly did not arrive, so that its further parts are skipped."""
    was_sent = bool(delivery.message_ids)
    may_have_arrived = delivery.error == "ambiguous"
    return not (was_sent or may_have_arrived)


def _is_counted(message: OutboxRow) -> bool:
    """Return whether the request for a message counts against Telegram's limits.

    Edits in private chats and changes of buttons are not counted.
    """
    if message.kind == "buttons":
        return False
    # Telegram gives groups negative ids.
    is_group = message.chat_id < 0
    is_new = message.edits is None
    return is_new or is_group


def to_plain_html(html: str) -> str:
    """Return HTML without formatting.

    The texts in `PROTECTING_TAGS` become code, so that Telegram makes no links of them.
    """
    return HTML_TAG.sub(_simplify_tag, html)


def _simplify_tag(tag: Match) -> str:
    slash, name = tag.groups()
    if name not in PROTECTING_TAGS:
        return ""
    return f"<{slash}code>"


async def build_messages(
    to: Destination, texts: Sequence[str], buttons: ButtonRows = ()
) -> list[OutboxRow]:
    """Return the messages that show Markdown texts, split at Telegram's limits.

    The buttons are under the last message. Replies are rendered only here. Long texts are rendered
    in a thread, because that takes a while.
    """
    messages: list[OutboxRow] = []
    for text in texts:
        for html in await in_thread_if_long(len(text), split_messages, text):
            is_first = not messages
            messages.append(build_message(to, html=html, follows=not is_first))
            to = to.for_further_messages
    if messages:
        messages[-1].buttons = to_lists(buttons)
    return messages


def to_lists(rows: ButtonRows) -> list[list[list[str]]]:
    """Return buttons as the outbox stores them: each one is the list [label, data]."""
    stored_rows = []
    for row in rows:
        stored_rows.append([[button.label, button.data] for button in row])
    return stored_rows


def build_message(to: Destination, **content: Any) -> OutboxRow:
    """Return a message for a destination. `content` are the other columns of the outbox."""
    return OutboxRow(
        chat_id=to.chat_id,
        thread_id=to.thread_id,
        reply_to=to.reply_to,
        edits=to.replaced_id,
        **content,
    )


def find_style(data: str) -> KeyboardButtonStyle | None:
    """Return the style of the button with this data, or None for an ordinary button."""
    if DELETING.fullmatch(data):
        return KeyboardButtonStyle.DANGER
    if CONFIRMING.fullmatch(data):
        return KeyboardButtonStyle.SUCCESS
    return None


def _build_button(label: str, data: str) -> InlineKeyboardButton:
    """Return a button that opens a page or sends its data back."""
    if data.startswith("https://"):
        return InlineKeyboardButton(label, url=data)
    return InlineKeyboardButton(label, callback_data=data, style=find_style(data))


def keyboard(rows: Iterable[Iterable[Iterable[str]]]) -> InlineKeyboardMarkup | None:
    """Return Telegram's keyboard for rows of (label, data), or None if there are no rows."""
    button_rows = []
    for row in rows:
        button_rows.append([_build_button(label, data) for label, data in row])
    if not button_rows:
        return None
    return InlineKeyboardMarkup(button_rows)


def picture_above(address: str) -> LinkPreviewOptions:
    """Return the options that show a picture above a text.

    The text need not contain the address of the picture. If Telegram cannot load the picture, the
    text appears without it.
    """
    return LinkPreviewOptions(
        is_disabled=False,
        url=address,
        prefer_large_media=True,
        show_above_text=True,
    )


async def request(bot: ExtBot[Any], message: OutboxRow) -> int:
    """Ask Telegram to send a message, or to edit the one that it replaces. Return the message id.

    Raises:
        TelegramError: Telegram rejects the request, or cannot be reached.
    """
    if message.edits is None:
        sent = await _send(bot, message)
        return sent.message_id
    try:
        await _edit(bot, message, message.edits)
    except BadRequest as error:
        # An interrupted try of the turn may have made this edit already.
        if "not modified" not in str(error).lower():
            raise
    return message.edits


async def _send(bot: ExtBot[Any], message: OutboxRow) -> Message:
    """Send a file, or a text with its buttons."""
    position: dict[str, Any] = {
        "message_thread_id": message.thread_id,
        "reply_to_message_id": message.reply_to,
    }
    if message.file is None:
        return await bot.send_message(message.chat_id, **_content(message), **position)
    # The kind of a file is "document", "photo" or "voice", as in `bot.send_document`.
    send_file: Callable[..., Awaitable[Message]] = getattr(bot, f"send_{message.kind}")
    return await send_file(
        message.chat_id,
        message.file,
        filename=message.file_name,
        rate_limit_args=COUNTED,
        **position,
    )


async def _edit(bot: ExtBot[Any], message: OutboxRow, message_id: int) -> None:
    """Replace only the buttons under a message, or its text with its buttons."""
    if message.kind == "buttons":
        await bot.edit_message_reply_markup(
            message.chat_id,
            message_id,
            reply_markup=keyboard(message.buttons),
            rate_limit_args=COUNTED,
        )
        return
    await bot.edit_message_text(
        chat_id=message.chat_id, message_id=message_id, **_content(message)
    )


def _content(message: OutboxRow) -> dict[str, Any]:
    """Return the arguments of a request that sends or edits a text."""
    content: dict[str, Any] = {
        "text": message.html,
        "reply_markup": keyboard(message.buttons),
        "rate_limit_args": COUNTED,
    }
    if message.picture:
        content["link_preview_options"] = picture_above(message.picture)
    return content


def classify_error(error: TelegramError) -> DeliveryError:
    """Return the kind of an error. The kind decides whether the message may be sent again."""
    if isinstance(error, RetryAfter):
        return "rate_limited"
    is_unknown_chat = "chat not found" in str(error).lower()
    if is_unknown_chat or isinstance(error, Forbidden):
        return "unreachable"
    # In the library a BadRequest is a NetworkError too, but Telegram has answered it.
    if isinstance(error, NetworkError) and not isinstance(error, BadRequest):
        if _may_have_arrived(error):
            return "ambiguous"
        return "network"
    # The library raises a plain TelegramError if a response of status 200 has an unreadable body.
    if type(error) is TelegramError:
        return "ambiguous"
    return "rejected"


def _may_have_arrived(error: NetworkError) -> bool:
    """Return whether a request got no response although Telegram may have received it.

    If there was a response, the error has no cause. Or its cause is a TelegramError, because the
    body was not JSON.
    """
    cause = error.__cause__
    if cause is None or isinstance(cause, TelegramError):
        return False
    return not isinstance(cause, NEVER_SENT)
