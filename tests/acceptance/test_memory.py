"""What is remembered of a person, through the bot as it runs: with a model, and without any."""

import json
from collections.abc import Mapping

from tests.acceptance.test_end_to_end import running
from tests.acceptance.test_privacy import last
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject

ADA = 7100471


def with_model(server: ModelServer) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": server.base_url}


def buttons(message: JsonObject) -> list[tuple[str, str]]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [(each["text"], each["callback_data"]) for row in rows for each in row]


async def test_what_is_told_of_taste_holds_in_every_search_without_a_model(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    with running(bot_api, environment):
        bot_api.say(
            "I hate Riesling. I love Chenin Blanc, and usually spend up to 30.", chat_id=ADA
        )
        told = await last(bot_api, 1, ADA)
        assert "no Riesling" in told["text"]
        assert "you like Chenin Blanc" in told["text"]
        assert "usually up to €30" in told["text"]
        assert "/taste" in told["text"]
    with running(bot_api, environment):
        bot_api.say("a dry white for fish", chat_id=ADA)
        text = (await last(bot_api, 2, ADA))["text"]
        assert "Riesling" not in text.partition("1. ")[2]
        assert "I'll remember" not in text
        bot_api.say("a Riesling for my mother", chat_id=ADA)
        assert "Riesling" in (await last(bot_api, 3, ADA))["text"]
        bot_api.say("/taste", chat_id=ADA)
        known = await last(bot_api, 4, ADA)
        labels = [label for label, _ in buttons(known)]
        assert labels == ["✖ no Riesling", "✖ you like Chenin Blanc", "✖ usually up to €30"]
        bot_api.press(known, buttons(known)[2][1])
        bot_api.say("forget that I hate Riesling", chat_id=ADA)
        assert "Forgotten: no Riesling" in (await last(bot_api, 5, ADA))["text"]
        bot_api.say("was weißt du über mich?", chat_id=ADA)
        assert [label for label, _ in buttons(await last(bot_api, 6, ADA))] == [
            "✖ Sie mögen „Chenin Blanc“"
        ]


async def test_a_model_is_told_of_the_taste_and_has_facts_remembered_that_were_said(
    bot_api: BotApi,
    model_server: ModelServer,
    environment: dict[str, str],
) -> None:
    hello = {"response_type": "informational", "intro": "Gladly.", "wines": [], "closing": ""}
    invented = {"kind": "hate", "words": "I never touch Merlot"}
    of_wife = {"kind": "hate", "words": "my wife loathes Malbec"}
    said = {"kind": "hate", "words": "Pinotage gives me the creeps"}
    model_server.script(
        tool_call("remember", invented),
        tool_call("remember", of_wife),
        tool_call("remember", said),
        answer_json(hello),
        tool_call("search_wines", {"grapes": ["Pinotage", "Malbec"]}),
        answer_json(hello),
    )
    with running(bot_api, environment, **with_model(model_server)):
        bot_api.say("Pinotage gives me the creeps, my wife loathes Malbec. A red?", chat_id=ADA)
        text = (await last(bot_api, 1, ADA))["text"]
        assert "no Pinotage" in text
        assert "Malbec" not in text
        bot_api.say("a red for lamb, up to 40", chat_id=ADA)
        await last(bot_api, 2, ADA)
    results = [
        str(message["content"])
        for request in model_server.requests
        for message in request.json["messages"]
        if message["role"] == "tool"
    ]
    assert "not the guest's words" in results[0]
    assert any("somebody else" in each for each in results)
    found = json.loads(results[-1])
    assert found["wines"]
    assert not any("Pinotage" in wine.get("grapes", []) for wine in found["wines"])
    assert "does not drink: Pinotage" in str(model_server.requests[-1].json["messages"][0])
