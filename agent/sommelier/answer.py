"""The contract of the sommelier's answer, its rendering, and the history as a model reads it.

An answer names wines by ids that a tool returned; they are shown as cards with facts from the
catalogue, in the language of the turn. Links and the paths of cited documents must come from tools,
and figures in prose must be in the evidence (`grounding.py`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final

from pydantic import ValidationError

from agent.auto_links import find_auto_links
from agent.documents.citations import (
    cite_excerpts,
    find_unretrieved_path,
    find_wrong_number,
    number_citations,
)
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import quoted
from agent.engine.messages import Message
from agent.formatting import country_names, format_country, format_money
from agent.i18n import current_language, current_locale, translate
from agent.language import split_sentences, truncate_at_boundary
from agent.languages import ENGLISH
from agent.markdown import escape, format_link, unescape
from agent.query_reading.names import get_display_name
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.grounding import WINE_PLACEHOLDER, FigureChecker
from agent.sommelier.sommelier_prompts import (
    SommelierResponse,
    StoredAnswer,
    StoredWine,
    read_prose,
    validate_semantic_content,
)
from agent.sommelier.vocabulary import OfferKind, canonical_name, format_money_for_model
from agent.sommelier.wine import VEGAN_WORD, Offer, Wine, wine_fields
from agent.text import Match, compose_compatible, pattern, split_words
from agent.turn import StoredMessage

SEPARATOR: Final = "\n\ue000\n"
"""Joins the texts of an answer, which never contain this private-use character."""
NOT_AN_ADDRESS: Final = pattern(
    r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|(?:[A-Z][.])+[A-Z]?)\z"
)
"""Text that only looks like an address: `dry.It` lacks a space, `U.S.A` is an abbreviation."""
MAX_NAMED_IDS: Final = 12
"""How many allowed ids the feedback to a model lists at most."""


def render(response: SommelierResponse, evidence: Evidence) -> str:
    """Return an answer as Markdown: the model's plain text, and a card for each wine."""
    items = ((_find_wine(item.wine_id, evidence), item.description) for item in response.wines)
    cards = [(wine, description) for wine, description in items if wine]
    texts = [response.intro, *(description for _, description in cards), response.closing]
    texts, footnote_lines = _number_citations(texts, evidence)
    intro, *descriptions, closing = (_to_markdown(text, evidence) for text in texts)
    user_text = " ".join(evidence.user_texts)
    wines = (wine for wine, _ in cards)
    rendered_wines = (
        render_wine(wine, description, f"{number}. ", user_text=user_text)
        for number, (wine, description) in enumerate(zip(wines, descriptions, strict=True), start=1)
    )
    return "\n\n".join(part for part in (intro, *rendered_wines, closing, footnote_lines) if part)


