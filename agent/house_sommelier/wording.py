"""Sentences, and wines and wishes in words, in six languages. Pure.

An answer names no amount that neither the person nor the catalogue did.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import dropwhile
from typing import Final

from agent.house_sommelier.data import dishes, grammar, load, speech
from agent.house_sommelier.lexicon import Meaning, names
from agent.house_sommelier.reading import Slot, Wishes
from agent.house_sommelier.state import State
from agent.house_sommelier.wines import ListedWine
from agent.sommelier.wine import Currency, Style, WineQuery, money
from agent.text import Language, fold

_GROUPED_BODIES: Final = (("light", "medium_light"), ("medium",), ("medium_full", "full"))
_HUES: Final = frozenset({"red", "white", "rose", "orange"})
_MOST_FOODS: Final = 3
LEAST_OF_A_PRESENT: Final = 0.55
"""What of the upper limit the lower one is where nobody told it: a present is not cheap."""
_ROUGHLY: Final = 0.6
"""What of the upper limit the lower one is where a price was told roughly."""
_NAMED: Final = ("countries", "grapes", "hue", "regions", "styles")


def say(key: str, language: Language, **values: str) -> str:
    """One sentence, filled in."""
    return str(speech()[language][key]).format(**values)


def say_if(key: str, language: Language) -> str:
    """A sentence without gaps; empty if there is none of that name."""
    return str(speech()[language].get(key, ""))


def both(words: Iterable[str], language: Language) -> str:
    """The words joined with "and"."""
    return _listed(words, say("and", language))


def either(words: Iterable[str], language: Language) -> str:
    """The words joined with "or"."""
    return _listed(words, say("or", language))


def _listed(words: Iterable[str], joint: str) -> str:
    *first, last = list(words) or [""]
    return f"{', '.join(first)} {joint} {last}" if first else last


def joined(*parts: str, by: str = " ") -> str:
    """The parts that say something, one after the other."""
    return by.join(filter(None, parts))


def sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    ended = text if text.endswith((".", "!", "?", ":", "”")) else f"{text}."
    return ended[0].upper() + ended[1:] if text else ""


def price(wine: ListedWine) -> str:
    """What a wine costs; empty where that is unknown."""
    known = wine.price is not None and wine.currency in tuple(Currency)
    return money(wine.price or 0, Currency(wine.currency)) if known else ""


def alcohol(wine: ListedWine) -> str:
    """How strong a wine is; empty where that is unknown."""
    return "" if wine.abv is None else f"{wine.abv:g} % vol"


@cache
def _food_names(language: Language) -> dict[str, str]:
    named: dict[str, str] = {}
    for dish, table in zip(dishes(), load("dishes")["dish"], strict=True):
        spoken = table.get(language)
        called = spoken if language == "de" and spoken else table.get("any", spoken)
        if len(dish.foods) == 1 and called:
            named.setdefault(dish.foods[0], called[0])
    return named


def foods_in_words(foods: Iterable[str], language: Language) -> list[str]:
    """What `language` calls foods of the catalogue."""
    return [_food_names(language).get(food, food.replace("_", " ")) for food in foods]


def in_words(field: str, values: Sequence[str], language: Language) -> list[str]:
    """What `language` calls these values together, or else one by one; ids as a last resort."""
    named = names(language)
    if together := named.get(Meaning(field, tuple(values))):
        return [together]
    return [named.get(Meaning(field, (value,)), value.replace("_", " ")) for value in values]


def country_in_words(country: str, language: Language) -> str:
    """What `language` calls a country; its English name if nothing else is known."""
    return country if language == "en" else in_words("countries", (country,), language)[0]


def style_in_words(style: str, language: Language) -> str:
    """What `language` calls a style; empty for one nobody knows."""
    if style not in tuple(Style):
        return ""
    if style == Style.SWEET:
        return say("sweet_wine", language)
    return in_words("hue" if style in _HUES else "styles", (style,), language)[0]


def body_in_words(body: str, language: Language) -> str:
    """The weight of a wine as an adjective; empty for a body nobody knows."""
    group = next((group for group in _GROUPED_BODIES if body in group), ())
    return names(language).get(Meaning("bodies", group), "")


def sweetness_in_words(sweetness: str, language: Language) -> str:
    """What `language` calls one step of sweetness; empty for one nobody knows."""
    return str(speech()[language]["sweetness"].get(sweetness, ""))


def price_in_words(wishes: Wishes, language: Language) -> str:
    """The price limits of a bottle; empty if there are none."""
    currency = wishes.currency or Currency.EUR
    low, high = wishes.min_price, wishes.max_price
    if low and high and round(low / high, 2) == LEAST_OF_A_PRESENT:
        low = None
    if low and high and round(low / high, 2) == _ROUGHLY:
        return say("around", language, price=money(round((low + high) / 2, 2), currency))
    if low is not None and high is not None:
        return f"{money(low, currency)}–{money(high, currency)}"
    if high is not None:
        return say("up_to", language, high=money(high, currency))
    return "" if low is None else say("from_on", language, low=money(low, currency))


def criteria(state: State) -> str:
    """What was asked for as a phrase, and what it must be without."""
    language, wishes = state.language, state.wishes
    kinds = [either((style_in_words(each, language) for each in wishes.styles), language)]
    colours = (each for each in wishes.colours if each not in wishes.styles)
    kinds += [style_in_words(each, language) for each in colours]
    return joined(
        joined(*kinds),
        *tastes_in_words(wishes, language),
        either(wishes.grapes, language),
        either(places_in_words(wishes, language), language),
        price_in_words(wishes, language),
        dishes_in_words(wishes, language),
        _abv(wishes),
        wishes.name,
        _left_out(state),
        by=", ",
    )


def dishes_in_words(wishes: Wishes, language: Language) -> str:
    """The dishes as the person calls them, without what leads to them: "zum Nachtisch"."""
    leading = grammar("for") | grammar("definite") | grammar("articles")
    split = (each.split() for each in wishes.named_dishes)
    told = (" ".join(dropwhile(lambda word: fold(word) in leading, each)) for each in split)
    return both(filter(None, told), language)


def slot_in_words(slot: Slot, state: State) -> str:
    """What a part of a plan is called: its course, or what is its own."""
    if slot.course:
        return say(f"course_{slot.course}", state.language)
    named = slot.wishes.grapes or slot.wishes.regions
    own = replace(slot.wishes, styles=() if named else slot.wishes.styles, named_dishes=())
    kind = criteria(replace(state, wishes=own, denied=frozenset(), allergens=()))
    dish = dishes_in_words(slot.wishes, state.language)
    kind = kind.replace(", ", " ") if named else kind
    return f"{kind} ({dish})" if kind and dish else kind or dish


def search_in_words(query: WineQuery, language: Language) -> str:
    """What a search looks for, as far as it is said in words of the catalogue."""
    kinds = [either((style_in_words(each, language) for each in query.styles), language)]
    kinds += [style_in_words(each, language) for each in query.colours]
    limits = Wishes(currency=query.currency, min_price=query.min_price, max_price=query.max_price)
    foods = both(foods_in_words(query.foods[:_MOST_FOODS], language), language)
    return joined(joined(*kinds), foods, price_in_words(limits, language), by=", ")


def _abv(wishes: Wishes) -> str:
    if wishes.max_abv is not None:
        return f"≤ {wishes.max_abv:g} % vol"
    return "" if wishes.min_abv is None else f"≥ {wishes.min_abv:g} % vol"


def tastes_in_words(wishes: Wishes, language: Language) -> list[str]:
    """The wished sweetness, body, tannin and acidity."""
    sweetness = in_words("sweetness", wishes.sweetness, language)
    if len(sweetness) > 1:
        sweetness = [sweetness_in_words(each, language) for each in wishes.sweetness]
    groups = [group for group in _GROUPED_BODIES if set(group) & set(wishes.bodies)]
    bodies = [body_in_words(group[0], language) for group in groups]
    found = [either(sweetness, language), either(dict.fromkeys(bodies), language)]
    if wishes.tannins:
        found.append(say("tannin_high" if "high" in wishes.tannins else "tannin_low", language))
    if wishes.acidities:
        found.append(say(f"acidity_{'high' if 'high' in wishes.acidities else 'low'}", language))
    found += wishes.named_tastes
    return [each for each in found if each]


def places_in_words(wishes: Wishes, language: Language) -> list[str]:
    """The regions and countries of a request."""
    regions = [in_words("regions", (each,), language)[0] for each in wishes.regions]
    countries = [country_in_words(each, language) for each in wishes.countries]
    return [*regions, *countries]


def exclusions_in_words(state: State) -> list[str]:
    """What is ruled out, in a fixed order; tastes as far as they have a name."""
    named = names(state.language)
    tastes = (Meaning(*pair[:1], pair[1:]) for pair in sorted(state.denied) if pair[0] == "text")
    pairs = sorted(pair for pair in state.denied if pair[0] in _NAMED)
    told = [
        style_in_words(value, state.language) or in_words(field, (value,), state.language)[0]
        for field, value in pairs
    ]
    return [*told, *dict.fromkeys(named[taste] for taste in tastes if taste in named)]


def _left_out(state: State) -> str:
    allergens = [in_words("allergen", (each,), state.language)[0] for each in state.allergens]
    left = dict.fromkeys((*allergens, *exclusions_in_words(state)))
    return say("leaving_out", state.language, names=either(left, state.language)) if left else ""


def describe(wine: ListedWine, foods: Sequence[str], language: Language) -> str:
    """Why a wine suits: the foods asked for, its grapes and build, and in English its notes."""
    notes = wine.notes.strip() if language == "en" else ""
    told = map(sentence, filter(None, (suiting(wine, foods, language), notes)))
    return " ".join(told) or wine.name


def suiting(wine: ListedWine, foods: Sequence[str], language: Language) -> str:
    """The foods that a wine suits, those asked for if any, and what it is."""
    asked = [food for food in foods if food in wine.foods]
    named = both(foods_in_words(asked or wine.foods[:_MOST_FOODS], language), language)
    fit = say("suits", language, foods=named) if named else ""
    told = portrait(wine, language)
    return joined(*((fit, told) if asked else (told, fit)), by="; ")


def in_detail(wine: ListedWine, foods: Sequence[str], language: Language) -> str:
    """Everything known about a wine."""
    facts = [origin(wine, language), alcohol(wine), price(wine)]
    allergens = [in_words("allergen", (each,), language)[0] for each in wine.allergens]
    notes = wine.notes.strip() if language != "en" else ""
    return joined(
        describe(wine, foods, language),
        sentence(joined(*facts, by=", ")),
        say("is_allergens", language, fact=both(allergens, language)) if allergens else "",
        "" if wine.in_stock else say("sold_out", language),
        say("tasting_notes", language, notes=notes) if notes else "",
    )


def origin(wine: ListedWine, language: Language) -> str:
    """Where a wine comes from, narrowest first, the country as `language` calls it."""
    places = [place for place in (wine.appellation, wine.region) if place != wine.country]
    country = country_in_words(wine.country, language)
    return ", ".join(dict.fromkeys(filter(None, (*places, country))))


def portrait(wine: ListedWine, language: Language) -> str:
    """`Rotwein, kräftig, aus Syrah, mit festen Tanninen`."""
    grapes = both(wine.grapes, language)
    is_told = wine.sweetness not in ("dry", "bone_dry") and wine.style != Style.SWEET
    return joined(
        style_in_words(wine.style, language),
        body_in_words(wine.body, language),
        sweetness_in_words(wine.sweetness, language) if is_told else "",
        say("from_grapes", language, grapes=grapes) if grapes else "",
        say("acidity_high", language) if wine.acidity == "high" else "",
        say(f"tannin_{wine.tannin}", language) if wine.tannin in ("low", "high") else "",
        by=", ",
    )
