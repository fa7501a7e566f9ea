"""A bot of a restaurant: its own list, prices, opening hours and name, without a model."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.acceptance.test_end_to_end import CHAT, known_to, running_here
from tests.acceptance.test_follow_ups import answered
from tests.commands import sommelier
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject
from tests.files import xlsx

STRANGER = 8_049
SHOP = """# Zum Löwen

## Willkommen

Grüß Gott im Löwen! Fragen Sie mich nach *unseren* Weinen.

## Öffnungszeiten

Wir sind Dienstag bis Samstag von 17 bis 23 Uhr für Sie da.

## Lieferung

Wir liefern in Graz ab 60 Euro frei Haus.
"""
CARD: dict[str, Iterable[Sequence[object]]] = {
    "Weißwein": [
        ("Weinkarte",),
        ("Wein", "Jahrgang", "Glas 0,1l", "Flasche"),
        ("Chablis, Domaine Vocoret", 2022, 9.5, 54),
        ("Riesling, Weingut Keller", 2021, 7, 39),
    ]
}

PAGE, PICTURE = (
    "https://shop.example/chablis?size=75",
    "https://cdn.example/chablis.jpg",
)
LIST = f"""id,producer,name,style,price,link,image
vocoret-chablis,Vocoret,Chablis Premier Cru Montée de Tonnerre Reserve,white,30,{PAGE},{PICTURE}
barolo,Conterno,Barolo,red,49,https://shop.example/barolo,https://cdn.example/barolo.jpg
chinon,Raffault,Chinon,red,15,,
"""


async def test_a_restaurant_speaks_of_itself_and_of_its_own_list(
    bot_api: BotApi, environment: dict[str, str], tmp_path: Path
) -> None:
    async def ask(words: str) -> str:
        count = len(bot_api.sent(CHAT)) + 1
        bot_api.say(words, chat_id=CHAT)
        messages = await bot_api.wait_for_message(count, CHAT)
        return messages[count - 1]

    async def run(*arguments: str) -> str:
        done = await asyncio.to_thread(sommelier, *arguments, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    card, shop = tmp_path / "karte.xlsx", tmp_path / "shop.md"
    card.write_bytes(xlsx(CARD))
    shop.write_text(SHOP, "utf-8")
    settings = {"SHOP_NAME": "Zum Löwen", "ENABLE_FIND": "false"}
    bot_api.app_languages |= {CHAT: "de"}
    async with running_here(bot_api, environment, **settings):
        assert (await ask("/start")).startswith("Zum Löwen\n\nGuten Tag!")
        assert "/find" not in await ask("/help")
        assert "/find" not in await ask("/find Weinbar Graz")
        # Both are imported while the bot runs, which knows them at the next question.
        imported = await run("wines", "import", str(card), "--yes", "--without-samples")
        assert imported.startswith("2 added")
        assert (await run("documents", "add", str(shop))).startswith("1 added")
        riesling = await ask("ein Riesling")
        assert "39" in riesling
        assert "≈" not in riesling
        greeted = (
            "Zum Löwen\n\nGrüß Gott im Löwen! Fragen Sie mich nach unseren Weinen.\n\n"
        )
        assert (await ask("/start")).startswith(greeted)
        assert "17 bis 23 Uhr" in await ask("Wann haben Sie geöffnet?")
        assert "ab 60 Euro" in await ask("Liefern Sie auch nach Hause?")
        bot_api.app_languages |= {STRANGER: "nl"}
        bot_api.say("/start", chat_id=STRANGER)
        (greeting,) = await bot_api.wait_for_message(1, STRANGER)
        assert "Löwen!" not in greeting


async def test_a_model_reads_the_list_by_the_glass_and_the_shop_before_it_answers(
    bot_api: BotApi,
    model_server: ModelServer,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    card, shop = tmp_path / "karte.xlsx", tmp_path / "shop.md"
    card.write_bytes(xlsx(CARD))
    shop.write_text(SHOP, "utf-8")
    for arguments in (
        ("wines", "import", str(card), "--yes"),
        ("documents", "add", str(shop)),
    ):
        done = await asyncio.to_thread(sommelier, *arguments, environment=environment)
        assert done.returncode == 0, done.stderr
    talk = {"response_type": "informational", "intro": "Gern.", "wines": []}
    model_server.script(*[answer_json(talk)] * 2)
    bot_api.app_languages |= {CHAT: "de"}
    async with running_here(bot_api, environment, **known_to(model_server)):
        bot_api.say("Was kostet der Chablis im Glas?", chat_id=CHAT)
        await answered(bot_api, 1)
        bot_api.say("/new", chat_id=CHAT)
        await answered(bot_api, 2)
        bot_api.say("Wann haben Sie geöffnet?", chat_id=CHAT)
        await answered(bot_api, 3)
    by_the_glass, hours = (
        str(request.json["messages"]) for request in model_server.requests
    )
    assert "glass, 100 ml, €9.50, in stock" in by_the_glass
    assert "17 bis 23 Uhr" in hours


def shop_buttons(message: JsonObject) -> list[tuple[str, str]]:
    """The labels and the addresses of the buttons that open a page."""
    buttons = [
        button for row in message["reply_markup"]["inline_keyboard"] for button in row
    ]
    return [(button["text"], button["url"]) for button in buttons if "url" in button]


def pictures(bot_api: BotApi) -> list[str]:
    """The picture above each message; "" for none."""
    options = [
        call.params["link_preview_options"] for call in bot_api.calls_of("sendMessage")
    ]
    return ["" if each["is_disabled"] else str(each["url"]) for each in options]


async def import_list(environment: dict[str, str], folder: Path) -> None:
    (folder / "list.csv").write_text(LIST, "utf-8")
    arguments = (
        "wines",
        "import",
        str(folder / "list.csv"),
        "--yes",
        "--without-samples",
    )
    done = await asyncio.to_thread(sommelier, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr


async def test_a_button_opens_the_page_of_each_wine_and_a_single_one_is_shown_with_its_picture(
    bot_api: BotApi, environment: dict[str, str], tmp_path: Path
) -> None:
    await import_list(environment, tmp_path)
    async with running_here(bot_api, environment):
        bot_api.say("a red wine", chat_id=CHAT)
        reds = await answered(bot_api, 1)
        bot_api.say("a white wine", chat_id=CHAT)
        white = await answered(bot_api, 2)
    assert "2. Conterno Barolo" in reds["text"]
    assert shop_buttons(reds) == [("🛒 2. Barolo", "https://shop.example/barolo")]
    assert shop_buttons(white) == [("🛒 1. Chablis Premier Cru Montée de Tonn…", PAGE)]
    assert pictures(bot_api) == ["", PICTURE]
    counted = {"CLICK_URL": "https://bot.example", "HTTP_PORT": "0"}
    async with running_here(bot_api, environment, **counted):
        bot_api.say("a white wine", chat_id=CHAT)
        white = await answered(bot_api, 3)
    ((_, address),) = shop_buttons(white)
    assert address.startswith("https://bot.example/go/vocoret-chablis/")


async def test_a_wine_that_a_model_shows_has_its_picture_unless_telegram_refuses_it(
    bot_api: BotApi,
    model_server: ModelServer,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    await import_list(environment, tmp_path)
    search = tool_call("search_wines", {"styles": ["white"]})
    shown = [{"wine_id": "vocoret-chablis", "description": "Flint."}]
    answer = {"response_type": "recommendation", "intro": "Here it is:", "wines": shown}
    model_server.script(search, answer_json(answer), search, answer_json(answer))
    async with running_here(bot_api, environment, **known_to(model_server)):
        bot_api.say("show me the white one", chat_id=CHAT)
        await answered(bot_api, 1)
        bot_api.fail("sendMessage", 400)
        bot_api.say("and again", chat_id=CHAT)
        plain = await answered(bot_api, 2)
    assert "Vocoret Chablis" in plain["text"]
    assert pictures(bot_api) == [PICTURE, PICTURE, ""]
    assert PICTURE not in str(model_server.requests)
