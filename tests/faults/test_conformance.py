"""What a model server can do wrong, and what must come of it: one row, one test.

Each row asserts the exact number of requests and the outcome; every row also asserts that the
ledger equals what the server counted and that OpenAI would accept each history sent.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from agent.engine.contract import OutputContract
from agent.engine.limits import Ledger, Limits
from agent.engine.loop import Outcome, generate_agentic_response
from agent.engine.run import Run
from agent.engine.tools import Tool, tool
from tests.doubles.model_server import (
    ModelServer,
    Script,
    answer,
    answer_json,
    cut,
    error,
    hang,
    no_choices,
    null_content,
    raw,
    reasoning_only,
    refusal,
    reset,
    tool_call,
    tool_calls,
)
from tests.doubles.model_steps import call
from tests.fakes import CHINON
from tests.faults.turns import INVENTED, SEARCH, VALID, named, search, service, turn, valid

TEXT = json.dumps(VALID)
SINGLE_QUOTED = (
    "{'response_type': 'recommendation', 'intro': 'For your lamb:', 'wines': "
    f"[{{'wine_id': '{CHINON.id}', 'description': 'Fresh.'}}], 'closing': ''}}"
)
UNQUOTED = (
    "{response_type: 'recommendation', // the type\n intro: 'For your lamb:',\n"
    f" wines: [{{wine_id: '{CHINON.id}', description: 'Fresh.',}},], /* done */ closing: ''}}"
)
EMPTY = {"response_type": "informational", "intro": "", "wines": [], "closing": " "}
WRITTEN_CALL = '<tool_call>{"name": "search_wines", "arguments": {}}</tool_call>'
CALL_AS_JSON = '{"name": "search_wines", "arguments": {"styles": ["red"]}}'
SCHEMA_COPY = {"type": "object", "properties": {"intro": {"type": "string"}}}
PLACEHOLDER = {"response_type": "informational", "intro": "string", "wines": [], "closing": "..."}
BROKEN_ARGUMENTS = '{"styles": ["red"'
UNCOUNTED = b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}'


@dataclass(frozen=True)
class Fault:
    """A script, and what must come of it."""

    name: str
    script: Sequence[Script]
    requests: int
    outcome: Outcome = "answered"
    error_types: tuple[str, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits(seconds=20))


FAULTS = [
    # Notation is repaired without a further request.
    Fault("fenced JSON", [search(), answer(f"```json\n{TEXT}\n```")], 2),
    Fault("prose around one object", [search(), answer(f"Sure! {TEXT} Enjoy.")], 2),
    Fault("trailing comma", [search(), answer(TEXT.replace("}]", ",}]"))], 2),
    Fault("single quotes", [search(), answer(SINGLE_QUOTED)], 2),
    Fault("unquoted keys, comments", [search(), answer(UNQUOTED)], 2),
    Fault("thoughts before the answer", [search(), answer(f"<think>{{hm}}</think>{TEXT}")], 2),
    # Content is fed back.
    Fault(
        "broken JSON once", [search(), answer(TEXT[:-9]), valid()], 3, "answered", ("invalid_json",)
    ),
    Fault(
        "broken JSON twice",
        [search(), answer(TEXT[:-9]), answer(TEXT[:-20]), valid()],
        4,
        "answered",
        ("invalid_json",) * 2,
    ),
    Fault(
        "two different objects",
        [search(), answer(f"{TEXT} or {json.dumps(EMPTY)}"), valid()],
        3,
        "answered",
        ("invalid_json",),
    ),
    Fault(
        "schema error", [search(), answer_json({"wines": 3}), valid()], 3, "answered", ("schema",)
    ),
    Fault(
        "semantically empty", [search(), answer_json(EMPTY), valid()], 3, "answered", ("semantic",)
    ),
    Fault(
        "unknown wine", [search(), answer_json(INVENTED), valid()], 3, "answered", ("grounding",)
    ),
    Fault("empty content", [search(), answer(""), valid()], 3, "answered", ("empty",)),
    Fault("white space", [search(), answer(" \n\t"), valid()], 3, "answered", ("empty",)),
    Fault("null content", [search(), null_content(), valid()], 3, "answered", ("empty",)),
    Fault("only reasoning", [search(), reasoning_only("Hm."), valid()], 3, "answered", ("empty",)),
    Fault("only thoughts", [search(), answer("<think>Hm"), valid()], 3, "answered", ("empty",)),
    Fault("no choices", [search(), no_choices(), valid()], 3, "answered", ("no_choices",)),
    Fault("no usage", [search(), raw(UNCOUNTED), valid()], 3, "answered", ("empty",)),
    # What repeats itself or says nothing is not accepted.
    Fault(
        "the same invalid answer again and again",
        [answer("I like wine")] * 3,
        3,
        "exhausted",
        ("invalid_json", "degenerate", "degenerate"),
    ),
    Fault(
        "placeholders after a retry",
        [search(), answer("{"), answer_json(PLACEHOLDER), valid()],
        4,
        "answered",
        ("invalid_json", "degenerate"),
    ),
    Fault(
        "a copy of the schema",
        [search(), answer_json(SCHEMA_COPY), valid()],
        3,
        "answered",
        ("degenerate",),
    ),
    # Cut off.
    Fault(
        "truncated with text",
        [search(), answer(TEXT[:40], "length"), valid()],
        3,
        "answered",
        ("truncated",),
    ),
    Fault(
        "truncated without text",
        [search(), answer("", "length"), valid()],
        3,
        "answered",
        ("truncated",),
    ),
    Fault(
        "truncated, yet whole",
        [search(), answer(TEXT, "length"), valid()],
        3,
        "answered",
        ("truncated",),
    ),
    # Declined.
    Fault("refusal", [refusal("No.")], 1, "refusal", ("refusal",)),
    Fault(
        "content filter, empty",
        [answer("", "content_filter")],
        1,
        "content_filter",
        ("content_filter",),
    ),
    Fault(
        "content filter, partial",
        [answer(TEXT[:30], "content_filter")],
        1,
        "content_filter",
        ("content_filter",),
    ),
    # Tool calls.
    Fault(
        "arguments: broken JSON",
        [tool_call("search_wines", BROKEN_ARGUMENTS), search(), valid()],
        3,
    ),
    Fault(
        "arguments: wrong type",
        [tool_call("search_wines", {"max_price": "cheap"}), search(), valid()],
        3,
    ),
    Fault("arguments: not an object", [tool_call("search_wines", "[]"), search(), valid()], 3),
    Fault("unknown tool", [tool_call("order pizza!", {}), search(), valid()], 3),
    Fault(
        "two calls, one bad",
        [tool_calls([call("search_wines", SEARCH), call("search_wines", "{")]), valid()],
        2,
    ),
    Fault(
        "duplicate call ids",
        [
            tool_calls([call("search_wines", SEARCH, "a"), call("search_wines", SEARCH, "a")]),
            valid(),
        ],
        2,
    ),
    Fault(
        "tool calls beside an answer",
        [tool_calls([call("search_wines", SEARCH)], TEXT), valid()],
        2,
    ),
    Fault(
        "a tool call written as text",
        [answer(WRITTEN_CALL), search(), valid()],
        3,
        "answered",
    ),
    Fault(
        "a tool call written as JSON",
        [answer(CALL_AS_JSON), search(), valid()],
        3,
        "answered",
    ),
    Fault(
        "endless tool calls",
        [search()] * 4 + [valid()],
        5,
        limits=Limits(seconds=20, tool_calls=4),
    ),
    Fault(
        "endless tool calls, by requests",
        [search()] * 5 + [valid()],
        6,
        limits=Limits(seconds=20, requests=8),
    ),
    Fault(
        "tool calls that never end",
        [search()] * 4,
        4,
        "exhausted",
        ("tool_call",) * 2 + ("tool_call",),
        limits=Limits(seconds=20, tool_calls=1),
    ),
    # The server itself.
    Fault(
        "429 with Retry-After", [error(429, headers={"Retry-After": "0.05"}), search(), valid()], 3
    ),
    Fault("500", [error(500), search(), valid()], 3),
    Fault("503", [search(), error(503), valid()], 3),
    Fault("connection reset", [reset(), search(), valid()], 3),
    Fault("cut body", [search(), cut(), valid()], 3),
    Fault("not JSON at all", [raw(b"<html>oops</html>"), search(), valid()], 3),
    Fault("500 for ever", [error(500)] * 3, 3, "model_error"),
    Fault("401", [error(401)], 1, "model_error"),
    Fault("403", [error(403)], 1, "model_error"),
    Fault("404", [error(404)], 1, "model_error"),
    Fault(
        "429 that asks for too much patience",
        [error(429, headers={"Retry-After": "3600"})],
        1,
        "model_error",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
async def test_fault(fault: Fault, model_server: ModelServer) -> None:
    model_server.script(*fault.script)
    response = await turn(service(model_server), limits=fault.limits)
    assert response.outcome == fault.outcome
    assert response.error_types == fault.error_types
    assert len(model_server.requests) == fault.requests
    assert model_server.steps_left == 0
    assert response.ok == (fault.outcome == "answered")
    if response.ok:
        assert named(response) == [CHINON.id]
    assert_ledger(response.ledger, model_server)


def assert_ledger(ledger: Ledger, server: ModelServer) -> None:
    """The ledger counted what the server counted."""
    assert ledger.requests == len(server.requests)
    assert ledger.usage.prompt_tokens == server.usage.prompt
    assert ledger.usage.completion_tokens == server.usage.completion
    assert ledger.usage.cached_tokens == server.usage.cached


async def test_values_are_never_altered_by_repair(model_server: ModelServer) -> None:
    intro = "It's “fine”, your 1.50 — {not a brace} // not a comment, trailing,"
    broken = TEXT.replace("For your lamb:", intro).replace("}]", ",}]")
    model_server.script(search(), answer(broken))
    response = await turn(service(model_server), message="A red for lamb, 1.50")
    assert response.answer is not None
    assert response.answer.intro == intro


async def test_a_part_of_a_broken_answer_is_not_taken_for_the_answer(
    model_server: ModelServer,
) -> None:
    nested = '{"draft": ' + TEXT  # cut off: the outer object is never closed
    model_server.script(search(), answer(nested), valid())
    response = await turn(service(model_server))
    assert response.error_types == ("invalid_json",)


class TestTools:
    """What tools can do wrong; the message the model gets, and that it recovers."""

    @staticmethod
    async def called(
        model_server: ModelServer, broken: Tool, limits: Limits | None = None
    ) -> tuple[str, str]:
        """The text of the tool message, and the outcome of the turn."""
        model_server.script(tool_call(broken.name, {}), answer_json({"said": "done"}))
        response = await generate_agentic_response(
            "Go",
            run=Run([llm := service(model_server)], limits=limits or Limits(seconds=10)),
            contract=OutputContract(Said),
            tools=[broken],
        )
        await llm.close()
        assert_ledger(response.ledger, model_server)
        assert response.ledger.tool_errors == (0 if limits and limits.result_chars < 1000 else 1)
        message = model_server.requests[-1].json["messages"][-1]
        assert message["role"] == "tool"
        return message["content"], response.text

    async def test_a_tool_that_raises_is_named_without_its_secret(
        self, model_server: ModelServer
    ) -> None:
        @tool
        async def connect() -> str:
            """Connect."""
            raise RuntimeError("password=hunter2")

        message, text = await self.called(model_server, connect)
        assert message.startswith("Error: connect failed (RuntimeError)")
        assert "hunter2" not in message
        assert "Traceback" not in message
        assert text == "done"

    async def test_a_tool_that_hangs_is_given_up(self, model_server: ModelServer) -> None:
        @tool
        async def wait() -> str:
            """Wait for ever."""
            await asyncio.sleep(60)
            return "too late"

        limits = Limits(seconds=10, tool_seconds=0.05)
        message, text = await self.called(model_server, wait, limits)
        assert (message, text) == ("Error: wait took longer than 0.05 s", "done")

    async def test_a_megabyte_is_cut_at_a_boundary(self, model_server: ModelServer) -> None:
        @tool
        async def read() -> str:
            """Read everything."""
            return "One sentence more. " * 60_000

        message, text = await self.called(model_server, read, Limits(seconds=10, result_chars=500))
        kept, note = message.split("\n")
        assert len(kept) <= 500
        assert kept.endswith("sentence more.")
        assert note == "[cut: 1140000 characters in all]"
        assert text == "done"


class Said(BaseModel):
    """An answer of somebody else's bot."""

    said: str


