"""The sommelier's answer: its contract, its rendering, and how a rendered one is read again.

The answer names wines by ids that a tool returned; they are shown as cards from the catalogue, in
the language of the turn. Links and cited paths must come from tools, and figures in prose must be
in the evidence (`grounding.py`).
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from pydantic import ValidationError

from agent.documents.citations import footnotes, unretrieved_path
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import quoted
from agent.engine.messages import Message
from agent.i18n import current_language, translate
from agent.language import split_sentences
from agent.markdown import escape, find_auto_links, format_link, unescape
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.grounding import WINE_PLACEHOLDER, Grounds
from agent.sommelier.sommelier_prompts import SommelierResponse, validate_semantic_content
from agent.sommelier.wine import CELLAR_PREFIX, VEGAN_WORD, Wine, canonical_name, format_money
from agent.text import Match, pattern, split_words
from agent.turn import StoredMessage

SEPARATOR: Final = "\n\ue000\n"
"""Joins the texts of an answer; none of them contains it."""
MISSING_SPACE: Final = pattern(r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|[A-Z][.].*)\Z")
"""Text that looks like an address: a sentence end without a space after it, or an abbreviation."""
MAX_NAMED_IDS: Final = 12
"""The most allowed ids that the feedback to a model names."""
CARD_TITLE: Final = pattern(r"\A\*\*[0-9]{1,2}\. .+\*\*\n")
"""The title of a card, with its number."""


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
    intro, *descriptions, closing = (_in_markdown(text, evidence) for text in numbered)
    asked = " ".join(evidence.user_texts)
    shown = (
        wine_text(wine, description, f"{number}. ", asked=asked)
        for number, ((wine, _), description) in enumerate(zip(cards, descriptions, strict=True), 1)
    )
    return "\n\n".join(part for part in (intro, *shown, closing, notes) if part)


def _in_markdown(text: str, evidence: Evidence) -> str:
    """Return a model's text as Markdown that shows it as it is; addresses of sources are links.

    `{wine:ID}` is replaced by the wine's name, or removed if the wine is unknown.
    """

    def name(placeholder: Match) -> str:
        wine = _wine(placeholder[1].strip(), evidence)
        return wine.label if wine else ""

    text = WINE_PLACEHOLDER.sub(name, text)
    parts, end, links = list[str](), 0, evidence.links
    for found in find_auto_links(text):
        if (address := text[found.start : found.end]) in links:
            parts += [escape(text[end : found.start]), format_link(address)]
            end = found.end
    return "".join([*parts, escape(text[end:])])


def _with_footnotes(texts: Sequence[str], evidence: Evidence) -> tuple[Sequence[str], str]:
    """Replace cited paths by numbers; return the texts, and the documents' titles as Markdown."""
    chunks = [found for found in evidence.sources.values() if isinstance(found, Chunk)]
    if not chunks:
        return texts, ""
    numbered, notes = footnotes(SEPARATOR.join(texts), chunks)
    return numbered.split(SEPARATOR), "\n".join(note.source_line for note in notes)


def wine_text(wine: AnyWine, description: str, number: str = "", *, asked: str = "") -> str:
    """Write a wine as Markdown; say whether it is vegan if the user `asked` for such wines."""
    facts = facts_line(wine)
    if any(word.startswith(VEGAN_WORD) for word in split_words(asked)):
        facts = f"{facts} · {translate(f'vegan_{wine.facts.vegan}')}"
    return f"**{number}{escape(wine.label)}**\n{escape(facts)}\n{description}".strip()


def facts_line(wine: AnyWine) -> str:
    """Write where a wine comes from, what it costs, and that it is not in stock."""
    if isinstance(wine, ReadWine):
        return _read_line(wine)
    place, country = wine.appellation or wine.region, country_name(wine.country)
    origin = ", ".join(filter(None, ("" if place == wine.country else place, country)))
    if wine.id.startswith(CELLAR_PREFIX):
        facts = [origin, translate("cellar_own")]
    else:
        facts = [origin, price_text(wine), "" if wine.in_stock else translate("not_in_stock")]
    return " · ".join(filter(None, facts))


