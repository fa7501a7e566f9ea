"""The very answer to what is asked of wines that were shown: "is it vegan?", "which is lightest?".

Only what the catalogue says, and where it is silent, that is the answer. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from agent.house_sommelier.data import SCALE_OF, SCALES, Pairing, aromas, load, profiles
from agent.house_sommelier.plan import is_composed, total_of
from agent.house_sommelier.reading import Change
from agent.house_sommelier.searching import pairings_of
from agent.house_sommelier.state import State
from agent.house_sommelier.wines import ListedWine
from agent.house_sommelier.wording import (
    alcohol,
    body_in_words,
    both,
    criteria,
    foods_in_words,
    in_words,
    joined,
    origin,
    price,
    say,
    say_if,
    sentence,
    suiting,
    sweetness_in_words,
)
from agent.sommelier.wine import Currency, Style, in_euros, window_of_wine
from agent.text import Language, fold, pattern, words

_WOOD: Final = frozenset(
    "oak oaked oaky barrel barrels barrique barriques cask casks vanilla toast toasty toasted wood "
    "wooden cedar".split()
)
"""What the notes of the catalogue, which are English, say of a wine that saw wood."""
_ANIMAL: Final = ("egg", "milk", "fish")
_AGES: Final = {"none": 1, "young": 4}
"""Until how many years after its vintage a wine is one of which kind."""
_BUILT_TO_AGE: Final = 5
"""From how many years on it is at its best that is built to age."""
_YEAR: Final = pattern(r"(?:19|20)[0-9]{2}\Z")
_ORGANIC: Final = pattern(r"\b(?:bio|organic|demeter)")


def verdict(wines: Sequence[ListedWine], state: State, change: Change) -> str:
    """The answer to what is asked of these wines; empty if nothing of that kind is."""
    is_of_all = change.kind == "price" and is_composed(state) and not state.pointed
    if change.has("trait", "total") or is_of_all:
        return total_of(wines, state, change)
    of_all = _end_of_scale(wines, change, state.language)
    if not of_all and change.has("ask", "compare") and len(wines) > 1:
        of_all = _compared(wines, state.language)
    if of_all or (change.has("ask", "why") and not traits(change)):
        return of_all or _reasons(wines, state)
    return _of_each(wines, change, state.language)


def _of_each(wines: Sequence[ListedWine], change: Change, language: Language) -> str:
    """What is asked of each wine, said once where all are alike; empty if nothing is known."""
    asked = traits(change)
    if asked == ["price"]:
        wines = sorted(wines, key=lambda wine: _value(wine, "price") or 0)
    told = {
        wine.name: " ".join(dict.fromkeys(_told(wine, each, change, language) for each in asked))
        for wine in wines
    }
    said = {text.strip() for text in told.values()}
    if len(said) == 1 and (len(told) > 1 or said == {""}):
        return said.pop()
    if len(told) == 1:
        return " ".join(text if name in text else f"{text} ({name})" for name, text in told.items())
    return "\n".join(text if name in text else f"{name}: {text}" for name, text in told.items())


def _reasons(wines: Sequence[ListedWine], state: State) -> str:
    """Why wines were shown: what was asked, what the dish wants, and what each of them is."""
    language = state.language
    kept = criteria(state)
    because = say("because", language, criteria=kept) if kept else ""
    foods = [food for dish in state.wishes.dishes for food in dish.foods]
    dish = state.wishes.dishes
    why = pairings_of(dish)[0][language] if dish else ""
    lines = (f"{wine.name}: {sentence(suiting(wine, foods, language))}" for wine in wines)
    return "\n".join((f"{because} {why}".strip(), *lines)).strip()


def traits(change: Change) -> list[str]:
    """What a message asks of a wine."""
    asked = [trait for trait in change.said("trait") if trait != "total"]
    if any(each.startswith("oak") for each in change.wishes.text):
        # "Does it taste of wood?"
        asked = [*dict.fromkeys("oak" if trait == "taste" else trait for trait in asked or ["oak"])]
    if len(asked) > 1 and "price" in asked:
        asked.remove("price")
    scales = [most.partition(":")[0] for most in change.said("most")]
    named = [scale for slot, scale in SCALE_OF.items() if slot in change.wishes.said]
    if named and not scales and {*asked} <= {*SCALE_OF.values()}:
        return named
    return list(dict.fromkeys([*asked, *scales]))


def _compared(wines: Sequence[ListedWine], language: Language) -> str:
    """How wines differ in body, tannin and acidity at most, and in place and price."""
    told: list[str] = []
    for scale in ("body", "tannin", "acidity"):
        known = [(value, wine) for wine in wines if (value := _value(wine, scale)) is not None]
        known.sort(key=lambda each: each[0])
        if len(known) == len(wines) and int(known[0][0]) < int(known[-1][0]):
            names = {"first": known[-1][1].name, "second": known[0][1].name}
            told.append(say(f"compare_{scale}_high", language, **names))
    facts = (f"{wine.name}: {origin(wine, language)}, {price(wine)}" for wine in wines)
    return " ".join((*told, *(f"{fact}." for fact in facts)))


def _end_of_scale(wines: Sequence[ListedWine], change: Change, language: Language) -> str:
    """Which of several wines is the lightest, the cheapest, or has the least alcohol."""
    order = {"cheapest": "price:low", "dearest": "price:high"}.get(change.wishes.order)
    ends = (*change.said("most"), *filter(None, (order,)))
    if not ends:
        return ""
    scale, _, end = ends[0].partition(":")
    values = [(value, wine) for wine in wines if (value := _value(wine, scale)) is not None]
    if not values:
        return "" if scale == "price" else say("cannot_tell", language)
    best, chosen = (max if end == "high" else min)(values, key=lambda each: each[0])
    fact = _fact(chosen, scale, language)
    if len(values) > 1 and all(value == best for value, _ in values):
        told = say("favourite", language, name=chosen.name, told=suiting(chosen, (), language))
        return f"{say('are_alike', language, fact=fact)} {told}"
    told = say(
        f"is_{'renowned' if scale == 'renown' else 'most'}", language, name=chosen.name, fact=fact
    )
    rest = [f"{wine.name} ({_fact(wine, scale, language)})" for _, wine in values if wine != chosen]
    others = say("the_others", language, others=both(rest, language)) if rest else ""
    return f"{told}\n\n{others}".strip()


def _value(wine: ListedWine, scale: str) -> float | None:
    """Where a wine stands on a scale; alcohol decides between wines of one body."""
    if scale == "abv":
        return wine.abv
    if scale == "vintage":
        year = _YEAR.search(wine.name)
        return float(year[0]) if year else None
    if scale == "age":
        return _staying_power(wine)
    if scale in ("price", "renown"):
        is_known = wine.price is not None and wine.currency in tuple(Currency)
        return in_euros(wine.price or 0, Currency(wine.currency)) if is_known else None
    steps = SCALES.get(scale, ())
    found = getattr(wine, scale, "")
    if found not in steps:
        return None
    return steps.index(found) + ((wine.abv or 0) / 100 if scale == "body" else 0)


def _staying_power(wine: ListedWine) -> float:
    """How well a wine is built to age: by tannin, acidity, body, sweetness."""
    told = [(scale, getattr(wine, scale)) for scale in ("tannin", "acidity", "body")]
    steps = sum(SCALES[scale].index(step) for scale, step in told if step in SCALES[scale])
    return steps + 2 * (wine.sweetness in ("sweet", "luscious")) + (wine.price or 0) / 1000


def _fact(wine: ListedWine, scale: str, language: Language) -> str:
    """What makes a wine the lightest or the cheapest, in words."""
    if scale in ("tannin", "acidity"):
        return _level(scale, wine, language)
    facts = {
        "abv": (alcohol(wine),),
        "price": (price(wine),),
        "renown": (origin(wine, language), price(wine)),
        "sweetness": (sweetness_in_words(wine.sweetness, language),),
        "body": (body_in_words(wine.body, language), alcohol(wine)),
        "vintage": tuple(year[0] for year in _YEAR.finditer(wine.name)),
        "age": (body_in_words(wine.body, language), _level("tannin", wine, language)),
    }
    return joined(*facts.get(scale, ()), by=", ")


def _level(scale: str, wine: ListedWine, language: Language) -> str:
    level = getattr(wine, scale)
    return say(f"level_{scale}_{level}", language) if level in SCALES[scale] else ""


def suits(wine: ListedWine, change: Change) -> bool:
    """Whether the catalogue names a wine for a dish, or it is the kind that the dish wants."""
    return any(
        set(dish.foods) & set(wine.foods) or _is_kind_for(wine, pairings_of([dish])[0])
        for dish in change.wishes.dishes
    )


def _is_kind_for(wine: ListedWine, wanted: Pairing) -> bool:
    near = not wanted.bodies or wine.body in wanted.bodies
    mild = not wanted.tannins or not wine.tannin or wine.tannin in wanted.tannins
    sweet = not wanted.sweetness or not wine.sweetness or wine.sweetness in wanted.sweetness
    return wine.style in wanted.styles and near and mild and sweet


def _told(wine: ListedWine, trait: str, change: Change, language: Language) -> str:
    """What is known of a trait, after a yes or no where it is asked whether it is so."""
    told = told_of(wine, trait, change, language)
    slot = next((slot for slot, scale in SCALE_OF.items() if scale == trait), "")
    asked, level = getattr(change.wishes, slot, ()), getattr(wine, trait, "")
    if not (told and asked and level) or change.has("most"):
        return told
    # "Too heavy?" is read as a wish for lighter ones.
    steps = SCALES[trait]
    end = {each >= len(steps) / 2 for each in map(steps.index, asked)}
    # Who asks whether it is sweet asks for the upper half of what there is.
    in_half = len(end) == 1 and (steps.index(level) >= len(steps) / 2) in end
    is_so = level in asked or (in_half and trait in ("sweetness", "body"))
    is_so = is_so != change.has("cue", "refine")
    return f"{say('yes' if is_so else 'no', language)} {told}"


def told_of(wine: ListedWine, trait: str, change: Change, language: Language) -> str:
    """What is known of a trait of a wine, or that it is not; empty if nothing can be said."""
    allergens = dict.fromkeys((*change.allergens, *change.said("allergen")))
    if trait == "allergens" and allergens:
        return " ".join(_holds(wine, each, language) for each in allergens)
    if change.elsewhere and trait == "allergens":
        return say("other_allergens", language)
    if trait == "vegan":
        return _vegan(wine, language)
    if trait == "oak":
        return say(_oak(wine), language)
    return _known(wine, language).get(trait, "") or say_if(f"unknown_{trait}", language)


def _holds(wine: ListedWine, allergen: str, language: Language) -> str:
    key = "holds" if allergen in wine.allergens else "holds_not"
    return say(key, language, allergens=_allergens([allergen], language))


def _vegan(wine: ListedWine, language: Language) -> str:
    animal = [each for each in _ANIMAL if each in wine.allergens]
    if not animal:
        return say("unknown_vegan", language)
    return say("not_vegan", language, allergens=_allergens(animal, language))


def _oak(wine: ListedWine) -> str:
    """Whether a wine saw wood, as far as its note tells."""
    said = {*words(fold(wine.notes))}
    if said & {"unoaked", "steel"}:
        return "no_oak"
    return "has_oak" if said & _WOOD else "unknown_oak"


def _allergens(names: Iterable[str], language: Language) -> str:
    return both((in_words("allergen", (name,), language)[0] for name in names), language)


def _known(wine: ListedWine, language: Language) -> Mapping[str, str]:
    """What the catalogue says of each trait; empty where it is silent."""
    year = _YEAR.search(wine.name)
    facts = {
        "abv": "" if wine.abv is None else f"{wine.abv:g}",
        "price": price(wine),
        "grapes": both(wine.grapes, language),
        "organic": "yes" if _ORGANIC.search(fold(wine.notes)) else "",
        "vintage": year[0] if year else "",
        "origin": origin(wine, language),
        "allergens": _allergens(wine.allergens, language),
        "foods": both(foods_in_words(wine.foods, language), language),
        "sweetness": sweetness_in_words(wine.sweetness, language),
        "body": body_in_words(wine.body, language),
    }
    told = {trait: say(f"is_{trait}", language, fact=fact) for trait, fact in facts.items() if fact}
    return {
        **told,
        **_serving(wine, language),
        "stock": say("is_stock" if wine.in_stock else "sold_out", language),
        "storing": say("store_wine", language),
        "tannin": sentence(_level("tannin", wine, language)),
        "acidity": sentence(_level("acidity", wine, language)),
        "taste": _scents(wine, language),
    }


def _scents(wine: ListedWine, language: Language) -> str:
    """What its first grape smells of; the tasting note says the rest."""
    profile = profiles().get(wine.grapes[0]) if wine.grapes else None
    if profile is None or wine.style not in ("red", "white", "rose"):
        return ""
    scents = both((aromas()[note][language] for note in profile.notes), language)
    return say("tastes_of", language, grape=profile.name, scents=scents)


def _serving(wine: ListedWine, language: Language) -> Mapping[str, str]:
    """How to serve and to keep a wine, by the first line of each list that it meets."""
    told = {
        trait: say(str(first["say"]), language, name=wine.name)
        for trait, lines in load("serving").items()
        for first in [next(line for line in lines if _meets(wine, line))]
    }
    return {**told, "ageing": _ageing(wine, language)}


def _ageing(wine: ListedWine, language: Language) -> str:
    """How long a wine ages, and in which years it is at its best if its vintage is known."""
    style = Style(wine.style) if wine.style in tuple(Style) else Style.RED
    first, last = window_of_wine(style, wine.name, wine.region, wine.appellation, *wine.grapes)
    kind = next((name for name, most in _AGES.items() if last <= most), "mid")
    key = "long" if first >= _BUILT_TO_AGE else kind
    told = say(f"age_{key}", language, name=wine.name, first=str(first), last=str(last))
    year = _YEAR.search(wine.name)
    if year is None or key == "none":
        return told
    begins, ends = (str(int(year[0]) + each) for each in (first, last))
    return joined(told, say("age_years", language, vintage=year[0], first=begins, last=ends))


def _meets(wine: ListedWine, line: Mapping[str, Sequence[str]]) -> bool:
    called = line.get("called")
    told = {name: values for name, values in line.items() if name not in ("say", "called")}
    is_called = not called or bool(set(called) & {*words(wine.name)})
    return is_called and all(getattr(wine, name) in values for name, values in told.items())
