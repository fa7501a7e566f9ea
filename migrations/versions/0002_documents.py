"""Documents in chunks, with their full-text index and their vectors."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

# The terms are ready to be indexed: this tokenizer only splits them at the spaces between them.
SQLITE_FULL_TEXT = (
    """
    CREATE VIRTUAL TABLE chunks_fts USING fts5(
        heading_terms, text_terms, content='chunks', content_rowid='number', tokenize='ascii'
    )
    """,
    "CREATE VIRTUAL TABLE chunks_fts_terms USING fts5vocab(chunks_fts, row)",
    """
    CREATE TRIGGER chunks_fts_insert AFTER INSERT ON chunks BEGIN
        INSERT INTO chunks_fts(rowid, heading_terms, text_terms)
        VALUES (new.number, new.heading_terms, new.text_terms);
    END
    """,
    """
    CREATE TRIGGER chunks_fts_delete AFTER DELETE ON chunks BEGIN
        INSERT INTO chunks_fts(chunks_fts, rowid, heading_terms, text_terms)
        VALUES ('delete', old.number, old.heading_terms, old.text_terms);
    END
    """,
    """
    CREATE TRIGGER chunks_fts_update AFTER UPDATE OF number, heading_terms, text_terms ON chunks
    BEGIN
        INSERT INTO chunks_fts(chunks_fts, rowid, heading_terms, text_terms)
        VALUES ('delete', old.number, old.heading_terms, old.text_terms);
        INSERT INTO chunks_fts(rowid, heading_terms, text_terms)
        VALUES (new.number, new.heading_terms, new.text_terms);
    END
    """,
)
# Postings hold all that bm25 needs, so that a search reads this table's index and nothing else.
# A trigger deletes them: a foreign key would be checked for every word of every chunk.
POSTGRES_FULL_TEXT = (
    """
    CREATE TABLE chunks_fts (
        term text COLLATE "C" NOT NULL,
        chunk integer NOT NULL,
        in_headings smallint NOT NULL,
        in_text smallint NOT NULL,
        length integer NOT NULL,
        CONSTRAINT chunks_fts_pk PRIMARY KEY (term, chunk) INCLUDE (in_headings, in_text, length)
    )
    """,
    "CREATE INDEX chunks_fts_chunk ON chunks_fts (chunk)",
    """
    CREATE FUNCTION chunks_fts_index() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM chunks_fts WHERE chunk IN (SELECT number FROM former);
        END IF;
        IF TG_OP = 'DELETE' THEN
            RETURN NULL;
        END IF;
        INSERT INTO chunks_fts (term, chunk, in_headings, in_text, length)
        SELECT term, number, least(sum(heads), 32767), least(sum(words), 32767), max(length)
        FROM changed, LATERAL (
            SELECT string_to_array(heading_terms, ' ') AS heading_list,
                string_to_array(text_terms, ' ') AS text_list
        ) AS lists, LATERAL (
            SELECT unnest(heading_list) AS term, 1 AS heads, 0 AS words,
                cardinality(heading_list) + cardinality(text_list) AS length
            UNION ALL
            SELECT unnest(text_list), 0, 1, cardinality(heading_list) + cardinality(text_list)
        ) AS found
        GROUP BY term, number;
        RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER chunks_fts_insert AFTER INSERT ON chunks
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION chunks_fts_index()
    """,
    """
    CREATE TRIGGER chunks_fts_delete AFTER DELETE ON chunks
    REFERENCING OLD TABLE AS former
    FOR EACH STATEMENT EXECUTE FUNCTION chunks_fts_index()
    """,
    """
    CREATE TRIGGER chunks_fts_update AFTER UPDATE ON chunks
    REFERENCING OLD TABLE AS former NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION chunks_fts_index()
    """,
)


def upgrade() -> None:
    _create_documents()
    _create_chunks()
    _create_vectors()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    for statement in SQLITE_FULL_TEXT if on_sqlite else POSTGRES_FULL_TEXT:
        op.execute(statement)
    if not on_sqlite:
        _use_pgvector()


def downgrade() -> None:
    on_sqlite = op.get_context().dialect.name == "sqlite"
    if on_sqlite:
        op.execute("DROP TABLE chunks_fts_terms")
    op.execute("DROP TABLE chunks_fts")
    for table in ("chunk_vectors", "chunks", "documents"):
        op.drop_table(table)
    if not on_sqlite:
        op.execute("DROP FUNCTION chunks_fts_index")


def _create_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("content_hash", sa.String, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("length", sa.Integer, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.UniqueConstraint("path", name="uq_documents_path"),
    )


def _create_chunks() -> None:
    op.create_table(
        "chunks",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("document_id", sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("headings", sa.JSON, nullable=False),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("heading_terms", sa.String, nullable=False),
        sa.Column("text_terms", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_chunks"),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_chunks_document_id_documents",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_chunks_document_id_position", "chunks", ["document_id", "position"], unique=True
    )


def _create_vectors() -> None:
    floats = sa.LargeBinary().with_variant(sa.ARRAY(sa.REAL), "postgresql")
    op.create_table(
        "chunk_vectors",
        sa.Column("chunk", sa.Integer, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("signs", sa.LargeBinary, nullable=False),
        sa.Column("vector", floats, nullable=False),
        sa.PrimaryKeyConstraint("chunk", name="pk_chunk_vectors"),
        sa.ForeignKeyConstraint(
            ["chunk"], ["chunks.number"], name="fk_chunk_vectors_chunk_chunks", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_chunk_vectors_model_dimensions", "chunk_vectors", ["model", "dimensions"])


def _use_pgvector() -> None:
    """Switch pgvector on where the server has it and this user may; without it vectors work too."""
    connection = op.get_bind()
    present = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
    if not connection.scalar(present):
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS vector"))
    except sa.exc.DBAPIError:
        return
