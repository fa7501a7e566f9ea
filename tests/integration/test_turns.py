"""From accepted updates to turns: bursts, albums, edits, tries, what is set aside and retried.

The repository is the real one, on both databases; the queue is one that can be interrupted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy.exc import OperationalError

from agent.engine.run import StepsChanged
from bot.metrics import Metrics
from bot.updates.bursts import chat_of
from bot.updates.journal import DurableSettings, DurableTurns, open_turns
from bot.updates.lanes import TRIES_IN_COMPANY, Lanes
from db.engine import Sessions
from db.repositories.updates import SqlUpdateRepository
from tests.doubles.server import eventually

R = TypeVar("R")
CHAT = 7
LANE = "7"
READY = asyncio.Event()
READY.set()
START = datetime(2026, 5, 1, tzinfo=UTC)
BURST = timedelta(milliseconds=800)


class Killed(BaseException):
    """The process ends here."""


@dataclass
class FakeQueue:
    """Remembers what was enqueued, and the steps of one turn across its interruptions."""

    enqueued: list[tuple[int, str, int]] = field(default_factory=list)
    recorded: list[tuple[str, object]] = field(default_factory=list)
    active: set[int] = field(default_factory=set)
    _at: int = 0

    async def finish(self, seconds: float) -> bool:
        return not self.active

    async def forget(self) -> int:
        return 0

    async def enqueue(self, update_id: int, lane: str, retry: int = 0) -> None:
        self.enqueued.append((update_id, lane, retry))

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        if self._at < len(self.recorded):
            was, result = self.recorded[self._at]
            self._at += 1
            if was != name:
                raise StepsChanged(name)
            return result  # type: ignore[return-value]
        result_now = await run()
        self.recorded.append((name, result_now))
        self._at += 1
        return result_now

    async def steps_recorded(self) -> Sequence[str]:
        return [name for name, _ in self.recorded]

    def start_again(self) -> None:
        """The process is there again and runs the turn from its beginning."""
        self._at = 0

    def next_turn(self) -> None:
        self.recorded.clear()
        self._at = 0


class ForgetfulQueue(FakeQueue):
    """Records no step, so that several turns can use it at once."""

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        return await run()


@dataclass
class Clock:
    """The time that updates are received at."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, milliseconds: int) -> None:
        self.now += timedelta(milliseconds=milliseconds)

    async def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class World:
    """Turns over a real repository, and what people and handlers saw of them."""

    lanes: Lanes
    updates: SqlUpdateRepository
    queue: FakeQueue
    clock: Clock
    handled: list[Mapping[str, Any]]
    told: list[int]
    failing: list[BaseException]
    """What the handler raises, the next times it is called."""

    async def hear(self, update_id: int, text: str = "", after: int = 0, **fields: object) -> None:
        """Accept a message, `after` milliseconds later than what was before."""
        self.clock.pass_(after)
        await self.lanes.accept([message(update_id, text, **fields)])

    async def run(self, *update_ids: int) -> None:
        """Run turns as the queue would, a while later."""
        self.clock.pass_(10_000)
        for update_id in update_ids:
            self.queue.next_turn()
            await self.lanes.run(update_id)

    async def run_again(self, update_id: int) -> None:
        """The same turn after the process was killed in it, and is there again after a while."""
        self.clock.pass_(10_000)
        self.queue.start_again()
        await self.lanes.run(update_id)

    def texts(self) -> list[str]:
        """What the turns that were handled were about."""
        return [words(each) for each in self.handled]


def message(update_id: int, text: str = "", **fields: object) -> dict[str, Any]:
    said = {"text": text} if text else {}
    person = {"id": CHAT, "is_bot": False, "first_name": "Ada"}
    chat = {"id": CHAT, "type": "private"}
    base = {"message_id": update_id * 10, "date": 0, "chat": chat, "from": person}
    return {"update_id": update_id, "message": base | said | fields}


def edit(update_id: int, of: int, text: str) -> dict[str, Any]:
    return {"update_id": update_id, "edited_message": message(of, text)["message"]}


def words(payload: Mapping[str, Any]) -> str:
    said = payload.get("message") or payload["edited_message"]
    return str(said.get("text", said.get("caption", "")))


class KilledAfter:
    """A repository; once one of its methods has committed for the first time, the process ends."""

    def __init__(self, updates: SqlUpdateRepository, method: str) -> None:
        self._updates = updates
        self._method = method

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*arguments: object) -> Any:
            result = await getattr(self._updates, name)(*arguments)
            if name == self._method:
                self._method = ""
                raise Killed
            return result

        return call


