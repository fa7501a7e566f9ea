"""Numbers in a message: prices, alcohol, guests, hours, bottles, vintages. Pure.

What a number is is told by its neighbours, in one order: a unit behind it, a currency, what is
counted before it, what the message is about, a word of limits such as "under".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.house_sommelier.lexicon import Phrases, Span
from agent.sommelier.wine import STRONGEST, Currency
from agent.text import pattern

_CENTS: Final = pattern(r"[0-9]{1,4}[.,][0-9]{2}")
_GROUPED: Final = pattern(r"[0-9]{1,3}(?:\.[0-9]{3})+")
_POINTS: Final = str.maketrans(dict.fromkeys(",'’", "."))
_YEARS: Final = range(1950, 2040)
_MOST_ABV: Final = 25
_LEAST_ABV: Final = 5
_LEAST_PRICE: Final = 4
_LEAST_RANGE: Final = 10
_MOST_GUESTS: Final = 500
_MOST_HOURS: Final = 24
_HALF_DAY: Final = 12
_EVENING: Final = 19
_REACH: Final = 8
_SHORT: Final = 8
_NEAR: Final = 5
_PARTY: Final = 6
_BUDGET: Final = 60
_LIGHT_SHARE: Final = 0.5
_MOST_EVENINGS: Final = 14
_WEEKEND: Final = 2
_UNITS: Final = ("percent", "hours", "clock", "bottles", "people", "cases", "counted")
_LIMITS: Final = ("max", "min", "about", "between", "we_are")
_SOBER: Final = frozenset({"sober", "abstains", "young", "light"})
_NO_PRICE: Final = frozenset(
    "dish wine bottles ordinal people hours each total many percent grapes years".split()
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the numbers of a message say; alcohol is in % vol, `foreign` a currency as written.

    `used` are the places of all that was read.
    """

    min_price: float | None = None
    max_price: float | None = None
    currency: Currency | None = None
    min_abv: float | None = None
    max_abv: float | None = None
    guests: int | None = None
    sober: float | None = None
    hours: float | None = None
    glasses: float | None = None
    """What each guest is poured."""
    evenings: int | None = None
    bottles: int | None = None
    years: tuple[str, ...] = ()
    foreign: str = ""
    shared: bool = False
    """Whether the price was given for all the bottles together."""
    alcohol_free: bool = False
    used: frozenset[int] = frozenset()

    @property
    def has_price(self) -> bool:
        """Whether a price limit was given."""
        return self.min_price is not None or self.max_price is not None


