"""Handle common updates: commands, texts, edits, groups. No message is ignored.

The commands are shown in Telegram's menu, in every language.
"""

from collections.abc import Sequence
from typing import Final

from telegram import BotCommand, Update
from telegram.ext import MessageHandler, filters

from agent.i18n import ENGLISH, languages, translate, use_language
from bot.telegram.connection import AnyApplication, until_reached
from bot.telegram.conversation import AnyHandler, Conversation, calling, on_command
from bot.telegram.messages import TYPED, destination, is_addressed, message_of, people_of

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


def all_handlers(talk: Conversation, further: Sequence[AnyHandler] = ()) -> list[AnyHandler]:
    """Return every handler, with the `further` ones of other commands.

    The first that fits an update takes it; the last of `further` may take any button.
    """
    new = filters.UpdateType.MESSAGE
    words = filters.TEXT | filters.CAPTION
    edited = filters.UpdateType.EDITED_MESSAGE & filters.TEXT
    return [
        on_command(talk, "help", _help),
        on_command(talk, "new", _forget_conversation),
        on_command(talk, "stop", _stop),
        on_command(talk, PRIVATE_COMMANDS, _say_where, ~filters.ChatType.PRIVATE),
        *further,
        MessageHandler(TYPED & filters.COMMAND, calling(talk, _say_why_unanswered)),
        MessageHandler(new & words, calling(talk, Conversation.answer_text)),
        MessageHandler(filters.StatusUpdate.MIGRATE, calling(talk, _migrate)),
        MessageHandler(new & ~SERVICE, calling(talk, _say_why_unanswered)),
        MessageHandler(edited, calling(talk, Conversation.answer_edit)),
    ]


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
