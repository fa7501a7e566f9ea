"""A model's own words, held to what sources and people said and to what everybody knows.

Not by patterns of names: each word is judged. A word with a capital that no source, no person and
no vocabulary has is a name that was made up, and so is a word that no language here has. Figures
(prices, vintages, points) must be those of the wine they are said of. What a sommelier's words
cannot know at all (orders, stock, accounts, medals, its own instructions) stands in `claims.toml`.
"""

import lzma
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict

from agent.documents.store import Chunk
from agent.engine.contract import Evidence
from agent.engine.feedback import fence
from agent.sommelier.wine import Wine
from agent.text import (
    LANGUAGES,
    Language,
    Pattern,
    fold,
    language_of,
    pattern,
    sentences,
    stem,
    words,
)

VOCABULARY: Final = Path(__file__).with_name("vocabulary.xz")
CLAIMS: Final = Path(__file__).with_name("claims.toml")
LONGEST_NAME: Final = 5
"""Words of the longest name that is looked up."""
SHORTEST_PART: Final = 4
"""Letters of a part of a compound."""
COMPOUNDING: Final = frozenset({"de", "nl"})
RECITED: Final = 8
"""Words in a row that no answer shares with its instructions."""
LONG_WORD: Final = 6
"""Letters of a word that may be another language's, or have an ending that no list has."""
SPELLED: Final = 4
"""Letters that stand apart and make a word together."""
MOST_BOTTLES: Final = 60
"""A price may be that of so many bottles, if their number stands beside it."""

TOKEN: Final = pattern(r"\p{L}[\p{L}\p{M}]*|\p{N}+(?:[.,]\p{N}+)*")
NUMBER: Final = pattern(r"\p{N}+(?:[.,]\p{N}+)*")
BEGINS: Final = frozenset('\n:;–—"“„”«»‹›‘’(|•·/')
"""Signs behind which any word may have a capital."""
NOTE: Final = pattern(r"\A\s*(?:\(.*\)|\[.*\].{0,3})[.!]?\s*\z")
STRUCTURE: Final = pattern(
    r"[{}|<>]|\.{4}|…{2}"
    r"|(?i)\p{L}\s?[\[(]\s?(?:\.|dot|punkt|point|punto|punt)\s?[\])]\s?\p{L}"
    r"|[a-z0-9]\s\.\s[a-z]|[a-z]。[a-z]| dot (?:com|net|org)"
)
"""Signs of a table, of code, or of an address that is to be put together."""
YEAR: Final = pattern(r"(?:19|20)\d\d")
SHORT_YEAR: Final = pattern(r"\p{L} ['’´]\d\d(?!\d)")
MONEY: Final = pattern(
    r"(?i)(?:[€$£¥]|eur |usd |gbp |chf )\s?(?P<after>\d+(?:[.,]\d+)*)"
    r"|(?P<before>\d+(?:[.,]\d+)*)(?:,?[-–—])?\s?(?:[€$£¥]|eur|usd|gbp|chf)"
)
BARE_PRICE: Final = pattern(r"(?:\A|[^\d.,])(?P<value>\d{1,4}[.,]\d\d)(?:[^\d%°.,]|[.,]\D|[.,]?\Z)")
OF_MEASURE: Final = pattern(r"(?i)\A\s?(?:%|°|c?l|ml|k?g|vol|grad)")


class Token(NamedTuple):
    """A word or a number of a sentence, folded, and whether it is written like a name."""

    text: str
    folded: str
    start: int
    capital: bool
    begins: bool

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
        if found and found[-1].is_number and found[-1].begins and between.strip() in {".", ")"}:
            begins = True
        found.append(Token(each[0], fold(each[0]), each.start(), each[0][0].isupper(), begins))
        end = each.end()
    return found


_Words = Annotated[frozenset[str], BeforeValidator(lambda text: map(fold, text.split()))]


