"""A trace as Langfuse takes it: OpenTelemetry's protobuf, with Langfuse's attributes. Pure.

Whole records are encoded here rather than spans opened through Langfuse's client: it has no way to
give a span its ids and times afterwards, and costs many times as much.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from agent.engine.messages import Usage
from agent.engine.trace_records import SpanRecord, TraceRecord

LONGEST_ATTRIBUTE: Final = 100_000  # characters
LONGEST_ID: Final = 200  # characters; Langfuse drops longer ones
OBSERVATION: Final = "langfuse.observation."
REASONS: Final = ("error_types", "error_type", "send_error", "error")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who sends: the project's public key, and what tells deployments and versions apart.

    Without a release of its own a deployment has this product's version.
    """

    public_key: str
    environment: str | None = None
    release: str | None = None
    version: str | None = None

    @property
    def attributes(self) -> dict[str, str]:
        """As they stand on every span."""
        return _given(
            {
                "langfuse.environment": self.environment,
                "langfuse.release": self.release or self.version,
                "langfuse.version": self.version,
            }
        )

    @property
    def resource(self) -> dict[str, str]:
        """As they stand once in a request."""
        service = {"service.name": "sommelier", "service.version": self.version}
        return _given(service) | {"telemetry.sdk.language": "python"}


@cache
def dialect() -> str:
    """The version of Langfuse's client whose attributes these are.

    By it a server knows that metadata is JSON, strings included: without it `yes` is stored as
    `"yes"`, and no filter finds it.
    """
    return version("langfuse")


def headers(public_key: str) -> dict[str, str]:
    """What a request with spans says of itself, beside its keys."""
    return {
        "x-langfuse-public-key": public_key,
        "x-langfuse-ingestion-version": "4",
        "x-langfuse-sdk-name": "python",
        "x-langfuse-sdk-version": dialect(),
    }


def encoded(traces: Sequence[TraceRecord], origin: Origin) -> bytes:
    """The body of one request."""
    spans = [_span(span, trace, origin) for trace in traces for span in trace.spans]
    key = {"public_key": origin.public_key}
    scope = InstrumentationScope(
        name="langfuse-sdk", version=dialect(), attributes=_attributes(key)
    )
    resource = Resource(attributes=_attributes(origin.resource))
    scoped = ScopeSpans(scope=scope, spans=spans)
    batch = ResourceSpans(resource=resource, scope_spans=[scoped])
    body: bytes = ExportTraceServiceRequest(resource_spans=[batch]).SerializeToString()
    return body


def usage_buckets(usage: Usage) -> dict[str, int]:
    """Tokens as Langfuse prices them. It adds the buckets up, so none may contain another."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    return {
        "input": usage.prompt_tokens - cached,
        "input_cached_tokens": cached,
        "output": usage.completion_tokens,
    }


def text(value: str) -> str:
    """`value` without lone surrogates: one of them would cost the whole batch it is sent with."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _span(span: SpanRecord, trace: TraceRecord, origin: Origin) -> Span:
    named = dict(_known(span)) | origin.attributes
    named["session.id"] = trace.session[:LONGEST_ID]
    named["user.id"] = trace.user[:LONGEST_ID]
    return Span(
        trace_id=bytes.fromhex(trace.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        name=text(span.name),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.started_ns,
        end_time_unix_nano=span.ended_ns or span.started_ns,
        attributes=_attributes(named),
        status=Status(code=Status.STATUS_CODE_ERROR) if span.level == "ERROR" else None,
        flags=1,
    )


def _known(span: SpanRecord) -> Iterator[tuple[str, str | bool]]:
    """What is known of a span, by the names Langfuse reads."""
    yield f"{OBSERVATION}type", span.kind
    if span.parent_id is None:
        yield "langfuse.internal.is_app_root", True
    if span.parent_id is None or span.level != "DEFAULT":
        yield f"{OBSERVATION}level", span.level
    if failure := _failure(span):
        yield f"{OBSERVATION}status_message", failure
    if span.input is not None:
        yield f"{OBSERVATION}input", _value(span.input)
    if span.output is not None:
        yield f"{OBSERVATION}output", _value(span.output)
    for key, value in span.metadata.items():
        if value is not None:
            yield f"{OBSERVATION}metadata.{key}", _json(value)
    if span.kind == "generation":
        yield from _of_generation(span)


def _failure(span: SpanRecord) -> str:
    """What the list shows beside a level: kinds of errors by name, never what an error says."""
    if span.level == "DEFAULT":
        return ""
    said = map(span.metadata.get, REASONS)
    return next((str(each) for each in said if each), "")


def _of_generation(span: SpanRecord) -> Iterator[tuple[str, str]]:
    if span.model is not None:
        yield f"{OBSERVATION}model.name", span.model
    if span.model_parameters:
        yield f"{OBSERVATION}model.parameters", _json(span.model_parameters)
    if span.usage is not None:
        yield f"{OBSERVATION}usage_details", json.dumps(usage_buckets(span.usage))
    if span.cost_usd is not None:
        yield f"{OBSERVATION}cost_details", json.dumps({"total": span.cost_usd})
    if span.prompt is None:
        return
    yield f"{OBSERVATION}metadata.prompt_name", json.dumps(span.prompt.name)
    yield f"{OBSERVATION}metadata.prompt_version", json.dumps(span.prompt.version)
    if span.prompt.label:
        yield f"{OBSERVATION}metadata.prompt_label", json.dumps(span.prompt.label)
    if not span.prompt.is_fallback:
        yield f"{OBSERVATION}prompt.name", span.prompt.name
        yield f"{OBSERVATION}prompt.version", str(span.prompt.version)


def _attributes(named: Mapping[str, str | bool]) -> list[KeyValue]:
    return [KeyValue(key=text(name), value=_any(value)) for name, value in named.items()]


def _any(value: str | bool) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    return AnyValue(string_value=text(value[:LONGEST_ATTRIBUTE]))


def _given(named: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}


def _value(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
