"""`sommelier updates`: what could not be answered, and having it tried again."""

# ruff: noqa: PLC0415

import asyncio
from typing import Annotated

import typer

from bot.commands.settings import open_settings

app = typer.Typer(help="See messages that could not be answered.", no_args_is_help=True)


@app.command("list")
def list_updates() -> None:
    """Show the updates that were set aside, with the reason. The words in them are not shown."""
    settings = open_settings("WARNING")
    from bot.resources import open_database
    from db.repositories.updates import SqlUpdateRepository, StoredUpdate

    async def read() -> list[StoredUpdate]:
        async with open_database(settings) as sessions:
            return await SqlUpdateRepository(sessions).set_aside_list()

    for update in asyncio.run(read()):
        received = update.received_at.isoformat(timespec="seconds")
        typer.echo(f"{update.update_id}  {received}  chat {update.chat_id}  {update.error}")


@app.command("retry")
def retry(
    update_id: Annotated[int, typer.Argument(help="An id that `sommelier updates list` shows.")],
) -> None:
    """Have an update tried again by the bot that runs, within seconds."""
    settings = open_settings("WARNING")
    from bot.resources import open_database
    from db.repositories.updates import SqlUpdateRepository

    async def ask() -> bool:
        async with open_database(settings) as sessions:
            return await SqlUpdateRepository(sessions).ask_retry(update_id)

    if not asyncio.run(ask()):
        typer.echo(f"sommelier: nothing set aside has the id {update_id}", err=True)
        raise typer.Exit(1)
    typer.echo(f"Update {update_id} is tried again by the bot that runs.")
