"""Check requests by the rules of OpenAI's chat completions; return an error text, or None."""

import re
from collections.abc import Iterator, Sequence

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

from tests.doubles.server import JsonObject

ROLES = {"developer", "system", "user", "assistant", "tool"}
PARAMETERS = CompletionCreateParamsStreaming.__annotations__.keys()
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def history_error(messages: Sequence[JsonObject]) -> str | None:
    """Return the error of a list of messages; None if it is valid."""
    if not messages:
        return "Invalid 'messages': empty array."
    open_ids: list[str] = []  # of the last tool calls, without a result so far
    used_ids: set[str] = set()
    for index, message in enumerate(messages):
        if not _is_well_formed(message):
            return f"Invalid value for 'messages[{index}]': {message}"
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                return f"Invalid parameter: messages[{index}] must be a response to 'tool_calls'."
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            break
        open_ids = [call["id"] for call in message.get("tool_calls") or []]
        if used_ids.intersection(open_ids) or len(set(open_ids)) < len(open_ids):
            return f"Invalid 'messages[{index}].tool_calls': an id is used twice."
        used_ids.update(open_ids)
    return (
        f"These tool_call_ids did not have response messages: {open_ids}"
        if open_ids
        else None
    )


def _is_well_formed(message: JsonObject) -> bool:
    role, content, calls = (
        message.get(key) for key in ("role", "content", "tool_calls")
    )
    if calls is not None and (
        role != "assistant" or not calls or not all(map(_is_call, calls))
    ):
        return False
    return role in ROLES and (
        isinstance(content, str | list) or (content is None and bool(calls))
    )


def _is_call(call: JsonObject) -> bool:
    function = call.get("function", {})
    is_named = (
        bool(call.get("id")) and NAME.fullmatch(function.get("name", "")) is not None
    )
    return (
        is_named
        and call.get("type") == "function"
        and isinstance(function.get("arguments"), str)
    )


def strict_error(request: JsonObject) -> str | None:
    """Return the error that OpenAI itself gives and many compatible servers do not, or None."""
    return next(_strict_errors(request), None)


def _strict_errors(request: JsonObject) -> Iterator[str]:
    for name in sorted(request.keys() - PARAMETERS):
        yield f"Unknown parameter: '{name}'."
    if {"max_tokens", "max_completion_tokens"} <= request.keys():
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    if request.get("tools") == []:
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1."
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in request and "tools" not in request:
            yield f"Invalid value for '{name}': only allowed when 'tools' are specified."
    response_format = request.get("response_format") or {}
    texts = " ".join(str(message.get("content")) for message in request["messages"])
    if response_format.get("type") == "json_object" and "json" not in texts.lower():
        yield "'messages' must contain the word 'json' in some form, to use 'json_object'."
    schema = response_format.get("json_schema", {})
    if schema.get("strict"):
        yield from schema_errors(schema.get("schema", {}), ())


def schema_errors(schema: JsonObject, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the errors of a strict `json_schema`: open objects, optional properties, defaults."""
    context = f"In context={path}"
    if (
        schema.get("type") == "object"
        and schema.get("additionalProperties") is not False
    ):
        yield f"{context}, 'additionalProperties' is required to be supplied and to be false."
    if set(schema.get("required", [])) != set(schema.get("properties", {})):
        yield f"{context}, 'required' is required to include every key in properties."
    if "default" in schema:
        yield f"{context}, 'default' is not permitted."
    if "$ref" in schema and len(schema) > 1:
        yield f"{context}, $ref cannot have keywords {sorted(schema.keys() - {'$ref'})}."
    for name, part in _subschemas(schema):
        yield from schema_errors(part, (*path, name))


def _subschemas(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    yield from schema.get("properties", {}).items()
    yield from schema.get("$defs", {}).items()
    yield from (("anyOf", part) for part in schema.get("anyOf", []))
    if "items" in schema:
        yield "items", schema["items"]
