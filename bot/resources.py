"""Open the database, documents, models, prompts and searches that the settings configure.

Nothing here imports `telegram`, because commands of the terminal use this too.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import httpx2
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.documents.embedding import Embedder
from agent.documents.passages import DocumentStore, search_documents_tool
from agent.documents.quotes import QuoteCache, quote_documents_tool
from agent.documents.shop import offer_staff_tool
from agent.engine.llm import LLMService
from agent.engine.messages import LLMResponse, ResponseMode, TokenUsage
from agent.engine.models import assume_price, find_price
from agent.engine.run import Limits, Price, Prompt, Run, Usage
from agent.engine.tools import Tool
from agent.engine.wire import Dialect
from agent.fallback.answering import Fallback
from agent.files import FileReader
from agent.mcp import McpServers
from agent.memory.tools import memory_tools
from agent.places.find import WebSearch, brave, find_places_tool, searxng
from agent.safety.help_texts import Help, read_help_texts
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer
from agent.sommelier.service import Sommelier
from agent.turn import Deps
from bot.tasks import in_background, run_and_log_errors, run_shutdown_step
from bot.tracing import masking_of, open_prompts
from config import Server, Settings, SettingsError, describe
from db.budgets import DailyBudgets
from db.documents.adding import load_starter_documents
from db.documents.store import SqlDocumentStore
from db.engine import (
    Sessions,
    create_engine,
)
from db.export_queue import RowQueue
from db.models import ScoreRow, TraceRow, utc_now
from db.repositories.clicks import ClickRepository, Clicks
from db.repositories.commits import Commits
from db.repositories.inbox import Inbox
from db.repositories.outbox import BroadcastRepository, Broadcasts, Outbox
from db.repositories.people import (
    ChatRepository,
    MemoryRepository,
    MemoryUpkeep,
    MessageRepository,
    PressRepository,
)
from db.repositories.referrals import ReferralRepository, ReferralUpkeep
from db.repositories.retention import Retention
from db.repositories.statistics import StatisticsRepository
from db.repositories.turns import TurnRepository
from db.repositories.unmet import UnmetWishes
from db.schema import check_schema, find_schema, upgrade_schema
from db.traces import LOCAL_TRACE_ROWS, SqlTraceStore, TraceRows
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import load_starter

STATS_RETENTION: Final = timedelta(days=90)
"""The time after which the statistics and ratings of turns are deleted."""
UPDATE_RETENTION: Final = timedelta(days=7)
"""The time after which the record of an answered update is deleted."""
REFERRAL_RETENTION: Final = timedelta(days=14)
"""The time after which a conversation with the staff is deleted. The deletion also ends it."""


class Repositories:
    """Holds the objects that read from a database. None of them writes."""

    def __init__(self, sessions: Sessions) -> None:
        self.wines = SqlCatalogue(sessions)
        self.messages = MessageRepository(sessions)
        self.chats = ChatRepository(sessions)
        self.turns = TurnRepository(sessions)
        self.unmet = UnmetWishes(sessions)
        self.statistics = StatisticsRepository(sessions)
        self.memory = MemoryRepository(sessions)
        self.presses = PressRepository(sessions)
        self.broadcasts = BroadcastRepository(sessions)
        self.referrals = ReferralRepository(sessions)
        self.clicks = ClickRepository(sessions)
        self.traces = SqlTraceStore(sessions)


class Stores:
    """Holds the objects that write to a database.

    Handlers of messages have none of them, because only the commit of a turn stores something.
    `rows` defines how traces are masked and stored.
    """

    def __init__(
        self,
        sessions: Sessions,
        rows: TraceRows = LOCAL_TRACE_ROWS,
        budgets: DailyBudgets | None = None,
    ) -> None:
        self.budgets = budgets
        self.inbox = Inbox(sessions, rows=rows, budgets=budgets)
        self.outbox = Outbox(sessions)
        self.commits = Commits(sessions, rows=rows, budgets=budgets)
        self.broadcasts = Broadcasts(sessions)
        self.referrals = ReferralUpkeep(sessions)
        self.upkeep = MemoryUpkeep(sessions)
        self.clicks = Clicks(sessions)
        self.retention = Retention(sessions)
        self.trace_queue = RowQueue(sessions, TraceRow)
        self.score_queue = RowQueue(sessions, ScoreRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The objects that the bot, the API and the commands share."""

    sessions: Sessions
    repositories: Repositories
    documents: DocumentStore
    run: Run
    """The run from which the run of every turn is made."""
    shop_name: str = ""
    has_staff: bool = False
    """Whether users can ask the staff of the shop."""
    finds_places: bool = True
    """Whether users can look for places."""
    search: WebSearch | None = None
    """Finds places. If it is None, users get search links."""
    transcriber: AudioServer | None = None
    """Writes down voice messages."""
    speaker: AudioServer | None = None
    """Reads answers aloud."""
    refinement: bool | None = None
    """Whether to rewrite questions before a search. If it is None, each request decides."""
    files: FileReader = field(default_factory=FileReader)
    """Reads the files of users."""
    cache: QuoteCache = field(default_factory=QuoteCache)
    help: Help = field(default_factory=Help)
    small: bool = False
    """Whether the model is small. A small model gets a shorter prompt."""


