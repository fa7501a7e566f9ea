"""One message as a request: what it wants of a wine, what it rules out, what it points at."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from agent import size_limits
from agent.fallback.words import (
    Dish,
    Span,
    Token,
    detect_message_language,
    dishes,
    find_phrases,
    tokenize,
)
from agent.numerals import parse_number
from agent.sommelier.wine import Body, Level, Sweetness
from agent.text import pattern

SCALES: Final[Mapping[str, Sequence[str]]] = {
    "sweetness": [*Sweetness],
    "bodies": [*Body],
    "tannins": [*Level],
    "acidities": [*Level],
}
"""The steps of each scale, from the least to the most."""
LISTS: Final = ("styles", "colours", *SCALES, "grapes", "countries", "regions", "text")
"""The fields of what a wine is to be, in the order in which they are described."""
WITH_COLOURS: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
"""Styles that have a colour besides."""
OF_KIND: Final = frozenset({"styles", "grapes", "regions", "colour"})
"""Fields of what a wine is: no ice wine is no word against sweet ones."""
EITHER: Final = frozenset("or oder ou o of u".split())
EITHERS: Final = EITHER | frozenset("nor noch ni".split())
LINKS: Final = EITHERS | frozenset(
    "and und et y e en ne nem neither , / a an the le la les l un une de du des d der "
    "die das den el los las il lo gli i een het uma um os as any auch also other andere anderen "
    "autre altri altre otro outro vin wine wein vino vinho wijn".split()
)
"""Text that is allowed between two things that one negator excludes."""
STOPS: Final = frozenset(".;!?\n()")
REACH: Final = 5
"""Words between a negator and what it rules out."""
LEADING: Final = frozenset(
    "with for zu zum zur für fur mit bei beim pour avec au aux para con a per con col alla al voor "
    "bij met com".split()
)
"""Words before a dish."""
SHORTEST_UNKNOWN: Final = 4
NOT_SWEET: Final = ("bone_dry", "dry", "off_dry")
MOST_VALUES: Final = 6
REMEMBERED: Final = 256
FEW_WORDS: Final = 4
"""Words of a message that asks to know, or is no more than the name of a wine."""

PRICE: Final = frozenset({"min_price", "max_price", "currency"})
UNKNOWN: Final = "?"
"""A currency that cannot be converted."""
MOST: Final = 100_000
YEARS: Final = range(1900, 2101)
AROUND: Final = 0.7, 1.3
"""The limits of an approximate price, as factors."""
BETWEEN: Final = frozenset(
    "d de di of van the a an i ai le la les l los las der die den das dem il lo is my o um uns so "
    "como tipo ist est es e c ma mein meine mi mio mijn het non mehr als que than".split()
)
"""Text that is allowed between an amount and its limit or its currency."""
LIMITS: Final = ("max", "min", "about", "between")
RANGE: Final = pattern("[LBT]?_{0,2}C?N_?C?[^CN]?[JT][^CN]?C?N(?:_?C)?")
AMOUNT: Final = pattern("[LBT]?_{0,2}C?N(?:_?C)?(?:_?[AB])?K?")
"""A price as signs: `N` is a number, `C` a currency, `K` something else that is counted, `_` a word
in between. `L` limits the number after it, `A` the one before, `B` either; `J` joins two, `T`
("till") also limits.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Hold what a user asks for; a field is empty if the message does not mention it.

    `filters` are named as those of a search; `text` and `without_text` are tastes of its notes, and
    the currency may be UNKNOWN. `dishes` are named as the person wrote them. `cues` are said of the
    wines that were shown: cheaper, dearer, lighter, fuller, drier, sweeter, other, like, why.
    `ordinals` count them from 1, -1 is the last. `unknown` are the words that no table knows and
    that may be a dish or a name, `unread` counts all longer words that no table knows.
    """

    text: str = ""
    language: str = "en"
    filters: Mapping[str, Any] = field(default_factory=dict)
    dishes: Mapping[str, Dish] = field(default_factory=dict)
    cues: frozenset[str] = frozenset()
    ordinals: tuple[int, ...] = ()
    name: str = ""
    unknown: tuple[str, ...] = ()
    unread: int = 0
    is_question: bool = False
    is_about_wine: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the message names nothing by which wines can be found."""
        return not (self.describes_wine or self.cues or self.ordinals)

    @property
    def describes_wine(self) -> bool:
        """Return whether the message describes the wine itself."""
        return bool(self.filters or self.dishes or self.name)

    @property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the fields that a wine is to have one of these values of."""
        return {name: self.filters[name] for name in LISTS if name in self.filters}

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values that a field is to have."""
        return tuple(self.filters.get(name, ()))


