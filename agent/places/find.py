"""Places nearby: ten queries, what a web search returned for them, and nothing made up.

Searches are SearXNG (self-hosted) and Brave (keyed): only the provider is asked, and the pages it
names are never fetched. URLs are shown, never
fetched. Without a search provider the queries are links to tap.
"""

import asyncio
import html
import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Final, Protocol
from urllib.parse import parse_qsl, quote_plus, urlsplit

import httpx2
from pydantic import AfterValidator, Field, SecretStr

from agent import lengths
from agent.engine.errors import ToolError
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.span import Span
from agent.engine.tools import Tool, ToolOutput, tool
from agent.i18n import say
from agent.places.distinct import site_pages
from agent.places.queries import (
    Queries,
    QueryGenerationFailed,
    categories,
    category_named,
    generate_queries,
    language_of_place,
    on_one_line,
)
from agent.text import pattern, words
from agent.turn import Reply

log = logging.getLogger(__name__)

SEARCH_LINK: Final = "https://duckduckgo.com/?q={query}"
HITS_PER_QUERY: Final = 10
MAX_RESULTS: Final = 20
SEARCHES_AT_ONCE: Final = 3
SEARCH_SECONDS: Final = 15.0
"""How long all searches together may take."""
RANK_CONSTANT: Final = 60
EARTH_KILOMETRES: Final = 6371.0
COORDINATES: Final = pattern(r"(-?\d{1,2}(?:\.\d{1,8})?)\s*,\s*(-?\d{1,3}(?:\.\d{1,8})?)")
"""A place that is a location: degrees north and east."""
OF_A_LANGUAGE: Final = pattern(r"[a-z]{2}(?:[-_][a-z]{2})?")
"""A part of a path that tells the language of a page."""
SAME_SITE: Final = pattern(r"\A(?:(?:www\d?|m|mobile|amp)\.)+([^.]+\.)")
"""What stands before a domain without making it another."""
TRACKING: Final = pattern(r"(?i)\A(?:utm_.*|.*clid|srsltid|ref|source)\Z")

SHOWN_RESULTS: Final = 8
TOOL_LIMITS: Final = Limits(seconds=9)
TOOL_SECONDS: Final = 5.0
"""With the time for the queries this stays below that of a tool, or nothing would be shown."""


Point = tuple[float, float]
"""Degrees north and east."""


@dataclass(frozen=True, slots=True)
class PlaceHit:
    """One result of a place search: nothing in it that the source did not say."""

    title: str
    url: str
    snippet: str = ""
    point: Point | None = None


class PlaceSearch(Protocol):
    """A web search for places: wine shops, bars, wineries."""

    async def search(self, query: str, limit: int = 10, language: str = "") -> list[PlaceHit]:
        """Return results for one query, best first; `language` is a code, empty if not known.

        Raises ToolError when it is down.
        """
        ...


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """One place as its sources tell it, and the queries that found it, in their order."""

    title: str
    url: str
    snippet: str
    queries: tuple[str, ...]
    point: Point | None = None
    kilometres: float | None = None
    """How far it is from the location that was sent, if both are known."""

    @property
    def said(self) -> str:
        """What the sources say of it; the queries are not theirs."""
        return "\n".join(filter(None, (self.title, self.snippet, self.distance)))

    @property
    def distance(self) -> str:
        """How far it is, in words; empty if that is not known."""
        return (
            "" if self.kilometres is None else say("distance", kilometres=f"{self.kilometres:.1f}")
        )


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

    def reply(self, text: str) -> Reply:
        """Make the reply of a turn of it; `text` is how it reads."""
        failed = bool(self.failed_searches) and not self.results
        return Reply(
            text=text,
            outcome="fallback" if failed else self.queries.outcome,
            retries=self.queries.retry_count,
            error_types=self.queries.error_types,
            answer=self,
        )


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
        return Places(queries, (), links, say("no_place_search"))
    with run.span.child("retrieve.places", "retriever", input=list(queries.queries)) as retriever:
        answers = await _search_all(search, queries, search_seconds)
        errors = [each for each in answers if isinstance(each, ToolError)]
        found = merged(
            (query, each)
            for query, each in zip(queries.queries, answers, strict=True)
            if not isinstance(each, ToolError)
        )
        found = nearest(found, queries.place)
        _record(retriever, found, errors)
    none = "place_search_failed" if len(errors) == len(answers) else "no_places"
    return Places(queries, found, links, "" if found else say(none), len(errors))


async def _search_all(
    search: PlaceSearch, queries: Queries, seconds: float
) -> list[Sequence[PlaceHit] | ToolError]:
    """The hits of each query, or why there are none; a few at a time."""
    free = asyncio.Semaphore(SEARCHES_AT_ONCE)
    deadline = asyncio.get_running_loop().time() + seconds
    language = language_of_place(queries.place)

    async def one(query: str) -> Sequence[PlaceHit] | ToolError:
        try:
            async with asyncio.timeout_at(deadline), free:
                return await search.search(query, HITS_PER_QUERY, language)
        except ToolError as error:
            return error
        except TimeoutError:
            return ToolError(f"the place search took longer than {seconds:g} s")

    return await asyncio.gather(*map(one, queries.queries))


