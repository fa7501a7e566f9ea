"""A search for places, as whoever provides it answers."""

from dataclasses import dataclass
from typing import Protocol


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
