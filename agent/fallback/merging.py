"""Read the wish of a conversation.

It is what the last message asks for, completed with what still holds of earlier messages.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from agent.fallback.follow_ups import (
    FollowUp,
    apply_follow_up,
    find_button,
    get_comparisons,
)
from agent.fallback.picking import get_wine_at, pick_shown_wine
from agent.fallback.wording import is_vegan
from agent.query_reading.prices import (
    MODERATE_PRICE,
    PRICE_FIELDS,
    with_gift_price,
)
from agent.query_reading.request import Request, drop_empty, read_request
from agent.safety.concerns import read_safety_state
from agent.sommelier.filters import matches
from agent.sommelier.wine import Wine
from agent.turn import StoredMessage

MAX_EARLIER_MESSAGES: Final = 6
"""The number of messages before the last one of which the wish is made."""
COMMAND_MARK: Final = "/"
"""The beginning of a message that is a command."""
EXCLUSION_PREFIX: Final = "without_"
"""The beginning of the names of filters that exclude values."""
AVOIDED_ALLERGENS: Final = "without_allergens"
KIND_FIELDS: Final = frozenset({"styles", "colours", "grapes"})
"""The filters that say which kind of wine is wanted."""
SIZED_KIND_FIELDS: Final = KIND_FIELDS | {"regions", "sweetness"}
"""The filters that say all of a wish, together with a size."""
ASPECTS: Final = (
    frozenset({"bodies", "tannins", "acidities", "text", "max_abv"}),
    frozenset({"countries"}),
    frozenset({*PRICE_FIELDS, "order"}),
    frozenset({"offer"}),
)
"""What a message can say of a wine beside its kind: its taste, country, price and size.

A region and the sweetness belong to the kind, as in "a Champagne" and "a dry white".
"""
ASPECTS_OF_WHOLE_WISH: Final = 2
"""A message that names a kind of wine and this many aspects says all that it wants."""
OUTWEIGHED_BY_DISH: Final = (
    "styles",
    "colours",
    "grapes",
    "bodies",
    "tannins",
    "sweetness",
)
"""The filters of earlier messages that a dish named later outweighs, if no such wine suits it."""
ALCOHOL_FREE: Final = "alcohol_free"
"""The style of the wines without alcohol."""
PLACE_FIELDS: Final = frozenset({"countries", "regions"})
"""The filters that say where a wine comes from."""

MAX_PAUSE: Final = timedelta(hours=6)
"""A message that describes a wine after a longer pause begins a new wish."""


class Exchange(NamedTuple):
    """A message of the user, and what was shown in reply."""

    text: str
    wine_ids: tuple[str, ...] = ()
    """The ids of the wines that the answer showed."""
    said_at: datetime | None = None
    """The time of the message, or None if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The wish that a conversation states."""

    request: Request
    """The request of the last message, merged with those of earlier messages."""
    own_request: Request = field(default_factory=Request)
    """The request of the last message by itself."""
    follow_ups: tuple[FollowUp, ...] = ()
    """What the last message asks about the wines shown last, by a button or in words."""
    last_shown: tuple[Wine, ...] = ()
    """The wines of the last answer that showed wines."""
    listed: tuple[Wine, ...] = ()
    """The wines to which "the second" refers.

    They stay the same when an answer then shows one of them alone.
    """
    compared: tuple[Wine, ...] = ()
    """The wines with which the follow-ups compare."""
    shown_ids: tuple[str, ...] = ()
    """The ids of the wines of all answers."""

    @property
    def picked(self) -> Wine | None:
        """Return the listed wine that the last message is about, or None."""
        if self.follow_ups:
            return None
        return pick_shown_wine(self.own_request, self.listed)

    @property
    def excluded_ids(self) -> tuple[str, ...]:
        """Return the ids of the wines that are not to be shown again."""
        if self.follow_ups or self.own_request.wants_others:
            return self.shown_ids
        return ()


def get_exchanges(messages: Sequence[StoredMessage]) -> list[Exchange]:
    """Return the user's messages of a conversation, each with the wines shown in reply."""
    exchanges: list[Exchange] = []
    for message in messages:
        if message.role == "user":
            exchange = Exchange(message.content, said_at=message.created_at)
            exchanges.append(exchange)
        elif exchanges and message.wine_ids:
            exchanges[-1] = exchanges[-1]._replace(wine_ids=message.wine_ids)
    return exchanges


