"""Who should not be offered alcohol and who needs help, told by what a message says. Pure.

A classifier that was fitted to labelled messages tells the concern and whose it is; what some words
leave no doubt of is told by patterns. Words, what they mean, and patterns are in `care.toml`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import combinations, groupby, pairwise, product
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator

from agent.classifier import LONGEST_WORD, Meanings, classifier, hashed
from agent.tables import Strict, read_toml
from agent.text import FORWARDED, LANGUAGES, Pattern, fold, pattern
from agent.vocabulary import is_word

PARTS: Final = (3, 4, 5)
"""Letters of the parts of words that the classifier looks at."""
WINDOW: Final = 80
"""Words that the classifier looks at together; half of them again with the next."""
REMEMBERED: Final = 8192
"""Words whose parts are kept."""
YOUNGEST: Final = 8
"""From how many years on a number may be the age of somebody who writes."""
SHORTEST_SLIP: Final = 4
"""Letters of a word from which on it may be mistyped."""
_TOKEN: Final = pattern(r"[0-9]+|\p{L}+|[^\s\p{L}0-9]")
_STOPS: Final = frozenset(".!?,")
_LONGEST_PHRASE: Final = 3


_Words = Annotated[Meanings, BeforeValidator(Meanings)]


class Lexicon(Strict, arbitrary_types_allowed=True):
    """What `care.toml` holds: what words mean, what people react to, what is certain.

    `numbers` are the words from two to eighteen; what is `certain` may have `{age}` and an `{end}`.
    """

    meanings: _Words
    reactions: _Words
    numbers: dict[str, str]
    end: str
    certain: dict[str, tuple[str, ...]]

    @cached_property
    def number(self) -> Mapping[str, int]:
        """Return the numbers by their words."""
        said = (each.split() for each in self.numbers.values())
        return {word: number for words in said for number, word in enumerate(words, start=2)}

    @cached_property
    def patterns(self) -> Mapping[str, Pattern]:
        """Return what leaves no doubt, by concern."""
        age = f"(?:[0-9]{{1,2}}|{'|'.join(self.number)})"
        parts = {concern: "|".join(each) for concern, each in self.certain.items()}
        return {
            concern: pattern(
                rf"\b(?:{each.replace('{age}', age).replace('{end}', self.end)})(?!\w)"
            )
            for concern, each in parts.items()
        }


@cache
def lexicon() -> Lexicon:
    """The lexicon, read when the first message comes.

    Raises:
        ValidationError: the file is not as it must be.
    """
    return read_toml(Lexicon, Path(__file__).with_name("care.toml"))


class Message:
    """The words of a message, folded, and what stands in them."""

    def __init__(self, text: str) -> None:
        self._text = fold(text)
        written = _TOKEN.findall(self._text)
        self._tokens = [*map(_spelt, written)]
        if self._tokens != written:
            self._text = _TOKEN.sub(lambda found: _spelt(found[0]), self._text)

    def certain(self, full_age: int) -> Iterator[str]:
        """Tell the concerns that some words leave no doubt of."""
        for concern, words in lexicon().patterns.items():
            for found in words.finditer(self._text):
                before = _TOKEN.findall(
                    self._text[max(0, found.start() - LONGEST_WORD) : found.start()]
                )[-1:]
                if any("not" in _meaning(each) for each in before):
                    continue
                ages = filter(None, map(_number, _TOKEN.findall(found[0])))
                if concern != "under_age" or any(YOUNGEST <= each < full_age for each in ages):
                    yield concern
                    break

    def windows(self, full_age: int) -> Iterator[frozenset[int]]:
        """Tell the features of the message for the classifier, a part of a long one at a time."""
        step = WINDOW // 2
        for start in range(0, max(1, len(self._tokens) - step), step):
            part = self._tokens[start : start + WINDOW]
            yield _features([_written(each, full_age) for each in part])

    @property
    def parts(self) -> Iterator[Sequence[frozenset[str]]]:
        """Tell what is said in each part of the message between stops and words like "but"."""
        for is_end, part in groupby(self.reactions, lambda said: "stop" in said):
            if not is_end:
                yield list(part)

    @cached_property
    def reactions(self) -> Sequence[frozenset[str]]:
        """What is said at each word of who wine is for, and of what somebody reacts to."""
        of, runs = lexicon().reactions.of, range(1, _LONGEST_PHRASE + 1)
        return [
            frozenset().union(*(of(" ".join(self._tokens[at : at + size])) for size in runs))
            for at in range(len(self._tokens))
        ]

    def has(self, kind: str) -> bool:
        """Tell whether anything of a kind is said."""
        return any(kind in said for said in self.reactions)

    def people(self, behind: str = "") -> frozenset[str]:
        """Tell the people that are named, those behind a word of a kind if one is given."""
        return frozenset(
            self._tokens[at]
            for at, said in enumerate(self.reactions)
            if "person" in said and (not behind or (at and behind in self.reactions[at - 1]))
        )

    def is_near(self, one: str, other: str, within: int) -> bool:
        """Tell whether a word of one kind stands within so many words of one of another kind."""
        places = [at for at, said in enumerate(self.reactions) if other in said]
        return any(
            one in said and any(abs(at - place) <= within for place in places)
            for at, said in enumerate(self.reactions)
        )


@cache
def _words() -> Mapping[str, int]:
    """The words that messages of care are made of, with their places, the commonest first."""
    said = CARE_WORDS.read_text("utf-8").split()
    return {word: place for place, word in enumerate(said)}


@lru_cache(maxsize=REMEMBERED)
def _spelt(word: str) -> str:
    """The word of care that is meant by one that no language has: a single slip apart from it."""
    known = _words()
    if not SHORTEST_SLIP <= len(word) <= LONGEST_WORD or word in known or not word.isalpha():
        return word
    if any(is_word(word, language) for language in LANGUAGES):
        return word
    return min(known.keys() & slips(word), key=known.__getitem__, default=word)


def slips(word: str) -> frozenset[str]:
    """Return what a word may be meant for: with one letter more or less, another, or two exchanged.

    A short word only with one more or two exchanged, as others lie too near.
    """
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    exchanged = {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1}
    more = {head + letter + tail for head, tail in cuts for letter in ascii_lowercase}
    if len(word) == SHORTEST_SLIP:
        return frozenset(exchanged | more)
    less = {head + tail[1:] for head, tail in cuts if tail}
    other = {head + letter + tail[1:] for head, tail in cuts if tail for letter in ascii_lowercase}
    return frozenset(exchanged | more | less | other)


def _number(word: str) -> int | None:
    return int(word[:4]) if word.isdecimal() else lexicon().number.get(word)


def _written(word: str, full_age: int) -> str:
    """A word as the classifier knows it: a number by whose age it may be, "sooo" as "soo"."""
    number = _number(word)
    if number is not None and (word.isdecimal() or number >= YOUNGEST):
        return _kind(number, full_age)
    return "".join(letter for letter, run in groupby(word) for letter in [*run][:2])[:LONGEST_WORD]


def _kind(number: int, full_age: int) -> str:
    if number < YOUNGEST:
        return "#few" if number < YOUNGEST // 2 else "#some"
    if number <= full_age:
        return "#full" if number == full_age else "#minor"
    return "#year" if 1900 < number < 2100 else "#many"


@lru_cache(maxsize=REMEMBERED)
def _meaning(word: str) -> frozenset[str]:
    if word[0] == "#":
        return frozenset({word})
    return frozenset({","}) if word in _STOPS else lexicon().meanings.of(word)


@lru_cache(maxsize=REMEMBERED)
def _of_word(word: str) -> frozenset[int]:
    """The features of a word alone: itself, its parts, its meanings."""
    whole = f"^{word}$"
    parts = {whole[at : at + n] for n in PARTS for at in range(len(whole) - n + 1)}
    return hashed({f"w {word}", *parts, *(f"m {each}" for each in _meaning(word))})


def _features(words: Sequence[str]) -> frozenset[int]:
    said = ["<", *words, ">"]
    return hashed(_pairs(said)).union(*map(_of_word, said))


def _pairs(said: Sequence[str]) -> Iterator[str]:
    """Words beside each other and one apart, and the same of what they mean."""
    meanings = [*map(_meaning, said)]
    meant = [*filter(None, meanings)]
    yield from (f"b {one} {two}" for one, two in pairwise(said))
    yield from (f"s {one} {two}" for one, two in zip(said, said[2:], strict=False))
    beside = (("d", meant, meant[1:]), ("e", meant, meant[2:]))
    mixed = (("f", [*zip(said)], meanings[1:]), ("g", meanings, [*zip(said[1:])]))
    for kind, first, second in (*beside, *mixed):
        for pair in zip(first, second, strict=False):
            yield from (f"{kind} {one} {two}" for one, two in product(*pair))
    for one, two in combinations(sorted(frozenset().union(*meant)), 2):
        yield f"m {one} {two}"


Concern = Literal[
    "crisis", "dependence", "under_age", "pregnancy", "medication", "health", "driving"
]
"""Why somebody is offered no alcohol, the gravest first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
FORBIDDING: Final[frozenset[Concern]] = frozenset({"crisis", "dependence", "under_age"})
"""Those for which nothing with alcohol is offered; for the others what is without comes first."""
RETRACTABLE: Final[frozenset[Concern]] = frozenset(CONCERNS) - {"dependence", "under_age"}
"""What somebody may take back; to say that one is of age is no proof of it."""
MISUNDERSTOOD: Final = "misunderstood"
"""What stands in `care.toml` beside concerns that some words leave no doubt of."""
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes", "histamine"]
ALLERGIES: Final[tuple[Allergy, ...]] = get_args(Allergy)
Reaction = Literal["red", "white", "rose", "orange", "sparkling", "sweet", "fortified"]
REACTIONS: Final[tuple[Reaction, ...]] = get_args(Reaction)
"""Kinds of wine that may make somebody ill."""
Intolerance = Literal["", "histamine", "sulphites", "severe"]

