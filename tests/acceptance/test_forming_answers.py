"""Answers as they form: drafts, Stop, corrections, kills, through the process as it is run."""

from itertools import pairwise
from typing import Any

import pytest

from agent.text import words
from tests.acceptance.test_end_to_end import ANSWER, CHAT, killed, running, running_here
from tests.acceptance.test_follow_ups import history
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import (
    ModelServer,
    Script,
    answer_json,
    hang,
    paced,
    tool_call,
)
from tests.doubles.server import eventually
from tests.doubles.telegram_html import parse_html

LEAST_SECONDS = 0.5
"""Between two drafts; less would be more than two a second."""
SEARCH = tool_call("search_wines", {"styles": ["white"], "foods": ["fish"], "text": "Trimbach"})
LONG: dict[str, Any] = ANSWER | {
    "intro": "For your trout and almonds, something dry. It is fresh and light.",
    "closing": " ".join(["Serve it cool, in a small glass."] * 8),
}
INVENTED = ANSWER | {
    "intro": "The Zorkovitz 1984 won gold. Here it is.",
    "wines": [{"wine_id": "zorkovitz-1984", "description": "Gold."}, *ANSWER["wines"]],
    "closing": "Buy it at zorkovitz.example for 1984 euros. Enjoy it.",
}


def settings_of(model: ModelServer) -> dict[str, str]:
    return {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": model.base_url}


def asked(model: ModelServer) -> list[str]:
    """The last words of people in each request."""
    said = [request.json["messages"] for request in model.requests]
    return [[each for each in one if each["role"] == "user"][-1]["content"] for one in said]


def drafts(bot_api: BotApi) -> list[str]:
    """What was shown of drafts, as a person reads it."""
    return [parse_html(call.params["text"])[0] for call in bot_api.drafts]


async def until_draft(bot_api: BotApi, said: str) -> None:
    await eventually(
        lambda: any(said in draft for draft in drafts(bot_api)),
        seconds=60,
        otherwise=lambda: f"drafts: {drafts(bot_api)}; sent: {bot_api.sent()}",
    )


async def test_an_answer_is_drafted_as_it_forms_and_then_sent_once(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.script(SEARCH, paced(answer_json(INVENTED), 80), paced(answer_json(LONG), 80))
    bot_api.say("Something for trout?", chat_id=CHAT)
    with running(bot_api, environment, **settings_of(model_server)):
        (text,) = await bot_api.wait_for_message(1, chat_id=CHAT, timeout=60)
    shown = drafts(bot_api)
    assert shown[0].startswith("Searching the cellar: White")
    assert len(shown) > 2
    assert not {"zorkovitz", "1984", "gold"} & set(words(" ".join(shown)))
    assert "1. Trimbach" in shown[-1]
    assert text.startswith(shown[-1][: shown[-1].index("1. Trimbach")])
    times = [call.time for call in bot_api.drafts]
    assert all(later - earlier >= LEAST_SECONDS for earlier, later in pairwise(times))
    assert max(times) < bot_api.calls_of("sendMessage")[0].time
    assert bot_api.calls_of("sendChatAction")[0].time < times[0]
    assert bot_api.draft(CHAT) is None
    assert len({call.params["draft_id"] for call in bot_api.drafts}) == 1


def ask_in_group(bot_api: BotApi) -> None:
    mention = {"type": "mention", "offset": 0, "length": 19}
    bot_api.say("@sommelier_test_bot for trout?", chat_id=-CHAT, entities=[mention])


def edits(bot_api: BotApi) -> list[str]:
    """What a group was shown of a message by editing it, as a person reads it."""
    return [parse_html(call.params["text"])[0] for call in bot_api.calls_of("editMessageText")]


async def until_answered(bot_api: BotApi, answers: int = 1) -> None:
    """Until so many answers with their buttons stand in the group."""
    await eventually(
        lambda: sum("reply_markup" in each for each in bot_api.messages(-CHAT)) >= answers,
        seconds=60,
        otherwise=lambda: f"shown: {bot_api.sent(-CHAT)}, edits: {edits(bot_api)}",
    )


async def test_in_a_group_one_message_grows_and_becomes_the_answer(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.script(SEARCH, paced(answer_json(INVENTED), 60), paced(answer_json(LONG), 18))
    bot_api.fail("editMessageText", 429, retry_after=1)
    ask_in_group(bot_api)
    async with running_here(bot_api, environment, **settings_of(model_server)):
        await until_answered(bot_api)
    assert bot_api.sent(-CHAT) == edits(bot_api)[-1:]
    assert len(bot_api.calls_of("sendMessage")) == 1
    refused, *shown, _ = bot_api.calls_of("editMessageText")
    assert shown
    assert shown[0].time - refused.time >= 1
    assert all(later.time - earlier.time >= 3 for earlier, later in pairwise(shown))
    assert not {"zorkovitz", "1984", "gold"} & set(words(" ".join(edits(bot_api))))


async def test_a_kill_while_an_answer_grows_leaves_one_answer_in_a_group(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    settings = settings_of(model_server)
    model_server.script(SEARCH, paced(answer_json(LONG), 25))
    model_server.default = answer_json(LONG)
    ask_in_group(bot_api)
    bot_api.delay("editMessageText", 0.3)
    with killed(bot_api, environment, **settings):
        await eventually(
            lambda: any("Trimbach" in shown for shown in edits(bot_api)),
            seconds=60,
            otherwise=lambda: "not so far",
        )
    await eventually(
        lambda: all(call.status for call in bot_api.calls_of("editMessageText")),
        seconds=10,
        otherwise=lambda: "Telegram still edits",
    )
    bot_api.delay("editMessageText", 0)
    model_server.script(SEARCH)  # what was not committed is asked again
    async with running_here(bot_api, environment, **settings):
        ask_in_group(bot_api)
        await until_answered(bot_api, 2)
    answer, _ = bot_api.sent(-CHAT)
    assert answer.startswith(LONG["intro"])
    assert "in a small glass." in answer


STAGES: dict[str, tuple[list[Script], str]] = {
    "before it writes": ([SEARCH, hang(60)], "Searching"),
    "while it writes": ([SEARCH, paced(answer_json(LONG), 20)], "Trimbach"),
    "while it mends what it wrote": ([SEARCH, answer_json(INVENTED), hang(60)], "Searching"),
}


async def at(stage: str, bot_api: BotApi, model: ModelServer, said: str = "trout?") -> None:
    """Ask, and wait until the turn is at a stage."""
    script, draft = STAGES[stage]
    before = len(model.requests)
    model.script(*script)
    bot_api.say(said, chat_id=CHAT)
    await until_draft(bot_api, draft)
    await eventually(
        lambda: len(model.requests) == before + len(script),
        seconds=60,
        otherwise=lambda: f"{len(model.requests)} requests",
    )


@pytest.mark.parametrize(
    ("stage", "by_button"), [*((stage, False) for stage in STAGES), ("while it writes", True)]
)
async def test_stop_at_any_stage_keeps_what_was_shown(
    stage: str,
    by_button: bool,
    bot_api: BotApi,
    model_server: ModelServer,
    environment: dict[str, str],
) -> None:
    async with running_here(bot_api, environment, **settings_of(model_server)):
        await at(stage, bot_api, model_server)
        if by_button:
            bot_api.stop_draft(CHAT)
        else:
            bot_api.say("/stop", chat_id=CHAT)
        (text,) = await bot_api.wait_for_message(1, chat_id=CHAT, timeout=30)
        model_server.script(answer_json({"response_type": "informational", "intro": "Gladly."}))
        bot_api.say("thanks", chat_id=CHAT)
        await bot_api.wait_for_message(2, chat_id=CHAT, timeout=30)
    assert not {"zorkovitz", "1984", "gold"} & set(words(text))
    if stage == "before it writes":
        assert text.startswith("Stopped.")
    else:
        assert "1. Trimbach" in text
        assert text.endswith("Stopped here, as you asked.")


async def test_an_answer_on_its_way_is_neither_stopped_nor_corrected(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.script(
        answer_json({"response_type": "informational", "intro": "Red, then."}),
        answer_json({"response_type": "informational", "intro": "White, then."}),
    )
    bot_api.delay("sendMessage", 1)
    async with running_here(bot_api, environment, **settings_of(model_server)):
        bot_api.say("a red for trout?", chat_id=CHAT)
        await eventually(
            lambda: bool(bot_api.calls_of("sendMessage")), seconds=60, otherwise=lambda: "not sent"
        )
        bot_api.say("/stop", chat_id=CHAT)
        bot_api.say("white, sorry", chat_id=CHAT)
        texts = await bot_api.wait_for_message(2, chat_id=CHAT, timeout=30)
    assert texts == ["Red, then.", "White, then."]
    assert asked(model_server) == ["a red for trout?", "white, sorry"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_correction_at_any_stage_is_answered_together_once(
    stage: str, bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.default = answer_json(
        {"response_type": "informational", "intro": "White, then. Gladly."}
    )
    async with running_here(bot_api, environment, **settings_of(model_server)):
        await at(stage, bot_api, model_server, "a red for trout?")
        bot_api.say("white, sorry", chat_id=CHAT)
        texts = await bot_api.wait_for_message(1, chat_id=CHAT, timeout=30)
    assert texts == ["White, then. Gladly."]
    assert asked(model_server)[-1] == "a red for trout?\nwhite, sorry"


async def test_a_kill_after_a_correction_leaves_one_answer_to_both(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    settings = settings_of(model_server)
    with killed(bot_api, environment, **settings):
        await at("while it writes", bot_api, model_server, "a red for trout?")
        model_server.default = hang(60)
        bot_api.say("white, sorry", chat_id=CHAT)
        await eventually(
            lambda: "sorry" in asked(model_server)[-1], seconds=30, otherwise=lambda: "not joined"
        )
    model_server.default = answer_json(
        {"response_type": "informational", "intro": "White, then. Gladly."}
    )
    async with running_here(bot_api, environment, **settings):
        await bot_api.wait_for_message(1, chat_id=CHAT, timeout=30)
        bot_api.say("/help", chat_id=CHAT)
        texts = await bot_api.wait_for_message(2, chat_id=CHAT, timeout=30)
    assert texts[0] == "White, then. Gladly."
    assert texts[1].startswith("What you can ask")
    assert asked(model_server)[-1] == "a red for trout?\nwhite, sorry"


async def remembered(environment: dict[str, str], count: int) -> None:
    """Return once so many turns are over and kept."""
    await eventually(
        lambda: len(history(environment)) >= count, seconds=60, otherwise=lambda: "not kept"
    )


async def test_a_reply_to_an_earlier_answer_is_about_that_one(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.default = answer_json({"response_type": "informational", "intro": "Gladly."})
    async with running_here(bot_api, environment, **settings_of(model_server)):
        for number, said in enumerate(("a red", "a white"), 1):
            bot_api.say(said, chat_id=CHAT)
            await bot_api.wait_for_message(number, chat_id=CHAT, timeout=60)
            await remembered(environment, number)
        first = bot_api.messages(CHAT)[0]
        bot_api.say("more like that", chat_id=CHAT, reply_to_message=first)
        await bot_api.wait_for_message(3, chat_id=CHAT, timeout=60)
    people = [each for each in model_server.requests[-1].json["messages"] if each["role"] == "user"]
    assert [each["content"] for each in people] == ["a white", "a red", "more like that"]
