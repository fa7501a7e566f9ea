"""Run the bot until it is stopped: receive updates, run turns, serve HTTP, forget old data.

`bot.app` puts the bot together.
"""

import asyncio
import gc
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Final

from pydantic import SecretStr

from agent.engine.llm import load_client
from agent.fallback.words import lexicon
from agent.tracing.records import keyed_hash
from bot.app import open_dispatcher
from bot.resources import Repositories, forget_old, open_resources
from bot.tasks import (
    Work,
    attempt,
    bounded,
    end_when_hanging,
    every,
    run_all,
    run_until,
    stop_on_signals,
)
from bot.telegram.admin import send_broadcasts
from bot.telegram.connection import introduce
from bot.telegram.dispatch import Dispatcher
from bot.telegram.handlers import show_commands
from bot.telegram.memory import remind
from bot.tracing import forget_people, masking_of, trace_link
from bot.updates.accept import point_webhook, poll
from bot.updates.lanes import Lanes
from bot.updates.locks import Locks, ReplicaLocks, single_process, while_leading
from config import Settings, SettingsError

FINISH_SECONDS: Final = 20.0
"""The time that running turns have to end when the bot is stopped."""
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
        locks = await open_locks(settings, resources.repositories, stack)
        opening = open_dispatcher(settings, resources, token, locks)
        lanes = lanes_of(settings, await stack.enter_async_context(opening), locks)
        stack.push_async_callback(bounded, "turns", lanes.finish)
        if settings.server:
            await load_client()
        await asyncio.to_thread(lexicon)
        gc.freeze()  # these objects live until the end: the collector need not look at them
        work: list[Work] = [
            lanes.watch,
            partial(receive, settings, lanes),
            partial(while_leading, locks, partial(lead, settings, lanes)),
            end_when_hanging,
        ]
        if settings.http_port is not None:
            work.append(partial(serve, settings, lanes))
        await run_until(stop, *work)
        await lanes.finish(FINISH_SECONDS)


async def open_locks(
    settings: Settings, repositories: Repositories, stack: AsyncExitStack
) -> Locks:
    """Return the locks of lanes, which several processes share on Postgres; `stack` closes them.

    Raises:
        AlreadyRunning: another process answers from this SQLite file.
    """
    url = settings.database_url.get_secret_value()
    if url.startswith("sqlite"):
        stack.enter_context(single_process(url.partition(":///")[2]))
        for queue in (repositories.trace_queue, repositories.score_queue):
            await attempt("looking for traces that wait", queue.resume)
        return Locks(repositories.inbox)
    locks = ReplicaLocks(url)
    stack.push_async_callback(bounded, "the locks of lanes", locks.close)
    return locks


def lanes_of(settings: Settings, dispatcher: Dispatcher, locks: Locks) -> Lanes:
    """Return the lanes of the bot, in which no turn has begun."""
    conversation = dispatcher.conversation
    return Lanes(
        inbox=conversation.repositories.inbox,
        sender=conversation.sender,
        dispatcher=dispatcher,
        locks=locks,
        metrics=conversation.turns.metrics,
        burst_window=timedelta(seconds=settings.burst_seconds),
        max_tries=settings.update_max_tries,
    )


async def lead(settings: Settings, lanes: Lanes) -> None:
    """Do what only one process does: forget, remind, send broadcasts, and poll for updates."""
    await lanes.ready.wait()
    conversation = lanes.dispatcher.conversation
    personal = conversation.repositories.personal

    async def forget() -> None:
        unsent = await forget_old(settings, conversation.repositories)
        conversation.turns.metrics.traces_dropped(unsent)

    rounds: tuple[tuple[float, str, Work], ...] = (
        (FORGET_SECONDS, "forgetting old data", forget),
        (FORGET_PEOPLE_SECONDS, "forgetting people", partial(forget_people, settings, personal)),
        (REMIND_SECONDS, "reminding", partial(remind, conversation, settings.time_zone)),
        (BROADCAST_SECONDS, "sending to everyone", partial(send_broadcasts, conversation)),
    )
    work: list[Work] = [partial(every, *repeated) for repeated in rounds]
    if settings.webhook_url is None:
        work.append(partial(poll, lanes.dispatcher.bot, lanes.accept))
    await run_all(*work)


async def receive(settings: Settings, lanes: Lanes) -> None:
    """Let turns begin once Telegram has told the bot's name, and set the webhook if there is one.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = lanes.dispatcher.bot
    await introduce(bot)
    lanes.ready.set()
    await show_commands(bot)
    if settings.webhook_url is not None:
        from bot.http.server import WEBHOOK_PATH  # noqa: PLC0415

        await point_webhook(bot, settings.webhook_url + WEBHOOK_PATH, settings.webhook_secret)


async def serve(settings: Settings, lanes: Lanes) -> None:
    """Serve HTTP until cancelled.

    Raises:
        CannotListen: the address is taken.
    """
    # FastAPI takes a while to load, and a terminal needs none of it.
    from bot.http.admin_page import AdminPage  # noqa: PLC0415
    from bot.http.api import Api  # noqa: PLC0415
    from bot.http.server import http_app, listen, pages, serve_http, webhook  # noqa: PLC0415

    conversation, routers, routes = lanes.dispatcher.conversation, [], []
    turns, resources = conversation.turns, conversation.resources
    async with AsyncExitStack() as stack:
        if settings.webhook_url is not None:
            routers.append(webhook(lanes.accept, SecretStr(settings.webhook_secret)))
        if settings.api_token is not None:
            token = settings.api_token.get_secret_value()
            user = keyed_hash("api", token, settings.trace_user_key)
            api = Api(resources=resources, turns=turns, answerer=conversation.answerer, user=user)
            routers.append(api.router())
            mcp = await asyncio.to_thread(import_module, "bot.mcp_server")
            tools = mcp.served_tools(resources)
            route = mcp.http_route(tools, partial(api.call_tool, tools))
            routes.append(await stack.enter_async_context(route))
        if settings.admin_token is not None:
            hide, link = masking_of(settings).words, trace_link(settings)
            page = AdminPage(resources.sessions, hide, settings.admin_token, link)
            routers.append(page.router())
        routers.append(pages(turns.metrics, lanes.inbox.backlog))
        server = http_app(routers, routes, settings.api_token)
        await serve_http(server, listen(settings.http_host, settings.http_port or 0))
