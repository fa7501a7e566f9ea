"""Keep the bot's messages within Telegram's limits: per chat, per group and in all."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple, TypeVar

from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter

from agent.retrying import Sleep

Optional = Literal["optional"]
"""Passed as `rate_limit_args` with a message that need not be sent."""
R = TypeVar("R")


class Limit(NamedTuple):
    """At most `messages` in any span of `seconds`."""

    messages: int
    seconds: float


Limits = tuple[Limit, ...]

PER_CHAT: Final = (Limit(3, 3),)
"""About one a second, while an answer in a few parts goes out at once."""
PER_GROUP: Final = (*PER_CHAT, Limit(20, 60))
IN_ALL: Final = (Limit(30, 1),)

MESSAGES: Final = frozenset({"sendMessage", "sendDocument", "sendVoice"})
"""Methods that count; an edit counts in groups only, drafts and typing never."""
MOST_CHATS: Final = 10_000
"""The most chats that are remembered; the one that was sent nothing for longest goes first."""
EARLY: Final = 1e-6
"""Seconds by which a clock may wake us too early without another sleep."""


class _Window:
    """The messages sent to one chat, or to all: when they were sent, and when one more may be."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.turn = asyncio.Lock()
        """Held by the message that is sent next."""
        self.sent: deque[float] = deque(maxlen=max((limit.messages for limit in limits), default=0))
        self.held_until = float("-inf")

    @property
    def free_at(self) -> float:
        """Return the moment from which one more message is within the limits."""
        full = (limit for limit in self.limits if len(self.sent) >= limit.messages)
        return max([self.held_until, *(self.sent[-count] + seconds for count, seconds in full)])


class RateLimit(BaseRateLimiter[Optional]):
    """Delays messages until Telegram's limits allow them.

    A message waits for the limits of its chat first and only then for the limit of all chats, so no
    chat holds up another. After a 429 only its chat waits. The limits are those of this process: of
    several replicas, give each its share of `in_all`.
    """

    def __init__(
        self,
        per_chat: Limits = PER_CHAT,
        per_group: Limits = PER_GROUP,
        in_all: Limits = IN_ALL,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._per_chat, self._per_group = per_chat, per_group
        self._clock, self._sleep = clock, sleep
        self._all = _Window(in_all)
        self._chats: dict[int, _Window] = {}

    async def initialize(self) -> None:
        """Do nothing."""

    async def shutdown(self) -> None:
        """Do nothing."""

    async def process_request(  # noqa: PLR0917 - as the library calls it
        self,
        callback: Callable[..., Coroutine[Any, Any, R]],
        args: Any,
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],
        rate_limit_args: Optional | None,
    ) -> R:
        """Make a request when the limits allow it.

        Raises:
            RetryAfter: Telegram said so, or the message is optional and would have to wait.
        """
        chat_id = data.get("chat_id")
        is_counted = endpoint in MESSAGES or (endpoint == "editMessageText" and (chat_id or 0) < 0)
        if not isinstance(chat_id, int) or not is_counted:
            return await callback(*args, **kwargs)
        if rate_limit_args is None:
            await self._wait(self._window(chat_id))
        elif not self.take(chat_id):
            raise RetryAfter(timedelta(seconds=1))
        try:
            return await callback(*args, **kwargs)
        except RetryAfter as error:
            self.hold(chat_id, seconds_of(error))
            raise

    def take(self, chat_id: int) -> bool:
        """Count a message that need not be sent; return False if it would have to wait."""
        chat = self._window(chat_id)
        has_waiting = chat.turn.locked() or self._all.turn.locked()
        return not has_waiting and self._take_now(chat)

    def hold(self, chat_id: int, seconds: float) -> None:
        """Send nothing to this chat for so long; the message that was refused does not count."""
        chat = self._window(chat_id)
        chat.held_until = max(chat.held_until, self._clock() + seconds)
        if chat.sent:
            chat.sent.pop()

    async def _wait(self, chat: _Window) -> None:
        """Return when a message may go to this chat, and count it; first come, first served."""
        async with chat.turn:
            while True:
                await self._until_free(chat)
                async with self._all.turn:
                    await self._until_free(self._all)
                    # A 429 of this chat may have come while we waited for all chats.
                    if self._take_now(chat):
                        return

    async def _until_free(self, window: _Window) -> None:
        while (seconds := window.free_at - self._clock()) > EARLY:
            await self._sleep(seconds)

    def _take_now(self, chat: _Window) -> bool:
        """Count a message if the limits allow it now; return whether they do."""
        now, windows = self._clock(), (chat, self._all)
        is_free = all(window.free_at - now <= EARLY for window in windows)
        for window in windows if is_free else ():
            window.sent.append(now)
        return is_free

    def _window(self, chat_id: int) -> _Window:
        """Return the window of a chat, which is now the one that was used last."""
        chat = self._chats.pop(chat_id, None)
        if chat is None:
            chat = _Window(self._per_group if chat_id < 0 else self._per_chat)
        self._chats[chat_id] = chat
        if len(self._chats) > MOST_CHATS:
            del self._chats[next(iter(self._chats))]
        return chat


def seconds_of(error: RetryAfter) -> float:
    """Return how long Telegram asks to wait."""
    seconds = error.retry_after
    return seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
