"""`sommelier updates` and `sommelier admin`: what an operator looks after."""

import asyncio
import secrets
from typing import Annotated

import typer
from pydantic import SecretStr

from bot.commands.output import fail, open_settings, run_with_database
from bot.http.admin_page import PATH, AdminPage
from bot.http.server import build_http_app, listen, serve_http
from bot.resources import open_engine
from bot.tasks import run_until, stop_on_signals
from bot.tracing import masking_of, trace_link
from config import Settings
from db.engine import Sessions
from db.repositories.inbox import Inbox
from db.schema import check_schema, find_schema

updates_app = typer.Typer(no_args_is_help=True, add_completion=False)


@updates_app.command("list")
def list_updates() -> None:
    """List the updates that were set aside, each with the reason, without their text."""
    updates = run_with_database(
        open_settings(), lambda sessions: Inbox(sessions).list_set_aside()
    )
    if not updates:
        typer.echo("No update was set aside.")
    for update in updates:
        received = update.received_at.isoformat(timespec="seconds")
        typer.echo(
            f"{update.update_id}  {received}  chat {update.chat_id}  {update.error}"
        )


@updates_app.command("retry")
def retry(
    update_id: Annotated[
        int, typer.Argument(help="An id that `sommelier updates list` shows.")
    ],
) -> None:
    """Have the running bot try an update again, within seconds."""
    is_scheduled = run_with_database(
        open_settings(), lambda sessions: Inbox(sessions).schedule_retry(update_id)
    )
    if not is_scheduled:
        fail(f"there is no failed update {update_id}; see `sommelier updates list`")
    typer.echo(f"The running bot will try update {update_id} again.")


def admin(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="0 selects a free port.")
    ] = 8765,
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
        # The system chose one if the given port was 0.
        host, chosen_port = listener.getsockname()
        address = f"http://admin:{token}@{host}:{chosen_port}{PATH}"
        typer.echo(f"Open {address}\nCtrl-C ends it.")
        app = build_http_app([page.build_router()])

        async def serve() -> None:
            await serve_http(app, listener)

        await run_until(stop_on_signals(), serve)
