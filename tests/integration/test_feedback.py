"""👍 and 👎: what people press and write, what is kept of it, and the scores that it becomes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from agent.documents.citations import NOT_ENOUGH
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.i18n import say
from agent.retrying import Backoff
from agent.tracing.recorder import Recorder
from agent.turn import Reply
from bot.tasks import unless
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.rating import RatingButtons, rating
from bot.turn import Save
from bot.updates.lanes import Lanes
from db.engine import Sessions
from db.models import TurnRow
from db.repositories.people import MessageRepository
from db.repositories.scores import score_queue
from db.repositories.traces import TraceRows, trace_queue
from db.repositories.turns import FeedbackRepository, TurnRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, answer, error
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import JsonObject, eventually
from tests.library import FakeLibrary, open_model
from tests.running import Sources, running
from tests.traces import exporter_to

pytestmark = pytest.mark.usefixtures("unhurried")

R = TypeVar("R")

GROUP = -500
ADA, BOB = 1, 2
QUICK = 0.05  # seconds between two looks
AT_ONCE = Backoff(QUICK, QUICK)


@dataclass
class FakeAnswerer:
    """Answers what it is asked, once it may; keeps what that was."""

    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    text: str = "Try this one."

    def __post_init__(self) -> None:
        self.may_answer.set()

    async def answer(self, message: str, run: Run, attached: object = None) -> Reply:
        self.asked.append(message)
        await self.may_answer.wait()
        return Reply(text=self.text)


@dataclass
class SlowTurns:
    """A repository of turns that does not answer before it may."""

    turns: TurnRepository
    may_answer: asyncio.Event

    async def get(self, turn_id: int) -> TurnRow | None:
        await self.may_answer.wait()
        return await self.turns.get(turn_id)


@dataclass
class Room:
    """A bot, the people who rate its answers, and the server that admins look at."""

    bot_api: BotApi
    langfuse: OtlpReceiver
    answerer: FakeAnswerer
    feedback: FeedbackRepository
    turns: TurnRepository
    messages: MessageRepository
    sessions: Sessions
    answers_read: asyncio.Event = field(default_factory=asyncio.Event)
    lanes: Lanes | None = None

    @asynccontextmanager
    async def open(
        self,
        *,
        delivering: bool = True,
        sources: Sources | None = None,
        save: Save | None = None,
    ) -> AsyncIterator[None]:
        """The bot answers people until the block ends."""
        slow = SlowTurns(self.turns, self.answers_read)

        def further(conversation: Conversation) -> list[AnyHandler]:
            return RatingButtons(conversation, delivery.wake).handlers()

        stopped = asyncio.Event()
        async with exporter_to(self.langfuse, self.sessions) as delivery:
            delivery.backoff, delivery.look_seconds = AT_ONCE, QUICK
            sending = unless(stopped, delivery.run()) if delivering else None
            sending_now = asyncio.create_task(sending) if sending else None
            try:
                async with running(
                    self.bot_api,
                    self.answerer,
                    self.messages,
                    Recorder(),
                    sources=sources,
                    further=further,
                    kept={"feedback": self.feedback, "turns": slow},
                    save=save or self.turns.save,
                    sessions=self.turns._sessions,
                    exported=True,
                    buttons=lambda question, reply: rating(question.id),
                ) as queue:
                    self.lanes = queue
                    yield
            finally:
                stopped.set()
                if sending_now:
                    await sending_now

    async def answered(self, text: str = "a red for lamb", **said: int) -> JsonObject:
        """The message that answers a person; its turn is kept."""
        before = len(self.bot_api.messages())
        turn_id = self.bot_api.say(text, **said)
        await self.bot_api.wait_for_message(before + 1)
        await until(lambda: self.turns.get(turn_id))
        return self.bot_api.messages()[-1]

    async def press(self, label: str, user_id: int | None = None, n: int = -1) -> str:
        """What is said to a press on a button that is there now, once all is shown."""
        message = self.bot_api.messages()[n]
        return await self.press_old(message, data_of(message, label), user_id)

    async def press_old(self, message: JsonObject, data: str, user_id: int | None = None) -> str:
        before = len(self.bot_api.toasts)
        self.bot_api.press(message, data, user_id)
        await self.toast(before + 1)
        await eventually(
            lambda: self.lanes is None or not self.lanes.active,
            seconds=30,
            otherwise=lambda: "no end",
        )
        return self.bot_api.toasts[-1]

    async def toast(self, n: int = 1) -> str:
        """What is said to the nth press."""
        await eventually(
            lambda: len(self.bot_api.toasts) >= n, seconds=30, otherwise=lambda: "no toast"
        )
        return self.bot_api.toasts[n - 1]

    async def kept(self, message: JsonObject) -> TurnRow | None:
        turn = await self.turns.get(turn_of(message))
        return turn if turn and turn.verdict else None

    async def delivered(self) -> None:
        """Return when nothing is left to deliver."""
        queues = trace_queue(self.sessions), score_queue(self.sessions)

        async def is_empty() -> bool:
            return not any([(await queue.backlog()).get("waiting") for queue in queues])

        await until(is_empty)

    @property
    def verdicts(self) -> dict[str, JsonObject]:
        """The scores that people gave, by name."""
        ours = [each for each in self.langfuse.scores if each["name"].startswith("user_")]
        assert len({each["name"] for each in ours}) == len(ours)
        return {each["name"]: each for each in ours}


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Return as soon as `condition` holds; AssertionError after half a minute."""
    for _ in range(3000):
        if await condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within 30 s")


