"""Put the bot together, and run it until it is stopped.

The parts that know nothing of Telegram are put together in `bot.core`.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from agent.cellar.picture import CellarPainter
from agent.engine.llm import load_client
from agent.mcp import McpServers
from agent.query_reading.tables import load_lexicon
from agent.tracing.records import compute_keyed_hash
from bot import tasks
from bot.clicks import CountedLinks
from bot.core import Core, open_core
from bot.resources import (
    REFERRAL_RETENTION,
    STATS_RETENTION,
    Stores,
    delete_old_data,
    open_resources,
)
from bot.telegram.admin import admin_handlers, send_broadcasts
from bot.telegram.answer_buttons import answer_handlers, buttons_below
from bot.telegram.ask_shop import ask_shop_handlers
from bot.telegram.bottles import bottle_handlers
from bot.telegram.cellar import cellar_handlers
from bot.telegram.cellar_files import cellar_file_handlers
from bot.telegram.chat import AnyHandler, ButtonsBelow, Services
from bot.telegram.connection import (
    ALLOWED_UPDATES,
    AnyBot,
    introduce,
    poll,
    retry_until_answered,
    telegram_bot,
)
from bot.telegram.dispatch import Dispatcher
from bot.telegram.handlers import all_handlers, show_commands
from bot.telegram.inline import inline_handlers
from bot.telegram.media import media_handlers
from bot.telegram.memory import memory_handlers, send_reminders
from bot.telegram.progress import Progress
from bot.telegram.rate_limit import Limit, RateLimit
from bot.telegram.rating import rating_handlers
from bot.telegram.sender import Sender
from bot.telegram.settings import Privacy, settings_handlers
from bot.telegram.shop_replies import report_undelivered, shop_reply_handlers
from bot.telegram.stock import stock_handlers
from bot.tracing import forget_people, masking_of, trace_link
from bot.turn import RunningTurns
from bot.updates.life import UpdateRunner
from bot.updates.locks import Locks, open_locks, while_leading
from bot.updates.scheduler import Scheduler
from config import Settings, SettingsError
from db.repositories.inbox import Inbox

if TYPE_CHECKING:
    from fastapi import APIRouter
    from starlette.routing import BaseRoute

    from bot.http.api import Api

TRACE_SERVICE: Final = "the service for traces"
FINISH_SECONDS: Final = 20.0
"""How long running turns may take to end after the bot is told to stop."""
# How often the leading process does its tasks:
DELETE_OLD_DATA_SECONDS: Final = 3600.0
FORGET_PEOPLE_SECONDS: Final = 5.0
REMIND_SECONDS: Final = 900.0
REPORT_SECONDS: Final = 2.0
BROADCAST_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The parts of the running bot."""

    core: Core
    bot: AnyBot
    services: Services
    sender: Sender
    scheduler: Scheduler


async def run_bot(settings: Settings, stop: asyncio.Event | None = None) -> None:
    """Answer people in Telegram until SIGTERM or SIGINT, or until `stop` is set.

    Turns that do not end in time are cancelled. Such turns are run again by another process, or
    after the next start.

    Raises:
        AlreadyRunning: another process runs the bot with this SQLite file.
        CannotListen: the HTTP address is taken.
        DatabaseUnusable: there is no connection, or a Postgres database has an old schema.
        SettingsError: the bot token is missing, or another setting is wrong.
        TokenRejected: Telegram does not know the token.
    """
    if settings.telegram_bot_token is None:
        raise SettingsError(
            "TELEGRAM_BOT_TOKEN is not set: set it to what @BotFather gives you"
        )
    token = settings.telegram_bot_token
    database_url = settings.database_url.get_secret_value()
    stop = stop or tasks.stop_on_signals()
    async with (
        open_resources(settings) as resources,
        open_locks(database_url, Inbox(resources.sessions)) as locks,
        open_core(settings, resources, RunningTurns(locks.stop_elsewhere)) as core,
        open_app(core, token, locks) as app,
    ):
        if not locks.are_shared:
            await _resume_after_crash(core.stores)
        # These take most of a second. The first user should not wait for them.
        has_language_model = settings.server is not None
        if has_language_model:
            await load_client()
        await asyncio.to_thread(load_lexicon)
        # Nearly all objects that exist now live until the end. So the collector can leave them out.
        gc.freeze()
        await run_app(app, stop, tasks.exit_if_loop_hangs)


