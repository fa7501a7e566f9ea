"""What an evaluation runs with: conversations, a cellar, documents, and variants to compare."""

# ruff: noqa: PLC0415

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from bot.commands.output import fail

if TYPE_CHECKING:
    from agent.engine.llm import LLMService
    from agent.engine.prompts import Prompts
    from agent.engine.wire import ResponseMode
    from agent.evals.dataset import Case, Conversation
    from agent.evals.run import SommelierVariant
    from agent.tracing.langfuse.experiments import Experiments, Item
    from config import Settings
    from db.repositories.documents import SqlDocumentStore
    from db.wines.catalogue import SqlCatalogue

STARTER: Final = "starter"
LANGFUSE: Final = "langfuse:"
REPOSITORY: Final = "repository"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which conversations are asked for, under which name and how many at a time."""

    run: str
    concurrency: int
    dataset: str
    language: str | None
    kind: str | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: the data set's name, its cases, and their items in Langfuse, if it is used."""

    run: str
    concurrency: int
    dataset: str
    cases: "Sequence[Case]"
    items: "Mapping[str, Item]"
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Library:
    """The wines and the documents that an evaluation is answered from."""

    catalogue: "SqlCatalogue"
    documents: "SqlDocumentStore"


@dataclass(frozen=True, slots=True)
class Named:
    """A variant that is not made yet: no model stands for the house sommelier."""

    label: str
    model: str | None
    prompts: "Prompts"


async def read_plan(wanted: Wanted, experiments: "Experiments | None") -> Plan:
    """What is to be run.

    Ends the command when there is no such data set, or nothing in it is of this kind.
    """
    from agent.evals.dataset import DatasetError, selected

    try:
        name, found, items = await _read(wanted.dataset, experiments)
    except DatasetError as error:
        fail(str(error), 2)
    chosen = selected(found, language=wanted.language, kind=wanted.kind, limit=wanted.limit)
    if not found:
        fail(f"{wanted.dataset} has no conversations", 2)
    if not chosen:
        fail(f"no conversation of {wanted.dataset} is of this language and kind", 2)
    kept = {each.id: items[each.id] for each in chosen if each.id in items}
    return Plan(
        wanted.run, wanted.concurrency, name, chosen, kept, wanted.dataset.startswith(LANGFUSE)
    )


async def _read(
    dataset: str, experiments: "Experiments | None"
) -> "tuple[str, list[Conversation], Mapping[str, Item]]":
    """The data set's name in Langfuse, its conversations, and their items if Langfuse is used.

    Raises:
        DatasetError: it cannot be read.
    """
    from agent.evals import dataset as datasets

    if dataset.startswith(LANGFUSE):
        return await _read_langfuse(dataset.removeprefix(LANGFUSE), experiments)
    path = datasets.STARTER if dataset == STARTER else Path(dataset)
    found = await asyncio.to_thread(datasets.read, path)
    name = f"sommelier-{STARTER if dataset == STARTER else path.stem}"
    return name, found, items_of(name, found, experiments)


def items_of(
    dataset: str, cases: "Sequence[Case]", experiments: "Experiments | None"
) -> "Mapping[str, Item]":
    """The cases as items of a data set, by their ids; none where Langfuse is not used."""
    if experiments is None:
        return {}
    from agent.evals.recording import item_of

    return {each.id: item_of(dataset, each) for each in cases}


async def _read_langfuse(
    name: str, experiments: "Experiments | None"
) -> "tuple[str, list[Conversation], Mapping[str, Item]]":
    if experiments is None:
        fail("set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to read a data set of Langfuse", 2)
    from agent.evals.dataset import unique
    from agent.evals.recording import conversation_of
    from agent.tracing.langfuse.client import LangfuseUnavailable

    try:
        items = await experiments.items(name)
    except LangfuseUnavailable as error:
        fail(f"the data set {name!r} cannot be read: {error}")
    read = [(conversation_of(item, name), item) for item in items]
    return name, unique(each for each, _ in read), {each.id: item for each, item in read}


@asynccontextmanager
async def open_library(settings: "Settings", *, starter: bool) -> AsyncIterator[Library]:
    """The configured wines and documents, or the `starter` ones in a database of their own."""
    from pydantic import SecretStr

    from bot.resources import open_database, open_documents
    from config import DatabaseSettings
    from db.wines.catalogue import SqlCatalogue

    with TemporaryDirectory(prefix="sommelier-") as folder:
        if starter:
            url = SecretStr(f"sqlite+aiosqlite:///{folder}/starter.sqlite3")
            database = DatabaseSettings(DATABASE_URL=url)
            settings = settings.model_copy(update={"database": database})
        async with (
            open_database(settings) as sessions,
            open_documents(settings, sessions) as documents,
        ):
            yield Library(SqlCatalogue(sessions), documents)


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


