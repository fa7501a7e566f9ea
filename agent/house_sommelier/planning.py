"""What a message does to a plan: slots told, added, left out, exchanged; other numbers. Pure."""

from dataclasses import replace
from typing import Any, Final

from agent.house_sommelier.data import dishes
from agent.house_sommelier.plan import capped, estimate, is_composed, over
from agent.house_sommelier.reading import Change, Slot, Wishes, is_dessert
from agent.house_sommelier.state import State
from agent.house_sommelier.table import of_names

NO_PLAN: Final = State()
_OF_A_SLOT: Final = frozenset(
    "styles colours grapes countries regions dishes sweetness bodies".split()
)
_LEAST_PRICE: Final = 6.0
"""What a bottle costs at least: a price that is less for each is no price for all."""
_CHEAPER: Final = 0.85


def planned(state: State, change: Change, before: State) -> State:
    """`state` with the plan after a message, told as it was `before`: slots, bottles, budget."""
    slots, told = _slots(state, change, before), change.numbers
    wishes, bottles = state.wishes, told.bottles or before.bottles
    if change.has("just_one") and before.slots and not change.slots:
        slots, bottles, state = (), 1, replace(state, keeps=False)
    if len(slots) == 1:
        wishes = over(wishes, slots[0].wishes)
        bottles, slots = told.bottles or int(slots[0].bottles) or before.bottles, ()
    counted = int(sum(each.bottles for each in slots)) if all(s.bottles for s in slots) else 0
    if change.slots and counted > (bottles or 0):
        bottles = None
    found = replace(state, wishes=wishes, slots=slots, bottles=bottles)
    count = max(counted, bottles or 0) or estimate(found)[1]
    return capped(replace(found, budget=_budget(before, change, count)))


def _budget(old: State, change: Change, bottles: int) -> float | None:
    """What all bottles of a plan may cost after a message: a price is for all, or for each."""
    told = change.numbers
    if told.has_price:
        for_all = bottles > 2 and (told.max_price or 0) >= bottles * _LEAST_PRICE
        is_whole = told.shared or old.budget or for_all
        is_each = change.has("each") and not change.has("total")
        return told.max_price if is_whole and not is_each else None
    is_for_all = not (change.wishes.said & _OF_A_SLOT or change.has("ordinal"))
    if change.has("cue", "cheaper") and is_for_all and is_composed(old) and old.prices:
        counts = old.counts
        paid = sum(price * counts[each] for each, (price, _) in old.prices.items())
        return float(int(paid * _CHEAPER))
    return old.budget


def _slots(state: State, change: Change, before: State) -> tuple[Slot, ...]:
    """The slots of the plan after a message: told anew, added, left out."""
    old, new = before.slots, change.slots
    if change.has("one_of_each") and not change.has("just_one"):
        return _one_of_each(state) or new or old
    if len(new) == 1 and 0 < new[0].bottles < 1:
        return _halved(before, new[0])
    if new:
        return (*old, *new) if adds(before, change) else new
    return _left(change, before)


def _halved(before: State, half: Slot) -> tuple[Slot, ...]:
    """The slots where half of the bottles are of a kind: the rest is as it was, or red or white."""
    rest = tuple(each for each in before.wishes.styles if each not in half.wishes.styles)
    other = "red" if "white" in half.wishes.styles else "white"
    return Slot(Wishes(styles=rest or (other,)), 1 - half.bottles), half


def _left(change: Change, before: State) -> tuple[Slot, ...]:
    """The slots that a message leaves, and one more for a wine that it adds."""
    wishes, old = change.wishes, before.slots
    out = {value for _, value in change.denied}
    out |= {*wishes.named_dishes} if change.has("remove") else set()
    out |= {"sweet"} if wishes.sweetness and "sweet" not in wishes.sweetness else set()
    dropped = [dish for at, dish in enumerate(dishes()) if f"dish:{at}" in change.dropped]
    out |= {"sweet"} if any(map(is_dessert, dropped)) else set()
    left = tuple(
        each for each in old if not (out & _told_of(each) or set(dropped) & set(each.wishes.dishes))
    )
    if adds(before, change):
        first = _own(before.wishes)
        left = left or (Slot(first),)
        return (*left, Slot(_own(wishes), float(change.count or 0)))
    if wishes.styles and not change.has("remove"):
        return tuple(each for each in left if {*wishes.styles} & {*each.wishes.styles})
    is_new_meal = wishes.dishes and any(each.wishes.dishes or each.course for each in left)
    return () if is_new_meal else left


def _told_of(slot: Slot) -> set[str]:
    """What a slot can be called by; that of a dessert by its sweet wine."""
    wishes = slot.wishes
    named = (wishes.styles, wishes.grapes, wishes.regions, wishes.countries, wishes.named_dishes)
    is_sweet = slot.course == "dessert" or any(map(is_dessert, wishes.dishes))
    return {value for values in named for value in values} | ({"sweet"} if is_sweet else set())


def adds(state: State, change: Change) -> bool:
    """Whether a message wants one wine more beside the others: "and a dessert wine as well"."""
    told, old = change.wishes.said, state.slots or state.wishes.styles
    is_sober = "alcohol_free" in change.wishes.styles
    if change.kind == "fits" or change.has("others") or state.care or is_sober or not old:
        return False
    is_kind = bool(told & {"styles", "sweetness"}) or (bool(state.slots) and "dishes" in told)
    return is_kind and (change.has("one_more") or change.has("also"))


def _own(wishes: Wishes) -> Wishes:
    """What of a wish tells one part of a plan from the others: kind, place and dish."""
    told: dict[str, Any] = {name: getattr(wishes, name) for name in wishes.said & _OF_A_SLOT}
    return Wishes(**told, named_dishes=wishes.named_dishes)


def _one_of_each(state: State) -> tuple[Slot, ...]:
    """One wine of each of the kinds, grapes or places that were alternatives or compared."""
    if len(state.names) > 1:
        # Of a grape and the places that it was spoken of in, one of each place.
        places = [each for each in state.names if of_names((each,)).regions]
        rest = [each for each in state.names if each not in places] if len(places) > 1 else []
        own = [each for each in state.names if each not in rest]
        return tuple(Slot(of_names((each, *rest))) for each in own)
    return ()
