"""Handle common updates: commands, texts, edits, groups. No message is ignored.

The commands are shown in Telegram's menu, in every language.
"""

import logging
from collections.abc import Sequence
from typing import Final

from telegram import BotCommand, Update
from telegram.ext import (
    ApplicationHandlerStop,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.i18n import ENGLISH, languages, translate, use_language
from bot.telegram.access import Access
from bot.telegram.connection import AnyApplication
from bot.telegram.conversation import AnyHandler, Context, Conversation, calling, on_command
from bot.telegram.messages import TYPED, destination, is_addressed, message_of, people_of
from bot.telegram.settings import speak_with
from bot.updates.accept import until_reached
from bot.updates.bursts import STOPPED, as_int, chat_of, section

log = logging.getLogger(__name__)

COMMANDS: Final = (
    "ask quotes find stop new taste cellar settings privacy export forget help".split()
)
PRIVATE_COMMANDS: Final = "taste cellar settings export forget".split()
SERVICE: Final = (
    filters.StatusUpdate.ALL
    | filters.BOOST_ADDED
    | filters.GIVEAWAY_WINNERS
    | filters.PASSPORT_DATA
    | filters.SUCCESSFUL_PAYMENT
)
"""Messages by Telegram about a chat, not written by a user."""


class StopPressed(TypeHandler[Update, Context, None]):
    """Takes the updates of a press on the button under a draft."""

    def check_update(self, update: object) -> bool:
        """Return whether an update is one."""
        return isinstance(update, Update) and STOPPED in update.api_kwargs


def register(
    application: AnyApplication,
    talk: Conversation,
    access: Access | None = None,
    further: Sequence[AnyHandler] = (),
) -> None:
    """Add every handler to `application`, with the `further` ones of other commands.

    The first that fits an update takes it; the last of `further` may take any button. Without
    `access` everybody is let in.
    """

    async def let_in(update: Update, context: Context) -> None:
        """Run before any other handler: note that the chat can be reached, and check access."""
        if update.effective_chat:
            await talk.sender.reachable(update.effective_chat.id)
        if STOPPED in update.api_kwargs or filters.StatusUpdate.MIGRATE.check_update(update):
            return
        await speak_with(talk, update)
        if access is not None and not await access.lets_in(update):
            raise ApplicationHandlerStop

    async def failed(update: object, context: Context) -> None:
        """Log the error of a handler, and apologize to the user."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await talk.say(update, translate("apology"))

    new = filters.UpdateType.MESSAGE
    words = filters.TEXT | filters.CAPTION
    edited = filters.UpdateType.EDITED_MESSAGE & filters.TEXT
    application.add_handler(TypeHandler(Update, let_in), group=-1)
    application.add_handlers(
        [
            on_command(talk, "help", _help),
            on_command(talk, "new", _forget_conversation),
            on_command(talk, "stop", _stop),
            on_command(talk, PRIVATE_COMMANDS, _say_where, ~filters.ChatType.PRIVATE),
            StopPressed(Update, calling(talk, _stop_draft)),
            *further,
            MessageHandler(TYPED & filters.COMMAND, calling(talk, _say_why_unanswered)),
            MessageHandler(new & words, calling(talk, Conversation.answer_text)),
            MessageHandler(filters.StatusUpdate.MIGRATE, calling(talk, _migrate)),
            MessageHandler(new & ~SERVICE, calling(talk, _say_why_unanswered)),
            MessageHandler(edited, calling(talk, Conversation.answer_edit)),
        ]
    )
    application.add_error_handler(failed)


async def _help(talk: Conversation, update: Update) -> None:
    """Answer /help with the commands and examples of questions."""
    await talk.say(update, translate("help"))


async def _forget_conversation(talk: Conversation, update: Update) -> None:
    """Answer /new: forget the conversation of this chat."""
    to = destination(update)
    chat_id, thread = to.chat_id, to.thread_id or 0
    await talk.turns.running.stop_everywhere(chat_id=chat_id, thread_id=thread, is_forgotten=True)
    forgotten = await talk.repositories.messages.forget(chat_id, thread_id=thread)
    await talk.turns.safety.forget(chat_id)
    await talk.say(update, translate("forgotten" if forgotten else "nothing_to_forget"))


async def _stop(talk: Conversation, update: Update) -> None:
    """Answer /stop: stop the turn of this user; the part that is written is their answer."""
    (chat_id, user_id), thread = people_of(update), destination(update).thread_id or 0
    stop = talk.turns.running.stop_everywhere
    if not await stop(chat_id=chat_id, thread_id=thread, user_id=user_id):
        await talk.say(update, translate("nothing_to_stop"))


async def _stop_draft(talk: Conversation, update: Update) -> None:
    """Stop the turn of a draft; only the user who asked sees its button."""
    chat_id, draft = chat_of(update.api_kwargs), section(update.api_kwargs, STOPPED)
    turn_id = as_int(draft.get("draft_id"))
    await talk.turns.running.stop_everywhere(chat_id=chat_id, id=turn_id)


async def _say_where(talk: Conversation, update: Update) -> None:
    """Tell a user of a group to use a command where nobody else reads."""
    await talk.say(update, translate("only_in_private"))


async def _migrate(talk: Conversation, update: Update) -> None:
    """Move the conversation of a group that became a supergroup, with another id."""
    message = message_of(update)
    old = message.migrate_from_chat_id or message.chat.id
    new = message.migrate_to_chat_id or message.chat.id
    if old != new:
        await talk.repositories.chats.migrated(old, new)


async def _say_why_unanswered(talk: Conversation, update: Update) -> None:
    """Say why there is no answer to an unknown command, a sticker, a poll …

    In a crisis offer help instead; in a group stay silent unless the bot is addressed.
    """
    message = message_of(update)
    if not is_addressed(message):
        return
    words = message.text or message.caption or ""
    if not await talk.turns.offer_help(talk.build_question(update, words)):
        await talk.say(update, translate("unknown_command" if message.text else "text_only"))


async def show_commands(application: AnyApplication) -> None:
    """Set the menu of commands in every language.

    Raises:
        TokenRejected: Telegram does not know the token.
    """

    async def show() -> None:
        for language in languages():
            with use_language(language):
                menu = [BotCommand(name, translate(f"command_{name}")) for name in COMMANDS]
            # The English menu is for everybody whose language has none.
            code = None if language == ENGLISH else language
            await application.bot.set_my_commands(menu, language_code=code)

    await until_reached(show, "Showing the commands")
