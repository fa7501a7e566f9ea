"""Fetching updates from Telegram until told to stop; each is committed before the next fetch."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from telegram import BotCommandScopeChat, Update
from telegram.error import Conflict, InvalidToken, TelegramError

from bot.stopping import bounded, unless
from bot.telegram import texts
from bot.telegram.conversation import ALLOWED_UPDATES, AnyApplication

log = logging.getLogger(__name__)


Accept = Callable[[Mapping[str, Any]], Awaitable[None]]

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


class AcceptQueue(asyncio.Queue[object]):
    """Where python-telegram-bot puts updates: a put returns when the update is committed.

    Only then does the updater acknowledge it. What must be raised to have it fetched again is a
    `TelegramError`; anything else would end the polling in silence.
    """

    accept: Accept | None = None
    """Set before polling begins: it needs what is made with the application that polls."""

    async def put(self, item: object) -> None:
        """Accept an update.

        Raises:
            TelegramError: it could not be committed.
        """
        assert isinstance(item, Update) and self.accept  # noqa: S101, PT018 - nothing else is put
        try:
            await self.accept(item.to_dict())
        except Exception as error:
            kind = type(error).__name__
            log.error("An update could not be accepted (%s), it is fetched again", kind)  # noqa: TRY400
            raise TelegramError(f"not accepted: {kind}") from None


async def poll_until(application: AnyApplication, stop: asyncio.Event) -> None:
    """Fetch updates until `stop` is set.

    Telegram being unreachable is no error: it is tried again until it is there.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    try:
        if await unless(stop, _poll(application)):
            log.info("Listening as @%s", application.bot.username)
            await stop.wait()
    finally:
        log.info("Stopping")
        if application.updater is not None and application.updater.running:
            await bounded("polling", application.updater.stop)


async def introduce(application: AnyApplication, admin_ids: Collection[int] = ()) -> None:
    """Make Telegram tell who we are, and show our commands there, to admins theirs too.

    Telegram refuses that for an admin who never wrote to the bot, which is no matter.
    """
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
            break
    for admin_id in admin_ids:
        await _show_admin_commands(application, admin_id)


async def _show_admin_commands(application: AnyApplication, admin_id: int) -> None:
    commands = (*texts.COMMANDS, *texts.ADMIN_COMMANDS)
    try:
        await application.bot.set_my_commands(commands, BotCommandScopeChat(admin_id))
    except TelegramError as error:
        log.info("Admin %s is not shown the commands of admins: %s", admin_id, error)


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
