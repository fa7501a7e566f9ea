"""Answers without a language model: wines for a request, a passage for a question.

An answer says first how the request was read, so that a misreading is seen and put right, and at
the end what was not understood. A question in another language finds English documents by the words
of wine that it holds, which `terms.toml` tells in English.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from agent.documents.passages import Chunk, DocumentStore, best_passage, source_line
from agent.engine.messages import Message
from agent.engine.run import NO_SPAN, Span
from agent.fallback.merging import Context, get_exchanges, merge_exchanges
from agent.fallback.request import UNKNOWN, Request, read_request
from agent.fallback.searching import FoundWines, build_query, get_pairing, search_wines
from agent.fallback.wording import describe_request, describe_wine, field_in_words
from agent.fallback.words import DATA_FOLDER, find_phrases, tokenize
from agent.i18n import current_language, translate
from agent.language import common_words, stem, stop_words
from agent.markdown import escape
from agent.sommelier.answer import render_wine
from agent.sommelier.safety import get_wines
from agent.sommelier.sommelier_prompts import ResponseType, SommelierResponse, WineRecommendation
from agent.sommelier.wine import Catalogue, Wine
from agent.tables import read_toml
from agent.text import split_words
from agent.turn import NOBODY, Person, Reply

ENOUGH: Final = 3
"""Wines that an answer shows."""
COMPARING: Final = frozenset({"cheaper", "dearer", "lighter", "fuller", "drier", "sweeter", "like"})
"""Cues that only mean something beside wines that were shown."""
MOST_CHUNKS: Final = 8
LONGEST: Final = 700
"""Characters of a passage."""
SHORTEST: Final = 3
"""Letters of a word that tells what a question is about."""
LEAST: Final = 0.5
"""The share of a question's subjects that a passage has to name."""
NAMES: Final = ("regions", "grapes", "countries")

Kind = Literal["why", "details", "question", "wines", "help"]
"""The subject of a message: the reasons for the wines shown, one wine, knowledge, or wines."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Hold the wines found for a message, or the passage that answers its question.

    `request` is the message merged with those before it, `message` the message by itself. The
    `passage` is a part of a document with the text that answers alone.
    """

    kind: Kind
    request: Request
    message: Request
    context: Context
    found: FoundWines | None = None
    passage: Chunk | None = None


class Fallback:
    """Answers from a catalogue and documents by rules, without a language model."""

    def __init__(self, *, catalogue: Catalogue, documents: DocumentStore | None = None) -> None:
        self._catalogue, self._documents = catalogue, documents

    async def look_up(
        self,
        messages: Sequence[Message],
        *,
        person: Person = NOBODY,
        language: str = "",
        span: Span = NO_SPAN,
    ) -> SearchOutcome:
        """Search for what the last of these messages asks, and return what was found.

        Every search is held to what `person` may be shown. `language` is the user's.
        """
        exchanges = get_exchanges(messages)
        ids = [wine_id for _, shown in exchanges for wine_id in shown]
        known = await get_wines(self._catalogue, ids, person) if ids else []
        wines = {wine.id: wine for wine in known}
        request, context = merge_exchanges(exchanges, wines, language or current_language())
        message = read_request(request.text, request.language)
        if needs_no_alcohol(message, person):
            filters = {"styles": ("alcohol_free",)}
            request = message = replace(message, filters=filters, is_question=False)
        look_up = SearchOutcome(kind_of(message, context), request, message, context)
        if look_up.kind == "question" and self._documents is not None:
            with span.child("retrieve.documents", "retriever", input=message.text) as retrieval:
                passage = await passage_for(message.text, message.language, self._documents)
                retrieval.update(output=[passage.id] if passage else [])
            return replace(look_up, passage=passage)
        if look_up.kind == "wines":
            query = build_query(request, context)
            asked = query.model_dump(mode="json", exclude_defaults=True)
            with span.child("retrieve.wines", "retriever", input=asked) as retrieval:
                found = await search_wines(self._catalogue, request, context, person)
                retrieval.update(output=[wine.id for wine in found.wines])
            return replace(look_up, found=found)
        return look_up


