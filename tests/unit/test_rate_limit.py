"""Telegram's limits: when messages may be sent, on a clock of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from telegram.error import RetryAfter

from bot.telegram.rate_limit import MAX_IDLE, RateLimit
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

GROUP = -1_001_234
Work = Coroutine[Any, Any, None]


class Chats:
    """Sends messages at a limit, and keeps when each was sent."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self.loop = loop
        self.limit = RateLimit(clock=loop.time)
        self.sent: list[tuple[float, int]] = []

    async def send(self, chat_id: int, times: int = 1, after: float = 0) -> None:
        await asyncio.sleep(after)
        for _ in range(times):
            await self.limit.wait(chat_id)
            self.sent.append((round(self.loop.time(), 3), chat_id))

    async def hold(self, chat_id: int, seconds: float, after: float = 0) -> None:
        await asyncio.sleep(after)
        self.limit.hold(chat_id, seconds)

    async def request(self, endpoint: str, chat_id: int, optional: object = None) -> None:
        async def call() -> None:
            self.sent.append((self.loop.time(), chat_id))

        data = {"chat_id": chat_id}
        await self.limit.process_request(call, (), {}, endpoint, data, optional)  # type: ignore[arg-type]

    def times(self, chat_id: int) -> list[float]:
        return [time for time, chat in self.sent if chat == chat_id]


def sent(work: Callable[[Chats], list[Work]]) -> Chats:
    """What was sent when all this work is done at once."""

    async def run(loop: VirtualTimeLoop) -> Chats:
        chats = Chats(loop)
        await asyncio.gather(*work(chats))
        return chats

    return in_virtual_time(run)


def most_in(times: list[float], seconds: float) -> int:
    """The most messages in any span of `seconds`."""
    return max(sum(start <= time < start + seconds for time in times) for start in times)


def test_a_chat_gets_three_messages_in_three_seconds_in_their_order() -> None:
    order: list[str] = []

    async def send(chats: Chats, name: str, after: float) -> None:
        await chats.send(1, after=after)
        order.append(name)

    chats = sent(lambda chats: [send(chats, name, after) for after, name in enumerate("abcdefg")])
    assert order == [*"abcdefg"]
    assert sent(lambda chats: [chats.send(1, times=7)]).times(1) == [0, 0, 0, 3, 3, 3, 6]
    assert most_in(chats.times(1), 3) == 3


def test_a_group_gets_20_messages_in_any_minute() -> None:
    times = sent(lambda chats: [chats.send(GROUP, times=45)]).times(GROUP)
    assert (most_in(times, 60), most_in(times, 3)) == (20, 3)
    assert (times[20], times[40]) == (60, 120)


def test_all_chats_get_30_messages_in_any_second_and_a_busy_one_takes_none_of_others() -> None:
    times = [time for time, _ in sent(lambda chats: [*map(chats.send, range(1, 101))]).sent]
    assert [times.count(second) for second in (0, 1, 2, 3)] == [30, 30, 30, 10]
    busy = sent(lambda chats: [chats.send(1, times=200), *map(chats.send, range(2, 29))])
    assert [busy.times(chat) for chat in range(2, 29)] == [[0]] * 27
    assert busy.times(1)[-1] == 198


def test_a_chat_that_must_wait_waits_exactly_so_long_and_holds_up_no_other() -> None:
    chats = sent(
        lambda chats: [
            chats.hold(1, 17),
            chats.hold(3, 5),
            *(chats.send(chat, after=0.5) for chat in (1, 2, 3)),
        ]
    )
    assert chats.sent == [(0.5, 2), (5, 3), (17, 1)]
    crowd = sent(lambda chats: [*map(chats.send, range(1, 33)), chats.hold(31, 10, after=0.5)])
    assert (crowd.times(31), crowd.times(32)) == ([10.5], [1])


def test_idle_chats_are_forgotten_and_those_that_must_wait_are_not() -> None:
    async def later(chats: Chats) -> None:
        chats.limit.hold(5000, 1000)
        await asyncio.sleep(200)
        for chat in range(6000, 6001 + MAX_IDLE):
            chats.limit.hold(chat, -1)
        assert len(chats.limit._chats) < MAX_IDLE
        await chats.send(5000)

    assert sent(lambda chats: [later(chats)]).times(5000) == [1000]


@pytest.mark.parametrize(
    ("endpoint", "chat_id", "counts"),
    [
        ("sendMessage", 1, True),
        ("sendVoice", 1, True),
        ("editMessageText", GROUP, True),
        ("editMessageText", 1, False),
        ("sendChatAction", GROUP, False),
        ("sendMessageDraft", 1, False),
    ],
)
def test_messages_count_and_signs_of_life_never_wait(
    endpoint: str, chat_id: int, counts: bool
) -> None:
    chats = sent(lambda chats: [chats.request(endpoint, chat_id) for _ in range(4)])
    assert chats.times(chat_id) == [0, 0, 0, 3 if counts else 0]


def test_an_optional_message_is_refused_while_half_of_a_limit_is_used() -> None:
    async def work(chats: Chats) -> None:
        for _ in range(2):
            await chats.request("sendMessage", GROUP)
        with pytest.raises(RetryAfter):
            await chats.request("editMessageText", GROUP, "optional")

    sent(lambda chats: [work(chats)])
