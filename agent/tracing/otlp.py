"""Traces in OpenTelemetry's protocol, with its names for generative AI, for any backend.

A span is made of a whole record, with the ids and times that it has: no client of OpenTelemetry
gives a span those afterwards. `agent.tracing.langfuse` adds what only Langfuse reads.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import httpx2
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from agent.engine.span import SpanRecord, SpanType, TraceRecord
from agent.tracing.exporter import HttpClient, Unavailable, media_type

LARGEST_BODY: Final = 3_000_000  # bytes before compression; a larger batch comes in halves
LONGEST_ATTRIBUTE: Final = 100_000  # characters
LONGEST_ID: Final = 200  # characters; Langfuse drops longer ones
KINDS: Final[Mapping[SpanType, tuple[str | None, str]]] = {
    "agent": ("invoke_agent", "AGENT"),
    "generation": ("chat", "LLM"),
    "tool": ("execute_tool", "TOOL"),
    "retriever": ("retrieval", "RETRIEVER"),
    "guardrail": (None, "GUARDRAIL"),
    "span": (None, "CHAIN"),
}
"""What OpenTelemetry calls the kinds of spans it knows, and Phoenix and other readers of
OpenInference's conventions them all."""
PARAMETERS: Final = ("max_tokens", "temperature")
TRACES: Final = "/v1/traces"
OURS: Final = "sommelier."
"""How the names of attributes begin for which there is no convention."""

Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Origin:
    """What tells deployments and versions apart. `link` are attributes of every span beside them.

    Without a release of its own a deployment has this product's version.
    """

    environment: str | None = None
    release: str | None = None
    version: str | None = None
    link: Mapping[str, str] = field(default_factory=dict)


def encoded(
    traces: Sequence[TraceRecord],
    origin: Origin,
    attributes_of: Callable[[TraceRecord, SpanRecord], Attributes],
    scope: InstrumentationScope,
) -> bytes:
    """Encode traces as one request, compressed.

    Raises:
        Unavailable: several are too large for one request.
    """
    spans = [
        _span(trace, span, attributes_of(trace, span)) for trace in traces for span in trace.spans
    ]
    service: Attributes = {
        "service.name": "sommelier",
        "service.version": origin.version or "",
        "deployment.environment.name": origin.environment or "",
    }
    resource = Resource(attributes=_pairs({name: each for name, each in service.items() if each}))
    whole = ResourceSpans(resource=resource, scope_spans=[ScopeSpans(scope=scope, spans=spans)])
    body = ExportTraceServiceRequest(resource_spans=[whole]).SerializeToString()
    if len(body) > LARGEST_BODY and len(traces) > 1:
        raise Unavailable(f"{len(body)} bytes", 413)
    return gzip.compress(body, 1)


def _span(trace: TraceRecord, span: SpanRecord, attributes: Attributes) -> Span:
    failed = span.level == "ERROR"
    return Span(
        trace_id=bytes.fromhex(trace.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        name=text(span.name),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.started_ns,
        end_time_unix_nano=span.ended_ns or span.started_ns,
        attributes=_pairs(attributes),
        status=Status(code=Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_UNSET),
    )


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=text(name), value=_any(value)) for name, value in attributes.items()]


def _any(value: Value) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=text(value[:LONGEST_ATTRIBUTE]))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[_any(each) for each in value]))


def conventional(trace: TraceRecord, span: SpanRecord) -> dict[str, Value]:
    """Say what is known of a span, by OpenTelemetry's conventions; not what was said."""
    operation, _ = KINDS[span.kind]
    parameters = span.model_parameters or {}
    tool = span.name.removeprefix("tool.") if span.kind == "tool" else None
    failure = span.metadata.get("error_type")
    first = (span.first_token_ns - span.started_ns) / 1e9 if span.first_token_ns else None
    usage = span.usage
    named: dict[str, Value | None] = {
        "session.id": text(trace.session[:LONGEST_ID]),
        "user.id": text(trace.user[:LONGEST_ID]),
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": text(trace.session[:LONGEST_ID]) if operation else None,
        "gen_ai.agent.name": "sommelier" if span.kind == "agent" else None,
        "gen_ai.request.model": span.model,
        **{f"gen_ai.request.{name}": parameters.get(name) for name in PARAMETERS},
        "gen_ai.prompt.name": span.prompt.name if span.prompt else None,
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": tool and "function",
        "gen_ai.tool.call.id": span.metadata.get("call_id") if tool else None,
        "gen_ai.response.time_to_first_chunk": first,
        "gen_ai.usage.input_tokens": usage.prompt_tokens if usage else None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens if usage else None,
        "gen_ai.usage.output_tokens": usage.completion_tokens if usage else None,
        "error.type": str(failure) if failure else None,
    }
    return {name: value for name, value in named.items() if value is not None}


