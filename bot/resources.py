"""Open the database, documents, models, prompts and searches by the settings; without Telegram.

Commands that only look something up start from here, so nothing here imports `telegram`.
"""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import httpx2
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.care import Help, read_help_texts
from agent.documents.embedding import Embedder
from agent.documents.passages import DocumentStore, search_documents_tool
from agent.documents.quotes import QuoteCache, quote_documents_tool
from agent.engine.llm import LLMService
from agent.engine.messages import LLMResponse, Usage
from agent.engine.models import costs_of
from agent.engine.run import Ledger, Limits, Prompt, Run
from agent.engine.tools import Tool
from agent.fallback.answering import Fallback
from agent.mcp import McpServers
from agent.memory.tools import memory_tools
from agent.places.find import WebSearch, brave, find_places_tool, searxng
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer
from agent.sommelier.service import Sommelier
from agent.turn import Deps
from bot.tasks import in_background, run_and_log_errors, run_shutdown_step
from bot.tracing import masking_of, open_prompts
from config import Server, Settings, SettingsError, describe
from db.documents.store import SqlDocumentStore, load_starter_documents
from db.engine import (
    REVISION,
    DatabaseUnavailable,
    Sessions,
    create_engine,
    find_revision,
    upgrade_schema,
)
from db.models import ScoreRow, TraceRow
from db.repositories.inbox import Broadcasts, Inbox
from db.repositories.people import ChatRepository, MemoryRepository, MessageRepository
from db.repositories.traces import LOCAL_TRACE_ROWS, RowQueue, SqlTraceStore, TraceRows
from db.repositories.turns import TurnRepository
from db.wines.catalogue import SqlCatalogue, load_starter

STATS_RETENTION: Final = timedelta(days=90)
"""The time after which the numbers of turns, and ratings of them, are deleted."""
UPDATE_RETENTION: Final = timedelta(days=7)
"""The time after which the record of an answered update is deleted."""


