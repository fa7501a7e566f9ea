"""Chunks by meaning: the cosine between their vectors and a question's.

With pgvector the database compares all vectors. Elsewhere a first pass compares the signs of all
vectors, some bytes each, and only the nearest of those are compared in full: up to `SHORTLIST`
chunks the result is exact, beyond that nearly so.
"""

import asyncio
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from typing import Final

from sqlalchemy import ARRAY, REAL, bindparam, delete, exists, insert, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from db.embedding import cosine, difference, signs
from db.models import ChunkRow, ChunkVectorRow, DocumentRow

SHORTLIST: Final = 1000

_PGVECTOR: Final = text("""
    SELECT chunk FROM chunk_vectors WHERE model = :model AND dimensions = :dimensions
    ORDER BY vector::vector <=> CAST(:vector AS real[])::vector, chunk LIMIT :limit
""").bindparams(bindparam("vector", type_=ARRAY(REAL)))


async def nearest(
    session: AsyncSession,
    model: str,
    vector: Sequence[float],
    limit: int,
    shortlist: int = SHORTLIST,
) -> list[int]:
    """Numbers of the chunks whose vectors of `model` are most like `vector`, nearest first."""
    if await _has_pgvector(session):
        asked = {"model": model, "dimensions": len(vector), "vector": vector, "limit": limit}
        return list(await session.scalars(_PGVECTOR, asked))
    near = await _shortlist(session, model, vector, shortlist)
    wanted = select(ChunkVectorRow.chunk, ChunkVectorRow.vector).where(
        ChunkVectorRow.chunk.in_(near)
    )
    rows = (await session.execute(wanted)).all()
    scored = ((cosine(vector, stored), -number) for number, stored in rows)
    return [-number for _, number in nlargest(limit, scored)]


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


async def without_vectors(session: AsyncSession, model: str, limit: int) -> list[tuple[int, str]]:
    """Numbers of chunks that `model` has not seen, with the text it is to see: at most `limit`."""
    seen = exists().where(ChunkVectorRow.chunk == ChunkRow.number, ChunkVectorRow.model == model)
    wanted = (
        select(ChunkRow, DocumentRow.title)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(~seen)
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
