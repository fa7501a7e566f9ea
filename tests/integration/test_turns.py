"""From accepted updates to turns: bursts, albums, edits, tries, what is set aside and retried.

The repository is the real one, on both databases; lanes run when the test says so.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from sqlalchemy import Connection, event, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.engine.limits import Ledger, Spent
from agent.retrying import Backoff
from agent.turn import StoredMessage
from bot.leading import Locks
from bot.metrics import Metrics
from bot.outgoing import Delivery
from bot.pending import pending_turn
from bot.telegram.dispatch import Dispatcher
from bot.telegram.sender import Sender
from bot.updates import lanes as lanes_module
from bot.updates.bursts import chat_of, is_same_turn
from bot.updates.lanes import SUSPECT_TRIES, Lane, Lanes
from db.engine import Sessions
from db.models import OutboxRow, TurnRow
from db.records import EndedTurn
from db.repositories.inbox import Inbox
from db.repositories.people import MessageRepository
from db.repositories.turns import TurnRepository
from tests.doubles.server import eventually

CHAT = 7
LANE = "7"
START = datetime(2026, 5, 1, tzinfo=UTC)
BURST = timedelta(milliseconds=800)
FORWARDED = {"type": "hidden_user", "date": 0, "sender_user_name": "Bea"}


class Killed(BaseException):
    """The process ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting(Lanes):
    """Remembers which lanes were scheduled, and runs none by itself."""

    calls: list[str] = field(default_factory=list)

    def schedule(self, name: str) -> None:
        self.calls.append(name)


Handle = Callable[[Mapping[str, Any]], Awaitable[None]]


@dataclass
class FakeDispatcher:
    """Handles updates by `handle`, and remembers the chats that were told of a failure."""

    handle: Handle
    told: list[int] = field(default_factory=list)

    async def give_up(self, payload: Mapping[str, Any], error: str) -> None:
        self.told.append(chat_of(payload))

    def is_readable(self, payload: Mapping[str, Any]) -> bool:
        return True


def dispatching(handle: Handle) -> Dispatcher:
    return cast("Dispatcher", FakeDispatcher(handle))


class HeldLocks(Locks):
    """Locks that another process may hold."""

    def __init__(self, inbox: Inbox, is_free: Callable[[], bool]) -> None:
        super().__init__(inbox)
        self._is_free = is_free

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        yield self._is_free()


