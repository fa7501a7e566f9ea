"""From accepted updates to turns: messages that join, edits, tries, what is set aside and retried.

The repository is the real one, on both databases; a lane runs when the test says so.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import Connection, event, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.engine.run import Usage
from agent.servers import Backoff
from agent.turn import StoredMessage
from bot.app import App, run_app
from bot.metrics import Metrics
from bot.turn import Delivery, Hold, RunningTurns, Turn
from bot.updates import life as life_module
from bot.updates.joining import chat_of, is_same_turn
from bot.updates.life import Deliverer, Handlers, Lane, UpdateRunner
from bot.updates.locks import Locks
from bot.updates.scheduler import Scheduler
from db.commit import Commit, Fence
from db.engine import Sessions
from db.models import OutboxRow, TurnRow, UpdateRow, utc_now
from db.repositories.inbox import Inbox
from db.repositories.outbox import Outbox
from db.repositories.people import MessageRepository
from db.repositories.retention import Retention
from db.repositories.turns import TurnRepository
from tests.doubles.server import eventually
from tests.stored import store_turn

CHAT = 7
LANE = "7"
START = datetime(2026, 5, 1, tzinfo=UTC)
FORWARDED = {"type": "hidden_user", "date": 0, "sender_user_name": "Bea"}
PHOTO = {"photo": [{"file_id": "x"}], "media_group_id": "album"}
GROUP = {"id": -7, "type": "group"}
Payload = Mapping[str, Any]


class Killed(BaseException):
    """The process ends here."""


class Answering(Handlers[Turn]):
    """Answers an update with its words, or by `react`; the errors in `failing` are raised first."""

    def __init__(self) -> None:
        self.react: Callable[[Payload, Turn], Awaitable[None]] = self.answer
        self.failing: list[BaseException] = []
        self.handled: list[Payload] = []
        self.apology: Callable[[Turn], None] = lambda turn: say(turn, "Sorry")
        self.told: list[int] = []

    def open_turn(self, row: UpdateRow) -> Turn:
        return Turn(
            id=row.update_id,
            accepted_at=row.received_at,
            chat_id=row.chat_id,
            user_id=row.chat_id,
            trace_user=f"user-{row.chat_id}",
        )

    async def handle(self, payload: Payload, turn: Turn) -> None:
        await self.react(payload, turn)

    async def answer(self, payload: Payload, turn: Turn) -> None:
        if self.failing:
            raise self.failing.pop(0)
        self.handled.append(payload)
        say(turn, words(payload))

    async def give_up(self, payload: Payload, turn: Turn, error: str) -> None:
        self.told.append(chat_of(payload))
        self.apology(turn)

    def is_readable(self, payload: Payload) -> bool:
        return True


class Telegram(Deliverer):
    """Takes every message, and keeps what it says."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.sent: list[str] = []
        self.before_sending: Callable[[Sequence[OutboxRow]], Awaitable[None]] | None = (
            None
        )

    async def deliver(self, messages: Sequence[OutboxRow], hold: Hold) -> Delivery:
        if self.before_sending is not None:
            await self.before_sending(messages)
        for message in messages:
            self.sent.append(message.html)
            message.message_id = len(self.sent)
            await self.outbox.record_delivery(message)
        return Delivery(tuple(range(len(messages))), requests=1)


class Locked(Locks):
    """Locks that another process may hold."""

    is_locked = False

    def __init__(self, inbox: Inbox) -> None:
        super().__init__(inbox)
        self.is_lost = asyncio.Event()

    def watch_loss(self, lane: str) -> asyncio.Event:
        return self.is_lost

    @asynccontextmanager
    async def lock(self, lane: str) -> AsyncIterator[bool]:
        yield not self.is_locked


