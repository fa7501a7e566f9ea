"""A model's own words, held to what sources and people said and to what everybody knows.

Not by patterns of names: each word is judged (`agent/vocabulary.py`). Figures (prices, vintages,
points) must be those of the wine they are said of. What a sommelier's words cannot know at all
(orders, stock, accounts, medals, its own instructions) a classifier tells (`agent/claims.py`).
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator

from agent.claims import is_claim
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, Source
from agent.engine.feedback import fence
from agent.markdown import live
from agent.sommelier.wine import AnyWine, ReadWine
from agent.tables import Strict, read_toml
from agent.text import Language, Match, Pattern, fold, pattern, sentences, words
from agent.vocabulary import (
    ROMAN,
    YEAR,
    Known,
    Said,
    Token,
    is_of_wine,
    judged_in,
    made_up_name,
    tokens,
)

TABLES: Final = Path(__file__).with_suffix(".toml")
RECITED: Final = 8
"""Words in a row that no answer shares with its instructions."""
MOST_BOTTLES: Final = 60
"""A price may be that of so many bottles, if their number stands beside it."""
DOZEN: Final = 12
HALF: Final = 0.5
"""How far a whole price may be from the one that it rounds."""
LONGEST_MEASURE: Final = 8
LONGEST_LINK: Final = 3
"""Letters of what joins others, and of numbers that are a part of many words."""
FIGURE_WORDS: Final = 3
"""From how many words on a number in words is a vintage or a price, none of bottles."""
SHORTEST_CODE: Final = 4
"""Digits of a number that may stand for somebody or something."""
TOLD: Final = 0.75
"""How many of the words of a claim a source has, if the claim is the source's."""
TOLD_RUN: Final = 3
"""How many of them in a row, each."""
SHARED: Final = 2
"""Words that a sentence with a price has in common with the document that tells it."""

PLACEHOLDER: Final = pattern(r"\{wine:([^{}\n]{1,200})\}")
"""What stands for the name of a wine in a model's words."""
NUMBER: Final = pattern(r"\d+(?:[.,]\d+)*")
YEAR_OF_ANY_TIME: Final = pattern(r"1\d\d\d|20\d\d")
VARIANTS: Final = frozenset("\u20e3\ufe0e\ufe0f")
"""What makes a figure a key, or a sign a picture."""
NOTE: Final = pattern(r"\A\s*\(.*\)[.!]?\s*\Z")
STRUCTURE: Final = pattern(
    r"(?i)[|\t]|[{,]\s?[\"']|\.{4}|…{2}"
    r"|[\p{L}\p{N}]\s?[\[(]\s?(?:\.|dot|punkt|point|punto|punt)\s?[\])]\s?\p{L}"
    r"|[a-z0-9]\s\.\s[a-z]|[a-z][。．｡]\s?[a-z]|:\s?//\s?\p{L}|(?:\A|\s)/[a-z]"
    r"| (?:(?:dot|punkt|point|punto|punt) (?:com|net|org)|punkt (?:de|at|ch)|point fr"
    r"|punto (?:it|es barra)|punt (?:nl|be))(?:\W|\Z)"
    r"|(?:\A|[^\d.,])0\d(?:[ ()/.-]{0,2}\d){7,}|[a-z]\d+[a-z]+\d|[\x{1F130}-\x{1F189}]"
    r"|\p{L}\s?[:=]\s?\d[\d.,]*\s*\Z|=\s?[\d\"'\p{L}]|(?-i:(?:\A|[.!?]\s)[a-zà-ÿ]+\s?:\s)"
    r"|\s[–—-]\s\d+(?:[.,]\d+)*\s[–—-]\s|(?:\A|[\s(])[-–−]\s?\d+\s?%|[★☆⭐]|(?-i:\p{L}\d\p{Ll}{2})"
)
"""Signs of a table, of code, of a command, or of what is to be put together, called or paid to."""
SHORT_YEAR: Final = pattern(r"(?:\A|\p{L} )['’´]\d\d(?!\d)")
SIGN: Final = pattern(
    r"(?P<sign>[\p{Sc}💴-💷])\s?(?P<after>\d+(?:[.,]\d+)*)"
    r"|(?P<before>\d+(?:[.,]\d+)*)(?:[.,]?[-–—])?\s?(?P<behind>[\p{Sc}💴-💷])"
)
"""A number with the sign of a currency."""
PRICED: Final = pattern(
    r"(?i)(?:[€$£¥]|(?:eur|usd|gbp|chf)\s)\s?\d+(?:[.,]\d+)*|\d+(?:[.,]\d+)*(?:,?[-–—])?\s?"
    r"(?:[€$£¥]|(?:eur|usd|gbp|chf|dollar|pound|pfund|franc|frank|libra|pond|dólar|sterlin|kron|zlot)\p{L}*)"
)
"""A price as it is left out of what a sentence claims: figures are held to what is known."""
BARE_PRICE: Final = pattern(
    r"(?:\A|[^\d.,])(?P<value>\d{1,4}[.,]\d\d)(?:[^\d%°.,]|[.,]\D|[.,]?\Z)"
    r"|(?:\A|[^\d.,])(?P<whole>\d{1,4})[.,][-–—](?:\D|\Z)"
)
CURRENCY: Final = pattern(r"[\p{Sc}💴-💷]")
OF_MEASURE: Final = pattern(r"(?i)\A\s?(?:%|°|c?l|ml|k?g|vol|grad)")


