import asyncio
import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent.engine.messages import Usage
from agent.engine.span import PromptRef, TraceRecord
from agent.tracing.exporter import Unavailable
from agent.tracing.otlp import Origin
from agent.tracing.recorder import Recorder
from tests.doubles.otlp import Mode, OtlpReceiver
from tests.traces import deliver, langfuse_traces

ORIGIN = Origin("test", version="1.2.3")
SECRET = "what the database said, and a password"


class RawReceiver(OtlpReceiver):
    """Keeps the bytes too, to look for what must not be in them."""

    def __init__(self, mode: Mode = "ok") -> None:
        super().__init__(mode)
        self.raw = b""
        self.headers: dict[str, str] = {}

    async def _traces(self, request: Request) -> Response:
        self.headers = dict(request.headers)
        body = await request.body()
        zipped = request.headers.get("content-encoding") == "gzip"
        self.raw += gzip.decompress(body) if zipped else body
        return await super()._traces(request)


@pytest.fixture
def langfuse() -> Iterator[RawReceiver]:
    with RawReceiver() as receiver:
        yield receiver


def answer_with_a_retry() -> TraceRecord:
    with Recorder().turn(input="a red for lamb", session="-1001", user="ab12") as root:
        with root.child("guard.input", "guardrail"):
            pass
        with root.child("llm", "generation", input=[{"role": "user"}], metadata={"step": 1}) as llm:
            llm.update(metadata={"attempt": 1, "mode": "json_object"}, model="gpt-4o")
            llm.update(
                name="llm.plan",
                output="a raw answer",
                usage=Usage(prompt_tokens=100, completion_tokens=20, cached_tokens=30),
                cost_usd=0.0125,
            )
        with root.child("tool.search_wines", "tool", metadata={"call_id": "c1"}) as tool:
            with tool.child("retrieve.wines", "retriever", input={"styles": ["red"]}) as retriever:
                retriever.update(output={"total": 3})
            tool.update(level="ERROR", metadata={"error_type": "ToolError"})
        with root.child("llm.answer", "generation") as invalid:
            invalid.update(output="{not json", metadata={"error_type": "json"})
        with root.child("guard.output", "guardrail"):
            pass
        with root.child("telegram.send", "span", metadata={"message_id": 7, "tries": 1}):
            pass
        root.update(
            output="Try this one.",
            level="WARNING",
            metadata={"outcome": "fallback", "retried": "yes", "error_types": ["json"]},
        )
        root.score("structured_retries", 1, "NUMERIC")
        root.score("outcome", "fallback", "CATEGORICAL")
    return root.trace


async def test_a_turn_arrives_as_the_tree_an_admin_reads(langfuse: RawReceiver) -> None:
    trace = answer_with_a_retry()
    await deliver(langfuse, trace)
    assert langfuse.tree(trace.trace_id) == (
        "turn",
        "agent",
        [
            ("guard.input", "guardrail", []),
            ("llm.plan", "generation", []),
            ("tool.search_wines", "tool", [("retrieve.wines", "retriever", [])]),
            ("llm.answer", "generation", []),
            ("guard.output", "guardrail", []),
            ("telegram.send", "span", []),
        ],
    )
    assert len(langfuse.spans) == 8


async def test_the_root_holds_what_the_list_of_traces_shows(langfuse: RawReceiver) -> None:
    await deliver(langfuse, answer_with_a_retry(), origin=ORIGIN)
    root = langfuse.span("turn")
    assert (root.input, root.output, root.level) == ("a red for lamb", "Try this one.", "WARNING")
    assert root.metadata == {"outcome": "fallback", "retried": "yes", "error_types": ["json"]}
    assert root.parent_id is None
    assert root.attributes["langfuse.environment"] == "test"


async def test_a_server_is_told_whose_dialect_this_is(langfuse: RawReceiver) -> None:
    """By it Langfuse decodes metadata: else a filter for `yes` would not find `"yes"`."""
    await deliver(langfuse, answer_with_a_retry(), origin=ORIGIN)
    assert langfuse.headers["x-langfuse-sdk-name"] == "python"
    assert langfuse.headers["x-langfuse-sdk-version"] == version("langfuse")
    assert langfuse.headers["x-langfuse-ingestion-version"] == "4"
    (batch,) = ExportTraceServiceRequest.FromString(langfuse.raw).resource_spans
    scope = batch.scope_spans[0].scope
    assert (scope.name, scope.version) == ("langfuse-sdk", version("langfuse"))
    stored = {
        pair.key: pair.value.string_value for pair in batch.scope_spans[0].spans[0].attributes
    }
    assert stored["langfuse.observation.metadata.retried"] == '"yes"'


