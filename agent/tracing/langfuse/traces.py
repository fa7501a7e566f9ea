"""Finished traces to Langfuse: spans in OpenTelemetry's protocol, scores in one list.

Whole records are made into finished spans rather than spans opened through a client: no client has
a way to give a span its ids and times afterwards. OpenTelemetry encodes them; they are sent here,
because its exporter tells neither a lasting refusal from trouble that passes, nor a redirect or a
web page from success (`docs/dependencies.md`).

Every span has the attributes that Langfuse reads, and beside them those of OpenTelemetry's
conventions for generative AI, so that any other backend can read it.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

import httpx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from agent.engine.errors import AgentError
from agent.engine.messages import Usage
from agent.tracing.exporter import Exporter, PartialSuccess, RateLimitedLogger, Rejected, RetryLater
from agent.tracing.langfuse.client import AGAIN, SCORES, media_type, score_body, text
from agent.tracing.recorder import SpanRecord, TraceRecord

TRACES: Final = "/api/public/otel/v1/traces"
REQUEST_SECONDS: Final = 5.0
LARGEST_BODY: Final = 3_000_000  # bytes before compression; a larger batch comes in halves
LONGEST_ATTRIBUTE: Final = 100_000  # characters
LONGEST_ID: Final = 200  # characters; Langfuse drops longer ones
DIALECT: Final = "5.0.4"
"""The version of Langfuse's own client whose attributes these are.

By it a server knows that metadata is JSON, strings included: without it `yes` is stored as `"yes"`,
and no filter finds it.
"""
UNREADABLE: Final = frozenset({400, 413, 422})
OBSERVATION: Final = "langfuse.observation."
REASONS: Final = ("error_types", "error_type", "send_error", "error")
OPERATIONS: Final = {
    "agent": "invoke_agent",
    "generation": "chat",
    "tool": "execute_tool",
    "retriever": "retrieval",
}
"""What OpenTelemetry calls the kinds of spans it knows."""
PARAMETERS: Final = ("max_tokens", "temperature")

Value = str | bool | int | float


class Unreadable(AgentError):
    """Langfuse could not read what was sent."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who sends: the project's public key, and what tells deployments and versions apart.

    Without a release of its own a deployment has this product's version. `link` are attributes
    that every span has beside these.
    """

    public_key: str
    environment: str | None = None
    release: str | None = None
    version: str | None = None
    link: Mapping[str, str] = field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that stand on every span."""
        named = {
            "langfuse.environment": self.environment,
            "langfuse.release": self.release or self.version,
            "langfuse.version": self.version,
            **self.link,
        }
        return {name: value for name, value in named.items() if value}

    @property
    def resource(self) -> Resource:
        """What stands once in a request."""
        service = {"service.name": "sommelier", "telemetry.sdk.language": "python"}
        return Resource(service | ({"service.version": self.version} if self.version else {}))


def headers(public_key: str) -> dict[str, str]:
    """Return what a request with spans says of itself, beside its keys."""
    return {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
        "x-langfuse-public-key": public_key,
        "x-langfuse-ingestion-version": "4",
        "x-langfuse-sdk-name": "python",
        "x-langfuse-sdk-version": DIALECT,
    }


def encoded(traces: Sequence[TraceRecord], origin: Origin) -> bytes:
    """Encode traces as one OTLP request, not compressed yet."""
    known = {"public_key": origin.public_key}
    scope = InstrumentationScope("langfuse-sdk", DIALECT, attributes=known)
    resource = origin.resource
    spans = [span for trace in traces for span in _spans(trace, origin, resource, scope)]
    body: bytes = encode_spans(spans).SerializeToString()
    return body


def scores_of(trace: TraceRecord, environment: str | None) -> list[dict[str, object]]:
    """Return the scores of a trace as the API takes them."""
    ended = datetime.fromtimestamp((trace.root.ended_ns or 0) / 1e9, UTC)
    return [
        score_body(trace.trace_id, trace.root.span_id, score, environment, ended)
        for score in trace.scores.values()
    ]


