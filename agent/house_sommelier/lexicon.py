"""Words of a message and what they mean: tokens, known phrases, slips of the pen. Pure.

A phrase is looked up as the stems of its words, the longest first. What a phrase means in the
language of the message goes before what it means elsewhere, and words of grammar ("not", "under",
"how many") count in their own language only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from agent.house_sommelier.data import Entry, entries, grammar, load
from agent.text import LANGUAGES, Language, fold, language_of, pattern

_TOKEN: Final = pattern(
    r"[0-9]+(?:[.,'’][0-9]+)*|[\p{L}\p{Nl}\p{No}]+|[-–—€$£¥₹₽₩₺₪฿₫₴%°+±~<>=.,;:!?()/\n]"
)
_AMOUNT: Final = pattern(r"\s?[€$£]?\s?[0-9]")
_STEMMED: Final = 4
_CONTENT: Final = frozenset(
    "dish hue styles grapes countries regions sweetness bodies tannins acidities text subject "
    "allergen currency unconverted percent".split()
)
"""Fields whose words are understood in any language."""
_COMPOUNDED: Final = frozenset(
    "dish hue styles countries regions grapes allergen allergy wine".split()
)
_SPELT: Final = frozenset("grapes regions countries".split())
_SHORTEST_SLIP: Final = 5
_SURE_SLIP: Final = 7
_SHORTEST_PART: Final = 4
_PHRASE_VOTE: Final = 0.7
"""What a phrase that one language has tells of it; a word that one language has tells 1."""
_LONGEST_TEXT: Final = 2000
_NOT: Final = pattern(r"(?i)\b(?:(can)(?:['’]?t|not)|(is|do|are|was|did|does)nt|([a-z]+)n['’]t)\b")


class Meaning(NamedTuple):
    """One thing that a phrase says: a field and its values."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign: as written, as compared, and where it stands."""

    written: str
    stem: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether this is a word or a number."""
        return self.written[0].isalnum()


@dataclass(frozen=True, slots=True)
class Match:
    """A known phrase: where it starts and ends, in tokens, and what it means."""

    start: int
    end: int
    meanings: tuple[Meaning, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The fields it speaks of."""
        return frozenset(meaning.field for meaning in self.meanings)

    def values(self, field: str) -> tuple[str, ...]:
        """The values of one field."""
        return next((each.values for each in self.meanings if each.field == field), ())


class Phrases:
    """The words of a message, and the known phrases among them by where they begin and end."""

    def __init__(self, words: Sequence[Token], matches: Sequence[Match]) -> None:
        self.words, self.matches = words, matches
        self._starts = {match.start: match for match in matches}
        self._ends = {match.end: match for match in matches}

    def at(self, place: int) -> Match:
        """The phrase that begins at a place; one without words and meaning if none does."""
        return self._starts.get(place) or Match(place, place, ())

    def before(self, place: int) -> Match:
        """The phrase that ends before a place; one without words and meaning if none does."""
        return self._ends.get(place) or Match(place, place, ())

    def stem(self, place: int) -> str:
        """The stem of a word; empty beyond the message."""
        return self.words[place].stem if 0 <= place < len(self.words) else ""

    def is_among(self, place: int, name: str) -> bool:
        """Whether the word at a place is, as written, on a list of words of grammar."""
        inside = 0 <= place < len(self.words)
        return inside and self.words[place].written.casefold() in grammar(name)

    def written(self, start: int, end: int) -> str:
        """The words from `start` to before `end`, as the person wrote them."""
        return " ".join(word.written for word in self.words[start:end])


def stem(word: str) -> str:
    """A folded word without the commonest plural endings; the same for phrases and messages."""
    if len(word) < _STEMMED or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > _STEMMED:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("shes", "ches", "xes", "zes", "oes")) else word[:-1]


def tokens(text: str) -> list[Token]:
    """The words and signs of a text, at most 2,000 characters of it, as written."""
    text = _NOT.sub(lambda found: f"{found[1] or found[2] or found[3]} not", text[:_LONGEST_TEXT])
    return [
        Token(each[0], stem(fold(each[0])), *each.span())
        for each in _TOKEN.finditer(text)
        if each[0] not in "-–—" or _AMOUNT.match(text[each.end() : each.end() + 4])
    ]


