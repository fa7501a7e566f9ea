"""Plans: what wine for each part of a wish, how many bottles, what they cost together. Pure.

A plan has slots, each with wishes of its own beside those of all, and may have a number of bottles
and a budget in all; a plain wish is a plan of one slot. The budget is shared out evenly: what every
bottle stays below, all stay below together.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from agent.house_sommelier.reading import MOST_SHOWN, Change, Slot, Wishes
from agent.house_sommelier.state import State
from agent.house_sommelier.wines import ListedWine
from agent.house_sommelier.wording import both, criteria, joined, say, slot_in_words
from agent.sommelier.wine import Currency, in_euros, money
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
_VARIETIES: Final = 3
"""How many wines several bottles of one kind are, if nobody says."""
SPECIAL_EUR: Final = (20, 45)
MODERATE_EUR: Final = 26
"""What most would pay for a bottle, if they do not say; for many guests half of it."""
_MANY: Final = 15
_TELLING: Final = frozenset({"grapes", "countries", "regions"})
_LITTLE_POURED: Final = frozenset({"sparkling", "sweet", "fortified"})


class Line(NamedTuple):
    """A wine of a plan, how many bottles of it, and for which of its slots."""

    wine: ListedWine
    bottles: int
    slot: int


def slot_states(state: State) -> tuple[State, ...]:
    """The state as each slot of its plan sees it: its own wishes over those of all."""
    wishes, slots = state.wishes, [slot.wishes for slot in state.slots]
    own = {name for each in slots for name in each.said}
    told = {name: {value for each in slots for value in getattr(each, name)} for name in own}
    left: dict[str, Any] = {
        name: tuple(value for value in getattr(wishes, name) if value not in told[name])
        for name in own
    }
    named = tuple(each for each in wishes.named_dishes if _is_for_all(each, state.slots))
    shared = replace(wishes, **left, named_dishes=named)
    return tuple(_alone_in(state, shared, each) for each in slots) or (state,)


def _alone_in(state: State, shared: Wishes, own: Wishes) -> State:
    """The state of one slot; the place or grape that tells it from the others must be."""
    insisted = state.insisted | (own.said & _TELLING)
    return replace(state, slots=(), count=None, wishes=over(shared, own), insisted=insisted)


def _is_for_all(dish: str, slots: Sequence[Slot]) -> bool:
    return not any(dish in slot.wishes.named_dishes for slot in slots)


def over(shared: Wishes, own: Wishes) -> Wishes:
    """The wishes of all with those of a slot in their place; what sparkles is dry and pale."""
    told: dict[str, Any] = {name: getattr(own, name) for name in own.said}
    if own.styles == ("sparkling",) and not (shared.sweetness or own.sweetness):
        told |= {"sweetness": ("bone_dry", "dry"), "colours": own.colours or ("white", "rose")}
    dishes = own if own.dishes else shared
    return replace(shared, **told, named_dishes=dishes.named_dishes)


def bottles_of(state: State) -> tuple[int, ...]:
    """How many bottles each slot is for; 0 in a plain wish whose number nobody knows."""
    slots = state.slots or (Slot(),)
    if estimate(state)[1] > 2 * len(slots) and all(each.bottles <= 1 for each in slots):
        # "A white and a red" for twelve are no two bottles.
        slots = tuple(each if each.bottles < 1 else replace(each, bottles=0) for each in slots)
    by_guests = estimate(state)[1] if len(slots) > 1 or state.budget else 0
    in_all = state.bottles or by_guests or (len(slots) if len(slots) > 1 else 0)
    told = [each.bottles * in_all if each.bottles < 1 else each.bottles for each in slots]
    left = max(0.0, in_all - sum(told))
    weights = [0.0 if each else _weight(slot) for each, slot in zip(told, slots, strict=True)]
    if any(weights):
        told = [
            each or left * weight / sum(weights) for each, weight in zip(told, weights, strict=True)
        ]
    elif state.bottles:
        told = [each * in_all / sum(told) for each in told]
    return _whole(told) if in_all or any(told) else (0,)


def _whole(shares: Sequence[float]) -> tuple[int, ...]:
    """Shares of bottles as whole bottles, at least one each, the rest where most is missing."""
    found = [max(1, int(each)) for each in shares]
    while sum(found) < round(sum(shares)):
        missing = [share - each for share, each in zip(shares, found, strict=True)]
        found[missing.index(max(missing))] += 1
    return tuple(found)


def _weight(slot: Slot) -> float:
    return 1 if _LITTLE_POURED & {*slot.wishes.styles} else 2


def is_composed(state: State) -> bool:
    """Whether bottles are put together, not wines shown to choose from."""
    return sum(bottles_of(state)) > 1 and not state.care


def capped(state: State) -> State:
    """The state with what one bottle may cost, if a price was told for all."""
    if state.budget is None:
        return state
    bottles = max(1, sum(bottles_of(state)))
    least = state.wishes.min_price if bottles == 1 else None
    share = round(state.budget / bottles, 2)
    return replace(state, wishes=replace(state.wishes, min_price=least, max_price=share))


def slot_at(state: State, wine_id: str) -> int:
    """The slot that a wine of the choice fills."""
    left = list(bottles_of(state))
    at = 0
    for each in state.choice:
        while at < len(left) - 1 and left[at] <= 0:
            at += 1
        if each == wine_id:
            break
        left[at] -= state.counts.get(each, 1)
    return at


def fill(state: State, found: Sequence[Sequence[ListedWine]]) -> list[Line]:
    """The wines of a plan from what was found for each slot, best first.

    Where they cost more than they may, the cheapest of each.
    """
    lines = _filled(state, found)
    cost = cost_of(lines)
    if cost is None or state.budget is None or cost[0] <= state.budget:
        return lines
    priced = [[wine for wine in each if wine.price is not None] for each in found]
    return _filled(state, [sorted(each, key=lambda wine: wine.price or 0) for each in priced])


def _filled(state: State, found: Sequence[Sequence[ListedWine]]) -> list[Line]:
    lines: list[Line] = []
    bottles = bottles_of(state)
    for slot, (wines, amount, kinds) in enumerate(
        zip(found, bottles, _varieties(state, bottles), strict=True)
    ):
        taken = {line.wine.wine_id for line in lines}
        left = {wine.wine_id: wine for wine in wines if wine.wine_id not in taken}
        chosen = list(left.values())[:kinds]
        for at, wine in enumerate(chosen):
            lines.append(Line(wine, amount // len(chosen) + (at < amount % len(chosen)), slot))
    return lines


def _varieties(state: State, bottles: Sequence[int]) -> list[int]:
    """How many wines each slot is filled with: most where most bottles are, six in all."""
    kinds = [1] * len(bottles)
    most = MOST_SHOWN if len(bottles) > 1 else max(state.count or 0, _VARIETIES)
    is_for_guests = state.bottles is None and not any(each.bottles for each in state.slots)
    while sum(kinds) < most and not is_for_guests:
        open_ = [at for at, amount in enumerate(bottles) if kinds[at] < amount]
        if not open_:
            break
        kinds[max(open_, key=lambda at: bottles[at] / kinds[at])] += 1
    return kinds


def moderate_first(wines: Sequence[ListedWine], state: State) -> list[ListedWine]:
    """The wines, if nobody told a price, with the dear ones last, or first for a special day."""
    wishes = state.wishes
    if state.is_special and not (wishes.max_price or wishes.order or state.guests):
        low, high = SPECIAL_EUR
        return sorted(wines, key=lambda wine: not low <= (wine.price or 0) <= high)
    if wishes.max_price and not (
        state.budget or state.is_below or wishes.order or wishes.min_price
    ):
        # Who tells a limit would mostly spend the upper half of it.
        half = wishes.max_price / 2
        return sorted(wines, key=lambda wine: (wine.price or 0) < half)
    is_party = (state.guests or 0) >= _MANY
    limit = MODERATE_EUR / 2 if is_party else MODERATE_EUR
    told = (wishes.min_price, wishes.name, wishes.order, state.is_special and not is_party)
    is_near = wishes.max_price is not None and wishes.max_price < limit * 2
    if any(told) or (is_near and state.budget is None):
        return list(wines)
    return sorted(wines, key=lambda wine: (wine.price or 0) > limit)


def cost_of(lines: Sequence[Line]) -> tuple[float, Currency] | None:
    """What the bottles cost together, in euros if their currencies differ; None if unknown."""
    return _sum([(line.wine, line.bottles) for line in lines])


def _sum(counted: Sequence[tuple[ListedWine, int]]) -> tuple[float, Currency] | None:
    priced = [
        (wine.price * bottles, Currency(wine.currency))
        for wine, bottles in counted
        if wine.price is not None and wine.currency in tuple(Currency)
    ]
    if len(priced) < len(counted) or not priced:
        return None
    code = priced[0][1] if len({unit for _, unit in priced}) == 1 else Currency.EUR
    return sum(each if unit == code else in_euros(each, unit) for each, unit in priced), code


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
    if is_composed(state) and state.told:
        return f"{_bottles_told(state)} {reckoning(state)}".strip()
    if not drinkers:
        return say("quantity_ask", language)
    if change.has("trait", "total") or (change.numbers.has_price and state.act_before == state.act):
        return _at_price(state, change)
    answer = say(
        "quantity",
        language,
        bottles=_range(least, most),
        drinkers=str(drinkers),
        glasses=_glasses_told(state),
        basis=_basis(state),
    )
    advice = "quantity_sober" if state.sober else "quantity_water"
    is_each = change.numbers.has_price and change.has("each")
    summed = _at_price(state, change) if is_each else ""
    return joined(sympathy(change, language), answer, summed, say(advice, language))


def reckoning(state: State) -> str:
    """Tell for whom the bottles of a plan are; empty if nobody said."""
    drinkers, _, _ = estimate(state)
    if not drinkers:
        return ""
    told = {"drinkers": str(drinkers), "glasses": _glasses_told(state), "basis": _basis(state)}
    sober = say("quantity_sober", state.language) if state.sober else ""
    return f"{say('plan_guests', state.language, **told)} {sober}".strip()


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
    language, counts = state.language, state.counts
    counted = [(wine, counts.get(wine.wine_id, 1)) for wine in wines]
    cost = _sum(counted)
    if cost is None:
        return say("unknown_price", language)
    least, most = _asked_number(state, change)
    if least and (least != len(wines) or len(wines) == 1):
        return "\n".join(_times(wine, least, most, language) for wine in wines)
    bottles = sum(each for _, each in counted)
    split = _bottles_told(state) if len(state.slots) > 1 and bottles > len(counted) else ""
    total = say("plan_total", language, bottles=str(bottles), sum=money(*cost))
    is_all = {wine.wine_id for wine in wines} == {*state.choice}
    fits = within_budget(state, cost, bottles) if is_all else ""
    return joined(split, total, fits)


def _times(wine: ListedWine, least: int, most: int, language: Language) -> str:
    """What so many bottles of one wine cost."""
    costs = [_plain(number * (wine.price or 0)) for number in (least, most)]
    fact = f"{_range(*costs)} ({wine.currency})"
    return say("total_of", language, number=_range(least, most), name=wine.name, fact=fact)


def within_budget(state: State, cost: tuple[float, Currency], bottles: int) -> str:
    """Tell what a sum leaves of the budget of a plan, or is above it; empty without a budget."""
    if state.budget is None:
        return ""
    code = state.wishes.currency or Currency.EUR
    paid = cost[0] if cost[1] == code else in_euros(*cost) / in_euros(1, code)
    left, told = state.budget - paid, {"budget": money(state.budget, code)}
    if left >= 0:
        return say("plan_left", state.language, **told, left=money(left, code))
    fits = str(int(state.budget * bottles / paid))
    return say("plan_over", state.language, **told, over=money(-left, code), fits=fits)


def _bottles_told(state: State) -> str:
    """How many bottles a plan has, and of what."""
    amounts = bottles_of(state)
    told = {"bottles": str(sum(amounts)), "slots": in_slots(state, amounts)}
    return say("plan_bottles", state.language, **told)


def _asked_number(state: State, change: Change) -> tuple[int, int]:
    """How few and how many bottles a sum is asked for: as told, or for guests; zeros without."""
    told = [int(word) for word in words(change.text) if word.isdecimal() and len(word) < 4]
    number = change.numbers.bottles or (told[0] if len(told) == 1 else 0)
    for_guests = estimate(state)[1:] if not is_composed(state) else (0, 0)
    return (number, number) if number else for_guests


def _plain(amount: float) -> str:
    return f"{amount:.2f}".removesuffix(".00")


def _range(least: object, most: object) -> str:
    return str(least) if least == most else f"{least}–{most}"


def sympathy(change: Change, language: Language) -> str:
    """A word about what a message tells of: anger, a loss, or a joy; empty without any."""
    is_angry = change.kind in ("complaint", "rude")
    said = (("sorry", is_angry), ("condolence", change.has("mourning")))
    felt = (("congratulations", change.has("festive")), ("comfort", change.has("feeling")))
    keys = (*said, *felt)
    return next((say(key, language) for key, holds in keys if holds), "")


def in_slots(state: State, amounts: Sequence[int]) -> str:
    """The slots of a plan in words, with their bottles where any has more than one."""
    if not state.slots:
        return criteria(replace(state, wishes=replace(state.wishes, max_price=None)))
    is_each = max(amounts) < 2
    named = (slot_in_words(each, state) for each in state.slots)
    called = (name if is_each else f"{n} × {name}" for n, name in zip(amounts, named, strict=True))
    return both(called, state.language)


def glasses_each(state: State) -> float:
    """How many glasses a guest drinks: one an hour at first, less later; three at dinner."""
    return (state.glasses or _glasses_in(_hours(state))) * state.evenings


def _glasses_in(hours: float | None) -> float:
    if hours is None:
        return _AT_DINNER
    first = min(hours, _FIRST_HOURS) * _GLASSES_AT_FIRST
    later = max(0.0, hours - _FIRST_HOURS) * _GLASSES_LATER
    return round(max(1.25, min(first + later, _MOST_GLASSES)) * 4) / 4


def _hours(state: State) -> float | None:
    """How long a party is; None for a meal, before which there may be a reception."""
    is_meal_too = state.occasion == "reception" and len(state.slots) > 1
    return state.hours or (None if is_meal_too else _USUAL_HOURS.get(state.occasion))


def _glasses_told(state: State) -> str:
    """The glasses of each guest in words."""
    number = glasses_each(state)
    return say(
        "quantity_glass" if number == 1 else "quantity_glasses",
        state.language,
        glasses=f"{number:g}",
    )


def _basis(state: State) -> str:
    hours = _hours(state)
    if state.evenings > 1:
        return say("quantity_evenings", state.language, evenings=str(state.evenings))
    if state.glasses:
        return say("quantity_told", state.language)
    if hours is None:
        return say("quantity_dinner", state.language)
    return say("quantity_hours", state.language, hours=f"{hours:g}")
