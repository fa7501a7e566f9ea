"""Handle common updates: commands, texts, edits, groups. No message is ignored.

The commands are shown in Telegram's menu, in every language; admins see theirs too.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeChat,
    ChatMemberBanned,
    ChatMemberLeft,
    Update,
)
from telegram.constants import ChatType
from telegram.error import TelegramError
from telegram.ext import (
    ApplicationHandlerStop,
    ChatMemberHandler,
    CommandHandler,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.i18n import ENGLISH, languages, translate, use_language
from bot.outgoing import Destination
from bot.telegram.access import Access
from bot.telegram.connection import AnyApplication
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import SENT, TYPED, destination, is_addressed, message_of, people_of
from bot.telegram.settings import speak_with
from bot.updates.accept import until_reached
from bot.updates.bursts import STOPPED, as_int, chat_of, section

log = logging.getLogger(__name__)

COMMANDS: Final = (
    "ask quotes find stop new taste cellar language settings privacy export forget help".split()
)
ADMIN_COMMANDS: Final = "stats trace allow block clearcare broadcast".split()
PRIVATE_COMMANDS: Final = "taste settings export forget".split()
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


@dataclass(frozen=True, slots=True)
class Handlers:
    """Handles every conversation; without `access` everybody is let in."""

    talk: Conversation
    access: Access | None = None

    def register(self, application: AnyApplication, further: Sequence[AnyHandler] = ()) -> None:
        """Add every handler to `application`, with the `further` ones of other commands.

        The first that fits an update takes it; the last of `further` may take any button.
        """
        new, talk = filters.UpdateType.MESSAGE, self.talk
        in_group = TYPED & ~filters.ChatType.PRIVATE
        words = filters.TEXT | filters.CAPTION
        edited = filters.UpdateType.EDITED_MESSAGE & filters.TEXT
        application.add_handlers(
            [
                CommandHandler("help", self.help, filters=TYPED),
                CommandHandler("new", self.new, filters=TYPED),
                CommandHandler("stop", self.stop, filters=TYPED),
                CommandHandler(PRIVATE_COMMANDS, self.only_in_private, filters=in_group),
                StopPressed(Update, self.stop_pressed),
                ChatMemberHandler(self.member, ChatMemberHandler.MY_CHAT_MEMBER),
                *further,
                MessageHandler(TYPED & filters.COMMAND, self.unanswerable),
                MessageHandler(new & words, talk.answer_text),
                MessageHandler(filters.StatusUpdate.MIGRATE, self.migrated),
                MessageHandler(new & ~SERVICE, self.unanswerable),
                MessageHandler(edited, talk.answer_edit),
            ]
        )
        application.add_handler(TypeHandler(Update, self.let_in), group=-1)
        application.add_error_handler(self.failed)

    async def let_in(self, update: Update, context: Context) -> None:
        """Run before any other handler: note that the chat can be reached, and check access.

        Raises:
            ApplicationHandlerStop: the user may not use the bot.
        """
        if update.effective_chat:
            await self.talk.sender.reachable(update.effective_chat.id)
        if STOPPED in update.api_kwargs or filters.StatusUpdate.MIGRATE.check_update(update):
            return
        await speak_with(self.talk, update)
        if self.access is not None and not await self.access.lets_in(update):
            raise ApplicationHandlerStop

    async def help(self, update: Update, context: Context) -> None:
        """Answer /help with the commands and examples of questions."""
        await self.talk.say(update, translate("help"))

    async def new(self, update: Update, context: Context) -> None:
        """Answer /new: forget the conversation of this chat."""
        to, turns, messages = destination(update), self.talk.turns, self.talk.repositories.messages
        chat_id, thread = to.chat_id, to.thread_id or 0
        await turns.running.stop_everywhere(chat_id=chat_id, thread_id=thread, is_forgotten=True)
        forgotten = await messages.forget(chat_id, thread_id=thread)
        await turns.safety.forget(chat_id)
        await self.talk.say(
            update, translate("forgotten") if forgotten else translate("nothing_to_forget")
        )

    async def stop(self, update: Update, context: Context) -> None:
        """Answer /stop: stop the turn of this user; the part that is written is their answer."""
        (chat_id, user_id), thread = people_of(update), destination(update).thread_id or 0
        stop = self.talk.turns.running.stop_everywhere
        if not await stop(chat_id=chat_id, thread_id=thread, user_id=user_id):
            await self.talk.say(update, translate("nothing_to_stop"))

    async def stop_pressed(self, update: Update, context: Context) -> None:
        """Stop the turn of a draft; only the user who asked sees its button."""
        chat_id, draft = chat_of(update.api_kwargs), section(update.api_kwargs, STOPPED)
        turn_id = as_int(draft.get("draft_id"))
        await self.talk.turns.running.stop_everywhere(chat_id=chat_id, id=turn_id)

    async def only_in_private(self, update: Update, context: Context) -> None:
        """Tell a user of a group to use a command where nobody else reads."""
        await self.talk.say(update, translate("only_in_private"))

    async def migrated(self, update: Update, context: Context) -> None:
        """Move the conversation of a group that became a supergroup, with another id."""
        message = message_of(update)
        old = message.migrate_from_chat_id or message.chat.id
        new = message.migrate_to_chat_id or message.chat.id
        if old != new:
            await self.talk.repositories.chats.migrated(old, new)

    async def member(self, update: Update, context: Context) -> None:
        """Tell a group that the bot was added to how to address it, unless it was there before."""
        change = update.my_chat_member
        if change is None or change.chat.type not in (ChatType.GROUP, ChatType.SUPERGROUP):
            return
        was, now = (
            isinstance(member, ChatMemberLeft | ChatMemberBanned)
            for member in (change.old_chat_member, change.new_chat_member)
        )
        chat_id, messages = change.chat.id, self.talk.repositories.messages
        if was and not now and not await messages.recent(chat_id, 1):
            line = translate("added_to_group", name=f"@{context.bot.username}")
            await self.talk.sender.send(Destination(chat_id), line)

    async def unanswerable(self, update: Update, context: Context) -> None:
        """Say why there is no answer to an unknown command, a sticker, a poll …

        In a crisis offer help instead; in a group stay silent unless the bot is addressed.
        """
        message = message_of(update)
        if not is_addressed(message):
            return
        words = message.text or message.caption or ""
        if await self.talk.turns.offer_help(self.talk.build_question(update, words)):
            return
        kind = next((field for field in SENT if getattr(message, field)), "")
        reply = "unknown_command" if message.text else SENT.get(kind, "text_only")
        await self.talk.say(update, translate(reply))

    async def failed(self, update: object, context: Context) -> None:
        """Log the error of a handler, and apologize to the user."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await self.talk.say(update, translate("apology"))


async def show_commands(application: AnyApplication, admin_ids: Collection[int] = ()) -> None:
    """Set the menus of commands; an admin who never wrote to the bot gets no admin menu.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = application.bot

    async def show() -> None:
        for language in languages():
            await _show_menu(bot, COMMANDS, language)

    await until_reached(show, "Showing the commands")
    for admin_id in admin_ids:
        try:
            for language in languages():
                chat = BotCommandScopeChat(admin_id)
                await _show_menu(bot, [*COMMANDS, *ADMIN_COMMANDS], language, chat)
        except TelegramError as error:
            log.info("Admin %s is not shown the commands of admins: %s", admin_id, error)


async def _show_menu(
    bot: Bot, names: Sequence[str], language: str, scope: BotCommandScope | None = None
) -> None:
    # The English menu is for everybody whose language has none.
    code = None if language == ENGLISH else language
    with use_language(language):
        menu = [BotCommand(name, translate(f"command_{name}")) for name in names]
    await bot.set_my_commands(menu, scope, code)
