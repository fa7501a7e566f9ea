"""What a message tells of who writes, as facts that hold for longer than its turn. Pure.

A sentence tells a taste if it has a word of taste ("hate", "am liebsten") and names what it is of;
what is wanted now, what somebody else likes and what a question asks is none. The names are those
that the house sommelier knows, in all languages.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from typing import Final, Literal

from agent.care.concerns import ALLERGIES, read_care
from agent.house_sommelier.lexicon import Phrases, Span, parse
from agent.house_sommelier.numbers import read_numbers
from agent.lengths import MESSAGE
from agent.markdown import live
from agent.sommelier.taste import Wanted, read, written
from agent.sommelier.wine import Currency
from agent.tables import Strict, read_toml
from agent.text import Language, Pattern, fold, of_words, pattern, sentences, spaced
from agent.turn import Fact, FactKind

Cue = Literal["none", "hate", "like"]
CUES: Final[tuple[Cue, ...]] = ("none", "hate", "like")
"""What goes first where words overlap."""
OBJECTS: Final = tuple(
    "regions grapes styles hue countries sweetness bodies tannins acidities text".split()
)
"""What a taste may be of, the narrowest first."""
NARROW: Final = frozenset({"regions", "grapes", "countries"})
"""What says all by itself."""
JOINING: Final = frozenset(
    "wine wines from of the de du des d la le les el los di della del il lo aus von der den dem "
    "uit van het with mit avec con".split()
)
"""Words between what is one wine: "reds from Spain", "Chardonnay with oak"."""
BARE: Final = frozenset(
    "a an the any all and or nor also too especially und oder auch sowie besonders et ou ni aussi "
    "y o tambien e anche en of ook vooral".split()
)
STOPS: Final = frozenset(".…,;:()\n–—!?")
REACH: Final = 4
"""Words between a word of taste and what it is of."""
REQUESTS: Final = frozenset({"choose", "which", "best"})
"""Words that ask for a wine, whatever else a sentence tells."""
LEAST_OF_SOMEBODY: Final = 2
"""Words that name somebody: "the kids", "half of them"."""
MOST_POINTS: Final = 10
GOOD: Final = 7
BAD: Final = 3
"""From how many points on a wine is liked, and up to how many it is not wanted again."""
POINTS_OF: Final = frozenset("/ von of sur de su van op auf".split())
POINTS_TO: Final = 3
"""Words of "8 von 10"."""
MARKED: Final = pattern(r"[<>{}\[\]|`*_#@\\=~]|/\p{L}{2}|\p{Sc}|\d(?:[ ()/-]?\d){4}")
"""What no note holds: markup, addresses, commands, prices, long numbers."""
MOST_SENTENCES: Final = 12
LONGEST_SAID: Final = 200
LARGEST_BUDGET: Final = 5000


class _Words(Strict):
    """What `telling.toml` holds: patterns of words."""

    hate: list[str]
    like: list[str]
    none: list[str]
    regret: list[str]
    remember: list[str]
    introduces: list[str]
    forget: list[str]
    orders: list[str]
    budget: list[str]
    usual: list[str]
    now: dict[Language, str]
    own: dict[Language, str]
    others: dict[Language, str]
    breaks: dict[Language, str]


@cache
def _words() -> _Words:
    file = Path(__file__).with_name("telling.toml")
    return read_toml(_Words, file)


@cache
def _pattern(name: str, language: Language = "en") -> Pattern:
    listed = getattr(_words(), name)
    return of_words([listed[language]] if isinstance(listed, dict) else listed)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message tells: facts to learn, facts that hold no more, and whether that is all.

    `named` is what the rest of it names: a wish of now.
    """

    learned: tuple[Fact, ...] = ()
    unlearned: tuple[Fact, ...] = ()
    is_all: bool = False
    named: tuple[Wanted, ...] = ()


NOTHING: Final = Reading()


def own_words(message: str) -> str:
    """Return a message without what stands in it of others: what is fenced, or forwarded."""
    lines = message[:MESSAGE].splitlines()
    if lines and lines[0].startswith("[forwarded"):
        return ""
    return "\n".join(each for each in lines if not each.startswith(">")).strip()


