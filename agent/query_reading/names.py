"""The names, in the user's language, of what was read: the first phrase of each row of a table."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from agent.i18n import region_of_language
from agent.query_reading.language_words import load_language_words
from agent.query_reading.tables import ANY_LANGUAGE, load_dishes, load_rows

ENGLISH: Final = "en"
VALLEY: Final = " Valley"
"""The end of names of regions, such as "Rhône Valley", that the tables lack."""

Names = Mapping[tuple[str, ...], str]
"""The names of combinations of values; "dry" is that of two steps of sweetness."""


@cache
def load_display_names() -> Mapping[tuple[str, str], Names]:
    """Return the names of the values of each field in each language."""
    names: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
    for row in load_rows():
        if (
            len(row.meanings) != 1
        ):  # "brut" means sparkling and dry, so it names neither
            continue
        ((field, values),) = row.meanings.items()
        for language, phrases in row.phrases.items():
            names.setdefault((field, language), {}).setdefault(values, phrases[0])
    return names


def get_display_name(field: str, values: Sequence[str], language: str) -> str:
    """Return the name of this combination of values in a language, or an empty string."""
    key = tuple(map(str, values))
    for code in (language, ANY_LANGUAGE, ENGLISH):
        if name := load_display_names().get((field, code), {}).get(key):
            return name_in_country(name, language)
    return ""


def name_in_country(name: str, language: str) -> str:
    """Return what the country of the user's app calls something: "caril" is "curry" in Brazil."""
    words = load_language_words().get(language)
    if words is None:
        return name
    names = words.country_names.get(region_of_language(language), {})
    return names.get(name, name)


def get_food_name(food: str, language: str) -> str:
    """Return the name of a food of the catalogue in a language, or else in English."""
    name = get_display_name("dish", _list_dishes_of(food), language)
    return name or food.replace("_", " ")


@cache
def _list_dishes_of(food: str) -> tuple[str, ...]:
    """Return the first dish that is just this food, as phrases refer to it; empty without one."""
    for index, dish in enumerate(load_dishes()):
        if dish.foods == (food,):
            return (str(index),)
    return ()


def get_grape_name(grape: str, language: str) -> str:
    """Return the name of a grape in a language; most have one name everywhere."""
    return load_display_names().get(("grapes", language), {}).get((grape,), grape)


def get_region_name(region: str, language: str) -> str:
    """Return the name of a region in a language; many have one name everywhere.

    English has the names of the catalogue.
    """
    if language == ENGLISH:
        return region
    names = load_display_names().get(("regions", language), {})
    name = names.get((region,)) or names.get((region.removesuffix(VALLEY),))
    if name is None:
        return region
    return name_in_country(name, language)
