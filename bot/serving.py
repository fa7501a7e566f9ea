"""The HTTP server of a running bot: the webhook, metrics, the API and the admin page."""

import asyncio
from collections.abc import Sequence
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
    server = http_app(
        metrics=turns.metrics,
        backlog=app.talk.repositories.inbox.backlog,
        webhook=webhook,
        routes=[
            *api_routes(settings, resources, turns, app.talk.answerer),
            *(admin_page(settings, resources.sessions, admin).routes() if admin else ()),
        ],
    )
    await serve_http(server, listen(http.host, http.port or 0), stop)


def api_routes(
    settings: Settings, resources: Resources, turns: Turns, answerer: Answerer
) -> "Sequence[BaseRoute]":
    """Return the routes of the HTTP API; none without a token."""
    token = settings.http.api_token
    if token is None:
        return []
    from bot.http.api import Api  # noqa: PLC0415 - FastAPI takes a while to load

    user = keyed_hash("api", token.get_secret_value(), settings.tracing.user_key)
    api = Api(resources=resources, turns=turns, answerer=answerer, token=token, user=user)
    return api.routes()
