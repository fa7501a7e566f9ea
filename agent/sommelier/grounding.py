"""Wines, names, years and prices of an answer against what the tools returned.

What a schema can hold to ids is checked exactly. Free text cannot be: there, what reads like a
wine's name, its vintage or its price must stand in a tool's result or in the person's own words.
A false alarm costs one more request; a wine that does not exist would cost the person's trust.
"""

import re
from collections.abc import Iterable
from typing import Final

from agent.documents.grounding import ungrounded_text
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.wine import Wine
from agent.text import words

SHOWN_IDS: Final = 12


def ungrounded(response: SommelierResponse, evidence: Evidence) -> str | None:
    """What in a response no tool returned, as feedback to the model; None if all of it was."""
    for position, wine in enumerate(response.wines):
        if problem := ungrounded_wine(wine, evidence):
            return f"wines.{position}: {problem}"
    for text in (response.intro, response.closing, *(wine.description for wine in response.wines)):
        if problem := ungrounded_text(text, evidence):
            return problem
    return None


def grounded_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """A response without its ungrounded wines and sentences; None if nothing worth it is left."""
    wines = [
        wine if not ungrounded_text(wine.description, evidence) else _bare(wine)
        for wine in response.wines
        if not ungrounded_wine(wine, evidence)
    ]
    intro, closing = (
        "" if ungrounded_text(text, evidence) else text
        for text in (response.intro, response.closing)
    )
    if response.wines and not wines:
        return None
    update = {"intro": intro, "closing": closing, "wines": wines}
    if wines and not any((intro, closing, *(wine.description for wine in wines))):
        update["intro"] = ", ".join(shown.label for shown in shown_wines(wines, evidence))
    return response.model_copy(update=update)


def _bare(wine: WineRecommendation) -> WineRecommendation:
    return wine.model_copy(update={"description": ""})


def shown_wines(wines: Iterable[WineRecommendation], evidence: Evidence) -> list[Wine]:
    """The catalogue's facts of recommended wines, each once; ids no tool returned are left out."""
    found = (evidence.found.get(wine_id) for wine_id in dict.fromkeys(w.wine_id for w in wines))
    return [wine for wine in found if isinstance(wine, Wine)]


def ungrounded_wine(wine: WineRecommendation, evidence: Evidence) -> str | None:
    """Why a recommended wine is not one that a tool returned; None if it is."""
    found = evidence.found.get(wine.wine_id)
    if not isinstance(found, Wine):
        return f"no tool returned a wine with the id {fence(wine.wine_id)}; {_known(evidence)}"
    if wine.name and not same_name(wine.name, found.label):
        return f"the id {wine.wine_id} belongs to {found.label}, not to {fence(wine.name)}"
    return None


def _known(evidence: Evidence) -> str:
    ids = [key for key, value in evidence.found.items() if isinstance(value, Wine)]
    if not ids:
        return "call search_wines first and recommend only wines it returns"
    return f"recommend only wines with these ids: {', '.join(ids[-SHOWN_IDS:])}"


def same_name(said: str, label: str) -> bool:
    """Whether at least half the words of `said`, and its year if it has one, are in `label`."""
    named, known = set(words(said)), set(words(label))
    years = {word for word in named if re.fullmatch(r"(19|20)\d\d", word)}
    return years <= known and 2 * len(named & known) >= len(named)
