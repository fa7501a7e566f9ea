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
    format_source_line,
)
from agent.documents.shop import asks_for_staff, find_shop_topics
from agent.engine.run import NO_SPAN, Span
from agent.fallback.cellar import OwnBottles, find_own_bottles
from agent.fallback.follow_ups import FollowUp, find_cheapest
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
from agent.query_reading.purchases import read_purchase
from agent.query_reading.request import Request
from agent.query_reading.tables import load_pairings
from agent.sommelier.cards import format_prices, get_shown_label, render_wine
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
"""The kinds of answers that the rules give:

- why: the reasons for the wines shown
- picked: one of the wines shown
- question: a passage of a document, or that there is none
- wines: wines that are searched for the wish
- help: what can be asked, because the message names nothing to search for
"""


class AskedWines(NamedTuple):
    """The wines that a message asks for by name, and what the search for them found.

    `is_left_out` means that a wine has the name, but may not be shown to this person.
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
        direct_answer = await self._answer_directly(wish.own_request)
        if direct_answer is not None:
            return direct_answer
        # Follow-ups are about the wines shown, not about the cellar.
        if not wish.follow_ups:
            own_bottles = find_own_bottles(wish.own_request, person)
            if own_bottles is not None:
                return await self._answer_from_cellar(own_bottles, wish, person, span)
        if wish.picked is None:
            asked_wines = await self._find_asked(wish, person, span)
            if asked_wines is not None:
                return _answer_about_asked(asked_wines, wish)
        kind = choose_kind(wish)
        passage = None
        if kind == "question":
            passage = await self._find_passage(wish.own_request, span)
            if passage is None and wish.own_request.describes_wine:
                # No document answers the question, but wines can be searched for what it describes.
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
        """Return the answer to a message that asks for the staff or reports a purchase.

        Return None for any other message.
        """
        if asks_for_staff(request.text):
            return await self._answer_about_staff(request)
        if request.states_purchase:
            return RuleAnswer(reply=_purchase_reply(request))
        return None

    async def _answer_about_staff(self, request: Request) -> RuleAnswer:
        """Return how to reach the staff of the shop.

        If the bot can pass messages to the staff, the reply offers that. If not, it quotes a
        document of the shop.
        """
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
        self, own_bottles: OwnBottles, wish: Wish, person: Person, span: Span
    ) -> RuleAnswer:
        """Answer from the user's cellar. For tonight, add wines that are for sale.

        Add no wines if the user means only their own bottles, or does not describe a wine.
        """
        request = wish.own_request
        means_only_own = "own" in request.cellar_words
        may_buy = own_bottles.is_for_tonight and not means_only_own
        if not may_buy or not request.describes_wine:
            return RuleAnswer(reply=own_bottles.reply)
        wish = replace(wish, request=request)
        found = await self._find_wines(wish, person, span)
        shop_reply = _search_reply(wish, found)
        text = _join(own_bottles.text, translate("cellar_for_sale"), shop_reply.text)
        wines = (*own_bottles.reply.wines, *shop_reply.wines)
        return RuleAnswer(
            reply=replace(shop_reply, text=text, wines=wines),
            wish=describe_request(request),
            wines=_describe(wines, Request()),
        )

    async def _read_wish(
        self, messages: Sequence[StoredMessage], person: Person
    ) -> Wish:
        """Return the wish of a conversation.

        It becomes a wish for wines without alcohol if `should_offer_alcohol_free` says so.
        """
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
        if wish.follow_ups:
            return None  # the message is about the wines shown
        if person.safety.forbids_alcohol:
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
            wines = result.wines or _near_wines(result)
            retrieval.update(output=[wine.id for wine in wines])
        wines_with_name = result.wines or result.other_vintages
        if wish.last_shown and not wines_with_name:
            return None  # "have you got one cheaper than the second?" names no wine
        is_left_out = False
        if not result.wines:
            # Search again without the person's limits, to see whether only they hide the wine.
            unlimited_result = await self._catalogue.search(query)
            is_left_out = bool(unlimited_result.wines)
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

    A question asks for knowledge ("what does sur lie mean?"), so it gets no wines. There is one
    exception: the message also states a new concern, because of which the person must not drink.
    """
    request = wish.own_request
    safety = person.safety
    if wish.follow_ups or not request.is_empty:
        return False
    if request.is_thanks and not safety.turn_concerns:
        return False
    if safety.forbids_alcohol:
        return bool(safety.turn_concerns) or not request.is_question
    asks_for_any_wine = request.is_about_wine and not request.is_question
    return asks_for_any_wine and safety.prefers_alcohol_free


