"""Show the progress of an answer: a typing indicator, and drafts.

In a private chat a draft is not a message: Telegram shows it for 30 s, and removes it when the bot
sends anything. No draft is sent after the answer.

Groups have no drafts. The bot sends a placeholder ("…") there, stores its id, and then edits it
until it is the answer. A crash may leave a placeholder, but never a second answer.
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

from agent.engine.parsing import CurrentDraft
from agent.turn import describe_progress
from bot.telegram.connection import AnyBot
from bot.telegram.rate_limit import Priority, retry_seconds
from bot.telegram.render import split_messages
from bot.turn import Destination, Turn

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.5
"""Seconds between typing indicators; Telegram hides one after 5 seconds."""
DRAFT_SECONDS: Final = 0.5
"""Seconds between Telegram's confirmation of a draft and the next draft."""
REFRESH_SECONDS: Final = 20.0
"""Seconds after which an unchanged draft is sent again; Telegram removes it after 30."""
POLL_SECONDS: Final = 0.15
"""Seconds between checks for a new draft."""
PRIVATE_GRACE_SECONDS: Final = 2.0
"""Seconds that an answer in a private chat waits for a progress request to end."""
EDIT_SECONDS: Final = 5.0
"""Seconds between edits in a group: 12 a minute, of the 20 messages that Telegram allows there."""
GROUP_DELAY_SECONDS: Final = 2.0
"""Seconds before a group sees a draft; a quicker answer is sent without a placeholder."""
PLACEHOLDER: Final = "…"
SKIP_IF_LIMITED: Final[Priority] = "optional"


@dataclass(frozen=True, slots=True)
class Progress:
    """Shows the progress of answers."""

    bot: AnyBot
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """The tasks that still wait for the response to their last request."""


@asynccontextmanager
async def show_progress(
    progress: Progress, turn: Turn, to: Destination
) -> AsyncIterator[CurrentDraft]:
    """Show a typing indicator, or the draft that is yielded, until the block ends."""
    draft = CurrentDraft(describe_progress)
    shown = _ShownProgress(progress, turn, to, draft)
    task = asyncio.create_task(shown.run())
    progress.tasks.add(task)
    task.add_done_callback(progress.tasks.discard)
    try:
        yield draft
    finally:
        shown.is_over.set()
        # Requests are not cancelled. In a group, wait until the last one has ended: a late edit
        # would overwrite the answer.
        grace: float | None = PRIVATE_GRACE_SECONDS
        if to.is_group:
            grace = None
        await asyncio.wait([task], timeout=grace)


class _ShownProgress:
    """The progress of one answer, as its chat sees it.

    Drafts in groups are skipped if the rate limit would delay them. If Telegram asks to wait, no
    progress is shown in the chat for that time.
    """

    def __init__(
        self, progress: Progress, turn: Turn, to: Destination, draft: CurrentDraft
    ) -> None:
        self.bot = progress.bot
        self.clock = get_running_loop().time
        self.to = to
        self.turn = turn
        self.draft = draft
        self.due_at = self.clock()
        """The time of the next draft; infinity during a request, and after it if it failed."""
        if to.is_group:
            self.due_at += GROUP_DELAY_SECONDS
        self.shown_html = ""
        self.shown_at = self.typed_at = -inf
        self.is_over = asyncio.Event()

    async def run(self) -> None:
        """Show drafts and typing indicators until the answer is ready."""
        while not self.is_over.is_set():
            try:
                await self._show_if_due()
            except RetryAfter as error:
                # A future `typed_at` pauses the typing indicator, too.
                self.due_at = self.typed_at = self.clock() + retry_seconds(error)
            except TelegramError as error:
                log.debug("The progress of an answer was not shown: %s", error)
                self.shown_html = ""
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self.is_over.wait()

    async def _show_if_due(self) -> None:
        now = self.clock()
        html = ""
        if now >= self.due_at:
            html = self._find_new_draft(now)
        if html:
            # Reset on success only: a failed draft may have arrived, or be unsupported.
            self.due_at = inf
            if self.to.is_group:
                await self._edit_placeholder(html)
            else:
                await self._send_draft(html)
        elif not self.shown_html and now - self.typed_at >= TYPING_SECONDS:
            self.typed_at = now
            await self.bot.send_chat_action(
                self.to.chat_id, ChatAction.TYPING, message_thread_id=self.to.thread_id
            )

    def _find_new_draft(self, now: float) -> str:
        """Return the draft to show, the old one if it would expire; empty if there is none."""
        # Only the first message of a long answer is shown as a draft.
        html = "".join(split_messages(self.draft.text())[:1])
        if html not in ("", self.shown_html):
            return html
        is_expiring = now - self.shown_at >= REFRESH_SECONDS
        if is_expiring and not self.to.is_group:
            return self.shown_html
        return ""

    async def _send_draft(self, html: str) -> None:
        await self.bot.send_message_draft(
            self.to.chat_id,
            self.turn.id,
            html,
            message_thread_id=self.to.thread_id,
            api_kwargs={"can_stop": True},  # shows a Stop button
        )
        self.shown_html = html
        self.shown_at = self.clock()
        self.due_at = self.shown_at + DRAFT_SECONDS

    async def _edit_placeholder(self, html: str) -> None:
        """Show a draft in the placeholder. The first call only sends the placeholder."""
        to, turn = self.to, self.turn
        # If another process has taken over the turn, the placeholder may be its final answer.
        if not await turn.hold.is_current():
            self.is_over.set()
            return
        if turn.placeholder_id is None:
            await self._send_placeholder()
            return
        await self.bot.edit_message_text(
            html, to.chat_id, turn.placeholder_id, rate_limit_args=SKIP_IF_LIMITED
        )
        self.shown_html = html
        self.due_at = self.clock() + EDIT_SECONDS

    async def _send_placeholder(self) -> None:
        """Send the placeholder; store its id before it shows a part of the answer."""
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
