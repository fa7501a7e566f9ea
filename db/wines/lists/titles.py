"""Take the title of a product apart: its name, producer, vintage and size."""

from dataclasses import dataclass
from typing import Final

from agent.sommelier.vocabulary import normalize
from agent.text import Match, pattern
from db.wines.lists.derive import find_facts, starts_with_fact
from db.wines.lists.packing import strip_packing
from db.wines.lists.words import load_words
from db.wines.years import YEAR_DIGITS, complete_year, is_year

OLDEST_IN_TITLE: Final = 1900
"""An earlier year in a title is when the producer was founded: "Weingut seit 1795"."""
YEAR: Final = pattern(r"\b(?:18|19|20)\d\d\b|['’´`]\d\d\b")
"""A year: "2019", or "'19"."""
NON_VINTAGE_WORD: Final = pattern(
    r"(?i)(?:\bN\.?\s?V\b\.?|\bnon[ -]vintage\b|\bo\.?\s?J\b\.?|\bohne jahrgang\b"
    r"|\bsans année\b|\bnon millésimé\b|\bsenza annata\b|\bsin añada\b)"
)
"""A word for a wine without a vintage: "NV", "o. J.", "sans année"."""
NON_VINTAGE: Final = "NV"
"""What stands in place of the year of a wine without a vintage."""
SEPARATOR: Final = pattern(r"\s+[-–—|·•/]\s+|\s*\|\s*|,\s+")
"""What stands between the parts of a title: "Thompson Estate | Chardonnay"."""
EMPTY_BRACKETS: Final = pattern(r"\(\s*\)|\[\s*\]")
REPEATED_SEPARATORS: Final = pattern(r"(\s[-–—|]|[,;])[-–—|,;\s]*[-–—|,;]\s*")
"""A separator, which is group 1, and those that follow it: " - , " in "Keller - , trocken".

They follow each other where the part between them was removed.
"""
BINDING_WORDS: Final = frozenset("de du des d di del della da do von of by".split())
"""Words that make a producer a part of the wine's name: "Rosé de Diel", "Vin de Constance"."""
EDGES: Final = " -–—|·•,;:/"
"""Characters that are removed at both ends of a part."""
MAX_PRODUCER_WORDS: Final = 4
"""If more words stand before a grape or a place, the name of the wine is among them."""


@dataclass(frozen=True, slots=True)
class Title:
    """The parts of a title. `vintage` is a year, "NV", or "" if the title names none."""

    name: str
    producer: str = ""
    vintage: str = ""

    def derived_fields(self, given_producer: str) -> tuple[str, ...]:
        """Return the names of the fields that only the title states.

        The names are ("producer",) if no column has the producer, which is then `given_producer`.
        """
        if self.producer and not given_producer:
            return ("producer",)
        return ()


def split_title(title: str, producer: str = "") -> Title:
    """Return the parts of a title like "2020 Weingut Keller - Riesling trocken 0,75 l".

    `producer` is what another column of the file says, or blank.
    """
    without_vintage, vintage = take_vintage(title)
    without_packing = strip_packing(without_vintage)
    unified = _unify_separators(without_packing)
    producer = producer or find_producer(unified)
    if producer:
        name = take_producer(unified, producer)
    else:
        name = _keep_separators(without_packing)
    return Title(name, producer, vintage)


def take_vintage(title: str) -> tuple[str, str]:
    """Return a title without its vintage, and the vintage. Of several years the last one counts.

    A year that is not a vintage stays in the title: "Solera 1927", "Weingut seit 1905".
    """
    words_before_other_years = load_words()["producers"]["before_founding"]
    vintage = ""
    place: Match | None = None
    for match in YEAR.finditer(title):
        year = _to_year(match[0])
        text_before = normalize(title[: match.start()])
        _, _, word_before = text_before.rpartition(" ")
        if year and word_before not in words_before_other_years:
            vintage = year
            place = match
    if place is None:
        vintage = NON_VINTAGE
        place = NON_VINTAGE_WORD.search(title)
    if place is None:
        return title, ""
    before = title[: place.start()]
    behind = title[place.end() :]
    return f"{before} {behind}", vintage


