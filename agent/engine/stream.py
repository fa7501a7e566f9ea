"""A turn as a stream: drafts of the answer while it forms, then the final response."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from agent.engine.contract import OutputContract
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox

T = TypeVar("T")

SECONDS_BETWEEN: Final = 0.2


@dataclass(frozen=True, slots=True)
class Draft:
    """The grounded part of an answer that is still being written, in Markdown."""

    text: str


async def stream_agentic_response(
    message: str,
    *,
    run: Run,
    contract: OutputContract[T],
    tools: Sequence[Tool | Callable[..., object]] | Toolbox = (),
    images: Sequence[str] = (),
    seconds_between: float = SECONDS_BETWEEN,
) -> AsyncIterator[Draft | AgenticResponse[T]]:
    """Yield drafts of the answer, each longer or other than the one before, then the response.

    Takes what `generate_agentic_response` takes. A caller that stops listening cancels the turn.
    """
    make: Callable[[], str] = str

    def show(draft: Callable[[], str]) -> None:
        nonlocal make
        make = draft

    turn = asyncio.create_task(
        generate_agentic_response(
            message, run=replace(run, show=show), contract=contract, tools=tools, images=images
        )
    )
    shown = ""
    try:
        while not turn.done():
            await asyncio.wait([turn], timeout=seconds_between)
            if not turn.done() and (text := make()) and text != shown:
                shown = text
                yield Draft(text)
        yield await turn
    finally:
        turn.cancel()
