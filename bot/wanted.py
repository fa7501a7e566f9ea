"""Group what guests wanted and did not get by the words that they share.

Admins read the groups as lines, and download the wishes as CSV.
"""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.cellar.export import make_harmless_cell
from agent.language import stem
from agent.text import clip, split_words, to_one_line
from agent.turn import Lack
from db.repositories.unmet import DISLIKED, UnmetWish
from db.wines.telling_words import list_ignored_words

REASONS: Final[Mapping[str, str]] = {
    Lack.WINES: "no wine meets it",
    Lack.NAME: "not in stock",
    Lack.DOCUMENTS: "no document answers",
    DISLIKED: "👎",
}
"""How an admin reads a reason. A reason that is not here is one that a guest gave for a 👎."""
OTHER: Final = "(other words, or none kept)"
"""Stands for the words of wishes that share none, and of wishes without kept words."""
MAX_SHARED_WORDS: Final = 3
MAX_LINES: Final = 5
"""How many groups an admin reads in a message."""
MAX_WORDS_CHARS: Final = 200
CSV_COLUMNS: Final = ("week", "about", "at", "why", "words", "comment", "trace")


@dataclass(frozen=True, slots=True)
class WishGroup:
    """Wishes about the same thing."""

    about: str
    """Words that all of the wishes share, or `OTHER`."""
    wishes: tuple[UnmetWish, ...]

    @property
    def reasons(self) -> str:
        """Return why the wishes were not met, the most frequent reason first."""
        counts: Counter[str] = Counter()
        for wish in self.wishes:
            counts.update(wish.reasons)
        reasons = []
        for reason, _ in counts.most_common():
            reasons.append(describe_reason(reason))
        return ", ".join(reasons)


def describe_reason(reason: str) -> str:
    """Return a reason as admins read it."""
    if reason in REASONS:
        return REASONS[reason]
    words = reason.replace("_", " ")
    return f"👎 {words}"


def group_wishes(wishes: Sequence[UnmetWish]) -> list[WishGroup]:
    """Return the wishes in groups, the largest first.

    A wish belongs to the group of the word in it that most wishes have.
    """
    words_by_wish = [_find_subject_words(wish.words) for wish in wishes]
    counts: Counter[str] = Counter()
    for words in words_by_wish:
        counts.update(words.keys())
    wishes_by_stem: defaultdict[str, list[UnmetWish]] = defaultdict(list)
    words_by_stem: defaultdict[str, list[Mapping[str, str]]] = defaultdict(list)
    for wish, words in zip(wishes, words_by_wish, strict=True):
        # The order decides between equally frequent words, so all wishes choose the same one.
        stems = sorted(words, reverse=True)
        most_frequent = max(stems, key=lambda stemmed: counts[stemmed], default="")
        wishes_by_stem[most_frequent].append(wish)
        words_by_stem[most_frequent].append(words)
    groups: list[WishGroup] = []
    for stemmed, members in wishes_by_stem.items():
        about = _name_shared_words(words_by_stem[stemmed])
        groups.append(WishGroup(about, tuple(members)))
    # The group of other wishes comes last, whatever its size.
    groups.sort(key=lambda group: (group.about == OTHER, -len(group.wishes)))
    return groups


def _name_shared_words(words_by_wish: Sequence[Mapping[str, str]]) -> str:
    """Return the first words that all wishes of a group share, as the first wish writes them."""
    first, *others = words_by_wish
    shared_stems = set(first).intersection(*others)
    names: list[str] = []
    for stemmed, word in first.items():
        if stemmed in shared_stems:
            names.append(word)
    return " ".join(names[:MAX_SHARED_WORDS]) or OTHER


def _find_subject_words(text: str) -> dict[str, str]:
    """Return the words of a text that say what it is about, by their stems."""
    words: dict[str, str] = {}
    for word in split_words(text):
        is_letter = len(word) == 1
        if is_letter or word.isdecimal() or word in list_ignored_words():
            continue
        # The first word with a stem stands for the others.
        words.setdefault(stem(word), word)
    return words


def format_groups(groups: Sequence[WishGroup]) -> str:
    """Return a line for each of the largest groups, such as `3 × barolo: not in stock`."""
    lines: list[str] = []
    for group in groups[:MAX_LINES]:
        count = len(group.wishes)
        lines.append(f"{count} × {group.about}: {group.reasons}")
    return "\n".join(lines)


def to_csv(groups: Iterable[WishGroup]) -> bytes:
    """Return a CSV file with a row for each wish.

    The file begins with a byte order mark, by which spreadsheets recognise UTF-8.
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
    return [make_harmless_cell(cell) for cell in cells]
