"""What the settings name outside of here, made of them: models and searches."""

from collections.abc import Mapping, Sequence
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
from agent.places.search import BraveSearch, PlaceSearch, SearxngSearch
from agent.senses.pictures import VISION
from agent.senses.speech import AudioServer, Speaker, Transcriber
from config import ServedModel, Settings, SettingsError


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
    """Return what reads pictures, None where no model is set that does, or no server of it."""
    vision = settings.vision
    is_there = settings.model.is_set or vision.has_server
    return vision_of(settings, vision.model) if vision.model and is_there else None


def vision_of(settings: Settings, name: str) -> LLMService:
    """A model that sees, of its own server or of that of the others."""
    vision, mode = settings.vision, settings.model.mode
    return model_of(settings, name, mode, vision.base_url, vision.api_key)


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
    embedding = settings.embedding
    if embedding.model is None:
        return None
    if embedding.model.startswith(PREFIX):
        if not is_installed():
            raise SettingsError(f"EMBEDDING_MODEL: {NOT_INSTALLED}")
        name = embedding.model.removeprefix(PREFIX)
        return LocalEmbedding(name, cache=user_cache_path("sommelier") / "models")
    own = embedding.base_url
    return EmbeddingService(
        model=embedding.model,
        api_key=embedding.api_key or (None if own else settings.model.api_key),
        base_url=own or settings.model.base_url,
        timeout_seconds=settings.model.timeout_seconds,
    )


def transcriber_of(settings: Settings, http: httpx2.AsyncClient) -> Transcriber | None:
    """Return what hears voices, None where no model is set that does, or no server of it."""
    server, model = (
        _audio_server(settings, http, settings.transcription),
        settings.transcription.model,
    )
    return Transcriber(server=server, model=model) if server and model else None


def speaker_of(settings: Settings, http: httpx2.AsyncClient) -> Speaker | None:
    """Return what reads answers aloud, None where no model is set that does, or no server of it."""
    server, model = _audio_server(settings, http, settings.speech), settings.speech.model
    return (
        Speaker(server=server, model=model, voice=settings.speech.voice)
        if server and model
        else None
    )


def _audio_server(
    settings: Settings, http: httpx2.AsyncClient, served: ServedModel
) -> AudioServer | None:
    """Return a model's own server, or that of the others; None if neither is set."""
    if not (served.has_server or settings.model.is_set):
        return None
    base_url, api_key = server_of(settings, served.base_url, served.api_key)
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
