"""Assemble the bot and run it until it is stopped; `bot.resources` opens all but Telegram."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Final

from pydantic import SecretStr

from agent.engine.llm import load_client
from agent.fallback.words import load_lexicon
from agent.mcp import McpServers, open_servers
from agent.tracing.records import keyed_hash
from bot import tasks
from bot.budgets import Budgets
from bot.metrics import Metrics
from bot.question import RunningTurns
from bot.resources import STATS_RETENTION, Resources, delete_old_data, open_resources, sommelier_of
from bot.safety import SafetyService
from bot.telegram.admin import admin_handlers, send_broadcasts
from bot.telegram.answer_buttons import answer_handlers, buttons_below
from bot.telegram.connection import (
    ALLOWED_UPDATES,
    introduce,
    poll,
    retry_until_answered,
    telegram_bot,
)
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.dispatch import Dispatcher
from bot.telegram.handlers import all_handlers, show_commands
from bot.telegram.inline import inline_handlers
from bot.telegram.media import media_handlers
from bot.telegram.memory import memory_handlers, send_reminders
from bot.telegram.rate_limit import Limit, RateLimit
from bot.telegram.rating import rating_handlers
from bot.telegram.replies import Replies
from bot.telegram.sender import Sender
from bot.telegram.settings import Privacy, settings_handlers
from bot.tracing import forget_people, masking_of, open_exporter, trace_link
from bot.turn import TurnRunner
from bot.updates.lanes import Lanes
from bot.updates.locks import Locks, open_locks, while_leading
from config import Settings, SettingsError

TRACE_SERVICE: Final = "the service for traces"
FINISH_SECONDS: Final = 20.0
"""The time that running turns have to end when the bot is stopped."""
# Intervals of the tasks of the leader:
DELETE_OLD_DATA_SECONDS: Final = 3600.0
FORGET_PEOPLE_SECONDS: Final = 5.0
REMIND_SECONDS: Final = 900.0
BROADCAST_SECONDS: Final = 2.0


async def run_bot(settings: Settings, stop: asyncio.Event | None = None) -> None:
    """Answer people in Telegram until SIGTERM or SIGINT, or until `stop` is set.

    Turns that do not end in time are cancelled. The next start or another process resumes them.

    Raises:
        AlreadyRunning: another process runs the bot with this SQLite file.
        CannotListen: the HTTP address is taken.
        DatabaseUnusable: no connection, or a Postgres that was not upgraded.
        SettingsError: the bot token is missing, or another setting is wrong.
        TokenRejected: Telegram does not know the token.
    """
    if settings.telegram_bot_token is None:
        raise SettingsError("TELEGRAM_BOT_TOKEN is not set: set it to what @BotFather gives you")
    token = settings.telegram_bot_token
    stop = stop or tasks.stop_on_signals()
    async with (
        open_resources(settings) as resources,
        open_locks(settings.database_url.get_secret_value(), resources.repositories.inbox) as locks,
        open_lanes(settings, token, resources, locks) as lanes,
    ):
        if not locks.are_shared:  # no other process runs: send the rows that a crash left claimed
            await resources.repositories.trace_queue.resume()
            await resources.repositories.score_queue.resume()
        if settings.server:
            await load_client()
        await asyncio.to_thread(load_lexicon)
        gc.freeze()  # the objects made so far live until the end: exempt them from collection
        functions: list[tasks.AsyncFunction] = [
            lanes.watch,
            partial(start_receiving, settings, lanes),
            partial(while_leading, locks, partial(run_leader_tasks, settings, lanes)),
            tasks.exit_if_loop_hangs,
        ]
        if settings.http_port is not None:
            functions.append(partial(serve, settings, lanes))
        await tasks.run_until(stop, *functions)
        await lanes.finish(FINISH_SECONDS)


@asynccontextmanager
async def open_lanes(
    settings: Settings, token: SecretStr, resources: Resources, locks: Locks
) -> AsyncIterator[Lanes]:
    """Open the lanes and all they need to answer. No turn begins before `Lanes.ready` is set."""
    metrics = Metrics()
    repositories = resources.repositories
    async with AsyncExitStack() as stack:
        trace_sender = open_exporter(settings, resources.sessions, metrics.count_dropped_traces)
        await stack.enter_async_context(trace_sender)
        per_second = settings.telegram_messages_per_second
        rate_limit = RateLimit(overall=(Limit(per_second, 1),)) if per_second else None
        bot = telegram_bot(token.get_secret_value(), settings.telegram_base_url, rate_limit)
        stack.push_async_callback(tasks.run_shutdown_step, "Telegram", bot.shutdown)
        servers = await stack.enter_async_context(open_servers(settings.mcp_servers))
        admins = frozenset(settings.admin_ids)
        sender = Sender(bot, repositories.chats, repositories.inbox)
        turns = TurnRunner(
            base_run=resources.run,
            replies=Replies(sender, buttons_below),
            store=repositories.turns,
            budgets=Budgets(
                turns=repositories.turns,
                person_requests=settings.budget_person_requests,
                total_cost_usd=settings.budget_total_cost_usd,
                exempt=admins,
            ),
            safety=SafetyService(help=resources.help, memory=repositories.memory),
            metrics=metrics,
            running=RunningTurns(locks.stop),
        )
        conversation = Conversation(
            resources=resources,
            sender=sender,
            answerer=sommelier_of(resources, servers),
            turns=turns,
            trace_hash=partial(keyed_hash, key=settings.trace_user_key),
        )
        handlers = build_handlers(settings, servers, admins)
        allow_list = settings.access == "allow_list"
        lanes = Lanes(
            inbox=repositories.inbox,
            sender=sender,
            dispatcher=Dispatcher(bot, conversation, handlers, admins, allow_list),
            locks=locks,
            metrics=metrics,
            burst_seconds=settings.burst_seconds,
            max_tries=settings.update_max_tries,
        )
        stack.push_async_callback(tasks.run_shutdown_step, "turns", lanes.finish)
        yield lanes


def build_handlers(
    settings: Settings, servers: McpServers, admins: frozenset[int]
) -> list[AnyHandler]:
    """Return the handlers of all commands and buttons, in the order in which they are tried."""
    only_allowed = settings.access == "allow_list"
    has_langfuse = settings.langfuse_keys is not None
    privacy = Privacy(
        days={"stats_days": STATS_RETENTION.days, "trace_days": settings.trace_retention_days},
        trace_server="Langfuse" if has_langfuse else TRACE_SERVICE if settings.sends_traces else "",
        is_deleted_there=has_langfuse,
    )
    additional = [
        *media_handlers(),
        *inline_handlers(),
        *memory_handlers(),
        *settings_handlers(privacy),
        *answer_handlers(servers),
        *admin_handlers(admins, trace_link(settings), only_allowed=only_allowed),
        *rating_handlers(masking_of(settings)),
    ]
    return all_handlers(additional)


async def start_receiving(settings: Settings, lanes: Lanes) -> None:
    """Let turns begin as soon as Telegram knows the bot; set the webhook if one is configured.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = lanes.dispatcher.bot
    await introduce(bot)
    lanes.ready.set()
    await show_commands(bot)
    if settings.webhook_url is not None:
        from bot.http.server import WEBHOOK_PATH  # noqa: PLC0415

        set_webhook = partial(
            bot.set_webhook,
            settings.webhook_url + WEBHOOK_PATH,
            secret_token=settings.webhook_secret,
            allowed_updates=ALLOWED_UPDATES,
        )
        await retry_until_answered(set_webhook, "Setting the webhook")


