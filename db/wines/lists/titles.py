"""Take the title of a product apart: its name, producer, vintage and size."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from agent.sommelier.vocabulary import normalize
from agent.text import Match, pattern
from db.wines.lists.derive import find_facts, starts_with_fact
from db.wines.lists.packing import strip_packing
from db.wines.lists.words import load_words

OLDEST_VINTAGE: Final = 1780
OLDEST_IN_TITLE: Final = 1900
"""An earlier year in a title is when the producer was founded: "Weingut seit 1795"."""
YEAR: Final = pattern(r"\b(?:18|19|20)\d\d\b|['’´`]\d\d\b")
"""A year: "2019", or "'19"."""
NO_VINTAGE: Final = pattern(
    r"(?i)(?:\bN\.?\s?V\b\.?|\bnon[ -]vintage\b|\bo\.?\s?J\b\.?|\bohne jahrgang\b"
    r"|\bsans année\b|\bnon millésimé\b|\bsenza annata\b|\bsin añada\b)"
)
"""A word for a wine without a vintage: "NV", "o. J.", "sans année"."""
SEPARATORS: Final = pattern(r"\s+[-–—|·•/]\s+|\s*\|\s*|,\s+")
"""What stands between the parts of a title: "Thompson Estate | Chardonnay"."""
EMPTY_BRACKETS: Final = pattern(r"\(\s*\)|\[\s*\]")
DOUBLED: Final = pattern(r"(\s[-–—|]|[,;])\s*(?:[-–—|,;]\s*)+")
"""Separators in a row, between which a part was removed: " - , "."""
BINDING_WORDS: Final = frozenset("de du des d di del della da do von of by".split())
"""Words that make a producer a part of the wine's name: "Rosé de Diel", "Vin de Constance"."""
EDGES: Final = " -–—|·•,;:/"
"""Characters that are removed at both ends of a part."""
MAX_PRODUCER_WORDS: Final = 4
"""If more words stand before a grape or a place, the name of the wine is among them."""
NO_VINTAGE_CELL: Final = "NV"


@dataclass(frozen=True, slots=True)
class Title:
    """The parts of a title. `vintage` is a year, "NV", or "" if the title names none."""

    name: str
    producer: str = ""
    vintage: str = ""

    def derived(self, given_producer: str) -> tuple[str, ...]:
        """Return ("producer",) if only the title tells the producer, and no column does."""
        if self.producer and not given_producer:
            return ("producer",)
        return ()


