"""The contract of the sommelier's answer, and its rendering.

The answer names wines by ids that a tool returned; they are shown as cards from the catalogue.
Links and cited paths must come from tools, and figures in prose must be in the evidence
(`grounding.py`).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from agent.documents.citations import footnotes, unretrieved_path
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import quoted
from agent.markdown import escape, link, live, plain
from agent.sommelier.cards import wine_text
from agent.sommelier.grounding import PLACEHOLDER, Grounds, sentences_that
from agent.sommelier.read_wine import AnyWine, ReadWine
from agent.sommelier.sommelier_prompts import (
    SommelierResponse,
    WineRecommendation,
    validate_semantic_content,
)
from agent.text import Match, pattern

QUOTE_LINE: Final = pattern(r"(?m)^\\> ")
"""The mark of a block quote, the only Markdown that a model's text keeps."""
SEPARATOR: Final = "\n\ue000\n"
"""Joins the texts of an answer; none of them contains it."""
MISSING_SPACE: Final = pattern(r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|[A-Z][.].*)\Z")
"""Text that looks like an address: a sentence end without a space after it, or an abbreviation."""
MAX_NAMED_IDS: Final = 12
"""The most allowed ids that the feedback to a model names."""
UNKNOWN: Final = {"response_type": "informational"}
"""The type of a response until the model has written it."""


def render(response: SommelierResponse, evidence: Evidence) -> str:
    """Return an answer as Markdown: the model's plain text, and a card for each wine.

    An answer that reports a crisis is not shown: its text is replaced by help.
    """
    if response.concern == "crisis":
        return response.concern
    found = ((_wine(wine.wine_id, evidence), wine.description) for wine in response.wines)
    cards = [(wine, description) for wine, description in found if wine]
    texts = [response.intro, *(description for _, description in cards), response.closing]
    numbered, notes = _with_footnotes(texts, evidence)
    intro, *descriptions, closing = (in_markdown(text, evidence) for text in numbered)
    shown = (
        wine_text(wine, description, f"{number}. ", asked=evidence.user_texts)
        for number, ((wine, _), description) in enumerate(zip(cards, descriptions, strict=True), 1)
    )
    return "\n\n".join(part for part in (intro, *shown, closing, notes) if part)


def in_markdown(text: str, evidence: Evidence) -> str:
    """Return a model's text as Markdown that shows it as it is; addresses of sources are links.

    `{wine:ID}` is replaced by the wine's name, or removed if the wine is unknown.
    """

    def name(placeholder: Match) -> str:
        wine = _wine(placeholder[1].strip(), evidence)
        return wine.label if wine else ""

    text = PLACEHOLDER.sub(name, text)
    parts, end, links = list[str](), 0, evidence.links
    for found in live(text):
        if (address := text[found.start : found.end]) in links:
            parts += [escape(text[end : found.start]), link(address)]
            end = found.end
    return QUOTE_LINE.sub("> ", "".join([*parts, escape(text[end:])]))


