"""Traces as Langfuse, or another backend, gets them: made by its client, decoded here."""

import asyncio
import json
from contextlib import aclosing
from datetime import datetime

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from starlette.requests import Request
from starlette.responses import Response

from agent.engine.messages import Usage
from agent.engine.span import PromptRef
from agent.tracing.errors import Unavailable
from agent.tracing.records import TraceRecord
from bot.tracing import otlp_backend
from config import load_settings
from db.engine import Sessions
from tests.doubles.otlp import OtlpReceiver
from tests.traces import api_of, deliver, observations

SECRET = "what the database said, and a password"
PROMPT = PromptRef("sommelier", 5, "production", is_fallback=False)


def answer_with_a_retry() -> TraceRecord:
    trace = TraceRecord("", "-1001", "ab12")
    with trace.open_root("a red for lamb") as root:
        with root.child("guard.input", "guardrail"):
            pass
        with root.child("llm", "generation", input=[{"role": "user"}], metadata={"step": 1}) as llm:
            llm.update(metadata={"attempt": 1, "mode": "json_object"}, model="gpt-4o")
            llm.update(
                name="llm.plan",
                output="a raw answer",
                usage=Usage(prompt_tokens=100, completion_tokens=20, cached_tokens=30),
                cost_usd=0.0125,
                prompt=PROMPT,
                first_token_ns=llm.trace.spans[-1].started_ns + 500_000_000,
            )
        with root.child("tool.search_wines", "tool", metadata={"call_id": "c1"}) as tool:
            with tool.child("retrieve.wines", "retriever", input={"styles": ["red"]}) as retriever:
                retriever.update(output={"total": 3})
            tool.update(level="ERROR", metadata={"error_type": "ToolError"})
        with root.child("llm.answer", "generation") as invalid:
            fallback = PromptRef("sommelier", 3)
            invalid.update(output="{not json", metadata={"error_type": "json"}, prompt=fallback)
        root.update(
            output="Try this one.",
            level="WARNING",
            metadata={"outcome": "fallback", "retried": "yes", "error_types": "json"},
        )
        root.score("structured_retries", 1, "NUMERIC")
        root.score("outcome", "fallback", "CATEGORICAL")
    return trace


