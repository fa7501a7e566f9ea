"""Servers that refuse a request in which what they said beside a tool call did not come back."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.doubles.model_server import (
    ModelServer,
    Script,
    Step,
    call,
    error,
    error_body,
)
from tests.doubles.server import JsonObject
from tests.faults.turns import SEARCH, search, service, turn, valid

THOUGHTS = "They want a red below 25 euros, so I search."
SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}

Refuses = Callable[[JsonObject], str | None]


def said(request: JsonObject) -> list[JsonObject]:
    return [
        message for message in request["messages"] if message["role"] == "assistant"
    ]


def deepseek(request: JsonObject) -> str | None:
    """With tools in the request, every message of an assistant needs its thoughts."""
    if request.get("tools") and not all(
        "reasoning_content" in back for back in said(request)
    ):
        return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


def gemini(request: JsonObject) -> str | None:
    """The first call of a message needs its signature."""
    firsts = [
        message["tool_calls"][0]
        for message in said(request)
        if message.get("tool_calls")
    ]
    if all(first.get("extra_content") == SIGNATURE for first in firsts):
        return None
    return "Function call is missing a thought_signature in functionCall parts."


def openai(request: JsonObject) -> str | None:
    """Nothing is known but words and calls."""
    parts = [
        part for back in said(request) for part in (back, *back.get("tool_calls", ()))
    ]
    unknown = {
        name
        for part in parts
        for name in part.keys() & {"reasoning_content", "extra_content"}
    }
    return f"Unknown parameter: 'messages[2].{unknown.pop()}'." if unknown else None


def strictly(refuses: Refuses, *steps: Step) -> list[Script]:
    def respond(step: Step, request: JsonObject) -> Step:
        problem = refuses(request)
        return error(400, error_body(problem)) if problem else step

    return [partial(respond, step) for step in steps]


def thinking(message: dict[str, Any] | None = None, thoughts: str = THOUGHTS) -> Step:
    calls = {"content": "", "tool_calls": [call("search_wines", SEARCH, "call_a")]}
    return Step({**(message or calls), "reasoning_content": thoughts})


def signed() -> Step:
    first = call("search_wines", SEARCH, "call_a") | {"extra_content": SIGNATURE}
    return Step(
        {
            "content": None,
            "tool_calls": [first, call("get_wine", {"wine_id": "x"}, "b")],
        }
    )


async def test_thoughts_beside_calls_and_invalid_answers_go_back(
    model_server: ModelServer,
) -> None:
    invalid = thinking({"content": "no JSON"}, "Hm.")
    model_server.script(*strictly(deepseek, thinking(), invalid, valid()))
    response = await turn(service(model_server))
    assert (response.outcome, response.error_types) == ("answered", ("invalid_json",))
    back = said(model_server.requests[-1].json)
    assert [message["reasoning_content"] for message in back] == [THOUGHTS, "Hm."]


async def test_signatures_of_calls_go_back_call_by_call(
    model_server: ModelServer,
) -> None:
    model_server.script(*strictly(gemini, signed(), valid()))
    assert (await turn(service(model_server))).outcome == "answered"
    (message,) = said(model_server.requests[-1].json)
    assert [call.get("extra_content") for call in message["tool_calls"]] == [
        SIGNATURE,
        None,
    ]


@pytest.mark.parametrize("first", [thinking(), signed()], ids=["thoughts", "signature"])
async def test_another_model_is_sent_nothing_of_it(
    first: Step, model_server: ModelServer
) -> None:
    model_server.script(first, error(401), *strictly(openai, search("c"), valid()))
    response = await turn(service(model_server), service(model_server))
    assert (response.outcome, response.usage.requests) == ("answered", 4)
