"""What a model server can do wrong, and what must come of it: one row, one test.

Every row asserts the exact number of requests (its steps), the outcome and the errors, that the
usage equals what the server counted, and that OpenAI would accept each history sent.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from agent.engine.errors import ResponseOutcome
from agent.engine.messages import LLMRequest
from agent.engine.run import Limits, Usage
from tests.doubles.model_server import (
    ModelServer,
    Script,
    Step,
    answer,
    answer_json,
    call,
    cut,
    error,
    hang,
    no_choices,
    raw,
    reasoning_only,
    refusal,
    reset,
    tool_call,
    tool_calls,
)
from tests.fakes import CHINON
from tests.faults.turns import (
    INVENTED,
    SEARCH,
    VALID,
    named,
    search,
    service,
    turn,
    valid,
)

TEXT = json.dumps(VALID)
TOKENS = {"max_tokens", "max_completion_tokens"}


def completion(message: dict[str, Any], finish_reason: str | None = None) -> Step:
    """A completion as somebody else's server writes it, with no count of tokens."""
    choice = {"message": message, "finish_reason": finish_reason}
    return raw(json.dumps({"choices": [choice]}).encode())


def says(status: int, message: object, **more: object) -> Step:
    """An error in OpenAI's shape."""
    return error(status, {"error": {"message": message, **more}})


SINGLE_QUOTED = (
    "{'response_type': 'recommendation', 'intro': 'For your lamb:', 'wines': "
    f"[{{'wine_id': '{CHINON.id}', 'description': 'Fresh.'}}], 'closing': ''}}"
)
PARTS = [
    {"type": "thinking", "thinking": [{"text": "{}"}]},
    {"type": "text", "text": TEXT},
]

REPAIRED: Final[Mapping[str, Step]] = {
    "fenced JSON": answer(f"```json\n{TEXT}\n```"),
    "prose around one object": answer(f"Sure! {TEXT} Enjoy."),
    "trailing comma": answer(TEXT.replace("}]", ",}]")),
    "single quotes": answer(SINGLE_QUOTED),
    "line breaks in strings": answer(TEXT.replace("Fresh", "Fresh\n")),
    "thoughts before the answer": answer(f"<think>{{hm}}</think>{TEXT}"),
    "parts, thoughts apart": completion({"content": PARTS}),
}
"""Answers after a search whose notation is read without a further request."""

EMPTY = {"response_type": "informational", "intro": "", "wines": [], "closing": " "}
PLACEHOLDER = {
    "response_type": "informational",
    "intro": "string",
    "wines": [],
    "closing": "...",
}
TOO_DEEP: Final = "invalid_json" if sys.version_info < (3, 13) else "schema"
"""The parser of Python 3.13 reads values that are nested 3,000 times."""

FED_BACK: Final[Mapping[str, tuple[Step, str]]] = {
    "broken JSON": (answer(TEXT[:-9]), "invalid_json"),
    "two different objects": (answer(f"{TEXT} or {json.dumps(EMPTY)}"), "invalid_json"),
    "deeply nested": (answer(f'{{"a": {"[" * 3000}{"]" * 3000}}}'), TOO_DEEP),
    "schema error": (answer_json({"wines": 3}), "schema"),
    "semantically empty": (answer_json(EMPTY), "semantic"),
    "unknown wine": (answer_json(INVENTED), "grounding"),
    "empty content": (answer(""), "empty"),
    "only reasoning": (reasoning_only("Hm."), "empty"),
    "no choices": (no_choices(), "no_choices"),
    "placeholders": (answer_json(PLACEHOLDER), "semantic"),
    "truncated, yet whole": (answer(TEXT, "length"), "truncated"),
    "interrupted": (answer(TEXT, "error"), "interrupted"),
}
"""Answers after a search that the model is shown with what is wrong."""

AZURE = {"message": "content management policy", "code": "content_filter"}

DECLINED: Final[Mapping[str, tuple[Step, ResponseOutcome]]] = {
    "refusal": (refusal("No."), "refusal"),
    "content filter of Azure": (error(400, {"error": AZURE}), "content_filter"),
}
"""Answers to the first request after which the model is not asked again."""

AS_JSON = '{"name": "search_wines", "arguments": {"styles": ["red"]}}'
BARE = {"function": {"name": "search_wines", "arguments": SEARCH}}
CALLED: Final[Mapping[str, Sequence[Step]]] = {
    "arguments: broken JSON": [
        tool_call("search_wines", '{"styles": ["red"'),
        search(),
    ],
    "arguments: null": [tool_call("search_wines", "null")],
    "arguments: an object": [completion({"tool_calls": [BARE]})],
    "unknown tool": [tool_call("order pizza!", {}), search()],
    "one bad call": [
        tool_calls([call("search_wines", SEARCH), call("search_wines", "{")])
    ],
    "duplicate ids": [tool_calls([call("search_wines", SEARCH, "a")] * 2)],
    "calls beside an answer": [tool_calls([call("search_wines", SEARCH)], TEXT)],
    "a call between tags": [answer(f"<tool_call>{AS_JSON}</tool_call>")],
    "a call as JSON": [answer(AS_JSON)],
}
"""Calls of tools that are answered, and then the model answers."""

