"""What a look-up came to, as messages. Pure.

The buttons need no memory: what they are about stands in the message itself.
"""

from dataclasses import dataclass
from typing import Final

from agent.documents.answer import Answer
from agent.documents.quotes import Quotes
from agent.outcome import Outcome
from agent.places.find import Places
from bot.telegram import research_text as text
from bot.telegram.outgoing import Button, Outgoing

REFINE: Final = Button("Refine my question", "refine")
AS_FILE: Final = Button("As a text file", "queries")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a look-up came to, for the person: messages, and the text that is remembered."""

    messages: tuple[Outgoing, ...]
    kept: str
    outcome: Outcome = "answered"
    retries: int = 0
    error_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Apology:
    """A sentence in place of what was looked up."""

    sentence: str
    outcome: Outcome = "answered"
    retries: int = 0
    error_types: tuple[str, ...] = ()


def shown_answer(answer: Answer, *, may_refine: bool) -> Shown:
    """An answer with its sources; under a weak one a button, if refining may help."""
    said, sources = text.answer_text(answer), text.sources_text(answer)
    parts = [said, sources]
    offered = may_refine and text.is_weak(answer)
    if offered:
        # The button finds the question here, however much later it is pressed.
        parts.append(text.quoted(answer.question))
    message = Outgoing("\n\n".join(filter(None, parts)), ((REFINE,),) if offered else ())
    kept = [said, text.sources_text(answer, with_passages=False)]
    return Shown(
        (message,),
        "\n\n".join(filter(None, kept)),
        answer.outcome,
        answer.retry_count,
        answer.error_types,
    )


def shown_quotes(found: Quotes) -> Shown:
    """A message for each quote, then the summary."""
    shown = text.quote_texts(found)
    return Shown(
        tuple(map(Outgoing, shown)),
        "\n\n".join(shown),
        found.outcome,
        found.retry_count,
        found.error_types,
    )


def shown_places(found: Places) -> Shown:
    """The places if there are any, then the searches with a button for a text file of them."""
    places, searches = text.places_text(found), text.searches_text(found)
    messages = [Outgoing(places)] if places else []
    failed = bool(found.failed_searches) and not found.results
    return Shown(
        (*messages, Outgoing(searches, ((AS_FILE,),))),
        places or searches,
        "fallback" if failed else found.queries.outcome,
        found.queries.retry_count,
        found.queries.error_types,
    )


def apologised(apology: Apology) -> Shown:
    """One sentence."""
    return Shown(
        (Outgoing(apology.sentence),),
        apology.sentence,
        apology.outcome,
        apology.retries,
        apology.error_types,
    )
