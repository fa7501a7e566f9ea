"""`sommelier db`: the database's schema."""

# ruff: noqa: PLC0415

import asyncio

import typer

from bot.commands.settings import open_settings

app = typer.Typer(help="Create and upgrade the database.", no_args_is_help=True)


@app.command("upgrade")
def upgrade() -> None:
    """Bring the database to this version's schema."""
    settings = open_settings("WARNING")
    from bot.resources import open_engine
    from db.engine import newest_revision, schema_revision, upgrade_schema

    async def upgrade() -> None:
        async with open_engine(settings) as engine:
            before = await schema_revision(engine)
            await upgrade_schema(engine)
        newest = newest_revision()
        done = "was up to date" if before == newest else f"upgraded from {before or 'none'}"
        typer.echo(f"The database is at {newest}; it {done}.")

    asyncio.run(upgrade())


@app.command("status")
def status() -> None:
    """Show the database's schema version. Exit status 1 if it needs an upgrade."""
    settings = open_settings("WARNING")
    from bot.resources import open_engine
    from db.engine import newest_revision, schema_revision

    async def status() -> str | None:
        async with open_engine(settings) as engine:
            return await schema_revision(engine)

    revision = asyncio.run(status())
    newest = newest_revision()
    typer.echo(f"The database is at {revision or 'none'}, this version's schema {newest}.")
    if revision != newest:
        typer.echo("Run `sommelier db upgrade`.", err=True)
        raise typer.Exit(1)
