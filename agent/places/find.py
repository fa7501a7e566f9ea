"""Places nearby: ten queries, what a web search returned for them, and nothing made up.

URLs are shown, never fetched. Without a search provider the queries are links to tap.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final, Protocol
from urllib.parse import parse_qsl, quote_plus, urlsplit

from pydantic import AfterValidator, Field

from agent.engine.errors import ToolError
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.tools import Tool, ToolOutput, tool
from agent.places.queries import (
    Queries,
    QueryGenerationFailed,
    categories,
    category_named,
    generate_queries,
)
from agent.text import pattern, words

log = logging.getLogger(__name__)

SEARCH_LINK: Final = "https://duckduckgo.com/?q={query}"
HITS_PER_QUERY: Final = 10
MAX_RESULTS: Final = 20
SEARCHES_AT_ONCE: Final = 3
SEARCH_SECONDS: Final = 15.0
"""How long all searches together may take."""
RANK_CONSTANT: Final = 60
SAME_SITE: Final = pattern(r"\A(?:(?:www\d?|m|mobile|amp)\.)+([^.]+\.)")
"""What stands before a domain without making it another."""
TRACKING: Final = pattern(r"(?i)\A(?:utm_.*|.*clid|srsltid|ref|source)\Z")

SHOWN_RESULTS: Final = 8
TOOL_LIMITS: Final = Limits(seconds=9)
TOOL_SECONDS: Final = 5.0
"""With the time for the queries this stays below that of a tool, or nothing would be shown."""

NO_PROVIDER: Final = "No place search is configured here: tap a query to search the web yourself."
SEARCH_FAILED: Final = "The place search gave no answer: tap a query to search the web yourself."
NOTHING_FOUND: Final = "The place search found nothing: tap a query to search the web yourself."


@dataclass(frozen=True, slots=True)
class PlaceHit:
    """One result of a place search: nothing in it that the source did not say."""

    title: str
    url: str
    snippet: str = ""


class PlaceSearch(Protocol):
    """A web search for places: wine shops, bars, wineries."""

    async def search(self, query: str, limit: int = 10) -> list[PlaceHit]:
        """Return results for one query, best first. Raises ToolError when it is down."""
        ...


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """One place as its sources tell it, and the queries that found it, in their order."""

    title: str
    url: str
    snippet: str
    queries: tuple[str, ...]

    @property
    def said(self) -> str:
        """What the sources say of it; the queries are not theirs."""
        return f"{self.title}\n{self.snippet}"


@dataclass(frozen=True, slots=True)
class SearchLink:
    """A query, and where a tap on it leads; no source, as the query is the model's own."""

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
    run: Run,
    search: PlaceSearch | None = None,
    search_link: str = SEARCH_LINK,
    search_seconds: float = SEARCH_SECONDS,
) -> Places:
    """Find places of a category in `place`: results of ten queries, merged, at most 20.

    `search_link` is a URL with `{query}` in it. The links are always there; the results are empty
    without a provider, or when it fails; what took longer than `search_seconds` has failed. Raises
    what `generate_queries` raises.
    """
    queries = await generate_queries(category, place, run=run)
    links = tuple(
        SearchLink(query, search_link.replace("{query}", quote_plus(query)))
        for query in queries.queries
    )
    if search is None:
        return Places(queries, (), links, NO_PROVIDER)
    with run.span.child("retrieve.places", "retriever", input=list(queries.queries)) as retriever:
        answers = await _search_all(search, queries.queries, search_seconds)
        errors = [each for each in answers if isinstance(each, ToolError)]
        found = merged(
            (query, each)
            for query, each in zip(queries.queries, answers, strict=True)
            if not isinstance(each, ToolError)
        )
        _record(retriever, found, errors)
    note = "" if found else SEARCH_FAILED if len(errors) == len(answers) else NOTHING_FOUND
    return Places(queries, found, links, note, len(errors))


