"""Datasets and experiments in Langfuse: what was asked, and what became of it, run by run.

An experiment is no object of its own in Langfuse: it is told by attributes on the spans of each
item's trace. Traces are therefore sent here, with these attributes, and not by the sink of turns.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel, Field

from agent.engine.span import TraceRecord
from agent.tracing.http import Unavailable
from agent.tracing.langfuse.client import SCORES, LangfuseClient
from agent.tracing.langfuse.traces import TRACES, headers, langfuse_spans, scores_of
from agent.tracing.otlp import Origin
from agent.tracing.recorder import Item

log = logging.getLogger(__name__)

AT_ONCE: Final = 4  # requests
GIVE_UP_AFTER: Final = 2  # failures in a row
PAGE: Final = 100
ENVIRONMENT: Final = "sdk-experiment"  # where Langfuse expects the traces of experiments
EXPERIMENT: Final = "langfuse.experiment."
DATASETS: Final = "/api/public/v2/datasets"
ITEMS: Final = "/api/public/dataset-items"


class Dataset(BaseModel):
    """What Langfuse says of a dataset."""

    id: str
    project_id: str = Field(alias="projectId")


class _Page(BaseModel):
    data: list[dict[str, Any]]
    meta: dict[str, Any]


class Experiments:
    """Langfuse's datasets, and where experiments over them are recorded.

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
        self.client = client
        self.prepare = prepare
        self.hide = hide

    async def items(self, dataset: str) -> list[Item]:
        """Return the items of a dataset that are not archived, in the order Langfuse has them.

        Raises:
            Unavailable: there is no such dataset, or Langfuse gave no answer.
        """
        await self._existing(dataset)
        found: list[dict[str, Any]] = []
        page = pages = 1
        while page <= pages:
            asked = {"datasetName": dataset, "page": page, "limit": PAGE}
            listed = await self.client.ask(_Page, "GET", ITEMS, params=asked)
            found += listed.data
            page, pages = page + 1, listed.meta.get("totalPages", 1)
        return [_item(each) for each in found if each.get("status") == "ACTIVE"]

    async def open(
        self, dataset: str, run: str, items: Mapping[str, Item], *, stored: bool = False
    ) -> "Recording | None":
        """Open the recording of a run over `items`; None, and a warning, if it cannot be.

        The dataset and its items are made or brought up to date, unless they are `stored` there.
        """
        try:
            if stored:
                return Recording(self, await self._existing(dataset), run, items)
            made = await self.client.ask(Dataset, "POST", DATASETS, json={"name": dataset})
            await self._put(dataset, list(items.values()))
        except Unavailable as error:
            log.warning("This run is not recorded: %s", error)
            return None
        return Recording(self, made, run, items)

    async def _existing(self, name: str) -> Dataset:
        return await self.client.ask(Dataset, "GET", f"{DATASETS}/{quote(name, safe='')}")

    async def _put(self, dataset: str, items: Sequence[Item]) -> None:
        """Add or replace items by their ids."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(item: Item) -> None:
            made = {
                "datasetName": dataset,
                "id": item.id,
                "input": self.hide(item.input),
                "expectedOutput": self.hide(item.expected),
                "metadata": dict(item.metadata),
            }
            async with slots:
                await self.client.request("POST", ITEMS, json=made)

        for first in items[:1]:
            await one(first)  # a server that is away is asked once
        await asyncio.gather(*(one(item) for item in items[1:]))


@dataclass(slots=True)
class Recording:
    """The recording of one run: an experiment for each variant, over the same items.

    What fails is told once in the log; after two failures in a row nothing more is tried.
    `recorded` counts the items that arrived.
    """

    experiments: Experiments
    dataset: Dataset
    run: str
    items: Mapping[str, Item]
    recorded: int = 0
    lost: int = 0
    failures: int = 0

    @property
    def summary(self) -> str:
        """What came of it, in a line, and where the experiments are seen."""
        place = f"project/{self.dataset.project_id}/datasets/{self.dataset.id}"
        lost = f" {self.lost} lost," if self.lost else ""
        return f"{self.recorded} recorded,{lost} see {self.experiments.client.base_url}/{place}"

    async def add(self, variant: str, item: str, traces: Sequence[TraceRecord]) -> None:
        """Record what a variant made of an item; its scores stand on the last trace. Never raises.

        `item` is the key of one of the items that the recording was opened with.
        """
        if not traces:
            return
        if self.failures >= GIVE_UP_AFTER:
            self.lost += 1
            return
        try:
            await self._send(traces, self._link(variant, self.items[item], traces[-1]))
        except Unavailable as error:
            if not self.lost:
                log.warning("Not everything is recorded: %s", error)
            self.failures += 1
            self.lost += 1
        else:
            self.failures = 0
            self.recorded += 1

    async def _send(self, traces: Sequence[TraceRecord], link: Mapping[str, str]) -> None:
        """Deliver the traces of an item, and all their scores; the last one is the item's."""
        shown = [self.experiments.prepare(trace) for trace in traces]
        await self._send_spans(shown[:-1], {})
        await self._send_spans(shown[-1:], link)
        if scores := [score for trace in shown for score in scores_of(trace, ENVIRONMENT)]:
            taken = await self.experiments.client.request("POST", SCORES, json=scores)
            if taken.status_code == 207:
                raise Unavailable(f"Langfuse refused some of {len(scores)} scores", 207)

    async def _send_spans(self, traces: Sequence[TraceRecord], link: Mapping[str, str]) -> None:
        if traces:
            client = self.experiments.client
            origin = Origin(ENVIRONMENT, link=link)
            body = langfuse_spans(traces, origin, client.public_key)
            await client.request("POST", TRACES, content=body, headers=headers(client.public_key))

    def _link(self, variant: str, item: Item, trace: TraceRecord) -> dict[str, str]:
        """What makes a trace the run of an item in the experiment of a variant."""
        name = f"{self.run} · {variant}"
        named = {
            "id": experiment_id(self.dataset.project_id, self.dataset.id, name),
            "name": name,
            "metadata": _json({"run": self.run, "variant": variant}),
            "dataset.id": self.dataset.id,
            "item.id": item.id,
            "item.root_observation_id": trace.root.span_id,
            "item.expected_output": _json(self.experiments.hide(item.expected)),
            "item.metadata": _json(dict(item.metadata)),
        }
        return {f"{EXPERIMENT}{key}": value for key, value in named.items()}


def experiment_id(project_id: str, dataset_id: str, name: str) -> str:
    """Return the id that Langfuse itself gives to the experiment of this name over a dataset."""
    parts = ["langfuse-experiment-v1", project_id, dataset_id, name]
    payload = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(payload.encode()).hexdigest()[:16]


def _item(found: Mapping[str, Any]) -> Item:
    metadata = found.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return Item(str(found.get("id")), found.get("input"), found.get("expectedOutput"), known)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
