"""Synthetic documents, and the quick way into a database.

Chunks are made of words as unevenly common as those of a language (Zipf), 200 to a chunk, 10 chunks
to a document; a query holds 3 to 8 such words. Vectors have a direction that all share, as those of
real models do, a topic, a document and some of their own; a query is about a topic.
"""

import random
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate
from operator import add

import psycopg
from sqlalchemy import make_url

from db.documents.vectors import signs

VOCABULARY = 20_000
WORDS = 200
PARTS = 10
DIMENSIONS = 384
TOPICS = 100
MODEL = "benchmark"

Document = tuple[str, str, str, str, str, int, int, int, str]
Chunk = tuple[int, str, int, str, str, str, str]
Vector = Sequence[float]


class Corpus:
    """Endless synthetic documents, the same in every run; also the source of their vectors."""

    name = MODEL

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._vocabulary = [
            "".join(self._random.choices("bdfgklmoprtuvz", k=7)) for _ in range(VOCABULARY)
        ]
        self._common = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
        self._shared = self._direction(1.0)
        self._topics = [self._direction(1.0) for _ in range(TOPICS)]
        # Drawing each number of each vector would take longer than all that is measured.
        self._noises = [self._direction(0.7) for _ in range(997)]
        self._wider_noises = [self._direction(1.5) for _ in range(97)]
        self.vectors: list[array[float]] = []

    def words(self, count: int) -> str:
        return " ".join(self._random.choices(self._vocabulary, cum_weights=self._common, k=count))

    def query(self) -> str:
        return self.words(self._random.randint(3, 8))

    def _direction(self, scale: float) -> Vector:
        return [self._random.gauss(0, scale) for _ in range(DIMENSIONS)]

    def document_vectors(self) -> "list[array[float]]":
        """The vectors of one document's chunks; kept, to compare searches with."""
        centre = sums(self._shared, self._random.choice(self._topics), self._direction(1.0))
        made = [unit(sums(centre, self._random.choice(self._noises))) for _ in range(PARTS)]
        self.vectors += made
        return made

    def query_vector(self) -> "array[float]":
        topic, noise = self._random.choice(self._topics), self._random.choice(self._wider_noises)
        return unit(sums(self._shared, topic, noise))

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.query_vector().tolist() for _ in texts]


def sums(first: Vector, *others: Vector) -> Vector:
    for other in others:
        first = list(map(add, first, other))
    return first


def unit(vector: Vector) -> "array[float]":
    length = sum(value * value for value in vector) ** 0.5
    return array("f", [value / length for value in vector])


def documents(start: int, end: int) -> Iterator[Document]:
    """The documents of chunks `start` to `end`."""
    for number in range(start, end, PARTS):
        name = f"{number:012d}"
        length = PARTS * (WORDS + 2)
        now = "2026-01-01 00:00:00+00:00"
        yield name, f"{name}.md", name, "markdown", "", 0, PARTS, length, now


def chunks(corpus: Corpus, start: int, end: int) -> Iterator[Chunk]:
    """Chunks `start` to `end`; their numbers count from 1."""
    for number in range(start, end):
        words = corpus.words(WORDS)
        owner = f"{number - number % PARTS:012d}"
        yield number + 1, owner, number % PARTS + 1, "[]", words, corpus.words(2), words


def vectors(corpus: Corpus, start: int, end: int) -> "Iterator[tuple[int, array[float]]]":
    """The vectors of chunks `start` to `end`, by number."""
    for first in range(start, end, PARTS):
        yield from enumerate(corpus.document_vectors(), first + 1)


def fill(url: str, corpus: Corpus, start: int, end: int) -> None:
    """Chunks `start` to `end` with their words and vectors, in one go."""
    if url.startswith("sqlite"):
        fill_sqlite(str(make_url(url).database), corpus, start, end)
    else:
        fill_postgres(url.replace("+psycopg", ""), corpus, start, end)


def fill_sqlite(file: str, corpus: Corpus, start: int, end: int) -> None:
    """One transaction; the triggers of the product index the words as ever."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA synchronous = off")
        for table, columns, rows in (
            ("documents", 9, documents(start, end)),
            ("chunks", 7, chunks(corpus, start, end)),
            ("chunk_vectors", 5, sqlite_vectors(corpus, start, end)),
        ):
            places = ", ".join("?" * columns)
            database.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


def sqlite_vectors(
    corpus: Corpus, start: int, end: int
) -> Iterator[tuple[int, str, int, bytes, bytes]]:
    for number, vector in vectors(corpus, start, end):
        yield number, MODEL, DIMENSIONS, signs(vector), vector.tobytes()


def fill_postgres(url: str, corpus: Corpus, start: int, end: int) -> None:
    """COPY without triggers; the postings are made by one statement, their indexes afterwards."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET maintenance_work_mem = '1GB'")
        cursor.execute("SET work_mem = '256MB'")
        for table, rows in (
            ("documents", documents(start, end)),
            ("chunks", chunks(corpus, start, end)),
            ("chunk_vectors", postgres_vectors(corpus, start, end)),
        ):
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        restore = drop_indexes(cursor)
        cursor.execute(POSTINGS, {"start": start})
        for statement in restore:
            cursor.execute(statement.encode())


def postgres_vectors(
    corpus: Corpus, start: int, end: int
) -> Iterator[tuple[int, str, int, bytes, str]]:
    for number, vector in vectors(corpus, start, end):
        numbers = ",".join(map("%.8g".__mod__, vector))
        yield number, MODEL, DIMENSIONS, signs(vector), f"{{{numbers}}}"


def drop_indexes(cursor: psycopg.Cursor[tuple[str, str]]) -> list[str]:
    """Drop the indexes of the postings; the statements that make them again."""
    cursor.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE conrelid = 'chunks_fts'::regclass AND contype = 'p'"
    )
    keys = cursor.fetchall()
    for name, _ in keys:
        cursor.execute(f"ALTER TABLE chunks_fts DROP CONSTRAINT {name}".encode())
    cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'chunks_fts'")
    indexes = cursor.fetchall()
    for name, _ in indexes:
        cursor.execute(f"DROP INDEX {name}".encode())
    made_again = [f"ALTER TABLE chunks_fts ADD CONSTRAINT {name} {key}" for name, key in keys]
    return made_again + [definition for _, definition in indexes]


POSTINGS = """
    INSERT INTO chunks_fts (term, chunk, in_headings, in_text, length)
    SELECT term, number, heads, words, length
    FROM chunks, LATERAL (
        SELECT string_to_array(heading_terms, ' ') AS heading_list,
            string_to_array(text_terms, ' ') AS text_list
    ) AS lists, LATERAL (
        SELECT term, sum(head) AS heads, sum(word) AS words,
            cardinality(heading_list) + cardinality(text_list) AS length
        FROM (
            SELECT unnest(heading_list) AS term, 1 AS head, 0 AS word
            UNION ALL SELECT unnest(text_list), 0, 1
        ) AS each GROUP BY term
    ) AS found
    WHERE number > %(start)s
"""