def _to_year(text: str) -> str:
    """Return the year in a match of `YEAR`, such as "2019" or "'19".

    Return "" if the wine cannot be of this year.
    """
    if len(text) == YEAR_DIGITS:
        if is_year(text, OLDEST_IN_TITLE):
            return text
        return ""
    digits_behind_apostrophe = text[1:]
    year = complete_year(int(digits_behind_apostrophe))
    return str(year)


def _unify_separators(text: str) -> str:
    """Return a title with " - " between its parts, and without empty parts."""
    text = EMPTY_BRACKETS.sub(" ", text)
    parts: list[str] = []
    for part in SEPARATOR.split(text):
        stripped = part.strip(EDGES)
        if stripped:
            parts.append(stripped)
    return " - ".join(parts)


def _keep_separators(text: str) -> str:
    """Return a title with its own separators, except those around removed parts."""
    text = EMPTY_BRACKETS.sub(" ", text)
    kept = REPEATED_SEPARATORS.sub(lambda separators: f"{separators[1]} ", text)
    return " ".join(kept.split()).strip(EDGES)


def take_producer(title: str, producer: str) -> str:
    """Return a title without its producer, or the whole title if nothing else is in it.

    `title` has " - " between its parts. The returned text has no separators.
    """
    tokens = title.split()
    name = ""
    place = _find_place_of_producer(tokens, producer)
    if place is not None:
        before = tokens[: place.start]
        behind = tokens[place.stop :]
        remaining = " ".join([*before, *behind])
        name = _unify_separators(remaining)
    if not name:
        name = title
    return name.replace(" - ", " ")


def _find_place_of_producer(tokens: list[str], producer: str) -> range | None:
    """Return the indices of the tokens of a producer, or None if they are not there.

    Words such as "Weingut" before the producer are among them.
    """
    words = [normalize(token) for token in tokens]
    producer_words = " ".join(normalize(producer).split())
    estate_words = load_words()["producers"]["estate_words"]
    starts = range(len(tokens))
    if "-" in tokens:
        # The title has several parts. The producer may be in two of them, as in "Riesling Keller -
        # Weingut Keller". Then the last place is that of the producer, and the first is a part of
        # the wine's name.
        starts = starts[::-1]
    for start in starts:
        if start > 0 and words[start - 1] in BINDING_WORDS:
            continue
        end = _find_end_of_producer(words, producer_words, start)
        if end is None:
            continue
        first = start
        while first > 0 and words[first - 1] in estate_words:
            first -= 1
        return range(first, end)
    return None


def _find_end_of_producer(
    words: list[str],
    producer: str,
    start: int,
) -> int | None:
    """Return the index behind the producer's words if they begin at `start`, or None."""
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
    """Return the producer that a title names, or "". `title` has " - " between its parts.

    If separators divide the title into parts, the producer is the only part with a word like
    "Weingut", or else the only one without a grape, a place or a style. If they do not, it is what
    stands before the first grape, place or style: "Thompson Estate" in "Thompson Estate Merlot".
    """
    parts = title.split(" - ")
    if len(parts) == 1:
        return _find_producer_in_part(title.split())
    with_producer_word = [part for part in parts if _has_producer_word(part)]
    if len(with_producer_word) == 1:
        return with_producer_word[0]
    without_fact = [part for part in parts if not find_facts(part)]
    if len(without_fact) == 1:
        return without_fact[0]
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
    estate_words = load_words()["producers"]["estate_words"]
    words = normalize(part).split()
    return not estate_words.isdisjoint(words)


def _find_start_of_name(tokens: list[str]) -> int | None:
    """Return where the name of the wine begins: at a grape, a place, or a word like "Riserva"."""
    name_words = load_words()["producers"]["name_words"]
    for index, token in enumerate(tokens):
        if normalize(token) in name_words:
            return index
        rest = " ".join(tokens[index:])
        if starts_with_fact(rest):
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
