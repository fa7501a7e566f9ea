"""How many bottles a party needs, and what bottles cost together. Pure."""

import math
from collections.abc import Sequence
from typing import Final

from agent.house_sommelier.reading import Change
from agent.house_sommelier.results import ListedWine
from agent.house_sommelier.state import State
from agent.house_sommelier.wording import both, say, style_in_words
from agent.sommelier.wine import Currency, in_euros
from agent.text import Language, words

GLASSES_A_BOTTLE: Final = 6
"""Glasses of 125 ml in a bottle of 0.75 l."""
_FIRST_HOURS: Final = 2.0
_GLASSES_AT_FIRST: Final = 1.0
_GLASSES_LATER: Final = 0.6
_MOST_GLASSES: Final = 6.0
_AT_DINNER: Final = 3.0
_USUAL_HOURS: Final = {"reception": 1.5, "party": 5.0}
_LEAST_SPARE: Final = 1.25


def estimate(state: State) -> tuple[int, int, int]:
    """Return who drinks, and how few and how many bottles they need; zeros if nobody is known."""
    if state.guests is None:
        return 0, 0, 0
    sober = state.sober or 0
    drinkers = max(1, state.guests - round(sober * state.guests if sober < 1 else sober))
    least = drinkers * glasses_each(state) / GLASSES_A_BOTTLE
    return drinkers, math.ceil(least), math.ceil(least * _LEAST_SPARE)


def bottles_for(state: State, change: Change) -> str:
    """Tell how many bottles and what it rests on; ask if nobody said for how many."""
    language = state.language
    drinkers, least, most = estimate(state)
    if sizes := change.said("litres"):
        poured = str(round(float(sizes[0]) * 8))
        return say("quantity_size", language, litres=sizes[0], glasses=poured)
    if not drinkers:
        return say("quantity_ask", language)
    if change.has("trait", "total") or (change.numbers.has_price and state.act_before == state.act):
        return _at_price(state, change)
    answer = say(
        "quantity",
        language,
        bottles=_range(least, most),
        drinkers=str(drinkers),
        glasses=f"{glasses_each(state):g}",
        basis=_basis(state),
    )
    advice = "quantity_sober" if state.sober else "quantity_water"
    is_each = change.numbers.has_price and change.has("each")
    summed = _at_price(state, change) if is_each else ""
    told = (sympathy(change, language), answer, _split(most, state), summed, say(advice, language))
    return " ".join(filter(None, told))


def cost_of_party(state: State, change: Change) -> str:
    """Tell what the bottles of a party come to at the price of a message; empty without one."""
    is_party = estimate(state)[0] > 0 and change.numbers.has_price
    return _at_price(state, change) if is_party else ""


def _at_price(state: State, change: Change) -> str:
    """Multiply the bottles of a party by what one may cost, or ask for that."""
    _, least, most = estimate(state)
    numbers = change.numbers
    told = next(iter(state.prices.values()), None) if not numbers.has_price else None
    amount = numbers.max_price or numbers.min_price or (told[0] if told else None)
    if amount is None:
        return say("sum_ask", state.language, bottles=_range(least, most))
    code = told[1] if told else numbers.currency or Currency.EUR
    fact = _range(_plain(least * amount), _plain(most * amount))
    return say(
        "sum_bottles",
        state.language,
        bottles=_range(least, most),
        price=f"{_plain(amount)} ({code})",
        fact=f"{fact} ({code})",
    )


def total_of(wines: Sequence[ListedWine], state: State, change: Change) -> str:
    """What one bottle of each costs together, or a number of bottles; in euros if they differ."""
    language = state.language
    priced = [(wine.price, Currency(wine.currency)) for wine in wines if wine.price is not None]
    if len(priced) < len(wines):
        return say("unknown_price", language)
    if state.guests is not None and change.numbers.has_price:
        return _at_price(state, change)
    number = change.numbers.bottles or _alone(words(change.text))
    least, most = (number, number) if number else _asked_before(state)
    if least and (number != len(wines) or len(wines) == 1):
        told = (
            say(
                "total_of",
                language,
                number=_range(least, most),
                name=wine.name,
                fact=f"{_range(_plain(least * price), _plain(most * price))} ({code})",
            )
            for wine, (price, code) in zip(wines, priced, strict=True)
        )
        return "\n".join(told)
    code = priced[0][1] if len({unit for _, unit in priced}) == 1 else Currency.EUR
    amount = sum(each if unit == code else in_euros(each, unit) for each, unit in priced)
    # An amount with its sign would have to stand in what a tool returned.
    return say("total", language, fact=f"{_plain(amount)} ({code})", count=str(len(wines)))


def _asked_before(state: State) -> tuple[int, int]:
    """How few and how many bottles the message before was told; zeros if it did not ask."""
    return estimate(state)[1:] if state.act_before == "quantity" else (0, 0)


def _alone(said: Sequence[str]) -> int:
    """The number of a message that names just one; 0 for any other."""
    told = [int(word) for word in said if word.isdecimal() and len(word) < 4]
    return told[0] if len(told) == 1 else 0


def _plain(amount: float) -> str:
    return f"{amount:.2f}".removesuffix(".00")


def _range(least: object, most: object) -> str:
    return str(least) if least == most else f"{least}–{most}"


def sympathy(change: Change, language: Language) -> str:
    """A word about what a message tells of: anger, a loss, or a joy; empty without any."""
    is_angry = change.kind in ("complaint", "rude")
    said = (("sorry", is_angry), ("condolence", change.has("mourning")))
    keys = (*said, ("congratulations", change.has("festive")))
    return next((say(key, language) for key, holds in keys if holds), "")


def _split(bottles: int, state: State) -> str:
    """The bottles by the kinds that were named; of sparkling wine half as many as of another."""
    weights = {kind: 1 if kind == "sparkling" else 2 for kind in state.kinds}
    if len(weights) < 2:
        return ""
    shares = {
        kind: max(1, round(bottles * weight / sum(weights.values())))
        for kind, weight in weights.items()
    }
    named = (f"{style_in_words(kind, state.language)} {n}" for kind, n in shares.items())
    return say("quantity_split", state.language, split=both(named, state.language))


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
