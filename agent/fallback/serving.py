"""Say how warm to serve a wine or a kind of wine, and when it is at its best."""

from collections.abc import Iterator, Sequence
from statistics import mode
from typing import Final

from agent.cellar.rows import this_year
from agent.fallback.merging import Wish
from agent.fallback.wording import capitalise, name_value
from agent.i18n import translate
from agent.markdown import escape
from agent.query_reading.request import Request
from agent.sommelier.cards import get_shown_label
from agent.sommelier.filters import find_wines
from agent.sommelier.queries import Catalogue, WineQuery
from agent.sommelier.serving import (
    WineKind,
    drinking_years,
    find_kind,
    find_usual_years,
    serving_degrees,
)
from agent.sommelier.vocabulary import Body, Style, normalize
from agent.sommelier.wine import Wine
from agent.text import pattern
from agent.turn import Person

STILL_STYLES: Final = (
    Style.RED,
    Style.WHITE,
    Style.ROSE,
    Style.ORANGE,
    Style.SWEET,
)
"""The styles of wines with a vintage, as a rule. Many sparkling and fortified ones have none."""
NAME_FIELDS: Final = ("regions", "grapes")
"""The fields of a request that may name a kind of wine."""
_WORD: Final = pattern(r"\w+")


async def write_serving_advice(wish: Wish, catalogue: Catalogue, person: Person) -> str:
    """Return the answer to the question how to serve or keep wine, or "" if it is not asked.

    It is about one of the wines shown ("how do I serve the second?"), or about all of them, or
    about a kind of wine: "How long can I keep Chianti Classico?"
    """
    request = wish.own_request
    if not request.asks_how_to_serve:
        return ""
    wines = _list_meant_wines(wish)
    if wines:
        return "\n\n".join(_list_advice(wines))
    return await _write_advice_for_kind(request, catalogue, person)


def _list_meant_wines(wish: Wish) -> Sequence[Wine]:
    """Return the shown wines that the last message is about.

    These are all, if the message names no wine and no kind: "how do I serve them?"
    """
    if wish.picked is not None:
        return (wish.picked,)
    request = wish.own_request
    if request.position or request.describes_wine:
        return ()
    if request.unread_words or find_kind([request.text], None):
        return ()
    return wish.last_shown


def _list_advice(wines: Sequence[Wine]) -> Iterator[str]:
    """Yield how to serve each wine and when, without those whose style is unknown."""
    for wine in wines:
        degrees = serving_degrees(wine)
        if degrees is None:
            continue
        lowest, highest = degrees
        advice = translate(
            "fallback_degrees",
            name=f"**{escape(get_shown_label(wine))}**",
            lowest=str(lowest),
            highest=str(highest),
        )
        yield f"{advice} {_describe_best_years(wine)}".strip()


def _describe_best_years(wine: Wine) -> str:
    """Return the sentence that says when a wine is at its best, or "" for an unknown vintage."""
    years = drinking_years(wine)
    if years is None:
        return ""
    first, last = years
    if last < this_year():
        return translate("fallback_best_past", last=str(last))
    if first <= this_year():
        return translate("fallback_best_now", last=str(last))
    return translate("fallback_best_later", first=str(first), last=str(last))


async def _write_advice_for_kind(
    request: Request, catalogue: Catalogue, person: Person
) -> str:
    """Return how to serve the kind of wine that a message names, or "" if it names none."""
    kind = find_kind(_list_names(request), _get_style(request))
    if kind is None:
        return ""
    body = await _find_usual_body(request, kind.style, catalogue, person)
    wine = _make_typical_wine(request, kind.style, body)
    degrees = serving_degrees(wine)
    if degrees is None:
        return ""
    lowest, highest = degrees
    years = find_usual_years(wine)
    if years is None or kind.style not in STILL_STYLES:
        return translate(
            "fallback_degrees",
            name=escape(_name_kind(kind, request)),
            lowest=str(lowest),
            highest=str(highest),
        )
    first_year, last_year = years
    return translate(
        "fallback_serving",
        name=escape(_name_kind(kind, request)),
        first=str(first_year),
        last=str(last_year),
        lowest=str(lowest),
        highest=str(highest),
    )


def _list_names(request: Request) -> list[str]:
    """Return the texts that may name a kind of wine: the message, its places and grapes."""
    return [request.text, *request.values("regions"), *request.values("grapes")]


def _get_style(request: Request) -> Style | None:
    """Return the style that a message asks about, or None if it names none."""
    for style in request.values("styles"):
        return Style(style)
    return None


def _make_typical_wine(request: Request, style: Style, body: Body | None) -> Wine:
    """Return a wine of which only what is needed for serving is filled in."""
    return Wine(
        id="",
        producer="",
        name=" ".join(_list_names(request)),
        country="",
        style=style,
        body=body,
        grapes=request.values("grapes"),
    )


async def _find_usual_body(
    request: Request, style: Style, catalogue: Catalogue, person: Person
) -> Body | None:
    """Return the body that most wines of this kind in the catalogue have, or None."""
    query = WineQuery(
        styles=(style,),
        regions=request.values("regions"),
        grapes=request.values("grapes"),
    )
    result = await find_wines(catalogue, query, person)
    bodies = [wine.body for wine in result.wines if wine.body]
    if not bodies:
        return None
    return mode(bodies)


def _name_kind(kind: WineKind, request: Request) -> str:
    """Return the name of a kind, with its style if the message names another than usual."""
    name = capitalise(_find_written_name(request, kind))
    style = _get_style(request)
    usual_kind = find_kind([kind.name], None)
    if style is None or kind == usual_kind:
        return name
    return f"{name} ({name_value('styles', style)})"


def _find_written_name(request: Request, kind: WineKind) -> str:
    """Return the name of a kind as the message writes it, or else as the tables do.

    Words with a capital after it belong to it: "Rioja Gran Reserva".
    """
    text = request.text
    words = list(_WORD.finditer(text))
    length = len(kind.name.split())
    for index in range(len(words) - length + 1):
        start = words[index].start()
        end = words[index + length - 1].end()
        if normalize(text[start:end]) != kind.name:
            continue
        for word in words[index + length :]:
            if not word[0].istitle():
                break
            end = word.end()
        return text[start:end]
    for field in NAME_FIELDS:
        for value in request.values(field):
            if normalize(value) == kind.name:
                return name_value(field, value)
    return kind.name.title()
