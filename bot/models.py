"""Make models and searches from the settings."""

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
from agent.engine.messages import LLMResponse, ResponseMode, Usage
from agent.engine.prices import Prices
from agent.engine.run import Run
from agent.places.search import BraveSearch, PlaceSearch, SearxngSearch
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer, Speaker, Transcriber
from config import ServedModel, Settings, SettingsError


def run_of(
    settings: Settings,
    models: list[LLMService],
    prompts: Prompts,
    special: dict[str, LLMService] | None = None,
) -> Run[Deps]:
    """Return the run that every turn starts from; `special` models serve one use each.

    Raises:
        SettingsError: LLM_PRICES is not a list of prices.
    """
    return Run(
        models,
        limits=settings.turn.limits,
        ledger=Ledger(prices=_prices(settings)),
        deps=Deps(prompts=prompts, models=special or {}),
    )


def models_of(settings: Settings) -> list[LLMService]:
    """Return the configured model and those behind it, in order; none without a server."""
    model = settings.model
    names = (model.name, *model.fallback_names) if model.is_set else ()
    return [model_of(settings, name, model.mode) for name in names]


def special_models_of(settings: Settings) -> dict[str, LLMService]:
    """Return the models for quotes and for pictures, where they are set."""
    models, model = dict[str, LLMService](), settings.model
    if model.is_set and (name := settings.documents.quotes_model):
        models["quotes"] = model_of(settings, name, model.mode)
    if (sight := sight_of(settings)) is not None:
        models[VISION] = sight
    return models


def sight_of(settings: Settings) -> LLMService | None:
    """Return the model that reads pictures; None where none is set, or no server for it."""
    vision = settings.vision
    has_server = settings.model.is_set or vision.has_server
    return vision_of(settings, vision.model) if vision.model and has_server else None


def vision_of(settings: Settings, name: str) -> LLMService:
    """Return a model that reads pictures, on its own server if one is set."""
    return model_of(settings, name, settings.model.mode, settings.vision)


def model_of(
    settings: Settings, name: str, mode: ResponseMode, served: ServedModel | None = None
) -> LLMService:
    """Return a model of the configured server, or of the server of `served`."""
    base_url, api_key = _server_of(settings, served)
    return LLMService(
        model=name,
        api_key=api_key,
        base_url=base_url,
        mode=mode,
        timeout_seconds=settings.model.timeout_seconds,
        context_tokens=settings.model.context_tokens,
    )


def embedder_of(settings: Settings) -> EmbeddingService | LocalEmbedding | None:
    """Return the configured source of vectors; None if documents are searched by words only.

    Raises:
        SettingsError: the model is to run here, and what runs it is not installed.
    """
    embedding = settings.embedding
    if embedding.model is None:
        return None
    if embedding.model.startswith(PREFIX):
        if not is_installed():
            raise SettingsError(f"EMBEDDING_MODEL: {NOT_INSTALLED}")
        name = embedding.model.removeprefix(PREFIX)
        return LocalEmbedding(name, cache=user_cache_path("sommelier") / "models")
    # The key of the model's server goes to no other address.
    shared_key = None if embedding.base_url else settings.model.api_key
    return EmbeddingService(
        model=embedding.model,
        api_key=embedding.api_key or shared_key,
        base_url=embedding.base_url or settings.model.base_url,
        timeout_seconds=settings.model.timeout_seconds,
    )


def transcriber_of(settings: Settings, http: httpx2.AsyncClient) -> Transcriber | None:
    """Return the model that transcribes voices; None where none is set, or no server for it."""
    server, model = _audio_server(settings, http, settings.transcription), settings.transcription
    return Transcriber(server=server, model=model.model) if server and model.model else None


def speaker_of(settings: Settings, http: httpx2.AsyncClient) -> Speaker | None:
    """Return the model that reads answers aloud; None where none is set, or no server for it."""
    server, speech = _audio_server(settings, http, settings.speech), settings.speech
    if server is None or speech.model is None:
        return None
    return Speaker(server=server, model=speech.model, voice=speech.voice)


def place_search(settings: Settings, http: httpx2.AsyncClient) -> PlaceSearch | None:
    """Return the configured search for places; SearXNG comes before Brave."""
    if settings.places.searxng_url is not None:
        return SearxngSearch(settings.places.searxng_url, http)
    if settings.places.brave_api_key is not None:
        return BraveSearch(settings.places.brave_api_key, http)
    return None


def _audio_server(
    settings: Settings, http: httpx2.AsyncClient, served: ServedModel
) -> AudioServer | None:
    if not (served.has_server or settings.model.is_set):
        return None
    base_url, api_key = _server_of(settings, served)
    seconds = settings.model.timeout_seconds
    return AudioServer(http=http, base_url=base_url, api_key=api_key, timeout_seconds=seconds)


def _server_of(
    settings: Settings, served: ServedModel | None
) -> tuple[str | None, SecretStr | None]:
    """Return the address and key of one server; the key of one goes to no other."""
    if served is not None and (served.base_url or served.api_key):
        return served.base_url, served.api_key
    return settings.model.base_url, settings.model.api_key


def _prices(settings: Settings) -> Prices:
    """Return what models cost; log at the start which of the configured are unknown."""
    model = settings.model
    try:
        prices = Prices.from_setting(model.prices)
    except ValueError as error:
        raise SettingsError(f"LLM_PRICES: {error}") from None
    for name in (model.name, *model.fallback_names) if model.is_set else ():
        prices.costs(LLMResponse(model=name, usage=Usage(1), base_url=model.base_url))
    return prices
