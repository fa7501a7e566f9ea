"""The interface in the language of who writes: their phone's, the written one, the chosen."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent.i18n import languages, translate_into
from bot.telegram.render import to_telegram_html, visible_text
from tests.acceptance.test_end_to_end import running_here
from tests.doubles.bot_api import BotApi
from tests.doubles.server import JsonObject, eventually

GREEK, GROUP = 7100477, -9300498
PEOPLE = {code: 7100400 + number for number, code in enumerate(languages())}
FRENCH = "Qu'est-ce que vous avez comme rouge pour de l'agneau, à moins de 25 euros ?"


def seen(language: str, name: str, **values: str | float) -> str:
    return visible_text(to_telegram_html(translate_into(language, name, **values)))


async def said(bot_api: BotApi, words: str, chat_id: int, **fields: Any) -> str:
    """What comes back to a message: the last of it."""
    before = len(bot_api.sent(chat_id))
    bot_api.say(words, chat_id=chat_id, **fields)
    return (await bot_api.wait_for_message(before + 1, chat_id=chat_id, timeout=60))[-1]


def buttons(message: JsonObject) -> Mapping[str, str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return {each["text"]: each["callback_data"] for row in rows for each in row}


def settings(bot_api: BotApi, chat_id: int) -> JsonObject:
    return [each for each in bot_api.messages(chat_id) if "s:" in str(each.get("reply_markup"))][-1]


async def pressed(bot_api: BotApi, label: str, chat_id: int, user_id: int | None = None) -> str:
    """What is said to a press on the settings: the bubble; they have changed then."""
    shown, toasts = settings(bot_api, chat_id), len(bot_api.toasts)
    bot_api.press(shown, buttons(shown)[label], user_id or chat_id)
    await eventually(
        lambda: len(bot_api.toasts) > toasts, seconds=20, otherwise=lambda: str(bot_api.toasts)
    )
    return bot_api.toasts[-1]


@pytest.mark.parametrize("language", languages())
async def test_a_phone_is_spoken_to_in_its_language(
    bot_api: BotApi, environment: dict[str, str], language: str
) -> None:
    ada = PEOPLE[language]
    bot_api.phones[ada] = {"pt": "pt-br", "de": "de-AT"}.get(language, language)
    async with running_here(bot_api, environment):
        assert await said(bot_api, "/start", ada) == seen(language, "greeting")
        assert await said(bot_api, "/help", ada) == seen(language, "help")
        assert await said(bot_api, "/nonsense", ada) == seen(language, "unknown_command")
        assert await said(bot_api, "/ask", ada) == seen(language, "ask_usage")
        assert await said(bot_api, "/new", ada) == seen(language, "nothing_to_forget")
        assert await said(bot_api, "Riesling?", ada)
        assert seen(language, "no_model") in bot_api.sent(ada)[-1]
        # Nobody else's language is theirs.
        assert await said(bot_api, "/nonsense", GREEK) == seen("en", "unknown_command")


async def test_who_writes_another_language_is_answered_in_it_from_then_on(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    ada = PEOPLE["de"]
    bot_api.phones[ada] = "de"
    async with running_here(bot_api, environment):
        assert await said(bot_api, "/nonsense", ada) == seen("de", "unknown_command")
        assert seen("fr", "no_model") in await said(bot_api, FRENCH, ada)
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
        # Neither what others wrote nor a name of a wine is how they write.
        forwarded = {"type": "hidden_user", "sender_user_name": "Bob", "date": 1}
        await said(bot_api, "I would like a red for the lamb", ada, forward_origin=forwarded)
        await said(bot_api, "Barolo", ada)
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
    async with running_here(bot_api, environment):
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
        await said(bot_api, "Quero um vinho tinto para o bacalhau, por favor", ada)
        assert await said(bot_api, "/nonsense", ada) == seen("pt", "unknown_command")


async def test_a_chosen_language_stays_whatever_is_written(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    ada, bob = PEOPLE["en"], PEOPLE["es"]
    async with running_here(bot_api, environment):
        assert await said(bot_api, "/language", ada) == seen("en", "setting_language_ask")
        assert await pressed(bot_api, "Italiano", ada) == translate_into("it", "language_chosen")
        await eventually(
            lambda: "Lingua: Italiano" in buttons(settings(bot_api, ada)),
            seconds=20,
            otherwise=lambda: str(bot_api.toasts),
        )
        assert settings(bot_api, ada)["text"] == seen("it", "settings")
        assert seen("it", "no_model") in await said(bot_api, FRENCH, ada)
        assert await said(bot_api, "/nonsense", ada) == seen("it", "unknown_command")
        assert await said(bot_api, "/settings", ada) == seen("it", "settings")
        await pressed(bot_api, "Lingua: Italiano", ada)
        await eventually(
            lambda: "Italiano ✓" in buttons(settings(bot_api, ada)),
            seconds=20,
            otherwise=lambda: str(bot_api.toasts),
        )
        told = await pressed(bot_api, translate_into("it", "language_auto"), ada)
        assert told == translate_into("fr", "language_follows")
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")

        # In a group everybody has their own.
        mine = await said(bot_api, "/settings@sommelier_test_bot", GROUP, user_id=ada)
        assert mine == seen("fr", "only_in_private")
        await said(bot_api, "/language@sommelier_test_bot", GROUP, user_id=ada)
        told = await pressed(bot_api, "Español", GROUP, bob)
        assert told == translate_into("en", "not_your_settings")
        assert await pressed(bot_api, "Español", GROUP, ada) == translate_into(
            "es", "language_chosen"
        )
        await eventually(
            lambda: bot_api.messages(GROUP)[-1]["text"] == translate_into("es", "language_chosen"),
            seconds=20,
            otherwise=lambda: str(bot_api.messages(GROUP)[-1]),
        )
        assert not buttons(bot_api.messages(GROUP)[-1])
        said_to_bob = await said(bot_api, "/help@sommelier_test_bot", GROUP, user_id=bob)
        assert said_to_bob == seen("en", "help")