def _read_line(wine: ReadWine) -> str:
    """Write that a wine was read, what the list asks for it, and what it costs here."""
    facts = [translate("of_list" if wine.is_listed else "of_label")]
    if wine.sure != "certain":
        facts.append(translate(f"read_{wine.sure}"))
    facts.append(wine.region)
    if wine.price is not None:
        facts.append(format_money(wine.price, wine.currency))
    if wine.glass_price is not None:
        facts.append(translate("by_the_glass", price=format_money(wine.glass_price, wine.currency)))
    if wine.is_listed and wine.known and (ours := price_text(wine.known)):
        facts.append(translate("in_cellar", price=ours))
    return " · ".join(filter(None, facts))


def price_text(wine: Wine) -> str:
    """Write an indicative price, hence the sign: `≈ €18`; empty if none is known."""
    return "" if wine.price is None else f"≈ {format_money(wine.price, wine.currency)}"


def country_name(country: str) -> str:
    """Return the name of a country in the language of the turn; its own if it has none there."""
    if current_language() == "en":
        return country
    return _countries(current_language()).get(canonical_name("countries", country), country)


@cache
def _countries(language: str) -> Mapping[str, str]:
    """Return the names of countries in a language, by their canonical names."""
    from babel import Locale  # noqa: PLC0415 - 70 ms

    english, own = (Locale.parse(code).territories for code in ("en", language))
    named = {
        canonical_name("countries", name): own.get(code, name) for code, name in english.items()
    }
    return named | {"england": own["GB"]}


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines that a response shows."""
    return [wine.wine_id for wine in response.wines]


def grounding_problem(response: SommelierResponse, evidence: Evidence) -> str | None:
    """Return feedback on the parts of a response that no evidence supports, or None."""
    if response.concern == "crisis":
        return None
    for position, wine in enumerate(response.wines):
        if problem := _wrong_id(wine.wine_id, evidence):
            return f"wines.{position}: {problem}"
    grounds = Grounds(evidence, wine_ids(response))
    described = ((wine.description, wine.wine_id) for wine in response.wines)
    texts = [(response.intro, ""), *described, (response.closing, "")]
    found = (_problem(text, wine_id, grounds) for text, wine_id in texts if text)
    problems = dict.fromkeys(problem for problem in found if problem)
    return "; ".join(problems) or None


def _problem(text: str, wine_id: str, grounds: Grounds) -> str | None:
    """Return the first path, address, wine or figures in a text that no evidence supports."""
    evidence = grounds.evidence
    named = (found[1].strip() for found in WINE_PLACEHOLDER.finditer(text))
    problems = [unretrieved_path(text, evidence), _unknown_address(text, evidence)]
    problems += [_wrong_id(named_id, evidence) for named_id in named]
    if problem := next(filter(None, problems), None):
        return problem
    wine = _wine(wine_id, evidence)
    if figures := grounds.wrong_figures(text, wine):
        source = f"{wine.label} has no such figure" if wine else "no tool returned them"
        return f"leave out {', '.join(map(quoted, figures))}: {source}"
    return None


def _wrong_id(wine_id: str, evidence: Evidence) -> str | None:
    """Return why a wine may not be named: no tool returned it, or it is not on the guest's list."""
    wines = {
        found_id: found
        for found_id, found in evidence.sources.items()
        if isinstance(found, AnyWine)
    }
    listed = [
        found_id
        for found_id, wine in wines.items()
        if isinstance(wine, ReadWine) and wine.is_listed
    ]
    allowed = listed or [*wines]
    if wine_id in allowed:
        return None
    advice = "call search_wines first and recommend only wines it returns"
    if allowed:
        advice = f"recommend only wines with these ids: {', '.join(allowed[-MAX_NAMED_IDS:])}"
    source = "is on the guest's wine list" if listed else "was returned by a tool"
    return f"no wine with the id {quoted(wine_id)} {source}; {advice}"


