"""What is remembered of a person, through the bot as it runs: with a model, and without any."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from tests.acceptance.test_end_to_end import running_here
from tests.acceptance.test_privacy import last
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject, eventually

ADA = 7100471


def with_model(server: ModelServer) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": server.base_url}


def buttons(message: JsonObject) -> list[tuple[str, str]]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [(each["text"], each["callback_data"]) for row in rows for each in row]


async def test_what_is_told_of_taste_holds_in_every_search_without_a_model(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say(
            "I hate Riesling. I love Chenin Blanc, and usually spend up to 30.", chat_id=ADA
        )
        told = await last(bot_api, 1, ADA)
        assert "no Riesling" in told["text"]
        assert "you like Chenin Blanc" in told["text"]
        assert "usually up to €30" in told["text"]
        assert "/taste" in told["text"]
    async with running_here(bot_api, environment):
        bot_api.say("a dry white for fish", chat_id=ADA)
        text = (await last(bot_api, 2, ADA))["text"]
        assert "Riesling" not in text.partition("1. ")[2]
        assert "I'll remember" not in text
        bot_api.say("the second one, but from Germany", chat_id=ADA)
        similar = (await last(bot_api, 3, ADA))["text"]
        assert "Germany · " in similar
        assert "Riesling" not in similar.partition("1. ")[2]
        bot_api.say("a Riesling for my mother", chat_id=ADA)
        assert "Riesling" in (await last(bot_api, 4, ADA))["text"]
        bot_api.say("/taste", chat_id=ADA)
        known = await last(bot_api, 5, ADA)
        labels = [label for label, _ in buttons(known)]
        assert labels == ["✖ no Riesling", "✖ you like Chenin Blanc", "✖ usually up to €30"]
        bot_api.press(known, buttons(known)[2][1])
        bot_api.say("forget that I hate Riesling", chat_id=ADA)
        assert "Forgotten: no Riesling" in (await last(bot_api, 6, ADA))["text"]
        bot_api.say("a white for pad thai", chat_id=ADA)
        assert "leaving out" not in (await last(bot_api, 7, ADA))["text"]
        bot_api.say("what do you know about me?", chat_id=ADA)
        assert [label for label, _ in buttons(await last(bot_api, 8, ADA))] == [
            "✖ you like Chenin Blanc"
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
    async with running_here(bot_api, environment, **with_model(model_server)):
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
    assert "never drinks: Pinotage" in str(model_server.requests[-1].json["messages"][0])


async def test_a_cellar_of_ones_own_is_kept_used_and_exported_without_a_model(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say("I bought six Barolo 2016 at 45", chat_id=ADA)
        said = (await last(bot_api, 1, ADA))["text"]
        assert said.startswith("In your cellar now:\n6 × Barolo 2016 · €45 each · good now, until")
        bot_api.say("no, seven, not six", chat_id=ADA)
        said = (await last(bot_api, 2, ADA))["text"]
        assert said.startswith("Corrected. In your cellar now:\n7 × Barolo 2016 · €45 each")
        bot_api.say("and the year is 2015, not 2016", chat_id=ADA)
        said = (await last(bot_api, 3, ADA))["text"]
        assert "7 × Barolo 2015 · €45 each" in said
        assert "2016" not in said
        bot_api.say("drank two, wonderful", chat_id=ADA)
        said = (await last(bot_api, 4, ADA))["text"]
        assert "5 × Barolo 2015" in said
        assert "you like Barolo" in said
        bot_api.say("drank one, wonderful", chat_id=ADA)
        said = (await last(bot_api, 5, ADA))["text"]
        assert "4 × Barolo 2015" in said
        assert "“drank one, wonderful”" in said
    async with running_here(bot_api, environment):
        listed = "Wine,Vintage,Quantity,Price\nChablis,2021,3,18\nSekt,,2,9\n"
        bot_api.send("document", listed.encode(), ADA, file_name="mine.csv")
        assert "5 bottles of 2 wines" in (await last(bot_api, 6, ADA))["text"]
        bot_api.say("what can I drink tonight from what I own, with salmon?", chat_id=ADA)
        said = (await last(bot_api, 7, ADA))["text"]
        assert said.startswith("From your own cellar:\n3 × Chablis 2021")
        assert "≈" not in said
        bot_api.say("/cellar", chat_id=ADA)
        said = (await last(bot_api, 8, ADA))["text"]
        assert "In your cellar: 9 bottles." in said
        assert "You paid €252 for them." in said
        bot_api.say("/cellar export", chat_id=ADA)
        await last(bot_api, 9, ADA)
    (sent,) = [each.files["document"] for each in bot_api.calls_of("sendDocument")]
    assert "Barolo,,2015" in sent.data.decode("utf-8-sig")


async def test_a_cellar_is_seen_in_a_group_by_a_press_of_its_owner_alone(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    group, bea = -9300493, 8200482
    bot = "@sommelier_test_bot"
    named = {"entities": [{"type": "mention", "offset": 0, "length": len(bot)}]}
    async with running_here(bot_api, environment):
        bot_api.say("I bought six Barolo 2016 at 45", chat_id=ADA)
        await last(bot_api, 1, ADA)
        bot_api.say(f"{bot} what should I open from my cellar tonight?", group, ADA, **named)
        assert "6 × Barolo" not in (await last(bot_api, 1, group))["text"]
        bot_api.say(f"/cellar{bot}", group, ADA)
        offer = await last(bot_api, 2, group)
        assert "Barolo" not in offer["text"]
        bot_api.press(offer, buttons(offer)[0][1], user_id=bea)
        assert "6 × Barolo" not in (await last(bot_api, 3, group))["text"]
        bot_api.press(offer, buttons(offer)[0][1], user_id=ADA)
        shown = await last(bot_api, 4, group)
        assert "6 × Barolo 2016" in shown["text"]
        bot_api.say(f"{bot} what should I open from my cellar tonight?", group, ADA, **named)
        assert "6 × Barolo 2016" in (await last(bot_api, 5, group))["text"]
        bot_api.press(shown, buttons(shown)[0][1], user_id=ADA)
        await last(bot_api, 6, group)
        bot_api.say(f"/cellar{bot}", group, ADA)
        assert "Barolo" not in (await last(bot_api, 7, group))["text"]


async def test_a_model_recommends_of_ones_own_bottles_as_ones_own(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    answer = {
        "response_type": "recommendation",
        "intro": "One of yours:",
        "wines": [{"wine_id": "own:1", "description": "It is ready."}],
        "closing": "",
    }
    model_server.script(tool_call("own_cellar", {}), answer_json(answer))
    async with running_here(bot_api, environment, **with_model(model_server)):
        bot_api.say("I bought six Barolo 2016 at 45", chat_id=ADA)
        await last(bot_api, 1, ADA)
        bot_api.say("a special evening with truffles, please surprise me", chat_id=ADA)
        said = (await last(bot_api, 2, ADA))["text"]
    assert "1. Barolo 2016" in said
    assert "your own cellar" in said
    assert "≈" not in said


async def test_a_reminder_comes_by_itself_once_and_is_off_by_one_press(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    now = datetime.now(UTC)
    noon = f"Etc/GMT{now.hour - 12:+d}"  # there it is noon now
    async with running_here(bot_api, environment):
        bot_api.say(f"I bought six Barolo {now.year - 8} at 45", chat_id=ADA)
        await last(bot_api, 1, ADA)
    for count in (3, 4):
        async with running_here(bot_api, environment, TIME_ZONE=noon):
            reminder = await last(bot_api, 2, ADA)
            assert f"6 × Barolo {now.year - 8}" in reminder["text"]
            bot_api.say("/remind", chat_id=ADA)
            assert "Nothing in your cellar asks" in (await last(bot_api, count, ADA))["text"]
    async with running_here(bot_api, environment):
        bot_api.press(reminder, buttons(reminder)[0][1])
        assert "I will not remind you" in (await last(bot_api, 5, ADA))["text"]
    assert sum("worth opening this year" in each for each in bot_api.sent(ADA)) == 1


async def test_a_new_person_is_asked_of_their_age_and_taste_in_taps(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bea = 8200482

    async def tap(label: str, chat_id: int) -> None:
        def offered() -> list[str]:
            greeting = bot_api.messages(chat_id)[0]
            return [data for text, data in buttons(greeting) if label in text]

        await eventually(lambda: bool(offered()), seconds=60, otherwise=lambda: f"no {label}")
        bot_api.press(bot_api.messages(chat_id)[0], offered()[0])

    async with running_here(bot_api, environment, LEGAL_AGE="20"):
        bot_api.say("/start", chat_id=ADA)
        greeting = await last(bot_api, 1, ADA)
        assert [label for label, _ in buttons(greeting)] == [
            "🌐 English",
            "I am 20 or older",
            "I am under 20",
        ]
        for label in ("or older", "White wine", "light"):
            await tap(label, ADA)
        assert "What would you like to drink?" in (await last(bot_api, 2, ADA))["text"]
        bot_api.say("/help", chat_id=ADA)
        await last(bot_api, 3, ADA)  # what goes aside is in order: the taps are kept by now
        bot_api.say("/taste", chat_id=ADA)
        known = [label for label, _ in buttons(await last(bot_api, 4, ADA))]
        assert known == ["✖ you like White wine", "✖ you like light"]
        bot_api.say("/start", chat_id=ADA)
        assert buttons(await last(bot_api, 5, ADA)) == []

        bot_api.say("/start", chat_id=bea)
        await last(bot_api, 1, bea)
        await tap("under 20", bea)
        assert "without alcohol" in (await last(bot_api, 2, bea))["text"]
        bot_api.say("a red for lamb", chat_id=bea)
        assert "alcohol" in (await last(bot_api, 3, bea))["text"]