def read_request(text: str, default: str = "en") -> Request:
    """Return what a message asks for; `default` is its language if nothing in it tells."""
    return _read(text[: size_limits.MESSAGE_CHARS], default)


@lru_cache(REMEMBERED)
def _read(text: str, default: str) -> Request:
    return replace(_Reader(text, detect_message_language(text, default)).request(), text=text)


class _Unit(NamedTuple):
    """A phrase of the message or a word that belongs to none, and its sign in a price."""

    sign: str
    places: range
    value: float = 0
    currency: str = ""
    limit: str = ""


def read_price(words: Sequence[Token], spans: Sequence[Span]) -> tuple[dict[str, Any], set[int]]:
    """Return the filters for the price that a message names, and the places of the words for it.

    If the currency cannot be converted, the only filter is that it is UNKNOWN.
    """
    units = list(_units(words, spans))
    signs = "".join(unit.sign for unit in units)
    for kind in (RANGE, AMOUNT):
        price, used = dict[str, Any](), set[int]()
        for found in kind.finditer(signs):
            part = units[found.start() : found.end()]
            if limits := _limits(part):
                price |= limits
                used.update(*(unit.places for unit in part))
        if price.get("currency") == UNKNOWN:
            return {"currency": UNKNOWN}, used
        if {"min_price", "max_price"} <= price.keys():
            low, high = sorted((price["min_price"], price["max_price"]))
            return price | {"min_price": low, "max_price": high}, used
        if price:
            break
    return price, used


def _units(words: Sequence[Token], spans: Sequence[Span]) -> Iterator[_Unit]:
    """Yield the phrases of a message and its other words, in order."""
    starts, place = {span.start: span for span in spans}, 0
    while place < len(words):
        if (span := starts.get(place)) is not None:
            yield _unit(span)
            place = span.end
            continue
        word, places = words[place], range(place, place + 1)
        worth = parse_number(word.written) if word.written[0].isdecimal() else MOST + 1
        sign = "N" if worth <= MOST else "_" if word.stem in BETWEEN else "."
        yield _Unit(sign, places, worth)
        place += 1


def _unit(span: Span) -> _Unit:
    if numbers := span.values("number"):
        number, _, code = numbers[0].partition(" ")
        return _Unit("N", span.places, float(number), code)
    if code := next(iter(span.values("currency")), UNKNOWN if span.has("unconverted") else ""):
        return _Unit("C", span.places, currency=code)
    if span.has("counted") or span.has("percent"):
        return _Unit("K", span.places)
    first = next((limit for limit in LIMITS if span.has(limit)), "")
    behind = next((limit for limit in LIMITS if span.has(f"{limit}_after")), "")
    sign = "B" if first and behind else "L" if first else "A" if behind else "."
    if span.has("joined"):
        sign = "T" if first else "J"
    return _Unit(sign, span.places, limit=first or behind)


def _limits(part: Sequence[_Unit]) -> dict[str, Any]:
    """Return the filters for one or two amounts; none without a currency and a limit."""
    low, *others = sorted(unit.value for unit in part if unit.sign == "N")
    code = next((unit.currency for unit in part if unit.currency), "")
    # The last limit counts: "around 120 at most".
    limit = next((unit.limit for unit in reversed(part) if unit.limit), "")
    counts_other = not others and (low in YEARS or part[-1].sign == "K")
    if not code and (not limit or counts_other):
        return {}
    if others:
        limits = {} if code == UNKNOWN else {"min_price": low, "max_price": others[-1]}
    elif limit == "about":
        limits = {"min_price": round(low * AROUND[0], 2), "max_price": round(low * AROUND[1], 2)}
    else:
        limits = {"min_price" if limit == "min" else "max_price": low}
    return limits | ({"currency": code} if code and limits else {})