def _to_markdown(text: str, evidence: Evidence) -> str:
    """Escape a model's text as Markdown, and turn addresses that a source links to into links.

    `{wine:ID}` is replaced by the wine's name, or removed if the wine is unknown.
    """

    def replace_placeholder(placeholder: Match) -> str:
        wine = _find_wine(placeholder[1].strip(), evidence)
        return wine.label if wine else ""

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

    Descriptions of wines rest on the catalogue; other sentences cite the excerpts they repeat.
    """
    chunks = [source for source in evidence.sources.values() if isinstance(source, Chunk)]
    if not chunks:
        return texts, ""
    intro, *descriptions, closing = texts
    texts = [cite_excerpts(intro, chunks), *descriptions, cite_excerpts(closing, chunks)]
    numbered, notes = number_citations(SEPARATOR.join(texts), chunks)
    return numbered.split(SEPARATOR), "\n".join(note.source_line for note in notes)


def render_wine(wine: AnyWine, description: str, number: str = "", *, user_text: str = "") -> str:
    """Return a wine as Markdown. If `user_text` asks for vegan wines, state whether it is vegan."""
    facts = format_facts(wine)
    if any(word.startswith(VEGAN_WORD) for word in split_words(user_text)):
        facts = f"{facts} · {translate(f'vegan_{wine.facts.vegan}')}"
    lines = [f"**{number}{escape(wine.label)}**", escape(facts), description]
    return "\n".join(filter(None, lines))


def format_facts(wine: AnyWine) -> str:
    """Return the facts of a wine on one line, such as its origin, price and availability."""
    if isinstance(wine, ReadWine):
        return _format_read_facts(wine)
    facts = [
        _format_origin(wine),
        format_prices(wine),
        _format_unknown_allergens(wine),
        _format_availability(wine),
        *_format_declared_facts(wine),
    ]
    return " · ".join(filter(None, facts))


def _format_declared_facts(wine: Wine) -> Iterator[str]:
    """Yield what the fields that are declared to be on a card tell of a wine."""
    for name, field in wine_fields().items():
        value = getattr(wine, name)
        if field.is_on_card and value:
            shown = value if isinstance(value, int | float) else wine.field_text(name)
            yield translate(f"wine_{name}", value=shown, count=shown)


def _format_origin(wine: Wine) -> str:
    """Return the appellation or region of a wine, and its country."""
    place, country = wine.appellation or wine.region, translate_country(wine.country)
    return ", ".join(filter(None, ("" if place == wine.country else place, country)))


def format_prices(wine: Wine) -> str:
    """Return the prices of a wine that is for sale: `49,90 € · half 26,95 € · glass 9,50 €`.

    Offers that are sold out are left out while there are others.
    """
    if wine.is_own:
        return ""
    offers = [offer for offer in wine.offers if offer.in_stock] or list(wine.offers)
    kinds = Counter(offer.kind for offer in offers)
    parts = [_format_offer(wine, offer, has_size=kinds[offer.kind] > 1) for offer in offers]
    return " · ".join(filter(None, parts))


def _format_offer(wine: Wine, offer: Offer, *, has_size: bool) -> str:
    """Return what is on offer and its price; the first bottle of a wine is only its price."""
    if offer.price is None:
        return ""
    price = format_money(offer.price, offer.currency)
    if wine.is_sample:
        price = f"≈ {price}"
    if offer is wine.offers[0] and offer.kind is OfferKind.BOTTLE:
        return price
    size = f" {offer.size_ml} ml" if has_size and offer.size_ml is not None else ""
    return f"{translate(f'offer_{offer.kind}')}{size} {price}"


def _format_availability(wine: Wine) -> str:
    """Return where a wine is, if it is not for sale."""
    if wine.is_own:
        return translate("cellar_own")
    return "" if wine.in_stock else translate("not_in_stock")


def _format_unknown_allergens(wine: AnyWine) -> str:
    """Return which allergens of this guest the wine may contain; empty if none."""
    names = [get_display_name("allergen", (name,), current_language())
             for name in wine.unknown_allergens]  # fmt: skip
    return translate("allergens_unknown", names=", ".join(names)) if names else ""


def _format_read_facts(wine: ReadWine) -> str:
    """Return the source of a read wine, how sure the reading is, its prices, and our price."""
    facts = [translate("of_list" if wine.is_listed else "of_label")]
    if wine.sure != "certain":
        facts.append(translate(f"read_{wine.sure}"))
    facts.append(wine.region)
    if wine.price is not None:
        facts.append(format_money(wine.price, wine.currency))
    if wine.glass_price is not None:
        facts.append(translate("by_the_glass", price=format_money(wine.glass_price, wine.currency)))
    our_price = format_prices(wine.known) if wine.is_listed and wine.known else ""
    if our_price:
        facts.append(translate("in_cellar", price=our_price))
    facts.append(_format_unknown_allergens(wine))
    return " · ".join(filter(None, facts))


def translate_country(country: str) -> str:
    """Return the name of a country in the current language, or unchanged if it is unknown."""
    if current_locale().startswith(ENGLISH):  # as the catalogue writes it
        return country
    name = canonical_name("countries", country)
    if name == "england":  # CLDR names the United Kingdom only
        return translate("england")
    code = _country_codes().get(name)
    return format_country(code) if code else country


@cache
def _country_codes() -> Mapping[str, str]:
    """Return the codes of countries (ISO 3166) by their canonical names."""
    names = country_names(ENGLISH).items()
    return {canonical_name("countries", name): code for code, name in names}


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines in a response."""
    return [wine.wine_id for wine in response.wines]