class TestFallback:
    """Models that are down, one after another."""

    async def test_the_next_model_is_asked_when_the_first_rejects_us(
        self, model_server: ModelServer
    ) -> None:
        model_server.script(error(404), search(), valid())
        first, second = service(model_server), service(model_server, model="gpt-4o-mini")
        response = await turn(first, second)
        assert response.outcome == "answered"
        asked = [request.json["model"] for request in model_server.requests]
        assert asked == ["gpt-4o", "gpt-4o-mini", "gpt-4o-mini"]
        assert response.models == ("gpt-4o-mini",)

    async def test_a_model_that_hangs_is_not_asked_twice(self, model_server: ModelServer) -> None:
        model_server.script(hang(60), search(), valid())
        first = service(model_server, timeout_seconds=0.5)
        response = await turn(first, service(model_server, model="gpt-4o-mini"))
        assert response.outcome == "answered"
        assert len(model_server.requests) == 3

    async def test_the_operator_is_told_once_what_to_do(
        self, model_server: ModelServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        model_server.script(error(401), error(401))
        rejected = service(model_server)
        for _ in range(2):
            assert (await turn(rejected)).outcome == "model_error"
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert errors == [
            "gpt-4o answered 401: The server answers 401.; `sommelier doctor` says what to do"
        ]

    async def test_a_server_that_only_knows_max_tokens(self, model_server: ModelServer) -> None:
        model_server.knows_only_max_tokens = True
        model_server.script(search(), valid())
        response = await turn(service(model_server))
        assert response.outcome == "answered"
        named = [sorted(request.json.keys() & TOKENS) for request in model_server.requests]
        assert named == [["max_completion_tokens"], ["max_tokens"], ["max_tokens"]]
        assert response.ledger.requests == 3


TOKENS = {"max_tokens", "max_completion_tokens"}


class TestBreakingOff:
    """Deadline, cancellation and limits: prompt, and with a complete ledger."""

    async def test_a_passed_deadline_ends_the_turn(self, model_server: ModelServer) -> None:
        model_server.script(search(), hang(60))
        response = await turn(service(model_server), limits=Limits(seconds=3))
        assert (response.outcome, response.text) == ("deadline", "")
        assert response.ledger.requests == 2
        assert response.ledger.usage.prompt_tokens == model_server.usage.prompt > 0

    async def test_a_cancelled_turn_stops_and_its_ledger_is_complete(
        self, model_server: ModelServer
    ) -> None:
        model_server.script(search(), hang(60))
        ledger = Ledger()
        task = asyncio.create_task(turn(service(model_server), ledger=ledger))
        while len(model_server.requests) < 2:  # noqa: ASYNC110 - a server in another thread
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert_ledger(ledger, model_server)

    @pytest.mark.parametrize(
        "limits",
        [Limits(requests=2, tool_calls=1), Limits(tokens=10), Limits(cost_usd=0.000001)],
        ids=["requests", "tokens", "cost"],
    )
    async def test_a_used_up_limit_ends_the_turn(
        self, limits: Limits, model_server: ModelServer
    ) -> None:
        model_server.default = search()
        response = await turn(service(model_server), limits=limits)
        assert (response.outcome, response.text) == ("limit", "")
        assert len(model_server.requests) <= 2
        assert_ledger(response.ledger, model_server)

    async def test_what_was_valid_before_the_limit_is_salvaged(
        self, model_server: ModelServer
    ) -> None:
        mixed = VALID | {"wines": [*VALID["wines"], *INVENTED["wines"]]}
        model_server.script(search(), answer_json(mixed), hang(60))
        response = await turn(service(model_server), limits=Limits(seconds=3))
        assert (response.outcome, named(response)) == ("salvaged", [CHINON.id])


async def test_cached_tokens_are_counted_apart_and_cheaper(model_server: ModelServer) -> None:
    model_server.script(search(), answer(TEXT, usage=(1_000_000, 1000), cached=400_000))
    limits = Limits(seconds=10, tokens=10_000_000, cost_usd=100)
    response = await turn(service(model_server), limits=limits)
    assert_ledger(response.ledger, model_server)
    assert response.ledger.usage.cached_tokens == 400_000
    first = model_server.usage.prompt - 1_000_000, model_server.usage.completion - 1000
    expected = 0.6 * 2.50 + 0.4 * 1.25 + 0.01 + (first[0] * 2.50 + first[1] * 10) / 1_000_000
    assert response.ledger.cost_usd == pytest.approx(expected)
