"""The words of a wine, and which of them tell it from other wines."""

from collections.abc import Iterable
from functools import cache
from typing import Final

from agent.language import all_common_words, stop_words
from agent.query_reading.tables import load_profiles
from agent.sommelier.vocabulary import list_known_names, list_synonyms
from agent.sommelier.wine import Wine
from agent.text import split_words

GENERIC_WORDS: Final = frozenset(
    "wine wines bottle bottles wein weine flasche flaschen vin vins bouteille vino vinos vini "
    "botella bottiglia wijn wijnen fles vinho vinhos garrafa nv anything something any some etwas "
    "irgendwas irgendwelche noch eure eurem quelque chose algo alguno algun alguna ningun qualcosa "
    "qualche iets nog algum algo still old left stock list one ones cuvee vintage year jahrgang "
    "millesime annata anada jaar colheita".split()
)
"""Words that do not say which wine is meant, in addition to common words."""
MIN_TELLING_LETTERS: Final = 5
"""A name is only looked for by a word of so many letters: shorter ones are in many texts."""


def list_name_words(wine: Wine) -> list[str]:
    """Return the words of the producer and of the name of a wine."""
    return split_words(f"{wine.producer} {wine.name}")


def list_place_words(wine: Wine) -> list[str]:
    """Return the words of the places of a wine, and of the synonyms of its regions."""
    names = [wine.appellation, wine.region, wine.country]
    names += list_synonyms("regions", wine.appellation)
    names += list_synonyms("regions", wine.region)
    return split_words(" ".join(names))


def list_grape_words(wine: Wine) -> list[str]:
    """Return the words of the grapes of a wine, and of their synonyms."""
    names: list[str] = []
    for grape in wine.grapes:
        names += list_synonyms("grapes", grape)
    return split_words(" ".join(names))


def list_identifying_words(text: str) -> frozenset[str]:
    """Return the telling words of a producer or a name, if a text may mention it.

    Return none for a name such as "Chardonnay", which many wines have. Another name has at least
    one long word that is not of a grape or a region.
    """
    words = frozenset(select_telling_words(split_words(text)))
    for word in words - list_known_words():
        if len(word) >= MIN_TELLING_LETTERS:
            return words
    return frozenset()


def select_telling_words(words: Iterable[str]) -> list[str]:
    """Return the words that tell wines apart.

    Common words and single letters, such as the first of "l'Opus", do not.
    """
    ignored = list_ignored_words()
    telling: list[str] = []
    for word in words:
        is_letter = len(word) == 1 and not word.isdecimal()
        if not is_letter and word not in ignored:
            telling.append(word)
    return telling


@cache
def list_known_words() -> frozenset[str]:
    """Return the words of the names of grapes and regions.

    These words are taken as spelt rightly.
    """
    names = [
        *list_known_names("grapes"),
        *list_known_names("regions"),
        *load_profiles(),
    ]
    return frozenset(split_words(" ".join(names)))


@cache
def list_ignored_words() -> frozenset[str]:
    """Return the words that do not tell a wine from others, in all languages."""
    return GENERIC_WORDS | all_common_words() | stop_words()
