"""Say how warm to serve a kind of wine, and how many years it keeps."""

from statistics import mode
from typing import Final

from agent.fallback.wording import name_value
from agent.i18n import translate
from agent.markdown import escape
from agent.query_reading.request import Request
from agent.sommelier.filters import find_wines
from agent.sommelier.queries import Catalogue, WineQuery
from agent.sommelier.serving import (
    WineKind,
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
_WORD: Final = pattern(r"\w+")


async def write_serving_advice(
    request: Request, catalogue: Catalogue, person: Person
) -> str:
    """Return the answer to the question how to serve or keep a kind of wine, or "".

    The kind is a place or a grape: "How long can I keep Chianti Classico?"
    """
    if not request.asks_how_to_serve:
        return ""
    kind = find_kind(_list_names(request), _get_style(request))
    if kind is None or kind.style not in STILL_STYLES:
        return ""
    body = await _find_usual_body(request, kind.style, catalogue, person)
    wine = _make_typical_wine(request, kind.style, body)
    years = find_usual_years(wine)
    degrees = serving_degrees(wine)
    if years is None or degrees is None:
        return ""
    first_year, last_year = years
    lowest, highest = degrees
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
    """Return the name of a kind, with its style if the message names it."""
    name = _find_written_name(request.text, kind)
    style = _get_style(request)
    if style is None:
        return name
    return f"{name} ({name_value('styles', style)})"


def _find_written_name(text: str, kind: WineKind) -> str:
    """Return the name of a kind as the message writes it, or else as the table does.

    Words with a capital after it belong to it: "Rioja Gran Reserva".
    """
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
    return kind.name.title()