def _record(span: Span, found: Sequence["FoundPlace"], errors: Sequence[ToolError]) -> None:
    span.update(
        output=[result.url for result in found],
        metadata={"found": len(found), "failed": len(errors)},
    )
    if errors:
        log.warning("%d searches for places failed, the first: %s", len(errors), errors[0])
        span.update(metadata={"error": str(errors[0])}, level="WARNING")


@dataclass(frozen=True, slots=True)
class Address:
    """Where on the web a place is: of a site, the pages that are about the same have one path."""

    domain: str
    path: tuple[str, ...]
    asked: tuple[str, ...]


@dataclass(slots=True)
class _Merged:
    """The hits of one place; the first seen gives title, URL and snippet."""

    hit: PlaceHit
    score: float = 0
    point: Point | None = None
    queries: dict[str, None] = field(default_factory=dict)
    addresses: set[Address] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def holds(self, address: Address, name: str) -> bool:
        """Whether a page of this site is about this place.

        It is where the address is the same, or the name is and one address lies below the other:
        two branches of one house stay two.
        """
        if address in self.addresses:
            return True
        paths = (each.path for each in self.addresses)
        return name in self.names and any(
            path[: len(address.path)] == address.path[: len(path)] for path in paths
        )


def merged(found: Iterable[tuple[str, Sequence[PlaceHit]]]) -> tuple[FoundPlace, ...]:
    """Merge hits of several queries: each place once, best first.

    What many queries rank high comes first (reciprocal ranks are summed).
    """
    sites: dict[str, list[_Merged]] = {}
    for query, hits in found:
        for rank, hit in enumerate(hits, start=1):
            address = address_of(hit.url)
            if address is None:
                continue
            site, name = sites.setdefault(address.domain, []), " ".join(words(hit.title))
            place = next((each for each in site if each.holds(address, name)), None)
            if place is None:
                place = _Merged(hit)
                site.append(place)
            place.addresses.add(address)
            place.names.add(name)
            place.point = place.point or hit.point
            if query not in place.queries:
                place.queries[query] = None
                place.score += 1 / (RANK_CONSTANT + rank)
    places = (each for site in sites.values() for each in site)
    ranked = sorted(places, key=lambda place: -place.score)[:MAX_RESULTS]
    return tuple(
        FoundPlace(
            each.hit.title, each.hit.url, each.hit.snippet, tuple(each.queries), point=each.point
        )
        for each in ranked
    )


