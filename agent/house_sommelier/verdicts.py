"""The very answer to what is asked of a wine: "is it vegan?", "how much alcohol?". Pure.

Only what the catalogue says. Where it is silent, that is the answer.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agent.house_sommelier.asking import Trait
from agent.house_sommelier.criteria import (
    body_in_words,
    both,
    in_words,
    money,
    sweetness_in_words,
)
from agent.house_sommelier.lexicon import Language, fold
from agent.house_sommelier.phrases import say
from agent.house_sommelier.portrait import origin
from agent.house_sommelier.results import ListedWine
from agent.house_sommelier.speech.keys import PhraseKey

_ANIMAL: Final = ("egg", "milk", "fish")
_UNKNOWN: Final[dict[Trait, PhraseKey]] = {
    "organic": "unknown_organic",
    "abv": "unknown_alcohol",
    "sweetness": "unknown_sweetness",
    "price": "unknown_price",
    "grapes": "unknown_grapes",
    "bodies": "unknown_body",
    "vintage": "is_no_vintage",
    "allergens": "no_allergens",
}
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}$")
_ORGANIC: Final = re.compile(r"\b(?:bio|organic|biodynamic|demeter)")


def verdict(wine: ListedWine, traits: Iterable[Trait], language: Language) -> str:
    """The answers to what is asked of a wine, in a row; empty if nothing of that kind is."""
    return " ".join(dict.fromkeys(filter(None, (_answer(wine, each, language) for each in traits))))


def _answer(wine: ListedWine, trait: Trait, language: Language) -> str:
    if trait in ("egg", "milk", "fish", "sulphites"):
        key: PhraseKey = "holds" if trait in wine.allergens else "holds_not"
        return say(key, language, allergens=_allergens([trait], language))
    if trait == "elsewhere":
        return say("other_allergens", language)
    if trait == "vegan":
        return _vegan(wine, language)
    unknown = say(_UNKNOWN[trait], language) if trait in _UNKNOWN else ""
    return _known(wine, language).get(trait, "") or unknown


def _vegan(wine: ListedWine, language: Language) -> str:
    animal = [each for each in _ANIMAL if each in wine.allergens]
    if not animal:
        return say("unknown_vegan", language)
    return say("not_vegan", language, allergens=_allergens(animal, language))


def _allergens(names: Iterable[str], language: Language) -> str:
    return both((in_words("allergen", (name,), language)[0] for name in names), language)


def _known(wine: ListedWine, language: Language) -> Mapping[Trait, str]:
    """What the catalogue says of each trait; empty where it is silent."""
    year, places = _YEAR.search(wine.name), origin(wine, language)
    taste = sweetness_in_words(wine.sweetness, language)
    body = body_in_words(wine.body, language)
    price = "" if wine.price is None else money(wine.price, wine.currency)
    grapes, allergens = both(wine.grapes, language), _allergens(wine.allergens, language)
    return {
        "abv": "" if wine.abv is None else say("is_alcohol", language, abv=f"{wine.abv:g}"),
        "price": say("is_price", language, price=price) if price else "",
        "grapes": say("is_grapes", language, grapes=grapes) if grapes else "",
        "organic": say("is_organic", language) if _ORGANIC.search(fold(wine.notes)) else "",
        "vintage": say("is_vintage", language, year=year[0]) if year else "",
        "origin": say("is_origin", language, places=places) if places else "",
        "sweetness": say("is_so", language, trait=taste) if taste else "",
        "bodies": say("is_so", language, trait=body) if body else "",
        "stock": say("is_in_stock" if wine.in_stock else "sold_out", language),
        "allergens": say("contains", language, allergens=allergens) if allergens else "",
    }