def grounding_problem(response: SommelierResponse, evidence: Evidence) -> str | None:
    """Return feedback on the parts of a response that lack evidence, or None."""
    for position, item in enumerate(response.wines):
        if problem := _find_id_problem(item.wine_id, evidence):
            return f"wines.{position}: {problem}"
    checker = _AnswerChecker(evidence, wine_ids(response))
    descriptions = ((item.description, item.wine_id) for item in response.wines)
    texts = [(response.intro, ""), *descriptions, (response.closing, "")]
    problems = (_find_problem(text, wine_id, checker) for text, wine_id in texts if text)
    return "; ".join(dict.fromkeys(problem for problem in problems if problem)) or None


class _AnswerChecker(FigureChecker):
    """A check of the texts of an answer, which reads the evidence once for all of them."""

    @cached_property
    def allowed_addresses(self) -> frozenset[str]:
        """The addresses that stand in a source or an earlier answer, and the paths of documents."""
        evidence = self.evidence
        paths = (source.path for source in evidence.sources.values() if isinstance(source, Chunk))
        texts = (*evidence.texts, *paths, *map(read_prose, evidence.assistant_texts))
        return evidence.links.union(*map(_find_addresses, texts))


def _find_problem(text: str, wine_id: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first path, address, wine or figures that lack evidence, or None.

    `wine_id` is empty if the text is not the description of a wine.
    """
    evidence = checker.evidence
    ids = (placeholder[1].strip() for placeholder in WINE_PLACEHOLDER.finditer(text))
    problems = [_find_citation_problem(text, evidence), _find_address_problem(text, checker)]
    problems += [_find_id_problem(named_id, evidence) for named_id in ids]
    if problem := next(filter(None, problems), None):
        return problem
    wine = _find_wine(wine_id, evidence)
    if figures := checker.find_wrong_figures(text, wine):
        source = f"{wine.label} has no such figure" if wine else "no tool returned them"
        return f"leave out {', '.join(map(quoted, figures))}: {source}"
    return None


def _find_citation_problem(text: str, evidence: Evidence) -> str | None:
    """Return feedback on the first citation that no document supports, or None."""
    if "[" not in text:
        return None
    chunks = [source for source in evidence.sources.values() if isinstance(source, Chunk)]
    wine_texts = (wine.source_text for wine in evidence.sources.values() if wine not in chunks)
    other_texts = [*wine_texts, *evidence.user_texts]
    return find_unretrieved_path(text, evidence) or find_wrong_number(text, chunks, other_texts)


def _find_id_problem(wine_id: str, evidence: Evidence) -> str | None:
    """Return why a wine may not be named, or None if it may.

    A tool must have returned it. If the guest sent a wine list, it must be on the list.
    """
    wines = [source for source in evidence.sources.values() if isinstance(source, AnyWine)]
    listed = [wine.id for wine in wines if isinstance(wine, ReadWine) and wine.is_listed]
    allowed = listed or [wine.id for wine in wines]
    if wine_id in allowed:
        return None
    advice = "call search_wines first and recommend only wines it returns"
    if allowed:
        advice = f"recommend only wines with these ids: {', '.join(allowed[-MAX_NAMED_IDS:])}"
    source = "is on the guest's wine list" if listed else "was returned by a tool"
    return f"no wine with the id {quoted(wine_id)} {source}; {advice}"


def _find_address_problem(text: str, checker: _AnswerChecker) -> str | None:
    """Return feedback on the first address in `text` that is in no source, or None.

    Addresses in a source's text are allowed, but only a source's own links are made clickable.
    """
    addresses = _find_addresses(compose_compatible(text))
    if not addresses:
        return None
    for address in addresses:
        if address not in checker.allowed_addresses and not NOT_AN_ADDRESS.search(address):
            return f"the text has the address {quoted(address)}, which no tool found; leave it out"
    return None


def _find_addresses(text: str) -> list[str]:
    return [text[link.start : link.end] for link in find_auto_links(text) if link.kind == "address"]


def _find_wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    source = evidence.sources.get(wine_id)
    return source if isinstance(source, AnyWine) else None


def _grounded_part(response: SommelierResponse, evidence: Evidence) -> SommelierResponse:
    """Return a response without the wines and sentences that lack evidence."""
    wines = [wine for wine in response.wines if not _find_id_problem(wine.wine_id, evidence)]
    checker = _AnswerChecker(evidence, [wine.wine_id for wine in wines])

    def keep_grounded(text: str, wine_id: str = "") -> str:
        if not _find_problem(text, wine_id, checker):
            return text
        lines = (
            " ".join(
                sentence
                for sentence in split_sentences(line)
                if not _find_problem(sentence, wine_id, checker)
            )
            for line in text.splitlines()
        )
        return "\n".join(lines).strip()

    grounded_wines = [
        wine.model_copy(update={"description": keep_grounded(wine.description, wine.wine_id)})
        for wine in wines
    ]
    texts = {"intro": keep_grounded(response.intro), "closing": keep_grounded(response.closing)}
    return response.model_copy(update={**texts, "wines": grounded_wines})


def _prose(response: SommelierResponse) -> str:
    texts = (response.intro, *(wine.description for wine in response.wines), response.closing)
    return " ".join(text for text in texts if text)


def _trim(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return the grounded part; None if that drops a wine, or more than half of the prose."""
    part = _grounded_part(response, evidence)
    is_enough = 2 * len(_prose(part)) >= len(_prose(response))
    return part if is_enough and len(part.wines) == len(response.wines) else None


def salvage(response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
    """Return the grounded part of a response; None if it lost all its wines."""
    part = _grounded_part(response, evidence)
    return part if part.wines or not response.wines else None


def _draft_part(written: Mapping[str, Any], evidence: Evidence) -> SommelierResponse | None:
    """Return the part of an unfinished response that may be shown, or None.

    `written` is parsed from the JSON that the model has written so far, maybe with `id` as a key.
    """
    items = written.get("wines")
    wines = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    fields: dict[str, Any] = {"response_type": "informational"}  # the model may write it last
    fields |= {name: value for name, value in written.items() if value is not None}
    fields["wines"] = [wine for wine in wines if wine.get("wine_id") or wine.get("id")]
    try:
        response = SommelierResponse.model_validate(fields)
    except ValidationError:
        return None
    return _grounded_part(response, evidence) if response.concern == "none" else None


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
    trim=_trim,
    salvage=salvage,
    partial=_draft_part,
)


def to_stored(answer: SommelierResponse, wines: Iterable[AnyWine]) -> StoredAnswer:
    """Return an answer as it is stored: each of its wines with its name and price."""
    known = {wine.id: wine for wine in wines}
    stored_wines = []
    for item in answer.wines:
        wine = known[item.wine_id]
        price = "" if wine.price is None else format_money_for_model(wine.price, wine.currency)
        stored_wines.append(
            StoredWine(wine_id=wine.id, name=wine.label, price=price, description=item.description)
        )
    return StoredAnswer(
        response_type=answer.response_type,
        intro=answer.intro,
        wines=tuple(stored_wines),
        closing=answer.closing,
    )


def cut_stored(answer: StoredAnswer, max_chars: int) -> StoredAnswer:
    """Return an answer whose prose has at most so many characters, cut where a sentence ends."""
    remaining = max_chars

    def cut(text: str) -> str:
        nonlocal remaining
        kept = truncate_at_boundary(text, remaining)
        remaining -= len(kept)
        return kept

    intro = cut(answer.intro)
    wines = [
        wine.model_copy(update={"description": cut(wine.description)}) for wine in answer.wines
    ]
    return answer.model_copy(
        update={"intro": intro, "wines": tuple(wines), "closing": cut(answer.closing)}
    )


def to_model_message(message: StoredMessage) -> Message:
    """Return a stored message as a model reads it: answers are JSON, as the model writes them.

    An answer that was stored as a text, as by earlier releases, is the intro of its JSON.
    """
    if message.role == "user":
        return {"role": "user", "content": message.content}
    if message.answer:
        return {"role": "assistant", "content": message.answer}
    answer = StoredAnswer(
        response_type="recommendation" if message.wine_ids else "informational",
        intro=unescape(message.content).replace("**", "").strip(),
        wines=tuple(StoredWine(wine_id=wine_id) for wine_id in message.wine_ids),
    )
    return {"role": "assistant", "content": answer.to_json()}


def to_history(stored: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as the history of a run.

    Blank messages are left out, because some servers respond to them with an error.
    """
    return [to_model_message(message) for message in stored if message.content.strip()]
