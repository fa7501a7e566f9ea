"""The loop of this project, tracing off."""

from collections.abc import Awaitable, Callable

from agent import (
    Limits,
    LLMService,
    OutputContract,
    Run,
    generate_agentic_response,
)
from agent import tool as as_tool
from agent.engine.run import NO_SPAN, Span
from agent.tracing.records import TraceRecord
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

LIMITS = Limits(structured_output_max_retries=RETRIES, answer_tokens=MAX_TOKENS)


def make(
    base_url: str, keep: Callable[[TraceRecord], Awaitable[None]] | None = None
) -> Candidate:
    """`generate_agentic_response`, each turn with a trace if there is who keeps it."""
    llm = LLMService(model=MODEL, base_url=f"{base_url}/v1")
    contract = OutputContract(Answer)
    tools = [as_tool(find_wines)]

    async def answer(kind: Kind) -> Answer:
        trace = TraceRecord("", "42", "a1b2c3d4e5f60718")
        root: Span = trace.open_root(kind.question) if keep else NO_SPAN
        with root as span:
            run = Run([llm], instructions=INSTRUCTIONS, limits=LIMITS, span=span)
            response = await generate_agentic_response(
                kind.question, run=run, contract=contract, tools=tools
            )
            span.update(
                output=response.text,
                metadata={
                    "outcome": response.outcome,
                    "retry_count": response.retry_count,
                    "error_types": list(response.error_types),
                    "llm_calls": run.usage.requests,
                    "tool_calls": run.usage.tool_calls,
                },
            )
            span.score("structured_retries", response.retry_count, "NUMERIC")
            span.score("outcome", response.outcome, "CATEGORICAL")
        if keep and root.trace:
            await keep(root.trace)
        if response.answer is None:
            raise RuntimeError(response.error)
        return response.answer

    return Candidate(answer)
