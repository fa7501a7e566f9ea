"""The words by which claims, admissions and courtesies are told: `claims.toml`, read once."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from agent.text import LANGUAGES, Language, fold, stem

Spoken = Mapping[Language, str]


class Words(frozenset[str]):
    """Folded words, and, before a `*`, beginnings of words."""

    def __contains__(self, word: object) -> bool:
        has = super().__contains__
        return isinstance(word, str) and (
            has(word) or any(has(f"{word[:end]}*") for end in range(2, min(len(word), 24) + 1))
        )


class _Opposites(BaseModel):
    """Two sides, and by language the words of one, a bar, and those of the other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    words: Spoken


class _File(BaseModel):
    """What `claims.toml` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    negations: Spoken
    denials: Spoken
    conjunctions: Spoken
    bounds: Spoken
    general: Spoken
    numbers: Spoken
    units: Mapping[str, str]
    known_names: str
    same_names: Sequence[str]
    same_words: Sequence[str]
    lists: str
    ranges: str
    between: str
    verbs: str
    anaphors: str
    lacking: str
    sources: str
    contrasts: str
    courteous: str
    courtesies: str
    opposites: Sequence[_Opposites]


class Vocabulary:
    """The words of one language."""

    def __init__(self, file: _File, language: Language) -> None:
        self._language: Language = language
        self.negations = Words(file.negations[language].split())
        self.denials = Words(file.denials[language].split())
        self.conjunctions = frozenset(file.conjunctions[language].split())
        self.bounds = frozenset(file.bounds[language].split())
        self.general = frozenset(file.general[language].split())
        self._stems = frozenset(stem(word, language) for word in self.general)
        worth = (*range(2, 20), *range(20, 101, 10), 1000)
        said = file.numbers[language].split()
        self.values = dict(zip(said, map(float, worth), strict=True))
        both = [pair.words.get(language, "|").split("|") for pair in file.opposites]
        self._opposites = [(Words(one.split()), Words(other.split())) for one, other in both]
        self._sides: dict[str, list[tuple[int, int]]] = {}

    def is_general(self, word: str) -> bool:
        """Say whether a folded word is one that people say anything with."""
        return word in self.general or stem(word, self._language) in self._stems

    def sides(self, word: str) -> Iterable[tuple[int, int]]:
        """Return the opposites that a word takes a side of, by their places, and which side: ±1."""
        if word not in self._sides and len(self._sides) < 65_536:
            self._sides[word] = [
                (at, side)
                for at, both in enumerate(self._opposites)
                for side, said in zip((1, -1), both, strict=True)
                if word in said
            ]
        return self._sides.get(word, ())


class Lexicon(dict[Language, Vocabulary]):
    """The vocabularies, and what holds for all languages."""

    def __init__(self, file: _File) -> None:
        super().__init__({language: Vocabulary(file, language) for language in LANGUAGES})
        self.units = {
            fold(word): unit for unit, said in file.units.items() for word in said.split()
        }
        self.same_names = _rows(file.same_names)
        self.same_words = _rows(file.same_words)
        self.known = frozenset(file.known_names.split()).union(self.same_names)
        self.lists = frozenset(file.lists.split())
        self.ranges = frozenset(file.ranges.split())
        self.between = frozenset(file.between.split())
        self.verbs = frozenset(file.verbs.split())
        self.anaphors = frozenset(file.anaphors.split())
        self.lacking = Words(file.lacking.split())
        self.sources = Words(file.sources.split())
        self.contrasts = frozenset([*file.contrasts.split(), ";", "–", "—"])
        self.courteous = frozenset(file.courteous.split())
        self.courtesies = frozenset(file.courtesies.split())
        self.denying = Words(word for said in file.negations.values() for word in said.split())
        self.opposites = [pair.name for pair in file.opposites]


def _rows(rows: Iterable[str]) -> Mapping[str, str]:
    """Every word of a row, for the first one."""
    return {word: row.split()[0] for row in rows for word in row.split()}


@cache
def lexicon() -> Lexicon:
    """Read the words, once.

    Raises:
        ValidationError: the file is not as it must be.
    """
    file = Path(__file__).with_name("claims.toml")
    return Lexicon(_File.model_validate(tomllib.loads(file.read_text("utf-8"))))
