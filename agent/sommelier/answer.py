"""The contract of the sommelier's answer.

An answer names wines by ids that a tool returned; they are shown as cards with facts from the
catalogue, in the language of the turn. Links and the paths of cited documents must come from tools,
and figures in prose must be in the evidence (`grounding.py`).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from agent.auto_links import find_auto_links
from agent.documents.citations import (
    find_unretrieved_path,
    find_wrong_number,
    split_cited_sentences,
)
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, OutputContract, Part, Show
from agent.engine.errors import quoted
from agent.language import begins_with_pronoun
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.basket import has_size, list_basket
from agent.sommelier.claims import SHOP_TOPICS, find_unfounded_claims
from agent.sommelier.grounding import (
    FigureChecker,
    Grounds,
    is_question,
    split_statements,
)
from agent.sommelier.rendering import find_wine, render
from agent.sommelier.sommelier_prompts import (
    WINE_PLACEHOLDER,
    SommelierResponse,
    WineRecommendation,
    read_prose,
    validate_semantic_content,
)
from agent.sommelier.unknown_names import NameChecker
from agent.text import compose_compatible, pattern

NOT_AN_ADDRESS: Final = pattern(
    r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|(?:[A-Z][.])+[A-Z]?)\z"
)
"""Text that only looks like an address: `dry.It` lacks a space, `U.S.A` is an abbreviation."""
MAX_CUT_SHARE: Final = 1 / 3
"""An answer that loses more of its prose is not shown if the model can be asked again."""
MAX_NAMED_IDS: Final = 12
"""How many allowed ids the feedback to a model lists at most."""


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines in a response."""
    return [wine.wine_id for wine in response.wines]


def grounding_problem(response: SommelierResponse, evidence: Evidence) -> str | None:
    """Return feedback on the parts of a response that lack evidence, or None."""
    for position, item in enumerate(response.wines):
        problem = _find_id_problem(item.wine_id, evidence) or _find_size_problem(
            item, evidence
        )
        if problem:
            return f"wines.{position}: {problem}"
    checker = _check_answer(response.wines, evidence)
    descriptions = ((item.description, item.wine_id) for item in response.wines)
    texts = [(response.intro, ""), *descriptions, (response.closing, "")]
    problems = (
        _find_problem(text, wine_id, checker) for text, wine_id in texts if text
    )
    return "; ".join(dict.fromkeys(problem for problem in problems if problem)) or None


class _AnswerChecker(FigureChecker):
    """A check of the texts of an answer, which reads the evidence once for all of them."""

    @cached_property
    def allowed_addresses(self) -> frozenset[str]:
        """The addresses that stand in a source or an earlier answer, and the paths of documents."""
        evidence = self.evidence
        paths = (
            source.path
            for source in evidence.sources.values()
            if isinstance(source, Chunk)
        )
        texts = (*evidence.texts, *paths, *map(read_prose, evidence.assistant_texts))
        return evidence.links.union(*map(_find_addresses, texts))

    @cached_property
    def names(self) -> NameChecker:
        """The check of names, which reads the evidence too."""
        return NameChecker(self.evidence)


def _check_answer(
    wines: Sequence[WineRecommendation], evidence: Evidence
) -> _AnswerChecker:
    """Return a check of the texts of an answer with these wines."""
    shown_ids = [wine.wine_id for wine in wines]
    return _AnswerChecker(evidence, shown_ids, list_basket(wines, evidence.sources))


