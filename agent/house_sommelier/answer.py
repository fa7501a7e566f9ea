"""From what the tools returned to a `SommelierResponse`: only its wines, only their facts. Pure."""

from collections.abc import Sequence
from typing import Final

from agent.house_sommelier.data import speech
from agent.house_sommelier.knowledge import bottles_for, inform, sympathy, why_it_suits
from agent.house_sommelier.reading import Change
from agent.house_sommelier.results import Found, ListedWine, is_allowed, named, offered
from agent.house_sommelier.searching import DETAILS, ENOUGH, SIMILAR, is_by_course, served
from agent.house_sommelier.state import GRAVE, State
from agent.house_sommelier.verdicts import suits, traits, verdict
from agent.house_sommelier.wording import (
    both,
    country_in_words,
    criteria,
    describe,
    either,
    foods_in_words,
    in_detail,
    in_words,
    portrait,
    say,
)
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.text import Language

_PRICES: Final = frozenset({"min_price", "max_price"})
_PROTECTING: Final = frozenset({"not_ids", "in_stock_only"})
_SLOTS: Final = tuple("grapes regions countries bodies tannins acidities foods min_abv".split())
"""What a wine may miss of what was asked, in the order in which it is owned up to."""
_NAMED_SLOTS: Final = frozenset({"grapes", "regions", "countries"})
_MOST_FOODS: Final = 5


def answer_wines(state: State, change: Change, found: Sequence[Found]) -> SommelierResponse:
    """The answer to a message that wanted wines, from all the searches of its turn."""
    if state.act in ("about", "pick"):
        return _about(state, change, found)
    searched = [result for result in found if result.tool != DETAILS or len(found) == 1]
    wines = {wine.wine_id: wine for result in searched for wine in result.wines}
    if state.act == "foods":
        return _foods(state, list(wines.values()))
    fit = _in_order(offered(list(wines.values()), state), state.wishes.order)
    if not fit:
        return _nothing(state, change, found, has_wines=bool(wines))
    called, in_full = named(fit, state.wishes.name)
    if state.wishes.name and not called and state.wishes.said <= {"name"}:
        return inform(say("nothing_named", state.language, name=state.wishes.name))
    shown = served(_exact_first(called or fit, state), state, change)
    is_seen = in_full or bool(change.wishes.dishes or not change.wishes.name)
    unseen = "" if is_seen else say("not_named", state.language, name=state.wishes.name)
    told = _intro(state, change, found, shown, is_named=bool(called) and in_full)
    intro = " ".join(filter(None, (sympathy(change, state.language), unseen, told)))
    is_plain = bool(state.care or change.wishes.said - {"name", "text"})
    unclear = "" if is_plain else not_understood(change, state.language, purpose=True)
    return SommelierResponse(
        response_type="recommendation",
        intro=f"{unclear} {intro}".strip(),
        wines=[_recommended(wine, _described(wine, state, at)) for at, wine in enumerate(shown)],
        closing=_closing(state, change),
    )


def _closing(state: State, change: Change) -> str:
    """What is left to say: how many bottles a party needs, what labels hide, what would help."""
    if change.numbers.guests is not None and change.numbers.has_price:
        return bottles_for(state, change)
    return _notes(state, change) or say(_refinement(state), state.language)


def not_understood(change: Change, language: Language, *, purpose: bool = False) -> str:
    """A sentence about the words that nothing knows; for `purpose` those that name the occasion."""
    unknown = change.purpose if purpose else change.unknown[:4]
    return say("unclear", language, words=" ".join(unknown)) if unknown else ""


def _recommended(wine: ListedWine, description: str) -> WineRecommendation:
    return WineRecommendation(wine_id=wine.wine_id, name=wine.name, description=description)


def _in_order(wines: list[ListedWine], order: str) -> list[ListedWine]:
    """Wines of several searches as `order` wants them; those without a price last."""
    if not order:
        return wines
    sign = 1 if order == "cheapest" else -1
    return sorted(wines, key=lambda wine: (wine.price is None, sign * (wine.price or 0)))


def _missed(wine: ListedWine, state: State) -> list[str]:
    """What was asked for and this wine is not; what only the house prefers is no miss."""
    said = set(state.wishes.said) | ({"foods"} if state.wishes.dishes else set())
    return [slot for slot in _SLOTS if slot in wine.misses and slot in said]


def _exact_first(wines: Sequence[ListedWine], state: State) -> list[ListedWine]:
    """The wines that miss least; of a grape or a place that was named only those, if any are."""
    misses = {wine.wine_id: _missed(wine, state) for wine in wines}
    least = min(map(len, misses.values()))
    exact = [wine for wine in wines if len(misses[wine.wine_id]) == least]
    near = [wine for wine in wines if len(misses[wine.wine_id]) == least + 1]
    if not least and exact:
        near = [wine for wine in near if not _NAMED_SLOTS & set(misses[wine.wine_id])]
    return exact if len(exact) >= min(2, state.count or ENOUGH) else [*exact, *near]


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
    if found[-1].tool == SIMILAR:
        return _with_misses(say("similar", language), state, shown)
    if wishes.order:
        limits = wishes.said - {"order"} or state.denied
        asked = f" ({criteria(state)})" if limits else ""
        return say(f"in_order_{wishes.order}", language, criteria=asked)
    if not wishes.said - {"text", "name"} and not state.denied and not state.allergens:
        return say("found_any", language) if not wishes.name or is_named else ""
    asked = criteria(state)
    first = say("found" if asked else "found_any", language, criteria=asked)
    why = "" if is_by_course(state) else why_it_suits(state)
    return " ".join(filter(None, (why, _with_misses(first, state, shown))))


