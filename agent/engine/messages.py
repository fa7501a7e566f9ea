"""The data that travels between the loop and a language model.

`LLM` is the one interface: whatever answers in a turn stands behind it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, Protocol

from agent import lengths
from agent.text import pattern

NOT_IN_A_NAME: Final = pattern(r"[^a-zA-Z0-9_-]")

Message = dict[str, Any]
"""One chat message in the wire format of OpenAI-compatible servers."""

JsonSchema = Mapping[str, Any]

ResponseMode = Literal["prompt", "json_object", "json_schema"]
"""The way to a structured answer: by the prompt alone (A), as any JSON (B), strictly (C)."""

ECHOED: Final = ("reasoning_content", "reasoning_details", "extra_content")
"""Fields of an assistant's message, or of its calls, that some servers want back: an echo."""

Text = Callable[[], str]
"""Returns what a model has written so far."""
OnText = Callable[[Text], None]
"""Called when a response begins, with a function that returns its text so far."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request as the server counted them. `cached_tokens` is a part of the prompt."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is the raw JSON text it wrote.

    `echo` holds fields that its server wants back beside it.
    """

    id: str
    name: str
    arguments: str
    echo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: JsonSchema

    @property
    def wire(self) -> dict[str, Any]:
        """Return the tool as a request's `tools` hold it."""
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
    def schema_text(self) -> str:
        """Return the schema as prompts show it."""
        return json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A request to a model, beside its messages: all that it may use and has to keep.

    A model that can stream calls `on_text` when its response begins.
    """

    tools: Sequence[ToolSchema] = ()
    output: OutputSchema | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    on_text: OnText | None = None


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """The response to one request to a model.

    `finish_reason` is OpenAI's, or `interrupted`, or `unparsed` if the server could not read what
    the model wrote. `mode` is how a structured answer was asked for, `base_url` the server's if one
    was chosen, `echo` the fields that it wants back beside the message, `first_token_ns` when a
    streamed answer began (since the epoch).
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    mode: str = ""
    base_url: str | None = None
    echo: Mapping[str, Any] = field(default_factory=dict)
    first_token_ns: int | None = None

    @property
    def is_truncated(self) -> bool:
        """Return True if it ended at the token limit."""
        return self.finish_reason == "length"

    @property
    def output(self) -> object:
        """Return it as an admin reads it in the trace; an invalid answer is kept raw."""
        if not self.tool_calls:
            return self.refusal if self.refusal is not None else self.content
        calls = [{"name": call.name, "arguments": call.arguments} for call in self.tool_calls]
        return {"content": self.content, "tool_calls": calls}


class LLM(Protocol):
    """A language model, or what stands in for one."""

    @property
    def model(self) -> str:
        """Return the model's name, as the server knows it."""
        ...

    @property
    def base_url(self) -> str | None:
        """Return the address of its server, None if there is none or it is the usual one."""
        ...

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Send `messages`; the model answers or asks for tools.

        Raises:
            ModelUnavailable: no usable answer came; another try may help.
            ModelRejected: the request will fail again as it is.
        """
        ...


def api_name(name: str) -> str:
    """Write a name as a server accepts it: letters, digits, _ and -, at most 64."""
    return NOT_IN_A_NAME.sub("_", name)[: lengths.NAME]


def without_images(message: Message) -> Message:
    """Return a message with the size of each image in its place, for the trace."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    text, *images = parts
    sizes = [len(image["image_url"]["url"]) * 3 // 4 // 1000 for image in images]
    shown = [text["text"], *(f"[image, {size} kB]" for size in sizes)]
    return message | {"content": "\n".join(shown)}


def without_echoes(message: Message) -> Message:
    """Return a message with nothing beside the words and the calls."""
    plain = {name: value for name, value in message.items() if name not in ECHOED}
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [
            {name: value for name, value in call.items() if name not in ECHOED} for call in calls
        ]
    return plain
