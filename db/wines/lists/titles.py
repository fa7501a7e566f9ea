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
"""An earlier year in a title is that of a foundation: "Weingut seit 1795"."""
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
"""Words that bind a producer to the name of its wine: "Rosé de Diel", "Vin de Constance"."""
EDGES: Final = " -–—|·•,;:/"
MAX_PRODUCER_WORDS: Final = 4
"""More words before a grape or a place hold the name of the wine, too."""
NO_VINTAGE_CELL: Final = "NV"


@dataclass(frozen=True, slots=True)
class Title:
    """The parts of a title; `vintage` is a year, "NV", or "" if the title names none."""

    name: str
    producer: str = ""
    vintage: str = ""

    def derived(self, given_producer: str) -> tuple[str, ...]:
        """Return "producer" if the title alone tells it, and no other column does."""
        if given_producer or not self.producer:
            return ()
        return ("producer",)


def is_year(text: str, oldest: int = OLDEST_VINTAGE) -> bool:
    """Return whether a text is a year in which a wine for sale may have been made."""
    has_digits_only = text.isascii() and text.isdigit()
    if not has_digits_only or len(text) != len("2026"):
        return False
    return oldest <= int(text) <= datetime.now(UTC).year


def split_title(title: str, producer: str = "") -> Title:
    """Return the parts of a title like "2020 Weingut Keller - Riesling trocken 0,75 l".

    `producer` is as the file names it in another column; blank if it does not.
    """
    rest, vintage = take_vintage(title)
    rest = strip_packing(rest)
    parts = _tidy(rest)
    if not producer:
        producer = find_producer(parts)
    if producer:
        name = take_producer(parts, producer)
    else:
        name = _join_parts(rest)
    return Title(name, producer, vintage)


def take_vintage(title: str) -> tuple[str, str]:
    """Return a title without its vintage, and the vintage; of several years the last counts.

    A year of another kind stays in the title: "Solera 1927", "Weingut seit 1905".
    """
    founding_words = load_words()["producers"]["before_founding"]
    last: Match | None = None
    for year in YEAR.finditer(title):
        before = normalize(title[: year.start()])
        _, _, word_before = before.rpartition(" ")
        if _to_year(year[0]) and word_before not in founding_words:
            last = year
    if last:
        return _cut_out(title, last), _to_year(last[0])
    marker = NO_VINTAGE.search(title)
    if marker:
        return _cut_out(title, marker), NO_VINTAGE_CELL
    return title, ""


def _cut_out(text: str, part: Match) -> str:
    return text[: part.start()] + " " + text[part.end() :]


def _to_year(text: str) -> str:
    """Return the year in a text like "2019" or "'19", or "" if no wine can be of it."""
    if is_year(text, OLDEST_IN_TITLE):
        return text
    digits = text[1:]
    if len(digits) != 2 or not digits.isdigit():
        return ""
    this_year = datetime.now(UTC).year
    century = this_year - this_year % 100
    year = century + int(digits)
    if year > this_year:
        year -= 100
    return str(year)


def _tidy(text: str) -> str:
    """Return a text without what is left of removed parts."""
    text = EMPTY_BRACKETS.sub(" ", text)
    parts: list[str] = []
    for part in SEPARATORS.split(text):
        stripped = part.strip(EDGES)
        if stripped:
            parts.append(stripped)
    return " - ".join(parts)


def _join_parts(text: str) -> str:
    """Return a text with the separators that it has, without those around removed parts."""
    text = EMPTY_BRACKETS.sub(" ", text)
    text = DOUBLED.sub(lambda separators: f"{separators[1]} ", text)
    return " ".join(text.split()).strip(EDGES)


def take_producer(title: str, producer: str) -> str:
    """Return a title without its producer; the whole title if it would be empty."""
    tokens = title.split()
    folded = [normalize(token) for token in tokens]
    starts = range(len(tokens))
    if " - " in title:  # a producer behind a separator comes before one within the name
        starts = starts[::-1]
    for start in starts:
        end = _find_end(folded, producer, start)
        is_within_name = start > 0 and folded[start - 1] in BINDING_WORDS
        if end is None or is_within_name:
            continue
        first = start
        while first > 0 and folded[first - 1] in load_words()["producers"]["words"]:
            first -= 1
        rest = _tidy(" ".join(tokens[:first] + tokens[end:]))
        if not rest:
            return title
        return rest.replace(" - ", " ")
    return title.replace(" - ", " ")


def _find_end(folded: list[str], producer: str, start: int) -> int | None:
    """Return where the words of a producer end if they begin at `start`, or None."""
    remaining = normalize(producer)
    for index in range(start, len(folded)):
        word = folded[index]
        if not word:
            continue
        if remaining != word and not remaining.startswith(f"{word} "):
            return None
        remaining = remaining[len(word) :].lstrip()
        if not remaining:
            return index + 1
    return None


def find_producer(title: str) -> str:
    """Return the producer that a title names, or "".

    Of parts that a separator divides, it is the one with a word like "Weingut", or the only one
    without a grape, a place or a style. Without a separator, it is the words before these:
    "Thompson Estate | Chardonnay".
    """
    parts = title.split(" - ")
    if len(parts) == 1:
        return _find_within(title.split())
    marked = [part for part in parts if _has_mark(part)]
    if len(marked) == 1:
        return marked[0]
    without_fact = [part for part in parts if not find_facts(part)]
    if len(without_fact) == 1:
        return without_fact[0]
    return ""


def _find_within(tokens: list[str]) -> str:
    """Return the producer before the name of a wine, or behind it with a word like "Weingut"."""
    start = _find_name(tokens)
    if start == 0:
        return _find_marked_end(tokens)
    if start is None or start > MAX_PRODUCER_WORDS:
        return ""
    return " ".join(tokens[:start])


def _has_mark(part: str) -> bool:
    """Return whether a part of a title has a word like "Weingut"."""
    marks = load_words()["producers"]["words"]
    return not marks.isdisjoint(normalize(part).split())


def _find_name(tokens: list[str]) -> int | None:
    """Return where the name of the wine begins: at a grape, a place, or a word like "Riserva"."""
    for index, token in enumerate(tokens):
        is_usual = normalize(token) in load_words()["producers"]["name_words"]
        if is_usual or starts_with_fact(" ".join(tokens[index:])):
            return index
    return None


def _find_marked_end(tokens: list[str]) -> str:
    """Return the producer at the end of a title like "Riesling Weingut Keller", or ""."""
    for index, token in enumerate(tokens):
        rest = tokens[index + 1 :]
        if _has_mark(token) and rest and _find_name(rest) is None:
            return " ".join(tokens[index:])
    return ""
