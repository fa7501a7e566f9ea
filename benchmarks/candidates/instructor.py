"""Instructor in JSON mode. It runs no tools: they are run by hand before it is asked."""

import asyncio
import json
from typing import Any

import instructor  # type: ignore[import-not-found]
from openai import AsyncOpenAI, pydantic_function_tool
from pydantic import create_model

from benchmarks.scenario import (
    INSTRUCTIONS,
    MAX_TOKENS,
    MODEL,
    RETRIES,
    Answer,
    Candidate,
    Kind,
    find_wines,
)

ARGUMENTS = create_model(
    "find_wines", __doc__=find_wines.__doc__, style=str, max_price=float
)
TOOLS: Any = [pydantic_function_tool(ARGUMENTS)]


def make(base_url: str) -> Candidate:
    """Patch a client; turns with tools begin with one request of the plain client."""
    client = AsyncOpenAI(
        api_key="none", base_url=f"{base_url}/v1", max_retries=0, timeout=60
    )
    patched = instructor.from_openai(client, mode=instructor.Mode.JSON)

    async def tool_messages(messages: list[Any]) -> list[Any]:
        completion = await client.chat.completions.create(
            model=MODEL,
            messages=messages,
            tools=TOOLS,
            max_completion_tokens=MAX_TOKENS,
        )
        message: Any = completion.choices[0].message
        arguments = [json.loads(call.function.arguments) for call in message.tool_calls]
        results = await asyncio.gather(*(find_wines(**given) for given in arguments))
        return [message.model_dump(exclude_none=True)] + [
            {"role": "tool", "tool_call_id": call.id, "content": result}
            for call, result in zip(message.tool_calls, results, strict=True)
        ]

    async def answer(kind: Kind) -> Answer:
        messages: list[Any] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": kind.question},
        ]
        if kind.tool_calls:
            messages += await tool_messages(messages)
        result: Answer = await patched.chat.completions.create(
            model=MODEL,
            messages=messages,
            response_model=Answer,
            max_retries=RETRIES,
            max_completion_tokens=MAX_TOKENS,
        )
        return result

    return Candidate(answer)
