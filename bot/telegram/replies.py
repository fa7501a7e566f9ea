"""Show a chat that its answer forms, and make the messages of the answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agent.engine.run import ShowDraft
from agent.turn import Reply, with_notes
from bot.outgoing import ButtonRows, Outgoing
from bot.question import Question
from bot.telegram.drafts import LATE_SECONDS, Forming
from bot.telegram.rate_limit import Clock
from bot.telegram.sender import Sender, message_to, messages_of
from db.models import OutboxRow

AUDIO_FILE: Final = "answer.ogg"
FormatAnswer = Callable[[Any], Sequence[Outgoing]]
"""Returns the messages that show a reply's `answer`."""


@dataclass(frozen=True, slots=True)
class Replies:
    """Shows and sends the answers of turns; `buttons` returns those below an answer."""

    sender: Sender
    buttons: Callable[[Question, Reply], ButtonRows] = lambda question, reply: ()
    clock: Clock = time.monotonic
    _showing: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def show_progress(self, question: Question) -> AsyncIterator[ShowDraft]:
        """Show a typing indicator or drafts until the block ends; yield a function for drafts.

        A request is never cut off, at most left behind. In a group none is left behind: there it
        would change the answer.
        """
        to, state = question.to, question.state
        assert to is not None  # noqa: S101 - other turns show no progress
        forming = Forming(self.sender, to, question.id, state, self.clock)
        task = asyncio.create_task(forming.run())
        self._showing.add(task)
        task.add_done_callback(self._showing.discard)
        try:
            yield forming.show
        finally:
            forming.end()
            await asyncio.wait([task], timeout=LATE_SECONDS[to.is_group])

    async def messages(
        self, question: Question, reply: Reply, format_answer: FormatAnswer | None = None
    ) -> list[OutboxRow]:
        """Return the messages of a reply: its text, or what `format_answer` makes of its answer.

        The notes and the buttons are in the last.
        """
        if format_answer is None or reply.answer is None:
            others, last = [], Outgoing(reply.shown)
        else:
            *others, last = format_answer(reply.answer)
            last = Outgoing(with_notes(last.markdown, reply.notes), last.buttons)
        last = Outgoing(last.markdown, last.buttons + self.buttons(question, reply))
        return await _messages(question, [*others, last], reply.audio)

    async def apology(self, question: Question, text: str) -> list[OutboxRow]:
        """Return the message of a turn that failed: it needs nothing that may fail again."""
        return await _messages(question, [Outgoing(text)])


async def _messages(
    question: Question, shown: Sequence[Outgoing], audio: bytes = b""
) -> list[OutboxRow]:
    """Return the messages of a turn; the first replaces the message that showed progress."""
    if question.to is None:
        return []
    to = replace(question.to, edits=question.state.placeholder_id)
    messages = list[OutboxRow]()
    for outgoing in shown:
        where = to.next if messages else to
        messages += await messages_of(where, outgoing.markdown, outgoing.buttons)
    for number, message in enumerate(messages):
        message.follows = number > 0
    if audio:
        messages.append(message_to(to.next, kind="voice", file_name=AUDIO_FILE, file=audio))
    for message in messages:
        message.turn_id = question.id
    return messages
