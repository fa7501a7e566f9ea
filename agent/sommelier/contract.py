"""What a `SommelierResponse` must keep to, and how it reaches a person."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from agent.documents.answer import footnotes
from agent.documents.citations import unretrieved_path
from agent.documents.grounding import misquoted, without_misquotes
from agent.documents.store import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import fence
from agent.house_sommelier import Language, country_in_words
from agent.sommelier.grounding import grounded_part, shown_wines, ungrounded
from agent.sommelier.money import Currency
from agent.sommelier.sommelier_prompts import SommelierResponse, validate_semantic_content
from agent.sommelier.wine import Wine

NOT_IN_STOCK: Final[Mapping[Language, str]] = {
    "en": "not in stock",
    "de": "nicht auf Lager",
    "fr": "pas en stock",
    "es": "sin existencias",
    "it": "non disponibile",
    "nl": "niet op voorraad",
}
SYMBOLS: Final = {Currency.EUR: "€", Currency.USD: "$", Currency.GBP: "£"}
ADDRESS: Final = re.compile(r"https?://[^\s\[\]()<>\"']+", re.IGNORECASE)
BRACKETS: Final = str.maketrans("[]", "()")


def render(response: SommelierResponse, evidence: Evidence, language: Language = "en") -> str:
    """An answer as Markdown: the model's words, beside facts that come from the catalogue."""
    said = {wine.wine_id: wine.description.strip() for wine in reversed(response.wines)}
    parts = [response.intro.strip()]
    for number, wine in enumerate(shown_wines(response.wines, evidence), start=1):
        parts.append(
            f"**{number}. {wine.label}**\n{facts_line(wine, language)}\n{said[wine.id]}".strip()
        )
    parts.append(response.closing.strip())
    return with_footnotes("\n\n".join(part for part in parts if part), evidence)


def with_footnotes(text: str, evidence: Evidence) -> str:
    """A text with numbers for the paths it cites, and the documents' titles below it."""
    chunks = [found for found in evidence.found.values() if isinstance(found, Chunk)]
    numbered, notes = footnotes(text, chunks) if chunks else (text, ())
    if not notes:
        return text
    titles = [
        f"[{note.number}] {f'{note.title} · {note.location}'.translate(BRACKETS)}" for note in notes
    ]
    # A number right before a parenthesis would be a link of the model's own.
    return "\n".join([numbered.replace("](", "] ("), "", *titles])


def unsupported(response: SommelierResponse, evidence: Evidence) -> str | None:
    """What in a response no tool returned: a wine, a path, an address, a quote; None if all did.

    What reads like any of these and stands in a text of a tool or of the person is supported.
    """
    if problem := ungrounded(response, evidence):
        return problem
    for text in _texts(response):
        for rule in (unretrieved_path, unknown_address, misquoted):
            if problem := rule(text, evidence):
                return problem
    return None


def unknown_address(text: str, evidence: Evidence) -> str | None:
    """The first web address that no tool and no person named, as feedback; None without one."""
    for found in ADDRESS.finditer(text):
        address = found[0].rstrip(".,;:!?")
        if not any(address in said for said in evidence.texts):
            return f"the text links to {fence(address)}, which no tool returned; leave it out"
    return None


def supported_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """A response without what no tool returned; None if nothing worth it is left."""

    def kept(text: str) -> str:
        broken = unretrieved_path(text, evidence) or unknown_address(text, evidence)
        return "" if broken else without_misquotes(text, evidence)

    wines = [
        wine.model_copy(update={"description": kept(wine.description)}) for wine in response.wines
    ]
    texts = {"intro": kept(response.intro), "closing": kept(response.closing)}
    return grounded_part(response.model_copy(update=texts | {"wines": wines}), evidence)


def _texts(response: SommelierResponse) -> list[str]:
    return [response.intro, response.closing, *(wine.description for wine in response.wines)]


def facts_line(wine: Wine, language: Language = "en") -> str:
    """Where a wine comes from and what it costs; the price is indicative, hence the sign."""
    place, country = wine.appellation or wine.region, country_in_words(wine.country, language)
    origin = f"{place}, {country}" if place and place != wine.country else country
    facts = [origin, price_text(wine), "" if wine.in_stock else NOT_IN_STOCK[language]]
    return " · ".join(fact for fact in facts if fact)


def price_text(wine: Wine) -> str:
    """An indicative price, e.g. `≈ €18`, `≈ CHF 20`; empty if none is known."""
    if wine.price is None:
        return ""
    amount = f"{wine.price:.2f}".removesuffix(".00")
    symbol = SYMBOLS.get(wine.currency)
    return f"≈ {symbol}{amount}" if symbol else f"≈ {wine.currency} {amount}"


def wine_ids(response: SommelierResponse) -> list[str]:
    """The ids of the wines shown, each once."""
    return list(dict.fromkeys(wine.wine_id for wine in response.wines))


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=validate_semantic_content,
    grounding=unsupported,
    render=render,
    salvage=supported_part,
)


def in_language(language: Language) -> OutputContract[SommelierResponse]:
    """The contract of an answer whose facts are shown in `language`."""
    return replace(SOMMELIER, render=partial(render, language=language))
