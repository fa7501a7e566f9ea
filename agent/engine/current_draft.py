"""Keep the part of an answer that a user may see while it forms."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.messages import Written
from agent.engine.parsing import parse_written

T = TypeVar("T")


class CurrentDraft:
    """The part of an answer that a user may see while it forms, in Markdown.

    The turn keeps it up to date. Whoever shows it asks for its `text()`, or for its `changes`.
    `describe_call` gets the `progress_name` of a tool, or "" if the tool has none, and returns the
    text that is shown while the tool runs.
    """

    def __init__(self, describe_call: Callable[[str], str] = str) -> None:
        self._describe_call = describe_call
        self._notice = ""
        self._answer: tuple[Written, OutputContract[Any], Evidence] | None = None

    def show(self, notice: str) -> None:
        """Show a text until the next answer begins."""
        self._notice = notice
        self._answer = None

    def show_call(self, progress_name: str) -> None:
        """Show that a tool runs."""
        self.show(self._describe_call(progress_name))

    def follow(
        self,
        written: Written,
        contract: OutputContract[T],
        evidence: Evidence,
    ) -> None:
        """Show the valid part of the response in `written` as soon as its text begins."""
        self._answer = (written, contract, evidence)

    def text(self) -> str:
        """Return the current text, or "" if there is nothing to show."""
        if self._answer is None:
            return self._notice
        written, contract, evidence = self._answer
        if not written.text:
            return self._notice
        return parse_written(written, contract, evidence).text

    async def changes(
        self, until: asyncio.Future[Any], seconds: float
    ) -> AsyncIterator[str]:
        """Yield the text whenever it has changed, until the future `until` is done.

        The text is compared every `seconds`.
        """
        shown = ""
        while not until.done():
            await asyncio.wait([until], timeout=seconds)
            if until.done():
                return
            text = self.text()
            if text and text != shown:
                shown = text
                yield text
