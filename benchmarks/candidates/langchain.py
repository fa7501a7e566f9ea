"""LangChain's create_agent with ToolStrategy, the strategy that asks again on an invalid answer."""

from langchain.agents import create_agent  # type: ignore[import-not-found]
from langchain.agents.structured_output import ToolStrategy  # type: ignore[import-not-found]
from langchain_core.tools import tool  # type: ignore[import-not-found]
from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]

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
    """Make an agent graph with a structured response."""
    model = ChatOpenAI(
        model=MODEL,
        api_key="none",
        base_url=f"{base_url}/v1",
        max_retries=0,
        timeout=60,
        max_tokens=MAX_TOKENS,
    )
    agent = create_agent(
        model,
        tools=[tool(find_wines)],
        system_prompt=INSTRUCTIONS,
        response_format=ToolStrategy(Answer),
    )

    async def answer(kind: Kind) -> Answer:
        asked = {"messages": [{"role": "user", "content": kind.question}]}
        result: Answer = (await agent.ainvoke(asked))["structured_response"]
        return result

    return Candidate(answer)
