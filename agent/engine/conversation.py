"""The messages of a turn, in a form that every server accepts: every call has exactly one result.

At most one pair of invalid response and feedback is sent: attempt 5 sends no more than attempt 2.
Some servers want fields of their own messages back (an echo): these are sent only within the turn,
and only to the model that wrote the message.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from agent.engine.errors import SHOWN_ERROR_CHARS
from agent.engine.messages import LLMResponse, Message, ToolCall, api_name, without_echoes
from agent.engine.parsing import ParseResult, strip_thoughts
from agent.engine.tools import ToolResult, is_json_object
from agent.language import truncate_at_boundary
from agent.text import clip, pattern, storable

DROPPED: Final = frozenset({"truncated", "interrupted"})
"""Types of errors after which the feedback leaves out the response."""
SHOWN_RAW_CHARS: Final = 4000
SHORT_RESULT: Final = 400
"""Characters of a tool's result that are not cut further."""
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
        self._question: Message = {"role": "user", "content": storable(message)}
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in images]
        text = {"type": "text", "text": self._question["content"]}
        self.messages: list[Message] = [
            {"role": "system", "content": storable(instructions)},
            *history,
            self._question | {"content": [text, *parts]} if images else self._question,
        ]
        self._question_index = len(history) + 1
        self._pair_at: int | None = None
        self._ids = {call["id"] for message in history for call in message.get("tool_calls") or ()}

    def texts_by(self, role: str) -> list[str]:
        """Return the contents of the messages of a role, so far."""
        messages = [*self.messages[: self._question_index], self._question]
        contents = (message["content"] for message in messages if message.get("role") == role)
        return [str(content) for content in contents if content]

    @property
    def added(self) -> list[Message]:
        """Return the messages that the turn added: the user's, tool calls and their results."""
        messages = [*map(without_echoes, self.messages)]
        if self._pair_at is not None:
            del messages[self._pair_at : self._pair_at + 2]
        return [self._question, *messages[self._question_index + 1 :]]

    def drop_echoes(self) -> None:
        """Remove the fields that the model so far wanted back; another model is asked next."""
        self.messages = [*map(without_echoes, self.messages)]

    def shorten(self) -> bool:
        """Drop half of the history, or cut tool results in half if there is no history.

        What remains of the history begins with a message of the user. Return False if nothing
        could be shortened.
        """
        question = self._question_index
        if question > 1:
            half = range((question + 1) // 2 + 1, question)
            is_user = (at for at in half if self.messages[at].get("role") == "user")
            dropped = next(is_user, question) - 1
            del self.messages[1 : dropped + 1]
            self._question_index -= dropped
            if self._pair_at is not None:
                self._pair_at -= dropped
            return True
        results = [message for message in self.messages if message.get("role") == "tool"]
        long = [result for result in results if len(result["content"]) > SHORT_RESULT]
        for result in long:
            result["content"] = truncate_at_boundary(result["content"], len(result["content"]) // 2)
        return bool(long)

    def with_unique_ids(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Return the calls with unique ids: an id that is malformed or in use is replaced.

        Our ids have nine letters and digits: some servers accept no others.
        """
        unique = []
        for call in calls:
            is_valid = CALL_ID.fullmatch(call.id) and call.id not in self._ids
            unique.append(call if is_valid else replace(call, id=secrets.token_hex(5)[1:]))
            self._ids.add(unique[-1].id)
        return unique

    def add_results(
        self, response: LLMResponse, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> None:
        """Append a response that called tools, and the results of its calls in order."""
        message = {"role": "assistant", "content": response.content, **response.echo}
        self.messages.append(message | {"tool_calls": [*map(_wire, calls)]})
        self.messages += [
            {"role": "tool", "tool_call_id": call.id, "content": result.text or "(no result)"}
            for call, result in zip(calls, results, strict=True)
        ]

    def add_feedback(self, response: LLMResponse, result: ParseResult[Any], wording: str) -> None:
        """Add an invalid response and the feedback on it, in place of the previous pair.

        A response that is empty or dropped is named: a blank content is a 400 with some servers. It
        has its echo if tools were called: some servers then require it.
        """
        if self._pair_at is not None:
            del self.messages[self._pair_at : self._pair_at + 2]
        self._pair_at = len(self.messages)
        raw = "" if result.error_type in DROPPED else strip_thoughts(response.content)
        problem = clip(str(result.error).strip().rstrip("."), SHOWN_ERROR_CHARS)
        has_results = any(message.get("role") == "tool" for message in self.messages)
        answer = {"role": "assistant", "content": clip(raw, SHOWN_RAW_CHARS) or "(no answer)"}
        self.messages += [
            {**answer, **(response.echo if has_results else {})},
            {"role": "user", "content": wording.replace("{error_description}", problem)},
        ]


def _wire(call: ToolCall) -> dict[str, Any]:
    """Return a call as it is sent back: some servers answer 400 to an invalid name or arguments."""
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    function = {"name": api_name(call.name) or "unknown", "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function, **call.echo}