@pytest.fixture
async def room(bot_api: BotApi, otlp_receiver: OtlpReceiver) -> AsyncIterator[Room]:
    engine = await migrated_sqlite(Path("test.sqlite3"))
    sessions = Sessions(engine)
    room = Room(
        bot_api,
        otlp_receiver,
        FakeAnswerer(),
        FeedbackRepository(sessions, rows=TraceRows(exported=True)),
        TurnRepository(sessions, rows=TraceRows(exported=True)),
        MessageRepository(sessions),
        sessions,
    )
    room.answers_read.set()
    yield room
    await engine.dispose()


def rows(message: JsonObject) -> list[list[str]]:
    keyboard = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [[button["text"] for button in row] for row in keyboard]


def data_of(message: JsonObject, label: str) -> str:
    keyboard = message["reply_markup"]["inline_keyboard"]
    (data,) = [each["callback_data"] for row in keyboard for each in row if each["text"] == label]
    assert len(data.encode()) <= 64
    return str(data)


def turn_of(message: JsonObject) -> int:
    keyboard = message["reply_markup"]["inline_keyboard"]
    return int(keyboard[-1][0]["callback_data"].split(":")[1])


REASONS = [["Wrong wine", "Not what I asked"], ["Wrong facts", "Tone"], [say("in_my_words")]]
GARBAGE = [
    "v:",
    "v:abc:up",
    "v::up",
    "v:1:love",
    "v:1:up:down",
    "v:-1:up",
    f"v:{'9' * 30}:up",
    "v:１:up",
    "v:" + "🍷" * 15,
    "🍷" * 16,
]
NO_VERDICT = [["👍", "👎"]]
LIKED = [["👍 ✓", "👎"]]
DISLIKED = [["👍", "👎 ✓"], *REASONS]


async def test_the_last_message_of_every_answer_can_be_rated(room: Room) -> None:
    room.answerer.text = "A long sentence. " * 400
    async with room.open():
        room.bot_api.say("a red for lamb")
        await room.bot_api.wait_for_message(2)
        room.bot_api.say("/help")
        await room.bot_api.wait_for_message(3)
    assert [rows(each) for each in room.bot_api.messages()] == [[], NO_VERDICT, []]


async def test_a_verdict_is_shown_kept_and_a_score_on_the_trace_of_its_turn(room: Room) -> None:
    async with room.open():
        message = await room.answered()
        assert await room.press("👍") == say("liked")
        assert rows(room.bot_api.messages()[0]) == LIKED
        await room.delivered()
    root = room.langfuse.span("turn")
    turn = await room.turns.get(turn_of(message))
    assert turn
    assert room.verdicts == {
        "user_feedback": {
            "id": f"{root.trace_id}-user_feedback",
            "traceId": root.trace_id,
            "observationId": root.span_id,
            "name": "user_feedback",
            "value": 1,
            "dataType": "BOOLEAN",
            "environment": "test",
            "timestamp": turn.at.isoformat().replace("+00:00", "Z"),
        }
    }
    assert len(room.langfuse.trace_ids) == 1
    methods = [call.method for call in room.bot_api.calls]
    assert methods.count("editMessageReplyMarkup") == 1


