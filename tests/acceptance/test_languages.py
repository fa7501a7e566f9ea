"""The interface in the language of who writes: their phone's, the written one, the chosen."""

from collections.abc import Mapping
from typing import Any

from agent.i18n import languages, translate_into
from bot.telegram.render import parse
from tests.acceptance.test_end_to_end import running_here
from tests.doubles.bot_api import BotApi
from tests.doubles.server import JsonObject, eventually

GREEK, BRAZILIAN, GROUP = 7100477, 7100478, -9300498
PEOPLE = {code: 7100400 + number for number, code in enumerate(languages())}
FRENCH = "Qu'est-ce que vous avez comme rouge pour de l'agneau, à moins de 25 euros ?"


def seen(language: str, name: str, **values: str | float) -> str:
    return parse(translate_into(language, name, **values)).text


async def said(bot_api: BotApi, words: str, chat_id: int, **fields: Any) -> str:
    """What comes back to a message: the last of it."""
    before = len(bot_api.sent(chat_id))
    bot_api.say(words, chat_id=chat_id, **fields)
    return (await bot_api.wait_for_message(before + 1, chat_id=chat_id))[-1]


def buttons(message: JsonObject) -> Mapping[str, str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return {button["text"]: button["callback_data"] for row in rows for button in row}


def settings(bot_api: BotApi, chat_id: int) -> JsonObject:
    messages = reversed(bot_api.messages(chat_id))
    return next(
        message for message in messages if "s:" in str(message.get("reply_markup"))
    )


async def choose(bot_api: BotApi, chat_id: int, label: str) -> None:
    menu = settings(bot_api, chat_id)
    bot_api.press(menu, buttons(menu)[label], chat_id)
    await eventually(lambda: f"{label} ✓" in buttons(settings(bot_api, chat_id)))


async def test_a_phone_is_spoken_to_in_its_language(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    bot_api.app_languages |= {ada: code for code, ada in PEOPLE.items()}
    bot_api.app_languages |= {
        PEOPLE["pt"]: "pt-pt",
        PEOPLE["de"]: "de-AT",
        BRAZILIAN: "pt-br",
    }
    async with running_here(bot_api, environment):
        for language, ada in PEOPLE.items():
            assert (await said(bot_api, "/start", ada)).startswith(
                seen(language, "greeting")
            )
            assert (await said(bot_api, "/help", ada)).startswith(
                seen(language, "help")
            )
            assert await said(bot_api, "/nonsense", ada) == seen(
                language, "unknown_command"
            )
            assert await said(bot_api, "/ask", ada) == seen(language, "ask_usage")
            assert await said(bot_api, "/new", ada) == seen(
                language, "nothing_to_forget"
            )
            assert seen(language, "no_model") in await said(bot_api, "Riesling?", ada)
        assert "Diga o que você vai comer" in await said(bot_api, "/start", BRAZILIAN)
        # Nobody else's language is theirs.
        assert await said(bot_api, "/nonsense", GREEK) == seen("en", "unknown_command")


async def test_a_user_who_changes_the_language_is_answered_in_it_from_then_on(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    ada = PEOPLE["de"]
    bot_api.app_languages[ada] = "de"
    async with running_here(bot_api, environment):
        assert await said(bot_api, "/nonsense", ada) == seen("de", "unknown_command")
        assert seen("fr", "no_model") in await said(bot_api, FRENCH, ada)
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
        # Neither what others wrote nor a name of a wine is how they write.
        forwarded = {"type": "hidden_user", "sender_user_name": "Bob", "date": 1}
        await said(
            bot_api, "I would like a red for the lamb", ada, forward_origin=forwarded
        )
        await said(bot_api, "Barolo", ada)
        await said(bot_api, "/find wine bar in London", ada)
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
    async with running_here(bot_api, environment):
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
        await said(bot_api, "Quero um vinho tinto para o bacalhau, por favor", ada)
        assert await said(bot_api, "/nonsense", ada) == seen("pt", "unknown_command")


async def test_a_look_up_does_not_change_the_language(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    ada = PEOPLE["fr"]
    bot_api.app_languages[ada] = "fr"
    async with running_here(bot_api, environment):
        await said(bot_api, "/find bar à vin Lyon", ada)
        assert seen("fr", "fallback_thanks") in await said(bot_api, "Merci !", ada)


async def test_a_turn_has_one_language(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    people = {"es": PEOPLE["es"], "pt": PEOPLE["pt"]}
    bot_api.app_languages |= {ada: code for code, ada in people.items()}
    bob = PEOPLE["fr"]
    bot_api.app_languages[bob] = "fr"
    forwarded = {"type": "hidden_user", "sender_user_name": "Eva", "date": 1}
    async with running_here(bot_api, environment):
        spanish = await said(bot_api, "Tomo antibióticos. ¿Un tinto?", people["es"])
        portuguese = await said(bot_api, "Tomo antibióticos. Um tinto?", people["pt"])
        await said(bot_api, "Was passt zu Lamm, bitte?", bob, forward_origin=forwarded)
        assert seen("fr", "fallback_thanks") in await said(bot_api, "Merci !", bob)
    assert "Con medicamentos" in spanish
    assert seen("es", "style_red") in spanish
    assert "Com medicamentos" in portuguese
    assert seen("pt", "style_red") in portuguese


async def test_a_chosen_language_stays_whatever_is_written(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    ada, bob = PEOPLE["en"], PEOPLE["es"]
    async with running_here(bot_api, environment):
        assert (await said(bot_api, "/settings", ada)).startswith(
            seen("en", "settings")
        )
        await choose(bot_api, ada, "Italiano")
        assert bot_api.toasts[-1] == translate_into("it", "language_chosen")
        assert seen("it", "no_model") in await said(bot_api, FRENCH, ada)
        assert await said(bot_api, "/nonsense", ada) == seen("it", "unknown_command")
        # In a group everybody has their own, and chooses it elsewhere.
        mine = await said(bot_api, "/settings@sommelier_test_bot", GROUP, user_id=ada)
        assert mine == seen("it", "only_in_private")
        theirs = await said(bot_api, "/help@sommelier_test_bot", GROUP, user_id=bob)
        assert theirs.startswith(seen("en", "help"))
        menu = settings(bot_api, ada)
        bot_api.press(menu, buttons(menu)[translate_into("it", "language_auto")], ada)
        follows = translate_into("fr", "language_follows")
        await eventually(lambda: bot_api.toasts[-1] == follows)
        assert await said(bot_api, "/nonsense", ada) == seen("fr", "unknown_command")
