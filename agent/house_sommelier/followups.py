"""Requests that refer back: "something cheaper", "and a white one?", "with fish instead". Pure."""

import re
from dataclasses import dataclass, replace
from typing import Final

from agent.house_sommelier.asking import (
    asks_about_it,
    asks_for_the_best,
    asks_whether_it_goes,
    asks_which,
    traits_asked,
)
from agent.house_sommelier.care import LASTING, Care, care_for
from agent.house_sommelier.conversation import Conversation, Exchange
from agent.house_sommelier.exclusions import NOTHING_EXCLUDED, Exclusions, narrowed
from agent.house_sommelier.lexicon import Language, fold, spelled_out
from agent.house_sommelier.number_words import in_digits
from agent.house_sommelier.pointing import (
    pointed_at,
    points_beyond,
    prices_shown,
    wants_alike,
    wants_to_know_more,
)
from agent.house_sommelier.relative_prices import PRICE, RELATIVE, Shown, with_relative_price
from agent.house_sommelier.understanding import Understood, understand
from agent.sommelier.money import in_euros
from agent.sommelier.wine import Allergen, Style, WineQuery

_ALCOHOL: Final = frozenset({"min_abv", "max_abv"})
_KIND: Final = frozenset({"styles", "colours", "grapes"})
_PLACE: Final = frozenset({"countries", "regions"})
_GROUPS: Final = (PRICE, _ALCOHOL, _KIND, _PLACE)
_REFINING: Final = PRICE | _ALCOHOL | {"sweetness", "bodies", "without_allergens"}
_OF_A_REGION: Final = frozenset({"sparkling", "fortified"})
_CAREFUL: Final = ("foods", "max_price", "min_price", "currency", "without_allergens", "order")
_HUES: Final = frozenset({"red", "white", "rose"})
_ABOUT_A_WINE: Final = frozenset({"text", "sweetness", "bodies", "foods"})
_MOST_SHOWN: Final = 3
_REFINING_WORDS: Final = 8
_PLACE_WORDS: Final = 3
_REFERS_BACK: Final = re.compile(
    r"^\W*(?:ok(?:ay)?,? |yes,? |no,? )?(?:and|but|or|also|what about|how about|und|aber|oder|et"
    r"|mais|y|pero|e|ma|en|maar|of|plutot|lieber|liever)\b"
    r"|\b(?:instead|same|rather|make it|stattdessen|lieber|plutot|mejor"
    r"|piuttosto|invece|liever|in plaats daarvan|a la place|en su lugar)\b"
    r"|\bones?\b(?!\s+(?:bottle|glass|wine|of|person))"
)
_ANYTHING: Final = WineQuery()
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)?")


@dataclass(frozen=True, slots=True)
class Request:
    """The current message with what it refers back to.

    `query` is what to search for now, `without` what its results must not have, `care` why nothing
    with alcohol is offered (`care_now` if this message says so); `shown` are the wines the person
    last saw, in order, `seen` all of the conversation, `pointed` the one this message points at,
    `about` those that it only asks about; `stated` are the numbers the person wrote so far.
    """

    text: str
    said: Understood
    query: WineQuery
    shown: tuple[str, ...]
    language: Language
    stated: frozenset[float] = frozenset()
    without: Exclusions = NOTHING_EXCLUDED
    care: Care | None = None
    care_now: bool = False
    seen: frozenset[str] = frozenset()
    pointed: str | None = None
    about: tuple[str, ...] = ()
    points_beyond: bool = False


@dataclass(frozen=True, slots=True)
class _Talk:
    """What is known of a conversation so far.

    `listing` is the last reply that showed a choice: "the second one" is its second, also after a
    reply about one of them.
    """

    query: WineQuery = _ANYTHING
    without: Exclusions = NOTHING_EXCLUDED
    allergens: tuple[Allergen, ...] = ()
    care: Care | None = None
    shown: tuple[str, ...] = ()
    seen: frozenset[str] = frozenset()
    language: Language | None = None
    previous: Exchange | None = None
    listing: Exchange | None = None

    @property
    def choice(self) -> tuple[str, ...]:
        """The wines that "the second one" counts."""
        return self.listing.wine_ids if self.listing else ()


