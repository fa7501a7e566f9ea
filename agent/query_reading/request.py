"""Read a message as a request for wine. The tables say which words are filters and dishes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from agent import size_limits
from agent.i18n import country_of_language
from agent.languages import load_languages
from agent.numerals import find_number_words
from agent.query_reading.allergies import AllergyReader
from agent.query_reading.exclusions import (
    CLAUSE_ENDS,
    NOUN_FIELDS,
    ExclusionReader,
    is_described,
    split_clauses,
)
from agent.query_reading.language_words import load_grammar
from agent.query_reading.names import get_display_name
from agent.query_reading.own_bottles import OwnBottlesReader
from agent.query_reading.phrases import Phrase, detect_language, find_phrases
from agent.query_reading.prices import PRICE_FIELDS, read_price
from agent.query_reading.tables import Dish, load_dish_names, load_dishes
from agent.query_reading.tokens import expand_not, get_stem, tokenize
from agent.query_reading.unknown_words import UnknownWordsReader
from agent.query_reading.wished_aromas import read_wished_aromas
from agent.text import fold

SCALES: Final[Mapping[str, Sequence[str]]] = {
    "sweetness": (
        "bone_dry",
        "dry",
        "off_dry",
        "medium",
        "sweet",
        "luscious",
    ),
    "bodies": ("light", "medium_light", "medium", "medium_full", "full"),
    "tannins": ("none", "low", "medium", "high"),
    "acidities": ("none", "low", "medium", "high"),
}
"""The steps of each scale, from the lowest to the highest."""
STEPS_IF_NOT_SWEET: Final = ("bone_dry", "dry")
STEPS_IF_NOT_DRY: Final = ("off_dry", "medium")
LIST_FIELDS: Final = (
    "styles",
    "colours",
    *SCALES,
    "grapes",
    "countries",
    "regions",
    "text",
)
"""The filters that are lists of values, in the order in which they are described to the user."""
STYLES_OF_ANY_COLOUR: Final = frozenset(
    {"sparkling", "fortified", "sweet", "alcohol_free"}
)
"""Styles whose wines may be red, white or rosé."""
KIND_FIELDS: Final = frozenset({"styles", "grapes", "regions", "colour"})
"""An excluded phrase with such a field excludes no tastes: "no ice wine" allows sweet wines."""
MAX_VALUES: Final = 12
"""The maximum number of values of one filter, and of dishes."""
MAX_NAME_TOKENS: Final = 4
"""The most tokens of a message that may be only the name of a wine."""
CACHED_REQUESTS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for wine. What the message does not mention is empty."""

    text: str = ""
    language: str = "en"
    filters: Mapping[str, Any] = field(default_factory=dict)
    """The filters by their names in `WineQuery`.

    Here `text` and `without_text` are lists of tastes.
    """
    dishes: Mapping[str, Dish] = field(default_factory=dict)
    """The dishes by their names in the message."""
    allergies: tuple[str, ...] = ()
    """The allergens to which somebody is allergic. `without_allergens` contains them, too."""
    is_gift: bool = False
    """Whether the wine is to be a present."""
    names_occasion: bool = False
    """Whether the message names an occasion, such as Christmas or a birthday."""
    price_bottles: int = 0
    """The number of bottles if the price is the share of one in a price for several, or 0."""
    is_price_approximate: bool = False
    """Whether the limits of the price are those of one amount that was said with "about"."""
    name: str = ""
    """The name of a wine or a producer, if the message has nothing else to search for."""
    wants_others: bool = False
    """Whether the message asks for other wines than those shown before."""
    unknown_words: tuple[str, ...] = ()
    """Words missing from the tables that may be a dish or a name."""
    unknown_count: int = 0
    """The number of words missing from the tables, of MIN_UNKNOWN_LETTERS or more."""
    is_question: bool = False
    """Whether the message asks for knowledge rather than for a wine."""
    asks_how_to_serve: bool = False
    """Whether the message asks how to serve a wine, when, or how long an unopened one keeps."""
    asks_why: bool = False
    is_about_wine: bool = False
    unread_words: tuple[str, ...] = ()
    """The words that are neither in a table nor common, and the numbers that are no prices."""
    cellar_words: frozenset[str] = frozenset()
    """The words of the message about the user's bottles.

    The values are own, tonight, count, now, soon, past, wait, drunk and opened.
    """
    owned_words: tuple[str, ...] = ()
    """Words beside "my", "do I have" or "how many" that are in no table. They may be names."""
    position: int = 0
    """The position of the shown wine that is meant: 2 for the second, -1 for the last.

    It is 0 if the message means none by its position.
    """
    comparisons: tuple[str, ...] = ()
    """The differences to the wines shown: "cheaper", "drier". "like" means similar."""
    states_taste: bool = False
    """Whether the message says what the user loves: "I love Riesling"."""
    states_dislike: bool = False
    """Whether the message says what the user dislikes: "I can't stand Chardonnay"."""
    disliked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The filters that exclude what the user has said to dislike. A new wish keeps them."""
    asks_for_wine: bool = False
    """Whether the message asks for a wine: "recommend", "I need"."""
    states_purchase: bool = False
    """Whether the message says that the user bought wine, and asks for nothing."""
    is_greeting: bool = False
    is_thanks: bool = False
    asks_to_show: bool = False
    """Whether the message asks to see a wine or to hear more of it: "show me the Barolo"."""

    @property
    def describes_wine(self) -> bool:
        """Return whether the message contains something to search for."""
        return bool(self.filters or self.dishes or self.name or self.is_gift)

    @property
    def is_empty(self) -> bool:
        """Return whether the message contains no wish."""
        return not self.describes_wine and not self.wants_others

    @property
    def inclusions(self) -> dict[str, tuple[str, ...]]:
        """Return the filters in `LIST_FIELDS`. A wine should have one of the values of each."""
        inclusions: dict[str, tuple[str, ...]] = {}
        for name in LIST_FIELDS:
            if name in self.filters:
                inclusions[name] = self.filters[name]
        return inclusions

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a list filter, or an empty tuple."""
        return tuple(self.filters.get(name, ()))


