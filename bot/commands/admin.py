"""`sommelier admin`: the page of admins on this machine, whether the bot runs or not."""

import secrets

import typer
from pydantic import SecretStr
from starlette.applications import Starlette

from bot.http.admin import PATH
from bot.http.server import listen, serve_http
from bot.resources import admin_page, open_engine, require_newest_schema
from bot.service import stop_on_signals
from config import Settings
from db.engine import Sessions


async def serve(settings: Settings, port: int) -> None:
    """Serve the page on this machine until stopped, and say where.

    Raises:
        CannotListen: the port is taken.
        DatabaseUnavailable: no connection, or it was not upgraded.
    """
    token = secrets.token_urlsafe(24)
    async with open_engine(settings) as engine:
        await require_newest_schema(engine)
        page = admin_page(settings, Sessions(engine), SecretStr(token))
        listener = listen("127.0.0.1", port)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
        typer.echo(f"Open {address}?token={token}\nCtrl-C ends it.")
        stop = stop_on_signals()
        app = Starlette(routes=page.routes())
        await serve_http(app, host="", port=0, stop=stop, sockets=[listener])
