"""Web searches for places: SearXNG, self-hosted, and Brave Search, with a key.

Only the provider is asked; the pages it names are never fetched.
"""

import asyncio
import html
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx2
from pydantic import SecretStr

from agent import lengths
from agent.engine.errors import ToolError
from agent.engine.feedback import clip
from agent.markdown import domain, visible
from agent.places.queries import on_one_line
from agent.text import pattern

SECONDS: Final = 8.0
LONGEST_URL: Final = 2000
LONGEST_TITLE: Final = 200
LONGEST_SNIPPET: Final = 1000
BRAVE_URL: Final = "https://api.search.brave.com"
ADVICE: Final = "check its address, its key and its limits; SearXNG must allow the json format"
TAG: Final = pattern(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class PlaceHit:
    """One result of a place search, in the source's own words."""

    title: str
    url: str
    snippet: str = ""


class PlaceSearch(Protocol):
    """A web search for places: wine shops, bars, wineries."""

    async def search(self, query: str, limit: int = 10) -> list[PlaceHit]:
        """Return results for one query, best first. Raises ToolError when it is down."""
        ...


class SearxngSearch:
    """A SearXNG instance; its settings must list `json` under `search.formats`."""

    def __init__(self, base_url: str, http: httpx2.AsyncClient) -> None:
        self._url = f"{base_url.rstrip('/')}/search"
        self._http = http

    async def search(self, query: str, limit: int = 10) -> list[PlaceHit]:
        """Return results for one query, best first. Raises ToolError when it is down."""
        parameters = {"q": query, "format": "json", "categories": "general,map"}
        found = await _get(self._http, self._url, parameters, {}, "SearXNG")
        return _hits(found.get("results"), "content", limit)


class BraveSearch:
    """The Brave Search API."""

    def __init__(
        self, api_key: SecretStr, http: httpx2.AsyncClient, *, base_url: str = BRAVE_URL
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/res/v1/web/search"
        self._api_key = api_key
        self._http = http

    async def search(self, query: str, limit: int = 10) -> list[PlaceHit]:
        """Return results for one query, best first. Raises ToolError when it is down."""
        parameters = {"q": query, "count": str(min(limit, 20))}
        headers = {"X-Subscription-Token": self._api_key.get_secret_value()}
        found = await _get(self._http, self._url, parameters, headers, "Brave Search")
        web = found.get("web")
        return _hits(web.get("results") if isinstance(web, dict) else None, "description", limit)


async def _get(
    http: httpx2.AsyncClient,
    url: str,
    parameters: Mapping[str, str],
    headers: Mapping[str, str],
    name: str,
) -> dict[str, Any]:
    """Return the JSON object that a provider answers with.

    Raises:
        ToolError: it cannot be reached, refuses, or answers with something else; the text holds
            neither key nor URL.
    """
    try:
        async with (
            asyncio.timeout(SECONDS),
            http.stream("GET", url, params=parameters, headers=headers) as response,
        ):
            body = await lengths.body_of(response, lengths.FOUND_BYTES)
    except TimeoutError:
        raise ToolError(f"{name} did not answer within {SECONDS:g} s") from None
    except httpx2.HTTPError as error:
        raise ToolError(f"{name} could not be reached ({type(error).__name__})") from None
    if (status := response.status_code) != 200:
        raise ToolError(f"{name} answered {status}: {ADVICE}")
    with suppress(ValueError, RecursionError):
        found = json.loads(body or b"")
        if isinstance(found, dict):
            return found
    raise ToolError(f"{name} answered with something that is not its JSON; check its address")


def _hits(results: object, snippet: str, limit: int) -> list[PlaceHit]:
    if not isinstance(results, list):
        return []
    hits = (
        PlaceHit(
            _plain(result.get("title"), LONGEST_TITLE),
            _address(result.get("url")),
            _plain(result.get(snippet), LONGEST_SNIPPET),
        )
        for result in results
        if isinstance(result, dict)
    )
    return [hit for hit in hits if hit.url and hit.title][:limit]


def _address(value: object) -> str:
    """Return the address of a web page; empty if it is none, or too long to be tapped."""
    url = value.strip() if isinstance(value, str) else ""
    is_shown = len(url) <= LONGEST_URL and url.isprintable() and " " not in url
    return url if is_shown and domain(url) else ""


def _plain(value: object, longest: int) -> str:
    """Return a text without the provider's highlighting and invisible characters, cut if long."""
    untagged = TAG.sub("", visible(value)) if isinstance(value, str) else ""
    return clip(on_one_line(html.unescape(untagged)), longest)