_Words = Annotated[frozenset[str], BeforeValidator(lambda text: map(fold, text.split()))]


class _Tables(Strict):
    """What `grounding.toml` holds."""

    negations: _Words
    offers: _Words
    values: Mapping[float, _Words]
    between: _Words
    limits: _Words
    points: _Words
    vintages: _Words
    money: Mapping[str, _Words]

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """Return what numbers in words are."""
        return {word: number for number, said in self.values.items() for word in said}

    @cached_property
    def currencies(self) -> Mapping[str, frozenset[str]]:
        """Return the currencies that a word or a sign stands for, by their codes."""
        known = {
            said: frozenset(codes.split()) for codes, each in self.money.items() for said in each
        }
        codes = {code for each in known.values() for code in each}
        return known | {fold(code): frozenset({code}) for code in codes}

    @cached_property
    def numeral(self) -> Pattern:
        """Return what finds the numbers that a word is made of, the longest first."""
        return pattern("|".join(sorted(self.numbers, key=len, reverse=True)))

    @cached_property
    def last_numbers(self) -> tuple[str, ...]:
        """Return numbers that stand at the end of others."""
        return tuple(each for each in self.numbers if len(each) > LONGEST_LINK)


@cache
def _tables() -> _Tables:
    return read_toml(_Tables, TABLES)


@dataclass(frozen=True)
class Grounds:
    """What the words of an answer may stand on."""

    evidence: Evidence
    language: Language
    is_ours: bool = True
    shown: frozenset[str] = frozenset()
    """The ids of the wines that the answer shows."""

    @classmethod
    def of(cls, evidence: Evidence, told: Iterable[tuple[str, str]]) -> "Grounds":
        """Make the grounds of texts, each with the id of the wine that it describes, if any.

        They are judged in the language they are written in together.
        """
        texts, ids = zip(*told, strict=True)
        return cls(evidence, *judged_in("\n".join(texts)), frozenset(filter(None, ids)))

    @cached_property
    def wines(self) -> tuple[AnyWine, ...]:
        """The wines that tools found."""
        return tuple(each for each in self.evidence.found.values() if isinstance(each, AnyWine))

    @cached_property
    def known(self) -> Known:
        """What the words may name."""
        paths = [each.path for each in self.evidence.found.values() if isinstance(each, Chunk)]
        sources = [*replace(self.evidence, asked=[]).texts, *self.evidence.answered, *paths]
        return Known(Said.of(sources), Said.of(self.evidence.asked), self.language, self.is_ours)

    @cached_property
    def instructions(self) -> frozenset[tuple[str, ...]]:
        """Every run of words of the instructions."""
        return _runs_of(self.evidence.instructions)

    @cached_property
    def figures(self) -> frozenset[float]:
        """Numbers of people, and of documents."""
        return self.asked.union(*(map(value, NUMBER.findall(each)) for each in self.chunks))

    @cached_property
    def priced(self) -> tuple[tuple[float, str, frozenset[str]], ...]:
        """Prices of documents, each with its path and the words that it stands among."""
        found = (each for each in self.evidence.found.values() if isinstance(each, Chunk))
        said = ((each.path, text, tokens(text)) for each in found for text in statements(each.said))
        return tuple(
            (price, path, _telling(read))
            for path, text, read in said
            for _, price, _ in _prices(text, read)
        )

    @cached_property
    def tellers(self) -> Said:
        """What documents and the catalogue say; a list that somebody photographed tells nothing."""
        found = (each for each in self.evidence.found.values() if isinstance(each, Source))
        told = (each.said for each in found if not isinstance(each, ReadWine))
        return Said.of((*told, *self.evidence.answered))

    @cached_property
    def asked(self) -> frozenset[float]:
        """Numbers of people."""
        return frozenset(
            value(each) for text in self.evidence.asked for each in NUMBER.findall(text)
        )

    @cached_property
    def chunks(self) -> tuple[str, ...]:
        """What parts of documents say."""
        found = self.evidence.found.values()
        return tuple(each.said for each in found if isinstance(each, Chunk))

    @cached_property
    def telling(self) -> Mapping[str, AnyWine]:
        """Words that name one wine alone, of those found."""
        of_each = [(wine, set(words(wine.label))) for wine in self.wines]
        counted = [word for _, said in of_each for word in said]
        return {
            word: wine
            for wine, said in of_each
            for word in said
            if len(word) > 2 and counted.count(word) == 1 and not word.isnumeric()
        }