def choose_kind(wish: Wish) -> Kind:
    """Return the kind of answer that the last message of a conversation gets."""
    if FollowUp.WHY in wish.follow_ups:
        return "why"
    if wish.picked is not None:
        return "picked"
    if wish.follow_ups:
        return "wines"
    request = wish.own_request
    if is_for_documents(request):
        return "question"
    wants_others = request.wants_others and wish.last_shown
    if request.describes_wine or wants_others or wants_any_wine(request):
        return "wines"
    return "help"


def wants_any_wine(request: Request) -> bool:
    """Return whether a message asks for wine without describing it ("recommend something")."""
    if not request.is_empty or not request.is_about_wine or request.is_question:
        return False
    # Numbers are allowed, because they do not describe a wine: "wine for 20 people".
    return all(word.isdecimal() for word in request.unread_words)


def _describe(wines: Iterable[Wine], request: Request) -> tuple[DescribedWine, ...]:
    """Return the wines, each with a description that considers the dishes of a request."""
    described_wines: list[DescribedWine] = []
    for wine in wines:
        description = describe_wine(wine, request.dishes)
        described_wines.append(DescribedWine(wine, description))
    return tuple(described_wines)


def _answer_about_asked(asked_wines: AskedWines, wish: Wish) -> RuleAnswer:
    """Return the answer that says whether a wine has the name asked for.

    It shows the wines with this name. If there are none, it shows wines that come near the name.
    """
    request = wish.own_request
    result = asked_wines.result
    near_or_named = result.wines or _near_wines(result)
    wines = near_or_named[:MAX_WINES]
    intro = _asked_intro(asked_wines)
    reply = _text_reply(intro)
    if wines:
        reply = _wine_reply(intro, wines, request)
    is_for_sale = any(wine.in_stock for wine in result.wines)
    if not is_for_sale:
        reply = replace(reply, lack=Lack.NAME)
    return RuleAnswer(reply=reply, wines=_describe(wines, request))


def _asked_intro(asked_wines: AskedWines) -> str:
    """Return the sentence that says whether there is a wine with the name asked for."""
    result = asked_wines.result
    if not result.wines:
        return _missing_intro(asked_wines)
    best_wine = result.wines[0]
    if not best_wine.in_stock:
        return translate("asked_sold_out")
    unmet_filters = result.unmet_filters.get(best_wine.id, ())
    if "offer" in unmet_filters:
        offer = translate(f"offer_{asked_wines.query.offer}")
        return translate("asked_other_offer", offer=offer)
    return translate("asked_in_stock")


def _missing_intro(asked_wines: AskedWines) -> str:
    """Return the sentence that says why no wine with the name asked for is shown.

    It also announces the wines that come near the name, if there are any.
    """
    result = asked_wines.result
    name = escape(asked_wines.query.name)
    if asked_wines.is_left_out:
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
    """Return wines that come near a name that no wine has, of the nearest kind that was found."""
    return result.other_vintages or result.mentioned or result.closest


def _make_reply(
    kind: Kind, wish: Wish, found: FoundWines, passage: Chunk | None
) -> Reply:
    """Return the reply of a kind, from the wines or the passage that were found for it."""
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
    """Return a reply that says why each of the wines shown last was recommended."""
    request = wish.request
    intro = _join(_interpretation(request), _pairing_reason(request))
    lines: list[str] = []
    for number, wine in enumerate(wish.last_shown, start=1):
        label = escape(get_shown_label(wine))
        fit = escape(describe_fit(wine, request))
        lines.append(f"**{number}. {label}**\n{fit}")
    # The reply has the wines, but its text has the reasons in place of their cards.
    reply = _wine_reply(intro, wish.last_shown, request)
    return replace(reply, text=_join(intro, *lines))


def _say_what_can_be_asked(request: Request) -> str:
    """Return the answer to thanks, to a greeting, or to a message that is not understood."""
    if request.is_thanks:
        return translate("fallback_thanks")
    if request.is_greeting:
        return f"{translate('fallback_hello')} {translate('fallback_help')}"
    return f"{translate('fallback_not_understood')} {translate('fallback_help')}"


def _quote(passage: Chunk) -> str:
    """Return a passage as a Markdown quotation, between its announcement and its source."""
    lines = filter(str.strip, passage.text.splitlines())
    quotation = "\n".join(f"> {escape(line)}" for line in lines)
    # The passage is the only source of the answer, so its number is 1.
    source = format_source_line(1, passage.title, passage.location)
    announcement = announce_passages("fallback_passage", passage.text)
    return _join(announcement, quotation, source)


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


def _purchase_reply(request: Request) -> Reply:
    """Return a reply that offers to add the bought bottles to the cellar, or says how to."""
    bought = read_purchase(request.text, request.language)
    if not bought:
        return _text_reply(translate("fallback_bought"))
    text = translate("fallback_bought_offer", bought=escape(bought))
    return replace(_text_reply(text), bought=bought)


