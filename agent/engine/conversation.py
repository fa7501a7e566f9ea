"""The messages of a turn, in a form that every server accepts: every call has exactly one result.

At most one pair of invalid response and feedback is sent: attempt 5 sends no more than attempt 2.
Some servers want fields of their own messages back (an echo): these are sent only within the turn,
and only to the model that wrote the message.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from agent.engine.dialect import without_echoes
from agent.engine.feedback import feedback
from agent.engine.messages import LLMResponse, Message, ToolCall, api_name
from agent.engine.parsing import ParseResult
from agent.engine.reading import strip_thoughts
from agent.engine.tools import ToolResult, is_json_object
from agent.text import pattern, storable, truncate_at_boundary

WRITER: Final = "writer"
"""The key that marks which model of the run wrote a message; it is never sent."""
DROPPED: Final = frozenset({"truncated", "interrupted"})
"""Types of errors after which the feedback leaves out the response."""
SHORT_RESULT: Final = 400
"""Characters of a tool's result that are not cut further."""
TOKEN_BYTES: Final = 3
"""Bytes of a token for an estimate: English has about four, other languages and JSON fewer."""
CALL_ID: Final = pattern(r"[a-zA-Z0-9_.:-]{1,40}")
"""An id that OpenAI accepts: at most 40 characters."""


class Conversation:
    """The instructions, the history, the user's message, and what the turn adds."""

    def __init__(
        self,
        instructions: str,
        history: Sequence[Message],
        message: str,
        images: Sequence[str] = (),
    ) -> None:
        self.messages: list[Message] = [
            {"role": "system", "content": storable(instructions)},
            *map(_whole, history),
            {"role": "user", "content": storable(message)},
        ]
        self._question_index, self._images = len(history) + 1, images
        self._pair_at: int | None = None
        self._model = 0
        self._ids = {call["id"] for message in history for call in message.get("tool_calls") or ()}

    def texts_by(self, role: str) -> list[str]:
        """Return the contents of the messages of a role."""
        contents = (message["content"] for message in self.messages if message.get("role") == role)
        return [str(content) for content in contents if content]

    @property
    def added(self) -> list[Message]:
        """Return the messages that the turn added: the user's, tool calls and their results."""
        pair = range(self._pair_at, self._pair_at + 2) if self._pair_at is not None else ()
        return [
            _sent(message, None)
            for index, message in enumerate(self.messages)
            if index >= self._question_index and index not in pair
        ]

    def as_sent(self, model: int) -> list[Message]:
        """Return the messages to send to the model with index `model`, with the images.

        Messages that are added next count as written by this model.
        """
        self._model = model
        sent = [_sent(message, model) for message in self.messages]
        if self._images:
            question = sent[self._question_index]
            parts = [{"type": "image_url", "image_url": {"url": url}} for url in self._images]
            content = [{"type": "text", "text": question["content"]}, *parts]
            sent[self._question_index] = question | {"content": content}
        return sent

    def fit(self, tokens: int) -> None:
        """Drop the oldest messages of the history until all take about `tokens` at most.

        The instructions, the user's message and all messages after it are kept.
        """
        while self._question_index > 1 and sum(map(tokens_of, self.messages)) > tokens:
            self._drop_oldest(1)

    def shorten(self) -> bool:
        """Drop half of the history, or cut tool results in half if there is no history.

        Return False if nothing could be shortened.
        """
        if self._question_index > 1:
            self._drop_oldest((self._question_index + 1) // 2)
            return True
        results = [message for message in self.messages if message.get("role") == "tool"]
        long = [result for result in results if len(result["content"]) > SHORT_RESULT]
        for result in long:
            result["content"] = truncate_at_boundary(result["content"], len(result["content"]) // 2)
        return bool(long)

    def _drop_oldest(self, count: int) -> None:
        """Drop `count` messages of the history, and more until a user's message comes first."""
        count = min(count, self._question_index - 1)
        while count < self._question_index - 1 and self.messages[count + 1].get("role") != "user":
            count += 1
        del self.messages[1 : count + 1]
        self._question_index -= count
        if self._pair_at is not None:
            self._pair_at -= count

    def with_unique_ids(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Return the calls with unique ids: an id that is malformed or in use is replaced.

        Our ids have nine letters and digits: some servers accept no others.
        """
        unique = []
        for call in calls:
            ids = (f"call{number:05}" for number in count(len(self._ids)))
            is_valid = CALL_ID.fullmatch(call.id) and call.id not in self._ids
            new_id = call.id if is_valid else next(id for id in ids if id not in self._ids)
            self._ids.add(new_id)
            unique.append(replace(call, id=new_id))
        return unique

    def add_results(
        self, response: LLMResponse, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> None:
        """Append a response that called tools, and the results of its calls in order."""
        message = {"role": "assistant", "content": response.content, WRITER: self._model}
        self.messages.append(message | {"tool_calls": [*map(_wire, calls)], **response.echo})
        self.messages += [
            {"role": "tool", "tool_call_id": call.id, "content": result.text or "(no result)"}
            for call, result in zip(calls, results, strict=True)
        ]

    def add_feedback(self, response: LLMResponse, result: ParseResult[Any], wording: str) -> None:
        """Add an invalid response and the feedback on it, in place of the previous pair.

        The response has its echo if tools were called: some servers then require it.
        """
        if self._pair_at is not None:
            del self.messages[self._pair_at : self._pair_at + 2]
        self._pair_at = len(self.messages)
        answer, correction = feedback(
            "" if result.error_type in DROPPED else strip_thoughts(response.content),
            result.error or "the answer is empty",
            repeated=result.error_type == "degenerate",
            wording=wording,
        )
        if any(message.get("role") == "tool" for message in self.messages):
            answer |= {WRITER: self._model, **response.echo}
        self.messages += [answer, correction]


def _whole(message: Message) -> Message:
    """Return a message without single surrogates, which cannot be sent."""
    content = message.get("content")
    return message | {"content": storable(content)} if isinstance(content, str) else message


def tokens_of(message: Message) -> int:
    """Estimate the tokens of a message, rather too many than too few."""
    calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return len(f"{message.get('content')}{calls}".encode("utf-8", "replace")) // TOKEN_BYTES + 4


def _sent(message: Message, model: int | None) -> Message:
    """Return a message as it is sent to a model: with its echo only if this model wrote it."""
    if WRITER not in message:
        return message
    plain = {name: value for name, value in message.items() if name != WRITER}
    return plain if message[WRITER] == model else without_echoes(plain)


def _wire(call: ToolCall) -> dict[str, Any]:
    """Return a call as it is sent back: some servers answer 400 to an invalid name or arguments."""
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    function = {"name": api_name(call.name) or "unknown", "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function, **call.echo}
