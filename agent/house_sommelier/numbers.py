"""Numbers in a message: prices, alcohol, guests, hours, bottles, vintages. Pure.

A number is a price by its currency, its cents, or a word such as "under"; it is something else by
what follows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.house_sommelier.lexicon import Match, Phrases, grammar_stems
from agent.sommelier.wine import Currency
from agent.text import pattern

_DIGITS: Final = frozenset("0123456789")
_YEARS: Final = range(1950, 2040)
_WITH_CENTS: Final = pattern(r"[0-9]{1,4}[.,][0-9]{2}")
_IN_THOUSANDS: Final = pattern(r"[0-9]{1,3}(?:[.,'’][0-9]{3})+")
_POINT: Final = pattern(r"[.,'’]")
_MOST_ABV: Final = 25
_LEAST_PRICE: Final = 4
_LEAST_RANGE: Final = 10
_MOST_GUESTS: Final = 500
_MOST_HOURS: Final = 24
_EVENING: Final = 19
_REACH: Final = 8
_LIGHT_SHARE: Final = 0.5
_UNITS: Final = ("percent", "hours", "clock", "bottles", "people", "cases", "counted", "age")
_LIMITS: Final = ("max", "min", "about", "between", "we_are")
_SHORT: Final = 8
_COUNTING: Final = frozenset("for fur pour para per voor we are".split())
_NO_PRICE: Final = frozenset(
    "dish wine bottles ordinal people hours age each total many percent grapes years".split()
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the numbers of a message say; alcohol is in % vol, `foreign` a currency as written.

    `stated` are the amounts as the person gave them, `used` the places of all that was read.
    """

    min_price: float | None = None
    max_price: float | None = None
    currency: Currency | None = None
    min_abv: float | None = None
    max_abv: float | None = None
    guests: int | None = None
    sober: float | None = None
    hours: float | None = None
    bottles: int | None = None
    years: tuple[str, ...] = ()
    foreign: str = ""
    alcohol_free: bool = False
    written: str = ""
    stated: frozenset[float] = frozenset()
    used: frozenset[int] = frozenset()

    @property
    def has_price(self) -> bool:
        """Whether a price limit was given."""
        return self.min_price is not None or self.max_price is not None


NO_NUMBERS: Final = Numbers()


@dataclass(frozen=True, slots=True)
class _Number:
    value: float
    start: int
    end: int
    written: str
    currency: Currency | None = None
    is_rough: bool = False


def read_numbers(phrases: Phrases, *, in_talk: bool = False) -> Numbers:
    """Every number of a message, in order; `in_talk` a bare one is a price: "and at 10?"."""
    return _Reader(phrases).read(in_talk=in_talk)


