"""What OpenAI accepts and refuses."""

import re

import pytest

from tests.doubles.model_server import (
    ModelServer,
    call,
)
from tests.doubles.openai_rules import history_error, strict_error
from tests.doubles.server import JsonObject

USER: JsonObject = {"role": "user", "content": "a red for lamb"}


def asking(*ids: str, content: str | None = None) -> JsonObject:
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{**call("search_wines", {}), "id": id_} for id_ in ids],
    }


def tool(id_: str, content: str | None = "{}") -> JsonObject:
    return {"role": "tool", "tool_call_id": id_, "content": content}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": "Be kind"}, USER],
        [USER, asking("a", "b"), tool("b"), tool("a"), USER],
        [USER, asking("a", content="Let me look"), tool("a"), asking("b"), tool("b")],
    ],
)
def test_a_history_that_openai_accepts(messages: list[JsonObject]) -> None:
    assert history_error(messages) is None


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "empty array"),
        ([USER, asking("a")], "did not have response messages: a"),
        ([USER, asking("a"), USER, tool("a")], "did not have response messages: a"),
        ([USER, asking("a"), tool("b")], "must be a response to a preceding"),
        ([USER, asking("a", "a"), tool("a"), tool("a")], "an id is used twice"),
        ([USER, asking("")], "id, type, function.name or arguments are wrong"),
        ([USER, {"role": "assistant", "content": None}], "got null"),
    ],
)
def test_a_history_that_openai_refuses(messages: list[JsonObject], problem: str) -> None:
    assert problem in (history_error(messages) or "")
    with pytest.raises(AssertionError, match=re.escape(problem)):
        ModelServer().check_history(messages)


OPEN_SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED_SCHEMA = OPEN_SCHEMA | {"required": ["a"], "additionalProperties": False}
SCHEMA_WITH_DEFAULT = CLOSED_SCHEMA | {"properties": {"a": {"type": "string", "default": ""}}}


def schema_format(schema: JsonObject) -> JsonObject:
    return {
        "type": "json_schema",
        "json_schema": {"name": "wine", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"temperature": 0.1, "max_completion_tokens": 5}, None),
        ({"top_k": 5}, "Unknown parameter: 'top_k'"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "at the same time"),
        ({"tool_choice": "auto"}, "only allowed when 'tools' are specified"),
        ({"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
        ({"response_format": schema_format(CLOSED_SCHEMA)}, None),
        ({"response_format": schema_format(OPEN_SCHEMA)}, "'additionalProperties' is required"),
        ({"response_format": schema_format(SCHEMA_WITH_DEFAULT)}, "'default' is not permitted"),
    ],
)
def test_strict_rules(more: JsonObject, problem: str | None) -> None:
    found = strict_error({"model": "gpt-4o", "messages": [USER], **more})
    assert found is None if problem is None else problem in (found or "")
