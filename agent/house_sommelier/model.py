"""The house sommelier as a model: the same interface and loop, rules instead of weights."""

import json
from collections.abc import Sequence
from typing import Final

from agent.engine.messages import LLMResponse, Message, OutputSchema, ToolCall, ToolSchema
from agent.house_sommelier.answer import answer, apologise, speak
from agent.house_sommelier.conversation import read_conversation
from agent.house_sommelier.followups import read_request
from agent.house_sommelier.intent import LIBRARY, Wish, asked_of_library, decide
from agent.house_sommelier.lexicon import Language
from agent.sommelier.sommelier_prompts import SommelierResponse

MODEL_NAME: Final = "house-sommelier"


class HouseSommelier:
    """An `LLM` that answers by rules, from `messages` alone: no key, no network, no state."""

    model: str = MODEL_NAME

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> LLMResponse:
        """Call a tool for the last request, or answer it with what the tools returned.

        Never raises. The answer is the JSON of a `SommelierResponse`, whatever `output`,
        `max_tokens` and `temperature` say; usage is zero.
        """
        reply = respond(messages, frozenset(tool.name for tool in tools))
        if isinstance(reply, SommelierResponse):
            return LLMResponse(content=reply.model_dump_json(), model=MODEL_NAME)
        calls = tuple(
            ToolCall(f"house-{len(messages)}-{number}", wish.tool, _written(wish))
            for number, wish in enumerate(reply)
        )
        return LLMResponse(tool_calls=calls, finish_reason="tool_calls", model=MODEL_NAME)


def language_of(messages: Sequence[Message]) -> Language:
    """The language of a conversation; English where nothing tells."""
    return read_request(read_conversation(messages)).language


def _written(wish: Wish) -> str:
    return json.dumps(wish.arguments, ensure_ascii=False)


def respond(
    messages: Sequence[Message], offered: frozenset[str]
) -> tuple[Wish, ...] | SommelierResponse:
    """The tools to call, all of those `offered`, or the answer."""
    conversation = read_conversation(messages)
    request = read_request(conversation)
    if conversation.results:
        return answer(request, conversation.results)
    decision = decide(request)
    if decision == "knowledge" and LIBRARY in offered:
        return (Wish(LIBRARY, {"query": asked_of_library(request)}),)
    if not isinstance(decision, Wish):
        return speak(decision, request)
    return (decision,) if decision.tool in offered else apologise(request.language)
