"""Make updates of stored payloads, and hand them to the handlers."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from telegram import Bot, Update
from telegram.ext import filters

from bot.telegram.access import Access
from bot.telegram.connection import AnyBot
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.settings import speak_with
from bot.updates.bursts import STOPPED, as_int, chat_of, message_in, section
from db.repositories.inbox import Payload


class UnreadableUpdate(Exception):
    """The library cannot read an update: something that it needs is missing or malformed."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Hands a stored update to the first of the `handlers` that takes it.

    Without `access` everybody is let in.
    """

    bot: AnyBot
    conversation: Conversation
    handlers: Sequence[AnyHandler]
    access: Access | None = None

    async def handle(self, payload: Payload) -> None:
        """Handle an update, in the language of its user and if they are let in; raise errors.

        Raises:
            UnreadableUpdate: the library cannot make an update of it.
        """
        if STOPPED in payload:  # the library does not know this kind of update
            await self._stop_draft(payload)
            return
        update = read(payload, self.bot)
        if await self._lets_in(update):
            takers = (handler for handler in self.handlers if handler.check_update(update))
            if handler := next(takers, None):
                await handler.callback(update, None)

    async def _stop_draft(self, payload: Payload) -> None:
        """Stop the turn of a draft; only the user who asked sees its button."""
        turn_id = as_int(section(payload, STOPPED).get("draft_id"))
        await self.conversation.turns.running.stop_everywhere(chat_id=chat_of(payload), id=turn_id)

    async def _lets_in(self, update: Update) -> bool:
        """Note that a chat can be reached, and return whether its update is answered."""
        if update.effective_chat:
            await self.conversation.sender.reachable(update.effective_chat.id)
        if filters.StatusUpdate.MIGRATE.check_update(update):
            return True
        await speak_with(self.conversation, update)
        return self.access is None or await self.access.lets_in(update)

    async def give_up(self, payload: Payload, error: str) -> None:
        """Tell the user that their update was set aside."""
        update = origin(payload, self.bot)
        if update is not None and update.effective_message:
            text = update.effective_message.text or ""
            await speak_with(self.conversation, update)
            await self.conversation.turns.give_up(
                self.conversation.build_question(update, text), error
            )

    def is_readable(self, payload: Payload) -> bool:
        """Return whether the library can make an update of a payload."""
        try:
            read(payload, self.bot)
        except UnreadableUpdate:
            return False
        return True


def read(payload: Payload, bot: Bot) -> Update:
    """Return the update of a payload.

    Raises:
        UnreadableUpdate: the library cannot make one of it.
    """
    try:
        return Update.de_json(dict(payload), bot)
    except Exception as error:
        raise UnreadableUpdate(type(error).__name__) from None


def origin(payload: Payload, bot: Bot) -> Update | None:
    """Return an update with at least its chat and user, to say there that it failed.

    Return None for an unreadable update that nobody wrote to the bot alone.
    """
    with suppress(UnreadableUpdate):
        return read(payload, bot)
    sender, chat_id = section(message_in(payload), "from"), chat_of(payload)
    if chat_id <= 0 or sender.get("is_bot") is not False:
        return None
    chat = {"id": chat_id, "type": "private"}
    person = {"id": chat_id, "is_bot": False, "first_name": ""}
    message = {"message_id": 0, "date": 0, "chat": chat, "from": person}
    return Update.de_json({"update_id": payload["update_id"], "message": message}, bot)
