"""Open what the settings describe, without Telegram: database, documents, models, prompts, search.

`bot.app` puts Telegram, turns and HTTP in front of it. It stands apart because a command that only
looks something up is to start without loading any of these.
"""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import httpx2
from platformdirs import user_cache_path
from pydantic import SecretStr, ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.care_help import Help, help_texts
from agent.documents.embedding import (
    NOT_INSTALLED,
    PREFIX,
    EmbeddingService,
    LocalEmbedding,
    is_installed,
)
from agent.documents.passages import DocumentStore
from agent.documents.quotes import QuoteCache
from agent.documents.refine import refinement_wanted
from agent.documents.tools import ask_documents_tool, quote_documents_tool, search_documents_tool
from agent.engine.limits import Ledger, Prices
from agent.engine.llm import LLMService
from agent.engine.messages import LLM, ResponseMode
from agent.engine.run import Prompts, Run
from agent.engine.span import TraceRecord
from agent.engine.tools import Tool
from agent.engine.trial import WithoutTools
from agent.places.find import BraveSearch, PlaceSearch, SearxngSearch, find_places_tool
from agent.prompts import REPOSITORY
from agent.repositories import TraceFilter, TraceSummary
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer, Speaker, Transcriber
from agent.tracing.exporter import Exporter, HttpClient
from agent.tracing.langfuse.prompts import REQUEST_SECONDS, LangfusePrompts, PromptStore
from agent.tracing.langfuse.traces import (
    LangfuseClient,
    LangfuseFeedback,
    LangfuseTraces,
    delete_traces,
    trace_url,
)
from agent.tracing.masking import Masking, prepared
from agent.tracing.otlp import Origin, OtlpTraces
from bot.forgetting import Forgetting
from bot.service import bounded
from config import Settings, SettingsError, describe
from db.documents.indexing import load_starter_documents
from db.engine import (
    DatabaseUnavailable,
    Sessions,
    create_engine,
    newest_revision,
    schema_revision,
    upgrade_schema,
)
from db.repositories.documents import SqlDocumentStore
from db.repositories.people import (
    SqlBroadcastRepository,
    SqlCareRepository,
    SqlChatRepository,
    SqlMemoryRepository,
    SqlMessageRepository,
    SqlPeopleRepository,
)
from db.repositories.privacy import SqlDeletionRepository, SqlPersonalData
from db.repositories.traces import LOCAL_TRACES, SqlTraceStore, TraceRows
from db.repositories.turns import SqlFeedbackRepository, SqlTurnRepository, exported_turns
from db.repositories.updates import SqlUpdateRepository
from db.wines.catalogue import SqlCatalogue
from db.wines.importing import load_starter

if TYPE_CHECKING:
    from bot.http.admin import Admin


