"""Answered quotes, remembered for 15 minutes: the same question, sources, model and prompt."""

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from agent.documents.store import Chunk

if TYPE_CHECKING:
    from agent.documents.quotes import Quotes

SECONDS: Final = 15 * 60.0
ENTRIES: Final = 256


class Cache(Protocol):
    """Where answered quotes are kept."""

    def get(self, key: str) -> "Quotes | None":
        """What is kept under `key`, None if nothing is or its time is over."""
        ...

    def put(self, key: str, quotes: "Quotes") -> None:
        """Keep `quotes` under `key`."""
        ...


class QuoteCache:
    """Keeps the newest `entries` for `seconds`; `clock` counts seconds."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        entries: int = ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._entries = entries
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Quotes]] = OrderedDict()

    def get(self, key: str) -> "Quotes | None":
        """What is kept under `key`, None if nothing is or its time is over."""
        until, quotes = self._kept.get(key, (0.0, None))
        if quotes is not None and self._clock() >= until:
            del self._kept[key]
            return None
        return quotes

    def put(self, key: str, quotes: "Quotes") -> None:
        """Keep `quotes` under `key`; the oldest entry makes room."""
        self._kept.pop(key, None)
        self._kept[key] = (self._clock() + self._seconds, quotes)
        if len(self._kept) > self._entries:
            self._kept.popitem(last=False)


class NoCache:
    """Keeps nothing."""

    def get(self, key: str) -> None:
        """Nothing is kept."""

    def put(self, key: str, quotes: "Quotes") -> None:
        """Nothing is kept."""


NO_CACHE: Final = NoCache()


def cache_key(query: str, chunks: Sequence[Chunk], models: Sequence[str], prompt: str = "") -> str:
    """The key of a query over sources, put to models with a prompt.

    White space and case of the query do not matter; the sources' texts do: a quote from a document
    that has changed since would not be one.
    """
    sources = [[chunk.id, chunk.document_id, chunk.title, chunk.text] for chunk in chunks]
    named = json.dumps([" ".join(query.lower().split()), sources, list(models), prompt])
    return hashlib.sha256(named.encode()).hexdigest()
