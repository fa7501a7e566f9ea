"""Ratings: what users press and write, what is stored, and the scores that it becomes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from agent.i18n import translate
from agent.servers import Backoff
from agent.turn import Reply
from bot.app import App
from bot.clicks import CountedLinks
from bot.tasks import run_until
from bot.telegram.rating import rating_buttons
from bot.telegram.sender import ButtonRows
from bot.turn import Question, Turn
from db.engine import Sessions
from db.export_queue import RowQueue
from db.models import ScoreRow, TraceRow, TurnRow
from db.repositories.people import MessageRepository
from db.repositories.retention import Retention
from db.repositories.turns import TurnRepository
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import JsonObject, eventually
from tests.integration.test_telegram_bot import FakeAnswerer
from tests.running import running
from tests.traces import exporter_to

GROUP = -500
ADA, BOB = 1, 2
QUICK = 0.05  # seconds between two looks
MENTION = {"type": "mention", "offset": 0, "length": 19}
GARBAGE = [
    "v:",
    "v:abc:up",
    "v::up",
    "v:1:love",
    "v:1:up:down",
    "v:-1:up",
    f"v:{'9' * 30}:up",
]


def rate_only(
    turn: Turn, question: Question, reply: Reply, links: CountedLinks | None
) -> ButtonRows:
    """The buttons that rate an answer, and no others."""
    return rating_buttons(turn.id)


@dataclass
class Room:
    """A bot, the people who rate its answers, and the server that admins look at."""

    bot_api: BotApi
    langfuse: OtlpReceiver
    sessions: Sessions
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    bot: App = field(init=False)

    def __post_init__(self) -> None:
        self.may_answer.set()
        self.answerer = FakeAnswerer(self._reply)
        self.turns = TurnRepository(self.sessions)

    async def _reply(self, text: str) -> Reply:
        await self.may_answer.wait()
        return Reply(text="Try this one.")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The bot answers people until the block ends."""

        stopped = asyncio.Event()
        monkeypatch = pytest.MonkeyPatch()
        monkeypatch.setattr("bot.tracing.POLL_SECONDS", QUICK)
        monkeypatch.setattr("bot.tracing.SEND_BACKOFF", Backoff(QUICK, QUICK))
        monkeypatch.setattr("bot.tracing.CLAIM_TIME", timedelta(seconds=1))
        monkeypatch.setattr("db.traces.DELETION_DELAY", timedelta(seconds=QUICK))
        async with exporter_to(self.langfuse, self.sessions) as delivery:
            sending = asyncio.create_task(run_until(stopped, delivery.run))
            try:
                async with running(
                    self.bot_api,
                    self.answerer,
                    MessageRepository(self.sessions),
                    kept={"turns": self.turns},
                    exported=True,
                    buttons=rate_only,
                ) as self.bot:
                    yield
            finally:
                stopped.set()
                monkeypatch.undo()
                await sending

    async def ask(self, words: str, *where: int, **fields: Any) -> JsonObject:
        """The message that answers a person."""
        before = len(self.bot_api.messages())
        self.bot_api.say(words, *where, **fields)
        await self.bot_api.wait_for_message(before + 1)
        return self.bot_api.messages()[-1]

    async def press(
        self, message: JsonObject, action: str, user_id: int | None = None
    ) -> str:
        """What is said to a press on a button; `action` is its data if that has a colon."""
        data = action if ":" in action else f"v:{turn_of(message)}:{action}"
        before, chat_id = len(self.bot_api.toasts), message["chat"]["id"]
        (now,) = (
            one
            for one in self.bot_api.messages(chat_id)
            if turn_of(one) == turn_of(message)
        )
        self.bot_api.press(now | {"date": message["date"]}, data, user_id)
        await eventually(
            lambda: len(self.bot_api.toasts) > before,
            seconds=30,
            otherwise=lambda: "no toast",
        )
        # A toast is shown before the commit.
        await eventually(
            lambda: f"aside-{chat_id}" not in self.bot.scheduler.running,
            seconds=30,
            otherwise=lambda: "the press was not committed",
        )
        return self.bot_api.toasts[-1]

    async def shows(self, *rows: str) -> None:
        """Return once the first message has these buttons."""

        def shown() -> list[str]:
            keyboard = self.bot_api.messages()[0]["reply_markup"]["inline_keyboard"]
            return [" | ".join(button["text"] for button in row) for row in keyboard]

        await eventually(
            lambda: shown() == [*rows], seconds=30, otherwise=lambda: str(shown())
        )

    async def stored(self, message: JsonObject) -> TurnRow | None:
        """The turn of a message, if it is rated."""
        turn = await self.turns.get(turn_of(message))
        return turn if turn and turn.verdict else None

    async def scores(self) -> dict[str, JsonObject]:
        """The scores that people gave, by name, once all is delivered."""
        queues = RowQueue(self.sessions, TraceRow), RowQueue(self.sessions, ScoreRow)
        async with asyncio.timeout(30):
            while any(  # noqa: ASYNC110
                [(await queue.count_by_state()).get("waiting") for queue in queues]
            ):
                await asyncio.sleep(0.01)
        ours = [
            score for score in self.langfuse.scores if score["name"].startswith("user_")
        ]
        assert len({score["name"] for score in ours}) == len(ours)
        return {score["name"]: score for score in ours}


