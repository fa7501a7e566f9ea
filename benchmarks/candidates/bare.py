"""The floor: a loop as short as one can write it, over the client's connections alone.

It posts JSON and reads JSON, as this project does: a request in the client's own types costs more
than all the rest of a turn, and would make everybody else look cheap.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from openai import AsyncOpenAI, HttpxBinaryResponseContent, pydantic_function_tool
from pydantic import create_model

from benchmarks.scenario import (
    MAX_TOKENS,
    MODEL,
    RETRIES,
    SYSTEM_PROMPT,
    Answer,
    Candidate,
    Kind,
    find_wines,
)

ARGUMENTS = create_model("find_wines", __doc__=find_wines.__doc__, style=str, max_price=float)
REQUEST: dict[str, Any] = {
    "model": MODEL,
    "tools": [pydantic_function_tool(ARGUMENTS)],
    "max_completion_tokens": MAX_TOKENS,
    "response_format": {"type": "json_object"},
}

Message = dict[str, Any]
Ask = Callable[[AsyncOpenAI, list[Message]], Awaitable[Message]]


async def posted(client: AsyncOpenAI, messages: list[Message]) -> Message:
    """The message that the model answers with."""
    raw = await client.post(
        "/chat/completions",
        body=REQUEST | {"messages": messages},
        cast_to=HttpxBinaryResponseContent,
    )
    message: Message = json.loads(raw.content)["choices"][0]["message"]
    return message


def make(base_url: str, ask: Ask = posted) -> Candidate:
    """The bare loop over a client of `base_url`."""
    client = AsyncOpenAI(api_key="none", base_url=f"{base_url}/v1", max_retries=0, timeout=60)

    async def answer(kind: Kind) -> Answer:
        messages: list[Message] = [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": kind.question},
        ]
        for _ in range(RETRIES + 2):
            message = await ask(client, messages)
            if calls := message.get("tool_calls"):
                arguments = [json.loads(call["function"]["arguments"]) for call in calls]
                results = await asyncio.gather(*(find_wines(**each) for each in arguments))
                messages.append(message)
                for call, result in zip(calls, results, strict=True):
                    said = {"role": "tool", "tool_call_id": call["id"], "content": result}
                    messages.append(said)
                continue
            try:
                return Answer.model_validate(json.loads(message["content"]))
            except ValueError as error:
                messages.append({"role": "assistant", "content": message["content"]})
                messages.append({"role": "user", "content": f"That is not valid: {error}"})
        raise RuntimeError("no valid answer")

    return Candidate(answer)