def key(phrase: str) -> tuple[str, ...]:
    """A phrase as it is looked up."""
    return tuple(each.stem for each in tokens(phrase) if each.written not in "-–—.,;:!?()/")


@dataclass(frozen=True, slots=True)
class _Lexicon:
    phrases: Mapping[tuple[str, ...], tuple[Entry, ...]]
    longest: Mapping[str, int]
    words: frozenset[str]
    slips: Mapping[str, tuple[str, ...]]
    names: frozenset[str]
    parts: frozenset[str]


@cache
def lexicon() -> _Lexicon:
    """Every phrase, read when the first message comes."""
    phrases: dict[tuple[str, ...], tuple[Entry, ...]] = {}
    for entry in entries():
        for phrase in entry.phrases:
            if written := key(phrase) or tuple(phrase):
                phrases[written] = _with(phrases.get(written, ()), entry)
    longest: dict[str, int] = {}
    for each in phrases:
        longest[each[0]] = max(len(each), longest.get(each[0], 0))
    words = frozenset(word for each in phrases for word in each) | stop_words()
    single = {each[0]: found for each, found in phrases.items() if len(each) == 1}
    return _Lexicon(
        phrases,
        longest,
        words,
        _slips(
            word
            for word, found in single.items()
            if _is_of(found, _SPELT) or (len(word) > _SURE_SLIP and _is_of(found, _COMPOUNDED))
        ),
        frozenset(word for word, found in single.items() if _is_of(found, _SPELT)),
        frozenset(
            word
            for word, found in single.items()
            if len(word) >= _SHORTEST_PART and _is_of(found, _COMPOUNDED)
        ),
    )