@lru_cache(maxsize=8)
def _runs_of(instructions: str) -> frozenset[tuple[str, ...]]:
    # They are the same from turn to turn.
    return frozenset(_runs(words(instructions)))


def _runs(said: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(said) - RECITED + 1):
        yield tuple(said[start : start + RECITED])


def value(number: str) -> float:
    """Read a number with a comma or a full stop, also one between thousands."""
    whole, sign, rest = number.replace(",", ".").rpartition(".")
    figures = whole.replace(".", "")
    return float(f"{figures}{rest}" if len(rest) == 3 or not sign else f"{figures}.{rest}")


def invention(text: str, grounds: Grounds, wine: AnyWine | None = None) -> str | None:
    """Say what in a model's words nobody said and nobody knows; None if there is nothing.

    Words that describe a `wine` give no price, vintage or points but its own.
    """
    found = (_invented(each, grounds, wine) for each in statements(text))
    return next((problem for problem in found if problem), None) or _across(text, grounds)


def _across(text: str, grounds: Grounds) -> str | None:
    """What ends of lines, or of what looks like a sentence, hide."""
    line = " ".join(filled(_without_links(text, grounds), grounds.evidence).split())
    if sign := STRUCTURE.search(line):
        return _unknowable(sign[0])
    claims = (made_up_claim(each, tokens(each), grounds) for each in _whole(line))
    recited = _recited(words(line), grounds)
    return next((_unknowable(claim) for claim in (recited, *claims) if claim), None)


def _unknowable(claim: str) -> str:
    return f"{fence(claim)} is nothing that you can know or may tell; leave it out"


def sentences_that(hold: Callable[[str], bool], text: str) -> str:
    """Return a text with those of its sentences alone that hold."""
    lines = (" ".join(filter(hold, statements(line))) for line in text.splitlines())
    return "\n".join(lines).strip()


