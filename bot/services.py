"""What the settings name outside of here, made of them: models, searches, where traces go."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from types import MappingProxyType

import httpx2
from platformdirs import user_cache_path
from pydantic import SecretStr

from agent.deps import Deps, Prompts
from agent.documents.embedding import (
    NOT_INSTALLED,
    PREFIX,
    EmbeddingService,
    LocalEmbedding,
    is_installed,
)
from agent.engine.limits import Ledger
from agent.engine.llm import LLMService
from agent.engine.messages import LLM, LLMResponse, ResponseMode, Usage
from agent.engine.prices import Prices
from agent.engine.run import Run
from agent.engine.span import TraceRecord
from agent.places.search import BraveSearch, PlaceSearch, SearxngSearch
from agent.prompts import REPOSITORY
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer, Speaker, Transcriber
from agent.tracing.exporter import Exporter, HttpClient
from agent.tracing.langfuse import LangfuseClient, LangfuseTraces, delete_traces, trace_url
from agent.tracing.managed import REQUEST_SECONDS, LangfusePrompts, PromptStore
from agent.tracing.masking import Masking, masked_trace
from agent.tracing.otlp import Origin, OtlpTraces
from bot.tasks import Forgetting, bounded
from config import Settings, SettingsError
from db.engine import Sessions
from db.repositories.privacy import SqlDeletionRepository
from db.repositories.traces import SqlTraceStore, TraceRows
from db.repositories.turns import SqlFeedbackRepository


def run_of(
    settings: Settings,
    models: Sequence[LLM],
    prompts: Prompts,
    special: Mapping[str, LLM] = MappingProxyType({}),
) -> Run[Deps]:
    """Return the run that each turn starts from; `special` models are asked for one thing each."""
    ledger = Ledger(prices=prices(settings))
    return Run(
        models,
        limits=settings.turn.limits,
        ledger=ledger,
        deps=Deps(prompts=prompts, models=special),
        traces_images=settings.tracing.images,
    )


def models_of(settings: Settings) -> list[LLMService]:
    """The configured model and what to fall back on, in order; none without a server."""
    names = (settings.model.name, *settings.model.fallback_names)
    mode = settings.model.mode
    return [model_of(settings, name, mode) for name in names] if settings.model.is_set else []


def special_models_of(settings: Settings) -> dict[str, LLMService]:
    """The models that are asked for one thing: first for quotes, and to check answers."""
    names = {"quotes": settings.documents.quotes_model}
    mode, is_set = settings.model.mode, settings.model.is_set
    models = {use: model_of(settings, name, mode) for use, name in names.items() if name and is_set}
    if (sight := sight_of(settings)) is not None:
        models[VISION] = sight
    return models


def sight_of(settings: Settings) -> LLMService | None:
    """What reads pictures, None where no model is set that does, or no server of it."""
    senses = settings.senses
    is_there = settings.model.is_set or senses.vision_base_url or senses.vision_api_key
    return vision_of(settings, senses.vision_model) if senses.vision_model and is_there else None


def vision_of(settings: Settings, name: str) -> LLMService:
    """A model that sees, of its own server or of that of the others."""
    senses, mode = settings.senses, settings.model.mode
    return model_of(settings, name, mode, senses.vision_base_url, senses.vision_api_key)


def model_of(
    settings: Settings,
    name: str,
    mode: ResponseMode,
    base_url: str | None = None,
    api_key: SecretStr | None = None,
) -> LLMService:
    """One model of the configured server, or of one of its own."""
    base_url, api_key = server_of(settings, base_url, api_key)
    return LLMService(
        model=name,
        api_key=api_key,
        base_url=base_url,
        mode=mode,
        timeout_seconds=settings.model.timeout_seconds,
        context_tokens=settings.model.context_tokens,
    )


def server_of(
    settings: Settings, base_url: str | None, api_key: SecretStr | None
) -> tuple[str | None, SecretStr | None]:
    """A server of its own, or the model's: address and key; the key of one goes to no other."""
    return (
        (base_url, api_key)
        if base_url or api_key
        else (settings.model.base_url, settings.model.api_key)
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
    settings: Settings, http: httpx2.AsyncClient, base_url: str | None, api_key: SecretStr | None
) -> AudioServer | None:
    """A server of its own, or the model's; None if neither is set."""
    if not (base_url or api_key or settings.model.is_set):
        return None
    base_url, api_key = server_of(settings, base_url, api_key)
    seconds = settings.model.timeout_seconds
    return AudioServer(http=http, base_url=base_url, api_key=api_key, timeout_seconds=seconds)


