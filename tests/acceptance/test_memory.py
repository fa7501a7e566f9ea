"""The memory of users in the running bot, with a model and without one."""

import asyncio
import json
import time
from datetime import UTC, datetime

import pytest

from tests.acceptance.test_end_to_end import known_to, running_here
from tests.acceptance.test_privacy import last
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject, eventually

ADA, BEA = 7100471, 8200482
BAROLO = {"name": "Barolo", "vintage": 2016}
HELLO = {
    "response_type": "informational",
    "intro": "Gladly.",
    "wines": [],
    "closing": "",
}


def buttons(message: JsonObject) -> list[tuple[str, str]]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [(button["text"], button["callback_data"]) for row in rows for button in row]


def labelled(message: JsonObject, label: str) -> str:
    """The data of the button whose label begins so."""
    return next(data for text, data in buttons(message) if text.startswith(label))


async def press(bot_api: BotApi, message: JsonObject, data: str, user_id: int) -> str:
    answered = bot_api.calls_of("answerCallbackQuery")
    bot_api.press(message, data, user_id=user_id)
    await eventually(
        lambda: len(bot_api.calls_of("answerCallbackQuery")) > len(answered)
    )
    return str(bot_api.calls_of("answerCallbackQuery")[-1].params.get("text", ""))


