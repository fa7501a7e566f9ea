"""Group what guests wanted and did not get by the words that they share.

Admins read the groups as lines, and download the wishes as CSV.
"""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.cellar.export import harmless_cell
from agent.language import stem
from agent.text import clip, split_words, to_one_line
from agent.turn import Lack
from db.repositories.unmet import DISLIKED, UnmetWish
from db.wines.telling_words import ignored_words

REASONS: Final[Mapping[str, str]] = {
    Lack.WINES: "no wine meets it",
    Lack.NAME: "not in stock",
    Lack.DOCUMENTS: "no document answers",
    DISLIKED: "👎",
}
"""How an admin reads a reason. A reason that is not here is one that a guest gave for a 👎."""
OTHER: Final = "(other words, or none kept)"
"""Stands for the words of wishes that share none, or whose words are not kept."""
MAX_SHARED_WORDS: Final = 3
MAX_LINES: Final = 5
MAX_WORDS_CHARS: Final = 200
CSV_COLUMNS: Final = ("week", "about", "at", "why", "words", "comment", "trace")


@dataclass(frozen=True, slots=True)
class WishGroup:
    """Wishes about the same thing. `about` has words that all of them share."""

    about: str
    wishes: tuple[UnmetWish, ...]

    @property
    def reasons(self) -> str:
        """Return why the wishes were not met, the most frequent reason first."""
        counts = Counter[str]()
        for wish in self.wishes:
            counts.update(wish.reasons)
        reasons = [describe_reason(reason) for reason, _ in counts.most_common()]
        return ", ".join(reasons)


def describe_reason(reason: str) -> str:
    """Return a reason as admins read it."""
    return REASONS.get(reason) or f"👎 {reason.replace('_', ' ')}"


def group_wishes(wishes: Sequence[UnmetWish]) -> list[WishGroup]:
    """Return the wishes in groups, the largest first.

    A wish belongs to the group of the word in it that most wishes have.
    """
    words_by_wish = [_find_telling_words(wish.words) for wish in wishes]
    counts = Counter[str]()
    for words in words_by_wish:
        counts.update(words.keys())
    indices_by_stem = defaultdict[str, list[int]](list)
    for index, words in enumerate(words_by_wish):
        # The order decides between equally frequent words, so all wishes choose the same one.
        stems = sorted(words, reverse=True)
        most_frequent = max(stems, key=lambda stemmed: counts[stemmed], default="")
        indices_by_stem[most_frequent].append(index)
    groups: list[WishGroup] = []
    for indices in indices_by_stem.values():
        about = _name_shared_words([words_by_wish[index] for index in indices])
        members = [wishes[index] for index in indices]
        groups.append(WishGroup(about, tuple(members)))
    groups.sort(key=lambda group: len(group.wishes), reverse=True)
    # The group of other wishes comes last, whatever its size.
    groups.sort(key=lambda group: group.about == OTHER)
    return groups


def _name_shared_words(words_by_wish: Sequence[Mapping[str, str]]) -> str:
    """Return the first words that all wishes of a group share, as the first wish writes them."""
    shared_stems = set(words_by_wish[0]).intersection(*words_by_wish)
    names: list[str] = []
    for stemmed, word in words_by_wish[0].items():
        if stemmed in shared_stems:
            names.append(word)
    return " ".join(names[:MAX_SHARED_WORDS]) or OTHER


def _find_telling_words(text: str) -> dict[str, str]:
    """Return the words of a text that say what it is about, by their stems."""
    words: dict[str, str] = {}
    for word in split_words(text):
        if len(word) == 1 or word.isdecimal() or word in ignored_words():
            continue
        words.setdefault(stem(word), word)
    return words


def format_groups(groups: Sequence[WishGroup]) -> str:
    """Return a line for each of the largest groups, such as `3 × barolo: not in stock`."""
    lines: list[str] = []
    for group in groups[:MAX_LINES]:
        lines.append(f"{len(group.wishes)} × {group.about}: {group.reasons}")
    return "\n".join(lines)


def to_csv(groups: Iterable[WishGroup]) -> bytes:
    """Return a row for each wish, as CSV in UTF-8.

    It begins with the mark by which spreadsheets recognise UTF-8.
    """
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(CSV_COLUMNS)
    for group in groups:
        for wish in group.wishes:
            writer.writerow(_to_row(group, wish))
    return file.getvalue().encode("utf-8-sig")


def _to_row(group: WishGroup, wish: UnmetWish) -> list[str | int | float]:
    """Return the cells of a wish in the CSV file. Spreadsheets do not run them as formulas."""
    reasons = [describe_reason(reason) for reason in wish.reasons]
    cells = (
        f"{wish.at:%G-W%V}",
        group.about,
        f"{wish.at:%Y-%m-%d %H:%M}",
        ", ".join(reasons),
        clip(to_one_line(wish.words), MAX_WORDS_CHARS),
        clip(to_one_line(wish.comment), MAX_WORDS_CHARS),
        wish.trace_id,
    )
    return [harmless_cell(cell) for cell in cells]
