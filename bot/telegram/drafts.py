"""Signs of life while an answer forms: "typing", and in private chats a draft of the answer.

A draft is no message: Telegram shows it for 30 s, and takes it away when the bot sends anything.
Nothing of it is a step of a turn, and none is sent once the answer is.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from telegram import Bot
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter, TelegramError

from agent.engine.run import ShowDraft
from bot.telegram.rate_limit import Clock
from bot.telegram.render import split_messages
from bot.telegram.sender import Destination

log = logging.getLogger(__name__)

TYPING_SECONDS: Final = 4.5
"""How often "typing" is shown again; Telegram hides it after 5 seconds."""
DRAFT_SECONDS: Final = 0.6
"""How long a draft stands before the next one: fewer than two a second."""
KEPT_SECONDS: Final = 20.0
"""How long a draft stands before it is shown again; Telegram takes it away after 30 seconds."""
LOOK_SECONDS: Final = 0.15
"""How often it is looked whether there is something new to show."""
TYPING_LATE_SECONDS: Final = 0.2
"""How long an answer waits for "typing" to arrive before it, which would be shown after it."""
DRAFT_LATE_SECONDS: Final = 2.0
"""How long it waits for a draft, which would stand below it for 30 seconds."""


@dataclass(slots=True)
class Forming:
    """An answer that forms in a chat: what makes its newest draft, and what of it is shown."""

    to: Destination
    draft_id: int
    draft: Callable[[], str] | None = None
    shown: str = ""
    shown_at: float = float("-inf")
    typed_at: float = float("-inf")
    is_drafted: bool = True
    is_drafting: bool = False
    is_over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def show(self, draft: Callable[[], str]) -> None:
        """Show this from now on."""
        self.draft = draft
        self.news.set()

    def end(self) -> None:
        """Show nothing any more."""
        self.is_over = True
        self.news.set()


@dataclass(slots=True)
class Drafts:
    """Shows that answers form; a server that knows no drafts is remembered, and not asked again.

    A chat in which Telegram asks to wait is left alone for so long, the others are not.
    """

    bot: Bot
    clock: Clock = time.monotonic
    are_known: bool = True
    showing: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def forming(self, to: Destination, draft_id: int) -> AsyncIterator[ShowDraft | None]:
        """Show that an answer forms until the block ends; yields what takes its drafts.

        A request is never cut off, at most left behind: httpcore loses a connection of its pool for
        ever when a request is cancelled that was just given it.
        """
        is_private = to.chat_id > 0
        forming = Forming(to, draft_id, is_drafted=is_private)
        task = asyncio.create_task(self._until_over(forming))
        self.showing.add(task)
        task.add_done_callback(self.showing.discard)
        try:
            yield forming.show if is_private and self.are_known else None
        finally:
            forming.end()
            late = DRAFT_LATE_SECONDS if forming.is_drafting else TYPING_LATE_SECONDS
            await asyncio.wait([task], timeout=late)

    async def _until_over(self, forming: Forming) -> None:
        while not forming.is_over:
            forming.news.clear()
            await self._show(forming)
            seconds = LOOK_SECONDS if forming.draft and forming.is_drafted else TYPING_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await forming.news.wait()

    async def _show(self, forming: Forming) -> None:
        """Show what is due: a new draft, the same once more, or that somebody types."""
        stands = self.clock() - forming.shown_at
        if forming.draft and forming.is_drafted and self.are_known and stands >= DRAFT_SECONDS:
            html = next(iter(split_messages(forming.draft())), "") or forming.shown
            if html and (html != forming.shown or stands >= KEPT_SECONDS):
                forming.is_drafting = True
                await self._request(forming, self._draft(forming, html))
                forming.is_drafting = False
                return
        if not forming.shown and self.clock() - forming.typed_at >= TYPING_SECONDS:
            forming.typed_at = self.clock()
            await self._request(forming, self._typing(forming.to))

    async def _draft(self, forming: Forming, html: str) -> None:
        forming.shown_at = self.clock()
        try:
            await self.bot.send_message_draft(
                forming.to.chat_id,
                forming.draft_id,
                html,
                message_thread_id=forming.to.thread_id,
                parse_mode=ParseMode.HTML,
                api_kwargs={"can_stop": True},
            )
        except InvalidToken:  # what the library makes of a 404: no such method
            self.are_known = False
            log.info("This server of Telegram's Bot API knows no drafts")
        else:
            forming.shown = html

    async def _typing(self, to: Destination) -> None:
        await self.bot.send_chat_action(
            to.chat_id, ChatAction.TYPING, message_thread_id=to.thread_id
        )

    async def _request(self, forming: Forming, request: Awaitable[None]) -> None:
        try:
            await request
        except RetryAfter as error:
            told = error.retry_after
            seconds = told.total_seconds() if isinstance(told, timedelta) else told
            forming.shown_at = forming.typed_at = self.clock() + seconds
        except (BadRequest, Forbidden) as error:
            log.debug("A draft was refused: %s", error)
            forming.is_drafted, forming.shown = False, ""
        except TelegramError as error:
            log.debug("That an answer forms was not shown: %s", error)