def read_request(text: str, default_language: str = "en") -> Request:
    """Return the request of a message.

    The language of the message is the default, unless it is clearly another.
    """
    message = text[: size_limits.MESSAGE_CHARS]
    language = detect_language(message, default_language)
    country = country_of_language(language)
    return _read_request(message, language, country)


def is_clear_request(text: str, default_language: str = "en") -> bool:
    """Return whether a message clearly describes a wine or a dish. A name alone does not."""
    request = read_request(text, default_language)
    return bool(request.filters or request.dishes)


@lru_cache(CACHED_REQUESTS)
def _read_request(text: str, language: str, country: str) -> Request:
    reader = _MessageReader(text, language, country)
    return replace(reader.read(), text=text)


class _MessageReader:
    """Reads a message by its phrases. The field "role" says what a phrase does in a sentence."""

    def __init__(self, text: str, language: str, country: str) -> None:
        self.text = expand_not(text)
        self.language = language
        self.tokens = tokenize(self.text)
        all_phrases = find_phrases(self.tokens, language, country)
        phrases = read_wished_aromas(self.tokens, all_phrases, language)
        price = read_price(self.tokens, phrases)
        self.price = price
        self.phrases = _drop_price(phrases, price.indices)
        clauses = split_clauses(self.tokens, self.phrases)
        exclusions = ExclusionReader(self.tokens, self.phrases, clauses)
        self.excluded = exclusions.find_excluded()
        allergies = AllergyReader(self.tokens, self.phrases, clauses)
        self.allergens = allergies.find_allergens()
        self.included = self._find_included()
        self.roles: set[str] = set()
        for phrase in self.phrases:
            self.roles.update(phrase.values("role"))
        known_indices = {*price.indices, *self._find_known()}
        self.unknown_words = UnknownWordsReader(
            tokens=self.tokens,
            known_indices=known_indices,
            language=self.language,
        )

    def _find_known(self) -> set[int]:
        """Return the indices of the words that are in phrases or express numbers."""
        known: set[int] = set()
        for phrase in self.phrases:
            if not phrase.has_role("estate"):  # "Château" is a part of a name
                known.update(phrase.indices)
        words = [fold(token.written) for token in self.tokens]
        for number in find_number_words(words):
            indices = range(number.start, number.end)
            known.update(indices)
        return known

    def _find_included(self) -> list[Phrase]:
        """Return the phrases that are not excluded, and are not the noun of what is excluded.

        "No oaky Chardonnay" asks for a Chardonnay. But "a Riesling, no oaky Chardonnay" does not.
        """
        included: list[Phrase] = []
        described: list[Phrase] = []
        for phrase in self.phrases:
            if phrase in self.excluded:
                continue
            if is_described(phrase, self.excluded):
                described.append(phrase)
            else:
                included.append(phrase)
        if not described:
            return included
        names_kind = any(phrase.has_field(NOUN_FIELDS) for phrase in included)
        if not names_kind:
            included += described
            included.sort(key=attrgetter("start"))
        return included

    def read(self) -> Request:
        """Return the request of the message."""
        unknown = self.unknown_words.find_unknown()
        dishes_or_names = self.unknown_words.list_dishes_or_names(unknown)
        distinct_words = tuple(dict.fromkeys(dishes_or_names))
        has_question_word = "question" in self.roles
        own_bottles = OwnBottlesReader(
            tokens=self.tokens,
            included=self.included,
            language=self.language,
            is_question=has_question_word,
        )
        request = Request(
            language=self.language,
            filters=self._read_filters(),
            dishes=self._read_dishes(),
            allergies=self._list_allergies(),
            is_gift="gift" in self.roles,
            names_occasion="occasion" in self.roles,
            price_bottles=self.price.bottles,
            is_price_approximate=self.price.is_approximate,
            wants_others=self._wants_others(),
            unknown_words=distinct_words[:MAX_VALUES],
            unknown_count=self.unknown_words.count_long(unknown),
            asks_how_to_serve=self._asks_how_to_serve(),
            asks_why="why" in self.roles,
            is_about_wine=not self.roles.isdisjoint({"wine", "wish"}),
            unread_words=tuple(self.unknown_words.get_words(unknown)),
            cellar_words=own_bottles.read_cellar_words(),
            owned_words=tuple(own_bottles.list_owned_words(unknown)),
            position=self._read_position(),
            comparisons=tuple(self._list_values("comparison")),
            states_taste="loves" in self.roles,
            states_dislike=self._states_dislike(),
            asks_for_wine="wish" in self.roles,
            states_purchase=self._states_purchase(),
            is_greeting="hello" in self.roles,
            is_thanks="thanks" in self.roles,
            asks_to_show="show" in self.roles,
        )
        # The name depends on the filters, the question on both.
        name = self._find_wine_name(request)
        request = replace(request, name=name)
        is_question = self._is_question(request)
        return replace(request, is_question=is_question)

    def _read_filters(self) -> dict[str, Any]:
        """Return the filters, named as in `Request.filters`."""
        lists = self._read_list_filters()
        lists["without_allergens"] = self._list_avoided_allergens()
        filters = drop_empty(lists) | self.price.filters
        usual_prices = self._list_values("usual_max_price")  # of words like "cheap"
        if usual_prices and not self.price.filters:
            filters["max_price"] = min(map(float, usual_prices))
        strengths = self._list_values("max_abv")
        if strengths:
            filters["max_abv"] = min(map(float, strengths))
        for name in ("order", "offer"):
            values = self._list_values(name)
            if values:
                filters[name] = values[0]
        return filters

    def _is_abstinent(self) -> bool:
        """Return whether the message says of somebody: "I don't drink".

        In "I don't drink red wine", a word follows that says what.
        """
        for phrase in self.phrases:
            if not phrase.has_role("abstinent"):
                continue
            if phrase.end == len(self.tokens):
                return True
            if self.tokens[phrase.end].stem in {",", *CLAUSE_ENDS}:
                return True
        return False

    def _list_values(self, field: str) -> list[str]:
        """Return the values of a field in the included phrases, without duplicates."""
        values: list[str] = []
        for phrase in self.included:
            values += phrase.values(field)
        return list(dict.fromkeys(values))

    def _read_list_filters(self) -> dict[str, list[str]]:
        """Return the included values of each list field, and the excluded values as `without_…`."""
        included = self._list_included()
        excluded = self._list_excluded()
        opposites = _opposite_steps(self.excluded)
        filters: dict[str, list[str]] = {}
        for name in LIST_FIELDS:
            unwanted = excluded[name]
            opposite = opposites.get(name, ())
            wanted = [*opposite, *included[name]]
            filters[name] = [value for value in wanted if value not in unwanted]
            filters[f"without_{name}"] = unwanted
        return filters

    def _list_included(self) -> dict[str, list[str]]:
        """Return the included values of each list field.

        "Red" alone is a style; in "red sparkling" a colour; in "red or sparkling" a style again.
        """
        included = {name: self._list_values(name) for name in LIST_FIELDS}
        is_alcohol_free = "alcohol_free" in included["styles"] or self._is_abstinent()
        if is_alcohol_free:
            included["styles"] = ["alcohol_free"]
        styles = included["styles"]
        has_style_of_any_colour = not STYLES_OF_ANY_COLOUR.isdisjoint(styles)
        for phrase in self.included:
            colours = phrase.values("colour")
            is_alternative = self._stands_beside_or(phrase) and not is_alcohol_free
            if is_alternative or not has_style_of_any_colour:
                styles += colours
            else:
                included["colours"] += colours
        return included

    def _stands_beside_or(self, phrase: Phrase) -> bool:
        stem_before = get_stem(self.tokens, phrase.start - 1)
        stem_after = get_stem(self.tokens, phrase.end)
        or_words = load_grammar().or_words
        return stem_before in or_words or stem_after in or_words

    def _list_excluded(self) -> dict[str, list[str]]:
        """Return the excluded values of each list field. Many fields have none."""
        excluded: dict[str, list[str]] = {}
        for name in LIST_FIELDS:
            excluded[name] = []
        for phrase in self.excluded:
            fields = {"styles", "countries", "text"}
            if phrase.has_field({"regions", "grapes"}):
                # "No Chablis" excludes only the region, not its country or colour.
                fields = {"regions", "grapes"}
            for name in fields:
                excluded[name] += phrase.values(name)
            if not phrase.has_field(fields):
                excluded["styles"] += phrase.values("colour")
        return excluded

    def _read_dishes(self) -> dict[str, Dish]:
        """Return the dishes by their names in the message. Sides count only without a main dish."""
        mains: dict[str, Dish] = {}
        sides: dict[str, Dish] = {}
        for phrase in self.included:
            row_numbers = phrase.values("dish")
            if not row_numbers or phrase in self.allergens:
                continue
            row_number = int(row_numbers[0])
            dish = load_dishes()[row_number]
            name = self._get_dish_name(phrase)
            if dish.is_side:
                sides[name] = dish
            else:
                mains[name] = dish
        dishes = mains or sides
        first_dishes = list(dishes.items())[:MAX_VALUES]
        return dict(first_dishes)

    def _get_dish_name(self, phrase: Phrase) -> str:
        """Return the name of a dish as the message writes it, without an article before it.

        A noun gets its capital letter. For an inflected adjective, return the name that the table
        of dishes has for its row.
        """
        link_words = load_grammar().link_words
        start = phrase.start
        # "Des pâtes" is a phrase with its article, which tells it from "pâté".
        while start < phrase.end - 1 and self.tokens[start].stem in link_words:
            start += 1
        first = self.tokens[start]
        last = self.tokens[phrase.end - 1]
        written = self.text[first.start : last.end]
        nouns_have_capitals = load_languages()[self.language].capitalises_nouns
        if first.is_capitalised or not nouns_have_capitals:
            return written
        stems = tuple(token.stem for token in self.tokens[phrase.start : phrase.end])
        name = load_dish_names(self.language).get(stems, "")
        if name and name[0].isupper():
            return name
        is_of_another_language = not name and not phrase.is_compound
        if is_of_another_language:
            return written[0].upper() + written[1:]
        # In "zu thailändischem Essen", an inflected adjective says what is eaten.
        row_numbers = phrase.values("dish")
        return get_display_name("dish", row_numbers, self.language)

    def _list_avoided_allergens(self) -> list[str]:
        """Return the allergens to avoid: those of an allergy, and those that are excluded."""
        allergens = list(self._list_allergies())
        for phrase in self.phrases:
            allergens += phrase.values("without_allergens")  # "vegan" needs no negation
        for phrase in self.excluded:
            # "No fish tonight" is about the dish; "a red without egg" is about the wine.
            excluded = phrase.values("allergen")
            is_dish = bool(phrase.values("dish"))
            if "fish" in excluded and is_dish:
                continue
            allergens += excluded
        return allergens

    def _states_dislike(self) -> bool:
        """Return whether the message says what the user dislikes.

        It says so in one phrase ("can't stand"), or denies a liking ("mag … nicht").
        """
        return "dislikes" in self.roles or self.roles.issuperset({"likes", "not"})

    def _states_purchase(self) -> bool:
        """Return whether the message says that wine was bought, without a dish or a question."""
        if "bought" not in self.roles:
            return False
        asks = self.roles & {"wish", "question", "have"}
        if asks:
            return False
        return not self._read_dishes()

    def _asks_how_to_serve(self) -> bool:
        """Return whether the message asks how to serve a wine, when, or how long it keeps."""
        if "opened" in self.roles:
            return False
        asks_how_long = self.roles.issuperset({"how_long", "keep"})
        asks_to_serve = not self.roles.isdisjoint({"serve", "temperature"})
        return asks_how_long or asks_to_serve

    def _list_allergies(self) -> tuple[str, ...]:
        """Return what somebody is said to be allergic to."""
        allergies: list[str] = []
        for phrase in self.allergens:
            allergies += phrase.values("allergen")
        return tuple(dict.fromkeys(allergies))

    def _wants_others(self) -> bool:
        """Return whether the message asks for other wines than those shown before.

        "Champagne or another sparkling" does not: after "or", "another" only names an alternative.
        """
        or_words = load_grammar().or_words
        for phrase in self.phrases:
            if not phrase.has_role("others"):
                continue
            stem_before = get_stem(self.tokens, phrase.start - 1)
            if stem_before not in or_words:
                return True
        return False

    def _read_position(self) -> int:
        """Return the position of the shown wine that is meant or compared with, or 0.

        "Have you got another one like the second?" asks for another wine, without a comparison.
        """
        positions = self._list_values("position")
        if not positions:
            return 0
        is_about_others = "have" in self.roles and "show" not in self.roles
        is_compared = bool(self._list_values("comparison"))
        if is_about_others and not is_compared:
            return 0
        return int(positions[0])

    def _find_wine_name(self, request: Request) -> str:
        """Return the longest run of capitalised unknown words if it may name a wine, or "".

        A message with a filter or a dish has no name, because it has something else to search for.
        """
        if not request.is_empty:
            return ""
        is_short = len(self.tokens) <= MAX_NAME_TOKENS
        if not is_short and not request.is_about_wine:
            return ""
        runs = self.unknown_words.list_capitalised_runs()
        words = max(runs, key=len)
        # A single word must look like a name. It may have a capital because it begins the message.
        name = " ".join(words)
        if len(words) == 1 and name not in request.unknown_words:
            return ""
        return name

    def _is_question(self, request: Request) -> bool:
        """Return whether the message asks for knowledge: "What is …", without a dish or a price.

        "Why …" asks for it in any case.
        """
        if "question" not in self.roles:
            return False
        asks_to_explain = self.roles & {"why", "difference"}
        if asks_to_explain:
            return True
        # "What is your cheapest red?" asks for a wine as well.
        names_price = not PRICE_FIELDS.isdisjoint(request.filters)
        if request.dishes or names_price or "order" in request.filters:
            return False
        is_wish_for_wine = "wish" in self.roles and request.inclusions
        return not is_wish_for_wine


