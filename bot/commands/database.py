"""`sommelier db` and `sommelier updates`: the schema, and what could not be answered."""

import asyncio
from typing import Annotated

import typer

from bot.commands.output import fail, open_settings, with_database
from bot.resources import open_engine
from config import Settings
from db.engine import newest_revision, schema_revision, upgrade_schema
from db.repositories.updates import SqlUpdateRepository

db_app = typer.Typer(no_args_is_help=True, add_completion=False)
updates_app = typer.Typer(no_args_is_help=True, add_completion=False)


@db_app.command("upgrade")
def upgrade() -> None:
    """Bring the database to this version's schema."""
    before, newest = asyncio.run(_revision(open_settings(), upgraded=True)), newest_revision()
    done = "was up to date" if before == newest else f"upgraded from {before or 'none'}"
    typer.echo(f"The database is at {newest}; it {done}.")


@db_app.command("status")
def status() -> None:
    """Show the database's schema version. Exit status 1 if it needs an upgrade."""
    revision, newest = asyncio.run(_revision(open_settings())), newest_revision()
    typer.echo(f"The database is at {revision or 'none'}, this version's schema {newest}.")
    if revision != newest:
        typer.echo("Run `sommelier db upgrade`.", err=True)
        raise typer.Exit(1)


async def _revision(settings: Settings, *, upgraded: bool = False) -> str | None:
    """The revision that the database was at, before it is `upgraded`."""
    async with open_engine(settings) as engine:
        before = await schema_revision(engine)
        if upgraded:
            await upgrade_schema(engine)
        return before


@updates_app.command("list")
def list_updates() -> None:
    """Show the updates that were set aside, with the reason. The words in them are not shown."""
    found = with_database(
        open_settings(), lambda sessions: SqlUpdateRepository(sessions).set_aside_list()
    )
    for update in found:
        received = update.received_at.isoformat(timespec="seconds")
        typer.echo(f"{update.update_id}  {received}  chat {update.chat_id}  {update.error}")


@updates_app.command("retry")
def retry(
    update_id: Annotated[int, typer.Argument(help="An id that `sommelier updates list` shows.")],
) -> None:
    """Have an update tried again by the bot that runs, within seconds."""
    if not with_database(
        open_settings(), lambda sessions: SqlUpdateRepository(sessions).ask_retry(update_id)
    ):
        fail(f"nothing set aside has the id {update_id}")
    typer.echo(f"Update {update_id} is tried again by the bot that runs.")
