"""Know questions about the shop itself: opening hours, address, delivery, contact."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from agent.documents.passages import Chunk
from agent.documents.staff import asks_for_staff
from agent.tables import read_toml
from agent.text import split_words

SHOP_DOCUMENT: Final = "shop.md"
"""The name of the owner's document about the shop."""
CONTACT: Final = "contact"
"""The topic of how the shop is reached; a question of this one word asks for it."""
ANY_ENDING: Final = "*"


def is_shop_document(path: str) -> bool:
    """Return whether this is the path of the document about the shop."""
    return path.rpartition("/")[2].lower() == SHOP_DOCUMENT


def find_shop_topics(questions: Iterable[str]) -> frozenset[str]:
    """Return what questions ask about the shop, such as its hours; empty if nothing."""
    questions = [*questions]
    texts = [_pad(question) for question in questions]
    asked_for = [CONTACT] if any(map(asks_for_staff, questions)) else []
    return frozenset(asked_for).union(
        topic
        for topic, phrases in _phrases().items()
        if any(phrase in text for text in texts for phrase in phrases)
    )


def sort_by_topic(chunks: Sequence[Chunk], topics: Collection[str]) -> list[Chunk]:
    """Return the chunks of the document about the shop, those on the topics first."""

    def is_on_topic(chunk: Chunk) -> bool:
        return bool(find_shop_topics([chunk.source_text]).intersection(topics))

    return sorted(chunks, key=is_on_topic, reverse=True)


def _pad(text: str) -> str:
    return f" {' '.join(split_words(text))} "


@cache
def _phrases() -> Mapping[str, tuple[str, ...]]:
    """Return the phrases of all languages by topic, with the spaces around them."""
    table = read_toml(dict[str, dict[str, str]], Path(__file__).with_suffix(".toml"))
    return {topic: tuple(_split(",".join(rows.values()))) for topic, rows in table.items()}


def _split(row: str) -> Iterable[str]:
    for phrase in row.split(","):
        words = phrase.strip()
        if words.endswith(ANY_ENDING):
            yield f" {words.removesuffix(ANY_ENDING)}"
        else:
            yield f" {words} "
