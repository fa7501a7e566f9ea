"""Let users in: everybody who is not blocked, or only those that an admin allowed."""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from telegram import Update, User

from agent import lengths
from agent.i18n import translate, use_language
from agent.markdown import visible
from bot.outgoing import Button, ButtonRows, Destination
from bot.telegram.buttons import acknowledge, answer_inline
from bot.telegram.conversation import Conversation
from bot.telegram.messages import is_addressed
from bot.telegram.settings import spoken_by

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Decides for every update whether it is answered.

    Admins are always answered, blocked users never. With `allow_list` other users are answered only
    if an admin allowed them; strangers get their id to give to an admin, in a group only if they
    address the bot.
    """

    conversation: Conversation
    admin_ids: Collection[int] = ()
    allow_list: bool = False

    async def lets_in(self, update: Update) -> bool:
        """Return whether to answer an update; tell those who are not let in."""
        user, chats = update.effective_user, self.conversation.repositories.chats
        if user is None:
            return not self.allow_list
        if user.id in self.admin_ids:
            return True
        decided = await chats.access(user.id)
        if decided == "blocked":
            log.info("User %s is blocked: update %s is ignored", user.id, update.update_id)
            return False
        if decided is not None or not self.allow_list:
            return True
        # Many people may write through the account of a bot.
        may_ask = speaks_to_bot(update) and not user.is_bot
        if may_ask and await chats.introduced(user.id):
            await self._ask_admins(user)
        await self._turn_away(update, user)
        return False

    async def _ask_admins(self, user: User) -> None:
        name = shown_name(user.full_name or "")  # Telegram lets a name be empty
        for admin_id in sorted(self.admin_ids):
            with use_language(await spoken_by(self.conversation, admin_id)):
                words = translate("asks_to_be_let_in", id=user.id, name=name)
                await self.conversation.sender.send(Destination(admin_id), words, decision(user.id))

    async def _turn_away(self, update: Update, user: User) -> None:
        words = translate("not_let_in", id=user.id)
        if update.inline_query:
            await answer_inline(update.inline_query)
        elif update.callback_query:
            await acknowledge(update.callback_query, words)
        elif speaks_to_bot(update):
            await self.conversation.reply(update, words)


def shown_name(name: str) -> str:
    """Return a name that a user gave themselves as code, cut, on one line.

    So it can neither pass for another line of a message or for an id, nor reverse its order.
    """
    shown = " ".join(visible(name).replace("`", "").split())
    return f"`{shown[: lengths.NAME]}`" if shown else "–"


def decision(user_id: int) -> ButtonRows:
    """Return the buttons with which an admin decides on a user."""
    allow, block = f"a:{user_id}:allow", f"a:{user_id}:block"
    return ((Button(translate("allow_button"), allow), Button(translate("block_button"), block)),)


def speaks_to_bot(update: Update) -> bool:
    """Return whether an update is a message to the bot, not only a press."""
    message = update.message or update.edited_message
    return message is not None and is_addressed(message)
