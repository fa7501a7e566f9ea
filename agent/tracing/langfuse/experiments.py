"""Datasets and experiments in Langfuse: what was asked, and what became of it, run by run.

An experiment is no object of its own in Langfuse: it is told by attributes on the spans of each
item's trace. Traces are therefore sent here, with these attributes, and not by the sink of turns.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx

from agent.engine.errors import AgentError
from agent.engine.feedback import fence
from agent.engine.trace_records import ScoreRecord, TraceRecord, score_id
from agent.tracing.langfuse.sink import TRACES
from agent.tracing.langfuse.spans import Origin, encoded, headers

if TYPE_CHECKING:
    from langfuse.api import DatasetItem
    from langfuse.api.core.request_options import RequestOptions
    from langfuse.api.scores import CreateScoreRequest

T = TypeVar("T")

REQUEST_SECONDS: Final = 5.0
AT_ONCE: Final = 4  # requests
PAGE: Final = 100
ENVIRONMENT: Final = "sdk-experiment"  # where Langfuse expects the traces of experiments
ONCE: "Final[RequestOptions]" = {"max_retries": 0}
UNKNOWN_KEYS: Final = (
    "it does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, "
    "and that LANGFUSE_BASE_URL is their region"
)


class ExperimentsUnavailable(AgentError):
    """Langfuse did not do what was asked of its datasets."""


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


@dataclass(frozen=True)
class Linked(Origin):
    """The origin of an item's trace: each of its spans says to which experiment it belongs."""

    link: Mapping[str, str] = field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, str]:
        """As they stand on every span."""
        return {**super().attributes, **self.link}