FULL_AGE: Final = 18
LONGEST: Final = 4096
"""Characters of a message that are looked at."""

CARE_WORDS: Final = Path(__file__).with_name("care_words.txt")
"""What messages of care are made of; written when the classifier is fitted."""
CARE_CLASSIFIER: Final = Path(__file__).with_name("care.bin")
"""Tells a concern, or none."""
WHOSE_CLASSIFIER: Final = Path(__file__).with_name("care_whose.bin")
"""Tells whether a concern is of who writes or of somebody else."""
LANGUAGE_CLASSIFIER: Final = Path(__file__).with_name("care_language.bin")
"""Tells the language of a short message, so that help is said in it."""
LEAST: Final[Mapping[Concern, float]] = {
    "crisis": 0.6,
    "dependence": 0.55,
    "under_age": 0.55,
    "pregnancy": 0.45,
    "medication": 0.5,
    "health": 0.5,
    "driving": 0.55,
}
"""From which likelihood of any concern on there is one, by the likeliest (docs/evaluation.md)."""
UNSURE: Final = 0.2
"""From which likelihood on such a concern may be meant: a line beside the answer asks."""
STARTLING: Final[Mapping[Concern, float]] = {"crisis": 0.35, "dependence": 0.3}
"""The same of what startles who only talks of wine."""
LEAST_OF_EACH: Final = 0.25
"""From which likelihood on a concern is told beside a likelier one."""
LEAST_OF_OTHERS: Final = 0.3
"""From which likelihood on a concern is of somebody else."""
LEAST_OF_LANGUAGE: Final = 0.5
RULED_OUT: Final = 0.01
"""Below which likelihood a message tells of none, in words of a language that is known: so are 90 %
of a talk of wine and 1 of 60 unseen messages that tell of one."""
SURE_OF_LANGUAGE: Final = 0.9
_HARM: Final = frozenset({"upsets", "bears", "intolerant", "symptom"})
NEAR: Final = 6
"""Words between what somebody reacts to and the reaction."""
_JOINED: Final = 3
"""Words up to the one that joins what somebody reacts to with a reaction before it."""


