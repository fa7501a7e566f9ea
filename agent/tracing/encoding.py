"""Convert recorded traces to observations of Langfuse, using its own client.

A turn is recorded as plain data and converted when it is over. Only then are its tags known, and
the turn need not wait for the client.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any, Final

from langfuse import Langfuse, propagate_attributes
from langfuse.api import CreateScoreRequest, Prompt_Text, ScoreDataType
from langfuse.model import TextPromptClient
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.engine.messages import TokenUsage
from agent.engine.run import PromptRef
from agent.tracing.langfuse_project import Project
from agent.tracing.records import SpanRecord, TraceRecord

CLIENT_SECONDS: Final = 30
"""The time limit of a request for a prompt or a data set."""
EXPERIMENT_ENVIRONMENT: Final = "sdk-experiment"
"""The environment of the client's experiments."""


@dataclass(frozen=True, slots=True)
class EncodedItem:
    """An item of an experiment: an `ExportTraceServiceRequest`, its scores, and a link."""

    spans: bytes
    scores: Sequence[CreateScoreRequest]
    url: str


class TraceEncoder:
    """Encodes recorded traces in OpenTelemetry's format, using a project's Langfuse client."""

    def __init__(self, project: Project) -> None:
        # The client must not log its errors, because the callers of this class log them.
        logging.getLogger("langfuse").setLevel(logging.CRITICAL)
        service = {"service.name": "sommelier", "service.version": project.version}
        self._span_exporter = InMemorySpanExporter()
        """Holds the spans that the client has ended, until `_take_request`."""
        public_key, secret_key = project.keys
        self.client = Langfuse(
            public_key=public_key,
            secret_key=secret_key,
            base_url=project.base_url,
            timeout=CLIENT_SECONDS,
            environment=project.environment,
            release=project.release,
            tracer_provider=TracerProvider(resource=Resource.create(service)),
            span_exporter=self._span_exporter,
        )
        self._lock = Lock()

    def encode(self, trace: TraceRecord) -> bytes:
        """Return an `ExportTraceServiceRequest` with the spans, replayed through the client."""
        with self._lock:
            try:
                observed = observe(self.client, trace)
            finally:
                # After an error, the spans must be taken too. Otherwise they would be among those
                # of the next trace.
                request = self._take_request()
        for span in _list_spans(request):
            # Put back the recorded ids, so that a repeated request replaces these spans.
            record = observed[span.span_id.hex()]
            span.trace_id = bytes.fromhex(trace.trace_id)
            span.span_id = bytes.fromhex(record.span_id)
            span.parent_span_id = bytes.fromhex(record.parent_id or "")
            _put_back_times(span, [record])
        spans: bytes = request.SerializeToString()
        return spans

    def encode_item(
        self, item: Any, traces: Sequence[TraceRecord], **experiment_fields: Any
    ) -> EncodedItem:
        """Return an item of a data set as the client records it in an experiment.

        `experiment_fields` are further arguments of `run_experiment`, such as the name. The client
        runs a task for the item. Here this task only replays the recorded traces. The item gets the
        scores of the last trace.
        """
        observed: dict[str, SpanRecord] = {}
        scores: list[CreateScoreRequest] = []
        last = traces[-1]

        def replay(**_: Any) -> object:
            for trace in traces:
                observed.update(observe(self.client, trace))
            scores.extend(_score_current_span(self.client, last))
            return last.root.output

        with self._lock, _propagate(last, _list_tags(traces)):
            try:
                result = self.client.run_experiment(
                    data=[item], task=replay, **experiment_fields
                )
            finally:
                request = self._take_request()
        for span in _list_spans(request):
            record = observed.get(span.span_id.hex())
            if record is not None:
                _put_back_times(span, [record])
            else:
                # The client's own spans last from the first turn to the last.
                _put_back_times(span, observed.values())
        url = result.experiment_url or ""
        return EncodedItem(request.SerializeToString(), scores, url)

    def _take_request(self) -> ExportTraceServiceRequest:
        """Return the spans that have ended since the last call."""
        self.client.flush()
        finished = self._span_exporter.get_finished_spans()
        self._span_exporter.clear()
        return encode_spans(finished)


def _list_tags(traces: Iterable[TraceRecord]) -> list[str]:
    """Return the tags of all traces, each once."""
    tags: list[str] = []
    for trace in traces:
        tags += trace.tags
    return list(dict.fromkeys(tags))


def _list_spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for batch in request.resource_spans:
        for scope in batch.scope_spans:
            yield from scope.spans


def _put_back_times(span: Span, records: Collection[SpanRecord]) -> None:
    """Set the times of a span to the start of the first record and the end of the last."""
    starts = [record.started_ns for record in records]
    ends = [record.ended_ns or record.started_ns for record in records]
    span.start_time_unix_nano = min(starts)
    span.end_time_unix_nano = max(ends)


_open_lock: Final = Lock()
_cached_encoder: Final = cache(TraceEncoder)