NO_NUMBERS: Final = Numbers()


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number, or two as a range, with what stands around it."""

    low: float
    high: float
    start: int
    end: int
    written: str = ""
    currency: Currency | None = None
    is_rough: bool = False
    unit: str = ""
    limit: str = ""


def read_numbers(phrases: Phrases, *, in_talk: bool = False) -> Numbers:
    """Every number of a message, in order; `in_talk` a bare one is a price: "and at 10?"."""
    return _Reader(phrases).read(in_talk=in_talk)


class _Reader:
    """Reads the numbers of one message."""

    def __init__(self, phrases: Phrases) -> None:
        self._phrases = phrases
        self._found = Numbers()
        self._in_talk = False
        self._used: set[int] = set()
        self._priced: set[int] = set()
        spans = phrases.spans
        self._fields = frozenset(field for span in spans for field in span.fields)
        self._asks_quantity = any("quantity" in span.values("ask") for span in spans)
        self._is_of_alcohol = bool({"max_abv", "min_abv"} & self._fields) or any(
            "abv" in (*span.values("trait"), *span.values("most")) for span in spans
        )
        self._inside = {at for span in spans for at in range(span.start + 1, span.end)}

    def read(self, *, in_talk: bool) -> Numbers:
        self._in_talk = in_talk
        plain = [each for at in range(len(self._phrases.words)) if (each := self._number(at))]
        self._count_sober(plain)
        self._count_poured(plain)
        amounts = list(self._amounts([each for each in plain if each.start not in self._used]))
        for amount in amounts:
            self._read(amount)
        alone = len(amounts) == len(self._phrases.words) == 1
        if not self._priced and (alone or (in_talk and self._is_bare(amounts))):
            self._price(None, amounts[0].high, amounts[0])
        found = replace(self._shared_total(), used=frozenset(self._used))
        low, high = _ascending(found.min_price, found.max_price)
        told = (found.min_abv, found.max_abv)
        weak, strong = _ascending(*(each and min(max(each, 0), STRONGEST) for each in told))
        return replace(found, min_price=low, max_price=high, min_abv=weak, max_abv=strong)

    def _number(self, at: int) -> _Amount | None:
        """The number at a place, in digits or words; None if there is none."""
        word, span = self._phrases.words[at], self._phrases.at(at)
        values = span.values("number")
        if at in self._inside or not (values or (word.written[0].isdecimal() and not span.fields)):
            return None
        if word.written[0].isdecimal():
            value = to_number(word.written)
            return _Amount(value, value, at, at + 1, word.written)
        amount, _, code = values[0].partition(" ")
        value = float(amount.lstrip("~"))
        currency = Currency(code) if code else None
        return _Amount(value, value, at, span.end, "", currency, amount.startswith("~"))

    def _amounts(self, numbers: Sequence[_Amount]) -> Iterator[_Amount]:
        """The numbers with what stands around them, two that belong together as one."""
        skip = -1
        for place, number in enumerate(numbers):
            if number.start < skip:
                continue
            amount = self._in_place(number)
            following = numbers[place + 1 : place + 2]
            upper = self._in_place(following[0]) if following else None
            if upper and self._is_range(amount, upper, number.end):
                amount, skip = self._joined(amount, upper), upper.end
            yield amount

    def _joined(self, first: _Amount, last: _Amount) -> _Amount:
        """Two numbers as a range: "15 to 20", "30 euros ± 5"."""
        low, high = first.low, last.high
        if self._phrases.stem(last.start - 1) == "±":
            low, high = low - high, low + high
        currency = first.currency or last.currency
        return replace(first, low=low, high=high, end=last.end, unit=last.unit, currency=currency)

    def _in_place(self, number: _Amount) -> _Amount:
        """A number with its currency, its unit and the limit before it."""
        phrases, start, end = self._phrases, number.start, number.end
        gap = int(phrases.is_among(end, "before_currencies"))
        behind, before = phrases.at(end + gap), phrases.before(start)
        currency = number.currency
        if "currency" in behind.fields and "people" not in behind.fields:
            currency, end = Currency(behind.values("currency")[0]), behind.end
        elif "currency" in before.fields:
            currency, start = Currency(before.values("currency")[0]), before.start
        boxed = phrases.before(start - int(phrases.is_among(start - 1, "before_contents")))
        if "cases" in boxed.fields:
            return replace(number, unit="bottles")
        unit = phrases.at(end)
        unit = unit if unit.fields else phrases.at(end + int(phrases.is_among(end, "before_units")))
        name = next((each for each in _UNITS if each in unit.fields), "")
        return replace(
            number,
            start=start,
            end=end,
            currency=currency,
            unit=name,
            limit=self._limit(start),
        )

    def _limit(self, at: int) -> str:
        """The kind of limit that stands before a place, over articles."""
        phrases = self._phrases
        while phrases.is_among(at - 1, "before_amounts") and not phrases.before(at).fields:
            at -= 1
        span = phrases.before(at)
        kind = next((kind for kind in _LIMITS if kind in span.fields), "")
        self._mark(span.start, span.end if kind else span.start)
        if kind == "min" and self._is_refused(span.start):
            return "max"
        if kind == "about" and "we_are" in phrases.before(span.start).fields:
            return "we_are"
        denied = phrases.is_among(span.start - 1, "no")
        return {"max": "min", "min": "max"}.get(kind, kind) if denied else kind

    def _is_refused(self, at: int) -> bool:
        """Whether a "not" before it in its clause makes "more than" a limit: "not spend over"."""
        for place in range(at - 1, max(-1, at - _REACH), -1):
            if not self._phrases.words[place].is_word:
                return False
            if self._phrases.is_among(place, "refusing"):
                return True
        return False

    def _is_range(self, low: _Amount, high: _Amount, end: int) -> bool:
        """Whether two numbers belong together: of prices, of alcohol, of guests, of the clock."""
        end = low.end if low.currency else end
        if low.unit in ("hours", "clock"):
            end = self._phrases.at(low.end).end
        link = self._phrases.at(end)
        if "joined" not in link.fields or link.end != high.start:
            return False
        if high.unit in ("percent", "people", "hours", "clock") or low.limit == "we_are":
            return True
        if high.unit or low.low in _YEARS:
            return False
        loose = self._phrases.stem(link.start) in "-–—±" or self._phrases.is_among(link.start, "to")
        counted = self._phrases.is_among(low.start - 1, "counting")
        return (
            low.currency is not None
            or high.currency is not None
            or low.limit == "between"
            or ("people" in self._fields and high.high <= _MOST_HOURS)
            or (high.high >= _LEAST_RANGE and (low.limit in _LIMITS[:3] or (loose and not counted)))
        )

    def _read(self, amount: _Amount) -> None:
        """Take an amount for the first thing that its neighbours make it."""
        unit, value = amount.unit, amount.high
        is_range = amount.low != value
        behind = self._phrases.at(amount.end)
        foreign = next(
            (
                each
                for each in (behind, self._phrases.before(amount.start))
                if "unconverted" in each.fields and "currency" not in each.fields
            ),
            None,
        )
        if foreign:
            self._mark(foreign.start, foreign.end)
            self._use(amount, foreign=self._phrases.written(foreign.start, foreign.end))
        elif amount.currency is not None:
            self._read_price(amount)
        elif unit == "percent" or (self._is_of_alcohol and self._is_strength(amount)):
            self._read_strength(amount)
        elif is_range and not unit and "people" in self._fields and value <= _MOST_HOURS:
            self._use(amount, hours=(value - amount.low) % 12 or None)
        elif unit or amount.limit == "we_are" or (self._asks_quantity and not amount.limit):
            self._count(amount)
        elif self._is_table(amount):
            self._use(amount, guests=round(value))
        elif value in _YEARS and amount.limit != "max" and not is_range:
            self._use(amount, years=(*self._found.years, amount.written))
        else:
            self._read_price(amount)

    def _is_table(self, amount: _Amount) -> bool:
        """Whether a number counts who eats or feasts: "duck for 6", "a wedding for sixty"."""
        is_for = self._phrases.is_among(amount.start - 1, "for")
        most = _MOST_GUESTS if self._fields & {"party", "reception"} else _MOST_HOURS
        few = 2 <= amount.high == amount.low <= most and amount.written.find(",") < 0
        eats = self._fields & {"dish", "menu", "meal", "party", "reception", "courses"}
        places = range(len(self._phrases.words))
        asks = "bottles" in self._fields and any(
            self._phrases.is_among(at, "enough") for at in places
        )
        return bool(is_for and few and (eats or asks)) and self._found.guests is None

    def _is_strength(self, amount: _Amount) -> bool:
        return not amount.unit and _LEAST_ABV <= amount.high <= _MOST_ABV

    def _read_strength(self, amount: _Amount) -> None:
        if amount.high <= 0.5:
            self._use(amount, alcohol_free=True)
        elif amount.low != amount.high:
            self._use(amount, min_abv=amount.low, max_abv=amount.high)
        elif amount.high <= _MOST_ABV:
            is_least = "min" in (amount.limit, *self._phrases.at(amount.end).fields)
            self._use(amount, **{"min_abv" if is_least else "max_abv": amount.high})

    def _count(self, amount: _Amount) -> None:
        """Take a number for hours, bottles or guests."""
        value, whole = amount.high, round(amount.high)
        match amount.unit:
            case "hours" | "clock" if amount.low != value:
                self._use(amount, hours=(value - amount.low) % 12 or None)
            case "hours" | "clock" if amount.limit == "max" or amount.unit == "clock":
                self._use(amount, hours=(value - _EVENING) % 12 or 12)
            case "hours" if value <= _HALF_DAY:
                self._use(amount, hours=value)
            case "bottles" if whole <= _MOST_GUESTS:
                self._use(amount, bottles=whole)
            case "cases":
                self._use(amount, bottles=6 * whole)
            case "people" | "" if whole <= _MOST_GUESTS and self._found.guests is None:
                self._use(amount, guests=whole)
            case _:
                self._mark(amount.start, amount.end)

    def _read_price(self, amount: _Amount) -> None:
        """Take a number for a price, if anything says so."""
        behind, value, limit = self._behind(amount.end), amount.high, amount.limit
        is_cents = _CENTS.fullmatch(amount.written) is not None
        follows = behind & {"max_after", "min_after", "about_after", "each", "total"}
        follows |= self._phrases.before(amount.start).fields & {"total"}
        is_limited = bool(limit in _LIMITS[:3] or follows) and value > _LEAST_PRICE
        # "About ten" may be an hour as well.
        is_limited &= limit != "about" or value > _HALF_DAY or self._in_talk
        is_limited = is_limited or (value > _LEAST_RANGE and self._is_for_bottles(amount.end))
        is_most = "max_after" in behind
        if "about_after" in behind:
            # "30ish max" is a limit all the same.
            is_most |= "max_after" in self._phrases.at(self._phrases.at(amount.end).end).fields
        is_about = limit == "about" or (amount.is_rough and limit not in ("max", "min"))
        if amount.low != value:
            self._price(amount.low, value, amount)
        elif amount.currency is None and not is_cents and not is_limited:
            return
        elif "total" in self._fields and is_about and not is_most:
            self._price(None, value, amount)
        elif not is_most and ("about_after" in behind or is_about):
            self._price(round(value * 0.75, 2), round(value * 1.25, 2), amount)
        elif not is_most and (limit == "min" or "min_after" in behind):
            self._price(value, None, amount)
        else:
            self._price(None, value, amount)

    def _behind(self, at: int) -> frozenset[str]:
        """What stands behind an amount: "60 max", "60 is my limit"."""
        behind = self._phrases.at(at).fields
        while self._phrases.is_among(at, "before_limits"):
            at += 1
        return behind | (self._phrases.at(at).fields & {"max_after"})

    def _is_bare(self, amounts: Sequence[_Amount]) -> bool:
        """Whether a short message holds one number that counts nothing: "and if I go to 60?"."""
        if len(amounts) != 1 or len(self._phrases.words) > _SHORT:
            return False
        is_counting = self._phrases.is_among(amounts[0].start - 1, "counting_alone")
        places = range(len(self._phrases.words))
        is_counting |= any(self._phrases.is_among(at, "arriving") for at in places)
        is_used = bool(self._used & set(range(amounts[0].start, amounts[0].end)))
        least = amounts[0].high >= _LEAST_PRICE
        after = self._phrases.words[amounts[0].end : amounts[0].end + 1]
        if amounts[0].start == 0 and after and after[0].is_word:
            return False  # "10 are not coming"
        return least and not is_counting and not is_used and not self._fields & _NO_PRICE

    def _price(self, low: float | None, high: float | None, amount: _Amount) -> None:
        old = self._found
        self._priced.update(range(amount.start, amount.end))
        self._use(
            amount,
            min_price=old.min_price if low is None else max(0.0, low),
            max_price=old.max_price if high is None else high,
            currency=amount.currency or old.currency,
        )

    def _count_sober(self, numbers: Sequence[_Amount]) -> None:
        """Of how many it is said that they drink nothing or little: "12 kids", "half drive"."""
        total = self._total(numbers)
        adults = total is not None and "adults" in self._phrases.at(total.end).fields
        for span in self._phrases.spans:
            if not span.fields & _SOBER:
                continue
            share = _LIGHT_SHARE if "light" in span.fields else 1
            near = range(max(0, span.start - 5), min(len(self._phrases.words), span.end + 4))
            if parts := [part for at in near for part in self._phrases.at(at).values("half")]:
                self._found = replace(self._found, sober=float(parts[0]) * share)
                return
            group = self._group(span, [each for each in numbers if each is not total])
            if group and not (adults and "young" in span.fields):
                sober = (self._found.sober or 0) + max(1.0, group.high * share)
                self._use(group, sober=sober)
            elif group:
                self._mark(group.start, group.end)
            elif (total and self._is_one(span)) or (
                "yes" in span.values("abstains") and self._phrases.is_of_another(span)
            ):
                self._found = replace(self._found, sober=(self._found.sober or 0) + 1)

    def _count_poured(self, numbers: Sequence[_Amount]) -> None:
        """How much is poured to each: "one glass each", "drei Abende", "a weekend"."""
        phrases = self._phrases
        for at in range(len(phrases.words)):
            told = next((each for each in numbers if each.end == at), None)
            if phrases.is_among(at, "poured") and self._is_for_each(at):
                is_one = any(phrases.is_among(at - back, "one_glass") for back in (1, 2))
                if told or is_one:
                    self._found = replace(self._found, glasses=told.high if told else 1)
            elif told and phrases.is_among(at, "evenings") and told.high <= _MOST_EVENINGS:
                self._found = replace(self._found, evenings=round(told.high))
            elif phrases.is_among(at, "weekends"):
                self._found = replace(self._found, evenings=_WEEKEND)
            else:
                continue
            self._mark(told.start if told else at, at + 1)

    def _is_for_each(self, at: int) -> bool:
        """Whether glasses are those of one guest: "two glasses a head", "jeder ein Glas"."""
        words = range(max(0, at - _NEAR), min(len(self._phrases.words), at + _NEAR))
        return any(self._phrases.is_among(place, "heads") for place in words)

    def _is_one(self, span: Span) -> bool:
        """Whether a phrase is said of one alone: "one drives", "einer davon fährt"."""
        return any(self._phrases.is_among(span.start - back, "lone") for back in (1, 2))

    def _total(self, numbers: Sequence[_Amount]) -> _Amount | None:
        """The number of all the guests, of which others are a part."""
        placed = [(each, self._in_place(each)) for each in numbers]
        plain = [(each, it) for each, it in placed if it.unit in ("", "people") and not it.currency]
        for each, it in plain:
            behind = self._phrases.at(each.end).fields
            if (it.limit == "we_are" or it.unit) and not behind & {"subgroup", *_SOBER}:
                return each
        return plain[0][0] if len(plain) > 1 and self._asks_quantity else None

    def _group(self, span: Span, numbers: Sequence[_Amount]) -> _Amount | None:
        """The number of those a phrase speaks of: the nearest before it, or right behind it."""
        free = [
            each
            for each in numbers
            if each.start not in self._used
            and (self._in_place(each).unit in ("", "people") or each.end == span.start)
        ]
        before = [each for each in reversed(free) if span.start - 6 <= each.end <= span.start]
        after = [each for each in free if span.end <= each.start <= span.end + 2]
        words = self._phrases.words
        near = [
            each for each in before if all(word.is_word for word in words[each.end : span.start])
        ]
        return next(iter((*near, *after, *before)), None)

    def _shared_total(self) -> Numbers:
        """The numbers, and whether their price is that of all the bottles: a case, a party."""
        found = self._found
        cases = (span.start for span in self._phrases.spans if "cases" in span.fields)
        # "It smells of the carton" is no case of wine.
        is_case = any(not self._phrases.is_among(at - 1, "definite") for at in cases)
        bottles = found.bottles or (6 if is_case else None)
        is_total = is_case or "total" in self._fields or self._counts_after_price()
        is_party = (found.guests or 0) >= _PARTY and (found.max_price or 0) >= _BUDGET
        shared = is_total or (is_party and "each" not in self._fields)
        return replace(found, bottles=bottles, shared=shared and bool(found.max_price))

    def _counts_after_price(self) -> bool:
        """Whether bottles are counted right behind a price: "60 for three bottles"."""
        return self._names_bottles(max(self._priced, default=-1) + 1)

    def _is_for_bottles(self, at: int) -> bool:
        """Whether "for three bottles" follows."""
        return self._phrases.is_among(at, "for") and self._names_bottles(at + 1)

    def _names_bottles(self, at: int) -> bool:
        return any("bottles" in self._phrases.at(at + place).fields for place in range(_NEAR))

    def _use(self, amount: _Amount, **values: Any) -> None:
        self._found = replace(self._found, **values)
        self._mark(amount.start, amount.end)

    def _mark(self, start: int, end: int) -> None:
        self._used.update(range(start, end))


def _ascending(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    return (high, low) if low is not None and high is not None and low > high else (low, high)


def to_number(text: str) -> float:
    """`1,200` and `1.200` are twelve hundred; `12,50` and `12.50` twelve and a half."""
    plain = text.translate(_POINTS)
    if _GROUPED.fullmatch(plain):
        return float(plain.replace(".", ""))
    whole, _, decimals = plain.partition(".")
    return min(float(f"{whole[:9]}.{decimals.partition('.')[0] or 0}"), 1e6)
