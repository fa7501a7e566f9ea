"""Fetch updates as raw JSON, and acknowledge them only once they are committed.

Nothing of an update but its id is parsed here, so none can keep the others from being fetched.
"""

import asyncio
import fcntl
import json
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
from telegram.error import InvalidToken

from agent import lengths
from agent.engine.errors import Backoff, retry
from agent.text import pattern
from bot.telegram.connection import AnyApplication
from bot.updates.bursts import STOPPED
from db.records import Payload

log = logging.getLogger(__name__)

Accept = Callable[[Sequence[Payload]], Awaitable[None]]

ALLOWED_UPDATES: Final = (
    *("message", "edited_message", "callback_query", "message_reaction", "my_chat_member"),
    *("inline_query", STOPPED),
)
POLL: Final = timedelta(seconds=30)
TIMEOUT: Final = httpx2.Timeout(10, read=POLL.total_seconds() + 10)
BACKOFF: Final = Backoff(first=1.0, longest=30.0)
WATCH_SECONDS: Final = 60.0
LARGEST_ID: Final = 2**63 - 1
"""Ids are stored as 64 bits."""
MAX_DEPTH: Final = 200
"""The deepest nesting of an update that is stored: code that reads it later has less stack left."""
UNREADABLE: Final[Payload] = {"message": {}}
"""The content that replaces that of an update which cannot be stored; it is set aside then."""
SIGN: Final = pattern(r'(?s)"(?:[^"\\]|\\.)*"|[\[\]{}]')
UPDATE_ID: Final = pattern(r'"update_id"\s{0,9}:\s{0,9}([0-9]{1,19})')
ANSWER_LEVEL: Final = 3
"""The nesting level of the updates in an answer of Telegram."""

CONFLICT: Final = (
    "Telegram answers 409 Conflict: another process is polling with this bot's token, "
    "or a webhook is set. Stop the other one; trying again."
)


class TokenRejected(Exception):
    """Telegram rejects TELEGRAM_BOT_TOKEN; get a valid one from @BotFather."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class AlreadyRunning(Exception):
    """Another process answers people from this database; stop it first."""


class NotFetched(Exception):
    """Updates could not be fetched; Telegram may ask to `wait` for so many seconds."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@contextmanager
def single_process(database_url: str) -> Iterator[None]:
    """Hold the lock of an SQLite file, whose turns a second process would take for interrupted.

    Postgres is made for several processes: there nothing is locked.

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


def updates_in(text: str, level: int = 1) -> list[object]:
    """Return the updates at a nesting level of a text, even if some are no valid JSON.

    Of an update that cannot be stored only the id is returned, so that it alone is set aside.
    """
    depth, start, found = 0, 0, list[object]()
    for sign in SIGN.finditer(text):
        if sign[0] in ("[", "{"):
            depth += 1
            start = sign.start() if depth == level else start
        elif sign[0] in ("]", "}"):
            if depth == level:
                found.append(_read_update(text[start : sign.end()]))
            depth -= 1
    return found if depth == 0 else []


def _read_update(text: str) -> object:
    try:
        update = read_json(text)
    except ValueError:
        numbered = UPDATE_ID.search(text)
        return {"update_id": int(numbered[1]), **UNREADABLE} if numbered else None
    return storable_update(update)


def storable_update(update: object) -> object:
    """Return an update, or only its id if it is nested too deeply."""
    inner = [update]
    for _ in range(MAX_DEPTH):
        inner = [part for value in inner for part in _parts(value)]
        if not inner:
            return update
    return {"update_id": update_id_of(update), **UNREADABLE}


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def read_json(body: bytes | str) -> object:
    """Return the value of a JSON text; numbers that no database stores become None.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(body, parse_constant=lambda name: None, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def update_id_of(update: object) -> int | None:
    """Return the id of an update, None for anything else."""
    found = update.get("update_id") if isinstance(update, dict) else None
    return found if type(found) is int and 0 <= found <= LARGEST_ID else None


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
                offset, failures = await self._round(offset), 0
            except TokenRejected:
                raise
            except Exception as error:
                failures += 1
                wait = getattr(error, "wait", None) or BACKOFF.after(failures)
                why = str(error) if isinstance(error, NotFetched) else type(error).__name__
                log.error("No updates: %s. Next try in %.1f s", why, wait)  # noqa: TRY400
                await self.sleep(wait)

    async def _round(self, offset: int) -> int:
        """Fetch and accept once; return the next offset."""
        fetched = await self._fetch(offset)
        updates = [update for update in fetched if update_id_of(update) is not None]
        ids: list[int] = [update["update_id"] for update in updates]
        if len(updates) < len(fetched):
            log.error("%s updates have no id and are left out", len(fetched) - len(updates))
        if updates:
            await self.accept(updates)
        elif fetched:
            raise NotFetched("Telegram sends no updates but something else")
        return max([offset, *(update_id + 1 for update_id in ids)])

    async def _fetch(self, offset: int) -> list[Any]:
        asked = {
            "offset": offset,
            "timeout": POLL.total_seconds(),
            "allowed_updates": ALLOWED_UPDATES,
        }
        async with self.client.stream("POST", self.url, json=asked, timeout=TIMEOUT) as response:
            body = await lengths.body_of(response, lengths.TELEGRAM_BYTES)
        if body is None:
            raise NotFetched(f"Telegram answers with over {lengths.TELEGRAM_BYTES} bytes")
        try:
            answer = read_json(body)
        except ValueError:
            if found := updates_in(body.decode("utf-8", "replace"), ANSWER_LEVEL):
                return found
            raise NotFetched(f"Telegram's answer {response.status_code} is not JSON") from None
        if not isinstance(answer, dict):
            raise NotFetched(f"Telegram's answer {response.status_code} is no JSON object")
        if answer.get("ok") is True and isinstance(answer.get("result"), list):
            return [storable_update(update) for update in answer["result"]]
        raise _refusal(response.status_code, answer)


def _refusal(status: int, answer: dict[str, Any]) -> Exception:
    if status in (401, 404):
        return TokenRejected()
    if status == 409:
        return NotFetched(CONFLICT)
    parameters = answer.get("parameters")
    wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
    return NotFetched(f"Telegram answers {status}", wait if isinstance(wait, int) else None)


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
    """Set the webhook; all replicas set the same. Then watch the token until cancelled.

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
    """Call until Telegram answers with what the library can read.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    def is_transient(error: Exception) -> bool:
        return not isinstance(error, InvalidToken)

    try:
        await retry(call, tries=None, on=is_transient, backoff=BACKOFF, what=what)
    except InvalidToken:
        raise TokenRejected from None
