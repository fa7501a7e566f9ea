"""What documents and places may use: an embedding source, and a SearXNG instance."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.server import JsonObject, LoopbackServer

Embedding = Callable[[list[str]], Awaitable[list[object]] | list[object]]
"""Makes what stands for the vectors of texts."""
SHOP: JsonObject = {
    "title": "Cave <b>des</b> Halles",
    "url": "https://halles.example/vins",
    "content": "Wines of the Rhône.",
}


class Web(LoopbackServer):
    """`SECOND_BASE_URL` is `base_url` with /v1 behind it, `SEARXNG_URL` is `base_url`.

    A vector counts vowels and consonants, unless another `embedding` makes them. Every query finds
    the same shop. `asked` are the texts, `queries` the queries, `keys` the Authorization headers
    that came.
    """

    def __init__(self, embedding: Embedding | None = None) -> None:
        super().__init__(
            [
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/search", self._search),
            ]
        )
        self.embedding: Embedding = embedding or vectors
        self.asked: list[str] = []
        self.queries: list[str] = []
        self.keys: list[str | None] = []

    async def _embeddings(self, request: Request) -> Response:
        body: JsonObject = await request.json()
        self.keys.append(request.headers.get("authorization"))
        self.asked.extend(body["input"])
        made = self.embedding(body["input"])
        if isawaitable(made):
            made = await made
        data: list[dict[str, Any]] = [
            {"object": "embedding", "index": index, "embedding": each}
            for index, each in enumerate(made)
        ]
        # Servers need not keep the order; the index is what counts.
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse(
            {"object": "list", "model": body["model"], "data": data[::-1], "usage": usage}
        )

    async def _search(self, request: Request) -> Response:
        if request.query_params.get("format") != "json":
            return Response(status_code=403)
        self.queries.append(request.query_params["q"])
        return JSONResponse({"results": [SHOP]})


def vectors(texts: list[str]) -> list[object]:
    return [vector(text) for text in texts]


def vector(text: str) -> list[float]:
    vowels = sum(character in "aeiou" for character in text.lower())
    return [vowels + 1.0, len(text) - vowels + 1.0]
