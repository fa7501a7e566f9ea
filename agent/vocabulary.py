"""Which words are known: of six languages, of wine and food, of places, people and institutions.

A word with a capital that no source, no person and no vocabulary has is a name that was made up,
and so is a word that no language here has. Words are facts: `vocabulary.bin` holds checksums of
frequent ones (docs/decisions/0005-free-text.md says which), `vocabulary.toml` what came by hand.
"""

import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Final, NamedTuple
from zlib import crc32

from pydantic import BeforeValidator

from agent.classifier import classifier, hashed
from agent.tables import Strict, read_toml
from agent.text import LANGUAGES, Language, fold, language_of, pattern, spoken_in, stem, words

WORDS: Final = Path(__file__).with_name("vocabulary.bin")
NAMES: Final = Path(__file__).with_name("vocabulary.toml")
SPELLINGS: Final = Path(__file__).with_name("vocabulary_names.bin")
CHECKSUM_BYTES: Final = 4
LONGEST_NAME: Final = 5
"""Words of the longest name that is looked up."""
SHORTEST_PART: Final = 4
"""Letters of the last part of a compound; others may have one less."""
COMPOUNDING: Final = frozenset({"de", "nl"})
LONGEST_WORD: Final = 40
"""Letters of a word that may be made of others."""
LONG_WORD: Final = 6
"""Letters of a word that may be English in another language."""
PARTS: Final = (2, 3, 4, 5)
"""Letters of the parts of words that tell names from words."""
LIKE_NAME: Final = 0.6
"""From which likelihood on an unknown word is a name."""
SPELLED: Final = 4
"""Letters that stand apart and make a word together."""
LETTERS_APART: Final = 3
"""Places from one of them to the next, at most."""
LEAST_KNOWN: Final = 0.8
"""How many of a text's words are known if it is in a language that is."""
FEW_WORDS: Final = 10
"""So short a text does not tell which language it is in."""
TOKEN: Final = pattern(r"\p{L}[\p{L}\p{M}]*|\d+(?:[.,]\d+)*")
NAME: Final = pattern(r"\p{Lu}[\p{L}\p{M}]*|\p{Lo}+|\w*\d\w*")
"""What may be a name where it stands: with a capital, a number, or of letters that have none."""
BEGINS: Final = frozenset('\n:;–—"“„”«»‹›‘’(|•·/')
"""Signs behind which any word may have a capital."""
ENDS: Final = frozenset({". ", "! ", "? "})
"""What may end a sentence behind a small word; "vol." may be short for another one."""
APART: Final = frozenset(",.;:!?…")
"""Signs that end what stands apart."""
ROMAN: Final = pattern(r"[IVX]{2,5}")
"""A number of a king."""
YEAR: Final = pattern(r"(?:19|20)\d\d")


class Token(NamedTuple):
    """A word or a number of a sentence, folded, and whether it is written like a name."""

    text: str
    folded: str
    start: int
    capital: bool
    begins: bool
    apart: bool = False
    """Whether punctuation stands before it and behind, or an end of the sentence."""

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.text[0].isnumeric()