def _with(known: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    """What a phrase means with one entry more; of dishes the last one holds."""
    if entry.meanings[0][0] == "dish":
        known = tuple(each for each in known if each.meanings[0][0] != "dish")
    return (*known, entry)


def _is_of(found: Sequence[Entry], fields: frozenset[str]) -> bool:
    return any(field in fields for entry in found for field, _ in entry.meanings)


def _slips(words: Iterator[str]) -> Mapping[str, tuple[str, ...]]:
    """For every word with one letter left out, the words that it may be."""
    found: dict[str, list[str]] = {}
    for word in words:
        if len(word) >= _SHORTEST_SLIP:
            for at in range(len(word)):
                found.setdefault(word[:at] + word[at + 1 :], []).append(word)
    return {slip: tuple(dict.fromkeys(meant)) for slip, meant in found.items()}


@cache
def grammar_stems(name: str) -> frozenset[str]:
    """The stems of one list of words of grammar."""
    return frozenset(stem(fold(word)) for word in grammar(name))


@cache
def stop_words() -> frozenset[str]:
    """The stems of words that say nothing."""
    return frozenset(
        stem(fold(word)) for code in LANGUAGES for word in load("stopwords")[code].split()
    )


@cache
def house_words() -> frozenset[str]:
    """The stems of words that stand before many a wine's name and tell none from another."""
    return frozenset(stem(fold(word)) for word in load("stopwords")["houses"].split())


@cache
def _telling(language: Language) -> frozenset[str]:
    return frozenset(stem(fold(word)) for word in load("stopwords")[language].split())


def respelled(words: Sequence[Token], *, compounds: bool = True) -> list[Token]:
    """`words`, the unknown ones as the known word or words that they are written for."""
    found: list[Token] = []
    for word in words:
        known = [word.stem] if word.stem in lexicon().words else _meant(word.stem, compounds)
        found += [replace(word, stem=each) for each in known]
    return found


def _meant(word: str, compounds: bool) -> list[str]:
    plain = word.replace("ae", "a").replace("oe", "o").replace("ue", "u")
    if plain in lexicon().words:
        return [plain]
    if len(word) < _SHORTEST_SLIP or not word.isalpha():
        return [word]
    return ((_parts(word) or _parts(plain)) if compounds else []) or [_slipped(word)]


def _slipped(word: str) -> str:
    """The known word that one letter left out, added, doubled, changed or swapped makes of it."""
    slips = lexicon().slips
    cut = [word[:at] + word[at + 1 :] for at in range(len(word))]
    one_off = [*slips.get(word, ()), *(each for each in cut if each in lexicon().names)]
    swapped = [meant for each in cut for meant in slips.get(each, ())]
    for meant in (*one_off, *swapped):
        if meant[0] != word[0] or abs(len(meant) - len(word)) > 1:
            continue
        same_letters = sorted(meant) == sorted(word) or set(meant) == set(word)
        if len(word) >= _SURE_SLIP or (same_letters and len(meant) >= _SHORTEST_SLIP):
            return meant
    return word


def _parts(word: str) -> list[str]:
    """A compound as its known parts, the last first to be looked for: "Zwiebel-rostbraten"."""
    parts = lexicon().parts
    for at in range(2, len(word) - _SHORTEST_PART + 1):
        tail = stem(word[at:])
        if tail in parts:
            head = word[:at]
            heads = (head, stem(head), head.removesuffix("n"), head.removesuffix("en"))
            known = next((each for each in heads if each in lexicon().words and len(each) > 1), "")
            if known or len(head) > 2:
                return [*([known] if known else []), tail]
    for at in range(len(word) - 3, _SHORTEST_PART - 1, -1):
        head = next((each for each in (word[:at], stem(word[:at])) if each in parts), "")
        if head:
            return [head]
    return []


def scan(words: Sequence[Token], language: Language | None) -> list[Match]:
    """The known phrases in a text, left to right, the longest wherever several begin."""
    found: list[Match] = []
    stems = tuple(token.stem for token in words)
    at = 0
    while at < len(stems):
        match = next(_matches_at(stems, at, language), None)
        if match:
            found.append(match)
        at = match.end if match else at + 1
    return found


def _matches_at(stems: tuple[str, ...], at: int, language: Language | None) -> Iterator[Match]:
    known = lexicon()
    for length in range(min(known.longest.get(stems[at], 0), len(stems) - at), 0, -1):
        if meanings := _meanings(stems[at : at + length], language):
            yield Match(at, at + length, meanings)


@cache
def _meanings(written: tuple[str, ...], language: Language | None) -> tuple[Meaning, ...]:
    found = lexicon().phrases.get(written, ())
    here = [each for each in found if language is None or each.language in (language, "any")]
    fallback = [(f, v) for each in found for f, v in each.meanings if f in _CONTENT]
    meant = [each for entry in here for each in entry.meanings]
    if all(name == "subject" for name, _ in meant):
        meant += fallback
    merged: dict[str, tuple[str, ...]] = {}
    for field, values in meant:
        merged[field] = tuple(dict.fromkeys((*merged.get(field, ()), *values)))
    return tuple(Meaning(field, values) for field, values in merged.items())


def likely_languages(words: Sequence[Token], text: str) -> tuple[Language, ...]:
    """The languages a message may be in, equally likely; empty if nothing tells."""
    votes = dict.fromkeys(LANGUAGES, 0.0)
    for word in words:
        having = [code for code in LANGUAGES if word.stem in _telling(code)]
        for code in having:
            votes[code] += 1 / len(having)
    for first, second in pairwise([None, *words]):
        for written in (
            ((second.stem,), (first.stem, second.stem) if first else ()) if second else ()
        ):
            spoken = {each.language for each in lexicon().phrases.get(written, ())} - {"any"}
            fields = {f for each in lexicon().phrases.get(written, ()) for f, _ in each.meanings}
            if len(spoken) == 1 and not fields & {"grapes", "regions", "subject"}:
                for code in LANGUAGES:
                    votes[code] += _PHRASE_VOTE * (code in spoken)
    told = language_of(text)
    if told:
        votes[told] += _PHRASE_VOTE
    most = round(max(votes.values()), 3)
    return tuple(code for code in LANGUAGES if most and round(votes[code], 3) == most)


@cache
def names(language: Language) -> Mapping[Meaning, str]:
    """How `language` names a meaning: the first phrase of the first entry with just that."""
    named: dict[Meaning, str] = {}
    for entry in entries():
        if entry.language in (language, "any") and len(entry.meanings) == 1:
            named.setdefault(Meaning(*entry.meanings[0]), entry.phrases[0])
    return named
