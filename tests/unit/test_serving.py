"""Drinking windows and temperatures: as the field says, as the articles say, and sane for all."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sommelier.serving import drinking_years, serving_degrees
from agent.sommelier.vocabulary import Colour, Currency, Style
from agent.sommelier.wine import Wine
from db.wines.catalogue_import import STARTER
from db.wines.lists.importing import read_catalogue

STILL = (Style.RED, Style.WHITE, Style.ROSE, Style.ORANGE)
ARTICLES = Path(__file__).parents[2] / "db" / "starter" / "documents"


def wine(
    name: str, style: str = "red", price: float | None = None, **fields: object
) -> Wine:
    facts = {"id": "x", "producer": "", "country": "", "vintage": 2000} | fields
    return Wine.model_validate(facts | {"name": name, "style": style, "price": price})


def ages(
    name: str, style: str = "red", price: float | None = None, **fields: object
) -> tuple[int, int]:
    years = drinking_years(wine(name, style, price, **fields))
    assert years is not None
    return years[0] - 2000, years[1] - 2000


@pytest.mark.parametrize(
    ("rule", "long", "short"),
    [
        ("the whole appellation", ages("Hermitage"), ages("Crozes-Hermitage")),
        (
            "the appellation, not the region",
            ages("x", appellation="Pauillac", region="Bordeaux"),
            ages("x", region="Bordeaux"),
        ),
        ("the colour", ages("Pessac-Léognan"), ages("Pessac-Léognan", "white")),
        (
            "the subtype",
            ages("Aszú", "sweet", region="Tokaj"),
            ages("Furmint", "white", region="Tokaj"),
        ),
        (
            "a term where it counts",
            ages("Gran Reserva", region="Rioja"),
            ages("Gran Reserva", region="Maipo"),
        ),
        (
            "a grape that ages",
            ages("x", grapes=("Xinomavro",)),
            ages("x", grapes=("Dolcetto",)),
        ),
        (
            "the price",
            ages("Cabernet", grapes=("Cabernet Sauvignon",)),
            ages("Cabernet", price=7),
        ),
        (
            "a modest price in a famous place",
            ages("Saint-Estèphe", price=60),
            ages("Saint-Estèphe", price=25),
        ),
        (
            "a price at the limit",
            ages("Furmint", "white", price=14, region="Tokaj"),
            ages("Furmint", "white", price=13, region="Tokaj"),
        ),
    ],
)
def test_the_drinking_window_follows_each_rule(
    rule: str, long: tuple[int, int], short: tuple[int, int]
) -> None:
    assert long[1] > short[1], rule


def test_a_producer_is_no_appellation() -> None:
    assert ages("Pinot Noir", producer="Lucy Margaux", price=20) == ages(
        "Pinot Noir", price=20
    )


@given(
    name=st.sampled_from(
        ["Gran Reserva", "Barolo Riserva", "Pauillac", "Grand Cru", "Muscat", ""]
    ),
    style=st.sampled_from(["red", "white", "rose", "orange"]),
    region=st.sampled_from(["Rioja", "Bordeaux", "Burgundy", "Mosel", "Maipo", ""]),
    grape=st.sampled_from(["Nebbiolo", "Riesling", "Tannat", "Gamay", "Pinot Noir"]),
    price=st.floats(1, 11.99),
)
def test_no_cheap_wine_waits_longer_than_two_years_or_is_past_when_it_is_sold(
    name: str, style: str, region: str, grape: str, price: float
) -> None:
    first, last = ages(name, style, price, region=region, grapes=(grape,))
    assert first <= 2
    assert last >= 2


SAYS = [
    ("regions/burgundy.md", "Regional reds taste best", wine("Bourgogne")),
    ("regions/burgundy.md", "village reds", wine("Volnay")),
    ("regions/burgundy.md", "great crus", wine("Grand Cru", region="Burgundy")),
    ("regions/bordeaux.md", "Simple red Bordeaux", wine("Bordeaux")),
    ("regions/bordeaux.md", "good Haut-Médoc", wine("Haut-Médoc")),
    ("regions/bordeaux.md", "those of Pauillac", wine("Pauillac")),
    ("regions/chablis.md", "village Chablis", wine("Chablis", "white")),
    (
        "regions/chablis.md",
        "Premier Cru is at its best",
        wine("Chablis Premier Cru", "white"),
    ),
    ("regions/chablis.md", "and Grand Cru from", wine("Chablis Grand Cru", "white")),
    ("regions/rhone.md", "Côtes du Rhône tastes best", wine("Côtes du Rhône")),
    ("regions/rhone.md", "good Châteauneuf", wine("Châteauneuf-du-Pape")),
    ("regions/rhone.md", "and Hermitage", wine("Hermitage")),
    ("regions/rioja.md", "Crianza shows best", wine("Crianza", region="Rioja")),
    ("regions/rioja.md", "Reserva from", wine("Reserva", region="Rioja")),
    ("regions/rioja.md", "and Gran Reserva", wine("Gran Reserva", region="Rioja")),
    (
        "regions/mosel.md",
        "Kabinett is at its best",
        wine("Kabinett", "white", region="Mosel"),
    ),
    ("regions/mosel.md", "Spätlese from", wine("Spätlese", "sweet", region="Mosel")),
    ("regions/tokaj.md", "It is at its best", wine("Dry", "white", region="Tokaj")),
    ("grapes/nebbiolo.md", "Good Barolo is at its best", wine("Barolo")),
    (
        "grapes/tempranillo.md",
        "A Crianza is typically at its best",
        wine("Crianza", region="Rioja"),
    ),
    ("grapes/tempranillo.md", "a Gran Reserva", wine("Gran Reserva", region="Rioja")),
    (
        "grapes/pinot-noir.md",
        "Simple bottles are best",
        wine("x", grapes=("Pinot Noir",)),
    ),
    ("grapes/pinot-noir.md", "village Burgundy", wine("Volnay")),
    ("regions/piedmont.md", "Barolo is at its best", wine("Barolo")),
    ("regions/piedmont.md", "Barbaresco from", wine("Barbaresco")),
    ("regions/piedmont.md", "everyday version, good from", wine("Langhe Nebbiolo")),
    ("regions/piedmont.md", "lighter in body and wants", wine("Gattinara")),
    ("regions/piedmont.md", "Barbera d'Alba taste best", wine("Barbera d'Alba")),
    (
        "regions/piedmont.md",
        "stony and at its best",
        wine("x", "white", grapes=("Timorasso",)),
    ),
    ("regions/veneto.md", "for drinking young", wine("Prosecco", "sparkling")),
    ("regions/veneto.md", "Both are at their best", wine("Soave", "white")),
    ("regions/veneto.md", "with sour cherry, and good", wine("Valpolicella")),
    ("regions/veneto.md", "rounder and keeps", wine("Valpolicella Ripasso")),
    ("regions/veneto.md", "vol, and best", wine("Amarone della Valpolicella")),
    ("regions/loire.md", "until spring, and good", wine("Muscadet", "white")),
    ("regions/loire.md", "Savennières is dry and firm", wine("Savennières", "white")),
    ("regions/loire.md", "Dry Vouvray is good", wine("Vouvray", "white")),
    (
        "regions/loire.md",
        "sweet Vouvray moelleux",
        wine("x", "sweet", appellation="Vouvray"),
    ),
    ("regions/loire.md", "Chinon tastes best", wine("Chinon")),
    ("regions/loire.md", "Saumur-Champigny from", wine("Saumur-Champigny")),
    ("regions/loire.md", "Sancerre is at its best", wine("Sancerre", "white")),
    ("regions/alsace.md", "Ordinary Alsace white", wine("x", "white", region="Alsace")),
    (
        "regions/alsace.md",
        "Grand Cru from",
        wine("Grand Cru", "white", region="Alsace"),
    ),
    ("regions/alsace.md", "usually sweet", wine("Vendanges Tardives", "white")),
    ("regions/alsace.md", "tastes fresh", wine("Crémant", "sparkling")),
    (
        "regions/austria.md",
        "Federspiel is medium",
        wine("Federspiel", "white", region="Wachau"),
    ),
    (
        "regions/austria.md",
        "Smaragd is ripe",
        wine("Smaragd", "white", region="Wachau"),
    ),
    ("regions/austria.md", "fine acidity, good", wine("x", grapes=("Blaufränkisch",))),
    ("regions/austria.md", "cherry-like, good", wine("x", grapes=("Zweigelt",))),
    ("grapes/merlot.md", "Pomerol is at its best", wine("Pomerol")),
    ("grapes/merlot.md", "Saint-Émilion from", wine("Saint-Émilion")),
    ("grapes/merlot.md", "simple red Bordeaux", wine("Bordeaux")),
    ("grapes/merlot.md", "name Merlot tastes best", wine("x", grapes=("Merlot",))),
    ("grapes/malbec.md", "it is at its best", wine("Cahors")),
    ("grapes/malbec.md", "Mendoza Malbec tastes best", wine("x", region="Mendoza")),
    ("grapes/grenache.md", "Gigondas are at their best", wine("Gigondas")),
    ("grapes/grenache.md", "Côtes du Rhône from", wine("Côtes du Rhône")),
    ("grapes/grenache.md", "it is powerful", wine("Priorat")),
    (
        "grapes/grenache.md",
        "Cannonau di Sardegna is good",
        wine("Cannonau di Sardegna"),
    ),
    ("grapes/grenache.md", "name it tastes best", wine("x", grapes=("Grenache",))),
    (
        "grapes/sangiovese.md",
        "Chianti Classico is at its best",
        wine("Chianti Classico"),
    ),
    (
        "grapes/sangiovese.md",
        "Riserva from",
        wine("Riserva", appellation="Chianti Classico"),
    ),
    ("grapes/sangiovese.md", "simple Chianti", wine("Chianti")),
    (
        "grapes/sangiovese.md",
        "after the harvest. It is at its best",
        wine("Brunello di Montalcino"),
    ),
    ("grapes/sangiovese.md", "softer and good", wine("Morellino di Scansano")),
    (
        "grapes/gruner-veltliner.md",
        "tastes best",
        wine("x", "white", grapes=("Grüner Veltliner",)),
    ),
    ("grapes/gruner-veltliner.md", "Weinviertel from", wine("Weinviertel", "white")),
    (
        "grapes/gruner-veltliner.md",
        "the Kamptal from",
        wine("Ried", "white", region="Kamptal"),
    ),
    (
        "grapes/gruner-veltliner.md",
        "the Wachau from",
        wine("Smaragd", "white", region="Wachau"),
    ),
    ("tasting/rose.md", "Most rosé is at its best", wine("x", "rose")),
    ("tasting/rose.md", "Tavel is good", wine("Tavel", "rose")),
    ("tasting/rose.md", "Bandol rosé", wine("Bandol", "rose")),
]


@pytest.mark.parametrize(("article", "words", "meant"), SAYS)
def test_articles_and_windows_say_the_same(
    article: str, words: str, meant: Wine
) -> None:
    said = re.search(
        rf"{words}\D{{0,40}}?(\d+) to (\d+)", (ARTICLES / article).read_text("utf-8")
    )
    assert said, "the article says it in other words"
    years = drinking_years(meant)
    assert years == (2000 + int(said[1]), 2000 + int(said[2]))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("Light, aromatic whites and dry rosés", wine("x", "white", body="light")),
        ("whites of medium body", wine("x", "white", body="medium")),
        ("Full or barrel-aged whites", wine("x", "white", body="full")),
        ("orange wines", wine("x", "orange")),
        ("Light reds", wine("x", body="light")),
        ("other medium reds", wine("x", body="medium")),
        ("tannic, full reds", wine("x", body="full")),
        ("Sweet white wines", wine("x", "sweet")),
        ("Fino Sherry", wine("Fino", "fortified", region="Jerez", colour="white")),
        (
            "tawny Port",
            wine("10 Year Old Tawny", "fortified", appellation="Port", colour="red"),
        ),
        ("good Champagne", wine("Brut", "sparkling", appellation="Champagne")),
        ("Simple sparkling wine", wine("Brut", "sparkling")),
    ],
)
def test_the_article_on_temperature_and_the_table_say_the_same(
    words: str, meant: Wine
) -> None:
    article = (ARTICLES / "serving/temperature.md").read_text("utf-8")
    said = re.search(rf"{words}\D{{0,70}}(\d+) to (\d+) °C", article)
    assert said
    assert serving_degrees(meant) == (int(said[1]), int(said[2]))


def test_a_wine_without_alcohol_is_served_as_its_colour() -> None:
    red = wine("Zero", "alcohol_free", colour=Colour.RED, currency=Currency.EUR)
    degrees = serving_degrees(red)
    assert degrees is not None
    assert degrees[0] >= 12
    assert red.style is Style.ALCOHOL_FREE


def starter_years() -> Iterator[tuple[Wine, int, int]]:
    """Yield each dated wine of the starter list, and how many years it waits and lasts."""
    for dated in read_catalogue(STARTER).wines:
        years = drinking_years(dated)
        if dated.vintage and years:
            yield dated, years[0] - dated.vintage, years[1] - dated.vintage


def test_at_most_a_tenth_of_the_starter_list_is_past_its_best_next_year() -> None:
    """When this fails, a year is left to bring the list to newer vintages."""
    this_year = datetime.now(UTC).year
    wines = list(starter_years())
    past = [
        dated.id for dated, _, last in wines if (dated.vintage or 0) + last <= this_year
    ]
    assert len(past) <= len(wines) / 10, past


def test_no_cheap_starter_wine_is_told_to_wait_and_none_is_past_when_it_is_released() -> (
    None
):
    for dated, first, last in starter_years():
        if (dated.price or 0) < 12 and dated.style in STILL:
            assert first <= 2, dated.id
        assert first >= 1, dated.id
        assert last >= 2, dated.id


@given(
    name=st.sampled_from(
        ["Rosé", "Muscadet", "Prosecco", "Fino", "Madeira", "Vin de soif", ""]
    ),
    style=st.sampled_from([str(style) for style in Style]),
    grape=st.sampled_from(
        ["Gamay", "Muscat", "Riesling", "Sauvignon Blanc", "Pinot Noir"]
    ),
    price=st.none() | st.floats(1, 200),
)
def test_no_wine_is_at_its_best_in_the_year_of_its_harvest(
    name: str, style: str, grape: str, price: float | None
) -> None:
    first, last = ages(name, style, price, grapes=(grape,))
    assert 1 <= first < last
    assert ages("Beaujolais Nouveau")[0] == 0, "it is sold in November"


def test_a_still_starter_wine_without_a_vintage_says_so() -> None:
    undated = [found for found in read_catalogue(STARTER).wines if not found.vintage]
    still = [found for found in undated if found.style in STILL]
    assert [found.id for found in still if "without a vintage" not in found.notes] == []


def test_the_price_of_a_glass_says_nothing_of_age() -> None:
    glass = {"kind": "glass", "price": 9}
    bottle = {"kind": "bottle", "price": 60}
    offered = Wine.model_validate(
        {"id": "x", "producer": "", "country": "", "vintage": 2000, "name": "Barolo"}
        | {"style": "red", "offers": (glass, bottle)}
    )
    assert drinking_years(offered) == drinking_years(wine("Barolo", price=60))
