"""Answer by rules about the bottles that a user owns.

The answers say which bottles to drink, which are past their time, how many there are and where, and
what the user thought of those that were drunk.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.cellar.index import IndexedItem, Size, index_cellar
from agent.cellar.items import to_wine
from agent.cellar.removal import list_identifying_words
from agent.cellar.rows import count_bottles, format_drinks, format_items, this_year
from agent.cellar.search import (
    FIELDS_BY_TASTE,
    CellarQuery,
    Readiness,
    find_drinks,
    list_urgent,
    search_cellar,
    select_named,
)
from agent.documents.shop import find_shop_topics
from agent.fallback.reasons import find_pairing_reason
from agent.i18n import translate
from agent.languages import load_languages
from agent.markdown import unescape
from agent.numerals import YEARS
from agent.query_reading.request import Request
from agent.query_reading.tables import load_pairings
from agent.sommelier.building_queries import get_pairing_name
from agent.sommelier.filters import may_be_shown
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.vocabulary import Currency, normalize, to_euros
from agent.sommelier.wine import Wine
from agent.text import pattern
from agent.turn import Person, Reply

MAX_ROWS: Final = 10
"""The number of items that a list of bottles shows."""
MAX_TONIGHT: Final = 3
"""The number of items among which the user chooses for tonight."""
READINESS: Final[tuple[Readiness, ...]] = (
    "past",
    "wait",
    "soon",
    "now",
)
"""The order in which a message is searched for a readiness.

"now" is the last, because "not ready" also contains "ready".
"""
MAX_OPENED: Final = 10
"""The number of bottles that a list of drunk bottles shows."""
MAX_FOODS: Final = 6
"""The number of foods of which a query is made."""
SIZES: Final[Mapping[str, Size]] = {
    "half": "half",
    "magnum": "magnum",
}
"""The size of a bottle for each offer that a message may name."""
EXCLUDABLE_FIELDS: Final = {
    "styles": "styles",
    "grapes": "grapes",
    "regions": "regions",
    "countries": "regions",
}
"""The fields of a request whose values may be excluded, each with its field in `CellarQuery`."""
PLACE_SEPARATORS: Final = pattern("[,;]")
"""The sign between the parts of a place, such as "Rack, G33"."""


@dataclass(frozen=True, slots=True)
class OwnBottles:
    """The bottles in the cellar of a user that suit a message.

    `text` is the answer in Markdown. If `is_for_tonight`, the user wants some bottles to drink now,
    and wines of the shop may be shown below them.
    """

    text: str
    found: tuple[IndexedItem, ...] = ()
    is_for_tonight: bool = False
    reason: str = ""
    """The sentence why the bottles suit the dish. Wines for sale come with the same sentence."""

    @property
    def reply(self) -> Reply:
        """Return the answer from the cellar alone.

        If it is for tonight, it has the first wines, which get buttons.
        """
        wines: list[Wine] = []
        if self.is_for_tonight:
            first_items = self.found[:MAX_TONIGHT]
            wines = [to_wine(indexed.item) for indexed in first_items]
        text = self.text
        if self.reason:
            text = f"{text}\n\n{self.reason}"
        intro = unescape(text)
        answer = SommelierResponse(response_type="informational", intro=intro)
        return Reply(
            text=text,
            wines=tuple(wines),
            structured_answer=answer,
        )


@dataclass(frozen=True, slots=True)
class AskedBottles:
    """The bottles of a cellar that a request asks about."""

    readiness: Readiness | None
    place: str
    is_about_own: bool
    """Whether it is about the user's own bottles. Otherwise they only come first, for tonight."""
    is_for_tonight: bool


def find_own_bottles(request: Request, person: Person) -> OwnBottles | None:
    """Return what the cellar of a person has for a request.

    Return None if the request is about other wines.
    """
    items = index_cellar(person.bottles, this_year())
    if _says_opened(request):
        return _find_opened(request, items)
    asks_for_drunk = "drunk" in request.cellar_words
    if asks_for_drunk and person.drinks:
        return _find_drunk(request, person)
    if not items and _asks_for_own_bottles(request):
        return OwnBottles(translate("cellar_none"))
    if not items:
        return None
    asked = _read_asked_bottles(request, items)
    if not asked.is_about_own and not asked.is_for_tonight:
        return None
    query = _build_query(request, asked)
    found = _search(request, query, items, person)
    if asked.readiness == "soon":
        found = _select_soon(found)
    if not found and not asked.is_about_own:
        return None  # the cellar was not named, so the wines of the shop are the answer
    text = _describe(found, asked)
    reason = ""
    if asked.is_for_tonight and found:
        reason = _explain_pairing(found[0], request)
    return OwnBottles(text, found, asked.is_for_tonight, reason)


