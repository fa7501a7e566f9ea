"""Telegram's rate limits, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from telegram.error import RetryAfter

from bot.telegram.rate_limit import RateLimit
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

GROUP = -1_001_234


class Chats:
    """Sends messages within the limits, and records the time of each."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self.loop = loop
        self.limit = RateLimit(clock=loop.time)
        self.sent: list[tuple[float, int]] = []

    async def send(self, chat_id: int, times: int = 1, after: float = 0) -> None:
        await asyncio.sleep(after)
        for _ in range(times):
            await self.request("sendMessage", chat_id)

    async def request(
        self, endpoint: str, chat_id: int, optional: object = None
    ) -> None:
        async def call() -> None:
            self.sent.append((round(self.loop.time(), 3), chat_id))

        data = {"chat_id": chat_id}
        await self.limit.process_request(call, (), {}, endpoint, data, optional)  # type: ignore[arg-type]

    def times(self, chat_id: int) -> list[float]:
        return [time for time, chat in self.sent if chat == chat_id]


def run_together(work: Callable[[Chats], list[Coroutine[Any, Any, None]]]) -> Chats:
    """Run all coroutines of `work` concurrently; return the chats with the messages sent."""

    async def run(loop: VirtualTimeLoop) -> Chats:
        chats = Chats(loop)
        await asyncio.gather(*work(chats))
        return chats

    return in_virtual_time(run)


def test_a_chat_gets_three_messages_in_three_seconds_and_a_group_20_in_a_minute() -> (
    None
):
    assert run_together(lambda chats: [chats.send(1, times=7)]).times(1) == [
        0,
        0,
        0,
        3,
        3,
        3,
        6,
    ]
    times = run_together(lambda chats: [chats.send(GROUP, times=45)]).times(GROUP)
    assert (times[:7], times[20], times[40]) == ([0, 0, 0, 3, 3, 3, 6], 60, 120)


def test_all_chats_get_30_messages_a_second_and_a_busy_chat_delays_no_other() -> None:
    times = [
        time
        for time, _ in run_together(
            lambda chats: [*map(chats.send, range(1, 101))]
        ).sent
    ]
    assert [times.count(second) for second in (0, 1, 2, 3)] == [30, 30, 30, 10]
    busy = run_together(
        lambda chats: [chats.send(1, times=200), *map(chats.send, range(2, 29))]
    )
    assert [busy.times(chat) for chat in range(2, 29)] == [[0]] * 27
    assert busy.times(1)[-1] == 198


def test_a_paused_chat_waits_exactly_as_asked_and_delays_no_other() -> None:
    async def pause(
        chats: Chats, chat_id: int, seconds: float, after: float = 0
    ) -> None:
        await asyncio.sleep(after)
        chats.limit.pause(chat_id, seconds)

    chats = run_together(
        lambda chats: [
            pause(chats, 1, 17),
            pause(chats, 3, 5),
            *(chats.send(chat, after=0.5) for chat in (1, 2, 3)),
        ]
    )
    assert chats.sent == [(0.5, 2), (5, 3), (17, 1)]
    crowd = run_together(
        lambda chats: [*map(chats.send, range(1, 33)), pause(chats, 31, 10, after=0.5)]
    )
    assert (crowd.times(31), crowd.times(32)) == ([10.5], [1])


@pytest.mark.parametrize(
    ("endpoint", "chat_id", "counts"),
    [
        ("sendVoice", 1, True),
        ("editMessageText", GROUP, True),
        ("editMessageText", 1, False),
        ("sendChatAction", GROUP, False),
        ("sendMessageDraft", 1, False),
    ],
)
def test_messages_count_but_drafts_and_typing_never_wait(
    endpoint: str, chat_id: int, counts: bool
) -> None:
    chats = run_together(
        lambda chats: [chats.request(endpoint, chat_id) for _ in range(4)]
    )
    assert chats.times(chat_id) == [0, 0, 0, 3 if counts else 0]


def test_an_optional_message_is_refused_if_it_would_have_to_wait() -> None:
    async def work(chats: Chats) -> None:
        for _ in range(3):
            await chats.request("editMessageText", GROUP, "optional")
        with pytest.raises(RetryAfter):
            await chats.request("editMessageText", GROUP, "optional")

    run_together(lambda chats: [work(chats)])