async def test_a_turn_arrives_as_the_tree_an_admin_reads(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    trace = answer_with_a_retry()
    await deliver(otlp_receiver, sessions, trace)
    assert otlp_receiver.tree(trace.trace_id) == (
        "turn",
        "agent",
        [
            ("guard.input", "guardrail", []),
            ("llm.plan", "generation", []),
            ("tool.search_wines", "tool", [("retrieve.wines", "retriever", [])]),
            ("llm.answer", "generation", []),
        ],
    )
    for span, record in zip(otlp_receiver.spans, trace.spans, strict=True):
        assert (span.name, span.span_id) == (record.name, record.span_id)
        assert span.start == pytest.approx(record.started_ns / 1e9, abs=1e-6)
        assert span.end == pytest.approx((record.ended_ns or 0) / 1e9, abs=1e-6)
        assert (span.session, span.user) == ("-1001", "ab12")
        assert span.tags == ["retried", "error:json", "tool_error:search_wines"]
    root = otlp_receiver.span("turn")
    assert (root.input, root.output, root.level) == ("a red for lamb", "Try this one.", "WARNING")
    assert root.metadata == {"outcome": "fallback", "retried": "yes", "error_types": "json"}
    assert root.parent_id is None
    assert root.attributes["langfuse.environment"] == "test"
    assert root.attributes["langfuse.release"] == "1.2.3"
    assert root.attributes["langfuse.observation.status_message"] == "json"
    tool = otlp_receiver.span("tool.search_wines")
    assert (tool.level, tool.status) == ("ERROR", "error")
    assert tool.metadata == {"call_id": "c1", "error_type": "ToolError"}
    scores = {score["id"]: score for score in otlp_receiver.scores}
    assert sorted(scores) == [f"{trace.trace_id}-outcome", f"{trace.trace_id}-structured_retries"]
    retries = scores[f"{trace.trace_id}-structured_retries"]
    assert (retries["value"], retries["dataType"]) == (1.0, "NUMERIC")
    assert (retries["observationId"], retries["environment"]) == (root.span_id, "test")


async def test_a_generation_keeps_answer_usage_cost_prompt_and_merged_metadata(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    await deliver(otlp_receiver, sessions, answer_with_a_retry())
    plan = otlp_receiver.span("llm.plan")
    assert (plan.input, plan.output, plan.model) == ([{"role": "user"}], "a raw answer", "gpt-4o")
    assert plan.usage == {"input": 70, "input_cached_tokens": 30, "output": 20}
    assert plan.cost == {"total": 0.0125}
    assert plan.metadata == {
        "step": 1,
        "attempt": 1,
        "mode": "json_object",
        "prompt_name": "sommelier",
        "prompt_version": "langfuse:5",
        "prompt_label": "production",
    }
    named = "langfuse.observation.prompt."
    assert plan.attributes[f"{named}name"] == "sommelier"
    assert plan.attributes[f"{named}version"] == 5
    began = json.loads(plan.attributes["langfuse.observation.completion_start_time"])
    waited = datetime.fromisoformat(began).timestamp() - plan.start
    assert waited == pytest.approx(0.5, abs=0.001)
    invalid = otlp_receiver.span("llm.answer")
    assert f"{named}name" not in invalid.attributes, "a prompt of the repository is not linked"


async def test_an_exception_or_a_cancellation_leaves_its_type_and_nothing_else(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    for error in (LookupError(SECRET), asyncio.CancelledError(SECRET)):
        with (
            pytest.raises(type(error)),
            TraceRecord("", "s", "u").open_root("a") as root,
            root.child("tool.get_wine", "tool", metadata={"step": 2}),
        ):
            raise error
        otlp_receiver.spans.clear()
        await deliver(otlp_receiver, sessions, root.trace)
        tool = otlp_receiver.span("tool.get_wine")
        assert (tool.level, tool.status) == ("ERROR", "error")
        assert tool.metadata == {"step": 2, "error_type": type(error).__name__}
        assert otlp_receiver.span("turn").level == "ERROR"
        assert SECRET not in str(otlp_receiver.spans)


class PickyReceiver(OtlpReceiver):
    """Answers spans with what it is told."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer

    async def _traces(self, request: Request) -> Response:
        await super()._traces(request)
        return self.answer


async def test_what_a_server_did_not_accept_is_counted(sessions: Sessions) -> None:
    two_refused = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=2)
    ).SerializeToString()
    answer = Response(two_refused, media_type="application/x-protobuf")
    with PickyReceiver(answer) as langfuse:
        exporter = await deliver(langfuse, sessions, answer_with_a_retry())
    assert exporter.given_up == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response("<h1>Sign in</h1>", media_type="text/html"), "usable answer .*check LANGFUSE"),
        (Response(status_code=302, headers={"location": "/login"}), "check LANGFUSE_BASE_URL"),
        (Response(status_code=401), "HTTP 401; check LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY"),
        (Response(status_code=413), "HTTP 413"),
    ],
    ids=["html", "redirect", "keys", "too large"],
)
async def test_what_a_server_does_not_accept_says_what_to_do(answer: Response, said: str) -> None:
    with PickyReceiver(answer) as langfuse, pytest.raises(Unavailable, match=said):
        async with aclosing(api_of(langfuse)) as api:
            await api.export(observations(langfuse).encode([answer_with_a_retry()]))


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    late = pytest.raises(Unavailable, match=r"no usable answer \(TimeoutError\)")
    with OtlpReceiver("black_hole") as langfuse, late:
        async with aclosing(api_of(langfuse, seconds=0.05)) as api:
            await api.export(b"")


async def test_headers_of_another_backend_are_read_as_opentelemetry_writes_them() -> None:
    known = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1/"}
    settings = load_settings(None, known | {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1"})
    assert settings.otlp_headers == {"api-key": "a b", "x": "1"}
    assert "a b" in settings.secrets
    async with aclosing(await otlp_backend(settings)) as backend:
        with pytest.raises(Unavailable, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
            await backend.export(b"")
