"""What a `SommelierResponse` must keep to, and how it reaches a person.

Wines are held to ids that a tool returned, exactly; free text to what tools returned.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from pydantic import ValidationError

from agent.documents.answer import footnotes
from agent.documents.citations import unretrieved_path
from agent.documents.misquotes import misquoted, without_misquotes
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, OutputContract
from agent.engine.feedback import fence
from agent.engine.messages import JsonSchema
from agent.i18n import say_in
from agent.markdown import escape, link, live, plain
from agent.sommelier.grounding import (
    PLACEHOLDER,
    Grounds,
    filled,
    invention,
    sentences_that,
    statements,
)
from agent.sommelier.sommelier_prompts import (
    SmallSommelierResponse,
    SommelierResponse,
    WineRecommendation,
    validate_semantic_content,
)
from agent.sommelier.wine import OWN, AnyWine, ReadWine, Wine, money
from agent.text import pattern, words

QUOTE_LINE: Final = pattern(r"(?m)^\\> ")
"""The mark of a block quote, the only one that words may have: what stands in one is a quote."""
BETWEEN: Final = "\n\ue000\n"
"""What no text of an answer holds."""
MISSING_SPACE: Final = pattern(r"\A[\p{L}\p{N}\p{S}\p{M}]+[.](?:[A-Z][\p{L}\p{N}]*|[A-Z][.].*)\Z")
"""The end of a sentence with no white space behind it, or letters that stand for words."""
ENDED: Final = pattern(r"[.!?…。！？\p{So}][\p{Pe}\p{Pf}\"'\s\p{M}\p{Cf}]*\Z")
"""The end of a text that is over."""
YEAR: Final = pattern(r"(?:19|20)\d\d")
SHOWN_IDS: Final = 12
SHOWN_BY_SMALL: Final = 4
"""Wines of an answer whose model may write on until it is cut off."""
SURE: Final = {"likely": "read_likely", "unsure": "read_unsure"}
LEAST_MARK_UP: Final = 1.1
MOST_MARK_UP: Final = 20.0
"""From how many times our price on that is told of a list's, and to how many: more is misread."""
UNKNOWN: Final = {"response_type": "informational"}
"""What a response is taken for until it says what it is."""

CountryName = Callable[[str, str], str]
"""What a language calls a country that is named in English."""


def in_english(country: str, language: str) -> str:
    """Return a country's English name, whatever the language."""
    return country


def render(
    response: SommelierResponse,
    evidence: Evidence,
    language: str = "en",
    country_name: CountryName = in_english,
    *,
    by_rules: bool = False,
) -> str:
    """Write an answer as Markdown: the model's words, beside facts that come from the catalogue.

    The words stay plain text. Only the numbers of documents and the names of wines are put into
    them, and addresses that a tool found become links. Who answers `by_rules` has put the names
    there already, and what looks like a place for one is a part of a name.
    """
    said = {wine.wine_id: wine.description for wine in reversed(response.wines)}
    wines = shown_wines(response.wines, evidence)
    texts = [response.intro, *(said[wine.id] for wine in wines), response.closing]
    chunks = [found for found in evidence.found.values() if isinstance(found, Chunk)]
    numbered, notes = with_footnotes(texts, chunks)
    named = numbered if by_rules else [filled(text, evidence) for text in numbered]
    intro, *descriptions, closing = (in_markdown(text, evidence) for text in named)
    entries = (
        wine_text(wine, said_of_it, language, country_name, f"{number}. ")
        for number, (wine, said_of_it) in enumerate(zip(wines, descriptions, strict=True), start=1)
    )
    return "\n\n".join(part for part in (intro, *entries, closing, notes) if part)


def wine_text(
    wine: AnyWine, said: str, language: str, country_name: CountryName, number: str = ""
) -> str:
    """Write a wine as Markdown: its name, its facts, and what is `said` of it, Markdown too."""
    facts = escape(facts_line(wine, language, country_name))
    return f"**{number}{escape(wine.label)}**\n{facts}\n{said}".strip()


