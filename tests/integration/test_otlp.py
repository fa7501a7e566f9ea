"""Traces to any backend of OpenTelemetry; a real one reads them in `tests/real`."""

import json
from collections.abc import Mapping

import httpx2
import pytest

from agent.engine.messages import Usage
from agent.engine.span import TraceRecord
from agent.tracing.exporter import HttpClient, Unavailable
from agent.tracing.otlp import Origin, OtlpTraces
from agent.tracing.recorder import Recorder
from bot.services import otlp_client
from config import SettingsError, settings_of
from tests.doubles.otlp import Span, spans_in

TOOL = {"type": "function", "function": {"name": "search_wines"}}
ASKED = [{"role": "system", "content": "You are a sommelier."}, {"role": "user", "content": "Hi"}]
CALL = {"id": "c1", "function": {"name": "search_wines", "arguments": "{}"}}


def turn() -> TraceRecord:
    root = Recorder().turn(input="a red?", session="s", user="u", name="ask")
    with root as span:
        with span.child("llm.plan", "generation", input=[*ASKED]) as plan:
            began = root.trace.spans[1].started_ns
            plan.update(model="gpt-4o", usage=Usage(100, 20, 30), cost_usd=0.5, tools=(TOOL,))
            plan.update(output={"content": "", "tool_calls": [CALL]})
            plan.update(first_token_ns=began + 250_000_000)
        with span.child("tool.search_wines", "tool", input={"styles": ["red"]}) as tool:
            tool.update(output="3 wines", level="ERROR", metadata={"error_type": "ToolError"})
        span.update(output="Yes.", metadata={"outcome": "answered"})
        span.score("outcome", "answered", "CATEGORICAL")
    return root.trace


async def sent(status: int = 200, **client: object) -> tuple[httpx2.Request, Mapping[str, Span]]:
    """The request that a turn became, and its spans by name."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return httpx2.Response(status)

    known = {"name": "x", "check": "y", "seconds": 5, "transport": httpx2.MockTransport(answer)}
    made = HttpClient("http://collector:4318", **(known | client))  # type: ignore[arg-type]
    try:
        await OtlpTraces(made, Origin("berlin", "blue", "1.2.3")).send([turn()])
    finally:
        await made.aclose()
    return requests[0], {span.name: span for span in spans_in(requests[0].content)}


async def test_what_was_said_stands_in_the_names_of_the_conventions() -> None:
    request, spans = await sent(headers={"authorization": "Bearer x"})
    assert str(request.url) == "http://collector:4318/v1/traces"
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers["authorization"] == "Bearer x"
    plan = spans["llm.plan"].attributes
    assert json.loads(plan["gen_ai.input.messages"])[1] == {
        "role": "user",
        "parts": [{"type": "text", "content": "Hi"}],
    }
    assert json.loads(plan["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "search_wines", "arguments": "{}"}],
        }
    ]
    assert json.loads(plan["gen_ai.tool.definitions"]) == [TOOL]
    assert plan["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.25)
    assert (plan["gen_ai.usage.input_tokens"], plan["sommelier.cost_usd"]) == (100, 0.5)
    tool = spans["tool.search_wines"]
    assert (tool.status, tool.attributes["error.type"]) == ("error", "ToolError")
    assert tool.attributes["gen_ai.tool.call.result"] == "3 wines"
    root = spans["turn"].attributes
    assert (root["input.value"], root["output.value"]) == ("a red?", "Yes.")
    assert (root["sommelier.turn"], root["sommelier.score.outcome"]) == ("ask", "answered")
    assert root["sommelier.tags"] == ["tool_error:search_wines"]
    assert spans["turn"].resource["deployment.environment.name"] == "berlin"
    assert not any(name.startswith("langfuse.") for name in root)


async def test_a_backend_that_is_elsewhere_is_refused_with_what_to_check() -> None:
    with pytest.raises(Unavailable, match="x answered HTTP 404; check y"):
        await sent(404)


async def test_headers_are_read_as_opentelemetry_writes_them() -> None:
    known = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}
    settings = settings_of(known | {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1"})
    assert settings.tracing.otlp_headers == (("api-key", "a b"), ("x", "1"))
    assert "a b" in settings.secrets
    await otlp_client(settings).aclose()
    with pytest.raises(SettingsError, match="must be headers like name=value"):
        settings_of(known | {"OTEL_EXPORTER_OTLP_HEADERS": "nothing"})
