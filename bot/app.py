"""The composition root: everything is made here, tied together, and closed in order."""

import asyncio
import logging
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine
from telegram.error import Conflict, InvalidToken, TelegramError
from telegram.ext import Application
from telegram.request import BaseRequest

from agent.llm import LLMService
from agent.sommelier import Answerer
from agent.tracing import NO_TRACE, Tracer, user_hash
from bot import doctor, local_telegram, texts
from bot.ordering import ChatOrder
from bot.telegram_bot import ALLOWED_UPDATES, AnyApplication, TelegramBot
from config import Settings, SettingsError
from db import migrate
from db.catalogue import load_starter
from db.engine import Sessions, create_engine, session_factory
from db.errors import DatabaseUnavailable
from db.repositories.messages import SqlMessageRepository
from db.repositories.wines import SqlCatalogue

log = logging.getLogger(__name__)

FINISH_SECONDS: Final = 20
"""How long turns may go on after the bot was told to stop."""

CLOSE_SECONDS: Final = 5
"""How long closing one thing may take."""

POLL_SECONDS: Final = 30
LONGEST_WAIT_SECONDS: Final = 30
TOKEN: Final = re.compile(r"\d+:[\w-]+")


@dataclass(frozen=True, slots=True)
class App:
    """What is running: the Telegram application, the order of updates, the database's rooms."""

    application: AnyApplication
    order: ChatOrder
    catalogue: SqlCatalogue
    messages: SqlMessageRepository


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """The database as it is, closed at the end."""
    engine = create_engine(settings.database_url.get_secret_value())
    try:
        yield engine
    finally:
        await _bounded("the database", engine.dispose())


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
            await _require_head(engine)
        sessions = session_factory(engine)
        await load_starter(sessions)
        yield sessions


@asynccontextmanager
async def open_app(settings: Settings, telegram: BaseRequest | None = None) -> AsyncIterator[App]:
    """Everything, ready to be initialized; with `telegram` in place of the network if given.

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
            stack.push_async_callback(_bounded, "the model", model.close())
        tracer = _tracer(settings)
        stack.push_async_callback(tracer.close)
        order = ChatOrder()
        application = _application(settings, token, order, telegram)
        stack.push_async_callback(_close_application, application)
        TelegramBot(
            answerer=_answerer(settings, catalogue, models),
            messages=messages,
            tracer=tracer,
            hash_user=partial(user_hash, key=settings.trace_user_key),
            history_messages=settings.history_messages,
            max_content_length=settings.max_content_length,
        ).register(application)
        yield App(application, order, catalogue, messages)


async def run_polling(settings: Settings) -> None:
    """Answer people in Telegram until SIGTERM or SIGINT; a second signal does not wait for turns.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or Telegram rejects it.
    """
    stop = _stop_signal()
    async with open_app(settings) as app:
        if not await _unless(stop, _introduce(app.application)):
            return
        await app.application.start()
        try:
            if await _unless(stop, _poll(app.application)):
                log.info("Listening as @%s", app.application.bot.username)
                await stop.wait()
        finally:
            await _finish(app)
