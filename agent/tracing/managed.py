"""What people look after in Langfuse: prompts, datasets, and experiments over them.

The prompts in use are fetched in the background. An experiment is no object of its own there: it is
told by attributes on the spans of each item's trace. Traces of experiments are therefore sent here,
with these attributes, and not by the exporter of turns.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from urllib.parse import quote

from pydantic import BaseModel, Field, JsonValue

from agent.engine.errors import Backoff, Sleep, retry
from agent.engine.feedback import fence
from agent.engine.span import Prompt, PromptRef, TraceRecord
from agent.prompts import refusal, repository_prompts
from agent.tracing.exporter import RateLimitedLogger, Unavailable
from agent.tracing.langfuse import (
    SCORES,
    TRACES,
    LangfuseClient,
    Page,
    headers,
    langfuse_spans,
    scores_of,
)
from agent.tracing.otlp import Origin, as_json
from agent.tracing.recorder import Item

log = logging.getLogger(__name__)

DEFAULT_LABEL: Final = "production"
EVERY_SECONDS: Final = 60.0
REQUEST_SECONDS: Final = 1.5
START_SECONDS: Final = 2.0
PROMPTS: Final = "/api/public/v2/prompts"


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """A version of a prompt in Langfuse; `text` is None for a chat prompt."""

    version: int
    text: str | None


class _Prompt(BaseModel):
    version: int
    type: Literal["text", "chat"] = "text"
    prompt: JsonValue

    @property
    def stored(self) -> StoredPrompt:
        return StoredPrompt(self.version, self.prompt if isinstance(self.prompt, str) else None)


class PromptStore:
    """Reads and writes the versions of prompts in Langfuse, each by one request."""

    def __init__(self, client: LangfuseClient) -> None:
        self._client = client

    async def get(
        self, name: str, *, label: str | None = None, version: int | None = None
    ) -> StoredPrompt | None:
        """Return the version of a prompt that has this label or number, None if none has.

        Raises:
            Unavailable: Langfuse gave no answer, or another one.
        """
        asked = {"label": label} if version is None else {"version": version}
        try:
            path = f"{PROMPTS}/{quote(name, safe='')}"
            return (await self._client.ask(_Prompt, "GET", path, params=asked)).stored
        except Unavailable as error:
            if error.status == 404:
                return None
            raise

    async def create(self, name: str, text: str, label: str) -> StoredPrompt:
        """Add a version of a prompt, which takes `label` from the version that had it.

        Raises:
            Unavailable: Langfuse did not take it.
        """
        made = {"name": name, "type": "text", "prompt": text, "labels": [label]}
        return (await self._client.ask(_Prompt, "POST", PROMPTS, json=made)).stored

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class LangfusePrompts:
    """The versions that have `label` in Langfuse; see `agent.prompts.Prompts`. No turn waits.

    What Langfuse does not have under that label is the repository's. What it cannot give, or gives
    in a form that the contracts cannot use, leaves the last good version in use.
    """

    def __init__(
        self,
        store: PromptStore,
        *,
        label: str = DEFAULT_LABEL,
        every_seconds: float = EVERY_SECONDS,
        limited_log: RateLimitedLogger | None = None,
    ) -> None:
        self._store = store
        self._label = label
        self._every_seconds = every_seconds
        self._limited_log = limited_log or RateLimitedLogger()
        self._current = dict(repository_prompts())
        self._refused: dict[str, StoredPrompt] = {}
        self._fetched = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None

    def get(self, name: str) -> Prompt:
        """Return the last good version; the repository's until there is one."""
        return self._current[name]

    async def start(self, seconds: float = START_SECONDS) -> None:
        """Begin to fetch; returns when every prompt was asked for once, after `seconds` at most.

        So the first turns, those resumed after a crash among them, get the prompts they should.
        """
        self._fetching = asyncio.create_task(self._fetch())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._fetched.wait()

    async def close(self) -> None:
        """Stop fetching, at once. Never raises."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._store.close()

    async def _fetch(self) -> None:
        while True:
            for name in self._current:
                await self._fetch_one(name)
            self._fetched.set()
            await asyncio.sleep(self._every_seconds)

    async def _fetch_one(self, name: str) -> None:
        try:
            self._take(name, await self._store.get(name, label=self._label))
        except Unavailable as error:
            self._warn(str(error))
        except Exception as error:  # a task that ended would keep the prompts as they are forever
            self._warn(type(error).__name__)

    def _take(self, name: str, stored: StoredPrompt | None) -> None:
        if stored is not None and (reason := refusal(name, stored.text)):
            self._refuse(name, stored, reason)
            return
        prompt = repository_prompts()[name]
        if stored is not None:
            ref = PromptRef(name, stored.version, self._label, is_fallback=False)
            prompt = Prompt(stored.text or "", ref)
        if prompt != self._current[name]:
            self._current[name] = prompt
            log.info("prompt %s: %s is in use", name, described(prompt.ref))

    def _refuse(self, name: str, stored: StoredPrompt, reason: str) -> None:
        if self._refused.get(name) == stored:
            return
        self._refused[name] = stored
        log.warning(
            "prompt %s: version %d of Langfuse is refused: %s; %s stays in use",
            name,
            stored.version,
            fence(reason, 300),
            described(self._current[name].ref),
        )

    def _warn(self, reason: str) -> None:
        said = f"prompts cannot be fetched, the last good ones stay: {reason}"
        self._limited_log.warning(log, "prompts", said)


def described(ref: PromptRef) -> str:
    """Name a version as a person does."""
    if ref.is_fallback:
        return f"the repository's version {ref.version}"
    return f"version {ref.version} ({ref.label})"


AT_ONCE: Final = 4  # requests
TRIES: Final = 3  # of an item, before it is left for the end
BACKOFF: Final = Backoff(first=1.0, longest=30.0)
PAGE: Final = 100
ENVIRONMENT: Final = "sdk-experiment"
"""Where Langfuse looks for the traces of experiments that say nothing else."""
EXPERIMENT: Final = "langfuse.experiment."
DATASETS: Final = "/api/public/v2/datasets"
ITEMS: Final = "/api/public/dataset-items"


class Dataset(BaseModel):
    """What Langfuse says of a dataset."""

    id: str
    project_id: str = Field(alias="projectId")


class Experiments:
    """Langfuse's datasets, and where experiments over them are recorded.

    `prepare` makes of each trace what may be shown, `hide` of what an item asks and expects:
    datasets are made of people's turns, too. `origin` is what traces and scores say of who sends.
    """

    def __init__(
        self,
        client: LangfuseClient,
        prepare: Callable[[TraceRecord], TraceRecord] = lambda trace: trace,
        *,
        hide: Callable[[object], object] = lambda data: data,
        origin: Origin | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.client = client
        self.prepare = prepare
        self.hide = hide
        origin = origin or Origin()
        self.origin = replace(origin, environment=origin.environment or ENVIRONMENT)
        self.sleep = sleep

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
            listed = await self.client.ask(Page, "GET", ITEMS, params=asked)
            found += listed.data
            page, pages = page + 1, listed.meta.get("totalPages", 1)
        return [_item(each) for each in found if each.get("status") == "ACTIVE"]

    async def open(
        self,
        dataset: str,
        run: str,
        items: Mapping[str, Item],
        *,
        description: str = "",
        stored: bool = False,
    ) -> "Recording | None":
        """Open the recording of a run over `items`; None, and a warning, if it cannot be.

        The dataset and its items are made or brought up to date, unless they are `stored` there.
        """
        try:
            if stored:
                return Recording(self, await self._existing(dataset), run, items, description)
            made = await self.client.ask(Dataset, "POST", DATASETS, json={"name": dataset})
            await self._put(dataset, list(items.values()))
        except Unavailable as error:
            log.warning("This run is not recorded: %s", error)
            return None
        return Recording(self, made, run, items, description)

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

    What a slow or overloaded server does not confirm is sent again, under the same ids, at once and
    at the end, so `recorded` and `lost` are what is there and what is not. Nothing more is tried
    once it says that it will take nothing. What fails is told once in the log.
    """

    experiments: Experiments
    dataset: Dataset
    run: str
    items: Mapping[str, Item]
    description: str = ""
    recorded: int = 0
    lost: int = 0
    _left: list[tuple[str, str, Sequence[TraceRecord]]] = field(default_factory=list)
    _refused: bool = False
    _warned: bool = False

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
        # While the server is in trouble the run goes on; what is left comes at the end.
        if not await self._try(variant, item, traces, 1 if self._left else TRIES):
            self._left.append((variant, item, traces))

    async def finish(self) -> None:
        """Send what is left; what does not arrive now is lost. Never raises."""
        left, self._left = self._left, []
        for variant, item, traces in left:
            arrived = await self._try(variant, item, traces, 1 if self.lost else TRIES)
            self.lost += not arrived

    async def _try(
        self, variant: str, item: str, traces: Sequence[TraceRecord], tries: int
    ) -> bool:
        """Whether an item arrived within so many tries."""
        link = self._link(variant, self.items[item], traces[-1])
        try:
            if not self._refused:
                await retry(
                    lambda: self._send(traces, link),
                    tries=tries,
                    on=_is_passing,
                    backoff=BACKOFF,
                    sleep=self.experiments.sleep,
                )
        except Unavailable as error:
            self._refused = not (error.passes or error.is_unreadable)
            if not self._warned:
                log.warning("Not everything is recorded: %s", error)
            self._warned = True
            return False
        self.recorded += not self._refused
        return not self._refused

    async def _send(self, traces: Sequence[TraceRecord], link: Mapping[str, str]) -> None:
        """Deliver the traces of an item, and all their scores; the last one is the item's."""
        shown = [self.experiments.prepare(trace) for trace in traces]
        await self._send_spans(shown[:-1], {})
        await self._send_spans(shown[-1:], link)
        environment = self.experiments.origin.environment
        if scores := [score for trace in shown for score in scores_of(trace, environment)]:
            taken = await self.experiments.client.request("POST", SCORES, json=scores)
            if taken.status_code == 207:
                raise Unavailable(f"Langfuse refused some of {len(scores)} scores", 207)

    async def _send_spans(self, traces: Sequence[TraceRecord], link: Mapping[str, str]) -> None:
        if traces:
            client = self.experiments.client
            origin = replace(self.experiments.origin, link=link)
            body = langfuse_spans(traces, origin, client.public_key)
            await client.request("POST", TRACES, content=body, headers=headers(client.public_key))

    def _link(self, variant: str, item: Item, trace: TraceRecord) -> dict[str, str]:
        """What makes a trace the run of an item in the experiment of a variant."""
        name = f"{self.run} · {variant}"
        named = {
            "id": experiment_id(self.dataset.project_id, self.dataset.id, name),
            "name": name,
            "metadata": as_json({"run": self.run, "variant": variant}),
            "dataset.id": self.dataset.id,
            "item.id": item.id,
            "item.root_observation_id": trace.root.span_id,
            "item.expected_output": as_json(self.experiments.hide(item.expected)),
            "item.metadata": as_json(dict(item.metadata)),
        }
        if self.description:
            named["description"] = self.description
        return {f"{EXPERIMENT}{key}": value for key, value in named.items()}


def _is_passing(error: Exception) -> bool | float:
    """Whether the same may be taken later, and after how many seconds if the server said."""
    return isinstance(error, Unavailable) and error.passes and (error.retry_after or True)


def experiment_id(project_id: str, dataset_id: str, name: str) -> str:
    """Return the id that Langfuse itself gives to the experiment of this name over a dataset."""
    parts = ["langfuse-experiment-v1", project_id, dataset_id, name]
    payload = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(payload.encode()).hexdigest()[:16]


def _item(found: Mapping[str, Any]) -> Item:
    metadata = found.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return Item(str(found.get("id")), found.get("input"), found.get("expectedOutput"), known)
