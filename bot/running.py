"""Run the bot until it is stopped: receive updates, run turns, serve HTTP, forget old data.

`bot.app` puts the bot together.
"""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from agent.engine.llm import load_client
from agent.fallback.words import lexicon
from agent.tracing.records import keyed_hash
from bot.admin.commands import send_broadcasts
from bot.app import STATS_RETENTION, App, admin_page, open_app
from bot.leading import Locks, single_process, while_leading
from bot.resources import Resources, open_resources
from bot.tasks import (
    Work,
    attempt,
    bounded,
    end_when_hanging,
    every,
    run_all,
    stop_on_signals,
    unless,
)
from bot.telegram.connection import introduce
from bot.telegram.handlers import show_commands
from bot.telegram.reminders import Reminding
from bot.tracing import forget_people
from bot.updates.accept import point_webhook, poll
from bot.updates.lanes import Lanes
from config import Settings, SettingsError
from db.repositories.inbox import Inbox

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from bot.http.api import Api

UPDATE_RETENTION: Final = timedelta(days=7)
"""The time after which the record of an answered update is deleted."""
TRACE_STORE_BYTES: Final = 500_000_000
"""The most that traces may take in the database; the oldest go first."""
FORGET_SECONDS: Final = 3600.0
FORGET_PEOPLE_SECONDS: Final = 5.0
REMIND_SECONDS: Final = 900.0
BROADCAST_SECONDS: Final = 2.0


async def run_bot(settings: Settings, stop: asyncio.Event | None = None) -> None:
    """Answer people in Telegram until SIGTERM or SIGINT, or until `stop` is set.

    Turns that do not end in time are cancelled: the next start or another process resumes them.

    Raises:
        AlreadyRunning: another process answers from this SQLite file.
        CannotListen: the HTTP address is taken.
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or it is not one.
        TokenRejected: Telegram does not know the token.
    """
    if settings.telegram_bot_token is None:
        raise SettingsError("TELEGRAM_BOT_TOKEN is not set: set it to what @BotFather gives you")
    stop, token = stop or stop_on_signals(), settings.telegram_bot_token.get_secret_value()
    async with AsyncExitStack() as stack:
        resources = await stack.enter_async_context(open_resources(settings))
        url, inbox = settings.database_url.get_secret_value(), resources.repositories.inbox
        locks = await stack.enter_async_context(open_locks(url, inbox))
        app = await stack.enter_async_context(open_app(settings, resources, token, locks=locks))
        lanes = await stack.enter_async_context(open_lanes(settings, app, locks))
        if settings.has_model:
            await load_client()
        await asyncio.to_thread(lexicon)
        gc.freeze()  # these objects live until the end: the collector need not look at them
        work = [
            *work_of_lanes(app, lanes),
            receive(settings, app, lanes),
            while_leading(locks, partial(lead, settings, app, lanes)),
            end_when_hanging(),
        ]
        if app.exporter is not None:
            work.append(app.exporter.run())
        if settings.http_port is not None:
            work.append(serve(settings, resources, app, lanes))
        await unless(stop, run_all(*work))
        await lanes.finish(settings.shutdown_seconds)


@asynccontextmanager
async def open_locks(url: str, inbox: Inbox) -> AsyncIterator[Locks]:
    """Open the locks of lanes, which several processes share on Postgres.

    Raises:
        AlreadyRunning: another process answers from this SQLite file.
    """
    if url.startswith("sqlite"):
        with single_process(url.partition(":///")[2]):
            yield Locks(inbox)
        return
    from bot.updates.replicas import ReplicaLocks  # noqa: PLC0415 - loads psycopg

    locks = ReplicaLocks(url)
    try:
        yield locks
    finally:
        await bounded("the locks of lanes", locks.close)


@asynccontextmanager
async def open_lanes(settings: Settings, app: App, locks: Locks) -> AsyncIterator[Lanes]:
    """Open the lanes; cancel their turns at the end."""
    conversation = app.conversation
    lanes = Lanes(
        inbox=conversation.repositories.inbox,
        sender=conversation.sender,
        dispatcher=app.dispatcher,
        locks=locks,
        metrics=conversation.turns.metrics,
        burst_window=timedelta(seconds=settings.burst_seconds),
        max_tries=settings.update_max_tries,
    )
    if type(locks) is Locks:
        for queue in (conversation.repositories.trace_queue, conversation.repositories.score_queue):
            await attempt("looking for traces that wait", queue.resume)
    try:
        yield lanes
    finally:
        await bounded("turns", lanes.finish)


