"""Find which of the wines shown last a message is about.

The message may say the place of a wine ("show me the second") or its name ("more about the
Barolo").
"""

from collections.abc import Sequence

from agent.language import all_common_words
from agent.query_reading.prices import PRICE_FIELDS
from agent.query_reading.request import Request
from agent.sommelier.wine import Wine
from agent.text import split_words


def pick_shown_wine(request: Request, shown: Sequence[Wine]) -> Wine | None:
    """Return the one of the shown wines that a message is about, or None if it is about others.

    With a dish, the message is only about a wine that it names by its place: "would the second work
    with duck?" But "like the second, for duck" asks for others.
    """
    if request.wants_others:
        return None
    if request.dishes and (request.comparisons or not request.position):
        return None
    names_price = not PRICE_FIELDS.isdisjoint(request.filters)
    if names_price:
        return None
    if request.position and _asks_about_facts(request):
        return get_wine_at(shown, request.position)
    if request.asks_to_show or request.asks_how_to_serve:
        return _find_named(request.text, shown)
    return None


def _asks_about_facts(request: Request) -> bool:
    """Return whether a message is about a wine as it is, and asks for no other.

    "Is the second one vegan?" is. Read as a wish, its filter would be the allergens to avoid.
    """
    if not request.filters:
        return True
    is_asked = "?" in request.text
    return is_asked and request.filters.keys() == {"without_allergens"}


def get_wine_at(shown: Sequence[Wine], position: int) -> Wine | None:
    """Return the wine at a position, or None if there is none.

    Position 1 is the first wine, -1 is the last, and 0 is none.
    """
    if position == 0 or abs(position) > len(shown):
        return None
    if position > 0:
        position -= 1
    return shown[position]


def _find_named(text: str, shown: Sequence[Wine]) -> Wine | None:
    """Return the wine whose label has the most words of a text, or None if several have as many."""
    words = {*split_words(text)} - all_common_words()
    most = 0
    named: list[Wine] = []
    for wine in shown:
        label_words = split_words(wine.label)
        shared_words = words.intersection(label_words)
        count = len(shared_words)
        if count > most:
            most = count
            named = []
        if count and count == most:
            named.append(wine)
    if len(named) != 1:
        return None
    return named[0]
