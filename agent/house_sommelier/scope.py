"""What of a message is wanted, ruled out, not tolerated, and which parts it has. Pure.

A "no" reaches over fillers and lists ("not Riesling, Malbec or from Chile"), or back to what stands
before it ("bubbles no, thanks", "Riesling mag ich nicht"). A taste beside a food is the food's.

Parts want a wine each ("6 reds and 6 whites"): kinds of wine that an "and" joins, and those that
are counted; an "or" makes them alternatives. What only one part has (its dish, its country) is its
own; the rest is for all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from agent.house_sommelier.data import SCALES, Build, profiles
from agent.house_sommelier.lexicon import (
    UNWANTED,
    Meaning,
    Phrases,
    Span,
    grammar_stems,
    is_mention,
    lexicon,
    stop_words,
    unwanted,
)
from agent.text import fold
from agent.vocabulary import is_word

WISHES: Final = frozenset(
    "dish hue styles sweetness bodies tannins acidities grapes countries regions text min_abv "
    "max_abv elsewhere_from".split()
)
_GRAMMAR: Final = frozenset(
    "joined max min about between max_after min_after people hours half each total number "
    "adds".split()
)
"""Words of numbers: in a clause they are words like any other."""
_PASSED: Final = frozenset(
    {"joined", "between", "wine", "cue", "different", "ignore", "only", "also"}
)
_CLASSES: Final[tuple[frozenset[str], ...]] = (
    frozenset({"grapes", "countries", "regions", "text", "name", "elsewhere_from"}),
    frozenset({"hue", "styles"}),
    frozenset({"allergen", "elsewhere", "dish"}),
    frozenset({"sweetness", "bodies", "tannins", "acidities", "text"}),
)
"""What a list of exclusions may mix."""
_HABITS: Final = frozenset({"grapes", "regions", "hue", "styles"})
_NAMED: Final = frozenset({"grapes", "regions"})
_OF_SHOWN: Final = frozenset({"countries", "regions", "grapes", "hue"})
_FOOD: Final = frozenset({"allergen", "elsewhere", "dish"})
_TASTES: Final = frozenset({"sweetness", "bodies", "acidities", "text", "tannins"})
_OPPOSITE: Final[Mapping[Meaning, Meaning]] = {
    Meaning("sweetness", ("sweet", "luscious")): Meaning("sweetness", ("bone_dry", "dry")),
    Meaning("sweetness", ("bone_dry", "dry")): Meaning("sweetness", ("off_dry", "medium", "sweet")),
    Meaning("bodies", ("light", "medium_light")): Meaning(
        "bodies", ("medium", "medium_full", "full")
    ),
    Meaning("bodies", ("medium_full", "full")): Meaning(
        "bodies", ("light", "medium_light", "medium")
    ),
    Meaning("tannins", ("high",)): Meaning("tannins", ("none", "low", "medium")),
    Meaning("substance", ("tannin",)): Meaning("tannins", ("none", "low")),
    Meaning("acidities", ("high",)): Meaning("acidities", ("low", "medium")),
}

Mode = Literal["", "not", "allergy", "drop", "taste"]


class Scope:
    """The known phrases of a message, sorted.

    `wanted` are wishes and all other words of meaning, `denied` exclusions, `implied` what they
    ask for instead, `denied_words` the places of excluded names that nothing knows, `dropped` the
    fields that no longer count, `elsewhere` whether an allergen was named that no wine declares,
    `only` the fields said with "only".
    """

    def __init__(self, phrases: Phrases, *, judges: bool = False, blames: bool = False) -> None:
        self.phrases = phrases
        self.wanted: list[Span] = []
        self.denied: list[Span] = []
        self.implied: list[Meaning] = []
        self.allergens: list[str] = []
        self.denied_words: list[int] = []
        self.dropped: set[str] = set()
        self.elsewhere = False
        self.only: frozenset[str] = frozenset()
        self._mode: Mode = ""
        self._kinds: frozenset[str] = frozenset()
        self._refusing: Span | None = None
        self._linked = self._also_not = self._only_next = self._dangles = False
        self._prefers = self._leaves = False
        self._run: list[Span] = []
        at = 0
        while at < len(phrases.words):
            span = phrases.at(at)
            self._prefers |= phrases.stem(at) in grammar_stems("preferring")
            self._leaves |= phrases.stem(at) in grammar_stems("leaving")
            if span.fields - _GRAMMAR:
                self._read_span(span)
            else:
                self.wanted += [span] if span.fields else []
                for place in range(at, max(span.end, at + 1)):
                    self._read_word(place)
            at = max(span.end, at + 1)
        self._end()
        self._take_back()
        self._leave_habit()
        self._leave_owned()
        self._leave_too_much()
        if judges:
            self._judge()
        if blames:
            self._blame()
        self._keep_manner()
        out = {span.meanings for span in self.denied}
        # "Nothing Italian, my ex was Italian": what is ruled out is no wish.
        self.wanted = [span for span in self.wanted if span.meanings not in out]

    def _take_back(self) -> None:
        """Leave out what is corrected behind it: "pizza, no wait, lasagne"."""
        place = max((s.start for s in self.wanted if "corrects" in s.fields), default=0)
        told = {field for s in self.wanted if s.start > place for field in s.fields & WISHES}
        self.wanted = [s for s in self.wanted if s.start >= place or not s.fields & told]

    def _leave_habit(self) -> None:
        """Rule out what is drunk by habit, or named, where a change is wanted; its colour stays.

        "I usually drink Malbec, but want to try something different"; "Barolo he has".
        """
        words = range(len(self.phrases.words))
        other = [s.start for s in self.wanted if "different" in s.fields]
        if not other or self.phrases.is_among(other[-1] - 1, "either"):
            return
        has_habit = any(self.phrases.is_among(at, "habits") for at in words)
        left = _HABITS if has_habit else _NAMED
        known = [s for s in self.wanted if s.start < other[-1] and s.fields <= left]
        for span in known:
            self.wanted.remove(span)
            self._deny(span)
            keeps = has_habit or not any("dish" in each.fields for each in self.wanted)
            colours = [build.colour for build in _builds(span) if build.colour and keeps]
            self.implied += [Meaning("hue", (str(each),)) for each in colours[:1]]

    def _leave_owned(self) -> None:
        """Rule out what somebody has, or was given: "Priorat I gave him last year already"."""
        phrases, last = self.phrases, len(self.phrases.words)
        stops = [
            at for at in range(last) if phrases.is_among(at, "stops") or phrases.stem(at) == ","
        ]
        clauses = [range(first + 1, end) for first, end in pairwise((-1, *stops, last))]
        is_told = ("already", "owning")
        for clause in clauses if phrases.stem(last - 1) != "?" else ():
            if not all(any(phrases.is_among(at, name) for at in clause) for name in is_told):
                continue
            for span in [s for s in self.wanted if s.start in clause and s.fields <= _NAMED]:
                self.wanted.remove(span)
                self._deny(span)

    def _leave_too_much(self) -> None:
        """Rule out what is told to taste too much of something: "Riesling is too sour for me"."""
        for taste in self.phrases.spans:
            if not (taste.fields & _TASTES and self._is_too_much(taste)):
                continue
            for span in [s for s in self.wanted if s.fields <= _NAMED and s.start < taste.start]:
                between = range(span.end, taste.start)
                if all(self.phrases.words[at].is_word for at in between):
                    self.wanted.remove(span)
                    self._deny(span)

    def _keep_manner(self) -> None:
        """Look for what is like a wine that is left out: "I like Nebbiolo, but it costs too much".

        Its colour and body are wished where "something similar" is.
        """
        if not any("like" in span.fields for span in self.wanted):
            return
        fields = {field for span in self.wanted for field in span.fields}
        builds = [build for span in self.denied if span.fields <= _NAMED for build in _builds(span)]
        for build in [each for each in builds if each.colour and not fields & {"hue", "styles"}][
            :1
        ]:
            rank = build.rank("body")
            near = tuple(map(str, SCALES["body"][max(0, rank - 1) : rank + 2]))
            self.implied += [Meaning("hue", (str(build.colour),)), Meaning("bodies", near)]

    def _judge(self) -> None:
        """Rule out what the words around it tell of as unwanted, where no word of grammar does.

        What is named in one breath, "Prosecco or other bubbles", is wanted or unwanted as one; of
        a red that was too heavy the weight is unwanted, not the colour.
        """
        tells_fault = any(each.fields <= _TASTES for each in self.denied)
        for run in self._mentions():
            if tells_fault and run[0].fields <= _KINDS:
                continue
            likely = sum(unwanted(self.phrases, each) for each in run) / len(run)
            for span in run if likely >= UNWANTED else ():
                self.wanted.remove(span)
                self._deny(span)

    def _blame(self) -> None:
        """Rule out every taste that is told of a wine found fault with, up to what is wished."""
        words = self.phrases.words
        wishes = [at for at in range(len(words)) if self.phrases.is_among(at, "wishing")]
        end = min(wishes, default=len(words))
        for span in [each for each in self.wanted if each.fields <= _TASTES | {"trait"}]:
            if span.start < end:
                self.wanted.remove(span)
                self._deny(span)

    def _mentions(self) -> list[list[Span]]:
        """The kinds and tastes named, those together between which there is only an "or"."""
        runs: list[list[Span]] = []
        for span in sorted(filter(is_mention, self.wanted), key=lambda each: each.start):
            between = range(runs[-1][-1].end, span.start) if runs else ()
            if between and all(self._links(at) for at in between):
                runs[-1].append(span)
            else:
                runs.append([span])
        return runs

    def _links(self, at: int) -> bool:
        word = self.phrases.stem(at)
        is_other = "cue" in self.phrases.at(at).fields
        return is_other or word in grammar_stems("links") or word in grammar_stems("fillers")

    def _enter(self, mode: Mode) -> None:
        self._mode, self._kinds, self._refusing = mode, frozenset(), None
        self._linked = self._also_not = False
        self._dangles = mode == "not"

    def _end(self) -> None:
        """End a clause: a "no" that ruled nothing out is one to what stands before it."""
        if self._dangles and self._refusing:
            self.wanted.append(self._refusing)
        elif self._dangles:
            for span in self._run:
                self.wanted.remove(span)
                if "ordinal" in span.fields:
                    self.wanted.append(Span(span.start, span.end, (Meaning("refuse", ("yes",)),)))
                self._deny(span)
        self._enter("")
        self._only_next = self._prefers = self._leaves = False
        self._run = []

    def _read_word(self, at: int) -> None:
        """A word that nothing knows: the clause goes on or ends."""
        word = self.phrases.stem(at)
        if self._run and self._is_second(word):
            return
        if self._ends_clause(at):
            self._end()
            return
        is_link, is_filler = (
            word in grammar_stems("links"),
            word == "?" or word in grammar_stems("fillers"),
        )
        self._only_next &= is_filler
        if not self._mode:
            self._run = self._run if is_link or is_filler else []
        elif self._mode == "not" and not self._kinds:
            if not is_filler and self._is_name(at):
                self.denied_words.append(at)
                self._kinds, self._dangles = frozenset({"name"}), False
            elif not (is_link or is_filler):
                self._enter("")
        elif self._mode == "allergy":
            if not (is_link or word == "," or word in grammar_stems("tolerance")):
                self._enter("")
        else:
            self._linked |= is_link or word in (",", "/")
            self._also_not |= word in grammar_stems("also_not") or word == ","
            if not (self._linked or is_link) or not (is_link or is_filler or word in (",", "/")):
                self._enter("")

    def _ends_clause(self, at: int) -> bool:
        """Whether a sign ends the clause; none does before a "no thanks": "Merlot? No thanks"."""
        sign = self.phrases.stem(at)
        if sign == "?" and "not_before" in self.phrases.at(at + 1).fields:
            return False
        ends = sign in grammar_stems("stops") or sign == "\n"
        return ends or (sign == "," and not self._goes_on(at))

    def _is_second(self, word: str) -> bool:
        """Begin or end a "no" at the second word of a pair: "rather … than", "leave … out"."""
        leaves = self._leaves and word in grammar_stems("left")
        if not (leaves or (self._prefers and word in grammar_stems("than_what_is_preferred"))):
            return False
        self._enter("not")
        if leaves:
            self._end()
        return True

    def _is_name(self, at: int) -> bool:
        """Whether an unknown word is the name of what is ruled out: "not Penfolds", "kein xy"."""
        word = self.phrases.words[at]
        everyday = word.stem in lexicon().words or word.stem in stop_words("chatter")
        if not word.is_word or len(word.stem) < 3 or everyday:
            return False
        language = (*self.phrases.languages, "en")[0]
        is_name = word.written[0].isupper() or not is_word(fold(word.written), language)
        return is_name or self.phrases.is_among(at - 1, "no_such")

    def _goes_on(self, comma: int) -> bool:
        """Whether an exclusion reaches over a comma: a list of one kind that an "or" ends."""
        if self._mode == "allergy":
            return bool(_FOOD & self.phrases.at(comma + 1).fields)
        if not self._kinds:
            return False
        at, linked = comma + 1, False
        while at < len(self.phrases.words):
            span, word = self.phrases.at(at), self.phrases.stem(at)
            if span.fields & WISHES or span.fields & _FOOD:
                if not self._is_alike(span.fields):
                    return False
                if linked or self._kinds <= {"allergen"}:
                    return True
            elif word in grammar_stems("links"):
                linked = True
            elif word != "," and word not in grammar_stems("fillers"):
                return False
            at = max(span.end, at + 1)
        return False

    def _is_alike(self, fields: frozenset[str]) -> bool:
        return any(each & fields and each & self._kinds for each in _CLASSES)

    def _read_span(self, span: Span) -> None:
        """A known phrase: a wish, a marker, or what a marker holds."""
        fields = span.fields
        if "but" in fields:
            self._end()
        elif "allergy" in fields:
            self._not_tolerated_before(span)
            self._enter("allergy")
        elif fields & {"not", "not_before"} and not fields & WISHES:
            self._refuse(span, fields)
        elif self._mode == "not" and "taste" in span.values("trait") and not self._kinds:
            # "Nothing that tastes of wood."
            self._dangles = False
        elif "drop" in fields or "taste" in span.values("trait") or "abstains" in fields:
            self.wanted.append(span)
            self._enter("drop" if "drop" in fields else "taste" if "trait" in fields else "not")
            self._dangles &= "group" not in span.values("abstains")
        elif self._mode == "taste" and "dish" in fields:
            self.wanted.append(Span(span.start, span.end, (Meaning("text", ("$",)),)))
        elif self._mode == "allergy" and fields & _FOOD:
            self._not_tolerate(span)
        elif self._mode == "drop" and fields & WISHES:
            self.dropped |= fields & WISHES
            self._deny(span)
            self._enter("")
        elif self._mode == "not" or (fields & _OF_SHOWN and self._tells_of_shown(span.start)):
            self._in_denial(span, fields)
        else:
            self._want(span, fields)

    def _is_too_much(self, span: Span) -> bool:
        """Whether a taste is told as a fault: "way too sour"; not "zu süßen Speisen"."""
        written = self.phrases.written(span.start, span.end).lower()
        is_inflected = written.endswith(("em", "en"))
        return self.phrases.is_among(span.start - 1, "excess") and not is_inflected

    def _refuse(self, span: Span, fields: frozenset[str]) -> None:
        """A "no": to what follows, or to what stands before it."""
        if self._mode and not self._run and "not" not in fields:
            # "Do not give me Riesling" is no "Riesling gives me a headache".
            return
        self.wanted += [span] if "remove" in fields else []
        self._enter("not")
        self._refusing = span if "refuse" in fields else None
        if "not_before" in fields and (self._run or "not" not in fields):
            self._end()

    def _tells_of_shown(self, at: int) -> bool:
        """Whether a message finds fault with what was shown: "those are all Italian"."""
        phrases = self.phrases
        at -= 1
        while phrases.stem(at) in grammar_stems("fillers"):
            at -= 1
        of_shown = phrases.is_among(at - 1, "pronouns_of_many")
        asks = any(word.stem == "?" for word in phrases.words)
        return of_shown and phrases.is_among(at, "copulas") and not asks

    def _not_tolerated_before(self, marker: Span) -> None:
        """ "Egg and milk allergy": what stands right before the marker."""
        if self._run and self._run[-1].end == marker.start:
            for span in reversed(self._run):
                if not span.fields & {"allergen", "elsewhere"}:
                    return
                self.wanted.remove(span)
                self._not_tolerate(span)

    def _in_denial(self, span: Span, fields: frozenset[str]) -> None:
        self._dangles = False
        if "refine" in span.values("cue") and fields & _TASTES:
            # "Not too strong" asks for what "too strong" does.
            self._want(span, fields)
            return
        if not fields & (WISHES | _FOOD):
            self.implied += [_OPPOSITE[each] for each in span.meanings if each in _OPPOSITE]
            self.wanted += [span] if fields - _PASSED else []
            return
        named = self._kinds == {"name"} and self.denied_words[-1:] == [span.start - 1]
        same = bool(self._kinds & fields) or named
        if self._kinds and not (same or (self._also_not and self._is_alike(fields))):
            self._enter("")
            self._want(span, fields)
            return
        self._deny(span)
        self._kinds, self._linked, self._also_not = fields, False, False

    def _deny(self, span: Span) -> None:
        """Add an exclusion: of fish the allergen, of "sweet" the wish for dry."""
        if allergens := span.values("allergen"):
            self.allergens += allergens
            return
        if "sparkling" in span.values("styles") and "sweetness" in span.fields:
            # "Not brut" is another sweetness, and sparkling all the same.
            taste = Meaning("sweetness", span.values("sweetness"))
            span = Span(span.start, span.end, (taste,))
        self.denied.append(span)
        self.elsewhere |= "elsewhere" in span.fields
        if span.fields <= _TASTES | {"trait"}:
            self.implied += [_OPPOSITE[each] for each in span.meanings if each in _OPPOSITE]

    def _not_tolerate(self, span: Span) -> None:
        allergens = span.values("allergen")
        self.allergens += allergens
        self.elsewhere |= not allergens

    def _want(self, span: Span, fields: frozenset[str]) -> None:
        if fields <= _TASTES | {"trait"} and self._is_too_much(span):
            self._deny(span)
            return
        if "only" in fields:
            self._only_next = True
        elif self._only_next and fields & WISHES:
            self.only |= fields & WISHES
            self._only_next = False
        self._enter("")
        self.wanted.append(span)
        self._run = [*self._run, span] if fields & (WISHES | _FOOD | {"ordinal"}) else []


def foods_with_their_tastes(phrases: Phrases, spans: list[Span]) -> list[Span]:
    """The phrases without tastes that a food has: "süßer Senf", "dry sherry vinegar", "in Rotwein".

    Before a food in Germanic languages, after it in Romance ones.
    """
    dropped: set[int] = set()
    after = bool({"fr", "es", "it"} & set(phrases.languages[:1]))
    for place, span in enumerate(spans):
        fields = span.fields
        if "sauce" in fields:
            dropped |= _chain(spans, place, WISHES - {"dish"})
        elif fields & {"dish", "elsewhere"} and not (after or _is_led(span, phrases)):
            dropped |= _chain(spans, place, _TASTES)
        elif after and place and fields & _TASTES and not fields - _TASTES:
            before = spans[place - 1]
            if before.fields & {"dish", "elsewhere"} and before.end == span.start:
                dropped.add(place)
        if fields & {"hue", "styles"} and place and phrases.is_among(span.start - 1, "cooked_in"):
            before = spans[place - 1]
            if "dish" in before.fields and before.end == span.start - 1:
                dropped.add(place)
    return [span for place, span in enumerate(spans) if place not in dropped]


def _is_led(span: Span, phrases: Phrases) -> bool:
    """Whether a phrase brings its own preposition: what stands before "zum Grillen" is not its."""
    return span.end - span.start > 1 and phrases.stem(span.start) in stop_words()


def _chain(spans: list[Span], place: int, fields: frozenset[str]) -> set[int]:
    """The places of phrases with nothing but these fields that stand right before one."""
    found: set[int] = set()
    start = spans[place].start
    for at in range(place - 1, -1, -1):
        if spans[at].end != start or not spans[at].fields <= fields:
            break
        found.add(at)
        start = spans[at].start
    return found


_KINDS: Final = frozenset({"hue", "styles"})
_NAMES: Final = frozenset({"grapes", "regions", "countries"})
_SWEET: Final = frozenset({"sweetness"})
_OWN: Final = frozenset({"dish", "bodies", "sweetness", "order"}) | _NAMES
_LIMITING: Final = frozenset({"max", "min", "about", "between", "currency", "joined"})
_ONE_WINE: Final = {"sparkling", "rose"}
"""Kinds that are one wine if nobody counts them: "she loves bubbles and pink"."""
_A_CHOICE: Final = 4
"""More wines than these are no choice but a case."""
_BACK: Final = 5
_MOST_BOTTLES: Final = 300


class Part(NamedTuple):
    """What one part of a message says, and how many bottles of it: 0 if nobody said, 0.5 half."""

    spans: tuple[Span, ...]
    bottles: float = 0


def parts(phrases: Phrases, wanted: Sequence[Span]) -> list[Part]:
    """The parts of a message, in its order; none if it is about one wine."""
    for fields in (_KINDS, _NAMES, _KINDS | _NAMES, _SWEET):
        heads = _heads(phrases, [span for span in wanted if span.fields & fields])
        counts = [_count(phrases, head[0].start, fields) for head in heads]
        if _are_parts(phrases, heads, counts, only_counted=fields != _KINDS):
            return _own(phrases, wanted, heads, counts)
        if len(heads) == 1 and (counts[0] > _A_CHOICE or 0 < counts[0] < 1):
            return [Part(tuple(heads[0]), counts[0])]
    return []


def _heads(phrases: Phrases, spans: Sequence[Span]) -> list[list[Span]]:
    """Kinds of wine, those that stand together as one: "sparkling rosé".

    Of three and more those with an "or" between them are one: "a white or a rosé, and a red".
    """
    heads: list[list[Span]] = []
    for span in spans:
        last = heads[-1][-1] if heads else None
        is_list = len(spans) > 2 and {"white", "red"} & {*span.values("hue")}
        is_one = last and last.end == span.start and last.fields != span.fields and not is_list
        between = range(last.end, span.start) if last and len(spans) > 2 else ()
        if is_one or any(_is_either(phrases, at) for at in between):
            heads[-1].append(span)
        else:
            heads.append([span])
    return heads


def _are_parts(
    phrases: Phrases, heads: Sequence[list[Span]], counts: Sequence[float], *, only_counted: bool
) -> bool:
    said = [frozenset(each for span in head for each in span.meanings) for head in heads]
    values = [{value for each in head for value in each.values} for head in said]
    if len(heads) < 2 or any(a & b for a, b in pairwise(values)):
        return False
    if not any(counts) and set().union(*values) == _ONE_WINE:
        return False
    between = [at for a, b in pairwise(heads) for at in range(a[-1].end, b[0].start)]
    if any(_is_either(phrases, at) for at in between):
        return False
    swaps = any("swap" in span.fields for span in phrases.spans)
    joints = ("joins", "exchanged_for") if swaps else ("joins",)
    joined = any(phrases.is_among(at, each) for at in between for each in joints)
    is_each = all("only" in phrases.before(head[0].start).fields for head in heads)
    if all(counts) or _are_of_two(phrases, heads, are_kinds=not only_counted):
        return True
    return not only_counted and (joined or is_each)


def _are_of_two(phrases: Phrases, heads: Sequence[list[Span]], *, are_kinds: bool) -> bool:
    """Whether each wine is for another person: "Riesling for me, Malbec for the husband".

    Of grapes and places each has to name one; of colours the first may leave it open.
    """
    if any("but" in span.fields for span in phrases.spans):
        return False
    ends = [_boundary(phrases, a[-1].end, b[0].start) for a, b in pairwise(heads)]
    of = [
        {
            (name, phrases.stem(at))
            for at in range(low, high)
            for name in ("first_persons", "third_persons", "persons")
            if phrases.is_among(at, name) and not phrases.is_among(at, "counting_alone")
        }
        for low, high in pairwise([0, *ends, len(phrases.words)])
    ]
    kinds = [{name for name, _ in each} for each in of]
    if are_kinds:
        return all(kinds[1:]) and (bool(kinds[0]) or {"first_persons"} not in kinds[1:])
    is_apart = all(not a & b for a, b in pairwise(of))
    is_own = any("first_persons" in each for each in kinds)
    return all(len(each) == 1 for each in kinds) and is_apart and (is_own or kinds[0] == kinds[1])


def _is_either(phrases: Phrases, at: int) -> bool:
    is_dutch = phrases.languages[:1] == ("nl",)
    return phrases.is_among(at, "either") and (phrases.stem(at) != "of" or is_dutch)


def _count(phrases: Phrases, head: int, heads: frozenset[str]) -> float:
    """The number before a kind of wine, over its adjectives: "two light French reds"."""
    for at in range(head - 1, max(-1, head - _BACK), -1):
        span = next((each for each in phrases.spans if each.start <= at < each.end), Span(at, at))
        if span.values("number") or phrases.stem(at).isdecimal():
            is_limit = phrases.before(span.start).fields & _LIMITING - {"joined"}
            said = (*span.values("number"), phrases.stem(at)[:3])[0].split()[0].lstrip("~")
            known = said.isdecimal() and int(said) <= _MOST_BOTTLES
            return int(said) if known and not is_limit else _half(phrases, head)
        if phrases.is_among(at, "one_of_a_kind"):
            return 1
        is_passed = (
            span.fields & (_OWN - heads) or "bottles" in span.fields or "wine" in span.fields
        )
        if not (is_passed or phrases.is_among(at, "of_them")):
            break
    return _half(phrases, head)


def _half(phrases: Phrases, head: int) -> float:
    """The half that a kind is of, counted in bottles or in guests: "half only drink white"."""
    for span in reversed([each for each in phrases.spans if head - _BACK <= each.end <= head]):
        if "half" in span.fields:
            return float(span.values("half")[0])
        if span.fields & (WISHES | _LIMITING):
            break
    return 0


def _own(
    phrases: Phrases,
    wanted: Sequence[Span],
    heads: Sequence[list[Span]],
    counts: Sequence[float],
) -> list[Part]:
    """Each part with what is said of it and not of all."""
    ends = [_boundary(phrases, a[-1].end, b[0].start) for a, b in pairwise(heads)]
    bounds = [0, *ends, len(phrases.words)]
    segments = [
        [span for span in wanted if low <= span.start < high and span.fields & _OWN]
        for low, high in pairwise(bounds)
    ]
    shared = Counter(
        field for said in segments for field in {each for span in said for each in span.fields}
    )
    return [
        Part(
            (
                *head,
                *(
                    span
                    for span in said
                    if span not in head
                    and (any(shared[each] > 1 for each in span.fields) or _is_beside(span, head))
                ),
            ),
            count,
        )
        for head, said, count in zip(heads, segments, counts, strict=True)
    ]


def _boundary(phrases: Phrases, start: int, end: int) -> int:
    """Where between two kinds the second part begins: at the last word that joins."""
    joints = [at for at in range(start, end) if phrases.is_among(at, "joins")]
    commas = [at for at in range(start, end) if phrases.stem(at) in (",", "\n", ".", ";", "+")]
    return max((*joints, *commas), default=start)


def _is_beside(span: Span, head: Sequence[Span]) -> bool:
    """Whether a word qualifies the kind that it stands beside: "dry white", "rosso leggero"."""
    is_near = span.end == head[0].start or span.start == head[-1].end
    return is_near and "dish" not in span.fields


def _builds(span: Span) -> list[Build]:
    """How the wines are that a phrase names, as far as that is known."""
    values = (value for each in span.meanings for value in each.values)
    return [profiles()[value].profile for value in values if value in profiles()]
