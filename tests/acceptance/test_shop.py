"""A bot of a restaurant: its own list, prices, opening hours and name, without a model."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.acceptance.test_end_to_end import CHAT, running_here
from tests.commands import sommelier
from tests.doubles.bot_api import BotApi
from tests.files import xlsx

SHOP = """# Zum Löwen

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
        assert "17 bis 23 Uhr" in await ask("Wann haben Sie geöffnet?")
        assert "ab 60 Euro" in await ask("Liefern Sie auch nach Hause?")
