"""The handlers of a conversation: what a person sends, and what comes back. Never silence."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from telegram import Update
from telegram.ext import (
    Application,
    ApplicationHandlerStop,
    BaseHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.engine.run import Run
from agent.repositories import MessageRepository, StoredMessage, TurnRecord, window
from agent.sommelier.service import Answerer
from agent.turn import APOLOGY, Reply
from bot.telegram import texts
from bot.telegram.access import Access
from bot.telegram.incoming import (
    destination,
    is_addressed,
    message_of,
    people_of,
    question_of,
    replied_to_bot,
    with_context,
    wording,
)
from bot.telegram.sender import Sender
from bot.turn import Turns, retry_briefly
from bot.updates.bursts import STOPPED, chat_of

log = logging.getLogger(__name__)

Context = ContextTypes.DEFAULT_TYPE
AnyApplication = Application[Any, Any, Any, Any, Any, Any]
AnyHandler = BaseHandler[Any, Any, Any]

ALLOWED_UPDATES: Final = ("message", "edited_message", "callback_query", STOPPED)

TYPED: Final = filters.UpdateType.MESSAGE & ~filters.FORWARDED & ~filters.VIA_BOT
"""What somebody wrote themselves: only that is a command. Who forwards words, or sends those that
another bot made, may not know what they do here."""


async def no_turn(chat_id: int, message_id: int) -> int | None:
    """Where updates are not kept, nothing is known of earlier turns."""
    return None


class StopPressed(TypeHandler[Update, Context, None]):
    """Takes what Telegram sends when the button under a draft is pressed."""

    def check_update(self, update: object) -> bool:
        """Whether it is that."""
        return isinstance(update, Update) and STOPPED in update.api_kwargs


async def no_record(chat_id: int, message_id: int) -> TurnRecord | None:
    """Where turns are not kept, nothing is known of them."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The conversation with people; what it needs is passed in.

    `turn_of` says which turn a message of a chat became part of, `answered_in` the one that a
    message of the bot answered, `history_messages` is how many earlier messages an answer may look
    back on. Without `access` everybody is let in.
    """

    turns: Turns
    sender: Sender
    messages: MessageRepository
    answerer: Answerer
    history_messages: int
    turn_of: Callable[[int, int], Awaitable[int | None]] = no_turn
    answered_in: Callable[[int, int], Awaitable[TurnRecord | None]] = no_record
    access: Access | None = None

    def register(self, application: AnyApplication, further: Sequence[AnyHandler] = ()) -> None:
        """Add every handler to `application`; the first that fits an update takes it.

        `further` are those of other commands; the last of them may take any button.
        """
        new = filters.UpdateType.MESSAGE
        edited = filters.UpdateType.EDITED_MESSAGE & filters.TEXT
        service = filters.StatusUpdate.ALL
        application.add_handlers(
            [
                CommandHandler("start", self.start, filters=TYPED),
                CommandHandler("help", self.help, filters=TYPED),
                CommandHandler("new", self.new, filters=TYPED),
                CommandHandler("stop", self.stop, filters=TYPED),
                StopPressed(Update, self.stop_pressed),
                *further,
                MessageHandler(TYPED & filters.COMMAND, self.unknown_command),
                MessageHandler(new & filters.TEXT, self.text),
                MessageHandler(new & ~service, self.not_text),
                MessageHandler(edited, self.edited),
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
            await self.sender.reachable(update.effective_chat.id)
        if STOPPED in update.api_kwargs:
            return
        if self.access is not None and not await self.access.lets_in(update, context.bot):
            raise ApplicationHandlerStop

    async def text(self, update: Update, context: Context) -> None:
        """A message to answer: one turn."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        question = wording(message, context.bot)
        if not question:
            await self._say(update, texts.EMPTY)
            return
        question = with_context(question, message, context.bot)
        replied = message.reply_to_message if replied_to_bot(message, context.bot) else None

        async def work(run: Run) -> Reply:
            history = await self._history(message.chat.id, before=update.update_id)
            if replied is not None:
                history = await self._meant(history, message.chat.id, replied.message_id)
            run = replace(run, history=window(history))
            return await self.answerer.answer(question, run)

        await self.turns.turn(question_of(update, context.bot, question), work)

    async def start(self, update: Update, context: Context) -> None:
        """/start: who this is and what to ask."""
        await self._say(update, texts.GREETING)

    async def help(self, update: Update, context: Context) -> None:
        """/help: what can be asked, and the commands."""
        await self._say(update, texts.HELP)

    async def new(self, update: Update, context: Context) -> None:
        """/new: forget the conversation of this chat."""
        chat_id = message_of(update).chat.id
        self.turns.stop(chat_id, is_forgotten=True)
        forgotten = await self.sender.journal.step("forget", lambda: self.messages.forget(chat_id))
        await self.turns.carer.forget(chat_id)
        await self._say(update, texts.FORGOTTEN if forgotten else texts.NOTHING_TO_FORGET)

    async def stop(self, update: Update, context: Context) -> None:
        """/stop: end the answer to what this person asked; what was written of it stays."""
        if not self.turns.stop(*people_of(update)):
            await self._say(update, texts.NOTHING_TO_STOP)

    async def stop_pressed(self, update: Update, context: Context) -> None:
        """The button under a draft: only who asked has one."""
        self.turns.stop(chat_of(update.api_kwargs))

    async def edited(self, update: Update, context: Context) -> None:
        """An edited message: the last turn is run again on its new words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        if not (message.text or "").startswith("/"):
            turn_id = await self.turn_of(message.chat.id, message.message_id)
            if turn_id is not None and await self._undo(message.chat.id, turn_id):
                await self.text(update, context)
                return
        await self._say(update, texts.EDITED)

    async def _undo(self, chat_id: int, turn_id: int) -> bool:
        return await self.sender.journal.step("undo", lambda: self.messages.undo(chat_id, turn_id))

    async def unknown_command(self, update: Update, context: Context) -> None:
        """A command that does not exist; in a group only if it names this bot."""
        await self._not_for_a_turn(update, context, texts.UNKNOWN_COMMAND)

    async def not_text(self, update: Update, context: Context) -> None:
        """A photo, a voice message, a sticker …"""
        await self._not_for_a_turn(update, context, texts.TEXT_ONLY)

    async def _not_for_a_turn(self, update: Update, context: Context, sentence: str) -> None:
        """Say why there is no answer, or help who is in a crisis."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        said = message.text or message.caption or ""
        if not await self.turns.helped(question_of(update, context.bot, said)):
            await self._say(update, sentence)

    async def failed(self, update: object, context: Context) -> None:
        """Whatever a handler raised: into the log, and one sentence to the person."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await self._say(update, APOLOGY)

    async def _say(self, update: Update, markdown: str) -> None:
        await self.sender.send(destination(update), markdown)

    async def _meant(
        self, history: Sequence[StoredMessage], chat_id: int, message_id: int
    ) -> Sequence[StoredMessage]:
        """A history in which the turn is the newest whose answer is replied to."""
        try:
            turn = await self.answered_in(chat_id, message_id)
        except Exception as error:
            log.warning("What is replied to could not be read: %s", type(error).__name__)
            return history
        meant = [each for each in history if turn is not None and each.turn_id == turn.turn_id]
        return [*(each for each in history if each not in meant), *meant]

    async def _history(self, chat_id: int, before: int) -> Sequence[StoredMessage]:
        """What was said before a turn, also if it is run again and has kept its own words."""
        try:
            recent = await retry_briefly(
                lambda: self.messages.recent(chat_id, self.history_messages)
            )
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", chat_id)
            return ()
        return [message for message in recent if message.turn_id != before]
