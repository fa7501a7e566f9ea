"""One message as a request: what it wants of a wine, what it rules out, what it points at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent import lengths
from agent.fallback.prices import ANY_PRICE, Price, read_price
from agent.fallback.words import Span, dishes, language_of, scan, tokens
from agent.sommelier.wine import Body, Level, Sweetness

SCALES: Final[Mapping[str, Sequence[str]]] = {
    "sweetness": [*Sweetness],
    "bodies": [*Body],
    "tannins": [*Level],
    "acidities": [*Level],
}
"""The steps of what is told by degrees, from the least to the most."""
LISTS: Final = ("styles", "colours", *SCALES, "grapes", "countries", "regions", "text")
"""The fields of what a wine is to be, in the order in which they are said."""
WITH_COLOURS: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
"""Styles of which the colour is told besides."""
OF_KIND: Final = frozenset({"styles", "grapes", "regions", "colour"})
"""Fields of what a wine is: no ice wine is no word against sweet ones."""
EITHER: Final = frozenset("or oder ou o of u".split())
EITHERS: Final = EITHER | frozenset("nor noch ni".split())
LINKS: Final = EITHERS | frozenset(
    "and und et y e en ne nem neither , / a an the le la les l un une de du des d der "
    "die das den el los las il lo gli i een het uma um os as any auch also other andere anderen "
    "autre altri altre otro outro vin wine wein vino vinho wijn".split()
)
"""What may stand between two things that one negator rules out."""
STOPS: Final = frozenset(".;!?\n()")
FORWARD: Final = 5
"""Words between a negator and what it rules out."""
BACKWARD: Final = 4
"""Words between what is ruled out and the negator behind it."""
LINKED: Final = 3
"""Words between two things that one negator rules out."""
LEADING: Final = frozenset(
    "with for zu zum zur für fur mit bei beim pour avec au aux para con a per con col alla al voor "
    "bij met com".split()
)
"""What stands before a dish."""
SHORTEST_UNKNOWN: Final = 4
NOT_SWEET: Final = ("bone_dry", "dry", "off_dry")
MOST_VALUES: Final = 6
REMEMBERED: Final = 256
FEW_WORDS: Final = 4
"""Words of a message with a question mark that asks for wine by naming it: "Riesling?"."""


SHORTEST_NAMING: Final = 4
"""Words of a message that is no more than the name of a wine."""


@dataclass(frozen=True, slots=True)
class Dish:
    """A dish as the person wrote it, the foods it counts as, and the pairing it goes by."""

    name: str
    foods: tuple[str, ...]
    pairing: str


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Something that the wine must not be: a field and its value, as the person wrote it."""

    field: str
    value: str
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Hold what a user asks for; a field is empty if the message does not mention it.

    `wanted` maps the fields of a search to the values that a wine is to have. `cues` are said of
    the wines that were shown: cheaper, dearer, lighter, fuller, drier, sweeter, other, like, why.
    `ordinals` count them from 1, -1 is the last. `unknown` are the words that no table knows.
    """

    text: str = ""
    language: str = "en"
    wanted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dishes: tuple[Dish, ...] = ()
    price: Price = ANY_PRICE
    max_abv: float | None = None
    without: tuple[Exclusion, ...] = ()
    allergens: tuple[str, ...] = ()
    order: str = ""
    cues: frozenset[str] = frozenset()
    ordinals: tuple[int, ...] = ()
    name: str = ""
    unknown: tuple[str, ...] = ()
    is_question: bool = False
    is_about_wine: bool = False
    is_greeting: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was said by which wines can be found."""
        return not (self.says_what or self.cues or self.ordinals)

    @property
    def says_what(self) -> bool:
        """Return whether something was said of the wine itself."""
        named = (self.wanted, self.dishes, self.without, self.allergens, self.order, self.name)
        return any(named) or self.price != ANY_PRICE or self.max_abv is not None

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values that a field is to have."""
        return self.wanted.get(name, ())


def read_request(text: str, default: str = "en") -> Request:
    """Return what a message asks for; `default` is its language if nothing in it tells."""
    return _read(text[: lengths.MESSAGE], default)


@lru_cache(REMEMBERED)
def _read(text: str, default: str) -> Request:
    language = language_of(text, default)
    return _Reader(text, language).request()


class _Reader:
    """Reads one message, phrase by phrase."""

    def __init__(self, text: str, language: str) -> None:
        self.text, self.language = text, language
        self.words = tokens(text)
        spans = scan(self.words, language)
        self.price, used = read_price(self.words, spans)
        self.spans = [
            span for span in spans if not used & set(range(span.start, span.end)) or span.has("not")
        ]
        self.used = used
        self.denied = self._denied()
        self.denied_starts = {span.start for span in self.denied}

    def request(self) -> Request:
        """Return all that the message says."""
        wanted, without = self._tastes()
        marks = {mark for span in self.spans for mark in span.values("mark")}
        allergic = "allergy" in marks
        price = self.price
        caps = [float(value) for span in self._wanted() for value in span.values("cap")]
        if caps and price == ANY_PRICE:
            price = Price(high=min(caps))
        abv = [float(value) for span in self._wanted() for value in span.values("max_abv")]
        request = Request(
            text=self.text,
            language=self.language,
            wanted=wanted,
            dishes=self._dishes(allergic),
            price=price,
            max_abv=min(abv, default=None),
            without=without,
            allergens=self._allergens(allergic),
            order=next(iter(self._values("order")), ""),
            cues=self._cues(),
            ordinals=tuple(dict.fromkeys(map(int, self._values("ordinal")))),
            unknown=self._unknown(),
            is_about_wine="wine" in marks or "wish" in marks,
            is_greeting="hello" in marks,
        )
        request = replace(request, name=self._name(request))
        return replace(request, is_question=self._is_question(request, marks))

    def _wanted(self) -> list[Span]:
        return [span for span in self.spans if span.start not in self.denied_starts]

    def _cues(self) -> frozenset[str]:
        """Return what is asked of the wines shown; "or other bubbles" asks nothing of them."""
        return frozenset(
            cue
            for span in self._wanted()
            for cue in span.values("cue")
            if cue != "other" or self._word(span.start - 1) not in EITHER
        )

    def _word(self, place: int) -> str:
        """Return the stem of the word at a place; empty outside of the message."""
        return self.words[place].stem if 0 <= place < len(self.words) else ""

    def _values(self, name: str) -> list[str]:
        return [value for span in self._wanted() for value in span.values(name)]

    def _written(self, span: Span) -> str:
        start, end = self.words[span.start].start, self.words[span.end - 1].end
        return self.text[start:end]

    # What is ruled out.

    def _clauses(self) -> list[range]:
        """Return the parts of the message that a negator does not reach out of."""
        ends = {at for at, word in enumerate(self.words) if word.stem in STOPS}
        buts = {span.start for span in self.spans if span.has("but")}
        cuts = sorted({0, len(self.words), *(end + 1 for end in ends), *buts})
        return [range(start, end) for start, end in pairwise(cuts)]

    def _denied(self) -> list[Span]:
        """Return the phrases that a negator rules out: behind it, or else right before it."""
        denied: list[Span] = []
        for clause in self._clauses():
            inside = [span for span in self.spans if span.start in clause]
            for at, span in enumerate(inside):
                if span.has("ignore") or not (span.has("not") or span.has("not_behind")):
                    continue
                behind, before = inside[at + 1 :], inside[:at]
                ahead = self._ruled_out(span, behind, FORWARD) if span.has("not") else []
                is_of_cue = bool(behind and behind[0].values("cue"))
                if not (ahead or is_of_cue):
                    ahead = self._ruled_out(span, before[::-1], BACKWARD)
                denied += ahead
        return denied

    def _ruled_out(self, negator: Span, spans: Sequence[Span], reach: int) -> list[Span]:
        """Return the nearest thing within reach, and those that are linked to it."""
        found: list[Span] = []
        last = negator
        for span in spans:
            if not _names(span):
                if span.has("not") or span.has("wish"):
                    break
                continue
            first, second = sorted((last, span), key=lambda phrase: phrase.start)
            between = [word.stem for word in self.words[first.end : second.start]]
            if found and not self._is_linked(found[-1], span, between):
                break
            if not found and (len(between) > reach or "," in between):
                break
            found.append(span)
            last = span
        return found

    def _is_linked(self, last: Span, span: Span, between: Sequence[str]) -> bool:
        """Return whether a negator that rules out `last` rules out the next thing too."""
        is_alike = bool(_kinds(last) & _kinds(span))
        if not between:
            return is_alike or not ("dish" in span.meanings or "text" in last.meanings)
        return (
            len(between) <= LINKED
            and LINKS.issuperset(between)
            and (is_alike or not EITHERS.isdisjoint(between))
        )

    # What is wanted.

    def _tastes(self) -> tuple[dict[str, tuple[str, ...]], tuple[Exclusion, ...]]:
        wanted: dict[str, list[str]] = {}
        without: list[Exclusion] = []
        for name, values in _opposites(self.denied):
            wanted[name] = list(values)
        for span in self.spans:
            if span.start in self.denied_starts:
                without += self._exclusions(span)
            else:
                for name in (*SCALES, "styles", "grapes", "countries", "regions", "text"):
                    wanted.setdefault(name, []).extend(span.values(name))
        self._add_colours(wanted)
        out = {(exclusion.field, exclusion.value) for exclusion in without}
        tidy = {
            name: tuple(value for value in dict.fromkeys(asked) if (name, value) not in out)
            for name in LISTS
            if (asked := wanted.get(name))
        }
        return {name: values[:MOST_VALUES] for name, values in tidy.items() if values}, tuple(
            without
        )

    def _add_colours(self, wanted: dict[str, list[str]]) -> None:
        """Add colours: styles by themselves, but of a sparkling wine its colour."""
        styles = wanted.setdefault("styles", [])
        if "alcohol_free" in styles:
            styles[:] = ["alcohol_free"]
        has_own = bool(WITH_COLOURS & set(styles))
        for span in self._wanted():
            around = {self._word(span.start - 1), self._word(span.end)}
            is_other = around & EITHER and "alcohol_free" not in styles
            name = "colours" if has_own and not is_other else "styles"
            wanted.setdefault(name, []).extend(span.values("colour"))

    def _exclusions(self, span: Span) -> list[Exclusion]:
        said = self._written(span)
        if span.values("regions") or span.values("grapes"):
            names: Sequence[str] = ("regions", "grapes")
        else:
            names = ("styles", "countries", "text")
        found = [Exclusion(name, value, said) for name in names for value in span.values(name)]
        return found + [
            Exclusion("styles", colour, said) for colour in span.values("colour") if not found
        ]

    def _dishes(self, allergic: bool) -> tuple[Dish, ...]:
        found: list[tuple[Dish, bool]] = []
        for span in self._wanted():
            if allergic and span.values("allergen"):
                continue
            for number in span.values("dish")[:1]:
                known = dishes()[int(number)]
                foods = tuple(map(str, known.foods))
                dish = Dish(self._written(span), foods, known.pairing or foods[0])
                found.append((dish, known.side))
        mains = [dish for dish, is_side in found if not is_side] or [dish for dish, _ in found]
        return tuple(dict.fromkeys(mains))[:MOST_VALUES]

    def _allergens(self, allergic: bool) -> tuple[str, ...]:
        told = [value for span in self.spans for value in span.values("without_allergens")]
        for span in self.spans:
            is_denied = span.start in self.denied_starts and not span.values("dish")
            if allergic or is_denied:
                told += span.values("allergen")
        return tuple(dict.fromkeys(told))

    # What is not understood, and what is asked.

    def _covered(self) -> set[int]:
        return self.used.union(*(range(span.start, span.end) for span in self.spans))

    def _unknown(self) -> tuple[str, ...]:
        """Return the words that no table knows and that stand where a dish or a name does."""
        covered, found = self._covered(), list[str]()
        for at, word in enumerate(self.words):
            if at in covered or not word.is_word or word.stem in LEADING:
                continue
            before = {self._word(at - 1), self._word(at - 2)}
            leads = len(word.stem) >= SHORTEST_UNKNOWN and bool(LEADING & before)
            if leads or self._is_name(at):
                found.append(word.written)
        return tuple(dict.fromkeys(found))[:MOST_VALUES]

    def _is_name(self, at: int) -> bool:
        """Return whether a word is written as a name: in German any noun is."""
        word = self.words[at].written
        begins = at == 0 or self.words[at - 1].stem in STOPS
        return word[:1].isupper() and not begins and self.language != "de" and not word.isupper()

    def _name(self, request: Request) -> str:
        """Return the name of a wine or a producer, if the message asks for nothing else."""
        if request.says_what or request.cues or request.ordinals:
            return ""
        covered, runs = self._covered(), list[list[str]]([[]])
        for at, word in enumerate(self.words):
            if at not in covered and word.is_word and word.written[:1].isupper():
                runs[-1].append(word.written)
            else:
                runs.append([])
        longest = max(runs, key=len)
        is_one = len(longest) > 1 or bool(longest and longest[0] in request.unknown)
        is_wanted = request.is_about_wine or len(self.words) <= SHORTEST_NAMING
        return " ".join(longest) if is_one and is_wanted else ""

    def _is_question(self, request: Request, marks: set[str]) -> bool:
        """Return whether the message asks to know something rather than for a wine."""
        is_bought = bool(request.dishes) or request.price != ANY_PRICE
        if "explain" in marks:
            return not (is_bought or ("wish" in marks and request.wanted))
        is_asked = self.text.rstrip().endswith("?") or "?" in self.text
        is_asked = is_asked or (not is_bought and self._opens())
        words = sum(word.is_word for word in self.words)
        is_wish = "wish" in marks or is_bought or bool(request.cues or request.ordinals)
        return is_asked and words >= FEW_WORDS and not is_wish

    def _opens(self) -> bool:
        """Return whether the message begins as a question does: "how", "why", "can"."""
        first = next((span for span in self.spans if span.start == 0), None)
        return first is not None and first.has("opens")


def _names(span: Span) -> bool:
    """Return whether a phrase names something that a wine can be, or be for."""
    return bool(_kinds(span) or {"dish", "allergen"} & span.meanings.keys())


def _kinds(span: Span) -> set[str]:
    found = {"colour", *LISTS, "max_abv"} & span.meanings.keys()
    return found | ({"styles"} if "colour" in found else set())


def _opposites(denied: Sequence[Span]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what "not sweet" wants: the other steps of the scale."""
    tastes = [span for span in denied if not span.meanings.keys() & OF_KIND]
    found = []
    for name, scale in SCALES.items():
        values = {value for span in tastes for value in span.values(name)}
        steps = NOT_SWEET if name == "sweetness" and "sweet" in values else tuple(scale)
        if values:
            found.append((name, tuple(str(step) for step in steps if step not in values)))
    return found