class Repositories:
    """The repositories of one database; `rows` says how traces are stored."""

    def __init__(self, sessions: Sessions, rows: TraceRows = LOCAL_TRACE_ROWS) -> None:
        self.wines = SqlCatalogue(sessions)
        self.messages = MessageRepository(sessions)
        self.inbox = Inbox(sessions, rows=rows)
        self.chats = ChatRepository(sessions)
        self.turns = TurnRepository(sessions, rows=rows)
        self.memory = MemoryRepository(sessions)
        self.broadcasts = Broadcasts(sessions)
        self.traces = SqlTraceStore(sessions, rows=rows)
        self.trace_queue = RowQueue(sessions, TraceRow)
        self.score_queue = RowQueue(sessions, ScoreRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The objects that the bot, the API and the commands share; turns start from `run`.

    `refinement` is the server's switch: None lets a request decide, False is final. Without
    `search` places are search links. A `small` model gets a shorter prompt.
    """

    sessions: Sessions
    repositories: Repositories
    documents: DocumentStore
    run: Run
    search: WebSearch | None = None
    transcriber: AudioServer | None = None
    speaker: AudioServer | None = None
    refinement: bool | None = None
    cache: QuoteCache = field(default_factory=QuoteCache)
    help: Help = field(default_factory=Help)
    small: bool = False


@asynccontextmanager
async def open_resources(settings: Settings) -> AsyncIterator[Resources]:
    """Open everything by the settings; close it at the end.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: CARE_TEXTS has a wrong form.
    """
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_database(settings))
        http = httpx2.AsyncClient()
        stack.push_async_callback(run_shutdown_step, "requests to servers", http.aclose)
        embedder = embedder_of(settings, http)
        documents = SqlDocumentStore(sessions, embedder=embedder)
        if embedder is not None:
            embed = partial(run_and_log_errors, "embedding documents", documents.embed_missing)
            await stack.enter_async_context(in_background(embed))
        models, special = models_of(settings)
        for model in (*models, *special.values()):
            stack.push_async_callback(run_shutdown_step, "the model", model.close)
        prompts = await stack.enter_async_context(open_prompts(settings))
        trace_rows = TraceRows(masking_of(settings), settings.is_exported)
        yield Resources(
            sessions=sessions,
            repositories=Repositories(sessions, trace_rows),
            documents=documents,
            run=run_of(settings, prompts, models, special),
            search=place_search(settings, http),
            transcriber=audio_server(settings, settings.transcription_model, http),
            speaker=audio_server(settings, settings.speech_model, http),
            refinement=settings.enable_query_refinement,
            help=help_of(settings),
            small=settings.is_small,
        )


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """Open the database as it is; close it at the end."""
    engine = create_engine(settings.database_url.get_secret_value(), settings.database_pool_size)
    try:
        yield engine
    finally:
        await run_shutdown_step("the database", engine.dispose)


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the database at this version's schema; fill an empty one with wines and documents.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
    """
    async with open_engine(settings) as engine:
        if engine.dialect.name == "sqlite":
            await upgrade_schema(engine)
        else:
            await require_newest_schema(engine)
        sessions = Sessions(engine)
        await load_starter(sessions)
        documents = SqlDocumentStore(sessions)
        if sys.stderr.isatty() and not await documents.count():
            print("Indexing the starter documents, this once ...", file=sys.stderr)
        await load_starter_documents(documents)
        yield sessions


async def require_newest_schema(engine: AsyncEngine) -> None:
    """Raise DatabaseUnavailable if the database was not upgraded to this version."""
    revision = await find_revision(engine)
    if revision != REVISION:
        raise DatabaseUnavailable(
            f"The database is at revision {revision or 'none'}, this version needs "
            f"{REVISION}: run `sommelier db upgrade`."
        )


@asynccontextmanager
async def open_embedder(settings: Settings) -> AsyncIterator[Embedder | None]:
    """Open the configured source of vectors; None if there is none."""
    async with httpx2.AsyncClient() as http:
        yield embedder_of(settings, http)


def models_of(settings: Settings) -> tuple[list[LLMService], dict[str, LLMService]]:
    """Return the models that are asked in order, and those for quotes and pictures, if set."""
    models, special = list[LLMService](), dict[str, LLMService]()
    if settings.server is not None:
        names = (settings.llm_model, *settings.llm_fallback_models)
        models = [model_of(settings, name) for name in names]
        if settings.quotes_model:
            special["quotes"] = model_of(settings, settings.quotes_model)
    if settings.vision_model and settings.second_server:
        special[VISION] = model_of(settings, settings.vision_model, settings.second_server)
    return models, special


def model_of(settings: Settings, name: str, server: Server | None = None) -> LLMService:
    """Return a model of a server, by default of that of the language models."""
    return LLMService(
        model=name,
        mode=settings.response_mode,
        timeout_seconds=settings.llm_timeout_seconds,
        **(server or settings.server or Server())._asdict(),
    )


def run_of(
    settings: Settings,
    prompts: Mapping[str, Prompt],
    models: Sequence[LLMService] = (),
    special: Mapping[str, LLMService] | None = None,
) -> Run[Deps]:
    """Return the run that every turn starts from; `special` models serve one use each."""
    prices = settings.llm_prices
    for model in models:  # logs at the start which of them have no known price
        response = LLMResponse(model=model.model, usage=Usage(1), base_url=model.base_url)
        costs_of(response, prices)
    limits = Limits(
        structured_output_max_retries=settings.structured_output_max_retries,
        cost_usd=settings.turn_max_cost_usd,
    )
    deps = Deps(prompts=prompts, models=special or {})
    return Run(models, limits=limits, ledger=Ledger(prices=prices), deps=deps)


def embedder_of(settings: Settings, http: httpx2.AsyncClient) -> Embedder | None:
    """Return the configured source of vectors, None if there is none."""
    model, server = settings.embedding_model, settings.second_server
    return Embedder(http, model=model, **server._asdict()) if model and server else None


def audio_server(
    settings: Settings, model: str | None, http: httpx2.AsyncClient
) -> AudioServer | None:
    """Return a model that hears or speaks; None if none is set, or no server for it."""
    if model is None or (server := settings.second_server) is None:
        return None
    seconds = settings.llm_timeout_seconds
    return AudioServer(http=http, model=model, timeout_seconds=seconds, **server._asdict())


def place_search(settings: Settings, http: httpx2.AsyncClient) -> WebSearch | None:
    """Return the configured search for places; SearXNG comes before Brave."""
    if settings.searxng_url is not None:
        return searxng(settings.searxng_url, http)
    return brave(settings.brave_api_key, http) if settings.brave_api_key is not None else None


def help_of(settings: Settings) -> Help:
    """Return the texts for those who should not drink, and the age from which wine is offered.

    Raises:
        SettingsError: CARE_TEXTS cannot be read, or is not as it must be.
    """
    try:
        return Help(settings.legal_age, read_help_texts(settings.care_texts))
    except (OSError, ValueError) as error:
        reason = describe(error) if isinstance(error, ValidationError) else str(error)
        raise SettingsError(f"CARE_TEXTS: {reason}") from None


def sommelier_of(resources: Resources, servers: McpServers) -> Sommelier:
    """Return the sommelier that answers messages, with every tool."""
    catalogue, documents = resources.repositories.wines, resources.documents
    tools = research_tools(documents, resources.search, resources.cache)
    return Sommelier(
        catalogue=catalogue,
        fallback=Fallback(catalogue=catalogue, documents=documents),
        research_tools=[*tools, *memory_tools()],
        help=resources.help,
        small=resources.small,
        servers=servers,
    )


def research_tools(
    documents: DocumentStore, search: WebSearch | None = None, cache: QuoteCache | None = None
) -> list[Tool]:
    """Return the tools of a turn beside the catalogue: documents, quotes, places."""
    return [
        search_documents_tool(documents),
        quote_documents_tool(documents, cache=cache),
        find_places_tool(search),
    ]


async def forget_old(settings: Settings, repositories: Repositories) -> int:
    """Delete data that is too old by the settings; return how many traces were never sent."""
    await repositories.turns.forget(STATS_RETENTION)
    await repositories.memory.forget_expired()
    await repositories.inbox.forget(UPDATE_RETENTION)
    retention = timedelta(days=settings.trace_retention_days)
    return await repositories.traces.forget(retention)