def needs_no_alcohol(message: Request, person: Person) -> bool:
    """Tell whether a user who had better not drink asks what to drink.

    A question without a concern asks for knowledge: "what does sur lie mean?"
    """
    safety = person.safety
    if safety.forbids_alcohol and message.is_empty:
        return bool(safety.turn_concerns) or not message.is_question
    is_open = message.is_empty and message.is_about_wine and not message.is_question
    return is_open and safety.prefers_alcohol_free


def kind_of(message: Request, context: Context) -> Kind:
    """Return what a message asks for, beside the wines that were shown."""
    if "why" in message.cues and context.shown:
        return "why"
    points = bool(message.ordinals) and not message.cues & COMPARING
    if points and (context.shown or not message.is_question):
        return "details"
    if message.is_question:
        return "question"
    means_nothing = message.cues and not (message.describes_wine or context.shown)
    return "help" if message.is_empty or means_nothing else "wines"


def make_reply(look_up: SearchOutcome) -> Reply:
    """Return the answer to a message, from what was found for it."""
    request, message, context = look_up.request, look_up.message, look_up.context
    kind: ResponseType = "informational" if message.is_about_wine else "off_topic"
    match look_up.kind:
        case "wines":
            return _found(look_up, look_up.found or FoundWines())
        case "why":
            return _shown(f"{_read(request)} {_why(request)}".strip(), context.shown, request)
        case "details" if wines := context.meant(message):
            return _shown(translate("fallback_details"), wines, message)
        case "question" if (passage := look_up.passage) is not None:
            lines = filter(str.strip, passage.text.splitlines())
            quoted = "\n".join(f"> {escape(line)}" for line in lines)
            source = source_line(1, passage.title, passage.location)
            return _say("\n\n".join((translate("fallback_passage"), quoted, source)))
        case "question":
            text = translate("fallback_only")
            kind = "informational" if message.describes_wine else kind
        case "details":
            text = translate("fallback_which" if context.shown else "fallback_nothing_shown")
            kind = "informational"
        case "help":
            lead = translate("fallback_nothing_shown") if message.cues & COMPARING else ""
            text = f"{lead} {translate('fallback_help')}".strip()
    return _say(text, kind)


def _read(request: Request) -> str:
    """Say how a request was read."""
    words = describe_request(request) or translate("fallback_any")
    return translate("fallback_read", request=escape(words))


def _say(text: str, kind: ResponseType = "informational") -> Reply:
    """Return an answer without wines."""
    return Reply(text=text, answer=SommelierResponse(response_type=kind, intro=text))


def _found(look_up: SearchOutcome, found: FoundWines) -> Reply:
    """Show the wines that were found, below how the request was read."""
    request, read = look_up.request, _read(look_up.request)
    notes = "\n\n".join(_notes(look_up.message))
    if not found.wines:
        is_further = request.cues and look_up.context.seen
        nothing = translate("fallback_all_shown" if is_further else "fallback_nothing")
        if request.name:
            nothing = translate("fallback_no_name", name=escape(request.name))
        return _say("\n\n".join(filter(None, (read, nothing, notes))))
    missed = ", ".join(escape(field_in_words(name, request)) for name in found.missed)
    sentences = (
        translate("fallback_similar", name=escape(found.like.label)) if found.like else "",
        translate("fallback_relaxed", limits=missed) if missed else "",
        "" if "foods" in found.missed else _why(request),
    )
    intro = "\n\n".join(filter(None, (read, " ".join(filter(None, sentences)))))
    return _shown(intro, found.wines[:ENOUGH], request, notes)


