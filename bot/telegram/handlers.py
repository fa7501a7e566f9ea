"""What becomes of an update, by the handlers of every conversation; the menu. Never silence."""

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
from telegram.error import InvalidToken, TelegramError
from telegram.ext import (
    ApplicationHandlerStop,
    ChatMemberHandler,
    CommandHandler,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.i18n import ENGLISH, languages, say, speaking
from agent.repositories import Payload
from bot.telegram.access import Access
from bot.telegram.connection import AnyApplication
from bot.telegram.conversation import (
    SENT,
    TYPED,
    AnyHandler,
    Context,
    Conversation,
    destination,
    is_addressed,
    message_of,
    people_of,
    question_of,
)
from bot.telegram.sender import Destination
from bot.telegram.settings import greet, speak_with
from bot.updates.accept import until_reached
from bot.updates.bursts import STOPPED, chat_of, message_in, number, part
from bot.updates.lanes import Unreadable

log = logging.getLogger(__name__)

COMMANDS: Final = (
    "ask quotes find stop new taste cellar language settings privacy export forget help".split()
)
ADMIN_COMMANDS: Final = "stats trace allow block clearcare broadcast".split()
"""What the menu shows to everybody, and to admins beside it; what it says of each is a sentence."""

SERVICE: Final = (
    filters.StatusUpdate.ALL
    | filters.BOOST_ADDED
    | filters.GIVEAWAY_WINNERS
    | filters.PASSPORT_DATA
    | filters.SUCCESSFUL_PAYMENT
)
"""What Telegram tells of a chat: nobody said it."""


class StopPressed(TypeHandler[Update, Context, None]):
    """Takes what Telegram sends when the button under a draft is pressed."""

    def check_update(self, update: object) -> bool:
        """Whether it is that."""
        return isinstance(update, Update) and STOPPED in update.api_kwargs


@dataclass(frozen=True, slots=True)
class Handlers:
    """What is said and done in every conversation; without `access` everybody is let in."""

    talk: Conversation
    access: Access | None = None

    def register(self, application: AnyApplication, further: Sequence[AnyHandler] = ()) -> None:
        """Add every handler to `application`; the first that fits an update takes it.

        `further` are those of other commands; the last of them may take any button.
        """
        new, talk = filters.UpdateType.MESSAGE, self.talk
        words = filters.TEXT | filters.CAPTION
        edited = filters.UpdateType.EDITED_MESSAGE & filters.TEXT
        application.add_handlers(
            [
                CommandHandler("help", self.help, filters=TYPED),
                CommandHandler("new", self.new, filters=TYPED),
                CommandHandler("stop", self.stop, filters=TYPED),
                StopPressed(Update, self.stop_pressed),
                ChatMemberHandler(self.member, ChatMemberHandler.MY_CHAT_MEMBER),
                *further,
                CommandHandler("start", self.start, filters=TYPED),
                MessageHandler(TYPED & filters.COMMAND, self.unknown_command),
                MessageHandler(new & words, talk.text),
                MessageHandler(filters.StatusUpdate.MIGRATE, self.migrated),
                MessageHandler(new & ~SERVICE, self.not_text),
                MessageHandler(edited, talk.edited),
            ]
        )
        application.add_handler(TypeHandler(Update, self.let_in), group=-1)
        application.add_error_handler(self.failed)

    async def let_in(self, update: Update, context: Context) -> None:
        """Before any other handler: who writes can be answered again, if they are let in.

        Raises:
            ApplicationHandlerStop: they are not.
        """
        if update.effective_chat:
            await self.talk.sender.reachable(update.effective_chat.id)
        if STOPPED in update.api_kwargs or filters.StatusUpdate.MIGRATE.check_update(update):
            return
        await speak_with(self.talk, update)
        if self.access is not None and not await self.access.lets_in(update, context.bot):
            raise ApplicationHandlerStop

    async def start(self, update: Update, context: Context) -> None:
        """/start: who this is and what to ask."""
        await greet(self.talk, update)

    async def help(self, update: Update, context: Context) -> None:
        """/help: what can be asked, and the commands."""
        await self.talk.say(update, say("help"))

    async def new(self, update: Update, context: Context) -> None:
        """/new: forget the conversation of this chat."""
        to, turns, messages = destination(update), self.talk.turns, self.talk.repositories.messages
        chat_id, thread = to.chat_id, to.thread_id or 0
        await turns.stop_everywhere(chat_id=chat_id, thread_id=thread, is_forgotten=True)
        forgotten = await messages.forget(chat_id, thread_id=thread)
        await turns.carer.forget(chat_id)
        await self.talk.say(update, say("forgotten") if forgotten else say("nothing_to_forget"))

    async def stop(self, update: Update, context: Context) -> None:
        """/stop: end the answer to what this person asked; what was written of it stays."""
        (chat_id, user_id), thread = people_of(update), destination(update).thread_id or 0
        stop = self.talk.turns.stop_everywhere
        if not await stop(chat_id=chat_id, thread_id=thread, user_id=user_id):
            await self.talk.say(update, say("nothing_to_stop"))

    async def stop_pressed(self, update: Update, context: Context) -> None:
        """The button under a draft: only who asked has one."""
        chat_id, draft = chat_of(update.api_kwargs), part(update.api_kwargs, STOPPED)
        await self.talk.turns.stop_everywhere(chat_id=chat_id, id=number(draft.get("draft_id")))

    async def migrated(self, update: Update, context: Context) -> None:
        """A group became a supergroup, which has another id: its conversation goes along."""
        message = message_of(update)
        old = message.migrate_from_chat_id or message.chat.id
        new = message.migrate_to_chat_id or message.chat.id
        if old != new:
            await self.talk.repositories.chats.migrated(old, new)

    async def member(self, update: Update, context: Context) -> None:
        """The bot was added to a group: one line on how to address it, where nobody knows it."""
        change = update.my_chat_member
        if change is None or change.chat.type not in (ChatType.GROUP, ChatType.SUPERGROUP):
            return
        was, now = (
            isinstance(each, ChatMemberLeft | ChatMemberBanned)
            for each in (change.old_chat_member, change.new_chat_member)
        )
        chat_id, messages = change.chat.id, self.talk.repositories.messages
        if was and not now and not await messages.recent(chat_id, 1):
            line = say("added_to_group", name=f"@{context.bot.username}")
            await self.talk.sender.send(Destination(chat_id), line)

    async def unknown_command(self, update: Update, context: Context) -> None:
        """A command that does not exist; in a group only if it names this bot."""
        await self._not_for_a_turn(update, context, say("unknown_command"))

    async def not_text(self, update: Update, context: Context) -> None:
        """A sticker, a poll, a contact …: each has its sentence."""
        message = message_of(update)
        kind = next((each for each in SENT if getattr(message, each)), "")
        await self._not_for_a_turn(update, context, say(SENT.get(kind, "text_only")))

    async def _not_for_a_turn(self, update: Update, context: Context, sentence: str) -> None:
        """Say why there is no answer, or help who is in a crisis."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        said = message.text or message.caption or ""
        if not await self.talk.turns.helped(question_of(update, context.bot, said)):
            await self.talk.say(update, sentence)

    async def failed(self, update: object, context: Context) -> None:
        """Whatever a handler raised: into the log, and one sentence to the person."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await self.talk.say(update, say("apology"))


async def show_commands(application: AnyApplication, admin_ids: Collection[int] = ()) -> None:
    """Show our commands in Telegram in each language, to admins theirs too, where they changed.

    Telegram refuses that for an admin who never wrote to the bot, which is no matter.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    bot = application.bot
    for language in languages():
        menu = partial(_show_menu, bot, COMMANDS, language)
        await until_reached(menu, "Showing the commands")
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
    # The English one is for everybody whose language there is none in.
    code = None if language == ENGLISH else language
    with speaking(language):
        menu = tuple(BotCommand(each, say(f"command_{each}")) for each in names)
    try:
        is_shown = await bot.get_my_commands(scope, code) == menu
    except InvalidToken:  # what the library makes of a 404: a server without this method, too
        is_shown = False
    if not is_shown:
        await bot.set_my_commands(menu, scope, code)


async def dispatch(application: AnyApplication, payload: Payload) -> None:
    """Give an update to the first handler of each group that takes it; errors come through.

    A handler that raises `ApplicationHandlerStop` is the last.

    Raises:
        Unreadable: the library cannot make an update of it.
    """
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


async def tell_heard(payload: Payload, bot: Bot) -> None:
    """Tell who pressed a button that it is their turn in a moment.

    Raises:
        TelegramError: Telegram refuses that.
    """
    query = part(payload, "callback_query")
    with speaking(str(part(query, "from").get("language_code") or "")):
        await bot.answer_callback_query(str(query.get("id")), say("one_moment"))


def read(payload: Payload, bot: Bot) -> Update:
    """The update that a payload is.

    Raises:
        Unreadable: the library cannot make one of it.
    """
    try:
        return Update.de_json(dict(payload), bot)
    except Exception as error:
        raise Unreadable(type(error).__name__) from None


def is_readable(payload: Payload, bot: Bot) -> bool:
    """Whether the library can make an update of a payload."""
    try:
        read(payload, bot)
    except Unreadable:
        return False
    return True


def origin(payload: Payload, bot: Bot) -> Update | None:
    """The update, or as much of it as says where it came from; None if nobody is to be told of it.

    What cannot be read is a matter to people only if somebody wrote it to the bot alone.
    """
    with suppress(Unreadable):
        return read(payload, bot)
    sender, chat_id = part(message_in(payload), "from"), chat_of(payload)
    if chat_id <= 0 or sender.get("is_bot") is not False:
        return None
    chat = {"id": chat_id, "type": "private"}
    person = {"id": chat_id, "is_bot": False, "first_name": ""}
    known = {"message_id": 0, "date": 0, "chat": chat, "from": person}
    return Update.de_json({"update_id": payload["update_id"], "message": known}, bot)
