"""A wine in words, from what the catalogue says about it. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from agent.house_sommelier.criteria import (
    body_in_words,
    both,
    country_in_words,
    in_words,
    money,
    style_in_english,
    style_in_words,
    sweetness_in_words,
)
from agent.house_sommelier.lexicon import Language
from agent.house_sommelier.phrases import say
from agent.house_sommelier.results import ListedWine
from agent.house_sommelier.speech.keys import PhraseKey
from agent.sommelier.wine import Style, WineQuery

_MOST_FOODS: Final = 3


def describe(wine: ListedWine, query: WineQuery, language: Language) -> str:
    """Why a wine suits: the foods asked for, its grapes and body, and in English its notes."""
    asked = [food for food in query.foods if food in wine.foods]
    foods = both(in_words("foods", asked or wine.foods[:_MOST_FOODS], language), language)
    fit = say("suits", language, foods=foods) if foods else ""
    portrait = _portrait(wine) if language == "en" else _profile(wine, language)
    order = (fit, portrait) if asked else (portrait, fit)
    clauses = "; ".join(filter(None, order))
    notes = wine.notes.strip() if language == "en" else ""
    return " ".join(map(sentence, filter(None, (clauses, notes)))) or wine.name


def in_detail(wine: ListedWine, query: WineQuery, language: Language) -> str:
    """Everything known about a wine."""
    facts = [
        origin(wine, language),
        "" if wine.abv is None else f"{wine.abv:g} % vol",
        "" if wine.price is None else money(wine.price, wine.currency),
    ]
    allergens = in_words("allergen", wine.allergens, language)
    parts = [
        describe(wine, query, language),
        sentence(", ".join(filter(None, facts))),
        say("contains", language, allergens=both(allergens, language)) if allergens else "",
        "" if wine.in_stock else say("sold_out", language),
        _notes(wine, language),
    ]
    return " ".join(filter(None, parts))


def origin(wine: ListedWine, language: Language) -> str:
    """Where a wine comes from, narrowest first, the country as `language` calls it."""
    places = [place for place in (wine.appellation, wine.region) if place != wine.country]
    country = country_in_words(wine.country, language)
    return ", ".join(dict.fromkeys(filter(None, (*places, country))))


def _portrait(wine: ListedWine) -> str:
    """`a full-bodied red from Syrah with firm tannins`."""
    sweetness = "" if wine.sweetness == "dry" else sweetness_in_words(wine.sweetness, "en")
    words = [body_in_words(wine.body, "en"), sweetness, style_in_english(wine.style)]
    kind = " ".join(dict.fromkeys(filter(None, words)))
    grapes = f" from {both(wine.grapes, 'en')}" if wine.grapes else ""
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{article} {kind}{grapes}{_structure(wine)}"


def _structure(wine: ListedWine) -> str:
    found = [trait.removeprefix("with ") for trait in _traits(wine, "en")]
    return f" with {both(found, 'en')}" if found else ""


def _notes(wine: ListedWine, language: Language) -> str:
    """The tasting notes, which are English, to those who do not read them in the description."""
    notes = wine.notes.strip()
    return say("tasting_notes", language, notes=notes) if notes and language != "en" else ""


def _profile(wine: ListedWine, language: Language) -> str:
    """`Rotwein, kräftig, aus Syrah, mit festen Tanninen`."""
    grapes = both(wine.grapes, language)
    is_told = wine.sweetness not in ("dry", "bone_dry") and wine.style != Style.SWEET
    parts = (
        style_in_words(wine.style, language),
        body_in_words(wine.body, language),
        sweetness_in_words(wine.sweetness, language) if is_told else "",
        say("from_grapes", language, grapes=grapes) if grapes else "",
        *_traits(wine, language),
    )
    return ", ".join(filter(None, parts))


def _traits(wine: ListedWine, language: Language) -> Iterable[str]:
    if wine.acidity == "high":
        yield say("acidity_high", language)
    if wine.tannin == "high":
        yield say("tannin_high", language)
    elif wine.tannin == "low":
        yield say("tannin_low", language)


def suits_dishes(wine: ListedWine, foods: Sequence[str], language: Language) -> str:
    """Whether the catalogue names a wine for the foods that were asked about."""
    if not foods:
        return ""
    suited = [food for food in foods if food in wine.foods]
    key: PhraseKey = "fits_dish" if suited else "fits_not"
    return say(key, language, foods=both(in_words("foods", suited or foods, language), language))


def sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    return ended[0].upper() + ended[1:] if text else ""