def in_markdown(text: str, evidence: Evidence) -> str:
    """Write a model's words as Markdown that shows them as they are, with links that were found."""
    parts, end, links = list[str](), 0, evidence.links
    for found in live(text):
        if (address := text[found.start : found.end]) in links:
            parts += [escape(text[end : found.start]), link(address)]
            end = found.end
    return QUOTE_LINE.sub("> ", "".join([*parts, escape(text[end:])]))


def unknown_placeholder(text: str, evidence: Evidence) -> str | None:
    """Name the first `{wine:ID}` in `text` whose wine no tool returned; None without one."""
    for found in PLACEHOLDER.finditer(text):
        if not _wine(found[1].strip(), evidence):
            return f"no tool returned a wine with the id in {fence(found[0])}; {_known(evidence)}"
    return None


def shown_wines(wines: Iterable[WineRecommendation], evidence: Evidence) -> list[AnyWine]:
    """Return the facts of recommended wines, each once; unknown ids are left out."""
    found = (evidence.found.get(wine_id) for wine_id in dict.fromkeys(w.wine_id for w in wines))
    return [wine for wine in found if isinstance(wine, AnyWine)]


def facts_line(wine: AnyWine, language: str = "en", country_name: CountryName = in_english) -> str:
    """Say where a wine comes from and what it costs, and if it is not in stock."""
    if isinstance(wine, ReadWine):
        return read_line(wine, language)
    place, country = wine.appellation or wine.region, country_name(wine.country, language)
    origin = f"{place}, {country}" if place and place != wine.country else country
    facts = [origin, price_text(wine), "" if wine.in_stock else say_in(language, "not_in_stock")]
    if wine.id.startswith(OWN):
        facts = [origin, say_in(language, "cellar_own")]
    return " · ".join(fact for fact in facts if fact)


