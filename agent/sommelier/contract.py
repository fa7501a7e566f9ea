"""What a `SommelierResponse` must keep to, and how it reaches a person.

Wines are held to ids that a tool returned, exactly; free text to what tools returned.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from agent.documents.answer import footnotes
from agent.documents.citations import unretrieved_path
from agent.documents.grounding import misquoted, ungrounded_text, without_misquotes
from agent.documents.store import Chunk
from agent.engine import parsing
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import fence
from agent.engine.loop import AgenticResponse
from agent.sommelier.sommelier_prompts import (
    SommelierResponse,
    WineRecommendation,
    validate_semantic_content,
)
from agent.sommelier.wine import Wine, money
from agent.text import Language, words

ADDRESS: Final = re.compile(r"https?://[^\s\[\]()<>\"']++", re.IGNORECASE)
BRACKETS: Final = str.maketrans("[]", "()")
YEAR: Final = re.compile(r"(?:19|20)\d\d")
SHOWN_IDS: Final = 12

Sentence = Literal["not_in_stock", "no_model", "model_down", "declined", "failed"]
CountryName = Callable[[str, Language], str]
"""What a language calls a country that is named in English."""


def in_english(country: str, language: Language) -> str:
    """Return a country's English name, whatever the language."""
    return country


def render(
    response: SommelierResponse,
    evidence: Evidence,
    language: Language = "en",
    country_name: CountryName = in_english,
) -> str:
    """Write an answer as Markdown: the model's words, beside facts that come from the catalogue."""
    said = {wine.wine_id: wine.description.strip() for wine in reversed(response.wines)}
    parts = [response.intro.strip()]
    for number, wine in enumerate(shown_wines(response.wines, evidence), start=1):
        facts = facts_line(wine, language, country_name)
        parts.append(f"**{number}. {wine.label}**\n{facts}\n{said[wine.id]}".strip())
    parts.append(response.closing.strip())
    return with_footnotes("\n\n".join(part for part in parts if part), evidence)


def shown_wines(wines: Iterable[WineRecommendation], evidence: Evidence) -> list[Wine]:
    """Return the catalogue's facts of recommended wines, each once; unknown ids are left out."""
    found = (evidence.found.get(wine_id) for wine_id in dict.fromkeys(w.wine_id for w in wines))
    return [wine for wine in found if isinstance(wine, Wine)]


def facts_line(
    wine: Wine, language: Language = "en", country_name: CountryName = in_english
) -> str:
    """Say where a wine comes from and what it costs, and if it is not in stock."""
    place, country = wine.appellation or wine.region, country_name(wine.country, language)
    origin = f"{place}, {country}" if place and place != wine.country else country
    facts = [origin, price_text(wine), "" if wine.in_stock else say("not_in_stock", language)]
    return " · ".join(fact for fact in facts if fact)


def say(name: Sentence, language: Language) -> str:
    """Return one of the sentences of `contract.toml`."""
    return _sentences()[name][language]


@cache
def _sentences() -> Mapping[Sentence, Mapping[Language, str]]:
    file = Path(__file__).with_suffix(".toml")
    sentences = TypeAdapter(dict[Sentence, dict[Language, str]])
    return sentences.validate_python(tomllib.loads(file.read_text("utf-8")))


def price_text(wine: Wine) -> str:
    """Write an indicative price, hence the sign: `≈ €18`; empty if none is known."""
    return "" if wine.price is None else f"≈ {money(wine.price, wine.currency)}"


def with_footnotes(text: str, evidence: Evidence) -> str:
    """Number the paths that a text cites, and put the documents' titles below it."""
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
    """Say what in a response no tool returned; None if all did.

    A wine, a name, vintage or price in the text, a path, an address or a quote.
    """
    for position, wine in enumerate(response.wines):
        if problem := ungrounded_wine(wine, evidence):
            return f"wines.{position}: {problem}"
    return next(_problems(response, evidence), None)


def _problems(response: SommelierResponse, evidence: Evidence) -> Iterator[str]:
    texts = [response.intro, response.closing, *(wine.description for wine in response.wines)]
    for rule in (ungrounded_text, unretrieved_path, unknown_address, misquoted):
        for text in texts:
            if problem := rule(text, evidence):
                yield problem


def unknown_address(text: str, evidence: Evidence) -> str | None:
    """Name the first web address in `text` that no tool returned; None without one."""
    for found in ADDRESS.finditer(text):
        address = found[0].rstrip(".,;:!?")
        if not any(address in said for said in evidence.texts):
            return f"the text links to {fence(address)}, which no tool returned; leave it out"
    return None


def ungrounded_wine(wine: WineRecommendation, evidence: Evidence) -> str | None:
    """Say why a recommended wine is not one that a tool returned; None if it is."""
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
    """Tell whether half the words of `said`, and its year if it has one, are in `label`."""
    named, known = set(words(said)), set(words(label))
    years = {word for word in named if YEAR.fullmatch(word)}
    return years <= known and 2 * len(named & known) >= len(named)


def supported_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return a response without what no tool returned; None if nothing worth it is left."""

    def kept(text: str) -> str:
        rules = (unretrieved_path, unknown_address)
        left = "" if any(r(text, evidence) for r in rules) else without_misquotes(text, evidence)
        return "" if ungrounded_text(left, evidence) else left

    wines = [
        wine.model_copy(update={"description": kept(wine.description)})
        for wine in response.wines
        if not ungrounded_wine(wine, evidence)
    ]
    if response.wines and not wines:
        return None
    intro, closing = kept(response.intro), kept(response.closing)
    if wines and not any((intro, closing, *(wine.description for wine in wines))):
        intro = ", ".join(shown.label for shown in shown_wines(wines, evidence))
    return response.model_copy(update={"intro": intro, "closing": closing, "wines": wines})


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines shown, each once."""
    return list(dict.fromkeys(wine.wine_id for wine in response.wines))


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=validate_semantic_content,
    grounding=unsupported,
    render=render,
    salvage=supported_part,
)


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What the final response of a turn came to; `error` is None on success.

    Source of the form: R-004 of the structured-output research.
    """

    text: str
    wine_ids: list[str]
    error: str | None = None

    @classmethod
    def of(cls, parsed: parsing.ParseResult[Any] | AgenticResponse[Any]) -> "ParseResult":
        """Take over what the engine made of a `SommelierResponse`, with the ids of its wines.

        An answer that breaks a rule names none: nobody is to see them.
        """
        if not parsed.ok or parsed.answer is None:
            return cls("", [], parsed.error)
        return cls(parsed.text, wine_ids(parsed.answer))

    @property
    def ok(self) -> bool:
        """Whether there is no error, and a text that is not blank."""
        return self.error is None and bool(self.text.strip())


def in_language(language: Language, country_name: CountryName) -> OutputContract[SommelierResponse]:
    """Make the contract of an answer whose facts are shown in `language`."""
    return replace(SOMMELIER, render=partial(render, language=language, country_name=country_name))
