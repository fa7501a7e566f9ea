"""The contract of the sommelier's answer.

An answer names wines by ids that a tool returned. The wines are shown as cards with facts from the
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
from agent.engine.errors import clip_quote
from agent.language import begins_with_pronoun
from agent.sommelier.attachment import LIST_ID_PREFIX, AnyWine
from agent.sommelier.awards import find_unfounded_awards
from agent.sommelier.basket import has_size, list_basket
from agent.sommelier.claim_phrases import FREE_OF
from agent.sommelier.claims import SHOP_TOPICS, Claim, find_unfounded_claims
from agent.sommelier.grounding import (
    FigureChecker,
    Grounds,
    is_question,
    split_statements,
)
from agent.sommelier.rendering import find_wine, render
from agent.sommelier.shop_claims import find_shop_claims, find_unfounded_streets
from agent.sommelier.sommelier_prompts import (
    WINE_PLACEHOLDER,
    SommelierResponse,
    WineRecommendation,
    read_grounding_text,
    validate_semantic_content,
)
from agent.sommelier.unknown_names import NameChecker
from agent.sommelier.wrong_grapes import find_wrong_grapes
from agent.text import compose_compatible, pattern

NOT_AN_ADDRESS: Final = pattern(
    r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|(?:[A-Z][.])+[A-Z]?)\z"
)
"""Text that only looks like an address: `dry.It` lacks a space, `U.S.A` is an abbreviation."""
UNSPACED_ENDS: Final = ("。", "！", "？")
"""The ends of Chinese and Japanese sentences, which no space follows."""
MAX_CUT_SHARE: Final = 1 / 3
"""The most of its prose that an answer may lose.

Otherwise the model is asked again if it can be.
"""
MAX_NAMED_IDS: Final = 12
"""The most allowed ids that the feedback to a model lists."""


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines in a response."""
    return [wine.wine_id for wine in response.wines]


def grounding_problem(response: SommelierResponse, evidence: Evidence) -> str | None:
    """Return feedback on the parts of a response that lack evidence, or None."""
    for position, item in enumerate(response.wines):
        problem = _find_id_problem(item.wine_id, evidence)
        if problem is None:
            problem = _find_size_problem(item, evidence)
        if problem is not None:
            return f"wines.{position}: {problem}"
    checker = _check_answer(response.wines, evidence)
    problems = [_find_problem(response.intro, "", checker)]
    for item in response.wines:
        problems.append(_find_problem(item.description, item.wine_id, checker))
    problems.append(_find_problem(response.closing, "", checker))
    distinct = dict.fromkeys(filter(None, problems))
    return "; ".join(distinct) or None


class _AnswerChecker(FigureChecker):
    """A check of the texts of an answer, which reads the evidence once for all of them."""

    @cached_property
    def allowed_addresses(self) -> frozenset[str]:
        """The addresses in a source or an earlier answer, and the paths of documents."""
        evidence = self.evidence
        texts = [*evidence.texts, *map(read_grounding_text, evidence.assistant_texts)]
        for source in evidence.sources.values():
            if isinstance(source, Chunk):
                texts.append(source.path)
        addresses = set(evidence.links)
        for text in texts:
            addresses.update(_find_addresses(text))
        return frozenset(addresses)

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


def _find_problem(
    text: str,
    wine_id: str,
    checker: _AnswerChecker,
) -> str | None:
    """Return feedback on the first path, address, wine or figures that lack evidence, or None.

    `wine_id` is empty if the text is not the description of a wine.
    """
    if not text:
        return None
    wine = find_wine(wine_id, checker.evidence)
    return (
        _find_citation_problem(text, checker)
        or _find_address_problem(text, checker)
        or _find_placeholder_problem(text, checker)
        or _find_figure_problem(text, checker, wine)
        or _find_name_problem(text, checker)
        or _find_claim_problem(text, checker, wine)
    )