def tokens(sentence: str) -> list[Token]:
    """Return the words and numbers of a sentence; the first may have a capital whatever it is."""
    found, end = list[Token](), 0
    for each in TOKEN.finditer(sentence):
        between = sentence[end : each.start()]
        begins = not found or not BEGINS.isdisjoint(between.strip(" ") and between)
        begins |= bool(found) and found[-1].text.islower() and between in ENDS
        if found and found[-1].is_number and found[-1].begins and between.strip() in {".", ")"}:
            begins = True
        apart = (not found or "," in between) and not APART.isdisjoint(sentence[each.end() :][:2])
        capital = each[0][0].isupper()
        found.append(Token(each[0], fold(each[0]), each.start(), capital, begins, apart))
        end = each.end()
    return found


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said: its words, those that may be names, and their order."""

    words: frozenset[str]
    names: frozenset[str]
    runs: str

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Said":
        """Take in texts."""
        listed = list(texts)
        found = [word for text in listed for word in words(text)]
        names = words(" ".join({name for text in listed for name in NAME.findall(text)}))
        return cls(frozenset(found), frozenset(names), f" {' '.join(found)} ")

    def has(self, run: Iterable[str]) -> bool:
        """Whether these folded words were said in a row."""
        return f" {' '.join(run)} " in self.runs


@dataclass(frozen=True, slots=True)
class Known:
    """What a text may name: what sources and people said, and what its language has.

    In a language that is none of ours only words with a capital are judged.
    """

    sources: Said
    asked: Said
    language: Language
    is_ours: bool = True

    def has(self, run: Iterable[str]) -> bool:
        """Whether a source or a person said these folded words in a row."""
        folded = list(run)
        return self.sources.has(folded) or self.asked.has(folded)


def judged_in(text: str) -> tuple[Language, bool]:
    """Return the language that a text is judged in, and whether it has most of its words.

    It is the one that has most of them; where several do, the one that the text seems to be in.
    """
    said = [each for each in tokens(text) if not each.is_number]
    telling = [each.folded for each in said if not (each.capital and is_of_wine(each))]
    small = [each.folded for each in said if not each.capital]
    seems = language_of(text)
    language, most = seems or "en", -1
    for each in sorted(LANGUAGES, key=lambda each: each != seems):
        count = sum(_is_of(word, each) for word in telling)
        if count > most:
            language, most = each, count
        if most == len(telling):
            break
    known = sum(_is_whole(word, language) for word in small)
    spoken = spoken_in(text) if known < len(small) else language
    if spoken and spoken not in LANGUAGES:
        return language, False
    is_spoken = spoken == language or len(small) < FEW_WORDS
    return language, is_spoken or known >= LEAST_KNOWN * len(small)


_Words = Annotated[frozenset[str], BeforeValidator(lambda text: map(fold, text.split()))]
_Phrases = Annotated[tuple[str, ...], BeforeValidator(lambda text: text.split(","))]


class _Hashes:
    """Words as their checksums, sorted: a hundredth of the memory of a set of them."""

    def __init__(self, data: bytes, more: Iterable[str] = ()) -> None:
        self._sorted = array("I", data)
        if sys.byteorder == "big":
            self._sorted.byteswap()
        self._more = frozenset(more)

    def __contains__(self, word: str) -> bool:
        wanted = crc32(word.encode())
        at = bisect_left(self._sorted, wanted)
        return word in self._more or (at < len(self._sorted) and self._sorted[at] == wanted)


@cache
def _vocabulary() -> Mapping[str, _Hashes]:
    """The words of each language, terms of wine and food, proper names, names of people."""
    head, _, data = WORDS.read_bytes().partition(b"\n")
    names, counts = head.decode().split()[::2], map(int, head.decode().split()[1::2])
    ends = [0, *accumulate(count * CHECKSUM_BYTES for count in counts)]
    own = {
        "world": map(_joined, _names().names),
        "terms": _names().terms,
        "brands": map(_joined, _names().brands),
    }
    parts = {name: data[start:end] for name, start, end in zip(names, ends, ends[1:], strict=False)}
    return {name: _Hashes(parts.get(name, b""), own.get(name, ())) for name in {*parts, *own}}


def _joined(name: str) -> str:
    return "_".join(words(name))


@lru_cache(maxsize=4096)
def is_word(word: str, language: Language) -> bool:
    """Whether a language has this word, as it is or made of others, or English has one so long."""
    return (
        _is_whole(word, language)
        or (language in COMPOUNDING and _is_compound(word, language))
        or (len(word) >= LONG_WORD and any(_is_of(word, each) for each in LANGUAGES))
    )


@lru_cache(maxsize=4096)
def looks_like_name(word: str, language: Language) -> bool:
    """Tell whether a word that no list has is spelt like a name, not like a language's words."""
    if len(word) < SHORTEST_PART:
        return False
    likely = classifier(SPELLINGS).likelihoods_of(spelling(word, language))
    return likely["name"] >= LIKE_NAME


def spelling(word: str, language: str) -> frozenset[int]:
    """Return how a folded word is spelt, as checksums: parts of it, in their language."""
    whole = f"^{word[:LONGEST_WORD]}$"
    starts = ((at, n) for n in PARTS for at in range(len(whole) - n + 1))
    return hashed(f"{language} {whole[at : at + n]}" for at, n in starts)


def _is_whole(word: str, language: Language) -> bool:
    return word in _vocabulary()["terms"] or _is_of(word, language)


def _is_of(word: str, language: Language) -> bool:
    return stem(word, language) in _vocabulary()[language]