def read_request(conversation: Conversation) -> Request:
    """The last message of a conversation, understood in the light of the earlier ones."""
    talk = _Talk()
    for exchange in conversation.before:
        talk = _answered(_heard(talk, exchange.request, understand(exchange.request)), exchange)
    text, said = conversation.request, understand(conversation.request)
    shown, choice, folded = talk.shown, talk.choice, fold(text)
    about = _about_shown(talk, folded, said)
    talk = _heard(talk, text, said)
    return Request(
        text=text,
        said=said,
        query=_searched(talk),
        shown=shown,
        language=talk.language or "en",
        stated=_numbers(conversation),
        without=talk.without,
        care=talk.care,
        care_now=care_for(folded) is not None,
        seen=talk.seen,
        pointed=pointed_at(folded, choice),
        about=about,
        points_beyond=bool(choice) and points_beyond(folded, choice),
    )


def _numbers(conversation: Conversation) -> frozenset[float]:
    texts = (conversation.request, *(exchange.request for exchange in conversation.before))
    found = (number for text in texts for number in _NUMBER.findall(in_digits(spelled_out(text))))
    return frozenset(float(number.replace(",", ".")) for number in found)


def _answered(talk: _Talk, exchange: Exchange) -> _Talk:
    """`talk` after the reply of an exchange."""
    is_choice = bool(exchange.wine_ids) and not set(exchange.wine_ids) <= set(talk.choice)
    return replace(
        talk,
        shown=exchange.wine_ids or talk.shown,
        seen=talk.seen.union(exchange.wine_ids),
        previous=exchange,
        listing=exchange if is_choice else talk.listing,
    )


def _about_shown(talk: _Talk, folded: str, said: Understood) -> tuple[str, ...]:
    """The shown wines that a message asks about, and nothing else; `folded` is its text."""
    if said.filters == {"order"} and (ends := _end_of_prices(talk, folded, said)):
        return ends
    asks = "?" in folded or asks_about_it(folded)
    about = _ABOUT_A_WINE | {"without_allergens"} if asks else _ABOUT_A_WINE
    is_wish = said.cues or said.without or said.filters - about or wants_alike(folded)
    if not talk.shown or is_wish:
        return ()
    if pointed := pointed_at(folded, talk.choice):
        return (pointed,)
    if asks_for_the_best(folded):
        return talk.shown[:1]
    asks_about_all = asks_about_it(folded) and not (
        "foods" in said.filters and set(traits_asked(folded)) <= {"taste"}
    )
    if asks_about_all or (wants_to_know_more(folded) and not said.filters):
        return talk.shown[:_MOST_SHOWN]
    return talk.shown if len(talk.shown) == 1 and asks_whether_it_goes(folded) else ()


def _spoken(talk: _Talk, said: Understood) -> Language | None:
    """The language of a message; what may be in several is in that of the talk."""
    return talk.language if talk.language in said.languages else said.language or talk.language


def _end_of_prices(talk: _Talk, folded: str, said: Understood) -> tuple[str, ...]:
    """The cheapest or the dearest of those shown: "which is the cheapest?"."""
    if talk.listing is None or not asks_which(folded):
        return ()
    prices = prices_shown(talk.listing.reply, talk.choice)
    euros = {wine_id: in_euros(*price) for wine_id, price in prices.items()}
    if not euros:
        return ()
    end = min if said.query.order == "cheapest" else max
    return (end(euros, key=lambda wine_id: euros[wine_id]),)


