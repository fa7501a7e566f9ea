"""Drafts: the part of an answer that may be shown while the model is still writing it.

A draft holds only complete sentences and values, and is checked by the rules of the final answer:
ungrounded text is left out. A draft is computed when it is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, Generic, TypeVar

from pydantic_core import from_json

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import log_failure
from agent.engine.messages import OnText, Text
from agent.engine.parsing import ParseResult, strip_thoughts
from agent.engine.run import Run
from agent.language import last_sentence_end
from agent.markdown import visible
from agent.text import MAX_INLINE_CHARS, pattern

T = TypeVar("T")

CONTROL: Final = pattern(r"[\x00-\x1f]")
MISSING: Final = object()


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

    def text_so_far(self) -> str:
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
        if (value := parse_unfinished(answer)) != self._last[0]:
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


def partial_answer(
    value: Mapping[str, Any] | None, contract: OutputContract[T], evidence: Evidence
) -> T | None:
    """Return the answer that a contract makes of a part of one, None if it makes none."""
    try:
        return contract.partial(value, evidence) if contract.partial and value is not None else None
    except Exception as error:
        log_failure("a part of an answer could not be read", error)
        return None


def parse_unfinished(text: str) -> dict[str, Any] | None:
    """Return the part of a JSON object that will not change while the rest is written.

    A string that has not ended is cut after its last complete sentence. Return None if no object
    has begun.
    """
    json_text = CONTROL.sub(" ", text[text.find("{") :]) if "{" in text else ""
    try:
        with_open_strings = from_json(json_text, allow_partial="trailing-strings")
        without_open_strings = from_json(json_text, allow_partial=True)
    except (ValueError, RecursionError):
        return None
    value = _cut_open_strings(with_open_strings, without_open_strings)
    return value if isinstance(value, dict) else None


def _cut_open_strings(value: Any, closed: Any) -> Any:
    """Cut the strings of `value` that are missing in `closed` after their last sentence."""
    if isinstance(value, str):
        return value if closed == value else value[: last_sentence_end(value, len(value) - 1)]
    if isinstance(value, dict):
        known = closed if isinstance(closed, dict) else {}
        return {key: _cut_open_strings(value[key], known.get(key, MISSING)) for key in value}
    if isinstance(value, list):
        pairs = zip_longest(value, closed if isinstance(closed, list) else [], fillvalue=MISSING)
        return [_cut_open_strings(item, closed_item) for item, closed_item in pairs]
    return value if closed is not MISSING else None
