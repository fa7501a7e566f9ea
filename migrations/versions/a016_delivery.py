"""Store how the messages of a turn were sent beside its trace, which is stored before."""

import sqlalchemy as sa
from alembic import op

revision = "a016"
down_revision = "a015"


def upgrade() -> None:
    op.add_column("traces", sa.Column("delivery", sa.LargeBinary))