def usage_buckets(usage: Usage) -> dict[str, int]:
    """Return tokens as Langfuse prices them: it adds buckets up, so none contains another."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    return {
        "input": usage.prompt_tokens - cached,
        "input_cached_tokens": cached,
        "output": usage.completion_tokens,
    }


def _spans(
    trace: TraceRecord, origin: Origin, resource: Resource, scope: InstrumentationScope
) -> Iterator[ReadableSpan]:
    trace_id = int(trace.trace_id, 16)
    session, user = text(trace.session[:LONGEST_ID]), text(trace.user[:LONGEST_ID])
    everywhere: dict[str, Value] = {"session.id": session, "user.id": user, **origin.attributes}
    for span in trace.spans:
        named = dict(_for_langfuse(span)) | _for_anyone(span, session)
        parent = SpanContext(trace_id, int(span.parent_id, 16), False) if span.parent_id else None
        yield ReadableSpan(
            name=text(span.name),
            context=SpanContext(trace_id, int(span.span_id, 16), False, TraceFlags(1)),
            parent=parent,
            resource=resource,
            attributes={text(name): _bounded(value) for name, value in named.items()} | everywhere,
            status=Status(StatusCode.ERROR if span.level == "ERROR" else StatusCode.UNSET),
            start_time=span.started_ns,
            end_time=span.ended_ns or span.started_ns,
            instrumentation_scope=scope,
        )


def _for_langfuse(span: SpanRecord) -> Iterator[tuple[str, Value]]:
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


def _of_generation(span: SpanRecord) -> Iterator[tuple[str, Value]]:
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


def _for_anyone(span: SpanRecord, session: str) -> dict[str, Value]:
    """What is known of a span, by the names of OpenTelemetry's conventions for generative AI."""
    operation = OPERATIONS.get(span.kind)
    parameters = span.model_parameters or {}
    tool = span.name.removeprefix("tool.") if span.kind == "tool" else None
    failure = span.metadata.get("error_type")
    named: dict[str, Value | None] = {
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": session if operation else None,
        "gen_ai.agent.name": "sommelier" if span.kind == "agent" else None,
        "gen_ai.request.model": span.model,
        **{f"gen_ai.request.{name}": parameters.get(name) for name in PARAMETERS},
        "gen_ai.prompt.name": span.prompt.name if span.prompt else None,
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": tool and "function",
        "gen_ai.tool.call.id": span.metadata.get("call_id") if tool else None,
        "error.type": str(failure) if failure else None,
    }
    if span.usage is not None:
        named["gen_ai.usage.input_tokens"] = span.usage.prompt_tokens
        named["gen_ai.usage.cache_read.input_tokens"] = span.usage.cached_tokens
        named["gen_ai.usage.output_tokens"] = span.usage.completion_tokens
    return {name: value for name, value in named.items() if value is not None}


def _bounded(value: Value) -> Value:
    return text(value[:LONGEST_ATTRIBUTE]) if isinstance(value, str) else value


