"""Database, documents, models and prompts, tied together: what every way in needs.

`bot.app` puts Telegram in front of it, the commands use it as it is.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.desk import ResearchDesk
from agent.engine.llm import LLMService
from agent.prompts import Prompts
from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse.prompts import LangfusePrompts
from bot import wiring
from bot.stopping import bounded
from config import Settings
from db import migrate
from db.catalogue import load_starter
from db.documents.indexing import load_starter_documents
from db.engine import Sessions, create_engine, session_factory
from db.errors import DatabaseUnavailable
from db.repositories.documents import SqlDocumentStore


@dataclass(frozen=True, slots=True)
class Library:
    """The desk, and what stands behind it."""

    sessions: Sessions
    documents: SqlDocumentStore
    models: Sequence[LLMService]
    desk: ResearchDesk


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
    """The database at this version's schema, with the starter wines and documents if it has none.

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
        async with open_documents(settings, sessions) as documents:
            await _load_starter_documents(documents)
        yield sessions


@asynccontextmanager
async def open_documents(settings: Settings, sessions: Sessions) -> AsyncIterator[SqlDocumentStore]:
    """The documents, found by meaning too where there is an embedding source."""
    embedder = wiring.embedder(settings)
    try:
        yield SqlDocumentStore(sessions, embedder)
    finally:
        if embedder is not None:
            await bounded("the embedding source", embedder.close)


async def _load_starter_documents(documents: SqlDocumentStore) -> None:
    if sys.stderr.isatty() and not await documents.count():
        print("Indexing the starter documents, this once ...", file=sys.stderr)
    await load_starter_documents(documents)


@asynccontextmanager
async def open_library(
    settings: Settings, limited_log: RateLimitedLogger | None = None
) -> AsyncIterator[Library]:
    """Documents, models and place search, tied together at the desk.

    `limited_log` says what is out of order with Langfuse.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
    """
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_database(settings))
        documents = await stack.enter_async_context(open_documents(settings, sessions))
        models = wiring.models(settings)
        for model in models:
            stack.push_async_callback(bounded, "the model", model.close)
        http = httpx.AsyncClient()
        stack.push_async_callback(bounded, "the place search", http.aclose)
        prompts = await stack.enter_async_context(open_prompts(settings, limited_log))
        desk = ResearchDesk(
            documents=documents,
            models=models,
            search=wiring.place_search(settings, http),
            refinement=settings.enable_query_refinement,
            limits=wiring.limits(settings),
            prompts=prompts,
            prices=wiring.prices(settings),
        )
        yield Library(sessions, documents, models, desk)


@asynccontextmanager
async def open_prompts(
    settings: Settings, limited_log: RateLimitedLogger | None = None
) -> AsyncIterator[Prompts]:
    """The prompts in use, kept up to date in the background."""
    prompts = wiring.prompts(settings, limited_log)
    if not isinstance(prompts, LangfusePrompts):
        yield prompts
        return
    await prompts.start()
    try:
        yield prompts
    finally:
        await bounded("the prompts", prompts.close)


async def require_newest_schema(engine: AsyncEngine) -> None:
    """Raise DatabaseUnavailable if the database was not upgraded to this version."""
    revision = await migrate.current(engine)
    if revision != migrate.head():
        raise DatabaseUnavailable(
            f"The database is at revision {revision or 'none'}, this version needs "
            f"{migrate.head()}: run `sommelier db upgrade`."
        )
