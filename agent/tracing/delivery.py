"""Send traces and scores by HTTP, and delete them.

A failed request raises `Unavailable` with a one-line message. If the same request would fail again,
it raises the subclass `Refused`.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, Final, cast

import httpx2
from google.protobuf.message import DecodeError
from langfuse.api import (
    AsyncLangfuseAPI,
    CreateScoreRequest,
    NotFoundError,
    ScoreDataType,
)
from langfuse.api.core import ApiError, RequestOptions
from langfuse.api.scores import CreateScoreBatchResults
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from agent import size_limits
from agent.engine.errors import clip_quote
from agent.servers import limit_body
from agent.tracing.encoding import get_trace_encoder
from agent.tracing.langfuse_project import KEYS, Project, Refused, to_unavailable
from agent.tracing.records import TraceRecord

NO_RETRIES: Final = RequestOptions(max_retries=0)
PAGE_SIZE: Final = 100
"""The number of observations on one page of the search for traces to delete."""
PROTOBUF: Final = "application/x-protobuf"


class OtlpServer:
    """A server that accepts spans in OpenTelemetry's protocol (OTLP).

    `seconds` is the time limit of a request.
    """

    name = "The OTLP endpoint"
    settings_to_check = "OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"

    def __init__(
        self,
        project: Project,
        url: str,
        headers: Mapping[str, str],
        auth: tuple[str, str] | None = None,
        *,
        seconds: float,
    ) -> None:
        limit = limit_body(size_limits.SERVICE_RESPONSE_BYTES)
        hooks = {"response": [limit]}
        self.http = httpx2.AsyncClient(auth=auth, timeout=seconds, event_hooks=hooks)
        self.project = project
        self._url = url
        self._headers = {
            "Content-Type": PROTOBUF,
            "Content-Encoding": "gzip",
            **headers,
        }
        self._seconds = seconds

    async def send_trace(self, trace: TraceRecord) -> None:
        """Send a trace."""
        # The first call opens the Langfuse client, which would block the event loop.
        encoder = await asyncio.to_thread(get_trace_encoder, self.project)
        request = await asyncio.to_thread(encoder.encode, trace)
        await self.export(request)

    async def export(self, request: bytes) -> None:
        """Send an `ExportTraceServiceRequest`.

        Raises:
            Refused: the server rejected some or all of the spans.
            Unavailable: the request failed in another way.
        """
        packed = await asyncio.to_thread(gzip.compress, request, 1)
        async with self.limited_request():
            response = await self.http.post(
                self._url, content=packed, headers=self._headers
            )
            rejected = _find_rejected_spans(response)
        if rejected.rejected_spans:
            reason = clip_quote(rejected.error_message, 200)
            raise Refused(
                f"{self.name} refused {rejected.rejected_spans} spans: {reason}"
            )

    async def send_score(self, score: Any) -> None:
        """Do nothing: OpenTelemetry has no scores, so they stay in the database."""

    @asynccontextmanager
    async def limited_request(self) -> AsyncIterator[None]:
        """Limit the time of the request in the block, and turn its errors into `Unavailable`."""
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except (
            ApiError,
            httpx2.HTTPError,
            TimeoutError,
            ValueError,
            DecodeError,
        ) as error:
            raise to_unavailable(error, self.name, self.settings_to_check) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()


def _find_rejected_spans(response: httpx2.Response) -> ExportTracePartialSuccess:
    """Return the number of spans that the server rejected, and the reason that it gave.

    Raises:
        ApiError: the server has rejected the whole request.
        DecodeError, ValueError: the response is none to this request.
    """
    if not response.is_success:
        body = None
        with suppress(ValueError):
            body = response.json()
        raise ApiError(status_code=response.status_code, body=body)
    content_type = response.headers.get("content-type", "")
    if content_type.startswith("text/html"):
        # A proxy or another program has answered, so the address is wrong.
        raise ValueError("a web page")
    if content_type != PROTOBUF:
        # Only a response in Protobuf can name rejected spans. Some servers answer a success with
        # JSON, or with no body.
        return ExportTracePartialSuccess()
    answer = ExportTraceServiceResponse.FromString(response.content)
    rejected: ExportTracePartialSuccess = answer.partial_success
    return rejected


class LangfuseApi(OtlpServer):
    """Langfuse's API for one project. `api` is its generated client."""

    name = "Langfuse"
    settings_to_check = KEYS

    def __init__(self, project: Project, *, seconds: float) -> None:
        base_url = project.base_url.rstrip("/")
        traces_url = f"{base_url}/api/public/otel/v1/traces"
        headers = {"x-langfuse-ingestion-version": "4"}
        super().__init__(project, traces_url, headers, project.keys, seconds=seconds)
        self.api = AsyncLangfuseAPI(
            base_url=base_url,
            username=project.keys[0],
            password=project.keys[1],
            # httpx2 has the interface of httpx, but its own types.
            httpx_client=cast(Any, self.http),
        )

    async def send_score(self, score: Any) -> None:
        """Send a score to the server, or delete it there if it has no value.

        `score` has the columns of `db.models.ScoreRow`, which this package may not import.

        Raises:
            ValueError: the client does not accept a field of the score.
        """
        if score.value is None:
            await self._delete_score(score.score_id)
            return
        request = CreateScoreRequest(
            id=score.score_id,
            trace_id=score.trace_id,
            # The id of the root span. Langfuse's list of traces shows only scores of root spans.
            observation_id=score.observation_id,
            name=score.name,
            value=score.value,
            data_type=ScoreDataType(score.kind),
            comment=score.comment,
            environment=self.project.environment,
            # Langfuse replaces an earlier score only if both its id and its timestamp are the same.
            timestamp=score.at,
        )
        await self.create_score(request)

    async def create_score(self, score: CreateScoreRequest) -> None:
        """Create or replace a score.

        The request holds one score instead of a list of scores. Servers of all versions accept
        that, but only servers from 4.59 on accept a list.
        """
        async with self.limited_request():
            # The client's method is typed for a list, but serializes any object that it gets.
            request = cast(Any, score)
            answer = await self.api.scores.create(
                request=request, request_options=NO_RETRIES
            )
        # A server reports a rejected score in a successful response (HTTP 207).
        if isinstance(answer, CreateScoreBatchResults) and answer.rejected:
            reasons = "; ".join(error.message for error in answer.errors)
            raise Refused(f"Langfuse refused a score: {clip_quote(reasons, 200)}")

    async def _delete_score(self, score_id: str) -> None:
        async with self.limited_request():
            with suppress(NotFoundError):
                await self.api.scores.delete(score_id, request_options=NO_RETRIES)

    async def delete_traces(self, user: str, before: datetime | None = None) -> bool:
        """Request the deletion of a user's traces, and return whether any were found.

        With `before`, only traces that began before this time are deleted. Langfuse deletes a trace
        with its observations and scores some time after the request. Until then the trace is found
        again, and another request for it is no error.
        """
        has_traces = False
        cursor = None
        while True:
            async with self.limited_request():
                page = await self.api.observations.get_many(
                    user_id=user,
                    to_start_time=before,
                    fields="core",
                    limit=PAGE_SIZE,
                    cursor=cursor,
                    request_options=NO_RETRIES,
                )
                ids = {item.trace_id for item in page.data if item.trace_id}
                if ids:
                    has_traces = True
                    await self.api.trace.delete_multiple(
                        trace_ids=sorted(ids), request_options=NO_RETRIES
                    )
            cursor = page.meta.cursor
            if not cursor:
                return has_traces
