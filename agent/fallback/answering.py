"""Rule-based answers: wines for a request, a document passage for a question.

An answer begins with the interpretation of the request, so that the user can correct it, and ends
with the words that were not understood. `terms.toml` translates wine terms for English documents.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from agent.documents.passages import (
    Chunk,
    DocumentStore,
    best_passage,
    describe_chunks,
    source_line,
)
from agent.engine.messages import Message
from agent.engine.run import NO_SPAN, Span
from agent.fallback.merging import Context, get_exchanges, merge_exchanges
from agent.fallback.searching import FoundWines, search_wines
from agent.fallback.wording import describe_field, describe_request, describe_wine
from agent.i18n import current_language, translate
from agent.language import common_words, stem, stop_words
from agent.markdown import escape
from agent.query_reading.request import COMPARISON_CUES, UNKNOWN_CURRENCY, Request, read_request
from agent.query_reading.words import Phrase, Token, find_phrases, tokenize
from agent.safety.filters import get_wines
from agent.sommelier.answer import render_wine
from agent.sommelier.queries import build_query, get_pairing
from agent.sommelier.sommelier_prompts import ResponseType, SommelierResponse, WineRecommendation
from agent.sommelier.wine import Catalogue, Wine
from agent.tables import read_toml
from agent.text import split_words
from agent.turn import NOBODY, Person, Reply

MAX_WINES: Final = 3
MAX_CHUNKS: Final = 8
MAX_PASSAGE_CHARS: Final = 700
MIN_TOPIC_LETTERS: Final = 3
MIN_TOPIC_SHARE: Final = 0.5
"""The minimum share of a question's topics that a passage must mention."""
PROPER_NAME_FIELDS: Final = ("regions", "grapes", "countries")