def filled(text: str, evidence: Evidence) -> str:
    """Return a text with the names of wines in place of `{wine:ID}`; nothing for an unknown id."""

    def name(placeholder: Match) -> str:
        wine = evidence.found.get(placeholder[1].strip())
        return wine.label if isinstance(wine, AnyWine) else ""

    return PLACEHOLDER.sub(name, text)


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text; words below each other are of one."""
    for is_column, lines in groupby(text.splitlines(), lambda line: len(line.split()) == 1):
        for line in [" ".join(lines)] if is_column else lines:
            yield from [line] if NOTE.match(line) else _whole(line)


def _whole(line: str) -> Iterator[str]:
    """The sentences of a line; those inside one bracket are one."""
    begun = ""
    for each in sentences(line):
        begun = f"{begun} {each}" if begun else each
        if begun.count("(") <= begun.count(")"):
            yield begun
            begun = ""
    if begun:
        yield begun


def _invented(sentence: str, grounds: Grounds, wine: AnyWine | None) -> str | None:
    shown = _read(filled(_without_links(sentence, grounds), grounds.evidence))
    said = tokens(shown)
    if name := made_up_name(said, grounds.known, offered=_offers(said)):
        return (
            f"no tool returned {fence(name)}; leave it out, or name a wine as {{wine:its wine_id}}"
        )
    if figure := made_up_figure(shown, said, grounds, wine):
        return f"the text says {fence(figure)}, which no tool returned of that wine; leave it out"
    if claim := made_up_claim(shown, said, grounds):
        return _unknowable(claim)
    return None


def _read(text: str) -> str:
    """Return a text as it is read: figures in circles, on keys, in other letters are figures."""
    plain = unicodedata.normalize("NFKC", text)
    return "".join(each for each in plain if each not in VARIANTS)


def _without_links(sentence: str, grounds: Grounds) -> str:
    for found in live(sentence):
        if (address := sentence[found.start : found.end]) in grounds.evidence.links:
            return _without_links(sentence.replace(address, ""), grounds)
    return sentence


def _offers(said: Sequence[Token]) -> bool:
    """Whether a sentence may say that something can be had here, and does not deny it."""
    tables = _tables()
    told = {each.folded for each in said}
    is_offer = not tables.offers.isdisjoint(told) or any(each.is_number for each in said)
    return is_offer and tables.negations.isdisjoint(told)


def made_up_figure(
    sentence: str, said: Sequence[Token], grounds: Grounds, wine: AnyWine | None
) -> str | None:
    """Return the first price, vintage or score that is not of the wine it is said of; or None."""
    meant = [wine] if wine else _meant(said, grounds)
    known = _figures(meant, grounds)
    prices = list(_prices(sentence, said))
    told = _of_documents(sentence, said, grounds)
    told |= grounds.asked if _limits(said) else frozenset()
    sums = {each: _sums(said, meant, each) | told for each in {each for _, _, each in prices}}
    priced = (text for text, price, each in prices if not _is_price(price, sums[each]))
    scored = (
        f"{number.text} {unit.text}"
        for number, unit in _counted(said)
        if unit.folded in _tables().points and value(number.text) not in known
    )
    short = (each[0] for each in SHORT_YEAR.finditer(sentence))
    signs = (
        ()
        if sentence.isascii() and "$" not in sentence
        else CURRENCY.findall(SIGN.sub(" ", sentence))
    )
    numbers = (each for each in said if each.text.isdecimal() and _is_code(each))
    codes = (each.text for each in numbers if not grounds.known.has([each.folded]))
    in_words = (_price_in_words(said, grounds), _figure_in_words(said, grounds))
    others = (*in_words, _vintage(said, known, grounds, wine))
    return next(filter(None, (*priced, *scored, *short, *signs, *codes, *others)), None)


def _of_documents(sentence: str, said: Sequence[Token], grounds: Grounds) -> frozenset[float]:
    """The prices of documents that a sentence cites, or shares words with."""
    own = _telling(said)
    return frozenset(
        price
        for price, path, among in grounds.priced
        if path in sentence or len(own & among) >= SHARED
    )


def _telling(said: Sequence[Token]) -> frozenset[str]:
    """The words of a sentence that tell what it is about."""
    small = _tables().currencies
    long = (each for each in said if len(each.text) > LONGEST_LINK and not each.is_number)
    return frozenset(each.folded for each in long if each.folded not in small)


def _limits(said: Sequence[Token]) -> bool:
    """Whether a sentence speaks of what somebody would pay, not of what something costs."""
    return not _tables().limits.isdisjoint(each.folded for each in said)


def _prices(sentence: str, said: Sequence[Token]) -> Iterator[tuple[str, float, frozenset[str]]]:
    """The prices of a sentence, each as it is written, as a number and in which currencies."""
    of = _tables().currencies
    for found in () if sentence.isascii() and "$" not in sentence else SIGN.finditer(sentence):
        sign = found["sign"] or found["behind"]
        yield found[0], value(found["after"] or found["before"]), of.get(sign, frozenset({sign}))
    beside = ((each, unit) for unit, each in pairwise(said) if each.is_number)
    for number, unit in (*_counted(said), *beside):
        if unit.folded in of:
            yield f"{number.text} {unit.text}", value(number.text), of[unit.folded]
    for found in BARE_PRICE.finditer(sentence):
        price = found["value"] or found["whole"]
        behind = sentence[found.end("value") :][:LONGEST_MEASURE] if found["value"] else ""
        if not OF_MEASURE.match(behind):
            yield price, value(price), frozenset()


def _counted(said: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Numbers, each with the words that follow it closely."""
    for at, token in enumerate(said):
        if token.is_number:
            yield from ((token, each) for each in said[at + 1 : at + 3])


def _meant(said: Sequence[Token], grounds: Grounds) -> Sequence[AnyWine]:
    """The wines that a sentence names; else those that the answer shows, or the only one found."""
    named = [grounds.telling[each.folded] for each in said if each.folded in grounds.telling]
    if named:
        return list({each.id: each for each in named}.values())
    shown = [each for each in grounds.wines if each.id in grounds.shown]
    return shown or (grounds.wines if len(grounds.wines) == 1 else ())


def _figures(wines: Iterable[AnyWine], grounds: Grounds) -> frozenset[float]:
    own = (number for wine in wines for number in NUMBER.findall(wine.said))
    return grounds.figures.union(map(value, own))


