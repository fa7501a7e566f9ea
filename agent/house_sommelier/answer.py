"""From what the tools returned to a `SommelierResponse`: only its wines, only their facts. Pure."""

from collections.abc import Sequence
from typing import Final

from agent.house_sommelier.data import speech
from agent.house_sommelier.knowledge import inform, why_it_suits
from agent.house_sommelier.lexicon import house_words, tokens
from agent.house_sommelier.reading import Change
from agent.house_sommelier.results import Found, ListedWine, is_allowed, offered
from agent.house_sommelier.searching import ENOUGH, SIMILAR, served
from agent.house_sommelier.state import GRAVE, State
from agent.house_sommelier.verdicts import traits, verdict
from agent.house_sommelier.wording import (
    country_in_words,
    criteria,
    describe,
    either,
    in_detail,
    in_words,
    say,
    tastes_in_words,
)
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.text import Language

_PRICES: Final = frozenset({"min_price", "max_price"})
_PROTECTING: Final = frozenset({"not_ids", "in_stock_only"})
_SLOTS: Final = tuple("grapes regions countries bodies tannins acidities foods min_abv".split())
"""What a wine may miss of what was asked, in the order in which it is owned up to."""


def answer_wines(state: State, change: Change, found: Sequence[Found]) -> SommelierResponse:
    """The answer to a message that wanted wines, from all the searches of its turn."""
    wines = {
        wine.wine_id: wine for result in found if _counts(result, found) for wine in result.wines
    }
    if state.kind == "about":
        return _about(state, change, list(wines.values()))
    fit = _in_order(offered(list(wines.values()), state), state.wishes.order)
    if not fit:
        return _nothing(state, change, found, has_wines=bool(wines))
    named, in_full = _named(fit, state.wishes.name)
    if state.wishes.name and not named and state.wishes.said <= {"name"}:
        return inform(say("nothing_named", state.language, name=state.wishes.name))
    best = _exact_first(named or fit, state)
    shown = served(best, state, change)
    unseen = "" if in_full else say("not_named", state.language, name=state.wishes.name) + " "
    intro = unseen + _intro(state, change, found, shown, is_named=bool(named) and in_full)
    is_plain = bool(state.care or change.wishes.dishes)
    unclear = "" if is_plain else not_understood(change, state.language, purpose=True)
    return SommelierResponse(
        response_type="recommendation",
        intro=f"{unclear} {intro}".strip(),
        wines=[_recommended(wine, _described(wine, state)) for wine in shown],
        closing=_notes(state, change) or say(_refinement(state), state.language),
    )


def not_understood(change: Change, language: Language, *, purpose: bool = False) -> str:
    """A sentence about the words that nothing knows; for `purpose` those that name the occasion."""
    unknown = change.purpose if purpose else change.unknown[:4]
    return say("unclear", language, words=" ".join(unknown)) if unknown else ""


def _counts(result: Found, found: Sequence[Found]) -> bool:
    """Whether the wines of a result are offered: what was only looked at is not."""
    return result.tool != "get_wine" or len(found) == 1


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
    said = set(state.wishes.said)
    said |= {"foods"} if state.wishes.dishes else set()
    return [slot for slot in _SLOTS if slot in wine.misses and slot in said]


def _exact_first(wines: Sequence[ListedWine], state: State) -> list[ListedWine]:
    """The wines that miss least; of several that miss nothing, only those."""
    misses = {wine.wine_id: len(_missed(wine, state)) for wine in wines}
    least = min(misses.values())
    wanted = state.count or ENOUGH
    exact = [wine for wine in wines if misses[wine.wine_id] == least]
    near = [wine for wine in wines if misses[wine.wine_id] == least + 1]
    return exact if len(exact) >= min(2, wanted) else [*exact, *near]


def _named(wines: Sequence[ListedWine], name: str) -> tuple[Sequence[ListedWine], bool]:
    """The wines whose label or place holds most words of `name`, and whether it holds all.

    Less than half of the telling words is another wine: "2019" and "Château" stand on many labels.
    Without a name, no wines.
    """
    wanted = _stems(name)
    if not wanted:
        return [], True
    telling = frozenset(word for word in wanted - house_words() if not word.isdecimal()) or wanted
    labels = [_stems(_label_words(wine)) for wine in wines]
    most = max((len(telling & label) for label in labels), default=0)
    if most * 2 < len(telling):
        return [], False
    hits = [(len(telling & label) == most) * len(wanted & label) for label in labels]
    best = max(hits, default=0)
    kept = [wine for wine, hit in zip(wines, hits, strict=True) if hit == best]
    return kept, best == len(wanted)


def _label_words(wine: ListedWine) -> str:
    return " ".join((wine.name, wine.country, wine.region, wine.appellation, *wine.grapes))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.is_word)


def _intro(
    state: State,
    change: Change,
    found: Sequence[Found],
    shown: Sequence[ListedWine],
    *,
    is_named: bool,
) -> str:
    language = state.language
    if state.care:
        return say(f"care_{'health' if state.care in GRAVE else state.care}", language)
    if found[-1].tool == SIMILAR:
        return _with_misses(say("similar", language), state, shown)
    wishes = state.wishes
    if wishes.order:
        key = "in_order_cheapest" if wishes.order == "cheapest" else "in_order_dearest"
        limits = wishes.said - {"order"} or state.denied
        return say(key, language, criteria=f" ({criteria(state)})" if limits else "")
    if not wishes.said - {"text", "name"} and not state.denied and not state.allergens:
        return say("found_any", language) if not wishes.name or is_named else ""
    asked = criteria(state)
    first = say("found" if asked else "found_any", language, criteria=asked)
    return " ".join(filter(None, (why_it_suits(state), _with_misses(first, state, shown))))