def _find_placeholder_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first `{wine:ID}` whose wine may not be named, or None."""
    for placeholder in WINE_PLACEHOLDER.finditer(text):
        problem = _find_id_problem(placeholder[1].strip(), checker.evidence)
        if problem is not None:
            return problem
    return None


def _find_figure_problem(
    text: str,
    checker: _AnswerChecker,
    wine: AnyWine | None,
) -> str | None:
    """Return feedback on the figures in a text that lack evidence, or None."""
    figures = checker.find_wrong_figures(text, wine)
    if not figures:
        return None
    reason = "no tool returned them"
    if wine is not None:
        reason = f"{wine.label} has no such figure"
    listed = ", ".join(map(clip_quote, figures))
    return f"leave out {listed}: {reason}"


def _find_name_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first wine or estate in a text that is in no source, or None."""
    for sentence in split_statements(text):
        names = checker.names.find_unknown_names(sentence)
        if names:
            listed = ", ".join(map(clip_quote, names))
            return f"leave out {listed}: no tool returned a wine or estate of this name"
    return None


def _find_claim_problem(
    text: str,
    checker: _AnswerChecker,
    wine: AnyWine | None,
) -> str | None:
    """Return feedback on the first sentence that claims what no source says, or None."""
    for sentence in split_cited_sentences(text):
        if is_question(sentence):
            continue
        grounds = Grounds(checker, sentence, wine)
        claims = find_unfounded_claims(sentence, grounds)
        claims += find_unfounded_awards(sentence, grounds)
        claims += find_unfounded_streets(sentence, grounds)
        if wine is not None:
            for grape in find_wrong_grapes(sentence, wine, grounds):
                claims.append(Claim("grape", grape))
        elif not claims:
            claims += find_shop_claims(sentence, grounds)
        if not claims:
            continue
        shown = clip_quote(WINE_PLACEHOLDER.sub("…", sentence))
        advice: list[str] = []
        for claim in claims:
            words = clip_quote(claim.words)
            advice.append(f'leave out "{words}": {_advise_on_claim(claim.kind)}')
        listed = "; ".join(advice)
        return f'in "{shown}" {listed}'
    return None


def _advise_on_claim(kind: str) -> str:
    """Return why a claim of this kind was stopped, and what to write instead."""
    if kind in SHOP_TOPICS or kind in ("shop", "address"):
        return (
            "no tool returned this, or the [path] that says it is missing in the sentence; "
            "otherwise say that you do not know"
        )
    if kind in FREE_OF:
        return f"no facts say that the wine is {kind}; say that you do not know"
    if kind in ("safe", "allergens"):
        return "nobody knows what is safe for this guest; tell them to read the label"
    if kind == "grape":
        return "the facts of this wine name other grapes"
    if kind == "count":
        return "no tool returned this number; put the bottles that you advise into `bottles`"
    return "the facts of the wine do not say so; say that you do not know"


def _find_citation_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first citation that no document supports, or None.

    Amounts that follow from prices need no document: "8.50 euros, so 67 in all [shop.md]".
    """
    if "[" not in text:
        return None
    evidence = checker.evidence
    unretrieved_path = find_unretrieved_path(text, evidence)
    if unretrieved_path:
        return unretrieved_path
    chunks: list[Chunk] = []
    other_texts = [*evidence.user_texts]
    for source in evidence.sources.values():
        if isinstance(source, Chunk):
            chunks.append(source)
        else:
            other_texts.append(source.source_text)
    amounts = checker.find_right_amounts(text)
    other_texts += [amount.text for amount in amounts]
    return find_wrong_number(text, chunks, other_texts)


def _find_id_problem(wine_id: str, evidence: Evidence) -> str | None:
    """Return why a wine may not be named, or None if it may.

    A tool must have returned it. If the guest sent a wine list, it must be on the list.
    """
    sources = evidence.sources.values()
    ids = [source.id for source in sources if isinstance(source, AnyWine)]
    listed_ids = [id for id in ids if id.startswith(LIST_ID_PREFIX)]
    allowed = listed_ids or ids
    if wine_id in allowed:
        return None
    problem = f"no wine with the id {clip_quote(wine_id)} was returned by a tool"
    if listed_ids:
        problem = (
            f"no wine with the id {clip_quote(wine_id)} is on the guest's wine list"
        )
    if not allowed:
        return f"{problem}; call search_wines first and recommend only wines it returns"
    newest = ", ".join(allowed[-MAX_NAMED_IDS:])
    return f"{problem}; recommend only wines with these ids: {newest}"


def _find_size_problem(item: WineRecommendation, evidence: Evidence) -> str | None:
    """Return feedback if a wine is not sold in the size that is counted, or None."""
    wine = find_wine(item.wine_id, evidence)
    if wine is None or item.size is None or has_size(item.size, wine):
        return None
    return f"this wine has no offer {clip_quote(item.size)}; leave `size` out, or name another wine"


def _find_address_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first address in `text` that is in no source, or None.

    Addresses in a source's text are allowed, but only a source's own links are made clickable.
    """
    for address in _find_addresses(compose_compatible(text)):
        if address in checker.allowed_addresses or NOT_AN_ADDRESS.search(address):
            continue
        return f"the text has the address {clip_quote(address)}, which no tool found; leave it out"
    return None


