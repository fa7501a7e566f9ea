"""Presses of the buttons that open pages of the shop, counted on their way."""

from datetime import UTC, date, datetime

from pydantic import SecretStr
from sqlalchemy import select

from agent.sommelier.wine import Wine
from bot.clicks import CLICK_PATH, CountedLinks
from bot.http.clicks import build_click_router
from bot.reports import clicks_table
from db.engine import Sessions
from db.models import ClickRow
from db.repositories.clicks import Clicks
from db.repositories.retention import Retention
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import import_wines
from db.wines.lists.importing import CatalogueFile
from tests.serving import serving

PAGE = "https://shop.example/barolo"
THURSDAY = datetime(2026, 11, 26, tzinfo=UTC)
LINKS = CountedLinks("https://bot.example", SecretStr("key"))


def wine(wine_id: str, link: str) -> Wine:
    return Wine(
        id=wine_id, producer="Conterno", name=wine_id.title(), country="", link=link
    )


async def test_a_press_leads_to_the_page_and_counts_for_the_wine_and_the_week(
    sessions: Sessions,
) -> None:
    barolo, soave = wine("barolo", PAGE), wine("soave", "")
    await import_wines(sessions, CatalogueFile((barolo, soave)))
    clicks = Clicks(sessions, lambda: THURSDAY)
    router = build_click_router(LINKS, SqlCatalogue(sessions), clicks)
    address = LINKS.address_of(barolo)
    assert address.startswith("https://bot.example/go/barolo/")
    path = address.removeprefix("https://bot.example")
    async with serving(routers=[router]) as running:
        for _ in range(2):
            followed = await running.client.get(path)
            assert (followed.status_code, followed.headers["location"]) == (302, PAGE)
            assert followed.headers["cache-control"] == "no-store"
        forged = await running.client.get(f"{CLICK_PATH}/barolo/{'0' * 16}")
        of_another = await running.client.get(path.replace("barolo", "soave"))
        without_page = await running.client.get(
            LINKS.address_of(soave).removeprefix("https://bot.example")
        )
        refused = (forged, of_another, without_page)
        assert [response.status_code for response in refused] == [404, 404, 404]
    async with sessions() as session:
        (stored,) = await session.scalars(select(ClickRow))
    assert (stored.wine_id, stored.week, stored.count) == (
        "barolo",
        date(2026, 11, 23),
        2,
    )
    table = clicks_table(await clicks.list_most_pressed(4), [barolo, soave])
    assert table == "opened pages, 4 weeks\n    2  Conterno Barolo NV"
    later = datetime(2026, 12, 21, tzinfo=UTC)
    assert await Clicks(sessions, lambda: later).list_most_pressed(4) == []
    retention = Retention(sessions, lambda: later)
    assert await retention.delete_clicks(later - THURSDAY) == 1
