"""What works, what is not configured, and what to do about what is wrong.

A check is an async function that returns what it found or raises `Ailment`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import httpx

from agent.documents.embedding_local import LocalModelError
from agent.documents.store import Embedder
from agent.engine.errors import ToolError
from agent.engine.refusals import advice
from agent.places.search import PlaceSearch

SECONDS: Final = 5
"""The longest a check may take."""

State = Literal["ok", "off", "wrong"]
SIGNS: Final[Mapping[State, str]] = {"ok": "✓", "off": "–", "wrong": "✗"}

NO_MODEL: Final = (
    "the house sommelier answers; set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"
)
NO_TOKEN: Final = "set TELEGRAM_BOT_TOKEN to what @BotFather gives you"  # noqa: S105
NO_EMBEDDINGS: Final = (
    "documents are found by their words; set EMBEDDING_MODEL to find them by meaning too"
)
NO_PLACE_SEARCH: Final = (
    "places are links to a web search; set SEARXNG_URL or BRAVE_API_KEY to list them"
)
NO_LANGFUSE: Final = "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to trace turns"

GUESSABLE_KEY: Final = (
    "set TRACE_USER_KEY to a long random text, as `openssl rand -hex 32` prints one: with the "
    "default, whoever reads traces and knows Telegram ids can tell whose hash is whose"
)

OPENAI_URL: Final = "https://api.openai.com/v1"


class Ailment(Exception):
    """Something is wrong; the text says what, and what to do about it. It holds no secret."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    state: State
    text: str

    def __str__(self) -> str:
        return f"{SIGNS[self.state]} {self.name}: {self.text}"


Check = Callable[[], Awaitable[str]]


async def examine(checks: Mapping[str, Check | str]) -> list[Finding]:
    """Run every check at once; in place of a check, a text says that it is not configured."""
    return list(await asyncio.gather(*(_find(name, check) for name, check in checks.items())))


async def _find(name: str, check: Check | str) -> Finding:
    if isinstance(check, str):
        return Finding(name, "off", f"not configured; {check}")
    try:
        async with asyncio.timeout(SECONDS * 2):
            return Finding(name, "ok", await check())
    except TimeoutError:
        return Finding(name, "wrong", f"no answer within {SECONDS * 2} seconds")
    except Ailment as error:
        return Finding(name, "wrong", str(error))


async def check_model(base_url: str | None, key: str | None, model: str) -> str:
    """Whether the model's server lets us in, and knows the model."""
    url = (base_url or OPENAI_URL).rstrip("/")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    response = await _get(f"{url}/models", "OPENAI_BASE_URL", headers=headers)
    if response.status_code != httpx.codes.OK:
        raise Ailment(advice(response.status_code))
    known = [str(entry.get("id")) for entry in _json(response).get("data") or []]
    if known and model not in known:
        some = ", ".join(known[:5])
        return f"the server answers, but does not list LLM_MODEL {model}; it lists {some}"
    return f"{model} at {url}"


async def check_embeddings(embedder: Embedder) -> str:
    """Whether the embedding source makes vectors."""
    try:
        async with asyncio.timeout(SECONDS):
            (vector,) = await embedder.embed(["wine"])
    except TimeoutError:
        raise Ailment(
            f"{embedder.name} made no vector within {SECONDS} seconds; a model on this machine may "
            "still be loading, or downloading: run this again when it is done"
        ) from None
    except LocalModelError as error:
        raise Ailment(str(error)) from None
    except Exception as error:
        status = getattr(error, "status_code", None)
        reason = f"{type(error).__name__}, {status}" if status else type(error).__name__
        raise Ailment(
            f"{embedder.name} makes no vectors ({reason}); check EMBEDDING_MODEL, "
            "EMBEDDING_BASE_URL and EMBEDDING_API_KEY"
        ) from None
    return f"{embedder.name}, vectors of {len(vector)} numbers"


async def check_places(search: PlaceSearch | None) -> str:
    """Whether the place search answers; one query is made."""
    if search is None:
        raise Ailment(NO_PLACE_SEARCH)
    try:
        hits = await search.search("wine")
    except ToolError as error:
        raise Ailment(str(error)) from None
    return f"the search answers, {len(hits)} results for a first query"


async def check_telegram(root: str, token: str) -> str:
    """Whether Telegram knows the bot."""
    response = await _get(f"{root}/bot{token}/getMe", "TELEGRAM_BASE_URL")
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.NOT_FOUND):
        raise Ailment("TELEGRAM_BOT_TOKEN is rejected; get a valid one from @BotFather")
    if response.status_code != httpx.codes.OK:
        raise Ailment(f"Telegram answers {response.status_code}; try again, or check its status")
    return f"this is @{(_json(response).get('result') or {}).get('username')}"


async def check_langfuse(root: str, public_key: str, secret_key: str) -> str:
    """Whether Langfuse takes the keys."""
    auth = httpx.BasicAuth(public_key, secret_key)
    response = await _get(f"{root}/api/public/projects", "LANGFUSE_BASE_URL", auth=auth)
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise Ailment(
            "the keys are rejected; check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, and that "
            "LANGFUSE_BASE_URL is the region they belong to"
        )
    if response.status_code != httpx.codes.OK:
        raise Ailment(f"Langfuse answers {response.status_code}; check LANGFUSE_BASE_URL")
    projects = _json(response).get("data") or []
    return f"traces go to {', '.join(str(project.get('name')) for project in projects) or root}"


async def _get(
    url: str,
    variable: str,
    *,
    headers: Mapping[str, str] | None = None,
    auth: httpx.Auth | None = None,
) -> httpx.Response:
    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            return await client.get(url, headers=headers, auth=auth)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Ailment(
            f"cannot be reached ({type(error).__name__}); check the network and {variable}"
        ) from None


def _json(response: httpx.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Ailment("the answer is not what such a server says; check the base URL")
    return body
