"""Turn recorded traces into observations of Langfuse's client, which makes their attributes.

A turn is recorded as plain data and becomes observations after it has ended: its tags are known
then, and no turn waits for the client. OpenTelemetry's provider takes ids and times of the record.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Tracer

from agent.engine.messages import Usage
from agent.engine.span import PromptRef
from agent.text import storable
from agent.tracing.records import SpanRecord, TraceRecord

MAX_ATTRIBUTE_CHARS: Final = 100_000
REASONS: Final = ("error_types", "error_type", "send_error", "error")
OPERATIONS: Final = {
    "agent": ("invoke_agent", "AGENT"),
    "generation": ("chat", "LLM"),
    "tool": ("execute_tool", "TOOL"),
    "retriever": ("retrieval", "RETRIEVER"),
    "guardrail": ("guardrail", "GUARDRAIL"),
    "span": ("span", "CHAIN"),
}
"""The types of spans in OpenTelemetry's conventions for generative AI, and in OpenInference's."""

_replayed: ContextVar[tuple[TraceRecord, SpanRecord] | None] = ContextVar("replayed", default=None)
"""The span that is being opened from a record; None while the client opens spans of its own."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project of Langfuse, and what traces tell of this deployment.

    With `conventions` spans also have the attributes that other backends read.
    """

    keys: tuple[str, str]
    base_url: str
    environment: str | None = None
    version: str = ""
    conventions: bool = False


def langfuse_client(
    project: Project, *, span_exporter: SpanExporter | None = None, seconds: float | None = None
) -> Langfuse:
    """Return Langfuse's client. It sends spans itself unless a `span_exporter` takes them."""
    service = {
        "service.name": "sommelier",
        "service.version": project.version,
        "deployment.environment.name": project.environment or "",
    }
    logging.getLogger("langfuse").setLevel(logging.CRITICAL)  # errors are logged by our callers
    provider = _Provider(
        resource=Resource.create({name: value for name, value in service.items() if value}),
        span_limits=SpanLimits(max_span_attribute_length=MAX_ATTRIBUTE_CHARS),
        id_generator=_Ids(),
    )
    provider.conventions = project.conventions
    return Langfuse(
        public_key=project.keys[0],
        secret_key=project.keys[1],
        base_url=project.base_url,
        timeout=None if seconds is None else max(1, round(seconds)),
        environment=project.environment,
        release=project.version or None,
        tracer_provider=provider,
        span_exporter=span_exporter,
    )


class _Ids(RandomIdGenerator):
    """Gives replayed spans the ids of their records."""

    def generate_trace_id(self) -> int:
        replayed = _replayed.get()
        return int(replayed[0].trace_id, 16) if replayed else super().generate_trace_id()

    def generate_span_id(self) -> int:
        replayed = _replayed.get()
        return int(replayed[1].span_id, 16) if replayed else super().generate_span_id()


class _Provider(TracerProvider):
    conventions = False

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        return _Tracer(super().get_tracer(*args, **kwargs), self.conventions)


class _Tracer(Tracer):
    """Starts replayed spans when their records did."""

    def __init__(self, tracer: Tracer, conventions: bool) -> None:
        self._tracer = tracer
        self._conventions = conventions

    def start_span(self, *args: Any, **kwargs: Any) -> Any:
        if replayed := _replayed.get():
            kwargs["start_time"] = replayed[1].started_ns
            if self._conventions:
                kwargs["attributes"] = conventional(*replayed)
        return self._tracer.start_span(*args, **kwargs)

    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
        return self._tracer.start_as_current_span(*args, **kwargs)


class Observations:
    """Encode recorded traces for OpenTelemetry's protocol, by the client of a project."""

    def __init__(self, project: Project) -> None:
        self._finished = InMemorySpanExporter()
        self.client = langfuse_client(project, span_exporter=self._finished)
        self._version = project.version
        self._lock = Lock()

    def encode(self, traces: Sequence[TraceRecord]) -> bytes:
        """Return an `ExportTraceServiceRequest` of all spans of these traces."""
        with self._lock:
            self._finished.clear()
            for trace in traces:
                observe(self.client, trace, self._version)
                self.client.flush()
            spans = self._finished.get_finished_spans()
        body: bytes = encode_spans(spans).SerializeToString()
        return body


