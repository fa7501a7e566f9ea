"""Buttons under answers and reactions to them, through the process as it is run."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.acceptance.test_end_to_end import (
    CHAT,
    WINE,
    killed,
    known_to,
    running_here,
    traced_to,
)
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, hang, tool_call
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import JsonObject, eventually

GROUP, ADA, BOB = -4711, 7001, 7002
NAME = "@sommelier_test_bot"
MENTION = [{"type": "mention", "offset": 0, "length": len(NAME)}]


FORMING = "…"


def labels(message: JsonObject) -> list[str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in rows for button in row]


def data(message: JsonObject, label: str) -> str:
    rows = message["reply_markup"]["inline_keyboard"]
    return next(
        str(one["callback_data"]) for row in rows for one in row if one["text"] == label
    )


def query(environment: dict[str, str], sql: str) -> list[Any]:
    (file,) = Path(environment["XDG_DATA_HOME"]).rglob("sommelier.sqlite3")
    with closing(sqlite3.connect(file)) as database:
        return database.execute(sql).fetchall()


def history(environment: dict[str, str]) -> list[tuple[str, str]]:
    """What is remembered of people's words, and how a turn of theirs ended."""
    return query(
        environment,
        "SELECT content, outcome FROM messages JOIN turns USING (turn_id) "
        "WHERE role = 'user' ORDER BY id",
    )


async def answered(bot_api: BotApi, count: int, chat: int = CHAT) -> JsonObject:
    await eventually(
        lambda: len(bot_api.sent(chat)) >= count and bot_api.sent(chat)[-1] != FORMING
    )
    return bot_api.messages(chat)[-1]


async def kept(environment: dict[str, str], turns: int) -> None:
    """Wait until so many turns are over, and sent."""
    unsent = "SELECT 1 FROM outbox WHERE message_id IS NULL"
    await eventually(
        lambda: len(history(environment)) == turns and not query(environment, unsent)
    )


async def idle(environment: dict[str, str]) -> None:
    """Wait until no lane runs: a press during a turn is acknowledged before it is handled."""
    await eventually(
        lambda: not query(environment, "SELECT 1 FROM updates WHERE state != 'done'")
    )
    await asyncio.sleep(0.2)


async def toasted(bot_api: BotApi, count: int) -> str:
    await eventually(lambda: len(bot_api.toasts) >= count)
    return bot_api.toasts[-1]


async def test_a_press_is_a_turn_in_the_words_of_its_button_and_happens_once(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say("a red for lamb under 40, full-bodied", chat_id=CHAT)
        first = await answered(bot_api, 1)
        offered = ["Cheaper", "Lighter", "Fuller", "More like 1", "Why?"]
        assert labels(first) == [*offered, "👍", "👎"]
        pressed = data(first, "Cheaper")
        await idle(environment)
        bot_api.press(first, pressed)
        second = await answered(bot_api, 2)
        assert await toasted(bot_api, 1) == ""
        await idle(environment)
        assert labels(bot_api.messages(CHAT)[0]) == ["👍", "👎"]
        bot_api.press(first, pressed)
        assert await toasted(bot_api, 2) == "One moment …"
        await idle(environment)
        bot_api.press(second, "n:7001:elsewhere")
        assert "no longer works" in await toasted(bot_api, 3)
        await idle(environment)
        bot_api.press(second, data(second, "Why?"), user_id=BOB)
        assert "for the person who asked" in await toasted(bot_api, 4)
        bot_api.say("a white for fish", chat_id=CHAT)
        third = await answered(bot_api, 3)
        await idle(environment)
        bot_api.press(second, data(second, "Why?"))
        await answered(bot_api, 4)
        left = labels(bot_api.messages(CHAT)[1])
        assert "Why?" not in left
        assert "More like 1" in left
        bot_api.say("/new", chat_id=CHAT)
        await answered(bot_api, 5)
        await idle(environment)
        bot_api.press(third, data(third, "More like 1"))
        assert "no longer works" in await toasted(bot_api, 6)
    assert len(bot_api.sent(CHAT)) == 5
    prices = (
        [float(one) for one in _prices(first)],
        [float(one) for one in _prices(second)],
    )
    assert max(prices[1]) <= min(prices[0])


def _prices(message: JsonObject) -> list[str]:
    lines = message["text"].splitlines()
    return [line.rpartition("≈ €")[2] for line in lines if "≈ €" in line]


TURN = (
    tool_call("get_wine", {"wine_ids": [WINE]}),
    answer_json(
        {
            "response_type": "recommendation",
            "intro": "Here:",
            "wines": [{"wine_id": WINE, "description": "Dry."}],
            "closing": "",
        }
    ),
)


async def test_a_press_during_an_answer_waits_for_its_turn(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    environment |= known_to(model_server)
    model_server.script(*TURN, hang(60), *TURN)
    async with running_here(bot_api, environment):
        bot_api.say("for trout?", chat_id=CHAT)
        first = await answered(bot_api, 1)
        bot_api.say("for carp?", chat_id=CHAT)
        await eventually(lambda: len(model_server.requests) == 3)
        bot_api.press(first, data(first, "Cheaper"))
        bot_api.say("/stop", chat_id=CHAT)
        await answered(bot_api, 3)
    said = [words for words, _ in history(environment)]
    assert said == ["for trout?", "for carp?", "Cheaper, please."]


async def test_a_press_survives_a_kill(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    environment |= known_to(model_server)
    model_server.script(*TURN, hang(60), *TURN)
    with killed(bot_api, environment):
        bot_api.say("for trout?", chat_id=CHAT)
        first = await answered(bot_api, 1)
        bot_api.press(first, data(first, "Cheaper"))
        await eventually(lambda: len(model_server.requests) == 3)
    async with running_here(bot_api, environment):
        await bot_api.wait_for_message(2, CHAT)
        await kept(environment, 2)
    assert len(bot_api.sent(CHAT)) == 2
    assert history(environment) == [
        ("for trout?", "answered"),
        ("Cheaper, please.", "answered"),
    ]


async def test_a_reaction_to_an_answer_is_a_verdict_of_who_asked(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    def verdicts() -> list[Any]:
        return query(environment, "SELECT verdict FROM turns")

    async def rated(verdict: str | None) -> None:
        await eventually(lambda: verdicts() == [(verdict,)])

    async with running_here(bot_api, environment, **traced_to(otlp_receiver)):
        bot_api.say(f"{NAME} a red for lamb", GROUP, ADA, entities=MENTION)
        answer = await answered(bot_api, 1, GROUP)
        await kept(environment, 1)
        bot_api.react(answer, "💩", user_id=BOB)
        bot_api.react(answer, "🔥", user_id=0, user=None, actor_chat=answer["chat"])
        bot_api.react(answer, "🤔", user_id=ADA)
        bot_api.react(answer, "❤", before="🤔", user_id=ADA)
        await rated("liked")
        bot_api.react(answer, "", before="❤", user_id=ADA)
        await rated(None)
        bot_api.press(answer, data(answer, "👎"), user_id=ADA)
        await rated("disliked")
        bot_api.react(answer, "", before="👌", user_id=ADA)
        bot_api.react(answer, "🔥", user_id=ADA)
        await rated("liked")
    scores = {score["name"]: score["value"] for score in otlp_receiver.scores}
    assert scores["user_feedback"] == 1