@dataclass
class Clock:
    """The time that updates are received at."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, milliseconds: int) -> None:
        self.now += timedelta(milliseconds=milliseconds)


class FakeSender:
    """Sends messages nowhere, and stores that it did."""

    inbox: Inbox

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.dies_after: int | None = None
        self.may_send = asyncio.Event()
        self.may_send.set()

    async def deliver(self, messages: Sequence[OutboxRow]) -> Delivery:
        for message in messages:
            await self.may_send.wait()
            if self.dies_after is not None and len(self.sent) >= self.dies_after:
                raise Killed
            self.sent.append(message.html)
            message.message_id = len(self.sent)
            await self.inbox.record_sent(message)
        return Delivery(tuple(range(len(messages))), tries=1)


def say(*texts: str) -> None:
    """Say something in the turn that is handled here."""
    turn = pending_turn()
    assert turn is not None
    turn.messages += [OutboxRow(chat_id=CHAT, html=text) for text in texts]


@dataclass
class World:
    """Turns over a real repository, and what people and handlers saw of them."""

    lanes: Resting
    inbox: Inbox
    sender: FakeSender
    clock: Clock
    handled: list[Mapping[str, Any]]
    told: list[int]
    failing: list[BaseException]
    """What the handler raises, the next times it is called."""

    async def hear(self, update_id: int, text: str = "", after: int = 0, **fields: object) -> None:
        """Accept a message, `after` milliseconds later than what was before."""
        self.clock.pass_(after)
        await self.lanes.accept([message(update_id, text, **fields)])

    async def run(self, lane: str = LANE) -> None:
        """Run a lane until it is empty, a while later."""
        self.clock.pass_(10_000)
        await run_lane(self.lanes, lane)

    def awake(self, **others: Any) -> Lanes:
        """Lanes that run by themselves."""
        kept = {item.name: getattr(self.lanes, item.name) for item in fields(Lanes)}
        return Lanes(**kept | others)

    def texts(self) -> list[str]:
        """What the turns that were handled were about."""
        return [words(payload) for payload in self.handled]


async def run_lane(lanes: Lanes, lane: str = LANE) -> None:
    while await lanes.run_next(Lane(lane)):
        pass


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


@pytest.fixture
def world(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(lanes_module, "RETRY_BASE_SECONDS", 0)
    monkeypatch.setattr(lanes_module, "DATABASE_BACKOFF", Backoff(first_wait=0.01, max_wait=0.01))
    clock = Clock()
    inbox, sender = Inbox(sessions, clock), FakeSender()
    sender.inbox = inbox
    handled: list[Mapping[str, Any]] = []
    failing: list[BaseException] = []

    async def handle(payload: Mapping[str, Any]) -> None:
        if failing:
            raise failing.pop(0)
        handled.append(payload)
        say(words(payload))

    dispatcher = FakeDispatcher(handle)
    lanes = Resting(
        inbox=inbox,
        sender=cast("Sender", sender),
        dispatcher=cast("Dispatcher", dispatcher),
        locks=Locks(inbox),
        metrics=Metrics(),
        burst_window=BURST,
        max_tries=3,
    )
    lanes.ready.set()
    return World(lanes, inbox, sender, clock, handled, dispatcher.told, failing)


async def test_an_update_that_is_delivered_twice_is_one_turn(world: World) -> None:
    await world.hear(1, "red?")
    await world.hear(1, "red?")
    assert world.lanes.calls == [LANE, LANE]
    await world.run()
    await world.run()
    assert world.texts() == ["red?"]


async def test_messages_sent_in_one_go_are_one_turn_under_the_first_one_s_id(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=700)
    await world.hear(3, "under 25", after=800)
    await world.run()
    assert world.texts() == ["a red\nfor lamb\nunder 25"]
    assert world.handled[0]["update_id"] == 1
    assert [(await stored(world, n)).state for n in (1, 2, 3)] == ["done"] * 3
    assert [(await stored(world, n)).payload for n in (1, 2, 3)] == [{}] * 3


async def test_a_turn_waits_for_the_rest_of_what_is_forwarded(world: World) -> None:
    await world.hear(1, "a red", forward_origin=FORWARDED)
    running = asyncio.create_task(run_lane(world.lanes))
    await asyncio.sleep(0.1)
    await world.hear(2, "for lamb", after=100, forward_origin=FORWARDED)
    await running
    assert world.texts() == ["a red\nfor lamb"]


PHOTO = {"photo": [{"file_id": "x"}], "media_group_id": "album"}


GROUP = {"id": -7, "type": "group"}


@pytest.mark.parametrize(
    ("first", "later", "is_one"),
    [
        ({"text": "a red"}, {"text": "white, sorry", "date": 60}, True),
        ({"text": "a red"}, {"text": "/ask sur lie"}, False),
        ({"text": "/ask sur lie"}, {"text": "a red"}, False),
        ({"text": "a red"}, {"text": "mine", "from": {"id": 8}}, False),
        ({"text": "a red"}, {"text": "there", "message_thread_id": 5}, False),
        ({"text": "a red", "chat": GROUP}, {"text": "for lamb", "chat": GROUP, "date": 1}, True),
        ({"text": "a red", "chat": GROUP}, {"text": "hi, Bea", "chat": GROUP, "date": 2}, False),
        (PHOTO, {**PHOTO, "caption": "these labels"}, True),
    ],
)
def test_who_writes_more_before_an_answer_is_sent_gets_one(
    first: dict[str, Any], later: dict[str, Any], is_one: bool
) -> None:
    assert is_same_turn([message(1, **first)], message(2, **later)) == is_one


def test_an_edit_belongs_to_the_turn_of_its_message_alone() -> None:
    assert is_same_turn([message(1, "a red")], edit(2, 1, "a white"))
    assert not is_same_turn([message(1, "a red")], edit(2, 9, "an earlier one"))


async def test_an_edit_of_what_still_waits_changes_it(world: World) -> None:
    await world.hear(1, "a red")
    await world.lanes.accept([edit(2, 1, "a white")])
    await world.run()
    assert world.texts() == ["a white"]


async def test_what_fails_three_times_is_set_aside_and_the_person_told_once(world: World) -> None:
    await world.hear(1, "poison")
    world.failing += [ValueError("with private words")] * 3
    await world.run()
    assert world.told == [CHAT]
    (aside,) = await world.inbox.list_set_aside()
    assert (aside.update_id, aside.error) == (1, "ValueError")
    await world.run()
    assert (world.texts(), world.told) == ([], [CHAT])


async def test_a_database_that_is_away_is_no_failure_of_a_turn(world: World) -> None:
    await world.hear(1, "a red")
    away = OperationalError("INSERT", {}, Exception("database or disk is full"))
    world.failing += [away] * 10
    await world.run()
    assert (world.texts(), world.told) == (["a red"], [])


async def test_turns_of_a_lane_are_run_by_their_ids_whatever_the_clock_says(world: World) -> None:
    for number in range(1, 6):
        await world.hear(number, f"/{number}", after=-3_600_000)
    await world.run()
    assert world.texts() == ["/1", "/2", "/3", "/4", "/5"]


async def test_a_retry_runs_what_was_set_aside_whole(world: World) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb", after=100)
    world.failing += [ValueError()] * 3
    await world.run()
    assert [each.update_id for each in await world.inbox.list_set_aside()] == [1]
    assert await world.inbox.ask_retry(1)
    world.lanes.calls.clear()
    await world.lanes.schedule_unowned()
    assert world.lanes.calls == [LANE]
    await world.run()
    assert world.texts() == ["a red\nfor lamb"]
    await world.lanes.schedule_unowned()
    assert world.lanes.calls == [LANE]
    assert not await world.inbox.ask_retry(1)


async def test_what_kills_the_process_is_set_aside_and_the_others_are_answered(
    world: World,
) -> None:
    await world.hear(1, "poison")
    world.failing += [Killed()] * 5
    for _ in range(3):
        assert await world.inbox.list_set_aside() == []
        with pytest.raises(Killed):
            await world.run()
    await world.hear(2, "a red", after=60_000)
    world.failing.clear()
    await world.run()
    assert (world.told, world.texts()) == ([CHAT], ["a red"])
    (aside,) = await world.inbox.list_set_aside()
    assert "died" in str(aside.error)


async def test_turns_that_may_have_killed_the_process_run_alone(world: World) -> None:
    running, most, done = 0, 0, list[int]()
    chats = (7, 8, 9)

    async def handle(_: object) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        tries = sorted([(await stored(world, n)).tries for n in chats])
        assert done or tries == [SUSPECT_TRIES] * 2 + [SUSPECT_TRIES + 1]
        done.append(1)
        await asyncio.sleep(0.02)
        running -= 1

    for chat in chats:
        await world.hear(chat, "/ask", chat={"id": chat, "type": "private"})
        await world.inbox.begin(await stored(world, chat), tries=SUSPECT_TRIES)
    turns = replace(world.lanes, dispatcher=dispatching(handle))
    await asyncio.gather(*(run_lane(turns, str(chat)) for chat in chats))
    assert (len(done), most) == (3, 1)


async def test_a_turn_is_stored_with_its_answer_and_all_that_it_changes(world: World) -> None:
    record = TurnRow(turn_id=1, chat_id=CHAT, user_id=CHAT, at=START, outcome="answered")
    said = (StoredMessage("user", "a red"), StoredMessage("assistant", "Chinon"))

    async def handle(payload: Mapping[str, Any]) -> None:
        turn = pending_turn()
        assert turn is not None
        turn.ended.append(EndedTurn(record, said))
        turn.messages.append(OutboxRow(chat_id=CHAT, html="Chinon", turn_id=1))

    await world.hear(1, "a red")
    await run_lane(replace(world.lanes, dispatcher=dispatching(handle)))
    sessions = world.inbox._sessions
    kept = await MessageRepository(sessions).recent(CHAT)
    assert [each.content for each in kept] == ["a red", "Chinon"]
    assert await TurnRepository(sessions).find_by_message(CHAT, 1) == record
    async with sessions() as session:
        (message,) = await session.scalars(select(OutboxRow))
    assert (message.html, message.message_id) == ("", 1)


async def test_of_a_command_only_the_number_of_its_update_stays(world: World) -> None:
    await world.hear(1, "/help")
    await world.run(f"aside-{CHAT}")
    row = await stored(world, 1)
    assert (row.state, row.chat_id, row.payload) == ("done", 0, {})
    async with world.inbox._sessions() as session:
        assert (await session.scalars(select(OutboxRow))).all() == []


@pytest.mark.parametrize("sent", [0, 1, 2])
async def test_after_a_kill_an_answer_is_sent_as_far_as_it_was_not(world: World, sent: int) -> None:
    async def handle(payload: Mapping[str, Any]) -> None:
        world.handled.append(payload)
        say("one", "two")

    world.lanes = replace(world.lanes, dispatcher=dispatching(handle))
    world.sender.dies_after = sent
    await world.hear(1, "a red")
    if sent < 2:
        with pytest.raises(Killed):
            await world.run()
    world.sender.dies_after = None
    await world.run()
    assert (world.sender.sent, len(world.handled)) == (["one", "two"], 1)
    assert (await stored(world, 1)).state == "done"


async def test_a_turn_that_another_process_has_begun_is_neither_stored_nor_sent(
    world: World,
) -> None:
    async def handle(payload: Mapping[str, Any]) -> None:
        say("Chinon")
        await world.inbox.begin(await stored(world, 1), tries=2)  # by who took the lane over

    await world.hear(1, "/ask")
    free = [True]
    locks = HeldLocks(world.inbox, lambda: bool(free) and free.pop())
    await run_lane(replace(world.lanes, dispatcher=dispatching(handle), locks=locks))
    assert (world.sender.sent, (await stored(world, 1)).state) == ([], "waiting")
    assert (await stored(world, 1)).epoch == 2


def fail_commits(engine: AsyncEngine, *, is_stored: bool) -> list[bool]:
    """Return a list: for an item of it one commit fails, though its data may be stored."""
    failures = list[bool]()

    def fail(connection: Connection) -> None:
        if failures:
            failures.pop()
            if is_stored:
                connection.connection.commit()
            raise OperationalError("COMMIT", {}, Exception("the server closed the connection"))

    event.listen(engine.sync_engine, "commit", fail)
    return failures


async def test_a_commit_whose_confirmation_is_lost_answers_once(
    world: World, engine: AsyncEngine
) -> None:
    lost = fail_commits(engine, is_stored=True)

    async def handle(payload: Mapping[str, Any]) -> None:
        say("Chinon")
        lost.append(True)

    await world.hear(1, "a red")
    await run_lane(replace(world.lanes, dispatcher=dispatching(handle)))
    assert world.sender.sent == ["Chinon"]
    assert (await stored(world, 1)).state == "done"


async def test_a_lane_goes_on_if_the_confirmation_of_setting_aside_is_lost(
    world: World, engine: AsyncEngine
) -> None:
    lost = fail_commits(engine, is_stored=True)

    class Apologizing(FakeDispatcher):
        async def give_up(self, payload: Mapping[str, Any], error: str) -> None:
            say("Sorry")
            lost.append(True)

    async def handle(payload: Mapping[str, Any]) -> None:
        if words(payload) == "poison":
            raise ValueError
        say("Chinon")

    await world.hear(1, "poison")
    await world.hear(2, "/ask", after=60_000)
    dispatcher = cast("Dispatcher", Apologizing(handle))
    async with asyncio.timeout(10):
        await run_lane(replace(world.lanes, dispatcher=dispatcher))
    assert world.sender.sent == ["Sorry", "Chinon"]
    assert (await stored(world, 1)).state == "set_aside"


async def test_a_failed_commit_does_not_claim_the_ids_of_other_messages(
    world: World, engine: AsyncEngine
) -> None:
    failing = fail_commits(engine, is_stored=False)
    for number in (1, 2):
        await world.hear(number, "/ask")
    first, second = [await stored(world, number) for number in (1, 2)]
    for row in (first, second):
        await world.inbox.begin(row, tries=1)
    messages = [OutboxRow(chat_id=CHAT, html="Chinon")]
    failing.append(True)
    with pytest.raises(OperationalError):
        await world.inbox.commit(first, messages=messages)
    others = [OutboxRow(chat_id=CHAT, html="Rioja")]
    await world.inbox.commit(second, messages=others)
    await world.inbox.commit(first, messages=messages)
    assert messages[0].id != others[0].id


async def test_what_is_over_is_forgotten_in_time_and_what_waits_is_not(world: World) -> None:
    await world.hear(1, "a red")
    await world.run()
    await world.hear(3, "poison", after=5000)
    world.failing += [ValueError()] * 3
    await world.run()
    await world.hear(4, "waits")
    world.clock.pass_(60_000)
    assert await world.inbox.forget(timedelta(hours=1)) == 0
    assert await world.inbox.forget(timedelta(minutes=1)) == 2
    assert [await world.inbox.get(n) is None for n in (1, 3, 4)] == [True, True, False]


class TestWaking:
    """Lanes that run by themselves, as they do in a process."""

    async def test_lanes_run_side_by_side_and_each_once_at_a_time(self, world: World) -> None:
        running, most, together = set[int](), list[int](), asyncio.Event()

        async def handle(payload: Mapping[str, Any]) -> None:
            chat = chat_of(payload)
            assert chat not in running
            running.add(chat)
            most.append(len(running))
            if len(running) == 3:
                together.set()
            await asyncio.wait_for(together.wait(), 20)
            running.remove(chat)

        lanes = world.awake(dispatcher=dispatching(handle))
        for number in range(9):
            chat = {"id": number % 3 + 1, "type": "private"}
            await lanes.accept([message(number, "/ask", chat=chat)])
        await eventually(lambda: len(most) == 9, seconds=20, otherwise=lambda: str(most))
        await lanes.close()
        assert max(most) == 3

    async def test_what_another_process_holds_is_left_to_it_and_looked_for(
        self, world: World
    ) -> None:
        held = {LANE}
        lanes = world.awake(locks=HeldLocks(world.inbox, lambda: not held))
        await world.hear(1, "/ask")
        await run_lane(lanes)
        assert world.texts() == []
        held.clear()
        await lanes.schedule_unowned()
        await eventually(lambda: world.texts() == ["/ask"], seconds=5, otherwise=str)
        await lanes.close()


async def stored(world: World, update_id: int) -> Any:
    found = await world.inbox.get(update_id)
    assert found is not None
    return found


@dataclass
class Asking:
    """A handler that asks a model, which answers when it is let, and says what it was asked."""

    asked: list[str] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, payload: Mapping[str, Any]) -> None:
        turn = pending_turn()
        assert turn is not None
        self.spent.append(turn.state.spent_before)
        turn.state.ledger = Ledger(spent_before=turn.state.spent_before, requests=1)
        self.asked.append(words(payload))
        await self.may_answer.wait()
        say(words(payload))


async def until(condition: Callable[[], bool]) -> None:
    await eventually(condition, seconds=10, otherwise=lambda: "")


class TestCorrections:
    """What is said while a turn runs, before anything is sent in it."""

    @pytest.fixture
    def asking(self) -> Asking:
        return Asking()

    @pytest.fixture
    async def lanes(self, world: World, asking: Asking) -> AsyncIterator[Lanes]:
        lanes = world.awake(dispatcher=dispatching(asking))
        yield lanes
        await lanes.close()

    async def test_a_correction_is_taken_into_the_turn(
        self, world: World, lanes: Lanes, asking: Asking
    ) -> None:
        await lanes.accept([message(1, "a red")])
        await until(lambda: asking.asked == ["a red"])
        await lanes.accept([message(2, "white, sorry")])
        await until(lambda: len(asking.asked) == 2)
        await lanes.accept([edit(3, 2, "a white")])
        await until(lambda: len(asking.asked) == 3)
        asking.may_answer.set()
        world.sender.may_send.set()
        await until(lambda: len(world.sender.sent) == 1)
        await lanes.finish(5)
        assert asking.asked == ["a red", "a red\nwhite, sorry", "a red\na white"]
        assert [each.requests for each in asking.spent] == [0, 1, 2]
        assert [(await stored(world, each)).state for each in (1, 2, 3)] == ["done"] * 3

    async def test_what_is_said_once_an_answer_is_on_its_way_is_a_turn_of_its_own(
        self, world: World, lanes: Lanes, asking: Asking
    ) -> None:
        asking.may_answer.set()
        world.sender.may_send.clear()
        await lanes.accept([message(1, "a red")])
        await until(lambda: asking.asked == ["a red"])
        await asyncio.sleep(0.05)
        await lanes.accept([message(2, "and a white")])
        world.sender.may_send.set()
        await until(lambda: world.sender.sent == ["a red", "and a white"])
