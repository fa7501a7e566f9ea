"""Finished traces to Langfuse: spans in OpenTelemetry's protocol, scores in one list.

Every span has the attributes that Langfuse reads, and beside them those of OpenTelemetry's
conventions for generative AI, but for what was said: once is enough.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import httpx
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue

from agent.engine.messages import Usage
from agent.engine.span import SpanRecord, TraceRecord
from agent.tracing.exporter import Unreadable
from agent.tracing.http import Unavailable
from agent.tracing.langfuse.client import SCORES, LangfuseClient, score_body
from agent.tracing.otlp import (
    PROTOBUF,
    Attributes,
    Origin,
    Value,
    as_json,
    as_text,
    conventional,
    encoded,
    refused_spans,
)

TRACES: Final = "/api/public/otel/v1/traces"
DIALECT: Final = "5.0.4"
"""The version of Langfuse's own client whose attributes these are.

By it a server knows that metadata is JSON, strings included: without it `yes` is stored as `"yes"`,
and no filter finds it. Servers before 4.59 do not look at it.
"""
OBSERVATION: Final = "langfuse.observation."
REASONS: Final = ("error_types", "error_type", "send_error", "error")


def headers(public_key: str) -> dict[str, str]:
    """Return what a request with spans says of itself, beside its keys."""
    return {
        **PROTOBUF,
        "x-langfuse-public-key": public_key,
        "x-langfuse-ingestion-version": "4",
        "x-langfuse-sdk-name": "python",
        "x-langfuse-sdk-version": DIALECT,
    }


def langfuse_spans(traces: Sequence[TraceRecord], origin: Origin, public_key: str) -> bytes:
    """Encode traces as Langfuse takes them, compressed.

    Raises:
        Unreadable: several are too large for one request.
    """
    known = KeyValue(key="public_key", value=AnyValue(string_value=public_key))
    scope = InstrumentationScope(name="langfuse-sdk", version=DIALECT, attributes=[known])
    return encoded(traces, origin, partial(_attributes, origin), scope)


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


def _attributes(origin: Origin, trace: TraceRecord, span: SpanRecord) -> Attributes:
    everywhere = {
        "langfuse.trace.name": trace.name,
        "langfuse.environment": origin.environment,
        "langfuse.release": origin.release or origin.version,
        "langfuse.version": origin.version,
        **origin.link,
    }
    return {
        **dict(_of_span(trace, span)),
        **conventional(trace, span),
        **{name: value for name, value in everywhere.items() if value},
    }


def _of_span(trace: TraceRecord, span: SpanRecord) -> Iterator[tuple[str, Value]]:
    """What is known of a span, by the names Langfuse reads."""
    yield f"{OBSERVATION}type", span.kind
    if span.parent_id is None:
        yield "langfuse.internal.is_app_root", True
        yield "langfuse.trace.tags", trace.tags
    if span.parent_id is None or span.level != "DEFAULT":
        yield f"{OBSERVATION}level", span.level
    if failure := _failure(span):
        yield f"{OBSERVATION}status_message", failure
    if span.input is not None:
        tools = {"tools": span.tools, "messages": span.input}
        yield f"{OBSERVATION}input", as_text(tools if span.tools else span.input)
    if span.output is not None:
        yield f"{OBSERVATION}output", as_text(span.output)
    for key, value in span.metadata.items():
        if value is not None:
            yield f"{OBSERVATION}metadata.{key}", as_json(value)
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
        yield f"{OBSERVATION}model.parameters", as_json(span.model_parameters)
    if span.usage is not None:
        yield f"{OBSERVATION}usage_details", json.dumps(usage_buckets(span.usage))
    if span.cost_usd is not None:
        yield f"{OBSERVATION}cost_details", json.dumps(span.costs or {"total": span.cost_usd})
    if span.first_token_ns is not None:
        first = datetime.fromtimestamp(span.first_token_ns / 1e9, UTC)
        yield f"{OBSERVATION}completion_start_time", json.dumps(first.isoformat())
    if span.prompt is None:
        return
    yield f"{OBSERVATION}metadata.prompt_name", json.dumps(span.prompt.name)
    yield f"{OBSERVATION}metadata.prompt_version", json.dumps(span.prompt.origin)
    if span.prompt.label:
        yield f"{OBSERVATION}metadata.prompt_label", json.dumps(span.prompt.label)
    if not span.prompt.is_fallback:
        yield f"{OBSERVATION}prompt.name", span.prompt.name
        yield f"{OBSERVATION}prompt.version", str(span.prompt.version)


@dataclass(slots=True)
class LangfuseTraces:
    """Delivers traces to a project; spans that were taken are not sent again for their scores."""

    client: LangfuseClient
    origin: Origin
    _taken: set[tuple[str, int | None]] = field(default_factory=set)

    async def send(self, traces: Sequence[TraceRecord]) -> int:
        """Deliver spans, then scores; how many parts were not taken.

        Raises:
            AgentError: see `agent.tracing.exporter.Send`.
        """
        refused = 0
        if new := [each for each in traces if _run_of(each) not in self._taken]:
            key = self.client.public_key
            body = await asyncio.to_thread(langfuse_spans, new, self.origin, key)
            refused = refused_spans(await self._post(TRACES, content=body, headers=headers(key)))
            self._taken.update(map(_run_of, new))
        scores = [score for each in traces for score in scores_of(each, self.origin.environment)]
        if scores:
            refused += await self._refused_scores(scores)
        self._taken.difference_update(map(_run_of, traces))
        return refused

    async def _refused_scores(self, scores: Sequence[Mapping[str, object]]) -> int:
        """Send scores; whether some were refused, which costs no trace: the spans have arrived."""
        try:
            response = await self._post(SCORES, json=scores)
        except Unreadable:
            return len(scores)
        return int(response.status_code == 207)

    async def _post(self, path: str, **request: Any) -> httpx.Response:
        try:
            return await self.client.request("POST", path, **request)
        except Unavailable as error:
            raise error.delivery_error from None


def _run_of(trace: TraceRecord) -> tuple[str, int | None]:
    """What tells a trace from that of the same turn run again, which has the same id."""
    return trace.trace_id, trace.root.ended_ns
