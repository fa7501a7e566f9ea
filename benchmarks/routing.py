"""What it costs to ask a cheaper model for quotes: `python -m benchmarks.routing`.

The 24 questions over the starter documents are made into requests, and nothing is sent. A token is
about four characters; answers have 307 tokens, the mean that the research on quotes measured. The
prices are those of gpt-4o and gpt-4o-mini. The cheaper model's answer fails its check, and the
question goes to the larger one, as often as the research found: 12 %.
"""

import asyncio
from collections.abc import Callable
from statistics import fmean
from typing import Final

from rich.console import Console
from rich.table import Table

from agent.documents.passages import has_clear_best
from agent.documents.quotes import find_quotes
from agent.engine.run import Run
from benchmarks.first_request import Listener, tokens
from benchmarks.quotes import read_questions
from bot.commands.evaluate import open_bench
from config import load_settings

ANSWER_TOKENS: Final = 307
LARGE, CHEAP = (2.5, 10.0), (0.15, 0.6)
FAILS: Final = 0.12


def cost(size: int, price: tuple[float, float]) -> float:
    """Return the US dollars of one question."""
    return (size * price[0] + ANSWER_TOKENS * price[1]) / 1e6


async def main() -> None:
    """Print the table."""
    asked: list[tuple[int, bool]] = []
    async with open_bench(load_settings(None, {}), starter=True) as bench:
        for question in read_questions():
            listener = Listener("json_object")
            found = await find_quotes(
                question.query, documents=bench.documents, run=Run([listener])
            )
            asked.append((tokens(listener.request), has_clear_best(found.chunks)))

    def first_cheap(size: int) -> float:
        return cost(size, CHEAP) + FAILS * cost(size, LARGE)

    ways: dict[str, Callable[[int, bool], float]] = {
        "the large model": lambda size, _: cost(size, LARGE),
        "by confidence": lambda n, clear: first_cheap(n) if clear else cost(n, LARGE),
        "the cheaper one first": lambda size, _: first_cheap(size),
    }
    table = Table("asked", "US dollars for 1,000 questions")
    for name, way in ways.items():
        table.add_row(name, f"{1000 * fmean(way(*question) for question in asked):.2f}")
    clear = sum(is_clear for _, is_clear in asked)
    mean = fmean(size for size, _ in asked)
    Console().print(
        f"{clear} of {len(asked)} are clear, {mean:,.0f} tokens a request", table
    )


if __name__ == "__main__":
    asyncio.run(main())
