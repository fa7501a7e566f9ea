"""Whether passages hold what a sentence claims: its numbers, names, links, denials and words.

One rule for answers, summaries and notes. A number, a name or a link must stand in the passages, in
a sentence that is about the same; what that sentence denies may not be asserted, nor turned into
its opposite; a clause most of whose words the passages lack is an addition. Words are compared
where both are of one language; numbers, names and opposites across languages too, by the words of
`claims.toml`. It errs: docs/research.md says how often.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from agent.documents.lexicon import Vocabulary, lexicon
from agent.documents.store import Chunk
from agent.engine.feedback import fence
from agent.text import LANGUAGES, Language, fold, language_of, pattern, sentences, stem, words

LONGEST: Final = 2_000
"""Characters of a sentence that are looked at."""
KEY: Final = 6
"""Letters by which words are compared: their ends differ, between languages too."""
DENYING: Final = ("un", "dis", "non")
SCOPE: Final = 12
"""Words behind a negation that it denies."""
TOKEN: Final = pattern(
    r"\d+(?:,\d+)*-\p{L}{5,}"  # 2,4,6-trichloroanisole
    "|\\d+(?:[.,\u00a0\u202f]\\d+)*"
    r"|%|°\s?C?|\p{L}+|[,;:()–—.!?]"
)
ADDRESS: Final = pattern(
    r"(?:https?://|www\.|tg://)[^\s\]()<>\"']+|@\w{3,}"
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,15}(?:/[^\s\]()<>\"']*)?"
)
CLAUSE_ENDS: Final = frozenset(",;:()–—.!?")
TYPICAL: Final = 30
"""Sentences of an article: in a shorter text words are as telling as in that."""
LEAST_LIKENESS: Final = 3.0
"""What two sentences share at least, to be about the same."""
TELLING: Final = 1.0
"""What a shared word weighs at least by which a denial is of the same."""
NEAR: Final = 0.4
"""How much of the best sentence's likeness another has that may hold a number or a name."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was said, what it is worth, and of what; the `end` of a range it begins."""

    said: str
    value: float
    unit: str = ""
    end: float | None = None

    @property
    def counts(self) -> bool:
        """Whether it is more than "two of them"."""
        return self.value > 3 or bool(self.unit) or self.said[-1].isdigit()

    def is_one_of(self, others: Iterable["Number"]) -> bool:
        """Say whether others have it, or one that it rounds to hundreds or more."""
        return any(self._is(other) for other in others)

    def _is(self, other: "Number") -> bool:
        if self.unit and other.unit and self.unit != other.unit:
            return False
        if self.end not in (None, other.end):
            return False
        digits = f"{self.value:.0f}"
        step = 10 ** (len(digits) - len(digits.rstrip("0")))
        is_year = not self.unit and 1000 < self.value < 2100
        rounded = step >= 100 and not is_year and round(other.value / step) * step == self.value
        return self.value == other.value or rounded


@dataclass(slots=True)
class Clause:
    """What a part of a sentence claims; words and names by their keys, each as it was said.

    `sides` are the sides it takes of opposites, by their place in the table, `turned` those that a
    negation turned. It `denies` if it has an odd number of negations, `excuses` a denial if a word
    may stand for one, and `opens` if it does not go on with a list. `listed` are names
    with a comma or an "or" near them.
    """

    words: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    numbers: list[Number] = field(default_factory=list)
    sides: dict[int, set[int]] = field(default_factory=dict)
    turned: set[int] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    subject: str = ""
    denies: bool = False
    excuses: bool = False
    opens: bool = False

    @property
    def keys(self) -> set[str]:
        """By what it is found to be about the same as another."""
        return {*self.words, *self.names}

    @property
    def counted(self) -> list[Number]:
        """Its numbers that must stand in a source."""
        return [number for number in self.numbers if number.counts]

    @property
    def is_short(self) -> bool:
        """Whether it is but an item of a list."""
        return len(self.keys) + len(self.numbers) < 2 and not self.sides

    def add(self, other: "Clause") -> None:
        """Take in what another claims."""
        self.words |= other.words
        self.names |= other.names
        self.numbers += other.numbers
        for pair, sides in other.sides.items():
            self.sides.setdefault(pair, set()).update(sides)
        self.turned |= other.turned
        self.listed |= other.listed
        self.denies |= other.denies
        self.excuses |= other.excuses