async def test_what_got_slower_since_the_last_version_can_be_asked(langfuse: RawReceiver) -> None:
    for release in (None, "blue"):
        origin = Origin(release=release, version="1.2.3")
        await deliver(langfuse, answer_with_a_retry(), origin=origin)
    named = [
        (span.attributes["langfuse.version"], span.attributes["langfuse.release"])
        for span in langfuse.spans
    ]
    assert named == [("1.2.3", "1.2.3")] * 8 + [("1.2.3", "blue")] * 8
    assert {span.resource["service.version"] for span in langfuse.spans} == {"1.2.3"}


async def test_the_list_says_why_beside_the_level(langfuse: RawReceiver) -> None:
    await deliver(langfuse, answer_with_a_retry(), origin=ORIGIN)
    said = {
        span.name: span.attributes.get("langfuse.observation.status_message")
        for span in langfuse.spans
        if span.level != "DEFAULT"
    }
    assert said == {"turn": "['json']", "tool.search_wines": "ToolError"}


async def test_session_and_user_are_on_every_span_of_every_task_and_thread(
    langfuse: RawReceiver,
) -> None:
    first_trace = answer_with_a_retry()

    def in_a_bare_thread() -> None:
        with root.child("tool.slow", "tool"):
            pass

    with Recorder().turn(input="b", session="s" * 300, user="u" * 300) as root:
        await asyncio.get_running_loop().run_in_executor(None, in_a_bare_thread)
    await deliver(langfuse, first_trace, root.trace)
    first, second = langfuse.trace_ids
    assert {(s.session, s.user) for s in langfuse.spans if s.trace_id == first} == {
        ("-1001", "ab12")
    }
    assert [(s.session, s.user) for s in langfuse.spans if s.trace_id == second] == [
        ("s" * 200, "u" * 200)
    ] * 2


async def test_a_generation_keeps_answer_usage_cost_and_merged_metadata(
    langfuse: RawReceiver,
) -> None:
    await deliver(langfuse, answer_with_a_retry(), origin=ORIGIN)
    plan = langfuse.span("llm.plan")
    assert (plan.input, plan.output, plan.model) == ([{"role": "user"}], "a raw answer", "gpt-4o")
    assert plan.usage == {"input": 70, "input_cached_tokens": 30, "output": 20}
    assert plan.cost == {"total": 0.0125}
    assert plan.metadata == {"step": 1, "attempt": 1, "mode": "json_object"}
    assert (plan.level, plan.status) == ("DEFAULT", "unset")
    tool = langfuse.span("tool.search_wines")
    assert tool.metadata == {"call_id": "c1", "error_type": "ToolError"}
    assert tool.level == "ERROR"


async def test_scores_sit_on_the_root_under_fixed_ids(langfuse: RawReceiver) -> None:
    with Recorder().turn(input="a", session="s", user="u") as root:
        with root.child("llm.answer", "generation") as span:
            span.score("user_feedback", 0, "BOOLEAN", comment="too dear")
            span.score("outcome", "answered", "CATEGORICAL")
        root.score("user_feedback", 1, "BOOLEAN", comment="after all")
    await deliver(langfuse, root.trace, origin=ORIGIN)
    scores = {score["id"]: score for score in langfuse.scores}
    assert sorted(scores) == [f"{root.trace_id}-outcome", f"{root.trace_id}-user_feedback"]
    feedback = scores[f"{root.trace_id}-user_feedback"]
    assert (feedback["value"], feedback["dataType"]) == (1.0, "BOOLEAN")
    assert (feedback["name"], feedback["comment"]) == ("user_feedback", "after all")
    assert feedback["observationId"] == langfuse.span("turn").span_id
    assert scores[f"{root.trace_id}-outcome"]["value"] == "answered"
    assert {score["environment"] for score in langfuse.scores} == {"test"}


