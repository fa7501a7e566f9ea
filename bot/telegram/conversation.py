"""The handlers: what a person sends, and what comes back. Never silence, never a stack trace."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
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

from agent.engine.limits import Allowance
from agent.engine.run import Run
from agent.engine.span import Span
from agent.repositories import StoredMessage, window
from agent.sommelier.service import Answerer, Reply
from bot.telegram import texts
from bot.telegram.access import Door
from bot.telegram.incoming import is_addressed, message_of, wording
from bot.telegram.outgoing import Outgoing
from bot.turn import Answered, Replies, patiently

log = logging.getLogger(__name__)

Context = ContextTypes.DEFAULT_TYPE
AnyApplication = Application[Any, Any, Any, Any, Any, Any]
AnyHandler = BaseHandler[Any, Any, Any]

ALLOWED_UPDATES: Final = ("message", "edited_message", "callback_query")


async def no_turn(chat_id: int, message_id: int) -> int | None:
    """Where updates are not kept, nothing is known of earlier turns."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramBot:
    """The conversation with people; what it needs is passed in.

    `turn_of` says which turn a message of a chat became part of, `history_messages` is how many
    earlier messages an answer may look back on. Without a `door` everybody is let in. Each turn
    starts from `run`.
    """

    answerer: Answerer
    replies: Replies
    turn_of: Callable[[int, int], Awaitable[int | None]] = no_turn
    history_messages: int = 20
    door: Door | None = None
    run: Run = field(default_factory=Run)

    def register(self, application: AnyApplication, further: Sequence[AnyHandler] = ()) -> None:
        """Add every handler to `application`; the first that fits an update takes it.

        `further` are those of other commands, `ResearchCommands.handlers` say.
        """
        new = filters.UpdateType.MESSAGE
        edited = filters.UpdateType.EDITED_MESSAGE & filters.TEXT
        service = filters.StatusUpdate.ALL
        application.add_handlers(
            [
                CommandHandler("start", self.start, filters=new),
                CommandHandler("help", self.help, filters=new),
                CommandHandler("new", self.new, filters=new),
                *further,
                MessageHandler(new & filters.COMMAND, self.unknown_command),
                MessageHandler(new & filters.TEXT, self.text),
                MessageHandler(new & ~service, self.not_text),
                MessageHandler(edited, self.edited),
            ]
        )
        application.add_handler(TypeHandler(Update, self.heard), group=-1)
        application.add_error_handler(self.failed)

    async def start(self, update: Update, context: Context) -> None:
        """/start: who this is and what to ask."""
        await self.replies.say(update, texts.GREETING)

    async def help(self, update: Update, context: Context) -> None:
        """/help: what can be asked, and the commands."""
        await self.replies.say(update, texts.HELP)

    async def new(self, update: Update, context: Context) -> None:
        """/new: forget the conversation of this chat."""
        chat_id = message_of(update).chat.id
        forgotten = await self.replies.journal.step(
            "forget", lambda: self.replies.message_repo.forget(chat_id)
        )
        await self.replies.say(update, texts.FORGOTTEN if forgotten else texts.NOTHING_TO_FORGET)

    async def unknown_command(self, update: Update, context: Context) -> None:
        """A command that does not exist; in a group only if it names this bot."""
        if is_addressed(message_of(update), context.bot):
            await self.replies.say(update, texts.UNKNOWN_COMMAND)

    async def not_text(self, update: Update, context: Context) -> None:
        """A photo, a voice message, a sticker …"""
        if is_addressed(message_of(update), context.bot):
            await self.replies.say(update, texts.TEXT_ONLY)

    async def edited(self, update: Update, context: Context) -> None:
        """An edited message: the last turn is run again on its new words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        if (message.text or "").startswith("/"):
            await self.replies.say(update, texts.EDITED)
            return
        turn_id = await self.turn_of(message.chat.id, message.message_id)
        if turn_id is None or not await self._undo(message.chat.id, turn_id):
            await self.replies.say(update, texts.EDITED)
            return
        await self.text(update, context)

    async def _undo(self, chat_id: int, turn_id: int) -> bool:
        return await self.replies.journal.step(
            "undo", lambda: self.replies.message_repo.undo(chat_id, turn_id)
        )

    async def text(self, update: Update, context: Context) -> None:
        """A message to answer: one turn."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        question = wording(message, context.bot)
        if not question:
            await self.replies.say(update, texts.EMPTY)
            return

        async def work(span: Span, allowance: Allowance) -> Answered:
            chat_id = message_of(update).chat.id
            history = await self._history(chat_id, before=update.update_id)
            reply = await self._answer(question, history, span, allowance)
            return Answered(reply, (Outgoing(reply.text),))

        await self.replies.turn(question, update, context.bot, work)

    async def failed(self, update: object, context: Context) -> None:
        """Whatever a handler raised: into the log, and one sentence to the person."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await self.replies.say(update, texts.FAILED)

    async def heard(self, update: Update, context: Context) -> None:
        """Before any other handler: who writes can be answered again, if they are let in.

        Raises:
            ApplicationHandlerStop: they are not.
        """
        if update.effective_chat:
            await self.replies.sender.reachable(update.effective_chat.id)
        if self.door is not None and not await self.door.lets_in(update, context.bot):
            raise ApplicationHandlerStop

    async def _history(self, chat_id: int, before: int) -> Sequence[StoredMessage]:
        """What was said before a turn, also if it is run again and has kept its own words."""
        try:
            recent = await patiently(
                lambda: self.replies.message_repo.recent(chat_id, self.history_messages)
            )
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", chat_id)
            return ()
        return [message for message in recent if message.turn_id != before]

    async def _answer(
        self, question: str, history: Sequence[StoredMessage], span: Span, allowance: Allowance
    ) -> Reply:
        try:
            run = self.run.turn(
                span=span,
                journal=self.replies.journal,
                allowance=allowance,
                history=window(history),
            )
            reply = await self.answerer.answer(question, run=run)
        except Exception as error:
            log.exception("No answer could be made")
            metadata = {"outcome": "failed", "error_type": type(error).__name__}
            span.update(output=texts.FAILED, level="ERROR", metadata=metadata)
            return Reply(texts.FAILED, (), "failed")
        return reply if reply.text.strip() else Reply(texts.FAILED, (), "failed")