async def test_pressing_again_takes_it_back_and_the_score_goes(room: Room) -> None:
    async with room.open():
        message = await room.answered()
        await room.press("👍")
        await room.delivered()
        assert await room.press("👍 ✓") == say("taken_back")
        assert rows(room.bot_api.messages()[0]) == NO_VERDICT
        await room.delivered()
        assert room.verdicts == {}
        assert await room.kept(message) is None
        await room.press("👎")
        await room.delivered()
    assert room.verdicts["user_feedback"]["value"] == 0


async def test_the_other_thumb_changes_the_one_score(room: Room) -> None:
    async with room.open():
        await room.answered()
        await room.press("👍")
        await room.delivered()
        liked = room.verdicts["user_feedback"]
        assert await room.press("👎") == say("disliked")
        assert rows(room.bot_api.messages()[0]) == DISLIKED
        await room.delivered()
    # Langfuse replaces what has the same id and the same timestamp, and nothing else.
    assert room.verdicts == {"user_feedback": liked | {"value": 0}}


async def test_a_reason_is_a_score_of_its_own_and_goes_with_the_dislike(room: Room) -> None:
    async with room.open():
        await room.answered()
        await room.press("👎")
        assert await room.press("Wrong facts") == say("reason_noted")
        ticked = [each.copy() for each in DISLIKED]
        ticked[2][0] = "Wrong facts ✓"
        assert rows(room.bot_api.messages()[0]) == ticked
        await room.delivered()
        verdict, reason = (
            room.verdicts[name] for name in ("user_feedback", "user_feedback_reason")
        )
        assert (verdict["value"], verdict["comment"]) == (0, "Wrong facts")
        assert (reason["value"], reason["dataType"]) == ("wrong_facts", "CATEGORICAL")
        assert reason["observationId"] == verdict["observationId"]
        await room.press("Tone")
        await room.delivered()
        assert room.verdicts["user_feedback_reason"]["value"] == "tone"
        await room.press("👍")
        await room.delivered()
    assert list(room.verdicts) == ["user_feedback"]
    assert room.verdicts["user_feedback"]["value"] == 1
    assert "comment" not in room.verdicts["user_feedback"]