async def test_an_exception_leaves_its_type_and_nothing_else(langfuse: RawReceiver) -> None:
    with (
        pytest.raises(LookupError),
        Recorder().turn(input="a", session="s", user="u") as root,
        root.child("tool.get_wine", "tool", metadata={"step": 2}),
    ):
        raise LookupError(SECRET)
    await deliver(langfuse, root.trace, origin=ORIGIN)
    tool = langfuse.span("tool.get_wine")
    assert (tool.level, tool.status, tool.status_message) == ("ERROR", "error", "")
    assert tool.metadata == {"step": 2, "error_type": "LookupError"}
    assert langfuse.span("turn").level == "ERROR"
    assert b"LookupError" in langfuse.raw
    assert SECRET.encode() not in langfuse.raw
    assert b"Traceback" not in langfuse.raw
    assert Path(__file__).name.encode() not in langfuse.raw
    assert langfuse.secret_key.encode() not in langfuse.raw


async def test_a_cancelled_turn_is_an_error_that_says_so(langfuse: RawReceiver) -> None:
    waiting, root = asyncio.Event(), Recorder().turn(input="a", session="s", user="u")

    async def turn() -> None:
        with root, root.child("llm.plan", "span"):
            waiting.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(turn())
    await waiting.wait()
    task.cancel(SECRET)
    with pytest.raises(asyncio.CancelledError):
        await task
    await deliver(langfuse, root.trace, origin=ORIGIN)
    assert [(span.level, span.metadata) for span in langfuse.spans] == [
        ("ERROR", {"error_type": "CancelledError"})
    ] * 2
    assert SECRET.encode() not in langfuse.raw


async def test_half_a_character_of_a_model_does_not_cost_the_trace(langfuse: RawReceiver) -> None:
    with Recorder().turn(input="a \ud83c", session="s", user="u") as root:
        with root.child("tool.\udf77", "tool", input="\udf77", metadata={"call_id": "\ud83c"}):
            pass
        root.update(output="cut off: \ud83c")
        root.score("user_feedback", 1, "BOOLEAN", comment="\ud83c")
    await deliver(langfuse, root.trace, origin=ORIGIN)
    assert langfuse.span("turn").output == "cut off: ?"
    assert langfuse.span("tool.?").metadata == {"call_id": "?"}
    assert langfuse.scores[0]["comment"] == "?"


class OldServer(OtlpReceiver):
    """Takes no list of scores."""

    async def _scores(self, request: Request) -> Response:
        return Response(status_code=400)


async def test_scores_that_are_refused_cost_no_trace_and_no_later_one() -> None:
    with OldServer() as langfuse:
        async with langfuse_traces(langfuse) as destination:
            for outcome, trace_id in (("failed", "ab" * 16), ("answered", "cd" * 16)):
                with Recorder().turn(input="a", session="s", user="u", trace_id=trace_id) as root:
                    root.score("outcome", outcome, "CATEGORICAL")
                    root.update(output=outcome)
                assert await destination.send([root.trace]) == 1
    assert [span.output for span in langfuse.spans] == ["failed", "answered"]


async def test_spans_that_were_taken_are_not_sent_again_for_their_scores() -> None:
    class Busy(OtlpReceiver):
        """Has no time for scores at first."""

        busy = 2

        async def _scores(self, request: Request) -> Response:
            self.busy -= 1
            return Response(status_code=503) if self.busy >= 0 else await super()._scores(request)

    trace = answer_with_a_retry()
    with Busy() as langfuse:
        async with langfuse_traces(langfuse) as destination:
            for _ in range(2):
                with pytest.raises(Unavailable):
                    await destination.send([trace])
            assert await destination.send([trace]) == 0
    assert langfuse.requests.count("POST /api/public/otel/v1/traces") == 1
    assert (len(langfuse.spans), len(langfuse.scores)) == (8, 2)


class PickyReceiver(OtlpReceiver):
    """Answers spans with what it is told, and takes some scores only."""

    def __init__(self, answer: Response, scores: int = 202) -> None:
        super().__init__()
        self.answer = answer
        self.status_of_scores = scores

    async def _traces(self, request: Request) -> Response:
        await super()._traces(request)
        return self.answer

    async def _scores(self, request: Request) -> Response:
        await super()._scores(request)
        rejected = {"accepted": 0, "rejected": 1, "errors": [{"message": "no"}]}
        return JSONResponse(rejected, self.status_of_scores)