@pytest.fixture
def world(sessions: Sessions) -> World:
    clock, queue = Clock(), FakeQueue()
    updates = SqlUpdateRepository(sessions, clock)
    handled: list[Mapping[str, Any]] = []
    told: list[int] = []
    failing: list[BaseException] = []

    async def handle(payload: Mapping[str, Any]) -> None:
        if failing:
            raise failing.pop(0)
        handled.append(payload)

    async def give_up(payload: Mapping[str, Any], error: str) -> None:
        told.append(chat_of(payload))

    lanes = Lanes(
        updates=updates,
        queue=queue,
        metrics=Metrics(),
        handle=handle,
        readable=lambda payload: True,
        give_up=give_up,
        burst=BURST,
        max_tries=3,
        now=clock,
        sleep=clock.sleep,
    )
    return World(lanes, updates, queue, clock, handled, told, failing)


async def test_an_update_that_is_delivered_twice_is_one_turn(world: World) -> None:
    await world.hear(1, "red?")
    await world.hear(1, "red?")
    assert world.queue.enqueued == [(1, LANE, 0), (1, LANE, 0)]  # the same workflow
    await world.run(1, 1)
    assert world.texts() == ["red?"]


async def test_messages_sent_in_one_go_are_one_turn_under_the_first_one_s_id(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=700)
    await world.hear(3, "under 25", after=800)
    await world.run(1, 2, 3)
    assert world.texts() == ["a red\nfor lamb\nunder 25"]
    assert world.handled[0]["update_id"] == 1
    assert [(await stored(world, n)).state for n in (1, 2, 3)] == ["done"] * 3
    assert [(await stored(world, n)).payload for n in (1, 2, 3)] == [{}] * 3


async def test_a_turn_waits_for_the_end_of_a_burst(world: World) -> None:
    turns = replace(
        world.lanes,
        updates=SqlUpdateRepository(world.updates._sessions),
        burst=timedelta(seconds=2),
        now=lambda: datetime.now(UTC),
    )
    await turns.accept([message(1, "a red")])
    running = asyncio.create_task(turns.run(1))
    await asyncio.sleep(0.1)
    await turns.accept([message(2, "for lamb")])
    await running
    assert world.texts() == ["a red\nfor lamb"]


async def test_a_message_after_a_pause_is_a_turn_of_its_own(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "and a white", after=801)
    await world.run(1, 2)
    assert world.texts() == ["a red", "and a white"]


@pytest.mark.parametrize("second", ["/new", "/help me"])
async def test_a_command_is_never_part_of_a_burst(world: World, second: str) -> None:
    await world.hear(1, "a red")
    await world.hear(2, second, after=100)
    await world.hear(3, "a white", after=100)
    await world.run(1, 2, 3)
    assert world.texts() == ["a red", second, "a white"]


async def test_two_people_of_a_group_are_two_turns(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "a white", after=10, **{"from": {"id": 8, "first_name": "Bob"}})
    await world.run(1, 2)
    assert world.texts() == ["a red", "a white"]


async def test_two_topics_of_a_group_are_two_turns(world: World) -> None:
    await world.hear(1, "a red", message_thread_id=1)
    await world.hear(2, "a white", after=10, message_thread_id=2)
    await world.run(1, 2)
    assert world.texts() == ["a red", "a white"]


async def test_an_album_is_one_turn_with_its_caption(world: World) -> None:
    photo: dict[str, Any] = {"photo": [{"file_id": "x"}], "media_group_id": "album"}
    await world.hear(1, **photo)
    await world.hear(2, after=2000, **photo, caption="these labels")
    await world.hear(3, after=2000, **photo)
    await world.run(1, 2, 3)
    assert world.texts() == ["these labels"]


async def test_a_burst_is_at_most_fifty_messages(world: World) -> None:
    for number in range(1, 61):
        await world.hear(number, str(number), after=1)
    await world.run(*range(1, 61))
    assert [len(text.split("\n")) for text in world.texts()] == [50, 10]


async def test_a_kill_once_a_burst_is_taken_loses_none_of_it(world: World) -> None:
    world.lanes = replace(world.lanes, updates=KilledAfter(world.updates, "take"))
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=100)
    with pytest.raises(Killed):
        await world.run(1)
    await world.hear(3, "quickly", after=0)
    await world.run_again(1)
    await world.run(2, 3)
    assert world.texts() == ["a red\nfor lamb", "quickly"]


async def test_a_kill_before_the_end_is_recorded_answers_once(world: World) -> None:
    world.lanes = replace(world.lanes, updates=KilledAfter(world.updates, "done"))
    await world.hear(1, "a red")
    with pytest.raises(Killed):
        await world.run(1)
    await world.run_again(1)
    assert world.texts() == ["a red"]


async def test_an_edit_of_what_still_waits_changes_it(world: World) -> None:
    await world.hear(1, "a red")
    await world.lanes.accept([edit(2, 1, "a white")])
    assert world.queue.enqueued == [(1, LANE, 0)]
    await world.run(1)
    assert world.texts() == ["a white"]


