"""Make the messages of an answer, and show while it forms: "typing", and drafts of the answer.

In a private chat a draft is no message: Telegram shows it for 30 s, and removes it when the bot
sends anything. No draft is sent after the answer.

Groups have no drafts. There a message of three dots is sent, its id stored, and only then it is
edited until it is the answer: a kill in between may leave three dots, but never two answers.
"""

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from telegram.constants import ChatAction
from telegram.error import RetryAfter, TelegramError

from agent.engine.run import ShowDraft
from agent.turn import Reply
from bot.question import Destination, Question, current_turn
from bot.telegram.rate_limit import Optional, seconds_of
from bot.telegram.render import split_messages
from bot.telegram.sender import ButtonRows, Sender, message_to, messages_of
from db.engine import retry_forever
from db.models import OutboxRow

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.5
"""Seconds after which "typing" is shown again; Telegram hides it after 5 seconds."""
DRAFT_SECONDS: Final = 0.5
"""The time between two drafts, from when Telegram has the first."""
REFRESH_SECONDS: Final = 20.0
"""Seconds after which an unchanged draft is sent again; Telegram removes it after 30."""
POLL_SECONDS: Final = 0.15
"""Seconds between two looks for a new draft."""
LATE_SECONDS: Final = (2.0, None)
"""Seconds that an answer waits for a request to show it forming, in private chats and in groups."""
EDIT_SECONDS: Final = 5.0
"""The time between two edits in a group: of its 20 messages a minute, 8 are left to answers."""
QUICK_SECONDS: Final = 2.0
"""Seconds before a group sees a draft: until then it waits for the answer."""
PLACEHOLDER: Final = "…"
OPTIONAL: Final[Optional] = "optional"
AUDIO_FILE: Final = "answer.ogg"


@dataclass(frozen=True, slots=True)
class Replies:
    """Shows and sends the answers of turns; `buttons` returns those below an answer."""

    sender: Sender
    buttons: Callable[[Question, Reply], ButtonRows] = lambda question, reply: ()
    _showing: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def show_progress(self, question: Question) -> AsyncIterator[ShowDraft]:
        """Show a typing indicator or drafts until the block ends; yield a function for drafts.

        A request is never cut off, at most left behind. In a group none is left behind: there it
        would change the answer.
        """
        assert question.to is not None  # noqa: S101 - other turns show no progress
        progress = _Progress(self.sender, question.to, question)
        task = asyncio.create_task(progress.run())
        self._showing.add(task)
        task.add_done_callback(self._showing.discard)
        try:
            yield progress.show
        finally:
            progress.is_over = True
            progress.news.set()
            await asyncio.wait([task], timeout=LATE_SECONDS[question.to.is_group])

    def messages(self, question: Question, reply: Reply) -> list[OutboxRow]:
        """Return the messages of a reply; the buttons are under the last."""
        buttons = self.buttons(question, reply)
        return messages_of_turn(question, reply.messages, buttons, reply.audio)


def messages_of_turn(
    question: Question, shown: Sequence[str], buttons: ButtonRows = (), audio: bytes = b""
) -> list[OutboxRow]:
    """Return the messages of a turn; the first replaces the message that showed progress."""
    if question.to is None:
        return []
    to = replace(question.to, edits=question.state.placeholder_id)
    messages = messages_of(to, shown, buttons)
    if audio:
        messages.append(message_to(to.next, kind="voice", file_name=AUDIO_FILE, file=audio))
    for message in messages:
        message.turn_id = question.id
    return messages


class _Progress:
    """An answer that forms in a chat: the source of its newest draft, and the part shown.

    The id of a group's message is stored in the outbox of `sender` before anything of the answer is
    in it. Drafts in groups are left out where the rate limit would delay them. A chat in which
    Telegram asks to wait is left alone for so long.
    """

    def __init__(self, sender: Sender, to: Destination, question: Question) -> None:
        self.bot, self.inbox, self.clock = sender.bot, sender.outbox, get_running_loop().time
        self.to, self.question = to, question
        self.due_at = self.clock() + (QUICK_SECONDS if to.is_group else 0)
        """The moment of the next draft; without end after an error."""
        self.draft: Callable[[], str] | None = None
        self.shown = ""
        self.shown_at = self.typed_at = -inf
        self.is_over = False
        self.news = asyncio.Event()

    def show(self, draft: Callable[[], str]) -> None:
        """Show this draft from now on."""
        self.draft = draft
        self.news.set()

    async def run(self) -> None:
        """Show drafts and "typing" until the answer is there."""
        while not self.is_over:
            self.news.clear()
            try:
                await self._show()
            except RetryAfter as error:
                self.due_at = self.typed_at = self.clock() + seconds_of(error)
            except TelegramError as error:
                log.debug("A sign that an answer forms was not shown: %s", error)
                self.shown = ""
            seconds = POLL_SECONDS if self.draft and self.due_at < inf else TYPING_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.news.wait()

    async def _show(self) -> None:
        """Show a draft or a typing indicator, if one is due."""
        now, to = self.clock(), self.to
        if self.draft and now >= self.due_at:
            html = next(iter(split_messages(self.draft())), "") or self.shown
            fades = not to.is_group and now - self.shown_at >= REFRESH_SECONDS
            if html and (html != self.shown or fades):
                # After an error Telegram may have it, or takes none: no draft is tried again.
                self.due_at = inf
                await (self._edit(html) if to.is_group else self._send_draft(html))
                return
        if not self.shown and now - self.typed_at >= TYPING_SECONDS:
            self.typed_at = now
            await self.bot.send_chat_action(
                to.chat_id, ChatAction.TYPING, message_thread_id=to.thread_id
            )

    async def _send_draft(self, html: str) -> None:
        await self.bot.send_message_draft(
            self.to.chat_id,
            self.question.id,
            html,
            message_thread_id=self.to.thread_id,
            api_kwargs={"can_stop": True},
        )
        self.shown, self.shown_at = html, self.clock()
        self.due_at = self.shown_at + DRAFT_SECONDS

    async def _edit(self, html: str) -> None:
        """Edit the message that becomes the answer; send it first."""
        to, state = self.to, self.question.state
        if state.placeholder_id is None:
            sent = await self.bot.send_message(
                to.chat_id,
                PLACEHOLDER,
                message_thread_id=to.thread_id,
                reply_to_message_id=to.reply_to,
                rate_limit_args=OPTIONAL,
            )
            state.placeholder_id = message_id = sent.message_id
            if (turn := current_turn()) is not None:
                await retry_forever(lambda: self.inbox.save_placeholder(turn.update, message_id))
            self.due_at = self.clock()
            return
        await self.bot.edit_message_text(
            html, to.chat_id, state.placeholder_id, rate_limit_args=OPTIONAL
        )
        self.shown, self.due_at = html, self.clock() + EDIT_SECONDS