def is_year(text: str, oldest: int = OLDEST_VINTAGE) -> bool:
    """Return whether a text is a year in which a wine for sale may have been made."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len("2026")
    return is_number and oldest <= int(text) <= datetime.now(UTC).year


def split_title(title: str, producer: str = "") -> Title:
    """Return the parts of a title like "2020 Weingut Keller - Riesling trocken 0,75 l".

    `producer` is what another column of the file says, or blank.
    """
    without_vintage, vintage = take_vintage(title)
    without_packing = strip_packing(without_vintage)
    parts = _tidy(without_packing)
    producer = producer or find_producer(parts)
    if not producer:
        return Title(_join_parts(without_packing), "", vintage)
    return Title(take_producer(parts, producer), producer, vintage)


def take_vintage(title: str) -> tuple[str, str]:
    """Return a title without its vintage, and the vintage. Of several years the last one counts.

    A year that is not a vintage stays in the title: "Solera 1927", "Weingut seit 1905".
    """
    words_before_other_years = load_words()["producers"]["before_founding"]
    vintages: list[Match] = []
    for year in YEAR.finditer(title):
        word_before = normalize(title[: year.start()]).rpartition(" ")[2]
        if _to_year(year[0]) and word_before not in words_before_other_years:
            vintages.append(year)
    if vintages:
        last = vintages[-1]
        return title[: last.start()] + " " + title[last.end() :], _to_year(last[0])
    marker = NO_VINTAGE.search(title)
    if marker:
        return title[: marker.start()] + " " + title[marker.end() :], NO_VINTAGE_CELL
    return title, ""


def _to_year(text: str) -> str:
    """Return the year in a text like "2019" or "'19", or "" if it can be no vintage."""
    if is_year(text, OLDEST_IN_TITLE):
        return text
    digits = text[1:]
    if len(digits) != len("19") or not digits.isdigit():
        return ""
    this_year = datetime.now(UTC).year
    century = this_year // 100 * 100
    year = century + int(digits)
    if year > this_year:
        year -= 100
    return str(year)


def _tidy(text: str) -> str:
    """Return the parts of a title joined by " - ", without the empty ones."""
    text = EMPTY_BRACKETS.sub(" ", text)
    parts: list[str] = []
    for part in SEPARATORS.split(text):
        stripped = part.strip(EDGES)
        if stripped:
            parts.append(stripped)
    return " - ".join(parts)


def _join_parts(text: str) -> str:
    """Return a title with its own separators, except those around removed parts."""
    text = EMPTY_BRACKETS.sub(" ", text)
    joined = DOUBLED.sub(lambda separators: f"{separators[1]} ", text)
    return " ".join(joined.split()).strip(EDGES)


def take_producer(title: str, producer: str) -> str:
    """Return a title without its producer, or the whole title if nothing else is in it."""
    tokens = title.split()
    words = [normalize(token) for token in tokens]
    producer_words = " ".join(normalize(producer).split())
    starts = range(len(tokens))
    if " - " in title:
        # The producer is rather the part behind a separator than a word within the name.
        starts = range(len(tokens) - 1, -1, -1)
    for start in starts:
        end = _find_end_of_producer(words, producer_words, start)
        is_within_name = start > 0 and words[start - 1] in BINDING_WORDS
        if end is None or is_within_name:
            continue
        # Words such as "Weingut" before the producer are removed with it.
        first = start
        while first > 0 and words[first - 1] in load_words()["producers"]["words"]:
            first -= 1
        rest = _tidy(" ".join([*tokens[:first], *tokens[end:]]))
        if not rest:
            return title
        return rest.replace(" - ", " ")
    return title.replace(" - ", " ")


def _find_end_of_producer(words: list[str], producer: str, start: int) -> int | None:
    """Return the place behind the producer's words if they begin at `start`, or None."""
    remaining = producer
    for index in range(start, len(words)):
        word = words[index]
        if not word:
            continue
        if remaining != word and not remaining.startswith(f"{word} "):
            return None
        remaining = remaining[len(word) :].lstrip()
        if not remaining:
            return index + 1
    return None


def find_producer(title: str) -> str:
    """Return the producer that a tidied title names, or "".

    If separators divide the title into parts, the producer is the only part with a word like
    "Weingut", or else the only one without a grape, a place or a style. If they do not, it is what
    stands before the first grape, place or style: "Thompson Estate" in "Thompson Estate Merlot".
    """
    parts = title.split(" - ")
    if len(parts) == 1:
        return _find_producer_in_part(title.split())
    with_producer_word = [part for part in parts if _has_producer_word(part)]
    without_fact = [part for part in parts if not find_facts(part)]
    for candidates in (with_producer_word, without_fact):
        if len(candidates) == 1:
            return candidates[0]
    return ""


def _find_producer_in_part(tokens: list[str]) -> str:
    """Return the producer before the name of a wine, or the one behind it, or ""."""
    start = _find_start_of_name(tokens)
    if start is None:
        return ""
    if start == 0:
        return _find_producer_behind_name(tokens)
    if start > MAX_PRODUCER_WORDS:
        return ""
    return " ".join(tokens[:start])


def _has_producer_word(part: str) -> bool:
    """Return whether a part of a title has a word like "Weingut" or "Domaine"."""
    return not load_words()["producers"]["words"].isdisjoint(normalize(part).split())


def _find_start_of_name(tokens: list[str]) -> int | None:
    """Return where the name of the wine begins: at a grape, a place, or a word like "Riserva"."""
    for index, token in enumerate(tokens):
        is_name_word = normalize(token) in load_words()["producers"]["name_words"]
        if is_name_word or starts_with_fact(" ".join(tokens[index:])):
            return index
    return None


def _find_producer_behind_name(tokens: list[str]) -> str:
    """Return the producer at the end of a title like "Riesling Weingut Keller", or ""."""
    for index, token in enumerate(tokens):
        rest = tokens[index + 1 :]
        if not rest or not _has_producer_word(token):
            continue
        if _find_start_of_name(rest) is None:
            return " ".join(tokens[index:])
    return ""
