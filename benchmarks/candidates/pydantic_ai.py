"""Pydantic AI, with the answer type in the prompt and `json_object` as the response format."""

from openai import AsyncOpenAI
from pydantic_ai import Agent, PromptedOutput  # type: ignore[import-not-found]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]

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


def make(base_url: str) -> Candidate:
    """Make an Agent with a typed output."""
    client = AsyncOpenAI(
        api_key="none", base_url=f"{base_url}/v1", max_retries=0, timeout=60
    )
    agent = Agent(
        OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client)),
        output_type=PromptedOutput(Answer),
        instructions=INSTRUCTIONS,
        tools=[find_wines],
        retries=RETRIES,
        model_settings={"max_tokens": MAX_TOKENS},
    )

    async def answer(kind: Kind) -> Answer:
        result: Answer = (await agent.run(kind.question)).output
        return result

    return Candidate(answer)
