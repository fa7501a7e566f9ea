"""What an evaluation runs in: a cellar and documents that are the same everywhere, or one's own."""

# ruff: noqa: PLC0415

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.tracing.langfuse.experiments import Experiments
    from config import Settings
    from db.repositories.documents import SqlDocumentStore
    from db.wines.catalogue import SqlCatalogue


@dataclass(frozen=True, slots=True)
class Rooms:
    """The wines and the documents."""

    catalogue: "SqlCatalogue"
    documents: "SqlDocumentStore"


@asynccontextmanager
async def open_starter_rooms(settings: "Settings") -> AsyncIterator[Rooms]:
    """The starter catalogue and documents, and no others, in a database of their own."""
    from pydantic import SecretStr

    from config import DatabaseSettings

    with TemporaryDirectory(prefix="sommelier-") as folder:
        url = SecretStr(f"sqlite+aiosqlite:///{folder}/starter.sqlite3")
        database = DatabaseSettings(DATABASE_URL=url)
        async with open_rooms(settings.model_copy(update={"database": database})) as rooms:
            yield rooms


@asynccontextmanager
async def open_rooms(settings: "Settings") -> AsyncIterator[Rooms]:
    """The catalogue and the documents of the configured database."""
    from bot.resources import open_database, open_documents
    from db.wines.catalogue import SqlCatalogue

    async with open_database(settings) as sessions, open_documents(settings, sessions) as documents:
        yield Rooms(SqlCatalogue(sessions), documents)


@asynccontextmanager
async def open_experiments(settings: "Settings") -> AsyncIterator["Experiments | None"]:
    """Langfuse's datasets and experiments; None without keys."""
    if settings.tracing.langfuse_keys is None:
        yield None
        return
    from agent.tracing.langfuse.client import LangfuseClient
    from agent.tracing.langfuse.experiments import Experiments
    from bot.resources import hide, prepare_trace

    client = LangfuseClient(*settings.tracing.langfuse_keys, settings.tracing.base_url)
    experiments = Experiments(client, prepare_trace(settings), hide=hide(settings))
    try:
        yield experiments
    finally:
        await experiments.close()
