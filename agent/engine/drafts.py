"""Drafts: the part of an answer that may be shown while the model is still writing it.

A draft holds only complete sentences and values, and is checked by the rules of the final answer:
ungrounded text is left out. A draft is computed when it is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import log_failure
from agent.engine.messages import OnText, Text
from agent.engine.parsing import ParseResult, complete_part, partial_answer, strip_thoughts
from agent.engine.run import Run
from agent.markdown import visible
from agent.text import MAX_INLINE_CHARS, last_sentence_end

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft:
    """The grounded part of an answer that is still being written, in Markdown."""

    text: str


@dataclass(slots=True)
class Drafts(Generic[T]):
    """The drafts of one turn: none if the run shows no drafts or the contract has none.

    The text of a new response replaces that of the one before.
    """

    run: Run
    contract: OutputContract[T]
    evidence: Evidence
    _text: Text = field(default=lambda: "")
    _has_begun: bool = False
    _last: tuple[Mapping[str, Any] | None, ParseResult[T] | None] = (None, None)

    def listener(self) -> OnText | None:
        """Return the callback for the next response, None if no drafts are wanted of it."""
        self._has_begun = False  # until then the draft of the response before it stays
        can_be_drafted = self.contract.partial is not None or self.contract.is_drafted_as_text
        return self._start if self.run.show_draft is not None and can_be_drafted else None

    def _start(self, text: Text) -> None:
        """Show drafts of the response that the model begins to write."""
        self._text, self._last, self._has_begun = text, (None, None), True
        if self.run.show_draft is not None:
            self.run.show_draft(lambda: draft.text if (draft := self.result()) else "")

    def written(self) -> str:
        """Return the text that the model has written of the current response."""
        return self._text() if self._has_begun else ""

    def result(self) -> ParseResult[T] | None:
        """Return the part of the answer that may be shown now; None if there is none."""
        text = self._text()
        if len(text) > MAX_INLINE_CHARS:
            return self._last[1]  # reading so long a text would block the turns of other chats
        answer = strip_thoughts(text)
        if self.contract.partial is None:
            shown = visible(answer[: last_sentence_end(answer, len(answer) - 1)])
            return ParseResult(shown) if shown.strip() else None
        if (value := complete_part(answer)) != self._last[0]:
            self._last = value, draft_of(value, self.contract, self.evidence)
        return self._last[1]


def draft_of(
    value: Mapping[str, Any] | None, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T] | None:
    """Return the draft of a partial answer, None if no part of it may be shown."""
    answer = partial_answer(value, contract, evidence)
    try:
        shown = "" if answer is None else visible(contract.render(answer, evidence))
    except Exception as error:
        log_failure("a draft could not be made", error)
        return None
    if answer is None or not shown.strip():
        return None
    return ParseResult(shown, contract.ids(answer), answer=answer)
