"""What servers that call themselves compatible do otherwise, each as it was seen in the wild."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import pytest

from agent.engine.limits import Limits
from agent.engine.loop import Outcome
from agent.engine.messages import LLMRequest
from agent.sommelier.answer import SOMMELIER
from tests.doubles.model_server import (
    ModelServer,
    Script,
    answer,
    answer_json,
    call,
    error,
    hang,
    raw,
    tool_call,
    tool_calls,
)
from tests.doubles.model_steps import Step
from tests.doubles.server import JsonObject
from tests.fakes import CHINON
from tests.faults.test_conformance import assert_ledger
from tests.faults.turns import INFORMATIONAL, SEARCH, VALID, named, search, service, turn, valid

TEXT = json.dumps(VALID)


def completion(message: dict[str, Any], finish_reason: str | None = None) -> Script:
    """A completion as somebody else's server writes it, with no count of tokens."""
    choice = {"message": message, "finish_reason": finish_reason}
    return raw(json.dumps({"choices": [choice]}).encode())


def says(status: int, message: object, **more: object) -> Script:
    """A refusal in OpenAI's shape."""
    return error(status, {"error": {"message": message, **more}})


@dataclass(frozen=True)
class Habit:
    """What a server does, and what must come of it."""

    name: str
    script: Sequence[Script]
    requests: int
    outcome: Outcome = "answered"
    error_types: tuple[str, ...] = ()


