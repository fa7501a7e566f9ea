"""A library in memory, and the real client, for the tests of research."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agent.documents.passages import Chunk, list_content_words
from agent.engine.llm import LLMService
from agent.places.find import Place, WebSearch, searxng
from tests.doubles.model_server import ModelServer
from tests.faults.turns import service


def _chunk(
    document: str, position: int, path: str, title: str, text: str, *headings: str
) -> Chunk:
    return Chunk(
        f"{document}-{position}",
        document,
        path,
        title,
        headings,
        position,
        parts=2 if document == "lees" else 1,
        text=text,
    )


SUR_LIE = _chunk(
    *("lees", 1, "methods/sur-lie.md", "Sur lie"),
    "Sur lie means that a wine rests on its fine lees.\n"
    "Lees are mostly dead   yeast cells.\n\nStirring the lees gives a creamier texture.",
    "What the lees are",
)
MUSCADET = _chunk(
    *("lees", 2, "methods/sur-lie.md", "Sur lie"),
    "Muscadet sur lie may not be bottled before 1 March after the harvest.",
    "Muscadet",
)
OYSTERS = _chunk(
    *("oysters", 1, "pairing/oysters.md", "Wine with oysters"),
    "Oysters ask for a lean white wine rested on its lees, such as Muscadet.",
)
TEN = [
    "wine bar Bilbao Casco Viejo",
    "vinoteca Bilbao",
    "natural wine Bilbao Ensanche",
    "txakoli bar Bilbao",
    "wines by the glass Abando Bilbao",
    "bar de vinos Bilbao Indautxu",
    "pintxos and Rioja Bilbao",
    "ardo taberna Bilbao",
    "sherry bar Bilbao",
    "wine tasting bar Bilbao Guggenheim",
]
"""Ten queries that hold, for wine bars in Bilbao."""
REFINED: dict[str, Any] = {
    "refined_query": "ageing wine on the lees (sur lie)",
    "variants": ["lees ageing effects", "yeast autolysis in wine", "sur lie meaning"],
    "keywords": ["lees", "yeast"],
    "entities": [],
    "constraints": [],
    "ambiguities": ["which wine"],
    "security_flags": [],
}
"""A question about lees, as a model rewrites it."""


def snippet(content: str, chunk: Chunk = SUR_LIE, **other: str) -> dict[str, str]:
    """A passage as a model quotes it."""
    return {
        "content": content,
        "sourceId": chunk.document_id,
        "sourceTitle": chunk.title,
        "sourceLocation": chunk.location,
        "relevance": "It says so.",
    } | other


def place_search(
    hits: Mapping[str, Sequence[Place]], otherwise: Sequence[Place] | None = ()
) -> WebSearch:
    """Return a search that finds `hits` by query, else `otherwise`; None makes it hang."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        found = hits.get(request.url.params["q"], otherwise)
        if found is None:
            await asyncio.sleep(60)
        results = [
            {"title": hit.title, "url": hit.url, "content": hit.snippet}
            for hit in found or ()
        ]
        return httpx2.Response(200, json={"results": results})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return searxng("http://places.example", http)


@dataclass
class FakeLibrary:
    """Chunks found by shared words, best first; `searched` keeps every list of queries.

    `forgotten` are paths that the metadata store does not know (any more).
    """

    chunks: Sequence[Chunk] = (SUR_LIE, MUSCADET, OYSTERS)
    forgotten: frozenset[str] = frozenset()
    searched: list[tuple[str, ...]] = field(default_factory=list)

    async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
        self.searched.append(tuple(queries))
        asked = list_content_words(" ".join(queries))
        scored = [
            (len(asked & list_content_words(chunk.text)), chunk)
            for chunk in self.chunks
        ]
        best = sorted(scored, key=lambda pair: -pair[0])
        return [chunk for score, chunk in best if score][:limit]

    async def measure_rarity(self, words: Sequence[str]) -> Mapping[str, float]:
        text = " ".join(chunk.source_text for chunk in self.chunks)
        known = list_content_words(text)
        return {word: 0.5 if word in known else 1.0 for word in words}

    async def load_shop(self) -> list[Chunk]:
        return []

    async def known_paths(self, paths: Sequence[str]) -> set[str]:
        return {chunk.path for chunk in self.chunks} & set(paths) - self.forgotten

    async def count(self) -> int:
        return len({chunk.document_id for chunk in self.chunks})


@asynccontextmanager
async def open_model(server: ModelServer, **settings: Any) -> AsyncIterator[LLMService]:
    model = service(server, **settings)
    try:
        yield model
    finally:
        await model.close()


def sent(server: ModelServer, number: int = -1) -> dict[str, Any]:
    return server.requests[number].json


def feedback_of(server: ModelServer) -> str:
    return str(sent(server)["messages"][-1]["content"])
