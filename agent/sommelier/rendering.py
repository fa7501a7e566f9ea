"""Render an answer as Markdown: the model's plain text, cards with facts, sums and footnotes."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from agent.auto_links import find_auto_links
from agent.documents.citations import cite_excerpts, number_citations
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence
from agent.markdown import escape, format_link
from agent.sommelier.attachment import AnyWine
from agent.sommelier.basket import find_line, format_total, list_basket
from agent.sommelier.cards import render_wine
from agent.sommelier.sommelier_prompts import (
    WINE_PLACEHOLDER,
    SommelierResponse,
    WineRecommendation,
)
from agent.text import Match

SEPARATOR: Final = "\n\ue000\n"
"""A text that joins the texts of an answer. They never have its private-use character."""


class _ShownWine(NamedTuple):
    """A wine that an answer shows, with the model's recommendation of it."""

    item: WineRecommendation
    wine: AnyWine


def render(response: SommelierResponse, evidence: Evidence) -> str:
    """Return an answer as Markdown: the model's plain text, a card for each wine, and sums."""
    shown = _list_shown(response.wines, evidence)
    written = [wine.item.description for wine in shown]
    texts, footnote_lines = _number_citations(
        [response.intro, *written, response.closing], evidence
    )
    intro, *descriptions, closing = [_to_markdown(text, evidence) for text in texts]
    cards = _render_cards(shown, descriptions, evidence)
    lines = list_basket(response.wines, evidence.sources)
    total = ""
    if lines:
        total = escape(format_total(lines, response.budget, evidence))
    parts = [intro, *cards, total, closing, footnote_lines]
    return "\n\n".join(filter(None, parts))


def cites_documents(response: SommelierResponse, evidence: Evidence) -> bool:
    """Return whether an answer cites a document, or repeats what a document says."""
    descriptions = [wine.description for wine in response.wines]
    texts = [response.intro, *descriptions, response.closing]
    _, footnote_lines = _number_citations(texts, evidence)
    return bool(footnote_lines)


def find_wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    """Return the wine with this id that a tool has returned, or None."""
    source = evidence.sources.get(wine_id)
    if not isinstance(source, AnyWine):
        return None
    return source


def _list_shown(
    items: Sequence[WineRecommendation], evidence: Evidence
) -> list[_ShownWine]:
    shown: list[_ShownWine] = []
    for item in items:
        wine = find_wine(item.wine_id, evidence)
        if wine is not None:
            shown.append(_ShownWine(item, wine))
    return shown


def _render_cards(
    shown: Sequence[_ShownWine], descriptions: Sequence[str], evidence: Evidence
) -> list[str]:
    """Return the card of each wine: its facts, what its bottles cost, and its description."""
    user_text = " ".join(evidence.user_texts)
    cards: list[str] = []
    for (item, wine), description in zip(shown, descriptions, strict=True):
        number = f"{len(cards) + 1}. "
        line = find_line(item, wine)
        card = render_wine(wine, description, number, user_text=user_text, line=line)
        cards.append(card)
    return cards


def _to_markdown(text: str, evidence: Evidence) -> str:
    """Return a text of the model as Markdown.

    An address becomes a link only if a source has this link. `{wine:ID}` is replaced by the name of
    the wine, or removed if the wine is unknown.
    """

    def replace_placeholder(placeholder: Match) -> str:
        wine = find_wine(placeholder[1].strip(), evidence)
        if wine is None:
            return ""
        return wine.label

    text = WINE_PLACEHOLDER.sub(replace_placeholder, text)
    parts: list[str] = []
    end = 0
    for link in find_auto_links(text):
        address = text[link.start : link.end]
        if address in evidence.links:
            parts += [escape(text[end : link.start]), format_link(address)]
            end = link.end
    return "".join([*parts, escape(text[end:])])


def _number_citations(texts: list[str], evidence: Evidence) -> tuple[list[str], str]:
    """Return the texts with numbers for cited paths, and the footnotes as Markdown.

    Descriptions of wines are based on the catalogue and cite nothing by themselves. The other
    sentences cite the excerpts that they repeat.
    """
    sources = evidence.sources.values()
    chunks = [source for source in sources if isinstance(source, Chunk)]
    if not chunks:
        return texts, ""
    intro, *descriptions, closing = texts
    intro = cite_excerpts(intro, chunks)
    closing = cite_excerpts(closing, chunks)
    joined = SEPARATOR.join([intro, *descriptions, closing])
    numbered, notes = number_citations(joined, chunks)
    footnote_lines = "\n".join(note.source_line for note in notes)
    return numbered.split(SEPARATOR), footnote_lines
