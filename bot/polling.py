"""Fetching updates from Telegram until told to stop, and stopping without dropping a turn."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Final

from telegram.error import Conflict, InvalidToken, TelegramError

from bot import texts
from bot.ordering import ChatOrder
from bot.telegram_bot import ALLOWED_UPDATES, AnyApplication

log = logging.getLogger(__name__)

FINISH_SECONDS: Final = 20
"""How long turns may go on after the bot was told to stop."""

CLOSE_SECONDS: Final = 5
"""How long anything else may take that is done while stopping."""

POLL: Final = timedelta(seconds=30)
LONGEST_WAIT_SECONDS: Final = 30


class TokenRejected(Exception):
    """Telegram rejects TELEGRAM_BOT_TOKEN; get a valid one from @BotFather."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; the second signal ends the process as usual."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)

    def stopping() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stopping)
    return stop


async def serve(
    application: AnyApplication,
    order: ChatOrder,
    stop: asyncio.Event,
    *,
    finish_seconds: float = FINISH_SECONDS,
) -> None:
    """Answer people until `stop` is set; turns then have `finish_seconds` to end.

    Telegram being unreachable is no error: it is tried again until it is there.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    if not await _unless(stop, _introduce(application)):
        return
    await application.start()
    try:
        if await _unless(stop, _poll(application)):
            log.info("Listening as @%s", application.bot.username)
            await stop.wait()
    finally:
        log.info("Stopping")
        await _finish(application, order, finish_seconds)


async def _introduce(application: AnyApplication) -> None:
    """Make Telegram tell who we are, and show our commands there."""
    wait = 1
    while True:
        try:
            await application.initialize()
            await application.bot.set_my_commands(texts.COMMANDS)
        except InvalidToken:
            raise TokenRejected from None
        except TelegramError as error:
            log.warning("Telegram cannot be reached (%s); next try in %d s", error, wait)
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        else:
            return


async def _poll(application: AnyApplication) -> None:
    assert application.updater is not None  # noqa: S101 - only the terminal does without
    try:
        await application.updater.start_polling(
            timeout=POLL,
            bootstrap_retries=-1,
            allowed_updates=ALLOWED_UPDATES,
            drop_pending_updates=False,
            error_callback=_note,
        )
    except InvalidToken:
        raise TokenRejected from None


def _note(error: TelegramError) -> None:
    if isinstance(error, Conflict):
        log.error(
            "Telegram answers 409 Conflict: another process is polling with this bot's token, "
            "or a webhook is set. Stop the other one; trying again."
        )
    else:
        log.warning("Updates could not be fetched, trying again: %s", error)


async def _finish(application: AnyApplication, order: ChatOrder, seconds: float) -> None:
    """Take no more updates, let the turns end, interrupt those that take too long."""
    if application.updater is not None and application.updater.running:
        await bounded("polling", application.updater.stop)
    if not await bounded("answering", application.stop, seconds):
        await bounded("interrupting turns", order.cancel)


async def bounded(
    what: str, close: Callable[[], Awaitable[object]], seconds: float = CLOSE_SECONDS
) -> bool:
    """Do one step of stopping, for so long at most; whether it ended well. Never raises."""
    try:
        await asyncio.wait_for(close(), seconds)
    except TimeoutError:
        log.warning("Stopping: %s took more than %g s and was cut short", what, seconds)
        return False
    except Exception:
        log.exception("Stopping: %s failed", what)
        return False
    return True


async def _unless(stop: asyncio.Event, starting: Coroutine[object, object, None]) -> bool:
    """Do `starting` unless told to stop before it is done; whether it was done."""
    task = asyncio.create_task(starting)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
        return False
    await task
    return True
