"""The model's double, seen through the openai client."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from tests.doubles.model_server import (
    ModelServer,
    Totals,
    answer,
    answer_json,
    call,
    hang,
    tool_call,
    tool_calls,
)
from tests.doubles.server import JsonObject

USER: JsonObject = {"role": "user", "content": "a red for lamb"}


@pytest.fixture
async def client(model_server: ModelServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=model_server.base_url, api_key="key", max_retries=0, timeout=5
    ) as client:
        yield client


async def ask(client: openai.AsyncOpenAI, *messages: JsonObject, **more: Any) -> ChatCompletion:
    history: Any = messages or (USER,)
    completion: ChatCompletion = await client.chat.completions.create(
        model="gpt-4o", messages=history, **more
    )
    return completion


async def test_steps_answer_in_order_and_are_counted(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(
        answer("Rioja", usage=(100, 20), cached=30), answer_json({"a": "é"}, "length")
    )
    first, second = await ask(client), await ask(client)
    assert first.choices[0].message.content == "Rioja"
    assert first.choices[0].finish_reason == "stop"
    assert first.usage
    assert first.usage.prompt_tokens_details
    assert first.usage.prompt_tokens_details.cached_tokens == 30
    assert second.choices[0].message.content == '{"a": "é"}'
    assert second.choices[0].finish_reason == "length"
    assert second.usage
    assert model_server.usage == Totals(
        2, 100 + second.usage.prompt_tokens, 20 + second.usage.completion_tokens, 30
    )
    assert [one.json["messages"] for one in model_server.requests] == [[USER], [USER]]
    assert model_server.requests[0].headers["authorization"] == "Bearer key"
    assert model_server.requests[0].bytes == int(model_server.requests[0].headers["content-length"])


async def test_tool_calls_have_ids_of_their_own(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(
        tool_call("search_wines", {"text": "lamb"}),
        tool_calls([call("a", {}), call("b", "{not json", id="x")], content="Let me look"),
    )
    first, second = await ask(client), await ask(client)
    [one] = first.choices[0].message.tool_calls or []
    assert one.type == "function"
    assert (one.id, one.function.name) == ("call_1", "search_wines")
    assert json.loads(one.function.arguments) == {"text": "lamb"}
    assert first.choices[0].finish_reason == "tool_calls"
    assert second.choices[0].message.content == "Let me look"
    assert [tool.id for tool in second.choices[0].message.tool_calls or []] == ["call_2", "x"]


async def test_an_answer_nobody_waited_for_is_not_counted(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(hang(0.3, then=answer("late")), hang(0.1, then=answer("in time")))
    with pytest.raises(openai.APITimeoutError):
        await ask(client, timeout=0.1)
    assert (await ask(client)).choices[0].message.content == "in time"
    await asyncio.sleep(0.3)
    assert model_server.usage.requests == 1


async def test_a_request_beyond_the_script_fails_the_test(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    with pytest.raises(openai.InternalServerError, match="no step left"):
        await ask(client)
    with pytest.raises(AssertionError, match=r"beyond the script.*a red for lamb"):
        model_server.verify()
    model_server.unscripted.clear()


async def test_a_malformed_history_is_refused_and_uses_no_step(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(answer("fine"))
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceding"):
        await ask(client, USER, {"role": "tool", "tool_call_id": "x", "content": "{}"})
    with pytest.raises(AssertionError, match="OpenAI would refuse"):
        model_server.verify()
    model_server.violations.clear()
    assert model_server.steps_left == 1