AS_CODE = '```tool_code\nsearch_wines(styles=["red"])\n```'
"""A call that is not run: the model is told to use the interface of tools."""

MISTRAL = {
    "message": {
        "detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs"}]
    }
}
GRAMMAR = "Cannot use custom grammar constraints with tools."
TRANSIENT: Final[Mapping[str, Step]] = {
    "429 with Retry-After": error(429, headers={"Retry-After": "0.05"}),
    "500": error(500),
    "connection reset": reset(),
    "cut body": cut(),
    "not JSON at all": raw(b"<html>oops</html>"),
    "200 with a transient error": raw(b'{"error": {"message": "busy", "code": 502}}'),
    "422 for a parameter": error(422, MISTRAL),
    "500 for a grammar beside tools": says(500, GRAMMAR),
}
"""Answers to the first request after which the same model is asked again."""

OVERLONG = (
    "'max_tokens' or 'max_completion_tokens' is too large: 6000. The maximum is 4096."
)
DOWN: Final[Mapping[str, Sequence[Step]]] = {
    "500 for ever": [error(500)] * 3,
    "401": [error(401)],
    "429 that asks for too much patience": [
        error(429, headers={"Retry-After": "3600"})
    ],
    "no quota": [says(429, "No.", type="insufficient_quota")],
    "a list of errors": [raw(b'[{"error": {"code": 400}}]', 400)],
    "too many tokens": [says(400, OVERLONG)],
    "no tools": [says(400, "gemma does not support tools")],
}
"""Answers after which the model is not asked again, and the turn ends."""


@dataclass(frozen=True)
class Fault:
    """A script, and what must come of it."""

    name: str
    script: Sequence[Script]
    outcome: ResponseOutcome = "answered"
    error_types: tuple[str, ...] = ()
    limits: Limits = Limits(seconds=20)  # noqa: RUF009


def faults() -> Iterator[Fault]:
    for name, step in REPAIRED.items():
        yield Fault(name, [search(), step])
    for name, (step, kind) in FED_BACK.items():
        yield Fault(name, [search(), step, valid()], error_types=(kind,))
    for name, (step, outcome) in DECLINED.items():
        yield Fault(name, [step], outcome, (outcome,))
    for name, steps in CALLED.items():
        yield Fault(name, [*steps, valid()])
    written = [answer(AS_CODE), search(), valid()]
    yield Fault("a call as code", written, error_types=("tool_call_as_text",))
    for name, step in TRANSIENT.items():
        yield Fault(name, [step, search(), valid()])
    for name, steps in DOWN.items():
        yield Fault(name, steps, "model_error")
    again = ("invalid_json",) * 3
    yield Fault(
        "the same invalid answer again", [answer("I like wine")] * 3, "exhausted", again
    )
    yield Fault(
        "endless tool calls",
        [*[search()] * 4, valid()],
        limits=Limits(seconds=20, tool_calls=4),
    )
    yield Fault(
        "endless requests",
        [*[search()] * 5, valid()],
        limits=Limits(seconds=20, requests=8),
    )
    never = Limits(seconds=20, tool_calls=1)
    yield Fault(
        "calls that never end", [search()] * 4, "exhausted", ("tool_call",) * 3, never
    )


@pytest.mark.parametrize(
    "fault", [*faults()], ids=lambda fault: fault.name.replace(" ", "_")
)
async def test_a_turn_ends_as_the_fault_demands_with_every_request_counted(
    fault: Fault, model_server: ModelServer
) -> None:
    model_server.script(*fault.script)
    response = await turn(service(model_server), limits=fault.limits)
    assert (response.outcome, response.error_types) == (
        fault.outcome,
        fault.error_types,
    )
    assert len(model_server.requests) == len(fault.script)
    assert named(response) == ([CHINON.id] if fault.outcome == "answered" else [])
    assert_usage(response.usage, model_server)


def assert_usage(usage: Usage, server: ModelServer) -> None:
    assert usage.requests == len(server.requests)
    assert usage.tokens.prompt_tokens == server.usage.prompt
    assert usage.tokens.completion_tokens == server.usage.completion
    assert usage.tokens.cached_tokens == server.usage.cached


async def test_values_are_never_altered_by_repair(model_server: ModelServer) -> None:
    intro = "It's “fine”, your 1.50 — {not a brace} // not a comment, trailing,"
    broken = TEXT.replace("For your lamb:", intro).replace("}]", ",}]")
    model_server.script(search(), answer(broken))
    response = await turn(service(model_server), message="A red for lamb, 1.50")
    assert response.answer is not None
    assert response.answer.intro == intro