class _Reader:
    """Reads one sentence into clauses, token by token."""

    def __init__(self, text: str, language: Language, known: frozenset[str]) -> None:
        self._language, self._known = language, known
        self._tokens = TOKEN.findall(text[:LONGEST])
        self._folded = list(map(fold, self._tokens))
        self._said: Vocabulary = lexicon()[language]
        self._clauses = [Clause()]
        self._scope = 0

    def read(self) -> list[Clause]:
        for at, token in enumerate(self._tokens):
            self._take(at, token, self._folded[at])
        merged: list[Clause] = []
        for clause in self._clauses:
            if merged and not clause.opens and (merged[-1].is_short or clause.is_short):
                merged[-1].add(clause)
            else:
                merged.append(clause)
        return merged

    def _take(self, at: int, token: str, word: str) -> None:
        between = word in self._said.conjunctions
        end = self._end(at - 1) if word == "–" else None
        if (token in CLAUSE_ENDS and end is None) or (at and between):
            self._clauses.append(Clause(opens=between and word not in lexicon().lists))
            self._scope = self._scope if word in lexicon().lists else 0
        of, _, unit = word.partition("-")
        if word[0].isdigit() and (unit in lexicon().units):
            self._clauses[-1].numbers.append(
                Number(of, self._value(of) or 0, lexicon().units[unit])
            )
        elif (value := self._value(word)) is not None:
            number = Number(token, value, self._unit(at), self._end(at))
            self._clauses[-1].numbers.append(number)
        elif token[0].isupper() and self._is_name(at, word):
            self._clauses[-1].names[name_key(word)] = token
            around = self._tokens[max(0, at - 3) : at + 4]
            in_list = any(each == "," or each in lexicon().lists for each in around)
            if in_list and sum(each[0].isupper() for each in around) > 1:
                self._clauses[-1].listed.add(name_key(word))
        elif word[:1].isalnum():
            self._word(at, token, word)

    def _value(self, word: str) -> float | None:
        """What a number is worth, None if it is none; before three digits stand thousands."""
        if not word[:1].isdigit() or word[-1].isalpha():
            return self._said.values.get(word)
        first, *groups = (
            word.replace("\u00a0", ",").replace("\u202f", ",").replace(".", ",").split(",")
        )
        if groups and first.strip("0") and all(len(group) == 3 for group in groups):
            return float(first + "".join(groups))
        return float(".".join([first, "".join(groups)]) if groups else first)

    def _end(self, at: int) -> float | None:
        """The other end of the range that begins with a number."""
        told, (by, end) = lexicon(), ([*self._folded[at + 1 : at + 3], "", ""])[:2]
        if by in told.ranges or (self._folded[max(0, at - 1)] in told.between and by in told.lists):
            return self._value(end) if end else None
        return self._value(by) if by[:1].isdigit() else None

    def _unit(self, at: int) -> str:
        """The unit behind a number, behind the other end of its range too."""
        for word in self._folded[at + 1 : at + 5]:
            if unit := lexicon().units.get(word):
                return unit
            if self._value(word) is None and word not in lexicon().lists:
                break
        return ""

    def _word(self, at: int, token: str, word: str) -> None:
        clause, said = self._clauses[-1], self._said
        if word in said.negations:
            if said.bounds.isdisjoint(
                {*self._folded[at + 1 : at + 2], "_".join(self._folded[at + 1 : at + 3])}
            ):
                clause.denies = not clause.denies
                self._scope = SCOPE
            else:
                self._folded[at + 1] = "*"
            return
        clause.excuses |= word in said.denials or (len(word) > 5 and token.startswith(DENYING))
        for pair, side in said.sides(word):
            clause.sides.setdefault(pair, set()).add(side)
            clause.turned |= {pair} if self._scope else set()
        self._scope = max(0, self._scope - 1)
        if len(word) > 2 and not said.is_general(word):
            clause.words[word_key(word, self._language)] = token
            if at == 0 and self._folded[1:2] and self._folded[1] in lexicon().verbs:
                clause.subject = token

    def _is_name(self, at: int, word: str) -> bool:
        initial = at == 0 or self._tokens[at - 1] in ".!?:"
        known = name_key(word) in self._known or word in lexicon().known
        if len(word) < 2 or (
            word in self._said.general and (initial or word not in lexicon().known)
        ):
            return False
        return known or not (initial or self._language == "de")


