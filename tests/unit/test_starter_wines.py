"""The starter catalogue: pairings that a sommelier would sign, and all that filters look at."""

from collections.abc import Callable

import pytest

from agent.sommelier.wine import Body, Colour, Food, Level, Style, Sweetness, Wine, folded
from db.wines.importing import STARTER
from db.wines.lists import read_catalogue

WINES = read_catalogue(STARTER).wines

SOFT = (Level.NONE, Level.LOW)
NOT_HIGH = (*SOFT, Level.MEDIUM)
SWEET = (Sweetness.SWEET, Sweetness.LUSCIOUS)
CRISP = (Sweetness.BONE_DRY, Sweetness.DRY)
DEMI_SEC_STYLES = (Style.SPARKLING, Style.ALCOHOL_FREE)

Rule = Callable[[Wine], bool]


def tannin(*levels: Level) -> Rule:
    return lambda wine: wine.tannin in levels


def as_sweet_as_dessert(wine: Wine) -> bool:
    """A demi-sec with bubbles is sweet enough for fruit; a still wine is not."""
    demi_sec = wine.sweetness is Sweetness.MEDIUM and wine.style in DEMI_SEC_STYLES
    return wine.sweetness in SWEET or demi_sec


def for_oysters(wine: Wine) -> bool:
    brisk = wine.acidity is Level.HIGH or wine.style is Style.FORTIFIED
    light = wine.body is not Body.FULL and (wine.abv or 0) <= 15
    return wine.colour is Colour.WHITE and wine.sweetness in CRISP and brisk and light


def for_heat(wine: Wine) -> bool:
    fortified = wine.style is Style.FORTIFIED
    return wine.tannin in SOFT and (wine.abv or 0) <= 14 and not fortified


def for_oily_fish(wine: Wine) -> bool:
    return wine.tannin in SOFT or (wine.tannin is Level.MEDIUM and wine.body is not Body.FULL)


def for_red_meat(wine: Wine) -> bool:
    strong = wine.colour is not Colour.WHITE or wine.style is Style.FORTIFIED
    return strong and wine.sweetness not in SWEET


def sweet(wine: Wine) -> bool:
    return wine.sweetness in SWEET


def not_sweet(wine: Wine) -> bool:
    return wine.sweetness not in SWEET


RULES: dict[Food, tuple[Rule, ...]] = {
    Food.OYSTERS: (for_oysters,),
    Food.SHELLFISH: (tannin(*SOFT), not_sweet),
    Food.FISH: (tannin(*SOFT), not_sweet),
    Food.OILY_FISH: (for_oily_fish, not_sweet),
    Food.SUSHI: (tannin(*SOFT), not_sweet),
    Food.SALAD: (tannin(*SOFT), not_sweet),
    Food.EGGS: (tannin(*SOFT), not_sweet),
    Food.VEGETABLES: (tannin(*NOT_HIGH), not_sweet),
    Food.RISOTTO: (not_sweet,),
    Food.POULTRY: (tannin(*NOT_HIGH),),
    Food.CHARCUTERIE: (tannin(*NOT_HIGH),),
    Food.TAPAS: (tannin(*NOT_HIGH), not_sweet),
    Food.SPICY: (for_heat,),
    Food.CURRY: (for_heat,),
    Food.ASIAN: (tannin(*NOT_HIGH),),
    Food.SOFT_CHEESE: (tannin(*SOFT),),
    Food.GOAT_CHEESE: (tannin(*NOT_HIGH), not_sweet),
    Food.BLUE_CHEESE: (sweet,),
    Food.FRUIT_DESSERT: (as_sweet_as_dessert, tannin(*SOFT)),
    Food.CREAMY_DESSERT: (as_sweet_as_dessert, tannin(*SOFT)),
    Food.CHOCOLATE: (sweet,),
    Food.BEEF: (for_red_meat,),
    Food.LAMB: (not_sweet,),
    Food.BARBECUE: (for_red_meat,),
    Food.BURGERS: (for_red_meat,),
    Food.GAME: (not_sweet,),
    Food.PASTA: (not_sweet,),
    Food.PIZZA: (not_sweet,),
}


@pytest.mark.parametrize("food", RULES, ids=str)
def test_pairings_keep_to_the_rules(food: Food) -> None:
    broken = [w.id for w in WINES if food in w.foods and not all(keeps(w) for keeps in RULES[food])]
    assert broken == []


def test_everything_that_filters_look_at_is_known() -> None:
    known = ("colour", "sweetness", "body", "acidity", "tannin", "abv", "price", "region", "notes")
    gaps = [(w.id, name) for w in WINES for name in known if getattr(w, name) in (None, "")]
    assert gaps == []
    assert [w.id for w in WINES if not w.foods or not w.grapes] == []


def test_no_wine_is_there_twice() -> None:
    labels = [folded(wine.label) for wine in WINES]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("food", Food, ids=str)
def test_every_food_has_wines_for_every_purse(food: Food) -> None:
    suited = [wine.price or 0 for wine in WINES if food in wine.foods]
    for low, high in ((0, 15), (15, 30)):
        assert len([price for price in suited if low <= price < high]) >= 2
