"""`sommelier people`: what is kept of one person, shown or deleted, as people may ask of you."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from pydantic_core import to_json

from agent.tracing.http import Unavailable
from agent.tracing.langfuse.client import LangfuseClient, delete_traces
from agent.tracing.recorder import keyed_hash
from bot.commands.output import fail, open_settings, print_json, with_database, write_file
from config import Settings
from db.repositories.privacy import SqlPersonalData

LANGFUSE_SECONDS = 30.0

app = typer.Typer(no_args_is_help=True, add_completion=False)

UserId = Annotated[int, typer.Argument(help="Their number in Telegram, as `/trace` and logs tell.")]


@app.command()
def export(
    user_id: UserId,
    to: Annotated[Path | None, typer.Option(help="A file; otherwise it is printed.")] = None,
) -> None:
    """Give all that the database keeps of a person, as JSON."""
    settings = open_settings()
    user = _hashed(settings, user_id)
    kept = with_database(settings, lambda sessions: SqlPersonalData(sessions).export(user_id, user))
    if to is None:
        print_json(kept)
        return
    write_file(to, to_json(kept, indent=2).decode())
    typer.echo(f"{sum(map(len, kept.values()))} rows were written to {to}.")


@app.command()
def forget(
    user_id: UserId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete all that is kept of a person, in the database and in Langfuse. It cannot be undone.

    That they were allowed or blocked stays. Messages in Telegram itself are theirs to delete.
    """
    settings = open_settings()
    user = _hashed(settings, user_id)
    if not yes:
        typer.confirm(f"Delete all that is kept of {user_id}?", abort=True)
    gone = with_database(settings, lambda sessions: SqlPersonalData(sessions).forget(user_id, user))
    said = [f"{count} {name}" for name, count in gone.items() if count]
    typer.echo(f"Deleted here: {', '.join(said) or 'nothing, there was nothing'}.")
    if settings.tracing.langfuse_keys:
        try:
            count = asyncio.run(_forget_in_langfuse(settings, user))
        except Unavailable as error:
            fail(f"their traces in Langfuse are still there: {error}; run this again")
        typer.echo(f"Langfuse was told to delete {count} traces; it does so within minutes.")


async def _forget_in_langfuse(settings: Settings, user: str) -> int:
    public_key, secret_key = settings.tracing.langfuse_keys or ("", "")
    client = LangfuseClient(
        public_key, secret_key, settings.tracing.base_url, seconds=LANGFUSE_SECONDS
    )
    try:
        return await delete_traces(client, user)
    finally:
        await client.aclose()


def _hashed(settings: Settings, user_id: int) -> str:
    return keyed_hash("user", user_id, settings.tracing.user_key)
