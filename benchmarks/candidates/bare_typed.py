"""The bare loop with requests and answers in the client's own types, as its documentation shows."""

from typing import Any

from openai import AsyncOpenAI

from benchmarks.candidates import bare
from benchmarks.scenario import Candidate


async def typed(client: AsyncOpenAI, messages: list[bare.Message]) -> bare.Message:
    """The message that the model answers with, out of the client's types."""
    request: dict[str, Any] = bare.REQUEST | {"messages": messages}
    completion = await client.chat.completions.create(**request)
    message: bare.Message = completion.choices[0].message.model_dump(exclude_none=True)
    return message


def make(base_url: str) -> Candidate:
    """The bare loop over a client of `base_url`."""
    return bare.make(base_url, typed)
