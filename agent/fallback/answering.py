"""Rule-based answers: wines for a wish, a document passage for a question.

An answer begins with the wish as it was understood, so that the user can correct it, and ends with
the words that were not understood.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from agent.documents.passages import (
    Chunk,
    DocumentStore,
    announce_passages,
    describe_chunks,
    source_line,
)
from agent.documents.shop import asks_for_staff, find_shop_topics
from agent.engine.run import NO_SPAN, Span
from agent.fallback.cellar import OwnBottles, find_own_bottles
from agent.fallback.follow_ups import FollowUp
from agent.fallback.merging import (
    Wish,
    get_exchanges,
    read_wish,
    without_lifted_allergies,
)
from agent.fallback.passages import find_passage, find_shop_passage
from agent.fallback.reasons import describe_fit
from agent.fallback.searching import FoundWines, build_wish_query, search_wines
from agent.fallback.wording import (
    describe_field,
    describe_request,
    describe_wine,
    is_vegan,
    name_value,
)
from agent.formatting import join_or
from agent.i18n import current_language, translate
from agent.markdown import escape
from agent.query_reading.prices import UNKNOWN_CURRENCY
from agent.query_reading.request import Request
from agent.sommelier.cards import get_shown_label, render_wine
from agent.sommelier.filters import find_wines, get_wines
from agent.sommelier.queries import (
    Catalogue,
    WineQuery,
    WineSearchResult,
    find_asked_query,
    get_pairing,
    is_for_documents,
)
from agent.sommelier.rule_answer import DescribedWine, RuleAnswer
from agent.sommelier.sommelier_prompts import (
    ResponseType,
    SommelierResponse,
    WineRecommendation,
)
from agent.sommelier.vocabulary import Allergen, Style
from agent.sommelier.wine import Wine
from agent.turn import NOBODY, Lack, Person, Reply, StoredMessage

MAX_WINES: Final = 3

Kind = Literal["why", "picked", "question", "wines", "help"]
"""What a message is answered with:

