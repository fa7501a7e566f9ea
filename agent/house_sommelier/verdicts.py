"""The very answer to what is asked of wines that were shown: "is it vegan?", "which is lightest?".

Only what the catalogue says, and where it is silent, that is the answer. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from agent.house_sommelier.data import aromas, profiles
from agent.house_sommelier.reading import Change
from agent.house_sommelier.results import ListedWine
from agent.house_sommelier.state import State
from agent.house_sommelier.wording import (
    body_in_words,
    both,
    foods_in_words,
    in_words,
    money,
    origin,
    say,
    sweetness_in_words,
)
from agent.sommelier.wine import Body, Currency, Level, Sweetness, in_euros
from agent.text import Language, fold

_ANIMAL: Final = ("egg", "milk", "fish")
_UNKNOWN: Final = {
    "organic": "unknown_organic",
    "abv": "unknown_alcohol",
    "sweetness": "unknown_sweetness",
    "price": "unknown_price",
    "grapes": "unknown_grapes",
    "body": "unknown_body",
    "tannin": "unknown_body",
    "vintage": "is_no_vintage",
    "allergens": "no_allergens",
}
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}$")
_ORGANIC: Final = re.compile(r"\b(?:bio|organic|biodynamic|demeter)")
_SCALES: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "body": ("body", [*Body]),
    "tannin": ("tannin", [*Level]),
    "acidity": ("acidity", [*Level]),
    "sweetness": ("sweetness", [*Sweetness]),
}
_STRONG: Final = 14.0
_WARM: Final = {
    "sparkling": "serve_sparkling",
    "rose": "serve_rose",
    "orange": "serve_orange",
    "sweet": "serve_sweet",
    "fortified": "serve_fortified",
    "alcohol_free": "serve_sparkling",
}
_FLOR: Final = re.compile(r"\b(?:fino|manzanilla|flor)\b")


def verdict(wines: Sequence[ListedWine], state: State, change: Change) -> str:
    """The answer to what is asked of these wines; empty if nothing of that kind is."""
    language = state.language
    if len(wines) > 1 and (ends := _end_of_scale(wines, change, language)):
        return ends
    if len(wines) > 1:
        return ""
    asked = traits(change)
    if change.wishes.dishes and not asked:
        return _suits(wines[0], change, language)
    answers = (_answer(wines[0], each, change, language) for each in asked)
    return " ".join(dict.fromkeys(filter(None, answers)))


def traits(change: Change) -> list[str]:
    """What a message asks of a wine."""
    asked = list(change.said("trait"))
    if change.wishes.order and "price" not in asked:
        asked.append("price")
    if len(asked) > 1 and "price" in asked and not change.wishes.order:
        asked.remove("price")
    scales = (most.partition(":")[0] for most in change.said("most"))
    return list(dict.fromkeys([*asked, *scales]))


def _end_of_scale(wines: Sequence[ListedWine], change: Change, language: Language) -> str:
    """Which of several wines is the lightest, the cheapest, or has the least alcohol."""
    for most in change.said("most"):
        scale, _, end = most.partition(":")
        values = {
            wine.wine_id: value for wine in wines if (value := _value(wine, scale)) is not None
        }
        if not values:
            return say("cannot_tell", language)
        best = (max if end == "high" else min)(values.values())
        chosen = next(wine for wine in wines if values.get(wine.wine_id) == best)
        return say("is_most", language, name=chosen.name, fact=_fact(chosen, scale, language))
    if change.wishes.order:
        prices = {wine.wine_id: price for wine in wines if (price := _euros(wine)) is not None}
        if prices:
            best = (min if change.wishes.order == "cheapest" else max)(prices.values())
            chosen = next(wine for wine in wines if prices.get(wine.wine_id) == best)
            return say("is_most", language, name=chosen.name, fact=_fact(chosen, "price", language))
    return ""


def _value(wine: ListedWine, scale: str) -> float | None:
    """Where a wine stands on a scale; alcohol decides between wines of one body."""
    if scale == "abv":
        return wine.abv
    name, steps = _SCALES.get(scale, ("", ()))
    found = getattr(wine, name, "")
    if found not in steps:
        return None
    alcohol = (wine.abv or 0) / 100 if scale == "body" else 0.0
    return list(map(str, steps)).index(found) + alcohol


def _euros(wine: ListedWine) -> float | None:
    if wine.price is None or wine.currency not in tuple(Currency):
        return None
    return in_euros(wine.price, Currency(wine.currency))


def _fact(wine: ListedWine, scale: str, language: Language) -> str:
    """What makes a wine the lightest or the cheapest, in words."""
    alcohol = "" if wine.abv is None else f"{wine.abv:g} % vol"
    price = "" if wine.price is None else money(wine.price, wine.currency)
    facts = {
        "abv": alcohol,
        "price": price,
        "sweetness": sweetness_in_words(wine.sweetness, language),
        "body": ", ".join(filter(None, (body_in_words(wine.body, language), alcohol))),
        "tannin": _level("tannin", wine.tannin, language),
        "acidity": _level("acidity", wine.acidity, language),
    }
    return facts.get(scale, "")


def _level(scale: str, level: str, language: Language) -> str:
    steps = {
        "tannin": {"none": "soft", "low": "soft", "medium": "some", "high": "firm"},
        "acidity": {"none": "mild", "low": "mild", "medium": "fair", "high": "fresh"},
    }
    step = steps[scale].get(level)
    return say(f"level_{scale}_{step}", language) if step else ""


def _suits(wine: ListedWine, change: Change, language: Language) -> str:
    """Whether the catalogue names a wine for the foods that were asked about."""
    foods = [food for dish in change.wishes.dishes for food in dish.foods]
    suited = [food for food in foods if food in wine.foods]
    named = both(change.wishes.named_dishes or foods_in_words(foods, language), language)
    return say("fits_dish" if suited else "fits_not", language, foods=named)


def _answer(wine: ListedWine, trait: str, change: Change, language: Language) -> str:
    allergens = dict.fromkeys((*change.allergens, *change.said("allergen")))
    if trait == "allergens" and allergens:
        return " ".join(_holds(wine, each, language) for each in allergens)
    if change.elsewhere and trait == "allergens":
        return say("other_allergens", language)
    if trait == "vegan":
        return _vegan(wine, language)
    unknown = say(_UNKNOWN[trait], language) if trait in _UNKNOWN else ""
    return _known(wine, language).get(trait, "") or unknown


def _holds(wine: ListedWine, allergen: str, language: Language) -> str:
    key = "holds" if allergen in wine.allergens else "holds_not"
    return say(key, language, allergens=_allergens([allergen], language))


def _vegan(wine: ListedWine, language: Language) -> str:
    animal = [each for each in _ANIMAL if each in wine.allergens]
    if not animal:
        return say("unknown_vegan", language)
    return say("not_vegan", language, allergens=_allergens(animal, language))


def _allergens(names: Iterable[str], language: Language) -> str:
    return both((in_words("allergen", (name,), language)[0] for name in names), language)


def _known(wine: ListedWine, language: Language) -> Mapping[str, str]:
    """What the catalogue says of each trait; empty where it is silent."""
    year, places = _YEAR.search(wine.name), origin(wine, language)
    price = "" if wine.price is None else money(wine.price, wine.currency)
    so = {
        "sweetness": sweetness_in_words(wine.sweetness, language),
        "body": body_in_words(wine.body, language),
    }
    foods = foods_in_words(wine.foods, language)
    grapes, allergens = both(wine.grapes, language), _allergens(wine.allergens, language)
    return {
        "abv": "" if wine.abv is None else say("is_alcohol", language, abv=f"{wine.abv:g}"),
        "price": say("is_price", language, price=price) if price else "",
        "grapes": say("is_grapes", language, grapes=grapes) if grapes else "",
        "organic": say("is_organic", language) if _ORGANIC.search(fold(wine.notes)) else "",
        "vintage": say("is_vintage", language, year=year[0]) if year else "",
        "origin": say("is_origin", language, places=places) if places else "",
        "stock": say("is_in_stock" if wine.in_stock else "sold_out", language),
        "allergens": say("contains", language, allergens=allergens) if allergens else "",
        "foods": say("goes_with", language, foods=both(foods, language)) if foods else "",
        "temperature": say(_temperature(wine), language),
        "keeps": say(_keeping(wine), language),
        "decant": say(_airing(wine), language),
        "storing": say("store_wine", language),
        "glass": "",
        "tannin": _capital(_level("tannin", wine.tannin, language)),
        "acidity": _capital(_level("acidity", wine.acidity, language)),
        "taste": _scents(wine, language),
        **{name: say("is_so", language, trait=word) if word else "" for name, word in so.items()},
    }


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _scents(wine: ListedWine, language: Language) -> str:
    """What its first grape smells of; the tasting note says the rest."""
    profile = profiles().get(wine.grapes[0]) if wine.grapes else None
    if profile is None or wine.style not in ("red", "white", "rose"):
        return ""
    scents = both((aromas()[note][language] for note in profile.notes), language)
    return say("tastes_of", language, grape=profile.name, scents=scents)


def _temperature(wine: ListedWine) -> str:
    if wine.style in _WARM:
        return _WARM[wine.style]
    is_light = wine.body in ("light", "medium_light")
    if wine.style == "red":
        return "serve_light_red" if is_light else "serve_red"
    return "serve_white" if is_light or wine.acidity == "high" else "serve_full_white"


def _keeping(wine: ListedWine) -> str:
    if wine.style == "fortified":
        is_flor = _FLOR.search(fold(wine.name)) is not None
        return "keeps_fino" if is_flor else "keeps_fortified"
    return "keeps_sparkling" if wine.style == "sparkling" else "keeps_still"


def _airing(wine: ListedWine) -> str:
    is_firm = wine.tannin == "high" or wine.body == "full"
    if wine.style != "red":
        return "air_no"
    return "air_long" if is_firm else "air_short"
