"""Make models and searches from the settings."""

import httpx2

from agent.documents.embedding import EmbeddingService
from agent.engine.limits import Ledger, Limits, Prices
from agent.engine.llm import LLMService
from agent.engine.messages import LLMResponse, ResponseMode, Usage
from agent.engine.run import Run
from agent.places.search import PlaceSearch, brave, searxng
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer
from agent.turn import Deps, Prompts
from config import Purpose, Server, Settings


def run_of(
    settings: Settings,
    models: list[LLMService],
    prompts: Prompts,
    special: dict[str, LLMService] | None = None,
) -> Run[Deps]:
    """Return the run that every turn starts from; `special` models serve one use each."""
    prices = Prices(settings.llm_prices)
    for model in models:  # logs at the start which of them have no known price
        prices.costs(
            LLMResponse(model=model.model, usage=Usage(1), base_url=settings.openai_base_url)
        )
    return Run(
        models,
        limits=Limits(
            structured_output_max_retries=settings.structured_output_max_retries,
            cost_usd=settings.turn_max_cost_usd,
            seconds=settings.turn_timeout_seconds,
        ),
        ledger=Ledger(prices=prices),
        deps=Deps(prompts=prompts, models=special or {}),
    )


def models_of(settings: Settings) -> list[LLMService]:
    """Return the configured model and those behind it, in order; none without a server."""
    names = (settings.llm_model, *settings.llm_fallback_models) if settings.has_model else ()
    return [model_of(settings, name, settings.response_mode) for name in names]


def special_models_of(settings: Settings) -> dict[str, LLMService]:
    """Return the models for quotes and for pictures, where they are set."""
    models = dict[str, LLMService]()
    if settings.has_model and (name := settings.quotes_model):
        models["quotes"] = model_of(settings, name, settings.response_mode)
    if (server := settings.server("vision")) and (name := settings.vision_model):
        models[VISION] = model_of(settings, name, settings.response_mode, server)
    return models


def model_of(
    settings: Settings, name: str, mode: ResponseMode, server: Server | None = None
) -> LLMService:
    """Return a model of a server, by default of the configured one."""
    base_url, api_key = server or (settings.openai_base_url, settings.openai_api_key)
    return LLMService(
        model=name,
        api_key=api_key,
        base_url=base_url,
        mode=mode,
        timeout_seconds=settings.llm_timeout_seconds,
    )


def embedder_of(settings: Settings, http: httpx2.AsyncClient) -> EmbeddingService | None:
    """Return the configured source of vectors; None if documents are searched by words only."""
    name, server = settings.embedding_model, settings.server("embedding")
    if name is None or server is None:
        return None
    base_url, api_key = server
    return EmbeddingService(http, model=name, base_url=base_url, api_key=api_key)


def transcriber_of(settings: Settings, http: httpx2.AsyncClient) -> AudioServer | None:
    """Return the model that transcribes voices; None where none is set, or no server for it."""
    return _audio_server(settings, "transcription", settings.transcription_model, http)


def speaker_of(settings: Settings, http: httpx2.AsyncClient) -> AudioServer | None:
    """Return the model that reads answers aloud; None where none is set, or no server for it."""
    return _audio_server(settings, "speech", settings.speech_model, http)


def _audio_server(
    settings: Settings, purpose: Purpose, model: str | None, http: httpx2.AsyncClient
) -> AudioServer | None:
    server = settings.server(purpose)
    if not (server and model):
        return None
    base_url, api_key = server
    return AudioServer(
        http=http,
        model=model,
        base_url=base_url,
        api_key=api_key,
        timeout_seconds=settings.llm_timeout_seconds,
    )


def place_search(settings: Settings, http: httpx2.AsyncClient) -> PlaceSearch | None:
    """Return the configured search for places; SearXNG comes before Brave."""
    if settings.searxng_url is not None:
        return searxng(settings.searxng_url, http)
    if settings.brave_api_key is not None:
        return brave(settings.brave_api_key, http)
    return None
