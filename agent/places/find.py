"""Find places: generate ten queries, search the web for them, and merge the results.

The providers are SearXNG (self-hosted) and Brave Search (with a key). The found addresses are
never fetched. Without a provider the queries become links to a search engine.
"""

import asyncio
import html
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import httpx2
from pydantic import AfterValidator, Field, SecretStr
from pydantic.config import JsonDict

from agent import size_limits
from agent.engine.errors import ToolError
from agent.engine.run import Run, Span, SpanLevel
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import translate
from agent.markdown import build_search_address, get_domain, strip_invisible
from agent.places.queries import (
    PlaceQueries,
    QueryGenerationFailed,
    find_category,
    generate_queries,
    load_categories,
    to_visible_line,
)
from agent.servers import read_body
from agent.text import clip, pattern, split_words
from agent.turn import Reply, may_drink

log = logging.getLogger(__name__)

BRAVE_URL: Final = "https://api.search.brave.com"
ADVICE: Final = (
    "check its address, its key and its limits; SearXNG must allow the json format"
)
TAG: Final = pattern(r"<[^<>]*>")
"""A tag of HTML: "<strong>"."""
SUBDOMAIN: Final = pattern(r"\A(?:(?:www\d?|m|mobile|amp)\.)+")
"""The subdomains that lead to the same site: "www.", "m."."""

REQUEST_SECONDS: Final = 8.0
"""The time limit of one search."""
SEARCH_SECONDS: Final = 15.0
"""The time limit of all searches together."""
QUERIES_SECONDS: Final = 40
"""The time limit of a model for the ten queries of the tool. Slow models need all of it."""
MAX_URL_CHARS: Final = 2000
MAX_TITLE_CHARS: Final = 200
MAX_SNIPPET_CHARS: Final = 1000
MAX_HITS: Final = 10
"""The most results of one search."""
MAX_RESULTS: Final = 20
"""The most places of all searches together."""
CONCURRENT_SEARCHES: Final = 3
"""The number of searches that run at a time."""
RANK_CONSTANT: Final = 60
"""The usual constant of reciprocal rank fusion."""
RESULTS_SHOWN: Final = 8
"""Maximum number of places that the model is shown."""
LINKS_SHOWN: Final = 3
"""Maximum number of links to searches that the model is shown."""
SEARCH_DOWN: Final = "search_failed"
"""The type of the error if every search failed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A search result with the texts of its source, and the queries that found it."""

    title: str
    url: str
    snippet: str = ""
    queries: tuple[str, ...] = ()

    @property
    def source_text(self) -> str:
        """Return the texts of the source, without the queries."""
        if not self.snippet:
            return self.title
        return f"{self.title}\n{self.snippet}"

    @property
    def links(self) -> tuple[str, ...]:
        """Return the address of the place."""
        return (self.url,)


@dataclass(frozen=True, slots=True)
class WebSearch:
    """A provider of web searches.

    `snippet` is the name of the field with the snippet of a result.
    """

    http: httpx2.AsyncClient
    name: str
    url: str
    parameters: Mapping[str, str]
    snippet: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def search(self, query: str) -> list[Place]:
        """Return at most 10 results for one query, best first.

        Raises:
            ToolError: the provider cannot be reached, refuses, or sends no usable JSON. The message
                contains neither key nor URL.
        """
        body = await self._request(query)
        try:
            data = json.loads(body or b"")
            # Brave nests its results in `web`.
            results = data.get("web", data).get("results")
        except (ValueError, RecursionError, AttributeError):
            raise ToolError(
                f"{self.name} answered with something that is not its JSON; {ADVICE}"
            ) from None
        return self._parse_hits(results)

    async def _request(self, query: str) -> bytes | None:
        """Return the body of the provider's response, or None if it is too long."""
        parameters = {"q": query, **self.parameters}
        request = self.http.stream(
            "GET", self.url, params=parameters, headers=self.headers
        )
        try:
            async with asyncio.timeout(REQUEST_SECONDS), request as response:
                body = await read_body(response, size_limits.SEARCH_RESPONSE_BYTES)
        except (TimeoutError, httpx2.HTTPError) as error:
            reason = type(error).__name__
            raise ToolError(f"{self.name} could not be reached ({reason})") from None
        if response.status_code != httpx2.codes.OK:
            raise ToolError(f"{self.name} answered {response.status_code}: {ADVICE}")
        return body

    def _parse_hits(self, results: Any) -> list[Place]:
        """Return the results that have a usable address and a title."""
        if not isinstance(results, list):
            return []
        hits = []
        for result in results:
            if not isinstance(result, dict):
                continue
            title = _clean_text(result.get("title"), MAX_TITLE_CHARS)
            url = _clean_url(result.get("url"))
            snippet = _clean_text(result.get(self.snippet), MAX_SNIPPET_CHARS)
            if url and title:
                hits.append(Place(title, url, snippet))
        return hits[:MAX_HITS]


