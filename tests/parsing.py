"""Parsing in tests that are no coroutines."""

import asyncio
from collections.abc import Collection
from typing import TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.messages import LLMResponse
from agent.engine.parsing import ParseResult, parse_final_response

T = TypeVar("T")


def parsed(
    said: str | LLMResponse,
    contract: OutputContract[T],
    evidence: Evidence,
    tool_names: Collection[str] = (),
) -> ParseResult[T]:
    """Return the result of parsing a final response, or the text of one."""
    response = LLMResponse(said) if isinstance(said, str) else said
    return asyncio.run(parse_final_response(response, contract, evidence, tool_names))
