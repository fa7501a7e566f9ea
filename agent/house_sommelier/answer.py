"""From what the tools returned to a `SommelierResponse`: only its wines, only their facts."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
from agent.house_sommelier.intent import DETAILS, SEARCH, SIMILAR, Saying
from agent.house_sommelier.lexicon import Language, tokens
from agent.house_sommelier.limits import LIMITS
from agent.house_sommelier.phrases import PhraseKey, say
from agent.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.wine import WineQuery

_MOST_WINES: Final = 3
_MOST_FOODS: Final = 3
_COUNTS: Final = {1: "this one suits", 2: "these two suit", 3: "these three suit"}


class ListedWine(BaseModel):
    """A wine as a tool lists it; what is unknown is left out there and empty here."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    wine_id: str = Field(min_length=1)
    name: str = ""
    country: str = ""
    region: str = ""
    appellation: str = ""
    grapes: tuple[str, ...] = ()
    style: str = ""
    colour: str = ""
    sweetness: str = ""
    body: str = ""
    acidity: str = ""
    tannin: str = ""
    abv: float | None = None
    price: float | None = None
    currency: str = "EUR"
    foods: tuple[str, ...] = ()
    allergens: tuple[str, ...] = ()
    notes: str = ""
    in_stock: bool = True


class Found(BaseModel):
    """One tool result: its wines, and what an empty search says about its limits."""

    model_config = ConfigDict(frozen=True)

    tool: str
    query: WineQuery | None = None
    wines: tuple[ListedWine, ...] = ()
    relax: dict[str, int] = Field(default_factory=dict)


def speak(saying: Saying, language: Language) -> SommelierResponse:
    """An answer that needs no wines."""
    kind = "off_topic" if saying == "off_topic" else "informational"
    return SommelierResponse(response_type=kind, intro=say(saying, language))


def apologise(language: Language) -> SommelierResponse:
    """The cellar could not be searched."""
    return _inform(say("error", language))


def answer(request: Request, results: Sequence[ToolResult]) -> SommelierResponse:
    """The answer to a request from the tool results of its turn; the last useful one counts."""
    found = [read for result in results if (read := read_result(result)) is not None]
    if not found:
        return apologise(request.language)
    useful = next((result for result in reversed(found) if result.wines), found[-1])
    if useful.tool in (SIMILAR, DETAILS):
        return _about_wines(useful, request)
    return _from_search(useful, request)


def read_result(result: ToolResult) -> Found | None:
    """A tool's JSON as data; None for an error or anything else that is not a list of wines."""
    try:
        data = json.loads(result.content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("wines"), list):
        return None
    wines = {wine.wine_id: wine for wine in map(_wine, data["wines"]) if wine}
    return Found(
        tool=result.tool or SEARCH,
        query=_query(result),
        wines=tuple(wines.values()),
        relax=_counts(data.get("relax")),
    )


def _wine(data: object) -> ListedWine | None:
    try:
        wine = ListedWine.model_validate(data)
    except ValidationError:
        return None
    return wine if wine.wine_id.strip() else None


def _query(result: ToolResult) -> WineQuery | None:
    try:
        return WineQuery.model_validate_json(result.arguments)
    except ValidationError:
        return None


def _counts(data: object) -> dict[str, int]:
    items = data.items() if isinstance(data, dict) else ()
    return {str(name): count for name, count in items if isinstance(count, int) and count > 0}


def _inform(intro: str, closing: str = "") -> SommelierResponse:
    return SommelierResponse(response_type="informational", intro=intro, closing=closing)


def _from_search(found: Found, request: Request) -> SommelierResponse:
    query = found.query or request.query
    if not found.wines:
        return _nothing(query, found.relax, request)
    fresh = [wine for wine in found.wines if not _was_shown(wine, request)]
    if not fresh:
        return _inform(say("all_shown", request.language))
    name = request.said.name if query.text and query.text == request.query.text else ""
    named = _named(fresh, name) if name else fresh
    if not named and query.model_fields_set <= {"text"}:
        return _inform(say("nothing_named", request.language, name=name))
    wines = (named or fresh)[:_MOST_WINES]
    intro = _intro(query, request, len(wines), is_named=bool(name and named))
    unseen = "" if named else say("not_named", request.language, name=name) + " "
    return SommelierResponse(
        response_type="recommendation",
        intro=unseen + intro,
        wines=[_recommended(wine, describe(wine, query, request.language)) for wine in wines],
        closing=say(_refinement(query), request.language),
    )


def _was_shown(wine: ListedWine, request: Request) -> bool:
    return "other" in request.said.cues and wine.wine_id in request.shown


def _named(wines: Sequence[ListedWine], name: str) -> list[ListedWine]:
    """The wines whose label or place holds most words of `name`, at least half of them."""
    wanted = _stems(name)
    hits = [len(wanted & _stems(_label_words(wine))) for wine in wines]
    most = max(hits, default=0)
    enough = most > 0 and most * 2 >= len(wanted)
    return [wine for wine, hit in zip(wines, hits, strict=True) if enough and hit == most]


def _label_words(wine: ListedWine) -> str:
    places = (wine.country, wine.region, wine.appellation)
    return " ".join((wine.name, *places, *wine.grapes, wine.notes))


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
    sweetness = "" if wine.sweetness == "dry" else wine.sweetness.replace("_", "-")
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
