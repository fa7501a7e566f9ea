"""Web searches that are a `PlaceSearch`: SearXNG (self-hosted) and Brave (keyed).

Only the provider is asked. The pages it names are never fetched.
"""

import html
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import httpx2
from pydantic import SecretStr

from agent.engine.errors import ToolError
from agent.places.find import PlaceHit, Point
from agent.places.queries import on_one_line
from agent.text import pattern

SECONDS: Final = 8.0
MAX_BYTES: Final = 2_000_000
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
        response = await http.get(
            url, params=parameters, headers=headers, timeout=SECONDS, follow_redirects=False
        )
    except httpx2.HTTPError as error:
        raise ToolError(f"{name} could not be reached ({type(error).__name__})") from None
    if response.status_code != 200:
        raise ToolError(f"{name} answered {response.status_code}: {advice(response.status_code)}")
    with suppress(ValueError, RecursionError):
        data = json.loads(response.content) if len(response.content) <= MAX_BYTES else None
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