async def run_leader_tasks(settings: Settings, lanes: Lanes) -> None:
    """Run the tasks of the leader: delete old data, remind, send broadcasts, poll for updates."""
    await lanes.ready.wait()
    conversation = lanes.dispatcher.conversation
    memory = conversation.repositories.memory

    async def delete_old() -> None:
        unsent_traces = await delete_old_data(settings, conversation.repositories)
        conversation.turns.metrics.count_dropped_traces(unsent_traces)

    schedule: tuple[tuple[float, str, tasks.AsyncFunction], ...] = (
        (DELETE_OLD_DATA_SECONDS, "deleting old data", delete_old),
        (FORGET_PEOPLE_SECONDS, "forgetting people", partial(forget_people, settings, memory)),
        (REMIND_SECONDS, "reminding", partial(send_reminders, conversation)),
        (BROADCAST_SECONDS, "sending to everyone", partial(send_broadcasts, conversation)),
    )
    functions: list[tasks.AsyncFunction] = [partial(tasks.run_every, *task) for task in schedule]
    if settings.webhook_url is None:
        functions.append(partial(poll, lanes.dispatcher.bot, lanes.accept))
    await tasks.run_all(*functions)


async def serve(settings: Settings, lanes: Lanes) -> None:
    """Serve HTTP until cancelled.

    Raises:
        CannotListen: the address is taken.
    """
    # FastAPI is slow to import, and only needed here.
    from bot.http import server  # noqa: PLC0415
    from bot.http.admin_page import AdminPage  # noqa: PLC0415
    from bot.http.api import Api  # noqa: PLC0415

    conversation = lanes.dispatcher.conversation
    turns, resources = conversation.turns, conversation.resources
    routers = []  # of FastAPI
    routes = []  # of Starlette
    async with AsyncExitStack() as stack:
        if settings.webhook_url is not None:
            secret = SecretStr(settings.webhook_secret)
            routers.append(server.build_webhook_router(lanes.accept, secret))
        if settings.api_token is not None:
            token = settings.api_token.get_secret_value()
            api = Api(
                resources=resources,
                turns=turns,
                answerer=conversation.answerer,
                client_hash=keyed_hash("api", token, settings.trace_user_key),
            )
            routers.append(api.build_router())
            mcp = await asyncio.to_thread(import_module, "bot.mcp_server")
            tools = mcp.create_toolbox(resources)
            route = mcp.open_http_route(tools, partial(api.call_tool, tools))
            routes.append(await stack.enter_async_context(route))
        if settings.admin_token is not None:
            hide, link = masking_of(settings).words, trace_link(settings)
            page = AdminPage(resources.sessions, hide, settings.admin_token, link)
            routers.append(page.build_router())
        routers.append(server.build_monitoring_router(turns.metrics, lanes.inbox.measure_backlog))
        app = server.build_app(routers, routes, settings.api_token)
        listener = server.listen(settings.http_host, settings.http_port or 0)
        await server.serve_http(app, listener)
