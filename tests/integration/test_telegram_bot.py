"""The handlers against a Bot API server: what people see in their chats."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.engine.run import Run
from agent.i18n import translate
from agent.turn import Reply, StoredMessage
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.server import eventually
from tests.running import RecordingTracer, at_rest, running

GROUP = -500
BOT_NAME = "sommelier_test_bot"
MENTION = {"type": "mention", "offset": 0, "length": len(BOT_NAME) + 1}
WORDLESS = "sticker poll location voice video giveaway".split()
UNSAID = "pinned_message new_chat_members successful_payment passport_data boost_added".split()


@dataclass
class FakeAnswerer:
    """Answers what `reply` says; keeps what it was asked, and the history it was given."""

    reply: Callable[[str], Awaitable[Reply]]
    asked: list[str] = field(default_factory=list)
    histories: list[Sequence[StoredMessage]] = field(default_factory=list)

    async def answer(
        self,
        message: str,
        run: Run,
        attachment: object = None,
        *,
        history: Sequence[StoredMessage] = (),
    ) -> Reply:
        self.asked.append(message)
        self.histories.append(history)
        return await self.reply(message)


def answering(
    text: str | None = None, *wine_ids: str, seconds: float = 0
) -> FakeAnswerer:
    async def reply(message: str) -> Reply:
        await asyncio.sleep(seconds)
        return Reply(
            text=f"About {message}" if text is None else text, wine_ids=wine_ids
        )

    return FakeAnswerer(reply)


@pytest.fixture
def messages(sqlite_sessions: Sessions) -> MessageRepository:
    return MessageRepository(sqlite_sessions)


async def test_a_message_is_answered_as_html_while_typing_is_shown(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    async with running(
        bot_api, answering("Try **Chinon** & lamb", seconds=0.2), messages
    ):
        bot_api.say("a red for lamb")
        assert await bot_api.wait_for_message() == ["Try Chinon & lamb"]
    (sent,) = bot_api.messages(CHAT)
    assert sent["entities"] == [{"type": "bold", "offset": 4, "length": 6}]
    methods = [call.method for call in bot_api.calls]
    assert methods.count("sendChatAction") == 1
    assert methods.index("sendChatAction") < methods.index("sendMessage")
    menu = "ask quotes find stop new taste cellar settings privacy export forget help"
    assert [command["command"] for command in bot_api.menus[""]] == menu.split()


async def test_a_turn_is_remembered_with_its_wines_until_it_is_forgotten(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering("Chinon. " * 400, "chinon-2020")
    async with running(bot_api, answerer, messages) as lanes:
        for number, text in enumerate(
            ("/new", "a red", "cheaper", "/new", "a white"), 1
        ):
            bot_api.say(text)
            seen = await bot_api.wait_for_message(number)
            await at_rest(lanes)
    assert (seen[0], seen[3]) == (
        translate("nothing_to_forget"),
        translate("forgotten"),
    )
    first, second, third = answerer.histories
    question, answer = second
    assert (question.role, question.content) == ("user", "a red")
    assert seen[1] == ("Chinon. " * 400).strip(), "the user reads the whole text"
    kept = ("Chinon. " * 250).strip()
    assert (answer.role, answer.content, answer.wine_ids) == (
        "assistant",
        kept,
        ("chinon-2020",),
    )
    assert first == third == []


async def test_a_message_without_words_gets_one_sentence_and_a_service_message_none(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    kinds = json.loads(
        (Path(__file__).parents[1] / "message_kinds.json").read_text("utf-8")
    )
    answerer = answering()
    async with running(bot_api, answerer, messages):
        for kind in (*UNSAID, *WORDLESS):
            bot_api.push({"message": message(**kinds[kind])})
        bot_api.say(" \n ")
        bot_api.say("/unknown")
        seen = await bot_api.wait_for_message(len(WORDLESS) + 2)
    wordless = [translate("text_only")] * (len(WORDLESS) + 1)
    assert (seen, answerer.asked) == ([*wordless, translate("unknown_command")], [])


async def test_an_edit_runs_the_last_turn_again_and_no_other(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages):
        bot_api.say("a red", message_id=77)
        await bot_api.wait_for_message()
        bot_api.push(
            {
                "edited_message": message(
                    text="a white after all", edit_date=1, message_id=77
                )
            }
        )
        assert await bot_api.wait_for_message(2) == [
            "About a red",
            "About a white after all",
        ]
        await eventually(
            lambda: answerer.histories == [[], []],
            seconds=30,
            otherwise=lambda: "history",
        )
        bot_api.push(
            {"edited_message": message(text="never seen", edit_date=1, message_id=5)}
        )
        assert (await bot_api.wait_for_message(3))[2] == translate("edited")
    kept = [stored.content for stored in await messages.list_recent(CHAT)]
    assert kept == ["a white after all", "About a white after all"]


async def test_in_a_group_a_second_message_does_not_make_the_bot_overhear_the_first(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    bot_api.say(f"@{BOT_NAME} a red 🍷", GROUP, entities=[MENTION], message_id=41)
    bot_api.say("for lamb, please", GROUP, message_id=42)
    async with running(bot_api, answerer, messages, JOIN_SECONDS="0.3"):
        await bot_api.wait_for_message(1)
    assert answerer.asked == ["a red 🍷\nfor lamb, please"]


async def test_in_a_group_only_those_who_turn_to_the_bot_are_answered(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    own = {
        **message(text="earlier"),
        "from": {"id": 123456789, "is_bot": True, "first_name": "S"},
    }
    async with running(bot_api, answerer, messages) as lanes:
        for others in ("what a lovely evening", "/unknown", "/help@another_bot"):
            bot_api.say(others, GROUP)
        bot_api.say(f"@{BOT_NAME} a red", GROUP, entities=[MENTION], message_id=41)
        bot_api.say("cheaper", GROUP, reply_to_message=own, message_id=42)
        bot_api.say(f"@{BOT_NAME}", GROUP, entities=[MENTION], message_id=43)
        bot_api.say(f"/unknown@{BOT_NAME}", GROUP, message_id=44)
        await bot_api.wait_for_message(4)
        await at_rest(lanes)
        bot_api.say(f"/new@{BOT_NAME}", GROUP, message_id=45)
        seen = await bot_api.wait_for_message(5)
    assert answerer.asked == ["a red", "cheaper"]
    sentences = [
        translate(name) for name in ("text_only", "unknown_command", "forgotten")
    ]
    assert seen == ["About a red", "About cheaper", *sentences]
    replies = [
        call.params["reply_parameters"] for call in bot_api.calls_of("sendMessage")
    ]
    assert [reply["message_id"] for reply in replies] == [41, 42, 43, 44, 45]


async def test_a_turn_that_fails_and_an_answer_that_is_refused_end_in_a_sentence(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    async def fail_once(text: str) -> Reply:
        if text == "a red":
            raise RuntimeError("a bug")
        return Reply(text=text)

    tracer = RecordingTracer()
    async with running(bot_api, FakeAnswerer(fail_once), messages, tracer):
        bot_api.say("a red")
        await bot_api.wait_for_message()
        bot_api.fail("sendMessage", 400, "Bad Request: can't parse entities")
        bot_api.say("**a rosé**")
        assert (await bot_api.wait_for_message(2))[-1] == "a rosé"
        bot_api.fail("sendMessage", 400, "Bad Request: message is too long", times=2)
        bot_api.say("a white")
        assert (await bot_api.wait_for_message(3))[::2] == [translate("apology")] * 2
    turn = tracer.turns[0].root
    assert turn.level == "ERROR"
    assert (turn.metadata["outcome"], turn.metadata["error_types"]) == (
        "failed",
        ["RuntimeError"],
    )


def message(**fields: object) -> dict[str, object]:
    return {
        "message_id": 77,
        "date": 1,
        "chat": {"id": CHAT, "type": "private", "first_name": "Ada"},
        "from": {"id": CHAT, "is_bot": False, "first_name": "Ada"},
        **fields,
    }
