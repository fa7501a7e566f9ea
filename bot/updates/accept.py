"""Fetch updates as raw JSON, and acknowledge them only once they are committed.

Nothing of an update but its id is read here, so none can keep the others from being fetched.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NoReturn, cast
from urllib.parse import urlencode

from telegram.error import Conflict
from telegram.request import BaseRequest

from agent.retrying import Sleep
from bot.telegram.connection import AnyBot, TelegramRequests, until_reached
from bot.updates.bursts import KINDS, LARGEST_ID
from db.repositories.inbox import Payload

log = logging.getLogger(__name__)

Accept = Callable[[Sequence[Payload]], Awaitable[None]]

ALLOWED_UPDATES: Final = (*KINDS, "inline_query")
POLL_SECONDS: Final = 30
CONFLICT: Final = (
    "Telegram answers 409 Conflict: another process is polling with this bot's token, "
    "or a webhook is set. Stop the other one; trying again."
)


def read_update(body: bytes) -> Payload | None:
    """Return the update in a JSON text, None if it is no update."""
    try:
        update = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    found = update.get("update_id") if isinstance(update, dict) else None
    return update if type(found) is int and 0 <= found <= LARGEST_ID else None


async def fetch_updates(
    requests: BaseRequest, url: str, accept: Accept, sleep: Sleep = asyncio.sleep
) -> NoReturn:
    """Fetch updates from `url`, Telegram's getUpdates, and hand every answer to `accept`.

    Only when `accept` has returned are the updates acknowledged, by asking for those behind them. A
    failure is tried again.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    wanted = {"timeout": POLL_SECONDS, "allowed_updates": json.dumps(ALLOWED_UPDATES)}
    offset = 0

    async def fetch_next() -> None:
        nonlocal offset
        query = urlencode(wanted | {"offset": offset})
        try:
            updates = cast("list[Payload]", await requests.post(f"{url}?{query}"))
        except Conflict:
            log.error(CONFLICT)  # noqa: TRY400 - the traceback says nothing more
            raise
        if updates:
            await accept(updates)
            offset = max(update["update_id"] + 1 for update in updates)

    while True:
        await until_reached(fetch_next, "Fetching updates", sleep)


async def poll(bot: AnyBot, accept: Accept) -> None:
    """Fetch updates until cancelled; a webhook would take them instead, and is removed.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    await until_reached(bot.delete_webhook, "Removing the webhook")
    requests = TelegramRequests(read_seconds=POLL_SECONDS + 10)
    log.info("Listening as @%s", bot.username)
    try:
        await fetch_updates(requests, f"{bot.base_url}/getUpdates", accept)
    finally:
        await requests.shutdown()
