"""Somebody in danger is heard, through Telegram: help, numbers, and nothing in public."""

from collections.abc import Mapping

import pytest

from agent.i18n import translate_into
from tests.acceptance.test_end_to_end import ANSWER, known_to, running_here
from tests.acceptance.test_languages import said
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject, eventually

ADA, BOB, GROUP = 7200, 7201, -7202
NAME = "@sommelier_test_bot"
MENTION = [{"type": "mention", "offset": 0, "length": len(NAME)}]
HELP = "I'm so sorry things are this hard right now"
NUMBERS = "I'm glad you're here. If you are in danger"
WINES = "ABV"


def buttons(message: JsonObject) -> Mapping[str, str]:
    """Return the labels of a message's buttons, with what a press sends or opens."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return {
        button["text"]: button.get("callback_data") or button["url"]
        for row in rows
        for button in row
    }


async def press(bot_api: BotApi, label: str, chat_id: int) -> None:
    """Press a button of the bot's last message that has it."""
    messages = reversed(bot_api.messages(chat_id))
    message = next(message for message in messages if label in buttons(message))
    answered = len(bot_api.calls_of("answerCallbackQuery"))
    bot_api.press(message, buttons(message)[label], chat_id)
    await eventually(lambda: len(bot_api.calls_of("answerCallbackQuery")) > answered)


@pytest.mark.parametrize(
    "words",
    [
        "I'm feeling suicidal",
        "i've taken all my tablets",
        "i want to end it all",
        "kms",
    ],
)
async def test_a_crisis_in_plain_words_is_answered_with_help(
    bot_api: BotApi, environment: dict[str, str], words: str
) -> None:
    async with running_here(bot_api, environment):
        text = await said(bot_api, words, ADA)
        assert text.startswith(HELP)
        assert "988" in text
        below = buttons(bot_api.messages(ADA)[-1])
    assert below["🌍 findahelpline.com"] == "https://findahelpline.com"
    assert translate_into("en", "misunderstood_button") in below


