"""Answers of other people's servers that never end, or unpack to far more than they are."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import cache

import httpx2
import pytest
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from agent.documents.embedding import Embedder, EmbeddingError
from agent.engine.errors import ToolError
from agent.places.find import brave
from agent.tracing.delivery import LangfuseApi
from agent.tracing.langfuse_project import Project, Unavailable
from bot.telegram.connection import TelegramRequests, fetch_updates
from tests.doubles.server import LoopbackServer, gone

MEGABYTE = b" " * 1_000_000
MANY = 300
MOST = 60_000_000
"""Bytes that the process may grow by."""
SECONDS = 5.0
Ask = Callable[[str], Awaitable[object]]


class Endless(LoopbackServer):
    """Answers everything with `MANY` megabytes: plain, or packed twice."""

    def __init__(self, kind: str, status: int) -> None:
        methods = ["GET", "POST"]
        super().__init__([Route("/{path:path}", self._answer, methods=methods)])
        self.kind, self.status = kind, status
        self.body = packed_twice() if kind == "twice" else b""
        self.sent = 0

    async def _answer(self, request: Request) -> Response:
        headers = {"content-encoding": ENCODINGS[self.kind]}
        return StreamingResponse(
            self._parts(request), self.status, headers, "application/json"
        )

    async def _parts(self, request: Request) -> AsyncIterator[bytes]:
        if self.body:
            self.sent += len(self.body)
            yield self.body
            return
        yield b"{"
        while not gone(request) and self.sent < MANY * len(MEGABYTE):
            yield MEGABYTE
            self.sent += len(MEGABYTE)


ENCODINGS = {"plain": "identity", "twice": "gzip, gzip"}


@cache
def packed_twice() -> bytes:
    """Return all that is answered, packed and packed again."""
    return gzip.compress(gzip.compress(b"{" + MEGABYTE * MANY, 1))


async def _embedding(url: str) -> None:
    async with httpx2.AsyncClient() as http:
        with suppress(EmbeddingError):
            await Embedder(http, model="m", base_url=url).embed(["oak"], SECONDS)


async def _langfuse(url: str) -> None:
    api = LangfuseApi(Project(("pk", "sk"), url), seconds=SECONDS)
    with suppress(Unavailable):
        await api.delete_traces("user")
    await api.aclose()


async def _brave(url: str) -> None:
    async with httpx2.AsyncClient() as http:
        with suppress(ToolError):
            await brave(SecretStr("key"), http, url).search("wine bar")


async def _telegram(url: str) -> None:
    requests = TelegramRequests(read_seconds=SECONDS)
    with suppress(Exception):
        await requests.do_request(f"{url}/getMe", "POST")
    await requests.shutdown()


async def _polling(url: str) -> None:
    async def accept(updates: object) -> None:
        raise AssertionError(updates)

    async def stop(_: float) -> None:
        raise asyncio.CancelledError

    requests = TelegramRequests(read_seconds=SECONDS)
    with suppress(asyncio.CancelledError):
        await fetch_updates(requests, f"{url}/getUpdates", accept, stop)
    await requests.shutdown()


ASKED: dict[str, Ask] = {
    "embedding": _embedding,
    "Langfuse": _langfuse,
    "Brave": _brave,
    "Telegram": _telegram,
    "updates": _polling,
}


@pytest.mark.parametrize(("kind", "status"), [("plain", 500), ("twice", 200)])
@pytest.mark.parametrize("name", ASKED)
async def test_an_answer_without_end_is_not_taken_in(
    name: str, kind: str, status: int
) -> None:
    with Endless(kind, status) as server:
        tracemalloc.start()
        try:
            await ASKED[name](server.base_url)
            grown = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert grown < MOST
    assert server.sent < MOST
