"""A model server that sends more than any answer: calls, refusals, reasoning, bytes."""

import json

import pytest

from agent import size_limits
from agent.engine.errors import ModelUnavailable
from agent.engine.messages import LLMRequest
from agent.engine.wire import StreamedCompletion, read_completion
from tests.doubles.model_server import ModelServer, raw
from tests.library import open_model


def completion_of(*deltas: object) -> StreamedCompletion:
    streamed = StreamedCompletion("m")
    for delta in deltas:
        streamed.add({"choices": [{"delta": delta}]})
    streamed.add({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    return streamed


def test_the_sum_of_a_stream_is_bounded_while_it_is_read() -> None:
    text, megabyte = {"content": "x" * 1_000}, "y" * 1_000_000
    calls = [
        {"tool_calls": [{"index": n, "id": str(n), "function": {}}]}
        for n in range(10_000)
    ]
    call = {"index": 0, "id": "0", "function": {"name": "f", "arguments": megabyte}}
    more = [{"tool_calls": [call]}] * 40
    said = [{"refusal": megabyte, "reasoning_content": megabyte}] * 40
    parts = [{"reasoning_details": [{"text": "z"}] * 100}] * 1_000
    completion = completion_of(
        *[text] * 1_000, *calls, *more, *said, *parts
    ).build_completion()
    assert len(json.dumps(completion)) < 1_000_000
    response = read_completion(completion, "m")
    assert len(response.content) == size_limits.ANSWER_CHARS + 1
    assert len(response.tool_calls) == size_limits.TOOL_CALLS
    assert len(response.tool_calls[0].arguments) == size_limits.ARGUMENT_CHARS + 1
    assert len(response.refusal or "") == size_limits.ANSWER_CHARS
    assert "reasoning_content" not in response.echo


def test_the_fields_of_a_whole_completion_are_bounded() -> None:
    long = "x" * 1_000_000
    message: dict[str, object] = {
        "content": long,
        "refusal": long,
        "reasoning_content": long,
    }
    message |= {
        "tool_calls": [{"id": long, "function": {"name": long, "arguments": long}}]
        * 500
    }
    response = read_completion({"model": long, "choices": [{"message": message}]}, "m")
    assert len(repr(response)) < 64 * 40_000


async def test_a_response_beyond_any_answer_is_not_read(
    model_server: ModelServer,
) -> None:
    message = {"content": "x", "refusal": "y" * size_limits.MODEL_RESPONSE_BYTES}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    model_server.script(raw(body.encode()))
    request = LLMRequest(tools=[], output=None, max_tokens=10, temperature=0.0)
    async with open_model(model_server) as model:
        with pytest.raises(ModelUnavailable):
            await model.generate_with_tools(
                [{"role": "user", "content": "hi"}], request
            )