def _search_reply(wish: Wish, found: FoundWines) -> Reply:
    """Return a reply with the interpretation of the wish and the wines found.

    If there are no wines, the reply says so.
    """
    request = wish.request
    interpretation = _interpretation(request)
    wines = found.wines[:MAX_WINES]
    caveats = _join(*_caveats(wish.own_request, wines))
    if not wines:
        if request.name and not wish.own_request.is_about_wine:
            # Two words with capital letters were read as a name, but may be anything, such as
            # "Buona Serata". Do not say that there is no wine with this name.
            text = _say_what_can_be_asked(wish.own_request)
            return _text_reply(text, is_on_topic=False)
        reply = _text_reply(_join(interpretation, _nothing_found(wish), caveats))
        if request.name:
            return replace(reply, lack=Lack.NAME)
        return replace(reply, lack=Lack.WINES)
    intro = _join(interpretation, " ".join(_remarks(found, request)))
    reply = _wine_reply(intro, wines, request, closing=caveats)
    if found.unmet_fields:
        return replace(reply, lack=Lack.WINES)
    return reply


def _nothing_found(wish: Wish) -> str:
    """Return the sentence that says why no wine is shown."""
    if wish.request.name:
        return translate("fallback_no_name", name=escape(wish.request.name))
    if FollowUp.CHEAPER in wish.follow_ups:
        cheapest = find_cheapest(wish.compared)
        if cheapest is not None:
            label = escape(get_shown_label(cheapest))
            price = format_prices(cheapest)
            return translate("fallback_none_cheaper", name=label, price=price)
    if wish.excluded_ids:
        return translate("fallback_all_shown")
    return translate("fallback_nothing")


def _remarks(found: FoundWines, request: Request) -> Iterator[str]:
    """Yield sentences about the wines found.

    They say which wine these are like, which parts of the request they do not meet, and why they
    suit the dish.
    """
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
    """Return a reply with a card for each wine, between `intro` and `closing`.

    The cards describe the wines for the dishes of the request.
    """
    recommendations: list[WineRecommendation] = []
    cards: list[str] = []
    for number, wine in enumerate(wines, start=1):
        description = describe_wine(wine, request.dishes)
        recommendation = WineRecommendation(wine_id=wine.id, description=description)
        recommendations.append(recommendation)
        card_text = description
        if wine.notes and wine.notes_language == current_language():
            card_text += f"\n{wine.notes}"
        card = render_wine(
            wine, escape(card_text), f"{number}. ", user_text=request.text
        )
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
    """Return the paragraphs that are not empty as one text."""
    return "\n\n".join(filter(None, paragraphs))


def _is_any_known_to_lack(wines: Iterable[Wine], allergen: Allergen) -> bool:
    """Return whether at least one of the wines is known not to contain an allergen."""
    return any(wine.is_known_to_lack(allergen) for wine in wines)


def _pairing_reason(request: Request) -> str:
    """Return why the wines suit the dish.

    Return "" if no dish is known, or if the request is for another kind of wine than the reason
    praises: a red with carbonara.
    """
    name = get_pairing(request)
    if not name:
        return ""
    styles = request.values("styles")
    if styles and not set(styles).intersection(
        load_pairings()[name].get("styles", styles)
    ):
        return ""
    return translate(f"pairing_{name}")


def _caveats(request: Request, wines: Sequence[Wine]) -> Iterator[str]:
    """Yield sentences about parts of a request that the wines do not meet, or may not meet."""
    if request.filters.get("currency") == UNKNOWN_CURRENCY:
        yield translate("fallback_currency")
    avoided = [*request.values("without_allergens")]
    if Allergen.SULPHITES in avoided and not request.allergies:
        # Without an allergy, the user means a wine without added sulphites.
        yield translate("fallback_sulphites")
        avoided.remove(Allergen.SULPHITES)
    if is_vegan(avoided):
        # The user wants a vegan wine and has not named these allergens.
        avoided = []
    unknown_allergens: list[str] = []
    for name in avoided:
        if not _is_any_known_to_lack(wines, Allergen(name)):
            unknown_allergens.append(name)
    if wines and unknown_allergens:
        names = [name_value("allergens", name) for name in unknown_allergens]
        yield translate("fallback_allergens_unknown", names=join_or(names))
    elif "without_allergens" in request.filters and avoided:
        yield translate("fallback_allergens")
    if request.unknown_words and not request.name:
        escaped = map(escape, request.unknown_words)
        quoted = [translate("quoted", text=word) for word in escaped]
        yield translate("fallback_unknown", words=", ".join(quoted))