MISTRAL = {
    "message": {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs"}]}
}
OVERLONG = "'max_tokens' or 'max_completion_tokens' is too large: 6000. The maximum is 4096."
AZURE = {"message": "content management policy", "code": "content_filter"}
PARTS = [{"type": "thinking", "thinking": [{"text": "{}"}]}, {"type": "text", "text": TEXT}]

HABITS = [
    # Refusals of a parameter.
    Habit("mistral: 422 for a parameter", [error(422, MISTRAL), search(), valid()], 3),
    Habit(
        "llama.cpp: 500 for a grammar beside tools",
        [says(500, "Cannot use custom grammar constraints with tools."), search(), valid()],
        3,
    ),
    Habit("vllm: too many tokens", [says(400, OVERLONG)], 1, "model_error"),
    Habit("ollama: no tools", [says(400, "gemma does not support tools")], 1, "model_error"),
    # Refusals of a question, an account, a moment.
    Habit(
        "azure: a filtered question",
        [error(400, {"error": AZURE})],
        1,
        "content_filter",
        ("content_filter",),
    ),
    Habit("no quota, by type", [says(429, "No.", type="insufficient_quota")], 1, "model_error"),
    Habit("deepseek: no balance", [says(402, "Insufficient Balance")], 1, "model_error"),
    Habit("openrouter: 200 with an error", [raw(b'{"error": {"code": 401}}')], 1, "model_error"),
    Habit(
        "openrouter: 200 with a passing error",
        [raw(b'{"error": {"message": "busy", "code": 502}}'), search(), valid()],
        3,
    ),
    Habit("overloaded", [error(529, headers={"Retry-After": "0"}), search(), valid()], 3),
    Habit("a list of errors", [raw(b'[{"error": {"code": 400}}]', 400)], 1, "model_error"),
    Habit("nothing at all", [raw(b""), search(), valid()], 3),
    Habit("too deep to be read", [raw(b"[" * 5000), search(), valid()], 3),
    # Content.
    Habit("parts, thoughts apart", [search(), completion({"content": PARTS})], 2),
    Habit("parts of text", [search(), completion({"content": [TEXT]})], 2),
    Habit("the object itself", [search(), completion({"content": VALID})], 2),
    Habit("thoughts without a beginning", [search(), answer(f"so {{}}</think>\n{TEXT}")], 2),
    Habit("thoughts in brackets", [search(), answer(f"[THINK]{{}}[/THINK]{TEXT}")], 2),
    Habit("thoughts twice", [search(), answer(f"<think>a</think> <think>b</think>{TEXT}")], 2),
    Habit("thoughts of Gemma", [search(), answer(f"<thought>{{}}</thought>{TEXT}")], 2),
    Habit("channels", [search(), answer(f"<|channel|>final<|message|>{TEXT}")], 2),
    Habit("line breaks in strings", [search(), answer(TEXT.replace("Fresh", "Fresh\n"))], 2),
    Habit("half a character", [search(), completion({"content": TEXT, "role": "\ud83c"})], 2),
    Habit(
        "deeply nested",
        [search(), answer(f'{{"a": {"[" * 3000}{"]" * 3000}}}'), valid()],
        3,
        error_types=("invalid_json",),
    ),
    Habit(
        "an endless number",
        [search(), answer(f'{{"a": {"9" * 5000}}}'), valid()],
        3,
        error_types=("invalid_json",),
    ),
    Habit(
        "interrupted", [search(), answer(TEXT, "error"), valid()], 3, error_types=("interrupted",)
    ),
    Habit(
        "cut off, in other words",
        [search(), answer(TEXT[:50], "model_length"), valid()],
        3,
        error_types=("truncated",),
    ),
    Habit(
        "filtered, in other words", [answer("", "SAFETY")], 1, "content_filter", ("content_filter",)
    ),
    # Tool calls.
    Habit(
        "finish reason of an answer",
        [completion({"tool_calls": [call("search_wines", SEARCH)]}, "stop"), valid()],
        2,
    ),
    Habit(
        "an object as arguments",
        [
            completion(
                {"tool_calls": [{"function": {"name": "search_wines", "arguments": SEARCH}}]}
            ),
            valid(),
        ],
        2,
    ),
    Habit(
        "numbers as ids",
        [completion({"tool_calls": [call("search_wines", SEARCH) | {"id": 7}] * 2}), valid()],
        2,
    ),
    Habit(
        "an id that ours would clash with",
        [
            tool_calls(
                [call("search_wines", SEARCH, "call00001"), call("search_wines", SEARCH, "")]
            ),
            tool_calls([call("search_wines", SEARCH, "call00001")]),
            valid(),
        ],
        3,
    ),
    Habit("null as arguments", [tool_call("search_wines", "null"), valid()], 2),
    Habit(
        "half characters in a call",
        [completion({"tool_calls": [call("\ud83c", "\ud83c", "\ud83c")]}), search(), valid()],
        3,
    ),
    Habit(
        "a call as a list",
        [search(), answer('[{"name": "get_wine", "arguments": {}}]'), valid()],
        3,
    ),
    Habit(
        "a call within a function",
        [
            answer('{"type": "function", "function": {"name": "search_wines", "arguments": {}}}'),
            search(),
            valid(),
        ],
        3,
    ),
    Habit(
        "a call as code",
        [answer('```tool_code\nsearch_wines(styles=["red"])\n```'), search(), valid()],
        3,
        error_types=("tool_call_as_text",),
    ),
    Habit(
        "a bare call",
        [answer('search_wines(styles=["red"])'), search(), valid()],
        3,
        error_types=("tool_call_as_text",),
    ),
    Habit(
        "a step of ReAct",
        [answer("Thought: hm\nAction: search_wines\nAction Input: {}"), search(), valid()],
        3,
        error_types=("tool_call_as_text",),
    ),
]


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name.replace(" ", "_"))
async def test_a_habit(habit: Habit, model_server: ModelServer) -> None:
    model_server.script(*habit.script)
    response = await turn(service(model_server), limits=Limits(seconds=10))
    assert (response.outcome, response.error_types) == (habit.outcome, habit.error_types)
    assert len(model_server.requests) == habit.requests
    assert model_server.steps_left == 0
    assert named(response) == ([CHINON.id] if response.ok else [])
    assert_ledger(response.ledger, model_server)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_date_to_come_back_at_is_waited_for(status: int, model_server: ModelServer) -> None:
    came_back: list[float] = []

    def on_time(_: JsonObject) -> Step:
        came_back.append(time.time())
        return answer(TEXT)

    later = int(time.time()) + 2
    too_early = error(status, headers={"Retry-After": formatdate(later, usegmt=True)})
    model_server.script(search(), too_early, on_time)
    assert (await turn(service(model_server))).outcome == "answered"
    assert came_back[0] >= later


