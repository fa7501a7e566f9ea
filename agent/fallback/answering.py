"""Answers without a language model: wines for a request, a passage for a question.

An answer says first how the request was read, so that a misreading is seen and put right, and at
the end what was not understood.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.documents.passages import DocumentStore, source_line
from agent.engine.messages import Message
from agent.engine.run import NO_SPAN, Span
from agent.fallback.library import Passage, passage_for
from agent.fallback.merging import Context, exchanges_of, request_of
from agent.fallback.prices import UNKNOWN
from agent.fallback.request import Request, read_request
from agent.fallback.searching import Found, find, pairing_of, query_of
from agent.fallback.wording import describe_request, describe_wine, field_in_words
from agent.i18n import current_language, translate
from agent.markdown import escape
from agent.sommelier.cards import wine_text
from agent.sommelier.safety import get_wines
from agent.sommelier.sommelier_prompts import ResponseType, SommelierResponse, WineRecommendation
from agent.sommelier.wine import Catalogue, Wine
from agent.turn import NOBODY, Person, Reply

ENOUGH: Final = 3
"""Wines that an answer shows."""
COMPARING: Final = frozenset({"cheaper", "dearer", "lighter", "fuller", "drier", "sweeter", "like"})
"""Cues that only mean something beside wines that were shown."""


Kind = Literal["why", "details", "question", "wines", "help"]
"""The subject of a message: the reasons for the wines shown, one wine, knowledge, or wines."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Hold the wines found for a message, or the passage that answers its question.

    `request` is the message merged with those before it, `message` the message by itself.
    """

    kind: Kind
    request: Request
    message: Request
    context: Context
    found: Found | None = None
    passage: Passage | None = None


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
    ) -> LookUp:
        """Search for what the last of these messages asks, and return what was found.

        Every search is held to what `person` may be shown. `language` is the user's.
        """
        exchanges = exchanges_of(messages)
        ids = [wine_id for _, shown in exchanges for wine_id in shown]
        known = await get_wines(self._catalogue, ids, person) if ids else []
        wines = {wine.id: wine for wine in known}
        request, context = request_of(exchanges, wines, language or current_language())
        message = read_request(request.text, request.language)
        if needs_no_alcohol(message, person):
            filters = {"styles": ("alcohol_free",)}
            request = message = replace(message, filters=filters, is_question=False)
        look_up = LookUp(kind_of(message, context), request, message, context)
        if look_up.kind == "question" and self._documents is not None:
            with span.child("retrieve.documents", "retriever", input=message.text) as retrieval:
                passage = await passage_for(message.text, message.language, self._documents)
                retrieval.update(output=[passage.chunk.id] if passage else [])
            return replace(look_up, passage=passage)
        if look_up.kind != "wines":
            return look_up
        query = query_of(request, context)
        asked = query.model_dump(mode="json", exclude_defaults=True)
        with span.child("retrieve.wines", "retriever", input=asked) as retrieval:
            found = await find(self._catalogue, request, context, person)
            retrieval.update(output=[wine.id for wine in found.wines])
        return replace(look_up, found=found)


def needs_no_alcohol(message: Request, person: Person) -> bool:
    """Tell whether a user who had better not drink asks what to drink.

    A question without a concern asks for knowledge: "what does sur lie mean?"
    """
    care = person.care
    if care.forbids_alcohol and message.is_empty:
        return bool(care.stated) or not message.is_question
    is_open = message.is_empty and message.is_about_wine and not message.is_question
    return is_open and care.is_cautious


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


def reply_to(look_up: LookUp) -> Reply:
    """Return the answer to a message, from what was found for it."""
    request, message, context = look_up.request, look_up.message, look_up.context
    kind: ResponseType = "informational" if message.is_about_wine else "off_topic"
    match look_up.kind:
        case "wines":
            reply = _found(look_up, look_up.found or Found())
        case "why":
            reply = _shown(f"{_read(request)} {_why(request)}".strip(), context.shown, request)
        case "details" if wines := context.meant(message):
            reply = _shown(translate("fallback_details"), wines, message)
        case "details":
            reply = _say(translate("fallback_which" if context.shown else "fallback_nothing_shown"))
        case "question" if look_up.passage is not None:
            reply = _say(_quoted(look_up.passage))
        case "question":
            reply = _say(
                translate("fallback_only"), "informational" if message.describes_wine else kind
            )
        case "help":
            lead = translate("fallback_nothing_shown") if message.cues & COMPARING else ""
            reply = _say(f"{lead} {translate('fallback_help')}".strip(), kind)
    return reply


def _read(request: Request) -> str:
    """Say how a request was read."""
    words = describe_request(request) or translate("fallback_any")
    return translate("fallback_read", request=escape(words))


def _quoted(passage: Passage) -> str:
    """Return a passage of the documents, word for word, with its source."""
    quoted = "\n".join(f"> {escape(line)}" for line in passage.text.splitlines() if line.strip())
    source = source_line(1, passage.chunk.title, passage.chunk.location)
    return "\n\n".join((translate("fallback_passage"), quoted, source))


def _say(text: str, kind: ResponseType = "informational") -> Reply:
    """Return an answer without wines."""
    return Reply(text=text, answer=SommelierResponse(response_type=kind, intro=text))


def _found(look_up: LookUp, found: Found) -> Reply:
    """Show the wines that were found, below how the request was read."""
    request, read = look_up.request, _read(look_up.request)
    notes = "\n\n".join(_notes(look_up.message))
    if not found.wines:
        return _say("\n\n".join(filter(None, (read, _nothing(request, look_up.context), notes))))
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
        card = wine_text(wine, escape(text + notes), f"{number}. ", asked=request.text)
        cards.append(card)
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
    name = pairing_of(request)
    return translate(f"pairing_{name}") if name else ""


def _nothing(request: Request, context: Context) -> str:
    """Say that nothing fits, and why if that is known."""
    if request.name:
        return translate("fallback_no_name", name=escape(request.name))
    is_further = request.cues and context.seen
    return translate("fallback_all_shown" if is_further else "fallback_nothing")


def _notes(message: Request) -> Iterator[str]:
    """Yield what was not understood, and a warning beside allergens."""
    if message.filters.get("currency") == UNKNOWN:
        yield translate("fallback_currency")
    if "without_allergens" in message.filters:
        yield translate("fallback_allergens")
    if message.unknown and not message.name:
        words = ", ".join(f"“{escape(word)}”" for word in message.unknown)
        yield translate("fallback_unknown", words=words)
