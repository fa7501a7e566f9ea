"""Fetch updates as raw JSON, and acknowledge them only once they are committed.

Nothing of an update but its id is parsed here, so none can keep the others from being fetched.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx2
from telegram.error import InvalidToken

from agent import lengths
from agent.retrying import Backoff, retry
from bot.telegram.connection import AnyApplication
from bot.updates.bursts import LARGEST_ID, STOPPED
from db.records import Payload

log = logging.getLogger(__name__)

Accept = Callable[[Sequence[Payload]], Awaitable[None]]

ALLOWED_UPDATES: Final = (
    *("message", "edited_message", "callback_query", "message_reaction", "my_chat_member"),
    *("inline_query", STOPPED),
)
POLL: Final = timedelta(seconds=30)
TIMEOUT: Final = httpx2.Timeout(10, read=POLL.total_seconds() + 10)
BACKOFF: Final = Backoff(first_wait=1.0, max_wait=30.0)
WATCH_SECONDS: Final = 60.0

CONFLICT: Final = (
    "Telegram answers 409 Conflict: another process is polling with this bot's token, "
    "or a webhook is set. Stop the other one; trying again."
)


class TokenRejected(Exception):
    """Telegram rejects TELEGRAM_BOT_TOKEN; get a valid one from @BotFather."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class NotFetched(Exception):
    """Updates could not be fetched; Telegram may ask to `wait` for so many seconds."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


def read_update(body: bytes) -> Payload | None:
    """Return the update in a JSON text, None if it is no update."""
    try:
        update = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    found = update.get("update_id") if isinstance(update, dict) else None
    return update if type(found) is int and 0 <= found <= LARGEST_ID else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poller:
    """Fetches updates from `url`, Telegram's getUpdates, and hands each whole answer to `accept`.

    Only when `accept` has returned are the updates acknowledged, by asking for those behind them.
    """

    client: httpx2.AsyncClient
    url: str
    accept: Accept
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def run(self) -> None:
        """Fetch until cancelled; a failure is tried again.

        Raises:
            TokenRejected: Telegram does not know the token.
        """
        offset, failures = 0, 0
        while True:
            try:
                if updates := await self._fetch(offset):
                    await self.accept(updates)
                offset = max([offset, *(update["update_id"] + 1 for update in updates)])
                failures = 0
            except TokenRejected:
                raise
            except Exception as error:
                failures += 1
                wait = getattr(error, "wait", None) or BACKOFF.after(failures)
                why = str(error) if isinstance(error, NotFetched) else type(error).__name__
                log.error("No updates: %s. Next try in %.1f s", why, wait)  # noqa: TRY400
                await self.sleep(wait)

    async def _fetch(self, offset: int) -> list[Payload]:
        """Return the next updates."""
        wanted = {
            "offset": offset,
            "timeout": POLL.total_seconds(),
            "allowed_updates": ALLOWED_UPDATES,
        }
        async with self.client.stream("POST", self.url, json=wanted, timeout=TIMEOUT) as response:
            body = await lengths.body_of(response, lengths.TELEGRAM_BYTES)
        if body is None:
            raise NotFetched(f"Telegram answers with over {lengths.TELEGRAM_BYTES} bytes")
        try:
            answer = json.loads(body.decode("utf-8", "replace"))
        except ValueError:
            answer = None
        result = answer.get("result") if isinstance(answer, dict) else None
        if not isinstance(result, list):
            raise _refusal(response.status_code, answer)
        return result


def _refusal(status: int, answer: Any) -> Exception:
    if status in (401, 404):
        return TokenRejected()
    if status == 409:
        return NotFetched(CONFLICT)
    try:
        wait = float(answer["parameters"]["retry_after"])
    except (LookupError, TypeError, ValueError):
        wait = None
    return NotFetched(f"Telegram answers {status} without updates", wait)


async def introduce(application: AnyApplication) -> None:
    """Ask Telegram for the bot's own name until it answers.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    await until_reached(application.initialize, "Reaching Telegram")
    log.info("Telegram knows this bot as @%s", application.bot.username)


async def poll(application: AnyApplication, accept: Accept) -> None:
    """Fetch updates until cancelled; a webhook would take them instead, and is removed.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = application.bot
    await until_reached(bot.delete_webhook, "Removing the webhook")
    async with httpx2.AsyncClient() as client:
        log.info("Listening as @%s", bot.username)
        await Poller(client=client, url=f"{bot.base_url}/getUpdates", accept=accept).run()


async def point_webhook(application: AnyApplication, url: str, secret: str) -> None:
    """Set the webhook; all replicas set one. Then watch the token until cancelled.

    Without that, a revoked token would only show in that no more updates arrive.

    Raises:
        TokenRejected: Telegram does not know the token, or not any more.
    """
    bot = application.bot
    allowed = ALLOWED_UPDATES
    await until_reached(
        lambda: bot.set_webhook(url=url, secret_token=secret, allowed_updates=allowed),
        "Setting the webhook",
    )
    log.info("Telegram delivers to the webhook")
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        await until_reached(bot.get_me, "Asking Telegram who we are")


async def until_reached(call: Callable[[], Awaitable[object]], what: str) -> None:
    """Call until Telegram gives an answer that the library can read.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    def is_transient(error: Exception) -> bool:
        return not isinstance(error, InvalidToken)

    try:
        await retry(call, tries=None, on=is_transient, backoff=BACKOFF, what=what)
    except InvalidToken:
        raise TokenRejected from None
