"""The HTTP server of a running bot: the webhook, metrics, the API, MCP and the admin page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agent.tracing.recorder import keyed_hash
from bot.app import App, admin_page
from bot.resources import Resources
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
    # FastAPI takes a while to load, and a terminal needs none of it.
    from bot.http.api import Api  # noqa: PLC0415
    from bot.http.server import Webhook, http_app, listen, serve_http  # noqa: PLC0415

    http, turns, routers, routes, webhook = settings.http, app.talk.turns, [], [], None
    async with AsyncExitStack() as stack:
        if http.webhook_url is not None and http.webhook_secret is not None:
            secret = http.webhook_secret
            webhook = Webhook(accept=lanes.accept, secret=secret, metrics=turns.metrics)
        if http.api_token is not None:
            token = http.api_token.get_secret_value()
            user = keyed_hash("api", token, settings.tracing.user_key)
            api = Api(resources=resources, turns=turns, answerer=app.talk.answerer, user=user)
            routers.append(api.router())
            routes.append(await stack.enter_async_context(mcp_route(api)))
        if http.admin_token is not None:
            routers.append(admin_page(settings, resources.sessions, http.admin_token).router())
        server = http_app(
            metrics=turns.metrics,
            backlog=app.talk.repositories.inbox.backlog,
            webhook=webhook,
            routers=routers,
            routes=routes,
            token=http.api_token,
        )
        await serve_http(server, listen(http.host, http.port or 0), stop)


@asynccontextmanager
async def mcp_route(api: "Api") -> "AsyncIterator[BaseRoute]":
    """Open the MCP server beside the API; yield its route."""
    from starlette.routing import Route  # noqa: PLC0415 - loaded with the API

    mcp = await asyncio.to_thread(import_module, "bot.mcp_server")
    tools = mcp.served_tools(api.resources)
    app, sessions = mcp.http_server(tools, partial(api.call_tool, tools))
    async with sessions:
        yield Route("/mcp", app)