async def test_turns_at_the_same_time_learn_a_dialect_once(model_server: ModelServer) -> None:
    model_server.knows_only_max_tokens = True
    model_server.default = hang(0.1, valid())
    shared = service(model_server)
    asked, request = [{"role": "user", "content": "Hi"}], LLMRequest(max_tokens=9)
    declined = await asyncio.gather(
        *(shared.generate_with_tools(asked, request) for _ in range(3)),
        return_exceptions=True,
    )
    assert [type(each).__name__ for each in declined] == ["ParameterDeclined"] * 3
    assert (await shared.generate_with_tools(asked, request)).content == TEXT
    assert "max_tokens" in model_server.requests[-1].json
    await shared.close()


@pytest.mark.parametrize(
    "settings",
    [{"base_url": "not a url"}, {"base_url": "http://[::1/v1"}, {"api_key": "kéy"}],
    ids=["no url", "half a url", "a key that is no ASCII"],
)
async def test_what_is_configured_wrong_is_said_once_and_breaks_no_turn(
    settings: dict[str, str], model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = service(model_server, **settings)
    for _ in range(2):
        assert (await turn(wrong)).outcome == "model_error"
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert errors[0].endswith("check OPENAI_BASE_URL, OPENAI_API_KEY")
    assert model_server.requests == []


async def test_what_a_server_says_reaches_the_operator_without_key_and_question(
    model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    detail = [{"msg": "wrong key sk-of-somebody", "input": {"messages": "A red for my secret"}}]
    model_server.script(error(422, {"detail": detail}))
    response = await turn(service(model_server, api_key="sk-of-somebody"))
    for text in (caplog.text, response.error or ""):
        assert "wrong key ***" in text
        assert "sk-of-somebody" not in text
        assert "secret" not in text


async def test_a_call_that_is_cut_off_is_not_run_and_gets_room(model_server: ModelServer) -> None:
    for said in ('{"styles": ["r', ""):
        calls = [call("search_wines", SEARCH, "a"), call("search_wines", said, "b")]
        model_server.script(completion({"tool_calls": calls}, "length"))
    model_server.script(valid())
    response = await turn(service(model_server))
    assert response.outcome == "answered"
    told = [m["content"] for m in model_server.requests[-1].json["messages"] if m["role"] == "tool"]
    assert ["cut off at the token limit" in text for text in told] == [False, True, False, True]
    limits = [request.json["max_completion_tokens"] for request in model_server.requests]
    assert limits == [1500, 3000, 6000]


async def test_the_words_of_a_failed_call_ground_nothing(model_server: ModelServer) -> None:
    named = VALID | {"intro": "Or a Château Nowhere 1971:"}
    model_server.script(
        search(),
        tool_call("Château Nowhere 1971", {}),
        tool_call("get_wine", {"wine_ids": [CHINON.id, "Château Nowhere 1971"]}),
        answer(json.dumps(named)),
        valid(),
    )
    response = await turn(service(model_server))
    assert response.outcome == "answered"
    assert "1971" not in response.text


async def test_a_server_that_knows_a_schema_only_in_an_object_is_asked_so(
    model_server: ModelServer,
) -> None:
    declined = says(422, "response_format.type: Input should be 'text' or 'json_object'")
    model_server.script(declined, answer_json(INFORMATIONAL))
    assert (await turn(service(model_server, mode="json_schema"))).outcome == "answered"
    asked = model_server.requests[-1].json
    assert asked["response_format"]["type"] == "json_object"
    assert "off_topic" in str(asked["response_format"]["schema"])
    assert SOMMELIER.output.text in asked["messages"][0]["content"]
