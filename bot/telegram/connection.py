"""Connect to Telegram: make requests, and fetch updates.

Updates are fetched as raw JSON, and acknowledged only after they are stored. Only the id of an
update is read here. So a malformed update cannot keep the others from being stored.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NoReturn, cast
from urllib.parse import urlencode

import httpx2
from telegram import LinkPreviewOptions
from telegram.constants import ParseMode
from telegram.error import (
    Conflict,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.ext import Defaults, ExtBot
from telegram.request import BaseRequest, RequestData

from agent import size_limits
from agent.servers import Backoff, Sleep, read_body, retry
from bot.telegram.rate_limit import RateLimit, retry_seconds
from bot.updates.joining import KINDS, MAX_ID
from db.repositories.inbox import Payload

log = logging.getLogger(__name__)

AnyBot = ExtBot[Any]

LIMITS: Final = httpx2.Limits(
    max_connections=64, max_keepalive_connections=8, keepalive_expiry=3
)
"""Idle connections are closed before Telegram closes them.

If Telegram closes a connection just when a message is sent over it, nobody knows whether the
message arrived. Such a message is not sent again.
"""

BACKOFF: Final = Backoff(first_wait=1.0, max_wait=30.0)
AcceptUpdates = Callable[[Sequence[Payload]], Awaitable[None]]
"""Stores updates. When it has returned, the updates may be acknowledged."""
ALLOWED_UPDATES: Final = (*KINDS, "inline_query")
POLL_SECONDS: Final = 30
"""How long Telegram may wait for an update before it answers a request for updates."""
CONFLICT: Final = (
    "Telegram answers 409 Conflict: another process is polling with this bot's token, "
    "or a webhook is set. Stop the other one; trying again."
)


class TokenRejected(Exception):
    """Telegram rejects TELEGRAM_BOT_TOKEN: get a valid token from @BotFather."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class TelegramRequests(BaseRequest):
    """Makes HTTP requests with httpx2, for python-telegram-bot.

    Its pool loses no connection when a request is cancelled. A request waits `read_seconds` for the
    response.
    """

    def __init__(
        self, limits: httpx2.Limits = LIMITS, *, read_seconds: float = 20
    ) -> None:
        self._client = httpx2.AsyncClient(
            limits=limits,
            timeout=httpx2.Timeout(10, read=read_seconds, write=read_seconds),
            headers={"User-Agent": self.USER_AGENT},
        )

    @property
    def read_timeout(self) -> float | None:
        """Return how many seconds a request waits for the response."""
        return self._client.timeout.read

    async def initialize(self) -> None:
        """Do nothing."""

    async def shutdown(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Return the JSON of a response. Invalid JSON is not logged, as the library would do."""
        try:
            return cast(
                "dict[str, Any]", json.loads(payload.decode("utf-8", "replace"))
            )
        except ValueError:
            raise TelegramError("Invalid server response") from None

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        *_: Any,
        **__: Any,
    ) -> tuple[int, bytes]:
        """Return the status and body of a response. Ignore other arguments, which are timeouts."""
        request_data = request_data or RequestData()
        files = request_data.multipart_data or None
        try:
            async with self._client.stream(
                method, url, data=request_data.json_parameters, files=files
            ) as response:
                body = await read_body(response, size_limits.TELEGRAM_RESPONSE_BYTES)
        except httpx2.TimeoutException as error:
            raise TimedOut from error
        except httpx2.HTTPError as error:
            raise NetworkError(f"{type(error).__name__}: {error}") from error
        if body is None:
            raise NetworkError(
                f"Telegram answered with over {size_limits.TELEGRAM_RESPONSE_BYTES} bytes"
            )
        return response.status_code, body


def telegram_bot(
    token: str,
    base_url: str,
    rate_limit: RateLimit | None = None,
    requests: BaseRequest | None = None,
) -> AnyBot:
    """Return a bot that sends HTML without link previews. There is no rate limit by default."""
    requests = requests or TelegramRequests()
    defaults = Defaults(
        parse_mode=ParseMode.HTML,
        link_preview_options=LinkPreviewOptions(is_disabled=True),
        allow_sending_without_reply=True,
    )
    return ExtBot(
        token,
        f"{base_url}/bot",
        f"{base_url}/file/bot",
        request=requests,
        get_updates_request=requests,
        defaults=defaults,
        rate_limiter=rate_limit or RateLimit((), (), ()),
    )


async def introduce(bot: AnyBot) -> None:
    """Request the bot's own name until Telegram answers.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    await retry_until_answered(bot.initialize, "Reaching Telegram")
    log.info("Telegram knows this bot as @%s", bot.username)


async def retry_until_answered(
    call: Callable[[], Awaitable[object]],
    description: str,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Repeat a call until Telegram answers without an error.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    def should_retry(error: Exception) -> bool | float:
        # A number says how many seconds to wait before.
        if isinstance(error, RetryAfter):
            return retry_seconds(error)
        return not isinstance(error, InvalidToken)

    try:
        await retry(
            call,
            max_tries=None,
            should_retry=should_retry,
            backoff=BACKOFF,
            sleep=sleep,
            description=description,
        )
    except InvalidToken:
        raise TokenRejected from None


def read_update(body: bytes) -> Payload | None:
    """Return the update in a JSON text, or None if the text is not an update."""
    try:
        update = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(update, dict):
        return None
    update_id = update.get("update_id")
    # `isinstance` would let a bool through.
    is_id = type(update_id) is int and 0 <= update_id <= MAX_ID
    if not is_id:
        return None
    return update


async def fetch_updates(
    requests: BaseRequest,
    url: str,
    accept: AcceptUpdates,
    sleep: Sleep = asyncio.sleep,
) -> NoReturn:
    """Fetch updates from `url` (getUpdates), and pass them to `accept`. Try again after failures.

    When `accept` has returned, the next request acknowledges the updates: its `offset` is greater
    than their ids.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    parameters = {
        "timeout": POLL_SECONDS,
        "allowed_updates": json.dumps(ALLOWED_UPDATES),
    }
    offset = 0

    async def fetch_next() -> None:
        """Fetch the updates after `offset`, and pass them on."""
        nonlocal offset
        query = urlencode(parameters | {"offset": offset})
        try:
            updates = cast("list[Payload]", await requests.post(f"{url}?{query}"))
        except Conflict:
            log.error(CONFLICT)  # noqa: TRY400 - the traceback says nothing more
            raise
        if updates:
            await accept(updates)
            last_id = max(update["update_id"] for update in updates)
            offset = last_id + 1

    while True:
        await retry_until_answered(fetch_next, "Fetching updates", sleep)


async def poll(bot: AnyBot, accept: AcceptUpdates) -> None:
    """Fetch updates until cancelled.

    Before that, remove the webhook, because Telegram would send the updates there.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    await retry_until_answered(bot.delete_webhook, "Removing the webhook")
    requests = TelegramRequests(read_seconds=POLL_SECONDS + 10)
    log.info("Listening as @%s", bot.username)
    try:
        await fetch_updates(requests, f"{bot.base_url}/getUpdates", accept)
    finally:
        await requests.shutdown()