async def _resume_after_crash(stores: Stores) -> None:
    """Drop all claims and reservations. No other process runs, so a crash has left them."""
    await stores.trace_queue.resume()
    await stores.score_queue.resume()
    if stores.budgets is not None:
        await stores.budgets.release_all()


async def run_app(
    app: App, stop: asyncio.Event, *watchers: tasks.AsyncFunction
) -> None:
    """Accept and answer updates until `stop` is set. Then wait for the turns that still run.

    Meanwhile a user may correct the message of such a turn or press Stop, and another process gets
    that update. So the scheduler watches for the notices of other processes until the last turn has
    ended. The `watchers` run as long.
    """
    have_turns_ended = asyncio.Event()

    async def receive() -> None:
        await start_receiving(app)

    async def lead() -> None:
        async def run_tasks() -> None:
            await run_leader_tasks(app)

        await while_leading(app.scheduler.locks, run_tasks)

    async def serve_http() -> None:
        if app.core.settings.http_port is not None:
            await serve(app)

    async def accept_then_finish() -> None:
        await tasks.run_until(stop, receive, lead, serve_http)
        await app.scheduler.finish(FINISH_SECONDS)
        have_turns_ended.set()

    await tasks.run_until(
        have_turns_ended, app.scheduler.watch, *watchers, accept_then_finish
    )


@asynccontextmanager
async def open_app(core: Core, token: SecretStr, locks: Locks) -> AsyncIterator[App]:
    """Yield the app, put together around the core. Close it at the end of the block."""
    settings = core.settings
    rate_limit = rate_limit_of(settings)
    bot = telegram_bot(token.get_secret_value(), settings.telegram_base_url, rate_limit)
    app = build_app(core, bot, rate_limit, locks)
    try:
        yield app
    finally:
        # After an error, turns may still run. They are cancelled at once.
        await tasks.run_shutdown_step("turns", app.scheduler.finish)
        await tasks.run_shutdown_step("Telegram", bot.shutdown)


def build_app(
    core: Core,
    bot: AnyBot,
    rate_limit: RateLimit,
    locks: Locks,
    make_buttons: ButtonsBelow = buttons_below,
) -> App:
    """Put the parts of the bot together. No turn begins before `Scheduler.ready` is set."""
    settings = core.settings
    inbox = core.stores.inbox
    services = services_of(core, bot, make_buttons)
    admins = frozenset(settings.admin_ids)
    handlers = build_handlers(settings, core.servers, admins)
    dispatcher = Dispatcher(
        bot, services, handlers, admins, only_allowed=settings.only_allowed
    )
    sender = Sender(bot, core.stores.outbox, rate_limit)
    update_runner = UpdateRunner(
        inbox=inbox,
        deliverer=sender,
        handlers=dispatcher,
        metrics=core.metrics,
        join_seconds=settings.join_seconds,
        max_tries=settings.update_max_tries,
        are_shared=locks.are_shared,
    )
    scheduler = Scheduler(
        inbox=inbox,
        update_runner=update_runner,
        answer_inline=dispatcher.handle_inline,
        running_turns=core.runner.running,
        locks=locks,
        metrics=core.metrics,
    )
    return App(
        core=core, bot=bot, services=services, sender=sender, scheduler=scheduler
    )


def services_of(core: Core, bot: AnyBot, make_buttons: ButtonsBelow) -> Services:
    """Return what handlers of messages use."""
    settings = core.settings
    return Services(
        resources=core.resources,
        runner=core.runner,
        answerer=core.answerer,
        trace_hash=core.trace_hash,
        progress=Progress(bot),
        buttons_below=make_buttons,
        admin_ids=settings.admin_ids,
        staff_chat_id=settings.staff_chat_id,
        counted_links=counted_links_of(settings),
    )


