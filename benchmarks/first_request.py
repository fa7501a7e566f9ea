"""The size of the first request of a turn, schemas included: `python -m benchmarks.first_request`.

Nothing is sent: the request is made as a model's server would get it. A token is about four
characters of English and of JSON.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from agent.engine.errors import ModelRejected
from agent.engine.messages import LLMRequest, LLMResponse, Message, ResponseMode
from agent.engine.run import Run
from agent.engine.wire import Dialect
from agent.memory.tools import memory_tools
from bot.resources import research_tools
from tests.doubles.server import JsonObject
from tests.fakes import fake_sommelier
from tests.library import FakeLibrary

QUESTION: Final = "A red for lamb, under 25 euros"
TOKEN_CHARS: Final = 4
AIMS: Final = {"small": 1000, "full": 2600}
MODES: Final[dict[str, ResponseMode]] = {"small": "json_schema", "full": "json_object"}


class Listener:
    """A model that keeps the first request that it gets, as its server would be sent it."""

    model, base_url = "listener", None

    def __init__(self, mode: ResponseMode) -> None:
        self._dialect = Dialect(mode)
        self.request: JsonObject = {}

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Keep the request, and have the fallback answer."""
        self.request = self.request or self._dialect.parameters(messages, request)
        raise ModelRejected("it only listens")


def tokens(part: object) -> int:
    """Return about how many tokens a part of a request is."""
    if not part:
        return 0
    return len(json.dumps(part, ensure_ascii=False, separators=(",", ":"))) // TOKEN_CHARS


async def first_request(profile: str) -> JsonObject:
    """Return the first request of a turn in this profile."""
    listener = Listener(MODES[profile])
    tools = [*research_tools(FakeLibrary()), *memory_tools()]
    sommelier = fake_sommelier(research_tools=tools, uses_small_model=profile == "small")
    await sommelier.answer(QUESTION, Run([listener]))
    return listener.request


def main() -> None:
    """Print the sizes."""
    parts = ("messages", "tools", "response_format")
    table = Table("profile", *parts, "all", "aim", title="Tokens of the first request, about")
    for profile, aim in AIMS.items():
        request = asyncio.run(first_request(profile))
        sizes = [tokens(request.get(part)) for part in parts]
        table.add_row(profile, *map(str, sizes), str(sum(sizes)), f"≤ {aim}")
    Console().print(table)


if __name__ == "__main__":
    main()
