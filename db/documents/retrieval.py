"""Finding chunks: full text always, vectors where there are some, fused by reciprocal rank.

Full text is ranked by bm25, heading words weighing more than text: in SQLite by FTS5's own function
(k1 1.2, b 0.75), in Postgres by the same formula in SQL over a table of postings, since its own
`ts_rank` knows nothing of how rare a word is. Terms are made in Python for both, so that both
databases find the same chunks in the same order.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ARRAY, String, bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from agent.ports import Chunk
from db.documents.terms import query_terms
from db.models import ChunkRow, DocumentRow

HEADING_WEIGHT: Final = 2.0
TEXT_WEIGHT: Final = 1.0

_SQLITE: Final = text("""
    SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :phrase
    ORDER BY bm25(chunks_fts, :heading_weight, :text_weight), rowid LIMIT :limit
""")
_POSTGRES: Final = text("""
    WITH corpus AS (
        SELECT sum(parts)::float8 AS chunks, sum(length)::float8 / sum(parts) AS mean_length
        FROM documents
    ), found AS (
        SELECT term, chunk, :heading_weight * in_headings + :text_weight * in_text AS frequency,
            length
        FROM chunks_fts WHERE term = ANY(:terms)
    ), weights AS (
        SELECT term, greatest(ln((chunks - count(*) + 0.5) / (count(*) + 0.5)), 1e-6) AS weight
        FROM found, corpus GROUP BY term, chunks
    )
    SELECT chunk FROM found JOIN weights USING (term), corpus GROUP BY chunk
    ORDER BY sum(
        weight * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / mean_length))
    ) DESC, chunk LIMIT :limit
""").bindparams(bindparam("terms", type_=ARRAY(String)))


async def matching(session: AsyncSession, query: str, limit: int) -> list[int]:
    """Numbers of the chunks that hold any word of `query`, best match first."""
    words = query_terms(query)
    if not words:
        return []
    weights = {"heading_weight": HEADING_WEIGHT, "text_weight": TEXT_WEIGHT, "limit": limit}
    if session.get_bind().dialect.name == "postgresql":
        return list(await session.scalars(_POSTGRES, {"terms": list(words), **weights}))
    phrase = " OR ".join(f'"{word}"' for word in words)
    return list(await session.scalars(_SQLITE, {"phrase": phrase, **weights}))


async def documents_of(session: AsyncSession, numbers: Sequence[int]) -> dict[int, str]:
    """The document id of each of these chunks."""
    wanted = select(ChunkRow.number, ChunkRow.document_id).where(ChunkRow.number.in_(numbers))
    return dict((await session.execute(wanted)).all())


async def load_chunks(session: AsyncSession, scored: Sequence[tuple[int, float]]) -> list[Chunk]:
    """These chunks, in the order given, each with its score."""
    wanted = (
        select(ChunkRow, DocumentRow)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(ChunkRow.number.in_([number for number, _ in scored]))
    )
    rows = await session.execute(wanted)
    found = {chunk.number: (chunk, document) for chunk, document in rows}
    return [_to_chunk(*found[number], score) for number, score in scored if number in found]


def _to_chunk(row: ChunkRow, document: DocumentRow, score: float) -> Chunk:
    return Chunk(
        id=f"{document.id}-{row.position}",
        document_id=document.id,
        path=document.path,
        title=document.title,
        headings=tuple(row.headings),
        position=row.position,
        parts=document.parts,
        text=row.text,
        score=score,
    )
