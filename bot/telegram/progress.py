"""Show the progress of an answer: a typing indicator, and drafts.

In a private chat a draft is not a message. Telegram shows it for 30 s, and removes it when the bot
sends a message. No draft is sent after the answer.

In groups Telegram shows no drafts. There the bot sends a message as a placeholder ("…"), stores its
id, and edits it again and again until it is the answer. After a crash a placeholder may remain, but
there is never a second answer.
"""

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Final

from telegram.constants import ChatAction
from telegram.error import RetryAfter, TelegramError

from agent.engine.current_draft import CurrentDraft
from agent.turn import describe_progress
from bot.telegram.connection import AnyBot
from bot.telegram.rate_limit import Priority, retry_seconds
from bot.telegram.render import split_messages
from bot.turn import Destination, Turn

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.5
"""Seconds between typing indicators. Telegram hides each after 5 seconds."""
DRAFT_SECONDS: Final = 0.5
"""Seconds between Telegram's confirmation of a draft and the next draft."""
REFRESH_SECONDS: Final = 20.0
"""Seconds after which an unchanged draft is sent again. Telegram removes it after 30."""
POLL_SECONDS: Final = 0.15
"""Seconds between checks for a new draft."""
PRIVATE_GRACE_SECONDS: Final = 2.0
"""Seconds that an answer in a private chat waits at most for the last request of its progress."""
EDIT_SECONDS: Final = 5.0
"""Seconds between edits in a group: 12 a minute. Telegram allows 20 messages and edits there."""
GROUP_DELAY_SECONDS: Final = 2.0
"""Seconds before a group sees a draft. A quicker answer is sent without a placeholder."""
PLACEHOLDER: Final = "…"
SKIP_IF_LIMITED: Final[Priority] = "optional"
"""Tells the rate limit to drop a message instead of delaying it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Shows the progress of answers."""

    bot: AnyBot
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """The tasks that show progress, until Telegram has answered their last request."""


@asynccontextmanager
async def show_typing_or_drafts(
    progress: Progress, turn: Turn, to: Destination
) -> AsyncIterator[CurrentDraft]:
    """Show the progress of an answer until the block ends.

    Yield the draft that is shown. As long as it is empty, a typing indicator is shown.
    """
    draft = CurrentDraft(describe_progress)
    shown = _ShownProgress(progress, turn, to, draft)
    task = asyncio.create_task(shown.run())
    progress.tasks.add(task)
    task.add_done_callback(progress.tasks.discard)
    try:
        yield draft
    finally:
        shown.is_over.set()
        # The last request is not cancelled. In a group it must have ended before the answer is
        # sent, because a late edit would overwrite the answer.
        max_wait = None if to.is_group else PRIVATE_GRACE_SECONDS
        await asyncio.wait([task], timeout=max_wait)


class _ShownProgress:
    """The progress of one answer, as its chat sees it.

    Drafts in groups are skipped if the rate limit would delay them. If Telegram asks to wait, no
    progress is shown in the chat for that time.
    """

    def __init__(
        self,
        progress: Progress,
        turn: Turn,
        to: Destination,
        draft: CurrentDraft,
    ) -> None:
        self.bot = progress.bot
        self.clock = get_running_loop().time
        self.to = to
        self.turn = turn
        self.draft = draft
        self.due_at = self.clock()
        """The time of the next draft. It is infinite during a request, and after a failed one."""
        if to.is_group:
            self.due_at += GROUP_DELAY_SECONDS
        self.read_text = ""
        """The text of the draft when it was last read."""
        self.read_html = ""
        """The first message of that text, as HTML."""
        self.shown_html = ""
        """The draft that the chat sees."""
        self.shown_at = -inf
        """When that draft was sent."""
        self.typing_at = -inf
        """When the last typing indicator was sent."""
        self.is_over = asyncio.Event()

    async def run(self) -> None:
        """Show drafts and typing indicators until the answer is ready."""
        while not self.is_over.is_set():
            try:
                await self._show_if_due()
            except RetryAfter as error:
                # A `typing_at` in the future pauses the typing indicator, too.
                self.due_at = self.clock() + retry_seconds(error)
                self.typing_at = self.due_at
            except TelegramError as error:
                log.debug("The progress of an answer was not shown: %s", error)
                self.shown_html = ""
            # Wait until the next check, or until the answer is ready.
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self.is_over.wait()

    async def _show_if_due(self) -> None:
        """Send the draft if there is a new one and it is due, or else the typing indicator."""
        now = self.clock()
        if now >= self.due_at:
            html = self._draft_html()
            is_new = html != self.shown_html
            # A placeholder does not expire.
            is_old = now - self.shown_at >= REFRESH_SECONDS
            is_expiring = is_old and not self.to.is_group
            if html and (is_new or is_expiring):
                await self._show_draft(html)
                return
        is_typing_due = now - self.typing_at >= TYPING_SECONDS
        if is_typing_due and not self.shown_html:
            self.typing_at = now
            await self.bot.send_chat_action(
                self.to.chat_id, ChatAction.TYPING, message_thread_id=self.to.thread_id
            )

    def _draft_html(self) -> str:
        """Return the first message of the draft, or what is shown if the draft is empty."""
        text = self.draft.text()
        if text != self.read_text:
            self.read_text = text
            self.read_html = ""
            messages = split_messages(text)
            if messages:
                self.read_html = messages[0]
        return self.read_html or self.shown_html

    async def _show_draft(self, html: str) -> None:
        """Show a draft, and set the time of the next one."""
        # Only a success sets another time. After a failure no more drafts are sent: the draft may
        # have arrived all the same, or Telegram may not support drafts in this chat.
        self.due_at = inf
        if self.to.is_group:
            await self._edit_placeholder(html)
        else:
            await self._send_draft(html)

    async def _send_draft(self, html: str) -> None:
        """Show a draft in a private chat."""
        shows_stop_button = {"can_stop": True}
        await self.bot.send_message_draft(
            self.to.chat_id,
            self.turn.id,
            html,
            message_thread_id=self.to.thread_id,
            api_kwargs=shows_stop_button,
        )
        self.shown_html = html
        self.shown_at = self.clock()
        self.due_at = self.shown_at + DRAFT_SECONDS

    async def _edit_placeholder(self, html: str) -> None:
        """Show a draft in the placeholder. The first call only sends the placeholder."""
        # If another process has taken over the turn, it may have put the answer there already.
        if not await self.turn.hold.is_current():
            self.is_over.set()
            return
        if self.turn.placeholder_id is None:
            await self._send_placeholder()
            return
        await self.bot.edit_message_text(
            html,
            self.to.chat_id,
            self.turn.placeholder_id,
            rate_limit_args=SKIP_IF_LIMITED,
        )
        self.shown_html = html
        self.due_at = self.clock() + EDIT_SECONDS

    async def _send_placeholder(self) -> None:
        """Send the placeholder and store its id, before it shows a part of the answer.

        After a crash, the next try can then edit it instead of sending a second message.
        """
        sent = await self.bot.send_message(
            self.to.chat_id,
            PLACEHOLDER,
            message_thread_id=self.to.thread_id,
            reply_to_message_id=self.to.reply_to,
            rate_limit_args=SKIP_IF_LIMITED,
        )
        self.turn.placeholder_id = sent.message_id
        await self.turn.hold.save_placeholder(sent.message_id)
        self.due_at = self.clock()
