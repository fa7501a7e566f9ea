"""Answer by rules: with wines for a wish, or with a passage of a document for a question.

This decides what is answered, and finds it. The texts of the replies are in `replies`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

from agent.documents.passages import Chunk, DocumentStore, describe_chunks
from agent.documents.shop import asks_for_staff, find_shop_topics, is_for_shop
from agent.engine.run import NO_SPAN, Span
from agent.fallback.asked_wines import AskedWines, find_asked_wines, write_asked_intro
from agent.fallback.cellar import OwnBottles, find_own_bottles
from agent.fallback.dislikes import is_heeded_dislike
from agent.fallback.follow_ups import FollowUp
from agent.fallback.merging import (
    Wish,
    get_exchanges,
    read_wish,
    without_earlier_kind,
    without_lifted_allergies,
)
from agent.fallback.passages import find_passage, find_shop_passage
from agent.fallback.replies import (
    MAX_WINES,
    accept_dislike,
    explain_shown_wines,
    join_paragraphs,
    offer_to_add_purchase,
    quote_passage,
    say_what_can_be_asked,
    say_whether_dish_suits,
    show_found_wines,
    show_wines,
    text_reply,
)
from agent.fallback.searching import FoundWines, build_wish_query, search_wines
from agent.fallback.serving import write_serving_advice
from agent.fallback.wording import describe_request, describe_wine
from agent.i18n import current_language, translate
from agent.query_reading.request import Request
from agent.sommelier.building_queries import is_for_documents
from agent.sommelier.filters import get_wines
from agent.sommelier.queries import Catalogue
from agent.sommelier.rule_answer import DescribedWine, RuleAnswer
from agent.sommelier.vocabulary import Style
from agent.sommelier.wine import Wine
from agent.turn import NOBODY, Lack, Person, Reply, StoredMessage

ALCOHOL_FREE_FILTERS: Final = {"styles": ("alcohol_free",)}

Kind = Literal["why", "picked", "question", "dislike", "wines", "help"]
"""The kinds of answers that the rules give:

