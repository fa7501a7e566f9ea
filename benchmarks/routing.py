"""What it costs to ask a cheaper model for quotes: `python -m benchmarks.routing`.

The 24 questions over the starter documents are made into requests, and nothing is sent. A token is
about four characters; answers have 307 tokens, the mean that the research on quotes measured. The
prices are those of gpt-4o and gpt-4o-mini. The cheaper model's answer fails its check, and the
question goes to the larger one, as often as the research found: 12 %.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final

from rich.console import Console
from rich.table import Table

from agent.documents.passages import has_clear_best
from agent.documents.quotes import find_quotes
from agent.engine.dialect import Dialect
from agent.engine.errors import ModelRejected
from agent.engine.messages import LLMRequest, LLMResponse, Message
from agent.engine.run import Run
from agent.evals.dataset import read_ground_truth
from bot.commands.evaluate import open_bench
from config import load_settings

TOKEN_CHARS: Final = 4
ANSWER_TOKENS: Final = 307
LARGE, CHEAP = (2.5, 10.0), (0.15, 0.6)
FAILS: Final = 0.12


class Listener:
    """A model that counts the tokens of its request and answers nothing."""

    model, base_url = "listener", None
    tokens = 0

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Count the request."""
        sent = Dialect("json_object").parameters(messages, request)
        self.tokens = len(json.dumps(sent, ensure_ascii=False)) // TOKEN_CHARS
        raise ModelRejected("it only listens")


def cost(tokens: int, price: tuple[float, float]) -> float:
    """Return the US dollars of one question."""
    return (tokens * price[0] + ANSWER_TOKENS * price[1]) / 1e6


async def main() -> None:
    """Print the table."""
    asked: list[tuple[int, bool]] = []
    async with open_bench(load_settings(None, {}), starter=True) as bench:
        for question in read_ground_truth():
            listener = Listener()
            found = await find_quotes(
                question.query, documents=bench.documents, run=Run([listener])
            )
            asked.append((listener.tokens, has_clear_best(found.chunks)))

    def first_cheap(tokens: int) -> float:
        return cost(tokens, CHEAP) + FAILS * cost(tokens, LARGE)

    ways: dict[str, Callable[[int, bool], float]] = {
        "the large model": lambda tokens, _: cost(tokens, LARGE),
        "by confidence": lambda n, clear: first_cheap(n) if clear else cost(n, LARGE),
        "the cheaper one first": lambda tokens, _: first_cheap(tokens),
    }
    table = Table("asked", "US dollars for 1,000 questions")
    for name, way in ways.items():
        table.add_row(name, f"{1000 * fmean(way(*question) for question in asked):.2f}")
    clear = sum(is_clear for _, is_clear in asked)
    mean = fmean(tokens for tokens, _ in asked)
    Console().print(f"{clear} of {len(asked)} are clear, {mean:,.0f} tokens a request", table)


if __name__ == "__main__":
    asyncio.run(main())
