"""Make a reply of a model's response: the part that may be shown, its changes and its outcome."""

from collections.abc import Iterable
from dataclasses import replace

from agent import size_limits
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence
from agent.engine.loop import AgenticResponse
from agent.i18n import translate
from agent.mcp import Proposal
from agent.sommelier.attachment import AnyWine
from agent.sommelier.filters import is_without_alcohol, may_be_shown
from agent.sommelier.history import cut_stored, to_stored
from agent.sommelier.rendering import cites_documents
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.wine import Wine
from agent.turn import Change, Lack, Person, Reply, SearchEffect, StaffOffer, find_lack

Response = AgenticResponse[SommelierResponse]
"""What the engine returns. The user gets a `Reply` that is made of it."""


def with_outcome(reply: Reply, response: Response) -> Reply:
    """Return a reply that says whether its answer is whole."""
    if response.outcome == "stopped":
        note = translate("stopped_here")
        return replace(reply, outcome="stopped", notes=(note,))
    if response.outcome == "salvaged":
        return replace(reply, outcome="salvaged")
    return replace(reply, outcome="answered")


def ids_in_catalogue(wines: Iterable[AnyWine]) -> tuple[str, ...]:
    """Return the ids of the wines that were not read from pictures."""
    return tuple(wine.id for wine in wines if isinstance(wine, Wine))


def allowed_part(response: Response, person: Person) -> SommelierResponse | None:
    """Return an answer with only the wines that a person may be shown.

    If the person prefers alcohol-free wines, these come first. Return None if there is no answer,
    or if none of its wines may be shown.
    """
    answer = response.answer
    if answer is None or not response.has_text:
        return None
    first: list[WineRecommendation] = []
    others: list[WineRecommendation] = []
    for item in answer.wines:
        source = response.sources[item.wine_id]
        if not isinstance(source, AnyWine):
            continue
        wine = source.facts
        if not may_be_shown(wine, person):
            continue
        if person.safety.prefers_alcohol_free and is_without_alcohol(wine):
            first.append(item)
        else:
            others.append(item)
    allowed = first + others
    if answer.wines and not allowed:
        return None
    return answer.model_copy(update={"wines": allowed})


def find_unanswered(answer: SommelierResponse, evidence: Evidence) -> Lack | None:
    """Return the lack of documents if those that were found did not help, or None.

    They did not help if the answer shows no wines and cites none of them.
    """
    if answer.wines or answer.response_type != "informational":
        return None
    sources = evidence.sources.values()
    has_found_chunks = any(isinstance(source, Chunk) for source in sources)
    if not has_found_chunks or cites_documents(answer, evidence):
        return None
    return Lack.DOCUMENTS


def to_stored_json(answer: SommelierResponse, wines: Iterable[AnyWine]) -> str:
    """Return an answer as it is stored: JSON, with at most `STORED_CHARS` of prose."""
    stored = to_stored(answer, wines)
    return cut_stored(stored, size_limits.STORED_CHARS).to_json()


def add_effects(reply: Reply, response: Response) -> Reply:
    """Return a reply with the changes and proposals of the tools, and with what they did not find.

    Changes are reduced to what a model may change. Proposals are only shown with an answer, because
    the answer explains them.
    """
    changes: list[Change] = []
    proposals: list[Proposal] = []
    searches: list[SearchEffect] = []
    for effect in response.effects:
        match effect:
            case Change():
                changes.append(effect.part_for_model)
            case SearchEffect():
                searches.append(effect)
            case Proposal() if response.has_text:
                proposals.append(effect)
    proposal_notes = [_describe_proposal(proposal) for proposal in proposals]
    return replace(
        reply,
        notes=(*reply.notes, *proposal_notes),
        proposals=tuple(proposals),
        changes=tuple(changes),
        lack=find_lack(searches) or reply.lack,
        offers_staff=reply.offers_staff or StaffOffer() in response.effects,
    )


def _describe_proposal(proposal: Proposal) -> str:
    call = f"{proposal.tool_name} {proposal.arguments}"
    sentence = translate("tool_proposed")
    return f"{sentence}\n```\n{call}\n```"
