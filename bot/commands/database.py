"""`sommelier db` and `sommelier updates`: the schema, and what could not be answered."""

# ruff: noqa: PLC0415

import asyncio
from typing import Annotated

import typer

from bot.commands.output import fail, open_settings, with_database

db_app = typer.Typer(help="Create and upgrade the database.", no_args_is_help=True)
updates_app = typer.Typer(help="See messages that could not be answered.", no_args_is_help=True)


@db_app.command("upgrade")
def upgrade() -> None:
    """Bring the database to this version's schema."""
    settings = open_settings()
    from bot.resources import open_engine
    from db.engine import newest_revision, schema_revision, upgrade_schema

    async def upgrade() -> str | None:
        async with open_engine(settings) as engine:
            before = await schema_revision(engine)
            await upgrade_schema(engine)
            return before

    before, newest = asyncio.run(upgrade()), newest_revision()
    done = "was up to date" if before == newest else f"upgraded from {before or 'none'}"
    typer.echo(f"The database is at {newest}; it {done}.")


@db_app.command("status")
def status() -> None:
    """Show the database's schema version. Exit status 1 if it needs an upgrade."""
    settings = open_settings()
    from bot.resources import open_engine
    from db.engine import newest_revision, schema_revision

    async def status() -> str | None:
        async with open_engine(settings) as engine:
            return await schema_revision(engine)

    revision, newest = asyncio.run(status()), newest_revision()
    typer.echo(f"The database is at {revision or 'none'}, this version's schema {newest}.")
    if revision != newest:
        typer.echo("Run `sommelier db upgrade`.", err=True)
        raise typer.Exit(1)


@updates_app.command("list")
def list_updates() -> None:
    """Show the updates that were set aside, with the reason. The words in them are not shown."""
    from db.repositories.updates import SqlUpdateRepository

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
    from db.repositories.updates import SqlUpdateRepository

    if not with_database(
        open_settings(), lambda sessions: SqlUpdateRepository(sessions).ask_retry(update_id)
    ):
        fail(f"nothing set aside has the id {update_id}")
    typer.echo(f"Update {update_id} is tried again by the bot that runs.")
