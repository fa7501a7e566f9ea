"""The size of the first request of a turn, schemas included: `python -m benchmarks.first_request`.

Nothing is sent: the request is made as a model's server would get it. A token is about four
characters of English and of JSON. A server reads the tools, then the instructions, and caches the
beginning that requests share: so how much of this is the same for different guests is printed too.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from rich.console import Console
from rich.table import Table

from agent.cellar.items import guess_wine, to_cellar_item
from agent.engine.errors import ModelRejected
from agent.engine.messages import LLMRequest, LLMResponse, Message, ResponseMode
from agent.engine.run import Run
from agent.engine.wire import Dialect
from agent.memory.tools import memory_tools
from agent.safety.state import SafetyState
from agent.turn import Deps, Fact, Person
from bot.resources import research_tools
from tests.doubles.server import JsonObject
from tests.fakes import fake_sommelier
from tests.library import FakeLibrary

QUESTION: Final = "A red for lamb, under 25 euros"
TOKEN_CHARS: Final = 4
MIN_SHARED: Final = 0.9
ADA: Final = Person(user_id=1)
GUESTS: Final = (
    ADA,
    replace(
        ADA,
        bottles=(to_cellar_item(guess_wine("Barolo 2016"), 6),),
        facts=(Fact("hate", "styles=rose", "rosé"), Fact("budget", "40 EUR")),
    ),
    replace(ADA, safety=SafetyState().with_stored_names(["pregnancy", "egg"])),
)
"""A new guest, one who told of tastes and bottles, one who is pregnant and allergic."""
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
        self.request = self.request or self._dialect.build_parameters(messages, request)
        raise ModelRejected("it only listens")


def tokens(part: object) -> int:
    """Return about how many tokens a part of a request is."""
    if not part:
        return 0
    return (
        len(json.dumps(part, ensure_ascii=False, separators=(",", ":"))) // TOKEN_CHARS
    )


async def first_request(profile: str, guest: Person = ADA) -> JsonObject:
    """Return the first request of a guest's turn in this profile."""
    listener = Listener(MODES[profile])
    tools = [*research_tools(FakeLibrary()), *memory_tools()]
    sommelier = fake_sommelier(
        research_tools=tools, uses_small_model=profile == "small"
    )
    await sommelier.answer(QUESTION, Run([listener], deps=Deps(person=guest)))
    return listener.request


def shared_prefix() -> tuple[int, int]:
    """Return how many characters of the fixed text begin alike for all guests, and how many it has.

    The fixed text is the tools and the instructions.
    """
    requests = [asyncio.run(first_request("full", guest)) for guest in GUESTS]
    texts = [
        json.dumps([request["tools"], request["messages"][0]], ensure_ascii=False)
        for request in requests
    ]
    shared = takewhile(lambda chars: len(set(chars)) == 1, zip(*texts, strict=False))
    return len(list(shared)), max(map(len, texts))


def main() -> None:
    """Print the sizes, and how much of the fixed text is one prefix."""
    parts = ("messages", "tools", "response_format")
    table = Table("profile", *parts, "all", title="Tokens of the first request, about")
    for profile in MODES:
        request = asyncio.run(first_request(profile))
        sizes = [tokens(request.get(part)) for part in parts]
        table.add_row(profile, *map(str, sizes), str(sum(sizes)))
    console = Console()
    console.print(table)
    shared, whole = shared_prefix()
    console.print(
        f"Of {whole} characters of tools and instructions, {shared} ({shared / whole:.0%}) begin "
        f"alike for all guests; the aim is {MIN_SHARED:.0%}."
    )


if __name__ == "__main__":
    main()
