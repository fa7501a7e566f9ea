"""Read a message as a request for wine: filters, dishes, and references to wines shown before."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, groupby, pairwise
from typing import Any, Final, NamedTuple

from agent import size_limits
from agent.numerals import parse_number
from agent.query_reading.allergies import AllergyReader
from agent.query_reading.words import (
    CLAUSE_ENDS,
    DISH_PREPOSITIONS,
    LINK_WORDS,
    OR_NOR_WORDS,
    OR_WORDS,
    Dish,
    Phrase,
    Token,
    detect_message_language,
    find_phrases,
    load_dishes,
    tokenize,
)
from agent.text import pattern

SCALES: Final[Mapping[str, Sequence[str]]] = {
    "sweetness": ("bone_dry", "dry", "off_dry", "medium", "sweet", "luscious"),
    "bodies": ("light", "medium_light", "medium", "medium_full", "full"),
    "tannins": ("none", "low", "medium", "high"),
    "acidities": ("none", "low", "medium", "high"),
}
"""The steps of each scale, from the lowest to the highest."""
LIST_FIELDS: Final = ("styles", "colours", *SCALES, "grapes", "countries", "regions", "text")
"""The filters that are lists of values, in the order in which they are described to the user."""
STYLES_OF_ANY_COLOUR: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
"""Styles whose wines may be red, white or rosé."""
KIND_FIELDS: Final = frozenset({"styles", "grapes", "regions", "colour"})
"""A negated phrase with such a field excludes no tastes: "no ice wine" allows other sweet wines."""
MAX_NEGATION_DISTANCE: Final = 5
"""The maximum number of tokens between a negation and what it excludes."""
MIN_UNKNOWN_LETTERS: Final = 4
"""Shorter unknown words count only if they look like names."""
STEPS_IF_NOT_SWEET: Final = ("bone_dry", "dry", "off_dry")
COMPARISON_CUES: Final = frozenset(
    {"cheaper", "dearer", "lighter", "fuller", "drier", "sweeter", "like"}
)
"""The cues that compare with the wines already shown."""
MAX_VALUES: Final = 6
CACHED_REQUESTS: Final = 256
MAX_NAME_TOKENS: Final = 4
"""A longer message is not taken for just the name of a wine."""
MIN_QUESTION_WORDS: Final = 4
PRICE_FIELDS: Final = frozenset({"min_price", "max_price", "currency"})
UNKNOWN_CURRENCY: Final = "?"
"""Stands for every currency that cannot be converted."""
MAX_AMOUNT: Final = 100_000
YEARS: Final = range(1900, 2101)
APPROXIMATE_FACTORS: Final = 0.7, 1.3
"""A price of "about 20" ranges from 0.7 * 20 to 1.3 * 20."""
FILLER_WORDS: Final = frozenset(
    "d de di of van the a an i ai le la les l los las der die den das dem il lo is my o um uns so "
    "como tipo ist est es e c ma mein meine mi mio mijn het non mehr als que than".split()
)
"""The words that may stand between an amount and its limit or its currency."""
LIMIT_ROLES: Final = ("max", "min", "about", "between")
RANGE: Final = pattern("[LBT]?_{0,2}C?N_?C?[^CN]?[JT][^CN]?C?N(?:_?C)?")
AMOUNT: Final = pattern("[LBT]?_{0,2}C?N(?:_?C)?(?:_?[AB])?K?")
"""Patterns of prices like "from 20 to 30 euros" (`LNJNC`), after one symbol replaces each part:

- `N` a number, `C` a currency, `K` a unit other than money (so the number is not a price)
- `L` a limit of the number after it, `A` of the number before it, `B` of either
- `J` joins two numbers to a range, `T` ("till") also limits the number after it
- `_` a filler word, `.` anything else
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for wine; fields that the message does not mention are empty."""

    text: str = ""
    language: str = "en"
    filters: Mapping[str, Any] = field(default_factory=dict)
    """Named as in `WineQuery`, but `text` and `without_text` are lists of tastes."""
    dishes: Mapping[str, Dish] = field(default_factory=dict)
    """The dishes by their names in the message."""
    cues: frozenset[str] = frozenset()
    """References to the wines shown before: COMPARISON_CUES, "other" (wines) and "why" (these)."""
    ordinals: tuple[int, ...] = ()
    """Positions among the wines shown last, from 1 on; -1 is the last."""
    name: str = ""
    """The name of a wine or a producer, if the message has nothing else to search for."""
    unknown_words: tuple[str, ...] = ()
    """Words missing from the word lists that may be a dish or a name."""
    unknown_count: int = 0
    """The number of words missing from the word lists, of MIN_UNKNOWN_LETTERS or more."""
    is_question: bool = False
    is_about_wine: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the message contains nothing to search for."""
        return not (self.describes_wine or self.cues or self.ordinals)

    @property
    def describes_wine(self) -> bool:
        """Return whether the message describes a wine independently of those shown before."""
        return bool(self.filters or self.dishes or self.name)

    @property
    def inclusions(self) -> dict[str, tuple[str, ...]]:
        """Return the filters in `LIST_FIELDS`; a wine should have one of the values of each."""
        return {name: self.filters[name] for name in LIST_FIELDS if name in self.filters}

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a list filter, or an empty tuple."""
        return tuple(self.filters.get(name, ()))


def read_request(text: str, default_language: str = "en") -> Request:
    """Return the request of a message, in `default_language` unless it is clearly in another."""
    return _read_request(text[: size_limits.MESSAGE_CHARS], default_language)


def is_clear_request(text: str, default_language: str = "en") -> bool:
    """Return whether a message clearly describes a wine or a dish; a name alone does not."""
    request = read_request(text, default_language)
    return bool(request.filters or request.dishes)


@lru_cache(CACHED_REQUESTS)
def _read_request(text: str, default_language: str) -> Request:
    language = detect_message_language(text, default_language)
    return replace(_MessageReader(text, language).read(), text=text)


class _PricePart(NamedTuple):
    """A phrase, or a token outside of phrases, with its symbol in a price pattern."""

    symbol: str
    indices: range
    number: float = 0
    currency: str = ""
    limit: str = ""


def _read_price(
    tokens: Sequence[Token], phrases: Sequence[Phrase]
) -> tuple[dict[str, Any], set[int]]:
    """Return the price filters of a message, and the indices of the tokens that express them.

    If the currency cannot be converted, the only filter is `currency: UNKNOWN_CURRENCY`.
    """
    parts = list(_split_parts(tokens, phrases))
    symbols = "".join(part.symbol for part in parts)
    price: dict[str, Any] = {}
    used: set[int] = set()
    # Single amounts are only considered if there is no range; later prices replace earlier ones.
    for price_pattern in (RANGE, AMOUNT):
        for match in price_pattern.finditer(symbols):
            matched_parts = parts[match.start() : match.end()]
            if filters := _price_filters(matched_parts):
                price |= filters
                used.update(*(part.indices for part in matched_parts))
        if price:
            break
    if price.get("currency") == UNKNOWN_CURRENCY:
        price = {"currency": UNKNOWN_CURRENCY}
    elif {"min_price", "max_price"} <= price.keys():
        price["min_price"], price["max_price"] = sorted((price["min_price"], price["max_price"]))
    return price, used


def _split_parts(tokens: Sequence[Token], phrases: Sequence[Phrase]) -> Iterator[_PricePart]:
    """Yield the phrases of a message and the tokens outside of them, in order."""
    phrases_by_start = {phrase.start: phrase for phrase in phrases}
    index = 0
    while index < len(tokens):
        phrase = phrases_by_start.get(index)
        part = _read_phrase(phrase) if phrase else _read_token(tokens[index], index)
        yield part
        index = part.indices.stop


def _read_token(token: Token, index: int) -> _PricePart:
    indices = range(index, index + 1)
    if token.written[0].isdecimal():
        number = parse_number(token.written)
        if number <= MAX_AMOUNT:
            return _PricePart("N", indices, number)
    return _PricePart("_" if token.stem in FILLER_WORDS else ".", indices)


def _read_phrase(phrase: Phrase) -> _PricePart:
    if numbers := phrase.values("number"):
        number, _, currency = numbers[0].partition(" ")  # such as "20 EUR"
        return _PricePart("N", phrase.indices, float(number), currency)
    if currencies := phrase.values("currency"):
        return _PricePart("C", phrase.indices, currency=currencies[0])
    if phrase.has_role("unknown_currency"):
        return _PricePart("C", phrase.indices, currency=UNKNOWN_CURRENCY)
    if phrase.has_role("other_unit") or phrase.has_role("percent"):
        return _PricePart("K", phrase.indices)
    limit_of_next = next((role for role in LIMIT_ROLES if phrase.has_role(role)), "")
    limit_of_previous = next((role for role in LIMIT_ROLES if phrase.has_role(f"{role}_after")), "")
    if phrase.has_role("range_joint"):
        symbol = "T" if limit_of_next else "J"
    elif limit_of_next:
        symbol = "B" if limit_of_previous else "L"
    else:
        symbol = "A" if limit_of_previous else "."
    return _PricePart(symbol, phrase.indices, limit=limit_of_next or limit_of_previous)


def _price_filters(parts: Sequence[_PricePart]) -> dict[str, Any]:
    """Return the filters of one or two amounts; empty if they do not seem to be prices."""
    low, *higher = sorted(part.number for part in parts if part.symbol == "N")
    currency = next((part.currency for part in parts if part.currency), "")
    # The last limit counts: "around 120 at most".
    limit = next((part.limit for part in reversed(parts) if part.limit), "")
    may_be_price = bool(higher) or (low not in YEARS and parts[-1].symbol != "K")
    if not (currency or (limit and may_be_price)):
        return {}
    if higher:
        if currency == UNKNOWN_CURRENCY:
            return {}  # AMOUNT finds it
        filters = {"min_price": low, "max_price": higher[-1]}
    elif limit == "about":
        lower, upper = (round(low * factor, 2) for factor in APPROXIMATE_FACTORS)
        filters = {"min_price": lower, "max_price": upper}
    else:  # without a limit, the amount is a maximum
        filters = {"min_price" if limit == "min" else "max_price": low}
    return filters | ({"currency": currency} if currency else {})


class _MessageReader:
    """Reads a message from its phrases; the field "role" says what a phrase does in a sentence."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text.replace("n't", " not").replace("n’t", " not")  # so that "not" is a token
        self.language = language
        self.tokens = tokenize(self.text)
        phrases = find_phrases(self.tokens, language)
        self.price, used = _read_price(self.tokens, phrases)
        # In "nothing over 20 euros or Merlot", "nothing" is part of the price and excludes Merlot.
        self.phrases = [
            item for item in phrases if item.has_role("not") or used.isdisjoint(item.indices)
        ]
        self.known_indices = used.union(*(phrase.indices for phrase in self.phrases))
        self.clauses = [*self._split_clauses()]
        self.negated = [*self._find_negated()]
        reader = AllergyReader(self.tokens, self.phrases, self.clauses)
        self.allergens = reader.find_allergens()
        self.positive = [phrase for phrase in self.phrases if phrase not in self.negated]
        self.roles = {role for phrase in self.phrases for role in phrase.values("role")}

    def read(self) -> Request:
        """Return the request of the message."""
        others = sorted({*range(len(self.tokens))} - self.known_indices)
        words = (index for index in others if self.tokens[index].is_alphanumeric)
        unknown = [index for index in words if self._stem(index) not in DISH_PREPOSITIONS]
        request = Request(
            language=self.language,
            filters=self._filters(),
            dishes=self._dishes(),
            cues=frozenset(self._values("cue")),
            ordinals=tuple(map(int, self._values("ordinal"))),
            unknown_words=tuple(dict.fromkeys(self._dishes_or_names(unknown)))[:MAX_VALUES],
            unknown_count=sum(len(self._stem(index)) >= MIN_UNKNOWN_LETTERS for index in unknown),
            is_about_wine=bool({"wine", "wish"} & self.roles),
        )
        # The name depends on the filters, the question on both.
        request = replace(request, name=self._wine_name(request))
        return replace(request, is_question=self._is_question(request))

    def _filters(self) -> dict[str, Any]:
        """Return the filters, named as in `Request.filters`."""
        lists = self._list_filters() | {"without_allergens": self._allergens()}
        filters = drop_empty(lists) | self.price
        if not self.price and (prices := self._values("usual_max_price")):
            filters["max_price"] = min(map(float, prices))
        if strengths := self._values("max_abv"):
            filters["max_abv"] = min(map(float, strengths))
        if orders := self._values("order"):
            filters["order"] = orders[0]
        return filters

    def _values(self, field: str) -> list[str]:
        """Return the values of a field in the positive phrases, without duplicates."""
        values = (value for phrase in self.positive for value in phrase.values(field))
        return list(dict.fromkeys(values))

    def _stem(self, index: int) -> str:
        """Return the stem of a token, or an empty string outside of the message."""
        return self.tokens[index].stem if 0 <= index < len(self.tokens) else ""

    def _split_clauses(self) -> Iterator[range]:
        """Yield the indices of the tokens of each clause; "but" begins a new one."""
        ends = {index + 1 for index, token in enumerate(self.tokens) if token.stem in CLAUSE_ENDS}
        buts = {phrase.start for phrase in self.phrases if phrase.has_role("but")}
        for start, end in pairwise(sorted({0, len(self.tokens), *ends, *buts})):
            yield range(start, end)

    def _find_negated(self) -> Iterator[Phrase]:
        """Yield the excluded phrases: after a negation, or else before it ("Merlot nicht")."""
        for indices in self.clauses:
            clause = [phrase for phrase in self.phrases if phrase.start in indices]
            for index, phrase in enumerate(clause):
                is_negation = phrase.has_role("not")
                following, preceding = clause[index + 1 :], clause[:index]
                negated = self._negated_by(phrase, following) if is_negation else []
                if not negated and (is_negation or phrase.has_role("not_after")):
                    negated = self._negated_by(phrase, preceding[::-1])
                yield from negated

    def _negated_by(self, negation: Phrase, candidates: Sequence[Phrase]) -> list[Phrase]:
        """Return the nearest candidate with `_named_fields`, and those that LINK_WORDS join to it.

        The candidates are the other phrases of the clause, the nearest first.
        """
        negated: list[Phrase] = []
        for phrase in candidates:
            if not _named_fields(phrase):
                if phrase.has_role("not") or phrase.has_role("wish"):
                    break
                continue
            nearer = negated[-1] if negated else negation
            first, second = sorted((nearer, phrase), key=lambda phrase: phrase.start)
            between = {token.stem for token in self.tokens[first.end : second.start]}
            if negated:
                has_or = bool(OR_NOR_WORDS & between)
                shares_field = bool(_named_fields(nearer) & _named_fields(phrase))
                is_negated = (has_or or shares_field) and between <= LINK_WORDS
            else:
                distance = second.start - first.end
                is_negated = distance <= MAX_NEGATION_DISTANCE and "," not in between
            if not is_negated:
                break
            negated.append(phrase)
        return negated

    def _list_filters(self) -> dict[str, list[str]]:
        """Return the included values of each list field, and the excluded as `without_…`."""
        included, excluded = self._included_values(), self._excluded_values()
        opposites = _opposite_steps(self.negated)
        for name, values in included.items():
            values[:0] = opposites.get(name, ())
            included[name] = [value for value in values if value not in excluded[name]]
        return included | {f"without_{name}": values for name, values in excluded.items()}

    def _included_values(self) -> dict[str, list[str]]:
        included = {name: self._values(name) for name in LIST_FIELDS}
        is_alcohol_free = "alcohol_free" in included["styles"]
        if is_alcohol_free:
            included["styles"] = ["alcohol_free"]
        has_open_colour = bool(STYLES_OF_ANY_COLOUR & {*included["styles"]})
        # "red" alone is a style; in "red sparkling" a colour; in "red or sparkling" a style again.
        for phrase in self.positive:
            neighbours = {self._stem(phrase.start - 1), self._stem(phrase.end)}
            is_style = not has_open_colour or (OR_WORDS & neighbours and not is_alcohol_free)
            included["styles" if is_style else "colours"] += phrase.values("colour")
        return included

    def _excluded_values(self) -> dict[str, list[str]]:
        excluded: dict[str, list[str]] = {name: [] for name in LIST_FIELDS}
        for phrase in self.negated:
            # "No Chablis" excludes only the region, not its country or colour.
            is_specific = phrase.values("regions") or phrase.values("grapes")
            names = ("regions", "grapes") if is_specific else ("styles", "countries", "text")
            for name in names:
                excluded[name] += phrase.values(name)
            if not any(map(phrase.values, names)):
                excluded["styles"] += phrase.values("colour")
        return excluded

    def _dishes(self) -> dict[str, Dish]:
        """Return the dishes by their names in the message; sides only if there is no main dish."""
        dishes: dict[str, Dish] = {}
        for phrase in self.positive:
            if phrase.values("dish") and phrase not in self.allergens:
                first, last = self.tokens[phrase.start], self.tokens[phrase.end - 1]
                dish = load_dishes()[int(phrase.values("dish")[0])]
                dishes[self.text[first.start : last.end]] = dish
        mains = {name: dish for name, dish in dishes.items() if not dish.is_side}
        return dict([*(mains or dishes).items()][:MAX_VALUES])

    def _allergens(self) -> list[str]:
        """Return the allergens to avoid: those of an allergy, and those that are negated."""
        negated = [phrase for phrase in self.negated if not phrase.values("dish")]
        # "vegan" rules out allergens without a negation.
        without = [phrase.values("without_allergens") for phrase in self.phrases]
        phrases = (*self.allergens, *negated)
        return [*chain(*without, *(phrase.values("allergen") for phrase in phrases))]

    def _dishes_or_names(self, unknown: Sequence[int]) -> Iterator[str]:
        """Yield unknown words that may be proper names or, after a preposition, dishes."""
        for index in unknown:
            token, word_before = self.tokens[index], self._stem(index - 1)
            may_be_dish = bool(DISH_PREPOSITIONS & {word_before, self._stem(index - 2)})
            starts_sentence = index == 0 or word_before in CLAUSE_ENDS
            has_capital = token.is_capitalised and not token.written.isupper()
            # In German every noun is capitalised.
            is_name = has_capital and not starts_sentence and self.language != "de"
            if is_name or (may_be_dish and len(token.stem) >= MIN_UNKNOWN_LETTERS):
                yield token.written

    def _wine_name(self, request: Request) -> str:
        """Return the longest run of capitalised unknown words as a name, if there is no filter."""
        may_be_name = request.is_about_wine or len(self.tokens) <= MAX_NAME_TOKENS
        if not (request.is_empty and may_be_name):
            return ""
        runs = groupby(
            enumerate(self.tokens),
            lambda item: item[0] not in self.known_indices and item[1].is_capitalised,
        )
        names = ([token.written for _, token in run] for is_unknown, run in runs if is_unknown)
        longest = max(names, key=len, default=[])
        is_name = len(longest) > 1 or not {*longest}.isdisjoint(request.unknown_words)
        return " ".join(longest) if is_name else ""

    def _is_question(self, request: Request) -> bool:
        """Return whether the message asks for knowledge rather than for a wine."""
        names_dish_or_price = bool(request.dishes or PRICE_FIELDS & request.filters.keys())
        is_wish = "wish" in self.roles
        if "explain" in self.roles:
            return not (names_dish_or_price or (is_wish and request.inclusions))
        if is_wish or names_dish_or_price or request.cues or request.ordinals:
            return False
        openings = [phrase for phrase in self.phrases if phrase.has_role("question_opening")]
        starts_as_question = any(phrase.start == 0 for phrase in openings)
        word_count = sum(token.is_alphanumeric for token in self.tokens)
        return ("?" in self.text or starts_as_question) and word_count >= MIN_QUESTION_WORDS


def drop_empty(fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the fields that have values, without duplicates and with MAX_VALUES at most."""
    return {
        name: tuple(dict.fromkeys(values))[:MAX_VALUES] for name, values in fields.items() if values
    }


def _named_fields(phrase: Phrase) -> set[str]:
    """Return the fields of a phrase that name a property of a wine, a dish or an allergen."""
    fields = {*LIST_FIELDS, "colour", "max_abv", "dish", "allergen"} & phrase.meanings.keys()
    return fields | ({"styles"} if "colour" in fields else set())


def _opposite_steps(negated: Sequence[Phrase]) -> dict[str, list[str]]:
    """Return the steps of each scale that negated phrases do not exclude; "not sweet" means dry."""
    tastes = [phrase for phrase in negated if not phrase.meanings.keys() & KIND_FIELDS]
    opposites: dict[str, list[str]] = {}
    for name, scale in SCALES.items():
        excluded = {value for phrase in tastes for value in phrase.values(name)}
        steps = STEPS_IF_NOT_SWEET if name == "sweetness" and "sweet" in excluded else scale
        if excluded:
            opposites[name] = [str(step) for step in steps if step not in excluded]
    return opposites
