"""The floor: a loop as short as one can write it, with the client's own types.

That is how the client's documentation shows it, and how this project asks.
"""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI, pydantic_function_tool
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


async def ask(client: AsyncOpenAI, messages: list[Message]) -> Message:
    """The message that the model answers with, out of the client's types."""
    request: dict[str, Any] = REQUEST | {"messages": messages}
    completion = await client.chat.completions.create(**request)
    message: Message = completion.choices[0].message.model_dump(exclude_none=True)
    return message


def make(base_url: str) -> Candidate:
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
