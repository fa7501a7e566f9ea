"""`sommelier updates`, `people` and `admin`: maintenance by an operator."""

import asyncio
import secrets
from typing import Annotated

import typer
from pydantic import SecretStr
from pydantic_core import to_json

from agent.tracing.records import keyed_hash
from bot.commands.output import UserId, fail, open_settings, run_with_database
from bot.http.admin_page import PATH, AdminPage
from bot.http.server import build_http_app, listen, serve_http
from bot.resources import Stores, open_engine
from bot.tasks import run_until, stop_on_signals
from bot.tracing import forget_people, masking_of, trace_link
from bot.turn import Turn
from config import Settings
from db.engine import Sessions
from db.repositories.inbox import Inbox
from db.repositories.people import MemoryRepository
from db.schema import check_schema, find_schema

updates_app = typer.Typer(no_args_is_help=True, add_completion=False)


@updates_app.command("list")
def list_updates() -> None:
    """List the updates that were set aside, with the reason but without their text."""
    updates = run_with_database(open_settings(), lambda sessions: Inbox(sessions).list_set_aside())
    for update in updates:
        received = update.received_at.isoformat(timespec="seconds")
        typer.echo(f"{update.update_id}  {received}  chat {update.chat_id}  {update.error}")


@updates_app.command("retry")
def retry(
    update_id: Annotated[int, typer.Argument(help="An id that `sommelier updates list` shows.")],
) -> None:
    """Have the running bot try an update again, within seconds."""
    settings = open_settings()
    if not run_with_database(settings, lambda sessions: Inbox(sessions).schedule_retry(update_id)):
        fail(f"there is no failed update {update_id}; see `sommelier updates list`")
    typer.echo(f"The running bot will try update {update_id} again.")


people_app = typer.Typer(no_args_is_help=True, add_completion=False)


@people_app.command()
def export(user_id: UserId) -> None:
    """Print all data of a user in the database, as JSON."""
    settings = open_settings()
    user_hash = keyed_hash("user", user_id, settings.trace_user_key)
    data = run_with_database(
        settings, lambda sessions: MemoryRepository(sessions).export(user_id, user_hash)
    )
    typer.echo(to_json(data, indent=2).decode())


@people_app.command()
def forget(
    user_id: UserId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete all data of a user in the database and in Langfuse. This cannot be undone.

    An earlier decision to allow or block the user remains. Messages in Telegram itself are not
    deleted.
    """
    settings = open_settings()
    user_hash = keyed_hash("user", user_id, settings.trace_user_key)
    if not yes:
        typer.confirm(f"Delete all data of {user_id}?", abort=True)

    async def delete(sessions: Sessions) -> None:
        turn = Turn(user_id=user_id, user=user_hash)
        turn.forget_user()
        stores = Stores(sessions)
        await stores.commits.save(turn.collected())
        await forget_people(settings, stores.upkeep)

    run_with_database(settings, delete)
    typer.echo("Deleted. The running bot also looks for traces that Langfuse stores later.")


def admin(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 selects a free port.")] = 8765,
) -> None:
    """Show usage, cost, failures and disliked answers in a browser on this machine."""
    asyncio.run(_serve_page(open_settings(), port))


async def _serve_page(settings: Settings, port: int) -> None:
    """Print the address of the page, and serve it on this machine until stopped."""
    token = secrets.token_urlsafe(24)
    async with open_engine(settings) as engine:
        check_schema(await find_schema(engine), engine.url)
        page = AdminPage(
            sessions=Sessions(engine),
            hide=masking_of(settings).mask_words,
            token=SecretStr(token),
            link=trace_link(settings),
        )
        listener = listen("127.0.0.1", port)
        port = listener.getsockname()[1]  # the port that was selected, if it was 0
        typer.echo(f"Open http://admin:{token}@127.0.0.1:{port}{PATH}\nCtrl-C ends it.")
        app = build_http_app([page.build_router()])

        async def serve() -> None:
            await serve_http(app, listener)

        await run_until(stop_on_signals(), serve)
