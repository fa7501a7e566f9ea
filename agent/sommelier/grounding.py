"""A model's own words, held to what sources and people said and to what everybody knows.

Not by patterns of names: each word is judged (`agent/vocabulary.py`). Figures (prices, vintages,
points) must be those of the wine they are said of. What a sommelier's words cannot know at all
(orders, stock, accounts, medals, its own instructions) a classifier tells (`agent/claims.py`).
"""

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, groupby, pairwise, product
from math import isnan, nan
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator

from agent.claims import is_claim
from agent.documents.passages import Chunk
from agent.engine.contract import Evidence, Source
from agent.engine.feedback import fence
from agent.markdown import live
from agent.sommelier.wine import AnyWine, Kind, ReadWine, key, known_names
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
CLOSE: Final = 4
"""Words between a number and what makes it a budget, at most."""
ABOUT: Final = 1.1
"""How many times as much a wine may cost as what somebody would pay, more or less."""
TENS: Final = range(20, 100)
LONGEST_ORIGIN: Final = 4
"""Words of the longest name of a country, a region or a grape."""
ORIGINS: Final[tuple[Kind, ...]] = ("grapes", "countries")
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
    upper: _Words
    lower: _Words
    leads: _Words
    yours: _Words
    budgets: _Words
    points: _Words
    vintages: _Words
    the: _Words
    been: _Words
    money: Mapping[str, _Words]
    comparing: Mapping[Language, _Words]
    region_countries: Mapping[str, tuple[str, ...]]

    @cached_property
    def country_of(self) -> Mapping[str, str]:
        """Return the countries of regions."""
        known = self.region_countries.items()
        return {region: country for country, regions in known for region in regions}

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


