"""Parse stored updates, check that their users have access, and pass them to the handlers."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from telegram import Update, User
from telegram.ext import filters

from agent import size_limits
from agent.i18n import translate, use_language
from agent.markdown import strip_invisible
from bot.question import Destination
from bot.telegram.buttons import acknowledge, answer_inline_query
from bot.telegram.connection import AnyBot
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.messages import is_addressed, written_message
from bot.telegram.sender import Button
from bot.updates.bursts import STOPPED, as_int, chat_of, section
from db.repositories.inbox import Payload

log = logging.getLogger(__name__)


class UnreadableUpdate(Exception):
    """The library cannot parse an update: a required field is missing or malformed."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Passes an update to the first of the `handlers` that accepts it, if its user has access.

    Admins always have access, blocked users never. With `allow_list`, other users have access only
    if an admin allowed them. A user without access gets their id, to give to an admin; in a group
    only if they address the bot.
    """

    bot: AnyBot
    conversation: Conversation
    handlers: Sequence[AnyHandler]
    admin_ids: Collection[int] = ()
    allow_list: bool = False

    async def handle(self, payload: Payload) -> None:
        """Handle an update in the language of its user.

        Raises:
            UnreadableUpdate: the library cannot parse the update.
            Exception: the handler failed.
        """
        if STOPPED in payload:  # the library does not know this kind of update
            await self._stop_draft(payload)
            return
        update = self.parse(payload)
        if not await self._check_access(update):
            return
        for handler in self.handlers:
            if handler.check_update(update):
                await handler.callback(update, self.conversation)
                return

    async def _stop_draft(self, payload: Payload) -> None:
        """Stop the turn of a draft. Only the user who asked sees the Stop button."""
        turn_id = as_int(section(payload, STOPPED).get("draft_id"))
        await self.conversation.turns.running.stop_everywhere(chat_id=chat_of(payload), id=turn_id)

    def parse(self, payload: Payload) -> Update:
        """Return a payload as an update of the library.

        Raises:
            UnreadableUpdate: the library cannot parse the payload.
        """
        try:
            return Update.de_json(dict(payload), self.bot)
        except Exception as error:
            raise UnreadableUpdate(type(error).__name__) from None

    def is_readable(self, payload: Payload) -> bool:
        """Return whether the library can parse a payload."""
        try:
            self.parse(payload)
        except UnreadableUpdate:
            return False
        return True

    async def give_up(self, payload: Payload, error: str) -> None:
        """Notify the user that their update was set aside.

        If it cannot be parsed, do so only in a private chat: it may not be meant for the bot.
        """
        conversation = self.conversation
        if not self.is_readable(payload):
            chat_id = chat_of(payload)
            if chat_id > 0:
                with use_language(await conversation.load_language(chat_id)):
                    await conversation.sender.send(Destination(chat_id), translate("set_aside"))
            return
        update = self.parse(payload)
        if update.effective_message:
            await conversation.detect_and_store_language(update)
            text = update.effective_message.text or ""
            await conversation.turns.give_up(conversation.build_question(update, text), error)

    async def _check_access(self, update: Update) -> bool:
        """Return whether to answer an update; notify a user who has no access.

        This also records that the chat can be reached.
        """
        user, chats = update.effective_user, self.conversation.repositories.chats
        if update.effective_chat:
            await self.conversation.sender.record_reachable(update.effective_chat.id)
        if filters.StatusUpdate.MIGRATE.check_update(update):
            return True
        await self.conversation.detect_and_store_language(update)
        if user is None or user.id in self.admin_ids:
            return user is not None or not self.allow_list
        access = await chats.find_access(user.id)  # None if no admin has decided
        if access == "blocked":
            log.info("User %s is blocked: update %s is ignored", user.id, update.update_id)
            return False
        if access is not None or not self.allow_list:
            return True
        await self._turn_away(update, user)
        return False

    async def _ask_admins(self, user: User) -> None:
        """Ask every admin whether to give a user access."""
        for admin_id in sorted(self.admin_ids):
            with use_language(await self.conversation.load_language(admin_id)):
                text = translate("asks_to_be_let_in", id=user.id, name=_name_as_code(user))
                allow = Button(translate("allow_button"), f"a:{user.id}:allow")
                block = Button(translate("block_button"), f"a:{user.id}:block")
            await self.conversation.sender.send(Destination(admin_id), text, ((allow, block),))

    async def _turn_away(self, update: Update, user: User) -> None:
        """Tell a user that they have no access; if they write to the bot, ask the admins."""
        text = translate("not_let_in", id=user.id)
        message = written_message(update)
        if update.inline_query:
            await answer_inline_query(update.inline_query)
        elif update.callback_query:
            await acknowledge(update.callback_query, text)
        elif message is not None and is_addressed(message):
            # Many people may write through the account of a bot. `mark_introduced` is true once
            # per user, so admins are asked once.
            chats = self.conversation.repositories.chats
            if not user.is_bot and await chats.mark_introduced(user.id):
                await self._ask_admins(user)
            await self.conversation.reply(update, text)


def _name_as_code(user: User) -> str:
    """Return the name of a user as code, shortened, on one line; a dash if it is empty.

    As code it cannot imitate other lines of the message, and cannot reverse the text direction.
    """
    name = " ".join(strip_invisible(user.full_name or "").replace("`", "").split())
    return f"`{name[: size_limits.NAME_CHARS]}`" if name else "–"
