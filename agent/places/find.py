"""Find places: generate ten queries, search the web for them, and merge the results.

The providers are SearXNG, self-hosted, and Brave Search, with a key. Only they are asked: found
addresses are shown, never fetched. Without a provider the queries become links.
"""

import asyncio
import html
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final
from urllib.parse import quote_plus, urlsplit

import httpx2
from pydantic import AfterValidator, Field, SecretStr

from agent import size_limits
from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import translate
from agent.markdown import get_domain, strip_invisible
from agent.places.queries import (
    Queries,
    QueryGenerationFailed,
    categories,
    category_named,
    generate_queries,
    on_one_line,
)
from agent.text import clip, pattern, split_words
from agent.turn import Reply

log = logging.getLogger(__name__)

SEARCH_URL: Final = "https://duckduckgo.com/?q="
BRAVE_URL: Final = "https://api.search.brave.com"
ADVICE: Final = "check its address, its key and its limits; SearXNG must allow the json format"
TAG: Final = pattern(r"<[^<>]*>")
SAME_SITE: Final = pattern(r"\A(?:(?:www\d?|m|mobile|amp)\.)+")

REQUEST_SECONDS: Final = 8.0
SEARCH_SECONDS: Final = 15.0
"""Seconds that all searches together may take."""
QUERIES_SECONDS: Final = 40
"""The time that a slow model may take for the ten queries of the tool."""
MAX_URL_CHARS: Final = 2000
MAX_TITLE_CHARS: Final = 200
MAX_SNIPPET_CHARS: Final = 1000
MAX_HITS: Final = 10
MAX_RESULTS: Final = 20
RANK_CONSTANT: Final = 60
SHOWN_RESULTS: Final = 8
SHOWN_LINKS: Final = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A result of a place search in the source's own words, and the queries that found it."""

    title: str
    url: str
    snippet: str = ""
    queries: tuple[str, ...] = ()

    @property
    def source_text(self) -> str:
        """Return the source's own words, without the queries."""
        return "\n".join(filter(None, (self.title, self.snippet)))


@dataclass(frozen=True, slots=True)
class WebSearch:
    """A provider of web searches; `snippet` is the field of a result that holds its snippet."""

    http: httpx2.AsyncClient
    name: str
    url: str
    parameters: Mapping[str, str]
    snippet: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def search(self, query: str) -> list[Place]:
        """Return at most 10 results for one query, best first.

        Raises:
            ToolError: the provider cannot be reached, refuses, or answers with something else; the
                text holds neither key nor URL.
        """
        parameters = {"q": query, **self.parameters}
        request = self.http.stream("GET", self.url, params=parameters, headers=self.headers)
        try:
            async with asyncio.timeout(REQUEST_SECONDS), request as response:
                body = await size_limits.read_body(response, size_limits.SEARCH_RESPONSE_BYTES)
        except (TimeoutError, httpx2.HTTPError) as error:
            reason = type(error).__name__
            raise ToolError(f"{self.name} could not be reached ({reason})") from None
        if (status := response.status_code) != httpx2.codes.OK:
            raise ToolError(f"{self.name} answered {status}: {ADVICE}")
        with suppress(ValueError, RecursionError, AttributeError):
            found = json.loads(body or b"")
            # Brave's results are one level deeper.
            return self._hits(found.get("web", found).get("results"))
        raise ToolError(f"{self.name} answered with something that is not its JSON; {ADVICE}")

    def _hits(self, results: Any) -> list[Place]:
        hits = (
            Place(
                _plain(result.get("title"), MAX_TITLE_CHARS),
                _address(result.get("url")),
                _plain(result.get(self.snippet), MAX_SNIPPET_CHARS),
            )
            for result in (results if isinstance(results, list) else ())
            if isinstance(result, dict)
        )
        return [hit for hit in hits if hit.url and hit.title][:MAX_HITS]


def searxng(base_url: str, http: httpx2.AsyncClient) -> WebSearch:
    """Return the search of a SearXNG instance, whose `search.formats` must list `json`."""
    parameters = {"format": "json", "categories": "general,map"}
    url = f"{base_url.rstrip('/')}/search"
    return WebSearch(http, "SearXNG", url, parameters, snippet="content")


def brave(api_key: SecretStr, http: httpx2.AsyncClient, base_url: str = BRAVE_URL) -> WebSearch:
    """Return the search of the Brave Search API."""
    return WebSearch(
        http,
        "Brave Search",
        f"{base_url.rstrip('/')}/res/v1/web/search",
        {"count": str(MAX_HITS)},
        snippet="description",
        headers={"X-Subscription-Token": api_key.get_secret_value()},
    )


def _address(value: object) -> str:
    """Return the address of a web page; empty if it is none, or too long to be tapped."""
    url = value.strip() if isinstance(value, str) else ""
    is_shown = len(url) <= MAX_URL_CHARS and url.isprintable() and " " not in url
    return url if is_shown and get_domain(url) else ""


def _plain(value: object, longest: int) -> str:
    """Return a text without the provider's highlighting and invisible characters, cut if long."""
    untagged = TAG.sub("", strip_invisible(value)) if isinstance(value, str) else ""
    return clip(on_one_line(html.unescape(untagged)), longest)


@dataclass(frozen=True, slots=True)
class SearchLink:
    """A query and the address of a search for it. It is no evidence: the model wrote the query."""

    query: str
    url: str


