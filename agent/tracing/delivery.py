"""Send traces and scores by HTTP, and delete them.

A failed request raises `Unavailable` with a one-line message, and `Refused` if it will fail again.
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
    ExportTraceServiceResponse,
)

from agent import size_limits
from agent.engine.errors import quoted
from agent.servers import limit_body
from agent.tracing.encoding import get_trace_encoder
from agent.tracing.langfuse_project import KEYS, Project, Refused, to_unavailable
from agent.tracing.records import TraceRecord

NO_RETRIES: Final = RequestOptions(max_retries=0)
PAGE_SIZE: Final = 100  # of the search for traces to delete
PROTOBUF: Final = "application/x-protobuf"


class OtlpServer:
    """A server that takes spans in OpenTelemetry's protocol; a request takes at most `seconds`."""

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
        encoder = await asyncio.to_thread(get_trace_encoder, self.project)
        request = await asyncio.to_thread(encoder.encode, trace)
        await self.export(request)

    async def export(self, request: bytes) -> None:
        """Send an `ExportTraceServiceRequest`.

        Raises:
            Refused: the server does not accept some spans, or all.
        """
        packed = await asyncio.to_thread(gzip.compress, request, 1)
        async with self.bounded():
            response = await self.http.post(
                self._url, content=packed, headers=self._headers
            )
            if not response.is_success:
                body = None
                with suppress(ValueError):
                    body = response.json()
                raise ApiError(status_code=response.status_code, body=body)
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/html"):
                raise ValueError("a web page")
            if kind != PROTOBUF:  # JSON or no body: all were accepted
                return
            answer = ExportTraceServiceResponse.FromString(
                response.content
            ).partial_success
        if answer.rejected_spans:
            words = quoted(answer.error_message, 200)
            raise Refused(f"{self.name} refused {answer.rejected_spans} spans: {words}")

    async def send_score(self, score: Any) -> None:
        """Do nothing: OpenTelemetry has no scores, so they are only in the local store."""

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Limit the time of a request in the block, and raise `Unavailable` if it fails."""
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


class LangfuseApi(OtlpServer):
    """Langfuse's API for one project; `api` is its generated client."""

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
            httpx_client=cast(
                Any, self.http
            ),  # httpx2 has httpx's interface, but other types
        )

    async def send_score(self, score: Any) -> None:
        """Create or replace a score, a row of `db.models.ScoreRow`; delete it if it has no value.

        Raises:
            ValueError: the row is not what the client takes.
        """
        if score.value is None:
            async with self.bounded():
                with suppress(NotFoundError):
                    await self.api.scores.delete(
                        score.score_id, request_options=NO_RETRIES
                    )
            return
        request = CreateScoreRequest(
            id=score.score_id,
            trace_id=score.trace_id,
            observation_id=score.observation_id,  # of the root: the trace list shows its score
            name=score.name,
            value=score.value,
            data_type=ScoreDataType(score.kind),
            comment=score.comment,
            environment=self.project.environment,
            timestamp=score.at,  # Langfuse replaces a score only if this is the same, too
        )
        await self.create_score(request)

    async def create_score(self, score: CreateScoreRequest) -> None:
        """Create or replace a score.

        It goes out alone and not in a list: servers of every version take it so, and lists only
        from 4.59 on.
        """
        async with self.bounded():
            request = cast(Any, score)  # the client's method sends what it gets
            answer = await self.api.scores.create(
                request=request, request_options=NO_RETRIES
            )
        if isinstance(answer, CreateScoreBatchResults) and answer.rejected:
            reasons = "; ".join(error.message for error in answer.errors)
            raise Refused(f"Langfuse refused a score: {quoted(reasons, 200)}")

    async def delete_traces(self, user: str, before: datetime | None = None) -> bool:
        """Delete a user's traces that began before a time, or all; return whether there are any.

        Langfuse deletes them later, with observations and scores; deleting twice is not an error.
        """
        has_traces = False
        cursor = None
        while True:
            async with self.bounded():
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
                    delete = self.api.trace.delete_multiple
                    await delete(trace_ids=sorted(ids), request_options=NO_RETRIES)
            cursor = page.meta.cursor
            if not cursor:
                return has_traces
