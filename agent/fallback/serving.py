"""Say how warm to serve a kind of wine, and how many years it keeps."""

from collections import Counter
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
    styles = request.values("styles")
    style = Style(styles[0]) if styles else None
    names = [request.text, *request.values("regions"), *request.values("grapes")]
    kind = find_kind(names, style)
    if kind is None or kind.style not in STILL_STYLES:
        return ""
    wine = Wine(
        id="",
        producer="",
        name=" ".join(names),
        country="",
        style=kind.style,
        body=await _find_usual_body(request, kind.style, catalogue, person),
        grapes=request.values("grapes"),
    )
    years = find_usual_years(wine)
    degrees = serving_degrees(wine)
    if years is None or degrees is None:
        return ""
    name = _find_written_name(request.text, kind)
    if style is not None:
        name = f"{name} ({name_value('styles', style)})"
    first_year, last_year = years
    lowest, highest = degrees
    return translate(
        "fallback_serving",
        name=escape(name),
        first=str(first_year),
        last=str(last_year),
        lowest=str(lowest),
        highest=str(highest),
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
    bodies = Counter(wine.body for wine in result.wines if wine.body)
    for body, _ in bodies.most_common(1):
        return body
    return None


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
