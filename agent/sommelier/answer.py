"""The contract of the sommelier's answer, and how it reaches a user.

Wines are named by ids that a tool returned and shown as cards from the catalogue. Links and cited
paths must have been found, and figures in prose must stand in evidence (`grounding.py`).
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from agent.documents.answer import footnotes
from agent.documents.citations import unretrieved_path
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import fence
from agent.engine.messages import JsonSchema
from agent.markdown import escape, link, live, plain
from agent.sommelier.cards import wine_text
from agent.sommelier.grounding import PLACEHOLDER, Grounds, sentences_that
from agent.sommelier.sommelier_prompts import (
    SmallSommelierResponse,
    SommelierResponse,
    WineRecommendation,
    validate_semantic_content,
)
from agent.sommelier.wine import AnyWine, ReadWine
from agent.text import Match, pattern

QUOTE_LINE: Final = pattern(r"(?m)^\\> ")
"""The mark of a block quote, the only one that words may have."""
BETWEEN: Final = "\n\ue000\n"
"""What no text of an answer holds."""
MISSING_SPACE: Final = pattern(r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|[A-Z][.].*)\Z")
"""The end of a sentence with no white space behind it, or letters that stand for words."""
NAMED_IDS: Final = 12
SMALL_MIN_WINES: Final = 2
SMALL_MAX_WINES: Final = 3
"""How many wines a small model shows, where so many were found."""
UNKNOWN: Final = {"response_type": "informational"}
"""What a response is taken for until it says what it is."""


def render(response: SommelierResponse, evidence: Evidence) -> str:
    """Write an answer as Markdown: the model's words, beside cards of the catalogue.

    The words stay plain text. Only the numbers of documents and the names of wines are put into
    them, and addresses that a tool found become links. Of an answer that hears a crisis nothing is
    shown but that: help takes its place.
    """
    if response.concern == "crisis":
        return response.concern
    described = {wine.wine_id: wine.description for wine in reversed(response.wines)}
    wines = shown_wines(response.wines, evidence)
    texts = [response.intro, *(described[wine.id] for wine in wines), response.closing]
    numbered, notes = with_footnotes(texts, evidence)
    named = [with_names(text, evidence) for text in numbered]
    intro, *descriptions, closing = (in_markdown(text, evidence) for text in named)
    cards = (
        wine_text(wine, description, f"{number}. ", asked=evidence.user_texts)
        for number, (wine, description) in enumerate(zip(wines, descriptions, strict=True), start=1)
    )
    return "\n\n".join(part for part in (intro, *cards, closing, notes) if part)


def in_markdown(text: str, evidence: Evidence) -> str:
    """Write a model's words as Markdown that shows them as they are, with links that were found."""
    parts, end, links = list[str](), 0, evidence.links
    for found in live(text):
        if (address := text[found.start : found.end]) in links:
            parts += [escape(text[end : found.start]), link(address)]
            end = found.end
    return QUOTE_LINE.sub("> ", "".join([*parts, escape(text[end:])]))


def with_names(text: str, evidence: Evidence) -> str:
    """Return a text with the names of wines in place of `{wine:ID}`; nothing for an unknown id."""

    def name(placeholder: Match) -> str:
        wine = _wine(placeholder[1].strip(), evidence)
        return wine.label if wine else ""

    return PLACEHOLDER.sub(name, text)


def with_footnotes(texts: Sequence[str], evidence: Evidence) -> tuple[Sequence[str], str]:
    """Number the paths that texts cite; return them, and the documents' titles as Markdown."""
    chunks = [found for found in evidence.sources.values() if isinstance(found, Chunk)]
    if not chunks:
        return texts, ""
    numbered, notes = footnotes(BETWEEN.join(texts), chunks)
    titles = (f"[{note.number}] {escape(f'{note.title} · {note.location}')}" for note in notes)
    return numbered.split(BETWEEN), "\n".join(titles)


