"""Convert recorded traces to Langfuse observations, and send them and their scores by HTTP.

A turn is recorded as plain data and converted when it is over: only then are its tags known, and it
need not wait for the client. A failed request raises `Unavailable` with a one-line message.
"""

import asyncio
import gzip
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any, Final, cast

import httpx2
from langfuse import Langfuse, propagate_attributes
from langfuse.api import AsyncLangfuseAPI, CreateScoreRequest, Prompt_Text, ScoreDataType
from langfuse.api.core import ApiError, RequestOptions
from langfuse.model import TextPromptClient
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id

from agent import size_limits
from agent.tracing.langfuse_project import KEYS, Project, Unavailable, to_unavailable
from agent.tracing.records import SpanRecord, TraceRecord

NO_RETRIES: Final = RequestOptions(max_retries=0)
PAGE_SIZE: Final = 100  # of the search for traces to delete
HEADERS: Final = {"x-langfuse-ingestion-version": "4"}
PROTOBUF: Final = "application/x-protobuf"
NOT_DELETABLE: Final = (404, 405, 501)  # the score is absent, or the server cannot delete scores


def langfuse_client(
    project: Project, *, span_exporter: SpanExporter | None = None, seconds: int | None = None
) -> Langfuse:
    """Return Langfuse's client, and mute its log. A `span_exporter` replaces its own sending."""
    logging.getLogger("langfuse").setLevel(logging.CRITICAL)  # errors are logged by our callers
    service = Resource.create({"service.name": "sommelier", "service.version": project.version})
    return Langfuse(
        public_key=project.keys[0],
        secret_key=project.keys[1],
        base_url=project.base_url,
        timeout=seconds,
        environment="default",
        release=project.version,
        tracer_provider=TracerProvider(resource=service),
        span_exporter=span_exporter,
    )


class TraceEncoder:
    """Encodes recorded traces in OpenTelemetry's format, using a project's Langfuse client."""

    def __init__(self, project: Project) -> None:
        self._finished = InMemorySpanExporter()
        self.client = langfuse_client(project, span_exporter=self._finished)
        self._lock = Lock()

    def encode(self, traces: Sequence[TraceRecord]) -> bytes:
        """Return an `ExportTraceServiceRequest` of the spans, replayed through the client."""
        observed = dict[str, SpanRecord]()
        with self._lock:
            for trace in traces:
                observed |= observe(self.client, trace)
                self.client.flush()
            finished = self._finished.get_finished_spans()
            self._finished.clear()
        # An earlier trace that failed halfway may have left spans in the exporter: skip them.
        ours = [span for span in finished if format_span_id(span.context.span_id) in observed]
        request = encode_spans(ours)
        for scope in (scope for batch in request.resource_spans for scope in batch.scope_spans):
            for span in scope.spans:
                # Put back the recorded ids and times, so that a repeated request replaces these.
                record = observed[span.span_id.hex()]
                span.trace_id = bytes.fromhex(record.trace.trace_id)
                span.span_id = bytes.fromhex(record.span_id)
                span.parent_span_id = bytes.fromhex(record.parent_id or "")
                span.start_time_unix_nano = record.started_ns
                span.end_time_unix_nano = record.ended_ns or record.started_ns
        return bytes(request.SerializeToString())


_open_lock: Final = Lock()
_cached_encoder: Final = cache(TraceEncoder)


def get_trace_encoder(project: Project) -> TraceEncoder:
    """Return the only `TraceEncoder` of a project: Langfuse's client is a singleton, too."""
    with _open_lock:  # two encoders would share a client, and one of them would get no spans
        return _cached_encoder(project)


def observe(client: Langfuse, trace: TraceRecord) -> dict[str, SpanRecord]:
    """Create an observation for each span of a trace, below the current observation, if any.

    The observations last as long as the spans did. Return the spans by observation id.
    """
    observations: dict[str | None, Any] = {}
    with propagate_attributes(
        user_id=trace.user,
        session_id=trace.session,
        trace_name=trace.name,
        tags=list(trace.tags) or None,
    ):
        for span in trace.spans:
            parent = observations.get(span.parent_id, client)
            observations[span.span_id] = parent.start_observation(**_observation_fields(span))
    now = time.time_ns()  # `encode` puts back the recorded times
    for span in trace.spans:
        observations[span.span_id].end(end_time=now + int(span.seconds * 1e9))
    return {observations[span.span_id].id: span for span in trace.spans}


