"""The checks of `sommelier doctor`, for these settings."""

from collections.abc import Mapping
from functools import partial

import httpx

from agent.documents.embedding import EmbeddingService
from agent.documents.embedding_local import LocalEmbedding
from bot.commands import doctor
from bot.resources import (
    embedder_of,
    open_documents,
    open_engine,
    place_search,
    require_newest_schema,
)
from config import Settings, SettingsError
from db.engine import DatabaseUnavailable, schema_revision, session_factory
from db.repositories.wines import SqlCatalogue


async def diagnose(settings: Settings) -> list[doctor.Finding]:
    """What works, what is not configured, and what is wrong."""
    return await doctor.examine(checks(settings))


def checks(settings: Settings) -> Mapping[str, doctor.Check | str]:
    """What is checked, in the order in which it is shown."""
    token = settings.telegram.bot_token
    places = partial(_check_places, settings)
    return {
        "database": partial(_check_database, settings),
        "documents": partial(_check_documents, settings),
        "embeddings": (
            partial(_check_embeddings, settings)
            if settings.documents.embedding_model
            else doctor.NO_EMBEDDINGS
        ),
        "model": partial(_check_model, settings) if settings.model.is_set else doctor.NO_MODEL,
        "places": places if settings.places.is_set else doctor.NO_PLACE_SEARCH,
        "Telegram": (
            partial(doctor.check_telegram, settings.telegram.base_url, token.get_secret_value())
            if token
            else doctor.NO_TOKEN
        ),
        "Langfuse": partial(_check_langfuse, settings)
        if settings.tracing.langfuse_keys
        else doctor.NO_LANGFUSE,
    }


async def _check_langfuse(settings: Settings) -> str:
    tracing = settings.tracing
    said = await doctor.check_langfuse(tracing.base_url, *(tracing.langfuse_keys or ("", "")))
    own_key = "user_key" in tracing.model_fields_set
    return said if own_key else f"{said}; {doctor.GUESSABLE_KEY}"


async def _check_model(settings: Settings) -> str:
    model = settings.model
    key = model.api_key.get_secret_value() if model.api_key else None
    return await doctor.check_model(model.base_url, key, model.name)


async def _check_database(settings: Settings) -> str:
    try:
        async with open_engine(settings) as engine:
            revision = await schema_revision(engine)
            if revision is None and engine.dialect.name == "sqlite":
                return "empty; it is filled on the first start"
            await require_newest_schema(engine)
            count = await SqlCatalogue(session_factory(engine)).count()
            return f"{engine.dialect.name}, up to date, {count} wines"
    except DatabaseUnavailable as error:
        raise doctor.Ailment(str(error)) from None


async def _check_documents(settings: Settings) -> str:
    try:
        async with open_engine(settings) as engine:
            if await schema_revision(engine) is None:
                return "none yet; the starter documents are indexed on the first start"
            await require_newest_schema(engine)
            async with open_documents(settings, session_factory(engine)) as documents:
                stored = await documents.documents()
    except DatabaseUnavailable:
        raise doctor.Ailment("cannot be counted before the database is right") from None
    return f"{len(stored)} documents in {sum(each.parts for each in stored)} parts"


async def _check_embeddings(settings: Settings) -> str:
    try:
        embedder: EmbeddingService | LocalEmbedding | None = embedder_of(settings)
    except SettingsError as error:
        raise doctor.Ailment(str(error)) from None
    if embedder is None:
        raise doctor.Ailment(doctor.NO_EMBEDDINGS)
    try:
        return await doctor.check_embeddings(embedder)
    finally:
        await embedder.close()


async def _check_places(settings: Settings) -> str:
    async with httpx.AsyncClient() as http:
        return await doctor.check_places(place_search(settings, http))
