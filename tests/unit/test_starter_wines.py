"""The starter catalogue: sound pairings, and all facts that filters use."""

from collections.abc import Callable
from itertools import product

import pytest

from agent.sommelier.vocabulary import (
    Body,
    Colour,
    Food,
    Level,
    OfferKind,
    Style,
    Sweetness,
    normalize,
)
from agent.sommelier.wine import NON_VEGAN_ALLERGENS, Wine
from db.wines.catalogue_import import STARTER
from db.wines.lists.importing import read_catalogue
from db.wines.lists.packing import read_packing

WINES = read_catalogue(STARTER).wines
SWEET = (Sweetness.SWEET, Sweetness.LUSCIOUS)


def is_for_oysters(wine: Wine) -> bool:
    is_brisk = wine.acidity is Level.HIGH or wine.style is Style.FORTIFIED
    is_light = wine.body is not Body.FULL and (wine.abv or 0) <= 15
    is_dry = wine.sweetness in (Sweetness.BONE_DRY, Sweetness.DRY)
    return wine.colour is Colour.WHITE and is_dry and is_brisk and is_light


def is_for_red_meat(wine: Wine) -> bool:
    return wine.colour is not Colour.WHITE or wine.style is Style.FORTIFIED


def is_soft(wine: Wine) -> bool:
    return wine.tannin in (Level.NONE, Level.LOW)


RULES: list[tuple[str, Callable[[Wine], bool]]] = [
    ("oysters", is_for_oysters),
    ("shellfish fish sushi salad eggs spicy curry soft_cheese", is_soft),
    (
        "oily_fish vegetables poultry charcuterie tapas asian goat_cheese",
        lambda wine: wine.tannin is not Level.HIGH,
    ),
    (
        "shellfish fish oily_fish sushi salad eggs vegetables risotto tapas goat_cheese beef lamb "
        "barbecue burgers game pasta pizza",
        lambda wine: wine.sweetness not in SWEET,
    ),
    ("blue_cheese chocolate", lambda wine: wine.sweetness in SWEET),
    ("beef barbecue burgers", is_for_red_meat),
]


@pytest.mark.parametrize(("foods", "keeps"), RULES, ids=[foods for foods, _ in RULES])
def test_pairings_follow_the_rules(foods: str, keeps: Callable[[Wine], bool]) -> None:
    asked = {Food(food) for food in foods.split()}
    assert [
        wine.id for wine in WINES if asked & {*wine.foods} and not keeps(wine)
    ] == []


def test_wines_are_unique_and_have_all_facts_that_filters_use() -> None:
    known = (
        "colour",
        "sweetness",
        "body",
        "acidity",
        "tannin",
        "abv",
        "price",
        "region",
        "notes",
    )
    gaps = [
        (w, name) for w in WINES for name in known if getattr(w, name) in (None, "")
    ]
    # Labels of alcohol-free wines that nobody read.
    unsourced = {"abv", "sweetness", "body", "acidity", "tannin"}
    assert {wine.style for wine, _ in gaps} <= {Style.ALCOHOL_FREE}
    assert {name for _, name in gaps} <= unsourced
    assert not any(NON_VEGAN_ALLERGENS.intersection(wine.allergens) for wine in WINES)
    assert all(wine.foods and wine.grapes for wine in WINES)
    assert len({normalize(wine.label) for wine in WINES}) == len(WINES)


def test_every_food_has_wines_in_every_price_range() -> None:
    for food, (low, high) in product(Food, ((0, 15), (15, 30))):
        suited = [w for w in WINES if food in w.foods and low <= (w.price or 0) < high]
        assert len(suited) >= 2, food


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Champagne Demi-Sec", None),
        ("Demi 37,5 cl", OfferKind.HALF),
        ("Moët & Chandon Brut Impérial", None),
        ("Impériale", OfferKind.LARGE),
    ],
)
def test_the_name_of_a_wine_is_no_size_of_a_bottle(
    text: str, kind: OfferKind | None
) -> None:
    packing = read_packing(text)
    assert (packing.kind if packing else None) is kind
