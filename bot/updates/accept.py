"""Fetch updates as raw JSON, and acknowledge them only once they are committed.

Nothing of an update but its id is read here, so none can keep the others from being fetched.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

import httpx2

from agent import lengths
from agent.retrying import Sleep, retry
from bot.telegram.connection import BACKOFF, AnyBot, TokenRejected, until_reached
from bot.updates.bursts import KINDS, LARGEST_ID
from db.repositories.inbox import Payload

log = logging.getLogger(__name__)

Accept = Callable[[Sequence[Payload]], Awaitable[None]]

ALLOWED_UPDATES: Final = (*KINDS, "inline_query")
POLL_SECONDS: Final = 30.0
TIMEOUT: Final = httpx2.Timeout(10, read=POLL_SECONDS + 10)
CONFLICT: Final = (
    "Telegram answers 409 Conflict: another process is polling with this bot's token, "
    "or a webhook is set. Stop the other one; trying again."
)


class NotFetched(Exception):
    """Updates could not be fetched; Telegram may ask to wait for so many seconds."""


def read_json(body: bytes) -> Any:
    """Return the value of a JSON text, None if it is none."""
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def read_update(body: bytes) -> Payload | None:
    """Return the update in a JSON text, None if it is no update."""
    update = read_json(body)
    found = update.get("update_id") if isinstance(update, dict) else None
    return update if type(found) is int and 0 <= found <= LARGEST_ID else None


async def fetch_updates(
    client: httpx2.AsyncClient, url: str, accept: Accept, sleep: Sleep = asyncio.sleep
) -> NoReturn:
    """Fetch updates from `url`, Telegram's getUpdates, and hand every answer to `accept`.

    Only when `accept` has returned are the updates acknowledged, by asking for those behind them. A
    failure is tried again.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    offset = 0

    async def fetch_next() -> None:
        nonlocal offset
        if updates := await _get_updates(client, url, offset):
            await accept(updates)
            offset = max(update["update_id"] + 1 for update in updates)

    def wait_after(error: Exception) -> bool | float:
        asked = error.args[0] if isinstance(error, NotFetched) else None
        return asked or not isinstance(error, TokenRejected)

    what = "Fetching updates"
    while True:
        await retry(fetch_next, tries=None, on=wait_after, backoff=BACKOFF, sleep=sleep, what=what)


async def _get_updates(client: httpx2.AsyncClient, url: str, offset: int) -> list[Payload]:
    wanted = {"offset": offset, "timeout": POLL_SECONDS, "allowed_updates": ALLOWED_UPDATES}
    async with client.stream("POST", url, json=wanted, timeout=TIMEOUT) as response:
        body = await lengths.body_of(response, lengths.TELEGRAM_BYTES)
    answer, status = read_json(body or b""), response.status_code
    told = answer if isinstance(answer, dict) else {}
    if isinstance(updates := told.get("result"), list):
        return updates
    if status in (401, 404):
        raise TokenRejected
    log.error(CONFLICT if status == 409 else f"Telegram answers {status} without updates")
    parameters = told.get("parameters")
    raise NotFetched(parameters.get("retry_after") if isinstance(parameters, dict) else None)


async def poll(bot: AnyBot, accept: Accept) -> None:
    """Fetch updates until cancelled; a webhook would take them instead, and is removed.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    await until_reached(bot.delete_webhook, "Removing the webhook")
    async with httpx2.AsyncClient() as client:
        log.info("Listening as @%s", bot.username)
        await fetch_updates(client, f"{bot.base_url}/getUpdates", accept)


async def point_webhook(bot: AnyBot, url: str, secret: str) -> None:
    """Set the webhook; all replicas set one.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    point = partial(bot.set_webhook, url, secret_token=secret, allowed_updates=ALLOWED_UPDATES)
    await until_reached(point, "Setting the webhook")
    log.info("Telegram delivers to the webhook")