def _with_misses(intro: str, state: State, shown: Sequence[ListedWine]) -> str:
    """An intro that owns up to what no wine shown is of all that was asked."""
    missed = [_missed(wine, state) for wine in shown]
    common = [slot for slot in _SLOTS if missed and all(slot in each for each in missed)]
    if not common:
        return intro
    names = [_slot_in_words(slot, state) for slot in common]
    owned = say("relaxed", state.language, limits=either(names, state.language))
    return f"{owned} {say('closest', state.language) if state.act == 'search' else intro}"


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
        return either(wishes.named_dishes, language)
    return _limit(slot, language)


def _limit(name: str, language: Language) -> str:
    """What a limit of a search is called."""
    return str(speech()[language]["limits"].get(name, name))


def _described(wine: ListedWine, state: State, at: int) -> str:
    language, wishes = state.language, state.wishes
    course = ""
    if is_by_course(state) and at < len(wishes.named_dishes):
        course = say("for_dish", language, dish=wishes.named_dishes[at])
    missed = [_slot_in_words(slot, state) for slot in _missed(wine, state)]
    told = describe(wine, _foods_asked(state), language)
    note = say("misses", language, limits=either(missed, language)) if missed else ""
    return " ".join(filter(None, (course, told, "" if course else note)))


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
    notes = [
        say("unknown_currency", language, currency=foreign) if foreign else "",
        say("histamine_note", language) if is_histamine else "",
        say("other_allergens", language) if change.elsewhere and not is_histamine else "",
        say("check_label", language) if state.allergens and not change.elsewhere else "",
    ]
    return " ".join(filter(None, notes))


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
    if state.act == "pick":
        return _picked(state, change, wines)
    if change.wishes.dishes and not traits(change):
        return _goes_with(state, change, wines, found[1:])
    if change.kind == "fits":
        return inform(say("unsure_dish", language))
    single = len(wines) == 1
    asked = verdict(wines, state, change)
    of_each = [] if change.has("trait", "total") else traits(change)
    told = {verdict([wine], state, change) for wine in wines} if of_each else set()
    shared = next(iter(told), "") if len(told) == 1 and not single else ""
    is_plain = single or bool(shared)
    return SommelierResponse(
        response_type="recommendation",
        intro=asked or shared or _reason(wines, state, change) or say("details", language),
        wines=[
            _recommended(wine, _told(wine, state, change, is_plain=is_plain))
            for wine in wines[: max(ENOUGH, len(state.choice))]
        ],
        closing=_notes(state, change) or say("add_taste", language),
    )


def _picked(state: State, change: Change, wines: Sequence[ListedWine]) -> SommelierResponse:
    """The one of several that the house would open first, and why."""
    language = state.language
    best = wines[0]
    if change.has("cue", "refine") or not state.wishes.dishes:
        best = min(wines, key=lambda wine: (wine.tannin == "high", wine.body in ("full", "")))
    why = why_it_suits(state) or say("because", language, criteria=portrait(best, language))
    return SommelierResponse(
        response_type="recommendation",
        intro=f"{say('favourite', language)} {why}",
        wines=[_recommended(best, describe(best, _foods_asked(state), language))],
        closing=_notes(state, change) or say("add_taste", language),
    )


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
    shown = fitting or others or list(wines)
    return SommelierResponse(
        response_type="recommendation",
        intro=intro,
        wines=[_recommended(wine, describe(wine, foods, language)) for wine in shown],
        closing=_notes(state, change) or say("add_taste", language),
    )


def _reason(wines: Sequence[ListedWine], state: State, change: Change) -> str:
    """Why wines were shown: what was asked and they are, and what the dish wants."""
    if not change.has("ask", "why") or traits(change):
        return ""
    is_one = len(wines) == 1 and not state.wishes.dishes
    kept = portrait(wines[0], state.language) if is_one else criteria(state)
    because = say("because", state.language, criteria=kept) if kept else ""
    return " ".join(filter(None, (because, why_it_suits(state))))


def _told(wine: ListedWine, state: State, change: Change, *, is_plain: bool) -> str:
    foods, language = _foods_asked(state), state.language
    is_sum = change.has("trait", "total")
    first = "" if is_plain or is_sum or not traits(change) else verdict([wine], state, change)
    is_short = not is_plain and bool(change.said("most"))
    told = describe(wine, foods, language) if is_short else in_detail(wine, foods, language)
    return " ".join(filter(None, (first, told)))
