"""The handlers: what a person sends, and what comes back. Never silence, never a stack trace."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from telegram import Bot, Update
from telegram.ext import (
    Application,
    BaseHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.history import truncate_at_boundary
from agent.journal import NO_JOURNAL, Journal
from agent.ports import MessageRepository, StoredMessage
from agent.sommelier import Answerer, Reply
from agent.tracing import Span, Tracer
from bot import texts
from bot.delivery import Delivery, Destination, Sender
from bot.incoming import destination, is_addressed, message_of, typing, wording
from bot.metrics import Metrics
from bot.outgoing import Outgoing

log = logging.getLogger(__name__)

R = TypeVar("R")

PATIENCE_SECONDS: Final = (0.2, 0.5, 1.0)
"""How long a database that does not answer is waited for before each further try."""

Context = ContextTypes.DEFAULT_TYPE
AnyApplication = Application[Any, Any, Any, Any, Any, Any]
AnyHandler = BaseHandler[Any, Any, Any]

ALLOWED_UPDATES: Final = ("message", "edited_message", "callback_query")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a turn came to, and the messages that say it, in order."""

    reply: Reply
    messages: tuple[Outgoing, ...]


Work = Callable[[Span], Awaitable[Answered]]
"""What makes the answer of a turn. Never raises, except when cancelled."""