def searxng(base_url: str, http: httpx2.AsyncClient) -> WebSearch:
    """Return the search of a SearXNG instance, whose `search.formats` must list `json`."""
    parameters = {"format": "json", "categories": "general,map"}
    url = f"{base_url.rstrip('/')}/search"
    return WebSearch(http, "SearXNG", url, parameters, snippet="content")


def brave(
    api_key: SecretStr,
    http: httpx2.AsyncClient,
    base_url: str = BRAVE_URL,
) -> WebSearch:
    """Return the search of the Brave Search API."""
    parameters = {"count": str(MAX_HITS)}
    url = f"{base_url.rstrip('/')}/res/v1/web/search"
    headers = {"X-Subscription-Token": api_key.get_secret_value()}
    return WebSearch(
        http, "Brave Search", url, parameters, snippet="description", headers=headers
    )


def _clean_url(value: object) -> str:
    """Return the address of a web page, or "" if a value is none or is too long for a link."""
    if not isinstance(value, str):
        return ""
    url = value.strip()
    if len(url) > MAX_URL_CHARS:
        return ""
    if " " in url or not url.isprintable():
        return ""
    if not get_domain(url):
        return ""
    return url


def _clean_text(value: object, max_chars: int) -> str:
    """Return a text without HTML tags and invisible characters, cut to `max_chars`."""
    if not isinstance(value, str):
        return ""
    untagged = TAG.sub("", strip_invisible(value))
    text = to_visible_line(html.unescape(untagged))
    return clip(text, max_chars)


@dataclass(frozen=True, slots=True)
class SearchLink:
    """A query and a link to its web search."""

    query: str
    url: str

    @property
    def source_text(self) -> str:
        """Return nothing, because a query that the model wrote proves nothing."""
        return ""

    @property
    def links(self) -> tuple[str, ...]:
        """Return the address of the web search."""
        return (self.url,)


@dataclass(frozen=True, slots=True)
class Places:
    """The queries and their results. `note` says why there are links instead of results."""

    queries: PlaceQueries
    results: tuple[Place, ...] = ()
    note: str = ""
    is_search_down: bool = False

    @property
    def links(self) -> list[SearchLink]:
        """Return a link to a web search for every query."""
        links = []
        for query in self.queries.texts:
            url = build_search_address(query)
            links.append(SearchLink(query, url))
        return links

    def to_reply(self, *messages: str) -> Reply:
        """Return the reply of a turn with these messages, in Markdown."""
        outcome = self.queries.outcome
        error_types = self.queries.error_types
        if self.is_search_down:
            outcome = "fallback"
            error_types += (SEARCH_DOWN,)
        return Reply(
            text="\n\n".join(messages),
            parts=messages,
            outcome=outcome,
            retries=self.queries.retry_count,
            error_types=error_types,
            structured_answer=self,
            prompt=self.queries.prompt,
        )


async def find_places(
    category: str,
    place: str,
    *,
    run: Run,
    wish: str = "",
    search: WebSearch | None = None,
) -> Places:
    """Return at most 20 places of a category in `place`: the merged results of ten queries.

    Without a search provider there are no results. A search that fails, or has not ended within
    `SEARCH_SECONDS`, adds none. The errors of `generate_queries` are raised.
    """
    queries = await generate_queries(
        category, place, run=run, wish=to_visible_line(wish)
    )
    if search is None:
        return Places(queries, note=translate("no_place_search"))
    results, is_search_down = await _retrieve(search, queries.texts, run.span)
    if results:
        return Places(queries, results)
    if is_search_down:
        note = translate("place_search_failed")
        return Places(queries, note=note, is_search_down=True)
    return Places(queries, note=translate("no_places"))


async def _retrieve(
    search: WebSearch,
    queries: Sequence[str],
    span: Span,
) -> tuple[tuple[Place, ...], bool]:
    """Return the merged results of all queries, and whether every search failed."""
    with span.child("retrieve.places", "retriever", input=list(queries)) as retriever:
        hits, errors = await _search_all(search, queries)
        is_search_down = len(errors) == len(queries)
        results = _merge_hits(hits)
        urls = [result.url for result in results]
        metadata = {"found": len(results), "failed": len(errors)}
        retriever.update(output=urls, metadata=metadata)
        if errors:
            log.warning(
                "%d searches for places failed, the first: %s", len(errors), errors[0]
            )
            level: SpanLevel = "ERROR" if is_search_down else "WARNING"
            retriever.update(metadata={"error": errors[0]}, level=level)
    return results, is_search_down


