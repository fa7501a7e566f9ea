"""What an evaluation runs with: a dataset, a cellar, documents, and the variants to compare.

A variant's prompt is the repository's, or one that is tried out: from a file, or from Langfuse.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from agent.engine.errors import AgentError
from agent.engine.llm import LLMService
from agent.engine.messages import ResponseMode
from agent.engine.run import Prompt, Prompts
from agent.engine.span import PromptRef
from agent.evals import dataset as datasets
from agent.evals.dataset import Case, Conversation, conversation_of, unique
from agent.evals.run import SommelierVariant
from agent.house_sommelier import HouseSommelier
from agent.house_sommelier.model import MODEL_NAME
from agent.memory.service import Remembering
from agent.memory.tools import memory_tools
from agent.prompts import REPOSITORY, refusal, repository_prompts
from agent.sommelier.service import Sommelier
from agent.tracing.exporter import Unavailable
from agent.tracing.langfuse.experiments import Experiments
from agent.tracing.otlp import Origin
from agent.tracing.recorder import Item
from bot.commands.output import fail
from bot.commands.prompts import open_prompt_store
from bot.models import model_of, run_of
from bot.resources import open_database, open_documents, research_tools
from bot.tracing import hide, langfuse_client, prepare_trace
from config import DatabaseSettings, Settings
from db.repositories.documents import SqlDocumentStore
from db.wines.catalogue import SqlCatalogue

if TYPE_CHECKING:
    from agent.tracing.langfuse.prompts import PromptStore


SOMMELIER: Final = "sommelier"


class PromptRefused(AgentError):
    """A prompt cannot be tried out; the message says which and why."""


@dataclass(frozen=True, slots=True)
class TriedPrompts:
    """The prompts of the repository, but for those that are `tried`."""

    tried: Mapping[str, Prompt]

    def get(self, name: str) -> Prompt:
        """Return the prompt of that name."""
        return self.tried.get(name) or REPOSITORY.get(name)


def prompt_of_file(path: Path) -> TriedPrompts:
    """Read the sommelier's prompt from a file; in traces its label is the file's name.

    Raises:
        PromptRefused: it cannot be read, or fails the checks that every prompt must pass.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise PromptRefused(f"{path} cannot be read: {reason}") from None
    version = REPOSITORY.get(SOMMELIER).ref.version
    return _checked(text, PromptRef(SOMMELIER, version, label=path.stem), str(path))


def is_managed(name: str) -> bool:
    """Tell whether this names a prompt in Langfuse, by version or label: `sommelier@3`."""
    prompt, _, version = name.partition("@")
    return prompt in repository_prompts() and bool(version) and not any(map(str.isspace, version))


async def managed_prompt(store: "PromptStore", managed: str) -> TriedPrompts:
    """Fetch a version of a prompt in Langfuse, `sommelier@3` or `sommelier@staging`.

    Raises:
        PromptRefused: there is no such version, or it fails the checks every prompt must pass.
        Unavailable: Langfuse gave no answer, or another one.
    """
    name, _, version = managed.partition("@")
    by_number = version.isdecimal()
    stored = await (
        store.get(name, version=int(version)) if by_number else store.get(name, label=version)
    )
    if stored is None:
        what = "version" if by_number else "version with the label"
        raise PromptRefused(f"Langfuse has no {what} {version} of the prompt {name}")
    label = "" if by_number else version
    ref = PromptRef(name, stored.version, label, is_fallback=False)
    return _checked(stored.text, ref, f"version {stored.version} of Langfuse")


async def labelled_prompts(store: "PromptStore", label: str) -> TriedPrompts:
    """Fetch the prompts that have a label in Langfuse, as the product uses them.

    Raises:
        Unavailable: Langfuse gave no answer, or another one.
    """
    found = {}
    for name in repository_prompts():
        stored = await store.get(name, label=label)
        if stored is not None and not refusal(name, stored.text):
            ref = PromptRef(name, stored.version, label, is_fallback=False)
            found[name] = Prompt(stored.text or "", ref)
    return TriedPrompts(found)


def _checked(text: str | None, ref: PromptRef, what: str) -> TriedPrompts:
    if problem := refusal(ref.name, text):
        raise PromptRefused(f"{what} cannot be the prompt {ref.name}: {problem}")
    return TriedPrompts({ref.name: Prompt(text or "", ref)})


log = logging.getLogger(__name__)

STARTER: Final = "starter"
LANGFUSE: Final = "langfuse:"
IN_REPOSITORY: Final = "repository"
NO_KEYS: Final = "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to read a data set of Langfuse"