def _value(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


class LangfuseSender:
    """Sends batches of traces over one connection; `prepare` makes of each what may be shown."""

    def __init__(
        self,
        origin: Origin,
        secret_key: str,
        base_url: str,
        prepare: Callable[[TraceRecord], TraceRecord],
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._origin = origin
        self._prepare = prepare
        self._seconds = seconds
        self._http = httpx.Client(
            auth=(origin.public_key, secret_key), base_url=base_url.rstrip("/"), timeout=seconds
        )
        self._spans_taken: set[tuple[str, int | None]] = set()
        self._spans_refused = 0  # of a batch that is not done yet

    def send(self, traces: Sequence[TraceRecord]) -> None:
        """Deliver spans, then scores; spans that were taken are not sent again for the scores.

        Raises:
            RetryLater: the server is away, slow or overloaded.
            PartialSuccess: it took the batch, but for some spans or scores.
            Rejected: it does not accept the keys, or what was sent.
            Unreadable: it cannot read what was sent.
        """
        try:
            self._send([self._prepare(each) for each in traces])
        except RetryLater:
            raise  # the batch comes again
        except Exception:
            self._done()
            raise
        self._done()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _done(self) -> None:
        self._spans_taken.clear()
        self._spans_refused = 0

    def _send(self, traces: Sequence[TraceRecord]) -> None:
        new = [each for each in traces if _run_of(each) not in self._spans_taken]
        if new:
            body = encoded(new, self._origin)
            if len(body) > LARGEST_BODY and len(new) > 1:
                raise Unreadable(f"{len(body)} bytes")
            known = headers(self._origin.public_key)
            response = self._post(TRACES, content=gzip.compress(body, 1), headers=known)
            self._spans_refused += refused_spans(response)
        self._spans_taken.update(map(_run_of, new))
        scores = [score for each in traces for score in scores_of(each, self._origin.environment)]
        some_scores = bool(scores) and self._post(SCORES, json=scores).status_code == 207
        if some_scores or self._spans_refused:
            raise PartialSuccess(self._spans_refused)

    def _post(self, path: str, **request: Any) -> httpx.Response:
        """The response, once all of it is there: httpx limits the time between two bytes only."""
        ends = monotonic() + self._seconds
        try:
            with self._http.stream("POST", path, **request) as response:
                parts = []
                for part in response.iter_raw():
                    parts.append(part)
                    if monotonic() >= ends:
                        raise RetryLater(f"no whole answer within {self._seconds:g} s")
        except httpx.HTTPError as error:
            raise RetryLater(type(error).__name__) from None
        answer = b"".join(parts)
        whole = httpx.Response(response.status_code, headers=response.headers, content=answer)
        require_taken(whole)
        return whole


def require_taken(response: httpx.Response) -> None:
    """Raise what a response means for the batch it answers, unless the batch was taken."""
    status = response.status_code
    if status >= 500 or status in AGAIN:
        raise RetryLater(f"status {status}", retry_after=retry_after(response))
    if status in UNREADABLE:
        raise Unreadable(f"status {status}")
    if status >= 300:
        raise Rejected(f"status {status}{advice(status)}")
    if media_type(response) == "text/html":
        raise Rejected(f"a web page{advice(300)}")


def retry_after(response: httpx.Response) -> float:
    """Return the seconds a server asks to be left alone, 0 if it does not say so in seconds."""
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() and said.isascii() else 0.0


def advice(status: int) -> str:
    """Say what an admin does about a server that takes nothing."""
    if status in {401, 403}:
        return "; check LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL"
    return "; check LANGFUSE_BASE_URL" if status < 400 or status == 404 else ""


def refused_spans(response: httpx.Response) -> int:
    """Count the spans of an accepted request that were not taken, by what the answer says."""
    try:
        if media_type(response) == "application/x-protobuf":
            answer = ExportTraceServiceResponse.FromString(response.content)
            return int(answer.partial_success.rejected_spans)
        return int(response.json()["partialSuccess"]["rejectedSpans"])
    except (DecodeError, KeyError, TypeError, ValueError):
        return 0


def langfuse_sink(
    public_key: str,
    secret_key: str,
    base_url: str,
    *,
    environment: str | None = None,
    release: str | None = None,
    version: str | None = None,
    limited_log: RateLimitedLogger | None = None,
    prepare: Callable[[TraceRecord], TraceRecord] = lambda trace: trace,
) -> Exporter:
    """Open what a `Recorder` writes to have its turns in Langfuse.

    `version` is this product's, `limited_log` says what is out of order there.

    Raises:
        ValueError: a key is empty.
    """
    if not (public_key and secret_key):
        raise ValueError("Langfuse has no keys: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    origin = Origin(public_key, environment, release, version)
    sender = LangfuseSender(origin, secret_key, base_url, prepare)
    return Exporter(sender.send, where="Langfuse", released=sender.close, limited_log=limited_log)


def _run_of(trace: TraceRecord) -> tuple[str, int | None]:
    """What tells a trace from that of the same turn run again, which has the same id."""
    return trace.trace_id, trace.root.ended_ns