@asynccontextmanager
async def open_resources(settings: Settings) -> AsyncIterator[Resources]:
    """Open all configured resources, and close them at the end of the block.

    Raises:
        DatabaseUnusable: the database cannot be reached, or is a Postgres that was not upgraded.
        SettingsError: the file of HELP_TEXTS is not valid.
    """
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_database(settings))
        http = httpx2.AsyncClient()
        stack.push_async_callback(run_shutdown_step, "requests to servers", http.aclose)
        yield Resources(
            sessions=sessions,
            repositories=Repositories(sessions),
            documents=await _open_documents(settings, sessions, http, stack),
            run=await _open_run(settings, stack),
            shop_name=settings.shop_name,
            has_staff=settings.staff_chat_id is not None,
            finds_places=settings.enable_find,
            search=place_search(settings, http),
            transcriber=audio_server(settings, settings.transcription_model, http),
            speaker=audio_server(settings, settings.speech_model, http),
            refinement=settings.enable_query_refinement,
            help=help_of(settings),
            small=settings.is_small,
        )


async def _open_documents(
    settings: Settings,
    sessions: Sessions,
    http: httpx2.AsyncClient,
    stack: AsyncExitStack,
) -> SqlDocumentStore:
    """Return the store of documents. With an embedding model, vectors are made meanwhile."""
    embedder = embedder_of(settings, http)
    documents = SqlDocumentStore(sessions, embedder=embedder)
    if embedder is not None:

        async def embed() -> None:
            await run_and_log_errors("embedding documents", documents.embed_missing)

        await stack.enter_async_context(in_background(embed))
    return documents


async def _open_run(settings: Settings, stack: AsyncExitStack) -> Run:
    """Return the run from which the run of every turn is made, with its models and prompts."""
    models, special_models = models_of(settings)
    for model in (*models, *special_models.values()):
        stack.push_async_callback(run_shutdown_step, "the model", model.close)
    prompts = await stack.enter_async_context(open_prompts(settings))
    return run_of(settings, prompts, models, special_models)


def stores_of(settings: Settings, sessions: Sessions) -> Stores:
    """Return the stores of a database. The stores mask and export traces as the settings say."""
    rows = TraceRows(masking_of(settings), settings.sends_traces)
    return Stores(sessions, rows, budgets_of(settings, sessions))