def _with_misses(intro: str, state: State, shown: Sequence[ListedWine]) -> str:
    """An intro that owns up to what no wine shown is of all that was asked."""
    missed = [_missed(wine, state) for wine in shown]
    common = [slot for slot in _SLOTS if missed and all(slot in each for each in missed)]
    if not common:
        return intro
    names = [_slot_in_words(slot, state) for slot in common]
    owned = say("relaxed", state.language, limits=either(names, state.language))
    return (
        f"{owned} {intro}"
        if state.kind != "search"
        else f"{owned} {say('closest', state.language)}"
    )


def _slot_in_words(slot: str, state: State) -> str:
    """A slot as the person filled it; its name where that says less."""
    wishes, language = state.wishes, state.language
    if slot == "grapes":
        return either(wishes.grapes[:2], language)
    if slot == "regions":
        return either(in_words("regions", (wishes.regions[0],), language), language)
    if slot == "countries":
        return country_in_words(wishes.countries[0], language)
    if slot == "foods":
        return either(wishes.named_dishes, language) or say_limit("foods", language)
    return say_limit(slot, language)


def say_limit(name: str, language: Language) -> str:
    """What a limit of a search is called."""
    return str(speech()[language]["limits"].get(name, name))


def _described(wine: ListedWine, state: State) -> str:
    foods = list(dict.fromkeys(food for dish in state.wishes.dishes for food in dish.foods))
    missed = [_slot_in_words(slot, state) for slot in _missed(wine, state)]
    told = describe(wine, foods, state.language)
    note = say("misses", state.language, limits=either(missed, state.language)) if missed else ""
    return f"{told} {note}".strip()


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
    notes = [
        say("unknown_currency", language, currency=foreign) if foreign else "",
        say("histamine_note", language) if state.is_histamine else "",
        say("other_allergens", language) if change.elsewhere and not state.is_histamine else "",
        say("check_label", language) if state.allergens and not change.elsewhere else "",
    ]
    return " ".join(filter(None, notes))


def _nothing(
    state: State, change: Change, found: Sequence[Found], *, has_wines: bool
) -> SommelierResponse:
    """No wine passes: what stands in the way, and what else there would be."""
    language, wishes = state.language, state.wishes
    by_name = wishes.said <= {"name", "text"} and wishes.name
    reasons = (
        ("care_none", state.care),
        ("cheapest", change.has("cue", "cheaper")),
        ("all_excluded", has_wines),
        ("all_shown", change.has("cue", "other") or change.has("refuse")),
        ("nothing_named", by_name),
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
    return inform(f"{intro} {_ways_out(ways, language)}.", notes or say("look_again", language))


def _ways_out(ways: Sequence[tuple[str, int]], language: Language) -> str:
    keys = ("without", "and_without")
    told = (
        say(
            key,
            language,
            limit=say_limit(limit, language),
            count=str(count),
            are="is" if count == 1 else "are",
        )
        for key, (limit, count) in zip(keys, ways, strict=False)
    )
    return "; ".join(told)


def _about(state: State, change: Change, wines: Sequence[ListedWine]) -> SommelierResponse:
    """More about wines that were shown; to some guests nothing with alcohol."""
    language = state.language
    if not wines:
        return inform(say("gone", language))
    sober = [wine for wine in wines if not state.care or is_allowed(wine, state)]
    if not sober:
        return inform(say("care_none", language))
    asked = verdict(sober, state, change)
    if change.has("ask", "best") and not change.has("most") and not change.wishes.order:
        asked = say("favourite", language)
    single = len(sober) == 1
    told = {verdict([wine], state, change) for wine in sober} if traits(change) else set()
    shared = next(iter(told), "") if len(told) == 1 and not single else ""
    return SommelierResponse(
        response_type="recommendation",
        intro=asked or shared or _reason(sober, state, change) or say("details", language),
        wines=[
            _recommended(wine, _told(wine, state, change, single=single or bool(shared)))
            for wine in sober[: max(ENOUGH, len(state.choice))]
        ],
        closing=_notes(state, change) or say("add_taste", language),
    )


def _reason(wines: Sequence[ListedWine], state: State, change: Change) -> str:
    """Why wines were shown: what was asked and they are, and what the dish wants."""
    if not change.has("ask", "why"):
        return ""
    why, asked = why_it_suits(state), tastes_in_words(state.wishes, state.language)
    kept = criteria(state) if state.wishes.said else ""
    because = say("because", state.language, criteria=kept) if kept or asked else ""
    return " ".join(filter(None, (because, why)))


def _told(wine: ListedWine, state: State, change: Change, *, single: bool) -> str:
    foods = list(dict.fromkeys(food for dish in state.wishes.dishes for food in dish.foods))
    first = "" if single or not traits(change) else verdict([wine], state, change)
    is_short = not single and bool(change.said("most"))
    told = (
        describe(wine, foods, state.language)
        if is_short
        else in_detail(wine, foods, state.language)
    )
    return " ".join(filter(None, (first, told)))
