"""Recognize a message that only says what the user dislikes: "I can't stand Chardonnay"."""

from agent.fallback.merging import EXCLUSION_PREFIX, Wish, excludes_taste
from agent.query_reading.request import Request
from agent.sommelier.filters import matches


def is_heeded_dislike(wish: Wish) -> bool:
    """Return whether the last message only states a dislike, and no wine shown last has it.

    Then there is nothing to search for. If a wine shown has it, others are wanted.
    """
    request = wish.own_request
    if not request.states_dislike or not request.filters or _asks_for_more(request):
        return False
    for name, values in request.filters.items():
        if not excludes_taste(name):
            return False
        taste = {name.removeprefix(EXCLUSION_PREFIX): values}
        if any(matches(wine, taste) for wine in wish.last_shown):
            return False
    return True


def _asks_for_more(request: Request) -> bool:
    """Return whether a message asks for a wine, beside saying what the user dislikes."""
    if request.asks_for_wine or request.wants_others or request.comparisons:
        return True
    return bool(request.dishes or request.is_gift or request.unknown_words)
