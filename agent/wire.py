"""The wire format of chat completions: what is sent, and a tolerant reading of what comes back."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from agent.errors import ModelResponseInvalid
from agent.messages import LLMResponse, Message, OutputSchema, ToolCall, ToolSchema, Usage

ResponseMode = Literal["prompt", "json_object", "json_schema"]

LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands; learned from its refusals and remembered."""

    mode: ResponseMode
    token_parameter: str = "max_completion_tokens"  # noqa: S105 - a parameter's name
    format_beside_tools: bool = True
    temperature: bool = True

    def without(self, complaint: str) -> "Dialect | None":
        """The next simpler dialect that avoids what a 400 complains of, None if none does."""
        text = complaint.lower()
        if "max_completion_tokens" in text and self.token_parameter in text:
            return replace(self, token_parameter="max_tokens")  # noqa: S106
        if "temperature" in text and self.temperature:
            return replace(self, temperature=False)
        if not any(word in text for word in ("response_format", "json_", "grammar", "schema")):
            return None
        if self.format_beside_tools and "tool" in text:
            return replace(self, format_beside_tools=False)
        simpler: dict[ResponseMode, ResponseMode] = {
            "json_schema": "json_object",
            "json_object": "prompt",
        }
        return replace(self, mode=simpler[self.mode]) if self.mode in simpler else None


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] = (),
    *,
    output: OutputSchema | None,
    max_tokens: int | None,
    dialect: Dialect,
) -> dict[str, Any]:
    """The JSON of one chat completions request."""
    body: dict[str, Any] = {"model": model, "messages": list(messages)}
    if tools:
        body["tools"] = [tool.wire for tool in tools]
    if max_tokens is not None:
        body[dialect.token_parameter] = max_tokens
    if output is not None and (dialect.format_beside_tools or not tools):
        body |= response_format(output, dialect.mode)
    return body


def response_format(output: OutputSchema, mode: ResponseMode) -> dict[str, Any]:
    """The `response_format` of modes A (prompt: none), B (json_object) and C (json_schema)."""
    if mode == "prompt":
        return {}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": output.name, "strict": True, "schema": output.strict_schema}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def read_response(body: bytes, model: str) -> LLMResponse:
    """What a chat completion says, tolerant of what other servers leave out.

    Raises:
        ModelResponseInvalid: the body is not JSON, or holds neither `choices` nor usage.
    """
    try:
        data = json.loads(body)
    except ValueError:
        raise ModelResponseInvalid(f"{model} answered with something that is not JSON") from None
    if not isinstance(data, dict):
        raise ModelResponseInvalid(f"{model} answered with JSON that is not an object")
    choice = _first(data.get("choices"))
    message = _mapping(choice.get("message"))
    return LLMResponse(
        content=_text(message.get("content")),
        tool_calls=tuple(_tool_calls(message)),
        finish_reason=str(choice.get("finish_reason") or ("stop" if choice else "no_choices")),
        refusal=message.get("refusal") or None,
        usage=_usage(data.get("usage")),
        model=str(data.get("model") or model),
        has_reasoning=bool(message.get("reasoning_content") or message.get("reasoning")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _text(content: object) -> str:
    """Content as one string; some servers send a list of parts."""
    if isinstance(content, list):
        content = "".join(str(_mapping(part).get("text") or "") for part in content)
    return sendable(content) if isinstance(content, str) else ""


def sendable(text: str) -> str:
    """`text` without halves of characters, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode() if LONE_SURROGATE.search(text) else text


def _tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    calls = message.get("tool_calls")
    return [_tool_call(_mapping(call)) for call in calls] if isinstance(calls, list) else []


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _mapping(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments)
    return ToolCall(str(call.get("id") or ""), _text(function.get("name")), sendable(arguments))


def _usage(usage: object) -> Usage:
    counted = _mapping(usage)
    details = _mapping(counted.get("prompt_tokens_details"))
    return Usage(
        _count(counted.get("prompt_tokens")),
        _count(counted.get("completion_tokens")),
        _count(details.get("cached_tokens")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