def shown_wines(wines: Iterable[WineRecommendation], evidence: Evidence) -> list[AnyWine]:
    """Return the facts of recommended wines, each once; unknown ids are left out."""
    found = (_wine(wine_id, evidence) for wine_id in dict.fromkeys(w.wine_id for w in wines))
    return [wine for wine in found if wine]


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines shown, each once."""
    return list(dict.fromkeys(wine.wine_id for wine in response.wines))


def semantic_problem(response: SommelierResponse) -> str | None:
    """Say what an answer lacks; nothing of one that hears a crisis, which help replaces whole."""
    return None if response.concern == "crisis" else validate_semantic_content(response)


def unsupported(response: SommelierResponse, evidence: Evidence) -> str | None:
    """Say what in a response no tool returned, by its words; None if all did."""
    if response.concern == "crisis":
        return None
    for position, wine in enumerate(response.wines):
        if problem := ungrounded_wine(wine, evidence):
            return f"wines.{position}: {problem}"
    grounds = Grounds(evidence, frozenset(wine_ids(response)))
    described = ((wine.description, wine.wine_id) for wine in response.wines)
    texts = [(response.intro, ""), *described, (response.closing, "")]
    found = (_problem(text, wine_id, grounds) for text, wine_id in texts)
    problems = dict.fromkeys(problem for problem in found if problem)
    return "; ".join(problems) or None


def _problem(text: str, wine_id: str, grounds: Grounds) -> str | None:
    """Say what in a text no tool returned: a path, an address, a wine, or figures."""
    evidence = grounds.evidence
    rules = (unretrieved_path, unknown_address, unknown_placeholder)
    if problem := next(filter(None, (rule(text, evidence) for rule in rules)), None):
        return problem
    wine = _wine(wine_id, evidence)
    if figures := grounds.wrong_figures(text, wine):
        source = f"{wine.label} has no such figure" if wine else "no tool returned them"
        return f"leave out {', '.join(map(fence, figures))}: {source}"
    return None


def ungrounded_wine(wine: WineRecommendation, evidence: Evidence) -> str | None:
    """Say why a recommended wine is not one that a tool returned; None if it is."""
    found = _wine(wine.wine_id, evidence)
    if found is None:
        return f"no tool returned a wine with the id {fence(wine.wine_id)}; {_known(evidence)}"
    if not _is_listed(found) and any(map(_is_listed, evidence.sources.values())):
        return f"{fence(found.label)} is not on the guest's wine list; {_known(evidence)}"
    return None


def unknown_placeholder(text: str, evidence: Evidence) -> str | None:
    """Name the first `{wine:ID}` in `text` whose wine no tool returned; None without one."""
    for found in PLACEHOLDER.finditer(text):
        if not _wine(found[1].strip(), evidence):
            return f"no tool returned a wine with the id in {fence(found[0])}; {_known(evidence)}"
    return None


def unknown_address(text: str, evidence: Evidence) -> str | None:
    """Name the first address in `text` that stands in no source whole; None without one.

    One that only stands in a text, and was not found as a link, is shown and cannot be tapped.
    """
    addresses = _addresses(unicodedata.normalize("NFKC", text))
    if not addresses:
        return None
    paths = (found.path for found in evidence.sources.values() if isinstance(found, Chunk))
    shown = map(plain, evidence.assistant_texts)
    known = evidence.links.union(paths, *map(_addresses, (*evidence.texts, *shown)))
    for address in addresses:
        if address not in known and not MISSING_SPACE.search(address):
            return f"the text has the address {fence(address)}, which no tool found; leave it out"
    return None


def _addresses(text: str) -> list[str]:
    return [text[found.start : found.end] for found in live(text) if found.kind == "address"]


def _wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    found = evidence.sources.get(wine_id)
    return found if isinstance(found, AnyWine) else None


def _is_listed(found: object) -> bool:
    return isinstance(found, ReadWine) and found.is_listed


def _known(evidence: Evidence) -> str:
    wines = {key: found for key, found in evidence.sources.items() if isinstance(found, AnyWine)}
    ids = [key for key, wine in wines.items() if _is_listed(wine)] or list(wines)
    if not ids:
        return "call search_wines first and recommend only wines it returns"
    return f"recommend only wines with these ids: {', '.join(ids[-NAMED_IDS:])}"


def trimmed(response: SommelierResponse, evidence: Evidence) -> SommelierResponse:
    """Return a response without the sentences that no evidence supports."""
    grounds = Grounds(evidence, frozenset(wine_ids(response)))

    def supported(text: str, wine_id: str = "") -> str:
        if not _problem(text, wine_id, grounds):
            return text
        return sentences_that(lambda said: not _problem(said, wine_id, grounds), text)

    wines = [
        wine.model_copy(update={"description": supported(wine.description, wine.wine_id)})
        for wine in response.wines
    ]
    texts = {"intro": supported(response.intro), "closing": supported(response.closing)}
    return response.model_copy(update={**texts, "wines": wines})


def prose(response: SommelierResponse) -> str:
    """Return all words of a response."""
    texts = (response.intro, *(wine.description for wine in response.wines), response.closing)
    return " ".join(text for text in texts if text)


def good_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return a response without ungrounded sentences if it is good without them; else None.

    It is if all its wines were found and most of its words are left.
    """
    if any(ungrounded_wine(wine, evidence) for wine in response.wines):
        return None
    left = trimmed(response, evidence)
    return left if 2 * len(prose(left)) >= len(prose(response)) else None