async def test_an_edit_during_the_turn_is_a_turn_of_its_own(world: World) -> None:
    await world.hear(1, "a red")
    world.failing.append(Killed())
    with pytest.raises(Killed):
        await world.run(1)
    await world.lanes.accept([edit(2, 1, "a white")])
    assert world.queue.enqueued == [(1, LANE, 0), (2, LANE, 0)]
    await world.run_again(1)
    await world.run(2)
    assert world.texts() == ["a red", "a white"]


async def test_an_edit_afterwards_finds_the_turn_of_its_message(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=100)
    await world.run(1)
    await world.lanes.accept([edit(3, 2, "for fish")])
    assert world.queue.enqueued[-1] == (3, LANE, 0)
    assert await world.updates.turn_of(CHAT, 20) == 1


async def test_what_fails_twice_is_answered_by_the_third_try(world: World) -> None:
    await world.hear(1, "a red")
    world.failing += [ValueError(), ValueError()]
    await world.run(1)
    assert world.texts() == ["a red"]
    assert world.told == []


async def test_what_fails_three_times_is_set_aside_and_the_person_told_once(world: World) -> None:
    await world.hear(1, "poison")
    world.failing += [ValueError("with private words")] * 3
    await world.run(1)
    assert world.told == [CHAT]
    (aside,) = await world.updates.set_aside_list()
    assert (aside.update_id, aside.tries, aside.error) == (1, 3, "ValueError")
    await world.run(1)
    assert (world.texts(), world.told) == ([], [CHAT])


async def test_what_kills_the_process_is_set_aside_after_three_tries_alone(world: World) -> None:
    await world.hear(1, "poison")
    world.failing += [Killed()] * 5
    for _ in range(TRIES_IN_COMPANY + 3):
        assert await world.updates.set_aside_list() == []
        with pytest.raises(Killed):
            await world.run_again(1)
    await world.run_again(1)
    assert world.told == [CHAT]
    (aside,) = await world.updates.set_aside_list()
    assert "died" in str(aside.error)


async def test_who_may_have_killed_the_process_runs_alone_and_nobody_else_pays_for_it(
    world: World,
) -> None:
    running, most = 0, 0

    async def handle(_: object) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        others = [(await stored(world, n)).tries for n in (1, 2, 3)]
        assert sorted(others) == [TRIES_IN_COMPANY] * 2 + [TRIES_IN_COMPANY + 1] or done
        done.append(1)
        await asyncio.sleep(0.02)
        running -= 1

    done: list[int] = []
    for number in (1, 2, 3):
        await world.hear(number, "/start")
        for _ in range(TRIES_IN_COMPANY):
            await world.updates.begin(number, 0)
    turns = replace(world.lanes, queue=ForgetfulQueue(), handle=handle)
    await asyncio.gather(*(turns.run(number) for number in (1, 2, 3)))
    assert (len(done), most) == (3, 1)


async def test_a_turn_that_gets_on_is_never_set_aside_however_often_it_is_killed(
    world: World,
) -> None:
    await world.hear(1, "long")
    for number in range(8):
        world.failing.append(Killed())
        world.clock.pass_(10_000)
        with pytest.raises(Killed):
            await world.run_again(1)
        world.queue.recorded.append((f"step {number}", None))
    assert (await stored(world, 1)).tries == 1
    assert await world.updates.set_aside_list() == []


async def test_a_turn_that_takes_another_way_when_it_is_resumed_is_begun_anew(
    world: World,
) -> None:
    await world.hear(1, "a red")
    world.queue.recorded.append(("what is no more", None))
    world.lanes = replace(world.lanes, handle=asking(world))
    await world.run_again(1)
    assert (await world.lanes.retry_asked(), world.queue.enqueued[-1]) == (1, (1, LANE, 1))
    assert (world.texts(), world.told) == ([], [])
    await world.run(1)
    assert world.texts() == ["a red"]


async def test_a_turn_that_takes_another_way_after_its_answer_is_not_answered_again(
    world: World,
) -> None:
    await world.hear(1, "a red")
    world.queue.recorded += [("what is no more", None), ("telegram.send.1", None)]
    world.lanes = replace(world.lanes, handle=asking(world))
    await world.run_again(1)
    assert (await world.lanes.retry_asked(), (await stored(world, 1)).state) == (0, "done")
    assert (world.texts(), world.told) == ([], [])


def asking(world: World) -> Callable[[Mapping[str, Any]], Awaitable[None]]:
    """A handler of one step, which takes no failure of it for an end."""

    async def handle(payload: Mapping[str, Any]) -> None:
        with suppress(Exception):
            await world.queue.step("model", nothing)
        world.handled.append(payload)

    return handle


