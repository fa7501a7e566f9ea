"""A message's wishes merged with those before: one table says what forgets, adds and narrows. Pure.

A wish that a message tells replaces what was said of the same slot, and what was said only with
that: a new dish forgets the kind of wine that was meant for the old one. What is not told stays.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agent.house_sommelier.data import SCALE_OF, SCALES, load, profiles
from agent.house_sommelier.plan import (
    over,
    slot_at,
    slot_states,
)
from agent.house_sommelier.planning import NO_PLAN, adds, planned
from agent.house_sommelier.reading import NO_WISHES, Change, Wishes, is_dessert
from agent.house_sommelier.state import State, about_itself, concepts, style_of
from agent.house_sommelier.table import is_prose, meant_of_names, of_names, refers
from agent.house_sommelier.wording import LEAST_OF_A_PRESENT
from agent.sommelier.wine import Currency, key
from agent.text import fold, words

KIND: Final = frozenset({"styles", "colours", "grapes"})
PLACE: Final = frozenset({"countries", "regions"})
_PRICE: Final = frozenset({"min_price", "max_price", "currency"})
_ABV: Final = frozenset({"min_abv", "max_abv"})
_TASTE: Final = frozenset({"sweetness", "bodies", "tannins", "acidities", "text"}) | _ABV
_CALLED: Final = frozenset({"name", "text"})
_FORGETS: Final[Mapping[str, frozenset[str]]] = {
    "styles": KIND | _CALLED,
    "colours": frozenset({"colours", "grapes"}),
    "grapes": KIND | _CALLED,
    "countries": PLACE | _CALLED,
    "regions": PLACE | _CALLED,
    "dishes": KIND | _TASTE | _CALLED | {"dishes", "order"},
    "min_price": _PRICE,
    "max_price": _PRICE,
    "min_abv": _ABV,
    "max_abv": _ABV,
}
"""What a slot that a message fills forgets; any other forgets itself."""
_NAMED: Final = {"dishes": "named_dishes", "text": "named_tastes"}
_HUES: Final = frozenset({"red", "white", "rose", "orange"})
_OF_A_REGION: Final = frozenset({"sparkling", "fortified"})
_FOR_GOOD: Final = frozenset({"grapes", "name", "text", "regions", "countries", "styles"})
_MADE: Final = frozenset({"organic", "unsulphured", "unoaked fresh"})
"""How a wine is made, which another colour or dish does not change."""
_DIRECTIONS: Final = frozenset({"lighter", "fuller", "drier", "sweeter", "softer", "fresher"})
_CORRECTING: Final = frozenset({"complaint", "rude"})
_FEW_WORDS: Final = 4
_BESIDE: Final = frozenset({"vegetables", "salad"})
"""Pairings of what changes nothing beside a dish."""
_LITTLE: Final = 10.0
_NOTICEABLY: Final = 0.9
_DEAR_EUR: Final = 30.0

COUNTRIES: Final = {
    region: country
    for country, regions in {
        "italy": ("piedmont", "tuscany", "sicily", "sardinia", "apulia", "lombardy", "veneto"),
        "france": ("burgundy", "corsica", "bordeaux", "alsace", "champagne", "provence", "rhone"),
        "spain": ("andalusia", "catalonia"),
        "portugal": ("douro",),
        "germany": ("mosel", "palatinate", "franconia"),
    }.items()
    for region in regions
}
"""The countries of regions that go by several names."""


def wished(state: State, change: Change) -> State:
    """`state` after a message that wishes for wine."""
    is_plan = bool(state.slots)
    state = replace(state, guests=change.numbers.guests or state.guests)
    is_other_plan = bool(change.slots) or change.has("remove")
    varies = change.has("cue", "cheaper", "dearer", "refine") or change.has("most")
    is_cheaper = is_plan and varies and not (state.pointed or is_other_plan)
    if is_plan and (is_cheaper or is_other_plan):
        # "A cheaper white?" is for the white of the plan, "two of the reds" are no second one.
        state = replace(state, pointed=_of_kind(state, change) if is_cheaper else ())
    refused = _refused(state, change)
    abroad = change.has("elsewhere_from") or ("elsewhere_from", "country") in change.denied
    if abroad and not (state.pointed or change.has("like")):
        state, change = _from_elsewhere(state, change)
    is_fresh = _is_fresh(state, change)
    told = _completed(state, change)
    if adds(state, change) or (is_plan and change.has("remove")):
        told = replace(NO_WISHES, min_price=told.min_price, max_price=told.max_price)
    old = NO_WISHES if is_fresh else _remembered(state)
    wishes = _limited(state, change, _relative(state, change, merged(old, told, change)))
    swaps = change.has("swap") or is_cheaper
    swapped = state.pointed if swaps and len(state.choice) > 1 else ()
    others = change.has("cue", "other") and not (change.slots or adds(state, change))
    is_seen = is_plan and not is_fresh and not others
    keeps = is_seen and state.context == "wines" and not change.has("cue", "cheaper", "dearer")
    kept = {pair for pair in state.denied if pair[0] in _FOR_GOOD} if is_fresh else state.denied
    found = replace(
        state,
        wishes=wishes,
        is_below=change.has("cue", "cheaper") and not change.numbers.has_price,
        denied=_without(frozenset(kept), change),
        refused=refused,
        keeps=keeps and not swapped and bool(state.choice),
        is_new=not is_seen and (is_fresh or refused != state.refused or _moves_on(state, change)),
        insisted=_insisted(change, wishes),
        is_special=(state.is_special and not is_fresh)
        or change.has("cue", "gift", "dearer")
        or change.has("festive")
        or change.has("special"),
        subjects=(),
        count=change.count
        or (1 if swapped or change.kind == "pick" else None if is_fresh else state.count),
    )
    if swapped:
        instead = _instead(state, change, told)
        return replace(found, wishes=state.wishes, swapped=swapped, instead=instead)
    before = NO_PLAN if is_fresh else state
    return planned(replace(found, slots=before.slots), change, before)


def _of_kind(state: State, change: Change) -> tuple[str, ...]:
    """The wines of the choice that are of the kind, or for the course, that a message names."""
    wishes = change.wishes
    is_last = any(map(is_dessert, wishes.dishes))
    courses = [
        {*slot.wishes.dishes} & {*wishes.dishes}
        or (is_last and {each for each in slot.wishes.dishes if is_dessert(each)})
        for slot in state.slots
    ]
    if any(courses) and len(courses) == len(state.choice):
        return tuple(wine for wine, course in zip(state.choice, courses, strict=True) if course)
    return tuple(each for each in state.choice if {*wishes.styles} & {*style_of(state, each)})


def _instead(state: State, change: Change, told: Wishes) -> Wishes:
    """What is looked for in place of a wine of the choice: of its slot, and within what is left."""
    at = slot_at(state, state.pointed[0])
    of_slot = slot_states(state)[at]
    kind = () if of_slot.wishes.styles else style_of(state, state.pointed[0])
    known = of_slot.wishes
    if len(known.dishes) > 1 and not told.dishes:
        place = min(state.choice.index(state.pointed[0]), len(known.dishes) - 1)
        dishes, named = known.dishes[place : place + 1], known.named_dishes[place : place + 1]
        known = replace(known, dishes=dishes, named_dishes=named)
    wishes = _relative(state, change, merged(known, told, change))
    if kind and not told.said & KIND:
        wishes = replace(wishes, styles=kind)
    is_better = change.has("special") or change.has("cue", "dearer")
    if is_better and wishes.min_price is None and state.pointed[0] in state.prices:
        wishes = replace(wishes, min_price=state.prices[state.pointed[0]][0] + 0.01)
    if state.budget is None or told.max_price:
        return wishes
    counts = state.counts
    kept = sum(
        price * counts[each]
        for each, (price, _) in state.prices.items()
        if each not in state.pointed
    )
    bottles = sum(counts.get(each, 1) for each in state.pointed)
    left = max(0.0, round((state.budget - kept) / bottles, 2))
    is_less = change.has("cue", "cheaper") and wishes.max_price is not None
    return replace(wishes, max_price=min(left, wishes.max_price or left) if is_less else left)


def merged(old: Wishes, new: Wishes, change: Change) -> Wishes:
    """`new`, with what `old` says of what `new` does not forget."""
    new = _added(old, new, change)
    names = old.said - _forgotten(old, new, change)
    if "text" in old.said - names - new.said - change.dropped and _MADE.issuperset(old.text):
        names |= {"text"}
    names |= {_NAMED[name] for name in names & _NAMED.keys()}
    kept: dict[str, Any] = {name: getattr(old, name) for name in names}
    for name in kept.keys() & {"grapes", "countries", "regions"}:
        kept[name] = tuple(each for each in kept[name] if (name, each) not in change.denied)
    # "The like, but not from Italy": Apulia goes with it.
    abroad = {key("countries", value) for name, value in change.denied if name == "countries"}
    if "regions" in kept:
        kept["regions"] = tuple(
            each
            for each in kept["regions"]
            if COUNTRIES.get(key("regions", each), "") not in abroad
        )
    if kept.get("grapes") == () and not (new.styles or kept.get("styles")):
        # "One that is no Albariño then" is a white one all the same.
        out = (profiles()[each].profile for each in old.grapes if each in profiles())
        kept["styles"] = tuple(dict.fromkeys(str(each.colour) for each in out if each))
    if narrowed := tuple(each for each in new.bodies if each in old.bodies):
        # "Even lighter" stays within what was light before.
        kept["bodies"] = narrowed
    return replace(new, **kept, only=new.only | (old.only & names))


def _forgotten(old: Wishes, new: Wishes, change: Change) -> frozenset[str]:
    """The slots of `old` that a message forgets, by the table and a few words of its own."""
    said = new.said
    table = dict(_FORGETS)
    is_corrected = change.kind in _CORRECTING or "meant" in refers(change)
    is_corrected |= change.has("served_with") and bool(old.dishes)
    if is_corrected or not set(old.dishes) - set(new.dishes):
        # "I said risotto" corrects the dish, and nothing else.
        table["dishes"] = _CALLED
    forgotten = said.union(change.dropped, *(table.get(name, frozenset()) for name in said))
    if "styles" in said and _OF_A_REGION & set(old.styles):
        forgotten |= PLACE
    if "alcohol_free" in new.styles:
        forgotten |= PLACE | KIND | _TASTE
    ruled_out = {value for name, value in change.denied if name in ("hue", "styles")}
    return forgotten | ({"styles"} if ruled_out & set(old.styles) else frozenset())


def _added(old: Wishes, new: Wishes, change: Change) -> Wishes:
    """`new` where it adds to `old`: "sparkling too", "with bubbles", "pink ones, though"."""
    foods = {food for dish in old.dishes for food in dish.foods}
    if change.kind in _CORRECTING and all(foods.issuperset(dish.foods) for dish in new.dishes):
        new = replace(new, dishes=old.dishes, named_dishes=old.named_dishes)
    if change.has("served_with") and old.dishes and new.dishes:
        # "With hollandaise and ham, I mean": the dish before is served with it.
        told = zip(new.dishes, new.named_dishes, strict=True)
        beside = {dish: name for dish, name in told if dish.pairing not in _BESIDE}
        both = dict(zip(old.dishes, old.named_dishes, strict=True)) | beside
        new = replace(new, dishes=tuple(both), named_dishes=tuple(both.values()))
    if old.styles == ("sparkling",) and new.styles == ("rose",):
        return replace(new, styles=(), colours=new.styles)
    if "alcohol_free" in new.styles:
        return replace(
            new,
            colours=new.colours or tuple(each for each in old.styles if each in _HUES),
            text=new.text or (("sparkling",) if "sparkling" in old.styles else ()),
        )
    is_sober = old.styles == ("alcohol_free",) and "styles" in old.only
    if is_sober and set(new.styles) <= _HUES and not change.has("others"):
        return replace(new, styles=old.styles, colours=new.styles, only=new.only | {"styles"})
    of_hue = change.has("qualifies") and old.styles and set(old.styles) <= _HUES
    return replace(new, colours=old.styles) if of_hue else new


def _remembered(state: State) -> Wishes:
    """The wishes before, with what a question was about, and "cheaper" as what was shown for it."""
    old = state.wishes
    if state.act_before not in ("search", "like", "about", "pick"):
        old = merged(old, replace(state.topic, name="", text=()), Change())
    if state.is_below and old.max_price and state.prices:
        dearest = max(price for price, _ in state.prices.values())
        old = replace(old, max_price=max(old.max_price, dearest))
    is_other = state.act == "like" or (old.name and not old.name[0].isupper())
    return replace(old, name="") if is_other else old


def _completed(state: State, change: Change) -> Wishes:
    """A message's own wishes, with what it only points at: a scale, a kind, what was explained."""
    wishes = _of_the_same_kind(state, change, _compared(state, change, _scaled(state, change)))
    if wants_it(state, change) and not state.topic.said:
        wishes = replace(wishes, name=state.subjects[0].replace("_", " "))
    elif state.wishes.said and wishes.name and not wishes.name[0].isupper():
        wishes = replace(wishes, name="")
    if change.has("swap") and state.pointed:
        wishes = replace(wishes, order="")
    return wishes


