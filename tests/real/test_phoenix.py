"""A real Phoenix reads what is sent to `OTEL_EXPORTER_OTLP_ENDPOINT`: kinds, messages, the tree."""

import asyncio
import os
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.engine.messages import Usage
from agent.tracing.records import TraceRecord
from agent.turn import Reply, record_turn
from bot.commands.doctor import check_tracing
from bot.tracing import open_exporter, trace_rows
from config import load_settings
from db.engine import Sessions
from db.repositories.traces import SqlTraceStore, trace_queue
from tests.databases import migrated_sqlite

PHOENIX = Path(os.environ.get("PHOENIX", "phoenix"))
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not PHOENIX.is_file(), reason="arize-phoenix is not installed (PHOENIX)"),
]
SEARCH = {"type": "function", "function": {"name": "search_wines", "parameters": {}}}
CALL = {"name": "search_wines", "arguments": {"styles": ["red"]}}


@pytest.fixture
async def phoenix(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a server of its own."""
    with socket.socket() as http, socket.socket() as grpc:
        http.bind(("127.0.0.1", 0))
        grpc.bind(("127.0.0.1", 0))
        ports = http.getsockname()[1], grpc.getsockname()[1]
    known = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(ports[0]),
        "PHOENIX_GRPC_PORT": str(ports[1]),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    server = await asyncio.create_subprocess_exec(
        PHOENIX, "serve", env=known, stdout=DEVNULL, stderr=DEVNULL
    )
    url = f"http://127.0.0.1:{ports[0]}"
    try:
        await until(lambda client: client.get(f"{url}/healthz"))
        yield url
    finally:
        server.terminate()
        await server.wait()


async def until(ask: Any, *, holds: Any = lambda answer: answer.is_success) -> httpx.Response:
    """The first answer that holds, within two minutes."""
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(120):
        while True:
            try:
                answer: httpx.Response = await ask(client)
                if holds(answer):
                    return answer
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)


def turn() -> TraceRecord:
    """A turn with one tool, whose first answer was invalid."""
    trace = TraceRecord("", "5e55", "0f0f")
    asked = [
        {"role": "system", "content": "You are a sommelier."},
        {"role": "user", "content": "a red"},
    ]
    with trace.open_root("a red for lamb") as span:
        with span.child("guard.input", "guardrail"):
            pass
        with span.child(
            "llm.plan", "generation", input=asked, metadata={"model": "gpt-4o"}
        ) as plan:
            plan.update(model="gpt-4o", usage=Usage(900, 40, 500), tools=(SEARCH,))
            plan.update(output={"content": "", "tool_calls": [CALL]}, cost_usd=0.002)
        with span.child("tool.search_wines", "tool", input={"styles": ["red"]}) as tool:
            tool.update(output="3 wines")
        with span.child(
            "llm.answer", "generation", input=asked, metadata={"model": "gpt-4o"}
        ) as said:
            said.update(model="gpt-4o", output="{no json", usage=Usage(1000, 50), level="WARNING")
        with span.child("telegram.send", "span") as send:
            send.update(level="ERROR", metadata={"error_type": "TimedOut"})
        record_turn(span, Reply(text="Try the Guigal.", retries=1, error_types=("invalid_json",)))
    return trace


async def test_phoenix_shows_the_turn_as_it_was(phoenix: str, tmp_path: Path) -> None:
    settings = load_settings(None, {"OTEL_EXPORTER_OTLP_ENDPOINT": phoenix})
    engine = await migrated_sqlite(tmp_path / "traces.sqlite3")
    sessions = Sessions(engine)
    store = SqlTraceStore(sessions, rows=trace_rows(settings))
    await store.save([turn()])
    async with open_exporter(settings, sessions) as exporter:
        assert exporter is not None
        assert await exporter.round() == 0
    assert await trace_queue(sessions).backlog() == {"sent": 1}
    await engine.dispose()
    url = f"{phoenix}/v1/projects/default/spans?limit=50"
    found = await until(
        lambda client: client.get(url), holds=lambda it: len(it.json()["data"]) == 6
    )
    spans = {each["name"]: each for each in found.json()["data"]}
    kinds = {name: each["span_kind"] for name, each in spans.items()}
    assert kinds == {
        "turn": "AGENT",
        "guard.input": "GUARDRAIL",
        "llm.plan": "LLM",
        "tool.search_wines": "TOOL",
        "llm.answer": "LLM",
        "telegram.send": "CHAIN",
    }
    root = spans["turn"]
    assert root["parent_id"] is None
    children = {each["parent_id"] for name, each in spans.items() if name != "turn"}
    assert children == {root["context"]["span_id"]}
    assert spans["telegram.send"]["status_code"] == "ERROR"
    known = root["attributes"]
    assert (known["input.value"], known["output.value"]) == ("a red for lamb", "Try the Guigal.")
    assert known["langfuse.trace.tags"] == ["retried", "error:invalid_json", "model:gpt-4o"]
    assert known["session.id"] == "5e55"
    plan = spans["llm.plan"]["attributes"]
    assert plan["llm.model_name"] == "gpt-4o"
    assert "a red" in plan["input.value"]
    assert plan["llm.token_count.prompt"] == 900
    assert plan["llm.token_count.completion"] == 40


async def test_doctor_finds_it(phoenix: str) -> None:
    known = {"OTEL_EXPORTER_OTLP_ENDPOINT": phoenix, "TRACE_USER_KEY": "long"}
    assert await check_tracing(load_settings(None, known)) == f"traces go to {phoenix}"