def _observation_fields(span: SpanRecord) -> dict[str, Any]:
    """Return the arguments of `start_observation` for a span."""
    # The status message shows types of errors, never their texts.
    errors = map(span.metadata.get, ("error_types", "error_type", "send_error", "error"))
    fields: dict[str, Any] = {
        "name": span.name,
        "as_type": span.kind,
        "input": {"tools": span.tools, "messages": span.input} if span.tools else span.input,
        "output": span.output,
        "metadata": span.metadata,
        "level": span.level,
        "status_message": next(filter(None, errors), None) if span.level != "DEFAULT" else None,
    }
    if span.kind != "generation":
        return fields
    fields |= {
        "model": span.model,
        "model_parameters": span.model_parameters,
        "cost_details": span.costs or (span.cost_usd and {"total": span.cost_usd}),
    }
    if usage := span.usage:
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        fields["usage_details"] = {  # Langfuse adds these up, so they must not overlap
            "input": usage.prompt_tokens - cached,
            "input_cached_tokens": cached,
            "output": usage.completion_tokens,
        }
    if began := span.first_token_ns:
        fields["completion_start_time"] = datetime.fromtimestamp(began / 1e9, UTC)
    if prompt := span.prompt:
        version = {"name": prompt.name, "version": prompt.version, "prompt": ""}  # a link only
        prompt_link = Prompt_Text(**version, config={}, labels=[], tags=[])
        fields["prompt"] = TextPromptClient(prompt_link, is_fallback=prompt.is_fallback)
        prompt_fields = {"prompt_name": prompt.name, "prompt_version": prompt.origin}
        fields["metadata"] = span.metadata | prompt_fields | {"prompt_label": prompt.label or None}
    return fields


class Backend:
    """A server that takes spans in OpenTelemetry's protocol; a request takes at most `seconds`."""

    name = "The OTLP endpoint"
    settings_to_check = "OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"

    def __init__(
        self,
        project: Project,
        url: str,
        headers: dict[str, str],
        auth: tuple[str, str] | None = None,
        *,
        seconds: float,
    ) -> None:
        self.http = httpx2.AsyncClient(
            auth=auth,
            timeout=seconds,
            event_hooks={"response": [size_limits.limit_body(size_limits.SERVICE_RESPONSE_BYTES)]},
        )
        self._project = project
        self._url = url
        self._headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip", **headers}
        self._seconds = seconds

    async def send_traces(self, traces: Sequence[TraceRecord]) -> int:
        """Send traces; return how many spans were not accepted."""
        return await self.export(await asyncio.to_thread(self._encode, traces))

    def _encode(self, traces: Sequence[TraceRecord]) -> bytes:
        return get_trace_encoder(self._project).encode(traces)

    async def export(self, body: bytes) -> int:
        """Send an `ExportTraceServiceRequest`; return how many spans were not accepted."""
        packed = await asyncio.to_thread(gzip.compress, body, 1)
        async with self.bounded():
            response = await self.http.post(self._url, content=packed, headers=self._headers)
            if not response.is_success:
                raise ApiError(status_code=response.status_code)
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/html"):
                raise ValueError("a web page")
        if kind != PROTOBUF:  # JSON or no body: all were accepted
            return 0
        answer = ExportTraceServiceResponse.FromString(response.content)
        return int(answer.partial_success.rejected_spans)

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Limit the time of a request in the block, and raise `Unavailable` if it fails."""
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except (ApiError, httpx2.HTTPError, TimeoutError, ValueError) as error:
            raise to_unavailable(error, self.name, self.settings_to_check) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()


class LangfuseApi(Backend):
    """Langfuse's API for one project; `api` is its generated client."""

    name = "Langfuse"
    settings_to_check = KEYS

    def __init__(self, project: Project, *, seconds: float) -> None:
        base_url, keys = project.base_url.rstrip("/"), project.keys
        traces_url = f"{base_url}/api/public/otel/v1/traces"
        super().__init__(project, traces_url, HEADERS, keys, seconds=seconds)
        self.api = AsyncLangfuseAPI(
            base_url=base_url,
            username=keys[0],
            password=keys[1],
            httpx_client=cast(Any, self.http),  # httpx2 has httpx's interface, but other types
        )

    async def send_scores(self, scores: Sequence[Any]) -> int:
        """Create or replace scores, and delete those without a value; return how many were refused.

        They are rows of `db.models.ScoreRow`. Langfuse replaces a score only if it has the same id
        and the same timestamp.
        """
        requests = [
            CreateScoreRequest(
                id=score.score_id,
                trace_id=score.trace_id,
                observation_id=score.observation_id,  # of the root: the trace list shows its score
                name=score.name,
                value=score.value if isinstance(score.value, str) else float(score.value),
                data_type=ScoreDataType(score.kind),
                comment=score.comment,
                environment="default",
                timestamp=score.at,
            )
            for score in scores
            if score.value is not None
        ]
        refused = 0
        if requests:
            async with self.bounded():
                answer = await self.api.scores.create(request=requests, request_options=NO_RETRIES)
            refused = int(getattr(answer, "rejected", 0))
        for score in [score for score in scores if score.value is None]:
            try:
                async with self.bounded():
                    await self.api.scores.delete(score.score_id, request_options=NO_RETRIES)
            except Unavailable as error:
                if error.status not in NOT_DELETABLE:
                    raise
        return refused

    async def delete_traces(self, user: str, before: datetime | None = None) -> int:
        """Delete a user's traces that began before a time, or all; return their number.

        Langfuse deletes them later, with observations and scores; deleting twice is not an error.
        """
        found, cursor = set[str](), None
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
                    delete = self.api.trace.delete_multiple
                    await delete(trace_ids=sorted(ids), request_options=NO_RETRIES)
            found |= ids
            if not (cursor := page.meta.cursor):
                return len(found)