@dataclass(frozen=True, slots=True)
class Places:
    """The queries and their results. `note` says why there are links instead of results."""

    queries: Queries
    results: tuple[Place, ...] = ()
    note: str = ""
    is_search_down: bool = False

    @property
    def links(self) -> list[SearchLink]:
        """Return a link to a web search for every query."""
        return [SearchLink(query, SEARCH_URL + quote_plus(query)) for query in self.queries.queries]

    def reply(self, *messages: str) -> Reply:
        """Return the reply of a turn, which these messages show, in Markdown."""
        return Reply(
            text="\n\n".join(messages),
            parts=messages,
            outcome="fallback" if self.is_search_down else self.queries.outcome,
            retries=self.queries.retry_count,
            error_types=self.queries.error_types,
            answer=self,
            prompt=self.queries.prompt,
        )


async def find_places(
    category: str, place: str, *, run: Run, wish: str = "", search: WebSearch | None = None
) -> Places:
    """Return at most 20 places of a category in `place`: the merged results of ten queries.

    There are no results without a search provider, or if it fails or takes over 15 s. Raises the
    errors of `generate_queries`.
    """
    queries = await generate_queries(category, place, run=run, wish=on_one_line(wish))
    if search is None:
        return Places(queries, note=translate("no_place_search"))
    with run.span.child("retrieve.places", "retriever", input=list(queries.queries)) as retriever:
        hits, errors = await _search_all(search, queries.queries)
        found = _merge(hits)
        metadata = {"found": len(found), "failed": len(errors)}
        retriever.update(output=[result.url for result in found], metadata=metadata)
        if errors:
            log.warning("%d searches for places failed, the first: %s", len(errors), errors[0])
            retriever.update(metadata={"error": errors[0]}, level="WARNING")
    if found:
        return Places(queries, found)
    is_down = len(errors) == len(queries.queries)
    note = translate("place_search_failed" if is_down else "no_places")
    return Places(queries, note=note, is_search_down=is_down)


async def _search_all(
    search: WebSearch, queries: Sequence[str]
) -> tuple[dict[str, list[Place]], list[str]]:
    """Return the hits by query, and the errors of failed queries; search three at a time."""
    errors, concurrency = list[str](), asyncio.Semaphore(3)
    deadline = asyncio.get_running_loop().time() + SEARCH_SECONDS

    async def look_for(query: str) -> list[Place]:
        try:
            async with asyncio.timeout_at(deadline), concurrency:
                return await search.search(query)
        except ToolError as error:
            errors.append(str(error))
        except TimeoutError:
            errors.append(f"the place search took longer than {SEARCH_SECONDS:g} s")
        return []

    found = await asyncio.gather(*map(look_for, queries))
    return dict(zip(queries, found, strict=True)), errors


def _merge(hits: Mapping[str, Sequence[Place]]) -> tuple[Place, ...]:
    """Return the places of all hits, at most 20, the best first.

    Hits with one address, or with one site and title, are one place; the first hit gives its title,
    URL and snippet. Places that many queries rank high come first (reciprocal ranks).
    """
    places, urls = dict[str, Place](), dict[tuple[str, ...], str]()
    scores: defaultdict[str, float] = defaultdict(float)
    for query, found in hits.items():
        for rank, hit in enumerate(found, start=1):
            parts = urlsplit(hit.url)
            site = SAME_SITE.sub("", (parts.hostname or "").rstrip("."))
            keys = [
                ("address", site, parts.path.rstrip("/")),
                ("title", site, *split_words(hit.title)),
            ]
            url = next((urls[key] for key in keys if key in urls), hit.url)
            urls |= dict.fromkeys(keys, url)
            place = places.setdefault(url, replace(hit, url=url))
            if query not in place.queries:
                scores[url] += 1 / (RANK_CONSTANT + rank)
                places[url] = replace(place, queries=(*place.queries, query))
    return tuple(sorted(places.values(), key=lambda place: -scores[place.url])[:MAX_RESULTS])


CategoryName = Annotated[
    str,
    AfterValidator(category_named),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(categories()))),
]
PlaceName = Annotated[
    str,
    Field(max_length=200, description="A town, district or region, as the guest named it."),
]
Wish = Annotated[str, Field(max_length=80, description="What else it is to be: natural wine.")]


def find_places_tool(search: WebSearch | None = None) -> Tool:
    """Return the tool find_places over `search`; its requests count in the turn's ledger."""

    async def find(
        category: CategoryName, place: PlaceName, run: Run, wish: Wish = ""
    ) -> ToolOutput:
        """Wine shops, wine bars, wineries, tastings, restaurants or courses in a place. Name only
        what it returns, with its link. It knows no opening hours and no ratings: neither do you.
        """
        limits = replace(run.limits, seconds=QUERIES_SECONDS)
        # Without a search provider, links made by rules will do: ask no model.
        run = replace(run, limits=limits, models=run.models if search else ())
        try:
            found = await find_places(category, place, run=run, wish=wish, search=search)
        except (QueryGenerationFailed, ValueError) as error:
            raise ToolError(str(error)) from None
        shown: Sequence[Place | SearchLink]
        shown = found.results[:SHOWN_RESULTS] or found.links[:SHOWN_LINKS]
        key = "places" if found.results else "search_links"
        content: dict[str, Any] = {key: [asdict(result) for result in shown]}
        if found.note:
            content["note"] = found.note
        return ToolOutput(content, {result.url: result for result in shown})

    return replace(tool(find), name="find_places", seconds=QUERIES_SECONDS + SEARCH_SECONDS)
