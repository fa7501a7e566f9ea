"""Wines are found by their names, as guests type them."""

import pytest

from agent.sommelier.offers import Offer
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import Style
from agent.sommelier.wine import Wine
from db.wines.search import WineIndex


def wine(
    wine_id: str, producer: str, name: str, vintage: int | None, **facts: object
) -> Wine:
    told = {"country": "", "style": Style.RED, **facts}
    return Wine.model_validate(
        {"id": wine_id, "producer": producer, "name": name, "vintage": vintage, **told}
    )


INDEX = WineIndex(
    [
        wine("tignanello", "Antinori", "Tignanello", 2020),
        wine("barolo", "Massolino", "Barolo Serralunga d'Alba", 2019),
        wine(
            "brunate", "Ceretto", "Barolo Brunate", 2016, offers=[Offer(in_stock=False)]
        ),
        wine("crau", "Vieux Télégraphe", "Châteauneuf-du-Pape La Crau", 2019),
        wine("pavillon", "Château Margaux", "Pavillon Rouge", 2018, region="Bordeaux"),
        wine("blason", "Château d'Issan", "Blason d'Issan", 2018, region="Margaux"),
        wine("spaet", "Rudolf Fürst", "Hundsrück GG", 2018, grapes=["Spätburgunder"]),
        wine("bin 28", "Penfolds", "Bin 28 Kalimna Shiraz", 2020),
        wine("bin 389", "Penfolds", "Bin 389 Cabernet Shiraz", 2019),
    ]
)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("tignanelo 2020", ["tignanello"]),
        ("a Tignanello by Antinori", ["tignanello"]),
        ("Barolo", ["barolo", "brunate"]),
        ("chateau neuf du pape", ["crau"]),
        ("Château Margaux", ["pavillon"]),
        ("Margaux", ["pavillon", "blason"]),
        ("Blauburgunder", ["spaet"]),
        ("anything from Penfolds", ["bin 28", "bin 389"]),
        ("Penfolds Bin 28", ["bin 28"]),
    ],
)
def test_a_name_finds_its_wines_those_in_stock_first(name: str, ids: list[str]) -> None:
    found = INDEX.search(WineQuery(name=name)).wines
    assert {wine.id for wine in found} == {*ids}
    in_stock = [wine.in_stock for wine in found]
    assert in_stock == sorted(in_stock, reverse=True)


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("Brunate Riserva Speciale", ["brunate"]),
        ("Penfolds Bin 707", []),
        ("Grauburgunder", []),
        ("Screaming Eagle", []),
    ],
)
def test_a_name_that_no_wine_has_finds_none_but_the_closest(
    name: str, closest: list[str]
) -> None:
    result = INDEX.search(WineQuery(name=name))
    assert (result.wines, result.total, result.other_vintages) == ((), 0, ())
    assert [wine.id for wine in result.closest][: len(closest)] == closest


def test_a_vintage_that_is_not_there_finds_the_others() -> None:
    result = INDEX.search(WineQuery(name="Tignanello 2016"))
    assert (result.wines, result.closest) == ((), ())
    assert [wine.id for wine in result.other_vintages] == ["tignanello"]


@pytest.mark.parametrize(
    ("text", "found", "mentioned"),
    [
        ("je suis à la recherche de penfolds bin 28", ["bin 28"], []),
        ("Penfolds Bin 707 in a box", [], ["bin 28", "bin 389"]),
        ("a bottle that they called Tignanello in Siena", [], ["tignanello"]),
    ],
)
def test_a_wine_is_found_in_a_longer_text_if_its_own_name_is_there(
    text: str, found: list[str], mentioned: list[str]
) -> None:
    result = INDEX.search(WineQuery(name=text))
    assert [each.id for each in result.wines] == found
    assert [each.id for each in result.mentioned] == mentioned


def test_a_year_in_a_name_is_a_part_of_it() -> None:
    solera = wine("solera", "Alvear", "Solera 1927", None)
    index = WineIndex([solera, wine("other", "Alvear", "Fino", 1927)])
    assert index.search(WineQuery(name="solera 1927")).wines == (solera,)


def test_a_wine_that_a_filter_leaves_out_is_not_the_closest_to_itself() -> None:
    """The model read "no wine is named so but: Tignanello", and denied it."""
    result = INDEX.search(WineQuery(name="Tignanello", min_price=20))
    assert (result.wines, result.closest, result.other_vintages) == ((), (), ())
    assert result.relax == {"price": 1}
    allergic = INDEX.search(WineQuery(name="Tignanello 1999", without_styles=["red"]))
    assert (allergic.other_vintages, allergic.closest) == ((), ())


def test_a_named_wine_is_told_even_if_nobody_has_it_in_that_size() -> None:
    result = INDEX.search(WineQuery(name="Tignanello", offer="magnum"))
    assert [each.id for each in result.wines] == ["tignanello"]
    assert result.unmet_filters == {"tignanello": ("offer",)}
