"""When messages may go, told by a clock of its own: no test here takes real time."""

import asyncio
from collections.abc import Coroutine
from heapq import heappop, heappush

import pytest
from telegram.error import RetryAfter

from bot.telegram.rate_limit import RateLimit

GROUP = -1_001_234


class FakeTime:
    """A clock that stands still until everyone sleeps, then jumps to whoever wakes first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._sleepers, (self.now + seconds, self._count, woken))
        await woken

    async def run(self, *work: Coroutine[object, object, None]) -> None:
        """Do all `work` at once, to its end."""
        tasks = [asyncio.create_task(one) for one in work]
        while True:
            await settle()
            if all(task.done() for task in tasks):
                break
            self.now, _, woken = heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
        for task in tasks:
            task.result()


async def settle() -> None:
    """Let every task go on until it waits for time."""
    for _ in range(50):
        await asyncio.sleep(0)


class Chats:
    """Sends messages at a limit, and keeps when each went."""

    def __init__(self, limit: RateLimit | None = None) -> None:
        self.time = FakeTime()
        self.limit = limit or RateLimit(clock=self.time.clock, sleep=self.time.sleep)
        self.sent: list[tuple[float, int]] = []

    async def send(self, chat_id: int, times: int = 1, after: float = 0) -> None:
        if after:
            await self.time.sleep(after)
        for _ in range(times):
            await self.limit.wait(chat_id)
            self.sent.append((self.time.now, chat_id))

    async def hold(self, chat_id: int, seconds: float, after: float = 0) -> None:
        await self.send(chat_id, after=after)
        self.sent.pop()
        self.limit.hold(chat_id, seconds)

    async def told(self, chat_id: int, seconds: float, after: float) -> None:
        await self.time.sleep(after)
        self.limit.hold(chat_id, seconds)

    def times(self, chat_id: int) -> list[float]:
        return [time for time, chat in self.sent if chat == chat_id]


@pytest.fixture
def chats() -> Chats:
    return Chats()


def most_in(times: list[float], seconds: float) -> int:
    """The most messages in any span of `seconds`."""
    return max(sum(start <= time < start + seconds for time in times) for start in times)


async def test_a_chat_gets_a_few_messages_at_once_and_then_one_a_second(chats: Chats) -> None:
    await chats.time.run(chats.send(1, times=7))
    assert chats.times(1) == [0, 0, 0, 3, 3, 3, 6]


async def test_a_group_gets_20_messages_in_any_minute(chats: Chats) -> None:
    await chats.time.run(chats.send(GROUP, times=45))
    times = chats.times(GROUP)
    assert most_in(times, 60) == 20
    assert most_in(times, 3) == 3
    assert times[20] == 60
    assert times[40] == 120


async def test_all_chats_together_get_30_messages_in_any_second(chats: Chats) -> None:
    await chats.time.run(*(chats.send(chat) for chat in range(1, 101)))
    times = [time for time, _ in chats.sent]
    assert [times.count(second) for second in (0, 1, 2, 3)] == [30, 30, 30, 10]


async def test_nobody_overtakes_those_who_wait_for_the_same_chat(chats: Chats) -> None:
    order: list[tuple[str, float]] = []

    async def send(name: str, after: float = 0) -> None:
        if after:
            await chats.time.sleep(after)
        await chats.limit.wait(1)
        order.append((name, chats.time.now))

    await chats.time.run(send("late", after=3), *(send(name) for name in "abcdef"))
    assert order == [*((name, 0) for name in "abc"), *((name, 3) for name in "def"), ("late", 6)]


async def test_a_busy_chat_does_not_use_up_what_others_may_send(chats: Chats) -> None:
    busy = [chats.send(1) for _ in range(200)]
    others = [chats.send(chat) for chat in range(2, 29)]
    await chats.time.run(*busy, *others)
    assert [chats.times(chat) for chat in range(2, 29)] == [[0]] * 27
    assert chats.times(1)[-1] == 198


async def test_a_held_chat_waits_exactly_as_long_as_told_and_no_other_does(chats: Chats) -> None:
    await chats.time.run(chats.hold(1, 17))
    await chats.time.run(chats.send(1), chats.send(2), chats.send(3, after=1))
    assert chats.sent == [(0, 2), (1, 3), (17, 1)]


async def test_a_hold_reaches_those_who_wait_for_the_budget_of_all(chats: Chats) -> None:
    crowd = [chats.send(chat) for chat in range(1, 33)]
    await chats.time.run(*crowd, chats.told(31, 10, after=0.5))
    assert (chats.times(31), chats.times(32)) == ([10.5], [1])


async def test_chats_told_to_wait_hold_only_themselves(chats: Chats) -> None:
    await chats.time.run(chats.hold(1, 9), chats.hold(2, 8), chats.hold(3, 5))
    await chats.time.run(*(chats.send(chat) for chat in (1, 2, 3, 4)))
    assert chats.sent == [(0, 4), (5, 3), (8, 2), (9, 1)]


async def test_idle_chats_are_forgotten_and_those_that_matter_are_not(chats: Chats) -> None:
    await chats.time.run(*(chats.send(chat) for chat in range(1, 301)))
    assert len(chats.limit._chats) == 300
    chats.limit.hold(5000, 1000)
    await chats.time.run(chats.send(6000, after=200))
    assert len(chats.limit._chats) == 2
    await chats.time.run(chats.send(5000))
    assert chats.times(5000) == [9 + 1000]


async def test_who_gives_up_waiting_does_not_stop_the_next(chats: Chats) -> None:
    await chats.time.run(chats.send(1, times=3))
    gone = asyncio.create_task(chats.send(1))
    await settle()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    await chats.time.run(chats.send(1))
    assert chats.times(1) == [0, 0, 0, 3]


async def test_without_limits_nothing_waits() -> None:
    chats = Chats(RateLimit((), (), ()))
    await chats.time.run(chats.send(1, times=100), chats.send(GROUP, times=100))
    assert [time for time, _ in chats.sent] == [0] * 200


@pytest.mark.parametrize(
    ("endpoint", "chat_id", "counts"),
    [
        ("sendMessage", 1, True),
        ("sendVoice", 1, True),
        ("editMessageText", GROUP, True),
        ("editMessageText", 1, False),
        ("sendChatAction", GROUP, False),
        ("sendMessageDraft", 1, False),
        ("answerCallbackQuery", None, False),
    ],
)
async def test_messages_count_and_signs_of_life_never_wait(
    chats: Chats, endpoint: str, chat_id: int | None, counts: bool
) -> None:
    made: list[float] = []

    async def call() -> bool:
        made.append(chats.time.now)
        return True

    async def request() -> None:
        data = {"chat_id": chat_id} if chat_id else {}
        await chats.limit.process_request(call, (), {}, endpoint, data, None)

    await chats.time.run(*(request() for _ in range(4)))
    assert made == [0, 0, 0, 3 if counts else 0]


async def test_an_optional_message_is_refused_while_half_of_a_limit_is_used(chats: Chats) -> None:
    async def call() -> bool:
        return True

    data = {"chat_id": GROUP}
    for _ in range(2):
        await chats.limit.process_request(call, (), {}, "sendMessage", data, None)
    with pytest.raises(RetryAfter):
        await chats.limit.process_request(call, (), {}, "editMessageText", data, "optional")
