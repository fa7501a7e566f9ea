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
from starlette.responses import JSONResponse, Response

from agent.tracing.encoding import get_trace_encoder
from agent.tracing.langfuse_project import Unavailable
from bot.tracing import trace_server
from config import load_settings
from db.engine import Sessions
from db.export_queue import RowQueue
from db.models import TraceRow
from tests.doubles.otlp import OtlpReceiver
from tests.traces import api_of, deliver, project_of, retried_trace


async def test_threads_that_need_a_client_at_once_share_one(
    otlp_receiver: OtlpReceiver,
) -> None:
    project = project_of(otlp_receiver)
    opened = [asyncio.to_thread(get_trace_encoder, project) for _ in range(8)]
    assert len(set(await asyncio.gather(*opened))) == 1


async def test_a_turn_arrives_as_the_tree_an_admin_reads(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    trace = retried_trace()
    for _ in range(2):  # what is sent again replaces itself
        await deliver(otlp_receiver, sessions, trace)
    assert otlp_receiver.tree() == (
        "turn",
        "agent",
        [
            ("guard.input", "guardrail", []),
            ("tool.search_wines", "tool", [("retrieve.wines", "retriever", [])]),
            ("llm.answer", "generation", []),
            ("telegram.send", "span", []),
        ],
    )
    for span, record in zip(otlp_receiver.spans, trace.spans, strict=True):
        assert (span.name, span.span_id) == (record.name, record.span_id)
        assert span.start == pytest.approx(record.started_ns / 1e9, abs=1e-6)
        assert span.end == pytest.approx((record.ended_ns or 0) / 1e9, abs=1e-6)
        assert (span.session, span.user) == ("5e55", "0f0f")
        assert span.tags == [
            "retried",
            "fallback",
            "error:grounding",
            "error:model_error",
        ]
    root = otlp_receiver.span("turn")
    assert (root.input, root.output) == (
        "a red for\nlamb under 25",
        "Try the **Guigal**.",
    )
    assert (root.parent_id, root.level) == (None, "WARNING")
    assert root.metadata == trace.root.metadata
    assert root.attributes["langfuse.environment"] == "default"
    assert root.attributes["langfuse.release"] == "1.2.3"
    reason = root.attributes["langfuse.observation.status_message"]
    assert reason == "grounding, model_error"
    assert otlp_receiver.span("telegram.send").status == "error"
    answer = otlp_receiver.span("llm.answer")
    assert answer.attributes["langfuse.observation.prompt.version"] == 3
    began = json.loads(answer.attributes["langfuse.observation.completion_start_time"])
    waited = datetime.fromisoformat(began).timestamp() - answer.start
    assert waited == pytest.approx(0.1, abs=0.001)
    scores = {score["id"]: score for score in otlp_receiver.scores}
    assert sorted(scores) == [
        f"{trace.trace_id}-outcome",
        f"{trace.trace_id}-structured_retries",
    ]
    retries = scores[f"{trace.trace_id}-structured_retries"]
    assert (retries["value"], retries["dataType"]) == (1.0, "NUMERIC")
    assert (retries["observationId"], retries["environment"]) == (
        root.span_id,
        "default",
    )


class PickyReceiver(OtlpReceiver):
    """Answers spans with what it is told."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer

    async def _traces(self, request: Request) -> Response:
        await super()._traces(request)
        return self.answer


async def test_a_trace_of_which_spans_are_refused_keeps_the_words_of_the_server(
    sessions: Sessions,
) -> None:
    two_refused = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(
            rejected_spans=2, error_message="too many tags"
        )
    ).SerializeToString()
    answer = Response(two_refused, media_type="application/x-protobuf")
    with PickyReceiver(answer) as langfuse:
        lost = await deliver(langfuse, sessions, retried_trace())
    assert lost == [1]
    (problem,) = await RowQueue(sessions, TraceRow).list_problems()
    assert problem == ("refused", 1, "Langfuse refused 2 spans: too many tags")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Response("<h1>Sign in</h1>", media_type="text/html"),
            "usable answer .*check LANGFUSE",
        ),
        (
            Response(b"\xff", media_type="application/x-protobuf"),
            r"usable answer \(DecodeError",
        ),
        (
            Response(status_code=302, headers={"location": "/login"}),
            "check LANGFUSE_BASE_URL",
        ),
        (
            Response(status_code=401),
            "HTTP 401; check LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY",
        ),
        (
            JSONResponse({"message": "Too many spans."}, 413),
            "answered HTTP 413: Too many spans.$",
        ),
    ],
    ids=["html", "malformed", "redirect", "keys", "size"],
)
async def test_a_refusal_of_the_server_says_what_to_do(
    answer: Response, said: str
) -> None:
    with PickyReceiver(answer) as langfuse, pytest.raises(Unavailable, match=said):
        async with aclosing(api_of(langfuse)) as api:
            await api.export(b"")


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    late = pytest.raises(Unavailable, match=r"no usable answer \(TimeoutError\)")
    with OtlpReceiver("black_hole") as langfuse, late:
        async with aclosing(api_of(langfuse, seconds=0.05)) as api:
            await api.export(b"")


async def test_headers_of_another_backend_are_read_as_opentelemetry_writes_them() -> (
    None
):
    known = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1/"}
    settings = load_settings(
        None, known | {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1"}
    )
    assert settings.otlp_headers == {"api-key": "a b", "x": "1"}
    assert "a b" in settings.secrets
    async with aclosing(trace_server(settings)) as server:
        with pytest.raises(Unavailable, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
            await server.export(b"")
