"""Make updates of stored payloads, let their users in, and hand them to the handlers."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from telegram import Update, User
from telegram.ext import filters

from agent import size_limits
from agent.i18n import translate, use_language
from agent.markdown import strip_invisible
from bot.question import Destination
from bot.telegram.buttons import acknowledge, answer_inline
from bot.telegram.connection import AnyBot
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.messages import is_addressed, written_in
from bot.telegram.sender import Button
from bot.updates.bursts import STOPPED, as_int, chat_of, section
from db.repositories.inbox import Payload

log = logging.getLogger(__name__)


class UnreadableUpdate(Exception):
    """The library cannot read an update: something that it needs is missing or malformed."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Hands a stored update to the first of the `handlers` that takes it, if its user is let in.

    Admins are always answered, blocked users never. With `allow_list` other users are answered only
    if an admin allowed them; strangers get their id to give to an admin, in a group only if they
    address the bot.
    """

    bot: AnyBot
    conversation: Conversation
    handlers: Sequence[AnyHandler]
    admin_ids: Collection[int] = ()
    allow_list: bool = False

    async def handle(self, payload: Payload) -> None:
        """Handle an update in the language of its user; raise errors.

        Raises:
            UnreadableUpdate: the library cannot make an update of it.
        """
        if STOPPED in payload:  # the library does not know this kind of update
            await self._stop_draft(payload)
            return
        update = self.read(payload)
        if await self._lets_in(update):
            takers = (handler for handler in self.handlers if handler.check_update(update))
            if handler := next(takers, None):
                await handler.callback(update, self.conversation)

    async def _stop_draft(self, payload: Payload) -> None:
        """Stop the turn of a draft; only the user who asked sees its button."""
        turn_id = as_int(section(payload, STOPPED).get("draft_id"))
        await self.conversation.turns.running.stop_everywhere(chat_id=chat_of(payload), id=turn_id)

    def read(self, payload: Payload) -> Update:
        """Return the update of a payload.

        Raises:
            UnreadableUpdate: the library cannot make one of it.
        """
        try:
            return Update.de_json(dict(payload), self.bot)
        except Exception as error:
            raise UnreadableUpdate(type(error).__name__) from None

    def is_readable(self, payload: Payload) -> bool:
        """Return whether the library can make an update of a payload."""
        try:
            self.read(payload)
        except UnreadableUpdate:
            return False
        return True

    async def give_up(self, payload: Payload, error: str) -> None:
        """Tell the user that their update was set aside; if it cannot be read, in private only."""
        conversation = self.conversation
        if not self.is_readable(payload):
            if (chat_id := chat_of(payload)) > 0:
                with use_language(await conversation.language_of(chat_id)):
                    await conversation.sender.send(Destination(chat_id), translate("set_aside"))
            return
        update = self.read(payload)
        if update.effective_message:
            await conversation.choose_language(update)
            text = update.effective_message.text or ""
            await conversation.turns.give_up(conversation.build_question(update, text), error)

    async def _lets_in(self, update: Update) -> bool:
        """Note that a chat can be reached, and return whether to answer its update.

        Users who are not let in are told so.
        """
        user, chats = update.effective_user, self.conversation.repositories.chats
        if update.effective_chat:
            await self.conversation.sender.record_reachable(update.effective_chat.id)
        if filters.StatusUpdate.MIGRATE.check_update(update):
            return True
        await self.conversation.choose_language(update)
        if user is None or user.id in self.admin_ids:
            return user is not None or not self.allow_list
        decided = await chats.access(user.id)
        if decided == "blocked":
            log.info("User %s is blocked: update %s is ignored", user.id, update.update_id)
            return False
        if decided is not None or not self.allow_list:
            return True
        await self._turn_away(update, user)
        return False

    async def _ask_admins(self, user: User) -> None:
        """Ask every admin whether to let a user in."""
        for admin_id in sorted(self.admin_ids):
            with use_language(await self.conversation.language_of(admin_id)):
                text = translate("asks_to_be_let_in", id=user.id, name=_shown_name(user))
                allow = Button(translate("allow_button"), f"a:{user.id}:allow")
                block = Button(translate("block_button"), f"a:{user.id}:block")
            await self.conversation.sender.send(Destination(admin_id), text, ((allow, block),))

    async def _turn_away(self, update: Update, user: User) -> None:
        """Tell a stranger that they are not let in; ask admins if they write to the bot."""
        words, message = translate("not_let_in", id=user.id), written_in(update)
        if update.inline_query:
            await answer_inline(update.inline_query)
        elif update.callback_query:
            await acknowledge(update.callback_query, words)
        elif message is not None and is_addressed(message):
            # Many people may write through the account of a bot.
            if not user.is_bot and await self.conversation.repositories.chats.introduced(user.id):
                await self._ask_admins(user)
            await self.conversation.reply(update, words)


def _shown_name(user: User) -> str:
    """Return the name that a user gave themselves as code, cut, on one line.

    So it can neither pass for another line of a message or for an id, nor reverse its order.
    """
    shown = " ".join(strip_invisible(user.full_name or "").replace("`", "").split())
    return f"`{shown[: size_limits.NAME_CHARS]}`" if shown else "–"