def read_wish(
    exchanges: Sequence[Exchange],
    wines: Mapping[str, Wine],
    default_language: str,
) -> Wish:
    """Return the wish of a conversation. `wines` has the wines shown in it, by id."""
    wish = Wish(request=Request(language=default_language))
    shown_in_reply: tuple[str, ...] = ()
    request_before = wish.request
    said_before: datetime | None = None
    for text, wine_ids, said_at in _list_last_exchanges(exchanges):
        if text.startswith(COMMAND_MARK):
            # "/find wine bar Lyon" looks something up, and wishes for no wine.
            continue
        # The wines of a reply are added before the next message, which may refer to them. So those
        # of the reply to the last message are not added.
        if shown_in_reply:
            wish = _add_shown_wines(wish, shown_in_reply, wines)
        elif wish.follow_ups:
            # Nothing cheaper was found, for example. What was wished before it holds again.
            wish = replace(wish, request=request_before)
        request_before = wish.request
        is_after_pause = _is_long_pause(said_before, said_at)
        wish = _add_message(wish, text, is_after_pause=is_after_pause)
        shown_in_reply = wine_ids
        said_before = said_at
    return wish


def _list_last_exchanges(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges of which the wish is made.

    If earlier ones are left out, nobody knows what the first of them compare with ("cheaper"), so
    their texts are left out, too. The wines that they showed stay.
    """
    max_exchanges = MAX_EARLIER_MESSAGES + 1
    last_exchanges = list(exchanges[-max_exchanges:])
    if len(exchanges) <= max_exchanges:
        return last_exchanges
    for index, exchange in enumerate(last_exchanges[:-1]):
        request = read_request(exchange.text)
        if not get_comparisons(request):
            break
        last_exchanges[index] = exchange._replace(text="")
    return last_exchanges


def _is_long_pause(earlier: datetime | None, later: datetime | None) -> bool:
    """Return whether more than `MAX_PAUSE` is between two messages, as far as is known."""
    if earlier is None or later is None:
        return False
    return later - earlier > MAX_PAUSE


def without_lifted_allergies(
    wish: Wish,
    exchanges: Sequence[Exchange],
    allergies: Collection[str],
) -> Wish:
    """Return the wish without allergies that the user has stated and then lifted.

    `allergies` are those that the user has now. "No egg, please" is a wish and not an allergy, so
    it stays.
    """
    avoided = wish.request.values(AVOIDED_ALLERGENS)
    if not avoided:
        return wish
    stated_allergies: set[str] = set()
    for exchange in exchanges:
        stated_allergies |= read_safety_state(exchange.text).own_allergies
    lifted_allergies = stated_allergies.difference(allergies)
    remaining = tuple(name for name in avoided if name not in lifted_allergies)
    filters = dict(wish.request.filters)
    del filters[AVOIDED_ALLERGENS]
    if remaining:
        filters[AVOIDED_ALLERGENS] = remaining
    request = replace(wish.request, filters=filters)
    return replace(wish, request=request)


def _add_shown_wines(
    wish: Wish,
    ids: Sequence[str],
    wines: Mapping[str, Wine],
) -> Wish:
    """Return the wish after a reply that shows wines."""
    # A wine may be missing, because it is no longer sold or may no longer be shown to the user.
    known_ids = [wine_id for wine_id in ids if wine_id in wines]
    shown = tuple(wines[wine_id] for wine_id in known_ids)
    wish = _without_kind_not_shown(wish, shown)
    shown_ids = dict.fromkeys((*wish.shown_ids, *ids))
    wish = replace(wish, last_shown=shown, shown_ids=tuple(shown_ids))
    is_one_of_listed = len(shown) == 1 and shown[0] in wish.listed
    if is_one_of_listed:
        return wish
    return replace(wish, listed=shown)


def without_earlier_kind(wish: Wish) -> Wish:
    """Return the wish without the kind of wine of earlier messages.

    It stays as it is unless the last message names a dish and nothing else: "and for salmon?". A
    wish for wine without alcohol holds for every dish.
    """
    own_request = wish.own_request
    if not own_request.dishes or own_request.filters:
        return wish
    if ALCOHOL_FREE in wish.request.values("styles"):
        return wish
    filters = dict(wish.request.filters)
    for name in OUTWEIGHED_BY_DISH:
        filters.pop(name, None)
    request = replace(wish.request, filters=filters)
    return replace(wish, request=request)


def _without_kind_not_shown(wish: Wish, shown: Sequence[Wine]) -> Wish:
    """Return the wish without the earlier kind of wine, if the reply to a dish left it out."""
    for name in OUTWEIGHED_BY_DISH:
        values = wish.request.values(name)
        if not values:
            continue
        if not any(_is_of_kind(wine, name, values) for wine in shown):
            return without_earlier_kind(wish)
    return wish


def _is_of_kind(wine: Wine, name: str, values: tuple[str, ...]) -> bool:
    """Return whether a wine has one of the values of a filter. A red dessert wine is no red."""
    if name == "styles" and wine.style != ALCOHOL_FREE:
        return wine.style in values
    return matches(wine, {name: values})


def _add_message(wish: Wish, text: str, *, is_after_pause: bool) -> Wish:
    """Return the wish after a further message, which may come after a long pause."""
    before = wish.request
    own_request = read_request(text, before.language)
    if wish.last_shown:
        button = find_button(text)
        if button is not None:
            own_request = Request(text=text, language=before.language)
            return _add_follow_ups(wish, own_request, (button,))
        comparisons = get_comparisons(own_request)
        if comparisons:
            return _add_follow_ups(wish, own_request, comparisons)
    own_request = _with_moderate_price(own_request)
    # A question, one about a wine shown, and the report of a purchase leave the wish as it was.
    is_about_shown = pick_shown_wine(own_request, wish.listed) is not None
    states_no_wish = own_request.is_question or own_request.states_purchase
    merged = before
    if not is_about_shown and not states_no_wish:
        if is_after_pause:
            before = _keep_lasting(before)
        merged = merge(before, own_request)
    request = replace(
        merged,
        text=text,
        language=own_request.language,
        is_question=own_request.is_question,
    )
    return replace(wish, request=request, own_request=own_request, follow_ups=())


def _with_moderate_price(request: Request) -> Request:
    """Return a request for something cheaper, compared with no wine, with a price limit.

    In German, "günstiger Rotwein" is an inexpensive red or a cheaper one.
    """
    if FollowUp.CHEAPER not in request.comparisons or not request.describes_wine:
        return request
    names_price = not PRICE_FIELDS.isdisjoint(request.filters)
    if names_price or request.is_question:
        return request
    filters = {**request.filters, "max_price": MODERATE_PRICE}
    return replace(request, filters=filters)


def _add_follow_ups(
    wish: Wish,
    own_request: Request,
    follow_ups: tuple[FollowUp, ...],
) -> Wish:
    """Return the wish after a message that is about the wines shown last.

    "Like the second, but cheaper" compares with the second wine only, and "cheaper" with all.
    """
    compared = wish.last_shown
    named_wine = get_wine_at(wish.listed, own_request.position)
    if named_wine is not None:
        compared = (named_wine,)
    request = merge(wish.request, own_request)
    for follow_up in follow_ups:
        request = apply_follow_up(request, follow_up, compared)
    if request.is_gift:
        filters = with_gift_price(request.filters)
        request = replace(request, filters=filters)
    request = replace(request, text=own_request.text, is_question=False)
    return replace(
        wish,
        request=request,
        own_request=own_request,
        follow_ups=follow_ups,
        compared=compared,
    )


def merge(before: Request, new: Request) -> Request:
    """Return `new`, completed with what still applies of `before`.

    If it begins a new wish, only the avoided allergens and the dislikes still apply. If it asks for
    wine without alcohol, the dish does, too.
    """
    if _begins_anew(before, new):
        before = _keep_lasting(before)
    elif _turns_to_alcohol_free(before, new):
        before = _without_filters(before)
    filters = _merge_filters(before.filters, new)
    disliked = _list_disliked(before, new, filters)
    allergies = dict.fromkeys((*before.allergies, *new.allergies))
    dishes = new.dishes or before.dishes
    is_gift = new.is_gift or before.is_gift
    priced = new
    if PRICE_FIELDS.isdisjoint(new.filters):
        priced = before
    if is_gift:
        filters = with_gift_price(filters)
    return replace(
        new,
        filters=filters,
        disliked=disliked,
        dishes=dishes,
        allergies=tuple(allergies),
        is_gift=is_gift,
        price_bottles=priced.price_bottles,
        is_price_approximate=priced.is_price_approximate,
    )


def _keep_lasting(before: Request) -> Request:
    """Return what holds of a wish after it ended: the avoided allergens and the dislikes."""
    avoided = _list_lasting_allergens(before)
    return Request(
        language=before.language,
        filters=drop_empty({**before.disliked, AVOIDED_ALLERGENS: avoided}),
        disliked=before.disliked,
        allergies=before.allergies,
    )


def excludes_taste(name: str) -> bool:
    """Return whether the filter with this name excludes wines, but no allergens."""
    return name.startswith(EXCLUSION_PREFIX) and name != AVOIDED_ALLERGENS


def _list_disliked(
    before: Request,
    new: Request,
    filters: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the exclusions among the filters that state a dislike, in this message or before.

    "A Chardonnay after all" has ended the exclusion, and with it the dislike.
    """
    disliked: dict[str, Any] = {}
    for name, values in filters.items():
        if not excludes_taste(name):
            continue
        stated = list(before.disliked.get(name, ()))
        if new.states_dislike:
            stated += new.values(name)
        disliked[name] = [value for value in values if value in stated]
    return drop_empty(disliked)


def _turns_to_alcohol_free(before: Request, new: Request) -> bool:
    """Return whether a message is the first of a wish to ask for wine without alcohol."""
    was_alcohol_free = ALCOHOL_FREE in before.values("styles")
    return ALCOHOL_FREE in new.values("styles") and not was_alcohol_free


def _without_filters(before: Request) -> Request:
    """Return a request without its filters, except for avoided allergens and dislikes."""
    avoided = before.values(AVOIDED_ALLERGENS)
    filters = drop_empty({**before.disliked, AVOIDED_ALLERGENS: avoided})
    return replace(before, filters=filters)


def _list_lasting_allergens(before: Request) -> tuple[str, ...]:
    """Return the avoided allergens that also hold for a new wish.

    A wish for a vegan wine, which avoids all allergens of animals, does not; a stated allergy does.
    """
    avoided = before.values(AVOIDED_ALLERGENS)
    if not is_vegan(avoided):
        return avoided
    return tuple(name for name in avoided if name in before.allergies)


def _merge_filters(earlier: Mapping[str, Any], new: Request) -> dict[str, Any]:
    """Return the filters of a new message, completed with earlier ones that still apply."""
    filters: dict[str, Any] = dict(new.filters)
    for name, values in earlier.items():
        if name.startswith(EXCLUSION_PREFIX):
            # "A Merlot after all" ends the exclusion of Merlot.
            included_name = name.removeprefix(EXCLUSION_PREFIX)
            wanted = new.values(included_name)
            remaining = [value for value in values if value not in wanted]
            remaining += new.values(name)
            filters |= drop_empty({name: remaining})
        elif not _is_replaced(name, new):
            filters |= _without_excluded(name, values, new)
    return filters


def _without_excluded(
    name: str,
    earlier: Any,
    new: Request,
) -> dict[str, Any]:
    """Return an earlier filter without the values that a new message excludes.

    "No oak" ends the wish for oak. A filter without values is left out.
    """
    unwanted = new.values(f"{EXCLUSION_PREFIX}{name}")
    if not unwanted:
        return {name: earlier}
    remaining = [value for value in earlier if value not in unwanted]
    return drop_empty({name: remaining})


def _begins_anew(before: Request, new: Request) -> bool:
    """Return whether a message begins a new wish.

    It does with a taste ("I love Riesling"), with another kind of wine that is described anew, and
    with another dish or gift. The first dish completes a wish: "a red under 20 euros", then "it is
    for lamb". A kind completes the wish for a dish: "for lamb", then "a dry red under 20 euros".
    But a message that says all that it wants ("a full-bodied red from Spain") begins a new wish,
    and so does one that asks only for a wine for an occasion ("a bottle for Christmas dinner").
    """
    if new.states_taste and new.inclusions:
        return True
    if _says_all(new) and _describes_occasion_or_wine(before):
        return True
    if _describes_other_kind(before, new):
        return True
    if _asks_for_occasion(new):
        return True
    if new.is_gift:
        return before.is_gift or bool(before.dishes)
    if new.dishes:
        return new.is_about_wine or bool(before.dishes)
    return False


def _asks_for_occasion(new: Request) -> bool:
    """Return whether a message asks for a wine for an occasion, and says no more of it.

    "It's for a birthday" asks for no wine, so it completes the wish before.
    """
    if not new.is_empty or new.comparisons:
        return False
    return new.names_occasion and new.is_about_wine


def _says_all(new: Request) -> bool:
    """Return whether a message says all that it wants: a kind of wine and some of its aspects.

    An exclusion, such as "no Merlot" or "vegan", is an aspect, too. With a size, "a magnum of
    Champagne" or "half a bottle of something sweet" says all.
    """
    has_size = "offer" in new.filters
    if has_size and not SIZED_KIND_FIELDS.isdisjoint(new.filters):
        return True
    names_kind = not (KIND_FIELDS | {"regions"}).isdisjoint(new.filters)
    if not names_kind:
        return False
    count = 0
    for fields in ASPECTS:
        if not fields.isdisjoint(new.filters):
            count += 1
    if any(name.startswith(EXCLUSION_PREFIX) for name in new.filters):
        count += 1
    return count >= ASPECTS_OF_WHOLE_WISH


def _describes_occasion_or_wine(request: Request) -> bool:
    """Return whether a request is for a dish, a gift or a wine that it describes.

    "Up to 20 euros" and "no Merlot" only limit what is wished next.
    """
    return bool(request.dishes or request.is_gift or request.inclusions)


def _describes_other_kind(before: Request, new: Request) -> bool:
    """Return whether a message describes a kind of wine that differs from the one before.

    "A white from Italy" after a red does. "And in white?" only changes the colour.
    """
    if KIND_FIELDS.isdisjoint(before.filters):
        return False
    if KIND_FIELDS.isdisjoint(new.filters):
        return False
    other_fields = new.filters.keys() - KIND_FIELDS - {"currency"}
    is_same_kind = False
    for name in KIND_FIELDS:
        shared_values = {*new.values(name)} & {*before.values(name)}
        if shared_values:
            is_same_kind = True
    return bool(other_fields) and not is_same_kind


def has_earlier_wishes(wish: Wish) -> bool:
    """Return whether a wish has parts that only earlier messages have named.

    A follow-up such as "cheaper" is about the earlier wish, so nothing of that is too much.
    """
    if wish.follow_ups:
        return False
    own_request = wish.own_request
    earlier_filters = wish.request.filters.keys() - own_request.filters.keys()
    # Nobody would drop an allergy, and the currency of a price is no wish.
    earlier_filters -= {AVOIDED_ALLERGENS, "currency"}
    earlier_allergens = set(wish.request.values(AVOIDED_ALLERGENS))
    earlier_allergens.difference_update(own_request.values(AVOIDED_ALLERGENS))
    earlier_allergens.difference_update(wish.request.allergies)
    has_earlier_dishes = bool(wish.request.dishes) and not own_request.dishes
    return bool(earlier_filters or earlier_allergens) or has_earlier_dishes


def _is_replaced(name: str, new: Request) -> bool:
    """Return whether a new message replaces an earlier filter.

    Another kind of wine replaces the grape and the place. Another place replaces only the place.
    """
    # The earlier filter is replaced if the new message has one of these filters.
    replacing = {name}
    if name in PLACE_FIELDS:
        replacing = {"styles", "grapes", *PLACE_FIELDS}
    elif name in KIND_FIELDS:
        replacing = set(KIND_FIELDS)
    elif name == "offer":
        # After "a white by the glass", "a red" means a bottle.
        replacing = {name, *KIND_FIELDS, *PLACE_FIELDS}
    elif name in {*PRICE_FIELDS, "order"}:
        replacing = {name, *PRICE_FIELDS}
    return not replacing.isdisjoint(new.filters)
