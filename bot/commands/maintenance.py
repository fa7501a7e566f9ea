"""`sommelier db`, `updates`, `people` and `admin`: the schema, and what an operator looks after."""

import asyncio
import secrets
from functools import partial
from typing import Annotated

import typer
from pydantic import SecretStr
from pydantic_core import to_json

from agent.tracing.records import keyed_hash
from agent.turn import Change
from bot.commands.output import fail, open_settings, with_database
from bot.http.admin_page import PATH, AdminPage
from bot.http.server import build_app, listen, serve_http
from bot.resources import Repositories, open_engine, require_newest_schema
from bot.tasks import run_until, stop_on_signals
from bot.tracing import forget_people, masking_of, trace_link
from config import Settings
from db.engine import REVISION, Sessions, schema_revision, upgrade_schema
from db.repositories.inbox import Inbox
from db.repositories.people import MemoryRepository

db_app = typer.Typer(no_args_is_help=True, add_completion=False)
updates_app = typer.Typer(no_args_is_help=True, add_completion=False)


@db_app.callback()
def db() -> None:
    """Create and upgrade the database."""


@db_app.command("upgrade")
def upgrade() -> None:
    """Bring the database to this version's schema."""
    before, newest = asyncio.run(_upgraded(open_settings())), REVISION
    done = "was up to date" if before == newest else f"upgraded from {before or 'none'}"
    typer.echo(f"The database is at {newest}; it {done}.")


async def _upgraded(settings: Settings) -> str | None:
    """Upgrade the database, and return the revision that it had."""
    async with open_engine(settings) as engine:
        before = await schema_revision(engine)
        await upgrade_schema(engine)
        return before


@updates_app.command("list")
def list_updates() -> None:
    """Show the updates that were set aside, with the reason. The words in them are not shown."""
    found = with_database(open_settings(), lambda sessions: Inbox(sessions).list_set_aside())
    for update in found:
        received = update.received_at.isoformat(timespec="seconds")
        typer.echo(f"{update.update_id}  {received}  chat {update.chat_id}  {update.error}")


@updates_app.command("retry")
def retry(
    update_id: Annotated[int, typer.Argument(help="An id that `sommelier updates list` shows.")],
) -> None:
    """Have an update tried again by the bot that runs, within seconds."""
    if not with_database(
        open_settings(), lambda sessions: Inbox(sessions).schedule_retry(update_id)
    ):
        fail(f"nothing set aside has the id {update_id}")
    typer.echo(f"Update {update_id} is tried again by the bot that runs.")


people_app = typer.Typer(no_args_is_help=True, add_completion=False)

UserId = Annotated[int, typer.Argument(help="Their number in Telegram, as `/trace` and logs tell.")]


@people_app.command()
def export(user_id: UserId) -> None:
    """Print all that the database stores of a user, as JSON."""
    settings = open_settings()
    user = keyed_hash("user", user_id, settings.trace_user_key)
    found = with_database(
        settings, lambda sessions: MemoryRepository(sessions).export(user_id, user)
    )
    typer.echo(to_json(found, indent=2).decode())


@people_app.command()
def forget(
    user_id: UserId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete all that is stored of a user, in the database and in Langfuse. It cannot be undone.

    That they were allowed or blocked stays. Messages in Telegram itself are theirs to delete.
    """
    settings = open_settings()
    user = keyed_hash("user", user_id, settings.trace_user_key)
    if not yes:
        typer.confirm(f"Delete all that is stored of {user_id}?", abort=True)

    async def delete(sessions: Sessions) -> None:
        repositories = Repositories(sessions)
        await repositories.turns.change([Change(user_id=user_id, forget_user_hash=user)])
        await forget_people(settings, repositories.memory)

    with_database(settings, delete)
    typer.echo("Deleted. The bot that runs looks for what may be left in Langfuse.")


def admin(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8765,
) -> None:
    """Show what happened, what it cost and what people disliked, in a browser on this machine."""
    asyncio.run(_serve(open_settings(), port))


async def _serve(settings: Settings, port: int) -> None:
    """Serve the page on this machine until stopped, and say where."""
    token = secrets.token_urlsafe(24)
    async with open_engine(settings) as engine:
        await require_newest_schema(engine)
        hide, link = masking_of(settings).words, trace_link(settings)
        page = AdminPage(Sessions(engine), hide, SecretStr(token), link)
        listener = listen("127.0.0.1", port)
        port = listener.getsockname()[1]
        typer.echo(f"Open http://admin:{token}@127.0.0.1:{port}{PATH}\nCtrl-C ends it.")
        serve = partial(serve_http, build_app([page.build_router()]), listener)
        await run_until(stop_on_signals(), serve)