def gravest(concerns: Collection[Concern]) -> Concern | None:
    """Return the gravest of some concerns; None of none."""
    return next((each for each in CONCERNS if each in concerns), None)


@dataclass(frozen=True, slots=True)
class Care:
    """What a message tells of those who should not be offered alcohol.

    `own` is said of who writes, `others` of somebody else whom wine may be for. `allergies` are
    what wines may not hold and `reactions` the kinds of wine that are not to be offered to anybody,
    `retracted` what of before was a misunderstanding. `people` are the
    persons it names, `beneficiaries` those of them that wine is wanted for. `held` is what was
    known before of who writes, who may do so `in_group`; `unsure` is what may be meant.
    """

    own: frozenset[Concern] = frozenset()
    others: frozenset[Concern] = frozenset()
    allergies: frozenset[Allergy] = frozenset()
    reactions: frozenset[Reaction] = frozenset()
    retracted: frozenset[Concern] = frozenset()
    intolerance: Intolerance = ""
    has_drunk: bool = False
    people: frozenset[str] = frozenset()
    beneficiaries: frozenset[str] = frozenset()
    language: str = ""
    held: frozenset[Concern] = frozenset()
    in_group: bool = False
    unsure: frozenset[Concern] = frozenset()

    @property
    def all(self) -> frozenset[Concern]:
        """Every concern, whoever it is about and whenever it was told."""
        return self.own | self.others | self.held

    @property
    def is_crisis(self) -> bool:
        """Whether this very message tells of a crisis: help comes before everything else."""
        return "crisis" in self.own | self.others

    @property
    def forbids_alcohol(self) -> bool:
        """Whether nothing with alcohol is offered at all."""
        return bool(self.all & FORBIDDING)

    @property
    def is_cautious(self) -> bool:
        """Whether what is without alcohol comes first, unless wine is wanted for somebody else."""
        is_told, is_held = bool(self.own | self.others), bool(self.held) and not self.beneficiaries
        return (is_told or is_held) and not self.forbids_alcohol

    @property
    def gravest(self) -> Concern | None:
        """The gravest concern; None without one."""
        return gravest(self.all)

    @property
    def news(self) -> Concern | None:
        """The gravest concern that was not known before; None without one."""
        return gravest((self.own | self.others) - self.held)

    @property
    def doubt(self) -> Concern | None:
        """The gravest concern that may be meant, where none is known; None without one."""
        return None if self.all else gravest(self.unsure)

    @property
    def kept(self) -> frozenset[str]:
        """What is to be remembered of who writes, as names for `holding`."""
        return self.own | self.held | self.allergies | self.reactions

    def adding(self, concern: Concern) -> "Care":
        """Return the same with a concern that a model heard, of who writes if nobody is named."""
        known = self.own | self.others if concern == "crisis" else self.all
        if concern in known:
            return self
        if self.people:
            return replace(self, others=self.others | {concern})
        return replace(self, own=self.own | {concern})

    def holding(self, names: Iterable[str]) -> "Care":
        """Return the same with what is remembered of who writes; unknown names are left out."""
        known = frozenset(names) - self.retracted
        held = frozenset(each for each in CONCERNS if each in known)
        allergies = self.allergies.union(each for each in ALLERGIES if each in known)
        reactions = self.reactions.union(each for each in REACTIONS if each in known)
        return replace(self, held=self.held | held, allergies=allergies, reactions=reactions)


