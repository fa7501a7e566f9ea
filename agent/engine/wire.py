"""Chat completions on the wire: requests as a server understands them, and its answers.

Answers are read as plain data, so that servers which leave out fields, or send other types than
OpenAI, are read as well.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agent import size_limits
from agent.engine.contract import strict_schema
from agent.engine.errors import ModelUnavailable
from agent.engine.messages import (
    ECHOED,
    JsonSchema,
    LLMRequest,
    LLMResponse,
    Message,
    OutputSchema,
    ResponseMode,
    TokenUsage,
    ToolCall,
    Written,
)
from agent.size_limits import REASONING_CHARS
from agent.text import cut, pattern, strip_unstorable

OPENAI_HOSTS: Final = ("api.openai.com", ".openai.azure.com")
MAX_NAME_CHARS: Final = 200
"""The name that a server gives a model, or the id of a call."""
MAX_PARTS: Final = 1_000
"""Parts of a field that a server streams as a list."""
FORMAT_WORDS: Final = pattern(r"response_format|json_|grammar|schema")
STREAM_WORDS: Final = pattern(r"\bstream")
TOO_MUCH: Final = pattern(r"too large|context length|at most")  # a value, not the parameter
FINISH_REASONS: Final = {"max_tokens": "length", "safety": "content_filter", "error": "interrupted"}
"""Finish reasons of other servers, in the words of OpenAI; `interrupted` is ours."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that a server understands; learned from its errors, kept for the process.

    Most servers call no tool when a response format is in the request, and say nothing about it.
    So tools and format go out together only if `format_beside_tools`. Some (llama.cpp) fail to
    read an answer in JSON while tools are offered; if so, not `answers_beside_tools`. With
    `strict_tools` the schema of a tool is closed, and every property is required. A server that
    `streams` counts the tokens at the end of a stream.
    """

    mode: ResponseMode = "json_object"
    limit_names: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    """Names of the limit of an answer, the one in use first."""
    format_beside_tools: bool = False
    answers_beside_tools: bool = True
    temperature: bool = True
    strict_tools: bool = False
    streams: bool = True

    @classmethod
    def of_openai(cls, mode: ResponseMode = "json_object") -> "Dialect":
        """Make the dialect of OpenAI's own servers, which honour tools and format together."""
        return cls(mode, ("max_completion_tokens", "max_tokens"), format_beside_tools=True)

    @classmethod
    def of_server(cls, base_url: str | None, mode: ResponseMode = "json_object") -> "Dialect":
        """Make the dialect that a server's address stands for; None is OpenAI's own address."""
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_HOSTS[0]
        is_openai = any(host in url for host in OPENAI_HOSTS)
        return cls.of_openai(mode) if is_openai else cls(mode)

    def without(self, complaint: str) -> "Dialect | None":
        """Return the dialect without the parameter in a complaint; None if it names none."""
        text = complaint.lower()
        simpler = self
        if TOO_MUCH.search(text):
            return None
        if self.limit_names[0] in text and len(self.limit_names) > 1:
            simpler = replace(self, limit_names=self.limit_names[1:])
        elif "temperature" in text:
            simpler = replace(self, temperature=False)
        elif STREAM_WORDS.search(text):
            simpler = replace(self, streams=False)
        elif self.format_beside_tools and FORMAT_WORDS.search(text) and "tool" in text:
            simpler = replace(self, format_beside_tools=False)
        elif "function" in text and "additionalproperties" in text:
            simpler = replace(self, strict_tools=True)
        elif FORMAT_WORDS.search(text):
            looser: ResponseMode = "json_object" if self.mode == "json_schema" else "prompt"
            simpler = replace(self, mode=looser)
        return None if simpler == self else simpler

    def parameters(self, messages: Sequence[Message], request: LLMRequest) -> dict[str, Any]:
        """Return the parameters of a request as this server understands them."""
        tools, output = self._sendable(messages, request)
        format = response_format(output, self.mode) if output else {}
        if output and "json_schema" in format:
            messages = [_without_schema(message, output) for message in messages]
        tools = [*map(strict_tool, tools)] if self.strict_tools else tools
        is_streamed = request.written is not None and self.streams
        parameters = {
            "messages": messages,
            "tools": tools or None,
            self.limit_names[0]: request.max_tokens,
            "temperature": request.temperature if self.temperature else None,
            "response_format": format or None,
            "stream": is_streamed or None,
            "stream_options": {"include_usage": True} if is_streamed else None,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def _sendable(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> tuple[Sequence[JsonSchema], OutputSchema | None]:
        """Return the tools or the schema of a request, or both where they may go out together."""
        if self.format_beside_tools or not request.tools or request.output is None:
            return request.tools, request.output
        # With both, most servers call no tool. The tools go out first: an answer needs what they
        # find. After an error of form the format goes out, since it mends what feedback may not.
        if request.needs_form:
            return (), request.output
        has_results = any(message.get("role") == "tool" for message in messages)
        if has_results and not self.answers_beside_tools:
            return (), request.output
        return request.tools, None


def response_format(output: OutputSchema, mode: ResponseMode) -> dict[str, Any]:
    """Return the `response_format` of modes A (prompt: none), B (json_object), C (json_schema)."""
    if mode == "prompt":
        return {}
    if mode == "json_object" or output.strict_schema is None:
        return {"type": "json_object"}
    named = {"name": output.name, "strict": True, "schema": output.strict_schema}
    return {"type": "json_schema", "json_schema": named}


def strict_tool(tool: JsonSchema) -> JsonSchema:
    """Return a tool with a strict schema, if there is one; what is optional may be null."""
    function = tool["function"]
    parameters = function["parameters"]
    required = parameters.get("required", ())
    nullable = {
        name: value if name in required else {"anyOf": [value, {"type": "null"}]}
        for name, value in parameters.get("properties", {}).items()
    }
    schema = strict_schema({**parameters, "properties": nullable})
    if schema is None:
        return tool
    return {**tool, "function": {**function, "parameters": schema, "strict": True}}


def _without_schema(message: Message, output: OutputSchema) -> Message:
    """Name the schema in a system message, instead of repeating it beside a response format."""
    if message.get("role") != "system":
        return message
    named = f"(the schema {output.name} of the response format)"
    return message | {"content": str(message["content"]).replace(output.schema_text, named)}


def read_completion(data: Mapping[str, Any], model: str) -> LLMResponse:
    """Read a chat completion, tolerant of what other servers leave out or write otherwise."""
    choice = _first(data.get("choices"))
    message = _mapping(choice.get("message"))
    finish = str(choice.get("finish_reason") or ("stop" if choice else "no_choices")).lower()
    calls = message.get("tool_calls")
    calls = calls[: size_limits.TOOL_CALLS] if isinstance(calls, list) else []
    return LLMResponse(
        content=_text(message.get("content"))[: size_limits.ANSWER_CHARS + 1],
        tool_calls=tuple(_tool_call(_mapping(call)) for call in calls),
        finish_reason=FINISH_REASONS.get(finish, finish),
        refusal=_text(message.get("refusal"))[: size_limits.ANSWER_CHARS] or None,
        usage=_usage(_mapping(data.get("usage"))),
        model=cut(str(data.get("model") or model), MAX_NAME_CHARS),
        echo=_echo(message),
    )


class StreamedCompletion:
    """The chunks of a chat completion put together; `written` is kept up to date with its content.

    The client's own accumulator fails on calls without an index, and joins ids that are repeated.
    """

    def __init__(self, model: str, written: Written | None = None) -> None:
        self._model, self._written = model, written or Written()
        self._message: dict[str, Any] = {"content": ""}
        self._calls: list[dict[str, Any]] = []
        self._finish: str | None = None
        self.known: dict[str, Any] = {}  # the model, and the usage if the server counts it
        self.first_token_ns: int | None = None

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take the next chunk."""
        self.known |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        choice = _first(chunk.get("choices"))
        self._finish = choice.get("finish_reason") or self._finish
        delta = _mapping(choice.get("delta") or choice.get("message"))
        self._message["content"] = _joined(
            self._message["content"], _text(delta.get("content")), size_limits.ANSWER_CHARS
        )
        for name in ("refusal", *ECHOED):
            if (piece := delta.get(name)) is not None:
                known: Any = self._message.get(name)
                self._message[name] = _joined(known, piece, size_limits.REASONING_CHARS)
        for call in (delta.get("tool_calls") or ())[: size_limits.TOOL_CALLS]:
            self._add_call(_mapping(call))
        if self.first_token_ns is None and (self._calls or any(self._message.values())):
            self.first_token_ns = time.time_ns()
        self._written.update(self._message["content"])

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        """Add a piece to its call: the last one if it has neither index nor id."""
        index, id = piece.get("index"), piece.get("id")
        for call in self._calls[-1:] if index is None else self._calls:
            if index in (None, call.get("index")) and id in (None, call.get("id")):
                break
        else:
            if len(self._calls) >= size_limits.TOOL_CALLS:
                return
            self._calls.append(call := {**piece, "function": {"name": "", "arguments": ""}})
        function = _mapping(piece.get("function"))
        call |= _echo(piece)
        call["function"]["name"] = call["function"]["name"] or function.get("name")
        arguments = call["function"]["arguments"], _text(function.get("arguments"))
        call["function"]["arguments"] = _joined(*arguments, size_limits.ARGUMENT_CHARS)

    def completion(self) -> dict[str, Any]:
        """Return the whole completion; raise ModelUnavailable if the stream ended in the middle."""
        if self._finish is None and "usage" not in self.known:
            raise ModelUnavailable(f"{self._model} broke its answer off")
        message = {**self._message, "tool_calls": self._calls}
        has_choice = self._finish or self._calls or any(self._message.values())
        choices = [{"message": message, "finish_reason": self._finish}] if has_choice else []
        return {**self.known, "choices": choices}


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error of a server: its status (502 within a response), its body and its headers."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> frozenset[str]:
        """Return the names that the server gives it."""
        return frozenset(str(_mapping(self.body).get(name)) for name in ("code", "type"))

    @property
    def text(self) -> str:
        """Return the server's own words: at most 300 characters, not what was sent to it."""
        body = _first(self.body) or self.body
        inner = _mapping(body).get("error", body)
        message = _mapping(inner).get("message", inner)
        return " ".join(str(_without_input(message) or "").split())[:300]

    @property
    def retry_after(self) -> float | None:
        """Return how many seconds the server asks us to wait, None if it does not say."""
        try:
            return max(0.0, float(self.headers["retry-after"]))
        except (KeyError, ValueError):  # a date is not read: the usual wait is as good
            return None


def _without_input(node: object) -> object:
    """Return the errors of a server that validates, without the input they repeat."""
    if isinstance(node, list):
        return [_without_input(item) for item in node]
    if isinstance(node, Mapping):
        return {key: _without_input(value) for key, value in node.items() if key != "input"}
    return node


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _mapping(call.get("function"))
    name, arguments = _text(function.get("name")), _text(function.get("arguments"))
    id = cut(str(call.get("id") or ""), MAX_NAME_CHARS)
    return ToolCall(
        id, name[: size_limits.NAME_CHARS], arguments[: size_limits.ARGUMENT_CHARS + 1], _echo(call)
    )


def _text(content: object) -> str:
    """Return content as one string; some servers send a list of parts, or the JSON they parsed."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _mapping(part).get("text") for part in content]
        content = "".join(part for part in parts if isinstance(part, str))
    return strip_unstorable(content if isinstance(content, str) else json.dumps(content))


def _usage(usage: Mapping[str, Any]) -> TokenUsage:
    read, written = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = _mapping(read).get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    reasoning = _mapping(written).get("reasoning_tokens")
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached, reasoning)
    return TokenUsage(*(max(0, count) if isinstance(count, int) else 0 for count in counts))


def _echo(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message or call that its server wants back; an empty text counts.

    What is too long is left out, for a part of it would mean something else.
    """
    fields = {name: written[name] for name in ECHOED if written.get(name) is not None}
    return {name: value for name, value in fields.items() if _length(value) <= REASONING_CHARS}


def _joined(known: Any, piece: Any, limit: int) -> Any:
    """Return a field with its next piece, or as it is if it is longer than `limit` already."""
    if isinstance(piece, str):
        beginning = known if isinstance(known, str) else ""
        return beginning if len(beginning) > limit else beginning + piece[: limit + 1]
    if isinstance(piece, list):
        first_parts = known if isinstance(known, list) else []
        return first_parts if len(first_parts) > MAX_PARTS else [*first_parts, *piece[:MAX_PARTS]]
    return piece


def _length(value: object) -> int:
    """Return the length of a text, or of data as JSON."""
    return len(value if isinstance(value, str) else json.dumps(value))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}