def _drop_price(
    phrases: Sequence[Phrase], price_indices: frozenset[int]
) -> list[Phrase]:
    """Return the phrases that are no part of the price.

    Negations stay: in "nothing over 20 euros or Merlot", "nothing" is part of the price and
    excludes Merlot.
    """
    kept: list[Phrase] = []
    for phrase in phrases:
        is_in_price = not price_indices.isdisjoint(phrase.indices)
        if not is_in_price or phrase.has_role("not"):
            kept.append(phrase)
    return kept


def drop_empty(fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the fields that have values. A field has at most MAX_VALUES, and none twice."""
    filled: dict[str, Any] = {}
    for name, values in fields.items():
        distinct = tuple(dict.fromkeys(values))
        if distinct:
            filled[name] = distinct[:MAX_VALUES]
    return filled


def _opposite_steps(excluded: Sequence[Phrase]) -> dict[str, list[str]]:
    """Return the steps that remain of each scale of which the message excludes some.

    "Not sweet" means dry, and not every other step. "Not dry" asks for no dessert wine.
    """
    tastes: list[Phrase] = []
    for phrase in excluded:
        if not phrase.has_field(KIND_FIELDS):
            tastes.append(phrase)
    opposites: dict[str, list[str]] = {}
    for name, scale in SCALES.items():
        unwanted: set[str] = set()
        for phrase in tastes:
            unwanted.update(phrase.values(name))
        if not unwanted:
            continue
        steps = scale
        if name == "sweetness" and "sweet" in unwanted:
            steps = STEPS_IF_NOT_SWEET
        elif name == "sweetness" and "dry" in unwanted:
            steps = STEPS_IF_NOT_DRY
        opposites[name] = [step for step in steps if step not in unwanted]
    return opposites
