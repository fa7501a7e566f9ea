"""The interface of the rules that answer without a model, which `agent.fallback` implements."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agent.documents.passages import Chunk
from agent.engine.run import NO_SPAN, Span
from agent.sommelier.wine import Wine
from agent.turn import NOBODY, Person, Reply, StoredMessage


class DescribedWine(NamedTuple):
    """A wine with its description by the rules."""

    wine: Wine
    description: str
    """The kind of the wine, and the foods that it suits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAnswer:
    """The answer of the rules to a message, and what they found for it."""

    reply: Reply
    wish: str = ""
    """The wish as it was understood: "Red · lamb · up to €20"."""
    wines: tuple[DescribedWine, ...] = ()
    """The wines that were found, the best first. If no search was needed, those shown before."""
    passage: Chunk | None = None
    """The chunk of a document that answers the question, cut to the part with the answer."""


class RuleAnswerer(Protocol):
    """Answers by rules, in the current language."""

    async def answer(
        self,
        messages: Sequence[StoredMessage],
        *,
        person: Person = NOBODY,
        span: Span = NO_SPAN,
    ) -> RuleAnswer:
        """Answer the last of these messages. `person` decides which wines may be shown."""
