"""Documents in retrievable chunks, and where they and their vectors come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable part of a document; `path` is what a citation names.

    `position` counts from 1 to `parts`, the number of chunks of the document; `score` only orders
    the chunks of one search.
    """

    id: str
    document_id: str
    path: str
    title: str
    headings: tuple[str, ...]
    position: int
    parts: int
    text: str
    score: float = 0.0

    @property
    def location(self) -> str:
        """The heading chain, or "Section N of M" where there are no headings."""
        return " > ".join(self.headings) or f"Section {self.position} of {self.parts}"

    @property
    def said(self) -> str:
        """What the document says here."""
        return f"{self.title}\n{self.location}\n{self.text}"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the metadata store knows of a document; `size` is in bytes, `parts` in chunks."""

    id: str
    path: str
    title: str
    kind: str
    content_hash: str
    size: int
    parts: int
    added_at: datetime


class DocumentStore(Protocol):
    """The knowledge base: documents in retrievable chunks, and the metadata of every document."""

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        """Return the best chunks for any of `queries`, wordings of one question, best first.

        At most 3 chunks of one document, unless nothing else matches.
        """

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        """Return those of `paths` that are documents of the metadata store."""

    async def count(self) -> int:
        """Say how many documents there are."""

    async def documents(self) -> list[StoredDocument]:
        """Return what is known of every document, by path."""


class Embedder(Protocol):
    """An embedding source: texts to vectors, near each other where the texts mean alike."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are never compared."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order. Raises anything when the source is down."""
