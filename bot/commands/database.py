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
    from db import migrate

    async def upgrade() -> None:
        async with open_engine(settings) as engine:
            before = await migrate.current(engine)
            await migrate.upgrade(engine)
        done = "was up to date" if before == migrate.head() else f"upgraded from {before or 'none'}"
        typer.echo(f"The database is at {migrate.head()}; it {done}.")

    asyncio.run(upgrade())


@app.command("status")
def status() -> None:
    """Show the database's schema version. Exit status 1 if it needs an upgrade."""
    settings = open_settings("WARNING")
    from bot.resources import open_engine
    from db import migrate

    async def status() -> str | None:
        async with open_engine(settings) as engine:
            return await migrate.current(engine)

    revision = asyncio.run(status())
    typer.echo(f"The database is at {revision or 'none'}, this version's schema {migrate.head()}.")
    if revision != migrate.head():
        typer.echo("Run `sommelier db upgrade`.", err=True)
        raise typer.Exit(1)
