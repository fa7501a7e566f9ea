"""How many bottles: guests, those who do not drink, hours and the occasion. Pure."""

import math
from typing import Final

from agent.house_sommelier.state import State
from agent.house_sommelier.wording import say

GLASSES_A_BOTTLE: Final = 6
"""Glasses of 125 ml in a bottle of 0.75 l."""
_FIRST_HOURS: Final = 2.0
_GLASSES_AT_FIRST: Final = 1.0
_GLASSES_LATER: Final = 0.6
_MOST_GLASSES: Final = 6.0
_AT_DINNER: Final = 3.0
_USUAL_HOURS: Final = {"reception": 1.5, "party": 5.0}
_LEAST_SPARE: Final = 1.25


def bottles_for(state: State) -> str:
    """A number of bottles with what it rests on; a question if nobody said for how many."""
    language = state.language
    if state.guests is None:
        return say("quantity_ask", language)
    sober = state.sober or 0
    drinkers = state.guests - round(sober * state.guests if sober < 1 else sober)
    drinkers = max(1, drinkers)
    glasses = glasses_each(state)
    least = math.ceil(drinkers * glasses / GLASSES_A_BOTTLE)
    most = math.ceil(drinkers * glasses * _LEAST_SPARE / GLASSES_A_BOTTLE)
    answer = say(
        "quantity",
        language,
        bottles=f"{least}–{most}" if most > least else str(least),
        drinkers=str(drinkers),
        glasses=f"{glasses:g}",
        basis=_basis(state),
    )
    advice = "quantity_sober" if sober else "quantity_water"
    return f"{answer} {say(advice, language)}"


def glasses_each(state: State) -> float:
    """How many glasses a guest drinks: one an hour at first, less later; three at dinner."""
    hours = state.hours or _USUAL_HOURS.get(state.occasion)
    if hours is None:
        return _AT_DINNER
    first = min(hours, _FIRST_HOURS) * _GLASSES_AT_FIRST
    later = max(0.0, hours - _FIRST_HOURS) * _GLASSES_LATER
    return round(max(1.25, min(first + later, _MOST_GLASSES)) * 4) / 4


def _basis(state: State) -> str:
    hours = state.hours or _USUAL_HOURS.get(state.occasion)
    if hours is None:
        return say("quantity_dinner", state.language)
    return say("quantity_hours", state.language, hours=f"{hours:g}")
