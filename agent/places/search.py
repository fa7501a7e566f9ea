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
from agent.places.queries import on_one_line
from agent.text import pattern

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


Point = tuple[float, float]
"""Degrees north and east."""


@dataclass(frozen=True, slots=True)
class PlaceHit:
    """One result of a place search, in the source's own words."""

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

        The language is left out: Brave has codes of its own, and tells it from the words.
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
    """Return the JSON object that a provider answers with.

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
    """Return advice for an operator on a provider that answers with `status`."""
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
    """Return the point of a result of a map, or None."""
    with suppress(TypeError, ValueError):
        north, east = float(str(latitude)), float(str(longitude))
        if abs(north) <= 90 and abs(east) <= 180:
            return north, east
    return None


def _address(value: object) -> str:
    """Return the address of a web page; empty if it is none, or too long to be tapped."""
    url = value.strip() if isinstance(value, str) else ""
    return url if len(url) <= LONGEST_URL and url.isprintable() and WEB.fullmatch(url) else ""


def _plain(value: object, longest: int) -> str:
    """Return a text without the provider's highlighting, of bounded length.

    Invisible characters go too: they could make the address beside a title read backwards.
    """
    text = html.unescape(TAG.sub("", value)) if isinstance(value, str) else ""
    shown = on_one_line(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"