def word_key(word: str, language: Language) -> str:
    """Make the key of a folded word."""
    told = lexicon()
    return told.same_names.get(word) or told.same_words.get(word) or stem(word, language)[:KEY]


def name_key(word: str) -> str:
    """Make the key of a folded name: languages bend it at most at its end."""
    short = word if len(word) < 5 else word.rstrip("s")[:KEY]
    return lexicon().same_names.get(word) or short


class Source:
    """Passages, read once.

    For each sentence: its clauses, what it is `about` (with what "it" stands for), its numbers.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.text = " ".join(" ".join((chunk.path, chunk.text)) for chunk in chunks)
        self.language: Language = language_of(self.text) or "en"
        parts = [
            (chunk, at, said) for chunk in chunks for at, said in enumerate(sentences(chunk.text))
        ]
        said = [part for *_, part in parts]
        names = (
            clause.names
            for part in said
            for clause in _Reader(part, self.language, frozenset()).read()
        )
        self.known = frozenset(key for each in names for key in each)
        self.sentences = [_Reader(part, self.language, self.known).read() for part in said]
        self.title = self._keys(" ".join(chunk.title for chunk in chunks))
        self.topics = self.title | self._keys(
            " ".join(" ".join(chunk.headings) for chunk in chunks)
        )
        self.keys = self.topics.union(*map(self._keys, said))
        self.keys.update(key for each in self.sentences for clause in each for key in clause.keys)
        self.numbers = [
            [number for clause in each for number in clause.numbers] for each in self.sentences
        ]
        self.about = [set().union(*(clause.keys for clause in each)) for each in self.sentences]
        for place, (chunk, at, part) in enumerate(parts):
            self.about[place].update(map(name_key, words(part[:20])[:1]))
            if words(part[:20])[:1] and words(part[:20])[0] in lexicon().anaphors:
                before = (
                    self.sentences[place - 1][0].keys
                    if at
                    else self._keys(" ".join(chunk.headings))
                )
                self.about[place] |= before
        counts = Counter(key for each in self.about for key in each)
        often = TYPICAL / max(1, len(said))
        self.weights = {
            key: math.log((TYPICAL + 1) / (1.5 + (count - 1) * often))
            for key, count in counts.items()
        }

    def _keys(self, text: str) -> set[str]:
        return {
            key for word in words(text) for key in (name_key(word), word_key(word, self.language))
        }

    def weight(self, keys: Iterable[str]) -> float:
        """Tell how much it says that these are shared."""
        return sum(self.weights.get(key, 0.0) for key in keys)

    def near(self, clause: Clause, whole: set[str]) -> list[int]:
        """Find the sentences that are about what a clause and the whole of its sentence are about.

        The best first; none if even that is not.
        """
        scores = [
            self.weight(clause.keys & each) + self.weight(whole & each) for each in self.about
        ]
        best = max(scores, default=0.0)
        found = [at for at, score in enumerate(scores) if score >= NEAR * best]
        return sorted(found, key=lambda at: -scores[at]) if best >= LEAST_LIKENESS else []


@lru_cache(maxsize=64)
def source_of(chunks: tuple[Chunk, ...]) -> Source:
    """Read passages, each set of them once."""
    return Source(chunks)


async def read_sources(chunks: Sequence[Chunk]) -> None:
    """Read what may be cited of these passages, each document and all together, beside the loop."""
    paths = dict.fromkeys(chunk.path for chunk in chunks)
    apart = (tuple(chunk for chunk in chunks if chunk.path == path) for path in paths)
    for each in (*apart, tuple(chunks)):
        await asyncio.to_thread(source_of, each)


def unsupported(text: str, chunks: Sequence[Chunk]) -> str | None:
    """Say what of a sentence these passages do not hold; None if they hold it."""
    source = source_of(tuple(chunks))
    language = language_of(text) or _likely_language(text)
    clauses = _Reader(text, language or source.language, source.known).read()
    found = _Claims(clauses, source).problems(same_language=language == source.language)
    return _foreign_link(text, source) or next(found, None)


def foreign(text: str, chunks: Sequence[Chunk], asked: Iterable[str] = ()) -> str | None:
    """Say which link, number or name of a text neither passages nor question have; None if none."""
    source = source_of(tuple(chunks))
    language = language_of(text) or _likely_language(text) or source.language
    question = [clause for each in asked for clause in _Reader(each, language, source.known).read()]
    said = {key for clause in question for key in clause.keys}
    numbers = [number for clause in question for number in clause.numbers]
    for clause in _Reader(text, language, source.known).read():
        clause.names = {key: name for key, name in clause.names.items() if key not in said}
        clause.numbers = [number for number in clause.numbers if not number.is_one_of(numbers)]
        if problem := next(_Claims([clause], source).foreign(clause), None):
            return problem
    return _foreign_link(text, source)


def _foreign_link(text: str, source: Source) -> str | None:
    links = (link.rstrip(".,;:!?") for link in ADDRESS.findall(text[:LONGEST]))
    missing = next((link for link in links if link not in source.text), None)
    return f"the link {fence(missing)} does not stand there" if missing else None


def _likely_language(text: str) -> Language | None:
    """The language of a text that is too short to be sure."""
    said = words(text)
    counts = {each: sum(word in lexicon()[each].general for word in said) for each in LANGUAGES}
    best = max(counts, key=lambda each: counts[each])
    return best if counts[best] else None


class _Claims:
    """The clauses of a sentence, held against a source."""

    def __init__(self, clauses: list[Clause], source: Source) -> None:
        self.clauses, self.source = clauses, source
        self.whole = set().union(*(clause.keys for clause in clauses))

    def problems(self, *, same_language: bool) -> Iterator[str]:
        for clause in self.clauses:
            yield from self.foreign(clause, subject=same_language)
            yield from self._elsewhere(clause)
            yield from self._turned(clause)
            if same_language:
                yield from self._added(clause)

    def foreign(self, clause: Clause, *, subject: bool = False) -> Iterator[str]:
        """What the passages do not have at all."""
        numbers = [number for each in self.source.numbers for number in each]
        for number in clause.counted:
            if not number.is_one_of(numbers):
                yield f"the number {number.said} does not stand there"
        for key, said in clause.names.items():
            if key not in self.source.keys:
                yield f"the name {fence(said)} does not stand there"
        keys = {
            name_key(fold(clause.subject)),
            word_key(fold(clause.subject), self.source.language),
        }
        if subject and clause.subject and not keys & self.source.keys:
            yield f"{fence(clause.subject)} does not stand there"

    def _elsewhere(self, clause: Clause) -> Iterator[str]:
        """What the passages have, of other names and numbers."""
        source = self.source
        names = {key: said for key, said in clause.names.items() if key not in source.topics}
        items: list[tuple[str | Number, str]] = [*names.items()]
        for key, said in names.items():
            rest = _around(source.near(clause, self.whole - {key}))
            if rest and not any(key in source.about[at] for at in rest if at < len(source.about)):
                yield f"{fence(said)} stands there of something else"
        places = _around(source.near(clause, self.whole)) or set(range(len(source.sentences)))
        for number in clause.counted:
            items.append((number, number.said))
            places &= {at for at, each in enumerate(source.numbers) if number.is_one_of(each)}
        if len(names) == 2:
            places &= {at for at, each in enumerate(source.about) if names.keys() <= each}
        if items and not places and (clause.counted or len(names) == 2):
            yield f"{fence(items[-1][1])} stands there of something else"
        for item, said in items:
            if self._is_of_another(item, clause):
                yield f"{fence(said)} stands there of something else"

    def _is_of_another(self, item: str | Number, clause: Clause) -> bool:
        """Whether the sentence that has an item says what the clause says of another one."""

        def has(each: Clause) -> bool:
            if isinstance(item, str):
                return item in each.names or item in map(name_key, map(fold, each.words.values()))
            return item.is_one_of(each.numbers)

        source = self.source
        if isinstance(item, str) and item in clause.listed:
            return False
        homes = (source.sentences[at] for at in source.near(clause, self.whole))
        home = next((each for each in homes if any(map(has, each))), [])
        own = [each for each in home if has(each)]
        if any(each.opens or not each.keys for each in own):
            return False
        others = [each for each in home if not has(each) and self._rivals(each, item, clause)]
        said = clause.keys - ({item} if isinstance(item, str) else set())
        of_own = said & set().union(*(each.keys for each in own))
        of_others = (said & set().union(*(each.keys for each in others))) - of_own
        if not of_others & clause.words.keys() and (of_own or len(of_others) < 2):
            return False
        company = sum(number.is_one_of(each.numbers) for number in clause.numbers for each in own)
        return source.weight(of_others) > max(source.weight(of_own) + 1.5 * company, 1.0)

    def _rivals(self, other: Clause, item: str | Number, clause: Clause) -> bool:
        """Whether a clause of the source has another name or number in the place of an item."""
        if isinstance(item, str):
            return bool(other.names.keys() - self.source.title - self.whole)
        spoken = any(number.is_one_of(clause.numbers) for number in other.numbers)
        same = (number.unit == item.unit for number in other.numbers)
        return bool(item.unit) and not spoken and any(same)

    def _added(self, clause: Clause) -> Iterator[str]:
        """A clause with more words that the passages lack than that they have."""
        source, said = self.source, lexicon()[self.source.language]
        missing = [
            word
            for key, word in clause.words.items()
            if not (key in source.keys or said.sides(fold(word)) or fold(word) in lexicon().sources)
        ]
        shared = clause.keys & source.keys
        telling = [key for key in shared - source.topics if source.weights.get(key, 9) > 1]
        if len(missing) >= 2 and len(missing) > len(telling) + len(clause.counted):
            yield f"{fence(', '.join(missing))} do not stand there"

    def _turned(self, clause: Clause) -> Iterator[str]:
        """What is denied, or said of its opposite, where the passages are about the same."""
        homes = [self.source.sentences[at] for at in self.source.near(clause, self.whole)]
        if not homes or not (theirs := self._about_the_same(clause, homes[0])):
            return
        taken = {
            (pair, side) for each in homes[0] for pair, both in each.sides.items() for side in both
        }
        for pair, sides in clause.sides.items():
            found = [
                each for each in (*theirs, *_going_on(theirs[0], homes[0])) if pair in each.sides
            ]
            if len(sides) != 1 or not found or len(found[0].sides[pair]) != 1:
                continue
            turned = (pair in clause.turned) != (pair in found[0].turned)
            if turned != any((pair, side) not in taken for side in sides):
                yield f"the opposite stands there ({lexicon().opposites[pair]})"
            elif turned:
                return
        denied = any(each.denies for each in homes[0]) or any(
            each.denies for home in homes[1:2] for each in home if each.keys & clause.keys
        )
        if clause.denies and not (denied or any(each.excuses for each in theirs)):
            yield "what is denied is not denied there"
        plain = {key for each in homes[0] if not each.denies for key in each.keys}
        told = {key for each in theirs if each.denies for key in each.keys & clause.keys} - plain
        if not (clause.denies or clause.excuses) and self.source.weight(told) >= TELLING:
            yield "it is denied there"

    def _about_the_same(self, clause: Clause, home: list[Clause]) -> list[Clause]:
        """The clauses of a sentence that are about what a clause is about, the nearest first."""
        shared = [each.keys & clause.keys for each in home]
        counts = Counter(key for keys in shared for key in keys)
        most = max(map(len, shared))
        found = [
            each
            for each, keys in zip(home, shared, strict=True)
            if keys and (len(keys) == most or any(counts[key] == 1 for key in keys))
        ]
        return sorted(found, key=lambda each: -self.source.weight(each.keys & clause.keys))


def _around(places: Iterable[int]) -> set[int]:
    """Sentences, with the one before and the one behind each."""
    return {at + step for at in places for step in (-1, 0, 1) if at + step >= 0}


def _going_on(nearest: Clause, home: list[Clause]) -> list[Clause]:
    """The clauses behind the nearest one that say more of the same."""
    behind = home[home.index(nearest) + 1 :][:3]
    return [
        each
        for each in behind
        if len(each.words) < 4 and not (each.names or each.numbers or each.opens)
    ]
