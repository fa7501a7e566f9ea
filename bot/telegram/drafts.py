"""Show that an answer forms: "typing", and drafts of the answer.

In a private chat a draft is no message: Telegram shows it for 30 s, and removes it when the bot
sends anything. No draft is sent after the answer.

Groups have no drafts. There a message of three dots is sent, its id stored, and only then it is
edited until it is the answer: a kill in between may leave three dots, but never two answers.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter, TelegramError
from telegram.ext import ExtBot

from agent.engine.run import ShowDraft
from bot.outgoing import Destination
from bot.pending import Placeholder, pending_turn
from bot.retries import retry_forever
from bot.telegram.rate_limit import Clock, Optional, seconds_of
from bot.telegram.render import split_messages
from bot.telegram.sender import NO_PREVIEW, reply_parameters
from db.repositories.inbox import Inbox

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.5
"""Seconds after which "typing" is shown again; Telegram hides it after 5 seconds."""
DRAFT_SECONDS: Final = 0.5
"""The time between two drafts, from when Telegram has the first."""
REFRESH_SECONDS: Final = 20.0
"""Seconds after which an unchanged draft is sent again; Telegram removes it after 30."""
POLL_SECONDS: Final = 0.15
"""Seconds between two looks for a new draft."""
TYPING_LATE_SECONDS: Final = 0.2
"""Seconds that an answer waits for a "typing" request, which would be shown after it."""
LATE_SECONDS: Final = (2.0, None)
"""Seconds that an answer waits for a draft request, in private chats and in groups."""
EDIT_SECONDS: Final = 3.0
"""The time between two edits in a group."""
QUICK_SECONDS: Final = 2.0
"""Seconds before a group sees a draft: until then it waits for the answer."""
PLACEHOLDER: Final = "…"
OPTIONAL: Final[Optional] = "optional"


@dataclass(slots=True)
class Forming:
    """An answer that forms in a chat: the source of its newest draft, and the part shown."""

    to: Destination
    draft_id: int
    placeholder: Placeholder
    due_at: float
    """The time at which the next draft may be shown."""
    has_drafts: bool
    draft: Callable[[], str] | None = None
    shown: str = ""
    shown_at: float = float("-inf")
    typed_at: float = float("-inf")
    is_drafting: bool = False
    is_over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def show(self, draft: Callable[[], str]) -> None:
        """Show this draft from now on."""
        self.draft = draft
        self.news.set()

    def end(self) -> None:
        """Show no more drafts."""
        self.is_over = True
        self.news.set()


@dataclass(slots=True)
class Drafts:
    """Shows that answers form.

    A server that knows no drafts is not asked again. A chat in which Telegram asks to wait is left
    alone for so long. The id of a group's message is stored in the `inbox` before anything of the
    answer is in it; such messages leave half of the rate limit to answers.
    """

    bot: ExtBot[Optional]
    inbox: Inbox | None = None
    clock: Clock = time.monotonic
    are_known: bool = True
    showing: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def forming(
        self, to: Destination, draft_id: int, placeholder: Placeholder
    ) -> AsyncIterator[ShowDraft | None]:
        """Show that an answer forms until the block ends; yield what shows a draft.

        A request is never cut off, at most left behind. In a group none is left behind: there it
        would change the answer.
        """
        due_at = self.clock() + (QUICK_SECONDS if to.is_group else 0)
        forming = Forming(to, draft_id, placeholder, due_at, to.is_group or self.are_known)
        task = asyncio.create_task(self._until_over(forming))
        self.showing.add(task)
        task.add_done_callback(self.showing.discard)
        try:
            yield forming.show if forming.has_drafts else None
        finally:
            forming.end()
            late = LATE_SECONDS[to.is_group] if forming.is_drafting else TYPING_LATE_SECONDS
            await asyncio.wait([task], timeout=late)

    async def _until_over(self, forming: Forming) -> None:
        while not forming.is_over:
            forming.news.clear()
            try:
                await self._show(forming)
            except TelegramError as error:
                self._note(forming, error)
            forming.is_drafting = False
            seconds = POLL_SECONDS if forming.draft and forming.has_drafts else TYPING_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await forming.news.wait()

    async def _show(self, forming: Forming) -> None:
        """Show a draft or a typing indicator, if one is due."""
        now, to = self.clock(), forming.to
        if forming.draft and forming.has_drafts and now >= forming.due_at:
            html = next(iter(split_messages(forming.draft())), "") or forming.shown
            fades = not to.is_group and now - forming.shown_at >= REFRESH_SECONDS
            if html and (html != forming.shown or fades):
                forming.is_drafting = True
                await (self._edit if to.is_group else self._draft)(forming, html)
                return
        if not forming.shown and now - forming.typed_at >= TYPING_SECONDS:
            forming.typed_at = now
            await self.bot.send_chat_action(
                to.chat_id, ChatAction.TYPING, message_thread_id=to.thread_id
            )

    async def _draft(self, forming: Forming, html: str) -> None:
        try:
            await self.bot.send_message_draft(
                forming.to.chat_id,
                forming.draft_id,
                html,
                message_thread_id=forming.to.thread_id,
                parse_mode=ParseMode.HTML,
                api_kwargs={"can_stop": True},
            )
            forming.shown = html
        finally:
            forming.shown_at = self.clock()
            forming.due_at = forming.shown_at + DRAFT_SECONDS

    async def _edit(self, forming: Forming, html: str) -> None:
        """Edit the message that becomes the answer; send it first."""
        to, placeholder = forming.to, forming.placeholder
        if placeholder.message_id is None:
            sent = await self.bot.send_message(
                to.chat_id,
                PLACEHOLDER,
                message_thread_id=to.thread_id,
                reply_parameters=reply_parameters(to.reply_to),
                rate_limit_args=OPTIONAL,
            )
            placeholder.message_id = sent.message_id
            await self._store(sent.message_id)
            return
        await self.bot.edit_message_text(
            html,
            to.chat_id,
            placeholder.message_id,
            parse_mode=ParseMode.HTML,
            link_preview_options=NO_PREVIEW,
            rate_limit_args=OPTIONAL,
        )
        forming.shown, forming.due_at = html, self.clock() + EDIT_SECONDS

    async def _store(self, message_id: int) -> None:
        """Store the id of the message that becomes the answer of the current turn."""
        if (inbox := self.inbox) is not None and (turn := pending_turn()) is not None:
            await retry_forever(lambda: inbox.save_placeholder(turn.update, message_id))

    def _note(self, forming: Forming, error: TelegramError) -> None:
        """Note what an error means for the drafts that follow."""
        log.debug("A sign that an answer forms was not shown: %s", error)
        if isinstance(error, RetryAfter):
            forming.due_at = forming.typed_at = self.clock() + seconds_of(error)
        elif isinstance(error, InvalidToken) and forming.is_drafting:  # a 404: no such method
            self.are_known = forming.has_drafts = False
            log.info("This server of Telegram's Bot API knows no drafts")
        elif isinstance(error, BadRequest | Forbidden):
            forming.has_drafts, forming.shown = False, ""
        elif forming.is_drafting and forming.to.is_group:
            # Telegram may have sent or edited it: that is not done a second time.
            forming.has_drafts = False