def _is_compound(word: str, language: Language, parts: int = 3) -> bool:
    if len(word) > LONGEST_WORD:
        return False
    for cut in range(SHORTEST_PART - 1, len(word) - SHORTEST_PART + 1):
        head, tail = word[:cut], word[cut:]
        if any(_is_whole(each, language) for each in {head, head.removesuffix("s")}) and (
            _is_whole(tail, language) or (parts > 2 and _is_compound(tail, language, parts - 1))
        ):
            return True
    return False


class _Names(Strict):
    """What `vocabulary.toml` holds."""

    estates: _Words
    articles: _Words
    links: _Words
    titles: _Words
    greetings: _Words
    terms: _Words
    names: _Phrases
    brands: _Phrases


@cache
def _names() -> _Names:
    return read_toml(_Names, NAMES)


def made_up_name(said: Sequence[Token], known: Known, *, offered: bool = False) -> str | None:
    """Return the first name that no source, no person and no vocabulary has; None without one.

    Where something is `offered`, a name that only a person gave is none of a wine.
    """
    if spelled := _spelled(said, known) or _disguised(said, known):
        return spelled
    at = 0
    while at < len(said):
        brand = _brand(said, at)
        if brand and not known.has(each.folded for each in said[at : at + brand]):
            return _run_around(said, at)
        step = _known_name(said, at)
        if not step and not said[at].is_number and not _is_known(said, at, known, offered):
            return _run_around(said, at)
        if not step and _is_estate(said, at, known):
            return _run_around(said, at)
        at += step or 1
    return None


def _spelled(said: Sequence[Token], known: Known) -> str | None:
    """A word whose letters stand apart, if nobody knows it."""
    run = list[Token]()
    for each, after in pairwise([*said, Token("", "", 0, False, True)]):
        goes_on = run and each.start - run[-1].start <= LETTERS_APART
        run = ([*run, each] if goes_on else [each]) if len(each.text) == 1 else []
        is_over = len(after.text) != 1 or after.start - each.start > LETTERS_APART
        if is_over and len(run) >= SPELLED:
            word = "".join(letter.folded for letter in run)
            letters = sum(map(str.isalpha, word))
            if (
                letters > len(run) / 2
                and word not in known.sources.words
                and (word not in _vocabulary()["terms"] or word in _vocabulary()["brands"])
            ):
                return " ".join(letter.text for letter in run)
    return None


def _disguised(said: Sequence[Token], known: Known) -> str | None:
    """A word of Latin and other letters, of rare Latin ones, or a brand read from its end.

    None if a source has it.
    """
    mixed = (each for each in said if not _of_one_script(each.text) or _is_turned(each, known))
    return next((each.text for each in mixed if each.folded not in known.sources.words), None)


def _is_turned(token: Token, known: Known) -> bool:
    is_long = len(token.folded) > SPELLED
    return is_long and token.folded[::-1] in _vocabulary()["brands"] and not _is_word(token, known)


def _named(said: Sequence[Token], at: int, kind: str) -> int:
    """How many words from here on are a name of a kind."""
    known = _vocabulary()[kind]
    for count in range(min(LONGEST_NAME, len(said) - at), 0, -1):
        parts = [each.folded for each in said[at : at + count]]
        name = "_".join(parts)
        if name in known or name.removesuffix("s") in known or "".join(parts) in known:
            return count
    return 0


def _brand(said: Sequence[Token], at: int) -> int:
    """How many words from here on are a brand; "la tâche" is but a task."""
    count = _named(said, at, "brands")
    is_plain = not any(each.capital for each in said[at : at + count])
    return 0 if is_plain and said[at].folded in _names().articles else count


def _known_name(said: Sequence[Token], at: int) -> int:
    """How many words from here on are a name that everybody knows; people have capitals."""
    count = _named(said, at, "people")
    if count and said[at].capital and _may_be_somebody(said, at, count):
        return count
    if count := _named(said, at, "proper"):
        return count
    return _named(said, at, "world") if said[at].capital else 0


def _is_known(said: Sequence[Token], at: int, known: Known, offered: bool) -> bool:
    token = said[at]
    is_name = token.capital and not token.begins
    sources = known.sources.names if is_name else known.sources.words
    is_letter = len(token.text) == 1 and _of_one_script(f"a{token.text}")
    if is_letter or token.folded in sources or ROMAN.fullmatch(token.text):
        return True
    if token.folded in known.asked.words and (not offered or _may_be_somebody(said, at)):
        return True
    if not token.capital:
        is_plain = token.folded in _names().links or _reads_as_word(token, known)
        return not known.is_ours or is_plain or not _stands_like_name(said, at, known)
    return (
        _is_addressed(said, at)
        or (token.begins and (_reads_as_word(token, known) or not known.is_ours))
        or (known.language == "de" and _is_word(token, known) and not _is_called(said, at))
        or (_of_one_script(token.text) and _is_name(token.folded) and _may_be_somebody(said, at))
    )


