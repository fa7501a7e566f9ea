"""The composition root: everything is made here, tied together, and closed in order."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from pydantic import HttpUrl, SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine
from telegram.ext import Application
from telegram.request import BaseRequest

from agent.budget import Limits
from agent.journal import Journal
from agent.llm import LLMService
from agent.sommelier import Sommelier
from agent.tracing import NO_TRACE, Tracer, user_hash
from bot import doctor, local_telegram
from bot.alone import only_one
from bot.delivery import Sender
from bot.durable import DurableSettings, durable_settings
from bot.metrics import Metrics
from bot.pace import Limit, Pace
from bot.polling import AcceptQueue, bounded, stop_on_signals
from bot.service import ServiceSettings, open_service
from bot.telegram_bot import AnyApplication, TelegramBot
from bot.turns import persistently
from config import Settings, SettingsError
from db import migrate
from db.catalogue import load_starter
from db.engine import Sessions, create_engine, session_factory
from db.errors import DatabaseUnavailable
from db.repositories.chats import SqlChatRepository
from db.repositories.messages import SqlMessageRepository
from db.repositories.updates import SqlUpdateRepository
from db.repositories.wines import SqlCatalogue

BOT_TOKEN: Final = re.compile(r"\d+:[\w-]+")
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


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """The database as it is, closed at the end."""
    engine = create_engine(settings.database_url.get_secret_value())
    try:
        yield engine
    finally:
        await bounded("the database", engine.dispose)


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Sessions]:
    """The database at this version's schema, with the starter catalogue if it holds no wine.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
    """
    async with open_engine(settings) as engine:
        if engine.dialect.name == "sqlite":
            await migrate.upgrade(engine)
        else:
            await require_newest_schema(engine)
        sessions = session_factory(engine)
        await load_starter(sessions)
        yield sessions


async def require_newest_schema(engine: AsyncEngine) -> None:
    """Raise DatabaseUnavailable if the database was not upgraded to this version."""
    revision = await migrate.current(engine)
    if revision != migrate.head():
        raise DatabaseUnavailable(
            f"The database is at revision {revision or 'none'}, this version needs "
            f"{migrate.head()}: run `sommelier db upgrade`."
        )


@asynccontextmanager
async def open_app(settings: Settings, telegram: BaseRequest | None = None) -> AsyncIterator[App]:
    """Everything, ready to be initialized; `telegram` takes the place of the network if given.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or it is not one.
    """
    token = local_telegram.TOKEN if telegram else bot_token(settings)
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_database(settings))
        catalogue, messages = SqlCatalogue(sessions), SqlMessageRepository(sessions)
        models = _models(settings)
        for model in models:
            stack.push_async_callback(bounded, "the model", model.close)
        tracer, metrics = _tracer(settings), Metrics()
        stack.push_async_callback(bounded, "tracing", tracer.close)
        inbox = AcceptQueue()
        application = telegram_application(settings, token, inbox, telegram)
        stack.push_async_callback(bounded, "Telegram", partial(close_application, application))
        pace = _pace(0 if telegram else settings.telegram_messages_per_second)
        sender = Sender(application.bot, pace, SqlChatRepository(sessions))
        bot = TelegramBot(
            answerer=Sommelier(catalogue=catalogue, models=models, limits=_limits(settings)),
            message_repo=messages,
            tracer=tracer,
            sender=sender,
            metrics=metrics,
            hash_user=partial(user_hash, key=settings.trace_user_key),
            history_messages=settings.history_messages,
            max_content_length=settings.max_content_length,
        )
        yield App(application, sender, bot, sessions, messages, metrics, inbox)


def telegram_application(
    settings: Settings,
    token: str,
    inbox: asyncio.Queue[object],
    telegram: BaseRequest | None = None,
) -> AnyApplication:
    """The Telegram application without handlers, on the network or on `telegram`."""
    api = root(settings.telegram_base_url)
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
        app.bot.register(app.application)
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
                sender=app.sender,
                updates=updates,
                metrics=app.metrics,
                settings=_service(settings),
                durable=_durable(settings),
            )
        )
        app.inbox.accept = service.turns.accept
        bot = replace(app.bot, journal=service.queue, turn_of=_turn_of(updates, service.queue))
        bot.register(app.application)
        if await service.run(stop):
            return True
        await bounded("tracing", app.bot.tracer.close)
        os._exit(0)


def _turn_of(
    updates: SqlUpdateRepository, journal: Journal
) -> Callable[[int, int], Awaitable[int | None]]:
    """`updates.turn_of` as a step: what a turn goes on from must be the same when it is resumed."""

    async def turn_of(chat_id: int, message_id: int) -> int | None:
        look_up = partial(persistently, partial(updates.turn_of, chat_id, message_id))
        return await journal.step("turn_of", look_up)

    return turn_of


async def diagnose(settings: Settings) -> list[doctor.Finding]:
    """What works, what is not configured, and what is wrong."""

    async def database() -> str:
        return await _check_database(settings)

    key, base = _secret(settings.openai_api_key), settings.openai_base_url
    token, telegram = _secret(settings.telegram_bot_token), root(settings.telegram_base_url)
    public, private = settings.langfuse_public_key, settings.langfuse_secret_key
    model = partial(doctor.check_model, root(base) if base else None, key, settings.llm_model)
    keys = (_secret(public) or "", _secret(private) or "")
    langfuse = partial(doctor.check_langfuse, root(settings.langfuse_base_url), *keys)
    checks: dict[str, doctor.Check | str] = {
        "database": database,
        "model": model if settings.has_model else doctor.NO_MODEL,
        "Telegram": partial(doctor.check_telegram, telegram, token) if token else doctor.NO_TOKEN,
        "Langfuse": langfuse if settings.has_langfuse else doctor.NO_LANGFUSE,
    }
    return await doctor.examine(checks)


def bot_token(settings: Settings) -> str:
    """The bot's token.

    Raises:
        SettingsError: there is none, or it cannot be one.
    """
    token = _secret(settings.telegram_bot_token)
    if token is None:
        raise SettingsError(f"TELEGRAM_BOT_TOKEN is not set: {doctor.NO_TOKEN}")
    if not BOT_TOKEN.fullmatch(token):
        raise SettingsError(
            "TELEGRAM_BOT_TOKEN is not a bot token; it looks like 123456789:AAExampleExample"
        )
    return token


def root(url: HttpUrl) -> str:
    """A base URL without the slash at its end."""
    return str(url).rstrip("/")


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None


def _models(settings: Settings) -> list[LLMService]:
    """The configured model and what to fall back on, in order; none without a server."""
    if not settings.has_model:
        return []
    return [
        LLMService(
            model=name,
            api_key=settings.openai_api_key,
            base_url=root(settings.openai_base_url) if settings.openai_base_url else None,
            mode=settings.llm_response_mode,
            timeout_seconds=settings.llm_timeout_seconds,
        )
        for name in (settings.llm_model, *settings.llm_fallback_models)
    ]


def _limits(settings: Settings) -> Limits:
    return Limits(
        structured_output_max_retries=settings.structured_output_max_retries,
        requests=settings.turn_max_requests,
        tool_calls=settings.turn_max_tool_calls,
        tokens=settings.turn_max_tokens,
        cost_usd=settings.turn_max_cost_usd,
        seconds=settings.turn_timeout_seconds,
        tool_seconds=settings.tool_timeout_seconds,
        answer_tokens=settings.llm_max_tokens,
        answer_tokens_ceiling=settings.llm_max_tokens_ceiling,
    )


def _pace(messages_per_second: int) -> Pace:
    """Telegram's limits, with this process's share of the limit of all chats; 0: no limits."""
    if not messages_per_second:
        return Pace((), (), ())
    return Pace(in_all=(Limit(messages_per_second, 1),))


def _service(settings: Settings) -> ServiceSettings:
    return ServiceSettings(
        webhook_url=str(settings.webhook_url) if settings.webhook_url else None,
        webhook_secret=settings.webhook_secret,
        http_host=settings.http_host,
        http_port=settings.http_port,
        burst=timedelta(seconds=settings.burst_seconds),
        max_tries=settings.update_max_tries,
        retention=timedelta(days=settings.retention_days),
        finish_seconds=settings.shutdown_seconds,
    )


def _durable(settings: Settings) -> DurableSettings:
    return durable_settings(
        settings.database_url.get_secret_value(),
        poll_seconds=settings.turns_poll_seconds,
        turns_at_once=settings.turns_at_once,
        retention=timedelta(days=settings.retention_days),
    )


def _tracer(settings: Settings) -> Tracer:
    public, secret = _secret(settings.langfuse_public_key), _secret(settings.langfuse_secret_key)
    if public is None or secret is None:
        return NO_TRACE
    from agent.langfuse_tracer import LangfuseTracer  # noqa: PLC0415 - only needed with keys

    return LangfuseTracer(public, secret, root(settings.langfuse_base_url))


async def close_application(application: AnyApplication) -> None:
    """Close the connections to Telegram."""
    await application.shutdown()
    # An application that never became initialized leaves its bot's connections open.
    await application.bot.shutdown()


async def _check_database(settings: Settings) -> str:
    try:
        async with open_engine(settings) as engine:
            revision = await migrate.current(engine)
            if revision is None and engine.dialect.name == "sqlite":
                return "empty; it is filled on the first start"
            await require_newest_schema(engine)
            count = await SqlCatalogue(session_factory(engine)).count()
            return f"{engine.dialect.name}, up to date, {count} wines"
    except DatabaseUnavailable as error:
        raise doctor.Ailment(str(error)) from None