Select = Callable[[Sequence[Conversation]], Sequence[Case]]
"""Which of a data set's conversations are tried."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Cases, by the name they have in Langfuse; its items by case, if they are `stored` there."""

    name: str
    cases: Sequence[Case]
    stored: Mapping[str, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Library:
    """The wines and the documents that an evaluation is answered from."""

    catalogue: SqlCatalogue
    documents: SqlDocumentStore


@dataclass(frozen=True, slots=True)
class Named:
    """A variant that is not made yet: no model stands for the house sommelier."""

    label: str
    model: str | None
    prompts: Prompts


async def read_dataset(name: str, experiments: Experiments | None, select: Select) -> Dataset:
    """Read the conversations that are to be tried, from a file or from Langfuse.

    Ends the command when there is no such data set, or none in it is to be tried.
    """
    stored: Mapping[str, Item] = {}
    try:
        if name.startswith(LANGFUSE):
            found, stored = await _read_langfuse(name.removeprefix(LANGFUSE), experiments)
        else:
            path = datasets.SETS.get(name) or Path(name)
            found = await asyncio.to_thread(datasets.read, path)
    except datasets.DatasetError as error:
        fail(str(error), 2)
    chosen = select(found)
    if not found:
        fail(f"{name} has no conversations", 2)
    if not chosen:
        fail(f"no conversation of {name} is of this language and kind", 2)
    if name.startswith(LANGFUSE):
        return Dataset(name.removeprefix(LANGFUSE), chosen, stored)
    return Dataset(f"sommelier-{name if name in datasets.SETS else Path(name).stem}", chosen)


async def _read_langfuse(
    name: str, experiments: Experiments | None
) -> tuple[list[Conversation], Mapping[str, Item]]:
    if experiments is None:
        fail(NO_KEYS, 2)

    try:
        items = await experiments.items(name)
    except Unavailable as error:
        fail(f"the data set {name!r} cannot be read: {error}")
    read = [(conversation_of(item, name), item) for item in items]
    return unique(each for each, _ in read), {each.id: item for each, item in read}


@asynccontextmanager
async def open_library(settings: Settings, *, starter: bool) -> AsyncIterator[Library]:
    """Open the configured wines and documents, or the `starter` ones in a database of their own."""
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
async def open_experiments(settings: Settings) -> AsyncIterator[Experiments | None]:
    """Open Langfuse's datasets and experiments; None without keys."""
    tracing, client = settings.tracing, langfuse_client(settings, waits_longer=True)
    if client is None:
        yield None
        return
    origin = Origin(tracing.environment, tracing.release, version("sommelier"))
    async with aclosing(client):
        yield Experiments(client, prepare_trace(settings), hide=hide(settings), origin=origin)


def wanted_variants(
    settings: Settings, models: Sequence[str] | None, prompts: Sequence[str] | None
) -> list[Named]:
    """Name every model with every prompt; unless some are named, with those in production."""
    if prompts:
        texts = _prompts(settings, list(dict.fromkeys(prompts)))
    else:
        texts = {IN_REPOSITORY: _in_production(settings)}
    default = settings.model.name if settings.model.is_set else MODEL_NAME
    names = list(dict.fromkeys(models or [default]))
    if names != [MODEL_NAME]:
        require_model(settings)
    return [
        Named(f"{name} · {title}" if prompts else name, None if name == MODEL_NAME else name, text)
        for name in names
        for title, text in texts.items()
    ]


def require_model(settings: Settings) -> None:
    """End the command if no server with models is configured."""
    if not settings.model.is_set:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)


def _prompts(settings: Settings, wanted: Sequence[str]) -> dict[str, Prompts]:
    """The prompts by what stands for them in a label: a file's name, its path where two share one.

    Langfuse is asked only for those that are there.
    """
    managed = [name for name in wanted if is_managed(name) and not Path(name).exists()]
    short = {name: name if name in managed else Path(name).stem for name in wanted}
    times = Counter(short.values())
    try:
        found = asyncio.run(_managed(settings, managed)) if managed else {}
        for name in wanted:
            if name not in found:
                found[name] = REPOSITORY if name == IN_REPOSITORY else prompt_of_file(Path(name))
    except PromptRefused as error:
        fail(str(error), 2)
    return {short[name] if times[short[name]] == 1 else name: found[name] for name in wanted}


def _in_production(settings: Settings) -> Prompts:
    """The prompts that the product would use: those of Langfuse under the label in use, if any."""
    if settings.tracing.langfuse_keys is None:
        return REPOSITORY

    async def fetch() -> Prompts:
        async with open_prompt_store(settings) as store:
            try:
                return await labelled_prompts(store, settings.tracing.prompt_label)
            except Unavailable as error:
                log.warning("The repository's prompts are evaluated, not those in use: %s", error)
                return REPOSITORY

    return asyncio.run(fetch())


async def _managed(settings: Settings, names: Sequence[str]) -> dict[str, Prompts]:

    async with open_prompt_store(settings) as store:
        return {name: await managed_prompt(store, name) for name in names}


@asynccontextmanager
async def open_models(
    settings: Settings, wanted: Mapping[str, tuple[str, ResponseMode]]
) -> AsyncIterator[dict[str, LLMService]]:
    """Open models of the configured server, each by its name and response mode."""
    models = {key: model_of(settings, name, mode) for key, (name, mode) in wanted.items()}
    try:
        yield models
    finally:
        for model in models.values():
            await model.close()


@asynccontextmanager
async def open_variants(
    settings: Settings, named: Sequence[Named], library: Library
) -> AsyncIterator[list[SommelierVariant]]:
    """Open the variants: the sommelier of the product with its own model, prompt and research.

    Places are not searched for, which costs and changes daily.
    """
    mode, catalogue = settings.model.response_mode, library.catalogue
    wanted = {each.model: (each.model, mode) for each in named if each.model}
    looking = research_tools(library.documents, refinement=settings.documents.refinement)
    sommelier = Sommelier(
        catalogue=catalogue, house=HouseSommelier(), research_tools=[*looking, *memory_tools()]
    )
    async with open_models(settings, wanted) as models:
        yield [
            SommelierVariant(
                each.label,
                Remembering(sommelier),
                catalogue,
                run_of(settings, [models[each.model]] if each.model else [], each.prompts),
            )
            for each in named
        ]
