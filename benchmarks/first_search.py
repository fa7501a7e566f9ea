"""What it saves to search before a model is asked: `python -m benchmarks.first_search`.

The first messages of the starter set are answered by a model that is scripted: it searches unless
wines are there, as the fallback reads the message, and then recommends two. It is what a request
costs at best; how often a real model searches again is told in docs/evaluation.md. A token is about
four characters.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from agent.engine.messages import LLMRequest, LLMResponse, Message, ToolCall
from agent.engine.run import Run
from agent.engine.wire import Dialect
from agent.evals.dataset import STARTER_CONVERSATIONS, EvalCase, read_conversations
from agent.evals.evaluators import find_broken_filters, has_filters
from agent.sommelier.building_queries import parse_query, parse_unambiguous_query
from agent.sommelier.queries import Catalogue
from agent.sommelier.wine import Wine
from benchmarks.first_request import tokens
from bot.commands.evaluate import Bench, open_bench
from config import load_settings

HIDDEN: Final = "agent.sommelier.inquiry.parse_unambiguous_query"


class Ideal:
    """A model that does what it should in as few requests as it can."""

    model, base_url = "ideal", None

    def __init__(self) -> None:
        self.requests, self.tokens = 0, 0

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Search, or recommend two of the wines found."""
        sent = Dialect("json_object").build_parameters(messages, request)
        self.requests += 1
        self.tokens += tokens(sent)
        wines = [wine for message in messages for wine in wines_in(message)]
        if not wines and messages[-1]["role"] == "user":
            filters = parse_query(str(messages[-1]["content"])).model_dump_json(
                exclude_defaults=True
            )
            return LLMResponse(tool_calls=(ToolCall("1", "search_wines", filters),))
        chosen = [
            {"wine_id": wine["wine_id"], "description": "Good."} for wine in wines[:2]
        ]
        kind = "recommendation" if chosen else "informational"
        return LLMResponse(
            json.dumps({"response_type": kind, "intro": "Here:", "wines": chosen})
        )


def wines_in(message: Message) -> Iterator[dict[str, Any]]:
    """Yield the wines in the result of a tool."""
    if message.get("role") == "tool" and str(message["content"]).startswith("{"):
        yield from json.loads(message["content"]).get("wines", ())


async def turn(bench: Bench, message: str, *, searches_first: bool) -> Ideal:
    """Answer a message, and return what the model counted."""
    model = Ideal()
    with patch(HIDDEN, parse_unambiguous_query if searches_first else lambda *_: None):
        await bench.make_sommelier("gpt-4o").answer(message, Run([model]))
    return model


async def first_wines(catalogue: Catalogue, case: EvalCase) -> Sequence[Wine]:
    """Return the wines that a model is given before it asks."""
    query = parse_unambiguous_query(case.messages[0], case.language or "en")
    assert query is not None
    return (await catalogue.search(query.model_copy(update={"limit": 6}))).wines


async def main() -> None:
    """Print the table."""
    cases = [
        case for case in read_conversations(STARTER_CONVERSATIONS) if not case.history
    ]
    wishes = [
        case
        for case in cases
        if parse_unambiguous_query(case.messages[0], case.language or "en")
    ]
    single = [
        case for case in wishes if len(case.messages) == 1 and has_filters(case.expect)
    ]
    table = Table("", "requests a turn", "tokens a turn")
    async with open_bench(load_settings(None, {}), starter=True) as bench:
        for name, searches_first in (
            ("search first", True),
            ("as the model asks", False),
        ):
            turns = [
                await turn(bench, case.messages[0], searches_first=searches_first)
                for case in wishes
            ]
            requests = fmean(model.requests for model in turns)
            size = fmean(model.tokens for model in turns)
            table.add_row(name, f"{requests:.1f}", f"{size:,.0f}")
        broken = [
            wine.label
            for case in single
            for wine in await first_wines(bench.catalogue, case)
            if [*find_broken_filters(wine, case.expect)]
        ]
    Console().print(
        f"{len(wishes)} of {len(cases)} first messages are certain wishes", table
    )
    Console().print(
        f"{len(broken)} wines found for {len(single)} of them break what is expected"
    )


if __name__ == "__main__":
    asyncio.run(main())