def budgets_of(
    settings: Settings, sessions: Sessions, now: Callable[[], datetime] = utc_now
) -> DailyBudgets | None:
    """Return the daily budgets, or None if no budget is set. The budgets do not apply to admins."""
    person_requests = settings.budget_person_requests
    total_cost_usd = settings.budget_total_cost_usd
    if person_requests is None and total_cost_usd is None:
        return None
    return DailyBudgets(
        sessions,
        now,
        person_requests=person_requests,
        total_cost_usd=total_cost_usd,
        exempt=frozenset(settings.admin_ids),
        turn_limits=Limits(cost_usd=settings.turn_max_cost_usd),
    )


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """Open the database without upgrading it, and close it at the end of the block."""
    url = settings.database_url.get_secret_value()
    engine = create_engine(url, settings.database_pool_size)
    try:
        yield engine
    finally:
        await run_shutdown_step("the database", engine.dispose)


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the database, and add the starter wines and documents if it has none.

    An SQLite database is upgraded to the schema of this version. A Postgres must have been upgraded
    before, because other processes may use it.

    Raises:
        DatabaseUnusable: the database cannot be reached, or is a Postgres that was not upgraded.
    """
    async with open_engine(settings) as engine:
        if engine.dialect.name == "sqlite":
            await upgrade_schema(engine)
        else:
            check_schema(await find_schema(engine), engine.url)
        sessions = Sessions(engine)
        await load_starter(sessions)
        documents = SqlDocumentStore(sessions)
        if sys.stderr.isatty() and not await documents.count():
            print("Indexing the starter documents, this once ...", file=sys.stderr)
        await load_starter_documents(documents)
        yield sessions


@asynccontextmanager
async def open_embedder(settings: Settings) -> AsyncIterator[Embedder | None]:
    """Open the embedding model for the block. Yield None if none is configured."""
    async with httpx2.AsyncClient() as http:
        yield embedder_of(settings, http)


def models_of(settings: Settings) -> tuple[list[LLMService], dict[str, LLMService]]:
    """Return the language models in order of preference, and the special models by their task.

    Special models extract quotes and read pictures.
    """
    models: list[LLMService] = []
    special: dict[str, LLMService] = {}
    if settings.server is not None:
        for name in (settings.llm_model, *settings.llm_fallback_models):
            models.append(model_of(settings, name))
    quotes_name = settings.quotes_model
    if settings.server is not None and quotes_name:
        # The model of quotes may be a cheap one. Cheap models leave out fields unless the schema is
        # enforced.
        special["quotes"] = model_of(settings, quotes_name, mode="json_schema")
    vision_name = settings.vision_model
    vision_server = settings.second_server
    if vision_name and vision_server:
        special[VISION] = model_of(settings, vision_name, vision_server)
    return models, special


def model_of(
    settings: Settings,
    name: str,
    server: Server | None = None,
    mode: ResponseMode | None = None,
) -> LLMService:
    """Return a model of a server. `server` and `mode` default to those of the language models."""
    server = server or settings.server or Server()
    mode = mode or settings.response_mode
    return LLMService(
        model=name,
        dialect=Dialect.of_server(server.base_url, mode),
        timeout_seconds=settings.llm_timeout_seconds,
        **server._asdict(),
    )


def run_of(
    settings: Settings,
    prompts: Mapping[str, Prompt],
    models: Sequence[LLMService] = (),
    special: Mapping[str, LLMService] | None = None,
) -> Run[Deps]:
    """Return the run from which the runs of turns are made.

    `special` are the models for single tasks, by the task.
    """
    prices = settings.llm_prices
    _warn_of_assumed_prices(models, prices)
    limits = Limits(
        structured_output_max_retries=settings.structured_output_max_retries,
        cost_usd=settings.turn_max_cost_usd,
        seconds=settings.turn_seconds,
    )
    deps = Deps(prompts=prompts, models=special or {})
    return Run(models, limits=limits, usage=Usage(prices=prices), deps=deps)


def _warn_of_assumed_prices(
    models: Sequence[LLMService], prices: Mapping[str, Price]
) -> None:
    """Warn the owner at the start of each model with a price that is not known."""
    for model in models:
        # A price is found for a response, so this one stands for those of the model.
        sample_response = LLMResponse(
            model=model.model, usage=TokenUsage(1), base_url=model.base_url
        )
        if find_price(sample_response, prices) is None:
            # This call logs the warning. The price itself is not needed yet.
            assume_price(sample_response)


def embedder_of(settings: Settings, http: httpx2.AsyncClient) -> Embedder | None:
    """Return the embedding model, or None if none is configured."""
    model = settings.embedding_model
    server = settings.second_server
    if model is None or server is None:
        return None
    return Embedder(http, model=model, **server._asdict())


def audio_server(
    settings: Settings, model: str | None, http: httpx2.AsyncClient
) -> AudioServer | None:
    """Return a model for speech, or None if the model or its server is not configured."""
    server = settings.second_server
    if model is None or server is None:
        return None
    seconds = settings.llm_timeout_seconds
    return AudioServer(
        http=http, model=model, timeout_seconds=seconds, **server._asdict()
    )


def place_search(settings: Settings, http: httpx2.AsyncClient) -> WebSearch | None:
    """Return the web search for places, or None if none is configured.

    If both SearXNG and Brave are configured, SearXNG is used.
    """
    if settings.searxng_url is not None:
        return searxng(settings.searxng_url, http)
    if settings.brave_api_key is not None:
        return brave(settings.brave_api_key, http)
    return None


def help_of(settings: Settings) -> Help:
    """Return the texts of the safety rules, and the drinking age.

    Raises:
        SettingsError: the file of HELP_TEXTS cannot be read or is not valid, or HELP_COUNTRY has
            no help lines.
    """
    try:
        catalogue = read_help_texts(settings.help_texts)
    except ValidationError as error:
        raise SettingsError(f"HELP_TEXTS: {describe(error)}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"HELP_TEXTS: {error}") from None
    if settings.help_country and settings.help_country not in catalogue.countries:
        raise SettingsError(
            f"HELP_COUNTRY: there are no help lines for {settings.help_country}; "
            "add them to the file of HELP_TEXTS"
        )
    return Help(settings.legal_age, catalogue, settings.help_country)


def sommelier_of(resources: Resources, servers: McpServers) -> Sommelier:
    """Return the sommelier that answers messages, with every tool."""
    catalogue = resources.repositories.wines
    documents = resources.documents
    tools = research_tools(
        documents,
        resources.search,
        resources.cache,
        finds_places=resources.finds_places,
    )
    if resources.has_staff:
        tools.append(offer_staff_tool())
    fallback = Fallback(
        catalogue=catalogue, documents=documents, has_staff=resources.has_staff
    )
    return Sommelier(
        catalogue=catalogue,
        fallback=fallback,
        research_tools=[*tools, *memory_tools()],
        help_texts=resources.help,
        uses_small_model=resources.small,
        servers=servers,
    )


def research_tools(
    documents: DocumentStore,
    search: WebSearch | None = None,
    cache: QuoteCache | None = None,
    *,
    finds_places: bool = True,
) -> list[Tool]:
    """Return the tools that search documents, quote them, and find places."""
    tools = [
        search_documents_tool(documents),
        quote_documents_tool(documents, cache=cache),
    ]
    if finds_places:
        tools.append(find_places_tool(search))
    return tools


async def delete_old_data(settings: Settings, retention: Retention) -> int:
    """Delete data older than its retention time.

    Return the number of deleted traces that had not been sent to Langfuse.
    """
    await retention.delete_turns(STATS_RETENTION)
    await retention.delete_messages(timedelta(days=settings.history_days))
    await retention.delete_presses(STATS_RETENTION)
    await retention.delete_clicks(STATS_RETENTION)
    await retention.delete_expired()
    await retention.delete_referrals(REFERRAL_RETENTION)
    await retention.delete_updates(UPDATE_RETENTION)
    return await retention.delete_traces(timedelta(days=settings.trace_retention_days))
