"""The connection to Telegram: requests, who makes them, and how many messages a chat may get."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from telegram.error import NetworkError, TimedOut
from telegram.ext import Application
from telegram.request import BaseRequest, RequestData

from agent import lengths

AnyApplication = Application[Any, Any, Any, Any, Any, Any]

LIMITS: Final = httpx2.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=3)
"""Of connections to Telegram. A kept one that the server closes just as it is used again loses a
message that may have arrived, so they are kept for a shorter time than servers keep them."""


class TelegramRequests(BaseRequest):
    """Requests to Telegram over httpx2, whose pool loses no connection when a request is cut off.

    A request waits `connect_seconds` for a connection and `read_seconds` for the answer.
    """

    def __init__(
        self,
        limits: httpx2.Limits = LIMITS,
        *,
        connect_seconds: float = 10,
        read_seconds: float = 20,
    ) -> None:
        self._client = httpx2.AsyncClient(
            limits=limits,
            timeout=httpx2.Timeout(connect_seconds, read=read_seconds, write=read_seconds),
            headers={"User-Agent": self.USER_AGENT},
        )

    @property
    def read_timeout(self) -> float | None:
        """See `BaseRequest.read_timeout`."""
        return self._client.timeout.read

    async def initialize(self) -> None:
        """Nothing is needed."""

    async def shutdown(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **__: Any
    ) -> tuple[int, bytes]:
        """See `BaseRequest.do_request`; the limits of time are those of all requests."""
        given = request_data or RequestData()
        files = given.multipart_data or None
        try:
            async with self._client.stream(
                method, url, data=given.json_parameters, files=files
            ) as response:
                body = await lengths.body_of(response, lengths.TELEGRAM_BYTES)
        except httpx2.TimeoutException as error:
            raise TimedOut from error
        except httpx2.HTTPError as error:
            raise NetworkError(f"{type(error).__name__}: {error}") from error
        if body is None:
            raise NetworkError(f"Telegram answered with over {lengths.TELEGRAM_BYTES} bytes")
        return response.status_code, body


def telegram_application(
    token: str, base_url: str, requests: BaseRequest | None = None
) -> AnyApplication:
    """Make the application without handlers, on the network unless `requests` are given."""
    requests = requests or TelegramRequests()
    builder = Application.builder().token(token).job_queue(None).updater(None)
    builder = builder.base_url(f"{base_url}/bot").base_file_url(f"{base_url}/file/bot")
    return builder.request(requests).get_updates_request(requests).build()


async def close_application(application: AnyApplication) -> None:
    """Close the connections to Telegram."""
    await application.shutdown()
    # An application that never became initialized leaves its bot's connections open.
    await application.bot.shutdown()


Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `messages` in any span of `seconds`."""

    messages: int
    seconds: float


Limits = tuple[Limit, ...]

PER_CHAT: Final = (Limit(3, 3),)
"""About one a second, while an answer in a few parts goes out at once."""

PER_GROUP: Final = (*PER_CHAT, Limit(20, 60))
IN_ALL: Final = (Limit(30, 1),)

SEVERAL: Final = 3
"""So many different chats told to wait within a second: the limit of all chats is meant."""

SWEEP_SECONDS: Final = 60
"""How often chats that no longer matter are forgotten."""

_EARLY: Final = 1e-6
"""Seconds by which a clock may wake us too early without another sleep."""


class RateLimit:
    """Lets messages through as Telegram's limits allow.

    A chat waits for its own limits first and only then for the budget of all chats, which those who
    are ready get in the order in which they became ready; so no chat holds up another. Only
    messages count: not edits, not "typing". The limits are those of this process; of N replicas
    each should be given its share of `in_all`. No limits at all are `RateLimit((), (), ())`.
    """

    def __init__(
        self,
        per_chat: Limits = PER_CHAT,
        per_group: Limits = PER_GROUP,
        in_all: Limits = IN_ALL,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._per_chat = per_chat
        self._per_group = per_group
        self._clock = clock
        self._sleep = sleep
        self._all = _Line(in_all)
        self._chats: dict[int, _Line] = {}
        self._told: deque[tuple[float, int, float]] = deque()
        self._swept = clock()

    @property
    def remembered(self) -> int:
        """How many chats are held in memory: those of about the last two minutes."""
        return len(self._chats)

    async def wait(self, chat_id: int) -> None:
        """Return when the next message may go to this chat; it counts as sent then.

        Those who wait for one chat are let through in the order in which they came.
        """
        line = self._line(chat_id)
        async with line.turn:
            await self._pass(line)

    def take(self, chat_id: int) -> bool:
        """Count a message that may as well not be sent; False, and not counted, if it may not be.

        Such messages leave half of every limit to those that are waited for.
        """
        now, line = self._clock(), self._line(chat_id)
        if not (line.is_half_free(now) and self._all.is_half_free(now)):
            return False
        line.sent.append(now)
        self._all.sent.append(now)
        return True

    def hold(self, chat_id: int, seconds: float) -> None:
        """Telegram refused a message and said to wait: nothing to this chat for so long.

        When several chats are told so within a second, all chats wait, for the shortest of the
        times. The refused message no longer counts as sent.
        """
        now = self._clock()
        line = self._line(chat_id)
        line.hold(now + seconds)
        if line.sent:
            line.sent.pop()
        self._told.append((now, chat_id, now + seconds))
        while self._told[0][0] < now - 1:
            self._told.popleft()
        if len({chat for _, chat, _ in self._told}) >= SEVERAL:
            self._all.hold(min(until for _, _, until in self._told))

    async def _pass(self, line: "_Line") -> None:
        while True:
            await self._until_free(line)
            async with self._all.turn:
                await self._until_free(self._all)
                now = self._clock()
                # A 429 of this chat may have come meanwhile.
                if line.free_at - now <= _EARLY:
                    line.sent.append(now)
                    self._all.sent.append(now)
                    return

    async def _until_free(self, line: "_Line") -> None:
        while (seconds := line.free_at - self._clock()) > _EARLY:
            await self._sleep(seconds)

    def _line(self, chat_id: int) -> "_Line":
        now = self._clock()
        if now - self._swept >= SWEEP_SECONDS:
            self._swept = now
            self._chats = {chat: line for chat, line in self._chats.items() if line.matters(now)}
        if chat_id not in self._chats:
            self._chats[chat_id] = _Line(self._per_group if chat_id < 0 else self._per_chat)
        return self._chats[chat_id]


class _Line:
    """What was sent to one chat, or to all, and who waits to send more."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.turn = asyncio.Lock()
        self.sent: deque[float] = deque(maxlen=max((limit.messages for limit in limits), default=0))
        self.held_until = float("-inf")

    @property
    def free_at(self) -> float:
        """The moment from which one more message is within the limits."""
        full = (limit for limit in self.limits if len(self.sent) >= limit.messages)
        return max(
            [self.held_until, *(self.sent[-limit.messages] + limit.seconds for limit in full)]
        )

    def is_half_free(self, now: float) -> bool:
        """Whether less than half of each limit is used, and nobody waits."""
        used = all(
            2 * sum(at > now - limit.seconds for at in self.sent) < limit.messages
            for limit in self.limits
        )
        return used and not self.turn.locked() and self.held_until <= now

    def hold(self, until: float) -> None:
        """Let nothing through before `until`."""
        self.held_until = max(self.held_until, until)

    def matters(self, now: float) -> bool:
        """Whether forgetting this line could let a message through too early."""
        longest = max((limit.seconds for limit in self.limits), default=0.0)
        recent = bool(self.sent) and self.sent[-1] + longest > now
        return self.turn.locked() or self.held_until > now or recent