- why: the reasons for the wines shown
- picked: one of the wines shown
- question: a passage of a document
- wines: wines
- help: what can be asked, because nothing was understood
"""


class AskedWines(NamedTuple):
    """The wines that a message asks for by name, and what the search for them found.

    `is_left_out` means that there is such a wine, but this guest may not be shown it.
    """

    query: WineQuery
    result: WineSearchResult
    is_left_out: bool


class Fallback:
    """Answers by rules from a catalogue and documents, without a language model."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        documents: DocumentStore | None = None,
        has_staff: bool = False,
    ) -> None:
        self._catalogue = catalogue
        self._documents = documents
        self._has_staff = has_staff

    async def answer(
        self,
        messages: Sequence[StoredMessage],
        *,
        person: Person = NOBODY,
        span: Span = NO_SPAN,
    ) -> RuleAnswer:
        """Answer the last of these messages, in the current language.

        Wines and documents are limited to what `person` may be shown.
        """
        wish = await self._read_wish(messages, person)
        direct = await self._answer_directly(wish.own_request)
        if direct is not None:
            return direct
        if wish.follow_up is None:
            own = find_own_bottles(wish.own_request, person)
            if own is not None:
                return await self._answer_from_cellar(own, wish, person, span)
        if wish.picked is None:
            asked = await self._find_asked(wish, person, span)
            if asked is not None:
                return _asked_answer(asked, wish)
        kind = choose_kind(wish)
        passage = None
        if kind == "question":
            passage = await self._find_passage(wish.own_request, span)
            if passage is None and wish.own_request.describes_wine:
                kind = "wines"
                wish = replace(wish, request=wish.own_request)
        found = FoundWines()
        wines = wish.last_shown
        if kind == "wines":
            found = await self._find_wines(wish, person, span)
            wines = found.wines
        elif wish.picked is not None:
            wines = (wish.picked,)
        return RuleAnswer(
            reply=_make_reply(kind, wish, found, passage),
            wish=describe_request(wish.request),
            wines=_describe(wines, wish.request),
            passage=passage,
        )

    async def _answer_directly(self, request: Request) -> RuleAnswer | None:
        """Return the answer to who asks for the staff or says what was bought, otherwise None."""
        if asks_for_staff(request.text):
            return await self._answer_about_staff(request)
        if request.states_purchase:
            return RuleAnswer(reply=_text_reply(translate("fallback_bought")))
        return None

    async def _answer_about_staff(self, request: Request) -> RuleAnswer:
        """Return how to reach the people of the shop: by a button, or as its document says."""
        if self._has_staff:
            offer = _text_reply(translate("shop_offer"))
            return RuleAnswer(
                reply=replace(offer, offers_staff=True, offers_numbers=True)
            )
        passage = None
        if self._documents is not None:
            passage = await find_shop_passage(request.text, self._documents)
        if passage is None:
            return RuleAnswer(reply=_text_reply(translate("shop_unknown")))
        return RuleAnswer(reply=_text_reply(_quote(passage)), passage=passage)

    async def _answer_from_cellar(
        self, own: OwnBottles, wish: Wish, person: Person, span: Span
    ) -> RuleAnswer:
        """Answer from the user's cellar. For tonight, add wines that are for sale.

        None are added if only the user's own bottles are meant, or if nothing else is asked for.
        """
        request = wish.own_request
        only_own_meant = "own" in request.cellar_words
        if not own.is_for_tonight or only_own_meant or not request.describes_wine:
            return RuleAnswer(reply=own.reply)
        wish = replace(wish, request=request)
        found = await self._find_wines(wish, person, span)
        sold = _search_reply(wish, found)
        text = _join(own.text, translate("cellar_for_sale"), sold.text)
        wines = (*own.reply.wines, *sold.wines)
        return RuleAnswer(
            reply=replace(sold, text=text, wines=wines),
            wish=describe_request(request),
            wines=_describe(wines, Request()),
        )

    async def _read_wish(
        self, messages: Sequence[StoredMessage], person: Person
    ) -> Wish:
        """Return the wish of a conversation, without alcohol for a person who must not drink."""
        exchanges = get_exchanges(messages)
        shown_ids: list[str] = []
        for _, wine_ids in exchanges:
            shown_ids += wine_ids
        shown: Sequence[Wine] = ()
        if shown_ids:
            shown = await get_wines(self._catalogue, shown_ids, person)
        wines_by_id = {wine.id: wine for wine in shown}
        wish = read_wish(exchanges, wines_by_id, current_language())
        wish = without_lifted_allergies(wish, exchanges, person.safety.allergies)
        if should_offer_alcohol_free(wish, person):
            # Ignore earlier filters, and search even if it is a question: "what should I drink?"
            filters = {"styles": ("alcohol_free",)}
            request = replace(wish.own_request, filters=filters, is_question=False)
            return replace(wish, request=request, own_request=request)
        return wish

    async def _find_asked(
        self, wish: Wish, person: Person, span: Span
    ) -> AskedWines | None:
        """Return the wines that the last message asks for by name, or None if it names no wine."""
        if wish.follow_up or person.safety.forbids_alcohol:
            return None
        if Style.ALCOHOL_FREE in wish.own_request.values("styles"):
            return None  # a user who drives or is pregnant is shown wines without alcohol instead
        text = wish.own_request.text
        if find_shop_topics([text]):  # "haben Sie geöffnet?" asks for no wine
            return None
        query = await find_asked_query(self._catalogue, text, wish.own_request.language)
        if query is None:
            return None
        filters = query.model_dump(mode="json", exclude_defaults=True)
        with span.child("retrieve.wines", "retriever", input=filters) as retrieval:
            result = await find_wines(self._catalogue, query, person)
            found = result.wines or _near_wines(result)
            retrieval.update(output=[wine.id for wine in found])
        has_name = result.wines or result.other_vintages
        if wish.last_shown and not has_name:
            return None  # "have you got one cheaper than the second?" names no wine
        is_left_out = False
        if not result.wines:
            of_everybody = await self._catalogue.search(query)
            is_left_out = bool(of_everybody.wines)
        return AskedWines(query, result, is_left_out)

    async def _find_passage(self, question: Request, span: Span) -> Chunk | None:
        if self._documents is None:
            return None
        text = question.text
        with span.child("retrieve.documents", "retriever", input=text) as retrieval:
            passage = await find_passage(text, question.language, self._documents)
            chunks = [] if passage is None else [passage]
            retrieval.update(output=describe_chunks(chunks))
        return passage

    async def _find_wines(self, wish: Wish, person: Person, span: Span) -> FoundWines:
        query = build_wish_query(wish).model_dump(mode="json", exclude_defaults=True)
        with span.child("retrieve.wines", "retriever", input=query) as retrieval:
            found = await search_wines(self._catalogue, wish, person)
            retrieval.update(output=[wine.id for wine in found.wines])
        return found


