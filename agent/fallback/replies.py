"""Write the replies of the rules.

A reply with wines begins with the wish as it was understood, so that the user can correct it, and
ends with the words that were not understood.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from agent.documents.passages import Chunk, announce_passages, format_source_line
from agent.fallback.follow_ups import FollowUp, find_cheapest
from agent.fallback.merging import Wish, has_earlier_wishes
from agent.fallback.reasons import (
    describe_fit,
    describe_unmet,
    find_pairing_reason,
    format_asked_price,
    suits_dishes,
)
from agent.fallback.searching import FoundWines
from agent.fallback.wording import (
    describe_exclusions,
    describe_field,
    describe_request,
    describe_wine,
    get_price_currency,
    is_vegan,
    name_value,
)
from agent.formatting import format_money, join_or
from agent.i18n import translate
from agent.markdown import escape
from agent.query_reading.prices import UNKNOWN_CURRENCY
from agent.query_reading.purchases import Purchase, read_purchase
from agent.query_reading.request import Request
from agent.sommelier.building_queries import find_only_suited_dish
from agent.sommelier.cards import (
    asks_for_vegan,
    get_shown_label,
    render_wine,
)
from agent.sommelier.filters import matches
from agent.sommelier.sommelier_prompts import (
    ResponseType,
    SommelierResponse,
    WineRecommendation,
)
from agent.sommelier.tasting_notes import describe_taste
from agent.sommelier.vocabulary import Allergen
from agent.sommelier.wine import Wine
from agent.turn import Lack, Reply

MAX_WINES: Final = 3
"""The number of wines that a reply shows."""
MIN_WINES_IN_COMMON: Final = 2
"""The fewest wines of which something is said in common, below their cards."""


def text_reply(text: str, *, is_on_topic: bool = True) -> Reply:
    """Return a reply without wines."""
    response_type: ResponseType = "off_topic"
    if is_on_topic:
        response_type = "informational"
    answer = SommelierResponse(response_type=response_type, intro=text)
    return Reply(text=text, structured_answer=answer)


def say_what_can_be_asked(wish: Wish) -> str:
    """Return the answer to thanks, to a greeting, or to a message that is not understood.

    "Cheaper!" is not understood if no wine was shown with which it could compare.
    """
    request = wish.own_request
    if request.is_thanks:
        return translate("fallback_thanks")
    beginning = translate("fallback_not_understood")
    if request.comparisons and not wish.last_shown:
        beginning = translate("fallback_none_shown")
    if request.is_greeting:
        beginning = translate("fallback_hello")
    return f"{beginning} {translate('fallback_help')}"


def accept_dislike(request: Request) -> Reply:
    """Return a reply that promises to leave out what the user dislikes, and asks for a wish."""
    taste = ", ".join(describe_exclusions(request))
    text = translate("fallback_dislike", taste=escape(taste))
    return replace(text_reply(text), accepts_dislike=True)


def offer_to_add_purchase(request: Request) -> Reply:
    """Return a reply that offers to add the bought bottles to the cellar, or says how to."""
    purchase = read_purchase(request.text, request.language)
    if purchase is None:
        return text_reply(translate("fallback_bought"))
    reply = text_reply(_offer_to_add(purchase))
    return replace(reply, bought=purchase.line)


def _offer_to_add(purchase: Purchase) -> str:
    """Return the offer to add bottles, and how to note their vintage and price if one lacks."""
    name = escape(purchase.name)
    bought = f"{purchase.bottles} × {name}"
    hint = translate("fallback_bought_hint")
    if purchase.price is None:
        offer = translate("fallback_bought_offer", bought=bought)
        return f"{offer} {hint}"
    price = format_money(purchase.price, purchase.currency)
    offer = translate("fallback_bought_priced", bought=bought, price=price)
    if purchase.has_vintage:
        return offer
    return f"{offer} {hint}"


def quote_passage(passage: Chunk) -> str:
    """Return a passage as a Markdown quotation, between its announcement and its source."""
    quoted_lines: list[str] = []
    for line in passage.text.splitlines():
        if line.strip():
            quoted_lines.append(f"> {escape(line)}")
    quotation = "\n".join(quoted_lines)
    # The passage is the only source of the answer, so its number is 1.
    source = format_source_line(1, passage.title, passage.location)
    announcement = announce_passages("fallback_passage", passage.text)
    return join_paragraphs(announcement, quotation, source)


def say_whether_dish_suits(wine: Wine, request: Request) -> str:
    """Return the sentence that says whether a wine suits the dishes of a request."""
    if suits_dishes(wine, request):
        return translate("fallback_dish_suits")
    return translate("fallback_dish_suits_less")


def show_found_wines(wish: Wish, found: FoundWines) -> Reply:
    """Return a reply with the interpretation of the wish and the wines found.

    If there are no wines, the reply says so.
    """
    request = wish.request
    wines = found.wines[:MAX_WINES]
    caveat_sentences = _list_caveats(wish.own_request, wines)
    caveats = join_paragraphs(*caveat_sentences, _ask_for_dish(wish))
    if not wines:
        return _say_nothing_was_found(wish, found, caveats)
    remarks = " ".join(filter(None, _list_remarks(found, wish)))
    intro = join_paragraphs(_interpret(request), remarks)
    reply = show_wines(
        intro,
        wines,
        request,
        closing=caveats,
        unmet_fields=found.partly_unmet_fields,
    )
    if found.unmet_fields:
        return replace(reply, lack=Lack.WINES)
    return reply


def show_wines(
    intro: str,
    wines: Sequence[Wine],
    request: Request,
    closing: str = "",
    unmet_fields: Collection[str] = (),
) -> Reply:
    """Return a reply with a card for each wine, between `intro` and `closing`.

    The cards describe the wines for the dishes of the request, and say which of the `unmet_fields`
    a wine does not meet. What is not known of any of the wines is said once, below the cards.
    """
    unknown_of_all = _find_unknown_of_all(wines)
    unknown_text = _say_what_is_unknown(unknown_of_all, request)
    closing = join_paragraphs(unknown_text, closing)
    recommendations: list[WineRecommendation] = []
    for wine in wines:
        description = describe_wine(wine, request.dishes)
        recommendation = WineRecommendation(wine_id=wine.id, description=description)
        recommendations.append(recommendation)
    cards = _make_cards(wines, request, unknown_of_all, unmet_fields)
    answer = SommelierResponse(
        response_type="recommendation",
        intro=intro,
        wines=recommendations,
        closing=closing,
    )
    return Reply(
        text=join_paragraphs(intro, *cards, closing),
        wine_ids=tuple(wine.id for wine in wines),
        wines=tuple(wines),
        structured_answer=answer,
    )


def _find_unknown_of_all(wines: Sequence[Wine]) -> tuple[Allergen, ...]:
    """Return the allergens that each of several wines may contain, as far as is known.

    Sulphites are left to the cards, because a label may say that none were added.
    """
    if len(wines) < MIN_WINES_IN_COMMON:
        return ()
    unknown_of_all: list[Allergen] = []
    first_wine = wines[0]
    for allergen in first_wine.unknown_allergens:
        if allergen == Allergen.SULPHITES:
            continue
        if all(allergen in wine.unknown_allergens for wine in wines):
            unknown_of_all.append(allergen)
    return tuple(unknown_of_all)


def _say_what_is_unknown(unknown: Sequence[Allergen], request: Request) -> str:
    """Return the sentence on what the wines of a reply may all contain, or "" for nothing."""
    if not unknown:
        return ""
    # Who wants a vegan wine has not named the allergens of animals, unless there is an allergy.
    if is_vegan(unknown) and not request.allergies:
        return translate("fallback_vegan_unknown")
    names = [name_value("allergens", allergen) for allergen in unknown]
    return translate("fallback_allergens_unknown", names=join_or(names))


def _without_unknown(wine: Wine, said: Collection[Allergen]) -> Wine:
    """Return a wine without the unknown allergens that the reply says elsewhere."""
    left: list[Allergen] = []
    for allergen in wine.unknown_allergens:
        if allergen not in said:
            left.append(allergen)
    return wine.model_copy(update={"unknown_allergens": tuple(left)})


def _without_vegan_words(text: str) -> str:
    """Return a text whose cards do not say whether the wines are vegan, as the reply says it."""
    words = [word for word in text.split() if not asks_for_vegan(word)]
    return " ".join(words)


def _make_cards(
    wines: Sequence[Wine],
    request: Request,
    unknown_of_all: Collection[Allergen],
    unmet_fields: Collection[str],
) -> list[str]:
    """Return a numbered card for each wine, without what the reply says of all of them."""
    if is_vegan(unknown_of_all):
        text = _without_vegan_words(request.text)
        request = replace(request, text=text)
    cards: list[str] = []
    for number, wine in enumerate(wines, start=1):
        description = describe_wine(wine, request.dishes)
        card_wine = _without_unknown(wine, unknown_of_all)
        unmet = describe_unmet(wine, request, unmet_fields)
        if unmet:
            description += f"\n{unmet}"
        card = _make_card(number, card_wine, description, request)
        cards.append(card)
    return cards


def _make_card(
    number: int,
    wine: Wine,
    description: str,
    request: Request,
) -> str:
    """Return the numbered card of a wine, with what it tastes of."""
    text = f"{description}\n{describe_taste(wine)}".strip()
    prefix = f"{number}. "
    return render_wine(
        wine,
        escape(text),
        prefix,
        user_text=request.text,
        currency=get_price_currency(request),
    )


def explain_shown_wines(wish: Wish) -> Reply:
    """Return a reply that says why each of the wines shown last was recommended."""
    request = wish.request
    intro = join_paragraphs(_interpret(request), find_pairing_reason(request))
    reasons: list[str] = []
    for number, wine in enumerate(wish.last_shown, start=1):
        label = escape(get_shown_label(wine))
        fit = escape(describe_fit(wine, request))
        reasons.append(f"**{number}. {label}**\n{fit}")
    # The reply has the wines, but its text has the reasons in place of their cards.
    reply = show_wines(intro, wish.last_shown, request)
    text = join_paragraphs(intro, *reasons)
    return replace(reply, text=text)


def join_paragraphs(*paragraphs: str) -> str:
    """Return the paragraphs that are not empty as one text."""
    return "\n\n".join(filter(None, paragraphs))


def _interpret(request: Request) -> str:
    """Return the sentence that describes how a request was understood."""
    description = describe_request(request) or translate("fallback_any")
    return translate("fallback_read", request=escape(description))


def _say_nothing_was_found(wish: Wish, found: FoundWines, caveats: str) -> Reply:
    """Return a reply that says why no wine is shown."""
    name = wish.request.name
    if name and not wish.own_request.is_about_wine:
        # Two words with capital letters were read as a name, but may be anything, such as "Buona
        # Serata". Do not say that there is no wine with this name.
        text = say_what_can_be_asked(wish)
        return text_reply(text, is_on_topic=False)
    lack = Lack.WINES
    if name:
        lack = Lack.NAME
    sentences = (_explain_lack(wish), _name_cheapest_above(found, wish.request))
    reason = " ".join(filter(None, sentences))
    way_out = ""
    if has_earlier_wishes(wish):
        way_out = translate("fallback_start_over")
    understood = _interpret(wish.request)
    text = join_paragraphs(understood, reason, way_out, caveats)
    reply = text_reply(text)
    return replace(reply, lack=lack)


def _explain_lack(wish: Wish) -> str:
    """Return the sentence that says why no wine is shown."""
    if wish.request.name:
        name = escape(wish.request.name)
        return translate("fallback_no_name", name=name)
    cheapest = find_cheapest(wish.compared)
    if FollowUp.CHEAPER in wish.follow_ups and cheapest is not None:
        label = escape(get_shown_label(cheapest))
        price = format_asked_price(cheapest, wish.request)
        return translate("fallback_none_cheaper", name=label, price=price)
    if wish.excluded_ids:
        return translate("fallback_all_shown")
    return translate("fallback_nothing")


def _list_remarks(found: FoundWines, wish: Wish) -> Iterator[str]:
    """Yield sentences about the wines found.

    They say which wine these are like, which parts of the wish they do not meet, and why they suit
    the dish.
    """
    request = wish.request
    if found.similar_to is not None:
        label = escape(get_shown_label(found.similar_to))
        yield translate("fallback_similar", name=label)
    unmet_filters = [name for name in found.unmet_fields if name != "foods"]
    if unmet_filters:
        limits = _name_fields(unmet_filters, request)
        yield translate("fallback_relaxed", limits=limits)
        yield _name_cheapest_above(found, request)
    if "foods" in found.unmet_fields:
        yield translate("fallback_less_suited")
    if found.unmet_fields and has_earlier_wishes(wish):
        yield translate("fallback_start_over")
    if "foods" not in found.unmet_fields:
        yield from _list_pairing_remarks(request)


def _list_pairing_remarks(request: Request) -> Iterator[str]:
    """Yield why the wines suit the dish, and for which of several dishes they are."""
    reason = find_pairing_reason(request)
    if reason:
        yield reason
    suited_dish = find_only_suited_dish(request)
    if suited_dish:
        yield translate("fallback_first_dish", dish=escape(suited_dish))


def _name_cheapest_above(found: FoundWines, request: Request) -> str:
    """Return which wine would meet a wish if its price were no limit, or "" if none would."""
    wine = found.cheapest_above
    if wine is None:
        return ""
    label = escape(get_shown_label(wine))
    price = format_asked_price(wine, request)
    return translate("fallback_dearer_fits", name=label, price=price)


def _name_fields(fields: Sequence[str], request: Request) -> str:
    """Return the descriptions of fields of a request in one text, each once.

    Two fields may have one description: "sweet" is a style and a sweetness.
    """
    descriptions = [describe_field(name, request) for name in fields]
    distinct = dict.fromkeys(descriptions)
    return escape(", ".join(distinct))


def _ask_for_dish(wish: Wish) -> str:
    """Return the question what will be eaten on an occasion, or "" if it need not be asked."""
    request = wish.request
    if not wish.own_request.names_occasion or request.dishes or request.is_gift:
        return ""
    return translate("fallback_ask_dish")


def _list_caveats(request: Request, wines: Sequence[Wine]) -> Iterator[str]:
    """Yield sentences about parts of a request that the wines do not meet, or may not meet."""
    if request.filters.get("currency") == UNKNOWN_CURRENCY:
        yield translate("fallback_currency")
    avoided = list(request.values("without_allergens"))
    if Allergen.SULPHITES in avoided and not request.allergies:
        # Without an allergy, the user means a wine without added sulphites.
        yield translate("fallback_sulphites")
        avoided.remove(Allergen.SULPHITES)
    # Who wants a vegan wine has not named these allergens.
    names_avoided = avoided and not is_vegan(avoided)
    if names_avoided and not _find_unknown_of_all(wines):
        yield _warn_of_allergens(avoided, wines)
    organic_sentence = _say_what_is_organic(request, wines)
    if wines and organic_sentence:
        yield organic_sentence
    if request.unknown_words and not request.name:
        quoted: list[str] = []
        for word in request.unknown_words:
            escaped_word = escape(word)
            quoted.append(translate("quoted", text=escaped_word))
        yield translate("fallback_unknown", words=", ".join(quoted))


def _say_what_is_organic(request: Request, wines: Sequence[Wine]) -> str:
    """Return which wines are known to be organic, or "" if that was not asked for."""
    if "organic" not in request.values("text"):
        return ""
    organic: list[str] = []
    for wine in wines:
        if matches(wine, {"text": ("organic",)}):
            organic.append(escape(get_shown_label(wine)))
    if not organic:
        return translate("fallback_organic_unknown")
    if len(organic) == len(wines):
        return ""
    return translate("fallback_organic_some", names=", ".join(organic))


def _warn_of_allergens(avoided: Sequence[str], wines: Sequence[Wine]) -> str:
    """Return what is not known of the avoided allergens in the wines."""
    unknown: list[str] = []
    for name in avoided:
        allergen = Allergen(name)
        if not any(wine.is_known_to_lack(allergen) for wine in wines):
            unknown.append(name_value("allergens", name))
    if wines and unknown:
        return translate("fallback_allergens_unknown", names=join_or(unknown))
    return translate("fallback_allergens")