def counted_links_of(settings: Settings) -> CountedLinks | None:
    """Return what makes and checks counted links, or None if no presses of links are counted."""
    if settings.click_url is None:
        return None
    return CountedLinks(settings.click_url, settings.click_secret)


def rate_limit_of(settings: Settings) -> RateLimit:
    """Return the limits of messages that the settings ask for."""
    per_second = settings.telegram_messages_per_second
    if per_second == 0:
        # This stands for no limits at all.
        return RateLimit(per_chat=(), per_group=(), overall=())
    return RateLimit(overall=(Limit(per_second, 1),))


def build_handlers(
    settings: Settings, servers: McpServers, admins: frozenset[int]
) -> list[AnyHandler]:
    """Return the handlers of all commands and buttons, in the order in which they are tried."""
    additional = [
        # These come before all other handlers of replies, because a reply in a referral is passed
        # on and not answered.
        *shop_reply_handlers(),
        *media_handlers(),
        *inline_handlers(),
        *memory_handlers(),
        *cellar_handlers(CellarPainter()),
        *bottle_handlers(),
        *cellar_file_handlers(),
        *settings_handlers(privacy_of(settings)),
        *answer_handlers(servers),
        *ask_shop_handlers(),
        *stock_handlers(admins),
        *admin_handlers(
            admins,
            masking_of(settings),
            trace_link(settings),
            only_allowed=settings.only_allowed,
        ),
        *rating_handlers(masking_of(settings)),
    ]
    return all_handlers(additional)


def privacy_of(settings: Settings) -> Privacy:
    """Return what users are told of their data: how long they are kept, and who gets them."""
    has_langfuse = settings.langfuse_keys is not None
    if has_langfuse:
        trace_server = "Langfuse"
    elif settings.sends_traces:
        trace_server = TRACE_SERVICE
    else:
        trace_server = ""
    return Privacy(
        days={
            "history_days": settings.history_days,
            "stats_days": STATS_RETENTION.days,
            "trace_days": settings.trace_retention_days,
            "shop_days": REFERRAL_RETENTION.days,
        },
        model_hosts=settings.model_hosts,
        trace_server=trace_server,
        is_deleted_there=has_langfuse,
        has_staff=settings.staff_chat_id is not None,
    )


