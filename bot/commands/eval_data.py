"""The conversations of an evaluation: the starter set, a file, or a data set of Langfuse."""

# ruff: noqa: PLC0415

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bot.commands.output import fail

if TYPE_CHECKING:
    from agent.evals.dataset import Conversation
    from agent.tracing.langfuse.experiments import Experiments, Item

STARTER: Final = "starter"
LANGFUSE: Final = "langfuse:"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which conversations are asked for."""

    dataset: str
    run: str
    language: str | None
    kind: str | None
    limit: int | None
    concurrency: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: the data set's name, its conversations, and their items by conversation."""

    run: str
    dataset: str
    conversations: "Sequence[Conversation]"
    items: "Mapping[str, Item]"
    stored: bool
    concurrency: int


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
    stored = wanted.dataset.startswith(LANGFUSE)
    return Plan(wanted.run, name, chosen, kept, stored, wanted.concurrency)


async def _read(
    dataset: str, experiments: "Experiments | None"
) -> "tuple[str, list[Conversation], dict[str, Item]]":
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
    if experiments is None:
        return name, found, {}
    from agent.evals.recording import item_of

    return name, found, {each.id: item_of(name, each) for each in found}


async def _read_langfuse(
    name: str, experiments: "Experiments | None"
) -> "tuple[str, list[Conversation], dict[str, Item]]":
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
