"""From what the tools returned to a `SommelierResponse`: only its wines, only their facts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agent.house_sommelier.data import SCALES, grammar, profiles, speech
from agent.house_sommelier.knowledge import inform
from agent.house_sommelier.plan import (
    Line,
    bottles_for,
    bottles_of,
    cost_of,
    estimate,
    fill,
    in_slots,
    is_composed,
    moderate_first,
    reckoning,
    slot_states,
    sympathy,
    within_budget,
)
from agent.house_sommelier.reading import NO_WISHES, Change
from agent.house_sommelier.searching import (
    DETAILS,
    ENOUGH,
    KIND,
    SIMILAR,
    looking_for,
    of_slots,
    pairings_of,
    served,
    unsearched,
    why_it_suits,
)
from agent.house_sommelier.state import GRAVE, State
from agent.house_sommelier.verdicts import suits, traits, verdict
from agent.house_sommelier.wines import Found, ListedWine, is_allowed, named, offered
from agent.house_sommelier.wording import (
    both,
    country_in_words,
    criteria,
    describe,
    dishes_in_words,
    either,
    foods_in_words,
    in_detail,
    in_words,
    joined,
    price,
    say,
    sentence,
    slot_in_words,
    suiting,
    tastes_in_words,
)
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.wine import Currency, Style, money
from agent.text import Language, fold, words
from agent.vocabulary import is_word

_PRICES: Final = frozenset({"min_price", "max_price"})
_PROTECTING: Final = frozenset({"not_ids", "in_stock_only"})
_SLOTS: Final = tuple("grapes regions countries bodies tannins acidities foods min_abv".split())
"""What a wine may miss of what was asked, in the order in which it is owned up to."""
_TASTES: Final = frozenset({"sweetness", "bodies", "tannins", "acidities"})
_NAMED_SLOTS: Final = frozenset({"grapes", "regions", "countries"})
_MOST_FOODS: Final = 5


def answer_wines(state: State, change: Change, found: Sequence[Found]) -> SommelierResponse:
    """The answer to a message that wanted wines, from all the searches of its turn."""
    if state.act in ("about", "pick"):
        return _about(state, change, found)
    searched = [result for result in found if result.tool != DETAILS or len(found) == 1]
    wines: dict[str, ListedWine] = {}
    for wine in (each for result in searched for each in result.wines):
        # What a wine misses is told by the search of the whole wish, which comes first.
        wines.setdefault(wine.wine_id, wine)
    if state.act == "foods":
        return _foods(state, list(wines.values()))
    looking = looking_for(state)
    fit = _in_order(offered(list(wines.values()), looking), looking.wishes.order)
    if not fit:
        return _nothing(looking, change, found, has_wines=bool(wines))
    if state.swapped and found[-1].tool == DETAILS:
        return _swapped(state, change, fit, found[-1].wines)
    if is_composed(looking) and not looking.wishes.name:
        return _composed(looking, change, of_slots(looking, found))
    return _recommended_of(looking, change, found, fit)


def _recommended_of(
    state: State, change: Change, found: Sequence[Found], fit: Sequence[ListedWine]
) -> SommelierResponse:
    """Wines to choose from."""
    called, in_full = named(fit, state.wishes.name)
    if state.wishes.name and not called and state.wishes.said <= {"name"}:
        return inform(say("nothing_named", state.language, name=state.wishes.name))
    shown = served(_exact_first(called or fit, state), state)
    is_seen = in_full or bool(change.wishes.dishes or not change.wishes.name)
    unseen = "" if is_seen else say("not_named", state.language, name=state.wishes.name)
    told = _intro(state, change, found, shown, is_named=bool(called) and in_full)
    intro = joined(sympathy(change, state.language), unseen, told)
    is_plain = bool(state.care or change.wishes.dishes)
    says = change.wishes.said or change.marks or change.denied
    unclear = "" if is_plain else not_understood(change, state.language, purpose=bool(says))
    told_of = {wine: _described(wine, state, shown) for wine in shown}
    return _recommend(f"{unclear} {intro}".strip(), told_of, _closing(state, change))


def _composed(
    state: State, change: Change, found: Sequence[Sequence[ListedWine]]
) -> SommelierResponse:
    """Bottles put together slot by slot, with their number and price, and what all cost."""
    language, slots, amounts = state.language, slot_states(state), bottles_of(state)
    kept = state.choice if state.keeps else ()
    best = [
        sorted(_exact_first(wines, slot), key=lambda wine: wine.wine_id not in kept)
        if wines
        else []
        for wines, slot in zip(found, slots, strict=True)
    ]
    lines = fill(state, best)
    if not lines:
        return _nothing(state, change, (), has_wines=False)
    told = in_slots(state, amounts)
    bottles = str(sum(line.bottles for line in lines))
    key = "plan_each" if max(amounts) < 2 else "plan_bottles" if told else "found_any"
    filled = {line.slot for line in lines}
    empty = [at for at in range(len(slots)) if at not in filled]
    lost = [in_slots(replace(state, slots=state.slots[at : at + 1]), (1,)) for at in empty]
    intro = joined(
        sympathy(change, language),
        say(key, language, bottles=bottles, slots=told),
        say("plan_missing", language, slots=both(lost, language)) if lost else "",
        "" if any(each.wishes.dishes for each in state.slots) else why_it_suits(slots[0]),
    )
    told_of = {each.wine: _line(each, state, slots[each.slot]) for each in lines}
    return _recommend(intro, told_of, joined(_sum_of(lines, state), _why_so_many(state, change)))


def _line(line: Line, state: State, of_slot: State) -> str:
    """A wine of a plan: what it is for, how many bottles at what price, why."""
    language, wine = state.language, line.wine
    slot = state.slots[line.slot] if state.slots else None
    dish = dishes_in_words(slot.wishes, language) if slot else ""
    label = slot_in_words(slot, state) if slot and slot.course else dish
    cost = cost_of([line])
    priced = (
        f"{line.bottles} × {price(wine)} = {money(*cost)}." if cost and line.bottles > 1 else ""
    )
    missed = [_slot_in_words(each, of_slot) for each in _missed(wine, of_slot)]
    return joined(
        f"{label[0].upper()}{label[1:]}:" if label else "",
        priced,
        sentence(suiting(wine, _foods_asked(of_slot), language)),
        why_it_suits(of_slot) if label else "",
        say("misses", language, limits=either(missed, language)) if missed else "",
    )


def _sum_of(lines: Sequence[Line], state: State) -> str:
    """What the bottles of a plan cost together, and whether the budget holds."""
    language, cost = state.language, cost_of(lines)
    if cost is None:
        return say("unknown_price", language)
    bottles = sum(line.bottles for line in lines)
    told = say("plan_total", language, bottles=str(bottles), sum=money(*cost))
    return f"{told} {within_budget(state, cost, bottles)}".strip()


def _why_so_many(state: State, change: Change) -> str:
    """Why a plan for guests has so many bottles; labels where somebody does not tolerate."""
    counted = state.bottles or any(each.bottles for each in state.slots)
    by_guests = not counted and estimate(state)[1] >= sum(bottles_of(state))
    return reckoning(state) if by_guests else _notes(state, change)


def _swapped(
    state: State,
    change: Change,
    fit: Sequence[ListedWine],
    kept: Sequence[ListedWine],
) -> SommelierResponse:
    """The choice with others in place of what was turned down."""
    language, composed, state = state.language, is_composed(state), looking_for(state)
    staying = {wine.wine_id: wine for wine in kept if is_allowed(wine, state)}
    new = iter(wine for wine in _exact_first(fit, state) if wine.wine_id not in state.choice)
    counts = state.counts
    chosen = [(staying.get(each) or next(new, None), counts.get(each, 1)) for each in state.choice]
    lines = [Line(wine, bottles, 0) for wine, bottles in chosen if wine is not None]
    wines = [line.wine for line in lines]
    names = both((wine.name for wine in wines if wine.wine_id not in staying), language)
    old = both((state.called.get(each, "") for each in state.swapped), language)
    told = say("swapped", language, old=old, names=names)
    intro = _with_misses(told, state, [each for each in wines if each.wine_id not in staying])
    told_of = {each.wine: _line(each, replace(state, slots=()), state) for each in lines}
    closing = _sum_of(lines, state) if composed else _closing(state, change)
    return _recommend(intro, told_of, closing)


def _stance(state: State, change: Change, shown: Sequence[ListedWine]) -> str:
    """Whether the kind that a message asks about goes with the dish; empty if it does not ask."""
    wishes, found = change.wishes, pairings_of(state.wishes.dishes)
    if change.kind != "fits" or not found or not wishes.said & KIND:
        return ""
    kind = criteria(replace(state, wishes=replace(wishes, dishes=(), named_dishes=())))
    fits = any(not {"foods", *wishes.said} & set(wine.misses) for wine in shown)
    known = {str(profiles()[each].profile.colour) for each in change.entities if each in profiles()}
    colours = (known or {*wishes.styles}) & set(map(str, found[0].styles))
    key = "kind_yes" if fits or colours else "kind_no"
    dish = both(state.wishes.named_dishes, state.language)
    why = why_it_suits(state) if key == "kind_yes" else found[0][state.language]
    return " ".join((say(key, state.language, kind=kind, dish=dish), why))


def _closing(state: State, change: Change) -> str:
    """What is left to say: how many bottles a party needs, what labels hide, what would help."""
    if change.numbers.guests is not None:
        return bottles_for(state, change)
    asks = "" if state.seen else say(_refinement(state), state.language)
    return _notes(state, change) or asks


def not_understood(change: Change, language: Language, *, purpose: bool = False) -> str:
    """A sentence about the words that nothing knows; for `purpose` those that name the occasion."""
    named = [
        each for each in change.unknown[:4] if each.istitle() or not is_word(fold(each), language)
    ]
    unknown = change.purpose if purpose else named
    return say("unclear", language, words=" ".join(unknown)) if unknown else ""


def _recommend(intro: str, told_of: Mapping[ListedWine, str], closing: str) -> SommelierResponse:
    """Show wines, with what is told of each."""
    wines = [
        WineRecommendation(wine_id=wine.wine_id, name=wine.name, description=told)
        for wine, told in told_of.items()
    ]
    return SommelierResponse(
        response_type="recommendation", intro=intro, wines=wines, closing=closing
    )


def _last_words(state: State, change: Change) -> str:
    """What is left to say of wines that were shown before."""
    return _notes(state, change) or say("add_taste", state.language)


def _in_order(wines: list[ListedWine], order: str) -> list[ListedWine]:
    """Wines of several searches as `order` wants them; those without a price last."""
    if not order:
        return wines
    sign = 1 if order == "cheapest" else -1
    return sorted(wines, key=lambda wine: (wine.price is None, sign * (wine.price or 0)))


def _missed(wine: ListedWine, state: State) -> list[str]:
    """What was asked for and this wine is not; what only the house prefers is no miss."""
    # No list tells what food suits a wine without alcohol.
    is_paired = state.wishes.dishes and wine.style != Style.ALCOHOL_FREE
    said = set(state.wishes.said) | ({"foods"} if is_paired else set())
    missed = [slot for slot in _SLOTS if slot in wine.misses and slot in said]
    limit, code = state.wishes.max_price, state.wishes.currency or Currency.EUR
    is_dear = limit is not None and wine.currency == code and (wine.price or 0) > limit
    return [*missed, "max_price"] if is_dear else missed


def _exact_first(wines: Sequence[ListedWine], state: State) -> list[ListedWine]:
    """The wines that miss least; of a grape or a place that was named only those, if any are."""
    misses = {
        wine.wine_id: [each for each in _missed(wine, state) if each != "max_price"]
        for wine in wines
    }
    least = min(map(len, misses.values()))
    exact = [wine for wine in wines if len(misses[wine.wine_id]) == least]
    near = [wine for wine in wines if len(misses[wine.wine_id]) == least + 1]
    if not least and exact:
        near = [wine for wine in near if not _NAMED_SLOTS & set(misses[wine.wine_id])]
    found = exact if len(exact) >= min(2, state.count or ENOUGH) else [*exact, *near]
    return _unoaked_first(moderate_first(found, state), state)


def _unoaked_first(wines: list[ListedWine], state: State) -> list[ListedWine]:
    """The wines, where wood is not wanted, with those last that tell of it."""
    if not any(name == "text" and value.startswith("oak") for name, value in state.denied):
        return wines
    return sorted(
        wines, key=lambda wine: bool(grammar("oaked") & {*words(f"{wine.name} {wine.notes}")})
    )


def _intro(
    state: State,
    change: Change,
    found: Sequence[Found],
    shown: Sequence[ListedWine],
    *,
    is_named: bool,
) -> str:
    language, wishes = state.language, state.wishes
    if state.care:
        return say(f"care_{'health' if state.care in GRAVE else state.care}", language)
    lost = unsearched(state, change, found)
    if stance := _stance(state, change, shown):
        return _with_misses(stance, state, shown, lost)
    if found[-1].tool == SIMILAR:
        return _with_misses(say("similar", language), state, shown, lost)
    if wishes.order:
        limits = wishes.said - {"order"} or state.denied
        asked = f" ({criteria(state)})" if limits else ""
        told = say(f"in_order_{wishes.order}", language, criteria=asked)
        return _with_misses(told, state, shown, lost)
    if not wishes.said - {"text", "name"} and not state.denied and not state.allergens:
        return say("found_any", language) if not wishes.name or is_named else ""
    told = f"{_lead(state, change, shown)} {why_it_suits(state)}".strip()
    return _with_misses("", state, shown, lost) or told


def _lead(state: State, change: Change, shown: Sequence[ListedWine]) -> str:
    """What the wines are for, as a message says it first or later in a talk."""
    language = state.language
    these = say("these_one" if len(shown) == 1 else "these_many", language)
    dish = dishes_in_words(state.wishes, language)
    asked = criteria(state)
    if not asked:
        return say("found_any", language)
    if state.context == "wines" and not change.wishes.dishes:
        return say("found_then", language, criteria=asked, these=these)
    if not dish:
        return say("found", language, criteria=asked[0].upper() + asked[1:], these=these)
    rest = criteria(replace(state, wishes=replace(state.wishes, named_dishes=())))
    told = f" ({rest})" if rest else ""
    return say("found_dish", language, dish=dish, these=these, rest=told)


def _with_misses(
    intro: str, state: State, shown: Sequence[ListedWine], lost: Sequence[str] = ()
) -> str:
    """An intro that owns up to what was not searched for, and to what no wine shown is of it."""
    common = list(dict.fromkeys((*lost, *_missed_by_all(shown, state))))
    if not common:
        return intro
    if common == ["foods"] and not intro:
        return say(
            "relaxed_dish", state.language, dish=dishes_in_words(state.wishes, state.language)
        )
    names = either([_slot_in_words(slot, state) for slot in common], state.language)
    owned = say("relaxed", state.language, limits=names)
    if intro.endswith("."):
        return f"{intro} {owned}"
    return f"{owned} {intro or say('closest', state.language)}"


def _missed_by_all(shown: Sequence[ListedWine], state: State) -> list[str]:
    missed = [_missed(wine, state) for wine in shown] or [[]]
    return [slot for slot in (*_SLOTS, "max_price") if all(slot in each for each in missed)]


def _slot_in_words(slot: str, state: State) -> str:
    """A slot as the person filled it; its name where that says less."""
    wishes, language = state.wishes, state.language
    if slot == "grapes":
        return either(wishes.grapes[:2], language)
    if slot == "regions":
        return either(in_words("regions", (wishes.regions[0],), language), language)
    if slot == "countries":
        return country_in_words(wishes.countries[0], language)
    if slot == "foods" and wishes.named_dishes:
        return dishes_in_words(wishes, language)
    if slot in _TASTES:
        own: dict[str, Any] = {slot: getattr(wishes, slot)}
        return either(tastes_in_words(replace(NO_WISHES, **own), language), language)
    return _limit(slot, language)


def _limit(name: str, language: Language) -> str:
    """What a limit of a search is called."""
    return str(speech()[language]["limits"].get(name, name))


def _described(wine: ListedWine, state: State, shown: Sequence[ListedWine]) -> str:
    language, told_of_all = state.language, _missed_by_all(shown, state)
    missed = [
        _slot_in_words(slot, state) for slot in _missed(wine, state) if slot not in told_of_all
    ]
    told = describe(wine, _foods_asked(state), language)
    note = say("misses", language, limits=either(missed, language)) if missed else ""
    return joined(told, note)


def _foods_asked(state: State) -> list[str]:
    return list(dict.fromkeys(food for dish in state.wishes.dishes for food in dish.foods))


def _refinement(state: State) -> str:
    """The one wish that would narrow the search most."""
    wishes = state.wishes
    if not wishes.dishes:
        return "add_food"
    if wishes.max_price is None and wishes.min_price is None:
        return "add_price"
    return "add_taste" if wishes.countries or wishes.regions or wishes.grapes else "add_place"


def _notes(state: State, change: Change) -> str:
    """What a guest should know besides: about labels, and money that cannot be converted."""
    language, foreign = state.language, change.numbers.foreign
    is_histamine = "histamine" in state.reacts
    return joined(
        say("unknown_currency", language, currency=foreign) if foreign else "",
        say("unknown_size", language) if change.has("litres") else "",
        say("histamine_note", language) if is_histamine else "",
        say("other_allergens", language) if change.elsewhere and not is_histamine else "",
        say("sulphites", language) if "sulphites" in change.allergens else "",
        say("check_label", language) if state.allergens and not change.elsewhere else "",
    )


def _nothing(
    state: State, change: Change, found: Sequence[Found], *, has_wines: bool
) -> SommelierResponse:
    """No wine passes: what stands in the way, and what else there would be."""
    language, wishes = state.language, state.wishes
    reasons = (
        ("care_none", state.care),
        ("cheapest", change.has("cue", "cheaper")),
        ("all_excluded", has_wines),
        ("all_shown", change.has("cue", "other") or change.has("refuse")),
        ("nothing_named", wishes.said <= {"name", "text"} and wishes.name),
    )
    if key := next((key for key, holds in reasons if holds), ""):
        return inform(say(key, language, name=wishes.name))
    intro = say("nothing", language, criteria=criteria(state))
    relax = next((each.relax for each in reversed(found) if each.relax), {})
    ways = [
        (name, count)
        for name, count in relax.items()
        if name not in _PROTECTING and not name.startswith("without")
    ]
    ways.sort(key=lambda way: (way[0] not in _PRICES, -way[1]))
    notes = _notes(state, change)
    if not ways:
        return inform(f"{intro} {say('no_way', language)}", notes)
    told = (
        say(
            key,
            language,
            limit=_limit(limit, language),
            count=str(count),
            are="is" if count == 1 else "are",
        )
        for key, (limit, count) in zip(("without", "and_without"), ways, strict=False)
    )
    return inform(f"{intro} {'; '.join(told)}.", notes or say("look_again", language))


def _foods(state: State, wines: Sequence[ListedWine]) -> SommelierResponse:
    """What to eat with a kind of wine: the foods that its wines suit most."""
    language = state.language
    counted: dict[str, int] = {}
    for wine in wines:
        for food in wine.foods:
            counted[food] = counted.get(food, 0) + 1
    foods = sorted(counted, key=lambda food: -counted[food])[:_MOST_FOODS]
    if not foods:
        return inform(say("knowledge", language))
    named = both(foods_in_words(foods, language), language)
    return inform(say("is_foods", language, fact=named), say("knowledge_closing", language))


def _about(state: State, change: Change, found: Sequence[Found]) -> SommelierResponse:
    """More about wines that were shown; to some guests nothing with alcohol."""
    language = state.language
    shown = found[0].wines
    wines = [wine for wine in shown if not state.care or is_allowed(wine, state)]
    if not wines:
        return inform(say("care_none" if shown else "gone", language))
    fitting = [wine for wine in wines if not change.wishes.dishes or suits(wine, change)]
    if state.act == "pick" and fitting:
        dishes, named_dishes = change.wishes.dishes, change.wishes.named_dishes
        wishes = replace(state.wishes, dishes=dishes, named_dishes=named_dishes)
        return _picked(replace(state, wishes=wishes) if dishes else state, change, fitting)
    if change.wishes.dishes and not (traits(change) or change.has("trait", "total")):
        return _goes_with(state, change, wines, found[1:])
    if told := verdict(wines, state, change):
        return inform(told, "" if change.has("litres") else _notes(state, change))
    told_of = {each: in_detail(each, _foods_asked(state), language) for each in wines}
    return _recommend(say("details", language), told_of, _last_words(state, change))


def _picked(state: State, change: Change, wines: Sequence[ListedWine]) -> SommelierResponse:
    """The one of several that the house would open first, and why."""
    language, foods = state.language, {*_foods_asked(state)}
    best = max(wines, key=lambda wine: len(foods & {*wine.foods}))
    if change.has("cue", "refine") or not foods:
        bodies = ("", *SCALES["body"])
        best = min(wines, key=lambda wine: (wine.tannin == "high", bodies.index(wine.body)))
    told = suiting(best, _foods_asked(state), language)
    first = say("favourite", language, name=best.name, told=told)
    told_of = {best: describe(best, _foods_asked(state), language)}
    intro = joined(first, why_it_suits(state))
    return _recommend(intro, told_of, _last_words(state, change))


def _goes_with(
    state: State, change: Change, wines: Sequence[ListedWine], found: Sequence[Found]
) -> SommelierResponse:
    """Whether the wines shown suit a dish; if none does, others that do."""
    language = state.language
    dish = both(change.wishes.named_dishes, language)
    fitting = [wine for wine in wines if suits(wine, change)]
    others = offered([wine for each in found for wine in each.wines], state)[:ENOUGH]
    if fitting and len(wines) > 1:
        names = both((wine.name for wine in fitting), language)
        intro = say("fits_some", language, names=names, dish=dish)
    else:
        intro = say("fits_dish" if fitting else "fits_not", language, foods=dish)
    foods = [food for dish in change.wishes.dishes for food in dish.foods]
    told_of = {each: describe(each, foods, language) for each in fitting or others or wines}
    return _recommend(intro, told_of, _last_words(state, change))