def _unknown_address(text: str, evidence: Evidence) -> str | None:
    """Return a problem with the first address in `text` that is in no source, or None.

    An address that is only in a source's text, not its link, is shown but is no link.
    """
    addresses = _addresses(unicodedata.normalize("NFKC", text))
    if not addresses:
        return None
    paths = (found.path for found in evidence.sources.values() if isinstance(found, Chunk))
    shown = map(unescape, evidence.assistant_texts)
    known = evidence.links.union(paths, *map(_addresses, (*evidence.texts, *shown)))
    for address in addresses:
        if address not in known and not MISSING_SPACE.search(address):
            return f"the text has the address {quoted(address)}, which no tool found; leave it out"
    return None


def _addresses(text: str) -> list[str]:
    return [
        text[found.start : found.end] for found in find_auto_links(text) if found.kind == "address"
    ]


def _wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    found = evidence.sources.get(wine_id)
    return found if isinstance(found, AnyWine) else None


def _grounded_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse:
    """Return a response without wines and sentences that no evidence supports."""
    wines = [wine for wine in response.wines if not _wrong_id(wine.wine_id, evidence)]
    grounds = Grounds(evidence, [wine.wine_id for wine in wines])

    def supported(text: str, wine_id: str = "") -> str:
        if not _problem(text, wine_id, grounds):
            return text
        lines = (
            " ".join(part for part in split_sentences(line) if not _problem(part, wine_id, grounds))
            for line in text.splitlines()
        )
        return "\n".join(lines).strip()

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


def _trim(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return a response without ungrounded sentences; None if a wine or half its prose would go."""
    rest = _grounded_part(response, evidence)
    is_enough = 2 * len(_prose(rest)) >= len(_prose(response))
    return rest if is_enough and len(rest.wines) == len(response.wines) else None


def salvage(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return the grounded part of a response; None if no wine would remain."""
    rest = _grounded_part(response, evidence)
    return rest if rest.wines or not response.wines else None


def _draft_part(written: Mapping[str, Any], evidence: Evidence) -> SommelierResponse | None:
    """Return the part of an unfinished response that may be shown, None if there is none."""
    listed = written.get("wines")
    wines = [wine for wine in listed if isinstance(wine, dict)] if isinstance(listed, list) else []
    named = [wine for wine in wines if wine.get("wine_id") or wine.get("id")]
    known = {name: value for name, value in written.items() if value is not None}
    parts = {"response_type": "informational"} | known | {"wines": named}  # the type may come last
    try:
        response = SommelierResponse.model_validate(parts)
    except ValidationError:
        return None
    return _grounded_part(response, evidence) if response.concern == "none" else None


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=validate_semantic_content,
    grounding=grounding_problem,
    render=render,
    ids=wine_ids,
    trim=_trim,
    salvage=salvage,
    partial=_draft_part,
)


def to_history(stored: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as the history of a run: answers have the `wine_ids` that they show.

    Blank messages are left out: an empty content is a 400 with some servers.
    """
    return [
        {"role": message.role, "content": message.content}
        | ({"wine_ids": message.wine_ids} if message.wine_ids else {})
        for message in stored
        if message.content.strip()
    ]


def to_model_message(message: Message) -> Message:
    """Return a message of the history; an answer as the JSON that a model is to write.

    Of a card only the id of its wine is kept; cards of wines that were read stay as text.
    """
    if message["role"] != "assistant":
        return message
    shown, parts = message.get("wine_ids", ()), str(message["content"]).split("\n\n")
    cards = [at for at, part in enumerate(parts) if shown and CARD_TITLE.search(part)]
    first, behind = (cards[0], cards[-1] + 1) if cards else (len(parts), len(parts))
    texts = (unescape("\n\n".join(part)) for part in (parts[:first], parts[behind:]))
    intro, closing = (text.replace("**", "").strip() for text in texts)
    answer: dict[str, object] = {"response_type": "informational", "intro": intro}
    if shown:
        wines = [{"wine_id": wine_id} for wine_id in shown]
        answer |= {"response_type": "recommendation", "wines": wines}
    if closing:
        answer["closing"] = closing
    return {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)}
