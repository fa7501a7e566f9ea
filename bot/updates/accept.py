"""Updates come in: by polling or a webhook, each committed before Telegram is told it arrived."""

import asyncio
import fcntl
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from telegram import BotCommandScopeChat, Update
from telegram.error import Conflict, InvalidToken, TelegramError

from agent.engine.retry import Backoff, retry
from agent.repositories import Payload
from bot.service import bounded, unless
from bot.telegram import texts
from bot.telegram.handlers import ALLOWED_UPDATES, AnyApplication

log = logging.getLogger(__name__)

POLL: Final = timedelta(seconds=30)
BACKOFF: Final = Backoff(first=1.0, longest=30.0)
WATCH_SECONDS: Final = 60.0


class TokenRejected(Exception):
    """Telegram rejects TELEGRAM_BOT_TOKEN; get a valid one from @BotFather."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class AlreadyRunning(Exception):
    """Another process answers people from this database; stop it first."""


@contextmanager
def single_process(database_url: str) -> Iterator[None]:
    """Hold the lock of an SQLite file; Postgres is made for several processes.

    A second process would take the first one's turns for interrupted.

    Raises:
        AlreadyRunning: another process holds it.
    """
    scheme, _, rest = database_url.partition("://")
    if not scheme.startswith("sqlite"):
        yield
        return
    path = Path(rest.removeprefix("/")).expanduser()
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"Another process answers people from {path}; stop it first, or use Postgres "
                "to run several."
            ) from None
        yield


class AcceptQueue(asyncio.Queue[object]):
    """Where python-telegram-bot puts updates: a put returns when the update is committed.

    Only then does the updater acknowledge it. What must be raised to have it fetched again is a
    `TelegramError`; anything else would end the polling in silence.
    """

    accept: Callable[[Payload], Awaitable[None]] | None = None
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


async def introduce(application: AnyApplication, admin_ids: Collection[int] = ()) -> None:
    """Make Telegram tell who we are, and show our commands there, to admins theirs too.

    Telegram refuses that for an admin who never wrote to the bot, which is no matter.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    async def begin() -> None:
        await application.initialize()
        await application.bot.set_my_commands(texts.commands())

    await _until_reached(begin, "Reaching Telegram")
    for admin_id in admin_ids:
        commands, scope = texts.commands(of_admins=True), BotCommandScopeChat(admin_id)
        try:
            await application.bot.set_my_commands(commands, scope)
        except TelegramError as error:
            log.info("Admin %s is not shown the commands of admins: %s", admin_id, error)


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


async def set_webhook(application: AnyApplication, url: str, secret: str) -> None:
    """Point Telegram here; every replica says the same, so it matters not which is the last.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    async def point() -> None:
        await application.bot.set_webhook(
            url=url, secret_token=secret, allowed_updates=ALLOWED_UPDATES
        )

    await _until_reached(point, "Setting the webhook")
    log.info("Telegram delivers to the webhook")


async def watch_token(application: AnyApplication) -> None:
    """Notice a token that was revoked: polling ends in silence then, a webhook falls dry.

    Raises:
        TokenRejected: Telegram does not know the token any more.
    """
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            await application.bot.get_me()
        except InvalidToken:
            raise TokenRejected from None
        except TelegramError as error:
            log.debug("Telegram did not say who we are: %s", error)


async def _until_reached(call: Callable[[], Awaitable[None]], what: str) -> None:
    """Call until Telegram answers.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    def is_passing(error: Exception) -> bool:
        return isinstance(error, TelegramError) and not isinstance(error, InvalidToken)

    try:
        await retry(call, tries=None, on=is_passing, backoff=BACKOFF, what=what)
    except InvalidToken:
        raise TokenRejected from None