def _find_addresses(text: str) -> list[str]:
    addresses: list[str] = []
    for link in find_auto_links(text):
        if link.kind == "address":
            addresses.append(text[link.start : link.end])
    return addresses


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
    kept_texts = [intro]
    kept_wines: list[WineRecommendation] = []
    for wine in wines:
        kept = _keep_grounded(wine.description, checker, wine.wine_id)
        kept_texts.append(kept)
        kept_wines.append(wine.model_copy(update={"description": kept.text}))
    closing = _keep_grounded(response.closing, checker)
    kept_texts.append(closing)
    update = {"intro": intro.text, "wines": kept_wines, "closing": closing.text}
    part = response.model_copy(update=update)
    cuts = _describe_dropped(response.wines, wines)
    for text in kept_texts:
        cuts += text.cuts
    if closing.cuts and not closing.text:
        kept_texts.remove(closing)  # an answer reads well without any last sentence
    reads_well = all(text.reads_well for text in kept_texts)
    show = Show.AT_LAST
    if reads_well and not _is_cut_short(response, part):
        show = Show.AT_ONCE
    return Part(part, tuple(cuts), show)


def _list_valid_wines(
    items: Sequence[WineRecommendation], evidence: Evidence
) -> list[WineRecommendation]:
    """Return the wines that may be named. A size in which a wine is not sold is left out."""
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
    """Return whether a part lacks a wine of its response, or more of its prose than it may."""
    if len(part.wines) < len(response.wines):
        return True
    all_chars = len(_prose(response))
    lost_chars = all_chars - len(_prose(part))
    return lost_chars > MAX_CUT_SHARE * all_chars


class _KeptText(NamedTuple):
    """The part of a text that is kept.

    It `reads_well` if no sentence refers to one that was cut.
    """

    text: str
    cuts: tuple[str, ...] = ()
    reads_well: bool = True


def _keep_grounded(
    text: str,
    checker: _AnswerChecker,
    wine_id: str = "",
) -> _KeptText:
    """Return the sentences of a text that have evidence.

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
            is_first = not kept and not lines
            is_cut = _find_problem(sentence, wine_id, checker) is not None
            if is_cut:
                cuts.append(sentence)
                breaks_text = is_first
            else:
                kept.append(sentence)
                breaks_text = is_after_cut and begins_with_pronoun(sentence)
            reads_well = reads_well and not breaks_text
            is_after_cut = is_cut
        lines.append(_join_sentences(kept))
    return _KeptText("\n".join(lines).strip(), tuple(cuts), reads_well)


def _join_sentences(sentences: Sequence[str]) -> str:
    """Return sentences as one text, with spaces where their script has them."""
    text = ""
    for sentence in sentences:
        if text and not text.endswith(UNSPACED_ENDS):
            text += " "
        text += sentence
    return text


def _prose(response: SommelierResponse) -> str:
    descriptions = [wine.description for wine in response.wines]
    texts = [response.intro, *descriptions, response.closing]
    return " ".join(filter(None, texts))


def _read_unfinished(written: Mapping[str, Any]) -> SommelierResponse | None:
    """Return the response that a model has written so far, or None if it may not be shown.

    `written` is parsed from unfinished JSON, in which a wine's id may still be missing, and which
    may have `id` as its key.
    """
    # The model may write the type of its response last.
    fields: dict[str, Any] = {"response_type": "informational"}
    for name, value in written.items():
        if value is not None:
            fields[name] = value
    items = written.get("wines")
    if not isinstance(items, list):
        items = []
    fields["wines"] = [item for item in items if _has_id(item)]
    try:
        response = SommelierResponse.model_validate(fields)
    except ValidationError:
        return None
    if response.concern != "none":
        return None
    return response


def _has_id(item: object) -> bool:
    """Return whether the id of a wine has been written already."""
    return isinstance(item, dict) and bool(item.get("wine_id") or item.get("id"))


def reports_crisis(response: SommelierResponse) -> bool:
    """Return whether a response reports a crisis. Such a response is not shown, but help is."""
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
