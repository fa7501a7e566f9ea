"""The picture of a cellar: what it shows, and names that are no harmless text."""

import asyncio
import io

from PIL import Image

from agent.cellar.items import parse_cellar_item
from agent.cellar.picture import CellarPainter, describe_picture
from agent.i18n import use_language
from agent.turn import CellarItem
from db.wines.lists.cellar import read_cellar
from tests.cellars import YEAR, collect, export_list


def collected(count: int) -> list[CellarItem]:
    return read_cellar(export_list(collect(count))).items


def test_a_picture_counts_each_bottle_once_in_each_year_and_each_chart() -> None:
    wines = collect(200)
    total = sum(wine.count for wine in wines)
    with use_language("de"):
        picture = describe_picture(collected(200), YEAR)
    assert picture.title == f"In Ihrem Keller: {total} Flaschen"
    assert [
        sum(bar.count for bar in bars) for bars in zip(*picture.states, strict=True)
    ] == ([total] * len(picture.years))
    for bars in (picture.styles, picture.regions):
        assert sum(bar.count for bar in bars) == total
    ready_now = picture.states[0][0]
    assert ready_now.name == "trinkreif"
    assert ready_now.count == sum(wine.count for wine in wines if wine.state == "ready")


async def test_a_picture_is_drawn_once_whoever_asks_for_it_and_whatever_its_names_are() -> (
    None
):
    item = parse_cellar_item("3 Koshu 2020 18")
    assert item is not None
    hostile = CellarItem(
        key="koshu",
        wine=dict(item.wine) | {"region": "$\\frac{1}{0$ 山梨 <b>"},
        count=3,
    )
    painter = CellarPainter()
    first, second = await asyncio.gather(
        painter.paint([hostile], YEAR), painter.paint([hostile], YEAR)
    )
    assert first is second
    assert Image.open(io.BytesIO(first)).format == "PNG"
