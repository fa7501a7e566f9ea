"""From the state of a dialogue to the tools to call: what to search for, and what after. Pure.

Hard are prices, allergens, exclusions, the kind and the sweetness of the wine, and what was said
with "only"; everything else ranks, and so does what a sommelier would pour to the dish.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.house_sommelier.data import SCALES, Build, Dish, Pairing, load, pairings, profiles
from agent.house_sommelier.plan import slot_states
from agent.house_sommelier.reading import MOST_SHOWN, Change, Wishes
from agent.house_sommelier.state import State, about_itself, concepts, style_of
from agent.house_sommelier.wines import Found, ListedWine, named, offered
from agent.sommelier.wine import Currency, Style

SEARCH: Final = "search_wines"
SIMILAR: Final = "find_similar_wines"
DETAILS: Final = "get_wine"
LIBRARY: Final = "search_documents"

ENOUGH: Final = 3
"""How many wines an answer shows if nobody says how many."""
_LIMIT: Final = 12
_FEW: Final = 2
_MOST_IDS: Final = 100
_GENEROUS: Final = 50.0, 200.0
_LEAST_OF_IT: Final = 0.4
"""Who tells such a limit, in euros, wants nothing that costs less than this part of it."""
_MOST_FOODS: Final = 6
_MOST_TEXT: Final = 290
_HARD: Final = frozenset({"styles", "colours", "sweetness", "max_abv"})
_LISTS: Final = tuple(
    "styles colours sweetness bodies tannins acidities grapes countries regions".split()
)
_NUMBERS: Final = ("min_price", "max_price", "min_abv", "max_abv")
_SEARCHED: Final = frozenset({*_LISTS, *_NUMBERS, "dishes"})
_PREFERRED: Final = ("styles", "bodies", "sweetness", "tannins", "acidities")
_BOARD: Final = "cheese_board"
_BRIDGE: Final = "bridge"
_HUES: Final = frozenset({"red", "white", "rose"})
_EXCLUDED: Final = {
    "grapes": "without_grapes",
    "countries": "without_countries",
    "regions": "without_regions",
    "styles": "without_styles",
    "hue": "without_styles",
}
_PLACE: Final = frozenset({"regions", "countries", "grapes"})
_BESIDE_A_NAME: Final = frozenset({"dishes", "styles", "grapes", "regions", "countries"})
KIND: Final = frozenset({"styles", "grapes", "regions", "colours"})


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool to call, with its arguments."""

    tool: str
    arguments: Mapping[str, Any]


def first_calls(state: State, change: Change) -> tuple[Wish, ...]:
    """The tools to call for a message that wants wines."""
    if state.act in ("about", "pick"):
        return (Wish(DETAILS, {"wine_ids": list(state.about)}),)
    if state.act == "like":
        filters = filters_of(_differing(state, change), state)
        return (Wish(SIMILAR, {"wine_id": meant(state), **filters, "limit": _LIMIT}),)
    if state.act == "foods":
        return (_search(replace(state, wishes=state.topic), change, dishes=()),)
    state = looking_for(state)
    calls = tuple(_search(each, change) for each in slot_states(state)[:MOST_SHOWN])
    return (Wish(DETAILS, {"wine_ids": list(state.choice)}), *calls) if state.keeps else calls


def looking_for(state: State) -> State:
    """The state as far as this turn looks for wines: in place of one, for that one alone."""
    return state if state.instead is None else replace(state, wishes=state.instead, slots=())


def meant(state: State) -> str:
    """The wine that "like that" means."""
    return (state.pointed or state.about or state.shown)[0]


def _differing(state: State, change: Change) -> Wishes:
    """What a similar wine is to be otherwise: the message's own wishes and the price limit."""
    asked, old = change.wishes, state.wishes
    if not asked.said & {"styles", "grapes", "colours"}:
        asked = replace(asked, styles=style_of(state, meant(state)))
    if change.has("same"):
        told = concepts(about_itself(state.told.get(meant(state), "")))
        asked = replace(asked, grapes=tuple(value for name, value in told if name == "grapes"))
    if asked.min_price is not None or asked.max_price is not None:
        return asked
    return replace(asked, min_price=old.min_price, max_price=old.max_price, currency=old.currency)