def wanted_variants(
    settings: "Settings", models: Sequence[str] | None, prompts: Sequence[str] | None
) -> list[Named]:
    """Every model with every prompt."""
    from agent.house_sommelier.model import MODEL_NAME

    texts = _prompts(settings, list(dict.fromkeys(prompts or [REPOSITORY])))
    titles = _titles(list(texts))
    default = settings.model.name if settings.model.is_set else MODEL_NAME
    names = list(dict.fromkeys(models or [default]))
    if names != [MODEL_NAME]:
        require_model(settings)
    return [
        Named(
            f"{name} · {titles[text]}" if prompts else name,
            None if name == MODEL_NAME else name,
            chosen,
        )
        for name in names
        for text, chosen in texts.items()
    ]


def require_model(settings: "Settings") -> None:
    """End the command if no server with models is configured."""
    if not settings.model.is_set:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)


def _prompts(settings: "Settings", wanted: Sequence[str]) -> "dict[str, Prompts]":
    """The prompts by how they are named; Langfuse is asked only for those that are there."""
    from agent.evals.prompts import PromptRefused, prompt_of_file
    from agent.prompts import REPOSITORY as OWN

    found: dict[str, Prompts] = {REPOSITORY: OWN}
    try:
        for name in wanted:
            if name != REPOSITORY and not _is_managed(name):
                found[name] = prompt_of_file(Path(name))
        if managed := [name for name in wanted if _is_managed(name)]:
            found |= asyncio.run(_managed(settings, managed))
    except PromptRefused as error:
        fail(str(error), 2)
    return {name: found[name] for name in wanted}


async def _managed(settings: "Settings", names: Sequence[str]) -> "dict[str, Prompts]":
    from agent.evals.prompts import managed_prompt
    from bot.commands.prompts import open_prompt_store

    async with open_prompt_store(settings) as store:
        return {name: await managed_prompt(store, name) for name in names}


def _is_managed(name: str) -> bool:
    from agent.evals.prompts import names_managed

    return names_managed(name) is not None and not Path(name).exists()


def _titles(names: Sequence[str]) -> dict[str, str]:
    """What stands for a prompt in a label: the file's name, the whole path where two share one."""
    short = {name: name if _is_managed(name) else Path(name).stem for name in names}
    shared = {title for title, times in Counter(short.values()).items() if times > 1}
    return {name: name if title in shared else title for name, title in short.items()}


@asynccontextmanager
async def open_models(
    settings: "Settings", wanted: "Mapping[str, tuple[str, ResponseMode]]"
) -> "AsyncIterator[dict[str, LLMService]]":
    """Models of the configured server, each by its name and response mode; closed at the end."""
    from bot.resources import model_of

    models = {key: model_of(settings, name, mode) for key, (name, mode) in wanted.items()}
    try:
        yield models
    finally:
        for model in models.values():
            await model.close()


@asynccontextmanager
async def open_variants(
    settings: "Settings", named: Sequence[Named], library: Library
) -> "AsyncIterator[list[SommelierVariant]]":
    """The variants, each a sommelier with its own model, prompt and research."""
    mode = settings.model.response_mode
    wanted = {each.model: (each.model, mode) for each in named if each.model}
    async with open_models(settings, wanted) as models:
        yield [
            _variant(settings, each, [models[each.model]] if each.model else [], library)
            for each in named
        ]


def _variant(
    settings: "Settings", named: Named, models: "Sequence[LLMService]", library: Library
) -> "SommelierVariant":
    """The sommelier of the product; places are not searched for, which costs and changes daily."""
    from agent.desk import ResearchDesk
    from agent.evals.run import SommelierVariant
    from agent.sommelier.service import Sommelier
    from bot.resources import prices, research_tools

    desk = ResearchDesk(
        documents=library.documents,
        models=models,
        refinement=settings.documents.refinement,
        limits=settings.turn.limits,
        prompts=named.prompts,
        prices=prices(settings),
    )
    sommelier = Sommelier(catalogue=library.catalogue, research_tools=research_tools(desk))
    return SommelierVariant(named.label, sommelier, library.catalogue, desk.run())
