"""The data that travels between the loop and a language model: requests, responses, usage.

`LLM` is the one interface; the OpenAI client, a chain of fallback models and the house sommelier
all stand behind it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

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

        Raises:
            ModelUnavailable: no answer came; another try may help.
            ModelRejected: the request will fail again as it is.
            ModelResponseInvalid: an answer came that holds nothing usable.
        """
        ...