def next_calls(state: State, change: Change, found: Sequence[Found]) -> tuple[Wish, ...]:
    """The tools to call after these results, empty if they will do."""
    last = found[-1]
    searches = [each for each in found if each.tool in (SEARCH, SIMILAR)]
    if not searches:
        return _after_details(state, change, last)
    if last.tool == DETAILS:
        return ()
    by_name = bool(state.wishes.name and state.wishes.said & _BESIDE_A_NAME)
    if by_name and len(searches) == 1 and not named(last.wines, state.wishes.name)[0]:
        # Where nothing is of a name, the rest of the wish decides.
        return (_search(replace(state, wishes=replace(state.wishes, name="")), change),)
    state = looking_for(state)
    if state.slots:
        return _for_empty_slots(state, searches)
    is_done = state.act == "foods" or len(searches) > 1 + by_name
    return (() if is_done else _further(state, change, last)) or _kept(state)


def _for_empty_slots(state: State, found: Sequence[Found]) -> tuple[Wish, ...]:
    """What comes nearest to the slots that nothing fills: at any price, the cheapest first."""
    if len(found) > len(state.slots):
        return ()
    empty = [each for each in found if not offered(each.wines, state)]
    return tuple(Wish(SEARCH, _nearest(each.arguments)) for each in empty)


