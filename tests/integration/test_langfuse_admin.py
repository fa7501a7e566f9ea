"""What an admin sees in Langfuse: true costs and times, every score, and causes to be read."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest

from agent.documents.passages import retrieve
from agent.engine.current_draft import CurrentDraft
from agent.engine.errors import ToolError
from agent.engine.llm import LLMService
from agent.engine.messages import ToolCall
from agent.engine.run import Limits, Run
from agent.engine.tools import Toolbox
from agent.engine.wire import Dialect
from agent.places.find import find_places, find_places_tool
from agent.tracing.masking import Masking
from agent.tracing.records import TraceRecord
from agent.turn import Reply, record_turn
from bot.tracing import open_exporter, project_of
from bot.turn import Delivery, trace_delivery
from config import SettingsError, load_settings
from db.engine import Sessions
from db.traces import SqlTraceStore, TraceRows
from tests.acceptance.test_end_to_end import traced_to
from tests.doubles.model_server import (
    ModelServer,
    Script,
    Step,
    answer,
    answer_json,
    cut,
    error,
    error_body,
    paced,
    refusal,
)
from tests.doubles.otlp import OtlpReceiver, Span
from tests.doubles.server import eventually
from tests.fakes import asked, fake_sommelier
from tests.faults.turns import INVENTED, VALID, search, valid
from tests.library import OYSTERS, SUR_LIE, FakeLibrary
from tests.traces import deliver, retried_trace, save_traces

EXPORTED = TraceRows(is_exported=True)
QUESTION = "a red for lamb with Gugelhupf"


async def ask(
    server: ModelServer,
    *steps: Script,
    models: Sequence[str] = ("gpt-4o",),
    message: str = QUESTION,
    **run: Any,
) -> tuple[TraceRecord, Run]:
    """Answer one message; return the trace of the turn and its run."""
    server.script(*steps)
    known: dict[str, Any] = {"api_key": "test", "base_url": server.base_url}
    known["dialect"] = Dialect.of_openai()
    made = [LLMService(model=name, **known) for name in models]
    trace = TraceRecord("", "5e55", "0f0f")
    sommelier = fake_sommelier()
    with trace.open_root(message) as root:
        turn = Run(made, span=root, **{"limits": Limits(model_tries=1), **run})
        await asked(sommelier, message, turn)
    for model in made:
        await model.close()
    return trace, turn


def generations(langfuse: OtlpReceiver) -> list[Span]:
    return [span for span in langfuse.spans if span.type == "generation"]


KINDS_OF_TURNS: list[Sequence[Script]] = [
    [search(), valid()],
    [search(), replace(valid(), usage=(900, 50), cached=800)],
    [error(500), search(), valid()],
    [error(500), error(429)],
    [cut(), error(401)],
    [search(), answer("{not json"), answer_json(INVENTED), valid()],
    [refusal("I won't.")],
    [search(), error(503), error(503)],
]


async def test_thirty_turns_with_failures_cost_what_the_usage_says(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    cost = 0.0
    for number in range(30):
        steps = KINDS_OF_TURNS[number % len(KINDS_OF_TURNS)]
        trace, run = await ask(model_server, *steps, models=("gpt-4o", "gpt-4o-mini"))
        assert await deliver(otlp_receiver, sessions, trace) == []
        cost += run.usage.cost_usd
    assert cost > 0.01
    assert otlp_receiver.total_cost == pytest.approx(cost, abs=0.0001)
    failed = [span for span in generations(otlp_receiver) if span.level == "ERROR"]
    assert len(failed) > 10
    assert {(span.usage["input"], span.total_cost) for span in failed} == {(0, 0.0)}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            error(401, error_body("No such key.")),
            "ModelRejected: HTTP 401: No such key.",
        ),
        (
            error(429, error_body("Slow down.")),
            "ModelUnavailable: HTTP 429: Slow down.",
        ),
        (error(500, error_body("Oh " * 200)), "ModelUnavailable: HTTP 500: Oh Oh"),
        (error(500, error_body("Ask ada@example.org")), "HTTP 500: Ask [email]"),
    ],
)
async def test_a_failed_request_has_its_status_and_the_words_of_the_server(
    step: Step,
    said: str,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    sessions: Sessions,
) -> None:
    trace, _ = await ask(model_server, step)
    await deliver(otlp_receiver, sessions, trace)
    (failed,) = generations(otlp_receiver)
    assert said in failed.message
    assert len(failed.metadata["cause"]) <= 200
    hidden = Masking("none").mask_trace(trace)
    assert "cause" not in hidden.spans[-1].metadata


async def test_a_total_outage_has_the_tag_of_the_fallback(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    trace, _ = await ask(
        model_server, error(500), error(500), models=("gpt-4o", "gpt-4o-mini")
    )
    await deliver(otlp_receiver, sessions, trace)
    root = otlp_receiver.span("turn")
    assert "fallback" in root.tags
    assert (root.level, root.metadata["fallback"]) == ("WARNING", True)


async def test_a_model_without_a_known_price_has_the_admins_price(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    step = replace(refusal("I won't."), usage=(10, 5))
    trace, run = await ask(model_server, step, models=("house-model",))
    await deliver(otlp_receiver, sessions, trace)
    (generation,) = generations(otlp_receiver)
    assert generation.cost is None
    assert (generation.total_cost, run.usage.cost_usd) == (10 * 1.0 + 5 * 2.0, 0)


async def test_cached_and_reasoning_tokens_have_a_price_of_their_own(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    step = replace(valid(), usage=(1000, 100), cached=600, reasoning=80)
    trace, run = await ask(model_server, search("call_7"), step)
    await deliver(otlp_receiver, sessions, trace)
    plan, final = sorted(generations(otlp_receiver), key=lambda span: span.start)
    assert final.usage == {
        "input": 400,
        "input_cached_tokens": 600,
        "output": 20,
        "output_reasoning_tokens": 80,
    }
    assert final.cost["input_cached_tokens"] == pytest.approx(600 * 1.25 / 1e6)
    assert final.cost["output_reasoning_tokens"] == pytest.approx(80 * 10 / 1e6)
    assert otlp_receiver.total_cost == pytest.approx(run.usage.cost_usd)
    assert (plan.metadata["finish_reason"], final.metadata["finish_reason"]) == (
        *("tool_calls", "stop"),
    )
    assert plan.output["tool_calls"][0]["id"] == "call_7"
    parameters = json.loads(final.attributes["langfuse.observation.model.parameters"])
    assert parameters["response_format"] == "json_object"
    assert otlp_receiver.span("tool.search_wines").metadata["call_id"] == "call_7"


async def test_an_answer_that_was_stopped_is_no_error_and_keeps_what_was_written(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    long = answer_json(VALID | {"closing": "It is fresh. " * 400})
    draft = CurrentDraft()
    run = Run(limits=Limits())
    turn = asyncio.create_task(
        ask(model_server, search(), paced(long, 400), draft=draft, stop=run.stop)
    )
    await eventually(lambda: "fresh" in draft.text(), otherwise=lambda: "none")
    run.stop.request()
    trace, turn_run = await turn
    await deliver(otlp_receiver, sessions, trace)
    stopped = otlp_receiver.span("llm.answer")
    assert (stopped.level, stopped.metadata["outcome"]) == ("DEFAULT", "stopped")
    assert "It is fresh." in str(stopped.output)
    assert "langfuse.observation.completion_start_time" in stopped.attributes
    assert otlp_receiver.span("turn").metadata["outcome"] == "stopped"
    assert otlp_receiver.total_cost == pytest.approx(turn_run.usage.cost_usd)


class SearchThatIsDown:
    async def search(self, query: str) -> list[Any]:
        raise ToolError("the place search answered HTTP 502")


async def test_places_that_cannot_be_searched_for_are_seen(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    down: Any = SearchThatIsDown()
    trace = TraceRecord("", "5e55", "0f0f")
    with trace.open_root("wine bars in Leeds") as root:
        run = Run(span=root)
        arguments = '{"category": "WINE_BAR", "place": "Leeds"}'
        call = ToolCall("call_1", "find_places", arguments)
        assert (
            "search_links"
            in (await Toolbox([find_places_tool(down)]).call(call, run)).text
        )
        record_turn(root, Reply(text="Here are links."))
    command = TraceRecord("", "5e55", "0f0f", name="find")
    with command.open_root("/find wine bars in Leeds") as root:
        places = await find_places("WINE_BAR", "Leeds", run=Run(span=root), search=down)
        record_turn(root, places.to_reply("Nothing answers."))
    await deliver(otlp_receiver, sessions, trace, command)
    tool = otlp_receiver.span("tool.find_places")
    assert (tool.level, tool.message) == ("ERROR", "search_failed")
    assert "tool_error:find_places" in tool.tags
    (found,) = [
        span for span in otlp_receiver.spans if span.span_id == command.root.span_id
    ]
    assert (found.level, found.message) == ("WARNING", "search_failed")
    assert {"fallback", "error:search_failed"} <= set(found.tags)


async def test_a_trace_shows_look_ups_before_the_model_and_the_checks(
    model_server: ModelServer, otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    trace, _ = await ask(model_server, search(), valid(), message="a red for lamb")
    await deliver(otlp_receiver, sessions, trace)
    calls = [span for span in otlp_receiver.spans if span.name == "tool.search_wines"]
    before, by_model = sorted(calls, key=lambda span: span.start)
    assert before.metadata["prefetch"] is True
    assert "prefetch" not in by_model.metadata
    assert otlp_receiver.span("guard.input").input == "a red for lamb"
    assert otlp_receiver.span("guard.output").input == VALID


async def test_passages_are_read_with_their_rank(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    long = replace(SUR_LIE, text="Lees are yeast. " * 50)
    trace = TraceRecord("", "5e55", "0f0f")
    with trace.open_root("What are lees?") as root:
        await retrieve(FakeLibrary([long, OYSTERS]), ["lees"], root)
    await deliver(otlp_receiver, sessions, trace)
    first, second = otlp_receiver.span("retrieve.documents").output
    assert (first["rank"], second["rank"]) == (1, 2)
    assert first["text"].startswith("Lees are yeast.")
    assert len(first["text"]) <= 200


async def test_three_messages_of_one_answer_are_no_failures(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    trace = TraceRecord("", "5e55", "0f0f")
    with trace.open_root("/find wine bars in Leeds") as root:
        record_turn(root, Reply(text="One. Two. Three."))
    trace_delivery(
        root, Delivery((7, 8, 9), requests=3, texts=("One.", "Two.", "Three."))
    )
    await deliver(otlp_receiver, sessions, trace)
    sending = otlp_receiver.span("telegram.send")
    assert (sending.level, sending.output) == ("DEFAULT", "One.\n\nTwo.\n\nThree.")
    assert (sending.metadata["messages"], sending.metadata["failed_requests"]) == (3, 0)


async def test_installations_that_share_a_project_are_told_apart(
    otlp_receiver: OtlpReceiver, sessions: Sessions
) -> None:
    keys = traced_to(otlp_receiver)
    own = {"LANGFUSE_TRACING_ENVIRONMENT": "staging", "LANGFUSE_RELEASE": "3f2a1b0"}
    await save_traces(SqlTraceStore(sessions, rows=EXPORTED), [retried_trace()])
    async with open_exporter(load_settings(None, keys | own), sessions):
        pass
    for span in otlp_receiver.spans:
        assert span.attributes["langfuse.environment"] == "staging"
        assert span.attributes["langfuse.release"] == "3f2a1b0"
    assert {score["environment"] for score in otlp_receiver.scores} == {"staging"}


def test_the_release_is_the_version_unless_it_is_set() -> None:
    assert project_of(load_settings(None, {})).release == version("sommelier")
    with pytest.raises(SettingsError, match="LANGFUSE_TRACING_ENVIRONMENT"):
        load_settings(None, {"LANGFUSE_TRACING_ENVIRONMENT": "langfuse-staging"})