observations_of: Final = cache(Observations)
"""Return the observations of a project: one object in a process, as Langfuse's client is one."""


def observe(client: Langfuse, trace: TraceRecord, version: str = "") -> None:
    """Open and end an observation for each span of a trace, below the current one if there is one.

    `propagate_attributes` sets tags, session and user on all of them.
    """
    with propagate_attributes(
        user_id=trace.user,
        session_id=trace.session,
        trace_name=trace.name,
        tags=list(trace.tags) or None,
        version=version or None,
    ):
        opened: dict[str | None, Any] = {}
        for span in trace.spans:
            parent = opened.get(span.parent_id, client)
            with _replaying(trace, span):
                opened[span.span_id] = parent.start_observation(**fields_of(span))
        for span in trace.spans:
            opened[span.span_id].end(end_time=span.ended_ns or span.started_ns)


@contextmanager
def _replaying(trace: TraceRecord, span: SpanRecord) -> Iterator[None]:
    token = _replayed.set((trace, span))
    try:
        yield
    finally:
        _replayed.reset(token)


def fields_of(span: SpanRecord) -> dict[str, Any]:
    """Return the arguments of `start_observation` for a span."""
    messages = {"tools": span.tools, "messages": span.input} if span.tools else span.input
    fields: dict[str, Any] = {
        "name": span.name,
        "as_type": span.kind,
        "input": _storable(messages),
        "output": _storable(span.output),
        "metadata": {key: _storable(value) for key, value in span.metadata.items()},
        "level": span.level,
        "status_message": _failure(span) or None,
    }
    return fields | _generation(span) if span.kind == "generation" else fields


def _storable(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


def _failure(span: SpanRecord) -> str:
    """Return what the list shows beside a level: kinds of errors, never the text of one."""
    if span.level == "DEFAULT":
        return ""
    return next((str(span.metadata[key]) for key in REASONS if span.metadata.get(key)), "")


def _generation(span: SpanRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "model": span.model,
        "model_parameters": span.model_parameters,
        "usage_details": usage_buckets(span.usage) if span.usage else None,
        "cost_details": None if span.cost_usd is None else span.costs or {"total": span.cost_usd},
    }
    if span.first_token_ns is not None:
        fields["completion_start_time"] = datetime.fromtimestamp(span.first_token_ns / 1e9, UTC)
    if span.prompt is not None:
        fields["prompt"] = _prompt(span.prompt)
        fields["metadata"] = span.metadata | {
            "prompt_name": span.prompt.name,
            "prompt_version": span.prompt.origin,
            "prompt_label": span.prompt.label or None,
        }
    return fields


def usage_buckets(usage: Usage) -> dict[str, int]:
    """Return tokens as Langfuse prices them: it adds buckets up, so none contains another."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    return {
        "input": usage.prompt_tokens - cached,
        "input_cached_tokens": cached,
        "output": usage.completion_tokens,
    }


def _prompt(ref: PromptRef) -> TextPromptClient:
    """Return the version that a generation is linked to; the client links no fallback."""
    labels = [ref.label] if ref.label else []
    prompt = Prompt_Text(
        name=ref.name, version=ref.version, prompt="", config={}, labels=labels, tags=[]
    )
    return TextPromptClient(prompt, is_fallback=ref.is_fallback)


def conventional(trace: TraceRecord, span: SpanRecord) -> Mapping[str, Any]:
    """Return the attributes of a span by the conventions that other backends read."""
    operation, kind = OPERATIONS[span.kind]
    attributes = {
        "openinference.span.kind": kind,
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": trace.session,
        "gen_ai.request.model": span.model,
        "gen_ai.usage.input_tokens": span.usage.prompt_tokens if span.usage else None,
        "gen_ai.usage.output_tokens": span.usage.completion_tokens if span.usage else None,
        "gen_ai.tool.name": span.name.removeprefix("tool.") if span.kind == "tool" else None,
        "error.type": span.metadata.get("error_type"),
        "input.value": None if span.input is None else str(span.input),
        "output.value": None if span.output is None else str(span.output),
    }
    return {name: value for name, value in attributes.items() if value is not None}