def _nearest(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A search at any price, and of other places and grapes if there is none."""
    wider = {name: value for name, value in asked.items() if "price" not in name}
    soft = {*asked.get("soft", ()), *(_PLACE & asked.keys())}
    return {**wider, "soft": sorted(soft), "order": "cheapest"}


def of_slots(state: State, found: Sequence[Found]) -> list[list[ListedWine]]:
    """What may be offered for each slot of a plan, what was shown before first.

    Of the first search for it, or of the second where that found none.
    """
    shown = [wine for each in found if each.tool == DETAILS for wine in offered(each.wines, state)]
    searches = [each for each in found if each.tool == SEARCH]
    slots = slot_states(state)
    if len(searches) < len(slots):
        # Where a search failed, each takes what fits of what the others found.
        every = [wine for each in searches for wine in offered(each.wines, state)]
        return [[wine for wine in every if _still_fits(wine, slot)] for slot in slots]
    more = iter(searches[len(slots) :])
    wines = [offered(each.wines, state) for each in searches[: len(slots)]]
    wines = [each or offered(next(more, Found(tool=SEARCH)).wines, state) for each in wines]
    return [
        [*(wine for wine in shown if _still_fits(wine, slot)), *each]
        for slot, each in zip(slots, wines, strict=False)
    ]


def _still_fits(wine: ListedWine, slot: State) -> bool:
    """Whether a wine that was shown is of a slot's kind, dish and price."""
    wishes = slot.wishes
    foods = {food for dish in wishes.dishes for food in dish.foods}
    asked = (
        ({*wishes.styles}, {wine.style, wine.colour}),
        ({*wishes.grapes}, {*wine.grapes}),
        ({*wishes.regions}, {wine.region, wine.appellation}),
        ({*wishes.countries}, {wine.country}),
        (foods, {*wine.foods}),
    )
    is_paid = wishes.max_price is None or (wine.price or 0) <= wishes.max_price
    return is_paid and all(wanted & has for wanted, has in asked if wanted)


def _further(state: State, change: Change, last: Found) -> tuple[Wish, ...]:
    """What to search once more: wider, for the dish, or other wines than were just shown."""
    fit = offered(last.wines, state)
    if len(fit) < _FEW and "min_price" in last.arguments and change.wishes.min_price is None:
        # What a present should cost is not worth more than that there is one.
        floor = {"min_price"}
        wider = {name: value for name, value in last.arguments.items() if name not in floor}
        return (Wish(last.tool, wider),)
    if not last.wines or (state.care and not fit):
        return _wider(state, change, last)
    if _is_said_again(state, change, fit):
        return (Wish(last.tool, {**last.arguments, "not_ids": list(state.seen)[:_MOST_IDS]}),)
    dishes = () if state.swapped else unserved(fit, state.wishes.dishes)
    return tuple(_search(state, change, dishes=(dish,)) for dish in dishes)


def _is_said_again(state: State, change: Change, fit: Sequence[ListedWine]) -> bool:
    """Whether a further wish would be answered with the very wines that were just shown."""
    shown = {wine.wine_id for wine in fit[: state.count or ENOUGH]}
    return state.context == "wines" and shown == set(state.shown) and not change.numbers.has_price


def _kept(state: State) -> tuple[Wish, ...]:
    """The facts of what stays of a choice of which one wine is replaced."""
    kept = [each for each in state.choice if each not in state.swapped]
    return (Wish(DETAILS, {"wine_ids": kept}),) if state.swapped and kept else ()


def _after_details(state: State, change: Change, details: Found) -> tuple[Wish, ...]:
    """What to look for besides the facts of shown wines."""
    dishes = change.wishes.dishes
    if not dishes or change.has("trait"):
        return ()
    suits = any(set(dish.foods) & set(wine.foods) for dish in dishes for wine in details.wines)
    return () if suits else (_search(state, change, dishes=dishes),)


def _wider(state: State, change: Change, last: Found) -> tuple[Wish, ...]:
    """The same search with less that excludes; none where nothing is left to give up."""
    asked = dict(last.arguments)
    soft = {*asked.get("soft", ())}
    if state.care:
        kept = ("styles", "max_price", "currency", "without_allergens")
        wider = {name: value for name, value in asked.items() if name in kept}
        return (Wish(SEARCH, {**wider, "limit": _LIMIT}),) if wider.keys() < asked.keys() else ()
    if place := state.insisted & _PLACE & asked.keys() - soft:
        is_cheaper = change.has("cue", "cheaper") and not change.has("cue", "half")
        wider = {**asked, "soft": sorted(soft | place)}
        return _cheaper(state, last, wider) if is_cheaper else (Wish(last.tool, wider),)
    return ()


def _cheaper(state: State, last: Found, wider: Mapping[str, Any]) -> tuple[Wish, ...]:
    """Cheaper wines of the place where there are none below the cheapest shown, and of others.

    The first are the cheapest of the place below the dearest shown, seen or not.
    """
    elsewhere = Wish(last.tool, wider)
    prices = [price for price, _ in state.prices.values()]
    if len(set(prices)) < 2:
        return (elsewhere,)
    here = {**last.arguments, "max_price": max(prices) - 0.01, "order": "cheapest"}
    return (Wish(last.tool, {**here, "not_ids": list(state.refused)}), elsewhere)


def _search(state: State, change: Change, dishes: Sequence[Dish] | None = None) -> Wish:
    wishes = state.wishes if dishes is None else replace(state.wishes, dishes=tuple(dishes))
    filters = filters_of(wishes, state, or_like=change.has("or_like"))
    limit = wishes.max_price or 0
    is_free = not (state.budget or state.is_below or state.care or wishes.order or wishes.name)
    if is_free and wishes.min_price is None and _GENEROUS[0] <= limit <= _GENEROUS[1]:
        filters["min_price"] = round(limit * _LEAST_OF_IT, 2)
    return Wish(SEARCH, {**filters, "limit": _LIMIT})


def filters_of(wishes: Wishes, state: State, *, or_like: bool = False) -> dict[str, Any]:
    """The arguments of a search: what must be, what ranks, what must not."""
    is_sober = bool(state.care) or "alcohol_free" in wishes.styles
    wishes = _alcohol_free(wishes) if is_sober else wishes
    filters: dict[str, Any] = {
        name: list(values) for name in _LISTS if (values := getattr(wishes, name))
    }
    filters |= {name: value for name in _NUMBERS if (value := getattr(wishes, name)) is not None}
    if wishes.currency not in (None, Currency.EUR) and filters.keys() & {"min_price", "max_price"}:
        filters["currency"] = str(wishes.currency)
    unoaked = any(name == "text" and value.startswith("oak") for name, value in state.denied)
    tastes = ("oaky oak vanilla toast cedar" if each == "oaky" else each for each in wishes.text)
    words = (wishes.name, *tastes, "unoaked fresh juicy" if unoaked else "")
    if text := " ".join(filter(None, words))[:_MOST_TEXT].strip():
        filters["text"] = text
    if wishes.order:
        filters["order"] = wishes.order
    soft = (set(_LISTS) | {"min_abv"}) & filters.keys() - _HARD - wishes.only - state.insisted
    soft |= {"colours"} & filters.keys() if is_sober else set()
    if "histamine" in state.reacts and "styles" not in filters:
        # Young whites mostly have least of it.
        filters["styles"] = ["white", "rose"]
    if filters.get("acidities") == ["high"] and not wishes.said & (_BESIDE_A_NAME | {"text"}):
        filters["styles"] = ["sparkling", "white", "rose"]
        soft.add("styles")
    soft |= _add_kin(filters, or_like=or_like)
    soft |= _add_pairing(filters, wishes, is_sober=is_sober, is_one=state.count == 1)
    if soft:
        filters["soft"] = sorted(soft)
    return _with_exclusions(filters, state, wishes)


def unsearched(state: State, change: Change, found: Sequence[Found]) -> list[str]:
    """The wishes that no search was for, by the names of its limits; what is similar is like it."""
    is_similar = found[-1].tool == SIMILAR
    wishes = change.wishes if is_similar else state.wishes
    asked = {name for each in found for name in each.arguments}
    told = [("foods" if name == "dishes" else name) for name in wishes.said & _SEARCHED]
    of_colour = {"styles"} if "colours" in asked else set()
    return sorted(set(told) - asked - of_colour)


def _add_kin(filters: dict[str, Any], *, or_like: bool) -> set[str]:
    """Add what comes nearest to the named grapes, if the cellar may have none of them."""
    asked = (*filters.get("grapes", ()), *filters.get("regions", ()))
    named = [profiles()[each] for each in asked if each in profiles()]
    if not named:
        return set()
    if or_like and filters.get("grapes"):
        kin = [like for profile in named for like in profile.like]
        filters["grapes"] = list(dict.fromkeys((*filters["grapes"], *kin)))[:_MOST_FOODS]
    if filters.get("colours") or {"sweet", "luscious"} & set(filters.get("sweetness", ())):
        return set()
    rank = named[0].profile.rank("body")
    near = list(map(str, SCALES["body"][max(0, rank - 1) : rank + 2]))
    kin_of = {"bodies": near, "styles": [str(named[0].profile.colour)]}
    added = kin_of.keys() - filters.keys()
    filters |= {name: kin_of[name] for name in added}
    return added


def _add_pairing(
    filters: dict[str, Any], wishes: Wishes, *, is_sober: bool, is_one: bool
) -> set[str]:
    """Add the foods of the dishes and what suits them; all of it ranks, but for what must be."""
    if not wishes.dishes:
        return set()
    foods = [food for dish in wishes.dishes for food in dish.foods]
    filters["foods"] = list(dict.fromkeys(foods))[:_MOST_FOODS]
    added = {"foods"}
    if is_sober:
        return added
    found = pairings_of(wishes.dishes, is_one=is_one)
    for name in _PREFERRED:
        values = [str(value) for pairing in found for value in getattr(pairing, name)]
        if values and name not in filters:
            filters[name] = list(dict.fromkeys(values))
            added.add(name)
    return added if wishes.said & KIND else added - _add_musts(filters, found, added)


def _add_musts(filters: dict[str, Any], found: Sequence[Pairing], added: set[str]) -> set[str]:
    """Make hard what a wine has to be for every one of the dishes; return what of `added` is."""
    hard: set[str] = set()
    for name in ("sweetness", "tannins"):
        musts = [set(map(str, getattr(pairing.must, name))) for pairing in found]
        if name in added and all(musts):
            filters[name] = sorted(set.union(*musts))
            hard.add(name)
    styles = [set(map(str, pairing.must.styles)) for pairing in found]
    if all(styles):
        never = [style for style in map(str, Style) if style not in set.union(*styles)]
        filters["without_styles"] = never
    return hard


def pairings_of(dishes: Iterable[Dish], *, is_one: bool = False) -> list[Pairing]:
    """What suits these dishes, each pairing once; one for all where that `is_one` wine."""
    names = list(dict.fromkeys(dish.pairing for dish in dishes))
    if _BOARD in names and all("cheese" in name for name in names):
        names = [_BOARD]
    found = [pairings()[name] for name in names]
    mild, firm = (each.must.tannins for each in found), ("high" in each.tannins for each in found)
    return [pairings()[_BRIDGE]] if is_one and any(mild) and any(firm) else found


def fit(build: Build, wanted: Pairing) -> int:
    """How well a grape or a region suits what a dish wants."""
    return (
        2 * (build.body in wanted.bodies)
        + (build.tannin in wanted.tannins)
        + (build.acidity in wanted.acidities)
    )


def why_it_suits(state: State) -> str:
    """Why what is shown suits the dishes of a request; empty without any."""
    found = pairings_of(state.wishes.dishes, is_one=state.count == 1)
    if not found or state.care or len(found) > 1:
        return ""
    colours = {*state.wishes.styles} & {"red", "white", "rose", "sparkling"}
    if colours and not colours & set(map(str, found[0].styles)):
        return ""
    return found[0][state.language]


def _with_exclusions(filters: dict[str, Any], state: State, wishes: Wishes) -> dict[str, Any]:
    """The filters with those that leave wines out."""
    left: dict[str, set[str]] = {"without_styles": set(filters.pop("without_styles", ()))}
    for field, value in state.denied:
        if name := _EXCLUDED.get(field):
            left.setdefault(name, set()).add(value)
    if any(each.startswith("unusual") for each in wishes.text) and not wishes.grapes:
        left.setdefault("without_grapes", set()).update(load("grapes")["common"])
    filters |= {name: sorted(values)[:_LIMIT] for name, values in left.items() if values}
    if state.allergens:
        filters["without_allergens"] = list(state.allergens)
    is_new = state.is_new and not (wishes.name or state.care)
    ids = dict.fromkeys((*state.refused, *state.seen)) if is_new else state.refused
    return filters | ({"not_ids": list(ids)[:_MOST_IDS]} if ids else {})


def _alcohol_free(wishes: Wishes) -> Wishes:
    """The same wish without alcohol: no origin and no grape, of which there is little to choose."""
    return Wishes(
        styles=("alcohol_free",),
        colours=tuple(each for each in (*wishes.colours, *wishes.styles) if each in _HUES),
        text=("sparkling",) if "sparkling" in (*wishes.styles, *wishes.text) else (),
        dishes=wishes.dishes,
        min_price=wishes.min_price,
        max_price=wishes.max_price,
        currency=wishes.currency,
        order=wishes.order,
    )


def unserved(wines: Sequence[ListedWine], dishes: Sequence[Dish]) -> Sequence[Dish]:
    """The dishes, of several, that none of these wines goes with; at most as many as are shown."""
    missed = [
        dish for dish in dishes if not any(set(dish.foods) & set(wine.foods) for wine in wines)
    ]
    return missed[:ENOUGH] if len(dishes) > 1 else ()


def _served_by(wine: ListedWine, dishes: Sequence[Dish]) -> int:
    return sum(bool(set(dish.foods) & set(wine.foods)) for dish in dishes)


def served(wines: Sequence[ListedWine], state: State) -> list[ListedWine]:
    """The wines to show: one for each dish, the best."""
    count = state.count or ENOUGH
    chosen: list[ListedWine] = []
    dishes = state.wishes.dishes if len(state.wishes.dishes) > 1 else ()
    if count == 1:
        # One bottle for fish and beef goes with as much of it as can be.
        return sorted(wines, key=lambda wine: -_served_by(wine, dishes))[:1]
    for dish in dishes:
        if not any(set(dish.foods) & set(wine.foods) for wine in chosen):
            fit = [each for each in wines if set(dish.foods) & set(each.foods)]
            chosen += [wine for wine in fit if wine not in chosen][:1]
    return [*chosen, *(wine for wine in wines if wine not in chosen)][:count]