def supported_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return a response without what no tool returned; None if nothing worth it is left."""
    wines = [wine for wine in response.wines if not ungrounded_wine(wine, evidence)]
    if response.wines and not wines:
        return None
    left = trimmed(response.model_copy(update={"wines": wines}), evidence)
    if wines and not prose(left):
        intro = ", ".join(shown.label for shown in shown_wines(wines, evidence))
        return left.model_copy(update={"intro": intro})
    return left


def begun_part(written: Mapping[str, Any], evidence: Evidence) -> SommelierResponse | None:
    """Return what may be shown of a response that is still being written; None if nothing."""
    listed = written.get("wines")
    wines = [wine for wine in listed if isinstance(wine, dict)] if isinstance(listed, list) else []
    named = [wine for wine in wines if wine.get("wine_id") or wine.get("id")]
    known = {name: value for name, value in written.items() if value is not None}
    try:
        response = SommelierResponse.model_validate(UNKNOWN | known | {"wines": named})
    except ValidationError:
        return None
    if response.concern != "none":
        return None
    wines_found = [wine for wine in response.wines if not ungrounded_wine(wine, evidence)]
    return trimmed(response.model_copy(update={"wines": wines_found}), evidence)


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=semantic_problem,
    grounding=unsupported,
    render=render,
    ids=wine_ids,
    trim=good_part,
    salvage=supported_part,
    partial=begun_part,
)


def of_found_wines(schema: JsonSchema, evidence: Evidence) -> JsonSchema:
    """Leave in an answer's strict schema the wines that were found, no place for any if none was.

    A server that holds a model to it lets no other id be written.
    """
    properties = dict(schema["properties"])
    found = [name for name, wine in evidence.sources.items() if isinstance(wine, AnyWine)]
    if found:
        wine = properties["wines"]["items"]
        wine_id = {"type": "string", "enum": found}
        one = wine | {"properties": wine["properties"] | {"wine_id": wine_id}}
        few = {"minItems": min(SMALL_MIN_WINES, len(found)), "maxItems": SMALL_MAX_WINES}
        properties["wines"] = {"type": "array", "items": one, **few}
    else:
        del properties["wines"]
    return {**schema, "properties": properties, "required": list(properties)}


SMALL_SOMMELIER: Final[OutputContract[SommelierResponse]] = replace(
    SOMMELIER, type=SmallSommelierResponse, narrow=of_found_wines
)
"""The same for a small model: its schema is a third as long."""