def _with_footnotes(texts: Sequence[str], evidence: Evidence) -> tuple[Sequence[str], str]:
    """Replace cited paths by numbers; return the texts, and the documents' titles as Markdown."""
    chunks = [found for found in evidence.sources.values() if isinstance(found, Chunk)]
    if not chunks:
        return texts, ""
    numbered, notes = footnotes(SEPARATOR.join(texts), chunks)
    return numbered.split(SEPARATOR), "\n".join(note.source_line for note in notes)


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines that a response shows."""
    return [wine.wine_id for wine in response.wines]


def semantic_problem(response: SommelierResponse) -> str | None:
    """Return what an answer lacks, or None. An answer that reports a crisis is never shown."""
    return None if response.concern == "crisis" else validate_semantic_content(response)


def grounding_problem(response: SommelierResponse, evidence: Evidence) -> str | None:
    """Return feedback on the parts of a response that no evidence supports, or None."""
    if response.concern == "crisis":
        return None
    for position, wine in enumerate(response.wines):
        if problem := _ungrounded_wine(wine, evidence):
            return f"wines.{position}: {problem}"
    grounds = Grounds(evidence, frozenset(wine_ids(response)))
    described = ((wine.description, wine.wine_id) for wine in response.wines)
    texts = [(response.intro, ""), *described, (response.closing, "")]
    found = (_problem(text, wine_id, grounds) for text, wine_id in texts)
    problems = dict.fromkeys(problem for problem in found if problem)
    return "; ".join(problems) or None


def _problem(text: str, wine_id: str, grounds: Grounds) -> str | None:
    """Return the first path, address, wine or figures in a text that no evidence supports."""
    evidence = grounds.evidence
    rules = (unretrieved_path, unknown_address, _unknown_placeholder)
    if problem := next(filter(None, (rule(text, evidence) for rule in rules)), None):
        return problem
    wine = _wine(wine_id, evidence)
    if figures := grounds.wrong_figures(text, wine):
        source = f"{wine.label} has no such figure" if wine else "no tool returned them"
        return f"leave out {', '.join(map(quoted, figures))}: {source}"
    return None


def _ungrounded_wine(wine: WineRecommendation, evidence: Evidence) -> str | None:
    """Return why a wine may not be recommended: no tool returned it, or it is not on the list."""
    found = _wine(wine.wine_id, evidence)
    if found is None:
        problem = f"no tool returned a wine with the id {quoted(wine.wine_id)}"
    elif not _is_listed(found) and any(map(_is_listed, evidence.sources.values())):
        problem = f"{quoted(found.label)} is not on the guest's wine list"
    else:
        return None
    return f"{problem}; {_allowed_ids(evidence)}"


def _unknown_placeholder(text: str, evidence: Evidence) -> str | None:
    """Return a problem with the first `{wine:ID}` whose wine no tool returned, or None."""
    for found in PLACEHOLDER.finditer(text):
        if not _wine(found[1].strip(), evidence):
            problem = f"no tool returned a wine with the id in {quoted(found[0])}"
            return f"{problem}; {_allowed_ids(evidence)}"
    return None


def unknown_address(text: str, evidence: Evidence) -> str | None:
    """Return a problem with the first address in `text` that is in no source, or None.

    An address that is only in a source's text, not its link, is shown but is no link.
    """
    addresses = _addresses(unicodedata.normalize("NFKC", text))
    if not addresses:
        return None
    paths = (found.path for found in evidence.sources.values() if isinstance(found, Chunk))
    shown = map(plain, evidence.assistant_texts)
    known = evidence.links.union(paths, *map(_addresses, (*evidence.texts, *shown)))
    for address in addresses:
        if address not in known and not MISSING_SPACE.search(address):
            return f"the text has the address {quoted(address)}, which no tool found; leave it out"
    return None


def _addresses(text: str) -> list[str]:
    return [text[found.start : found.end] for found in live(text) if found.kind == "address"]


def _wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    found = evidence.sources.get(wine_id)
    return found if isinstance(found, AnyWine) else None


def _is_listed(found: object) -> bool:
    return isinstance(found, ReadWine) and found.is_listed


def _allowed_ids(evidence: Evidence) -> str:
    wines = {key: found for key, found in evidence.sources.items() if isinstance(found, AnyWine)}
    ids = [key for key, wine in wines.items() if _is_listed(wine)] or list(wines)
    if not ids:
        return "call search_wines first and recommend only wines it returns"
    return f"recommend only wines with these ids: {', '.join(ids[-MAX_NAMED_IDS:])}"


def grounded_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse:
    """Return a response without wines and sentences that no evidence supports."""
    wines = [wine for wine in response.wines if not _ungrounded_wine(wine, evidence)]
    grounds = Grounds(evidence, frozenset(wine.wine_id for wine in wines))

    def supported(text: str, wine_id: str = "") -> str:
        if not _problem(text, wine_id, grounds):
            return text
        return sentences_that(lambda sentence: not _problem(sentence, wine_id, grounds), text)

    described = [
        wine.model_copy(update={"description": supported(wine.description, wine.wine_id)})
        for wine in wines
    ]
    texts = {"intro": supported(response.intro), "closing": supported(response.closing)}
    return response.model_copy(update={**texts, "wines": described})


def _prose(response: SommelierResponse) -> str:
    """Return the prose of a response: its intro, descriptions and closing."""
    texts = (response.intro, *(wine.description for wine in response.wines), response.closing)
    return " ".join(text for text in texts if text)


def trim(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return a response without ungrounded sentences; None if a wine or half its prose would go."""
    rest = grounded_part(response, evidence)
    is_enough = 2 * len(_prose(rest)) >= len(_prose(response))
    return rest if is_enough and len(rest.wines) == len(response.wines) else None


def salvage(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return the grounded part of a response, with some prose; None if no wine would remain."""
    rest = grounded_part(response, evidence)
    if response.wines and not rest.wines:
        return None
    if rest.wines and not _prose(rest):
        names = ", ".join(f"{{wine:{wine_id}}}" for wine_id in wine_ids(rest))
        return rest.model_copy(update={"intro": names})
    return rest


def draft_part(written: Mapping[str, Any], evidence: Evidence) -> SommelierResponse | None:
    """Return the part of an unfinished response that may be shown, None if there is none."""
    listed = written.get("wines")
    wines = [wine for wine in listed if isinstance(wine, dict)] if isinstance(listed, list) else []
    named = [wine for wine in wines if wine.get("wine_id") or wine.get("id")]
    known = {name: value for name, value in written.items() if value is not None}
    try:
        response = SommelierResponse.model_validate(UNKNOWN | known | {"wines": named})
    except ValidationError:
        return None
    return grounded_part(response, evidence) if response.concern == "none" else None


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=semantic_problem,
    grounding=grounding_problem,
    render=render,
    ids=wine_ids,
    trim=trim,
    salvage=salvage,
    partial=draft_part,
)
