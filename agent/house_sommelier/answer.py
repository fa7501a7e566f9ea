"""From what the tools returned to a `SommelierResponse`: only its wines, only their facts."""

import re
from collections.abc import Sequence
from typing import Final

from agent.documents.passages import PASSAGE_CHARS, best_passage
from agent.house_sommelier.asking import asks_for_the_best, asks_why, traits_asked
from agent.house_sommelier.conversation import ToolResult
from agent.house_sommelier.criteria import criteria
from agent.house_sommelier.deeper import ENOUGH, look_deeper, served
from agent.house_sommelier.followups import Request
from agent.house_sommelier.glossary import in_english, telling_words
from agent.house_sommelier.intent import (
    DETAILS,
    LIBRARY,
    SEARCH,
    SIMILAR,
    Saying,
    Wish,
)
from agent.house_sommelier.lexicon import Language, fold, tokens
from agent.house_sommelier.limits import LIMITS
from agent.house_sommelier.phrases import say
from agent.house_sommelier.portrait import describe, in_detail, suits_dishes
from agent.house_sommelier.results import Found, ListedWine, by_price, read_result
from agent.house_sommelier.screening import allowed, has_alcohol, offered
from agent.house_sommelier.speech.keys import PhraseKey
from agent.house_sommelier.stopwords import house_words
from agent.house_sommelier.verdicts import verdict
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.wine import WineQuery

_EXCERPT: Final = re.compile(r"\[(?P<path>[^\[\]\n]+)\]: (?P<text>.*?)(?=\n\n\[|\Z)", re.DOTALL)
_WITHOUT_BRACKETS: Final = str.maketrans("[]", "()")
_SHORT_PASSAGE: Final = 350  # characters of English for those who wrote in another language
_COUNTS: Final = {1: "this one suits", 2: "these two suit", 3: "these three suit"}


def speak(saying: Saying, request: Request) -> SommelierResponse:
    """An answer that needs no wines."""
    kind = "off_topic" if saying in {"off_topic", "rude"} else "informational"
    notes = _notes(request) if saying == "ask" else ""
    return SommelierResponse(response_type=kind, intro=say(saying, request.language), closing=notes)


def apologise(language: Language) -> SommelierResponse:
    """The cellar could not be searched."""
    return _inform(say("error", language))


def answer(request: Request, results: Sequence[ToolResult]) -> SommelierResponse | tuple[Wish, ...]:
    """The answer to a request from the tool results of its turn, or what to look up besides."""
    if results[-1].tool == LIBRARY:
        return _from_library(request, results[-1].content)
    found = [read for result in results if (read := read_result(result)) is not None]
    if not found:
        return apologise(request.language)
    if wishes := look_deeper(request, found):
        return wishes
    useful = next((result for result in reversed(found) if result.wines), found[-1])
    if useful.tool in (SIMILAR, DETAILS):
        return _about_wines(useful, request)
    return _from_search(_together(found, useful), request)


def _together(found: Sequence[Found], useful: Found) -> Found:
    """The wines of several searches in a turn, in order, under what the first one asked for."""
    searches = [result for result in found if result.tool == SEARCH]
    if len(searches) < 2:
        return useful
    wines = {wine.wine_id: wine for result in searches for wine in result.wines}
    return searches[0].model_copy(update={"wines": tuple(wines.values())})


def _from_library(request: Request, content: str) -> SommelierResponse:
    """The best passage, or the honest sentence that this house improvises nothing.

    Brackets in a passage would be citations, so it is shown without.
    """
    excerpt = _EXCERPT.match(content)
    if excerpt is None:
        return _inform(say("knowledge", request.language))
    is_english = request.language == "en"
    asked = " ".join(telling_words(request.text)) if is_english else in_english(request.text)
    limit = PASSAGE_CHARS if is_english else _SHORT_PASSAGE
    passage = best_passage(excerpt["text"], asked, limit).translate(_WITHOUT_BRACKETS)
    quoted = "\n".join(f"> {line}" for line in passage.splitlines() if line.strip())
    found = f"{say('passage', request.language)} [{excerpt['path']}]\n{quoted}"
    return _inform(found, "" if is_english else say("library_closing", request.language))


def _inform(intro: str, closing: str = "") -> SommelierResponse:
    return SommelierResponse(response_type="informational", intro=intro, closing=closing)


def _from_search(found: Found, request: Request) -> SommelierResponse:
    query, said = found.query or request.query, request.said
    if not found.wines:
        return _nothing(query, found.relax, request)
    fresh = by_price(offered(found.wines, request), query.order)
    if not fresh:
        return _nothing_left(found.wines, request)
    name = said.name if query.text and query.text == request.query.text else ""
    named, in_full = _named(fresh, name)
    if not named and query.model_fields_set <= {"text"}:
        return _inform(say("nothing_named", request.language, name=name))
    wines = served(named or fresh, said.courses)
    intro = _intro(query, request, len(wines), is_named=bool(name and named))
    unseen = "" if in_full else say("not_named", request.language, name=name) + " "
    return SommelierResponse(
        response_type="recommendation",
        intro=unseen + intro,
        wines=[_recommended(wine, describe(wine, query, request.language)) for wine in wines],
        closing=_notes(request) or say(_refinement(query), request.language),
    )


def _nothing_left(wines: Sequence[ListedWine], request: Request) -> SommelierResponse:
    """Wines were found, and none may be offered."""
    if request.care:
        return _declined(request)
    excluded = not allowed(wines, request)
    key: PhraseKey = "all_excluded" if excluded else "all_shown"
    if "cheaper" in request.said.cues and not excluded:
        key = "cheapest"
    return _inform(say(key, request.language))


def _declined(request: Request) -> SommelierResponse:
    return _inform(say("care_none", request.language))