_Phrases = Annotated[tuple[str, ...], BeforeValidator(lambda text: text.split(","))]


class _Claims(BaseModel):
    """What `claims.toml` holds: words that make a name of an estate, and what nobody can know."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    estates: _Words
    articles: _Words
    negations: _Words
    offers: _Words
    terms: _Words
    numbers: _Words
    money: _Words
    points: _Words
    names: _Phrases
    people: _Phrases
    brands: _Phrases
    unknowable: Mapping[Language, tuple[str, ...]]

    @cached_property
    def claimed(self) -> Pattern:
        """Finds what no evidence holds in folded words with a space around each."""
        said = (each for several in self.unknowable.values() for each in several)
        return pattern(f" (?:{'|'.join(map(_as_pattern, said))}) ")


def _as_pattern(phrase: str) -> str:
    """`order*` stands for words that begin so, `_` for up to two words of any kind."""
    parts = (
        r"(?:\w+ ){0,2}"
        if word == "_"
        else "".join(words(word)) + r"\w*" * word.endswith("*") + " "
        for word in phrase.split()
    )
    return "".join(parts).rstrip()


@cache
def _claims() -> _Claims:
    return _Claims.model_validate(tomllib.loads(CLAIMS.read_text("utf-8")))


@cache
def _vocabulary() -> Mapping[str, frozenset[str]]:
    """The words of each language, terms of wine and food, proper names, names of people."""
    lines = lzma.decompress(VOCABULARY.read_bytes()).decode().splitlines()
    found = {
        name: frozenset(said.split()) for name, _, said in (each.partition(" ") for each in lines)
    }
    claims = _claims()
    return found | {
        "proper": found["proper"] | frozenset(map(_joined, claims.names)),
        "terms": found["terms"] | claims.terms,
        "people": frozenset(map(_joined, claims.people)),
        "brands": frozenset(map(_joined, claims.brands)),
    }


def _joined(name: str) -> str:
    return "_".join(words(name))


@lru_cache(maxsize=4096)
def _is_word(word: str, language: Language | None) -> bool:
    """Whether a language has this word, as it is or made of others."""
    known = [language] if language else LANGUAGES
    return any(
        _is_whole(word, each) or (each in COMPOUNDING and _is_compound(word, each))
        for each in known
    ) or (len(word) >= LONG_WORD and any(_is_nearly(word, each) for each in LANGUAGES))


def _is_nearly(word: str, language: Language) -> bool:
    """Whether a long word is one of a language, or would be without an ending of two letters."""
    return any(
        each in _vocabulary()[language] for each in (stem(word, language), word[:-1], word[:-2])
    )


def _is_whole(word: str, language: Language) -> bool:
    vocabulary = _vocabulary()
    return word in vocabulary["terms"] or stem(word, language) in vocabulary[language]


def _is_compound(word: str, language: Language, parts: int = 3) -> bool:
    for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        head, tail = word[:cut], word[cut:]
        if any(_is_whole(each, language) for each in {head, head.removesuffix("s")}) and (
            _is_whole(tail, language) or (parts > 2 and _is_compound(tail, language, parts - 1))
        ):
            return True
    return False


@dataclass(frozen=True)
class Grounds:
    """What the words of an answer may stand on."""

    evidence: Evidence
    language: Language | None = None

    @classmethod
    def of(cls, evidence: Evidence, texts: Iterable[str]) -> "Grounds":
        """Make the grounds of texts, judged in the language they are written in together."""
        return cls(evidence, language_of(" ".join(texts)) or _asked_in(evidence))

    @cached_property
    def wines(self) -> tuple[Wine, ...]:
        """The wines that tools found."""
        return tuple(each for each in self.evidence.found.values() if isinstance(each, Wine))

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word that a source or a person said, or an answer before."""
        said = [*self.evidence.texts, *self.evidence.answered]
        return frozenset(each.folded for text in said for each in tokens(text))

    @cached_property
    def runs(self) -> str:
        """The same, in their order."""
        said = [*self.evidence.texts, *self.evidence.answered]
        return f" {' '.join(word for text in said for word in words(text))} "

    def has(self, run: Sequence[Token]) -> bool:
        """Whether a source or a person said these words in a row."""
        return f" {' '.join(each.folded for each in run)} " in self.runs

    @cached_property
    def instructions(self) -> frozenset[tuple[str, ...]]:
        """Every run of words of the instructions."""
        return frozenset(_runs(words(self.evidence.instructions)))

    @cached_property
    def figures(self) -> frozenset[float]:
        """Numbers of people, and of documents."""
        chunks = [each.said for each in self.evidence.found.values() if isinstance(each, Chunk)]
        return frozenset(
            map(value, (n for t in [*self.evidence.asked, *chunks] for n in NUMBER.findall(t)))
        )

    @cached_property
    def telling(self) -> Mapping[str, Wine]:
        """Words that name one wine alone, of those found."""
        of_each = [(wine, set(words(wine.label))) for wine in self.wines]
        counted = [word for _, said in of_each for word in said]
        return {
            word: wine
            for wine, said in of_each
            for word in said
            if len(word) > 2 and counted.count(word) == 1 and not word.isnumeric()
        }