class Experiments:
    """Langfuse's datasets, and where experiments are recorded; a request takes at most 5 s.

    `prepare` makes of each trace what may be shown, `hide` of what an item asks and expects:
    datasets are made of people's turns, too.
    """

    def __init__(
        self,
        origin: Origin,
        secret_key: str,
        base_url: str,
        prepare: Callable[[TraceRecord], TraceRecord] = lambda trace: trace,
        *,
        hide: Callable[[object], object] = lambda data: data,
        timeout_seconds: float = REQUEST_SECONDS,
    ) -> None:
        from langfuse.api import AsyncLangfuseAPI  # noqa: PLC0415 - heavy

        self._linked = Linked(origin.public_key, ENVIRONMENT, origin.release)
        self.base_url = base_url.rstrip("/")
        self._prepare = prepare
        self.hide = hide
        self._seconds = timeout_seconds
        self._http = httpx.AsyncClient(
            auth=(origin.public_key, secret_key), timeout=timeout_seconds
        )
        self._api = AsyncLangfuseAPI(
            base_url=self.base_url,
            username=origin.public_key,
            password=secret_key,
            x_langfuse_public_key=origin.public_key,
            httpx_client=self._http,
        )

    async def dataset(self, name: str, description: str = "") -> Dataset:
        """The dataset of this name, made if there is none.

        Raises:
            ExperimentsUnavailable: Langfuse gave no answer, or another one.
        """
        made = await self._asked(
            self._api.datasets.create(name=name, description=description, request_options=ONCE)
        )
        return Dataset(made.id, made.name, made.project_id)

    async def existing(self, name: str) -> Dataset:
        """The dataset of this name.

        Raises:
            ExperimentsUnavailable: there is none, or Langfuse gave no answer, or another one.
        """
        found = await self._asked(self._api.datasets.get(name, request_options=ONCE))
        return Dataset(found.id, found.name, found.project_id)

    async def items(self, dataset: str) -> list[Item]:
        """The items of a dataset that are not archived, in the order Langfuse has them.

        Raises:
            ExperimentsUnavailable: there is no such dataset, or Langfuse gave no answer.
        """
        await self.existing(dataset)
        found: list[DatasetItem] = []
        page = pages = 1
        while page <= pages:
            listed = await self._asked(
                self._api.dataset_items.list(
                    dataset_name=dataset, page=page, limit=PAGE, request_options=ONCE
                )
            )
            found += listed.data
            page, pages = page + 1, listed.meta.total_pages
        return [_item(each) for each in found if each.status == "ACTIVE"]

    async def put(self, dataset: str, items: Sequence[Item]) -> None:
        """Add or replace items by their ids.

        Raises:
            ExperimentsUnavailable: Langfuse did not take one of them.
        """
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(item: Item) -> None:
            async with slots:
                await self._asked(
                    self._api.dataset_items.create(
                        dataset_name=dataset,
                        id=item.id,
                        input=self.hide(item.input),
                        expected_output=self.hide(item.expected),
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
            ExperimentsUnavailable: Langfuse did not take them.
        """
        shown = [self._prepare(trace) for trace in traces]
        await self._send_spans(shown[:-1])
        await self._send_spans(shown[-1:], link)
        scores = [_score(trace, each) for trace in shown for each in trace.scores.values()]
        if scores:
            taken = await self._asked(self._api.scores.create(request=scores, request_options=ONCE))
            if rejected := getattr(taken, "rejected", 0):
                raise ExperimentsUnavailable(f"it refused {rejected} of {len(scores)} scores")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send_spans(
        self, traces: Sequence[TraceRecord], link: Mapping[str, str] | None = None
    ) -> None:
        if traces:
            origin = replace(self._linked, link=link or {})
            await self._asked(self._post(encoded(traces, origin)))

    async def _post(self, body: bytes) -> None:
        known = {"Content-Type": "application/x-protobuf", **headers(self._linked.public_key)}
        response = await self._http.post(f"{self.base_url}{TRACES}", content=body, headers=known)
        response.raise_for_status()

    async def _asked(self, request: Awaitable[T]) -> T:
        """What Langfuse answers in time; whatever its client raises is told in one line."""
        from langfuse.api.core.api_error import ApiError  # noqa: PLC0415

        try:
            async with asyncio.timeout(self._seconds):
                return await request
        except ApiError as error:
            raise ExperimentsUnavailable(_said(error.status_code, error.body)) from None
        except httpx.HTTPStatusError as error:
            raise ExperimentsUnavailable(_said(error.response.status_code, None)) from None
        except (httpx.HTTPError, TimeoutError) as error:
            kind = type(error).__name__
            raise ExperimentsUnavailable(
                f"it cannot be reached ({kind}): check LANGFUSE_BASE_URL and the network"
            ) from None
        except ValueError:  # pydantic's errors are of this kind
            raise ExperimentsUnavailable(
                "the answer is not Langfuse's: check LANGFUSE_BASE_URL"
            ) from None


def item_id(dataset: str, name: str) -> str:
    """The id of a dataset's item: the same in every run, so that none is added twice."""
    return hashlib.sha256(f"{dataset}:{name}".encode()).hexdigest()[:32]


def experiment_id(dataset: Dataset, name: str) -> str:
    """The id that Langfuse itself gives to the experiment of this name over a dataset."""
    parts = ["langfuse-experiment-v1", dataset.project_id, dataset.id, name]
    payload = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(payload.encode()).hexdigest()[:16]


def _item(found: "DatasetItem") -> Item:
    metadata = found.metadata if isinstance(found.metadata, dict) else {}
    return Item(found.id, found.input, found.expected_output, metadata)


def _score(trace: TraceRecord, score: ScoreRecord) -> "CreateScoreRequest":
    from langfuse.api import ScoreDataType  # noqa: PLC0415
    from langfuse.api.scores import CreateScoreRequest  # noqa: PLC0415

    return CreateScoreRequest(
        id=score_id(trace.trace_id, score.name),
        trace_id=trace.trace_id,
        observation_id=trace.root.span_id,
        name=score.name,
        value=score.value,
        data_type=ScoreDataType(score.kind),
        comment=score.comment or None,
        environment=ENVIRONMENT,
    )


def _said(status: int | None, body: object) -> str:
    if status == 401:
        return UNKNOWN_KEYS
    message = body.get("message") if isinstance(body, dict) else None
    said = f": {fence(message, 200)}" if isinstance(message, str) else ""
    return f"it answered HTTP {status}{said}"