def _find_problem(text: str, wine_id: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first path, address, wine or figures that lack evidence, or None.

    `wine_id` is empty if the text is not the description of a wine.
    """
    evidence = checker.evidence
    ids = (placeholder[1].strip() for placeholder in WINE_PLACEHOLDER.finditer(text))
    problems = [
        _find_citation_problem(text, checker),
        _find_address_problem(text, checker),
    ]
    problems += [_find_id_problem(named_id, evidence) for named_id in ids]
    if problem := next(filter(None, problems), None):
        return problem
    wine = find_wine(wine_id, evidence)
    if figures := checker.find_wrong_figures(text, wine):
        source = f"{wine.label} has no such figure" if wine else "no tool returned them"
        return f"leave out {', '.join(map(quoted, figures))}: {source}"
    return _find_name_problem(text, checker) or _find_claim_problem(text, checker, wine)


def _find_name_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first wine or estate that a text names and nothing knows, or None."""
    for sentence in split_statements(text):
        names = checker.names.find_unknown_names(sentence)
        if names:
            listed = ", ".join(map(quoted, names))
            return f"leave out {listed}: no tool returned a wine or estate of this name"
    return None


def _find_claim_problem(
    text: str, checker: _AnswerChecker, wine: AnyWine | None
) -> str | None:
    """Return feedback on the first sentence that affirms what no source says, or None."""
    for sentence in split_cited_sentences(text):
        if is_question(sentence):
            continue
        claims = find_unfounded_claims(sentence, Grounds(checker, sentence, wine))
        if not claims:
            continue
        said = quoted(WINE_PLACEHOLDER.sub("…", sentence))
        reason = f"no tool returned this ({', '.join(claims)})"
        if not SHOP_TOPICS.keys().isdisjoint(claims):
            reason = f"{reason}, or the [path] that says it is missing in the sentence"
        return f"leave out {said}: {reason}"
    return None


def _find_citation_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first citation that no document supports, or None.

    Amounts that follow from prices need no document: "8.50 euros, so 67 in all [shop.md]".
    """
    if "[" not in text:
        return None
    evidence = checker.evidence
    chunks = [
        source for source in evidence.sources.values() if isinstance(source, Chunk)
    ]
    wine_texts = (
        wine.source_text for wine in evidence.sources.values() if wine not in chunks
    )
    amounts = [amount.text for amount in checker.find_right_amounts(text)]
    other_texts = [*wine_texts, *evidence.user_texts, *amounts]
    return find_unretrieved_path(text, evidence) or find_wrong_number(
        text, chunks, other_texts
    )


def _find_id_problem(wine_id: str, evidence: Evidence) -> str | None:
    """Return why a wine may not be named, or None if it may.

    A tool must have returned it. If the guest sent a wine list, it must be on the list.
    """
    wines = [
        source for source in evidence.sources.values() if isinstance(source, AnyWine)
    ]
    listed = [
        wine.id for wine in wines if isinstance(wine, ReadWine) and wine.is_listed
    ]
    allowed = listed or [wine.id for wine in wines]
    if wine_id in allowed:
        return None
    advice = "call search_wines first and recommend only wines it returns"
    if allowed:
        advice = f"recommend only wines with these ids: {', '.join(allowed[-MAX_NAMED_IDS:])}"
    source = "is on the guest's wine list" if listed else "was returned by a tool"
    return f"no wine with the id {quoted(wine_id)} {source}; {advice}"


def _find_size_problem(item: WineRecommendation, evidence: Evidence) -> str | None:
    """Return feedback if a wine is not sold in the size that is counted, or None."""
    wine = find_wine(item.wine_id, evidence)
    if wine is None or item.size is None or has_size(item.size, wine):
        return None
    return f"this wine has no offer {quoted(item.size)}; leave `size` out, or name another wine"


def _find_address_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first address in `text` that is in no source, or None.

    Addresses in a source's text are allowed, but only a source's own links are made clickable.
    """
    addresses = _find_addresses(compose_compatible(text))
    if not addresses:
        return None
    for address in addresses:
        if address not in checker.allowed_addresses and not NOT_AN_ADDRESS.search(
            address
        ):
            return f"the text has the address {quoted(address)}, which no tool found; leave it out"
    return None


def _find_addresses(text: str) -> list[str]:
    return [
        text[link.start : link.end]
        for link in find_auto_links(text)
        if link.kind == "address"
    ]


def keep_valid(
    response: SommelierResponse, evidence: Evidence
) -> Part[SommelierResponse] | None:
    """Return a response without the wines and sentences that lack evidence.

    Return None if it had wines and loses all of them. A part that does not read well, or that lacks
    a wine, is only shown when all attempts have failed.
    """
    wines = _list_valid_wines(response.wines, evidence)
    if response.wines and not wines:
        return None
    checker = _check_answer(wines, evidence)
    intro = _keep_grounded(response.intro, checker)
    descriptions = [
        _keep_grounded(wine.description, checker, wine.wine_id) for wine in wines
    ]
    closing = _keep_grounded(response.closing, checker)
    described = [
        wine.model_copy(update={"description": description.text})
        for wine, description in zip(wines, descriptions, strict=True)
    ]
    update = {"intro": intro.text, "wines": described, "closing": closing.text}
    part = response.model_copy(update=update)
    texts = [intro, *descriptions, closing]
    cuts = _describe_dropped(response.wines, wines)
    cuts += [cut for text in texts for cut in text.cuts]
    if (
        closing.cuts and not closing.text
    ):  # an answer reads well without any last sentence
        texts.remove(closing)
    reads_well = all(text.reads_well for text in texts)
    has_all_wines = len(wines) == len(response.wines)
    may_be_shown = reads_well and has_all_wines and not _is_cut_short(response, part)
    return Part(part, tuple(cuts), Show.AT_ONCE if may_be_shown else Show.AT_LAST)


def _list_valid_wines(
    items: Sequence[WineRecommendation], evidence: Evidence
) -> list[WineRecommendation]:
    """Return the wines that may be named; a size that one is not sold in is not counted."""
    valid: list[WineRecommendation] = []
    for item in items:
        if _find_id_problem(item.wine_id, evidence):
            continue
        if _find_size_problem(item, evidence):
            valid.append(item.model_copy(update={"size": None, "bottles": None}))
        else:
            valid.append(item)
    return valid


def _describe_dropped(
    items: Sequence[WineRecommendation], kept: Sequence[WineRecommendation]
) -> list[str]:
    """Return the wines that were not kept, as the trace shows them."""
    kept_ids = {item.wine_id for item in kept}
    dropped = [item for item in items if item.wine_id not in kept_ids]
    return [f"{item.wine_id}: {item.description}" for item in dropped]


def _is_cut_short(response: SommelierResponse, part: SommelierResponse) -> bool:
    """Return whether a part lacks more of the prose of its response than may be missing."""
    all_chars = len(_prose(response))
    lost_chars = all_chars - len(_prose(part))
    return lost_chars > MAX_CUT_SHARE * all_chars


class _KeptText(NamedTuple):
    """Holds what is kept of a text. It `reads_well` if no sentence refers to one that was cut."""

    text: str
    cuts: tuple[str, ...] = ()
    reads_well: bool = True


def _keep_grounded(text: str, checker: _AnswerChecker, wine_id: str = "") -> _KeptText:
    """Keep the sentences of a text that have evidence.

    The text does not read well without its first sentence, or if a pronoun follows a cut.
    """
    if not _find_problem(text, wine_id, checker):
        return _KeptText(text)
    lines: list[str] = []
    cuts: list[str] = []
    reads_well = True
    is_after_cut = False
    for line in text.splitlines():
        kept: list[str] = []
        for sentence in split_cited_sentences(line):
            is_cut = _find_problem(sentence, wine_id, checker) is not None
            if is_cut:
                cuts.append(sentence)
                reads_well = reads_well and bool(kept or lines)
            else:
                kept.append(sentence)
                reads_well = reads_well and not (
                    is_after_cut and begins_with_pronoun(sentence)
                )
            is_after_cut = is_cut
        lines.append(" ".join(kept))
    return _KeptText("\n".join(lines).strip(), tuple(cuts), reads_well)


def _prose(response: SommelierResponse) -> str:
    texts = (
        response.intro,
        *(wine.description for wine in response.wines),
        response.closing,
    )
    return " ".join(text for text in texts if text)


def _read_unfinished(written: Mapping[str, Any]) -> SommelierResponse | None:
    """Return the response that a model has written so far; None if it may not be shown.

    `written` is parsed from unfinished JSON, in which a wine's id may still be missing, and which
    may have `id` as its key.
    """
    items = written.get("wines")
    wines = (
        [item for item in items if isinstance(item, dict)]
        if isinstance(items, list)
        else []
    )
    # The model may write it last.
    fields: dict[str, Any] = {"response_type": "informational"}
    fields |= {name: value for name, value in written.items() if value is not None}
    fields["wines"] = [wine for wine in wines if wine.get("wine_id") or wine.get("id")]
    try:
        response = SommelierResponse.model_validate(fields)
    except ValidationError:
        return None
    return response if response.concern == "none" else None


def reports_crisis(response: SommelierResponse) -> bool:
    """Return whether a response reports a crisis: it is never shown, but answered with help."""
    return response.concern == "crisis"


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    ends_turn=reports_crisis,
    semantic=validate_semantic_content,
    grounding=grounding_problem,
    render=render,
    ids=wine_ids,
    keep_valid=keep_valid,
    read_unfinished=_read_unfinished,
)
