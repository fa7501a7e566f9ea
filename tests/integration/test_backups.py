"""`sommelier db backup` and `restore`, and alembic's own commands."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.config import main as alembic

from tests.commands import sommelier_here

Environment = dict[str, str]


@pytest.fixture
def database(empty_environment: Environment, tmp_path: Path) -> Path:
    """An upgraded SQLite database, which `empty_environment` names."""
    file = tmp_path / "own" / "wines.sqlite3"
    empty_environment["DATABASE_URL"] = f"sqlite+aiosqlite:///{file}"
    sommelier_here("db", "upgrade", environment=empty_environment)
    return file


def write(database: Path, user_id: int) -> None:
    """Write as a running bot does, whose log may not be in the file yet."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (user_id INTEGER)")
        connection.execute("INSERT INTO notes VALUES (?)", [user_id])
        connection.commit()


def users(database: Path) -> list[int]:
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute("SELECT user_id FROM notes")]


def test_a_backup_that_was_made_while_the_bot_ran_is_restored(
    empty_environment: Environment, database: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.sqlite3"
    with closing(sqlite3.connect(database)) as bot:
        bot.execute("SELECT count(*) FROM wines").fetchone()
        write(database, 1)
        made = sommelier_here(
            "db", "backup", str(backup), environment=empty_environment
        )
        write(database, 2)
        refused = sommelier_here(
            "db", "restore", str(backup), "--yes", environment=empty_environment
        )
    assert made.returncode == 0
    assert backup.stat().st_mode & 0o077 == 0
    assert refused.returncode == 1
    assert "is in use: stop the bot first" in refused.stderr
    assert users(database) == [1, 2]
    restored = sommelier_here(
        "db", "restore", str(backup), "--yes", environment=empty_environment
    )
    assert restored.returncode == 0
    (replaced,) = database.parent.glob("*.replaced-*")
    assert (users(database), users(replaced)) == ([1], [1, 2])
    assert {file.name for file in database.parent.iterdir()} == {
        database.name,
        replaced.name,
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no file"),
        (b"A list of wines, not a database.\n" * 99, "file is not a database"),
        (b"", "is not a database of this program"),
    ],
)
def test_a_file_that_is_no_backup_replaces_nothing(
    empty_environment: Environment, database: Path, content: bytes | None, told: str
) -> None:
    write(database, 1)
    file = database.with_name("file")
    if content is not None:
        file.write_bytes(content)
    done = sommelier_here(
        "db", "restore", str(file), "--yes", environment=empty_environment
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert users(database) == [1]


def test_a_backup_replaces_no_file(
    empty_environment: Environment, database: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    done = sommelier_here(
        "db", "backup", str(tmp_path / "mine"), environment=empty_environment
    )
    assert done.returncode == 1
    assert "exists: choose another name" in done.stderr
    assert (tmp_path / "mine").read_text() == "mine"


def test_the_commands_of_alembic_run_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setenv("DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path}/wines.sqlite3")
    alembic(["upgrade", "head"])
    alembic(["check"])  # fails if the tables differ from those that the models declare
