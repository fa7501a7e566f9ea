"""Write requests for chat completions as a server understands them, and read its answers.

Answers are read as plain data, because servers leave out fields, or send other types than OpenAI.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agent import size_limits
from agent.engine.contract import make_strict_schema
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
from agent.text import pattern, sanitize, strip_unstorable

OPENAI_HOST: Final = "api.openai.com"
AZURE_DOMAIN: Final = ".openai.azure.com"
MAX_NAME_CHARS: Final = 200
"""The longest name that a server may give a model, and the longest id of a call."""
MAX_PARTS: Final = 1_000
"""The most parts of a field that a server streams as a list."""
MAX_ERROR_CHARS: Final = 300
"""The most characters of a server's error that are kept."""
FORMAT_WORDS: Final = pattern(r"response_format|json_|grammar|schema")
"""A complaint about the response format: "'json_schema' is not supported"."""
STREAM_WORD: Final = pattern(r"\bstream")
TOO_MUCH: Final = pattern(r"too large|context length|at most")
"""A complaint about the value of a parameter, and not about the parameter itself."""
FINISH_REASONS: Final = {
    "max_tokens": "length",
    "safety": "content_filter",
    "error": "interrupted",
}
"""The finish reasons of other servers in the words of OpenAI. `interrupted` is our own word."""
LOOSER_MODES: Final[Mapping[ResponseMode, ResponseMode]] = {
    "json_schema": "json_object",
    "json_object": "prompt",
    "prompt": "prompt",
}
"""The mode to use if a server does not know a mode."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that a server understands, as learned from its errors."""

    mode: ResponseMode = "json_object"
    limit_names: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    """Names of the limit of an answer. The first is in use, the others are tried after it."""
    format_beside_tools: bool = False
    """Whether tools and a response format go out in one request.

    Most servers then call no tool, and say nothing about it.
    """
    answers_beside_tools: bool = True
    """Whether the server can read an answer in JSON while tools are offered. llama.cpp cannot."""
    takes_temperature: bool = True
    needs_strict_tools: bool = False
    """Whether the schemas of tools must be closed, with every property required."""
    streams: bool = True
    """Whether the server streams, and counts the tokens at the end of a stream."""

    @classmethod
    def of_openai(cls, mode: ResponseMode = "json_object") -> "Dialect":
        """Return the dialect of OpenAI's own servers, which honour tools and format together."""
        limit_names = ("max_completion_tokens", "max_tokens")
        return cls(mode, limit_names, format_beside_tools=True)

    @classmethod
    def of_server(
        cls, base_url: str | None, mode: ResponseMode = "json_object"
    ) -> "Dialect":
        """Return the dialect to begin with at an address.

        Without an address, the client sends to that of OPENAI_BASE_URL, or to OpenAI.
        """
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_HOST
        if OPENAI_HOST in url or AZURE_DOMAIN in url:
            return cls.of_openai(mode)
        return cls(mode)

    def simplify(self, complaint: str) -> "Dialect | None":
        """Return the dialect without the parameter that a server complains about.

        Return None if the complaint is about no parameter that can be left out.
        """
        text = complaint.lower()
        if TOO_MUCH.search(text):
            return None
        simpler = self._avoid_parameter_in(text)
        if simpler == self:
            return None
        return simpler

    def _avoid_parameter_in(self, text: str) -> "Dialect":
        """Return the dialect without the parameter that a text names, or unchanged if none."""
        names_format = FORMAT_WORDS.search(text)
        has_another_limit = len(self.limit_names) > 1
        if has_another_limit and self.limit_names[0] in text:
            return replace(self, limit_names=self.limit_names[1:])
        if "temperature" in text:
            return replace(self, takes_temperature=False)
        if STREAM_WORD.search(text):
            return replace(self, streams=False)
        if self.format_beside_tools and names_format and "tool" in text:
            return replace(self, format_beside_tools=False)
        # A complaint about the schema of a tool has a word of `FORMAT_WORDS`, too.
        if "function" in text and "additionalproperties" in text:
            return replace(self, needs_strict_tools=True)
        if names_format:
            return replace(self, mode=LOOSER_MODES[self.mode])
        return self

    def build_parameters(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> dict[str, Any]:
        """Return the parameters of a request as this server understands them."""
        tools, output = self._choose_tools_and_output(messages, request)
        parameters: dict[str, Any] = {"messages": messages}
        if self.needs_strict_tools:
            tools = [make_strict_tool(tool) for tool in tools]
        if tools:
            parameters["tools"] = tools
        if request.max_tokens is not None:
            limit_name = self.limit_names[0]
            parameters[limit_name] = request.max_tokens
        if self.takes_temperature and request.temperature is not None:
            parameters["temperature"] = request.temperature
        if output and self.mode != "prompt":
            response_format = build_response_format(output, self.mode)
            parameters["response_format"] = response_format
            if "json_schema" in response_format:
                shorter = [_without_schema(message, output) for message in messages]
                parameters["messages"] = shorter
        if request.written is not None and self.streams:
            parameters["stream"] = True
            parameters["stream_options"] = {"include_usage": True}
        return parameters

    def _choose_tools_and_output(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> tuple[Sequence[JsonSchema], OutputSchema | None]:
        """Return the tools or the schema to send, or both if they may go out together."""
        has_both = bool(request.tools) and request.output is not None
        if self.format_beside_tools or not has_both:
            return request.tools, request.output
        # With both, most servers call no tool. The tools go out first, because an answer needs what
        # they find. After an error of form the format goes out, because it prevents another one.
        if request.needs_form:
            return (), request.output
        # The server could not read an answer beside tools, so it gets none once they have run.
        have_run = any(message.get("role") == "tool" for message in messages)
        if have_run and not self.answers_beside_tools:
            return (), request.output
        return request.tools, None


def build_response_format(output: OutputSchema, mode: ResponseMode) -> dict[str, Any]:
    """Return the `response_format` of modes B (json_object) and C (json_schema)."""
    if mode == "json_object" or output.strict_schema is None:
        return {"type": "json_object"}
    json_schema = {
        "name": output.name,
        "strict": True,
        "schema": output.strict_schema,
    }
    return {"type": "json_schema", "json_schema": json_schema}


def make_strict_tool(tool: JsonSchema) -> JsonSchema:
    """Return a tool with a strict schema, or unchanged if its schema has no strict form.

    A strict schema requires every property, so optional ones may be null.
    """
    function = tool["function"]
    parameters = function["parameters"]
    required = parameters.get("required", ())
    properties = dict(parameters.get("properties", {}))
    for name, property_schema in properties.items():
        if name not in required:
            properties[name] = {"anyOf": [property_schema, {"type": "null"}]}
    strict_parameters = make_strict_schema({**parameters, "properties": properties})
    if strict_parameters is None:
        return tool
    strict_function = {**function, "parameters": strict_parameters, "strict": True}
    return {**tool, "function": strict_function}


def _without_schema(message: Message, output: OutputSchema) -> Message:
    """Return a message with only the name of the schema, which the response format contains."""
    if message.get("role") != "system":
        return message
    content = str(message["content"])
    schema_name = f"(the schema {output.name} of the response format)"
    shorter = content.replace(output.schema_text, schema_name)
    return message | {"content": shorter}


def read_completion(data: Mapping[str, Any], model: str) -> LLMResponse:
    """Return the response in a chat completion, even if the server leaves out or changes fields.

    A content or arguments over a limit keep one character more than the limit, so that whoever
    checks them later finds them too long.
    """
    choice = _first_mapping(data.get("choices"))
    message = _as_mapping(choice.get("message"))
    content = _read_text(message.get("content"))
    refusal = _read_text(message.get("refusal"))
    model_name = str(data.get("model") or model)
    return LLMResponse(
        content=content[: size_limits.ANSWER_CHARS + 1],
        tool_calls=_read_tool_calls(message),
        finish_reason=_read_finish_reason(choice),
        refusal=refusal[: size_limits.ANSWER_CHARS] or None,
        usage=_read_usage(data),
        model=sanitize(model_name, MAX_NAME_CHARS),
        echo=_read_echo(message),
    )


def _read_finish_reason(choice: Mapping[str, Any]) -> str:
    if not choice:
        return "no_choices"
    written = choice.get("finish_reason") or "stop"
    reason = str(written).lower()
    return FINISH_REASONS.get(reason, reason)


class StreamedCompletion:
    """A chat completion that is put together from its chunks. It keeps `written` up to date.

    The client's own accumulator fails on calls without an index, and joins ids that are repeated.
    """

    def __init__(self, model: str, written: Written | None = None) -> None:
        self._model = model
        self._written = written or Written()
        self._message: dict[str, Any] = {"content": ""}
        self._calls: list[dict[str, Any]] = []
        self._finish_reason: str | None = None
        # The name of the model, and the usage if the server counts it.
        self._model_and_usage: dict[str, Any] = {}
        self.first_token_ns: int | None = None

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add the next chunk."""
        for name in ("model", "usage"):
            if chunk.get(name):
                self._model_and_usage[name] = chunk[name]
        choice = _first_mapping(chunk.get("choices"))
        if choice.get("finish_reason"):
            self._finish_reason = choice["finish_reason"]
        # Some servers send the whole message in a chunk, and no delta.
        delta = _as_mapping(choice.get("delta") or choice.get("message"))
        content = _read_text(delta.get("content"))
        self._add_field("content", content, size_limits.ANSWER_CHARS)
        for name in ("refusal", *ECHOED):
            self._add_field(name, delta.get(name), REASONING_CHARS)
        calls = _as_list(delta.get("tool_calls"))
        for call in calls[: size_limits.TOOL_CALLS]:
            self._add_call(_as_mapping(call))
        if self.first_token_ns is None and self._has_begun:
            self.first_token_ns = time.time_ns()
        self._written.update(self._message["content"])

    @property
    def has_usage(self) -> bool:
        """Return whether the server has counted the tokens."""
        return "usage" in self._model_and_usage

    @property
    def _has_begun(self) -> bool:
        return bool(self._calls) or any(self._message.values())

    def _add_field(
        self,
        name: str,
        piece: object,
        limit: int,
    ) -> None:
        """Add the next piece of a field of the message, if there is one."""
        if piece is not None:
            value = self._message.get(name)
            self._message[name] = _append_piece(value, piece, limit)

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        """Add a piece to its call, or to a new call if it belongs to no known one."""
        call = self._find_call(piece.get("index"), piece.get("id"))
        if call is None:
            if len(self._calls) >= size_limits.TOOL_CALLS:
                return
            call = dict(piece)
            call["function"] = {"name": "", "arguments": ""}
            self._calls.append(call)
        call |= _read_echo(piece)
        function = call["function"]
        function_piece = _as_mapping(piece.get("function"))
        if not function["name"]:
            function["name"] = function_piece.get("name")
        arguments_piece = _read_text(function_piece.get("arguments"))
        function["arguments"] = _append_piece(
            function["arguments"], arguments_piece, size_limits.ARGUMENT_CHARS
        )

    def _find_call(self, index: object, id: object) -> dict[str, Any] | None:
        """Return the call to which a piece with this index and id belongs, or None.

        A piece may lack either of them. Without an index, it can only belong to the last call.
        """
        candidates = self._calls
        if index is None:
            candidates = self._calls[-1:]
        for call in candidates:
            has_index = index is None or index == call.get("index")
            has_id = id is None or id == call.get("id")
            if has_index and has_id:
                return call
        return None

    def build_completion(self) -> dict[str, Any]:
        """Return the whole completion.

        Raises:
            ModelUnavailable: the stream ended before the completion was whole.
        """
        if self._finish_reason is None and not self.has_usage:
            raise ModelUnavailable(f"{self._model} broke its answer off")
        choices: list[dict[str, Any]] = []
        if self._finish_reason or self._has_begun:
            message = {**self._message, "tool_calls": self._calls}
            choice = {"message": message, "finish_reason": self._finish_reason}
            choices.append(choice)
        return {**self._model_and_usage, "choices": choices}


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error of a server."""

    status: int
    """The HTTP status, or 502 for an error that came within a response."""
    body: object
    """The JSON that the server sent, in any form: `{"error": {"message": "…"}}`."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> frozenset[str]:
        """Return the names that the server gives the error: its code and its type."""
        body = _as_mapping(self.body)
        code = str(body.get("code"))
        type_name = str(body.get("type"))
        return frozenset({code, type_name})

    @property
    def text(self) -> str:
        """Return the server's own words, shortened, without what was sent to it."""
        # Some servers send a list with one error.
        body = _first_mapping(self.body) or self.body
        error = _as_mapping(body).get("error", body)
        message = _as_mapping(error).get("message", error)
        text = str(_without_input(message) or "")
        one_line = " ".join(text.split())
        return one_line[:MAX_ERROR_CHARS]

    @property
    def retry_after(self) -> float | None:
        """Return the seconds that the server asks to wait, or None if it does not say."""
        try:
            return max(0.0, float(self.headers["retry-after"]))
        except (KeyError, ValueError):
            # The header may be a date. It is not read, because the usual wait is as good.
            return None


def _without_input(node: object) -> object:
    """Return the validation errors of a server without the input that they repeat."""
    if isinstance(node, list):
        return [_without_input(item) for item in node]
    if isinstance(node, Mapping):
        kept = {key: _without_input(value) for key, value in node.items()}
        kept.pop("input", None)
        return kept
    return node


def _read_tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls = _as_list(message.get("tool_calls"))
    read: list[ToolCall] = []
    for call in calls[: size_limits.TOOL_CALLS]:
        read.append(_read_tool_call(_as_mapping(call)))
    return tuple(read)


def _read_tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _as_mapping(call.get("function"))
    id = str(call.get("id") or "")
    name = _read_text(function.get("name"))
    arguments = _read_text(function.get("arguments"))
    return ToolCall(
        id=sanitize(id, MAX_NAME_CHARS),
        name=name[: size_limits.NAME_CHARS],
        arguments=arguments[: size_limits.ARGUMENT_CHARS + 1],
        echo=_read_echo(call),
    )


def _read_text(content: object) -> str:
    """Return a content as one text. Some servers send a list of parts, or the JSON they parsed."""
    if content is None:
        return ""
    if isinstance(content, list):
        content = "".join(_read_part(part) for part in content)
    if not isinstance(content, str):
        content = json.dumps(content)
    return strip_unstorable(content)


def _read_part(part: object) -> str:
    """Return the text of a part of a content, or "" if the part has no text."""
    text = part
    if not isinstance(part, str):
        text = _as_mapping(part).get("text")
    if not isinstance(text, str):
        return ""
    return text


def _read_usage(data: Mapping[str, Any]) -> TokenUsage:
    usage = _as_mapping(data.get("usage"))
    prompt_details = _as_mapping(usage.get("prompt_tokens_details"))
    completion_details = _as_mapping(usage.get("completion_tokens_details"))
    cached_tokens = prompt_details.get("cached_tokens")
    if not cached_tokens:
        cached_tokens = usage.get("prompt_cache_hit_tokens")  # DeepSeek's name
    return TokenUsage(
        prompt_tokens=_read_count(usage.get("prompt_tokens")),
        completion_tokens=_read_count(usage.get("completion_tokens")),
        cached_tokens=_read_count(cached_tokens),
        reasoning_tokens=_read_count(completion_details.get("reasoning_tokens")),
    )


def _read_count(value: object) -> int:
    """Return a number of tokens, or 0 for anything else that a server may write."""
    if not isinstance(value, int):
        return 0
    return max(0, value)


def _read_echo(message_or_call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields that the server wants back, also empty texts.

    A value that is too long is left out, because a part of it would mean something else.
    """
    echo: dict[str, Any] = {}
    for name in ECHOED:
        value = message_or_call.get(name)
        if value is not None and _count_chars(value) <= REASONING_CHARS:
            echo[name] = value
    return echo


def _append_piece(
    value: Any,
    piece: Any,
    limit: int,
) -> Any:
    """Return the value of a field with its next piece.

    A text of more than `limit` characters and a list of more than `MAX_PARTS` items stay unchanged.
    """
    if isinstance(piece, str):
        text = value if isinstance(value, str) else ""
        if len(text) > limit:
            return text
        return text + piece[: limit + 1]
    if isinstance(piece, list):
        parts = _as_list(value)
        if len(parts) > MAX_PARTS:
            return parts
        return parts + piece[:MAX_PARTS]
    return piece  # a number or an object replaces the value before


def _count_chars(value: object) -> int:
    """Return the length of a text, or of data as JSON."""
    if not isinstance(value, str):
        value = json.dumps(value)
    return len(value)


def _as_mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping unchanged, or an empty one for anything else that a server may write."""
    if isinstance(value, Mapping):
        return value
    return {}


def _as_list(value: object) -> list[Any]:
    """Return a list unchanged, or an empty one for anything else that a server may write."""
    if isinstance(value, list):
        return value
    return []


def _first_mapping(values: object) -> Mapping[str, Any]:
    """Return the first item of a list if it is a mapping, or else an empty mapping."""
    items = _as_list(values)
    if not items:
        return {}
    return _as_mapping(items[0])