def place_search(settings: Settings, http: httpx2.AsyncClient) -> PlaceSearch | None:
    """The configured search for places; one's own instance before the one with a key."""
    if settings.places.searxng_url is not None:
        return SearxngSearch(settings.places.searxng_url, http)
    if settings.places.brave_api_key is not None:
        return BraveSearch(settings.places.brave_api_key, http)
    return None


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
            probe = LLMResponse(model=name, usage=Usage(1), base_url=settings.model.base_url)
            found.costs(probe)
    return found


def langfuse_client(
    settings: Settings, seconds: float | None = None, *, waits_longer: bool = False
) -> LangfuseClient | None:
    """A client of Langfuse; None without its keys. A request takes `seconds`, or as it is set."""
    tracing = settings.tracing
    if tracing.langfuse_keys is None:
        return None
    seconds = seconds or tracing.timeout_seconds
    url, longer = tracing.base_url, waits_longer
    return LangfuseClient(*tracing.langfuse_keys, url, seconds=seconds, waits_longer=longer)


def trace_link(settings: Settings) -> Callable[[str], str] | None:
    """What makes a link of a trace's id; None where traces are seen here alone."""
    tracing = settings.tracing
    return partial(trace_url, tracing.base_url) if tracing.langfuse_keys else None


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
    langfuse = langfuse_client(settings, waits_longer=True)
    client = langfuse or otlp_client(settings)
    if langfuse is None:
        send = OtlpTraces(client, origin).send
        exporter = Exporter(traces, send, where=str(tracing.otlp_url))
    else:
        there = LangfuseTraces(langfuse, origin, words(settings))
        feedback = SqlFeedbackRepository(sessions)
        exporter = Exporter(traces, there.send, "Langfuse", feedback, there.deliver)
    try:
        yield exporter
    finally:
        await bounded("tracing", exporter.round)
        await bounded("tracing", client.aclose)


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


@asynccontextmanager
async def open_forgetting(settings: Settings, sessions: Sessions) -> AsyncIterator[Forgetting]:
    """What forgets people, in Langfuse too if its keys are set."""
    deletions, client = SqlDeletionRepository(sessions), langfuse_client(settings)
    if client is None:
        yield Forgetting(deletions=deletions)
        return
    try:
        yield Forgetting(deletions=deletions, elsewhere=partial(delete_traces, client))
    finally:
        await bounded("forgetting", client.aclose)


@asynccontextmanager
async def open_prompts(settings: Settings) -> AsyncIterator[Prompts]:
    """The prompts in use: with Langfuse's keys those managed there, kept up to date."""
    client, tracing = langfuse_client(settings, REQUEST_SECONDS), settings.tracing
    if client is None:
        yield REPOSITORY
        return
    store, seconds = PromptStore(client), tracing.prompt_seconds
    prompts = LangfusePrompts(store, label=tracing.prompt_label, every_seconds=seconds)
    await prompts.start()
    try:
        yield prompts
    finally:
        await bounded("the prompts", prompts.close)


def trace_rows(settings: Settings) -> TraceRows:
    """How traces are kept: what may be shown of them, to be sent where that is wanted."""
    return TraceRows(prepare_trace(settings), settings.tracing.is_exported)


def prepare_trace(settings: Settings) -> Callable[[TraceRecord], TraceRecord]:
    """Makes of a trace what may be shown of it."""
    return partial(masked_trace, content=settings.tracing.content, secrets=settings.secrets)


def words(settings: Settings) -> Callable[[str], str]:
    """What may be shown to admins of what people wrote."""
    shown = hide(settings)
    return lambda text: str(shown(text) or "")


def hide(settings: Settings) -> Callable[[object], object]:
    """What may be shown of data that stands in no trace; nothing if no content may leave."""
    if settings.tracing.content == "none":
        return lambda data: None
    return Masking(settings.tracing.content, (), settings.secrets).value
