"""The data that travels between the loop and a language model, and its form on the wire.

`LLM` is the one interface; the OpenAI client, a chain of fallback models and the house sommelier
all stand behind it. What comes back of chat completions is read tolerantly.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, Protocol

from agent import lengths
from agent.engine.errors import ModelResponseInvalid
from agent.text import pattern

ECHOED: Final = ("reasoning_content", "reasoning_details", "extra_content")
THOUGHTS: Final = "reasoning_content"
NOT_IN_A_NAME: Final = pattern(r"[^a-zA-Z0-9_-]")
UNSENDABLE: Final = pattern(r"[\ud800-\udfff\x00]")
FORMAT_WORDS: Final = ("response_format", "json_", "grammar", "schema")
STREAM_WORDS: Final = pattern(r"\bstream")
TOO_MUCH: Final = ("too large", "context length", "at most")
"""Words of a complaint about a value; the parameter itself is known."""

MISSED: Final = ("missing", "passed back", "required")
"""Words of a complaint about something that is not there."""

FINISH_REASONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
    **dict.fromkeys(("safety", "recitation", "prohibited_content"), "content_filter"),
    **dict.fromkeys(("error", "abort", "insufficient_system_resource"), "interrupted"),
}
"""What other servers say, in the words of OpenAI; `interrupted` is ours."""


Message = dict[str, Any]
"""One chat message in the wire format of OpenAI-compatible servers."""

JsonSchema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request as the server counted them. `cached_tokens` is a part of the prompt."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is the raw JSON text it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Echo:
    """What a server wants back beside a message, and beside each of its tool calls in order.

    `model` is the place of the model that said it among those of the turn.
    """

    message: Mapping[str, Any]
    calls: tuple[Mapping[str, Any], ...] = ()
    model: int = 0


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """What one request to a model brought back.

    `mode` is how a structured answer was asked for, `base_url` the server's if one was chosen.
    Of one that was streamed it is known when it began (since the epoch).
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    has_reasoning: bool = False
    mode: str = ""
    base_url: str | None = None
    echo: Echo | None = None
    first_token_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: JsonSchema

    @property
    def wire(self) -> dict[str, Any]:
        """The tool in a request's `tools`."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class OutputSchema:
    """The JSON Schema of the structured answer, and its strict form for mode `json_schema`.

    There is no strict form of a schema whose objects may hold keys that it does not name.
    """

    name: str
    schema: JsonSchema
    strict_schema: JsonSchema | None

    @cached_property
    def text(self) -> str:
        """The schema as it stands in prompts."""
        return json.dumps(self.schema)


class LLM(Protocol):
    """A language model, or what stands in for one."""

    @property
    def model(self) -> str:
        """The model's name, as the server knows it."""
        ...

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> LLMResponse:
        """Send `messages`; the model answers or asks for tools.

        One that can show what it writes while it does takes `heard` too, see `streaming.Heard`.

        Raises:
            ModelUnavailable: no answer came; another try may help.
            ModelRejected: the request will fail again as it is.
            ModelResponseInvalid: an answer came that holds nothing usable.
        """
        ...


