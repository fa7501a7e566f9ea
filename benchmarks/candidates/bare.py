"""The floor: a loop as short as one can write it, in the types of OpenAI's client."""

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

ARGUMENTS = create_model(
    "find_wines", __doc__=find_wines.__doc__, style=str, max_price=float
)
REQUEST: dict[str, Any] = {
    "model": MODEL,
    "tools": [pydantic_function_tool(ARGUMENTS)],
    "max_completion_tokens": MAX_TOKENS,
    "response_format": {"type": "json_object"},
}


def make(base_url: str) -> Candidate:
    """Make the bare loop over a client of `base_url`."""
    client = AsyncOpenAI(
        api_key="none", base_url=f"{base_url}/v1", max_retries=0, timeout=60
    )

    async def answer(kind: Kind) -> Answer:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": kind.question},
        ]
        for _ in range(RETRIES + 2):
            completion = await client.chat.completions.create(
                messages=messages, **REQUEST
            )
            message = completion.choices[0].message
            if calls := message.tool_calls:
                arguments = [json.loads(call.function.arguments) for call in calls]
                results = await asyncio.gather(
                    *(find_wines(**given) for given in arguments)
                )
                messages.append(message.model_dump(exclude_none=True))
                for call, result in zip(calls, results, strict=True):
                    said = {"role": "tool", "tool_call_id": call.id, "content": result}
                    messages.append(said)
                continue
            try:
                return Answer.model_validate_json(message.content)
            except ValueError as error:
                messages.append({"role": "assistant", "content": message.content})
                messages.append(
                    {"role": "user", "content": f"That is not valid: {error}"}
                )
        raise RuntimeError("no valid answer")

    return Candidate(answer)