class TestInOwnWords:
    async def asked(self, room: Room) -> JsonObject:
        await room.answered()
        await room.press("👎")
        await room.press("Wrong wine")
        assert await room.press(say("in_my_words")) == ""
        await room.bot_api.wait_for_message(2)
        await eventually_asked(room)
        return room.bot_api.messages()[-1]

    async def test_a_reply_is_a_comment_and_no_turn(self, room: Room) -> None:
        async with room.open():
            asked = await self.asked(room)
            call = room.bot_api.calls_of("sendMessage")[-1]
            assert call.params["reply_markup"]["force_reply"] is True
            reply = "It was a rosé, says ADA; write to ada@example.org"
            room.bot_api.say(reply, reply_to_message=asked)
            said = await room.bot_api.wait_for_message(3)
            await room.delivered()
            messages = await room.messages.recent(CHAT)
        assert said[1:] == [say("tell_me"), say("comment_noted")]
        assert room.answerer.asked == ["a red for lamb"]
        assert [each.content for each in messages] == ["a red for lamb", "Try this one."]
        comment = room.verdicts["user_feedback"]["comment"]
        assert comment == "Wrong wine: It was a rosé, says [name]; write to [email]"
        assert len(room.langfuse.trace_ids) == 1

    async def test_it_can_be_written_after_a_restart_and_edited(self, room: Room) -> None:
        async with room.open():
            asked = await self.asked(room)
        async with room.open():
            room.bot_api.say("Too sweet", reply_to_message=asked, message_id=77)
            await room.bot_api.wait_for_message(3)
            update = {"message_id": 77, "date": 1, "edit_date": 2, "chat": asked["chat"]}
            person = {"id": CHAT, "is_bot": False, "first_name": "Ada"}
            edited = update | {"from": person, "text": "Too dry", "reply_to_message": asked}
            room.bot_api.push({"edited_message": edited})
            said = await room.bot_api.wait_for_message(4)
            await room.delivered()
        assert said[2:] == [say("comment_noted")] * 2
        assert room.verdicts["user_feedback"]["comment"] == "Wrong wine: Too dry"
        assert len(room.answerer.asked) == 1

    async def test_a_reply_about_a_verdict_that_was_taken_back_says_so(self, room: Room) -> None:
        async with room.open():
            asked = await self.asked(room)
            await room.press("👎 ✓", n=0)
            room.bot_api.say("Too sweet", reply_to_message=asked)
            assert (await room.bot_api.wait_for_message(3))[2] == say("comment_unknown")
            await room.delivered()
        assert room.verdicts == {}
        assert len(room.answerer.asked) == 1

    async def test_in_a_group_the_reply_of_somebody_else_is_an_ordinary_message(
        self, room: Room
    ) -> None:
        async with room.open():
            mention = "@sommelier_test_bot a red"
            entity = {"type": "mention", "offset": 0, "length": 19}
            room.bot_api.say(mention, GROUP, ADA, entities=[entity])
            await room.bot_api.wait_for_message()
            answer = room.bot_api.messages()[0]
            await room.press("👎", ADA)
            await room.press(say("in_my_words"), ADA)
            await room.bot_api.wait_for_message(2)
            await eventually_asked(room)
            asked = room.bot_api.messages()[-1]
            assert asked["text"] == f"Ada: {say('tell_me')}"
            room.bot_api.say("and a white?", GROUP, BOB, reply_to_message=asked)
            said = await room.bot_api.wait_for_message(3)
            assert said[2] == "Try this one."
            room.bot_api.say("It was a white", GROUP, ADA, reply_to_message=asked)
            assert (await room.bot_api.wait_for_message(4))[3] == say("comment_noted")
        assert room.answerer.asked == ["a red", "and a white?"]
        kept = await room.kept(answer)
        assert kept is not None
        assert kept.comment == "It was a white"

    async def test_a_command_in_reply_is_a_command(self, room: Room) -> None:
        async with room.open():
            asked = await self.asked(room)
            room.bot_api.say("/new", reply_to_message=asked)
            await room.bot_api.wait_for_message(3)
            kept = await room.kept(room.bot_api.messages()[0])
        assert kept
        assert kept.comment == ""

    async def test_telegram_not_taking_the_question_leaves_the_dislike(self, room: Room) -> None:
        async with room.open():
            await room.answered()
            await room.press("👎")
            room.bot_api.fail("sendMessage", 400, "Bad Request: TOPIC_CLOSED")
            await room.press(say("in_my_words"))
            await room.press("Tone")
            await room.delivered()
        assert room.verdicts["user_feedback_reason"]["value"] == "tone"


async def eventually_asked(room: Room) -> None:
    """The message that asks is known to be about a turn."""
    asked = room.bot_api.messages()[-1]
    await until(lambda: room.feedback.asked_about(asked["chat"]["id"], asked["message_id"]))


