"""What the agent needs from the rooms around it; `db` and `bot` fulfil these protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from agent.wine import Wine, WineQuery, WineSearchResult

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is remembered: text, and the wines it recommended.

    `turn_id` says of which turn, where that is kept.
    """

    role: Role
    content: str
    wine_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    turn_id: int | None = None


class Catalogue(Protocol):
    """The wines that exist here. Nothing else may be recommended."""

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Wines that pass every hard filter of `query`, best match first."""
        ...

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """The wines with these ids, in the order asked; unknown ids are left out."""
        ...

    async def similar(self, wine_id: str, limit: int = 5) -> list[Wine]:
        """Wines in stock most like this one, most alike first; empty for an unknown id."""
        ...

    async def count(self) -> int:
        """How many wines the catalogue holds."""
        ...


class MessageRepository(Protocol):
    """The conversation of each chat, oldest first."""

    async def create(
        self,
        chat_id: int,
        role: Role,
        content: str,
        wine_ids: Sequence[str] = (),
        *,
        turn_id: int | None = None,
    ) -> None:
        """Remember one message, once per role and `turn_id` if given. Commits before it returns."""
        ...

    async def recent(self, chat_id: int, limit: int = 20) -> list[StoredMessage]:
        """The newest `limit` messages of a chat, oldest first."""
        ...

    async def forget(self, chat_id: int) -> int:
        """Delete a chat's messages; how many there were."""
        ...

    async def undo(self, chat_id: int, turn_id: int) -> bool:
        """Delete the messages of a chat's last turn; False if `turn_id` is not its last."""
        ...


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


class DocumentStore(Protocol):
    """The knowledge base: documents in retrievable chunks, and the metadata of every document."""

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        """The best chunks for any of `queries` (the same question in several words), best first."""
        ...

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        """Those of `paths` that are documents of the metadata store."""
        ...

    async def count(self) -> int:
        """How many documents there are."""
        ...


class Embedder(Protocol):
    """An embedding source: texts to vectors, near each other where the texts mean alike."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order. Raises anything when the source is down."""
        ...


@dataclass(frozen=True, slots=True)
class PlaceHit:
    """One result of a place search: nothing in it that the source did not say."""

    title: str
    url: str
    snippet: str = ""


class PlaceSearch(Protocol):
    """A web search for places: wine shops, bars, wineries."""

    async def search(self, query: str, limit: int = 10) -> list[PlaceHit]:
        """Results for one query, best first. Raises `ToolError` when the provider is down."""
        ...


@dataclass(frozen=True, slots=True)
class ChatState:
    """Where messages for a chat go: `chat_id` after any migration, unless it is unreachable."""

    chat_id: int
    unreachable: str | None = None


class ChatRepository(Protocol):
    """What was learned of chats while sending to them."""

    async def state(self, chat_id: int) -> ChatState:
        """Where messages for this chat go; an unknown chat is reachable as it is."""
        ...

    async def unreachable(self, chat_id: int, reason: str) -> None:
        """Remember that the bot was blocked there, or that the chat is gone."""
        ...

    async def reachable(self, chat_id: int) -> None:
        """Forget that: somebody wrote from there."""
        ...

    async def migrated(self, chat_id: int, to: int) -> None:
        """Remember that a group became a supergroup with another id."""
        ...


@dataclass(frozen=True, slots=True)
class Backlog:
    """Updates that are accepted and not done: how many, and how long the oldest has waited."""

    waiting: int = 0
    oldest_seconds: float = 0.0