def _asked_in(evidence: Evidence) -> Language | None:
    return next(filter(None, map(language_of, reversed(evidence.asked))), None)


def _runs(said: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(said) - RECITED + 1):
        yield tuple(said[start : start + RECITED])


def value(number: str) -> float:
    """Read a number with a comma or a full stop, also one between thousands."""
    whole, sign, rest = number.replace(",", ".").rpartition(".")
    figures = whole.replace(".", "")
    return float(f"{figures}{rest}" if len(rest) == 3 and sign else f"{figures}.{rest}")


def invention(text: str, grounds: Grounds, wine: Wine | None = None) -> str | None:
    """Say what in a model's words nobody said and nobody knows; None if there is nothing.

    Words that describe a `wine` give no price, vintage or points but its own.
    """
    found = (_invented(each, grounds, wine) for each in statements(text))
    return next((problem for problem in found if problem), None)


def without_inventions(text: str, grounds: Grounds, wine: Wine | None = None) -> str:
    """Return a text without the sentences in which something is made up."""
    lines = (
        " ".join(each for each in statements(line) if not _invented(each, grounds, wine))
        for line in text.splitlines()
    )
    kept = "\n".join(lines).strip()
    return "" if invention(kept, grounds, wine) else kept


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text."""
    for line in text.splitlines():
        yield from [line] if NOTE.match(line) else sentences(line)


def _invented(sentence: str, grounds: Grounds, wine: Wine | None) -> str | None:
    shown = unicodedata.normalize("NFKC", sentence)
    said = tokens(shown)
    if name := made_up_name(said, grounds):
        return (
            f"no tool returned {fence(name)}; leave it out, or name a wine as {{wine:its wine_id}}"
        )
    if figure := made_up_figure(shown, said, grounds, wine):
        return f"the text says {fence(figure)}, which no tool returned of that wine; leave it out"
    if claim := made_up_claim(shown, said, grounds):
        return f"{fence(claim)} is nothing that you can know or may tell; leave it out"
    return None


def made_up_name(said: Sequence[Token], grounds: Grounds) -> str | None:
    """Return the first name that no source, no person and no vocabulary has; None without one."""
    if spelled := _spelled(said):
        return spelled
    at = 0
    while at < len(said):
        brand = _named(said, at, "brands")
        if brand and not grounds.has(said[at : at + brand]):
            return " ".join(each.text for each in said[at : at + brand])
        step = _known_name(said, at)
        if not step and not said[at].is_number and not _is_known(said, at, grounds):
            return _run_around(said, at)
        if not step and _is_estate(said, at, grounds):
            return _run_around(said, at)
        at += step or 1
    return None


def _spelled(said: Sequence[Token]) -> str | None:
    run = list[Token]()
    for each in said:
        run = [*run, each] if len(each.text) == 1 and not each.is_number else []
        if len(run) == SPELLED and all(b.start - a.start <= 3 for a, b in pairwise(run)):
            return " ".join(token.text for token in run)
    return None


def _named(said: Sequence[Token], at: int, kind: str) -> int:
    """How many words from here on are a name of a kind."""
    known = _vocabulary()[kind]
    for count in range(min(LONGEST_NAME, len(said) - at), 0, -1):
        if "_".join(each.folded for each in said[at : at + count]) in known:
            return count
    return 0


def _known_name(said: Sequence[Token], at: int) -> int:
    """How many words from here on are a name that everybody knows; people have capitals."""
    count = _named(said, at, "people")
    if count and said[at].capital and _may_be_somebody(said, at, count):
        return count
    return _named(said, at, "proper")


def _is_known(said: Sequence[Token], at: int, grounds: Grounds) -> bool:
    token, vocabulary = said[at], _vocabulary()
    if len(token.text) == 1 or token.folded in grounds.words:
        return True
    if not _of_one_script(token.text):
        return False
    if not token.capital or token.begins:
        if _is_word(token.folded, grounds.language):
            return True
        return token.capital and token.folded in vocabulary["names"] and _may_be_somebody(said, at)
    if grounds.language in {"de", None} and _is_word(token.folded, "de"):
        return True
    if (
        token.text.isupper()
        and _stands_alone(said, at)
        and _is_word(token.folded, grounds.language)
    ):
        return True
    return token.folded in vocabulary["names"] and _may_be_somebody(said, at)


def _stands_alone(said: Sequence[Token], at: int) -> bool:
    return not any(each.capital for each in [*said[max(0, at - 1) : at], *said[at + 1 : at + 2]])


def _may_be_somebody(said: Sequence[Token], at: int, count: int = 1) -> bool:
    """Whether a name can be that of a person or a town: no article before it, no wine behind it."""
    before = said[at - 1].folded if at else ""
    behind = said[at + count] if at + count < len(said) else None
    return before not in _claims().articles and not (
        behind and (_is_wine(behind) or (behind.is_number and YEAR.fullmatch(behind.text)))
    )


def _is_wine(token: Token) -> bool:
    return token.folded in _vocabulary()["proper"]


def _is_estate(said: Sequence[Token], at: int, grounds: Grounds) -> bool:
    """Whether an estate is named here, with a word that makes one, that no source names so."""
    if said[at].folded not in _claims().estates:
        return False
    behind = [each for each in said[at + 1 : at + 5] if each.folded not in _claims().articles]
    if not behind or not (behind[0].capital or (_is_wine(behind[0]) and not said[at].capital)):
        return False
    if grounds.language == "de" and not said[at].capital:
        return False
    return not grounds.has(said[at : said.index(behind[0]) + 1])


def _of_one_script(word: str) -> bool:
    scripts = {unicodedata.name(each, "?").split()[0] for each in word if each.isalpha()}
    return len(scripts) < 2 or "LATIN" not in scripts


def _run_around(said: Sequence[Token], at: int) -> str:
    end = at + 1
    while end < len(said) and said[end].capital:
        end += 1
    return " ".join(each.text for each in said[at:end])


def made_up_figure(
    sentence: str, said: Sequence[Token], grounds: Grounds, wine: Wine | None
) -> str | None:
    """Return the first price, vintage or score that is not of the wine it is said of; or None."""
    meant = [wine] if wine else _meant(sentence, said, grounds)
    known = _figures(meant, grounds)
    for found in MONEY.finditer(sentence):
        if not _is_price(value(found["after"] or found["before"]), known, said, meant):
            return found[0]
    for found in BARE_PRICE.finditer(sentence):
        measured = OF_MEASURE.match(sentence[found.span("value")[1] :])
        if not measured and not _is_price(value(found["value"]), known, said, meant):
            return found["value"]
    for number, unit in _counted(said):
        if unit.folded in _claims().points and value(number.text) not in known:
            return f"{number.text} {unit.text}"
        if unit.folded in _claims().money and not _is_price(value(number.text), known, said, meant):
            return f"{number.text} {unit.text}"
    if written := _price_in_words(said, grounds):
        return written
    if (short := SHORT_YEAR.search(sentence)) and short[0] not in grounds.runs:
        return short[0]
    return _vintage(said, known, grounds, wine)


def _counted(said: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Numbers, each with the words that follow it closely."""
    for at, token in enumerate(said):
        if token.is_number:
            yield from ((token, each) for each in said[at + 1 : at + 3])