@pytest.fixture
def room(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, sqlite_sessions: Sessions
) -> Room:
    return Room(bot_api, otlp_receiver, sqlite_sessions)


def turn_of(message: JsonObject) -> int:
    keyboard = message["reply_markup"]["inline_keyboard"]
    return int(keyboard[-1][0]["callback_data"].split(":")[1])


async def test_a_rating_is_shown_and_is_the_one_score_of_its_turn_however_often_it_changes(
    room: Room,
) -> None:
    async with room.open():
        answer = await room.ask("a red for lamb")
        assert await room.press(answer, "up") == translate("liked")
        await room.shows("👍 ✓ | 👎")
        liked = (await room.scores())["user_feedback"]
        root = room.langfuse.span("turn")
        assert (liked["value"], liked["dataType"]) == (1, "BOOLEAN")
        assert (liked["traceId"], liked["observationId"]) == (
            root.trace_id,
            root.span_id,
        )
        assert await room.press(answer, "down") == translate("disliked")
        await room.shows(
            "👍 | 👎 ✓", "Wrong wine | Not what I asked", "Wrong facts | Tone"
        )
        # Langfuse replaces what has the same id and the same timestamp, and nothing else.
        assert await room.scores() == {"user_feedback": liked | {"value": 0}}
        assert await room.press(answer, "wrong_facts") == translate("reason_noted")
        await room.shows(
            "👍 | 👎 ✓", "Wrong wine | Not what I asked", "Wrong facts ✓ | Tone"
        )
        scores = await room.scores()
        assert scores["user_feedback_reason"]["value"] == "wrong_facts"
        await room.press(answer, "up")
        assert list(await room.scores()) == ["user_feedback"]
        assert await room.press(answer, "none") == translate("taken_back")
        await room.shows("👍 | 👎")
        assert await room.scores() == {}


async def test_a_reply_to_a_disliked_answer_is_a_masked_comment_and_is_answered(
    room: Room,
) -> None:
    async with room.open():
        answer = await room.ask("a red for lamb")
        await room.ask("It is a rosé", reply_to_message=answer)
        await room.press(answer, "down")
        assert not (await room.scores())["user_feedback"].get("comment")
        reply = "It was a rosé, says ADA; write to ada@example.org"
        await room.ask(reply, reply_to_message=answer)
        stored = await room.stored(answer)
        assert stored is not None
        assert stored.comment == "It was a rosé, says [name]; write to [email]"
        assert (await room.scores())["user_feedback"]["comment"] == stored.comment
    assert room.answerer.asked[1:] == ["It is a rosé", reply]


async def test_in_a_group_only_who_asked_can_rate_and_comment(room: Room) -> None:
    async with room.open():
        answer = await room.ask(
            "@sommelier_test_bot a red", GROUP, ADA, entities=[MENTION]
        )
        assert await room.press(answer, "down", BOB) == translate("not_yours")
        assert await room.stored(answer) is None
        await room.press(answer, "down", ADA)
        await room.ask("It was a white", GROUP, ADA, reply_to_message=answer)
        await room.ask("A white?", GROUP, BOB, reply_to_message=answer)
        stored = await room.stored(answer)
    assert stored is not None
    assert stored.comment == "It was a white"


async def test_an_old_a_double_and_a_forged_press_do_no_harm(room: Room) -> None:
    async with room.open():
        answer = await room.ask("a red for lamb")
        for data in GARBAGE:
            assert await room.press(answer, data) == translate("button_too_old")
        assert await room.stored(answer) is None
        for _ in range(2):
            assert await room.press(answer, "up") == translate("liked")
        await room.shows("👍 ✓ | 👎")
        await Retention(room.sessions).delete_turns(timedelta(0))
        assert await room.press(answer | {"date": 1}, "up") == translate(
            "button_too_old"
        )
    assert await room.stored(answer) is None


async def test_buttons_and_commands_do_not_wait_for_the_answer_that_forms(
    room: Room,
) -> None:
    async with room.open():
        answer = await room.ask("a red for lamb")
        room.may_answer.clear()
        room.bot_api.say("and a white?")
        await eventually(
            lambda: len(room.answerer.asked) == 2,
            seconds=30,
            otherwise=lambda: "no turn",
        )
        assert await room.press(answer, "up") == translate("liked")
        await room.shows("👍 ✓ | 👎")
        assert (await room.ask("/help"))["text"].startswith("What you can ask")
        room.may_answer.set()
        await room.bot_api.wait_for_message(3)
