"""Turn recorded traces into observations of Langfuse's client, which makes their attributes.

A turn is recorded as plain data and becomes observations after it has ended: its tags are known
then, and no turn waits for the client.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any, Final

from langfuse import Langfuse, propagate_attributes
from langfuse.api import Prompt_Text
from langfuse.model import TextPromptClient
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id

from agent.tracing.records import SpanRecord, TraceRecord


@dataclass(frozen=True, slots=True)
class Project:
    """A project of Langfuse, and what traces tell of this deployment."""

    keys: tuple[str, str]
    base_url: str
    version: str = ""


def langfuse_client(
    project: Project, *, span_exporter: SpanExporter | None = None, seconds: int | None = None
) -> Langfuse:
    """Return Langfuse's client. It sends spans itself unless a `span_exporter` takes them."""
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


class Observations:
    """Encode recorded traces for OpenTelemetry's protocol, by the client of a project."""

    def __init__(self, project: Project) -> None:
        self._finished = InMemorySpanExporter()
        self.client = langfuse_client(project, span_exporter=self._finished)
        self._lock = Lock()

    def encode(self, traces: Sequence[TraceRecord]) -> bytes:
        """Return an `ExportTraceServiceRequest` of all spans of these traces."""
        observed = dict[str, SpanRecord]()
        with self._lock:
            for trace in traces:
                observed |= observe(self.client, trace)
                self.client.flush()
            finished = self._finished.get_finished_spans()
            self._finished.clear()
        # A trace that could not be observed whole may have left some before.
        ours = [span for span in finished if format_span_id(span.context.span_id) in observed]
        request = encode_spans(ours)
        for scope in (scope for batch in request.resource_spans for scope in batch.scope_spans):
            for span in scope.spans:
                # The client made ids and times of its own, and other ones if it were sent again.
                record = observed[span.span_id.hex()]
                span.trace_id = bytes.fromhex(record.trace.trace_id)
                span.span_id = bytes.fromhex(record.span_id)
                span.parent_span_id = bytes.fromhex(record.parent_id or "")
                span.start_time_unix_nano = record.started_ns
                span.end_time_unix_nano = record.ended_ns or record.started_ns
        return bytes(request.SerializeToString())


observations_of: Final = cache(Observations)
"""Return the observations of a project: one object in a process, as Langfuse's client is one."""


def observe(client: Langfuse, trace: TraceRecord) -> dict[str, SpanRecord]:
    """Make an observation of each span of a trace, below the current one if there is one.

    The observations take as long as the spans did. Return the spans by the observations' ids.
    """
    made: dict[str | None, Any] = {}
    with propagate_attributes(
        user_id=trace.user,
        session_id=trace.session,
        trace_name=trace.name,
        tags=list(trace.tags) or None,
    ):
        for span in trace.spans:
            parent = made.get(span.parent_id, client)
            made[span.span_id] = parent.start_observation(**fields_of(span))
    now = time.time_ns()
    for span in trace.spans:
        made[span.span_id].end(end_time=now + int(span.seconds * 1e9))
    return {made[span.span_id].id: span for span in trace.spans}


def fields_of(span: SpanRecord) -> dict[str, Any]:
    """Return the arguments of `start_observation` for a span."""
    # Beside a level the list of observations shows kinds of errors, never the text of one.
    kinds = map(span.metadata.get, ("error_types", "error_type", "send_error", "error"))
    reason = next(filter(None, kinds), None) if span.level != "DEFAULT" else None
    fields: dict[str, Any] = {
        "name": span.name,
        "as_type": span.kind,
        "input": {"tools": span.tools, "messages": span.input} if span.tools else span.input,
        "output": span.output,
        "metadata": span.metadata,
        "level": span.level,
        "status_message": reason,
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
        fields["usage_details"] = {  # Langfuse adds them up, so none contains another
            "input": usage.prompt_tokens - cached,
            "input_cached_tokens": cached,
            "output": usage.completion_tokens,
        }
    if began := span.first_token_ns:
        fields["completion_start_time"] = datetime.fromtimestamp(began / 1e9, UTC)
    if prompt := span.prompt:
        version = {"name": prompt.name, "version": prompt.version, "prompt": ""}
        linked = Prompt_Text(**version, config={}, labels=[], tags=[])
        fields["prompt"] = TextPromptClient(linked, is_fallback=prompt.is_fallback)
        known = {"prompt_name": prompt.name, "prompt_version": prompt.origin}
        fields["metadata"] = span.metadata | known | {"prompt_label": prompt.label or None}
    return fields