def _says_opened(request: Request) -> bool:
    """Return whether a message says that a wine was drunk: "I drank one of the Barolo".

    In some languages, only the question mark tells it from the question what was drunk.
    """
    is_question = "?" in request.text
    return "opened" in request.cellar_words and not is_question


def _find_opened(request: Request, items: Sequence[IndexedItem]) -> OwnBottles | None:
    """Ask which of the bottles was drunk, each of which has a button that takes one out.

    Return None if the message names no wine of the cellar.
    """
    names = list_identifying_words(request.text)
    opened = select_named(items, names)
    if not opened:
        return None
    shown = opened[:MAX_TONIGHT]
    items_of_cellar = [indexed.item for indexed in shown]
    heading = translate("cellar_opened_which")
    if len(shown) == 1:
        heading = translate("cellar_opened_one")
    text = format_items(items_of_cellar, this_year(), heading)
    return OwnBottles(text, tuple(shown), is_for_tonight=True)


def _asks_for_own_bottles(request: Request) -> bool:
    """Return whether a request can only be answered from a cellar.

    "How many bottles do I have?" can. "What goes with my Barolo?" is about food, and "have I got a
    Riesling?" may be about those of the shop.
    """
    if "own" not in request.cellar_words:
        return False
    asks_which = request.cellar_words != {"own"}
    return asks_which or not request.describes_wine


def _read_asked_bottles(request: Request, items: Sequence[IndexedItem]) -> AskedBottles:
    """Return what a request says about the bottles of a cellar with these items."""
    place = _find_place(request, items)
    readiness = _find_readiness(request)
    names_own = "own" in request.cellar_words
    is_own = names_own or _is_owned(request.owned_words, items)
    is_about_own = bool(is_own or readiness or place)
    is_for_tonight = _is_for_tonight(request, readiness, is_own=is_own)
    if "count" in request.cellar_words or place:
        # The user asks how many bottles there are or what is in a place, not what to drink.
        is_for_tonight = False
    if is_for_tonight:
        readiness = "now"
    return AskedBottles(
        readiness=readiness,
        place=place,
        is_about_own=is_about_own,
        is_for_tonight=is_for_tonight,
    )


def _find_readiness(request: Request) -> Readiness | None:
    """Return the readiness for which a request asks, or None."""
    for readiness in READINESS:
        if readiness in request.cellar_words:
            return readiness
    return None


def _is_for_tonight(
    request: Request,
    readiness: Readiness | None,
    *,
    is_own: bool,
) -> bool:
    """Return whether a request wants some bottles to drink now, and not a list of bottles."""
    names_tonight = "tonight" in request.cellar_words
    if names_tonight and readiness in (None, "now"):
        asks_about_shop = find_shop_topics([request.text])  # "are you open tonight?"
        return is_own or not asks_about_shop
    if readiness is None:
        return is_own and bool(request.dishes)
    # "a ripe red wine" describes a wine to drink, while "which of mine are ripe" wants a list.
    return readiness == "now" and not is_own and request.describes_wine


def _is_owned(words: Sequence[str], items: Sequence[IndexedItem]) -> bool:
    """Return whether the words beside "my" or "have I" belong to bottles of the cellar.

    They do if they are vintages of bottles, or if they are on labels.
    """
    vintages = _years_in(words)
    if _select_vintages(items, vintages):
        return True
    names = list_identifying_words(" ".join(words))
    if not names:
        return False
    return bool(select_named(items, names))


def _build_query(request: Request, asked: AskedBottles) -> CellarQuery:
    """Return the query that finds the bottles for a request in the cellar."""
    foods: list[str] = []
    for dish in request.dishes.values():
        foods += dish.foods
    distinct_foods = tuple(dict.fromkeys(foods))
    regions = request.values("regions") or request.values("countries")
    offer = request.filters.get("offer", "")
    readiness = asked.readiness
    if readiness == "soon":
        readiness = None  # `_select_soon` compares all that were found
    return CellarQuery(
        readiness=readiness,
        place=asked.place,
        styles=request.values("styles"),
        grapes=request.values("grapes"),
        regions=regions,
        foods=distinct_foods[:MAX_FOODS],
        size=SIZES.get(offer),
        min_price=_price_in_euros(request, "min_price"),
        max_price=_price_in_euros(request, "max_price"),
        below=_price_in_euros(request, "below"),
    )


def _price_in_euros(request: Request, name: str) -> float | None:
    """Return a limit of the price in euros, or None if the request has no such limit.

    An amount without a known currency is taken for euros.
    """
    amount = request.filters.get(name)
    if amount is None:
        return None
    currency = request.filters.get("currency")
    if currency not in set(Currency):
        currency = Currency.EUR
    return to_euros(amount, Currency(currency))


