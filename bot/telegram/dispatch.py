"""Make updates of stored payloads, and hand them to the handlers."""

from contextlib import suppress
from dataclasses import dataclass

from telegram import Bot, Update
from telegram.ext import ApplicationHandlerStop

from bot.telegram.connection import AnyApplication
from bot.telegram.conversation import Conversation
from bot.telegram.settings import speak_with
from bot.updates.bursts import chat_of, message_in, section
from db.records import Payload


class UnreadableUpdate(Exception):
    """The library cannot read an update: something that it needs is missing or malformed."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Hands stored updates to the handlers of an application."""

    application: AnyApplication
    talk: Conversation

    async def handle(self, payload: Payload) -> None:
        """Hand an update to the first handler of each group that takes it; raise its errors.

        Raises:
            UnreadableUpdate: the library cannot make an update of it.
        """
        application = self.application
        update = read(payload, application.bot)
        for group in sorted(application.handlers):
            for handler in application.handlers[group]:
                check = handler.check_update(update)
                if check is None or check is False:
                    continue
                context = application.context_types.context.from_update(update, application)
                try:
                    await handler.handle_update(update, application, check, context)
                except ApplicationHandlerStop:
                    return
                break

    async def give_up(self, payload: Payload, error: str) -> None:
        """Tell the user that their update was set aside."""
        update = origin(payload, self.application.bot)
        if update is not None and update.effective_message:
            text = update.effective_message.text or ""
            await speak_with(self.talk, update)
            await self.talk.turns.give_up(self.talk.build_question(update, text), error)

    def is_readable(self, payload: Payload) -> bool:
        """Return whether the library can make an update of a payload."""
        try:
            read(payload, self.application.bot)
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
