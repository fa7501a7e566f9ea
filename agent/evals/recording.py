"""A run as experiments in Langfuse. Imported where there are keys: Langfuse's client is heavy."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent.evals.dataset import Case, Conversation, DatasetError, Question, as_item, parsed
from agent.evals.run import Result
from agent.tracing.langfuse.client import LangfuseUnavailable
from agent.tracing.langfuse.experiments import Dataset, Experiments, Item, item_id

log = logging.getLogger(__name__)

GIVE_UP_AFTER: Final = 2  # failures in a row


@dataclass(slots=True)
class Recording:
    """The recording of one run: an experiment for each variant, over the same items.

    Never raises. What fails is told once in the log; after two failures in a row nothing more is
    tried. `recorded` counts the items that arrived.
    """

    experiments: Experiments
    dataset: Dataset
    run: str
    items: Mapping[str, Item]
    recorded: int = 0
    lost: int = 0
    failures: int = 0

    @property
    def url(self) -> str:
        """Where the experiments are seen."""
        return self.experiments.url(self.dataset)

    @property
    def summary(self) -> str:
        """What came of it, in a line."""
        if not self.lost:
            return f"{self.recorded} recorded, see {self.url}"
        return f"{self.recorded} recorded, {self.lost} lost, see {self.url}"

    async def add(self, result: Result) -> None:
        """Record what a variant made of a case; its scores stand on the last trace."""
        traces = result.traces
        if not traces:
            return
        if self.failures >= GIVE_UP_AFTER:
            self.lost += 1
            return
        item = self.items[result.case.id]
        link = self.experiments.link(self.dataset, self.run, result.variant, item, traces[-1])
        try:
            await self.experiments.send(traces, link)
        except LangfuseUnavailable as error:
            if not self.lost:
                log.warning("Not everything is recorded in Langfuse: %s", error)
            self.failures += 1
            self.lost += 1
        else:
            self.failures = 0
            self.recorded += 1


async def open_recording(
    experiments: Experiments,
    dataset: str,
    run: str,
    cases: Sequence[Case],
    *,
    stored: Mapping[str, Item] = {},
) -> Recording | None:
    """Open a recording of `cases`; None, and a warning, if it cannot be.

    The dataset and its items are made or brought up to date, unless they are `stored` there.
    """
    try:
        if stored:
            return Recording(experiments, await experiments.existing(dataset), run, stored)
        items = {case.id: item_of(dataset, case) for case in cases}
        made = await experiments.dataset(dataset)
        await experiments.put(dataset, list(items.values()))
    except LangfuseUnavailable as error:
        log.warning("This run is not recorded: %s", error)
        return None
    return Recording(experiments, made, run, items)


def item_of(dataset: str, case: Case) -> Item:
    """Return a case as an item of a dataset; the same case has the same id every time."""
    data = as_item(case)
    metadata: dict[str, Any] = {key: data[key] for key in ("id", "language", "kind") if key in data}
    if isinstance(case, Question):
        asked, expected = {"query": case.query}, {"sources": list(case.sources)}
    else:
        asked = {key: data[key] for key in ("messages", "history") if key in data}
        metadata.update({key: data[key] for key in ("wants", "harmful_if") if key in data})
        expected = data.get("expect", {})
    return Item(item_id(dataset, case.id), asked, expected, metadata)


def conversation_of(item: Item, dataset: str) -> Conversation:
    """Read an item as a conversation: one that was recorded here, or a text, or a list of messages.

    Raises:
        DatasetError: it is none of these, or its expectations are not known.
    """
    asked = item.input
    if isinstance(asked, str):
        asked = {"messages": [asked]}
    elif isinstance(asked, list):
        said = [each for each in asked if not _is_instruction(each)]
        asked = {"messages": [_text_of(each) for each in said[-1:]], "history": said[:-1]}
    if not isinstance(asked, dict):
        raise DatasetError(f"item {item.id} of {dataset} has no messages as its input")
    known = {"id": item.id, **item.metadata, **asked}
    if isinstance(item.expected, dict):
        known["expect"] = item.expected
    return parsed(known, f"item {item.id} of {dataset}")


def _is_instruction(said: object) -> bool:
    """Whether a message is a model's instructions: those of the sommelier are in their place."""
    return isinstance(said, dict) and said.get("role") in ("system", "developer")


def _text_of(said: object) -> object:
    return said.get("content") if isinstance(said, dict) else said
