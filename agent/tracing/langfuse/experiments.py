"""Datasets and experiments in Langfuse: what was asked, and what became of it, run by run.

An experiment is no object of its own in Langfuse: it is told by attributes on the spans of each
item's trace. Traces are therefore sent here, with these attributes, and not by the sink of turns.
"""

import asyncio
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from agent.tracing.langfuse.client import ONCE, SCORES, LangfuseClient, LangfuseUnavailable
from agent.tracing.langfuse.traces import TRACES, Origin, encoded, headers, scores_of
from agent.tracing.records import TraceRecord

if TYPE_CHECKING:
    from langfuse.api import DatasetItem

AT_ONCE: Final = 4  # requests
PAGE: Final = 100
ENVIRONMENT: Final = "sdk-experiment"  # where Langfuse expects the traces of experiments
EXPERIMENT: Final = "langfuse.experiment."


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a dataset, as plain JSON data."""

    id: str
    input: Any
    expected: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that exists in Langfuse."""

    id: str
    name: str
    project_id: str


class Experiments:
    """Langfuse's datasets, and where experiments are recorded.

    `prepare` makes of each trace what may be shown, `hide` of what an item asks and expects:
    datasets are made of people's turns, too.
    """

    def __init__(
        self,
        client: LangfuseClient,
        prepare: Callable[[TraceRecord], TraceRecord] = lambda trace: trace,
        *,
        hide: Callable[[object], object] = lambda data: data,
    ) -> None:
        self._client = client
        self._origin = Origin(client.public_key, ENVIRONMENT)
        self._prepare = prepare
        self._hide = hide

    async def dataset(self, name: str) -> Dataset:
        """Return the dataset of this name, made if there is none.

        Raises:
            LangfuseUnavailable: Langfuse gave no answer, or another one.
        """
        made = await self._client.ask(
            lambda api: api.datasets.create(name=name, request_options=ONCE)
        )
        return Dataset(made.id, made.name, made.project_id)

    async def existing(self, name: str) -> Dataset:
        """Return the dataset of this name.

        Raises:
            LangfuseUnavailable: there is none, or Langfuse gave no answer, or another one.
        """
        found = await self._client.ask(lambda api: api.datasets.get(name, request_options=ONCE))
        return Dataset(found.id, found.name, found.project_id)

    async def items(self, dataset: str) -> list[Item]:
        """Return the items of a dataset that are not archived, in the order Langfuse has them.

        Raises:
            LangfuseUnavailable: there is no such dataset, or Langfuse gave no answer.
        """
        await self.existing(dataset)
        found: list[DatasetItem] = []
        page = pages = 1
        while page <= pages:
            listed = await self._client.ask(
                lambda api, page=page: api.dataset_items.list(  # type: ignore[misc]
                    dataset_name=dataset, page=page, limit=PAGE, request_options=ONCE
                )
            )
            found += listed.data
            page, pages = page + 1, listed.meta.total_pages
        return [_item(each) for each in found if each.status == "ACTIVE"]

    async def put(self, dataset: str, items: Sequence[Item]) -> None:
        """Add or replace items by their ids.

        Raises:
            LangfuseUnavailable: Langfuse did not take one of them.
        """
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(item: Item) -> None:
            async with slots:
                await self._client.ask(
                    lambda api: api.dataset_items.create(
                        dataset_name=dataset,
                        id=item.id,
                        input=self._hide(item.input),
                        expected_output=self._hide(item.expected),
                        metadata=dict(item.metadata),
                        request_options=ONCE,
                    )
                )

        for first in items[:1]:
            await one(first)  # a server that is away is asked once
        await asyncio.gather(*(one(item) for item in items[1:]))

    async def send(self, traces: Sequence[TraceRecord], link: Mapping[str, str]) -> None:
        """Deliver the traces of an item, and all their scores; the last one is the item's.

        Raises:
            LangfuseUnavailable: Langfuse did not take them.
        """
        shown = [self._prepare(trace) for trace in traces]
        await self._send_spans(shown[:-1], {})
        await self._send_spans(shown[-1:], link)
        if scores := [score for trace in shown for score in scores_of(trace, ENVIRONMENT)]:
            taken = await self._client.post(SCORES, json=scores)
            if taken.status_code == 207:
                raise LangfuseUnavailable(f"Langfuse refused some of {len(scores)} scores", 207)

    def link(
        self, dataset: Dataset, run: str, variant: str, item: Item, trace: TraceRecord
    ) -> dict[str, str]:
        """Return what makes a trace the run of an item in the experiment of a variant."""
        name = f"{run} · {variant}"
        named = {
            "id": experiment_id(dataset, name),
            "name": name,
            "metadata": _json({"run": run, "variant": variant}),
            "dataset.id": dataset.id,
            "item.id": item.id,
            "item.root_observation_id": trace.root.span_id,
            "item.expected_output": _json(self._hide(item.expected)),
            "item.metadata": _json(dict(item.metadata)),
        }
        return {f"{EXPERIMENT}{key}": value for key, value in named.items()}

    def url(self, dataset: Dataset) -> str:
        """Return where the experiments over a dataset are seen."""
        return f"{self._client.base_url}/project/{dataset.project_id}/datasets/{dataset.id}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send_spans(self, traces: Sequence[TraceRecord], link: Mapping[str, str]) -> None:
        if traces:
            body = gzip.compress(encoded(traces, replace(self._origin, link=link)), 1)
            known = headers(self._client.public_key)
            await self._client.post(TRACES, content=body, headers=known)


def item_id(dataset: str, name: str) -> str:
    """Return the id of a dataset's item: the same in every run, so that none is added twice."""
    return hashlib.sha256(f"{dataset}:{name}".encode()).hexdigest()[:32]


def experiment_id(dataset: Dataset, name: str) -> str:
    """Return the id that Langfuse itself gives to the experiment of this name over a dataset."""
    parts = ["langfuse-experiment-v1", dataset.project_id, dataset.id, name]
    payload = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(payload.encode()).hexdigest()[:16]


def _item(found: "DatasetItem") -> Item:
    metadata = found.metadata if isinstance(found.metadata, dict) else {}
    return Item(found.id, found.input, found.expected_output, metadata)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
