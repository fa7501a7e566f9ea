"""Back up and restore an SQLite database as one file. For Postgres there is `pg_dump`."""

import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

LOCK_SECONDS = 2.0
"""How long to wait for another program that has locked the database."""


class BackupError(Exception):
    """A database cannot be backed up or restored. Nothing was changed."""


def back_up(database: Path, target: Path) -> None:
    """Write a copy of a database, as it is at one moment, to a new file. The bot may be running.

    Raises:
        BackupError: there is no database, the file exists, or it cannot be written.
    """
    if not database.exists():
        raise BackupError(f"there is no database {database}")
    if target.exists():
        raise BackupError(
            f"{target} exists: choose another name, a backup replaces nothing"
        )
    try:
        _copy(database, target)
    except (OSError, sqlite3.Error) as error:
        target.unlink(missing_ok=True)
        raise BackupError(f"{database} cannot be copied to {target}: {error}") from None


def restore(
    backup: Path,
    database: Path,
    now: datetime,
) -> Path | None:
    """Put a backup in the place of a database that no program uses.

    Return the file that keeps the replaced database, or None if there was none.

    Raises:
        BackupError: the backup is damaged, or a program uses the database.
    """
    if not backup.exists():
        raise BackupError(f"there is no file {backup}")
    copy = database.with_name(f"{database.name}.restoring")
    copy.unlink(missing_ok=True)
    try:
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy(backup, copy)
        _check(copy)
        replaced = None
        if database.exists():
            _empty_log(database)
            suffix = f"replaced-{now:%Y%m%dT%H%M%S}"
            replaced = database.with_name(f"{database.name}.{suffix}")
            # A second name for the file: at no moment is there no database.
            os.link(database, replaced)
        copy.replace(database)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"{backup} cannot be restored: {error}") from None
    finally:
        copy.unlink(missing_ok=True)
    return replaced


def _copy(source: Path, target: Path) -> None:
    """Copy a database to a new file that only its owner may read."""
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.close(descriptor)
    with (
        closing(_open(source)) as reader,
        closing(sqlite3.connect(target)) as writer,
    ):
        reader.backup(writer)
        # In this mode, no log with the newest changes stands beside the file.
        writer.execute("PRAGMA journal_mode = DELETE")


def _check(file: Path) -> None:
    """Raise BackupError if a database is damaged, or is not a database of this program."""
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
    with closing(_open(file)) as connection:
        (result,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if result != "ok":
            raise BackupError(f"the backup is damaged: {result}")
        (table_count,) = connection.execute(query).fetchone()
        if table_count == 0:
            raise BackupError("the file is not a database of this program")


def _empty_log(database: Path) -> None:
    """Write the log of a database back into its file, and remove the log.

    SQLite would otherwise take it for the log of the restored file.

    Raises:
        BackupError: another program has opened the database.
    """
    with closing(_open(database)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.rollback()
        except sqlite3.OperationalError:
            raise BackupError(f"{database} is in use: stop the bot first") from None


def _open(file: Path) -> sqlite3.Connection:
    """Connect to a file that exists: without `mode=rw`, SQLite would make a missing one."""
    address = file.absolute().as_uri()
    return sqlite3.connect(
        f"{address}?mode=rw",
        uri=True,
        timeout=LOCK_SECONDS,
    )
