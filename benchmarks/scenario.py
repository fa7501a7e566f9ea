"""What every candidate is given: one answer type, one tool, the same questions.

Imports pydantic only: this module is read in the environment of every candidate.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

MODEL: Final = "gpt-4o"
MAX_TOKENS: Final = 1500
RETRIES: Final = 5
"""How often an invalid answer may be asked for again, for everyone who retries."""

INSTRUCTIONS: Final = (
    "You are the sommelier of a small wine shop. Recommend wines that the shop has, and no others: "
    "look them up with find_wines before you name one. Say in one sentence why each of them suits. "
    "Keep to the person's budget and answer in the person's language."
)


class Pick(BaseModel):
    """One recommended wine."""

    wine_id: str
    description: str


class Answer(BaseModel):
    """What the sommelier says."""

    intro: str
    wines: list[Pick]
    closing: str


SYSTEM_PROMPT: Final = (
    f"{INSTRUCTIONS}\n\nYour final answer is one JSON value that matches this JSON Schema, and "
    "nothing else: no text around it, no Markdown fence.\n"
    f"{json.dumps(Answer.model_json_schema())}"
)
"""For candidates that do not put the schema into the prompt by themselves."""

FOUND: Final = json.dumps(
    {
        "found": 3,
        "wines": [
            {
                "wine_id": "chinon-2022",
                "name": "Chinon Les Granges 2022",
                "price": 14.5,
            },
            {"wine_id": "rioja-2019", "name": "Rioja Crianza 2019", "price": 12.9},
            {"wine_id": "barbera-2021", "name": "Barbera d'Asti 2021", "price": 16.0},
        ],
    }
)


async def find_wines(style: str, max_price: float) -> str:
    """Find the wines of a style (red, white, sparkling) up to a price in euros."""
    return FOUND


@dataclass(frozen=True)
class Kind:
    """A kind of turn: the question that opens it, and how many tool calls the model makes."""

    name: str
    question: str
    tool_calls: int = 0


KINDS: Final = (
    Kind("plain", "What does sur lie mean, and which wine shows it?"),
    Kind("one tool", "A red for lamb under 20 euros, please.", 1),
    Kind("two tools", "A red for lamb and a white for trout, please.", 2),
    Kind("invalid once", "Something for tonight, whatever you like."),
)
VALID: Final = Answer(
    intro="For an evening like this one, the shop has just the thing:",
    wines=[
        Pick(
            wine_id="chinon-2022",
            description="Fresh, with a fine tannin that lamb softens.",
        ),
        Pick(
            wine_id="rioja-2019",
            description="Rounder, with a little vanilla from the oak.",
        ),
    ],
    closing="Open either of them half an hour before dinner.",
)


@dataclass(frozen=True)
class Candidate:
    """A way to answer. `flush` does what is still to be done in the background."""

    answer: Callable[[Kind], Awaitable[Answer]]
    flush: Callable[[], Awaitable[None]] | None = None
