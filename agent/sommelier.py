"""One turn of the sommelier: the model if there is one, the house sommelier if not or if it fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.ports import StoredMessage
from agent.tracing import Span

Outcome = Literal["answered", "salvaged", "refused", "fallback", "failed"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person gets: Markdown text, and the ids of the wines in it."""

    text: str
    wine_ids: tuple[str, ...]
    outcome: Outcome


class Answerer(Protocol):
    """What a handler needs of the agent."""

    async def answer(
        self, message: str, *, history: Sequence[StoredMessage] = (), span: Span
    ) -> Reply:
        """The reply to `message`. Never raises, except when cancelled."""
        ...