TWO_REFUSED = ExportTraceServiceResponse(
    partial_success=ExportTracePartialSuccess(rejected_spans=2)
).SerializeToString()


@pytest.mark.parametrize(
    ("answer", "scores", "refused"),
    [
        (Response(TWO_REFUSED, media_type="application/x-protobuf"), 202, 2),
        (JSONResponse({"partialSuccess": {"rejectedSpans": "2"}}), 202, 2),
        (JSONResponse({}), 207, 1),
    ],
    ids=["protobuf", "json", "scores"],
)
async def test_what_a_server_did_not_take_is_counted(
    answer: Response, scores: int, refused: int
) -> None:
    with PickyReceiver(answer, scores) as langfuse:
        assert await deliver(langfuse, answer_with_a_retry()) == refused


@pytest.mark.parametrize(
    ("answer", "means", "said"),
    [
        (
            Response("<h1>Sign in</h1>", media_type="text/html"),
            "rejected",
            "check LANGFUSE_BASE_URL",
        ),
        (
            Response(status_code=302, headers={"location": "/login"}),
            "rejected",
            "check LANGFUSE_BAS",
        ),
        (Response(status_code=404), "rejected", "HTTP 404; check LANGFUSE_BASE_URL"),
        (Response(status_code=401), "rejected", "does not know the keys"),
        (Response(status_code=413), "unreadable", "HTTP 413"),
        (Response(status_code=429, headers={"retry-after": "7"}), "passes", "HTTP 429"),
        (Response(status_code=500), "passes", "HTTP 500"),
    ],
    ids=["html", "redirect", "nowhere", "keys", "too large", "too many", "broken"],
)
async def test_what_a_server_does_not_take_says_what_to_do_and_whether_to_try_again(
    answer: Response, means: str, said: str
) -> None:
    with PickyReceiver(answer) as langfuse, pytest.raises(Unavailable, match=said) as raised:
        await deliver(langfuse, answer_with_a_retry())
    error = raised.value
    assert (error.passes, error.is_unreadable) == (means == "passes", means == "unreadable")
    assert error.retry_after == (7 if error.status == 429 else 0)
    assert langfuse.scores == [], "a score went before its trace"


async def test_any_backend_finds_the_names_of_opentelemetry(langfuse: RawReceiver) -> None:
    first = answer_with_a_retry()
    with Recorder().turn(input="a", session="s", user="u") as root:
        with root.child("llm", "generation") as generation:
            parameters = {"max_tokens": 800, "temperature": 0.1, "seed": None}
            prompt = PromptRef("sommelier", 3)
            generation.update(name="llm.plan2", model_parameters=parameters, prompt=prompt)
            began = root.trace.spans[1].started_ns
            generation.update(first_token_ns=began + 500_000_000)
        root.update(level="ERROR", metadata={"error_type": "TimedOut"})
    await deliver(langfuse, first, root.trace)

    def conventional(name: str, number: int = 0) -> dict[str, object]:
        span = [span for span in langfuse.spans if span.name == name][number]
        return {
            key: value
            for key, value in span.attributes.items()
            if key.startswith(("gen_ai.", "error."))
        }

    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sommelier"}
    assert conventional("turn") == agent | {"gen_ai.conversation.id": "-1001"}
    failed = agent | {"gen_ai.conversation.id": "s", "error.type": "TimedOut"}
    assert conventional("turn", 1) == failed
    assert conventional("llm.plan") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "-1001",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.output_tokens": 20,
    }
    assert conventional("llm.plan2") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.max_tokens": 800,
        "gen_ai.request.temperature": 0.1,
        "gen_ai.prompt.name": "sommelier",
        "gen_ai.response.time_to_first_chunk": pytest.approx(0.5),
    }
    second = next(span for span in langfuse.spans if span.name == "llm.plan2")
    first_token = json.loads(second.attributes["langfuse.observation.completion_start_time"])
    waited = datetime.fromisoformat(first_token).timestamp() - second.start
    assert waited == pytest.approx(0.5, abs=0.001)
    assert conventional("tool.search_wines") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "-1001",
        "gen_ai.tool.name": "search_wines",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "error.type": "ToolError",
    }
    assert conventional("retrieve.wines")["gen_ai.operation.name"] == "retrieval"
    assert conventional("guard.input") == {}