async def test_a_crisis_in_spanish_names_the_lines_of_both_languages(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages[ADA] = "de-AT"
    async with running_here(bot_api, environment, HELP_COUNTRY="CL"):
        text = await said(bot_api, "me siento suicida", ADA)
    assert text.startswith("Siento mucho")
    order = [
        text.index(country) for country in ("Chile", "Austria", "España", "Alemania")
    ]
    assert order == sorted(order)


async def test_messages_after_a_crisis_lead_to_the_numbers_until_it_is_taken_back(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        assert (await said(bot_api, "I want to die", ADA)).startswith(HELP)
        for words in (
            "no, nobody is here",
            "I already took the pills",
            "what number can I call?",
            "thanks I guess",
        ):
            text = await said(bot_api, words, ADA)
            assert text.startswith(NUMBERS), words
            assert "988" in text
    async with running_here(bot_api, environment):
        assert (await said(bot_api, "nobody", ADA)).startswith(NUMBERS)
        wines = await said(bot_api, "a red for lamb, please", ADA)
        assert "I'm only showing you alcohol-free drinks today." in wines
        assert "I'm glad you're here. If it gets hard again" in wines
        await press(bot_api, translate_into("en", "numbers_button"), ADA)
        await bot_api.wait_for_message(8, chat_id=ADA)
        assert bot_api.sent(ADA)[-1].startswith(NUMBERS)
        await press(bot_api, translate_into("en", "misunderstood_button"), ADA)
        await bot_api.wait_for_message(9, chat_id=ADA)
        assert "alcohol-free" not in await said(bot_api, "a red for lamb, please", ADA)


async def test_whoever_asks_for_a_number_gets_it_without_a_crisis_too(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        assert (await said(bot_api, "what number can I call?", ADA)).startswith(NUMBERS)
        assert "988" in await said(bot_api, "/start numbers", ADA)
        assert "emergency 911" in await said(bot_api, "/help", ADA)


async def test_praise_of_a_cheese_is_no_crisis(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        text = await said(bot_api, "I want to die, this cheese is so good", ADA)
    assert not text.startswith(HELP)


async def test_nobody_is_taken_for_dependent_because_of_a_wine_and_can_take_it_back(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages[ADA] = "es"
    async with running_here(bot_api, environment):
        await said(bot_api, "no puedo dejar de beber esta garnacha", ADA)
        assert "sin alcohol" not in await said(bot_api, "un tinto para cordero", BOB)
        before = await said(bot_api, "un tinto para cordero", ADA)
        text = await said(bot_api, "he recaído", ADA)
        assert "No le recomendaré nada con alcohol." in text
        assert text.endswith(
            "¿Quiere ver bebidas sin alcohol o prefiere no hablar de bebidas?"
        )
        assert "1412" in text
        await press(bot_api, translate_into("es", "not_dependent_button"), ADA)
        await bot_api.wait_for_message(4, chat_id=ADA)
        after = await said(bot_api, "un tinto para cordero", ADA)
    assert after.splitlines()[-3:] == before.splitlines()[-3:]


async def test_buttons_answer_the_question_after_a_dependence(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages[ADA] = "de"
    async with running_here(bot_api, environment):
        await said(bot_api, "Ich trinke zu viel", ADA)
        await press(bot_api, "Lieber nicht über Getränke sprechen", ADA)
        await bot_api.wait_for_message(2, chat_id=ADA)
        promise = bot_api.sent(ADA)[-1]
        assert promise.startswith("Gut, dann sprechen wir nicht über Getränke.")
        assert await said(bot_api, "lieber nicht über Getränke", ADA) == promise
        await said(bot_api, "Mist, ich hatte einen Rückfall", BOB)
        await press(bot_api, "Alkoholfreies", BOB)
        await bot_api.wait_for_message(2, chat_id=BOB)
    assert "Alkoholfreier Wein" in bot_api.sent(BOB)[-1]


async def test_who_only_says_that_they_may_not_drink_is_shown_drinks_without_alcohol(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages[BOB] = "pt"
    async with running_here(bot_api, environment):
        driving = await said(bot_api, "I'm driving tonight", ADA)
        medicine = await said(bot_api, "Tomo antibióticos", BOB)
        question = "I'm driving. What does sur lie mean?"
        assert "Sur lie: ageing" in await said(bot_api, question, ADA)
    assert driving.startswith("If you are driving, no alcohol at all is best")
    assert "Alcohol-free wine" in driving
    assert medicine.startswith("Com medicamentos, o álcool pode ser perigoso")
    assert "Vinho sem álcool" in medicine


async def test_an_age_in_words_and_a_pregnancy_in_brazil_are_heard(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages |= {ADA: "pt-br", BOB: "pt-br"}
    async with running_here(bot_api, environment):
        minor = await said(bot_api, "tenho dezesseis anos, um tinto para cordeiro", ADA)
        pregnant = await said(bot_api, "tô grávida, um tinto para cordeiro", BOB)
    assert "Não mostro vinho a menores de 18 anos, nem mesmo sem álcool." in minor
    assert "fale com seu obstetra" in pregnant


async def test_a_crisis_that_a_model_hears_is_kept_for_the_day(
    bot_api: BotApi, environment: dict[str, str], model_server: ModelServer
) -> None:
    search = tool_call("search_wines", {"styles": ["white"]})
    model_server.script(search, answer_json(ANSWER | {"concern": "crisis"}))
    async with running_here(bot_api, environment | known_to(model_server)):
        assert (await said(bot_api, "už to nemá cenu, něco bílého", ADA)).startswith(
            HELP
        )
    async with running_here(bot_api, environment):
        assert (await said(bot_api, "hm", ADA)).startswith(NUMBERS)


async def test_in_a_group_help_is_short_and_leads_to_a_private_chat(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        words = f"{NAME} I want to end my life"
        text = await said(bot_api, words, GROUP, user_id=ADA, entities=MENTION)
        below = buttons(bot_api.messages(GROUP)[-1])
    assert "988" not in text
    assert "in private" in text
    address = "https://t.me/sommelier_test_bot?start=numbers"
    assert below[translate_into("en", "in_private_button")] == address


async def test_a_likely_concern_adds_a_line_and_takes_nothing_away(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    words = "a red for lamb, nobody would miss me if i was gone tomorrow"
    line = "you don't have to go through it alone"
    async with running_here(bot_api, environment):
        first = await said(bot_api, words, ADA)
        below = buttons(bot_api.messages(ADA)[-1])
        second = await said(bot_api, words, ADA)
        later = await said(bot_api, "a red for lamb", ADA)
    assert line in first
    assert translate_into("en", "numbers_button") in below
    assert line not in second
    assert "alcohol-free" not in later


async def test_a_user_with_an_allergy_reads_of_which_wines_it_is_not_known(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages |= {BOB: "de"}
    async with running_here(bot_api, environment):
        asked = await said(
            bot_api, "I am allergic to egg. A red for pizza, please", ADA
        )
        first, _, others = asked.partition("2. ")
        unknown = translate_into("en", "allergens_unknown", names="egg")
        assert unknown not in first  # the only one that says it is vegan
        assert others.count(unknown) == 2
        later = await said(
            bot_api, "Ich bin allergisch gegen Eier. Ein Rotwein zu Lamm", BOB
        )
        # What is not known of any wine is said once.
        assert translate_into("de", "allergens_unknown", names="Ei") not in later
        assert translate_into("de", "fallback_allergens_unknown", names="Ei") in later


async def test_in_pregnancy_only_wines_whose_labels_say_zero_are_shown(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        text = await said(bot_api, "I am pregnant. Something for an aperitif?", ADA)
        assert "Freixenet" in text or "Zero" in text
        assert "Natureo" not in text
        assert "Noughty" not in text
