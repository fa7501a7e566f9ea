"""Know questions about the shop itself: opening hours, address, delivery, contact."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from agent.documents.passages import Chunk
from agent.documents.staff import asks_for_staff, pad_words, read_phrases
from agent.tables import read_toml

SHOP_DOCUMENT: Final = "shop.md"
"""The name of the owner's document about the shop."""
CONTACT: Final = "contact"
"""The topic of how the shop is reached; a question of this one word asks for it."""
ONLY_OF_SHOP: Final = frozenset({"hours", "address"})
"""The topics that no other document answers: "when are you open?" is not about bottles."""


def is_shop_document(path: str) -> bool:
    """Return True if this is the path of the document about the shop."""
    _, _, name = path.rpartition("/")
    return name.lower() == SHOP_DOCUMENT


def find_shop_topics(questions: Iterable[str]) -> frozenset[str]:
    """Return what questions ask about the shop, such as its hours; empty if nothing."""
    topics: set[str] = set()
    for question in questions:
        if asks_for_staff(question):
            topics.add(CONTACT)
        words = pad_words(question)
        for topic, phrases in _phrases().items():
            if any(phrase in words for phrase in phrases):
                topics.add(topic)
    return frozenset(topics)


def sort_by_topic(chunks: Sequence[Chunk], topics: Collection[str]) -> list[Chunk]:
    """Return the chunks of the document about the shop, those on the topics first."""

    def is_on_topic(chunk: Chunk) -> bool:
        return bool(find_shop_topics([chunk.source_text]).intersection(topics))

    return sorted(chunks, key=is_on_topic, reverse=True)


@cache
def _phrases() -> Mapping[str, list[str]]:
    """Return the phrases of all languages by topic."""
    table = read_toml(dict[str, dict[str, str]], Path(__file__).with_suffix(".toml"))
    return {topic: read_phrases(",".join(rows.values())) for topic, rows in table.items()}