async def test_a_fact_is_stored_by_command_and_button_and_applies_without_a_model(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say("/taste no Riesling", chat_id=ADA)
        told = await last(bot_api, 1, ADA)
        assert "no Riesling" in told["text"]
        bot_api.say("a white for fish, no Chardonnay", chat_id=ADA)
        answer = await last(bot_api, 2, ADA)
        assert "Riesling" not in answer["text"].partition("1. ")[2]
        remember = labelled(answer, "Remember: no Chardonnay")
        bot_api.say("a vegan red, no Merlot", chat_id=BEA)
        vegan = await last(bot_api, 1, BEA)
        labels = [label for label, _ in buttons(vegan) if label.startswith("Remember")]
        assert labels == ["Remember: no Merlot"], "to ask for vegan wine is no allergy"
    async with running_here(bot_api, environment):
        assert "for the person who asked" in await press(bot_api, answer, remember, BEA)
        assert "no Chardonnay" in await press(bot_api, answer, remember, ADA)
        assert "One moment" in await press(bot_api, answer, remember, ADA)
        bot_api.say("/taste", chat_id=ADA)
        known = await last(bot_api, 3, ADA)
        assert [label for label, _ in buttons(known)] == [
            "✖ no Riesling",
            "✖ no Chardonnay",
        ]
        undo = labelled(told, "↩")
        assert "nothing left to undo" in await press(bot_api, told, undo, BEA)
        assert "Undone" in await press(bot_api, told, undo, ADA)
        assert "nothing left to undo" in await press(bot_api, told, undo, ADA)
        await press(bot_api, known, labelled(known, "✖ no Chardonnay"), ADA)
        bot_api.say("/taste", chat_id=ADA)
        assert buttons(await last(bot_api, 4, ADA)) == []


async def test_a_fact_that_a_model_stores_is_shown_and_undone_by_a_press(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.script(
        tool_call(
            "remember", {"kind": "hate", "value": "Pinotage", "grapes": "Pinotage"}
        ),
        tool_call("change_cellar", {"action": "add", "count": 6, **BAROLO}),
        answer_json(HELLO),
        tool_call("search_wines", {"grapes": ["Pinotage", "Malbec"]}),
        answer_json(HELLO),
    )
    async with running_here(bot_api, environment, **known_to(model_server)):
        bot_api.say(
            "Pinotage gives me the creeps; I bought six Barolo 2016", chat_id=ADA
        )
        answer = await last(bot_api, 1, ADA)
        assert "no Pinotage" in answer["text"]
        assert "Now in your cellar:\n6 × Barolo 2016" in answer["text"]
        assert "_" not in answer["text"]
        bot_api.say("a red for lamb, up to 40", chat_id=ADA)
        await last(bot_api, 2, ADA)
    asked = model_server.requests[-1].json["messages"]
    assert "never drinks: Pinotage" in str(asked[0])
    told = next(message["content"] for message in asked if message["role"] == "tool")
    found = json.loads(str(told))
    assert found["wines"]
    assert not any("Pinotage" in str(wine) for wine in found["wines"])
    async with running_here(bot_api, environment):
        assert "Undone" in await press(bot_api, answer, labelled(answer, "↩"), ADA)
        bot_api.say("/cellar", chat_id=ADA)
        assert "nothing in your cellar" in (await last(bot_api, 3, ADA))["text"]


async def test_a_cellar_is_changed_by_commands_and_files(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say("/cellar add 6 Barolo 2016 45", chat_id=ADA)
        said = (await last(bot_api, 1, ADA))["text"]
        assert "6 × Barolo 2016 · €45 a bottle · ready to drink, good until" in said
        bot_api.say("/cellar remove 2 Barolo", chat_id=ADA)
        removed = await last(bot_api, 2, ADA)
        assert "4 × Barolo 2016" in removed["text"]
        assert "Undone" in await press(bot_api, removed, labelled(removed, "↩"), ADA)
    async with running_here(bot_api, environment):
        listed = "Wine,Vintage,Quantity,Price\nChablis,2021,3,18\nSekt,,2,9\n"
        bot_api.send("document", listed.encode(), ADA, file_name="mine.csv")
        read = await last(bot_api, 3, ADA)
        assert "5 bottles (2 wines)" in read["text"]
        await press(bot_api, read, labelled(read, "Add"), ADA)
        assert "11 bottles (3 wines)" in (await last(bot_api, 4, ADA))["text"]
        bot_api.say("/cellar add 1 Barolo 2016", chat_id=ADA)
        await last(bot_api, 5, ADA)
        bot_api.say("/cellar", chat_id=ADA)
        said = (await last(bot_api, 7, ADA))["text"]
        assert "In your cellar: 12 bottles." in said
        assert "7 × Barolo 2016 · €45 a bottle" in said  # the price is kept
        bot_api.say("/cellar Barolo", chat_id=ADA)
        named = (await last(bot_api, 8, ADA))["text"]
        assert named.startswith("In your cellar: 7 bottles")
        assert "Chablis" not in named
        bot_api.say("/cellar remove 3 Chablis", chat_id=ADA)
        gone = (await last(bot_api, 9, ADA))["text"]
        assert gone.startswith("Taken out of your cellar:\nChablis 2021 · none left")


async def test_bottles_that_were_bought_are_added_by_a_press_and_taken_back(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say("I bought three bottles of Chianti 2021", chat_id=ADA)
        offer = await last(bot_api, 1, ADA)
        await press(bot_api, offer, labelled(offer, "Add to my cellar"), ADA)
        added = await last(bot_api, 2, ADA)
        assert "3 × Chianti 2021" in added["text"]
        assert "Undone" in await press(bot_api, added, labelled(added, "↩"), ADA)


async def test_a_vintage_alone_took_all_bottles_of_a_cellar(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        for number, (line, said) in enumerate(
            (
                ("add 6 Barolo 2016", "6 × Barolo 2016"),
                ("add 6 Barolo 2019", "6 × Barolo 2019"),
                ("add 6 Barbera d'Alba 2019", "6 × Barbera"),
                ("remove 1 2019", "There is no such wine in your cellar"),
                ("remove 1 Opus One 2019", "There is no such wine in your cellar"),
                ("remove 9 Barolo 2016", "that many, so nothing was removed"),
                ("remove 2 Barolo", "Which of these do you mean?"),
            ),
            start=1,
        ):
            bot_api.say(f"/cellar {line}", chat_id=ADA)
            asked = await last(bot_api, number, ADA)
            assert said in asked["text"]
        assert buttons(asked) == [
            ("6 × Barolo 2016", "d:2:1"),
            ("6 × Barolo 2019", "d:2:2"),
        ]
        for _ in range(2):  # the second press is that of an impatient finger
            bot_api.press(asked, "d:2:2")
        assert "4 × Barolo 2019" in (await last(bot_api, number + 1, ADA))["text"]
        bot_api.say("/cellar", chat_id=ADA)
        assert (
            "In your cellar: 16 bottles."
            in (await last(bot_api, number + 3, ADA))["text"]
        )


async def test_a_reminder_is_sent_once_and_can_be_turned_off_by_a_press(
    bot_api: BotApi, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    async with running_here(bot_api, environment, ADMIN_IDS=str(ADA)):
        for person in (BEA, ADA):
            bot_api.say(f"/cellar add 6 Barolo {now.year - 6} 45", chat_id=person)
            await last(bot_api, 1, person)
        bot_api.say(f"/block {BEA}", chat_id=ADA)
        await last(bot_api, 2, ADA)
    with monkeypatch.context() as here:
        here.setenv("TZ", f"NOON{now.hour - 12:+d}")  # a zone in which it is noon now
        time.tzset()
        for _ in range(2):
            async with running_here(bot_api, environment):
                reminder = await last(bot_api, 3, ADA)
                assert f"6 × Barolo {now.year - 6}" in reminder["text"]
                await asyncio.sleep(0.5)
    time.tzset()
    async with running_here(bot_api, environment):
        bot_api.press(reminder, buttons(reminder)[0][1])
        assert "remind you any more" in (await last(bot_api, 4, ADA))["text"]
    assert sum("should be opened soon" in text for text in bot_api.sent(ADA)) == 1
    assert len(bot_api.sent(BEA)) == 1, "who is blocked is not reminded"


async def test_a_new_user_is_asked_for_their_age(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment, LEGAL_AGE="20"):
        for person, label, said in (
            (ADA, "I am 20 or older", "What would you like to drink?"),
            (BEA, "I am under 20", "alcohol-free"),
        ):
            bot_api.say("/start", chat_id=person)
            greeting = await last(bot_api, 1, person)
            bot_api.press(greeting, labelled(greeting, label))
            assert said in (await last(bot_api, 2, person))["text"]
        bot_api.say("/start", chat_id=ADA)
        assert buttons(await last(bot_api, 3, ADA)) == []
        bot_api.say("a red for lamb", chat_id=BEA)
        assert "alcohol" in (await last(bot_api, 3, BEA))["text"]


async def test_the_usual_budget_applies_unless_a_message_names_another(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async def prices(words: str, count: int) -> list[float]:
        bot_api.say(words, chat_id=ADA)
        text = (await last(bot_api, count, ADA))["text"]
        return [float(price.split()[0].rstrip(".,")) for price in text.split("≈ €")[1:]]

    async with running_here(bot_api, environment):
        bot_api.say("/taste 30 to 60 euros", chat_id=ADA)
        assert "usually €30–60" in (await last(bot_api, 1, ADA))["text"]
        usual = await prices("a red for lamb", 2)
        assert usual
        assert all(30 <= price <= 60 for price in usual)
        assert max(await prices("a white under 15", 3)) <= 15