async def _search_all(
    search: PlaceSearch, queries: Sequence[str], seconds: float
) -> list[Sequence[PlaceHit] | ToolError]:
    """The hits of each query, or why there are none; a few at a time."""
    free = asyncio.Semaphore(SEARCHES_AT_ONCE)
    deadline = asyncio.get_running_loop().time() + seconds

    async def one(query: str) -> Sequence[PlaceHit] | ToolError:
        try:
            async with asyncio.timeout_at(deadline), free:
                return await search.search(query, HITS_PER_QUERY)
        except ToolError as error:
            return error
        except TimeoutError:
            return ToolError(f"the place search took longer than {seconds:g} s")

    return await asyncio.gather(*map(one, queries))


def _record(span: Span, found: Sequence["FoundPlace"], errors: Sequence[ToolError]) -> None:
    span.update(
        output=[result.url for result in found],
        metadata={"found": len(found), "failed": len(errors)},
    )
    if errors:
        log.warning("%d searches for places failed, the first: %s", len(errors), errors[0])
        span.update(metadata={"error": str(errors[0])}, level="WARNING")


@dataclass(slots=True)
class _Merged:
    """The hits of one place; the first seen gives title, URL and snippet."""

    hit: PlaceHit
    score: float = 0
    queries: dict[str, None] = field(default_factory=dict)


def merged(found: Iterable[tuple[str, Sequence[PlaceHit]]]) -> tuple[FoundPlace, ...]:
    """Merge hits of several queries: each domain and name, and each address, once, best first.

    What many queries rank high comes first (reciprocal ranks are summed).
    """
    places: list[_Merged] = []
    known: dict[tuple[str, ...], _Merged] = {}
    for query, hits in found:
        for rank, hit in enumerate(hits, start=1):
            keys = identities(hit)
            if not keys:
                continue
            place = next((known[key] for key in keys if key in known), None)
            if place is None:
                place = _Merged(hit)
                places.append(place)
            known |= {key: known.get(key, place) for key in keys}
            if query not in place.queries:
                place.queries[query] = None
                place.score += 1 / (RANK_CONSTANT + rank)
    ranked = sorted(places, key=lambda place: -place.score)[:MAX_RESULTS]
    return tuple(
        FoundPlace(each.hit.title, each.hit.url, each.hit.snippet, tuple(each.queries))
        for each in ranked
    )


def identities(hit: PlaceHit) -> tuple[tuple[str, ...], ...]:
    """Tell what a place is known by: its domain and name, and its address; nothing if no web page.

    Neither the address's `www.` or `m.` counts, nor what only says where a visitor comes from.
    """
    try:
        parts = urlsplit(hit.url)
        host = (parts.hostname or "").rstrip(".")
        domain = SAME_SITE.sub(lambda found: found[1], host.encode("idna").decode())
    except ValueError:
        return ()
    if parts.scheme not in {"http", "https"} or not domain:
        return ()
    name = " ".join(words(hit.title))
    asked = [pair for pair in parse_qsl(parts.query) if not TRACKING.match(pair[0])]
    address = (domain, parts.path.rstrip("/"), *("=".join(pair) for pair in sorted(asked)))
    return (domain, name), ("address", *address)


CategoryName = Annotated[
    str,
    AfterValidator(category_named),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(categories()))),
]
PlaceName = Annotated[
    str,
    Field(max_length=200, description="A town, district or region, as the guest named it."),
]


def find_places_tool(search: PlaceSearch | None = None, *, search_link: str = SEARCH_LINK) -> Tool:
    """Make find_places over `search`; it asks the turn's models and counts in its ledger."""

    async def find(category: CategoryName, place: PlaceName, run: Run) -> ToolOutput:
        """Wine shops, wine bars, wineries, tastings, restaurants or courses in a place. Name only
        what it returns, with its link. It knows no opening hours and no ratings: neither do you.
        """
        try:
            found = await find_places(
                category,
                place,
                run=replace(run, limits=TOOL_LIMITS),
                search=search,
                search_link=search_link,
                search_seconds=TOOL_SECONDS,
            )
        except (QueryGenerationFailed, ValueError) as error:
            raise ToolError(str(error)) from None
        shown = found.results[:SHOWN_RESULTS] or found.links
        key = "places" if found.results else "search_links"
        content: dict[str, Any] = {key: [asdict(each) for each in shown]}
        if found.note:
            content["note"] = found.note
        return ToolOutput(content, {each.url: each for each in shown})

    return replace(tool(find), name="find_places")
