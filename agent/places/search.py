"""Web searches for places: SearXNG, self-hosted, and Brave Search, with a key.

Only the provider is asked; the pages it names are never fetched.
"""

import asyncio
import html
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from pydantic import SecretStr

from agent import lengths
from agent.engine.errors import ToolError
from agent.markdown import domain, visible
from agent.places.queries import on_one_line
from agent.text import clip, pattern

SECONDS: Final = 8.0
LONGEST_URL: Final = 2000
LONGEST_TITLE: Final = 200
LONGEST_SNIPPET: Final = 1000
MAX_HITS: Final = 10
BRAVE_URL: Final = "https://api.search.brave.com"
ADVICE: Final = "check its address, its key and its limits; SearXNG must allow the json format"
TAG: Final = pattern(r"<[^<>]*>")


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
    """A search for wine shops, bars, wineries: its address, what is sent, the field of snippets."""

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
        asked = self.http.stream("GET", self.url, params=parameters, headers=self.headers)
        try:
            async with asyncio.timeout(SECONDS), asked as response:
                body = await lengths.body_of(response, lengths.FOUND_BYTES)
        except TimeoutError:
            raise ToolError(f"{self.name} did not answer within {SECONDS:g} s") from None
        except httpx2.HTTPError as error:
            reason = type(error).__name__
            raise ToolError(f"{self.name} could not be reached ({reason})") from None
        if (status := response.status_code) != httpx2.codes.OK:
            raise ToolError(f"{self.name} answered {status}: {ADVICE}")
        with suppress(ValueError, RecursionError):
            found = json.loads(body or b"")
            if isinstance(found, dict):
                found = found.get("web", found)  # Brave's results are one level deeper
                return self._hits(found.get("results") if isinstance(found, dict) else None)
        raise ToolError(f"{self.name} answered with something that is not its JSON; {ADVICE}")

    def _hits(self, results: Any) -> list[Place]:
        hits = (
            Place(
                _plain(result.get("title"), LONGEST_TITLE),
                _address(result.get("url")),
                _plain(result.get(self.snippet), LONGEST_SNIPPET),
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
    is_shown = len(url) <= LONGEST_URL and url.isprintable() and " " not in url
    return url if is_shown and domain(url) else ""


def _plain(value: object, longest: int) -> str:
    """Return a text without the provider's highlighting and invisible characters, cut if long."""
    untagged = TAG.sub("", visible(value)) if isinstance(value, str) else ""
    return clip(on_one_line(html.unescape(untagged)), longest)
