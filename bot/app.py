"""The composition root: everything is made here, tied together, and closed in order."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from starlette.routing import BaseRoute
from telegram.ext import Application

from agent.desk import ResearchDesk
from agent.engine.journal import Journal
from agent.engine.llm import load_client
from agent.repositories import TurnRecord
from agent.sommelier.service import Sommelier
from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse.client import TraceLinks
from agent.tracing.recorder import Recorder
from agent.tracing.records import keyed_hash
from bot import telegram_wiring
from bot.budgets import Budgets
from bot.memory import Memory, forget, forgetting
from bot.metrics import Metrics
from bot.resources import Resources, open_resources, research_tools
from bot.service import open_service
from bot.stopping import bounded
from bot.telegram import local_telegram
from bot.telegram.access import Door
from bot.telegram.conversation import AnyApplication, TelegramBot
from bot.telegram.feedback_buttons import rating
from bot.telegram.feedback_delivery import FeedbackDelivery
from bot.telegram.handlers import Extras, further_handlers
from bot.telegram.sender import Sender
from bot.turn import Replies, unrecorded
from bot.updates.lanes import persistently
from bot.updates.polling import AcceptQueue, stop_on_signals
from bot.updates.single_process import only_one
from config import Settings
from db.repositories.messages import SqlMessageRepository
from db.repositories.updates import SqlUpdateRepository
from db.wines.catalogue import SqlCatalogue

CONNECTIONS: Final = 64
CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class App:
    """What is tied together: the Telegram application, its sender, and the rooms behind them."""

    application: AnyApplication
    bot: TelegramBot
    memory: Memory
    metrics: Metrics
    inbox: AcceptQueue
    extras: Extras
    limited_log: RateLimitedLogger

    @property
    def messages(self) -> SqlMessageRepository:
        """The conversations."""
        return self.memory.messages


@asynccontextmanager
async def open_app(
    settings: Settings, telegram: local_telegram.LocalTelegram | None = None
) -> AsyncIterator[App]:
    """Everything, ready to be initialized; `telegram` takes the place of the network if given.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or it is not one.
    """
    token = local_telegram.TOKEN if telegram else telegram_wiring.bot_token(settings)
    async with AsyncExitStack() as stack:
        limited_log = RateLimitedLogger()
        resources = await stack.enter_async_context(open_resources(settings, limited_log))
        desk, memory = resources.desk, Memory.of(resources.sessions)
        tracer = telegram_wiring.tracer(settings, memory.traces.save, limited_log)
        metrics = Metrics(lambda: tracer.dropped_spans)
        stack.push_async_callback(bounded, "tracing", tracer.close)
        inbox = AcceptQueue()
        application = telegram_application(settings, token, inbox, telegram)
        stack.push_async_callback(bounded, "Telegram", partial(close_application, application))
        pace = telegram_wiring.pace(0 if telegram else settings.telegram.messages_per_second)
        # Whoever sits at the machine is its admin.
        admins = frozenset([*settings.access.admin_ids, *([telegram.chat_id] if telegram else [])])
        replies = Replies(
            message_repo=memory.messages,
            tracer=tracer,
            sender=Sender(application.bot, pace, memory.chats),
            metrics=metrics,
            hashed=partial(keyed_hash, key=settings.tracing.user_key),
            record=memory.turns.record,
            rating=rating,
            budgets=telegram_wiring.budgets(settings, memory, admins),
            max_content_length=settings.turn.max_content_length,
        )
        bot = TelegramBot(
            replies=replies,
            answerer=sommelier(resources),
            run=resources.desk.run(),
            history_messages=settings.turn.history_messages,
        )
        extras = Extras(
            memory=memory,
            desk=desk,
            admin_ids=admins,
            links=await stack.enter_async_context(open_links(settings)),
            allow_list=settings.access.mode == "allow_list",
            hide=telegram_wiring.kept(settings),
        )
        yield App(application, bot, memory, metrics, inbox, extras, limited_log)


def sommelier(resources: Resources) -> Sommelier:
    """Who answers."""
    return Sommelier(
        catalogue=SqlCatalogue(resources.sessions),
        research_tools=research_tools(resources.desk),
    )


@asynccontextmanager
async def open_links(settings: Settings) -> AsyncIterator[TraceLinks | None]:
    """Where traces are shown; None without Langfuse."""
    links = telegram_wiring.trace_links(settings)
    if links is None:
        yield None
        return
    links.begin()
    try:
        yield links
    finally:
        await bounded("links", links.close)


@asynccontextmanager
async def open_delivery(
    settings: Settings, memory: Memory, limited_log: RateLimitedLogger
) -> AsyncIterator[FeedbackDelivery | None]:
    """What brings people's verdicts to Langfuse; None without it."""
    client = telegram_wiring.feedback_client(settings)
    if client is None:
        yield None
        return
    try:
        yield FeedbackDelivery(memory.feedback, client.deliver, limited_log=limited_log)
    finally:
        await bounded("feedback", client.close)