def _heard(talk: _Talk, text: str, said: Understood) -> _Talk:
    """`talk` after a message. An intolerance stays for good, and so does most that calls for care;
    everything else is forgotten when something new is asked for.
    """
    folded = fold(text.strip())
    is_beyond = points_beyond(folded, talk.choice) and not said.filters - {"text"}
    if _about_shown(talk, folded, said) or (talk.choice and is_beyond):
        care = care_for(folded) or talk.care
        return replace(talk, language=_spoken(talk, said), care=care)
    allergens = tuple(dict.fromkeys((*talk.allergens, *said.query.without_allergens)))
    care = care_for(folded) or talk.care
    talk = replace(talk, language=_spoken(talk, said), allergens=allergens, care=care)
    if not (said.filters or said.cues or said.without):
        return talk
    refers_back = _refers_back(text, said, talk.previous)
    if not refers_back:
        kept = care if care_for(folded) or care in LASTING else None
        fresh = replace(talk, query=WineQuery(), without=NOTHING_EXCLUDED, care=kept)
        return _joined(fresh, said, talk.query)
    pointed = pointed_at(folded, talk.choice)
    return _joined(talk, said, talk.query, pointed)


def _joined(talk: _Talk, said: Understood, old: WineQuery, pointed: str | None = None) -> _Talk:
    source = talk.listing if pointed else talk.previous
    shown = Shown(source.reply, source.wine_ids or talk.shown, pointed) if source else Shown("", ())
    asked = talk.query.model_copy(update={"order": "match"}) if said.cues & RELATIVE else talk.query
    query = with_relative_price(_merged(asked, said.query), said, shown, old)
    return replace(talk, query=query, without=talk.without.joined(said.without, said.query))


def _searched(talk: _Talk) -> WineQuery:
    """The query of a talk with its exclusions, intolerances and care."""
    query = narrowed(talk.query, talk.without)
    if talk.allergens:
        query = _updated(query, without_allergens=talk.allergens)
    return _alcohol_free(query) if talk.care else query


def _updated(query: WineQuery, **fields: object) -> WineQuery:
    return WineQuery.model_validate(_values(query) | fields)


def _alcohol_free(query: WineQuery) -> WineQuery:
    """The same wish without alcohol: no origin and no grape, of which there is little to choose."""
    kept = {name: value for name, value in _values(query).items() if name in _CAREFUL}
    hues = [str(style) for style in query.styles if style in _HUES]
    if colours := list(map(str, query.colours)) or hues:
        kept["colours"] = colours
    if Style.SPARKLING in query.styles:
        kept["text"] = "sparkling"
    return WineQuery.model_validate({"styles": [Style.ALCOHOL_FREE], **kept})


def _refers_back(text: str, said: Understood, previous: Exchange | None) -> bool:
    if previous is None:
        return False
    words = len(text.split())
    only_refines = said.filters <= _REFINING and words <= _REFINING_WORDS
    only_moves = said.filters <= _PLACE | {"order"} and words <= _PLACE_WORDS
    only_excludes = not said.filters and bool(said.without)
    cue = bool(said.cues) or _REFERS_BACK.search(fold(text.strip())) is not None
    return cue or only_refines or only_moves or only_excludes


def _merged(old: WineQuery, new: WineQuery) -> WineQuery:
    """`new`, with what `old` says about other things.

    A new colour forgets the old grape, and the region if that came with "champagne" or "port".
    """
    set_now = frozenset(new.model_fields_set)
    replaced = set_now.union(*(group for group in _GROUPS if group & set_now))
    if set_now & (_KIND | {"foods"}):
        replaced |= {"text"}
    if "styles" in set_now and _OF_A_REGION & set(old.styles) - set(new.styles):
        replaced |= {"regions"}
    kept = {name: getattr(old, name) for name in old.model_fields_set - replaced}
    return WineQuery.model_validate({**kept, **_values(new)})


def _values(query: WineQuery) -> dict[str, object]:
    return {name: getattr(query, name) for name in query.model_fields_set}
