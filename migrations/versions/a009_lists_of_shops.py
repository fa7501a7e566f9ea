"""Let the style of a wine be unknown, and store the language of its notes."""

import sqlalchemy as sa
from alembic import op

revision = "a009"
down_revision = "a008"


def upgrade() -> None:
    language = sa.Column(
        "notes_language", sa.String, nullable=False, server_default="en"
    )
    if op.get_context().dialect.name != "sqlite":
        op.alter_column("wines", "style", nullable=True)
        op.add_column("wines", language)
        op.alter_column("wines", "notes_language", server_default=None)
        return
    # SQLite makes the table of wines anew. As the old one is dropped, the offers of its wines are
    # deleted, so they are copied before.
    op.execute("CREATE TABLE old_offers AS SELECT * FROM offers")
    with op.batch_alter_table("wines") as table:
        table.alter_column("style", existing_type=sa.String, nullable=True)
        table.add_column(language)
    with op.batch_alter_table("wines") as table:
        table.alter_column(
            "notes_language", existing_type=sa.String, server_default=None
        )
    op.execute("DELETE FROM offers")
    op.execute("INSERT INTO offers SELECT * FROM old_offers")
    op.drop_table("old_offers")