NO_CARE: Final = Care()


def care_of(text: str, full_age: int = FULL_AGE) -> Care:
    """Read what `text`, a message in any supported language, tells of who should not drink.

    `full_age` is the age in years from which wine is offered.
    """
    message = Message(text[:LONGEST].replace(FORWARDED, ""))
    own, others, unsure = set[Concern](), set[Concern](), set[Concern]()
    language = ""
    for found in message.windows(full_age):
        concerns, is_sure = _concerns(found)
        if concerns and is_sure:
            whose = classifier(WHOSE_CLASSIFIER).likelihoods_of(found)
            (others if whose["other"] >= LEAST_OF_OTHERS else own).update(concerns)
        unsure |= concerns
        language = language or _language(found)
    certain = set(message.certain(full_age))
    own |= {each for each in CONCERNS if each in certain} - (others & {"crisis"})
    takes_back = MISUNDERSTOOD in certain and "crisis" not in own
    return Care(
        own=frozenset(own),
        others=frozenset(others - own),
        allergies=frozenset(_allergies(message)),
        reactions=frozenset(_reactions(message)),
        retracted=RETRACTABLE if takes_back else frozenset(),
        intolerance=_intolerance(message),
        has_drunk=message.has("drunk"),
        people=message.people(),
        beneficiaries=message.people(behind="beneficiary"),
        language=language,
        unsure=frozenset(unsure),
    )


