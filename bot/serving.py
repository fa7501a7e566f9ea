"""The HTTP server of a running bot: the webhook, metrics, the API, MCP and the admin page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agent.sommelier.service import Answerer
from agent.tracing.recorder import keyed_hash
from bot.app import App, admin_page
from bot.resources import Resources
from bot.turn import Turns
from bot.updates.lanes import Lanes
from config import Settings

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from bot.http.api import Api


async def serve(
    settings: Settings, resources: Resources, app: App, lanes: Lanes, stop: asyncio.Event
) -> None:
    """Serve HTTP until `stop` is set.

    Raises:
        CannotListen: the address is taken.
    """
    from bot.http.server import Webhook, http_app, listen, serve_http  # noqa: PLC0415 - not for the terminal

    http, turns = settings.http, app.talk.turns
    secret, admin = http.webhook_secret, http.admin_token
    webhook = None
    if http.webhook_url is not None and secret is not None:
        webhook = Webhook(accept=lanes.accept, secret=secret, metrics=turns.metrics)
    api = api_of(settings, resources, turns, app.talk.answerer)
    async with api_routes(api) as routes:
        server = http_app(
            metrics=turns.metrics,
            backlog=app.talk.repositories.inbox.backlog,
            webhook=webhook,
            routes=[
                *routes,
                *(admin_page(settings, resources.sessions, admin).routes() if admin else ()),
            ],
        )
        await serve_http(server, listen(http.host, http.port or 0), stop)


def api_of(
    settings: Settings, resources: Resources, turns: Turns, answerer: Answerer
) -> "Api | None":
    """Return the HTTP API; None without a token."""
    token = settings.http.api_token
    if token is None:
        return None
    from bot.http.api import Api  # noqa: PLC0415 - FastAPI takes a while to load

    user = keyed_hash("api", token.get_secret_value(), settings.tracing.user_key)
    return Api(resources=resources, turns=turns, answerer=answerer, token=token, user=user)


@asynccontextmanager
async def api_routes(api: "Api | None") -> "AsyncIterator[list[BaseRoute]]":
    """Yield the routes of the API, and of the MCP server beside it; none without an API."""
    if api is None:
        yield []
        return
    from starlette.routing import Route  # noqa: PLC0415 - loaded with the API

    mcp = await asyncio.to_thread(import_module, "bot.mcp_server")
    tools = mcp.served_tools(api.resources)
    app, sessions = mcp.http_server(tools, partial(api.call_tool, tools))
    async with sessions:
        yield [*api.routes(), Route("/mcp", app, middleware=[api.guard])]
