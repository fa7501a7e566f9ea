"""Imitate the servers that searches use: an embedding server and a SearXNG instance."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.server import JsonObject, LoopbackServer

Embedding = Callable[[list[str]], Awaitable[list[object]] | list[object]]
"""Returns the vectors of texts; tests may return invalid ones."""
SHOP: JsonObject = {
    "title": "Cave <b>des</b> Halles",
    "url": "https://halles.example/vins",
    "content": "Wines of the Rhône.",
}


class Web(LoopbackServer):
    """Both servers: `SECOND_BASE_URL` is `base_url` + "/v1", `SEARXNG_URL` is `base_url`.

    By default a vector counts vowels and consonants. Every query finds the same shop.
    """

    def __init__(self, embedding: Embedding | None = None) -> None:
        super().__init__(
            [
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/search", self._search),
            ]
        )
        self.embedding: Embedding = embedding or embed
        self.embedded_texts: list[str] = []
        self.queries: list[str] = []
        self.keys: list[str | None] = []
        """The Authorization headers of the requests for embeddings."""

    async def _embeddings(self, request: Request) -> Response:
        body: JsonObject = await request.json()
        self.keys.append(request.headers.get("authorization"))
        self.embedded_texts.extend(body["input"])
        embeddings = self.embedding(body["input"])
        if isawaitable(embeddings):
            embeddings = await embeddings
        data: list[dict[str, Any]] = [
            {"object": "embedding", "index": index, "embedding": embedding}
            for index, embedding in enumerate(embeddings)
        ]
        # Servers may return any order: clients have to use the index.
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse(
            {
                "object": "list",
                "model": body["model"],
                "data": data[::-1],
                "usage": usage,
            }
        )

    async def _search(self, request: Request) -> Response:
        if request.query_params.get("format") != "json":
            return Response(status_code=403)
        self.queries.append(request.query_params["q"])
        return JSONResponse({"results": [SHOP]})


def embed(texts: list[str]) -> list[object]:
    return [vector(text) for text in texts]


def vector(text: str) -> list[float]:
    vowels = sum(character in "aeiou" for character in text.lower())
    return [vowels + 1.0, len(text) - vowels + 1.0]
