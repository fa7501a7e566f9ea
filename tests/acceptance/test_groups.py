"""Topics and groups, through the process as it is run: whose words are whose, and where."""

from typing import Any

import pytest

from tests.acceptance.test_end_to_end import ANSWER, known_to, running_here
from tests.acceptance.test_follow_ups import answered, kept
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, hang, tool_call
from tests.doubles.server import JsonObject, eventually

GROUP, SUPERGROUP, PERSON = -4711, -1004711, 4711
ADA, BOB = 7001, 7002
NAME = "@sommelier_test_bot"
MENTION = [{"type": "mention", "offset": 0, "length": len(NAME)}]
SEARCH = tool_call(
    "search_wines", {"styles": ["white"], "foods": ["fish"], "text": "Trimbach"}
)
TURN = (SEARCH, answer_json(ANSWER))


@pytest.fixture
def machine(environment: dict[str, str], model_server: ModelServer) -> dict[str, str]:
    return environment | known_to(model_server)


def said_before(model: ModelServer) -> list[str]:
    """What a model was shown of the people's words before its newest turn."""
    messages: list[JsonObject] = model.requests[-1].json["messages"]
    return [message["content"] for message in messages if message["role"] == "user"][
        :-1
    ]


def in_topic(number: int) -> dict[str, Any]:
    return {"message_thread_id": number, "is_topic_message": True}


async def test_each_topic_is_a_conversation_of_its_own(
    bot_api: BotApi, model_server: ModelServer, machine: dict[str, str]
) -> None:
    model_server.script(*TURN * 4)
    async with running_here(bot_api, machine):
        for count, (words, topic) in enumerate(
            (("trout?", 5), ("carp?", 6), ("drier?", 5)), 1
        ):
            bot_api.say(words, chat_id=PERSON, **in_topic(topic))
            await bot_api.wait_for_message(count, chat_id=PERSON)
        assert said_before(model_server) == ["trout?"]
        bot_api.say("/new", chat_id=PERSON, **in_topic(5))
        await bot_api.wait_for_message(4, chat_id=PERSON)
        bot_api.say("sweeter?", chat_id=PERSON, **in_topic(6))
        await bot_api.wait_for_message(5, chat_id=PERSON)
    assert said_before(model_server) == ["carp?"]
    topics = [message.get("message_thread_id") for message in bot_api.messages(PERSON)]
    assert topics == [5, 6, 5, 5, 6]


async def test_topics_do_not_wait_for_each_other_and_each_stops_its_own(
    bot_api: BotApi, model_server: ModelServer, machine: dict[str, str]
) -> None:
    model_server.script(hang(60), *TURN)
    bot_api.say("trout?", chat_id=PERSON, **in_topic(5))
    async with running_here(bot_api, machine):
        await eventually(lambda: bool(model_server.requests))
        bot_api.say("carp?", chat_id=PERSON, **in_topic(6))
        await bot_api.wait_for_message(1, chat_id=PERSON)
        bot_api.say("/stop", chat_id=PERSON, **in_topic(6))
        await bot_api.wait_for_message(2, chat_id=PERSON)
        bot_api.say("/stop", chat_id=PERSON, **in_topic(5))
        texts = await bot_api.wait_for_message(3, chat_id=PERSON)
    assert "Trimbach" in texts[0]
    topics = [message.get("message_thread_id") for message in bot_api.messages(PERSON)]
    assert topics == [6, 6, 5]


async def test_in_a_group_everybody_s_words_are_theirs_also_when_it_becomes_a_supergroup(
    bot_api: BotApi, model_server: ModelServer, machine: dict[str, str]
) -> None:
    model_server.script(*TURN * 5)

    async def said(
        words: str, user: int, chat: int = GROUP, **fields: Any
    ) -> JsonObject:
        before = len(bot_api.messages(chat))
        bot_api.say(f"{NAME} {words}", chat, user, entities=MENTION, **fields)
        return await answered(bot_api, before + 1, chat)

    async with running_here(bot_api, machine):
        first = await said("no Chardonnay for my trout", ADA)
        await said("carp?", BOB)
        assert said_before(model_server) == ["…"]
        await said("cheaper?", BOB, reply_to_message=first)
        assert said_before(model_server) == ["carp?", "no Chardonnay for my trout"]
        bot_api.say("", GROUP, ADA, migrate_to_chat_id=SUPERGROUP)
        bot_api.say("", SUPERGROUP, ADA, migrate_from_chat_id=GROUP)
        answer = await said("and now?", ADA, SUPERGROUP)
        assert bot_api.messages(SUPERGROUP) == [answer]
        assert said_before(model_server) == ["no Chardonnay for my trout", "…", "…"]


async def test_a_group_that_migrates_while_it_is_answered_keeps_the_answer(
    bot_api: BotApi, model_server: ModelServer, machine: dict[str, str]
) -> None:
    gone = "Bad Request: group chat was upgraded to a supergroup chat"
    model_server.script(*TURN * 2)
    bot_api.fail(
        "sendMessage", 400, gone, migrate_to=SUPERGROUP, chat_id=GROUP, times=9
    )
    bot_api.say(f"{NAME} trout?", GROUP, ADA, entities=MENTION)
    async with running_here(bot_api, machine):
        await bot_api.wait_for_message(1, SUPERGROUP)
        await kept(machine, 1)
        bot_api.say(f"{NAME} drier?", SUPERGROUP, ADA, entities=MENTION)
        await bot_api.wait_for_message(2, SUPERGROUP)
    assert said_before(model_server) == ["trout?"]