- why: the reasons for the wines shown
- picked: one of the wines shown
- question: a passage of a document, or that there is none
- dislike: that what the user dislikes is left out from now on
- wines: wines that are searched for the wish
- help: what can be asked, because the message names nothing to search for
"""


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
        request = wish.own_request
        if asks_for_staff(request.text):
            return await self._answer_about_staff(request)
        if request.states_purchase:
            return RuleAnswer(reply=offer_to_add_purchase(request))
        # Follow-ups are about the wines shown, not about the cellar.
        if not wish.follow_ups:
            own_bottles = find_own_bottles(request, person)
            if own_bottles is not None:
                return await self._answer_from_cellar(own_bottles, wish, person, span)
        if not person.safety.forbids_alcohol:
            advice = await write_serving_advice(wish, self._catalogue, person)
            if advice:
                return _answer_about_shown(text_reply(advice), wish)
        if _may_name_wine(wish, person):
            asked_wines = await find_asked_wines(self._catalogue, wish, person, span)
            if asked_wines is not None:
                return await self._answer_about_asked(asked_wines, wish, span)
        return await self._answer_by_kind(choose_kind(wish), wish, person, span)

    async def _answer_by_kind(
        self,
        kind: Kind,
        wish: Wish,
        person: Person,
        span: Span,
    ) -> RuleAnswer:
        """Return the answer of a kind to the last message of a conversation."""
        if kind == "wines":
            return await self._answer_with_wines(wish, person, span)
        if kind == "question":
            return await self._answer_question(wish, person, span)
        if kind == "dislike":
            return _answer_about_shown(accept_dislike(wish.own_request), wish)
        if kind == "why":
            if wish.picked is not None:
                wish = replace(wish, last_shown=(wish.picked,))
            return _answer_about_shown(explain_shown_wines(wish), wish)
        if wish.picked is not None:
            return _answer_about_picked(wish.picked, wish)
        quoted = await self._quote_if_asked(wish, span)
        if quoted is not None:
            return quoted
        text = say_what_can_be_asked(wish)
        reply = text_reply(text, is_on_topic=wish.own_request.is_about_wine)
        return _answer_about_shown(reply, wish)

    async def _answer_with_wines(
        self,
        wish: Wish,
        person: Person,
        span: Span,
    ) -> RuleAnswer:
        """Return the wines that are found for a wish, or say that there are none."""
        found = await self._find_wines(wish, person, span)
        if "foods" in found.unmet_fields:
            wish, found = await self._find_suited(wish, found, person, span)
        return RuleAnswer(
            reply=show_found_wines(wish, found),
            wish=describe_request(wish.request),
            wines=_describe(found.wines, wish.request),
        )

    async def _find_suited(
        self,
        wish: Wish,
        found: FoundWines,
        person: Person,
        span: Span,
    ) -> tuple[Wish, FoundWines]:
        """Return the wish without its earlier kind of wine, and wines that suit the dish.

        After a full-bodied red, "and for salmon?" gets other wines. If these do not suit the dish
        either, return the wish and the wines found as they are.
        """
        freer_wish = without_earlier_kind(wish)
        if freer_wish.request == wish.request:
            return wish, found
        suited = await self._find_wines(freer_wish, person, span)
        if not suited.wines or "foods" in suited.unmet_fields:
            return wish, found
        return freer_wish, suited

    async def _answer_question(
        self,
        wish: Wish,
        person: Person,
        span: Span,
    ) -> RuleAnswer:
        """Return the passage that answers a question, or say that there is none.

        If there is none, but the question describes a wine, return wines that it describes.
        """
        request = wish.own_request
        quoted = await self._quote(wish, span)
        if quoted is not None:
            return quoted
        if is_for_shop(request.text):
            reply = text_reply(translate("only_shop_knows"))
            return _answer_about_shown(replace(reply, lack=Lack.DOCUMENTS), wish)
        if request.describes_wine:
            return await self._answer_with_wines(
                replace(wish, request=request), person, span
            )
        is_on_topic = request.is_about_wine
        reply = text_reply(translate("fallback_only"), is_on_topic=is_on_topic)
        return _answer_about_shown(replace(reply, lack=Lack.DOCUMENTS), wish)

    async def _answer_about_asked(
        self, asked_wines: AskedWines, wish: Wish, span: Span
    ) -> RuleAnswer:
        """Return the answer about the wines that a message seems to ask for by name.

        If there are none, the name may be the subject of a question: "Riddling, how does it work?"
        """
        if not asked_wines.shown:
            quoted = await self._quote_if_asked(wish, span)
            if quoted is not None:
                return quoted
        return _answer_about_asked(asked_wines, wish.own_request)

    async def _quote_if_asked(self, wish: Wish, span: Span) -> RuleAnswer | None:
        """Return the passage that answers a message with a question mark, or None."""
        if "?" not in wish.own_request.text:
            return None
        return await self._quote(wish, span)

    async def _quote(self, wish: Wish, span: Span) -> RuleAnswer | None:
        """Return the passage that answers a message, or None if there is none."""
        passage = await self._find_passage(wish.own_request, span)
        if passage is None:
            return None
        answer = _answer_about_shown(text_reply(quote_passage(passage)), wish)
        return replace(answer, passage=passage)

    async def _answer_about_staff(self, request: Request) -> RuleAnswer:
        """Return how to reach the staff of the shop.

        If the bot can pass messages to the staff, the reply offers that. If not, it quotes a
        document of the shop.
        """
        if self._has_staff:
            offer = text_reply(translate("shop_offer"))
            return RuleAnswer(
                reply=replace(offer, offers_staff=True, offers_numbers=True)
            )
        passage = None
        if self._documents is not None:
            passage = await find_shop_passage(request.text, self._documents)
        if passage is None:
            return RuleAnswer(reply=text_reply(translate("shop_unknown")))
        return RuleAnswer(reply=text_reply(quote_passage(passage)), passage=passage)

    async def _answer_from_cellar(
        self,
        own_bottles: OwnBottles,
        wish: Wish,
        person: Person,
        span: Span,
    ) -> RuleAnswer:
        """Answer from the user's cellar. For tonight, add wines that are for sale.

        Add no wines if the user means only their own bottles, or does not describe a wine.
        """
        request = wish.own_request
        means_only_own = not request.cellar_words.isdisjoint({"own", "opened"})
        may_buy = own_bottles.is_for_tonight and not means_only_own
        if not may_buy or not request.describes_wine:
            return RuleAnswer(reply=own_bottles.reply)
        wish = replace(wish, request=request)
        found = await self._find_wines(wish, person, span)
        shop_reply = show_found_wines(wish, found)
        own_text = own_bottles.reply.text
        if shop_reply.wines:
            own_text = own_bottles.text  # the reason is said with the wines for sale
        text = join_paragraphs(own_text, translate("cellar_for_sale"), shop_reply.text)
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
        for exchange in exchanges:
            shown_ids += exchange.wine_ids
        shown: Sequence[Wine] = ()
        if shown_ids:
            shown = await get_wines(self._catalogue, shown_ids, person)
        wines_by_id = {wine.id: wine for wine in shown}
        wish = read_wish(exchanges, wines_by_id, current_language())
        wish = without_lifted_allergies(wish, exchanges, person.safety.allergies)
        if should_offer_alcohol_free(wish, person):
            # Earlier filters no longer apply. Wines are searched for even if the message is a
            # question: "what should I drink?"
            request = replace(
                wish.own_request, filters=ALCOHOL_FREE_FILTERS, is_question=False
            )
            return replace(wish, request=request, own_request=request)
        return wish

    async def _find_passage(self, question: Request, span: Span) -> Chunk | None:
        if self._documents is None:
            return None
        text = question.text
        with span.child("retrieve.documents", "retriever", input=text) as retrieval:
            passage = await find_passage(text, question.language, self._documents)
            chunks = [] if passage is None else [passage]
            retrieval.update(output=describe_chunks(chunks))
        return passage

    async def _find_wines(
        self,
        wish: Wish,
        person: Person,
        span: Span,
    ) -> FoundWines:
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
    if request.is_question or not safety.prefers_alcohol_free:
        return False
    # "I'm driving tonight" asks for no wine, but is about what to drink.
    return request.is_about_wine or bool(safety.turn_concerns)


def choose_kind(wish: Wish) -> Kind:
    """Return the kind of answer that the last message of a conversation gets."""
    if FollowUp.WHY in wish.follow_ups or _asks_why_shown(wish):
        return "why"
    if wish.picked is not None:
        return "picked"
    if wish.follow_ups:
        return "wines"
    request = wish.own_request
    if is_for_documents(request):
        return "question"
    if is_heeded_dislike(wish):
        return "dislike"
    wants_others = request.wants_others and wish.last_shown
    if request.describes_wine or wants_others or wants_any_wine(request):
        return "wines"
    if _only_adds_occasion(wish):
        return "wines"
    return "help"


def _only_adds_occasion(wish: Wish) -> bool:
    """Return whether the last message completes a wish by an occasion: "it's for a birthday"."""
    request = wish.own_request
    if not request.names_occasion or request.unknown_count or request.is_thanks:
        return False
    return wish.request.describes_wine


def _asks_why_shown(wish: Wish) -> bool:
    """Return whether the last message asks why a wine was shown: "why the second?".

    "Why does Barolo cost so much?" says more, so it is a question for the documents.
    """
    request = wish.own_request
    if not request.asks_why or not wish.last_shown:
        return False
    says_more = bool(request.unread_words or request.comparisons)
    return not says_more and not request.describes_wine


def wants_any_wine(request: Request) -> bool:
    """Return whether a message asks for wine without describing it ("recommend something")."""
    if not request.is_empty or not request.is_about_wine or request.is_question:
        return False
    # Numbers are allowed, because they do not describe a wine: "wine for 20 people".
    return all(word.isdecimal() for word in request.unread_words)


def _may_name_wine(wish: Wish, person: Person) -> bool:
    """Return whether the last message may ask for a wine by its name."""
    is_about_shown_wines = bool(wish.follow_ups) or wish.picked is not None
    if is_about_shown_wines or person.safety.forbids_alcohol:
        return False
    request = wish.own_request
    if Style.ALCOHOL_FREE in request.values("styles"):
        # A user who drives or is pregnant is shown wines without alcohol instead.
        return False
    is_about_shop = find_shop_topics([request.text])  # "haben Sie geöffnet?"
    return not is_about_shop


def _answer_about_shown(reply: Reply, wish: Wish) -> RuleAnswer:
    """Return an answer for which nothing was searched. It still has the wines shown before."""
    return RuleAnswer(
        reply=reply,
        wish=describe_request(wish.request),
        wines=_describe(wish.last_shown, wish.request),
    )


def _answer_about_picked(wine: Wine, wish: Wish) -> RuleAnswer:
    """Return the answer that shows one of the wines shown before.

    If the message names a dish, it says whether the wine suits that dish.
    """
    intro = ""
    request = wish.request
    if wish.own_request.dishes:
        request = wish.own_request
        intro = say_whether_dish_suits(wine, request)
    picked = (wine,)
    reply = show_wines(intro, picked, request)
    return _answer_about_shown(reply, replace(wish, last_shown=picked))


def _answer_about_asked(asked_wines: AskedWines, request: Request) -> RuleAnswer:
    """Return the answer that says whether a wine has the name asked for.

    It shows the wines with this name. If there are none, it shows wines that come near the name.
    """
    wines = asked_wines.shown[:MAX_WINES]
    intro = write_asked_intro(asked_wines)
    reply = text_reply(intro)
    if wines:
        reply = show_wines(intro, wines, request)
    is_for_sale = any(wine.in_stock for wine in asked_wines.result.wines)
    if not is_for_sale:
        reply = replace(reply, lack=Lack.NAME)
    return RuleAnswer(reply=reply, wines=_describe(wines, request))


def _describe(wines: Iterable[Wine], request: Request) -> tuple[DescribedWine, ...]:
    """Return the wines, each with a description that considers the dishes of a request."""
    described_wines: list[DescribedWine] = []
    for wine in wines:
        description = describe_wine(wine, request.dishes)
        described_wines.append(DescribedWine(wine, description))
    return tuple(described_wines)
