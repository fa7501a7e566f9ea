"""The messages of a turn, in a form that every server accepts: each call's id is answered once.

At most one pair of invalid response and feedback travels: what attempt 5 sends is no longer than
what attempt 2 sent. Fields that a server wants back beside a message of its own model (an echo)
travel within the turn only, and only to the model that wrote it.
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
from agent.engine.reading import without_thoughts
from agent.engine.tools import ToolResult, is_json_object
from agent.text import pattern, storable, truncate_at_boundary

WRITER: Final = "writer"
"""The key of a message that holds the place of the model that wrote it; it is never sent."""
DROPPED: Final = frozenset({"truncated", "interrupted"})
"""Errors of a response that the model is not shown again."""
SHORT_RESULT: Final = 400
"""Characters of a tool's result that are not cut further."""
TOKEN_BYTES: Final = 3
"""Bytes of a token, at least about: English has four, other languages and JSON fewer."""
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
        self._began, self._images = len(history) + 1, images
        self._pair_at: int | None = None
        self._model = 0
        self._ids = {call["id"] for said in history for call in said.get("tool_calls") or ()}

    def said_by(self, role: str) -> list[str]:
        """List the contents of the messages of a role."""
        written = (said["content"] for said in self.messages if said.get("role") == role)
        return [str(content) for content in written if content]

    @property
    def added(self) -> list[Message]:
        """Return what the turn added: the user's message, tool calls and their results."""
        pair = range(self._pair_at, self._pair_at + 2) if self._pair_at is not None else ()
        return [
            _sent(message, None)
            for at, message in enumerate(self.messages)
            if at >= self._began and at not in pair
        ]

    def as_sent(self, model: int) -> list[Message]:
        """Return the messages for the turn's model at this place, with the images.

        It is taken to write what is added next.
        """
        self._model = model
        sent = [_sent(message, model) for message in self.messages]
        if self._images:
            asked = sent[self._began]
            parts = [{"type": "image_url", "image_url": {"url": url}} for url in self._images]
            content = [{"type": "text", "text": asked["content"]}, *parts]
            sent[self._began] = asked | {"content": content}
        return sent

    def fit(self, tokens: int) -> None:
        """Leave out the oldest messages of the history until all take about `tokens` at most.

        The instructions, the user's message and what came after it stay.
        """
        while self._began > 1 and sum(map(tokens_of, self.messages)) > tokens:
            self._drop_oldest(1)

    def shorten(self) -> bool:
        """Leave out half of the history, else half of each tool result; False if there is none."""
        if self._began > 1:
            self._drop_oldest((self._began + 1) // 2)
            return True
        results = [message for message in self.messages if message.get("role") == "tool"]
        long = [result for result in results if len(result["content"]) > SHORT_RESULT]
        for result in long:
            result["content"] = truncate_at_boundary(result["content"], len(result["content"]) // 2)
        return bool(long)

    def _drop_oldest(self, count: int) -> None:
        """Drop messages behind the instructions; the first that stays is a user's."""
        count = min(count, self._began - 1)
        while count < self._began - 1 and self.messages[count + 1].get("role") != "user":
            count += 1
        del self.messages[1 : count + 1]
        self._began -= count
        if self._pair_at is not None:
            self._pair_at -= count

    def numbered(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Replace ids of calls that are odd or taken, so that each is answered exactly once.

        Ours have nine letters and digits: some servers accept no others.
        """
        unique = []
        for call in calls:
            ids = (f"call{number:05}" for number in count(len(self._ids)))
            usable = CALL_ID.fullmatch(call.id) and call.id not in self._ids
            new_id = call.id if usable else next(id for id in ids if id not in self._ids)
            self._ids.add(new_id)
            unique.append(replace(call, id=new_id))
        return unique

    def add_results(
        self, response: LLMResponse, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> None:
        """Append a response that called tools, and the results of its calls in order."""
        said = {"role": "assistant", "content": response.content, WRITER: self._model}
        self.messages.append(said | {"tool_calls": [*map(_wire, calls)], **response.echo})
        self.messages += [
            {"role": "tool", "tool_call_id": call.id, "content": result.text or "(no result)"}
            for call, result in zip(calls, results, strict=True)
        ]

    def add_feedback(self, response: LLMResponse, result: ParseResult[Any], wording: str) -> None:
        """Show the model its invalid response and what is wrong with it, in place of the last.

        The echo goes back with it once tools were called: then its server may miss it.
        """
        if self._pair_at is not None:
            del self.messages[self._pair_at : self._pair_at + 2]
        self._pair_at = len(self.messages)
        said, told = feedback(
            "" if result.error_type in DROPPED else without_thoughts(response.content),
            result.error or "the answer is empty",
            repeated=result.error_type == "degenerate",
            wording=wording,
        )
        if any(message.get("role") == "tool" for message in self.messages):
            said |= {WRITER: self._model, **response.echo}
        self.messages += [said, told]


def _whole(message: Message) -> Message:
    """Return a message without halves of characters, which cannot be sent."""
    content = message.get("content")
    return message | {"content": storable(content)} if isinstance(content, str) else message


def tokens_of(message: Message) -> int:
    """Estimate what a message takes of a model's context; rather too much than too little."""
    calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return len(f"{message.get('content')}{calls}".encode("utf-8", "replace")) // TOKEN_BYTES + 4


def _sent(message: Message, model: int | None) -> Message:
    """Return a message as a model is sent it: with its echo if it wrote the message itself."""
    if WRITER not in message:
        return message
    plain = {name: value for name, value in message.items() if name != WRITER}
    return plain if message[WRITER] == model else without_echoes(plain)


def _wire(call: ToolCall) -> dict[str, Any]:
    """Return a call as it goes back: an invalid name or arguments are a 400 with some servers."""
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    function = {"name": api_name(call.name) or "unknown", "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function, **call.echo}
