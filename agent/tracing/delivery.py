"""What leaves for Langfuse or another backend of OpenTelemetry, by HTTP, each request made once."""

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, cast

import httpx2
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from langfuse.api import AsyncLangfuseAPI, CreateScoreRequest, ScoreDataType
from langfuse.api.core import ApiError, RequestOptions
from langfuse.api.scores import CreateScoreBatchResults
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from agent import lengths
from agent.engine.feedback import fence
from agent.text import storable
from agent.tracing.exporter import UNKNOWN_KEYS, Unavailable
from agent.tracing.observations import Observations
from agent.tracing.records import StoredScore, TraceRecord

log = logging.getLogger(__name__)

LONGER: Final = 4
"""By how much a server that answers late is waited for longer."""
LARGEST_BODY: Final = 3_000_000  # bytes before compression; a larger batch comes in halves
ONCE: Final = RequestOptions(max_retries=0)
TRACES_AT_ONCE: Final = 100
LANGFUSE_TRACES: Final = "/api/public/otel/v1/traces"
OTLP_TRACES: Final = "/v1/traces"
PROTOBUF: Final = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}


class Backend:
    """A server that takes spans in OpenTelemetry's protocol.

    `name` is what errors call it, `check` are the settings that they ask to be checked. A server
    that did not answer within `seconds` is given up to four times as long from then on.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        check: str,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> None:
        self.seconds = seconds
        self.http = httpx2.AsyncClient(
            auth=auth,
            timeout=seconds * LONGER,
            event_hooks={"response": [lengths.ends_at(lengths.SERVICE_BYTES)]},
        )
        self._url = url
        self._name = name
        self._check = check
        self._headers = {**PROTOBUF, **(headers or {})}
        self._longest = seconds * LONGER

    async def export(self, body: bytes) -> int:
        """Send an `ExportTraceServiceRequest`; return how many spans were not accepted.

        Raises:
            Unavailable: the server did not accept it.
        """
        packed = await asyncio.to_thread(gzip.compress, body, 1)
        async with self.bounded():
            response = await self.http.post(self._url, content=packed, headers=self._headers)
        if not response.is_success:
            raise self.answered(response.status_code, _message(response), response.headers)
        return _rejected(response)

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Make a request of the server, in bounded time.

        Raises:
            Unavailable: it was not done; in one line, whatever the reason.
        """
        seconds = self.seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except ApiError as error:
            said = error.body.get("message") if isinstance(error.body, dict) else ""
            raise self.answered(error.status_code or 0, said, error.headers or {}) from None
        except (httpx2.TimeoutException, TimeoutError):
            self.seconds = min(seconds * 2, self._longest)
            raise Unavailable(
                f"{self._name} did not answer within {seconds:g} s: check {self._check} and the "
                "network"
            ) from None
        except httpx2.HTTPError as error:
            kind = type(error).__name__
            raise Unavailable(
                f"{self._name} cannot be reached ({kind}): check {self._check} and the network"
            ) from None
        except ValueError:
            raise Unavailable(f"the answer is not {self._name}'s: check {self._check}", 0) from None

    def answered(self, status: int, said: object, headers: Mapping[str, str]) -> Unavailable:
        """Return the error that an answer stands for."""
        if status == 401 and self._name == "Langfuse":
            return Unavailable(UNKNOWN_KEYS, status)
        told = f": {fence(said, 200)}" if isinstance(said, str) and said else ""
        elsewhere = f"; check {self._check}" if status < 400 or status == 404 else ""
        wait = headers.get("retry-after", "")
        return Unavailable(
            f"{self._name} answered HTTP {status}{told}{elsewhere}",
            status,
            retry_after=float(wait) if wait.isascii() and wait.isdecimal() else 0.0,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()


class LangfuseApi(Backend):
    """The API of one project of Langfuse, by the client's own `api`."""

    def __init__(self, keys: tuple[str, str], base_url: str, *, seconds: float) -> None:
        self.base_url = base_url.rstrip("/")
        super().__init__(
            f"{self.base_url}{LANGFUSE_TRACES}",
            name="Langfuse",
            check="LANGFUSE_BASE_URL",
            seconds=seconds,
            headers={"x-langfuse-ingestion-version": "4"},
            auth=keys,
        )
        self.api = AsyncLangfuseAPI(
            base_url=self.base_url,
            username=keys[0],
            password=keys[1],
            httpx_client=cast(Any, self.http),  # the client of httpx's next generation
        )
        self._can_delete = True

    async def send_scores(self, scores: Sequence[StoredScore], environment: str | None) -> int:
        """Create or replace scores, and delete those without a value; return how many were refused.

        Raises:
            Unavailable: it was not done.
        """
        request = [score_request(score, environment) for score in scores if score.value is not None]
        refused = 0
        if request:
            async with self.bounded():
                answer = await self.api.scores.create(request=request, request_options=ONCE)
            refused = answer.rejected if isinstance(answer, CreateScoreBatchResults) else 0
        for score in scores:
            if score.value is None:
                await self._delete_score(score.score_id)
        return refused

    async def _delete_score(self, score_id: str) -> None:
        try:
            if self._can_delete:
                async with self.bounded():
                    await self.api.scores.delete(score_id, request_options=ONCE)
        except Unavailable as error:
            if error.status not in (404, 405, 501):
                raise
            if error.status != 404:
                self._can_delete = False
                log.warning("This Langfuse cannot delete scores: verdicts taken back stay there")

    async def delete_traces(self, user: str, before: datetime | None = None) -> int:
        """Delete the traces of a user that began before a moment; return how many there were.

        Langfuse deletes later, observations and scores too; asking again is no error.

        Raises:
            Unavailable: it was not done; what was deleted before stays deleted.
        """
        found, cursor = dict[str, None](), None
        while True:
            async with self.bounded():
                page = await self.api.observations.get_many(
                    user_id=user,
                    fields="core",
                    limit=TRACES_AT_ONCE,
                    cursor=cursor,
                    to_start_time=before,
                    request_options=ONCE,
                )
            found |= {item.trace_id: None for item in page.data if item.trace_id}
            cursor = page.meta.cursor
            if not cursor:
                break
        ids = [*found]
        for start in range(0, len(ids), TRACES_AT_ONCE):
            async with self.bounded():
                await self.api.trace.delete_multiple(
                    trace_ids=ids[start : start + TRACES_AT_ONCE], request_options=ONCE
                )
        return len(ids)


def score_request(score: StoredScore, environment: str | None) -> CreateScoreRequest:
    """Return a score as the API takes it: on the root span, where the list of traces shows it.

    Langfuse replaces a score only if it has the same id and the same timestamp.
    """
    value = score.value
    known: dict[str, Any] = {
        "observation_id": score.observation_id,
        "comment": storable(score.comment),
        "environment": environment,
    }
    return CreateScoreRequest(
        id=score.score_id,
        trace_id=score.trace_id,
        name=score.name,
        value=storable(value) if isinstance(value, str) else float(value or 0),
        data_type=ScoreDataType(score.kind),
        timestamp=score.at,
        **{name: value for name, value in known.items() if value},
    )


def sender(
    backend: Backend, observations: Callable[[], Observations], version: str
) -> Callable[[Sequence[TraceRecord]], Awaitable[int]]:
    """Return what sends traces to a backend; the client is loaded in a thread when one is sent."""

    def encode(traces: Sequence[TraceRecord]) -> bytes:
        return observations().encode(traces, version)

    async def send(traces: Sequence[TraceRecord]) -> int:
        body = await asyncio.to_thread(encode, traces)
        if len(body) > LARGEST_BODY and len(traces) > 1:
            raise Unavailable(f"{len(body)} bytes", 413)
        return await backend.export(body)

    return send


def _message(response: httpx2.Response) -> object:
    try:
        body = response.json()
    except ValueError:
        return ""
    return body.get("message") if isinstance(body, dict) else ""


def _rejected(response: httpx2.Response) -> int:
    """Return how many spans of an accepted request were not accepted.

    Raises:
        Unavailable: the answer is a web page.
    """
    media_type = response.headers.get("content-type", "")
    if media_type.startswith("text/html"):
        raise Unavailable("the answer is a web page: check the address of the backend", 0)
    try:
        if media_type.startswith("application/json"):
            return int(response.json().get("partialSuccess", {}).get("rejectedSpans", 0))
        answer = ExportTraceServiceResponse.FromString(response.content)
    except (DecodeError, AttributeError, ValueError):
        return 0
    return int(answer.partial_success.rejected_spans)
