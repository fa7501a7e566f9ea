"""Drafts: what may be shown of an answer while it is written.

Shown are only whole sentences and whole values, held to the same rules as the final answer: text
that is not grounded already is left out. Nothing is computed before somebody asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, Generic, TypeVar

from pydantic_core import from_json

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import log_failure
from agent.engine.messages import Heard, Text
from agent.engine.parsing import ParseResult
from agent.engine.reading import without_thoughts
from agent.engine.run import Run
from agent.markdown import visible
from agent.text import MAX_INLINE_CHARS, last_sentence_end, pattern

T = TypeVar("T")

CONTROL: Final = pattern(r"[\x00-\x1f]")
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Draft:
    """The grounded part of an answer that is still being written, in Markdown."""

    text: str


@dataclass(slots=True)
class Drafts(Generic[T]):
    """The drafts of one question; a run that shows none, or a contract that has none, makes none.

    A new text takes the place of the one before.
    """

    run: Run
    contract: OutputContract[T]
    evidence: Evidence
    _text: Text = field(default=lambda: "")
    _made: tuple[Mapping[str, Any] | None, ParseResult[T] | None] = (None, None)

    @property
    def listener(self) -> Heard | None:
        """Return what listens to a model while it writes, if drafts are wanted."""
        can_be_drafted = self.contract.partial is not None or self.contract.is_drafted_as_text
        return self.heard if self.run.show is not None and can_be_drafted else None

    def heard(self, text: Text) -> None:
        """Offer drafts of what a model begins to write."""
        self._text, self._made = text, (None, None)
        if self.run.show is not None:
            self.run.show(self.markdown)

    def markdown(self) -> str:
        """Return the draft to show now, in Markdown; empty if there is none."""
        result = self.result()
        return result.text if result else ""

    def result(self) -> ParseResult[T] | None:
        """Return the part of the answer that may be shown now; None if there is none."""
        text = self._text()
        if len(text) > MAX_INLINE_CHARS:
            return self._made[1]  # reading so long a text would hold other chats up
        said = without_thoughts(text)
        if self.contract.partial is None:
            shown = visible(said[: last_sentence_end(said, len(said) - 1)])
            return ParseResult(shown, path="draft") if shown.strip() else None
        if (value := settled(said)) != self._made[0]:
            self._made = value, draft_of(value, self.contract, self.evidence)
        return self._made[1]


def draft_of(
    value: Mapping[str, Any] | None, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T] | None:
    """Return the draft of an answer that is known so far; None if nothing of it may be shown."""
    if contract.partial is None or value is None:
        return None
    try:
        answer = contract.partial(value, evidence)
        shown = "" if answer is None else visible(contract.render(answer, evidence))
    except Exception as error:
        log_failure("a draft could not be made", error)
        return None
    if answer is None or not shown.strip():
        return None
    return ParseResult(shown, contract.ids(answer), answer=answer, path="draft")


def settled(text: str) -> dict[str, Any] | None:
    """Read what will not change any more of an object that is still being written.

    Of a text that has not ended these are its sentences, save the last. None: nothing yet, or no
    object.
    """
    begun = CONTROL.sub(" ", text[text.find("{") :]) if "{" in text else ""
    try:
        growing = from_json(begun, allow_partial="trailing-strings")
        whole = from_json(begun, allow_partial=True)
    except (ValueError, RecursionError):
        return None
    found = _settled(growing, whole)
    return found if isinstance(found, dict) else None


def _settled(growing: Any, whole: Any) -> Any:
    if isinstance(growing, str):
        is_whole = isinstance(whole, str)
        return growing if is_whole else growing[: last_sentence_end(growing, len(growing) - 1)]
    if isinstance(growing, Mapping):
        named = whole if isinstance(whole, Mapping) else {}
        return {key: _settled(value, named.get(key, MISSING)) for key, value in growing.items()}
    if isinstance(growing, list):
        known = whole if isinstance(whole, list) else []
        pairs = zip_longest(growing, known, fillvalue=MISSING)
        return [_settled(value, end) for value, end in pairs]
    return growing if whole is not MISSING else None