Kind = Literal["why", "details", "question", "wines", "help"]
"""The kind of a message:

- why: asks for the reasons for the wines shown
- details: asks for details of wines shown, by their positions
- question: asks for knowledge
- wines: asks for wines
- help: nothing was understood
"""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The wines found for a message, or the passage that answers its question."""

    kind: Kind
    request: Request
    """The request of the message, merged with those of earlier messages."""
    own_request: Request
    """The request of the message by itself."""
    context: Context
    found_wines: FoundWines | None = None
    passage: Chunk | None = None
    """The chunk of a document, cut to the part that answers the question."""


class Fallback:
    """Answers by rules, from a catalogue and documents, without a language model."""

    def __init__(self, *, catalogue: Catalogue, documents: DocumentStore | None = None) -> None:
        self._catalogue, self._documents = catalogue, documents

    async def search(
        self,
        messages: Sequence[Message],
        *,
        person: Person = NOBODY,
        language: str = "",
        span: Span = NO_SPAN,
    ) -> SearchOutcome:
        """Search wines or documents to answer the last of these messages.

        Results are limited to what `person` may be shown. `language` is the user's language; empty
        means the current one.
        """
        exchanges = get_exchanges(messages)
        shown_ids = [wine_id for _, wine_ids in exchanges for wine_id in wine_ids]
        shown = await get_wines(self._catalogue, shown_ids, person) if shown_ids else []
        wines = {wine.id: wine for wine in shown}
        request, context = merge_exchanges(exchanges, wines, language or current_language())
        own_request = read_request(request.text, request.language)
        if should_offer_alcohol_free(own_request, person):
            # Ignore earlier filters, and search even if it is a question: "what should I drink?"
            filters = {"styles": ("alcohol_free",)}
            request = own_request = replace(own_request, filters=filters, is_question=False)
        outcome = SearchOutcome(classify(own_request, context), request, own_request, context)
        if outcome.kind == "question" and self._documents is not None:
            text = own_request.text
            with span.child("retrieve.documents", "retriever", input=text) as retrieval:
                passage = await find_passage(text, own_request.language, self._documents)
                retrieval.update(output=describe_chunks([passage] if passage else []))
            return replace(outcome, passage=passage)
        if outcome.kind == "wines":
            query = build_query(request, context.shown_ids).model_dump(
                mode="json", exclude_defaults=True
            )
            with span.child("retrieve.wines", "retriever", input=query) as retrieval:
                found_wines = await search_wines(self._catalogue, request, context, person)
                retrieval.update(output=[wine.id for wine in found_wines.wines])
            return replace(outcome, found_wines=found_wines)
        return outcome


def should_offer_alcohol_free(request: Request, person: Person) -> bool:
    """Return whether to answer an open request with alcohol-free wines.

    A question without a new concern asks for knowledge: "what does sur lie mean?"
    """
    safety = person.safety
    if safety.forbids_alcohol and request.is_empty:
        return bool(safety.turn_concerns) or not request.is_question
    asks_for_any_wine = request.is_empty and request.is_about_wine and not request.is_question
    return asks_for_any_wine and safety.prefers_alcohol_free


def classify(request: Request, context: Context) -> Kind:
    """Return the kind of a message from its own request and the wines shown before."""
    if "why" in request.cues and context.last_shown:
        return "why"
    refers_to_shown_wine = bool(request.ordinals) and not request.cues & COMPARISON_CUES
    # If no wines were shown, "the second" in a question does not refer to one.
    if refers_to_shown_wine and (context.last_shown or not request.is_question):
        return "details"
    if request.is_question:
        return "question"
    # Cue words such as "cheaper" need wines to compare with.
    has_only_cues = request.cues and not request.describes_wine
    if request.is_empty or (has_only_cues and not context.last_shown):
        return "help"
    return "wines"


def make_reply(outcome: SearchOutcome) -> Reply:
    """Return the reply to a message from the outcome of its search."""
    request, own_request, context = outcome.request, outcome.own_request, outcome.context
    match outcome.kind:
        case "wines":
            return _search_reply(outcome, outcome.found_wines or FoundWines())
        case "why":
            intro = f"{_interpretation(request)} {_pairing_reason(request)}".strip()
            return _wine_reply(intro, context.last_shown, request)
        case "details" if wines := context.find_referenced(own_request):
            return _wine_reply(translate("fallback_details"), wines, own_request)
        case "details":
            name = "fallback_which" if context.last_shown else "fallback_nothing_shown"
            return _text_reply(translate(name))
        case "question":
            text = _quote(outcome.passage) if outcome.passage else translate("fallback_only")
            is_about_wine = own_request.is_about_wine or own_request.describes_wine
            return _text_reply(text, is_on_topic=bool(outcome.passage) or is_about_wine)
        case "help":
            is_comparison = own_request.cues & COMPARISON_CUES
            lead = f"{translate('fallback_nothing_shown')} " if is_comparison else ""
            text = f"{lead}{translate('fallback_help')}"
            return _text_reply(text, is_on_topic=own_request.is_about_wine)


def _quote(passage: Chunk) -> str:
    lines = filter(str.strip, passage.text.splitlines())
    quoted = "\n".join(f"> {escape(line)}" for line in lines)
    source = source_line(1, passage.title, passage.location)
    return "\n\n".join((translate("fallback_passage"), quoted, source))


def _interpretation(request: Request) -> str:
    """Return the sentence that describes how a request was understood."""
    description = describe_request(request) or translate("fallback_any")
    return translate("fallback_read", request=escape(description))


def _text_reply(text: str, *, is_on_topic: bool = True) -> Reply:
    """Return a reply without wines."""
    response_type: ResponseType = "informational" if is_on_topic else "off_topic"
    answer = SommelierResponse(response_type=response_type, intro=text)
    return Reply(text=text, structured_answer=answer)


def _search_reply(outcome: SearchOutcome, found: FoundWines) -> Reply:
    """Return a reply with the wines found, after the interpretation of the request."""
    request, interpretation = outcome.request, _interpretation(outcome.request)
    caveats = "\n\n".join(_caveats(outcome.own_request))
    if not found.wines:
        asked_for_more = request.cues and outcome.context.shown_ids
        nothing = translate("fallback_all_shown" if asked_for_more else "fallback_nothing")
        if request.name:
            nothing = translate("fallback_no_name", name=escape(request.name))
        return _text_reply("\n\n".join(filter(None, (interpretation, nothing, caveats))))
    unmet = ", ".join(escape(describe_field(name, request)) for name in found.unmet_fields)
    similar_to = found.similar_to
    sentences = (
        translate("fallback_similar", name=escape(similar_to.label)) if similar_to else "",
        translate("fallback_relaxed", limits=unmet) if unmet else "",
        "" if "foods" in found.unmet_fields else _pairing_reason(request),
    )
    intro = "\n\n".join(filter(None, (interpretation, " ".join(filter(None, sentences)))))
    return _wine_reply(intro, found.wines[:MAX_WINES], request, caveats)


def _wine_reply(intro: str, wines: Sequence[Wine], request: Request, closing: str = "") -> Reply:
    """Return a reply with a card per wine, described for a request."""
    recommendations: list[WineRecommendation] = []
    cards: list[str] = []
    for number, wine in enumerate(wines, start=1):
        text = describe_wine(wine, request)
        recommendations.append(WineRecommendation(wine_id=wine.id, description=text))
        # Notes are in English, so only English replies contain them.
        notes = f"\n{wine.notes}" if wine.notes and current_language() == "en" else ""
        cards.append(render_wine(wine, escape(text + notes), f"{number}. ", user_text=request.text))
    return Reply(
        text="\n\n".join(filter(None, (intro, *cards, closing))),
        wine_ids=tuple(wine.id for wine in wines),
        wines=tuple(wines),
        structured_answer=SommelierResponse(
            response_type="recommendation", intro=intro, wines=recommendations, closing=closing
        ),
    )


def _pairing_reason(request: Request) -> str:
    """Return why the wines suit the dish, or an empty string without a known dish."""
    name = get_pairing(request)
    return translate(f"pairing_{name}") if name else ""


def _caveats(request: Request) -> Iterator[str]:
    """Yield sentences about parts of a request that were not, or may not be, respected."""
    if request.filters.get("currency") == UNKNOWN_CURRENCY:
        yield translate("fallback_currency")
    if "without_allergens" in request.filters:
        yield translate("fallback_allergens")
    if request.unknown_words and not request.name:
        words = ", ".join(f"“{escape(word)}”" for word in request.unknown_words)
        yield translate("fallback_unknown", words=words)


Synonyms = tuple[str, ...]
"""Synonyms for a topic of a question; a text that contains one of them mentions the topic."""


async def find_passage(question: str, language: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage that answers a question best, or None if none mentions its topics."""
    topics, word_topics = _find_topics(question, language)
    all_topics = [*topics, *word_topics]
    if not all_topics:
        return None
    topic_words = " ".join(word for topic in topics for word in topic)
    chunks = await documents.search([question, topic_words or question], limit=MAX_CHUNKS)

    def relevance(chunk: Chunk) -> tuple[float, float]:
        headings = f"{chunk.title} {chunk.location}"
        return _topic_share(all_topics, headings), _topic_share(all_topics, chunk.title)

    # Without a topic in English, the passage must contain every word of the question.
    min_share = MIN_TOPIC_SHARE if topics else 1
    for chunk in sorted(chunks, key=relevance, reverse=True):
        if _topic_share(topics or word_topics, chunk.source_text) >= min_share:
            text = best_passage(chunk.text, f"{question} {topic_words}", MAX_PASSAGE_CHARS)
            return replace(chunk, text=text)
    return None