def telegram_application(
    settings: Settings,
    token: str,
    inbox: asyncio.Queue[object],
    telegram: local_telegram.LocalTelegram | None = None,
) -> AnyApplication:
    """The Telegram application without handlers, on the network or on `telegram`."""
    api = settings.telegram.base_url
    builder = Application.builder().token(token).job_queue(None).update_queue(inbox)
    builder = builder.base_url(f"{api}/bot").base_file_url(f"{api}/file/bot")
    if telegram is not None:
        return builder.request(telegram).get_updates_request(telegram).updater(None).build()
    builder = builder.connection_pool_size(CONNECTIONS).pool_timeout(CONNECT_SECONDS)
    return builder.connect_timeout(CONNECT_SECONDS).read_timeout(READ_SECONDS).build()


@asynccontextmanager
async def open_chat(
    settings: Settings, telegram: local_telegram.LocalTelegram
) -> AsyncIterator[App]:
    """The conversation in this process alone: nothing is queued, a turn is over when it returns."""
    async with (
        open_app(settings, telegram) as app,
        open_delivery(settings, app.memory, app.limited_log) as delivery,
    ):
        await forget(telegram_wiring.retention(settings, app.memory))
        app.bot.register(app.application, further_handlers(app.bot, app.extras))
        try:
            yield app
        finally:
            if delivery is not None:
                await bounded("feedback", delivery.round)


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
    url = settings.database.url.get_secret_value()
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(settings))
        stack.enter_context(only_one(url))
        memory, replies, tracer = app.memory, app.bot.replies, app.bot.replies.tracer
        delivery = await stack.enter_async_context(open_delivery(settings, memory, app.limited_log))
        tasks = [forgetting(telegram_wiring.retention(settings, memory))]
        service = await stack.enter_async_context(
            open_service(
                application=app.application,
                give_up=replies.give_up,
                updates=memory.updates,
                metrics=app.metrics,
                settings=telegram_wiring.service_settings(settings),
                durable=telegram_wiring.durable(settings),
                routes=api_routes(
                    settings, app.extras.desk, tracer, replies.budgets, replies.record
                ),
                tasks=[*tasks, delivery.run] if delivery else tasks,
            )
        )
        app.inbox.accept = service.turns.accept
        judged = delivery.wake if delivery else app.extras.judged
        bot = durable_bot(app, service.queue)
        bot.register(app.application, further_handlers(bot, replace(app.extras, judged=judged)))
        if settings.model.is_set:
            await load_client()
        if await service.run(stop):
            return True
        await bounded("tracing", tracer.close)
        os._exit(0)


def durable_bot(app: App, journal: Journal) -> TelegramBot:
    """The bot whose turns are recorded in `journal`, behind a door."""
    replies = replace(app.bot.replies, journal=journal)
    extras, memory = app.extras, app.memory
    door = Door(memory.people, replies, extras.admin_ids, allow_list=extras.allow_list)
    turn_of = _turn_of(memory.updates, journal)
    return replace(app.bot, replies=replies, turn_of=turn_of, door=door)


def api_routes(
    settings: Settings,
    desk: ResearchDesk,
    tracer: Recorder,
    budgets: Budgets | None = None,
    record: Callable[[TurnRecord], Awaitable[None]] = unrecorded,
) -> Sequence[BaseRoute]:
    """The HTTP API; nothing without a token. What a call took is kept by `record`."""
    token = settings.http.api_token
    if token is None:
        return []
    from bot.http.api import Api  # noqa: PLC0415 - FastAPI takes a while to load

    user = keyed_hash("api", token.get_secret_value(), settings.tracing.user_key)
    api = Api(desk=desk, tracer=tracer, token=token, user=user, budgets=budgets, record=record)
    return api.routes()


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
