"""Give what is remembered beside facts, such as concerns and settings, tables of its own.

Release 0.2.0 runs on its own revision only, so no replica of it shares the database: the table of
facts is made anew at once, and keeps what users have stated.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "a017"
down_revision = "a016"

STATED = ("allergy", "hate", "like", "budget", "note")
"""The kinds of facts that users state."""
DUE = "due "
"""How a setting such as "due barolo-2016=2026" begins: in that year, its user was reminded."""
REMINDED = "reminded="
"""How a setting such as "reminded=2026-spring" begins."""
SEASONS = ("winter", "spring", "summer", "autumn")
"""The seasons in the order of a year."""
COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""An auto-incremented key. SQLite only increments a key whose type is INTEGER."""
ColumnType = type[sa.types.TypeEngine[Any]]


def upgrade() -> None:
    op.add_column("bottles", sa.Column("reminded_year", sa.Integer))
    create_tables()
    copy_facts()
    copy_settings()
    make_facts_anew()
    schema_support = sa.table("schema_support", sa.column("oldest_revision"))
    op.execute(sa.update(schema_support).values(oldest_revision=revision))


def key(name: str, type_: ColumnType = sa.BigInteger) -> sa.Column[Any]:
    """Return a key that the database does not increment."""
    return sa.Column(name, type_, primary_key=True, autoincrement=False)


def time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Return the column of a time."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def text(name: str) -> sa.Column[Any]:
    """Return the column of a text, which is never null."""
    return sa.Column(name, sa.String, nullable=False)


def create_tables() -> None:
    """Create the tables of what is remembered beside facts."""
    op.create_table(
        "settings",
        key("user_id"),
        key("name", sa.String),
        text("value"),
        time("at"),
    )
    op.create_table(
        "concerns",
        key("user_id"),
        key("chat_id"),
        key("name", sa.String),
        time("at"),
        time("until", nullable=True),
    )
    op.create_index("ix_concerns_chat_id", "concerns", ["chat_id"])
    expires = sa.text("until IS NOT NULL")
    op.create_index(
        "ix_concerns_expiring",
        "concerns",
        ["until"],
        sqlite_where=expires,
        postgresql_where=expires,
    )
    op.create_table(
        "undoable_changes",
        key("user_id"),
        key("undo_id"),
        text("change"),
        time("until"),
    )
    op.create_index("ix_undoable_changes_until", "undoable_changes", ["until"])
    op.create_table(
        "kept_imports",
        key("user_id"),
        sa.Column("import_id", sa.BigInteger, nullable=False),
        text("items"),
        time("until"),
    )
    op.create_index("ix_kept_imports_until", "kept_imports", ["until"])
    op.create_table(
        "taste_ratings",
        sa.Column("id", COUNTER, primary_key=True),
        sa.Column("user_id", sa.BigInteger, nullable=False),
        sa.Column(
            "turn_id",
            sa.BigInteger,
            sa.ForeignKey("turns.turn_id", ondelete="SET NULL"),
        ),
        text("taste"),
        sa.Column("is_liked", sa.Boolean, nullable=False),
        time("at"),
    )
    op.create_index("ix_taste_ratings_user_id_at", "taste_ratings", ["user_id", "at"])
    op.create_index("ix_taste_ratings_turn_id", "taste_ratings", ["turn_id"])
    op.create_table("reminders", key("user_id"), text("season"))


def copy_facts() -> None:
    """Copy facts of these kinds to their own tables, where `said` and `value` get better names."""
    op.execute(
        "INSERT INTO concerns (user_id, chat_id, name, at, until) "
        "SELECT user_id, chat_id, value, at, until FROM facts WHERE kind = 'safety'"
    )
    op.execute(
        "INSERT INTO undoable_changes (user_id, undo_id, change, until) "
        "SELECT user_id, CAST(value AS BIGINT), said, until FROM facts WHERE kind = 'undo'"
    )
    op.execute(
        "INSERT INTO kept_imports (user_id, import_id, items, until) "
        "SELECT user_id, CAST(value AS BIGINT), said, until FROM facts WHERE kind = 'import'"
    )
    op.execute(
        "INSERT INTO taste_ratings (user_id, turn_id, taste, is_liked, at) "
        "SELECT facts.user_id, turns.turn_id, facts.value, facts.said = '+', facts.at FROM facts "
        "LEFT JOIN turns ON turns.turn_id = facts.turn_id WHERE facts.kind = 'rated'"
    )


def copy_settings() -> None:
    """Copy settings; the records of reminders among them go to the bottles and to the seasons."""
    connection = op.get_bind()
    oldest_first = sa.text(
        "SELECT user_id, value, at FROM facts WHERE kind = 'setting' ORDER BY at"
    )
    store_setting = sa.text(
        "INSERT INTO settings (user_id, name, value, at) VALUES (:user_id, :name, :value, :at) "
        "ON CONFLICT (user_id, name) DO UPDATE SET value = :value, at = :at"
    )
    store_year = sa.text(
        "UPDATE bottles SET reminded_year = :year WHERE user_id = :user_id AND key = :key "
        "AND coalesce(reminded_year, 0) < :year"
    )
    store_season = sa.text(
        "INSERT INTO reminders (user_id, season) VALUES (:user_id, :season)"
    )
    last_seasons: dict[int, str] = {}
    for user_id, stored, at in connection.execute(oldest_first).all():
        if stored.startswith(REMINDED):
            season = stored.removeprefix(REMINDED)
            last_season = last_seasons.get(user_id, season)
            last_seasons[user_id] = max(last_season, season, key=order_of_season)
        elif stored.startswith(DUE):
            item_key, _, year = stored.removeprefix(DUE).rpartition("=")
            values = {"user_id": user_id, "key": item_key, "year": int(year)}
            connection.execute(store_year, values)
        else:
            name, _, value = stored.partition("=")
            values = {"user_id": user_id, "name": name, "value": value, "at": at}
            connection.execute(store_setting, values)
    for user_id, season in last_seasons.items():
        values = {"user_id": user_id, "season": season}
        connection.execute(store_season, values)


def order_of_season(season: str) -> tuple[int, int]:
    """Return the sort key of a season such as "2026-spring"."""
    year, _, name = season.partition("-")
    return int(year), SEASONS.index(name)


def make_facts_anew() -> None:
    """Keep what users have stated, in a table without the columns that it does not need."""
    op.execute(
        "CREATE TABLE stated_facts AS SELECT user_id, kind, value, said, at FROM facts "
        "WHERE kind IN ('allergy', 'hate', 'like', 'budget', 'note')"
    )
    op.drop_table("facts")
    kinds = sa.Enum(
        *STATED, name="ck_facts_kind", native_enum=False, create_constraint=True
    )
    op.create_table(
        "facts",
        key("user_id"),
        sa.Column("kind", kinds, primary_key=True),
        key("value", sa.String),
        text("said"),
        time("at"),
    )
    op.execute(
        "INSERT INTO facts SELECT user_id, kind, value, said, at FROM stated_facts"
    )
    op.drop_table("stated_facts")