class World:
    """A scheduler over a real repository, with handlers and a Telegram that tests steer."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self.now = START
        self.inbox = Inbox(sessions, lambda: self.now)
        self.handlers = Answering()
        self.telegram = Telegram(Outbox(sessions))
        self.locks = Locked(self.inbox)
        self.scheduler = self.start_process()

    def start_process(self, locks: Locks | None = None) -> Scheduler:
        """Return the scheduler of a process that begins now."""
        update_runner = UpdateRunner(
            inbox=self.inbox,
            deliverer=self.telegram,
            handlers=self.handlers,
            metrics=Metrics(),
            join_seconds=0.8,
            max_tries=3,
        )
        return Scheduler(
            inbox=self.inbox,
            update_runner=update_runner,
            answer_inline=ignore,
            running_turns=RunningTurns(),
            locks=locks or self.locks,
            metrics=Metrics(),
        )

    async def hear(self, update_id: int, text: str = "", **fields: object) -> None:
        """Accept a message."""
        await self.scheduler.accept([message(update_id, text, **fields)])

    async def run(self, lane: str = LANE) -> None:
        """Run a lane until it is empty."""
        while await self.scheduler.run_next(Lane(lane)):
            pass

    async def row(self, update_id: int) -> UpdateRow:
        """Return an update as it is stored."""
        async with self.sessions() as session:
            return await session.get_one(UpdateRow, update_id)

    @property
    def handled(self) -> list[Payload]:
        return self.handlers.handled

    @property
    def sent(self) -> list[str]:
        return self.telegram.sent

    def texts(self) -> list[str]:
        """Return the words of the turns that were handled."""
        return [words(payload) for payload in self.handled]


async def ignore(payload: Payload) -> None:
    return None


def say(turn: Turn, text: str) -> None:
    """Say something in a turn."""
    turn.commit.messages.append(OutboxRow(chat_id=CHAT, html=text))


def message(update_id: int, text: str = "", **fields: object) -> dict[str, Any]:
    said = {"text": text} if text else {}
    person = {"id": CHAT, "is_bot": False, "first_name": "Ada"}
    chat = {"id": CHAT, "type": "private"}
    base = {"message_id": update_id * 10, "date": 0, "chat": chat, "from": person}
    return {"update_id": update_id, "message": base | said | fields}


def edit(update_id: int, of: int, text: str) -> dict[str, Any]:
    return {"update_id": update_id, "edited_message": message(of, text)["message"]}


def words(payload: Payload) -> str:
    said = payload.get("message") or payload["edited_message"]
    return str(said.get("text", said.get("caption", "")))


@pytest.fixture
async def world(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    monkeypatch.setattr(life_module, "RETRY_BASE_SECONDS", 0)
    monkeypatch.setattr(
        life_module, "DATABASE_BACKOFF", Backoff(first_wait=0.01, max_wait=0.01)
    )
    world = World(sessions)
    yield world
    await world.scheduler.finish()


async def test_messages_sent_in_one_go_are_one_turn_with_their_edits(
    world: World,
) -> None:
    await world.hear(1, "a red")
    await world.hear(1, "a red")  # delivered twice
    await world.hear(2, "for lamb")
    await world.scheduler.accept([edit(3, 1, "a white"), message(4, "under 25")])
    await world.run()
    assert world.texts() == ["a white\nfor lamb\nunder 25"]
    assert world.handled[0]["update_id"] == 1
    rows = [await world.row(number) for number in (1, 2, 3, 4)]
    assert [(row.state, row.payload) for row in rows] == [("done", {})] * 4


async def test_a_turn_waits_for_the_rest_of_what_is_forwarded(world: World) -> None:
    await world.hear(1, "a red", forward_origin=FORWARDED)
    running = asyncio.create_task(world.run())
    await asyncio.sleep(0.1)
    await world.hear(2, "for lamb", forward_origin=FORWARDED)
    await running
    assert world.texts() == ["a red\nfor lamb"]


@pytest.mark.parametrize(
    ("first", "later", "is_one"),
    [
        ({"text": "a red"}, {"text": "white, sorry", "date": 60}, True),
        ({"text": "a red"}, {"text": "/ask sur lie"}, False),
        ({"text": "a red"}, {"text": "mine", "from": {"id": 8}}, False),
        ({"text": "a red"}, {"text": "there", "message_thread_id": 5}, False),
        (
            {"text": "a red", "chat": GROUP},
            {"text": "for lamb", "chat": GROUP, "date": 1},
            True,
        ),
        (
            {"text": "a red", "chat": GROUP},
            {"text": "hi, Bea", "chat": GROUP, "date": 2},
            False,
        ),
        (PHOTO, {**PHOTO, "caption": "these labels"}, True),
    ],
)
def test_a_user_who_writes_more_before_the_answer_gets_one_answer(
    first: dict[str, Any], later: dict[str, Any], is_one: bool
) -> None:
    assert is_same_turn([message(1, **first)], message(2, **later)) == is_one


async def test_turns_of_a_lane_are_run_by_their_ids_whatever_the_clock_says(
    world: World,
) -> None:
    for number in range(1, 6):
        world.now -= timedelta(hours=1)
        await world.hear(number, f"/{number}")
    await world.run()
    assert world.texts() == ["/1", "/2", "/3", "/4", "/5"]


async def test_an_update_that_fails_three_times_is_set_aside_until_it_is_retried(
    world: World,
) -> None:
    await world.hear(1, "a red")
    await world.hear(2, "for lamb")
    world.handlers.failing += [
        ValueError("with private words"),
        OSError(),
        TimeoutError(),
    ]
    await world.run()
    await world.hear(3, "/ask")
    await world.run()
    (aside,) = await world.inbox.list_set_aside()
    assert (aside.update_id, aside.error, world.handlers.told) == (
        1,
        "TimeoutError",
        [CHAT],
    )
    assert (world.texts(), world.sent) == (["/ask"], ["Sorry", "/ask"])
    assert await world.inbox.schedule_retry(1)
    assert await world.inbox.list_lanes() == [LANE]
    await world.hear(4, "and a white")
    await world.run()
    assert world.texts() == ["/ask", "a red\nfor lamb", "and a white"]
    assert not await world.inbox.schedule_retry(1)


async def test_a_database_that_is_away_is_no_failure_of_a_turn(world: World) -> None:
    await world.hear(1, "a red")
    away = OperationalError("INSERT", {}, Exception("database or disk is full"))
    world.handlers.failing += [away] * 10
    await world.run()
    assert (world.texts(), world.handlers.told) == (["a red"], [])


async def test_an_answer_that_the_database_refuses_is_set_aside(world: World) -> None:
    async def handle(payload: Payload, turn: Turn) -> None:
        turn.commit.messages.append(OutboxRow(chat_id=cast("int", None)))

    world.handlers.react = handle
    await world.hear(1, "a red")
    await world.run()
    (aside,) = await world.inbox.list_set_aside()
    assert (aside.error, aside.tries, world.sent) == ("IntegrityError", 3, ["Sorry"])


async def test_an_update_that_kills_the_process_is_set_aside_and_others_are_answered(
    world: World,
) -> None:
    await world.hear(1, "poison")
    world.handlers.failing += [Killed()] * 2
    for _ in range(2):
        assert await world.inbox.list_set_aside() == []
        with pytest.raises(Killed):
            await world.run()
    await world.hear(2, "a red")
    await world.run()
    assert (world.handlers.told, world.texts()) == ([CHAT], ["a red"])
    (aside,) = await world.inbox.list_set_aside()
    assert "died" in str(aside.error)


async def test_turns_that_may_have_killed_the_process_run_alone(world: World) -> None:
    running, most, chats = 0, 0, (7, 8, 9)

    async def handle(payload: Payload, turn: Turn) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        world.handled.append(payload)
        await asyncio.sleep(0.02)
        running -= 1

    world.handlers.react = handle
    for chat in chats:
        await world.hear(chat, "/ask", chat={"id": chat, "type": "private"})
        await world.inbox.begin(await world.row(chat), tries=1)
    await asyncio.gather(*(world.run(str(chat)) for chat in chats))
    assert (len(world.handled), most) == (3, 1)


async def test_a_kill_before_an_apology_is_sent_does_not_lose_it(world: World) -> None:
    async def die(messages: Sequence[OutboxRow]) -> None:
        raise Killed

    await world.hear(1, "poison")
    world.handlers.failing += [ValueError()] * 3
    world.telegram.before_sending = die
    with pytest.raises(Killed):
        await world.run()
    world.telegram.before_sending = None
    await world.run()
    (aside,) = await world.inbox.list_set_aside()
    assert (aside.error, world.sent, world.handlers.told) == (
        "ValueError",
        ["Sorry"],
        [CHAT],
    )


async def test_a_turn_is_stored_with_its_answer_and_all_that_it_changes(
    world: World,
) -> None:
    record = TurnRow(
        turn_id=1, chat_id=CHAT, user_id=CHAT, at=START, outcome="answered"
    )
    said = (StoredMessage("user", "a red"), StoredMessage("assistant", "Chinon"))

    async def handle(payload: Payload, turn: Turn) -> None:
        turn.commit.record, turn.commit.history = record, said
        turn.commit.messages.append(OutboxRow(chat_id=CHAT, html="Chinon", turn_id=1))

    world.handlers.react = handle
    await world.hear(1, "a red")
    await world.run()
    stored = await MessageRepository(world.sessions).list_recent(CHAT)
    assert [message.content for message in stored] == ["a red", "Chinon"]
    assert await TurnRepository(world.sessions).find_by_message(CHAT, 1) == record
    async with world.sessions() as session:
        (sent,) = await session.scalars(select(OutboxRow))
    assert (sent.html, sent.message_id) == ("", 1)


async def test_the_messages_of_a_turn_that_is_replied_to_are_known_however_old(
    world: World,
) -> None:
    for number, text in enumerate(("a red", "a white", "a rosé"), 1):
        record = TurnRow(turn_id=number, chat_id=CHAT, user_id=CHAT, at=START)
        said = (StoredMessage("user", text),)
        await store_turn(world.sessions, record, said)
    found = await MessageRepository(world.sessions).list_recent(CHAT, 2, last_turn_id=1)
    assert [message.content for message in found] == ["a rosé", "a red"]


async def test_of_a_command_only_the_number_of_its_update_stays(world: World) -> None:
    await world.hear(1, "/help")
    await world.run(f"aside-{CHAT}")
    row = await world.row(1)
    assert (row.state, row.chat_id, row.payload) == ("done", 0, {})
    async with world.sessions() as session:
        assert (await session.scalars(select(OutboxRow))).all() == []


@pytest.mark.parametrize("when", ["thinking", "sending"])
async def test_a_turn_that_another_process_took_over_is_neither_stored_nor_sent_on(
    world: World, when: str
) -> None:
    ended = list[Delivery]()

    async def handle(payload: Payload, turn: Turn) -> None:
        turn.on_delivery = ended.append
        say(turn, "Chinon")
        say(turn, "Rioja")
        if when == "thinking":
            await world.inbox.begin(await world.row(1), tries=2)
            world.locks.is_locked = True

    async def send_elsewhere(messages: Sequence[OutboxRow]) -> None:
        other = OutboxRow(chat_id=CHAT, message_id=1)
        other.id, other.update_id = messages[0].id, 1
        await world.telegram.outbox.record_delivery(other)
        world.locks.is_locked = True

    world.handlers.react, world.telegram.before_sending = handle, send_elsewhere
    await world.hear(1, "/ask")
    await world.run()
    expected = ([], "waiting") if when == "thinking" else (["Chinon"], "answered")
    assert (world.sent, (await world.row(1)).state) == expected
    assert ended == [Delivery()]


def fail_commits(engine: AsyncEngine, *, is_stored: bool) -> list[bool]:
    """Return a list: for an item of it one commit fails, though its data may be stored."""
    failures = list[bool]()

    def fail(connection: Connection) -> None:
        if failures:
            failures.pop()
            if is_stored:
                connection.connection.commit()
            raise OperationalError(
                "COMMIT", {}, Exception("the server closed the connection")
            )

    event.listen(engine.sync_engine, "commit", fail)
    return failures


@pytest.mark.parametrize(("text", "sent"), [("a red", "Chinon"), ("poison", "Sorry")])
async def test_a_commit_whose_confirmation_is_lost_is_sent_once(
    world: World, engine: AsyncEngine, text: str, sent: str
) -> None:
    lost = fail_commits(engine, is_stored=True)

    async def handle(payload: Payload, turn: Turn) -> None:
        lost.append(True)
        if words(payload) == "poison":
            lost.clear()
            world.handlers.failing.append(ValueError())
            await world.handlers.answer(payload, turn)
        say(turn, "Chinon")

    def apologize(turn: Turn) -> None:
        say(turn, "Sorry")
        lost.append(True)

    world.handlers.react, world.handlers.apology = handle, apologize
    await world.hear(1, text)
    async with asyncio.timeout(10):
        await world.run()
    assert (world.sent, lost) == ([sent], [])


async def test_a_failed_commit_does_not_claim_the_ids_of_other_messages(
    world: World, engine: AsyncEngine
) -> None:
    failing = fail_commits(engine, is_stored=False)
    for number in (1, 2):
        await world.hear(number, "/ask")
    first, second = [await world.row(number) for number in (1, 2)]
    messages, others = [OutboxRow(chat_id=CHAT)], [OutboxRow(chat_id=CHAT)]
    fence = Fence(accepted_at=START)
    failing.append(True)
    with pytest.raises(OperationalError):
        await world.inbox.commit(first, Commit(fence=fence, messages=messages))
    await world.inbox.commit(second, Commit(fence=fence, messages=others))
    await world.inbox.commit(first, Commit(fence=fence, messages=messages))
    assert messages[0].id != others[0].id


async def test_an_update_that_waits_is_kept_and_one_that_is_done_is_deleted_in_time(
    world: World,
) -> None:
    await world.hear(1, "a red")
    await world.run()
    await world.hear(3, "poison")
    world.handlers.failing += [ValueError()] * 3
    await world.run()
    await world.hear(4, "waits")
    world.now += timedelta(minutes=2)
    assert (
        await Retention(world.sessions, lambda: world.now).delete_updates(
            timedelta(hours=1)
        )
        == 0
    )
    assert (
        await Retention(world.sessions, lambda: world.now).delete_updates(
            timedelta(minutes=1)
        )
        == 2
    )
    async with world.sessions() as session:
        assert [*await session.scalars(select(UpdateRow.update_id))] == [4]


async def test_messages_of_conversations_are_deleted_after_their_time(
    world: World,
) -> None:
    record = TurnRow(turn_id=1, chat_id=CHAT, user_id=CHAT, at=START)
    await store_turn(world.sessions, record, (StoredMessage("user", "a red"),))
    messages = MessageRepository(world.sessions)
    tomorrow = Retention(world.sessions, lambda: utc_now() + timedelta(days=1))
    assert await tomorrow.delete_messages(timedelta(days=2)) == 0
    assert await tomorrow.delete_messages(timedelta(hours=23)) == 1
    assert await messages.list_recent(CHAT) == []


async def test_lanes_run_side_by_side_and_each_once_at_a_time(world: World) -> None:
    running, most, together = set[int](), list[int](), asyncio.Event()

    async def handle(payload: Payload, turn: Turn) -> None:
        chat = chat_of(payload)
        assert chat not in running
        running.add(chat)
        most.append(len(running))
        if len(running) == 3:
            together.set()
        await asyncio.wait_for(together.wait(), 20)
        running.remove(chat)

    world.handlers.react = handle
    world.scheduler.ready.set()
    for number in range(9):
        await world.hear(number, "/ask", chat={"id": number % 3 + 1, "type": "private"})
    await eventually(lambda: len(most) == 9, seconds=20, otherwise=lambda: str(most))
    assert max(most) == 3


async def test_corrections_are_taken_into_a_turn_before_it_answers(
    world: World,
) -> None:
    asked, spent, may_answer = list[str](), list[int](), asyncio.Event()

    async def handle(payload: Payload, turn: Turn) -> None:
        state = turn
        spent.append(state.billed_before.requests)
        state.usage = Usage(billed_before=state.billed_before, answered_requests=1)
        asked.append(words(payload))
        await may_answer.wait()
        say(turn, words(payload))

    async def until_asked(times: int) -> None:
        await eventually(
            lambda: len(asked) == times, seconds=10, otherwise=lambda: str(asked)
        )

    world.handlers.react = handle
    world.scheduler.ready.set()
    await world.hear(1, "a red")
    await until_asked(1)
    await world.hear(2, "white, sorry")
    await until_asked(2)
    await world.scheduler.accept([edit(3, 2, "a white")])
    await until_asked(3)
    may_answer.set()
    await eventually(lambda: bool(world.sent), seconds=10, otherwise=lambda: "not sent")
    await world.scheduler.finish(5)
    assert asked == ["a red", "a red\nwhite, sorry", "a red\na white"]
    assert (spent, world.sent) == ([0, 1, 2], ["a red\na white"])
    assert [(await world.row(number)).state for number in (1, 2, 3)] == ["done"] * 3


async def test_a_replica_that_had_lost_its_lane_went_on_with_the_turn(
    world: World,
) -> None:
    cancelled = list[int]()

    async def handle(payload: Payload, turn: Turn) -> None:
        world.locks.is_lost.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(turn.id)
            world.locks.is_locked = True  # by the process that has taken the lane
            raise

    world.handlers.react = handle
    await world.hear(1, "/ask")
    async with asyncio.timeout(30):
        await world.run()
    row = await world.row(1)
    assert (cancelled, world.sent, row.state, row.tries) == ([1], [], "waiting", 0)


async def test_a_stop_at_the_moment_of_a_correction_was_forgotten(world: World) -> None:
    stops, is_asked = list[bool](), asyncio.Event()

    async def handle(payload: Payload, turn: Turn) -> None:
        stops.append(turn.stop.is_requested)
        if len(stops) > 1:
            say(turn, "Stopped.")
            return
        is_asked.set()
        try:
            await asyncio.sleep(60)
        finally:  # the correction has just been found
            turn.stop.request()

    world.handlers.react = handle
    world.scheduler.ready.set()
    await world.hear(1, "a red")
    await is_asked.wait()
    await world.hear(2, "white, sorry")
    await eventually(lambda: world.sent == ["Stopped."], seconds=30)
    await world.scheduler.finish(5)
    assert stops == [False, True]


async def test_a_message_after_a_stop_joined_the_stopped_turn(
    world: World,
) -> None:
    may_end = asyncio.Event()

    async def handle(payload: Payload, turn: Turn) -> None:
        world.handled.append(payload)
        if len(world.handled) == 1:
            turn.stop.request()
            await world.hear(2, "a white")
            await may_end.wait()
        say(turn, words(payload))

    world.handlers.react = handle
    world.scheduler.ready.set()
    await world.hear(1, "a red")
    await eventually(lambda: len(world.handled) == 1, seconds=30)
    await asyncio.gather(
        *[world.inbox.list_lanes() for _ in range(9)]
    )  # what waits is seen
    may_end.set()
    await eventually(lambda: world.sent == ["a red", "a white"], seconds=30)
    await world.scheduler.finish(5)


async def test_a_call_that_may_write_is_known_to_the_process_that_tries_again(
    world: World,
) -> None:
    known = list[tuple[str, ...]]()

    async def handle(payload: Payload, turn: Turn) -> None:
        known.append(turn.calls.earlier)
        if len(known) == 1:
            await turn.calls.add("desk__book", "{}")
            raise Killed

    world.handlers.react = handle
    await world.hear(1, "/ask")
    with pytest.raises(Killed):
        await world.run()
    await world.run()
    assert known == [(), ("desk__book {}",)]
    assert (await world.row(1)).calls == []


async def test_notices_were_not_heard_while_the_last_turns_ended() -> None:
    order = list[str]()

    class Stopping:
        """A scheduler whose turns take a moment to end."""

        locks = Locks(cast("Inbox", None))
        ready = asyncio.Event()

        async def watch(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                order.append("watch ended")

        async def finish(self, grace_seconds: float) -> None:
            await asyncio.sleep(0.1)
            order.append("turns ended")

    stop = asyncio.Event()
    stop.set()
    parts = SimpleNamespace(
        scheduler=Stopping(),
        core=SimpleNamespace(settings=SimpleNamespace(http_port=None)),
        bot=SimpleNamespace(initialize=asyncio.Event().wait),
    )
    await run_app(cast("App", parts), stop)
    assert order == ["turns ended", "watch ended"]