def should_offer_alcohol_free(wish: Wish, person: Person) -> bool:
    """Return whether to answer an open request with alcohol-free wines.

    A question without a new concern asks for knowledge: "what does sur lie mean?"
    """
    request = wish.own_request
    safety = person.safety
    if wish.follow_up or not request.is_empty:
        return False
    if request.is_thanks and not safety.turn_concerns:
        return False
    if safety.forbids_alcohol:
        return bool(safety.turn_concerns) or not request.is_question
    asks_for_any_wine = request.is_about_wine and not request.is_question
    return asks_for_any_wine and safety.prefers_alcohol_free


def choose_kind(wish: Wish) -> Kind:
    """Return what a message is answered with."""
    if wish.follow_up is FollowUp.WHY:
        return "why"
    if wish.picked is not None:
        return "picked"
    if wish.follow_up is not None:
        return "wines"
    request = wish.own_request
    if is_for_documents(request):
        return "question"
    wants_others = request.wants_others and wish.last_shown
    if request.describes_wine or wants_others or wants_any_wine(request):
        return "wines"
    return "help"


def wants_any_wine(request: Request) -> bool:
    """Return whether a message only asks for wine: "recommend something"."""
    if not request.is_empty or not request.is_about_wine or request.is_question:
        return False
    return all(word.isdecimal() for word in request.unread_words)  # "for 20 people"


def _describe(wines: Iterable[Wine], request: Request) -> tuple[DescribedWine, ...]:
    """Return the wines with a description of each for the dishes of a request."""
    described: list[DescribedWine] = []
    for wine in wines:
        description = describe_wine(wine, request.dishes)
        described.append(DescribedWine(wine, description))
    return tuple(described)


def _asked_answer(asked: AskedWines, wish: Wish) -> RuleAnswer:
    """Return the answer to whether there is a wine with a name, with the wines that come close."""
    request = wish.own_request
    result = asked.result
    near_or_named = result.wines or _near_wines(result)
    wines = near_or_named[:MAX_WINES]
    intro = _asked_intro(asked)
    reply = _wine_reply(intro, wines, request) if wines else _text_reply(intro)
    if not any(wine.in_stock for wine in result.wines):
        reply = replace(reply, lack=Lack.NAME)
    return RuleAnswer(reply=reply, wines=_describe(wines, request))


def _asked_intro(asked: AskedWines) -> str:
    """Return the sentence that says whether there is a wine with the name asked for."""
    if not asked.result.wines:
        return _missing_intro(asked)
    first = asked.result.wines[0]
    if not first.in_stock:
        return translate("asked_sold_out")
    if "offer" in asked.result.unmet_filters.get(first.id, ()):
        offer = translate(f"offer_{asked.query.offer}")
        return translate("asked_other_offer", offer=offer)
    return translate("asked_in_stock")