def _scaled(state: State, change: Change) -> Wishes:
    """A message's wishes with what a comparative asks for: "less tannic", "crisper"."""
    ends = load("questions")["ends"]
    values: dict[str, Any] = turned_round(state, change) | {
        slot: tuple(value) if isinstance(value, list) else value
        for most in (*change.said("most"), *amount_of_subject(state, change))
        for slot, value in ends.get(most, {}).items()
        if (change.kind in _DIRECTIONS and not _agrees(change.wishes, slot, value))
        or slot not in ("bodies", "sweetness")
        or slot not in change.wishes.said
    }
    return replace(change.wishes, **values)


def amount_of_subject(state: State, change: Change) -> tuple[str, ...]:
    """How much is wanted of what was just explained: "I hate that", "one with hardly any"."""
    subjects = {*state.subjects}
    scales = load("questions")["scale_of"].items()
    scale = next((scale for scale, topics in scales if subjects.intersection(topics)), "")
    if not scale or change.wishes.said & _TASTE:
        return ()
    if change.has("less_of") or _tells_amount(change, "low_last", is_last=True):
        return (f"{scale}:low",)
    return tuple(f"{scale}:{end}" for end in ("low", "high") if _tells_amount(change, end))[:1]


def turned_round(state: State, change: Change) -> dict[str, Any]:
    """The tastes wished before as their other ends: "and the opposite?"."""
    if not _tells_amount(change, "other_end") or change.wishes.said & _TASTE:
        return {}
    old = {slot: getattr(state.wishes, slot) for slot in SCALE_OF.keys() & state.wishes.said}
    return {slot: tuple(map(_other_end(slot).get, steps)) for slot, steps in old.items()}


