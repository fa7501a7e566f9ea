"""A person's own bottles: what they say of them, when to drink them, which suit. Pure."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal, get_args

from agent.house_sommelier.acts import with_kind
from agent.house_sommelier.lexicon import Token, parse, tokens
from agent.house_sommelier.model import query_for
from agent.house_sommelier.reading import read
from agent.house_sommelier.wines import wine_called
from agent.memory.reading import objects, own_words
from agent.sommelier.safety import may_be_shown
from agent.sommelier.taste import Wanted, is_of, written
from agent.sommelier.wine import (
    OWN,
    Currency,
    SoftFilter,
    Style,
    Wine,
    WineQuery,
    folded,
    window_of_name,
    window_of_wine,
)
from agent.tables import Strict, read_toml
from agent.text import Pattern, fold, of_words, pattern, sentences, spaced
from agent.turn import Bottles, Fact, Person

Cue = Literal[
    "own", "at_home", "bought", "drank", "choose", "ready", "opening", "count", "praise", "wish",
    "corrects", "undo", "of_them",
]  # fmt: skip
MOST: Final = 999
LONGEST: Final = 120
YEARS: Final = range(1900, 2101)
SPOKEN: Final = 16
"""Words of a message that may ask of a cellar without naming it."""
REACH: Final = 8
"""Words between the name of a wine and what it cost."""
SHORT: Final = 8
"""Words of a message that may leave out of which wine it is."""
SHOWN: Final = 3
PARTS: Final = pattern(r"[;:!?\n]+|[.,](?:\s+|$)")
"""What stands between parts of a message."""
ASKING: Final = frozenset(
    "foods fits temperature decant ageing glass keeps compare knowledge".split()
)
"""Kinds of what is asked of wine."""


class _Words(Strict):
    """What `cellar.toml` holds."""

    own: list[str]
    at_home: list[str]
    of_them: list[str]
    bought: list[str]
    drank: list[str]
    choose: list[str]
    ready: list[str]
    opening: list[str]
    count: list[str]
    praise: list[str]
    units: str
    price: str
    wish: list[str]
    corrects: list[str]
    undo: list[str]
    negates: str
    filling: str
    instead: str
    ends: str
    behind: str
    one: str
    all: str
    currencies: dict[str, Currency]


@cache
def _words() -> _Words:
    return read_toml(_Words, Path(__file__).with_suffix(".toml"))


@cache
def _pattern(cue: Cue) -> Pattern:
    return of_words(getattr(_words(), cue))


@cache
def listed(name: str) -> frozenset[str]:
    """Return the words of a list in `cellar.toml`."""
    return frozenset(getattr(_words(), name).split())


@dataclass(frozen=True, slots=True)
class CellarTalk:
    """What a message says of a person's bottles, and asks of them.

    `changed` are bottles to add, or to take where the count is negative. Of what was praised it
    tells a taste. `shows`: all are to be listed; `chooses`: some for an occasion, or if it
    `is_urgent`, what has least time left. It `is_all` if nothing else is asked. `begins` names the
    sentence that tells of the change.
    """

    changed: tuple[Bottles, ...] = ()
    liked: tuple[Fact, ...] = ()
    shows: bool = False
    chooses: bool = False
    is_urgent: bool = False
    is_all: bool = True
    text: str = ""
    begins: str = "cellar_added"

    def __bool__(self) -> bool:
        return bool(self.changed or self.shows or self.chooses)


NOTHING: Final = CellarTalk()


def read_cellar(message: str, person: Person, *, follows: bool = False) -> CellarTalk:
    """Read what a message, in any language, says and asks of a person's own bottles.

    It `follows` what was told of these.
    """
    text = own_words(message)
    said = spaced([fold(each.written) for each in tokens(text)])
    has = partial(has_cue, said)
    has_any = any(each.count for each in person.bottles)
    at_hand = has("at_home") or (follows and has("of_them") and not has("count"))
    owns = has("own") or (has_any and at_hand)
    bought = has("bought")
    if not (owns or bought or has_any):
        return NOTHING
    asks = "?" in text or ((bought or owns) and any(map(_asks, PARTS.split(text))))
    told = [each for each in sentences(text) if owns or not each.rstrip().endswith("?")]
    adds = (bought or owns) and not has("drank") and (owns or not has("wish"))
    added = tuple(bottles for each in told for bottles in _entries(each)) if adds else ()
    taken = () if added or asks or not (has_any and has("drank")) else _taken(text, person)
    about = owns or (has_any and has("opening"))
    foods = query_for(text).foods if about or has("count") else ()
    chooses = about and (has("choose") or has("ready") or bool(foods)) and not taken
    chooses = chooses and (asks or not added)
    counts = has("count") and (owns or len(said.split()) <= SPOKEN) and not (foods or has("wish"))
    shows = counts and has_any and not (taken or added or chooses)
    liked = tuple(fact for each in taken for fact in _liked(each)) if has("praise") else ()
    if taken:
        taken = tuple(replace(each, note=text[:LONGEST]) for each in taken)
    return CellarTalk(
        changed=added or taken,
        liked=liked,
        shows=shows,
        chooses=chooses,
        is_urgent=has("ready") or (has("opening") and not foods),
        is_all=not asks or chooses or shows,
        text=" ".join(each for each in told if each.endswith("?")) if added else text,
        begins="cellar_taken" if taken else "cellar_added",
    )


def _asks(part: str) -> bool:
    """Whether a part of a message that lists no bottles asks, without a sign, or names a dish."""
    if any(_entries(part)):
        return False
    change = with_kind(read(part), "told")
    return bool(change.wishes.dishes) or change.kind in ASKING


def has_cue(said: str, cue: Cue) -> bool:
    """Tell whether words, as `spaced` writes them, have one of a kind."""
    return bool(_pattern(cue).search(said))


def _liked(bottles: Bottles) -> Iterator[Fact]:
    wine = wine_of(bottles)
    for wanted, said in objects(wine.name)[:1]:
        yield Fact("like", written(wanted), said)


def _entries(text: str) -> Iterator[Bottles]:
    """The bottles that a message lists: how many, of what, of which year, for how much each."""
    words = [each for each in tokens(text) if each.written not in "~<>"]
    counts = counts_in(text, words)
    at = 0
    while at < len(words):
        count = counts.get(at, 0)
        end = at + 1
        if count:
            name, year, end = _name(words, at + 1, counts)
            price, currency, end = _price(words, end, counts)
            if bottles := _bottles(name, year, count, price, currency):
                yield bottles
        at = max(end, at + 1)


def counts_in(text: str, words: Sequence[Token]) -> dict[int, int]:
    """Return the numbers that may count bottles, in digits or words, by their places."""
    found = {at: 1 for at, each in enumerate(words) if fold(each.written) in listed("one")}
    starts, phrases = {each.start: at for at, each in enumerate(words)}, parse(text)
    for span in phrases.spans:
        value = next(iter(span.values("number")), "")
        place = starts.get(phrases.words[span.start].start)
        if place is not None and value.isdecimal():
            found[place] = int(value)
    for at, each in enumerate(words):
        bare = each.written.rstrip("x×")
        if bare.isdecimal() and len(bare) < 4 and 0 < int(bare) <= MOST:
            found[at] = int(bare)
    return found


def _name(words: Sequence[Token], at: int, counts: dict[int, int]) -> tuple[str, int | None, int]:
    """The name of a wine from a place on, its vintage, and where it ends."""
    name, year = list[str](), None
    while at < len(words):
        word = fold(words[at].written)
        if word.isdecimal() and int(word) in YEARS:
            year = int(word)
        elif word == "er" and not name and year:
            pass  # "2012er"
        elif not name and word in listed("units"):
            pass
        elif not words[at].is_word or at in counts or (name and word in listed("ends")):
            break
        else:
            name.append(words[at].written)
        at += 1
    while name and fold(name[-1]) in listed("units"):
        name.pop()
    return " ".join(name), year, at


def _price(
    words: Sequence[Token], at: int, counts: dict[int, int]
) -> tuple[float | None, Currency, int]:
    """What each bottle cost, if that stands right behind its name."""
    for place in range(at, min(at + REACH, len(words))):
        if (found := price_at(words, place)) is not None:
            return *found, place + 1
        word = words[place].written
        is_next = place in counts and fold(word) not in listed("price")
        is_end = (
            place > at
            and word == ","
            and not (place + 1 < len(words) and price_at(words, place + 1))
        )
        if is_next or is_end or _amount(word) is not None:
            break
    return None, Currency.EUR, at


def price_at(words: Sequence[Token], place: int) -> tuple[float, Currency] | None:
    """Return the price at a place, if a word beside it says that it is one."""
    amount = _amount(words[place].written)
    before = fold(words[place - 1].written) if place else ""
    after = [fold(word.written) for word in words[place + 1 : place + 3]]
    signs = _words().currencies
    known = next((signs[word] for word in (before, *after) if word in signs), None)
    if amount is None or not (
        known or before in listed("price") or not listed("behind").isdisjoint(after)
    ):
        return None
    return amount, known or Currency.EUR


def _amount(written: str) -> float | None:
    """The number that is written so; no word is one ("nan")."""
    try:
        return float(written.replace(",", ".")) if written[:1].isdecimal() else None
    except ValueError:
        return None


def _bottles(
    name: str, year: int | None, count: int, price: float | None, currency: Currency
) -> Bottles | None:
    """Bottles of a wine whose name says what it is; None for what may be no wine."""
    name = name.strip()[:LONGEST]
    named = [wanted for wanted, _ in objects(name)]
    telling = any({*wanted} - {"styles", "bodies", "sweetness"} for wanted in named)
    priced = bool(named) and price is not None
    if not (telling or priced or window_of_name(name) or (year and name)):
        return None
    return bottles_of(guessed(name, year, price, currency), count)


def bottles_of(wine: Wine, count: int, **told: object) -> Bottles:
    """Return so many bottles of a wine."""
    own = wine.model_copy(update={"id": OWN})
    facts = own.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    return Bottles(key=folded(own.label), wine=facts, count=count, **told)  # type: ignore[arg-type]


def guessed(
    name: str,
    year: int | None = None,
    price: float | None = None,
    currency: Currency = Currency.EUR,
) -> Wine:
    """Return a wine as far as its name tells; a red one if that tells nothing."""
    title = name[:1].upper() + name[1:]
    told: dict[str, Any] = {"vintage": year, "price": price, "currency": currency}
    known = wine_called(title, OWN, **told) or wine_called(title, OWN, Style.RED, **told)
    assert known is not None  # noqa: S101 - of a wine with a kind there always is one
    return known


def _taken(text: str, person: Person) -> tuple[Bottles, ...]:
    """The bottles that a message says are drunk, or gone: by their names, else the last changed."""
    owned = [each for each in person.bottles if each.count]
    words = [each for each in tokens(text) if each.is_word]
    named = objects(text)
    said = {fold(each.written) for each in words}
    meant = called(owned, [wanted for wanted, _ in named], said)
    if not meant and (named or len(words) > SHORT):
        return ()
    bottles = (meant or owned)[-1]
    counts = [*counts_in(text, words).values()]
    count = max(counts, default=1)
    if said & listed("all") and not counts:
        count = bottles.count
    return (replace(bottles, count=-min(count, bottles.count)),)


def called(
    owned: Sequence[Bottles], named: Sequence[Wanted], said: Collection[str]
) -> list[Bottles]:
    """Return the bottles that are named: by grape or region, else by a word of their label."""
    meant = [each for each in owned if any(is_of(wine_of(each), wanted) for wanted in named)]
    return meant or [each for each in owned if {*said} & _telling(each)]


def _telling(bottles: Bottles) -> set[str]:
    return {each for each in bottles.key.split() if len(each) > 3 and not each.isdecimal()}


def wine_of(bottles: Bottles) -> Wine:
    """Return the wine of bottles that a person owns, with an id of its own."""
    facts = {"producer": "", "country": "", **bottles.wine, "id": f"{OWN}{bottles.id}"}
    return Wine.model_validate(facts)


def window_of(bottles: Bottles) -> tuple[int, int] | None:
    """Return the years from and until which a wine is at its best; None without a vintage."""
    wine = wine_of(bottles)
    first, last = bottles.drink_from, bottles.drink_until
    if first and last:
        return first, last
    if wine.vintage is None:
        return (first or last or 0, last or first or 0) if first or last else None
    begin, end = window_of_wine(wine.style, wine.label, wine.region, wine.appellation, *wine.grapes)
    return first or wine.vintage + begin, last or wine.vintage + end


def state_of(bottles: Bottles, year: int) -> Literal["young", "ready", "late", "unknown"]:
    """Tell how a wine stands in a year: before its best, in it, or past it."""
    window = window_of(bottles)
    if window is None:
        return "unknown"
    return "young" if year < window[0] else "late" if year > window[1] else "ready"


def due_in(bottles: Sequence[Bottles], facts: Sequence[Fact], year: int) -> list[Bottles]:
    """Return the bottles whose best years begin or end in this one, and that were not told so."""
    known = {fact.value for fact in facts if fact.kind == "setting"}
    return [
        each
        for each in bottles
        if each.count and year in (window_of(each) or ()) and told_in(each, year).value not in known
    ]


def told_in(bottles: Bottles, year: int) -> Fact:
    """Return the setting of who was told in a year that a wine is due."""
    return Fact("setting", f"due {bottles.key}={year}")


def chosen(talk: CellarTalk, person: Person, year: int) -> list[Bottles]:
    """Return the bottles of a person that suit what is asked, the best first.

    What passes every limit, then what goes with the dish, then what has least time left.
    """
    query = query_for(talk.text).model_copy(update={"min_price": None, "max_price": None})

    def fits(bottles: Bottles) -> bool:
        wine = wine_of(bottles)
        return bottles.count > 0 and passes(wine, query) and may_be_shown(wine, person)

    def rank(bottles: Bottles) -> tuple[int, int, int]:
        wine, window = wine_of(bottles), window_of(bottles)
        misses = len(missing(wine, query))
        time_left = window[1] - year if window else 99
        young = int(state_of(bottles, year) == "young")
        return (young, time_left, misses) if talk.is_urgent else (young, misses, time_left)

    return sorted(filter(fits, person.bottles), key=rank)[:SHOWN]


FILTERS: Final = tuple(name for name in get_args(SoftFilter) if not name.endswith("_abv"))
UNWANTED: Final = {
    "without_styles": "styles",
    "without_grapes": "grapes",
    "without_countries": "countries",
    "without_regions": "regions",
}
OFTEN_UNKNOWN: Final = {
    "bodies": "body",
    "tannins": "tannin",
    "acidities": "acidity",
    "sweetness": "sweetness",
}
"""What nobody tells of most wines: one of which it is not known passes."""


def passes(wine: Wine, query: WineQuery) -> bool:
    """Tell whether a wine is all that a search excludes by, prices apart."""
    hard = (name for name in FILTERS if getattr(query, name) and name not in query.soft)
    unwanted = ((of, getattr(query, name)) for name, of in UNWANTED.items())
    return (
        all(_meets(wine, name, query) for name in hard)
        and not {*query.without_allergens} & {*wine.allergens}
        and not any(values and is_of(wine, {of: values}) for of, values in unwanted)
    )


def missing(wine: Wine, query: WineQuery) -> tuple[str, ...]:
    """Return the filters of a search that rank, and that a wine does not meet."""
    soft = (name for name in FILTERS if name in query.soft and getattr(query, name))
    return tuple(name for name in soft if not _meets(wine, name, query))


def _meets(wine: Wine, name: str, query: WineQuery) -> bool:
    is_unknown = name in OFTEN_UNKNOWN and getattr(wine, OFTEN_UNKNOWN[name]) is None
    return is_unknown or is_of(wine, {name: getattr(query, name)})