def _meant(sentence: str, said: Sequence[Token], grounds: Grounds) -> Sequence[Wine]:
    """The wines that a sentence names; all that were found if it names none."""
    named = [grounds.telling[each.folded] for each in said if each.folded in grounds.telling]
    named += [each for each in grounds.wines if f"{{wine:{each.id}}}" in sentence]
    return list({each.id: each for each in named}.values()) or grounds.wines


def _figures(wines: Iterable[Wine], grounds: Grounds) -> frozenset[float]:
    own = (number for wine in wines for number in NUMBER.findall(wine.said))
    return grounds.figures.union(map(value, own))


def _is_price(
    price: float, known: frozenset[float], said: Sequence[Token], wines: Sequence[Wine]
) -> bool:
    """Whether a price is known, rounded, or that of so many bottles as are named beside it."""
    if any(abs(price - each) < 1 for each in known if price.is_integer()) or price in known:
        return True
    counts = {value(each.text) for each in said if each.is_number}
    return any(
        each.price and count <= MOST_BOTTLES and abs(price - count * each.price) < 1
        for each in wines
        for count in counts
    )


def _price_in_words(said: Sequence[Token], grounds: Grounds) -> str | None:
    for before, token in pairwise(said):
        is_price = token.folded in _claims().money and _counts(before)
        if is_price and f" {before.folded} {token.folded} " not in grounds.runs:
            return f"{before.text} {token.text}"
    return None