def address_of(url: str) -> Address | None:
    """Tell where on the web a page is; None if it is none.

    Neither the address's `www.` or `m.` counts, nor what only says where a visitor comes from, the
    language of a page, or that it is the one with the menu or the telephone number.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        domain = SAME_SITE.sub(lambda found: found[1], host.encode("idna").decode())
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not domain:
        return None
    path = [part for part in parts.path.lower().split("/") if part]
    kept = [part for part in path if part not in site_pages() and not OF_A_LANGUAGE.fullmatch(part)]
    asked = [pair for pair in parse_qsl(parts.query) if not TRACKING.match(pair[0])]
    return Address(domain, tuple(kept), tuple(sorted("=".join(pair) for pair in asked)))


def nearest(found: Sequence[FoundPlace], place: str) -> tuple[FoundPlace, ...]:
    """Return places with how far they are from a location, nearest first; others as they are."""
    here = COORDINATES.fullmatch(place.strip())
    if here is None:
        return tuple(found)
    start = float(here[1]), float(here[2])
    told = [
        replace(each, kilometres=round(kilometres(start, each.point), 1)) if each.point else each
        for each in found
    ]
    return tuple(
        sorted(told, key=lambda each: math.inf if each.kilometres is None else each.kilometres)
    )


def kilometres(one: Point, other: Point) -> float:
    """Say how far two points are from each other, along the ground."""
    north, east, other_north, other_east = map(math.radians, (*one, *other))
    height = math.sin((other_north - north) / 2) ** 2
    width = math.sin((other_east - east) / 2) ** 2 * math.cos(north) * math.cos(other_north)
    return 2 * EARTH_KILOMETRES * math.asin(math.sqrt(min(1.0, height + width)))


CategoryName = Annotated[
    str,
    AfterValidator(category_named),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(categories()))),
]
PlaceName = Annotated[
    str,
    Field(max_length=200, description="A town, district or region, as the guest named it."),
]


def find_places_tool(search: PlaceSearch | None = None) -> Tool:
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


SECONDS: Final = 8.0
LONGEST_URL: Final = 2000
LONGEST_TITLE: Final = 200
LONGEST_SNIPPET: Final = 1000
BRAVE_URL: Final = "https://api.search.brave.com"
ADVICE: Final = {
    3: "check its address: it sends on to another",
    401: "check its key",
    403: "check its key, or allow the json format in the settings of SearXNG",
    404: "check its address",
    422: "check its key",
    429: "its limit of requests is reached, wait or raise it",
}
TAG: Final = pattern(r"<[^<>]*>")
WEB: Final = pattern(r"(?i)https?://\S+")


class SearxngSearch:
    """A SearXNG instance; its settings must list `json` under `search.formats`."""

    def __init__(self, base_url: str, http: httpx2.AsyncClient) -> None:
        self._url = f"{base_url.rstrip('/')}/search"
        self._http = http

    async def search(self, query: str, limit: int = 10, language: str = "") -> list[PlaceHit]:
        """Return results for one query, best first. Raises ToolError when it is down."""
        parameters = {"q": query, "format": "json", "categories": "general,map"}
        if language:
            parameters["language"] = language
        data = await _get(self._http, self._url, parameters, {}, "SearXNG")
        return _hits(data.get("results"), "content", limit)


class BraveSearch:
    """The Brave Search API."""

    def __init__(
        self, api_key: SecretStr, http: httpx2.AsyncClient, *, base_url: str = BRAVE_URL
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/res/v1/web/search"
        self._api_key = api_key
        self._http = http

    async def search(self, query: str, limit: int = 10, language: str = "") -> list[PlaceHit]:
        """Return results for one query, best first. Raises ToolError when it is down.

        It tells languages by codes of its own, and the query's from its words.
        """
        parameters = {"q": query, "count": str(min(limit, 20))}
        headers = {"X-Subscription-Token": self._api_key.get_secret_value()}
        data = await _get(self._http, self._url, parameters, headers, "Brave Search")
        web = data.get("web")
        return _hits(web.get("results") if isinstance(web, Mapping) else None, "description", limit)


async def _get(
    http: httpx2.AsyncClient,
    url: str,
    parameters: Mapping[str, str],
    headers: Mapping[str, str],
    name: str,
) -> Mapping[str, Any]:
    """The JSON object that a provider answers with.

    Raises:
        ToolError: it cannot be reached, refuses, or answers with something else; the text holds
            neither key nor URL.
    """
    try:
        async with (
            asyncio.timeout(SECONDS),
            http.stream(
                "GET", url, params=parameters, headers=headers, timeout=SECONDS
            ) as response,
        ):
            body = await lengths.body_of(response, lengths.FOUND_BYTES)
    except TimeoutError:
        raise ToolError(f"{name} did not answer within {SECONDS:g} s") from None
    except httpx2.HTTPError as error:
        raise ToolError(f"{name} could not be reached ({type(error).__name__})") from None
    if response.status_code != 200:
        raise ToolError(f"{name} answered {response.status_code}: {advice(response.status_code)}")
    with suppress(ValueError, RecursionError):
        data = json.loads(body) if body else None
        if isinstance(data, Mapping):
            return data
    raise ToolError(f"{name} answered with something that is not its JSON; check its address")


def advice(status: int) -> str:
    """Say what an operator does about a provider that answers with `status`."""
    return ADVICE.get(status) or ADVICE.get(status // 100, "try again later")


def _hits(results: object, snippet: str, limit: int) -> list[PlaceHit]:
    if not isinstance(results, list):
        return []
    found = (_hit(result, snippet) for result in results if isinstance(result, Mapping))
    return [hit for hit in found if hit.url and hit.title][:limit]


def _hit(result: Mapping[str, Any], snippet: str) -> PlaceHit:
    return PlaceHit(
        _plain(result.get("title"), LONGEST_TITLE),
        _address(result.get("url")),
        _plain(result.get(snippet), LONGEST_SNIPPET),
        _point(result.get("latitude"), result.get("longitude")),
    )


def _point(latitude: object, longitude: object) -> Point | None:
    """Where a result of a map is, if it is one."""
    with suppress(TypeError, ValueError):
        north, east = float(str(latitude)), float(str(longitude))
        if abs(north) <= 90 and abs(east) <= 180:
            return north, east
    return None


def _address(value: object) -> str:
    """The address of a web page as it is; nothing if it is none, or too long to be tapped."""
    url = value.strip() if isinstance(value, str) else ""
    return url if len(url) <= LONGEST_URL and url.isprintable() and WEB.fullmatch(url) else ""


def _plain(value: object, longest: int) -> str:
    """Text without markup, for providers highlight what was searched for, and of bounded length.

    Nor does it hold what cannot be seen: a title could make the address beside it read backwards.
    """
    text = html.unescape(TAG.sub("", value)) if isinstance(value, str) else ""
    shown = on_one_line(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"
