"""A wine list, searched as the catalogue is, by what its lines tell."""

from typing import Any

import pytest

from agent.fallback.searching import wine_listed
from agent.sommelier.attachment import ListCatalogue
from agent.sommelier.wine import Allergen, Currency, ReadWine, Style, Wine, WineQuery

OURS = Wine(
    id="ours",
    producer="Muga",
    name="Rioja Reserva",
    vintage=2018,
    country="Spain",
    region="Rioja",
    style=Style.RED,
    abv=14,
    price=20,
    allergens=(Allergen.EGG,),
)
LINES: tuple[dict[str, Any], ...] = (
    {"name": "Riesling Kabinett", "region": "Mosel", "price": 31},
    {"name": "Barolo", "price": 95},
    {"name": "Spätburgunder", "price": 44},
    {"name": "Prosecco Brut", "glass_price": 7},
    {"name": "Cuvée Mystère", "price": 28},
    {"name": "Hausrot", "style": "red", "price": None},
    {"name": "Rioja Reserva", "producer": "Muga", "price": 49, "known": OURS},
)


def the_list(currency: Currency = Currency.EUR) -> ListCatalogue:
    read = (
        ReadWine(id=f"list#{number}", line=each["name"], currency=currency, **each)
        for number, each in enumerate(LINES, 1)
    )
    return ListCatalogue(read, wine_listed)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"styles": ["red"]}, "Barolo, Spätburgunder, Hausrot, Rioja Reserva"),
        ({"styles": ["red"], "max_price": 50}, "Spätburgunder, Rioja Reserva"),
        ({"max_price": 10}, "Prosecco Brut"),  # by the glass: no bottle is so cheap
        ({"min_price": 45, "order": "cheapest"}, "Rioja Reserva, Barolo"),
        ({"grapes": ["Pinot Noir"]}, "Spätburgunder"),
        ({"countries": ["Spain"]}, "Rioja Reserva"),
        ({"styles": ["red"], "without_allergens": ["egg"]}, "Barolo, Spätburgunder, Hausrot"),
        ({"without_grapes": ["Nebbiolo"], "min_price": 45}, "Rioja Reserva"),
        ({"max_abv": 12}, ""),
        ({"styles": ["red"], "not_ids": ["list#2"], "limit": 1}, "Spätburgunder"),
    ],
)
async def test_a_list_is_searched_by_what_its_lines_tell(query: dict[str, Any], found: str) -> None:
    result = await the_list().search(WineQuery(**query))
    assert ", ".join(each.name for each in result.wines) == found


async def test_a_price_without_a_currency_is_one_of_the_list() -> None:
    francs = the_list(Currency.CHF)
    assert (await francs.search(WineQuery(max_price=44, styles=("red",)))).total == 1
    in_euros = WineQuery(max_price=44, styles=("red",), currency=Currency.EUR)
    assert (await francs.search(in_euros)).total == 0


async def test_where_nothing_is_left_it_is_told_which_limit_does_that() -> None:
    result = await the_list().search(WineQuery(styles=("red",), max_price=20))
    assert (result.wines, result.relax) == ((), {"styles": 1, "price": 4})
