"""Processes hold the index of the documents in memory; databases keep what it is made of.

Vectors are made anew by the next `sommelier documents add`.
"""

import struct
from collections import Counter
from zlib import crc32

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# An earlier form of the first revision made these.
SQLITE_FULL_TEXT = (
    *(f"DROP TRIGGER IF EXISTS chunks_fts_{event}" for event in ("insert", "delete", "update")),
    "DROP TABLE IF EXISTS chunks_fts_terms",
    "DROP TABLE IF EXISTS chunks_fts",
)
POSTGRES_FULL_TEXT = (
    "DROP TABLE IF EXISTS chunks_fts",
    "DROP FUNCTION IF EXISTS chunks_fts_index() CASCADE",
)
ROWS_AT_ONCE = 2_000
NEXT = sa.text(
    "SELECT number, heading_terms, text_terms FROM chunks WHERE number > :last "
    "ORDER BY number LIMIT :limit"
)
FILL = sa.text("UPDATE chunks SET postings = :postings WHERE number = :number")


def upgrade() -> None:
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in SQLITE_FULL_TEXT if on_sqlite else POSTGRES_FULL_TEXT:
        op.execute(statement)
    op.create_table(
        "library",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_library"),
    )
    op.execute("INSERT INTO library SELECT 1, coalesce(max(number), 0) FROM chunks")
    column = sa.Column("postings", sa.LargeBinary, nullable=False, server_default=sa.text("''"))
    op.add_column("chunks", column)
    _fill()
    op.drop_column("chunks", "heading_terms")
    op.drop_column("chunks", "text_terms")
    op.drop_column("documents", "length")
    _replace_vectors()


def downgrade() -> None:
    """The words of the documents are not in the postings: documents have to be added again."""
    op.execute("DELETE FROM documents")
    _replace_vectors(sa.Column("signs", sa.LargeBinary, nullable=False))
    empty = sa.text("''")
    op.add_column("documents", sa.Column("length", sa.Integer, nullable=False, server_default="0"))
    for name in ("heading_terms", "text_terms"):
        op.add_column("chunks", sa.Column(name, sa.String, nullable=False, server_default=empty))
    op.drop_column("chunks", "postings")
    op.drop_table("library")


def _fill() -> None:
    connection, last = op.get_bind(), 0
    while rows := connection.execute(NEXT, {"last": last, "limit": ROWS_AT_ONCE}).all():
        filled = [
            {"number": number, "postings": _postings(headings.split(), words.split())}
            for number, headings, words in rows
        ]
        connection.execute(FILL, filled)
        last = rows[-1][0]


def _postings(headings: list[str], words: list[str]) -> bytes:
    counts = Counter(crc32(term.encode()) for term in (*headings, *headings, *words))
    length = len(headings) + len(words)
    most = (min(count, 255) for count in counts.values())
    return struct.pack(f"<{len(counts) + 1}I", length, *counts) + bytes(most)


def _replace_vectors(*more: sa.Column[bytes]) -> None:
    op.drop_table("chunk_vectors")
    op.create_table(
        "chunk_vectors",
        sa.Column("chunk", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        *more,
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("chunk", name="pk_chunk_vectors"),
        sa.ForeignKeyConstraint(
            ["chunk"], ["chunks.number"], name="fk_chunk_vectors_chunk_chunks", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_chunk_vectors_model_dimensions", "chunk_vectors", ["model", "dimensions"])