def _shown(intro: str, wines: Sequence[Wine], request: Request, closing: str = "") -> Reply:
    """Return an answer that shows wines, described for a request.

    The notes of a wine are added for English, in which they are written.
    """
    described, cards = list[WineRecommendation](), list[str]()
    for number, wine in enumerate(wines, start=1):
        text = describe_wine(wine, request)
        described.append(WineRecommendation(wine_id=wine.id, description=text))
        notes = f"\n{wine.notes}" if wine.notes and current_language() == "en" else ""
        cards.append(render_wine(wine, escape(text + notes), f"{number}. ", user_text=request.text))
    return Reply(
        text="\n\n".join(filter(None, (intro, *cards, closing))),
        wine_ids=tuple(wine.id for wine in wines),
        wines=tuple(wines),
        answer=SommelierResponse(
            response_type="recommendation", intro=intro, wines=described, closing=closing
        ),
    )


def _why(request: Request) -> str:
    """Return why such wines suit the dish, where a dish is named."""
    name = get_pairing(request)
    return translate(f"pairing_{name}") if name else ""


def _notes(message: Request) -> Iterator[str]:
    """Yield what was not understood, and a warning beside allergens."""
    if message.filters.get("currency") == UNKNOWN:
        yield translate("fallback_currency")
    if "without_allergens" in message.filters:
        yield translate("fallback_allergens")
    if message.unknown and not message.name:
        words = ", ".join(f"“{escape(word)}”" for word in message.unknown)
        yield translate("fallback_unknown", words=words)


Topic = tuple[str, ...]
"""The English words for something that a question is about."""


async def passage_for(question: str, language: str, documents: DocumentStore) -> Chunk | None:
    """Return the passage that answers a question best; None if none speaks of what it asks."""
    topics, others = _topics(question, language)
    wanted = [*topics, *others]
    if not wanted:
        return None
    in_english = " ".join(word for topic in topics for word in topic)
    chunks = await documents.search([question, in_english or question], limit=MOST_CHUNKS)

    def about(chunk: Chunk) -> tuple[float, float]:
        return _share(wanted, f"{chunk.title} {chunk.location}"), _share(wanted, chunk.title)

    ranked = sorted(chunks, key=about, reverse=True)
    least = LEAST if topics else 1
    for chunk in ranked:
        if _share(topics or others, chunk.source_text) >= least:
            text = best_passage(chunk.text, f"{question} {in_english}", LONGEST)
            return replace(chunk, text=text)
    return None


def _topics(question: str, language: str) -> tuple[list[Topic], list[Topic]]:
    """Return what a question is about in English, as far as that is known, and its other words."""
    question_words = tokenize(question)
    spans = find_phrases(question_words, language)
    topics = [
        tuple(split_words(name)) for span in spans for key in NAMES for name in span.values(key)
    ]
    grammar = [span for span in spans if "mark" in span.meanings and not span.has("serving")]
    skipped = {place for span in grammar for place in span.places}
    common = common_words(language) | stop_words()
    others: list[Topic] = []
    for place, token in enumerate(question_words):
        word = next(iter(split_words(token.written)), "")
        if place not in skipped and len(word) >= SHORTEST and word not in common:
            # `*` in the table is any ending.
            heads = (f"{word[:length]}*" for length in range(len(word), 2, -1))
            topics += [_terms()[key] for key in (word, *heads) if key in _terms()][:1]
            others.append((word,))
    return list(dict.fromkeys(topics)), list(dict.fromkeys(others))


def _share(topics: Sequence[Topic], text: str) -> float:
    """Return the share of the topics that a text speaks of."""
    stems = {stem(word) for word in split_words(text)}
    return sum(not stems.isdisjoint(map(stem, topic)) for topic in topics) / len(topics)


@cache
def _terms() -> Mapping[str, Topic]:
    """Return the words of wine in every language, with the English words for each."""
    found: dict[str, Topic] = {}
    for english, others in read_toml(dict[str, str], DATA_FOLDER / "terms.toml").items():
        topic = tuple(english.split())
        for word in (*topic, *others.split()):
            found[word] = tuple(dict.fromkeys((*found.get(word, ()), *topic)))
    return found