def _concerns(found: Collection[int]) -> tuple[frozenset[Concern], bool]:
    """What may be meant, and whether the classifier is sure enough of it."""
    likely = classifier(CARE_CLASSIFIER).likelihoods_of(found)
    best, any_of_them = max(CONCERNS, key=likely.__getitem__), 1 - likely["none"]
    if any_of_them < STARTLING.get(best, UNSURE):
        return frozenset(), False
    told = {each for each in CONCERNS if each == best or likely[each] >= LEAST_OF_EACH}
    return frozenset(told), any_of_them >= LEAST[best]


def _language(found: Collection[int], least: float = LEAST_OF_LANGUAGE) -> str:
    """The language that is likely; empty if none is."""
    likely = classifier(LANGUAGE_CLASSIFIER).likelihoods_of(found)
    best = max(likely, key=likely.__getitem__)
    return best if likely[best] >= least else ""


def is_ordinary(text: str) -> bool:
    """Tell whether a message surely tells of no concern; never in a language that is not known."""
    message = Message(text[:LONGEST])
    return not any(message.certain(FULL_AGE)) and all(
        _language(found, SURE_OF_LANGUAGE)
        and 1 - classifier(CARE_CLASSIFIER).likelihoods_of(found)["none"] < RULED_OUT
        for found in message.windows(FULL_AGE)
    )


def _intolerance(message: Message) -> Intolerance:
    """What somebody reacts to that needs an explanation before any wine; empty if nothing."""
    if message.has("histamine"):
        return "histamine"
    if message.has("sulphites") and (message.has("intolerant") or message.has("severe")):
        return "sulphites"
    return "severe" if message.has("severe") and message.has("intolerant") else ""


def _allergies(message: Message) -> Iterator[Allergy]:
    """What somebody is said to be allergic to."""
    yield from (each for each in ALLERGIES if message.is_near(each, "intolerant", NEAR))
    if message.has("grape_allergy") or (message.has("grapes") and message.has("reaction")):
        yield "grapes"


def _reactions(message: Message) -> Iterator[Reaction]:
    """The kinds of wine that are said to make somebody ill: before the word that says it.

    Behind it they stand after a word that joins them. Why wine does so in general is a question.
    """
    for part in message.parts:
        said = frozenset[str]().union(*part)
        if _is_of_illness(said) and ("why" not in said or "whom" in said):
            harm = max(at for at, each in enumerate(part) if _HARM & each)
            behind = part[harm : harm + NEAR]
            joined = [at for at, each in enumerate(behind) if "joins" in each and at <= _JOINED]
            is_borne = "bears" in part[harm]
            before = (each for at, each in enumerate(part[:harm]) if not _is_wished(part, at))
            named = (*before, *(behind if is_borne or joined else ()))
            for each in named:
                yield from (kind for kind in REACTIONS if kind in each and "dish" not in each)


def _is_wished(part: Sequence[frozenset[str]], at: int) -> bool:
    """Whether a word names what is looked for: "I want a white, I have reflux"."""
    return any("wishes" in said for said in part[max(0, at - _JOINED) : at])


def _is_of_illness(said: frozenset[str]) -> bool:
    """Whether something is not borne, or makes ill."""
    if "bears" in said and "symptom" not in said:
        return "not" in said
    is_of_wine = "intolerant" in said and said.isdisjoint(ALLERGIES)
    is_caused = "symptom" in said and "cause" in said
    return "not" not in said and ("upsets" in said or is_of_wine or is_caused)


def care_in_talk(said: Sequence[str], full_age: int = FULL_AGE) -> Care:
    """Read the last of a person's messages, with what the ones before told of them."""
    care = NO_CARE
    for text in said:
        care = care_of(text, full_age).holding(care.kept)
    return care