def _search(
    request: Request,
    query: CellarQuery,
    items: Sequence[IndexedItem],
    person: Person,
) -> tuple[IndexedItem, ...]:
    """Return the items for a request that the person may drink.

    If no item is ready now, return those of which it is unknown when they are ready.
    """
    names = _names_in(request.unread_words)
    if query.place:
        items = search_cellar(items, query)
    is_placed = bool(query.place)
    named = _select_named(items, request, names, is_placed=is_placed)
    pairing = _find_pairing(request)
    found = search_cellar(named, query, pairing)
    if not found and named and names:
        # A part of a name may have been read as a region or a grape, although "Vega Sicilia" is not
        # from Sicily. Search again for all words as a name.
        all_words = list_identifying_words(request.text)
        named = select_named(named, all_words)
        query = query.model_copy(update={"regions": (), "grapes": ()})
        found = search_cellar(named, query, pairing)
    if not found and names and request.dishes and not _has_name(request):
        # A word of "pick something for lamb" may be on a label by chance. Search again without it.
        named = items
        found = search_cellar(named, query, pairing)
    if not found and query.readiness == "now":
        found = _search_unknown_readiness(named, query, pairing)
    wanted = _without_excluded(found, request)
    return tuple(_list_drinkable(wanted, person))


def _find_pairing(request: Request) -> Mapping[str, Sequence[str]] | None:
    """Return the filters of wines that go with the dishes, or None if there are no dishes."""
    if not request.dishes:
        return None
    name = get_pairing_name(request)
    return load_pairings().get(name)


def _explain_pairing(first: IndexedItem, request: Request) -> str:
    """Return why the bottles suit the dishes, or "" if the first one tastes otherwise.

    The first bottle suits the dishes best.
    """
    pairing = _find_pairing(request) or {}
    for taste, field in FIELDS_BY_TASTE.items():
        value = first.item.wine.get(field)
        suited = pairing.get(taste, ())
        if value and suited and value not in suited:
            return ""
    return find_pairing_reason(request)


def _search_unknown_readiness(
    items: Sequence[IndexedItem],
    query: CellarQuery,
    pairing: Mapping[str, Sequence[str]] | None,
) -> list[IndexedItem]:
    """Return the items that match a query and of which nobody knows when they are ready."""
    of_any_readiness = query.model_copy(update={"readiness": None})
    found = search_cellar(items, of_any_readiness, pairing)
    return [item for item in found if item.state == "unknown"]


def _select_soon(found: Sequence[IndexedItem]) -> tuple[IndexedItem, ...]:
    """Return the items that are late or should be drunk soon, the most urgent first.

    If there are none, return all that are ready.
    """
    urgent = list_urgent(found)
    due: list[IndexedItem] = []
    for indexed in urgent:
        if indexed.state == "late" or indexed.is_due_soon:
            due.append(indexed)
    return tuple(due or urgent)


def _list_drinkable(
    items: Sequence[IndexedItem], person: Person
) -> Sequence[IndexedItem]:
    """Return the items that the person's allergies and state, such as a pregnancy, allow.

    What the person said about wines that they never drink does not count: these bottles are theirs.
    """
    if not person.safety.allergies and not person.safety.forbids_alcohol:
        return items
    without_facts = replace(person, facts=())
    drinkable: list[IndexedItem] = []
    for indexed in items:
        wine = to_wine(indexed.item)
        if may_be_shown(wine, without_facts):
            drinkable.append(indexed)
    return drinkable


def _without_excluded(
    found: Sequence[IndexedItem], request: Request
) -> list[IndexedItem]:
    """Return the items without those that a request excludes, such as "of mine, but no Merlot".

    If the request names a colour ("red sparkling"), items of another colour are excluded, too.
    """
    excluded_keys: set[str] = set()
    for name, field in EXCLUDABLE_FIELDS.items():
        values = request.values(f"without_{name}")
        if values:
            query = CellarQuery.model_validate({field: values})
            for indexed in search_cellar(found, query):
                excluded_keys.add(indexed.item.key)
    colours = request.values("colours")
    remaining: list[IndexedItem] = []
    for indexed in found:
        item = indexed.item
        colour = item.wine.get("colour")
        is_other_colour = bool(colours) and colour not in colours
        if is_other_colour or item.key in excluded_keys:
            continue
        remaining.append(indexed)
    return remaining


def _names_in(words: Sequence[str]) -> frozenset[str]:
    """Return the words that may be on a label, without numbers, which may be vintages."""
    identifying = list_identifying_words(" ".join(words))
    names = [word for word in identifying if not word.isdecimal()]
    return frozenset(names)


