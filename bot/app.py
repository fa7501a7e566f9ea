"""The composition root: everything is made here, tied together, and closed in order."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from starlette.routing import Route
from telegram.ext import Application
from telegram.request import BaseRequest

from agent.journal import Journal
from agent.research.desk import ResearchDesk
from agent.sommelier import Sommelier
from agent.tracing import Tracer, keyed_hash
from bot import local_telegram, wiring
from bot.alone import only_one
from bot.api import Api
from bot.delivery import Sender
from bot.library import open_library
from bot.metrics import Metrics
from bot.polling import AcceptQueue, bounded, stop_on_signals
from bot.replies import Replies
from bot.research_commands import ResearchCommands
from bot.service import open_service
from bot.telegram_bot import AnyApplication, TelegramBot
from bot.turns import persistently
from config import Settings
from db.engine import Sessions
from db.repositories.chats import SqlChatRepository
from db.repositories.messages import SqlMessageRepository
from db.repositories.traces import SqlTraceStore
from db.repositories.turns import SqlTurnRepository
from db.repositories.updates import SqlUpdateRepository
from db.repositories.wines import SqlCatalogue

CONNECTIONS: Final = 64
CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class App:
    """What is tied together: the Telegram application, its sender, and the rooms behind them."""

    application: AnyApplication
    sender: Sender
    bot: TelegramBot
    sessions: Sessions
    messages: SqlMessageRepository
    metrics: Metrics
    inbox: AcceptQueue
    desk: ResearchDesk


@asynccontextmanager
async def open_app(settings: Settings, telegram: BaseRequest | None = None) -> AsyncIterator[App]:
    """Everything, ready to be initialized; `telegram` takes the place of the network if given.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or it is not one.
    """
    token = local_telegram.TOKEN if telegram else wiring.bot_token(settings)
    async with AsyncExitStack() as stack:
        library = await stack.enter_async_context(open_library(settings))
        sessions, desk = library.sessions, library.desk
        messages = SqlMessageRepository(sessions)
        traces = SqlTraceStore(sessions)
        tracer = wiring.tracer(settings, traces.save)
        metrics = Metrics(lambda: tracer.dropped_spans)
        stack.push_async_callback(bounded, "tracing", tracer.close)
        inbox = AcceptQueue()
        application = telegram_application(settings, token, inbox, telegram)
        stack.push_async_callback(bounded, "Telegram", partial(close_application, application))
        pace = wiring.pace(0 if telegram else settings.telegram_messages_per_second)
        sender = Sender(application.bot, pace, SqlChatRepository(sessions))
        replies = Replies(
            message_repo=messages,
            tracer=tracer,
            sender=sender,
            metrics=metrics,
            hashed=partial(keyed_hash, key=settings.trace_user_key),
            record=SqlTurnRepository(sessions).record,
            max_content_length=settings.max_content_length,
        )
        bot = TelegramBot(
            replies=replies,
            answerer=Sommelier(
                catalogue=SqlCatalogue(sessions),
                models=library.models,
                limits=wiring.limits(settings),
                research_tools=wiring.research_tools(desk),
                prompts=desk.prompts,
                prices=desk.prices,
            ),
            history_messages=settings.history_messages,
        )
        yield App(application, sender, bot, sessions, messages, metrics, inbox, desk)


def telegram_application(
    settings: Settings,
    token: str,
    inbox: asyncio.Queue[object],
    telegram: BaseRequest | None = None,
) -> AnyApplication:
    """The Telegram application without handlers, on the network or on `telegram`."""
    api = wiring.root(settings.telegram_base_url)
    builder = Application.builder().token(token).job_queue(None).update_queue(inbox)
    builder = builder.base_url(f"{api}/bot").base_file_url(f"{api}/file/bot")
    if telegram is not None:
        return builder.request(telegram).get_updates_request(telegram).updater(None).build()
    builder = builder.connection_pool_size(CONNECTIONS).pool_timeout(CONNECT_SECONDS)
    return builder.connect_timeout(CONNECT_SECONDS).read_timeout(READ_SECONDS).build()


@asynccontextmanager
async def open_chat(settings: Settings, telegram: BaseRequest) -> AsyncIterator[App]:
    """The conversation in this process alone: nothing is queued, a turn is over when it returns."""
    async with open_app(settings, telegram) as app:
        app.bot.register(app.application, ResearchCommands(app.bot.replies, app.desk).handlers())
        yield app


async def run_bot(settings: Settings, stop: asyncio.Event | None = None) -> bool:
    """Answer people in Telegram until SIGTERM or SIGINT, or until `stop` is set.

    False if turns were left unfinished: they are resumable, and the process must end at once.

    Raises:
        AlreadyRunning: another process answers from this SQLite file.
        CannotListen: the HTTP address is taken.
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or it is not one.
        TokenRejected: Telegram does not know the token.
    """
    stop = stop or stop_on_signals()
    url = settings.database_url.get_secret_value()
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(settings))
        stack.enter_context(only_one(url))
        updates = SqlUpdateRepository(app.sessions)
        service = await stack.enter_async_context(
            open_service(
                application=app.application,
                give_up=app.bot.replies.give_up,
                updates=updates,
                metrics=app.metrics,
                settings=wiring.service_settings(settings),
                durable=wiring.durable(settings),
                routes=api_routes(settings, app.desk, app.bot.replies.tracer),
            )
        )
        app.inbox.accept = service.turns.accept
        replies = replace(app.bot.replies, journal=service.queue)
        bot = replace(app.bot, replies=replies, turn_of=_turn_of(updates, service.queue))
        bot.register(app.application, ResearchCommands(replies, app.desk).handlers())
        if await service.run(stop):
            return True
        await bounded("tracing", app.bot.replies.tracer.close)
        os._exit(0)


def api_routes(settings: Settings, desk: ResearchDesk, tracer: Tracer) -> list[Route]:
    """The HTTP API; nothing without a token."""
    token = settings.api_token
    if token is None:
        return []
    user = keyed_hash("api", token.get_secret_value(), settings.trace_user_key)
    return Api(desk=desk, tracer=tracer, token=token, user=user).routes()


def _turn_of(
    updates: SqlUpdateRepository, journal: Journal
) -> Callable[[int, int], Awaitable[int | None]]:
    """`updates.turn_of` as a step: what a turn goes on from must be the same when it is resumed."""

    async def turn_of(chat_id: int, message_id: int) -> int | None:
        look_up = partial(persistently, partial(updates.turn_of, chat_id, message_id))
        return await journal.step("turn_of", look_up)

    return turn_of


async def close_application(application: AnyApplication) -> None:
    """Close the connections to Telegram."""
    await application.shutdown()
    # An application that never became initialized leaves its bot's connections open.
    await application.bot.shutdown()
