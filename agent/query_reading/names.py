"""The names, in the user's language, of what was read: the first phrase of each row of a table."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from agent.query_reading.tables import ANY_LANGUAGE, load_dishes, load_rows

ENGLISH: Final = "en"

Names = Mapping[tuple[str, ...], str]
"""The names of combinations of values; "dry" is that of two steps of sweetness."""


@cache
def load_display_names() -> Mapping[tuple[str, str], Names]:
    """Return the names of the values of each field in each language."""
    names: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
    for row in load_rows():
        if len(row.meanings) != 1:  # "brut" means sparkling and dry, so it names neither
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
            return name
    return ""


@cache
def get_food_name(food: str, language: str) -> str:
    """Return the name of a food of the catalogue in a language, or else in English."""
    english = food.replace("_", " ")
    if language == ENGLISH:
        return english
    for index, dish in enumerate(load_dishes()):
        if dish.foods == (food,) and (name := get_display_name("dish", (str(index),), language)):
            return name
    return english