async def test_a_retry_runs_what_was_set_aside_whole(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=100)
    world.failing += [ValueError()] * 3
    await world.run(1, 2)
    assert [each.update_id for each in await world.updates.set_aside_list()] == [1]
    assert await world.updates.ask_retry(1)
    assert await world.lanes.retry_asked() == 1
    assert world.queue.enqueued[-1] == (1, LANE, 1)
    await world.run(1)
    assert world.texts() == ["a red\nfor lamb"]
    assert await world.lanes.retry_asked() == 0
    assert not await world.updates.ask_retry(1)


async def test_the_backlog_is_what_still_waits(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=100)
    await world.hear(3, "poison", after=5000)
    world.clock.pass_(2000)
    backlog = await world.updates.backlog()
    assert (backlog.waiting, backlog.oldest_seconds) == (3, 7.1)
    await world.run(1, 2)
    world.failing += [ValueError()] * 3
    await world.run(3)
    assert (await world.updates.backlog()).waiting == 0


async def test_what_is_over_is_forgotten_in_time_and_what_waits_is_not(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=100)
    await world.hear(3, "poison", after=5000)
    await world.hear(4, "waits", after=5000)
    await world.run(1, 2)
    world.failing += [ValueError()] * 3
    await world.run(3)
    world.clock.pass_(60_000)
    assert await world.updates.forget(timedelta(hours=1)) == 0
    assert await world.updates.forget(timedelta(minutes=1)) == 3
    assert [await world.updates.get(n) is None for n in (1, 2, 3, 4)] == [True, True, True, False]


async def test_a_database_that_is_away_for_a_while_loses_nothing(world: World) -> None:
    await world.hear(1, "a red")
    world.lanes = replace(world.lanes, updates=Flaky(world.updates, failures=1))  # type: ignore[arg-type]
    await world.run(1)
    assert (world.texts(), world.told) == (["a red"], [])
    assert (await stored(world, 1)).state == "done"


class Flaky:
    """A repository each of whose methods fails at first."""

    def __init__(self, updates: SqlUpdateRepository, failures: int) -> None:
        self._updates = updates
        self._failures = failures
        self._failed: dict[str, int] = {}

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: object) -> Any:
            self._failed[name] = self._failed.get(name, 0) + 1
            if self._failed[name] <= self._failures:
                raise OperationalError("SELECT", {}, Exception("the server is gone"))
            return await getattr(self._updates, name)(*arguments)

        return call


async def test_progress_is_counted_by_the_steps_of_the_turn_alone(tmp_path: Path) -> None:
    recorded: list[list[str]] = []
    queue: list[DurableTurns] = []

    async def run(_: int) -> None:
        await asyncio.sleep(0.05)
        for name in ("one", "two"):
            recorded.append(list(await queue[0].steps_recorded()))
            await queue[0].step(name, nothing)
        recorded.append(list(await queue[0].steps_recorded()))

    settings = DurableSettings(
        url=f"sqlite:///{tmp_path}/turns.sqlite3",
        executor_id="local",
        version="turns-1",
        poll_seconds=0.05,
        turns_at_once=64,
        retention=timedelta(days=7),
    )
    async with open_turns(settings, run, READY) as turns:
        queue.append(turns)
        await turns.enqueue(1, str(CHAT))
        await eventually(lambda: len(recorded) == 3, seconds=10, otherwise=lambda: str(recorded))
    assert recorded == [[], ["one"], ["one", "two"]]


async def test_a_step_in_another_one_s_place_changes_the_turn_even_where_failures_are_caught(
    tmp_path: Path,
) -> None:
    seen: list[str] = []
    queue: list[DurableTurns] = []
    settings = DurableSettings(
        url=f"sqlite:///{tmp_path}/turns.sqlite3",
        executor_id="local",
        version="turns-1",
        poll_seconds=0.05,
        turns_at_once=64,
        retention=timedelta(days=7),
    )

    async def first(_: int) -> None:
        await asyncio.sleep(0.05)
        await queue[-1].step("one", nothing)
        seen.append("one")
        await asyncio.Event().wait()

    async def then(_: int) -> None:
        await asyncio.sleep(0.05)
        try:
            with suppress(Exception):
                await queue[-1].step("another", nothing)
        except StepsChanged as changed:
            seen.append(f"{changed} instead of {list(await queue[-1].steps_recorded())}")

    for run, count in ((first, 1), (then, 2)):
        async with open_turns(settings, run, READY) as turns:
            queue.append(turns)
            await turns.enqueue(1, str(CHAT))
            await eventually(lambda: len(seen) == count, seconds=10, otherwise=lambda: str(seen))  # noqa: B023
    assert seen == ["one", "another instead of ['one']"]


async def nothing() -> None:
    """A step."""


async def stored(world: World, update_id: int) -> Any:
    found = await world.updates.get(update_id)
    assert found is not None
    return found