def _is_word(token: Token, known: Known) -> bool:
    return _of_one_script(token.text) and is_word(token.folded, known.language)


def _reads_as_word(token: Token, known: Known) -> bool:
    """Whether a word is none that may be a name: known, or spelt like others of its language."""
    if _is_word(token, known):
        return True
    is_whole = len(token.text) >= SHORTEST_PART and token.text[1:].islower()
    may_be_plain = is_whole if token.capital else token.text.islower()
    looks = _is_name(token.folded) or looks_like_name(token.folded, known.language)
    return may_be_plain and _of_one_script(token.text) and not looks


def _stands_like_name(said: Sequence[Token], at: int, known: Known) -> bool:
    """Whether a small word that nobody knows stands where the name of a wine does.

    Behind an article or an estate, before a wine or a number, or beside another such word.
    """
    led = {each.folded for each in said[max(0, at - 2) : at]}
    behind = said[at + 1 : at + 2]
    beside = [*said[max(0, at - 1) : at], *behind]
    return (
        not said[at].text.islower()
        or not led.isdisjoint(_names().articles | _names().estates)
        or any(is_of_wine(each) or each.is_number for each in behind)
        or not all(each.capital or each.is_number or _reads_as_word(each, known) for each in beside)
    )


def _is_name(word: str) -> bool:
    return word in _vocabulary()["names"]


def _is_addressed(said: Sequence[Token], at: int) -> bool:
    """Whether somebody is called so: behind a title, or apart behind a greeting."""
    before = [each.folded for each in said[:at]]
    if said[at].folded in _names().titles:
        return True
    if not _names().titles.isdisjoint(before[-2:-1] * (before[-1:] == ["de"]) + before[-1:]):
        return True
    return said[at].apart and not _names().greetings.isdisjoint(before)


def _is_called(said: Sequence[Token], at: int) -> bool:
    """Whether a first name stands behind an article and before another name: "die Anna Graf"."""
    before = said[at - 1].folded if at else ""
    behind = [each for each in said[at + 1 : at + 2] if each.capital and not each.begins]
    is_surname = any(not _is_whole(each.folded, "de") for each in behind)
    return before in _names().articles and is_surname and _is_name(said[at].folded)


def _may_be_somebody(said: Sequence[Token], at: int, count: int = 1) -> bool:
    """Whether a name can be that of a person or a town: no article before it, no wine behind it."""
    before = said[at - 1].text.casefold() if at else ""
    behind = said[at + count] if at + count < len(said) else None
    return before not in _names().articles and not (
        behind and (is_of_wine(behind) or (behind.is_number and YEAR.fullmatch(behind.text)))
    )


def is_of_wine(token: Token) -> bool:
    """Tell whether a word is a grape, a place or a kind of wine."""
    return token.folded in _vocabulary()["proper"]


def _is_estate(said: Sequence[Token], at: int, known: Known) -> bool:
    """Whether an estate is named here, with a word that makes one, that no source names so."""
    token = said[at]
    if token.folded not in _names().estates or (len(token.text) < 4 and not token.capital):
        return False  # "más" is no "mas"
    small = _names().articles | _names().links
    behind = [each for each in said[at + 1 : at + 5] if each.folded not in small]
    if not behind or not (behind[0].capital if said[at].capital else is_of_wine(said[at + 1])):
        return False
    return not known.has(each.folded for each in said[at : said.index(behind[0]) + 1])


def _of_one_script(word: str) -> bool:
    """Whether no letter of a word is there for another one that it looks like."""
    if word.isascii():
        return True
    scripts = {unicodedata.name(each, "?").split()[0] for each in word if each.isalpha()}
    return fold(word).isascii() if "LATIN" in scripts else True


def _run_around(said: Sequence[Token], at: int) -> str:
    start, end = at, at + 1
    while start and said[start - 1].capital:
        start -= 1
    while end < len(said) and said[end].capital:
        end += 1
    return " ".join(each.text for each in said[start:end])