def _missing_intro(asked: AskedWines) -> str:
    """Return the sentence that no wine has the name, and which wines come near."""
    result = asked.result
    name = escape(asked.query.name)
    if asked.is_left_out:
        return translate("asked_left_out", name=name)
    if result.other_vintages:
        return translate("asked_other_vintage", name=name)
    if result.mentioned:
        return translate("asked_perhaps")
    intro = translate("fallback_no_name", name=name)
    if result.closest:
        intro += f" {translate('asked_closest')}"
    return intro


def _near_wines(result: WineSearchResult) -> tuple[Wine, ...]:
    """Return the wines that come near a name that no wine has."""
    return result.other_vintages or result.mentioned or result.closest


def _make_reply(
    kind: Kind, wish: Wish, found: FoundWines, passage: Chunk | None
) -> Reply:
    if kind == "wines":
        return _search_reply(wish, found)
    if kind == "picked" and wish.picked is not None:
        return _wine_reply("", [wish.picked], wish.request)
    if kind == "why":
        return _explain(wish)
    if passage is not None:
        return _text_reply(_quote(passage))
    is_on_topic = wish.own_request.is_about_wine
    if kind == "question":
        reply = _text_reply(translate("fallback_only"), is_on_topic=is_on_topic)
        return replace(reply, lack=Lack.DOCUMENTS)
    text = _say_what_can_be_asked(wish.own_request)
    return _text_reply(text, is_on_topic=is_on_topic)


def _explain(wish: Wish) -> Reply:
    """Return why the shown wines were recommended, with a line for each wine."""
    request = wish.request
    intro = _join(_interpretation(request), _pairing_reason(request))
    lines: list[str] = []
    for number, wine in enumerate(wish.last_shown, start=1):
        label = escape(get_shown_label(wine))
        fit = escape(describe_fit(wine, request))
        lines.append(f"**{number}. {label}**\n{fit}")
    reply = _wine_reply(intro, wish.last_shown, request)
    return replace(reply, text=_join(intro, *lines))


def _say_what_can_be_asked(request: Request) -> str:
    """Return the answer to a greeting, to thanks and to a message that is not understood."""
    if request.is_thanks:
        return translate("fallback_thanks")
    if request.is_greeting:
        return f"{translate('fallback_hello')} {translate('fallback_help')}"
    return f"{translate('fallback_not_understood')} {translate('fallback_help')}"


def _quote(passage: Chunk) -> str:
    lines = filter(str.strip, passage.text.splitlines())
    quoted = "\n".join(f"> {escape(line)}" for line in lines)
    source = source_line(1, passage.title, passage.location)
    announcement = announce_passages("fallback_passage", passage.text)
    return "\n\n".join((announcement, quoted, source))


def _interpretation(request: Request) -> str:
    """Return the sentence that describes how a request was understood."""
    description = describe_request(request) or translate("fallback_any")
    return translate("fallback_read", request=escape(description))


def _text_reply(text: str, *, is_on_topic: bool = True) -> Reply:
    """Return a reply without wines."""
    response_type: ResponseType = "off_topic"
    if is_on_topic:
        response_type = "informational"
    answer = SommelierResponse(response_type=response_type, intro=text)
    return Reply(text=text, structured_answer=answer)


def _search_reply(wish: Wish, found: FoundWines) -> Reply:
    """Return a reply with the wines found, after the interpretation of the wish."""
    request = wish.request
    interpretation = _interpretation(request)
    caveats = "\n\n".join(_caveats(wish.own_request, found.wines[:MAX_WINES]))
    if not found.wines:
        if request.name and not wish.own_request.is_about_wine:
            # Two words with capital letters may be anything, such as "Buona Serata".
            sentences = _say_what_can_be_asked(wish.own_request)
            return _text_reply(sentences, is_on_topic=False)
        reply = _text_reply(_join(interpretation, _nothing_found(wish), caveats))
        if request.name:
            return replace(reply, lack=Lack.NAME)
        return replace(reply, lack=Lack.WINES)
    intro = _join(interpretation, " ".join(_remarks(found, request)))
    reply = _wine_reply(intro, found.wines[:MAX_WINES], request, caveats)
    if found.unmet_fields:
        return replace(reply, lack=Lack.WINES)
    return reply