class _Reader:
    """Reads one message, phrase by phrase; `denied` are the phrases that it rules out."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text.replace("n't", " not").replace("n’t", " not")
        self.language, self.words = language, tokenize(self.text)
        spans = find_phrases(self.words, language)
        self.price, used = read_price(self.words, spans)
        self.spans = [span for span in spans if span.has("not") or used.isdisjoint(span.places)]
        self.covered = used.union(*(span.places for span in self.spans))
        self.denied = [*self._ruled_out_spans()]
        self.wanted = [span for span in self.spans if span not in self.denied]
        self.marks = {mark for span in self.spans for mark in span.values("mark")}

    def request(self) -> Request:
        """Return the request that the message makes."""
        unread = [
            at
            for at, word in enumerate(self.words)
            if at not in self.covered and word.is_word and word.stem not in LEADING
        ]
        request = Request(
            language=self.language,
            filters=self._filters(),
            dishes=self._dishes(),
            cues=frozenset(self._values("cue")),
            ordinals=tuple(map(int, self._values("ordinal"))),
            unknown=tuple(dict.fromkeys(self._names(unread)))[:MOST_VALUES],
            unread=sum(len(self._word(at)) >= SHORTEST_UNKNOWN for at in unread),
            is_about_wine=bool({"wine", "wish"} & self.marks),
        )
        request = replace(request, name=self._name(request))
        return replace(request, is_question=self._is_question(request))

    def _filters(self) -> dict[str, Any]:
        """Return the filters of a search for what the message says."""
        filters = drop_empty(self._tastes() | {"without_allergens": self._allergens()}) | self.price
        if not self.price and (caps := self._values("cap")):
            filters["max_price"] = min(map(float, caps))
        if strengths := self._values("max_abv"):
            filters["max_abv"] = min(map(float, strengths))
        if orders := self._values("order"):
            filters["order"] = orders[0]
        return filters

    def _values(self, name: str) -> list[str]:
        """Return the values of a field in what is wanted, each once."""
        return list(dict.fromkeys(value for span in self.wanted for value in span.values(name)))

    def _word(self, place: int) -> str:
        """Return the stem of the word at a place; empty outside of the message."""
        return self.words[place].stem if 0 <= place < len(self.words) else ""

    def _ruled_out_spans(self) -> Iterator[Span]:
        """Yield the phrases that a negator rules out: behind it, or else right before it."""
        ends = {place + 1 for place, word in enumerate(self.words) if word.stem in STOPS}
        buts = {span.start for span in self.spans if span.has("but")}
        for start, end in pairwise(sorted({0, len(self.words), *ends, *buts})):
            clause = [span for span in self.spans if start <= span.start < end]
            for place, span in enumerate(clause):
                found = self._ruled_out(span, clause[place + 1 :]) if span.has("not") else []
                if not found and (span.has("not") or span.has("not_behind")):
                    found = self._ruled_out(span, clause[:place][::-1])
                yield from found

    def _ruled_out(self, negator: Span, spans: Sequence[Span]) -> list[Span]:
        """Return the nearest thing within reach, and those that are linked to it."""
        found: list[Span] = []
        for span in spans:
            if not _kinds(span):
                if span.has("not") or span.has("wish"):
                    break
                continue
            last = found[-1] if found else negator
            first, second = sorted((last, span), key=lambda one: one.start)
            between = [word.stem for word in self.words[first.end : second.start]]
            is_alike = not EITHERS.isdisjoint(between) or _kinds(last) & _kinds(span)
            is_linked = LINKS.issuperset(between) and is_alike
            is_near = len(between) <= REACH and "," not in between
            if not (is_linked if found else is_near):
                break
            found.append(span)
        return found

    def _tastes(self) -> dict[str, list[str]]:
        """Return the wanted and the excluded values of each field."""
        wanted = {name: self._values(name) for name in LISTS} | {"colours": list[str]()}
        is_free = "alcohol_free" in wanted["styles"]
        if is_free:
            wanted["styles"] = ["alcohol_free"]
        has_own = bool(WITH_COLOURS & {*wanted["styles"]})
        # A colour is a style by itself, but of a sparkling wine its colour.
        for span in self.wanted:
            is_other = EITHER & {self._word(span.start - 1), self._word(span.end)}
            is_besides = has_own and (is_free or not is_other)
            wanted["colours" if is_besides else "styles"] += span.values("colour")
        without = {name: list[str]() for name in LISTS}
        for span in self.denied:
            is_named = span.values("regions") or span.values("grapes")
            names = ("regions", "grapes") if is_named else ("styles", "countries", "text")
            for name in names:
                without[name] += span.values(name)
            if not any(map(span.values, names)):
                without["styles"] += span.values("colour")
        opposites = _opposites(self.denied)
        return {
            **{
                name: [
                    one
                    for one in (*opposites.get(name, ()), *wanted[name])
                    if one not in without[name]
                ]
                for name in LISTS
            },
            **{f"without_{name}": values for name, values in without.items()},
        }

    def _dishes(self) -> dict[str, Dish]:
        """Return the dishes that are named; a side dish counts where nothing else is."""
        found = {
            self.text[self.words[span.start].start : self.words[span.end - 1].end]: dishes()[
                int(number)
            ]
            for span in self.wanted
            for number in span.values("dish")[:1]
            if not (span.values("allergen") and "allergy" in self.marks)
        }
        mains = {name: dish for name, dish in found.items() if not dish.side} or found
        return dict([*mains.items()][:MOST_VALUES])

    def _allergens(self) -> list[str]:
        found = [value for span in self.spans for value in span.values("without_allergens")]
        denied = [span for span in self.denied if not span.values("dish")]
        spans = self.spans if "allergy" in self.marks else denied
        return found + [value for span in spans for value in span.values("allergen")]

    def _names(self, unread: Sequence[int]) -> Iterator[str]:
        """Yield the unread words that are where a dish is, or are written as names.

        In German any noun is.
        """
        for at in unread:
            word, before = self.words[at], self._word(at - 1)
            is_dish = not LEADING.isdisjoint((before, self._word(at - 2)))
            is_title = word.is_title and not word.written.isupper() and self.language != "de"
            is_name = is_title and at > 0 and before not in STOPS
            if is_name or (is_dish and len(word.stem) >= SHORTEST_UNKNOWN):
                yield word.written

    def _name(self, request: Request) -> str:
        """Return the name of a wine or a producer, if the message asks for nothing else."""
        is_wanted = request.is_about_wine or len(self.words) <= FEW_WORDS
        if not (request.is_empty and is_wanted):
            return ""
        places = range(len(self.words))
        runs = groupby(places, lambda at: at not in self.covered and self.words[at].is_title)
        longest = max(([*run] for is_named, run in runs if is_named), key=len, default=[])
        names = [self.words[at].written for at in longest]
        is_name = len(names) > 1 or not {*names}.isdisjoint(request.unknown)
        return " ".join(names) if is_name else ""

    def _is_question(self, request: Request) -> bool:
        """Return whether the message asks to know something rather than for a wine."""
        is_bought = bool(request.dishes or PRICE & request.filters.keys())
        if "explain" in self.marks:
            return not (is_bought or ("wish" in self.marks and request.wanted))
        opens = bool(self.spans) and self.spans[0].start == 0 and self.spans[0].has("opens")
        is_asked = "?" in self.text or (opens and not is_bought)
        is_wish = "wish" in self.marks or is_bought or bool(request.cues or request.ordinals)
        return is_asked and sum(word.is_word for word in self.words) >= FEW_WORDS and not is_wish


def drop_empty(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the fields that have values, each value once."""
    return {
        name: tuple(dict.fromkeys(found))[:MOST_VALUES] for name, found in values.items() if found
    }


def _kinds(span: Span) -> set[str]:
    """Return the fields of a search, the dish or the allergen that a phrase names."""
    found = {*LISTS, "colour", "max_abv", "dish", "allergen"} & span.meanings.keys()
    return found | ({"styles"} if "colour" in found else set())


def _opposites(denied: Sequence[Span]) -> dict[str, list[str]]:
    """Return what "not sweet" wants: the other steps of the scale."""
    tastes = [span for span in denied if not span.meanings.keys() & OF_KIND]
    found = dict[str, list[str]]()
    for name, scale in SCALES.items():
        values = {value for span in tastes for value in span.values(name)}
        steps = NOT_SWEET if name == "sweetness" and "sweet" in values else scale
        if values:
            found[name] = [str(step) for step in steps if step not in values]
    return found