def read_message(message: str, known: Sequence[Fact] = ()) -> Reading:
    """Read what a message, in any language, tells of who writes, of whom this is known."""
    said = [each for line in own_words(message).splitlines() for each in sentences(line)]
    told = [_Sentence(each) for each in said[:MOST_SENTENCES]]
    is_kept = any(each.has("remember") for each in told)
    learned, unlearned = dict[tuple[str, str], Fact](), dict[tuple[str, str], Fact]()
    rest = len(said) > MOST_SENTENCES
    named = list[Wanted]()
    for each in told:
        gone = each.unlearned(known)
        unlearned |= {fact.key: fact for fact in gone}
        facts = [] if gone or each.takes_back else [*each.facts(is_kept=is_kept)]
        learned |= {fact.key: fact for fact in facts}
        rest = rest or each.asks(has_told=bool(facts or gone))
        named += [] if gone else each.wished()
    for fact in learned.values():
        unlearned |= {old.key: old for old in known if _contradicts(fact, old)}
    fresh = tuple(each for key, each in learned.items() if key not in {old.key for old in known})
    is_all = bool(learned or unlearned) and not rest
    return Reading(fresh, tuple(unlearned.values()), is_all, tuple(named))


def _contradicts(new: Fact, old: Fact) -> bool:
    """Whether a fact holds no more once another is told."""
    if new.kind == old.kind == "budget":
        return new.value != old.value
    return {new.kind, old.kind} == {"hate", "like"} and new.value == old.value


def objects(text: str) -> list[tuple[Wanted, str]]:
    """Read what of wine a text names, each with its own words."""
    sentence = _Sentence(text)
    return [(wanted, said) for _, _, wanted, said in sentence.objects]


def is_of_others(text: str) -> bool:
    """Tell whether a text speaks of somebody else."""
    return _Sentence(text).has("others")


def may_be_noted(text: str) -> bool:
    """Tell whether words may be kept as a note: no markup, link, price, number to call or order."""
    is_marked = MARKED.search(text) or any(live(text))
    return not (is_marked or _Sentence(text).has("orders"))