class Price(NamedTuple):
    """A price of a sentence: as it is written, in which currencies, and of which of its words.

    value: not a number for words that are none here ("mille deux cents").
    """

    text: str
    value: float
    currencies: frozenset[str]
    start: int
    end: int


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
        """Numbers of documents."""
        return frozenset(value(each) for text in self.chunks for each in NUMBER.findall(text))

    @cached_property
    def priced(self) -> tuple[tuple[float, str, frozenset[str]], ...]:
        """Prices of documents, each with its path and the words that it stands among."""
        found = (each for each in self.evidence.found.values() if isinstance(each, Chunk))
        said = ((each.path, text, tokens(text)) for each in found for text in statements(each.said))
        return tuple(
            (price.value, path, _telling(read))
            for path, text, read in said
            for price in _prices(text, read)
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
        texts = self.evidence.asked
        priced = (each.value for text in texts for each in _prices(text, tokens(text)))
        return frozenset(
            {value(each) for text in texts for each in NUMBER.findall(text)} | {*priced}
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
    names_others = PLACEHOLDER.search(sentence)
    if wine and not names_others and (origin := other_origin(said, grounds, wine)):
        return f"{fence(origin)} is not of {wine.label}, whose facts are: {origin_of(wine)}"
    if claim := made_up_claim(shown, said, grounds):
        return _unknowable(claim)
    return None


class _Origin(NamedTuple):
    """A country or a grape that is named, a region for its country: at which word, and how."""

    at: int
    run: tuple[str, ...]
    kind: Kind
    name: str


def other_origin(said: Sequence[Token], grounds: Grounds, wine: AnyWine) -> str | None:
    """Return the first country, region or grape of a description that is not the wine's; or None.

    A person may have named it, and another wine's stands in a comparison. Where nothing is known of
    a wine's country or grapes none is foreign to it.
    """
    comparing = _tables().comparing.get(grounds.language, frozenset())
    if not comparing.isdisjoint(each.folded for each in said):
        return None
    facts = wine.known if isinstance(wine, ReadWine) else wine
    of_wine, its_words = list(_origins(words(origin_of(wine)))), Said.of([wine.said])
    kinds, own = {each.kind for each in of_wine}, {each.name for each in of_wine}
    if facts is not None and facts.grapes:
        kinds.add("grapes")
    for each in _origins([token.folded for token in said]):
        is_name = said[each.at].capital and not said[each.at].begins
        is_known = its_words.has(each.run) or grounds.known.asked.has(each.run)
        if is_name and each.kind in kinds and each.name not in own and not is_known:
            return " ".join(token.text for token in said[each.at :][: len(each.run)])
    return None


def origin_of(wine: AnyWine) -> str:
    """Return what a wine's facts say of where it comes from, and of what it is made."""
    facts = wine.known if isinstance(wine, ReadWine) else wine
    if facts is None:
        return wine.region
    return ", ".join(filter(None, (facts.appellation, facts.region, facts.country, *facts.grapes)))


def _origins(said: Sequence[str]) -> Iterator[_Origin]:
    end = 0
    for at, size in product(range(len(said)), range(LONGEST_ORIGIN, 0, -1)):
        run = tuple(said[at : at + size])
        if at < end or not (origin := _origin(" ".join(run))):
            continue
        yield _Origin(at, run, *origin)
        end = at + size


def country_of(region: str) -> str:
    """Return the key of the country that a region lies in; empty if the table has it not."""
    return _tables().country_of.get(key("regions", region), "")


def _origin(name: str) -> tuple[Kind, str] | None:
    if country := country_of(name):
        return "countries", country
    kind = next((each for each in ORIGINS if name in known_names(each)), None)
    return kind and (kind, key(kind, name))


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
    meant = _meant(said, grounds, wine)
    prices = sorted(_prices(sentence, said), key=attrgetter("start"))
    told = _of_documents(sentence, said, grounds)
    counts = _bottles(said, prices)
    wines = _taking_turns(said, [each.start for each in prices], grounds, meant)
    priced = (
        price.text
        for price, its in zip(prices, wines, strict=True)
        if not _is_price(price, _sums(counts, its, price), told)
        and not _is_limit(price, said, grounds, its)
        and not (isnan(price.value) and _is_told_in_words(price, said, grounds))
    )
    scored = (
        f"{number.text} {unit.text}"
        for number, unit in _scores(said)
        if value(number.text) not in _scored(meant, grounds)
        and (meant or not grounds.known.has([number.folded, unit.folded]))
    )
    short = (each[0] for each in SHORT_YEAR.finditer(sentence))
    signs = (
        ()
        if sentence.isascii() and "$" not in sentence
        else CURRENCY.findall(SIGN.sub(" ", sentence))
    )
    numbers = (each for each in said if each.text.isdecimal() and _is_code(each))
    codes = (each.text for each in numbers if not grounds.known.has([each.folded]))
    others = (_figure_in_words(said, grounds), _vintage(said, grounds, meant, wine))
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


def _is_limit(
    price: Price, said: Sequence[Token], grounds: Grounds, wines: Iterable[AnyWine]
) -> bool:
    """Whether a price is what a person would pay, and told as that."""
    if price.value not in grounds.asked:
        return False
    tables, told = _tables(), [each.folded for each in said]
    before, behind = told[max(0, price.start - CLOSE) : price.start], told[price.end :][:2]
    led = before[1 - CLOSE :]
    if not tables.yours.isdisjoint(before[-1:]) or not tables.lower.isdisjoint(led):
        return True
    if not tables.budgets.isdisjoint([*before, *behind]):
        return tables.offers.isdisjoint(before)
    is_lead = bool(before) and tables.leads.issuperset(told[: price.start])
    if is_lead and not tables.offers.isdisjoint(told[price.end :][:CLOSE]):
        return False
    is_range = any(each[0].isnumeric() and value(each) in grounds.asked for each in before[-2:])
    costs = (min(wine.prices) for wine in wines if wine.prices)
    is_told = is_lead or is_range or not tables.upper.isdisjoint(led)
    most = price.value * (ABOUT if is_lead else 1)
    return is_told and all(each <= most for each in costs)


def _is_told_in_words(price: Price, said: Sequence[Token], grounds: Grounds) -> bool:
    return grounds.known.sources.has(each.folded for each in said[price.start : price.end])


def _prices(sentence: str, said: Sequence[Token]) -> Iterator[Price]:
    """The prices of a sentence, in figures and in words."""
    of, starts = _tables().currencies, [each.start for each in said]
    for found in () if sentence.isascii() and "$" not in sentence else SIGN.finditer(sentence):
        sign, at = found["sign"] or found["behind"], bisect_left(starts, found.start())
        price = value(found["after"] or found["before"])
        yield Price(found[0], price, of.get(sign, frozenset({sign})), at, at + 1)
    for at, unit in enumerate(said):
        if unit.folded not in of:
            continue
        start = _begin_of_number(said, at)
        figures = [each for each in (at - 2, at - 1, at + 1) if 0 <= each < len(said)]
        for number in (each for each in figures if said[each].is_number):
            price, end = value(said[number].text), max(number, at) + 1
            text = f"{said[number].text} {unit.text}"
            yield Price(text, price, of[unit.folded], min(number, at), end)
        if start < at:
            run = said[start:at]
            text = " ".join(each.text for each in said[start : at + 1])
            yield Price(text, _in_words(run), of[unit.folded], start, at + 1)
    for found in BARE_PRICE.finditer(sentence):
        kind = "value" if found["value"] else "whole"
        at, behind = bisect_left(starts, found.start(kind)), sentence[found.end(kind) :]
        if kind == "whole" or not OF_MEASURE.match(behind[:LONGEST_MEASURE]):
            yield Price(found[kind], value(found[kind]), frozenset(), at, at + 1)


def _begin_of_number(said: Sequence[Token], end: int) -> int:
    """Where a number in words begins that ends before a word; there, if there is none."""
    if end and ROMAN.fullmatch(said[end - 1].text.upper()):
        return end - 1
    start = at = end
    while at and (_counts(said[at - 1]) or (at < end and said[at - 1].folded in _tables().between)):
        at -= 1
        start = at if _counts(said[at]) else start
    return start


def _in_words(run: Sequence[Token]) -> float:
    """Return the number that words are, up to 99, and full ones; not a number for any other."""
    found = [each for token in run for each in _tables().numeral.findall(token.folded)]
    values = [_tables().numbers[each] for each in found]
    falls = len(run) == 1 or values == sorted(values, reverse=True)
    is_sum = len(values) == 2 and falls and max(values) in TENS and min(values) < min(TENS)
    return sum(values) if is_sum or len(values) == 1 else nan


def _counted(said: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Numbers, each with the words that follow it closely."""
    for at, token in enumerate(said):
        if token.is_number:
            yield from ((token, each) for each in said[at + 1 : at + 3])


def _scores(said: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """The points and stars of a sentence, each with its unit."""
    return ((number, unit) for number, unit in _counted(said) if unit.folded in _tables().points)


def _scored(wines: Iterable[AnyWine], grounds: Grounds) -> frozenset[float]:
    """The points and stars that wines and documents tell."""
    texts = (*(wine.said for wine in wines), *grounds.chunks)
    return frozenset(value(each.text) for text in texts for each, _ in _scores(tokens(text)))


def _meant(
    said: Sequence[Token], grounds: Grounds, wine: AnyWine | None = None
) -> Sequence[AnyWine]:
    """The wine described; else those that a sentence names, the answer shows, or the only one."""
    named = [grounds.telling[each.folded] for each in said if each.folded in grounds.telling]
    if wine or named:
        return [wine] if wine else list({each.id: each for each in named}.values())
    shown = [each for each in grounds.wines if each.id in grounds.shown]
    return shown or (grounds.wines if len(grounds.wines) == 1 else ())


def _taking_turns(
    said: Sequence[Token], figures: Sequence[int], grounds: Grounds, meant: Sequence[AnyWine]
) -> Iterator[Sequence[AnyWine]]:
    """Yield for each figure of a sentence the wines that it may be of.

    Names and figures take turns, names first or figures first; what is named together is one turn.
    """
    at, named = 0, list[AnyWine]()
    is_led = any(each.folded in grounds.telling for each in said[: next(iter(figures), 0)])
    for figure, behind in pairwise([*figures, len(said)]):
        end = figure if is_led else behind
        its = [grounds.telling[t.folded] for t in said[at:end] if t.folded in grounds.telling]
        at, named = end, its or named
        yield named or meant


def _years(wines: Iterable[AnyWine], grounds: Grounds) -> frozenset[float]:
    own = (number for wine in wines for number in NUMBER.findall(wine.said))
    return grounds.figures.union(map(value, own))


def _bottles(said: Sequence[Token], prices: Sequence[Price]) -> frozenset[float]:
    """How many bottles a sentence may speak of: as a number in it says, in words one of a dozen."""
    counts = frozenset({1.0, *(value(each.text) for each in said if each.is_number)})
    own = {at for price in prices for at in range(price.start, price.end)}
    in_words = any(_counts(each) for at, each in enumerate(said) if at not in own)
    return counts.union(range(2, DOZEN + 1)) if in_words else counts


def _sums(counts: frozenset[float], wines: Iterable[AnyWine], price: Price) -> frozenset[float]:
    """The prices of wines, and of so many bottles of one.

    They are those in one of a price's currencies; in any if it has none.
    """
    currencies = price.currencies
    priced = (wine for wine in wines if not currencies or wine.currency in currencies)
    prices = [price for wine in priced for price in wine.prices if price]
    return frozenset(count * price for price in prices for count in counts if count <= MOST_BOTTLES)


def _is_price(price: Price, *known: frozenset[float]) -> bool:
    told, is_whole = price.value, price.value.is_integer()
    return any(told in each for each in known) or (
        is_whole and any(abs(told - each) <= HALF for each in chain(*known))
    )


def _is_code(token: Token) -> bool:
    """Whether a number counts nothing: of people, orders, accounts; it is neither round nor a year.

    What is counted in thousands (metres, years, hectares) is told in round numbers.
    """
    long = token.text.isdecimal() and len(token.text) >= SHORTEST_CODE
    return long and not YEAR_OF_ANY_TIME.fullmatch(token.text) and not token.text.endswith("0")


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
    said: Sequence[Token], grounds: Grounds, meant: Sequence[AnyWine], wine: AnyWine | None
) -> str | None:
    """A year beside a name, or in words on a wine, that is not known of it.

    A person may have named it where no wine found is, or where it is denied.
    """
    telling = {*grounds.telling, *_tables().vintages}
    named = not grounds.telling.keys().isdisjoint(each.folded for each in said)
    is_denied = not _tables().negations.isdisjoint(each.folded for each in said)
    asked = grounds.asked if is_denied or not (wine or named) else frozenset()
    years = [at for at, each in enumerate(said) if YEAR.fullmatch(each.text)]
    for at, its in zip(years, _taking_turns(said, years, grounds, meant), strict=True):
        if float(said[at].text) in _years(its, grounds) | asked:
            continue
        is_glued = _is_glued(said, at)
        beside = [*said[max(0, at - 1) : at], *said[at + 1 + is_glued : at + 2 + is_glued]]
        told = (is_of_wine(each) or each.folded in telling for each in beside)
        is_one = len(beside) > 1 and beside[0].folded in _tables().the
        is_told = is_one and beside[-1].folded in _tables().been
        is_decade = said[at].text.endswith("0")
        if wine or is_told or any(told) or (is_glued and not is_decade):
            return " ".join(each.text for each in said[max(0, at - 1) : at + 2])
    return None


def _is_glued(said: Sequence[Token], at: int) -> bool:
    """Whether an ending stands behind a year: "2016er"."""
    year, behind = said[at], said[at + 1 : at + 2]
    return any(each.start == year.start + len(year.text) for each in behind)


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
