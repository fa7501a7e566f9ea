"""Keep the bot's messages within Telegram's limits: per chat, per group and overall."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple, TypeVar

from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter

from agent.servers import Sleep

Priority = Literal["optional", "counted"]
"""The `rate_limit_args` of a message.

An "optional" message is not sent if it would have to wait. A "counted" one has waited already, in
`RateLimit.wait`.
"""
COUNTED: Final[Priority] = "counted"
R = TypeVar("R")
"""What a request to Telegram returns."""


class Limit(NamedTuple):
    """At most `messages` in any span of `seconds`."""

    messages: int
    seconds: float


PER_CHAT: Final = (Limit(3, 3),)
"""One message a second on average. Yet three parts of an answer go out at once."""
PER_GROUP: Final = (*PER_CHAT, Limit(20, 60))
OVERALL: Final = (Limit(30, 1),)
"""The limits of all chats together."""

COUNTED_METHODS: Final = frozenset({"sendMessage", "sendDocument", "sendVoice"})
"""Methods that count as messages. Edits count too, but only in groups."""
MAX_CHATS: Final = 10_000
"""How many chats are kept in memory. The least recently used one is removed first."""
CLOCK_TOLERANCE: Final = 1e-6
"""A shorter wait, in seconds, is none: `sleep` may return a little too early."""


class _Window:
    """The times of the last messages to one chat, or to all chats, and their limits."""

    def __init__(self, limits: tuple[Limit, ...]) -> None:
        self.limits = limits
        self.queue = asyncio.Lock()
        """Held by the message that is sent next."""
        max_messages = max((limit.messages for limit in limits), default=0)
        self.sent_at: deque[float] = deque(maxlen=max_messages)
        """The times of the last messages. No limit needs earlier ones."""
        self.paused_until = float("-inf")
        """The time until which Telegram has asked to wait."""

    @property
    def free_at(self) -> float:
        """Return the time from which one more message is within the limits."""
        free_at = self.paused_until
        for count, seconds in self.limits:
            if len(self.sent_at) >= count:
                # One more is allowed once the first of the last `count` is `seconds` old.
                free_at = max(free_at, self.sent_at[-count] + seconds)
        return free_at


class RateLimit(BaseRateLimiter[Priority]):
    """Delays messages until Telegram's limits allow them.

    A message waits for the limits of its chat first, and only then for the overall limits. So a
    busy chat does not delay the others. If Telegram refuses a message with status 429, only the
    chat of the message waits. The limits are those of one process: if there are several replicas,
    give each a share of `overall`.
    """

    def __init__(
        self,
        per_chat: tuple[Limit, ...] = PER_CHAT,
        per_group: tuple[Limit, ...] = PER_GROUP,
        overall: tuple[Limit, ...] = OVERALL,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._per_chat = per_chat
        self._per_group = per_group
        self._clock = clock
        self._sleep = sleep
        self._overall = _Window(overall)
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
        rate_limit_args: Priority | None,
    ) -> R:
        """Make a request as soon as the limits allow it.

        Raises:
            RetryAfter: Telegram answers 429, or an optional message would have to wait.
        """
        chat_id = data.get("chat_id")
        if not isinstance(chat_id, int):
            return await callback(*args, **kwargs)
        priority = rate_limit_args
        is_counted = _is_counted(endpoint, chat_id)
        if is_counted and priority is None:
            await self._wait_and_count(self._window(chat_id))
        is_optional = is_counted and priority == "optional"
        if is_optional and not self.count_if_allowed_now(chat_id):
            raise RetryAfter(timedelta(seconds=1))
        try:
            return await callback(*args, **kwargs)
        except RetryAfter as error:
            if is_counted or priority == COUNTED:
                self.pause(chat_id, retry_seconds(error), was_counted=is_counted)
            raise

    async def wait(self, chat_id: int, *, counts: bool = True) -> None:
        """Wait until a message may be sent to a chat, and count it.

        If `counts` is False, the message is not counted, and only waits if Telegram has asked to
        wait. Afterwards the sender makes the request with `COUNTED`, so that it does not wait
        again. If the sender is cancelled while it waits here, it knows that nothing was sent.
        """
        chat = self._window(chat_id)
        if counts:
            await self._wait_and_count(chat)
            return
        # While this waits, Telegram may ask to wait longer.
        seconds = chat.paused_until - self._clock()
        while seconds > CLOCK_TOLERANCE:
            await self._sleep(seconds)
            seconds = chat.paused_until - self._clock()

    def count_if_allowed_now(self, chat_id: int) -> bool:
        """Return whether a message may be sent now. If it may, it is counted."""
        chat = self._window(chat_id)
        if chat.queue.locked() or self._overall.queue.locked():
            # Messages that wait come first.
            return False
        return self._count_if_allowed(chat)

    def pause(self, chat_id: int, seconds: float, *, was_counted: bool = True) -> None:
        """Send nothing to a chat for some seconds, because Telegram has refused a message.

        If the message was counted, take it out of the count.
        """
        chat = self._window(chat_id)
        chat.paused_until = max(chat.paused_until, self._clock() + seconds)
        if was_counted and chat.sent_at:
            chat.sent_at.pop()

    async def _wait_and_count(self, chat: _Window) -> None:
        """Wait until a message may be sent to a chat, and count it. First come, first served."""
        async with chat.queue:
            while True:
                await self._wait_until_free(chat)
                async with self._overall.queue:
                    await self._wait_until_free(self._overall)
                    # While the message waited for others, its chat may have been paused.
                    if self._count_if_allowed(chat):
                        return

    async def _wait_until_free(self, window: _Window) -> None:
        seconds = window.free_at - self._clock()
        while seconds > CLOCK_TOLERANCE:
            await self._sleep(seconds)
            seconds = window.free_at - self._clock()

    def _count_if_allowed(self, chat: _Window) -> bool:
        """If a message to a chat may be sent now, count it. Return whether it may."""
        now = self._clock()
        free_at = max(chat.free_at, self._overall.free_at)
        if free_at - now > CLOCK_TOLERANCE:
            return False
        chat.sent_at.append(now)
        self._overall.sent_at.append(now)
        return True

    def _window(self, chat_id: int) -> _Window:
        """Return the window of a chat, which becomes the most recently used one."""
        chat = self._chats.pop(chat_id, None)
        if chat is None:
            limits = self._per_chat
            is_group = chat_id < 0
            if is_group:
                limits = self._per_group
            chat = _Window(limits)
        self._chats[chat_id] = chat
        if len(self._chats) > MAX_CHATS:
            least_recent = next(iter(self._chats))
            del self._chats[least_recent]
        return chat


def _is_counted(endpoint: str, chat_id: int) -> bool:
    """Return whether Telegram's limits count a request as a message to a chat."""
    is_group_edit = endpoint == "editMessageText" and chat_id < 0
    return endpoint in COUNTED_METHODS or is_group_edit


def retry_seconds(error: RetryAfter) -> float:
    """Return how many seconds Telegram asks to wait."""
    seconds = error.retry_after
    if isinstance(seconds, timedelta):
        return seconds.total_seconds()
    return seconds