def _find_topics(question: str, language: str) -> tuple[list[Synonyms], list[Synonyms]]:
    """Return the English topics of a question, and a topic for each of its content words."""
    tokens = tokenize(question)
    phrases = find_phrases(tokens, language)
    names = (
        name for phrase in phrases for field in PROPER_NAME_FIELDS for name in phrase.values(field)
    )
    topics = [tuple(split_words(name)) for name in names]
    word_topics: list[Synonyms] = []
    for word in _content_words(tokens, phrases, language):
        # In the table `*` stands for any ending: "reif*". Take the longest key found.
        beginnings = (f"{word[:length]}*" for length in range(len(word), 2, -1))
        topics += [_load_terms()[key] for key in (word, *beginnings) if key in _load_terms()][:1]
        word_topics.append((word,))
    return list(dict.fromkeys(topics)), list(dict.fromkeys(word_topics))


def _content_words(
    tokens: Sequence[Token], phrases: Sequence[Phrase], language: str
) -> Iterator[str]:
    """Yield the words in the form of `split_words`, without common and grammatical ones."""
    # Keep phrases about serving, such as "how cold": they are both grammar and content.
    grammar = [item for item in phrases if item.values("role") and not item.has_role("serving")]
    skipped = {index for phrase in grammar for index in phrase.indices}
    common = common_words(language) | stop_words()
    for index, token in enumerate(tokens):
        word = next(iter(split_words(token.written)), "")
        if index not in skipped and len(word) >= MIN_TOPIC_LETTERS and word not in common:
            yield word


def _topic_share(topics: Sequence[Synonyms], text: str) -> float:
    """Return the share of the topics that a text mentions."""
    stems = {stem(word) for word in split_words(text)}
    return sum(not stems.isdisjoint(map(stem, topic)) for topic in topics) / len(topics)


@cache
def _load_terms() -> Mapping[str, Synonyms]:
    """Return the English words for each wine term, in any language."""
    terms: dict[str, Synonyms] = {}
    for english, others in read_toml(
        dict[str, str], Path(__file__).with_name("terms.toml")
    ).items():
        topic = tuple(english.split())
        for word in (*topic, *others.split()):
            terms[word] = tuple(dict.fromkeys((*terms.get(word, ()), *topic)))
    return terms