def get_trace_encoder(project: Project) -> TraceEncoder:
    """Return the only `TraceEncoder` of a project. Langfuse's client is a singleton, too."""
    # Two encoders would share a client, and one of them would get no spans.
    with _open_lock:
        return _cached_encoder(project)


def observe(client: Langfuse, trace: TraceRecord) -> dict[str, SpanRecord]:
    """Create an observation for each span of a trace, and return the spans by observation id.

    If the client has a current observation, the new observations are below it. New observations
    begin and end now, not at the times of the spans.
    """
    observations: dict[str | None, Any] = {}
    observed: dict[str, SpanRecord] = {}
    with _propagate(trace, list(trace.tags)):
        for span in trace.spans:
            # The client itself starts the observation of the root, which has no parent.
            parent = observations.get(span.parent_id, client)
            fields = _build_observation_fields(span)
            observation = parent.start_observation(**fields)
            observations[span.span_id] = observation
            observed[observation.id] = span
    for observation in observations.values():
        observation.end()
    return observed


def _propagate(trace: TraceRecord, tags: list[str]) -> AbstractContextManager[Any]:
    """Put a trace's user, session, name and tags on all observations of a block."""
    return propagate_attributes(
        user_id=trace.user,
        session_id=trace.session,
        trace_name=trace.name,
        tags=tags or None,
    )


def _score_current_span(
    client: Langfuse, trace: TraceRecord
) -> Iterator[CreateScoreRequest]:
    """Yield the scores of a trace as those of the observation that is current in the client."""
    observation_id = client.get_current_observation_id()
    for score in trace.scores.values():
        yield CreateScoreRequest(
            id=f"{observation_id}-{score.name}",
            trace_id=client.get_current_trace_id(),
            observation_id=observation_id,
            name=score.name,
            value=score.value,
            data_type=ScoreDataType(score.kind),
            comment=score.comment,
            environment=EXPERIMENT_ENVIRONMENT,
            timestamp=datetime.now(UTC),
        )


def _build_observation_fields(span: SpanRecord) -> dict[str, Any]:
    """Return the arguments of `start_observation` for a span."""
    fields: dict[str, Any] = {
        "name": span.name,
        "as_type": span.kind,
        "input": span.input,
        "output": span.output,
        "metadata": span.metadata,
        "level": span.level,
    }
    if span.tools:
        fields["input"] = {"tools": span.tools, "messages": span.input}
    if span.level != "DEFAULT":
        fields["status_message"] = _build_status_message(span.metadata)
    if span.kind == "generation":
        fields |= _build_generation_fields(span)
    return fields


def _build_status_message(metadata: Mapping[str, Any]) -> str:
    """Return the types of errors, and the status and the cause of a failed request.

    Example: `ModelUnavailable: HTTP 429: Rate limit reached for gpt-4o`.
    """
    errors = list(metadata.get("error_types", ()))
    # A tool or a check has an "error_type". The span of sending messages has an "error", and the
    # root repeats it as "send_error".
    for name in ("error_type", "send_error", "error"):
        if metadata.get(name):
            errors.append(metadata[name])
    parts = [", ".join(dict.fromkeys(errors))]
    if metadata.get("status"):
        parts.append(f"HTTP {metadata['status']}")
    if metadata.get("cause"):
        parts.append(metadata["cause"])
    return ": ".join(parts)


def _build_generation_fields(span: SpanRecord) -> dict[str, Any]:
    """Return the arguments of `start_observation` that only a generation has."""
    usage = span.usage or TokenUsage()
    fields: dict[str, Any] = {
        "model": span.model,
        "model_parameters": span.model_parameters,
        # Without usage and cost, Langfuse would count the tokens of the input, and guess a cost.
        "usage_details": usage.by_bucket,
    }
    costs = span.costs
    if span.usage is None:
        # Nothing was billed, and the total is 0.
        costs = {}
    # The costs are None if the price of the model is not known. Then Langfuse may know it.
    if costs is not None:
        # Without a total, Langfuse adds up only the costs of `input` and `output`.
        total = sum(costs.values())
        fields["cost_details"] = {"total": total, **costs}
    if span.first_token_ns:
        began = datetime.fromtimestamp(span.first_token_ns / 1e9, UTC)
        fields["completion_start_time"] = began
    if span.prompt is not None:
        fields["prompt"] = _link_prompt(span.prompt)
        fields["metadata"] = span.metadata | _describe_prompt(span.prompt)
    return fields


def _describe_prompt(prompt: PromptRef) -> dict[str, Any]:
    """Return the metadata of a generation that name its prompt."""
    return {
        "prompt_name": prompt.name,
        "prompt_version": prompt.origin,
        "prompt_label": prompt.label or None,
    }


def _link_prompt(prompt: PromptRef) -> TextPromptClient:
    """Return the link from a generation to its prompt in Langfuse, which needs no text."""
    version = Prompt_Text(
        name=prompt.name,
        version=prompt.version,
        prompt="",
        config={},
        labels=[],
        tags=[],
    )
    return TextPromptClient(version, is_fallback=prompt.is_fallback)
