"""Langfuse's double, seen through its client."""

import logging
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from langfuse import Langfuse
from opentelemetry.sdk.trace import TracerProvider

from tests.doubles.otlp import Mode, OtlpReceiver


@pytest.fixture
def langfuse(otlp_receiver: OtlpReceiver) -> Iterator[Langfuse]:
    provider = TracerProvider()
    client = Langfuse(
        public_key=otlp_receiver.public_key,
        secret_key=otlp_receiver.secret_key,
        base_url=otlp_receiver.base_url,
        tracer_provider=provider,
        timeout=1,
    )
    yield client
    client.shutdown()
    provider.shutdown()
    client.api._client_wrapper.httpx_client.httpx_client.close()


async def test_spans_arrive_as_a_tree_with_what_was_recorded(
    otlp_receiver: OtlpReceiver, langfuse: Langfuse
) -> None:
    with langfuse.start_as_current_observation(name="turn", as_type="agent", input="hi") as turn:
        with langfuse.start_as_current_observation(
            name="llm.plan",
            as_type="generation",
            model="gpt-4o",
            usage_details={"input": 7, "output": 2},
            cost_details={"total": 0.5},
            metadata={"step": 1, "error_type": "schema"},
        ) as generation:
            generation.update(output={"a": 1}, level="WARNING")
        with langfuse.start_as_current_observation(name="tool.search", as_type="tool"):
            langfuse.start_observation(name="retrieve.wines", as_type="retriever").end()
        turn.score_trace(name="outcome", value="answered", score_id="s1", data_type="CATEGORICAL")
    langfuse.flush()
    await otlp_receiver.wait_for_spans(4)
    assert otlp_receiver.tree() == (
        "turn",
        "agent",
        [
            ("llm.plan", "generation", []),
            ("tool.search", "tool", [("retrieve.wines", "retriever", [])]),
        ],
    )
    root, plan = otlp_receiver.span("turn"), otlp_receiver.span("llm.plan")
    assert otlp_receiver.tree(root.trace_id)[0] == "turn"
    assert (root.input, root.level, root.parent_id) == ("hi", "DEFAULT", None)
    assert (plan.output, plan.level, plan.model) == ({"a": 1}, "WARNING", "gpt-4o")
    assert plan.metadata == {"step": 1, "error_type": "schema"}
    assert (plan.usage, plan.cost) == ({"input": 7, "output": 2}, {"total": 0.5})
    assert (plan.parent_id, plan.trace_id) == (root.span_id, root.trace_id)
    assert root.start <= plan.start <= plan.end <= root.end
    [score] = await otlp_receiver.wait_for_scores(1)
    assert (score["name"], score["value"], score["traceId"]) == (
        "outcome",
        "answered",
        root.trace_id,
    )


async def test_a_score_sent_again_replaces_the_first(
    otlp_receiver: OtlpReceiver, langfuse: Langfuse
) -> None:
    for value in (1, 0):
        langfuse.create_score(name="user_feedback", value=value, trace_id="a" * 32, score_id="s")
    langfuse.flush()
    await otlp_receiver.wait_for_scores(1)
    assert [score["value"] for score in otlp_receiver.scores] == [0]


def test_the_old_ingestion_takes_scores_too(otlp_receiver: OtlpReceiver) -> None:
    event = {"id": "e", "type": "score-create", "body": {"id": "s", "name": "outcome"}}
    response = httpx.post(
        f"{otlp_receiver.base_url}/api/public/ingestion", json={"batch": [event]}, auth=("a", "b")
    )
    assert response.json() == {"successes": [{"id": "e", "status": 201}], "errors": []}
    assert otlp_receiver.scores == [{"id": "s", "name": "outcome"}]


def test_the_client_finds_a_healthy_server_without_prompts(
    otlp_receiver: OtlpReceiver, langfuse: Langfuse
) -> None:
    assert langfuse.auth_check()
    assert langfuse.api.health.health().status == "OK"
    with pytest.raises(Exception, match="Prompt not found"):
        langfuse.get_prompt("sommelier", max_retries=0)
    assert httpx.get(f"{otlp_receiver.base_url}/api/public/projects").status_code == 401


@pytest.mark.parametrize(("mode", "status"), [("503", 503), ("500", 500), ("401", 401)])
def test_a_broken_server_answers_so_everywhere(
    otlp_receiver: OtlpReceiver, mode: Mode, status: int
) -> None:
    otlp_receiver.mode = mode
    root = f"{otlp_receiver.base_url}/api/public"
    assert httpx.get(f"{root}/health", auth=("a", "b")).status_code == status
    assert httpx.post(f"{root}/scores", json=[], auth=("a", "b")).status_code == status
    assert httpx.post(f"{root}/otel/v1/traces", auth=("a", "b")).status_code == status
    assert (otlp_receiver.spans, otlp_receiver.scores) == ([], [])


def test_a_black_hole_never_answers_and_still_stops(otlp_receiver: OtlpReceiver) -> None:
    otlp_receiver.mode = "black_hole"
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{otlp_receiver.base_url}/api/public/health", timeout=0.1)
    assert otlp_receiver.requests == ["GET /api/public/health"]


async def test_waiting_for_spans_says_which_came(otlp_receiver: OtlpReceiver) -> None:
    with pytest.raises(AssertionError, match=r"1 span\(s\) wanted, got \[\]"):
        await otlp_receiver.wait_for_spans(1, timeout=0.02)


def test_nothing_is_logged_by_a_server_that_stops_under_a_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), OtlpReceiver("black_hole") as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{server.base_url}/api/public/health", timeout=0.05)
        waiting = threading.Thread(target=_get_and_forget, args=(server.base_url,))
        waiting.start()
        deadline = time.monotonic() + 30
        while len(server.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert len(server.requests) == 2
    waiting.join()
    assert caplog.records == []


def _get_and_forget(base_url: str) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{base_url}/api/public/health", timeout=5)