async def test_the_next_model_is_asked_when_the_first_rejects_us_or_hangs(
    model_server: ModelServer,
) -> None:
    for fails in (error(404), hang(60)):
        model_server.script(fails, search(), valid())
        first = service(model_server, timeout_seconds=0.5)
        response = await turn(first, service(model_server, model="gpt-4o-mini"))
        assert response.outcome == "answered"
    asked = [request.json["model"] for request in model_server.requests]
    assert asked == ["gpt-4o", "gpt-4o-mini", "gpt-4o-mini"] * 2


async def test_a_parameter_that_a_server_does_not_know_is_learned_once(
    model_server: ModelServer,
) -> None:
    unknown = says(400, "Unknown parameter: 'max_completion_tokens'")
    model_server.script(*[hang(0.1, unknown)] * 3, valid())
    shared = service(model_server)
    messages, request = [{"role": "user", "content": "Hi"}], LLMRequest(max_tokens=9)
    declined = await asyncio.gather(
        *(shared.generate_with_tools(messages, request) for _ in range(3)),
        return_exceptions=True,
    )
    assert [type(error).__name__ for error in declined] == ["ParameterDeclined"] * 3
    assert (await shared.generate_with_tools(messages, request)).content == TEXT
    sent = [sorted(request.json.keys() & TOKENS) for request in model_server.requests]
    assert sent == [["max_completion_tokens"]] * 3 + [["max_tokens"]]
    await shared.close()


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        (
            {},
            "answered 401: The server answers 401.; `sommelier doctor` says what to do",
        ),
        ({"base_url": "http://[::1/v1"}, "check OPENAI_BASE_URL, OPENAI_API_KEY"),
        ({"api_key": "kéy"}, "check OPENAI_BASE_URL, OPENAI_API_KEY"),
    ],
    ids=["refused", "half a url", "a key that is no ASCII"],
)
async def test_the_operator_is_told_once_what_to_do(
    settings: dict[str, str],
    advice: str,
    model_server: ModelServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model_server.default = error(401)
    wrong = service(model_server, **settings)
    for _ in range(2):
        assert (await turn(wrong)).outcome == "model_error"
    errors = [
        record.getMessage() for record in caplog.records if record.levelname == "ERROR"
    ]
    assert len(errors) == 1
    assert errors[0].endswith(advice)


async def test_an_error_reaches_the_operator_without_key_and_question(
    model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    detail = [{"msg": "wrong key sk-of-somebody", "input": {"messages": "my secret"}}]
    model_server.script(error(422, {"detail": detail}))
    response = await turn(service(model_server, api_key="sk-of-somebody"))
    for text in (caplog.text, response.error or ""):
        assert "wrong key ***" in text
        assert "sk-of-somebody" not in text
        assert "secret" not in text


async def test_a_passed_deadline_ends_the_turn(model_server: ModelServer) -> None:
    model_server.script(search(), hang(60))
    response = await turn(service(model_server), limits=Limits(seconds=2))
    assert (response.outcome, response.text) == ("deadline", "")
    assert response.usage.requests == 2
    assert response.usage.tokens.prompt_tokens == model_server.usage.prompt > 0


async def test_a_cancelled_turn_stops_and_its_ledger_is_complete(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), hang(60))
    usage = Usage()
    task = asyncio.create_task(turn(service(model_server), usage=usage))
    while len(model_server.requests) < 2:  # noqa: ASYNC110 - a server in another thread
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_usage(usage, model_server)


@pytest.mark.parametrize(
    "limits",
    [Limits(requests=2, tool_calls=1), Limits(tokens=10), Limits(cost_usd=0.000001)],
    ids=["requests", "tokens", "cost"],
)
async def test_a_used_up_limit_ends_the_turn(
    limits: Limits, model_server: ModelServer
) -> None:
    model_server.default = search()
    response = await turn(service(model_server), limits=limits)
    assert (response.outcome, response.text) == ("limit", "")
    assert len(model_server.requests) <= 2
    assert_usage(response.usage, model_server)


async def test_a_call_that_is_cut_off_is_not_run_and_gets_room(
    model_server: ModelServer,
) -> None:
    calls = [
        call("search_wines", SEARCH, "a"),
        call("search_wines", '{"styles": ["r', "b"),
    ]
    model_server.script(completion({"tool_calls": calls}, "length"), valid())
    response = await turn(service(model_server))
    assert response.outcome == "answered"
    sent = model_server.requests[-1].json["messages"]
    told = [message["content"] for message in sent if message["role"] == "tool"]
    assert ["Invalid JSON" in text for text in told] == [False, True]
    limits = [
        request.json["max_completion_tokens"] for request in model_server.requests
    ]
    assert limits == [1500, 3000]