def _counts(token: Token) -> bool:
    """Whether a word is a number, as it is or at its end: "fünfunddreißig"."""
    return any(
        token.folded == each or (len(each) > 3 and token.folded.endswith(each))
        for each in _claims().numbers
    )


def _vintage(
    said: Sequence[Token], known: frozenset[float], grounds: Grounds, wine: Wine | None
) -> str | None:
    """A year beside a name, or in words on a wine, that is not known of it."""
    for at, token in enumerate(said):
        if not YEAR.fullmatch(token.text) or float(token.text) in known:
            continue
        beside = [*said[max(0, at - 1) : at], *said[at + 1 : at + 2]]
        if wine or any(_is_wine(each) or each.folded in grounds.telling for each in beside):
            return " ".join(each.text for each in said[max(0, at - 1) : at + 2])
    return None


def made_up_claim(sentence: str, said: Sequence[Token], grounds: Grounds) -> str | None:
    """Return what in a sentence no sommelier can know: orders, stock, accounts, instructions."""
    if NOTE.match(sentence) or (structure := STRUCTURE.search(sentence)):
        return sentence if NOTE.match(sentence) else str(structure and structure[0])
    folded = f" {' '.join(each.folded for each in said)} "
    if (claim := _claims().claimed.search(folded)) and claim[0] not in grounds.runs:
        return claim[0].strip()
    plain = [each.folded for each in said]
    recited = grounds.instructions.intersection(_runs(plain))
    return next(
        (" ".join(run) for run in recited if f" {' '.join(run)} " not in grounds.runs), None
    )
