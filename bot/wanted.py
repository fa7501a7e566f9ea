"""Group what guests wanted and did not get by words, for admins: as lines, and as CSV."""

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
from db.wines.names import ignored_words

REASONS: Final[Mapping[str, str]] = {
    Lack.WINES: "no wine meets it",
    Lack.NAME: "not in stock",
    Lack.DOCUMENTS: "no document answers",
    DISLIKED: "👎",
}
"""What an admin reads for a reason; the other ones are those of a 👎."""
OTHER: Final = "(other words, or none kept)"
"""What wishes are about that share no word with others, or whose words are not known."""
MAX_SHARED: Final = 3
MAX_LINES: Final = 5
MAX_WORDS_CHARS: Final = 200
CSV_COLUMNS: Final = ("week", "about", "at", "why", "words", "comment", "trace")


@dataclass(frozen=True, slots=True)
class WishGroup:
    """Wishes about the same: `about` are words that they share."""

    about: str
    wishes: tuple[UnmetWish, ...]

    @property
    def reasons(self) -> str:
        """Return why they were not met, the most frequent reason first."""
        counts = Counter(reason for wish in self.wishes for reason in wish.reasons)
        return ", ".join(describe_reason(reason) for reason, _ in counts.most_common())


def describe_reason(reason: str) -> str:
    """Return a reason as admins read it."""
    return REASONS.get(reason) or f"👎 {reason.replace('_', ' ')}"


def group_wishes(wishes: Sequence[UnmetWish]) -> list[WishGroup]:
    """Return the wishes by the word that most others have, the largest groups first."""
    words_of = [_find_telling_words(wish.words) for wish in wishes]
    counts = Counter(term for words in words_of for term in words)
    indices_by_term = defaultdict[str, list[int]](list)
    for index, words in enumerate(words_of):
        # Of words that are as frequent, wishes take the same one.
        _, most_frequent = max(
            ((counts[term], term) for term in words), default=(0, "")
        )
        indices_by_term[most_frequent].append(index)
    groups: list[WishGroup] = []
    for indices in indices_by_term.values():
        about = _name_shared([words_of[index] for index in indices])
        groups.append(WishGroup(about, tuple(wishes[index] for index in indices)))
    return sorted(groups, key=lambda group: (group.about == OTHER, -len(group.wishes)))


def _name_shared(words_of: Sequence[Mapping[str, str]]) -> str:
    """Return the first words that all wishes of a group share, as the first wish writes them."""
    shared = set(words_of[0]).intersection(*words_of)
    names = [word for term, word in words_of[0].items() if term in shared]
    return " ".join(names[:MAX_SHARED]) or OTHER


def _find_telling_words(text: str) -> dict[str, str]:
    """Return the words of a text that say what it is about, by their stems."""
    words: dict[str, str] = {}
    for word in split_words(text):
        is_telling = (
            len(word) > 1 and not word.isdecimal() and word not in ignored_words()
        )
        if is_telling:
            words.setdefault(stem(word), word)
    return words


def format_groups(groups: Sequence[WishGroup]) -> str:
    """Return a line for each of the largest groups, such as `3 × barolo: not in stock`."""
    shown = groups[:MAX_LINES]
    return "\n".join(
        f"{len(group.wishes)} × {group.about}: {group.reasons}" for group in shown
    )


def to_csv(groups: Iterable[WishGroup]) -> bytes:
    """Return a row for each wish, as CSV in UTF-8 with the mark by which spreadsheets know it."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(CSV_COLUMNS)
    for group in groups:
        writer.writerows(_to_row(group, wish) for wish in group.wishes)
    return file.getvalue().encode("utf-8-sig")


def _to_row(group: WishGroup, wish: UnmetWish) -> list[str | int | float]:
    cells = (
        f"{wish.at:%G-W%V}",
        group.about,
        f"{wish.at:%Y-%m-%d %H:%M}",
        ", ".join(map(describe_reason, wish.reasons)),
        clip(to_one_line(wish.words), MAX_WORDS_CHARS),
        clip(to_one_line(wish.comment), MAX_WORDS_CHARS),
        wish.trace_id,
    )
    return [harmless_cell(cell) for cell in cells]