async def no_turn(chat_id: int, message_id: int) -> int | None:
    """Where updates are not kept, nothing is known of earlier turns."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramBot:
    """The conversation with people; what it needs is passed in.

    `hash_user` makes a user id unrecognisable for traces, `turn_of` says which turn a message of a
    chat became part of. `history_messages` is how many earlier messages an answer may look back on,
    `max_content_length` the characters kept of a message.
    """

    answerer: Answerer
    message_repo: MessageRepository
    tracer: Tracer
    hash_user: Callable[[int], str]
    sender: Sender
    journal: Journal = NO_JOURNAL
    turn_of: Callable[[int, int], Awaitable[int | None]] = no_turn
    metrics: Metrics = field(default_factory=Metrics)
    history_messages: int = 20
    max_content_length: int = 2000

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
        await self.say(update, texts.GREETING)

    async def help(self, update: Update, context: Context) -> None:
        """/help: what can be asked, and the commands."""
        await self.say(update, texts.HELP)

    async def new(self, update: Update, context: Context) -> None:
        """/new: forget the conversation of this chat."""
        chat_id = message_of(update).chat.id
        forgotten = await self.journal.step("forget", lambda: self.message_repo.forget(chat_id))
        await self.say(update, texts.FORGOTTEN if forgotten else texts.NOTHING_TO_FORGET)

    async def unknown_command(self, update: Update, context: Context) -> None:
        """A command that does not exist; in a group only if it names this bot."""
        if is_addressed(message_of(update), context.bot):
            await self.say(update, texts.UNKNOWN_COMMAND)

    async def not_text(self, update: Update, context: Context) -> None:
        """A photo, a voice message, a sticker …"""
        if is_addressed(message_of(update), context.bot):
            await self.say(update, texts.TEXT_ONLY)

    async def edited(self, update: Update, context: Context) -> None:
        """An edited message: the last turn is run again on its new words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        if (message.text or "").startswith("/"):
            await self.say(update, texts.EDITED)
            return
        turn_id = await self.turn_of(message.chat.id, message.message_id)
        if turn_id is None or not await self._undo(message.chat.id, turn_id):
            await self.say(update, texts.EDITED)
            return
        await self.text(update, context)

    async def _undo(self, chat_id: int, turn_id: int) -> bool:
        return await self.journal.step("undo", lambda: self.message_repo.undo(chat_id, turn_id))

    async def text(self, update: Update, context: Context) -> None:
        """A message to answer: one turn."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        question = wording(message, context.bot)
        if not question:
            await self.say(update, texts.EMPTY)
            return

        async def work(span: Span) -> Answered:
            chat_id = message_of(update).chat.id
            history = await self.journal.step("history", lambda: self._history(chat_id))
            reply = await self._answer(question, history, span)
            return Answered(reply, (Outgoing(reply.text),))

        await self.turn(question, update, context.bot, work)

    async def failed(self, update: object, context: Context) -> None:
        """Whatever a handler raised: into the log, and one sentence to the person."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await self.say(update, texts.FAILED)

    async def turn(
        self, question: str, update: Update, bot: Bot, work: Work, *, remembered: bool = True
    ) -> None:
        """One turn: traced, answered by `work` while typing is shown, delivered, remembered."""
        started, chat_id = time.monotonic(), message_of(update).chat.id
        user = update.effective_user
        user_hash = self.hash_user(user.id if user else chat_id)
        with self.tracer.turn(input=question, session=str(chat_id), user=user_hash) as span:
            async with typing(bot, destination(update)):
                answered = await work(span)
            await self._deliver(destination(update), answered.messages, span)
            if remembered:
                await self.remember(update, question, answered.reply)
        self.metrics.turn_ended(
            answered.reply.outcome,
            seconds=time.monotonic() - started,
            requests=answered.reply.requests,
            retries=answered.reply.retries,
        )

    async def remember(self, update: Update, question: str, reply: Reply) -> None:
        """Make a question and its reply the newest of the chat's conversation."""
        chat_id = message_of(update).chat.id
        await self.journal.step(
            "remember", lambda: self._remember(chat_id, update.update_id, question, reply)
        )

    async def say(self, update: Update, markdown: str) -> Delivery:
        """Answer `update` with a sentence of the bot's own."""
        return await self.sender.send(destination(update), markdown, step=self.journal.step)

    async def heard(self, update: Update, context: Context) -> None:
        """Before any other handler: who writes can be answered again."""
        if update.effective_chat:
            await self.sender.reachable(update.effective_chat.id)

    async def _deliver(self, to: Destination, messages: Sequence[Outgoing], span: Span) -> None:
        """Send an answer; one that Telegram refuses as a whole is replaced by a sentence."""
        step = self.journal.step
        with span.child("telegram.send", "span") as send:
            delivery = Delivery()
            for number, each in enumerate(messages):
                there = to if number == 0 else replace(to, reply_to=None)
                delivery += await self.sender.send(
                    there, each.markdown, buttons=each.buttons, step=step
                )
                if delivery.error not in (None, "ambiguous"):
                    break
            if delivery.error == "rejected" and not delivery.message_ids:
                delivery += await self.sender.send(to, texts.FAILED, step=step)
            self.metrics.telegram_send(delivery.error)
            metadata = {
                "message_id": delivery.message_ids[-1] if delivery.message_ids else None,
                "tries": delivery.tries,
                "error": delivery.error,
            }
            send.update(metadata=metadata, level="ERROR" if delivery.error else "DEFAULT")

    async def _history(self, chat_id: int) -> Sequence[StoredMessage]:
        try:
            return await patiently(lambda: self.message_repo.recent(chat_id, self.history_messages))
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", chat_id)
            return ()

    async def _answer(self, question: str, history: Sequence[StoredMessage], span: Span) -> Reply:
        try:
            reply = await self.answerer.answer(
                question, history=history, span=span, journal=self.journal
            )
        except Exception as error:
            log.exception("No answer could be made")
            metadata = {"outcome": "failed", "error_type": type(error).__name__}
            span.update(output=texts.FAILED, level="ERROR", metadata=metadata)
            return Reply(texts.FAILED, (), "failed")
        return reply if reply.text.strip() else Reply(texts.FAILED, (), "failed")

    async def _remember(self, chat_id: int, turn_id: int, question: str, reply: Reply) -> None:
        def kept(text: str) -> str:
            return truncate_at_boundary(text, self.max_content_length)

        try:
            await patiently(
                lambda: self.message_repo.create(chat_id, "user", kept(question), turn_id=turn_id)
            )
            await patiently(
                lambda: self.message_repo.create(
                    chat_id, "assistant", kept(reply.text), reply.wine_ids, turn_id=turn_id
                )
            )
        except Exception:
            log.exception("A turn of chat %s could not be stored", chat_id)


async def patiently(call: Callable[[], Awaitable[R]]) -> R:
    """What `call` returns, tried again for a second or two: a database that restarts is soon back.

    Raises what the last try raises.
    """
    for wait in PATIENCE_SECONDS:
        try:
            return await call()
        except Exception as error:
            log.info("The database did not answer (%s), trying again", type(error).__name__)
        await asyncio.sleep(wait)
    return await call()
