"""Staff and admins say between two imports what is sold out, what is back, and what it costs."""

import pytest

from agent.i18n import translate
from agent.sommelier.offers import Offer
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import OfferKind
from agent.sommelier.wine import Wine
from db.engine import Sessions
from db.wines.catalogue import SqlCatalogue, list_wines
from db.wines.catalogue_import import import_wines
from db.wines.lists.importing import CatalogueFile
from tests.doubles.bot_api import BotApi
from tests.integration.test_admin import ADMIN, BEA, UNKNOWN, AdminBot, until
from tests.integration.test_look_ups import buttons
from tests.running import at_rest

STAFF, ERIN = -9001, 8001
SOLD, SOLD_OUT = "barolo-2018", "barolo-2019"
BOTTLE, GLASS = Offer(price=40, stock=3), Offer(kind=OfferKind.GLASS, price=9)
LIST = CatalogueFile(
    (
        Wine(
            id=SOLD,
            producer="Vajra",
            name="Barolo",
            vintage=2018,
            country="Italy",
            price=38,
        ),
        Wine(
            id=SOLD_OUT,
            producer="Vajra",
            name="Barolo",
            vintage=2019,
            country="Italy",
            price=39,
            in_stock=False,
        ),
        Wine(
            id="soave",
            producer="Pieropan",
            name="Soave",
            country="Italy",
            offers=(BOTTLE, GLASS),
        ),
    ),
    source="list",
)


@pytest.fixture
async def admin_bot(sqlite_sessions: Sessions) -> AdminBot:
    await import_wines(sqlite_sessions, LIST)
    return AdminBot(sqlite_sessions)


async def get(catalogue: SqlCatalogue, wine_id: str) -> Wine:
    (wine,) = await catalogue.get([wine_id])
    return wine


async def test_what_an_admin_says_is_sold_out_is_so_in_every_replica_until_the_next_import(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    sessions = admin_bot.sessions
    replica = SqlCatalogue(sessions)
    found = await replica.search(WineQuery(name="Barolo"))
    assert [wine.in_stock for wine in found.wines] == [True, False]
    async with admin_bot.open(bot_api) as bot:
        bot_api.say("/out vajra barolo 2018", ADMIN)
        (shown,) = await bot_api.wait_for_message(1, ADMIN)
        await at_rest(bot)
        assert not (await get(replica, SOLD)).in_stock
        bot_api.say("/in Barolo 2019", ADMIN)
        bot_api.say("/price Barolo 2018 1045,50 €", ADMIN)
        _, back, priced = await bot_api.wait_for_message(3, ADMIN)
        await at_rest(bot)
    assert "Vajra Barolo 2018 is now out of stock" in shown
    assert "Vajra Barolo 2019 is back in stock" in back
    assert "Vajra Barolo 2018 now costs €1,045.50" in priced
    assert (await get(replica, SOLD)).price == 1045.5
    assert (await get(replica, SOLD_OUT)).in_stock
    changed = await list_wines(sessions, changed=True)
    assert {wine.id for wine, at in changed if at} == {SOLD, SOLD_OUT}
    assert len(await list_wines(sessions, changed=False)) == 3
    report = await import_wines(sessions, LIST)
    assert (report.updated, report.unchanged) == (2, 1)
    assert await list_wines(sessions, changed=True) == []
    assert (await get(replica, SOLD)).price == 38


async def test_a_wine_that_left_the_list_is_no_longer_shown_as_changed(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    async with admin_bot.open(bot_api) as bot:
        bot_api.say("/in Barolo 2019", ADMIN)
        await bot_api.wait_for_message(1, ADMIN)
        await at_rest(bot)
    shorter = CatalogueFile(LIST.wines[2:], source="list")
    await import_wines(admin_bot.sessions, shorter)
    assert await list_wines(admin_bot.sessions, changed=True) == []
    assert not (await get(SqlCatalogue(admin_bot.sessions), SOLD_OUT)).in_stock


async def test_staff_choose_by_a_button_where_several_match_and_once(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    catalogue = SqlCatalogue(admin_bot.sessions)
    async with admin_bot.open(bot_api, STAFF_CHAT_ID=str(STAFF)) as bot:
        bot_api.say("/out barolo", STAFF, ERIN)
        await bot_api.wait_for_message(1, STAFF)
        (asked,) = bot_api.messages(STAFF)
        first, second = buttons(asked)
        assert [each["text"] for each in (first, second)] == [
            "Vajra Barolo 2018",
            "Vajra Barolo 2019",
        ]
        assert (await get(catalogue, SOLD)).in_stock
        bot_api.press(asked, first["callback_data"], ERIN)
        await bot_api.wait_for_message(2, STAFF)
        await at_rest(bot)
        assert not (await get(catalogue, SOLD)).in_stock
        bot_api.say("/in Barolo 2018", STAFF, ERIN)
        await bot_api.wait_for_message(3, STAFF)
        bot_api.press(asked, first["callback_data"], ERIN)  # late, and a second time
        await until(lambda: len(bot_api.toasts) == 2)
        await at_rest(bot)
        assert (await get(catalogue, SOLD)).in_stock
        bot_api.say("/price soave 42.5", STAFF, ERIN)
        await bot_api.wait_for_message(4, STAFF)
        offered = bot_api.messages(STAFF)[-1]
        bottle, glass = buttons(offered)
        assert bottle["text"] == "Pieropan Soave NV · bottle €40"
        bot_api.press(offered, glass["callback_data"], ERIN)
        await bot_api.wait_for_message(5, STAFF)
        await at_rest(bot)
    assert (await get(catalogue, "soave")).prices == (40, 42.5)


async def test_a_price_is_not_read_from_a_vintage_and_a_name_that_is_not_there_is_told(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    async with admin_bot.open(bot_api):
        for command in ("/price Barolo 2018", "/price", "/out", "/out Pomerol"):
            bot_api.say(command, ADMIN)
        *usage, unknown = await bot_api.wait_for_message(4, ADMIN)
    assert len(set(usage)) == 1
    assert unknown == translate("stock_unknown", name="Pomerol")
    assert await list_wines(admin_bot.sessions, changed=True) == []


async def test_for_guests_the_commands_do_not_exist(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    async with admin_bot.open(bot_api, STAFF_CHAT_ID=str(STAFF)) as bot:
        for command in ("/out Barolo 2018", "/in Barolo 2019", "/price Barolo 2018 1"):
            bot_api.say(command, BEA)
        assert await bot_api.wait_for_message(3, BEA) == [UNKNOWN] * 3
        bot_api.say("/out barolo", ADMIN)
        await bot_api.wait_for_message(1, ADMIN)
        (asked,) = bot_api.messages(ADMIN)
        bot_api.press(
            asked | {"chat": {"id": BEA, "type": "private"}}, data_of(asked), BEA
        )
        await until(lambda: bool(bot_api.toasts))
        await at_rest(bot)
    assert bot_api.toasts == [translate("not_yours")]
    assert await list_wines(admin_bot.sessions, changed=True) == []


def data_of(message: dict[str, object]) -> str:
    return str(buttons(message)[0]["callback_data"])
