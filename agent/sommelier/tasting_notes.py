"""Tell what a wine tastes of, in the language of the user."""

from typing import Final

from agent.i18n import current_language, translate
from agent.query_reading.aromas import find_aromas, get_aroma_name
from agent.sommelier.wine import Wine

MAX_AROMAS: Final = 4
"""The most aromas that are named of a wine whose notes are in another language."""


def describe_taste(wine: Wine) -> str:
    """Return the notes of a wine, or the names of aromas in notes of another language.

    Return "" if there are no notes, or if they name no aroma.
    """
    language = current_language()
    if wine.notes_language == language:
        return wine.notes
    names: list[str] = []
    for aroma in find_aromas(wine.notes, wine.notes_language):
        name = get_aroma_name(aroma, language)
        if name:
            names.append(name)
    if not names:
        return ""
    listed_names = ", ".join(names[:MAX_AROMAS])
    return translate("notes_aromas", aromas=listed_names)
