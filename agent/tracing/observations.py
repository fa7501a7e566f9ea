"""Recorded traces as observations of Langfuse's client, which makes every attribute of them.

A turn is recorded as plain data and becomes observations when it has ended: its tags are known
then, and no turn waits for the client. OpenTelemetry's provider takes ids and times of the record.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

from langfuse import Langfuse, propagate_attributes
from langfuse._utils.serializer import EventSerializer
from langfuse.api import Prompt_Text
from langfuse.model import TextPromptClient
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Tracer

from agent.engine.messages import Usage
from agent.engine.span import PromptRef
from agent.text import storable
from agent.tracing.records import SpanRecord, TraceRecord

LONGEST_ATTRIBUTE: Final = 100_000  # characters
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
"""The span that is being opened from a record; none while the client opens spans of its own."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Tells deployments and versions apart."""

    environment: str | None = None
    version: str = ""


def langfuse_client(
    keys: tuple[str, str],
    base_url: str,
    origin: Origin,
    *,
    mask: Callable[[object], object] | None = None,
    span_exporter: SpanExporter | None = None,
    seconds: float | None = None,
    processors: Sequence[SpanProcessor] = (),
) -> Langfuse:
    """Return Langfuse's client, whose provider takes ids and times of recorded spans.

    It sends spans itself unless a `span_exporter` takes them.
    """
    service = {
        "service.name": "sommelier",
        "service.version": origin.version,
        "deployment.environment.name": origin.environment or "",
    }
    logging.getLogger("langfuse").setLevel(logging.CRITICAL)  # errors are told where they matter
    provider = ReplayProvider(
        resource=Resource.create({name: value for name, value in service.items() if value}),
        span_limits=SpanLimits(max_span_attribute_length=LONGEST_ATTRIBUTE),
        id_generator=ReplayedIds(),
    )
    for processor in processors:
        provider.add_span_processor(processor)
    return Langfuse(
        public_key=keys[0],
        secret_key=keys[1],
        base_url=base_url,
        timeout=None if seconds is None else max(1, round(seconds)),
        environment=origin.environment,
        release=origin.version or None,
        mask=None if mask is None else lambda *, data, **_: mask(_plain(data)),
        tracer_provider=provider,
        span_exporter=span_exporter,
    )


def _plain(data: object) -> object:
    """Return data as the client writes it, with references to the pictures that it uploads."""
    return json.loads(json.dumps(data, cls=EventSerializer))


class ReplayedIds(RandomIdGenerator):
    """Gives spans the ids of their records."""

    def generate_trace_id(self) -> int:
        """Return the id of the replayed trace, else a random one."""
        replayed = _replayed.get()
        return int(replayed[0].trace_id, 16) if replayed else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the id of the replayed span, else a random one."""
        replayed = _replayed.get()
        return int(replayed[1].span_id, 16) if replayed else super().generate_span_id()


class ReplayProvider(TracerProvider):
    """Makes tracers whose spans begin when their records say so."""

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        """Return a tracer."""
        return _ReplayTracer(super().get_tracer(*args, **kwargs))


class _ReplayTracer(Tracer):
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def start_span(self, *args: Any, **kwargs: Any) -> Any:
        if replayed := _replayed.get():
            kwargs["start_time"] = replayed[1].started_ns
        return self._tracer.start_span(*args, **kwargs)

    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
        return self._tracer.start_as_current_span(*args, **kwargs)


class Conventions(SpanProcessor):
    """Adds attributes by OpenTelemetry's and OpenInference's conventions, for other backends."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Set what is known of the record of a span."""
        if replayed := _replayed.get():
            span.set_attributes(conventional(*replayed))


class Observations:
    """Makes requests of OpenTelemetry's protocol of recorded traces, by the client of a project."""

    def __init__(self, client: Langfuse, finished: InMemorySpanExporter) -> None:
        self.client = client
        self._finished = finished
        self._lock = Lock()

    def encode(self, traces: Sequence[TraceRecord], version: str) -> bytes:
        """Return an `ExportTraceServiceRequest` of all spans of these traces."""
        with self._lock:
            self._finished.clear()
            for trace in traces:
                observe(self.client, trace, version)
                self.client.flush()
            spans = self._finished.get_finished_spans()
        body: bytes = encode_spans(spans).SerializeToString()
        return body


_open: Final[dict[str, Observations]] = {}
_opening: Final = Lock()


def observations_of(
    keys: tuple[str, str],
    base_url: str,
    origin: Origin,
    *,
    mask: Callable[[object], object] | None = None,
    conventions: bool = False,
) -> Observations:
    """Return the observations of a project, one object for each public key of this process.

    Langfuse's client is one for each, too: it is loaded here, which takes a second.
    """
    with _opening:
        if keys[0] not in _open:
            finished = InMemorySpanExporter()
            client = langfuse_client(
                keys,
                base_url,
                origin,
                mask=mask,
                span_exporter=finished,
                processors=[Conventions()] if conventions else [],
            )
            _open[keys[0]] = Observations(client, finished)
        return _open[keys[0]]


def observe(client: Langfuse, trace: TraceRecord, version: str = "") -> None:
    """Open and end an observation for each span of a trace, below the current one if there is one.

    Tags, session and user stand on all of them, as `propagate_attributes` has it.
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
    """Return what Langfuse's client is told of a span."""
    messages = {"tools": span.tools, "messages": span.input} if span.tools else span.input
    fields: dict[str, Any] = {
        "name": span.name,
        "as_type": span.kind,
        "input": _sendable(messages),
        "output": _sendable(span.output),
        "metadata": {key: _sendable(value) for key, value in span.metadata.items()},
        "level": span.level,
        "status_message": _failure(span) or None,
    }
    return fields | _generation(span) if span.kind == "generation" else fields


def _sendable(value: object) -> object:
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
    """Return the version of a prompt that a generation is linked to; no fallback is."""
    labels = [ref.label] if ref.label else []
    prompt = Prompt_Text(
        name=ref.name, version=ref.version, prompt="", config={}, labels=labels, tags=[]
    )
    return TextPromptClient(prompt, is_fallback=ref.is_fallback)


def conventional(trace: TraceRecord, span: SpanRecord) -> Mapping[str, Any]:
    """Return the attributes of a span by the conventions that other backends read."""
    operation, kind = OPERATIONS[span.kind]
    named = {
        "openinference.span.kind": kind,
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": trace.session,
        "gen_ai.request.model": span.model,
        "gen_ai.usage.input_tokens": span.usage.prompt_tokens if span.usage else None,
        "gen_ai.usage.output_tokens": span.usage.completion_tokens if span.usage else None,
        "gen_ai.tool.name": span.name.removeprefix("tool.") if span.kind == "tool" else None,
        "error.type": span.metadata.get("error_type"),
        "input.value": span.input if span.input is None else str(span.input),
        "output.value": span.output if span.output is None else str(span.output),
    }
    return {name: value for name, value in named.items() if value is not None}
