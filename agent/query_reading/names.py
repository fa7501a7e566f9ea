"""Name what was read in the user's language: by the first phrase of each row of a table."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from agent.i18n import country_of_language
from agent.languages import ENGLISH
from agent.query_reading.language_words import load_language_words
from agent.query_reading.tables import ANY_LANGUAGE, Values, load_dishes, load_rows

LANDSCAPES: Final = (" Valley", " Peninsula")
"""The ends of names of regions, such as "Rhône Valley", that the tables lack."""

Names = Mapping[Values, str]
"""The names of combinations of values. For example, "dry" names two steps of sweetness."""


@cache
def load_display_names() -> Mapping[tuple[str, str], Names]:
    """Return the names of the values of each field in each language."""
    names: dict[tuple[str, str], dict[Values, str]] = {}
    for row in load_rows():
        # "Brut" means sparkling and dry, so it names neither.
        if len(row.meanings) > 1:
            continue
        for field, values in row.meanings.items():
            for language, phrases in row.phrases.items():
                key = (field, language)
                names_of_field = names.setdefault(key, {})
                first_phrase = phrases[0]
                # If several rows mean the same, the first one has the name.
                names_of_field.setdefault(values, first_phrase)
    return names


def get_display_name(
    field: str,
    values: Sequence[str],
    language: str,
) -> str:
    """Return the name of a combination of values in a language, or "" if it has no name."""
    key = tuple(map(str, values))
    for code in (language, ANY_LANGUAGE, ENGLISH):
        names = _get_names(field, code)
        name = names.get(key)
        if name:
            return name_in_country(name, language)
    return ""


def _get_names(field: str, language: str) -> Names:
    """Return the names of the values of a field in a language, which may be none."""
    names = load_display_names()
    return names.get((field, language), {})


def name_in_country(name: str, language: str) -> str:
    """Return the name of something in the user's country: "curry" for "caril" in Brazil."""
    words = load_language_words().get(language)
    if words is None:
        return name
    country = country_of_language(language)
    country_names = words.country_names.get(country, {})
    return country_names.get(name, name)


def get_food_name(food: str, language: str) -> str:
    """Return the name of a food of the catalogue in a language, or else in English."""
    row = _find_row_of(food)
    name = get_display_name("dish", row, language)
    return name or food.replace("_", " ")


@cache
def _find_row_of(food: str) -> Values:
    """Return the index of the first dish that is only this food, or () if there is none.

    The index is a text in a tuple, as in the meanings of phrases: ("12",).
    """
    for index, dish in enumerate(load_dishes()):
        if dish.foods == (food,):
            return (str(index),)
    return ()


def get_grape_name(grape: str, language: str) -> str:
    """Return the name of a grape in a language, as it is written within a sentence.

    Most grapes have the same name everywhere. Some languages write them small: "pinot noir".
    """
    names = _get_names("grapes", language)
    usual_name = names.get((grape,), grape)
    name = name_in_country(usual_name, language)
    words = load_language_words().get(language)
    if words is not None and words.writes_grapes_small:
        return _write_small(name)
    return name


def _write_small(name: str) -> str:
    """Return the name of a grape in small letters, but for a place: "melon de Bourgogne"."""
    written: list[str] = []
    is_in_place = False
    for word in name.split():
        if word[0].islower():
            # "de" or "d'Avola" begins the name of a place.
            is_in_place = True
        if is_in_place:
            written.append(word)
        else:
            written.append(word.lower())
    return " ".join(written)


def get_country_name(country: str, language: str) -> str:
    """Return the name of a country in the tables of a language, or "" if it has none there."""
    name = _get_names("countries", language).get((country,), "")
    return name_in_country(name, language)


def get_region_name(region: str, language: str) -> str:
    """Return the name of a region in a language. Many regions have the same name everywhere.

    In English, a region has the name of the catalogue.
    """
    if language == ENGLISH:
        return region
    names = _get_names("regions", language)
    short_name = region
    for landscape in LANDSCAPES:
        short_name = short_name.removesuffix(landscape)
    for known_region in (region, short_name):
        name = names.get((known_region,))
        if name:
            return name_in_country(name, language)
    return region