class TestHarmless:
    async def test_only_who_asked_can_rate(self, room: Room) -> None:
        async with room.open():
            entity = {"type": "mention", "offset": 0, "length": 19}
            room.bot_api.say("@sommelier_test_bot a red", GROUP, ADA, entities=[entity])
            await room.bot_api.wait_for_message()
            (message,) = room.bot_api.messages()
            assert await room.press("👎", BOB) == say("not_yours")
            assert rows(room.bot_api.messages()[0]) == NO_VERDICT
            assert await room.kept(message) is None
            assert await room.press("👎", ADA) == say("disliked")

    async def test_a_turn_that_was_forgotten_is_too_old(self, room: Room) -> None:
        async with room.open():
            message = await room.answered()
            await room.turns.forget(timedelta(0))
            old = message | {"date": 1}
            assert await room.press_old(old, data_of(message, "👍")) == say("answer_too_old")
        assert await room.kept(message) is None
        assert room.bot_api.calls_of("editMessageReplyMarkup") == []

    async def test_garbage_gets_a_short_answer_and_does_nothing(
        self, room: Room, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with room.open(sources=Sources(documents=FakeLibrary())):
            message = await room.answered()
            gone = {"message_id": message["message_id"], "date": 0, "chat": message["chat"]}
            words = [await room.press_old(message, data) for data in GARBAGE]
            words.append(await room.press_old(gone, data_of(message, "👍")))
            assert await room.kept(message) is None
        assert words == [say("answer_too_old")] * 9 + [say("button_too_old"), say("answer_too_old")]
        assert room.bot_api.calls_of("editMessageReplyMarkup") == []
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

    async def test_telegram_finding_the_press_too_old_and_the_buttons_as_they_are(
        self, room: Room, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with room.open():
            message = await room.answered()
            room.bot_api.fail("answerCallbackQuery", 400, "Bad Request: query is too old")
            room.bot_api.press(message, data_of(message, "👍"))
            await room.press_old(message, data_of(message, "👍"))
            await room.delivered()
        assert rows(room.bot_api.messages()[0]) == LIKED
        statuses = [call.status for call in room.bot_api.calls_of("editMessageReplyMarkup")]
        assert statuses == [200, 400]
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

    async def test_other_buttons_under_the_answer_stay(
        self, room: Room, model_server: ModelServer
    ) -> None:
        model_server.script(answer(f"{NOT_ENOUGH}."), error(400), answer(f"{NOT_ENOUGH}."))
        async with open_model(model_server) as model:
            limits = Limits(seconds=10, model_tries=1, structured_output_max_retries=0)
            sources = Sources(documents=FakeLibrary(), models=[model], limits=limits)
            async with room.open(sources=sources):
                await room.answered("/ask What are lees?")
                await room.press("👍")
                assert rows(room.bot_api.messages()[0]) == [["Refine my question"], *LIKED]
                room.bot_api.press(room.bot_api.messages()[0], "refine")
                await room.bot_api.wait_for_message(2)
        assert rows(room.bot_api.messages()[0]) == LIKED


class TestAtOnce:
    async def test_a_press_while_a_turn_runs_is_heard_within_a_second(self, room: Room) -> None:
        async with room.open():
            message = await room.answered()
            room.answerer.may_answer.clear()
            room.bot_api.say("and a white?")
            await eventually(
                lambda: len(room.answerer.asked) == 2, seconds=30, otherwise=lambda: "no turn"
            )
            room.bot_api.press(message, data_of(message, "👍"))
            await eventually(
                lambda: rows(room.bot_api.messages()[0]) == LIKED, seconds=30, otherwise=str
            )
            assert len(room.bot_api.calls_of("answerCallbackQuery")) == 1
            assert len(room.bot_api.messages()) == 1
            room.answerer.may_answer.set()
            await room.bot_api.wait_for_message(2)

    async def test_a_database_that_hangs_costs_neither_the_answer_nor_the_press(
        self, room: Room, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bot.telegram.rating.ANSWER_SECONDS", 0.1)
        async with room.open():
            message = await room.answered()
            room.answers_read.clear()
            room.bot_api.press(message, data_of(message, "👎"))
            assert await room.toast() == say("one_moment")
            assert await room.kept(message) is None
            room.answers_read.set()
            await eventually(
                lambda: rows(room.bot_api.messages()[0]) == DISLIKED, seconds=30, otherwise=str
            )
            await room.delivered()
        assert room.verdicts["user_feedback"]["value"] == 0

    async def test_one_button_pressed_twice_at_once_says_it_once(self, room: Room) -> None:
        async with room.open():
            message = await room.answered()
            room.bot_api.press(message, data_of(message, "👍"))
            assert await room.press_old(message, data_of(message, "👍")) == say("liked")
            await room.delivered()
        kept = await room.kept(message)
        assert kept is not None
        assert kept.verdict == "liked"
        assert room.verdicts["user_feedback"]["value"] == 1

    async def test_of_both_thumbs_pressed_at_once_the_last_counts(self, room: Room) -> None:
        async with room.open():
            message = await room.answered()
            room.bot_api.press(message, data_of(message, "👍"))
            room.bot_api.press(message, data_of(message, "👎"))
            await eventually(
                lambda: rows(room.bot_api.messages()[0]) == DISLIKED, seconds=30, otherwise=str
            )
            await room.delivered()
        assert [each["value"] for each in room.verdicts.values()] == [0]


async def test_a_restart_between_press_and_delivery_loses_nothing(room: Room) -> None:
    async with room.open(delivering=False):
        await room.answered()
        await room.press("👎")
    assert room.verdicts == {}
    async with room.open():
        await room.delivered()
    assert room.verdicts["user_feedback"]["value"] == 0
