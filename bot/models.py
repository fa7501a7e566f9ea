"""Make models and searches from the settings."""

import httpx2
from pydantic import SecretStr

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
from agent.turn import Deps, Prompts
from config import ServedModel, Settings, SettingsError, data_folder

Server = tuple[str | None, SecretStr | None]
"""The address and the key of a server; without an address it is OpenAI's."""


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
    try:
        prices = Prices.from_setting(settings.model.prices)
    except ValueError as error:
        raise SettingsError(f"LLM_PRICES: {error}") from None
    for model in models:  # logs at the start which of them have no known price
        prices.costs(
            LLMResponse(model=model.model, usage=Usage(1), base_url=settings.model.base_url)
        )
    return Run(
        models,
        limits=settings.turn.limits,
        ledger=Ledger(prices=prices),
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
    server, name = server_of(settings, settings.vision), settings.vision.model
    return model_of(settings, name, settings.model.mode, server) if server and name else None


def model_of(
    settings: Settings, name: str, mode: ResponseMode, server: Server | None = None
) -> LLMService:
    """Return a model of a server, by default of the configured one."""
    base_url, api_key = server or (settings.model.base_url, settings.model.api_key)
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
    name, server = settings.embedding.model, server_of(settings, settings.embedding)
    if name is not None and name.startswith(PREFIX):
        if not is_installed():
            raise SettingsError(f"EMBEDDING_MODEL: {NOT_INSTALLED}")
        return LocalEmbedding(name.removeprefix(PREFIX), cache=data_folder() / "models")
    if name is None or server is None:
        return None
    base_url, api_key = server
    seconds = settings.model.timeout_seconds
    return EmbeddingService(model=name, api_key=api_key, base_url=base_url, timeout_seconds=seconds)


def transcriber_of(settings: Settings, http: httpx2.AsyncClient) -> Transcriber | None:
    """Return the model that transcribes voices; None where none is set, or no server for it."""
    name, server = (
        settings.transcription.model,
        audio_server(settings, settings.transcription, http),
    )
    return Transcriber(server=server, model=name) if server and name else None


def speaker_of(settings: Settings, http: httpx2.AsyncClient) -> Speaker | None:
    """Return the model that reads answers aloud; None where none is set, or no server for it."""
    speech, server = settings.speech, audio_server(settings, settings.speech, http)
    if server is None or speech.model is None:
        return None
    return Speaker(server=server, model=speech.model, voice=speech.voice)


def audio_server(
    settings: Settings, served: ServedModel, http: httpx2.AsyncClient
) -> AudioServer | None:
    """Return the server of a model that hears or speaks; None where none is set."""
    if (server := server_of(settings, served)) is None:
        return None
    base_url, api_key = server
    seconds = settings.model.timeout_seconds
    return AudioServer(http=http, base_url=base_url, api_key=api_key, timeout_seconds=seconds)


def server_of(settings: Settings, served: ServedModel) -> Server | None:
    """Return a model's own server, else the configured one; the key of one goes to no other."""
    for base_url, api_key in (
        (served.base_url, served.api_key),
        (settings.model.base_url, settings.model.api_key),
    ):
        if base_url or api_key:
            return base_url, api_key
    return None


def place_search(settings: Settings, http: httpx2.AsyncClient) -> PlaceSearch | None:
    """Return the configured search for places; SearXNG comes before Brave."""
    if settings.places.searxng_url is not None:
        return SearxngSearch(settings.places.searxng_url, http)
    if settings.places.brave_api_key is not None:
        return BraveSearch(settings.places.brave_api_key, http)
    return None