class Repositories:
    """Where things are kept: the repositories of one database; `rows` says how traces are."""

    def __init__(self, sessions: Sessions, rows: TraceRows = LOCAL_TRACES) -> None:
        self.wines = SqlCatalogue(sessions)
        self.messages = SqlMessageRepository(sessions)
        self.updates = SqlUpdateRepository(sessions, rows=rows)
        self.chats = SqlChatRepository(sessions)
        self.turns = SqlTurnRepository(sessions, rows=rows)
        self.feedback = SqlFeedbackRepository(sessions)
        self.people = SqlPeopleRepository(sessions)
        self.cares = SqlCareRepository(sessions)
        self.memory = SqlMemoryRepository(sessions)
        self.personal = SqlPersonalData(sessions)
        self.broadcasts = SqlBroadcastRepository(sessions)
        self.traces = SqlTraceStore(sessions, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What every way in needs; each turn starts from `run`.

    `refinement` is the server's switch: None lets each request decide, False is final. Without
    `search` places are search links. To a `small` model less is said.
    """

    sessions: Sessions
    repositories: Repositories
    documents: SqlDocumentStore
    run: Run
    search: PlaceSearch | None = None
    transcriber: Transcriber | None = None
    speaker: Speaker | None = None
    refinement: bool | None = None
    cache: QuoteCache = field(default_factory=QuoteCache)
    help: Help = field(default_factory=Help)
    small: bool = False


@asynccontextmanager
async def open_resources(settings: Settings) -> AsyncIterator[Resources]:
    """Database, documents, models, prompts and place search, closed at the end.

    Raises:
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: what a setting asks for is not installed, LLM_PRICES is no list, or
            CARE_TEXTS is not as it must be.
    """
    async with AsyncExitStack() as stack:
        sessions = await stack.enter_async_context(open_database(settings))
        documents = await stack.enter_async_context(open_documents(settings, sessions))
        models, aside = models_of(settings), aside_of(settings)
        for model in (*models, *aside.values()):
            stack.push_async_callback(bounded, "the model", model.close)
        able = [with_tools(settings, model) for model in models]
        http = httpx2.AsyncClient()
        stack.push_async_callback(bounded, "the place search", http.aclose)
        prompts = await stack.enter_async_context(open_prompts(settings))
        yield Resources(
            sessions=sessions,
            repositories=Repositories(sessions, trace_rows(settings)),
            documents=documents,
            run=replace(run_of(settings, able, prompts), aside=aside),
            search=place_search(settings, http),
            transcriber=transcriber_of(settings, http),
            speaker=speaker_of(settings, http),
            refinement=settings.documents.refinement,
            help=help_of(settings),
            small=settings.model.profile == "small",
        )


def help_of(settings: Settings) -> Help:
    """What is said to those who should not drink, and from which age wine is offered.

    Raises:
        SettingsError: CARE_TEXTS cannot be read, or is not as it must be.
    """
    care = settings.care
    try:
        return Help(care.legal_age, care.region, help_texts(care.texts))
    except (OSError, ValueError) as error:
        reason = describe(error) if isinstance(error, ValidationError) else str(error)
        raise SettingsError(f"CARE_TEXTS: {reason}") from None


def run_of(settings: Settings, models: Sequence[LLM], prompts: Prompts) -> Run:
    """What each turn starts from: these models and prompts, the limits and the prices."""
    ledger = Ledger(prices=prices(settings))
    return Run(
        models,
        limits=settings.turn.limits,
        ledger=ledger,
        prompts=prompts,
        traces_images=settings.tracing.images,
    )


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    """The database as it is, closed at the end."""
    engine = create_engine(settings.database.url.get_secret_value())
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
            await upgrade_schema(engine)
        else:
            await require_newest_schema(engine)
        sessions = Sessions(engine)
        await load_starter(sessions)
        async with open_documents(settings, sessions) as documents:
            if sys.stderr.isatty() and not await documents.count():
                print("Indexing the starter documents, this once ...", file=sys.stderr)
            await load_starter_documents(documents)
        yield sessions


async def require_newest_schema(engine: AsyncEngine) -> None:
    """Raise DatabaseUnavailable if the database was not upgraded to this version."""
    revision = await schema_revision(engine)
    if revision != newest_revision():
        raise DatabaseUnavailable(
            f"The database is at revision {revision or 'none'}, this version needs "
            f"{newest_revision()}: run `sommelier db upgrade`."
        )


@asynccontextmanager
async def open_documents(settings: Settings, sessions: Sessions) -> AsyncIterator[SqlDocumentStore]:
    """The documents, found by meaning too where there is an embedding source.

    Raises:
        SettingsError: the embedding model is to run here, and what runs it is not installed.
    """
    embedder = embedder_of(settings)
    try:
        yield SqlDocumentStore(sessions, embedder)
    finally:
        if embedder is not None:
            await bounded("the embedding source", embedder.close)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Prompts]:
    """The prompts in use: with Langfuse's keys those managed there, kept up to date."""
    tracing = settings.tracing
    if tracing.langfuse_keys is None:
        yield REPOSITORY
        return
    client = LangfuseClient(*tracing.langfuse_keys, tracing.base_url, seconds=REQUEST_SECONDS)
    prompts = LangfusePrompts(
        PromptStore(client),
        label=tracing.prompt_label,
        every_seconds=tracing.prompt_seconds,
    )
    await prompts.start()
    try:
        yield prompts
    finally:
        await bounded("the prompts", prompts.close)


def models_of(settings: Settings) -> list[LLMService]:
    """The configured model and what to fall back on, in order; none without a server."""
    names = (settings.model.name, *settings.model.fallback_names)
    mode = settings.model.response_mode
    return [model_of(settings, name, mode) for name in names] if settings.model.is_set else []


def with_tools(settings: Settings, model: LLM) -> LLM:
    """A model whose tools are called for it if it calls none itself."""
    if settings.model.calls_tools:
        return model
    from agent.house_sommelier.model import HouseSommelier  # noqa: PLC0415 - needed here alone

    return WithoutTools(model, HouseSommelier())


def aside_of(settings: Settings) -> dict[str, LLMService]:
    """The models that are asked for one thing: first for quotes, and to check answers."""
    names = {"quotes": settings.documents.quotes_model, "check": settings.documents.check_model}
    mode, is_set = settings.model.response_mode, settings.model.is_set
    aside = {use: model_of(settings, name, mode) for use, name in names.items() if name and is_set}
    senses = settings.senses
    if senses.vision_model and (is_set or senses.vision_base_url or senses.vision_api_key):
        aside[VISION] = vision_of(settings, senses.vision_model)
    return aside


def vision_of(settings: Settings, name: str) -> LLMService:
    """A model that sees, of its own server or of that of the others."""
    senses, mode = settings.senses, settings.model.response_mode
    return model_of(settings, name, mode, senses.vision_base_url, senses.vision_api_key)


def model_of(
    settings: Settings,
    name: str,
    mode: ResponseMode,
    base_url: str | None = None,
    api_key: SecretStr | None = None,
) -> LLMService:
    """One model of the configured server, or of one of its own.

    The key of the model's server is not sent to a server of another address.
    """
    return LLMService(
        model=name,
        api_key=api_key or (None if base_url else settings.model.api_key),
        base_url=base_url or (None if api_key else settings.model.base_url),
        mode=mode,
        timeout_seconds=settings.model.timeout_seconds,
        context_tokens=settings.model.context_tokens,
    )


def embedder_of(settings: Settings) -> EmbeddingService | LocalEmbedding | None:
    """The configured source of vectors, None if documents are searched by words only.

    The key of the model's server is not sent to a server of another address.

    Raises:
        SettingsError: the model is to run here, and what runs it is not installed.
    """
    documents = settings.documents
    if documents.embedding_model is None:
        return None
    if documents.embedding_model.startswith(PREFIX):
        if not is_installed():
            raise SettingsError(f"EMBEDDING_MODEL: {NOT_INSTALLED}")
        name = documents.embedding_model.removeprefix(PREFIX)
        return LocalEmbedding(name, cache=user_cache_path("sommelier") / "models")
    own = documents.embedding_base_url
    return EmbeddingService(
        model=documents.embedding_model,
        api_key=documents.embedding_api_key or (None if own else settings.model.api_key),
        base_url=own or settings.model.base_url,
        timeout_seconds=settings.model.timeout_seconds,
    )


def transcriber_of(settings: Settings, http: httpx2.AsyncClient) -> Transcriber | None:
    """What hears voices, None where no model is set that does, or no server of it."""
    senses = settings.senses
    server = _audio_server(
        settings, http, senses.transcription_base_url, senses.transcription_api_key
    )
    if senses.transcription_model is None or server is None:
        return None
    return Transcriber(
        server=server,
        model=senses.transcription_model,
        usd_per_minute=senses.usd_per_minute,
        longest_seconds=senses.voice_seconds,
    )


def speaker_of(settings: Settings, http: httpx2.AsyncClient) -> Speaker | None:
    """What reads answers aloud, None where no model is set that does, or no server of it."""
    senses = settings.senses
    server = _audio_server(settings, http, senses.speech_base_url, senses.speech_api_key)
    if senses.speech_model is None or server is None:
        return None
    return Speaker(
        server=server,
        model=senses.speech_model,
        voice=senses.speech_voice,
        usd_per_million=senses.usd_per_million,
    )


def _audio_server(
    settings: Settings,
    http: httpx2.AsyncClient,
    base_url: str | None,
    api_key: SecretStr | None,
) -> AudioServer | None:
    """A server of its own, or the model's; the key of one is not sent to the other."""
    model, is_own = settings.model, base_url is not None or api_key is not None
    if not (is_own or model.is_set):
        return None
    return AudioServer(
        http=http,
        base_url=base_url if is_own else model.base_url,
        api_key=api_key if is_own else model.api_key,
        timeout_seconds=model.timeout_seconds,
    )


def place_search(settings: Settings, http: httpx2.AsyncClient) -> PlaceSearch | None:
    """The configured search for places; one's own instance before the one with a key."""
    if settings.places.searxng_url is not None:
        return SearxngSearch(settings.places.searxng_url, http)
    if settings.places.brave_api_key is not None:
        return BraveSearch(settings.places.brave_api_key, http)
    return None


def research_tools(
    documents: DocumentStore,
    search: PlaceSearch | None = None,
    *,
    refinement: bool | None = None,
    cache: QuoteCache | None = None,
) -> list[Tool]:
    """What a turn may look up beside the catalogue: documents, quotes, places."""
    return [
        search_documents_tool(documents),
        ask_documents_tool(documents, refine=refinement_wanted(refinement, None)),
        quote_documents_tool(documents, cache=cache),
        find_places_tool(search),
    ]


def prices(settings: Settings) -> Prices:
    """What models cost; what is not known of the configured ones is logged here, at the start.

    Raises:
        SettingsError: LLM_PRICES is not a list of prices.
    """
    try:
        found = Prices.from_setting(settings.model.prices)
    except ValueError as error:
        raise SettingsError(f"LLM_PRICES: {error}") from None
    if settings.model.is_set:
        for name in (settings.model.name, *settings.model.fallback_names):
            found.of(name, settings.model.base_url)
    return found


def admin_page(settings: Settings, sessions: Sessions, token: SecretStr) -> "Admin":
    """The page of admins over this database, for those who have the token."""
    from bot.admin.page import SHOWN, AdminPage  # noqa: PLC0415 - jinja2 is only needed here
    from bot.http.admin import Admin  # noqa: PLC0415

    tracing, traces, turns = settings.tracing, SqlTraceStore(sessions), SqlTurnRepository(sessions)

    async def failing(since: datetime) -> list[TraceSummary]:
        return await traces.summaries(SHOWN, TraceFilter(since=since, level="WARNING"))

    async def dislikes(since: datetime) -> list[dict[str, object]]:
        return await exported_turns(sessions, words(settings), since=since, disliked=True)

    return Admin(
        page=AdminPage(
            stats=turns.stats,
            traced=traces.traced,
            failing=failing,
            dislikes=dislikes,
            backlog=traces.backlog,
        ),
        token=token,
        trace_of=traces.get,
        link=partial(trace_url, tracing.base_url) if tracing.langfuse_keys else None,
    )


def words(settings: Settings) -> Callable[[str], str]:
    """What may be shown to admins of what people wrote."""
    if settings.tracing.content == "none":
        return lambda text: ""
    return Masking(settings.tracing.content, (), settings.secrets).text


def trace_rows(settings: Settings) -> TraceRows:
    """How traces are kept: what may be shown of them, to be sent where that is wanted."""
    return TraceRows(prepare_trace(settings), settings.tracing.is_exported)


@asynccontextmanager
async def open_exporter(settings: Settings, sessions: Sessions) -> AsyncIterator[Exporter | None]:
    """What brings traces and verdicts to where they are read; None where they are only kept.

    With Langfuse's keys that is Langfuse, else any backend of OpenTelemetry. What is left at the
    end is tried once more.
    """
    tracing = settings.tracing
    if not tracing.is_exported:
        yield None
        return
    traces = SqlTraceStore(sessions)
    origin = Origin(tracing.environment, tracing.release, version("sommelier"))
    if tracing.langfuse_keys is None:
        client = otlp_client(settings)
        send = OtlpTraces(client, origin).send
        exporter = Exporter(traces, send, where=str(tracing.otlp_url))
    else:
        seconds = tracing.timeout_seconds
        client = langfuse = LangfuseClient(
            *tracing.langfuse_keys, tracing.base_url, seconds=seconds, waits_longer=True
        )
        environment = tracing.environment
        feedback = LangfuseFeedback(langfuse, environment=environment, hide=words(settings))
        exporter = Exporter(
            traces,
            LangfuseTraces(langfuse, origin).send,
            where="Langfuse",
            feedback=SqlFeedbackRepository(sessions),
            deliver=feedback.deliver,
        )
    try:
        yield exporter
    finally:
        await bounded("tracing", exporter.round)
        await bounded("tracing", client.aclose)


@asynccontextmanager
async def open_forgetting(settings: Settings, sessions: Sessions) -> AsyncIterator[Forgetting]:
    """What forgets people, in Langfuse too if its keys are set."""
    tracing, deletions = settings.tracing, SqlDeletionRepository(sessions)
    if tracing.langfuse_keys is None:
        yield Forgetting(deletions=deletions)
        return
    seconds = tracing.timeout_seconds
    client = LangfuseClient(*tracing.langfuse_keys, tracing.base_url, seconds=seconds)
    try:
        yield Forgetting(deletions=deletions, elsewhere=partial(delete_traces, client))
    finally:
        await bounded("forgetting", client.aclose)


def otlp_client(settings: Settings) -> HttpClient:
    """A client of the backend that OpenTelemetry's own variables name."""
    tracing = settings.tracing
    return HttpClient(
        str(tracing.otlp_url),
        name="The OTLP endpoint",
        check="OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS",
        seconds=tracing.timeout_seconds,
        headers=dict(tracing.otlp_headers),
        waits_longer=True,
    )


def prepare_trace(settings: Settings) -> Callable[[TraceRecord], TraceRecord]:
    """Makes of a trace what may be shown of it."""
    return partial(prepared, content=settings.tracing.content, secrets=settings.secrets)


def hide(settings: Settings) -> Callable[[object], object]:
    """What may be shown of data that stands in no trace; nothing if no content may leave."""
    if settings.tracing.content == "none":
        return lambda data: None
    return Masking(settings.tracing.content, (), settings.secrets).value
