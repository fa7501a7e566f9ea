"""From what the tools returned to a `SommelierResponse`: only its wines, only their facts."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agent.house_sommelier.conversation import ToolResult
from agent.house_sommelier.criteria import (
    body_in_words,
    both,
    criteria,
    in_words,
    money,
    style_in_english,
)
from agent.house_sommelier.followups import Request
from agent.house_sommelier.intent import DETAILS, LIBRARY, SIMILAR, Saying
from agent.house_sommelier.lexicon import Language, tokens
from agent.house_sommelier.limits import LIMITS
from agent.house_sommelier.phrases import PhraseKey, say
from agent.house_sommelier.results import Found, ListedWine, read_result
from agent.research.passages import best_passage
from agent.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.wine import Style, WineQuery

_EXCERPT: Final = re.compile(r"\[(?P<path>[^\[\]\n]+)\]: (?P<text>.*?)(?=\n\n\[|\Z)", re.DOTALL)
_WITHOUT_BRACKETS: Final = str.maketrans("[]", "()")
_MOST_WINES: Final = 3
_MOST_FOODS: Final = 3
_SWEETNESS: Final = {"dry": "", "medium": "medium-sweet"}
_COUNTS: Final = {1: "this one suits", 2: "these two suit", 3: "these three suit"}


def speak(saying: Saying, language: Language) -> SommelierResponse:
    """An answer that needs no wines."""
    kind = "off_topic" if saying == "off_topic" else "informational"
    return SommelierResponse(response_type=kind, intro=say(saying, language))


def apologise(language: Language) -> SommelierResponse:
    """The cellar could not be searched."""
    return _inform(say("error", language))


def answer(request: Request, results: Sequence[ToolResult]) -> SommelierResponse:
    """The answer to a request from the tool results of its turn; the last useful one counts."""
    if results[-1].tool == LIBRARY:
        return _from_library(request, results[-1].content)
    found = [read for result in results if (read := read_result(result)) is not None]
    if not found:
        return apologise(request.language)
    useful = next((result for result in reversed(found) if result.wines), found[-1])
    if useful.tool in (SIMILAR, DETAILS):
        return _about_wines(useful, request)
    return _from_search(useful, request)


def _from_library(request: Request, content: str) -> SommelierResponse:
    """The honest sentence that this house improvises nothing, and the best passage if there is one.

    Brackets in a passage would be citations, so it is shown without.
    """
    honest = say("knowledge", request.language)
    excerpt = _EXCERPT.match(content)
    if excerpt is None:
        return _inform(honest)
    passage = best_passage(excerpt["text"], request.text).translate(_WITHOUT_BRACKETS)
    quoted = "\n".join(f"> {line}" for line in passage.splitlines() if line.strip())
    return _inform(honest, f"{say('passage', request.language)} [{excerpt['path']}]\n{quoted}")


def _inform(intro: str, closing: str = "") -> SommelierResponse:
    return SommelierResponse(response_type="informational", intro=intro, closing=closing)


def _from_search(found: Found, request: Request) -> SommelierResponse:
    query = found.query or request.query
    if not found.wines:
        return _nothing(query, found.relax, request)
    fresh = _suitable([wine for wine in found.wines if not _was_shown(wine, request)], query)
    if not fresh:
        return _inform(say("all_shown", request.language))
    name = request.said.name if query.text and query.text == request.query.text else ""
    named, in_full = _named(fresh, name)
    if not named and query.model_fields_set <= {"text"}:
        return _inform(say("nothing_named", request.language, name=name))
    wines = (named or fresh)[:_MOST_WINES]
    intro = _intro(query, request, len(wines), is_named=bool(name and named))
    unseen = "" if in_full else say("not_named", request.language, name=name) + " "
    return SommelierResponse(
        response_type="recommendation",
        intro=unseen + intro,
        wines=[_recommended(wine, describe(wine, query, request.language)) for wine in wines],
        closing=say(_refinement(query), request.language),
    )


def _was_shown(wine: ListedWine, request: Request) -> bool:
    return "other" in request.said.cues and wine.wine_id in request.shown


def _suitable(wines: Sequence[ListedWine], query: WineQuery) -> Sequence[ListedWine]:
    """Without alcohol-free wines, unless these were asked for or there is nothing else."""
    if Style.ALCOHOL_FREE in query.styles:
        return wines
    return [wine for wine in wines if wine.style != Style.ALCOHOL_FREE] or wines


def _named(wines: Sequence[ListedWine], name: str) -> tuple[Sequence[ListedWine], bool]:
    """The wines whose label or place holds most words of `name`, and whether it holds all.

    Less than half of the words is another wine. Without a name, all wines.
    """
    wanted = _stems(name)
    hits = [len(wanted & _stems(_label_words(wine))) for wine in wines]
    most = max(hits, default=0)
    if most * 2 < len(wanted):
        return [], False
    kept = [wine for wine, hit in zip(wines, hits, strict=True) if hit == most]
    return kept, most == len(wanted)


def _label_words(wine: ListedWine) -> str:
    places = (wine.country, wine.region, wine.appellation)
    return " ".join((wine.name, *places, *wine.grapes))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.is_word)


def _recommended(wine: ListedWine, description: str) -> WineRecommendation:
    return WineRecommendation(wine_id=wine.wine_id, name=wine.name, description=description)


def _intro(query: WineQuery, request: Request, count: int, *, is_named: bool) -> str:
    spoken = query.model_copy(update={"text": ""}) if request.said.name else query
    if not spoken.model_fields_set - {"text", "limit"} and (is_named or not spoken.text):
        return say("found_any", request.language)
    dishes = request.said.dishes if query.foods == request.said.query.foods else ()
    wanted = criteria(spoken, request.language, dishes=dishes, stated=request.stated)
    return say("found", request.language, criteria=wanted, these=_COUNTS[count])


def _refinement(query: WineQuery) -> PhraseKey:
    """The one wish that would narrow the search most."""
    if not query.foods:
        return "add_food"
    if query.max_price is None and query.min_price is None:
        return "add_price"
    return "add_taste" if query.countries or query.regions or query.grapes else "add_place"


def _nothing(query: WineQuery, relax: dict[str, int], request: Request) -> SommelierResponse:
    language = request.language
    if query.text and query.model_fields_set <= {"text", "limit"}:
        return _inform(say("nothing_named", language, name=query.text))
    dishes = request.said.dishes if query.foods == request.said.query.foods else ()
    wanted = criteria(query, language, dishes=dishes, stated=request.stated)
    intro = say("nothing", language, criteria=wanted)
    ways = sorted(
        (item for item in relax.items() if item[0] in LIMITS),
        key=lambda item: (item[0] != "price", -item[1]),
    )
    if not ways:
        return _inform(f"{intro} {say('no_way', language)}")
    return _inform(f"{intro} {_ways_out(ways[:2], language)}.", say("look_again", language))


def _ways_out(ways: Sequence[tuple[str, int]], language: Language) -> str:
    (limit, count), *others = ways
    are = "is" if count == 1 else "are"
    first = say("without", language, limit=LIMITS[limit][language], count=str(count), are=are)
    rest = (
        say("and_without", language, limit=LIMITS[limit][language], count=str(count))
        for limit, count in others
    )
    return "; ".join((first, *rest))


def _about_wines(found: Found, request: Request) -> SommelierResponse:
    if not found.wines:
        return _inform(say("gone", request.language))
    is_detail = found.tool == DETAILS
    wines = found.wines[:_MOST_WINES]
    tell = in_detail if is_detail else describe
    return SommelierResponse(
        response_type="recommendation",
        intro=say("details" if is_detail else "similar", request.language),
        wines=[_recommended(wine, tell(wine, WineQuery(), request.language)) for wine in wines],
        closing=say("add_taste", request.language),
    )


def describe(wine: ListedWine, query: WineQuery, language: Language) -> str:
    """Why a wine suits: the foods asked for, its grapes and body, and its notes."""
    asked = [food for food in query.foods if food in wine.foods]
    foods = both(in_words("foods", asked or wine.foods[:_MOST_FOODS], language), language)
    fit = say("suits", language, foods=foods) if foods else ""
    portrait = _portrait(wine) if language == "en" else _profile(wine, language)
    order = (fit, portrait) if asked else (portrait, fit)
    sentence = "; ".join(filter(None, order))
    return " ".join(map(_sentence, filter(None, (sentence, wine.notes.strip())))) or wine.name


def in_detail(wine: ListedWine, query: WineQuery, language: Language) -> str:
    """Everything known about a wine."""
    places = dict.fromkeys(filter(None, (wine.appellation, wine.region, wine.country)))
    facts = [
        ", ".join(places),
        "" if wine.abv is None else f"{wine.abv:g} % vol",
        "" if wine.price is None else money(wine.price, wine.currency),
    ]
    allergens = in_words("allergen", wine.allergens, language)
    parts = [
        describe(wine, query, language),
        _sentence(", ".join(filter(None, facts))),
        say("contains", language, allergens=both(allergens, language)) if allergens else "",
        "" if wine.in_stock else say("sold_out", language),
    ]
    return " ".join(filter(None, parts))


def _portrait(wine: ListedWine) -> str:
    """`a full-bodied red from Syrah with firm tannins`."""
    sweetness = _SWEETNESS.get(wine.sweetness, wine.sweetness.replace("_", "-"))
    words = [body_in_words(wine.body, "en"), sweetness, style_in_english(wine.style)]
    kind = " ".join(dict.fromkeys(filter(None, words)))
    grapes = f" from {both(wine.grapes, 'en')}" if wine.grapes else ""
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{article} {kind}{grapes}{_structure(wine)}"


def _structure(wine: ListedWine) -> str:
    traits: Iterable[tuple[bool, str]] = (
        (wine.acidity == "high", "fresh acidity"),
        (wine.tannin == "high", "firm tannins"),
        (wine.tannin == "low", "soft tannins"),
    )
    found = [words for holds, words in traits if holds]
    return f" with {both(found, 'en')}" if found else ""


def _profile(wine: ListedWine, language: Language) -> str:
    return ", ".join(
        filter(None, (both(wine.grapes, language), body_in_words(wine.body, language)))
    )


def _sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    ended = text if text.endswith((".", "!", "?")) else f"{text}."
    return ended[0].upper() + ended[1:] if text else ""
