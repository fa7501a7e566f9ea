"""The checks of `sommelier doctor`, for these settings."""

from collections.abc import Mapping
from functools import partial

import httpx

from agent.documents.embedding import EmbeddingService
from agent.documents.embedding_local import LocalEmbedding
from bot import wiring
from bot.commands import doctor
from bot.library import open_documents, open_engine, require_newest_schema
from config import Settings, SettingsError
from db import migrate
from db.engine import session_factory
from db.errors import DatabaseUnavailable
from db.repositories.wines import SqlCatalogue


async def diagnose(settings: Settings) -> list[doctor.Finding]:
    """What works, what is not configured, and what is wrong."""
    return await doctor.examine(checks(settings))


def checks(settings: Settings) -> Mapping[str, doctor.Check | str]:
    """What is checked, in the order in which it is shown."""
    token, telegram = wiring.plain(settings.telegram_bot_token), settings.telegram_base_url
    places = partial(_check_places, settings)
    return {
        "database": partial(_check_database, settings),
        "documents": partial(_check_documents, settings),
        "embeddings": (
            partial(_check_embeddings, settings)
            if settings.embedding_model
            else doctor.NO_EMBEDDINGS
        ),
        "model": partial(_check_model, settings) if settings.has_model else doctor.NO_MODEL,
        "places": places if settings.has_place_search else doctor.NO_PLACE_SEARCH,
        "Telegram": (
            partial(doctor.check_telegram, wiring.root(telegram), token)
            if token
            else doctor.NO_TOKEN
        ),
        "Langfuse": partial(_check_langfuse, settings)
        if settings.has_langfuse
        else doctor.NO_LANGFUSE,
    }


async def _check_langfuse(settings: Settings) -> str:
    keys = (settings.langfuse_public_key, settings.langfuse_secret_key)
    base_url = wiring.root(settings.langfuse_base_url)
    said = await doctor.check_langfuse(base_url, *(wiring.plain(key) or "" for key in keys))
    own_key = "trace_user_key" in settings.model_fields_set
    return said if own_key else f"{said}; {doctor.GUESSABLE_KEY}"


async def _check_model(settings: Settings) -> str:
    base = settings.openai_base_url
    key = wiring.plain(settings.openai_api_key)
    return await doctor.check_model(wiring.root(base) if base else None, key, settings.llm_model)


async def _check_database(settings: Settings) -> str:
    try:
        async with open_engine(settings) as engine:
            revision = await migrate.current(engine)
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
            if await migrate.current(engine) is None:
                return "none yet; the starter documents are indexed on the first start"
            await require_newest_schema(engine)
            async with open_documents(settings, session_factory(engine)) as documents:
                stored = await documents.documents()
    except DatabaseUnavailable:
        raise doctor.Ailment("cannot be counted before the database is right") from None
    return f"{len(stored)} documents in {sum(each.parts for each in stored)} parts"


async def _check_embeddings(settings: Settings) -> str:
    try:
        embedder: EmbeddingService | LocalEmbedding | None = wiring.embedder(settings)
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
        return await doctor.check_places(wiring.place_search(settings, http))