class _Reader:
    """Reads the numbers of one message."""

    def __init__(self, phrases: Phrases) -> None:
        self._phrases = phrases
        self._found = Numbers()
        matches = phrases.matches
        self._fields = frozenset(field for match in matches for field in match.fields)
        self._asks_quantity = any("quantity" in match.values("ask") for match in matches)
        self._priced: set[int] = set()
        self._used: set[int] = set()
        self._inside = {at for match in matches for at in range(match.start + 1, match.end)}

    def read(self, *, in_talk: bool) -> Numbers:
        numbers = [each for at in range(len(self._phrases.words)) if (each := self._number(at))]
        self._count_sober(numbers)
        numbers = [each for each in numbers if each.start not in self._used]
        skip = -1
        for place, number in enumerate(numbers):
            if number.start < skip:
                continue
            following = numbers[place + 1] if place + 1 < len(numbers) else None
            skip = self._read_one(number, following)
        alone = len(numbers) == len(self._phrases.words) == 1
        if (alone or (in_talk and self._is_bare(numbers))) and not self._used:
            self._price(None, numbers[0].value, None, numbers[0])
        read = replace(self._shared_total(), written=self._written(), used=frozenset(self._used))
        return self._in_order(read)

    def _is_bare(self, numbers: list[_Number]) -> bool:
        """Whether a short message holds one number that counts nothing: "and if I go to 60?"."""
        words = self._phrases.words
        if len(numbers) != 1 or len(words) > _SHORT or numbers[0].value < _LEAST_PRICE:
            return False
        before = words[numbers[0].start - 1].stem if numbers[0].start else ""
        return before not in _COUNTING and not self._fields & _NO_PRICE

    def _number(self, at: int) -> _Number | None:
        word, match = self._phrases.words[at], self._phrases.at(at)
        if at in self._inside:
            return None
        values = match.values("number")
        if word.written[0] in _DIGITS and (values or not match.fields):
            return _Number(to_number(word.written), at, at + 1, word.written)
        if not values:
            return None
        amount, _, code = values[0].partition(" ")
        currency, is_rough = Currency(code) if code else None, amount.startswith("~")
        return _Number(float(amount.lstrip("~")), at, match.end, "", currency, is_rough)

    def _read_one(self, number: _Number, following: _Number | None) -> int:
        """Read a number, and the next with it if they are a range; return where reading goes on."""
        currency, after = self._currency(number)
        if following and self._joins(after, following):
            upper, end = self._currency(following)
            if self._range(number, following, currency or upper, end):
                return following.end
        unit = self._unit(after)
        foreign = self._foreign(after)
        if foreign:
            self._use(number, foreign=foreign)
        elif self._is_counted(number, unit, currency):
            self._count(number, unit or "")
        else:
            self._amount(number, currency or number.currency, after)
        return number.end

    def _currency(self, number: _Number) -> tuple[Currency | None, int]:
        """The currency before or after a number, and where what follows begins."""
        gap = int(self._phrases.is_among(number.end, "before_currencies"))
        after, before = self._phrases.at(number.end + gap), self._phrases.before(number.start)
        if "currency" in after.fields and "people" not in after.fields:
            self._mark(after.start, after.end)
            return Currency(after.values("currency")[0]), after.end
        if "currency" in before.fields:
            self._mark(before.start, before.end)
            return Currency(before.values("currency")[0]), number.end
        return number.currency, number.end

    def _joins(self, at: int, following: _Number) -> bool:
        link = self._phrases.at(at)
        sign = self._phrases.at(link.end)
        start = sign.end if "currency" in sign.fields else link.end
        return "joined" in link.fields and start == following.start

    def _range(self, low: _Number, high: _Number, currency: Currency | None, end: int) -> bool:
        """Two numbers that belong together: of prices, of alcohol, of the clock."""
        unit, before = self._unit(end), self._left(low.start)
        link = self._phrases.stem(low.end)
        if unit == "percent" and high.value <= _MOST_ABV:
            self._use(low, min_abv=low.value, max_abv=high.value)
        elif unit == "people" or before == "we_are":
            self._use(low, guests=round(high.value))
        elif unit in ("hours", "clock") or (
            currency is None and high.value <= _MOST_HOURS and "people" in self._fields
        ):
            self._use(low, hours=(high.value - low.value) % 12 or None)
        elif unit or not self._prices(low, high, currency, before, link):
            return False
        else:
            self._priced |= set(range(low.start, high.end))
            self._use(low, min_price=low.value, max_price=high.value)
            self._use(high, currency=currency or self._found.currency)
            amounts = {each.value for each in (low, high) if each.written}
            self._found = replace(self._found, stated=self._found.stated | amounts)
        self._mark(low.start, end)
        return True

    def _prices(
        self, low: _Number, high: _Number, currency: Currency | None, before: str, link: str
    ) -> bool:
        if currency is not None:
            return True
        if low.value in _YEARS or link in ",.":
            return False
        loose = link in "-–—" or self._phrases.is_among(low.end, "to")
        counted = self._phrases.is_among(low.start - 1, "counting")
        return before == "between" or (
            high.value >= _LEAST_RANGE and (before in _LIMITS[:3] or (loose and not counted))
        )

    def _amount(self, number: _Number, currency: Currency | None, after: int) -> None:
        """A price, a vintage, or nothing."""
        has_sign = "currency" in self._phrases.before(number.start).fields
        limit = self._left(number.start - has_sign)
        behind, value, spread = self._phrases.at(after).fields, number.value, self._spread(after)
        is_most = "max_after" in behind
        is_about = limit == "about" or (number.is_rough and limit not in ("max", "min"))
        if spread:
            self._price(value - spread, value + spread, currency, number)
        elif currency is None and value in _YEARS and limit != "max":
            self._use(number, years=(*self._found.years, number.written))
        elif not self._is_price(number, currency, limit, behind):
            return
        elif "about_after" in behind or (is_about and not is_most):
            self._price(round(value * 0.75, 2), round(value * 1.25, 2), currency, number)
        elif not is_most and (limit == "min" or "min_after" in behind):
            self._price(value, None, currency, number)
        else:
            self._price(None, value, currency, number)

    def _is_price(
        self, number: _Number, currency: Currency | None, limit: str, behind: frozenset[str]
    ) -> bool:
        if currency is not None:
            return True
        if _WITH_CENTS.fullmatch(number.written):
            return True
        limited = limit in _LIMITS[:3] or bool(
            behind & {"max_after", "min_after", "about_after", "each"}
        )
        return limited and number.value > _LEAST_PRICE

    def _spread(self, after: int) -> float:
        """The 5 of "20 ± 5"; 0 if there is none."""
        is_spread = self._phrases.stem(after) == "±" and after + 1 < len(self._phrases.words)
        upper = self._number(after + 1) if is_spread else None
        return upper.value if upper else 0

    def _left(self, at: int) -> str:
        """The kind of limit that stands before a place, over articles."""
        articles = grammar_stems("before_amounts")
        while self._phrases.stem(at - 1) in articles and not self._phrases.before(at).fields:
            at -= 1
        match = self._phrases.before(at)
        kind = next((kind for kind in _LIMITS if kind in match.fields), "")
        if kind:
            self._mark(match.start, match.end)
        if kind == "min" and self._is_refused(match.start):
            return "max"
        denied = self._phrases.is_among(match.start - 1, "no")
        return {"max": "min", "min": "max"}.get(kind, kind) if denied else kind

    def _is_refused(self, at: int) -> bool:
        """Whether a "not" before it in its clause makes "more than" a limit: "not spend over"."""
        for place in range(at - 1, max(-1, at - _REACH), -1):
            if not self._phrases.words[place].is_word:
                return False
            if self._phrases.is_among(place, "refusing"):
                return True
        return False

    def _unit(self, at: int) -> str:
        match = self._phrases.at(at)
        if not match.fields and self._phrases.is_among(at, "before_currencies"):
            match = self._phrases.at(at + 1)
        return next((unit for unit in _UNITS if unit in match.fields), "")

    def _foreign(self, at: int) -> str:
        for match in (self._phrases.at(at), self._phrases.before(at - 1)):
            if "unconverted" in match.fields and "currency" not in match.fields:
                self._mark(match.start, match.end)
                return self._phrases.written(match.start, match.end)
        return ""

    def _is_counted(self, number: _Number, unit: str, currency: Currency | None) -> bool:
        if currency is not None:
            return False
        before = self._left(number.start)
        counts = before == "we_are" or (self._asks_quantity and not before)
        return counts or bool(unit)

    def _count(self, number: _Number, unit: str) -> None:
        value, whole = number.value, round(number.value)
        left = self._left(number.start)
        match unit:
            case "percent" if value <= 0.5:
                self._use(number, alcohol_free=True)
            case "percent" if value <= _MOST_ABV:
                self._use(number, **{"min_abv" if left == "min" else "max_abv": value})
            case "hours" | "clock" if left == "max" or unit == "clock":
                self._use(number, hours=(value - _EVENING) % 12 or 12)
            case "hours" if value <= _MOST_HOURS:
                self._use(number, hours=value)
            case "bottles" if whole <= _MOST_GUESTS:
                self._use(number, bottles=whole)
            case "cases":
                self._use(number, bottles=6 * whole)
            case "" if self._found.guests is not None:
                return
            case "people" | "" if whole <= _MOST_GUESTS:
                self._use(number, guests=whole)
            case _:
                self._use(number)

    def _written(self) -> str:
        """The price in the person's own words: "so um die vierzig", "under 90 for the lot"."""
        if not self._found.has_price or not self._priced:
            return ""
        start, end = min(self._priced), max(self._priced) + 1
        while (match := self._phrases.before(start)).fields & set(_LIMITS):
            start = match.start
        while (match := self._phrases.at(end)).fields & {"currency", "total", "each"}:
            end = match.end
        return self._phrases.written(start, end)

    def _count_sober(self, numbers: Sequence[_Number]) -> None:
        """Of how many it is said that they drink nothing or little: "12 kids", "half drive"."""
        total = self._total(numbers)
        adults = total is not None and "adults" in self._phrases.at(total.end).fields
        for match in self._phrases.matches:
            is_light = "light" in match.fields
            if not (is_light or self._abstains(match)):
                continue
            near = range(max(0, match.start - 5), min(len(self._phrases.words), match.end + 4))
            if any("half" in self._phrases.at(each).fields for each in near):
                self._found = replace(self._found, sober=0.5 * (_LIGHT_SHARE if is_light else 1))
                return
            group = self._group(match, [each for each in numbers if each is not total])
            if group is None or (adults and "young" in match.fields):
                self._mark(*((group.start, group.end) if group else (0, 0)))
                continue
            amount = max(1.0, group.value * (_LIGHT_SHARE if is_light else 1))
            self._use(group, sober=(self._found.sober or 0) + amount)

    @staticmethod
    def _abstains(match: Match) -> bool:
        """Whether a phrase tells of guests to whom no wine is poured."""
        return bool(match.fields & {"sober", "abstains", "young"})

    def _total(self, numbers: Sequence[_Number]) -> _Number | None:
        """The number of all the guests, of which others are a part."""
        plain = [each for each in numbers if self._unit(each.end) in ("", "people")]
        for each in plain:
            behind, before = self._phrases.at(each.end), self._phrases.before(each.start)
            counted = "we_are" in before.fields or "people" in behind.fields
            if counted and "subgroup" not in behind.fields:
                return each
        return plain[0] if len(plain) > 1 and self._asks_quantity else None

    def _group(self, match: Match, numbers: Sequence[_Number]) -> _Number | None:
        """The number of those a phrase speaks of: the nearest before it, or right behind it."""
        free = [
            each
            for each in numbers
            if each.start not in self._used
            and (self._unit(each.end) in ("", "people") or each.end == match.start)
        ]
        before = [each for each in reversed(free) if match.start - 6 <= each.end <= match.start]
        after = [each for each in free if match.end <= each.start <= match.end + 2]
        near = [each for each in before if not self._has_comma(each.end, match.start)]
        return next(iter((*near, *after, *before)), None)

    def _has_comma(self, start: int, end: int) -> bool:
        return any(not word.is_word for word in self._phrases.words[start:end])

    def _price(
        self, low: float | None, high: float | None, currency: Currency | None, number: _Number
    ) -> None:
        old = self._found
        self._priced |= set(range(number.start, number.end))
        self._use(
            number,
            min_price=old.min_price if low is None else max(0.0, low),
            max_price=old.max_price if high is None else high,
            currency=currency or old.currency,
            stated=old.stated
            | {each for each in (low, high) if each is not None and number.written},
        )

    def _shared_total(self) -> Numbers:
        """The price of one bottle where that of several was given."""
        found = self._found
        is_case = "cases" in self._fields
        bottles = found.bottles or (6 if is_case else None)
        is_total = is_case or ("total" in self._fields and "each" not in self._fields)
        if not (found.max_price and bottles and bottles > 1 and is_total) or "each" in self._fields:
            return replace(found, bottles=bottles)
        share: dict[str, Any] = {
            name: None if value is None else round(value / bottles, 2)
            for name, value in (("min_price", found.min_price), ("max_price", found.max_price))
        }
        self._priced.clear()
        amounts = frozenset(value for value in share.values() if value is not None)
        return replace(found, bottles=bottles, stated=found.stated | amounts, **share)

    @staticmethod
    def _in_order(found: Numbers) -> Numbers:
        low, high = _ascending(found.min_price, found.max_price)
        weak, strong = _ascending(found.min_abv, found.max_abv)
        return replace(found, min_price=low, max_price=high, min_abv=weak, max_abv=strong)

    def _use(self, number: _Number, **values: Any) -> None:
        self._found = replace(self._found, **values)
        self._mark(number.start, number.end)

    def _mark(self, start: int, end: int) -> None:
        self._used.update(range(start, end))


def _ascending(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    return (high, low) if low is not None and high is not None and low > high else (low, high)


def to_number(text: str) -> float:
    """`1,200` and `1.200` are twelve hundred; `12,50` and `12.50` twelve and a half."""
    if _IN_THOUSANDS.fullmatch(text):
        return float(_POINT.sub("", text))
    whole, *decimals = _POINT.split(text)
    return min(float(f"{whole[:9]}.{decimals[0] if decimals else 0}"), 1e6)
