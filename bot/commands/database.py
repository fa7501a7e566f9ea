"""`sommelier db`: upgrade, back up and restore the database."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import make_url

from bot.commands.output import fail, open_settings
from bot.resources import open_engine
from config import Settings
from db.backup import BackupError, back_up
from db.backup import restore as restore_database
from db.schema import find_schema, newest_revision, upgrade_schema

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def db() -> None:
    """Create, upgrade, back up and restore the database."""


@app.command("upgrade")
def upgrade() -> None:
    """Bring the database to this release's schema."""
    previous, revision = asyncio.run(_upgrade(open_settings()))
    if previous == revision:
        change = "was up to date"
    else:
        change = f"upgraded from {previous or 'none'}"
    typer.echo(f"The database is at {revision}; it {change}.")
    if revision != newest_revision():
        typer.echo("That is the schema of a later release, which this release can use.")


async def _upgrade(settings: Settings) -> tuple[str | None, str | None]:
    """Upgrade the database, and return its revisions before and after.

    The first one is None if the database was empty.
    """
    async with open_engine(settings) as engine:
        previous = await find_schema(engine)
        await upgrade_schema(engine)
        upgraded = await find_schema(engine)
        return previous.revision, upgraded.revision


@app.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(help="The new file; it must not exist.")],
) -> None:
    """Copy an SQLite database to a file, also while the bot runs."""
    database = _database_file(open_settings())
    try:
        back_up(database, file)
    except BackupError as error:
        fail(str(error))
    typer.echo(f"{database} is copied to {file}.")
    typer.echo("Keep this file safe: all that users wrote is in it.")


@app.command("restore")
def restore(
    file: Annotated[
        Path, typer.Argument(help="A file that `sommelier db backup` wrote.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Put a backup in the place of an SQLite database. Stop the bot first.

    The replaced database is kept beside it. An older schema is upgraded at the next start.
    """
    database = _database_file(open_settings())
    if database.exists() and not yes:
        typer.confirm(
            f"Replace {database}, whose content is kept beside it?", abort=True
        )
    try:
        replaced = restore_database(file, database, datetime.now(UTC))
    except BackupError as error:
        fail(str(error))
    typer.echo(f"{database} is restored from {file}.")
    if replaced:
        typer.echo(
            f"What it held before is in {replaced}: delete that when it is not needed."
        )


def _database_file(settings: Settings) -> Path:
    """Return the file of the configured SQLite database. If it is Postgres, end the command."""
    url = make_url(settings.database_url.get_secret_value())
    if url.get_backend_name() != "sqlite":
        fail("this is for SQLite; for Postgres use pg_dump and pg_restore")
    return Path(url.database or "").expanduser()
