"""The OpenAI Agents SDK over chat completions, its tracing off."""

from agents import (  # type: ignore[import-not-found]
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.scenario import (
    INSTRUCTIONS,
    MAX_TOKENS,
    MODEL,
    Answer,
    Candidate,
    Kind,
    find_wines,
)


def make(base_url: str) -> Candidate:
    """Make an Agent with a typed output; its runner raises on an invalid one."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(api_key="none", base_url=f"{base_url}/v1", max_retries=0, timeout=60)
    agent = Agent(
        name="sommelier",
        instructions=INSTRUCTIONS,
        model=OpenAIChatCompletionsModel(MODEL, client),
        model_settings=ModelSettings(max_tokens=MAX_TOKENS),
        tools=[function_tool(find_wines)],
        output_type=Answer,
    )

    async def answer(kind: Kind) -> Answer:
        result: Answer = (await Runner.run(agent, kind.question)).final_output
        return result

    return Candidate(answer)