def _years_in(words: Sequence[str]) -> set[int]:
    """Return the numbers among the words that may be vintages."""
    years: set[int] = set()
    for word in words:
        # Digits of other scripts are decimal, too.
        is_number = word.isascii() and word.isdecimal()
        if is_number and int(word) in YEARS:
            years.add(int(word))
    return years


def _select_named(
    items: Sequence[IndexedItem],
    request: Request,
    names: frozenset[str],
    *,
    is_placed: bool,
) -> Sequence[IndexedItem]:
    """Return the items whose vintage and label have the years and the names of a request.

    If the names are on no label, they are ignored, because they may be other words ("please list").
    But if they are clearly names of wines, and the request names no place, no item fits.
    """
    years = _years_in(request.unread_words)
    if years:
        items = _select_vintages(items, years)
    if not names:
        return items
    named = select_named(items, names)
    if not named and _has_name(request) and not is_placed:
        return []
    return named or items


def _select_vintages(
    items: Sequence[IndexedItem], years: Collection[int]
) -> Sequence[IndexedItem]:
    """Return the items whose vintage is one of these years."""
    selected: list[IndexedItem] = []
    for indexed in items:
        vintage = indexed.item.wine.get("vintage")
        if vintage in years:
            selected.append(indexed)
    return selected


def _has_name(request: Request) -> bool:
    """Return whether words of a request are clearly names of wines, even if no bottle has them."""
    possible_names = list(request.owned_words)
    # In a language that capitalises all nouns, a capital letter does not mark a name.
    language = load_languages()[request.language]
    if not language.capitalises_nouns:
        possible_names += request.unknown_words
    if any(word[:1].isupper() for word in possible_names):
        return True
    # In "how many tignanello have I", the words beside "have I" say what to count.
    asks_for_count = "count" in request.cellar_words and not request.describes_wine
    return asks_for_count and bool(request.owned_words)


def _find_place(request: Request, items: Sequence[IndexedItem]) -> str:
    """Return the longest place of bottles that a message names, or an empty string.

    The message may name only a part of a place. A word with a digit is enough ("G33" of "Rack,
    G33"), and so is a part ("Rack") that the message does not use for something else.
    """
    text = _normalize_words(request.text)
    unread_words = " ".join(request.unread_words)
    unread_text = _normalize_words(unread_words)
    places = {indexed.item.place for indexed in items}
    named_places: set[str] = set()
    for place in places:
        for name in _list_names_of_place(place, unread_text):
            # A single character, such as "a", may be any word.
            if len(name) > 1 and f" {name} " in text:
                named_places.add(name)
    return max(named_places, key=len, default="")


def _list_names_of_place(place: str, unread_text: str) -> Iterator[str]:
    """Yield a place, each of its words with a digit, and its parts that are in the unread text."""
    whole_place = normalize(place)
    yield whole_place
    for word in whole_place.split():
        if any(map(str.isdigit, word)):
            yield word
    for part in PLACE_SEPARATORS.split(place):
        name = normalize(part)
        if f" {name} " in unread_text:
            yield name


def _normalize_words(text: str) -> str:
    """Return a normalized text between spaces, so that a search finds only whole words in it."""
    return f" {normalize(text)} "


def _describe(found: Sequence[IndexedItem], asked: AskedBottles) -> str:
    """Return the answer that lists the items, or says that there are none."""
    if not found:
        return translate("cellar_no_match")
    items = [indexed.item for indexed in found]
    if asked.is_for_tonight:
        heading = translate("cellar_tonight")
        return format_items(items[:MAX_TONIGHT], this_year(), heading)
    if asked.readiness == "soon":
        heading = translate("cellar_urgent")
        return format_items(items, this_year(), heading, MAX_ROWS)
    count = sum(item.count for item in items)
    bottles = count_bottles(count, len(items))
    heading = translate("cellar_found", bottles=bottles)
    return format_items(items, this_year(), heading, MAX_ROWS)


def _find_drunk(request: Request, person: Person) -> OwnBottles:
    """Return the ratings and notes of the drunk bottles that a request names.

    If its names fit no drunk bottle, return those of all.
    """
    words = list(request.unread_words)
    words += request.values("grapes")
    words += request.values("regions")
    names = " ".join(_names_in(words))
    drinks = find_drinks(person.drinks, names)
    if not drinks:
        drinks = list(person.drinks)
    years = _years_in(request.unread_words)
    if years:
        drinks = [drink for drink in drinks if drink.wine.get("vintage") in years]
    if not drinks:
        none_text = translate("cellar_history_none")
        return OwnBottles(none_text)
    heading = translate("cellar_history")
    lines = format_drinks(drinks[:MAX_OPENED])
    return OwnBottles(f"{heading}\n{lines}")
