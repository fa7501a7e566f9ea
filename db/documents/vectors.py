"""Chunks by meaning: the cosine between their vectors and a question's.

Vectors come from an embedding source, which may be anything; nothing it returns is trusted. They
are scaled to length 1.

With pgvector the database compares all vectors. Elsewhere a first pass compares the signs of all
vectors, some bytes each, and only the nearest of those are compared in full: up to `SHORTLIST`
chunks the result is exact, beyond that nearly so.
"""

import asyncio
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from heapq import nlargest, nsmallest
from operator import mul
from typing import Final

from sqlalchemy import (
    ARRAY,
    REAL,
    LargeBinary,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.store import Embedder
from agent.engine.errors import AgentError
from db.models import ChunkRow, ChunkVectorRow, DocumentRow

BATCH: Final = 64
"""Texts sent to the embedding source at once."""
SHORTLIST: Final = 2000
"""Vectors compared in full. Half as many missed 1 of 20 where all vectors are much alike."""
ARRAY_HEADER: Final = 20
"""Bytes before the first number of an array that Postgres sends."""

_PGVECTOR: Final = text("""
    SELECT chunk FROM chunk_vectors WHERE model = :model AND dimensions = :dimensions
    ORDER BY vector::vector <=> CAST(:vector AS real[])::vector, chunk LIMIT :limit
""").bindparams(bindparam("vector", type_=ARRAY(REAL)))


class EmbeddingError(Exception):
    """The embedding source is down, too slow, or returned something other than vectors."""


async def embed(embedder: Embedder, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """Return one vector of length 1 for each text, in order; `seconds` is the time limit.

    Raises:
        EmbeddingError: no vectors, whatever the reason.
    """
    try:
        async with asyncio.timeout(seconds):
            vectors = await embedder.embed(texts)
    except TimeoutError:
        raise EmbeddingError(f"{embedder.name} did not answer within {seconds:g} s") from None
    except AgentError as error:
        raise EmbeddingError(f"{embedder.name} failed: {error}") from error
    except Exception as error:
        raise EmbeddingError(f"{embedder.name} failed: {type(error).__name__}") from error
    try:
        return _checked(vectors, len(texts))
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{embedder.name} gave no vectors: {error}") from None


def _checked(vectors: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} for {count} texts")
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("they are of different lengths")
    return [_unit(vector) for vector in vectors]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    if not math.isfinite(length) or length == 0:
        raise ValueError("one has no direction")
    return [value / length for value in vector]


async def nearest(
    session: AsyncSession,
    model: str,
    vector: Sequence[float],
    limit: int,
    shortlist: int = SHORTLIST,
) -> list[int]:
    """Find the chunks whose vectors of `model` are most like `vector`: numbers, nearest first."""
    if await _has_pgvector(session):
        asked = {"model": model, "dimensions": len(vector), "vector": vector, "limit": limit}
        return list(await session.scalars(_PGVECTOR, asked))
    near = await _shortlist(session, model, vector, shortlist)
    vectors = await _vectors(session, near)
    return await asyncio.to_thread(_ranked, vector, vectors, limit)


def _ranked(
    vector: Sequence[float], stored: Iterable[tuple[int, Sequence[float]]], limit: int
) -> list[int]:
    scored = ((cosine(vector, other), -number) for number, other in stored)
    return [-number for _, number in nlargest(limit, scored)]


async def _vectors(
    session: AsyncSession, numbers: Sequence[int]
) -> list[tuple[int, Sequence[float]]]:
    """The vectors of these chunks. In Postgres as bytes: reading digits takes 3 times as long."""
    chosen = ChunkVectorRow.chunk.in_(numbers)
    if session.get_bind().dialect.name != "postgresql":
        found = await session.execute(
            select(ChunkVectorRow.chunk, ChunkVectorRow.vector).where(chosen)
        )
        return [(number, vector) for number, vector in found]
    as_sent = func.array_send(ChunkVectorRow.vector, type_=LargeBinary)
    sent = await session.execute(select(ChunkVectorRow.chunk, as_sent).where(chosen))
    return [(number, numbers_sent(each)) for number, each in sent]


def numbers_sent(sent: bytes) -> Sequence[float]:
    """Read a `real[]` as Postgres sends it: each number behind its length, big end first."""
    words = array("f", sent[ARRAY_HEADER:])
    if sys.byteorder == "little":
        words.byteswap()
    return words[1::2]


async def _has_pgvector(session: AsyncSession) -> bool:
    if session.get_bind().dialect.name != "postgresql":
        return False
    installed = text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
    return bool(await session.scalar(installed))


async def _shortlist(
    session: AsyncSession, model: str, vector: Sequence[float], size: int
) -> list[int]:
    stored = select(ChunkVectorRow.signs, ChunkVectorRow.chunk).where(
        ChunkVectorRow.model == model, ChunkVectorRow.dimensions == len(vector)
    )
    rows = (await session.execute(stored)).all()
    if len(rows) <= size:
        return [number for _, number in rows]
    asked = int.from_bytes(signs(vector))
    found = await asyncio.to_thread(
        nsmallest, size, ((difference(sketch, asked), number) for sketch, number in rows)
    )
    return [number for _, number in found]


async def without_vectors(
    session: AsyncSession, model: str, limit: int, after: int = 0
) -> list[tuple[int, str]]:
    """Find at most `limit` chunks that `model` has not seen: numbers, and the texts to see.

    In order, from the first number above `after`.
    """
    seen = exists().where(ChunkVectorRow.chunk == ChunkRow.number, ChunkVectorRow.model == model)
    wanted = (
        select(ChunkRow, DocumentRow.title)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(~seen, ChunkRow.number > after)
        .order_by(ChunkRow.number)
        .limit(limit)
    )
    rows = await session.execute(wanted)
    return [(row.number, "\n".join([title, *row.headings, row.text])) for row, title in rows]


async def save_vectors(
    session: AsyncSession, model: str, vectors: Sequence[tuple[int, Sequence[float]]]
) -> None:
    """Store the vectors of chunks, each instead of any that another model gave."""
    numbers = [number for number, _ in vectors]
    await session.execute(delete(ChunkVectorRow).where(ChunkVectorRow.chunk.in_(numbers)))
    present = set(
        await session.scalars(select(ChunkRow.number).where(ChunkRow.number.in_(numbers)))
    )
    rows = [
        {
            "chunk": number,
            "model": model,
            "dimensions": len(vector),
            "signs": signs(vector),
            "vector": vector,
        }
        for number, vector in vectors
        if number in present
    ]
    if rows:
        await session.execute(insert(ChunkVectorRow), rows)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Say how alike two vectors of length 1 are: 1 for the same direction, -1 for the opposite."""
    product: float = sum(map(mul, one, other))
    return product


def signs(vector: Sequence[float]) -> bytes:
    """Return one bit for each number, 1 where it is positive: a sketch that is quick to compare."""
    bits = int("0" + "".join("1" if value > 0 else "0" for value in vector), 2)
    return bits.to_bytes((len(vector) + 7) // 8)


def difference(one: bytes, other: int) -> int:
    """Say how many signs differ from `other`, itself signs read as a big-endian integer."""
    return (int.from_bytes(one) ^ other).bit_count()
