"""The dialect of a server: the parameters of a chat completions request that it understands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from agent.engine.contract import strict_schema
from agent.engine.messages import (
    ECHOED,
    Message,
    OutputSchema,
    ResponseMode,
    ToolSchema,
    without_echoes,
)
from agent.text import pattern

THOUGHTS: Final = "reasoning_content"
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
    """The parameters that a server understands; learned from its refusals, kept for the process.

    Most servers call no tool when a response format is in the request, and say nothing about it.
    So tools and format go out together only if `format_beside_tools`. Some (llama.cpp) fail to
    read an answer in JSON while tools are offered; if so, not `answers_beside_tools`.
    """

    mode: ResponseMode
    token_parameters: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    """Names of the limit of an answer, the one in use first."""
    format_beside_tools: bool = False
    answers_beside_tools: bool = True
    schema_in_object: bool = False
    """True if mode `json_schema` is asked for as a `json_object` with a schema."""
    temperature: bool = True
    strict_tools: bool = False
    """True if the schema of a tool must be closed, with every property required."""
    streams: Literal["with_usage", "plain", "no"] = "with_usage"
    """Answers are streamed with their usage at the end, without it, or not at all."""
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
        if any(words in text for words in TOO_MUCH):
            return None
        if self.token_parameters[0] in text and len(self.token_parameters) > 1:
            return replace(self, token_parameters=self.token_parameters[1:])
        if "temperature" in text and self.temperature:
            return replace(self, temperature=False)
        if STREAM_WORDS.search(text) or not any(word in text for word in FORMAT_WORDS):
            return self._with_other_habits(text)
        if self.format_beside_tools and "tool" in text:
            return replace(self, format_beside_tools=False)
        return self._with_looser_format(text)

    def _with_looser_format(self, complaint: str) -> "Dialect | None":
        is_of_tools = "function" in complaint and "additionalproperties" in complaint
        if is_of_tools and not self.strict_tools:
            return replace(self, strict_tools=True)
        if self.mode == "json_schema" and not self.schema_in_object:
            return replace(self, schema_in_object=True)
        return replace(self, mode=LOOSER_MODES[self.mode]) if self.mode in LOOSER_MODES else None

    def _with_other_habits(self, complaint: str) -> "Dialect | None":
        if STREAM_WORDS.search(complaint) and self.streams != "no":
            told = "stream_options" in complaint and self.streams == "with_usage"
            return replace(self, streams="plain" if told else "no")
        if not any(name in complaint for name in ECHOED):
            return None
        if any(words in complaint for words in MISSED):
            return replace(self, echoes="blank") if self.echoes == "own" else None
        return replace(self, echoes="none") if self.echoes != "none" else None

    def parameters(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        output: OutputSchema | None,
        *,
        max_tokens: int | None,
        temperature: float | None,
        streamed: bool,
    ) -> dict[str, Any]:
        """Return the parameters of a request as this server understands them."""
        tools, output = self._together(messages, tools, output)
        asked: dict[str, Any] = {"messages": self._echoed(messages)}
        if tools:
            asked["tools"] = [
                strict_wire(tool) if self.strict_tools else tool.wire for tool in tools
            ]
        if max_tokens is not None:
            asked[self.token_parameters[0]] = max_tokens
        if temperature is not None and self.temperature:
            asked["temperature"] = temperature
        if streamed and self.streams != "no":
            asked["stream"] = True
            if self.streams == "with_usage":
                asked["stream_options"] = {"include_usage": True}
        if output is not None and (format := response_format(output, self)):
            asked["response_format"] = format
            if format["type"] == "json_schema":
                asked["messages"] = [
                    _without_schema(message, output) for message in asked["messages"]
                ]
        return asked

    def _together(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        output: OutputSchema | None,
    ) -> tuple[Sequence[ToolSchema], OutputSchema | None]:
        """Return the tools and the schema that may go out in one request."""
        if self.format_beside_tools or not tools or output is None:
            return tools, output
        has_results = any(message.get("role") == "tool" for message in messages)
        if has_results and not self.answers_beside_tools:
            return (), output
        return tools, None

    def _echoed(self, messages: Sequence[Message]) -> list[Message]:
        if self.echoes == "own":
            return list(messages)
        return [*map(_with_thoughts if self.echoes == "blank" else without_echoes, messages)]


def response_format(output: OutputSchema, dialect: Dialect) -> dict[str, Any]:
    """Return the `response_format` of modes A (prompt: none), B (json_object), C (json_schema).

    Some servers hold a model to a schema only if it stands in the format `json_object`.
    """
    if dialect.mode == "prompt":
        return {}
    schema = output.strict_schema if dialect.mode == "json_schema" else None
    if schema is None:
        return {"type": "json_object"}
    if dialect.schema_in_object:
        return {"type": "json_object", "schema": schema}
    named = {"name": output.name, "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": named}


def strict_wire(tool: ToolSchema) -> dict[str, Any]:
    """Return a tool with a strict schema, if there is one; what is optional may be null."""
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    nullable = {
        name: value if name in required else {"anyOf": [value, {"type": "null"}]}
        for name, value in properties.items()
    }
    schema = strict_schema({**tool.parameters, "properties": nullable})
    if schema is None:
        return tool.wire
    return {
        "type": "function",
        "function": tool.wire["function"] | {"parameters": schema, "strict": True},
    }


def _without_schema(message: Message, output: OutputSchema) -> Message:
    """Name the schema in a system message, instead of repeating it beside a response format."""
    content = message.get("content")
    if message.get("role") != "system" or not isinstance(content, str):
        return message
    named = f"(the schema {output.name} of the response format)"
    return message | {"content": content.replace(output.text, named)}


def _with_thoughts(message: Message) -> Message:
    """Return a message for a server that wants thoughts beside every message of an assistant."""
    return {THOUGHTS: ""} | message if message.get("role") == "assistant" else message
