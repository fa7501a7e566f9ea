"""Finding chunks by their words, ranked by bm25 (k1 1.2, b 0.75), heading words weighing more.

SQLite has that formula in FTS5; in Postgres it is written out over a table of postings, since its
own `ts_rank` knows nothing of how rare a word is. Terms are made in Python for both, so that both
databases find the same chunks in the same order.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlalchemy import ARRAY, Float, String, bindparam, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from agent.documents.store import Chunk
from db.documents.terms import query_terms
from db.models import ChunkRow, DocumentRow

RANK_CONSTANT: Final = 60
"""Of reciprocal rank fusion, from Cormack, Clarke and Buettcher (2009)."""
MAX_PER_DOCUMENT: Final = 3
HEADING_WEIGHT: Final = 2.0
TEXT_WEIGHT: Final = 1.0
LEAST_WEIGHT: Final = 1e-6

_SQLITE_COUNTS: Final = text(
    "SELECT term, doc FROM chunks_fts_terms WHERE term IN (SELECT value FROM json_each(:terms))"
)
_POSTGRES_COUNTS: Final = text(
    "SELECT term, count(*) FROM chunks_fts WHERE term = ANY(:terms) GROUP BY term"
).bindparams(bindparam("terms", type_=ARRAY(String)))
_SQLITE: Final = text("""
    SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :phrase
    ORDER BY bm25(chunks_fts, :heading_weight, :text_weight), rowid LIMIT :limit
""")
_POSTGRES: Final = text("""
    WITH found AS (
        SELECT chunk, weight, length / :mean_length AS relative_length,
            :heading_weight * in_headings + :text_weight * in_text AS frequency
        FROM unnest(CAST(:terms AS text[]), CAST(:weights AS float8[])) AS asked (term, weight)
        JOIN chunks_fts USING (term)
    )
    SELECT chunk FROM found GROUP BY chunk
    ORDER BY sum(
        weight * frequency / (frequency + 0.3::float8 + 0.9::float8 * relative_length)
    ) DESC, chunk LIMIT :limit
""").bindparams(
    bindparam("terms", type_=ARRAY(String)),
    bindparam("weights", type_=ARRAY(Float)),
    bindparam("mean_length", type_=Float),
    bindparam("heading_weight", type_=Float),
    bindparam("text_weight", type_=Float),
)


async def matching(session: AsyncSession, query: str, limit: int) -> list[int]:
    """Return numbers of the chunks that hold a telling word of `query`, best match first."""
    words = query_terms(query)
    total = select(func.sum(DocumentRow.parts), func.sum(DocumentRow.length))
    chunks, length = (await session.execute(total)).one()
    weights = telling(await _counts(session, words), chunks or 0)
    if not weights:
        return []
    asked = {"heading_weight": HEADING_WEIGHT, "text_weight": TEXT_WEIGHT, "limit": limit}
    if _on_postgres(session):
        asked |= {"mean_length": length / chunks}
        lists = {"terms": list(weights), "weights": list(weights.values())}
        return list(await session.scalars(_POSTGRES, asked | lists))
    phrase = " OR ".join(f'"{word}"' for word in weights)
    return list(await session.scalars(_SQLITE, {**asked, "phrase": phrase}))


def telling(counts: Mapping[str, int], chunks: int) -> dict[str, float]:
    """Return the weight of every word worth looking for, given how many of all chunks hold it.

    A word that half of the chunks hold weighs nothing in bm25, whatever the language. It is looked
    for only if there is no other, since it costs most.
    """
    weights = {
        word: math.log((chunks - count + 0.5) / (count + 0.5)) for word, count in counts.items()
    }
    rare = {word: weight for word, weight in weights.items() if weight > LEAST_WEIGHT}
    return rare or dict.fromkeys(weights, LEAST_WEIGHT)


async def _counts(session: AsyncSession, words: Sequence[str]) -> dict[str, int]:
    """How many chunks hold each of `words`; none for those that no chunk holds."""
    if _on_postgres(session):
        found = await session.execute(_POSTGRES_COUNTS, {"terms": list(words)})
    else:
        found = await session.execute(_SQLITE_COUNTS, {"terms": json.dumps(words)})
    counts: dict[str, int] = dict(found.all())
    # In the order asked, so that sums of equal weights are equal on both databases.
    return {word: counts[word] for word in words if word in counts}


def _on_postgres(session: AsyncSession) -> bool:
    return session.get_bind().dialect.name == "postgresql"


async def documents_of(session: AsyncSession, numbers: Sequence[int]) -> dict[int, str]:
    """Return the document id of each of these chunks, without those whose copy comes earlier.

    The same file at two paths would take the place of another answer.
    """
    wanted = (
        select(ChunkRow.number, DocumentRow.id, DocumentRow.content_hash, ChunkRow.position)
        .join(DocumentRow, DocumentRow.id == ChunkRow.document_id)
        .where(ChunkRow.number.in_(numbers))
    )
    found = {row.number: row for row in await session.execute(wanted)}
    first: dict[tuple[str, int], int] = {}
    for number in filter(found.__contains__, numbers):
        first.setdefault((found[number].content_hash, found[number].position), number)
    return {number: found[number].id for number in first.values()}


async def load_chunks(session: AsyncSession, scored: Sequence[tuple[int, float]]) -> list[Chunk]:
    """Return these chunks, in the order given, each with its score."""
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


def fuse(rankings: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
    """Merge rankings: items with their scores, best first.

    An item scores 1 / (60 + its rank) in each ranking; equals keep the order of the smaller number.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))


def spread(
    ranked: Sequence[int],
    limit: int,
    document_of: Callable[[int], str],
    most: int = MAX_PER_DOCUMENT,
) -> list[int]:
    """Take the first `limit` items, at most `most` of a document unless nothing else matches."""
    taken: Counter[str] = Counter()
    chosen: list[int] = []
    spare: list[int] = []
    for item in ranked:
        document = document_of(item)
        taken[document] += 1
        (chosen if taken[document] <= most else spare).append(item)
    kept = {*chosen[:limit], *spare[: max(limit - len(chosen), 0)]}
    return [item for item in ranked if item in kept]