async def start_receiving(app: App) -> None:
    """Let turns begin as soon as Telegram knows the bot. Set the webhook if one is configured.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = app.bot
    settings = app.core.settings
    await introduce(bot)
    app.scheduler.ready.set()
    await show_commands(
        bot,
        finds_places=settings.enable_find,
        has_staff=settings.staff_chat_id is not None,
    )
    if settings.webhook_url is not None:
        from bot.http.server import WEBHOOK_PATH  # noqa: PLC0415

        address = settings.webhook_url + WEBHOOK_PATH

        async def set_webhook() -> None:
            await bot.set_webhook(
                address,
                secret_token=settings.webhook_secret,
                allowed_updates=ALLOWED_UPDATES,
            )

        await retry_until_answered(set_webhook, "Setting the webhook")


async def run_leader_tasks(app: App) -> None:
    """Do what only the leading process does.

    The leading process deletes old data, forgets people, and sends reminders, broadcasts and
    reports to the staff. If there is no webhook, it polls for updates.
    """
    await app.scheduler.ready.wait()
    functions = [*_list_regular_tasks(app)]
    if app.core.settings.webhook_url is None:
        functions.append(partial(poll, app.bot, app.scheduler.accept))
    await tasks.run_all(*functions)


def _list_regular_tasks(app: App) -> Iterator[tasks.AsyncFunction]:
    """Yield the functions that do again and again what the leading process has to do."""
    settings = app.core.settings
    stores = app.core.stores
    memory = app.core.resources.repositories.memory

    async def delete_old() -> None:
        unsent_traces = await delete_old_data(settings, stores.retention)
        app.core.metrics.count_dropped_traces(unsent_traces)

    async def forget() -> None:
        await forget_people(settings, stores.upkeep)

    async def remind() -> None:
        await send_reminders(memory, stores.upkeep, app.core.trace_hash)

    async def report_to_staff() -> None:
        if settings.staff_chat_id is not None:
            await report_undelivered(stores.referrals, memory, settings.staff_chat_id)

    async def broadcast() -> None:
        await send_broadcasts(stores.broadcasts, memory, app.sender)

    schedule: tuple[tuple[float, str, tasks.AsyncFunction], ...] = (
        (DELETE_OLD_DATA_SECONDS, "deleting old data", delete_old),
        (FORGET_PEOPLE_SECONDS, "forgetting people", forget),
        (REMIND_SECONDS, "reminding", remind),
        (REPORT_SECONDS, "reporting undelivered replies to the staff", report_to_staff),
        (BROADCAST_SECONDS, "sending to everyone", broadcast),
    )
    for seconds, description, function in schedule:
        yield partial(tasks.run_every, seconds, description, function)


async def serve(app: App) -> None:
    """Serve HTTP until cancelled.

    Raises:
        CannotListen: the address is taken.
    """
    # FastAPI is slow to import, and only needed if HTTP is served.
    from bot.http import server  # noqa: PLC0415

    settings = app.core.settings
    routers = _build_routers(app)
    # Most addresses are in routers of FastAPI. The address for MCP is a route of Starlette, because
    # the library of this protocol has none for FastAPI.
    routes = []
    async with AsyncExitStack() as stack:
        if settings.api_token is not None:
            api = _build_api(app.core, settings.api_token)
            routers.append(api.build_router())
            mcp_route = _open_mcp_route(api)
            routes.append(await stack.enter_async_context(mcp_route))
        application = server.build_http_app(routers, routes, settings.api_token)
        listener = server.listen(settings.http_host, settings.http_port or 0)
        await server.serve_http(application, listener)


def _build_routers(app: App) -> "list[APIRouter]":
    """Return the routers that the settings ask for, except that of the API."""
    from bot.http import server  # noqa: PLC0415
    from bot.http.admin_page import AdminPage  # noqa: PLC0415
    from bot.http.clicks import build_click_router  # noqa: PLC0415

    core = app.core
    settings = core.settings
    resources = core.resources
    measure_backlog = core.stores.inbox.measure_backlog
    routers = [server.build_monitoring_router(core.metrics, measure_backlog)]
    if settings.webhook_url is not None:
        secret = SecretStr(settings.webhook_secret)
        routers.append(server.build_webhook_router(app.scheduler.accept, secret))
    links = counted_links_of(settings)
    if links is not None:
        wines = resources.repositories.wines
        routers.append(build_click_router(links, wines, core.stores.clicks))
    if settings.admin_token is not None:
        mask = masking_of(settings).mask_words
        link = trace_link(settings)
        page = AdminPage(resources.sessions, mask, settings.admin_token, link)
        routers.append(page.build_router())
    return routers


def _build_api(core: Core, token: SecretStr) -> "Api":
    """Return the HTTP API for clients with this token."""
    from bot.http.api import Api  # noqa: PLC0415

    key = core.settings.trace_user_key
    return Api(
        resources=core.resources,
        runner=core.runner,
        answerer=core.answerer,
        client_hash=compute_keyed_hash("api", token.get_secret_value(), key),
    )


@asynccontextmanager
async def _open_mcp_route(api: "Api") -> "AsyncIterator[BaseRoute]":
    """Serve the tools for external agents during the block. Yield their route."""
    # The import takes most of a second, so it runs in a thread.
    mcp_server = await asyncio.to_thread(import_module, "bot.mcp_server")
    toolbox = mcp_server.create_toolbox(api.resources)
    call_tool = partial(api.call_tool, toolbox)
    async with mcp_server.open_http_route(toolbox, call_tool) as route:
        yield route
