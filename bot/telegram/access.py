"""Who is let in: everybody who is not blocked, or only whom an admin allowed."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Literal

from telegram import Bot, Update, User
from telegram.constants import ChatType

from agent import lengths
from agent.engine.errors import or_else
from agent.i18n import say, speaking
from agent.markdown import visible
from agent.repositories import Access as Decided
from bot.retries import retry_briefly
from bot.telegram.buttons import acknowledge, answer_inline
from bot.telegram.conversation import Conversation, is_addressed
from bot.telegram.sender import Button, Destination, Rows
from bot.telegram.settings import spoken_by

log = logging.getLogger(__name__)

Entry = Literal["welcome", "blocked", "stranger", "first_time", "unknown"]
"""A stranger is somebody no admin has decided on; the first time, admins are asked to. Unknown:
the database did not say."""

NOTED_AGAIN: Final = timedelta(hours=1)
MOST_NOTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Access:
    """Decides for every update whether it is answered, and keeps who wrote.

    Admins always are. Whoever is blocked is never answered. With `allow_list` nobody else is, save
    whom an admin allowed; strangers get their own id to give to an admin, in a group only if they
    address the bot. When the database does not say who somebody is, they are let in without
    `allow_list`, and asked to come back in a moment with it.
    """

    talk: Conversation
    admin_ids: Collection[int] = ()
    allow_list: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _noted: OrderedDict[tuple[int, bool], datetime] = field(default_factory=OrderedDict)
    _noting: set[asyncio.Task[None]] = field(default_factory=set)

    async def lets_in(self, update: Update, bot: Bot) -> bool:
        """Whether an update is answered; whoever is not let in has been told, if they are to be."""
        user = update.effective_user
        if user is None:
            return not self.allow_list
        entry = await self._entry(update, user, bot)
        if entry == "welcome":
            self._note(update, user)
            return True
        if entry == "blocked":
            log.info("Person %s is blocked: update %s is left alone", user.id, update.update_id)
            return False
        if entry != "unknown":
            self._note(update, user)
        if entry == "first_time" and not user.is_bot:  # an account that many write through
            await self._ask_admins(user)
        await self._turn_away(update, user, bot, entry)
        return False

    async def _entry(self, update: Update, user: User, bot: Bot) -> Entry:
        """Return who somebody is."""
        if user.id in self.admin_ids:
            return "welcome"
        if not self.allow_list:
            return await self._among_all(user.id)
        read = partial(self._among_allowed, user.id, speaks=_speaks_to(update, bot))
        what = f"Whether person {user.id} is allowed could not be read"
        unknown: Entry = "unknown"
        return await or_else(read, unknown, what)

    async def _known(self, user_id: int) -> Decided | None:
        """What an admin decided of somebody; None if nothing."""
        return await retry_briefly(partial(self.talk.repositories.people.access, user_id))

    async def _among_all(self, user_id: int) -> Entry:
        what = f"Whether person {user_id} is blocked could not be read; letting in"
        known = await or_else(partial(self._known, user_id), None, what)
        return "blocked" if known == "blocked" else "welcome"

    async def _among_allowed(self, user_id: int, *, speaks: bool) -> Entry:
        access = await self._known(user_id)
        if access is not None:
            return "welcome" if access == "allowed" else "blocked"
        people, today = self.talk.repositories.people, self.now().date()
        first = speaks and await people.introduced(user_id, today)
        return "first_time" if first else "stranger"

    async def _ask_admins(self, user: User) -> None:
        name = shown_name(user.full_name or "")  # Telegram lets a name be empty
        for admin_id in sorted(self.admin_ids):
            with speaking(await spoken_by(self.talk, admin_id)):
                words = say("asks_to_be_let_in", id=user.id, name=name)
                await self.talk.sender.send(Destination(admin_id), words, decision(user.id))

    async def _turn_away(self, update: Update, user: User, bot: Bot, entry: Entry) -> None:
        away = say("access_unknown" if entry == "unknown" else "not_let_in", id=user.id)
        if update.inline_query:
            await answer_inline(update.inline_query)
        elif update.callback_query:
            await acknowledge(update.callback_query, away)
        elif _speaks_to(update, bot):
            await self.talk.say(update, away)

    def _note(self, update: Update, user: User) -> None:
        """Keep that somebody wrote, in the background: once an hour is enough."""
        chat, now = update.effective_chat, self.now()
        private = chat.id if chat is not None and chat.type == ChatType.PRIVATE else None
        # Whoever was seen in a group has not shown their private chat yet.
        seen = user.id, private is not None
        last = self._noted.get(seen)
        if last is not None and now - last < NOTED_AGAIN:
            return
        self._noted[seen] = now
        self._noted.move_to_end(seen)
        while len(self._noted) > MOST_NOTED:
            self._noted.popitem(last=False)
        seeing = self.talk.repositories.people.seen(user.id, private, now)
        task = asyncio.create_task(self._keep(seeing, seen))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def close(self) -> None:
        """Wait until it is kept who wrote."""
        await asyncio.gather(*self._noting)

    async def _keep(self, seeing: Awaitable[None], seen: tuple[int, bool]) -> None:
        try:
            await seeing
        except Exception as error:
            log.warning("That person %s wrote was not kept: %s", seen[0], type(error).__name__)
            self._noted.pop(seen, None)


def shown_name(name: str) -> str:
    """Return a name that somebody gave themselves as code: cut, on one line, letters alone.

    So it can neither pass for another line of a message or for an id, nor turn its order round.
    """
    shown = " ".join(visible(name).replace("`", "").split())
    return f"`{shown[: lengths.NAME]}`" if shown else "–"


def decision(user_id: int) -> Rows:
    """The buttons with which an admin decides on somebody."""
    allow, block = f"a:{user_id}:allow", f"a:{user_id}:block"
    return ((Button(say("allow_button"), allow), Button(say("block_button"), block)),)


def _speaks_to(update: Update, bot: Bot) -> bool:
    """Whether somebody says something to the bot, and does not only press a button."""
    message = update.message or update.edited_message
    return message is not None and is_addressed(message, bot)