def spoken(span: SpanRecord) -> dict[str, Value]:
    """Say what went in and out of a span: messages by the conventions, the rest as values."""
    named: dict[str, object] = {"input.value": span.input, "output.value": span.output}
    if span.kind == "generation":
        said = span.input if isinstance(span.input, list | tuple) else ()
        output = span.output if isinstance(span.output, Mapping) else {"content": span.output}
        named |= {
            "gen_ai.input.messages": [_message(each) for each in said],
            "gen_ai.output.messages": [_message({"role": "assistant", **output})],
            "gen_ai.tool.definitions": list(span.tools),
        }
    elif span.kind == "tool":
        named |= {"gen_ai.tool.call.arguments": span.input, "gen_ai.tool.call.result": span.output}
    return {name: as_text(value) for name, value in named.items() if value not in (None, [])}


def _message(message: Mapping[str, object]) -> dict[str, object]:
    content = message.get("content")
    parts: list[dict[str, object]] = [{"type": "text", "content": content}] if content else []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        parts.append({"type": "tool_call", **_called(call)})
    return {"role": message.get("role"), "parts": parts}


def _called(call: object) -> dict[str, object]:
    known = call if isinstance(call, Mapping) else {}
    function = known.get("function")
    said = function if isinstance(function, Mapping) else known
    called = {"id": known.get("id"), "name": said.get("name"), "arguments": said.get("arguments")}
    return {name: value for name, value in called.items() if value is not None}


def text(value: str) -> str:
    """Replace lone surrogates in `value`: one of them would cost the whole batch."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


as_json: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode


def as_text(value: object) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else as_json(value)


def refused_spans(response: httpx2.Response) -> int:
    """Count the spans of an accepted request that were not taken, by what the answer says."""
    try:
        if media_type(response) == "application/x-protobuf":
            answer = ExportTraceServiceResponse.FromString(response.content)
            return int(answer.partial_success.rejected_spans)
        return int(response.json()["partialSuccess"]["rejectedSpans"])
    except (DecodeError, KeyError, TypeError, ValueError):
        return 0


PROTOBUF: Final = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}


@dataclass(frozen=True, slots=True)
class OtlpTraces:
    """Delivers traces to a backend that takes OpenTelemetry's protocol over HTTP."""

    client: HttpClient
    origin: Origin

    async def send(self, traces: Sequence[TraceRecord]) -> int:
        """Deliver spans; how many of them were not taken. The scores stand on the roots.

        Raises:
            Unavailable: they were not taken.
        """
        scope = InstrumentationScope(name="sommelier", version=self.origin.version or "")
        body = encoded(traces, self.origin, self._attributes, scope)
        sent = await self.client.request("POST", TRACES, content=body, headers=PROTOBUF)
        return refused_spans(sent)

    def _attributes(self, trace: TraceRecord, span: SpanRecord) -> Attributes:
        named = conventional(trace, span) | spoken(span)
        _, named["openinference.span.kind"] = KINDS[span.kind]
        known = span.metadata | ({} if span.cost_usd is None else {"cost_usd": span.cost_usd})
        named |= {f"{OURS}{key}": _plain(each) for key, each in known.items() if each is not None}
        if span.parent_id is None:
            scores = trace.scores.values()
            named |= {f"{OURS}score.{each.name}": each.value for each in scores}
            named |= {f"{OURS}turn": trace.name, f"{OURS}tags": trace.tags}
        if self.origin.release:
            named[f"{OURS}release"] = self.origin.release
        return named


def _plain(value: object) -> Value:
    return value if isinstance(value, str | bool | int | float) else as_json(value)