@dataclass(frozen=True)
class _Sentence:
    """One sentence: its known phrases, its words of taste, and what it names."""

    text: str
    cues: list[tuple[int, int, Cue]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        taken = set[int]()
        for kind in CUES:
            for start, end in self.found(kind):
                if taken.isdisjoint(range(start, end)):
                    taken |= {*range(start, end)}
                    self.cues.append((start, end, kind))
        self.cues.sort()

    @cached_property
    def phrases(self) -> Phrases:
        return parse(self.text)

    @cached_property
    def languages(self) -> tuple[Language, ...]:
        return self.phrases.languages or ("en",)

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(each.written) for each in self.phrases.words]

    @cached_property
    def _spaced(self) -> tuple[str, list[int]]:
        """The words as patterns look at them, and where each begins there."""
        lengths = (len(each) + 2 for each in self._folded)
        return spaced(self._folded), [1, *(1 + at for at in accumulate(lengths))]

    def found(self, name: str) -> list[tuple[int, int]]:
        """The places of words of a kind, as the first word and the one behind the last."""
        text, starts = self._spaced
        of_each = [
            {
                (bisect_left(starts, each.start()), bisect_left(starts, each.end()))
                for each in _pattern(name, language).finditer(text)
            }
            for language in self.languages
        ]
        # Where a sentence may be in several languages, it is one in none of which this is another.
        return sorted(of_each[0].intersection(*of_each[1:]))

    def has(self, name: str) -> bool:
        return bool(self.found(name))

    @cached_property
    def objects(self) -> list[tuple[int, int, Wanted, str]]:
        """What of wine is named, where: phrases that stand together are of one wine."""
        found = list[tuple[int, int, dict[str, tuple[str, ...]]]]()
        of_cues = {at for start, end, _ in self.cues for at in range(start, end)}
        for span in self.phrases.spans:
            named = _object(span)
            if not named or span.start in of_cues:
                continue
            between = range(found[-1][1], span.start) if found else ()
            is_one = bool(found) and all(self._folded[at] in JOINING for at in between)
            if is_one and not named.keys() & found[-1][2].keys():
                start, _, wanted = found[-1]
                found[-1] = start, span.end, wanted | named
            else:
                found.append((span.start, span.end, named))
        return [(a, z, wanted, self.phrases.written(a, z)) for a, z, wanted in found]

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        """The parts of the sentence between stops and words with which something else begins."""
        ends = {at for at, word in enumerate(self._folded) if word in STOPS}
        of_cues = {at for start, end, _ in self.cues for at in range(start, end)}
        ends |= {start for start, _ in self.found("breaks")} - of_cues
        edges = [-1, *sorted(ends), len(self._folded)]
        return [(a + 1, z) for a, z in pairwise(edges) if z > a + 1]

    def facts(self, *, is_kept: bool) -> Iterator[Fact]:
        """What the sentence tells of who writes; `is_kept`: it is to be remembered."""
        yield from (Fact("allergy", value, said) for value, said in self._allergens)
        if (budget := self._budget(is_kept=is_kept)) is not None:
            yield budget
        told = [*self._ratings()] or [*self._tastes(is_kept=is_kept)]
        yield from told
        nothing = not (told or budget or self._allergens)
        if nothing and (note := self._note()) and may_be_noted(note):
            yield Fact("note", note[:LONGEST_SAID], note[:LONGEST_SAID])

    def _note(self) -> str:
        """What is to be remembered in these very words; empty if nothing."""
        places = range(len(self._folded))
        has_points = not self.objects and any(self._points_at(at) is not None for at in places)
        if (self.has("remember") or has_points) and len(self._folded) >= REACH:
            return self.text.strip()
        at = next((start for start, _ in self.found("introduces")), -1)
        parts = ((start, end) for start, end in self._segments if start <= at < end)
        return next((self._said(start, end) for start, end in parts), "")

    def _tastes(self, *, is_kept: bool) -> Iterator[Fact]:
        for named, kind in self._told(is_kept=is_kept):
            _, _, wanted, said = named
            yield Fact(kind, written(wanted), said[:LONGEST_SAID])

    def _ratings(self) -> Iterator[Fact]:
        """What is named with points behind it, of ten: liked, hated, or noted."""
        if self.has("others") or self.text.rstrip().endswith("?"):
            return
        ends = [start for start, *_ in self.objects[1:]]
        for (start, end, wanted, _), last in zip_longest(self.objects, ends):
            places = range(end, last or len(self._folded))
            found = next(((at, n) for at in places if (n := self._points_at(at)) is not None), None)
            if found is not None:
                at, points = found
                name = self._said(start, at + POINTS_TO)
                kind: FactKind = "like" if points >= GOOD else "hate" if points <= BAD else "note"
                yield Fact(kind, name if kind == "note" else written(wanted), name)

    def _said(self, start: int, end: int) -> str:
        """These words as they stand in the sentence."""
        own = self.phrases.words[start:end]
        return self.text[own[0].start : own[-1].end][:LONGEST_SAID]

    def _points_at(self, at: int) -> float | None:
        """The points of ten that stand at a place: "8/10", "8 von 10"; None without."""
        words = [*self._folded[at : at + POINTS_TO], "", ""]
        number = words[0].replace(",", ".")
        is_of_ten = words[1] in POINTS_OF and words[2] == str(MOST_POINTS)
        is_number = number.replace(".", "", 1).isdecimal() and len(number) <= REACH
        return float(number) if is_of_ten and is_number and float(number) <= MOST_POINTS else None

    def _told(
        self, *, is_kept: bool = False
    ) -> Iterator[tuple[tuple[int, int, Wanted, str], FactKind]]:
        """What is named together with the word of taste that it belongs to."""
        before: Cue | None = None
        pending = list[tuple[int, int, Wanted, str]]()
        for start, end in self._segments:
            cues = [each for each in self.cues if start <= each[0] < end]
            if is_kept and not cues:
                cues = [(s.start, s.end, "hate") for s in self._denials(start, end)]
            named = [each for each in self.objects if start <= each[0] < end]
            passing = not is_kept and self._stands("now", start, end)
            passing |= bool(cues) and not is_kept and self._is_theirs(start, cues[0][0])
            asks = self._folded[end : end + 1] == ["?"] and not is_kept
            if passing or asks or self._stands("others", start, end):
                before, pending = None, []
            elif cues:
                told = named or pending
                paired = self._paired(told, cues, start if named else -1)
                at_table = self._has_dish(start, end)
                yield from (each for each in paired if not (at_table and each[1] == "hate"))
                before, pending = cues[-1][2], []
            elif self._is_bare(start, end, named):
                pending = named if before is None else []
                kind = before
                yield from ((each, kind) for each in named if kind in ("hate", "like"))
            else:
                before, pending = None, []

    def _paired(
        self,
        named: Sequence[tuple[int, int, Wanted, str]],
        cues: Sequence[tuple[int, int, Cue]],
        start: int,
    ) -> Iterator[tuple[tuple[int, int, Wanted, str], FactKind]]:
        """Each with the nearest word of taste before it, else the first behind it.

        One that follows what it is of ("Merlot I hate, and reds I love") is not of what comes next.
        """
        end, places, follows = -1, list(named), set[int]()
        for at, each in enumerate(places):
            before = [cue for cue in cues if cue[0] < each[0]]
            behind_it = [cue for cue in cues if cue[0] > each[0]]
            if before and before[-1][0] in follows and behind_it:
                before = []
            cue = before[-1] if before else behind_it[0] if behind_it else cues[0]
            follows |= set() if before else {cue[0]}
            behind = places[at + 1][0] if at + 1 < len(places) else cue[0]
            gap = each[0] - max(end, cue[1]) if before else min(cue[0], behind) - each[1]
            end = each[1]
            if start >= 0 and gap > REACH:
                continue
            if cue[2] != "none":
                yield each, cue[2]

    def _denials(self, start: int, end: int) -> list[Span]:
        spans = (each for each in self.phrases.spans if start <= each.start < end)
        return [each for each in spans if each.fields & {"not", "not_before"}]

    def _has_dish(self, start: int, end: int) -> bool:
        spans = self.phrases.spans
        return any("dish" in each.fields and start <= each.start < end for each in spans)

    def _stands(self, name: str, start: int, end: int) -> bool:
        return any(start <= at < end for at, _ in self.found(name))

    def _is_theirs(self, start: int, cue: int) -> bool:
        """Whether somebody else stands before a word of taste: "half of them only drink white"."""
        objects = {at for a, z, _, _ in self.objects for at in range(a, z)}
        before = [at for at in range(start, cue) if at not in objects]
        is_open = len(before) < LEAST_OF_SOMEBODY or not {*self.languages} <= _words().own.keys()
        return not (is_open or self.has("own"))

    def _is_bare(self, start: int, end: int, named: Iterable[tuple[int, int, Wanted, str]]) -> bool:
        """Whether a part of a sentence only goes on with a list."""
        own = {at for a, z, _, _ in named for at in range(a, z)}
        return bool(own) and all(
            at in own or self._folded[at] in BARE or self._folded[at] in JOINING
            for at in range(start, end)
        )

    @cached_property
    def _allergens(self) -> list[tuple[str, str]]:
        """What who writes does not tolerate, each with its own words."""
        if self.has("others") or self.text.rstrip().endswith("?"):
            return []
        spans = self.phrases.spans
        reacts = any("allergy" in each.fields for each in spans)
        by_care = read_care(self.text).allergies if reacts or self._folded else frozenset[str]()
        found = {
            value: self.phrases.written(each.start, each.end)
            for each in spans
            for value in each.values("allergen")
            if value in ALLERGIES and (reacts or value in by_care)
        }
        return [*({value: str(value) for value in sorted(by_care)} | found).items()]

    def _budget(self, *, is_kept: bool) -> Fact | None:
        """What who writes usually spends on a bottle."""
        is_usual = self.has("usual") or (is_kept and self.has("budget"))
        if not is_usual or self.has("others") or (self.has("now") and not is_kept):
            return None
        numbers = read_numbers(self.phrases)
        amount = numbers.max_price
        if amount is None and self.has("budget"):
            bare = [int(each) for each in self._folded if each.isdecimal() and len(each) < 5]
            amount = bare[0] if len(bare) == 1 else None
        if amount is None or not 0 < amount <= LARGEST_BUDGET:
            return None
        currency = numbers.currency or Currency.EUR
        return Fact("budget", f"{amount:g} {currency}", self.text.strip()[:LONGEST_SAID])

    @cached_property
    def takes_back(self) -> bool:
        """Whether the sentence, or a part of it, begins with that something is to be forgotten."""
        return self._taking_back is not None

    @cached_property
    def _taking_back(self) -> int | None:
        """Where it does."""
        starts = (start for start, _ in self.found("forget"))
        return next((at for at in starts if at <= 2 or self._folded[at - 1] in STOPS), None)

    def unlearned(self, known: Sequence[Fact]) -> list[Fact]:
        """Which of the known facts hold no more by this sentence."""
        is_told, regrets = self.takes_back, self.has("regret")
        if not (is_told or regrets):
            return []
        after = (self._taking_back or 0) if is_told else 0
        named = [wanted for start, _, wanted, _ in self.objects if start >= after]
        allergens = {v for each in self.phrases.spans for v in each.values("allergen")}
        kinds = {"hate"} if regrets else {"hate", "like"}
        speaks_of_allergy = any("allergy" in each.fields for each in self.phrases.spans)
        return [
            fact
            for fact in known
            if (fact.kind in kinds and any(_overlap(read(fact.value), each) for each in named))
            or (fact.kind == "rated" and is_told and read(fact.value) in named)
            or (fact.kind == "budget" and self.has("budget"))
            or (
                fact.kind == "allergy"
                and (fact.value in allergens or (speaks_of_allergy and not allergens))
            )
            or (fact.kind == "note" and is_told and _shares(fact.said, self._folded))
        ]

    def asks(self, *, has_told: bool) -> bool:
        """Whether there is more to the sentence than what it tells."""
        wishes = any(cue == "none" for _, _, cue in self.cues)
        dish = self._has_dish(0, len(self._folded))
        wishes |= any(REQUESTS & {*each.values("ask")} for each in self.phrases.spans)
        wishes |= any(self._leaves_it_open(*each) for each in self._segments)
        if self.text.rstrip().endswith("?") or wishes or (dish and not has_told):
            return True
        if has_told:
            told = [each for each, _ in self._told(is_kept=self.has("remember"))]
            breaks = {start for start, _ in self.found("breaks")}
            left = [each for each in self.objects if each not in told]
            is_left = any(a > min(breaks, default=a) for a, *_ in left)
            others = (part for part in self._segments if not self._tells(*part, told))
            return bool(self._allergens) or is_left or any(self._says(*each) for each in others)
        speaks = any(each.fields - {"talk"} for each in self.phrases.spans)
        return bool(self.objects or self.found("breaks") or speaks)

    def _leaves_it_open(self, start: int, end: int) -> bool:
        """Whether a part of the sentence names nothing and leaves the choice to the house."""
        spans = [each for each in self.phrases.spans if start <= each.start < end]
        names = any(start <= each[0] < end for each in self.objects)
        return not names and any("surprise" in each.values("talk") for each in spans)

    def _tells(self, start: int, end: int, told: Iterable[tuple[int, int, Wanted, str]]) -> bool:
        """Whether a part of the sentence belongs to what it tells."""
        has_cue = any(start <= at < end for at, _, _ in self.cues)
        return has_cue or any(start <= each[0] < end for each in told)

    def _says(self, start: int, end: int) -> bool:
        """Whether a part of the sentence says something of its own: a dish, or many words."""
        return self._has_dish(start, end) or end - start > REACH

    def wished(self) -> list[Wanted]:
        """What is named and neither told as a taste nor denied."""
        told = [each for each, _ in self._told()]
        denials = [each.end for each in self._denials(0, len(self._folded))]
        return [
            each[2]
            for each in self.objects
            if each not in told and not any(0 <= each[0] - end <= 1 for end in denials)
        ]


def _object(span: Span) -> dict[str, tuple[str, ...]]:
    """What of wine a phrase names, as filters of a search; "big reds" are two."""
    if "dish" in span.fields and not span.fields & {"grapes", "regions"}:
        return {}
    known = [each for each in OBJECTS if each in span.fields and "$" not in span.values(each)]
    if not known:
        return {}
    names = known[:1] if known[0] in NARROW else [each for each in known if each not in NARROW]
    return {
        "styles" if name == "hue" else name: span.values(name)[-1:]
        if name == "text"
        else span.values(name)
        for name in names
        if not (name == "text" and len(names) > 1)
    }


def _overlap(one: Wanted, other: Wanted) -> bool:
    """Whether what two names mean has anything in common."""
    return any({*values} & {*other.get(name, ())} for name, values in one.items())


def _shares(said: str, folded: Sequence[str]) -> bool:
    """Whether most of the telling words of a sentence stand in what was said."""
    telling = {each for each in folded if len(each) > REACH}
    return bool(telling) and 2 * len(telling & {*fold(said).split()}) > len(telling)
