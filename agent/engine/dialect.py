"""The dialect of a server: the parameters of a chat completions request that it understands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from agent.engine.contract import strict_schema
from agent.engine.messages import (
    ECHOED,
    LLMRequest,
    Message,
    OutputSchema,
    ResponseMode,
    ToolSchema,
    without_echoes,
)
from agent.text import pattern

FORMAT_WORDS: Final = ("response_format", "json_", "grammar", "schema")
STREAM_WORDS: Final = pattern(r"\bstream")
TOO_MUCH: Final = ("too large", "context length", "at most")
"""Words of a complaint about a value; the parameter itself is known."""
MISSED: Final = ("missing", "passed back", "required")
"""Words of a complaint about something that is not there."""
LOOSER_MODES: Final[Mapping[ResponseMode, ResponseMode]] = {
    "json_schema": "json_object",
    "json_object": "prompt",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that a server understands; learned from its errors, kept for the process.

    Most servers call no tool when a response format is in the request, and say nothing about it.
    So tools and format go out together only if `format_beside_tools`. Some (llama.cpp) fail to
    read an answer in JSON while tools are offered; if so, not `answers_beside_tools`.
    """

    mode: ResponseMode
    token_parameters: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    """Names of the limit of an answer, the one in use first."""
    format_beside_tools: bool = False
    answers_beside_tools: bool = True
    temperature: bool = True
    strict_tools: bool = False
    """True if the schema of a tool must be closed, with every property required."""
    streams: bool = True
    """True if answers are streamed, with their usage at the end."""
    echoes: Literal["own", "blank", "none"] = "own"
    """Further fields of a model's messages that go back: its own, blank thoughts, or none."""

    @classmethod
    def of_openai(cls, mode: ResponseMode) -> "Dialect":
        """Make the dialect of OpenAI's own servers, which honour tools and format together."""
        names = ("max_completion_tokens", "max_tokens")
        return cls(mode, token_parameters=names, format_beside_tools=True)

    def without(self, complaint: str) -> "Dialect | None":
        """Return the next simpler dialect without what a server complains of; None without one."""
        text = complaint.lower()
        simpler = self
        if any(words in text for words in TOO_MUCH):
            return None
        if self.token_parameters[0] in text and len(self.token_parameters) > 1:
            simpler = replace(self, token_parameters=self.token_parameters[1:])
        elif "temperature" in text and self.temperature:
            simpler = replace(self, temperature=False)
        elif STREAM_WORDS.search(text):
            simpler = replace(self, streams=False)
        elif any(word in text for word in FORMAT_WORDS):
            simpler = self._with_looser_format(text)
        elif any(name in text for name in ECHOED):
            is_missed = self.echoes == "own" and any(words in text for words in MISSED)
            simpler = replace(self, echoes="blank" if is_missed else "none")
        return None if simpler == self else simpler

    def _with_looser_format(self, complaint: str) -> "Dialect":
        if self.format_beside_tools and "tool" in complaint:
            return replace(self, format_beside_tools=False)
        if "function" in complaint and "additionalproperties" in complaint:
            return replace(self, strict_tools=True)
        return replace(self, mode=LOOSER_MODES.get(self.mode, "prompt"))

    def parameters(self, messages: Sequence[Message], request: LLMRequest) -> dict[str, Any]:
        """Return the parameters of a request as this server understands them."""
        request = self._sendable(messages, request)
        asked: dict[str, Any] = {"messages": [self._echoed(message) for message in messages]}
        if request.tools:
            asked["tools"] = [
                strict_wire(tool) if self.strict_tools else tool.wire for tool in request.tools
            ]
        if request.max_tokens is not None:
            asked[self.token_parameters[0]] = request.max_tokens
        if request.temperature is not None and self.temperature:
            asked["temperature"] = request.temperature
        if request.on_text is not None and self.streams:
            asked |= {"stream": True, "stream_options": {"include_usage": True}}
        if request.output is not None and (format := response_format(request.output, self.mode)):
            asked["response_format"] = format
            if format["type"] == "json_schema":
                said = asked["messages"]
                asked["messages"] = [_without_schema(message, request.output) for message in said]
        return asked

    def _sendable(self, messages: Sequence[Message], request: LLMRequest) -> LLMRequest:
        """Return a request with the tools or the schema, unless both may go out together."""
        if self.format_beside_tools or not request.tools or request.output is None:
            return request
        has_results = any(message.get("role") == "tool" for message in messages)
        if has_results and not self.answers_beside_tools:
            return replace(request, tools=())
        return replace(request, output=None)

    def _echoed(self, message: Message) -> Message:
        """Return a message with the fields beside words and calls that the server knows."""
        if self.echoes == "blank" and message.get("role") == "assistant":
            return {"reasoning_content": ""} | message
        return without_echoes(message) if self.echoes == "none" else message


def response_format(output: OutputSchema, mode: ResponseMode) -> dict[str, Any]:
    """Return the `response_format` of modes A (prompt: none), B (json_object), C (json_schema)."""
    if mode == "prompt":
        return {}
    if mode == "json_object" or output.strict_schema is None:
        return {"type": "json_object"}
    named = {"name": output.name, "strict": True, "schema": output.strict_schema}
    return {"type": "json_schema", "json_schema": named}


def strict_wire(tool: ToolSchema) -> dict[str, Any]:
    """Return a tool with a strict schema, if there is one; what is optional may be null."""
    required = tool.parameters.get("required", ())
    nullable = {
        name: value if name in required else {"anyOf": [value, {"type": "null"}]}
        for name, value in tool.parameters.get("properties", {}).items()
    }
    schema = strict_schema({**tool.parameters, "properties": nullable})
    if schema is None:
        return tool.wire
    function = tool.wire["function"] | {"parameters": schema, "strict": True}
    return {"type": "function", "function": function}


def _without_schema(message: Message, output: OutputSchema) -> Message:
    """Name the schema in a system message, instead of repeating it beside a response format."""
    if message.get("role") != "system":
        return message
    named = f"(the schema {output.name} of the response format)"
    return message | {"content": str(message["content"]).replace(output.schema_text, named)}