def _sums(
    said: Sequence[Token], wines: Iterable[AnyWine], currencies: Collection[str]
) -> frozenset[float]:
    """The prices of wines, and of so many bottles of one as a number in the sentence says.

    They are those in one of some currencies; in any if none is given.
    """
    counts = {1.0, *(value(each.text) for each in said if each.is_number)}
    if any(map(_counts, said)):
        counts.update(range(2, DOZEN + 1))
    priced = (wine for wine in wines if not currencies or wine.currency in currencies)
    prices = [price for wine in priced for price in wine.prices if price]
    return frozenset(count * price for price in prices for count in counts if count <= MOST_BOTTLES)


def _is_price(price: float, known: frozenset[float]) -> bool:
    return price in known or (
        price.is_integer() and any(abs(price - each) <= HALF for each in known)
    )


def _is_code(token: Token) -> bool:
    """Whether a number counts nothing: of people, orders, accounts; it is neither round nor a year.

    What is counted in thousands (metres, years, hectares) is told in round numbers.
    """
    long = token.text.isdecimal() and len(token.text) >= SHORTEST_CODE
    return long and not YEAR_OF_ANY_TIME.fullmatch(token.text) and not token.text.endswith("0")


def _price_in_words(said: Sequence[Token], grounds: Grounds) -> str | None:
    for before, token in pairwise(said):
        is_number = _counts(before) or ROMAN.fullmatch(before.text.upper())
        is_price = token.folded in _tables().currencies and is_number
        is_asked = _tables().numbers.get(before.folded) in grounds.asked
        if is_price and not (is_asked or grounds.known.has([before.folded, token.folded])):
            return f"{before.text} {token.text}"
    return None


def _figure_in_words(said: Sequence[Token], grounds: Grounds) -> str | None:
    """A vintage or a price in so many words that nobody said."""
    run = list[Token]()
    for each in (*said, None):
        if each is not None and (_numerals(each) or (run and each.folded in _tables().between)):
            run.append(each)
            continue
        while run and run[-1].folded in _tables().between:
            run.pop()
        long = sum(map(_numerals, run)) >= FIGURE_WORDS
        if long and not grounds.known.has(token.folded for token in run):
            return " ".join(token.text for token in run)
        run = []
    return None


def _numerals(token: Token) -> int:
    """How many numbers a word is made of: three of "duemilasei", one of any other number."""
    found = _tables().numeral.findall(token.folded)
    is_whole = sum(map(len, found)) >= len(token.folded) - LONGEST_LINK
    return len(found) if is_whole and len(found) >= FIGURE_WORDS else int(_counts(token))


def _counts(token: Token) -> bool:
    """Whether a word is a number, as it is or at its end: "fünfunddreißig"."""
    tables = _tables()
    return token.folded in tables.numbers or token.folded.endswith(tables.last_numbers)


def _vintage(
    said: Sequence[Token], known: frozenset[float], grounds: Grounds, wine: AnyWine | None
) -> str | None:
    """A year beside a name, or in words on a wine, that is not known of it."""
    telling = {*grounds.telling, *_tables().vintages}
    for at, token in enumerate(said):
        if not YEAR.fullmatch(token.text) or float(token.text) in known:
            continue
        beside = [*said[max(0, at - 1) : at], *said[at + 1 : at + 2]]
        named = (is_of_wine(each) or each.folded in telling for each in beside)
        if wine or any(named) or _is_glued(said, at):
            return " ".join(each.text for each in said[max(0, at - 1) : at + 2])
    return None


def _is_glued(said: Sequence[Token], at: int) -> bool:
    """Whether an ending stands behind a year that is no decade: "2016er"."""
    year, behind = said[at], said[at + 1 : at + 2]
    ends = any(each.start == year.start + len(year.text) for each in behind)
    return ends and not year.text.endswith("0")


def made_up_claim(sentence: str, said: Sequence[Token], grounds: Grounds) -> str | None:
    """Return what in a sentence no sommelier can know: orders, stock, accounts, instructions."""
    if NOTE.match(sentence):
        return sentence
    if structure := STRUCTURE.search(sentence):
        return structure[0]
    told = [each.folded for each in said]
    if is_claim(PRICED.sub(" ", sentence)) and not _is_told(told, grounds.tellers):
        return sentence
    return _recited(told, grounds)


def _is_told(said: Sequence[str], sources: Said) -> bool:
    """Whether most words of a sentence stand in a row in a source."""
    starts = range(len(said) - TOLD_RUN + 1)
    runs = (at for at in starts if sources.has(said[at : at + TOLD_RUN]))
    held = {at + further for at in runs for further in range(TOLD_RUN)}
    return len(held) >= TOLD * len(said) > 0


def _recited(plain: Sequence[str], grounds: Grounds) -> str | None:
    recited = grounds.instructions.intersection(_runs(plain))
    return next((" ".join(run) for run in recited if not grounds.known.has(run)), None)
