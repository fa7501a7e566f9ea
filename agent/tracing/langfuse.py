"""Langfuse's HTTP API: finished traces, their scores, and people's verdicts on their way there.

Spans go in OpenTelemetry's protocol, scores in one list. Every span has the attributes that
Langfuse reads, and beside them those of OpenTelemetry's conventions for generative AI, but for what
was said: once is enough.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import httpx2
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from pydantic import BaseModel

from agent.engine.messages import Usage
from agent.engine.span import ScoreRecord, SpanRecord, TraceRecord
from agent.repositories import Feedback, FeedbackReason
from agent.tracing.exporter import HttpClient, Unavailable
from agent.tracing.masking import mask
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
    text,
)
from agent.tracing.recorder import score_id

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 5.0
UNKNOWN_KEYS: Final = (
    "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY, and that LANGFUSE_BASE_URL is their region"
)
SCORES: Final = "/api/public/scores"
ALL_TRACES: Final = "/api/public/traces"
TRACES_AT_ONCE: Final = 100
VERDICT: Final = "user_feedback"
REASON: Final = "user_feedback_reason"
LABELS: Final[Mapping[FeedbackReason, str]] = {
    "wrong_wine": "Wrong wine",
    "not_what_i_asked": "Not what I asked",
    "wrong_facts": "Wrong facts",
    "tone": "Tone",
}
METHOD_UNKNOWN: Final = frozenset({405, 501})


class LangfuseClient(HttpClient):
    """The API of one project; a request takes `seconds` at most and is made once."""

    def __init__(
        self,
        public_key: str,
        secret_key: str,
        base_url: str,
        *,
        seconds: float = REQUEST_SECONDS,
        waits_longer: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            base_url,
            name="Langfuse",
            check="LANGFUSE_BASE_URL",
            seconds=seconds,
            auth=(public_key, secret_key),
            unknown_keys=UNKNOWN_KEYS,
            waits_longer=waits_longer,
            transport=transport,
        )
        self.public_key = public_key


class Page(BaseModel):
    """A page of what a project has."""

    data: list[dict[str, Any]]
    meta: dict[str, Any] = {}


async def delete_traces(client: LangfuseClient, user: str, before: datetime | None = None) -> int:
    """Delete every trace of a user (the hash that traces carry); how many were asked to go.

    Only what began `before` a moment, if one is given.

    Langfuse deletes later, observations and scores too; what is asked for again is no error.

    Raises:
        Unavailable: it did not do it; what was deleted before stays deleted.
    """
    page, found = 1, list[str]()
    while True:
        query = {"userId": user, "limit": TRACES_AT_ONCE, "page": page}
        query |= {"toTimestamp": before.isoformat()} if before else {}
        read = await client.ask(Page, "GET", ALL_TRACES, params=query)
        found += [str(each.get("id")) for each in read.data]
        if len(read.data) < TRACES_AT_ONCE:
            break
        page += 1
    for start in range(0, len(found), TRACES_AT_ONCE):
        ids = found[start : start + TRACES_AT_ONCE]
        await client.request("DELETE", ALL_TRACES, json={"traceIds": ids})
    return len(found)


def trace_url(base_url: str, trace_id: str) -> str:
    """Return the page of a trace; Langfuse finds its project by itself."""
    return f"{base_url.rstrip('/')}/trace/{trace_id}"


def verdict_scores(feedback: Feedback, hide: Callable[[str], str]) -> list[ScoreRecord]:
    """Return the scores that a verdict is; none if it was taken back."""
    if feedback.verdict is None:
        return []
    liked = feedback.verdict == "liked"
    label = LABELS[feedback.reason] if feedback.reason else ""
    comment = ": ".join(filter(None, [label, hide(feedback.comment)]))
    scores = [ScoreRecord(VERDICT, 1 if liked else 0, "BOOLEAN", comment)]
    if feedback.reason and not liked:
        scores.append(ScoreRecord(REASON, feedback.reason, "CATEGORICAL"))
    return scores


def score_body(
    trace_id: str,
    root_id: str | None,
    score: ScoreRecord,
    environment: str | None,
    timestamp: datetime | None,
) -> dict[str, object]:
    """Return a score as the API takes it: on the root span, where the list of traces shows it.

    Langfuse replaces a score only if it has the same id and the same timestamp.
    """
    named = {
        "id": score_id(trace_id, score.name),
        "traceId": trace_id,
        "observationId": root_id,
        "name": score.name,
        "value": text(score.value) if isinstance(score.value, str) else float(score.value),
        "dataType": score.kind,
        "comment": text(score.comment) or None,
        "environment": environment,
        "timestamp": timestamp.isoformat() if timestamp else None,
    }
    return {name: each for name, each in named.items() if each is not None}


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
        Unavailable: several are too large for one request.
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
    """Delivers traces to a project, and what people think of them.

    Spans that were taken are not sent again for their scores. `hide` makes of what a person wrote
    what may be shown of it.
    """

    client: LangfuseClient
    origin: Origin
    hide: Callable[[str], str] = mask
    _can_delete: bool = True
    _taken: set[tuple[str, int | None]] = field(default_factory=set)

    async def send(self, traces: Sequence[TraceRecord]) -> int:
        """Deliver spans, then scores; how many parts were not taken. Raises `Unavailable`."""
        refused = 0
        if new := [each for each in traces if _run_of(each) not in self._taken]:
            key = self.client.public_key
            body = await asyncio.to_thread(langfuse_spans, new, self.origin, key)
            sent = self.client.request("POST", TRACES, content=body, headers=headers(key))
            refused = refused_spans(await sent)
            self._taken.update(map(_run_of, new))
        scores = [score for each in traces for score in scores_of(each, self.origin.environment)]
        if scores:
            refused += await self._refused_scores(scores)
        self._taken.difference_update(map(_run_of, traces))
        return refused

    async def _refused_scores(self, scores: Sequence[Mapping[str, object]]) -> int:
        """Send scores; whether some were refused, which costs no trace: the spans have arrived."""
        try:
            response = await self.client.request("POST", SCORES, json=scores)
        except Unavailable as error:
            if not error.is_unreadable:
                raise
            return len(scores)
        return int(response.status_code == 207)

    async def deliver(self, feedback: Feedback) -> None:
        """Make the scores of a trace say what is thought of it now; the same again is no change.

        Raises:
            Unavailable: it was not done.
        """
        if feedback.trace_id is None:
            return
        scores = verdict_scores(feedback, self.hide)
        if scores:
            about = feedback.trace_id, feedback.root_id
            known = self.origin.environment, feedback.answered_at
            body = [score_body(*about, score, *known) for score in scores]
            await self.client.request("POST", SCORES, json=body)
        # What was never changed has no score that would have to go.
        names = (VERDICT, REASON) if feedback.revision > 1 else ()
        for name in names[len(scores) :]:
            await self._delete(score_id(feedback.trace_id, name))

    async def _delete(self, score: str) -> None:
        if not self._can_delete:
            return
        try:
            await self.client.request("DELETE", f"{SCORES}/{score}")
        except Unavailable as error:
            if error.status not in METHOD_UNKNOWN | {404}:
                raise
            if error.status in METHOD_UNKNOWN:
                self._can_delete = False
                log.warning("This Langfuse cannot delete scores: verdicts taken back stay there")


def _run_of(trace: TraceRecord) -> tuple[str, int | None]:
    """What tells a trace from that of the same turn run again, which has the same id."""
    return trace.trace_id, trace.root.ended_ns