def work_of_lanes(app: App, lanes: Lanes) -> list[Work]:
    """Return what runs beside lanes: taking over what nobody runs, and hearing other processes."""

    async def listen() -> None:
        async for notice in lanes.locks.notices():
            if "lane" in notice:
                lanes.notice(notice["lane"])
            else:
                app.conversation.turns.running.stop(**notice)

    look = lanes.schedule_unowned
    return [listen(), every(lanes.locks.look_seconds, "looking for lanes that nobody runs", look)]


async def lead(settings: Settings, app: App, lanes: Lanes) -> None:
    """Do what only one process does: forget, remind, send broadcasts, and poll for updates."""
    await lanes.ready.wait()
    reminding = Reminding(conversation=app.conversation, zone=settings.time_zone)
    forget = partial(forget_old, settings, app)
    broadcasts = partial(send_broadcasts, app.conversation)
    forget_them = partial(forget_people, settings, app.conversation.repositories.deletions)
    work: list[Work] = [
        every(FORGET_SECONDS, "forgetting old data", forget),
        every(FORGET_PEOPLE_SECONDS, "forgetting people", forget_them),
        every(REMIND_SECONDS, "reminding", reminding.round),
        every(BROADCAST_SECONDS, "sending to everyone", broadcasts),
    ]
    if settings.webhook_url is None:
        work.append(poll(app.application, lanes.accept))
    await run_all(*work)


async def receive(settings: Settings, app: App, lanes: Lanes) -> None:
    """Let turns begin once Telegram has told the bot's name, and set the webhook if there is one.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    application = app.application
    await introduce(application)
    lanes.ready.set()
    await show_commands(application)
    if (url := settings.webhook_url) and (secret := settings.webhook_secret):
        from bot.http.server import WEBHOOK_PATH  # noqa: PLC0415

        await point_webhook(application, url + WEBHOOK_PATH, secret.get_secret_value())


async def serve(settings: Settings, resources: Resources, app: App, lanes: Lanes) -> None:
    """Serve HTTP until cancelled.

    Raises:
        CannotListen: the address is taken.
    """
    # FastAPI takes a while to load, and a terminal needs none of it.
    from bot.http.api import Api  # noqa: PLC0415
    from bot.http.server import Webhook, http_app, listen, pages, serve_http  # noqa: PLC0415

    turns, routers, routes, webhook = app.conversation.turns, [], [], None
    async with AsyncExitStack() as stack:
        if settings.webhook_url is not None and settings.webhook_secret is not None:
            secret = settings.webhook_secret
            webhook = Webhook(accept=lanes.accept, secret=secret, metrics=turns.metrics)
        if settings.api_token is not None:
            token = settings.api_token.get_secret_value()
            user = keyed_hash("api", token, settings.trace_user_key)
            api = Api(
                resources=resources, turns=turns, answerer=app.conversation.answerer, user=user
            )
            routers.append(api.router())
            routes.append(await stack.enter_async_context(mcp_route(api)))
        if settings.admin_token is not None:
            routers.append(admin_page(settings, resources.sessions, settings.admin_token).router())
        backlog = app.conversation.repositories.inbox.backlog
        routers.append(pages(turns.metrics, backlog, webhook))
        server = http_app(routers, routes, settings.api_token)
        await serve_http(server, listen(settings.http_host, settings.http_port or 0))


@asynccontextmanager
async def mcp_route(api: "Api") -> "AsyncIterator[BaseRoute]":
    """Open the MCP server beside the API; yield its route."""
    from starlette.routing import Route  # noqa: PLC0415 - loaded with the API

    mcp = await asyncio.to_thread(import_module, "bot.mcp_server")
    tools = mcp.served_tools(api.resources)
    app, sessions = mcp.http_server(tools, partial(api.call_tool, tools))
    async with sessions:
        yield Route("/mcp", app)


async def forget_old(settings: Settings, app: App) -> None:
    """Delete data that is too old by the settings; the next round makes up for a failure."""
    repositories = app.conversation.repositories

    async def forget_traces() -> None:
        retention = timedelta(days=settings.trace_retention_days)
        unsent = await repositories.traces.forget(retention, TRACE_STORE_BYTES)
        if app.exporter is not None:
            app.exporter.given_up += unsent

    for delete in (
        partial(repositories.turns.forget, STATS_RETENTION),
        forget_traces,
        repositories.cares.forget_expired,
        partial(repositories.inbox.forget, UPDATE_RETENTION),
    ):
        await attempt("forgetting old data", delete)
