"""The messages of a turn, and the data that travels between the loop and a language model.

A `Conversation` has the form that servers accept: every call has exactly one result. Of all invalid
responses only the last is sent, with its feedback. Some servers want fields of their own messages
back (an echo). These are sent only within the turn, and only to the model that wrote the message.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, Protocol

from agent import size_limits
from agent.text import clip, pattern, strip_unstorable

NOT_IN_A_NAME: Final = pattern(r"[^a-zA-Z0-9_-]")
CALL_ID: Final = pattern(r"[a-zA-Z0-9_.:-]{1,40}")
"""An id that OpenAI accepts: at most 40 characters."""
SHOWN_RAW_CHARS: Final = 4000
"""The longest invalid response that is sent back whole with its feedback."""

Message = dict[str, Any]
"""One chat message in the wire format of OpenAI-compatible servers."""

JsonSchema = Mapping[str, Any]

ResponseMode = Literal["prompt", "json_object", "json_schema"]
"""How a structured answer is asked for: by the prompt alone, as any JSON, or strictly by a schema.

    The source documents call these the modes A, B and C.
    """

ECHOED: Final = ("reasoning_content", "reasoning_details", "extra_content")
"""Fields of an assistant's message, or of its calls, that some servers want back: an echo."""


@dataclass(slots=True)
class Written:
    """The text of a response so far. A model that streams keeps it up to date."""

    text: str = ""
    began_ns: int | None = None
    """The time when the text began, in nanoseconds since the epoch."""

    def update(self, text: str) -> None:
        """Set the text so far."""
        if text and self.began_ns is None:
            self.began_ns = time.time_ns()
        self.text = text

    def clear(self) -> None:
        """Forget the text, because the next try begins another."""
        self.text = ""
        self.began_ns = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of one request as the server has counted them.

    `cached_tokens` are a part of the prompt, `reasoning_tokens` a part of the completion.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def by_bucket(self) -> Mapping[str, int]:
        """Return the tokens by Langfuse's names. Each token is counted once."""
        cached = min(self.cached_tokens, self.prompt_tokens)
        reasoning = min(self.reasoning_tokens, self.completion_tokens)
        buckets = {
            "input": self.prompt_tokens - cached,
            "input_cached_tokens": cached,
            "output": self.completion_tokens - reasoning,
        }
        if reasoning:  # few models count them
            buckets["output_reasoning_tokens"] = reasoning
        return buckets

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by a model. `arguments` is the raw JSON text."""

    id: str
    name: str
    arguments: str
    echo: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wire(self) -> dict[str, Any]:
        """Return the call as it is sent back.

        An invalid name or invalid arguments are replaced, because some servers refuse them.
        """
        name = api_name(self.name) or "unknown"
        arguments = self.arguments
        if parse_json_object(arguments) is None:
            arguments = "{}"
        function = {"name": name, "arguments": arguments}
        return {
            "id": self.id,
            "type": "function",
            "function": function,
            **self.echo,
        }


@dataclass(frozen=True)
class OutputSchema:
    """The JSON Schema of the structured answer, and its strict form for mode `json_schema`."""

    name: str
    schema: JsonSchema
    strict_schema: JsonSchema | None

    @cached_property
    def schema_text(self) -> str:
        """Return the schema as prompts show it."""
        return json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """The parts of a request besides its messages."""

    tools: Sequence[JsonSchema] = ()
    """The tools in the wire format of OpenAI."""
    output: OutputSchema | None = None
    """The schema for a response format, or None for an answer without one."""
    needs_form: bool = False
    """Whether the last answer had an error of form.

    If so, a server that does not take tools and a response format together gets only the format.
    """
    max_tokens: int | None = None
    temperature: float | None = None
    written: Written | None = None
    """The place to keep the response so far. If it is given, a model that can stream does so."""


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """The response to one request to a model."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    """The reason in OpenAI's words, or one of ours.

    Ours are `interrupted`, `no_choices`, and `unparsed` if the server could not read what the model
    wrote.
    """
    refusal: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    model: str = ""
    mode: str = ""
    """The `ResponseMode` in which a structured answer was asked for, or "" for another answer."""
    base_url: str | None = None
    """The address of the server, or None if it is the usual one."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    first_token_ns: int | None = None
    """The time when a streamed answer began, in nanoseconds since the epoch."""

    @property
    def output(self) -> object:
        """Return the response as an admin reads it in the trace: its calls, refusal or raw text."""
        if self.tool_calls:
            calls = [
                {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in self.tool_calls
            ]
            return {"content": self.content, "tool_calls": calls}
        if self.refusal is not None:
            return self.refusal
        return self.content


class LLM(Protocol):
    """A language model, or a stand-in for one."""

    @property
    def model(self) -> str:
        """Return the name by which the server knows the model."""

    @property
    def base_url(self) -> str | None:
        """Return the address of the server, or None if there is none or it is the usual one."""

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Send `messages`, and return the response, in which the model answers or calls tools.

        Raises:
            ModelUnavailable: there is no usable answer. Another try may help.
            ModelRejected: the same request will fail again.
        """


class Conversation:
    """The instructions, the history, the user's message, and what the turn adds."""

    def __init__(
        self,
        instructions: str,
        history: Sequence[Message],
        text: str,
        images: Sequence[str] = (),
    ) -> None:
        instructions = strip_unstorable(instructions)
        self._system: Message = {"role": "system", "content": instructions}
        self._history = [*history]
        question = strip_unstorable(text)
        self._question: Message = {"role": "user", "content": question}
        self._images: list[Message] = []
        for url in images:
            image: Message = {"type": "image_url", "image_url": {"url": url}}
            self._images.append(image)
        self._added: list[Message] = []
        # The place in `_added` of the last invalid response and its feedback. It is empty at first.
        self._feedback_place = slice(0, 0)
        self._call_ids: set[str] = set()
        for message in history:
            calls = message.get("tool_calls") or ()
            for call in calls:
                self._call_ids.add(call["id"])

    @property
    def messages(self) -> list[Message]:
        """Return the messages of the next request."""
        question = self._question
        if self._images:
            text = {"type": "text", "text": question["content"]}
            question = question | {"content": [text, *self._images]}
        return [self._system, *self._history, question, *self._added]

    @property
    def added(self) -> list[Message]:
        """Return the messages that the turn added: the user's, tool calls and their results."""
        added = [without_echoes(message) for message in self._added]
        del added[self._feedback_place]
        return [self._question, *added]

    def texts_by(self, role: str) -> list[str]:
        """Return the texts of a role. For the role `user`, the question is one of them."""
        texts: list[str] = []
        for message in (*self._history, self._question):
            if message["role"] == role and message["content"]:
                texts.append(str(message["content"]))
        return texts

    def drop_echoes(self) -> None:
        """Remove the fields that one model wants back, because another model is asked next."""
        self._added = [without_echoes(message) for message in self._added]

    def shorten(self) -> bool:
        """Drop one message more than half of the history, the oldest first.

        More is dropped until the history begins with a message of the user. Return False if there
        was no history.
        """
        if not self._history:
            return False
        half = len(self._history) // 2
        del self._history[: half + 1]
        while self._history and self._history[0]["role"] != "user":
            del self._history[0]
        return True

    def give_unique_ids(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Return the calls with unique ids. An id that is malformed or in use is replaced.

        New ids have nine letters and digits, because some servers accept no others.
        """
        unique: list[ToolCall] = []
        for call in calls:
            id = call.id
            is_used = id in self._call_ids
            if is_used or not CALL_ID.fullmatch(id):
                ten_digits = secrets.token_hex(5)
                id = ten_digits[1:]
            self._call_ids.add(id)
            unique.append(replace(call, id=id))
        return unique

    def add_results(
        self,
        response: LLMResponse,
        calls: Sequence[ToolCall],
        results: Sequence[str],
    ) -> None:
        """Append a response that called tools, and the results of its calls in the same order.

        `calls` are those of the response, with unique ids.
        """
        call_message: Message = {"role": "assistant", "content": response.content}
        call_message |= response.echo
        call_message["tool_calls"] = [call.wire for call in calls]
        self._added.append(call_message)
        for call, result in zip(calls, results, strict=True):
            content = result or "(no result)"
            result_message = {"role": "tool", "tool_call_id": call.id}
            result_message["content"] = content
            self._added.append(result_message)

    def add_feedback(
        self,
        response: LLMResponse,
        raw: str,
        feedback: str,
    ) -> None:
        """Append an invalid response and its feedback. Those of the attempt before are removed.

        `raw` is the text of the response without its reasoning. If tools were called, the response
        keeps its echo, because some servers require it then.
        """
        del self._added[self._feedback_place]
        # What is left are the tool calls and their results.
        tools_were_called = bool(self._added)
        # Servers refuse a blank content.
        content = clip(raw, SHOWN_RAW_CHARS) or "(no answer)"
        answer_message: Message = {"role": "assistant", "content": content}
        if tools_were_called:
            answer_message |= response.echo
        feedback_message = {"role": "user", "content": feedback}
        begin = len(self._added)
        self._added += [answer_message, feedback_message]
        end = len(self._added)
        self._feedback_place = slice(begin, end)


def api_name(name: str) -> str:
    """Return a name in the form that servers accept: at most 64 letters, digits, _ and -."""
    accepted = NOT_IN_A_NAME.sub("_", name)
    return accepted[: size_limits.NAME_CHARS]


def parse_json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, or None if it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return value


def without_images(message: Message) -> Message:
    """Return a message for the trace, with the size of each image in place of the image."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    text_part, *image_parts = parts
    lines = [text_part["text"]]
    for part in image_parts:
        base64_chars = len(part["image_url"]["url"])
        # Four characters of base64 are three bytes.
        kilobytes = base64_chars * 3 // 4000
        lines.append(f"[image, {kilobytes} kB]")
    return message | {"content": "\n".join(lines)}


def without_echoes(message: Message) -> Message:
    """Return a message without echoes, also in its calls."""
    plain = dict(message)
    for name in ECHOED:
        plain.pop(name, None)
    calls = plain.get("tool_calls")
    if calls:
        plain["tool_calls"] = [without_echoes(call) for call in calls]
    return plain