def read_line(wine: ReadWine, language: str = "en") -> str:
    """Say that a wine was read, what the list asks for it, and what it costs here if we have it."""
    asked, glass = (
        money(price, wine.currency) if price is not None else ""
        for price in (wine.price, wine.glass_price)
    )
    times, ours = wine.times_ours, price_text(wine.known) if wine.known else ""
    facts = [
        say_in(language, "of_list" if wine.is_listed else "of_label"),
        say_in(language, SURE[wine.sure]) if wine.sure in SURE else "",
        wine.region,
        asked,
        say_in(language, "by_the_glass", price=glass) if glass else "",
        say_in(language, "in_cellar", price=ours) if ours and wine.is_listed else "",
        f"×\N{NO-BREAK SPACE}{times:.1f}"
        if times and LEAST_MARK_UP <= times <= MOST_MARK_UP
        else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def price_text(wine: Wine) -> str:
    """Write an indicative price, hence the sign: `≈ €18`; empty if none is known."""
    return "" if wine.price is None else f"≈ {money(wine.price, wine.currency)}"


def with_footnotes(texts: Sequence[str], chunks: Sequence[Chunk]) -> tuple[Sequence[str], str]:
    """Number the paths that texts cite; return them, and the documents' titles as Markdown."""
    if not chunks:
        return texts, ""
    numbered, notes = footnotes(BETWEEN.join(texts), chunks)
    titles = (f"[{note.number}] {escape(f'{note.title} · {note.location}')}" for note in notes)
    return numbered.split(BETWEEN), "\n".join(titles)


def unsupported(
    response: SommelierResponse, evidence: Evidence, *, by_rules: bool = False
) -> str | None:
    """Say what in a response no tool returned; None if all did.

    A wine, a name, vintage or price in the text, a path, an address or a quote.
    """
    if response.concern == "crisis":
        return None
    for position, wine in enumerate(response.wines):
        if problem := ungrounded_wine(wine, evidence):
            return f"wines.{position}: {problem}"
    told = told_by(response)
    grounds = Grounds.of(evidence, told)
    found = (_problem(text, wine_id, grounds, by_rules) for text, wine_id in told)
    return next((problem for problem in found if problem), None)


def told_by(response: SommelierResponse) -> list[tuple[str, str]]:
    """List a model's own words, each text with the id of the wine that it describes, if any.

    A sentence that goes on in the next text is one of both.
    """
    described = ((wine.description, wine.wine_id) for wine in response.wines)
    told = [(response.intro, ""), *described, (response.closing, "")]
    texts = [text.strip() for text, _ in told if text.strip()]
    halves = ((one, other) for one, other in pairwise(texts) if not ENDED.search(one))
    joined = (
        (f"{[*statements(one)][-1]} – {next(statements(other))}", "") for one, other in halves
    )
    return [*told, *joined]


def _problem(text: str, wine_id: str, grounds: Grounds, by_rules: bool = False) -> str | None:
    evidence = grounds.evidence
    if found := next(filter(None, (rule(text, evidence) for rule in RULES)), None):
        return found
    if by_rules:
        return None
    return unknown_placeholder(text, evidence) or invention(text, grounds, _wine(wine_id, evidence))


def _wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    found = evidence.found.get(wine_id)
    return found if isinstance(found, AnyWine) else None


def unknown_address(text: str, evidence: Evidence) -> str | None:
    """Name the first address in `text` that stands in no source whole; None without one.

    One that only stands in a text, and was not found as a link, is shown and cannot be tapped.
    """
    said = _addresses(unicodedata.normalize("NFKC", text))
    if not said:
        return None
    paths = (found.path for found in evidence.found.values() if isinstance(found, Chunk))
    shown = map(plain, evidence.answered)
    known = evidence.links.union(paths, *map(_addresses, (*evidence.texts, *shown)))
    for address in said:
        if address not in known and not MISSING_SPACE.search(address):
            return f"the text has the address {fence(address)}, which no tool found; leave it out"
    return None


def _addresses(text: str) -> list[str]:
    return [text[each.start : each.end] for each in live(text) if each.kind == "address"]


RULES: Final = (unretrieved_path, unknown_address, misquoted)


def ungrounded_wine(wine: WineRecommendation, evidence: Evidence) -> str | None:
    """Say why a recommended wine is not one that a tool returned; None if it is."""
    found = evidence.found.get(wine.wine_id)
    if not isinstance(found, AnyWine):
        return f"no tool returned a wine with the id {fence(wine.wine_id)}; {_known(evidence)}"
    if not _is_listed(found) and any(map(_is_listed, evidence.found.values())):
        return f"{fence(found.label)} is not on the guest's wine list; {_known(evidence)}"
    if wine.name and not same_name(wine.name, found.label):
        return f"the id {wine.wine_id} belongs to {found.label}, not to {fence(wine.name)}"
    return None


def _is_listed(found: object) -> bool:
    return isinstance(found, ReadWine) and found.is_listed


def _known(evidence: Evidence) -> str:
    wines = {key: each for key, each in evidence.found.items() if isinstance(each, AnyWine)}
    ids = [key for key, each in wines.items() if _is_listed(each)] or list(wines)
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
    left = _supported(response, evidence)
    if response.wines and not left.wines:
        return None
    if left.wines and not any(text for text, _ in told_by(left)):
        intro = ", ".join(shown.label for shown in shown_wines(left.wines, evidence))
        return left.model_copy(update={"intro": intro})
    return left


def _supported(response: SommelierResponse, evidence: Evidence) -> SommelierResponse:
    grounds = Grounds.of(evidence, told_by(response))
    kept = partial(_supported_text, grounds=grounds)
    wines = [
        wine.model_copy(update={"description": kept(wine.description, wine.wine_id)})
        for wine in response.wines
        if not ungrounded_wine(wine, evidence)
    ]
    told = {"intro": kept(response.intro, ""), "closing": kept(response.closing, "")}
    left = response.model_copy(update={**told, "wines": wines})
    texts = told_by(left)[len(wines) + 2 :]
    return _ended(left) if any(_problem(*each, grounds) for each in texts) else left


def _ended(response: SommelierResponse) -> SommelierResponse:
    """Return a response without the sentences that its texts end in before they are over."""
    wines = [
        wine.model_copy(update={"description": _whole_sentences(wine.description)})
        for wine in response.wines
    ]
    intro, closing = _whole_sentences(response.intro), _whole_sentences(response.closing)
    return response.model_copy(update={"intro": intro, "closing": closing, "wines": wines})


def _whole_sentences(text: str) -> str:
    return sentences_that(lambda said: ENDED.search(said) is not None, text)


def _supported_text(text: str, wine_id: str, grounds: Grounds) -> str:
    if not _problem(text, wine_id, grounds):
        return text
    left = sentences_that(
        lambda said: not _problem(said, wine_id, grounds),
        without_misquotes(text, grounds.evidence),
    )
    return "" if _problem(left, wine_id, grounds) else left


def begun_part(written: Mapping[str, Any], evidence: Evidence) -> SommelierResponse | None:
    """Return what may be shown of a response that is still being written; None if nothing."""
    listed = written.get("wines")
    wines = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    named = [each for each in wines if each.get("wine_id") or each.get("id")]
    known = {name: value for name, value in written.items() if value is not None}
    try:
        response = SommelierResponse.model_validate(UNKNOWN | known | {"wines": named})
    except ValidationError:
        return None
    return None if response.concern != "none" else _supported(response, evidence)


def wine_ids(response: SommelierResponse) -> list[str]:
    """Return the ids of the wines shown, each once."""
    return list(dict.fromkeys(wine.wine_id for wine in response.wines))


def semantic_problem(response: SommelierResponse) -> str | None:
    """Say what an answer lacks; nothing of one that hears a crisis, which help replaces whole."""
    return None if response.concern == "crisis" else validate_semantic_content(response)


def rendered(response: SommelierResponse, evidence: Evidence) -> str:
    """Write an answer as Markdown; of one that hears a crisis nothing is shown but that."""
    return response.concern if response.concern == "crisis" else render(response, evidence)


SOMMELIER: Final = OutputContract(
    SommelierResponse,
    semantic=semantic_problem,
    grounding=unsupported,
    render=rendered,
    ids=wine_ids,
    salvage=supported_part,
    partial=begun_part,
)


def of_found_wines(schema: JsonSchema, evidence: Evidence) -> JsonSchema:
    """Leave in an answer's strict schema the wines that were found, no place for any if none was.

    A server that holds a model to it lets no other id be written.
    """
    properties = dict(schema["properties"])
    found = [name for name, each in evidence.found.items() if isinstance(each, AnyWine)]
    if found:
        wine = properties["wines"]["items"]
        wine_id = {"type": "string", "enum": found}
        one = wine | {"properties": wine["properties"] | {"wine_id": wine_id}}
        properties["wines"] = {"type": "array", "items": one, "maxItems": SHOWN_BY_SMALL}
    else:
        del properties["wines"]
        kinds = [each for each in properties["response_type"]["enum"] if each != "recommendation"]
        properties["response_type"] = {"enum": kinds}
    return {**schema, "properties": properties, "required": list(properties)}


SMALL_SOMMELIER: Final[OutputContract[SommelierResponse]] = replace(
    SOMMELIER, type=SmallSommelierResponse, narrow=of_found_wines
)
"""The same for a small model: its schema is a third as long."""


def in_language(language: str, country_name: CountryName) -> OutputContract[SommelierResponse]:
    """Make the contract of the house sommelier, whose words are data and shown in `language`."""
    return replace(
        SOMMELIER,
        grounding=partial(unsupported, by_rules=True),
        render=partial(render, language=language, country_name=country_name, by_rules=True),
    )
