import asyncio
import gzip
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace as opentelemetry_trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent.engine.messages import Usage
from agent.engine.span import PromptRef
from agent.tracing.langfuse.traces import langfuse_sink, retry_after
from agent.tracing.recorder import Recorder, TraceRecord
from tests.doubles.otlp import Mode, OtlpReceiver
from tests.doubles.server import eventually

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


def tracer_for(receiver: OtlpReceiver) -> Recorder:
    return Recorder(
        langfuse_sink(
            receiver.public_key,
            receiver.secret_key,
            f"{receiver.base_url}/",
            environment="test",
            version="1.2.3",
        )
    )


def answer_with_a_retry(tracer: Recorder) -> str | None:
    with tracer.turn(input="a red for lamb", session="-1001", user="ab12") as root:
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
    return root.trace_id


async def test_a_turn_arrives_as_the_tree_an_admin_reads(langfuse: RawReceiver) -> None:
    tracer = tracer_for(langfuse)
    trace_id = answer_with_a_retry(tracer)
    await tracer.close()
    assert langfuse.tree(trace_id) == (
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
    tracer = tracer_for(langfuse)
    answer_with_a_retry(tracer)
    await tracer.close()
    root = langfuse.span("turn")
    assert (root.input, root.output, root.level) == ("a red for lamb", "Try this one.", "WARNING")
    assert root.metadata == {"outcome": "fallback", "retried": "yes", "error_types": ["json"]}
    assert root.parent_id is None
    assert root.attributes["langfuse.environment"] == "test"


async def test_a_server_is_told_whose_dialect_this_is(langfuse: RawReceiver) -> None:
    """By it Langfuse decodes metadata: else a filter for `yes` would not find `"yes"`."""
    tracer = tracer_for(langfuse)
    answer_with_a_retry(tracer)
    await tracer.close()
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
    keys = (langfuse.public_key, langfuse.secret_key, langfuse.base_url)
    for release in (None, "blue"):
        tracer = Recorder(langfuse_sink(*keys, release=release, version="1.2.3"))
        answer_with_a_retry(tracer)
        await tracer.close()
    named = [
        (span.attributes["langfuse.version"], span.attributes["langfuse.release"])
        for span in langfuse.spans
    ]
    assert named == [("1.2.3", "1.2.3")] * 8 + [("1.2.3", "blue")] * 8
    assert {span.resource["service.version"] for span in langfuse.spans} == {"1.2.3"}


async def test_the_list_says_why_beside_the_level(langfuse: RawReceiver) -> None:
    tracer = tracer_for(langfuse)
    answer_with_a_retry(tracer)
    await tracer.close()
    said = {
        span.name: span.attributes.get("langfuse.observation.status_message")
        for span in langfuse.spans
        if span.level != "DEFAULT"
    }
    assert said == {"turn": "['json']", "tool.search_wines": "ToolError"}


async def test_session_and_user_are_on_every_span_of_every_task_and_thread(
    langfuse: RawReceiver,
) -> None:
    tracer = tracer_for(langfuse)
    answer_with_a_retry(tracer)

    def in_a_bare_thread() -> None:
        with root.child("tool.slow", "tool"):
            pass

    with tracer.turn(input="b", session="s" * 300, user="u" * 300) as root:
        await asyncio.get_running_loop().run_in_executor(None, in_a_bare_thread)
    await tracer.close()
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
    tracer = tracer_for(langfuse)
    answer_with_a_retry(tracer)
    await tracer.close()
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
    tracer = tracer_for(langfuse)
    with tracer.turn(input="a", session="s", user="u") as root:
        with root.child("llm.answer", "generation") as span:
            span.score("user_feedback", 0, "BOOLEAN", comment="too dear")
            span.score("outcome", "answered", "CATEGORICAL")
        root.score("user_feedback", 1, "BOOLEAN", comment="after all")
    await tracer.close()
    scores = {score["id"]: score for score in langfuse.scores}
    assert sorted(scores) == [f"{root.trace_id}-outcome", f"{root.trace_id}-user_feedback"]
    feedback = scores[f"{root.trace_id}-user_feedback"]
    assert (feedback["value"], feedback["dataType"]) == (1.0, "BOOLEAN")
    assert (feedback["name"], feedback["comment"]) == ("user_feedback", "after all")
    assert feedback["observationId"] == langfuse.span("turn").span_id
    assert scores[f"{root.trace_id}-outcome"]["value"] == "answered"
    assert {score["environment"] for score in langfuse.scores} == {"test"}


async def test_an_exception_leaves_its_type_and_nothing_else(langfuse: RawReceiver) -> None:
    tracer = tracer_for(langfuse)
    with (
        pytest.raises(LookupError),
        tracer.turn(input="a", session="s", user="u") as root,
        root.child("tool.get_wine", "tool", metadata={"step": 2}),
    ):
        raise LookupError(SECRET)
    await tracer.close()
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
    tracer = tracer_for(langfuse)
    waiting = asyncio.Event()

    async def turn() -> None:
        with tracer.turn(input="a", session="s", user="u") as root, root.child("llm.plan", "span"):
            waiting.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(turn())
    await waiting.wait()
    task.cancel(SECRET)
    with pytest.raises(asyncio.CancelledError):
        await task
    await tracer.close()
    assert [(span.level, span.metadata) for span in langfuse.spans] == [
        ("ERROR", {"error_type": "CancelledError"})
    ] * 2
    assert SECRET.encode() not in langfuse.raw


async def test_half_a_character_of_a_model_does_not_cost_the_trace(langfuse: RawReceiver) -> None:
    tracer = tracer_for(langfuse)
    with tracer.turn(input="a \ud83c", session="s", user="u") as root:
        with root.child("tool.\udf77", "tool", input="\udf77", metadata={"call_id": "\ud83c"}):
            pass
        root.update(output="cut off: \ud83c")
        root.score("user_feedback", 1, "BOOLEAN", comment="\ud83c")
    await tracer.close()
    assert langfuse.span("turn").output == "cut off: ?"
    assert langfuse.span("tool.?").metadata == {"call_id": "?"}
    assert langfuse.scores[0]["comment"] == "?"


async def test_nobody_else_in_the_process_is_traced_or_gets_our_context(
    langfuse: RawReceiver,
) -> None:
    tracer = tracer_for(langfuse)
    theirs = TracerProvider(shutdown_on_exit=False).get_tracer("a web server")
    with theirs.start_as_current_span("theirs"), tracer.turn(input="a", session="s", user="u"):
        pass
    with tracer.turn(input="a", session="s", user="u"):
        other = opentelemetry_trace.get_tracer("another library").start_span("theirs")
        assert not other.get_span_context().is_valid
        assert not opentelemetry_trace.get_current_span().get_span_context().is_valid
        other.end()
    await tracer.close()
    assert [(span.name, span.parent_id) for span in langfuse.spans] == [("turn", None)] * 2


async def test_the_same_keys_can_be_used_again_after_a_close(langfuse: RawReceiver) -> None:
    for _ in range(2):
        tracer = tracer_for(langfuse)
        with tracer.turn(input="a", session="s", user="u"):
            pass
        await tracer.close()
        await tracer.close()
    assert len(langfuse.trace_ids) == 2


async def test_without_a_turn_nothing_is_sent_and_no_thread_is_left(langfuse: RawReceiver) -> None:
    before = {thread for thread in threading.enumerate() if thread.daemon}
    await tracer_for(langfuse).close()
    assert langfuse.requests == []
    assert {thread for thread in threading.enumerate() if thread.daemon} == before


PROCESS = """
import asyncio, sys
from agent.tracing.langfuse.traces import langfuse_sink
from agent.tracing.recorder import Recorder

tracer = Recorder(langfuse_sink("pk", "sk", sys.argv[1]))  # more than fits into one request
for number in range(1200):
    with tracer.turn(input="a", session="s", user="u") as root:
        if number < 40:
            root.score("outcome", "answered", "CATEGORICAL")
if sys.argv[2] == "closed":
    asyncio.run(tracer.close())
print("main has ended", flush=True)
"""


async def run_to_its_end(base_url: str, how: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROCESS, base_url, how), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"main has ended\n"
    assert await process.wait() == 0


async def test_a_process_ends_whether_it_closed_the_tracer_or_not() -> None:
    with OtlpReceiver("black_hole") as hole, OtlpReceiver() as alive:
        await asyncio.gather(
            run_to_its_end(hole.base_url, "forgotten"),
            run_to_its_end(hole.base_url, "closed"),
            run_to_its_end(alive.base_url, "forgotten"),
        )
    assert len(alive.trace_ids) == 1200
    assert len(alive.scores) == 40


async def test_spans_that_a_server_does_not_take_are_counted(otlp_receiver: OtlpReceiver) -> None:
    sink = langfuse_sink(otlp_receiver.public_key, otlp_receiver.secret_key, otlp_receiver.base_url)
    tracer = Recorder(sink)
    with tracer.turn(input="hello", session="1", user="u"):
        pass
    assert await asyncio.to_thread(sink.flush, 5)
    assert (len(otlp_receiver.spans), tracer.dropped_spans) == (1, 0)
    otlp_receiver.mode = "401"
    with tracer.turn(input="hello", session="1", user="u") as root, root.child("a", "span"):
        pass
    await tracer.close()
    assert tracer.dropped_spans == 2


async def test_a_server_that_comes_back_gets_what_was_traced_meanwhile(
    otlp_receiver: OtlpReceiver,
) -> None:
    tracer = tracer_for(otlp_receiver)
    otlp_receiver.mode = "503"
    ids = [answer_with_a_retry(tracer) for _ in range(3)]
    await eventually(
        lambda: len(otlp_receiver.requests) > 0, seconds=30, otherwise=lambda: "no request came"
    )
    otlp_receiver.mode = "ok"
    await otlp_receiver.wait_for_scores(6)
    assert otlp_receiver.trace_ids == ids
    assert (len(otlp_receiver.spans), tracer.dropped_spans) == (24, 0)
    await tracer.close()


async def test_scores_that_are_refused_do_not_keep_the_same_turn_from_being_sent_again() -> None:
    class OldServer(OtlpReceiver):
        """Takes no list of scores."""

        async def _scores(self, request: Request) -> Response:
            return Response(status_code=400)

    with OldServer() as langfuse:
        sink = langfuse_sink(langfuse.public_key, langfuse.secret_key, langfuse.base_url)
        tracer = Recorder(sink)
        for outcome in ("failed", "answered"):
            with tracer.turn(input="a", session="s", user="u", trace_id="ab" * 16) as root:
                root.score("outcome", outcome, "CATEGORICAL")
                root.update(output=outcome)
            assert await asyncio.to_thread(sink.flush, 5)
        await tracer.close()
    assert [span.output for span in langfuse.spans] == ["failed", "answered"]


async def test_a_trace_that_cannot_be_made_costs_no_other(otlp_receiver: OtlpReceiver) -> None:
    def prepare(trace: TraceRecord) -> TraceRecord:
        if trace.root.input == "poison":
            raise ValueError("not this one")
        return trace

    keys = (otlp_receiver.public_key, otlp_receiver.secret_key, otlp_receiver.base_url)
    tracer = Recorder(langfuse_sink(*keys, prepare=prepare))
    for number in range(10):
        with tracer.turn(input="poison" if number == 6 else "a red", session="s", user="u"):
            pass
    await tracer.close()
    assert [span.input for span in otlp_receiver.spans] == ["a red"] * 9
    assert tracer.dropped_spans == 1


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
    ("answer", "dropped", "said"),
    [
        (Response(TWO_REFUSED, media_type="application/x-protobuf"), 2, "2 spans refused"),
        (JSONResponse({"partialSuccess": {"rejectedSpans": "2"}}), 2, "2 spans refused"),
        (Response("<h1>Sign in</h1>", media_type="text/html"), 8, "a web page; check LANGFUSE_BAS"),
        (Response(status_code=302, headers={"location": "/login"}), 8, "check LANGFUSE_BASE_URL"),
        (Response(status_code=413), 8, "status 413"),
    ],
    ids=["protobuf", "json", "html", "redirect", "too large"],
)
async def test_what_a_server_did_not_take_is_counted_and_said_once(
    answer: Response, dropped: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with PickyReceiver(answer) as langfuse:
        tracer = tracer_for(langfuse)
        answer_with_a_retry(tracer)
        await tracer.close()
        taken = len(langfuse.scores)
    assert tracer.dropped_spans == dropped
    assert [said in each for each in caplog.messages if "Traces" in each] == [True]
    assert taken == (2 if dropped == 2 else 0)


async def test_scores_that_are_never_taken_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with PickyReceiver(JSONResponse({}), scores=207) as langfuse:
        sink = langfuse_sink(langfuse.public_key, langfuse.secret_key, langfuse.base_url)
        tracer = Recorder(sink)
        for _ in range(3):
            answer_with_a_retry(tracer)
            assert await asyncio.to_thread(sink.flush, 5)
        await tracer.close()
    assert tracer.dropped_spans == 0
    assert caplog.messages == ["Traces were not taken whole by Langfuse (some scores refused)"]


def test_a_server_says_how_long_to_leave_it_alone() -> None:
    assert retry_after(httpx.Response(429, headers={"Retry-After": "7"})) == 7
    assert retry_after(httpx.Response(429, headers={"Retry-After": "soon"})) == 0


async def test_any_backend_finds_the_names_of_opentelemetry(langfuse: RawReceiver) -> None:
    tracer = tracer_for(langfuse)
    answer_with_a_retry(tracer)
    with tracer.turn(input="a", session="s", user="u") as root:
        with root.child("llm", "generation") as generation:
            parameters = {"max_tokens": 800, "temperature": 0.1, "seed": None}
            prompt = PromptRef("sommelier", 3)
            generation.update(name="llm.plan2", model_parameters=parameters, prompt=prompt)
        root.update(level="ERROR", metadata={"error_type": "TimedOut"})
    await tracer.close()

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
    }
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
