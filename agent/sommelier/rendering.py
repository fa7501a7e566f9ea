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

    recommendation: WineRecommendation
    wine: AnyWine


def render(response: SommelierResponse, evidence: Evidence) -> str:
    """Return an answer as Markdown: the model's plain text, a card for each wine, and sums."""
    shown_wines = _list_shown(response.wines, evidence)
    shown_recommendations = [shown.recommendation for shown in shown_wines]
    texts = _list_texts(response, shown_recommendations)
    texts, footnotes = _number_citations(texts, evidence)
    rendered = [_to_markdown(text, evidence) for text in texts]
    intro, *descriptions, closing = rendered
    cards = _render_cards(shown_wines, descriptions, evidence)
    lines = list_basket(response.wines, evidence.sources)
    total = ""
    if lines:
        total = escape(format_total(lines, response.budget, evidence))
    paragraphs = [intro, *cards, total, closing, footnotes]
    return "\n\n".join(text for text in paragraphs if text)


def cites_documents(response: SommelierResponse, evidence: Evidence) -> bool:
    """Return whether an answer cites a document, or repeats what a document says."""
    texts = _list_texts(response, response.wines)
    _, footnotes = _number_citations(texts, evidence)
    return bool(footnotes)


def _list_texts(
    response: SommelierResponse, recommendations: Sequence[WineRecommendation]
) -> list[str]:
    """Return the texts that a model has written: intro, descriptions and closing."""
    descriptions = [wine.description for wine in recommendations]
    return [response.intro, *descriptions, response.closing]


def find_wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    """Return the wine with this id that a tool has returned, or None."""
    source = evidence.sources.get(wine_id)
    if not isinstance(source, AnyWine):
        return None
    return source


def _list_shown(
    recommendations: Sequence[WineRecommendation], evidence: Evidence
) -> list[_ShownWine]:
    """Return the recommended wines that a tool has returned."""
    shown_wines: list[_ShownWine] = []
    for recommendation in recommendations:
        wine = find_wine(recommendation.wine_id, evidence)
        if wine is not None:
            shown_wines.append(_ShownWine(recommendation, wine))
    return shown_wines


def _render_cards(
    shown_wines: Sequence[_ShownWine],
    descriptions: Sequence[str],
    evidence: Evidence,
) -> list[str]:
    """Return the card of each wine: its facts, what its bottles cost, and its description."""
    user_text = " ".join(evidence.user_texts)
    cards: list[str] = []
    for shown, description in zip(shown_wines, descriptions, strict=True):
        number = len(cards) + 1
        card = render_wine(
            shown.wine,
            description,
            prefix=f"{number}. ",
            user_text=user_text,
            line=find_line(shown.recommendation, shown.wine),
        )
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
    markdown = ""
    end_of_last_link = 0
    for link in find_auto_links(text):
        address = text[link.start : link.end]
        if address in evidence.links:
            text_before = text[end_of_last_link : link.start]
            markdown += escape(text_before) + format_link(address)
            end_of_last_link = link.end
    text_after = text[end_of_last_link:]
    return markdown + escape(text_after)


def _number_citations(texts: list[str], evidence: Evidence) -> tuple[list[str], str]:
    """Return the texts with numbers in place of cited paths, and the footnotes as Markdown.

    A sentence of the intro or closing also cites the excerpts that it merely repeats. A description
    of a wine does not, because it is based on the catalogue.
    """
    sources = evidence.sources.values()
    chunks = [source for source in sources if isinstance(source, Chunk)]
    if not chunks:
        return texts, ""
    intro, *descriptions, closing = texts
    intro = cite_excerpts(intro, chunks)
    closing = cite_excerpts(closing, chunks)
    # The texts are joined, because their numbers count on from text to text.
    joined = SEPARATOR.join([intro, *descriptions, closing])
    numbered, notes = number_citations(joined, chunks)
    footnotes = "\n".join(note.source_line for note in notes)
    return numbered.split(SEPARATOR), footnotes