async def _search_all(
    search: WebSearch, queries: Sequence[str]
) -> tuple[dict[str, list[Place]], list[str]]:
    """Return the hits by query, and the error messages of the searches that failed."""
    errors = []
    concurrency = asyncio.Semaphore(CONCURRENT_SEARCHES)
    deadline = asyncio.get_running_loop().time() + SEARCH_SECONDS

    async def search_once(query: str) -> list[Place]:
        try:
            async with asyncio.timeout_at(deadline), concurrency:
                return await search.search(query)
        except ToolError as error:
            errors.append(str(error))
        except TimeoutError:
            errors.append(f"the place search took longer than {SEARCH_SECONDS:g} s")
        return []

    hits = await asyncio.gather(*map(search_once, queries))
    return dict(zip(queries, hits, strict=True)), errors


def _merge_hits(hits: Mapping[str, Sequence[Place]]) -> tuple[Place, ...]:
    """Return the places of all hits, at most 20, the best first.

    Hits with an equal address, or an equal site and title, are one place, with the title, URL and
    snippet of the first. Places that many queries rank high come first (reciprocal rank fusion).
    """
    places: dict[str, Place] = {}
    # The URL of each place, by the keys of its hits.
    urls: dict[tuple[str, ...], str] = {}
    scores: defaultdict[str, float] = defaultdict(float)
    for query, query_hits in hits.items():
        for rank, hit in enumerate(query_hits, start=1):
            address, title = _list_keys(hit)
            url = urls.get(address) or urls.get(title) or hit.url
            urls[address] = url
            urls[title] = url
            place = places.setdefault(url, hit)
            # A query counts once for a place, by the best of its hits.
            if query in place.queries:
                continue
            queries_of_place = (*place.queries, query)
            places[url] = replace(place, queries=queries_of_place)
            scores[url] += 1 / (RANK_CONSTANT + rank)
    best_first = sorted(places, key=scores.__getitem__, reverse=True)
    return tuple(places[url] for url in best_first[:MAX_RESULTS])


def _list_keys(hit: Place) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of a hit: its address, and its site with its title."""
    parts = urlsplit(hit.url)
    host = parts.hostname or ""
    site = SUBDOMAIN.sub("", host.rstrip("."))
    address = ("address", site, parts.path.rstrip("/"))
    title = ("title", site, *split_words(hit.title))
    return address, title


def _add_category_keys(schema: JsonDict) -> None:
    """Add the keys of all categories to the schema of a category's name."""
    schema["enum"] = list(load_categories())


CategoryName = Annotated[
    str,
    AfterValidator(find_category),
    Field(json_schema_extra=_add_category_keys),
]
PlaceName = Annotated[
    str,
    Field(
        max_length=200, description="A town, district or region, as the guest named it."
    ),
]
Wish = Annotated[
    str, Field(max_length=80, description="A further wish, such as natural wine.")
]


PLACES_LINE: Final = (
    "If the guest looks for a shop, bar, winery, tasting, restaurant or course somewhere, call "
    "find_places. Name only places that it returns, each with its web address exactly as "
    "returned. You do not know opening hours, ratings or prices of places. If it returns only "
    "search links, say that no place search is set up, and give all of their addresses; the guest "
    "sees the query of each in its place. If the guest did not say where, ask."
)


def _describe_for_model(places: Places) -> ToolOutput:
    """Return the best places as the result of the tool, or else links to searches for them."""
    key = "places"
    shown: Sequence[Place | SearchLink] = places.results[:RESULTS_SHOWN]
    if not shown:
        key = "search_links"
        shown = places.links[:LINKS_SHOWN]
    content: dict[str, Any] = {key: [asdict(item) for item in shown]}
    if places.note:
        content["note"] = places.note
    evidence = {item.url: item for item in shown}
    return ToolOutput(content, evidence)


def _limit_run(run: Run, search: WebSearch | None) -> Run:
    """Return the run in which the tool asks for queries.

    Without a provider there will only be links, so no model is asked.
    """
    limits = replace(run.limits, seconds=QUERIES_SECONDS)
    run = replace(run, limits=limits)
    if search is None:
        run = replace(run, models=())
    return run


def find_places_tool(search: WebSearch | None = None) -> Tool:
    """Return the tool find_places. The requests of the tool to models count in the turn's usage."""

    async def find(
        category: CategoryName,
        place: PlaceName,
        run: Run,
        wish: Wish = "",
    ) -> ToolOutput:
        """Find wine shops, wine bars, wineries, tastings, restaurants or courses in a place."""
        if not may_drink(run):
            raise ToolError(
                "this guest must not have alcohol, so no places are looked up for them"
            )
        run = _limit_run(run, search)
        try:
            places = await find_places(
                category, place, run=run, wish=wish, search=search
            )
        except (QueryGenerationFailed, ValueError) as error:
            raise ToolError(str(error)) from None
        if places.is_search_down:
            # The links are an answer, but an admin has to know of the failure.
            run.span.update(level="ERROR", metadata={"error_type": SEARCH_DOWN})
        return _describe_for_model(places)

    return replace(
        tool(find),
        name="find_places",
        seconds=QUERIES_SECONDS + SEARCH_SECONDS,
        prompt_line=PLACES_LINE,
    )
