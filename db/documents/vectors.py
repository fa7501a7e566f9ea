"""Vectors of texts, and where those of chunks are stored.

They come from an embedding source, which may be anything; nothing it returns is trusted. They are
scaled to length 1.
"""

import asyncio
import math
import struct
from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.store import Embedder
from agent.engine.errors import AgentError
from db.models import ChunkRow, ChunkVectorRow, DocumentRow

BATCH: Final = 64
"""Texts sent to the embedding source at once."""


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
            "vector": struct.pack(f"<{len(vector)}f", *vector),
        }
        for number, vector in vectors
        if number in present
    ]
    if rows:
        await session.execute(insert(ChunkVectorRow), rows)
