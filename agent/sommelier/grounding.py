"""Wines, names, years and prices of an answer against what the tools returned.

What a schema can hold to ids is checked exactly. Free text cannot be: there, what reads like a
wine's name, its vintage or its price must stand in a tool's result or in the person's own words.
A false alarm costs one more request; a wine that does not exist would cost the person's trust.
"""

import re
from collections.abc import Iterable
from typing import Final

from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.wine import Wine
from agent.text import fold, words

NAME = r"[^\W\d_a-z][\w'’.-]*"
ESTATE: Final = re.compile(
    r"\b(?:Ch[âa]teau|Domaine|Weingut|Bodegas?|Tenuta|Castello|Quinta|Clos|Cantina|Fattoria|"
    r"Podere|Marchesi|Vi[ñn]a|Cascina|Schloss)\s+(?:d[eiu]s?\s+|del?l[ao]?\s+|la\s+|le\s+|los\s+)*"
    rf"{NAME}(?:[\s-]+{NAME})*"
    rf"|\b{NAME}(?:\s+{NAME}){{0,3}}\s+(?:Estate|Vineyards?|Winery|Cellars|Vintners)\b"
)
VINTAGES: Final = (
    re.compile(rf"(?P<name>{NAME})[\s,]+(?P<year>(?:19|20)\d\d)\b"),
    re.compile(rf"\b(?P<year>(?:19|20)\d\d)\s+(?P<name>{NAME})"),
)
NO_NAME: Final = frozenset(
    "in since from until by around the a of after before between and year vintage on im seit en "
    "depuis desde dal dans january february march april may june july august september october "
    "november december".split()
)
PRICE: Final = re.compile(
    r"(?:[€$£]|\b(?:EUR|USD|GBP|CHF)\s?)\s?(\d+(?:[.,]\d{1,2})?)"
    r"|(\d+(?:[.,]\d{1,2})?)\s?(?:[€$£]|(?:EUR|USD|GBP|CHF|euros?|dollars?|pounds?)\b)",
    re.IGNORECASE,
)
NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")
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


def ungrounded_text(text: str, evidence: Evidence) -> str | None:
    """The first thing in free text that reads like a wine or a price no tool returned, or None."""
    if not text or not any(character.isupper() or character.isdigit() for character in text):
        return None
    sources = _Sources(evidence)
    for estate in ESTATE.finditer(text):
        if not sources.hold(estate[0]):
            return f"the text names {fence(estate[0])}, which no tool returned; leave it out"
    for match in (match for pattern in VINTAGES for match in pattern.finditer(text)):
        if fold(match["name"]) not in NO_NAME and not sources.hold_number(match["year"]):
            return f"the text names {fence(match[0])}, a vintage no tool returned; leave it out"
    for match in PRICE.finditer(text):
        if not sources.hold_number(match[1] or match[2]):
            return f"the text names the price {fence(match[0])}, which no tool returned"
    return None


class _Sources:
    """What tools and the person said, folded on first need."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._folded: str | None = None
        self._numbers: set[float] | None = None

    def hold(self, phrase: str) -> bool:
        if self._folded is None:
            self._folded = f" {' '.join(words(' '.join(self._evidence.texts)))} "
        return f" {' '.join(words(phrase))} " in self._folded

    def hold_number(self, number: str) -> bool:
        """Whether a source has this number, or one that rounds to it."""
        if self._numbers is None:
            texts = " ".join(self._evidence.texts)
            self._numbers = {_value(match) for match in NUMBER.findall(texts)}
        value = _value(number)
        return value in self._numbers or (
            value.is_integer() and any(abs(known - value) < 1 for known in self._numbers)
        )


def _value(number: str) -> float:
    return float(number.replace(",", "."))
