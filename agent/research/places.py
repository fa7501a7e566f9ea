"""Places nearby: ten queries, what a web search returned for them, and nothing made up.

URLs are shown, never fetched. Without a search provider the queries are links to tap.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus, urlsplit

from agent.budget import Ledger, Limits
from agent.errors import ToolError
from agent.grounding import fold
from agent.messages import LLM
from agent.ports import PlaceHit, PlaceSearch
from agent.prompts import REPOSITORY, Prompts
from agent.research.queries import Queries, generate_queries
from agent.tracing import NO_SPAN, Span

SEARCH_LINK: Final = "https://duckduckgo.com/?q={query}"
HITS_PER_QUERY: Final = 10
MAX_RESULTS: Final = 20
SEARCHES_AT_ONCE: Final = 3
RANK_CONSTANT: Final = 60

NO_PROVIDER: Final = "No place search is configured here: tap a query to search the web yourself."
SEARCH_FAILED: Final = "The place search gave no answer: tap a query to search the web yourself."
NOTHING_FOUND: Final = "The place search found nothing: tap a query to search the web yourself."


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """One place as its sources tell it, and the queries that found it, in their order."""

    title: str
    url: str
    snippet: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchLink:
    """A query, and where a tap on it leads."""

    query: str
    url: str


@dataclass(frozen=True, slots=True)
class Places:
    """What was searched and found. `note` says why there are links instead of results."""

    queries: Queries
    results: tuple[FoundPlace, ...]
    links: tuple[SearchLink, ...]
    note: str = ""
    failed_searches: int = 0


async def find_places(
    category: str,
    place: str,
    *,
    models: Sequence[LLM] = (),
    search: PlaceSearch | None = None,
    search_link: str = SEARCH_LINK,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    ledger: Ledger | None = None,
    span: Span = NO_SPAN,
    prompts: Prompts = REPOSITORY,
) -> Places:
    """Places of a category in `place`: the results of ten queries merged, at most 20, best first.

    `search_link` is a URL with `{query}` in it. The links are always there; the results are empty
    without a provider, or when it fails. Raises what `generate_queries` raises.
    """
    queries = await generate_queries(
        category, place, models=models, limits=limits, ledger=ledger, span=span, prompts=prompts
    )
    links = tuple(
        SearchLink(query, search_link.replace("{query}", quote_plus(query)))
        for query in queries.queries
    )
    if search is None:
        return Places(queries, (), links, NO_PROVIDER)
    with span.child("retrieve.places", "retriever", input=list(queries.queries)) as retriever:
        hits = await _search_all(search, queries.queries)
        failed = sum(each is None for each in hits)
        found = merged(
            (query, each) for query, each in zip(queries.queries, hits, strict=True) if each
        )
        retriever.update(
            output=[result.url for result in found],
            metadata={"found": len(found), "failed": failed},
            level="WARNING" if failed else None,
        )
    note = "" if found else SEARCH_FAILED if failed == len(hits) else NOTHING_FOUND
    return Places(queries, found, links, note, failed)


async def _search_all(
    search: PlaceSearch, queries: Sequence[str]
) -> list[Sequence[PlaceHit] | None]:
    """The hits of each query, None where the provider failed; a few at a time."""
    free = asyncio.Semaphore(SEARCHES_AT_ONCE)

    async def one(query: str) -> Sequence[PlaceHit] | None:
        async with free:
            try:
                return await search.search(query, HITS_PER_QUERY)
            except ToolError:
                return None

    return await asyncio.gather(*map(one, queries))


@dataclass(slots=True)
class _Merged:
    """The hits of one place; the first seen gives title, URL and snippet."""

    hit: PlaceHit
    score: float = 0
    queries: dict[str, None] = field(default_factory=dict)


def merged(found: Iterable[tuple[str, Sequence[PlaceHit]]]) -> tuple[FoundPlace, ...]:
    """Hits of several queries as places: each domain and name once, best first.

    What many queries rank high comes first (reciprocal ranks are summed).
    """
    places: dict[tuple[str, str], _Merged] = {}
    for query, hits in found:
        for rank, hit in enumerate(hits, start=1):
            key = identity(hit)
            if key is None:
                continue
            place = places.setdefault(key, _Merged(hit))
            if query not in place.queries:
                place.queries[query] = None
                place.score += 1 / (RANK_CONSTANT + rank)
    ranked = sorted(places.values(), key=lambda place: -place.score)[:MAX_RESULTS]
    return tuple(
        FoundPlace(each.hit.title, each.hit.url, each.hit.snippet, tuple(each.queries))
        for each in ranked
    )


def identity(hit: PlaceHit) -> tuple[str, str] | None:
    """The domain and folded name a place is known by; None for what is no web page."""
    try:
        parts = urlsplit(hit.url)
        domain = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not domain:
        return None
    return domain, " ".join(re.findall(r"\w+", fold(hit.title)))