def _notes(request: Request) -> str:
    """What a guest should know besides: about labels, and money that cannot be converted."""
    said, language = request.said, request.language
    notes = [
        say("unknown_currency", language, currency=said.foreign) if said.foreign else "",
        say("other_allergens", language) if said.elsewhere else "",
        say("check_label", language) if said.query.without_allergens and not said.elsewhere else "",
    ]
    return " ".join(filter(None, notes))


def _named(wines: Sequence[ListedWine], name: str) -> tuple[Sequence[ListedWine], bool]:
    """The wines whose label or place holds most words of `name`, and whether it holds all.

    Less than half of the telling words is another wine: "2019" and "Château" stand on many labels.
    Without a name, all wines.
    """
    wanted = _stems(name)
    telling = frozenset(word for word in wanted - house_words() if not word.isdigit()) or wanted
    labels = [_stems(_label_words(wine)) for wine in wines]
    most = max((len(telling & label) for label in labels), default=0)
    if most * 2 < len(telling):
        return [], False
    hits = [(len(telling & label) == most) * len(wanted & label) for label in labels]
    best = max(hits, default=0)
    kept = [wine for wine, hit in zip(wines, hits, strict=True) if hit == best]
    return kept, best == len(wanted)


def _label_words(wine: ListedWine) -> str:
    places = (wine.country, wine.region, wine.appellation)
    return " ".join((wine.name, *places, *wine.grapes))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.is_word)


def _recommended(wine: ListedWine, description: str) -> WineRecommendation:
    return WineRecommendation(wine_id=wine.wine_id, name=wine.name, description=description)


def _intro(query: WineQuery, request: Request, count: int, *, is_named: bool) -> str:
    if request.care:
        return say(request.care, request.language)
    spoken = query.model_copy(update={"text": ""}) if request.said.name else query
    if spoken.order != "match":
        return _intro_in_order(spoken, request)
    is_open = not spoken.model_fields_set - {"text", "limit"} and not request.without
    if is_open and (is_named or not spoken.text):
        return say("found_any", request.language)
    dishes = request.said.dishes if query.foods == request.said.query.foods else ()
    wanted = criteria(
        spoken, request.language, dishes=dishes, stated=request.stated, without=request.without
    )
    return say("found", request.language, criteria=wanted, these=_COUNTS[count])


def _intro_in_order(query: WineQuery, request: Request) -> str:
    key: PhraseKey = "in_order_cheapest" if query.order == "cheapest" else "in_order_dearest"
    language, limits = request.language, query.model_fields_set - {"order", "limit"}
    wanted = criteria(query, language, stated=request.stated, without=request.without)
    return say(key, language, criteria=f" ({wanted})" if limits or request.without else "")


def _refinement(query: WineQuery) -> PhraseKey:
    """The one wish that would narrow the search most."""
    if not query.foods:
        return "add_food"
    if query.max_price is None and query.min_price is None:
        return "add_price"
    return "add_taste" if query.countries or query.regions or query.grapes else "add_place"


def _nothing(query: WineQuery, relax: dict[str, int], request: Request) -> SommelierResponse:
    language = request.language
    if request.care:
        return _declined(request)
    if "cheaper" in request.said.cues:
        return _inform(say("cheapest", language))
    if query.text and query.model_fields_set <= {"text", "limit"}:
        return _inform(say("nothing_named", language, name=query.text))
    dishes = request.said.dishes if query.foods == request.said.query.foods else ()
    wanted = criteria(
        query, language, dishes=dishes, stated=request.stated, without=request.without
    )
    intro = say("nothing", language, criteria=wanted)
    ways = sorted(
        (item for item in relax.items() if item[0] in LIMITS),  # what was ruled out stays out
        key=lambda item: (item[0] != "price", -item[1]),
    )
    notes = _notes(request)
    if not ways:
        return _inform(f"{intro} {say('no_way', language)}", notes)
    ways_out = f"{intro} {_ways_out(ways[:2], language)}."
    return _inform(ways_out, notes or say("look_again", language))


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
    """More about a wine that was shown, or others like it; to some guests nothing with alcohol."""
    language, is_detail = request.language, found.tool == DETAILS
    if not found.wines:
        return _inform(say("gone", language))
    sober = [wine for wine in found.wines if not (request.care and has_alcohol(wine))]
    wines = sober if is_detail else allowed(found.wines, request)
    if not wines:
        return _declined(request) if request.care else _inform(say("all_excluded", language))
    return SommelierResponse(
        response_type="recommendation",
        intro=_intro_of_known(wines, request) if is_detail else say("similar", language),
        wines=[_recommended(wine, _told(wine, request, is_detail)) for wine in wines[:ENOUGH]],
        closing=_notes(request) or say("add_taste", language),
    )


def _intro_of_known(wines: Sequence[ListedWine], request: Request) -> str:
    if asks_for_the_best(fold(request.text)):
        return say("favourite", request.language)
    asked = _verdict(wines[0], request) if len(wines) == 1 else ""
    suits = suits_dishes(wines[0], request.said.query.foods, request.language)
    return asked or suits or say("details", request.language)


def _verdict(wine: ListedWine, request: Request) -> str:
    traits = traits_asked(fold(request.text))
    if not traits and "order" in request.said.filters:
        traits = ("price",)
    return verdict(wine, traits, request.language)


def _told(wine: ListedWine, request: Request, is_detail: bool) -> str:
    if not is_detail:
        return describe(wine, WineQuery(), request.language)
    reason = WineQuery(foods=request.query.foods) if asks_why(fold(request.text)) else WineQuery()
    first = _verdict(wine, request) if len(request.about) > 1 else ""
    return " ".join(filter(None, (first, in_detail(wine, reason, request.language))))