ResponseMode = Literal["prompt", "json_object", "json_schema", "tool"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands; learned from its refusals and remembered."""

    mode: ResponseMode
    token_parameter: str = "max_completion_tokens"  # noqa: S105 - a parameter's name
    format_beside_tools: bool = True
    schema_in_object: bool = False
    """Whether mode `json_schema` is asked for as a `json_object` with a schema."""
    temperature: bool = True
    streams: Literal["with_usage", "plain", "no"] = "with_usage"
    """Whether answers can be streamed, and asked for what they used."""
    echoes: Literal["own", "blank", "none"] = "own"
    """What comes back of a model's messages beside their words: its own, with blank thoughts where
    there are none, or nothing."""

    def without(self, complaint: str) -> "Dialect | None":
        """Find the next simpler dialect without what a server complains of; None without one."""
        text = complaint.lower()
        if any(words in text for words in TOO_MUCH):
            return None
        if self.token_parameter == "max_completion_tokens" in text:  # noqa: S105
            return replace(self, token_parameter="max_tokens")  # noqa: S106
        if "temperature" in text and self.temperature:
            return replace(self, temperature=False)
        by_tool = self.mode == "tool" and "tool" in text
        about_format = by_tool or any(word in text for word in FORMAT_WORDS)
        if STREAM_WORDS.search(text) or not about_format:
            return self._with_other_habits(text)
        if self.format_beside_tools and "tool" in text and not by_tool:
            return replace(self, format_beside_tools=False)
        return self._with_looser_format()

    def _with_looser_format(self) -> "Dialect | None":
        if self.mode == "json_schema" and not self.schema_in_object:
            return replace(self, schema_in_object=True)
        looser: dict[ResponseMode, ResponseMode] = {
            "tool": "json_object",
            "json_schema": "json_object",
            "json_object": "prompt",
        }
        return replace(self, mode=looser[self.mode]) if self.mode in looser else None

    def _with_other_habits(self, complaint: str) -> "Dialect | None":
        if STREAM_WORDS.search(complaint) and self.streams != "no":
            told = "stream_options" in complaint and self.streams == "with_usage"
            return replace(self, streams="plain" if told else "no")
        if not any(name in complaint for name in ECHOED):
            return None
        if any(words in complaint for words in MISSED):
            return replace(self, echoes="blank") if self.echoes == "own" else None
        return replace(self, echoes="none") if self.echoes != "none" else None

    def spoken(self, messages: Sequence[Message]) -> list[Message]:
        """Make the messages as this server wants them."""
        if self.echoes == "own":
            return list(messages)
        return list(map(with_thoughts if self.echoes == "blank" else without_echoes, messages))


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] = (),
    *,
    output: OutputSchema | None,
    max_tokens: int | None,
    dialect: Dialect,
    streamed: bool = False,
) -> dict[str, Any]:
    """Make the JSON of one chat completions request, `streamed` if the server can."""
    body: dict[str, Any] = {"model": model, "messages": dialect.spoken(messages)}
    if streamed and dialect.streams != "no":
        body["stream"] = True
        if dialect.streams == "with_usage":
            body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [tool.wire for tool in tools]
    if max_tokens is not None:
        body[dialect.token_parameter] = max_tokens
    if output is None:
        return body
    if dialect.mode == "tool":
        body |= _answer_tool(output, body.get("tools", []))
    elif dialect.format_beside_tools or not tools:
        body |= response_format(output, dialect)
    if "tool_choice" in body or "json_schema" in body.get("response_format", ()):
        body["messages"] = [without_schema(each, output) for each in body["messages"]]
    return body


def _answer_tool(output: OutputSchema, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """What asks for the answer as the arguments of a tool: mode D, for servers that know no C."""
    schema = output.strict_schema or output.schema
    function = ToolSchema(output.name, "Give the answer.", schema).wire["function"]
    answer = {"type": "function", "function": function | {"strict": schema is not output.schema}}
    alone = {"type": "function", "function": {"name": output.name}}
    return {"tools": [*tools, answer], "tool_choice": "required" if tools else alone}


def answered_by_tool(response: LLMResponse, output: OutputSchema) -> LLMResponse:
    """Make the arguments of the answer's tool the content; other tools that are called come first.

    For a response in mode D; any other is as it was.
    """
    answers = [call for call in response.tool_calls if call.name == output.name]
    if not answers:
        return response
    if others := tuple(call for call in response.tool_calls if call.name != output.name):
        return replace(response, tool_calls=others, echo=None)
    finish = "stop" if response.finish_reason == "tool_calls" else response.finish_reason
    said = answers[0].arguments
    return replace(response, content=said, tool_calls=(), finish_reason=finish, echo=None)


def without_schema(message: Message, output: OutputSchema) -> Message:
    """Name the schema in a system message, instead of repeating it beside a response format."""
    content = message.get("content")
    if message.get("role") != "system" or not isinstance(content, str):
        return message
    named = f"(the schema {output.name} of the response format)"
    return message | {"content": content.replace(output.text, named)}


def response_format(output: OutputSchema, dialect: Dialect) -> dict[str, Any]:
    """Make the `response_format` of modes A (prompt: none), B (json_object) and C (json_schema).

    Some servers hold a model to a schema only if it stands in the format `json_object`.
    """
    if dialect.mode == "prompt":
        return {}
    schema = output.strict_schema if dialect.mode == "json_schema" else None
    if schema is None:
        return {"response_format": {"type": "json_object"}}
    if dialect.schema_in_object:
        return {"response_format": {"type": "json_object", "schema": schema}}
    named = {"name": output.name, "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def read_body(body: bytes, model: str) -> dict[str, Any]:
    """Read the JSON object that a server answered with.

    Raises:
        ModelResponseInvalid: the body is none.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ModelResponseInvalid(f"{model} answered with something that is not JSON") from None
    if not isinstance(data, dict):
        raise ModelResponseInvalid(f"{model} answered with JSON that is not an object")
    return data


def reported_error(data: Mapping[str, Any]) -> object:
    """Find the error that a server reports with status 200, in place of a completion."""
    return None if data.get("choices") or data.get("usage") else data.get("error")


def read_response(data: Mapping[str, Any], model: str) -> LLMResponse:
    """Read a chat completion, tolerant of what other servers leave out or write otherwise."""
    choice = _first(data.get("choices"))
    message = _mapping(choice.get("message"))
    finish = str(choice.get("finish_reason") or ("stop" if choice else "no_choices")).lower()
    calls = _calls(message)
    return LLMResponse(
        content=text_of(message.get("content"))[: lengths.ANSWER + 1],
        tool_calls=tuple(map(_tool_call, calls)),
        finish_reason=FINISH_REASONS.get(finish, finish),
        refusal=text_of(message.get("refusal")) or None,
        usage=_usage(data.get("usage")),
        model=sendable(str(data.get("model") or model)),
        has_reasoning=bool(message.get("reasoning_content") or message.get("reasoning")),
        echo=echo_of(message, calls),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def text_of(content: object) -> str:
    """Return content as one string; some servers send a list of parts, or the JSON they parsed."""
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    return sendable(_json_text(content))


def _part(part: object) -> str:
    said = part if isinstance(part, str) else _mapping(part).get("text")
    return said if isinstance(said, str) else ""


def _json_text(value: object) -> str:
    """Text as it is, nothing as no text, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value)
    except RecursionError:
        return ""


def api_name(name: str) -> str:
    """Write a name as a server accepts it: letters, digits, _ and -, at most 64."""
    return NOT_IN_A_NAME.sub("_", name)[: lengths.NAME]


def sendable(text: str) -> str:
    """Leave out NULs and halves of characters: JSON holds them, UTF-8 and databases don't."""
    if not UNSENDABLE.search(text):
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return list(map(_mapping, calls[: lengths.TOOL_CALLS])) if isinstance(calls, list) else []


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _mapping(call.get("function"))
    return ToolCall(
        sendable(str(call.get("id") or "")),
        text_of(function.get("name"))[: lengths.NAME],
        sendable(_json_text(function.get("arguments")))[: lengths.ARGUMENTS + 1],
    )


def _usage(usage: object) -> Usage:
    counted = _mapping(usage)
    details = _mapping(counted.get("prompt_tokens_details"))
    prompt = _count(counted.get("prompt_tokens"))
    cached = details.get("cached_tokens") or counted.get("prompt_cache_hit_tokens")
    return Usage(prompt, _count(counted.get("completion_tokens")), min(prompt, _count(cached)))


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < math.inf else 0


def echo_of(message: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> Echo | None:
    """Keep what of a server's message is to come back beside what was read; None if nothing."""
    echo = Echo(_echoed(message), tuple(map(_echoed, calls)))
    return echo if echo.message or any(echo.calls) else None


def _echoed(said: Mapping[str, Any]) -> dict[str, Any]:
    """An empty text counts: DeepSeek misses that too. What no request can hold does not."""
    found = {name: said[name] for name in ECHOED if said.get(name) is not None}
    return {name: value for name, value in found.items() if _is_json(value)}


def _is_json(value: object) -> bool:
    """Whether a value read from JSON can be written again: Python reads NaN and any depth."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def with_images(message: Message, images: Sequence[str]) -> Message:
    """Put images, as data URLs, behind the words of a message."""
    parts = [{"type": "image_url", "image_url": {"url": each}} for each in images]
    return message | {"content": [{"type": "text", "text": message["content"]}, *parts]}


def without_images(message: Message) -> Message:
    """Tell in place of each image of a message how large it is: so a trace shows it."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    urls = (part["image_url"]["url"] for part in parts if "image_url" in part)
    left = [f"[image, {len(url) * 3 // 4 // 1000} kB]" for url in urls]
    said = [part["text"] for part in parts if "text" in part]
    return message | {"content": "\n".join([*said, *left])}


def without_echoes(message: Message) -> Message:
    """Make a message for a server that knows nothing beside the words and the calls."""
    plain = {name: value for name, value in message.items() if name not in ECHOED}
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [
            {name: value for name, value in call.items() if name not in ECHOED} for call in calls
        ]
    return plain


def with_thoughts(message: Message) -> Message:
    """Make a message for a server that wants thoughts beside whatever an assistant ever said."""
    return {THOUGHTS: ""} | message if message.get("role") == "assistant" else message