def _nothing_found(wish: Wish) -> str:
    """Return the sentence that says why no wine is shown."""
    if wish.request.name:
        return translate("fallback_no_name", name=escape(wish.request.name))
    if wish.excluded_ids:
        return translate("fallback_all_shown")
    return translate("fallback_nothing")


def _remarks(found: FoundWines, request: Request) -> Iterator[str]:
    """Yield sentences about the found wines: which wine they are like, and what they lack."""
    if found.similar_to is not None:
        label = escape(get_shown_label(found.similar_to))
        yield translate("fallback_similar", name=label)
    if found.unmet_fields:
        limits = [describe_field(name, request) for name in found.unmet_fields]
        yield translate("fallback_relaxed", limits=escape(", ".join(limits)))
    reason = _pairing_reason(request)
    if reason and "foods" not in found.unmet_fields:
        yield reason


def _wine_reply(
    intro: str, wines: Sequence[Wine], request: Request, closing: str = ""
) -> Reply:
    """Return a reply with a card for each wine, described for a request."""
    recommendations: list[WineRecommendation] = []
    cards: list[str] = []
    for number, wine in enumerate(wines, start=1):
        description = describe_wine(wine, request.dishes)
        item = WineRecommendation(wine_id=wine.id, description=description)
        recommendations.append(item)
        text = description
        if wine.notes and wine.notes_language == current_language():
            text += f"\n{wine.notes}"
        card = render_wine(wine, escape(text), f"{number}. ", user_text=request.text)
        cards.append(card)
    answer = SommelierResponse(
        response_type="recommendation",
        intro=intro,
        wines=recommendations,
        closing=closing,
    )
    return Reply(
        text=_join(intro, *cards, closing),
        wine_ids=tuple(wine.id for wine in wines),
        wines=tuple(wines),
        structured_answer=answer,
    )


def _join(*paragraphs: str) -> str:
    return "\n\n".join(filter(None, paragraphs))


def _says_any(wines: Iterable[Wine], allergen: Allergen) -> bool:
    """Return whether it is known of any of the wines that it lacks an allergen."""
    return any(wine.is_known_to_lack(allergen) for wine in wines)


def _pairing_reason(request: Request) -> str:
    """Return why the wines suit the dish, or "" if no dish is known."""
    name = get_pairing(request)
    if not name:
        return ""
    return translate(f"pairing_{name}")


def _caveats(request: Request, wines: Sequence[Wine]) -> Iterator[str]:
    """Yield sentences about parts of a request that were not, or may not be, respected."""
    if request.filters.get("currency") == UNKNOWN_CURRENCY:
        yield translate("fallback_currency")
    avoided = [*request.values("without_allergens")]
    if Allergen.SULPHITES in avoided and not request.allergies:
        yield translate("fallback_sulphites")
        avoided.remove(Allergen.SULPHITES)
    if is_vegan(avoided):
        avoided = []
    unknown = [name for name in avoided if not _says_any(wines, Allergen(name))]
    if wines and unknown:
        names = [name_value("allergens", name) for name in unknown]
        yield translate("fallback_allergens_unknown", names=join_or(names))
    elif "without_allergens" in request.filters and avoided:
        yield translate("fallback_allergens")
    if request.unknown_words and not request.name:
        escaped = map(escape, request.unknown_words)
        quoted = [translate("quoted", text=word) for word in escaped]
        yield translate("fallback_unknown", words=", ".join(quoted))