def _other_end(slot: str) -> Mapping[str, str]:
    steps = SCALES[SCALE_OF[slot]]
    return dict(zip(steps, reversed(steps), strict=True))


def _tells_amount(change: Change, kind: str, *, is_last: bool = False) -> bool:
    said = f" {fold(' '.join(words(change.text)))} "
    known = (f" {each} " for each in load("questions")["amount"][kind])
    return any(said.endswith(each) if is_last else each in said for each in known)


def _agrees(wishes: Wishes, slot: str, value: Any) -> bool:
    """Whether what a message says of a slot has any of what its direction asks for."""
    return isinstance(value, list) and bool({*getattr(wishes, slot)} & {*value})


def _compared(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The grapes or regions on the table that are meant: "show me one of those then"."""
    rest = bool(state.favoured) and "other" in refers(change)
    if wishes.said & {"grapes", "regions"} or not is_prose(state):
        return wishes
    if "dishes" in wishes.said and not rest:
        return wishes
    if amount_of_subject(state, change):
        return wishes
    own = of_names(meant_of_names(state, change))
    cheaper = change.has("cue", "cheaper") and not state.prices and len(own.said) > 1
    return over(replace(wishes, order="cheapest" if cheaper else wishes.order, tannins=()), own)


def _of_the_same_kind(state: State, change: Change, wishes: Wishes) -> Wishes:
    """The wishes with the kind of all that was shown: "lighter than these" is of their colour."""
    varies = change.has("cue", "cheaper", "dearer", "refine", "other") or change.has("most")
    if not varies or (wishes.said | state.wishes.said) & (KIND | {"dishes"}) or not state.told:
        return wishes
    kinds = [concepts(about_itself(told)) for told in state.told.values()]
    for kind in ("styles", "hue"):
        shared = {value for name, value in frozenset.intersection(*kinds) if name == kind}
        if len(shared) == 1:
            return replace(wishes, styles=tuple(shared))
    return wishes


def wants_it(state: State, change: Change) -> bool:
    """Whether a message wants to see what was just explained: "do you have any?"."""
    asks = change.kind == "stock" or (
        change.kind in ("search", "yes") and change.has("ask", "choose")
    )
    return asks and bool(state.subjects) and not change.wishes.said


def _from_elsewhere(state: State, change: Change) -> tuple[State, Change]:
    """What "from anywhere else" rules out: the place spoken of, or else the guest's own country.

    "Nothing foreign" asks for just that country.
    """
    home = load("grammar")["home"].get(state.language)
    old = state.wishes
    if home and ("elsewhere_from", "country") in change.denied:
        return state, replace(change, wishes=replace(change.wishes, countries=(home,)))
    name = "regions" if old.regions else "countries"
    places = getattr(old, name) or ((home,) if home else ())
    left = frozenset((name, place) for place in places)
    bare = replace(old, regions=(), countries=())
    return replace(state, wishes=bare), replace(change, denied=change.denied | left)


def _insisted(change: Change, wishes: Wishes) -> frozenset[str]:
    """What must be met if it can: the place and grape it names, tastes that a message corrects."""
    corrects = change.has("cue", "refine") or change.has("most")
    named = wishes if change.has("cue") else change.wishes
    kept = named.said & (PLACE | {"grapes"}) if not change.has("or_like") else frozenset()
    tastes = change.wishes.said & {"bodies", "tannins", "acidities", "min_abv"}
    return tastes | kept if corrects else kept


def _moves_on(state: State, change: Change) -> bool:
    """Whether wines are wanted that were not shown yet, rather than fewer of the same."""
    new_dish = bool(change.wishes.dishes) and change.wishes.dishes != state.wishes.dishes
    return new_dish or any(map(change.has, ("cue", "talk", "most", "like")))


def _refused(state: State, change: Change) -> tuple[str, ...]:
    """The wines that were turned down: the one pointed at, or all that were just shown."""
    turned_down: tuple[str, ...] = ()
    if state.slots and (change.slots or change.has("remove")):
        return state.refused
    if change.has("refuse") or change.has("swap"):
        turned_down = state.pointed or state.shown[:1]
    elif change.has("cue", "other") and not adds(state, change):
        turned_down = state.shown
    return tuple(dict.fromkeys((*state.refused, *turned_down)))


def _is_fresh(state: State, change: Change) -> bool:
    """Whether a message asks for something new rather than for a change of what was asked."""
    if change.has("reset"):
        return True
    said = change.wishes.said - {"name"}
    changes = ("replace", "cue", "like", "also", "swap", "most")
    if not state.wishes.said or change.denied or state.pointed or any(map(change.has, changes)):
        return False
    groups = sum(bool(said & group) for group in (KIND, {"dishes"}, PLACE, _TASTE, _PRICE))
    again = bool(said & {"styles"}) and bool(state.wishes.said & {"dishes"} and said & {"dishes"})
    if change.words <= _FEW_WORDS or change.kind in _CORRECTING:
        return again
    return again or groups >= 3 or (groups >= 2 and bool(said & {"dishes"}))


def _without(denied: frozenset[tuple[str, str]], change: Change) -> frozenset[tuple[str, str]]:
    """Earlier exclusions without what is wanted now, and the new ones."""
    wishes = change.wishes
    wanted = {
        (name, value)
        for name in ("grapes", "countries", "regions", "styles")
        for value in getattr(wishes, name)
    }
    wanted |= {("hue", value) for value in (*wishes.styles, *wishes.colours)}
    return (denied - wanted) | change.denied


def _limited(state: State, change: Change, wishes: Wishes) -> Wishes:
    """`wishes` with the least that a present costs."""
    is_gift = change.has("cue", "gift") or change.has("special")
    if is_gift and wishes.max_price and wishes.min_price is None and not change.numbers.shared:
        return replace(wishes, min_price=round(wishes.max_price * LEAST_OF_A_PRESENT, 2))
    return wishes


def _relative(state: State, change: Change, wishes: Wishes) -> Wishes:
    """`wishes` with the limit that "cheaper" or "dearer" means.

    "Cheaper" is below the wine that is pointed at, or else below the cheapest shown; "dearer" is
    above that wine, or else above the old limit or the dearest.
    """
    cheaper = change.has("cue", "cheaper")
    if change.numbers.has_price or not (cheaper or change.has("cue", "dearer")):
        return wishes
    known = dict(state.prices)
    known = {each: known[each] for each in state.pointed if each in known} or known
    old = state.wishes
    currency = next(iter(known.values()))[1] if known else old.currency or Currency.EUR
    prices = [amount for amount, used in known.values() if used == currency]
    changed = replace(wishes, min_price=None, max_price=None, currency=currency, order="")
    if change.has("cue", "half") and prices:
        return replace(changed, max_price=float(round(sum(prices) / len(prices) / 2)))
    if cheaper:
        below = _below(min(prices)) if prices else float(round((old.max_price or 17) * 0.7))
        return replace(changed, max_price=below)
    if old.max_price is not None and not state.pointed:
        return replace(changed, min_price=old.max_price)
    return replace(changed, min_price=float(int(max(prices)) + 1) if prices else _DEAR_EUR)


def _below(amount: float) -> float:
    """Noticeably below an amount, or a cent where little is left."""
    limit = int(amount * _NOTICEABLY) if amount >= _LITTLE else amount - 0.01
    return max(0.0, round(float(limit), 2))
