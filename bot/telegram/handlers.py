"""The handlers of a conversation: what a person sends, and what comes back. Never silence."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pydantic import ValidationError
from telegram import ChatMemberBanned, ChatMemberLeft, Update
from telegram.constants import ChatType
from telegram.ext import (
    Application,
    ApplicationHandlerStop,
    BaseHandler,
    ChatMemberHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    TypeHandler,
    filters,
)

from agent.engine.run import Run
from agent.i18n import say, speak
from agent.markdown import escape
from agent.repositories import MessageRepository, StoredMessage, TurnRecord, window
from agent.senses.speech import Heard
from agent.sommelier.attachment import Attached, Attachment
from agent.sommelier.caring import care_in
from agent.sommelier.service import Answerer
from agent.turn import Reply
from bot.telegram.access import Access
from bot.telegram.incoming import (
    SENT,
    destination,
    is_addressed,
    message_of,
    people_of,
    question_of,
    replied_to_bot,
    with_context,
    without_words,
    wording,
)
from bot.telegram.sender import Destination, Rows, Sender
from bot.turn import Question, Turns, retry_briefly
from bot.updates.bursts import STOPPED, chat_of, number, part

log = logging.getLogger(__name__)

Context = ContextTypes.DEFAULT_TYPE
AnyApplication = Application[Any, Any, Any, Any, Any, Any]
AnyHandler = BaseHandler[Any, Any, Any]

PICTURE: Final = "[picture]"
"""What is remembered as the words of a message that has none."""
LONGEST_LEAD: Final = 300
"""Characters of what was heard, as it is told above an answer."""
Listen = Callable[[Run], Awaitable[Heard]]
"""Hears what was said."""
Aloud = Callable[[Reply, Run], Awaitable[bytes]]
"""Reads an answer aloud, if it is to be."""
Read = Callable[[Run], Awaitable[Attachment | None]]
"""Reads the pictures of a message; None if nobody can see them."""

ALLOWED_UPDATES: Final = (
    *("message", "edited_message", "callback_query", "message_reaction", "my_chat_member"),
    *("inline_query", STOPPED),
)

SOMEBODY_ELSE: Final = "…"
"""What stands for what another person of a group asked."""

TYPED: Final = filters.UpdateType.MESSAGE & ~filters.FORWARDED & ~filters.VIA_BOT
"""What somebody wrote themselves: only that is a command. Who forwards words, or sends those that
another bot made, may not know what they do here."""


SERVICE: Final = (
    filters.StatusUpdate.ALL
    | filters.BOOST_ADDED
    | filters.GIVEAWAY_WINNERS
    | filters.PASSPORT_DATA
    | filters.SUCCESSFUL_PAYMENT
)
"""What Telegram tells of a chat: nobody said it."""


async def no_turn(chat_id: int, message_id: int) -> int | None:
    """Where updates are not kept, nothing is known of earlier turns."""
    return None


class StopPressed(TypeHandler[Update, Context, None]):
    """Takes what Telegram sends when the button under a draft is pressed."""

    def check_update(self, update: object) -> bool:
        """Whether it is that."""
        return isinstance(update, Update) and STOPPED in update.api_kwargs


async def speak_as_telegram(update: Update) -> None:
    """Speak the language that somebody's Telegram is in."""
    user = update.effective_user
    speak(user.language_code if user else None)


async def no_buttons(update: Update) -> Rows:
    """Where nothing is kept of people, nothing is asked of them."""
    return ()


async def no_record(chat_id: int, message_id: int) -> TurnRecord | None:
    """Where turns are not kept, nothing is known of them."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The conversation with people; what it needs is passed in.

    `turn_of` says which turn a message of a chat became part of, `answered_in` the one that a
    message of the bot answered, `history_messages` is how many earlier messages an answer may look
    back on. Without `access` everybody is let in. `speak` makes the language of who wrote spoken,
    `welcome` the buttons under a greeting.
    """

    turns: Turns
    sender: Sender
    messages: MessageRepository
    answerer: Answerer
    history_messages: int
    turn_of: Callable[[int, int], Awaitable[int | None]] = no_turn
    answered_in: Callable[[int, int], Awaitable[TurnRecord | None]] = no_record
    access: Access | None = None
    speak: Callable[[Update], Awaitable[None]] = speak_as_telegram
    welcome: Callable[[Update], Awaitable[Rows]] = no_buttons

    def register(self, application: AnyApplication, further: Sequence[AnyHandler] = ()) -> None:
        """Add every handler to `application`; the first that fits an update takes it.

        `further` are those of other commands; the last of them may take any button.
        """
        new = filters.UpdateType.MESSAGE
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
                MessageHandler(new & words, self.text),
                MessageHandler(filters.StatusUpdate.MIGRATE, self.migrated),
                MessageHandler(new & ~SERVICE, self.not_text),
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
        if STOPPED in update.api_kwargs or filters.StatusUpdate.MIGRATE.check_update(update):
            return
        await self.speak(update)
        if self.access is not None and not await self.access.lets_in(update, context.bot):
            raise ApplicationHandlerStop

    async def text(self, update: Update, context: Context) -> None:
        """A message to answer: one turn."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        words = wording(message, context.bot)
        question = with_context(words, message, context.bot)
        if question == words and (unworded := without_words(words)):
            await self._say(update, say(unworded))
            return
        replied = message.reply_to_message if replied_to_bot(message, context.bot) else None
        asked = question_of(update, context.bot, question)
        await self.respond(asked, replied.message_id if replied else None)

    async def respond(
        self,
        question: Question,
        about: int | None = None,
        *,
        read: Read | None = None,
        note: str = "",
        hear: Listen | None = None,
        aloud: Aloud | None = None,
    ) -> None:
        """One turn: the answer to a question, and `about` which message of the bot it is.

        What the question comes with is what `read` reads; what came earlier is known from then. A
        `note` stands below the answer if nothing is read. A question that is spoken is what `hear`
        hears; its answer is read `aloud` to who chose so.
        """
        heard = Heard()

        async def words(run: Run) -> str:
            nonlocal heard
            assert hear is not None  # noqa: S101 - see below
            heard = await hear(run)
            if run.show is not None and heard.transcript.text:
                run.show(lambda: lead_of(heard))
            return heard.transcript.text

        async def work(run: Run) -> Reply:
            care = care_in(run)
            if read is not None and care.forbids_alcohol:
                return Reply(text=self.turns.carer.help.why(care), outcome="care")
            if hear is not None and heard.why:
                errors = (f"voice_{heard.why}",)
                return Reply(text=say("not_heard"), outcome="fallback", error_types=errors)
            now = await read(run) if read is not None else None
            history = await self._history(question)
            meant = await self._answered_in(question.chat_id, about)
            if question.chat_id < 0:
                history = [heard_by(question.user_id, each, meant) for each in history]
            newest = [each for each in history if meant is not None and each.turn_id == meant]
            history = [*(each for each in history if each not in newest), *newest]
            run = replace(run, history=window(history))
            asked = heard.transcript.text or question.text
            asked = "" if asked == PICTURE else asked
            attached = Attached(now) if now else attached_in(history)
            given = (attached,) if attached else ()
            reply = await self.answerer.answer(asked, run, *given)
            if aloud is not None:
                reply = replace(reply, audio=await aloud(reply, run))
            return replace(
                reply,
                notes=(*reply.notes, note) if note and now is None else reply.notes,
                attachment=now.model_dump_json() if now else "",
                lead=lead_of(heard),
            )

        await self.turns.turn(question, work, hear=words if hear else None)

    async def start(self, update: Update, context: Context) -> None:
        """/start: who this is and what to ask."""
        await self.sender.send(destination(update), say("greeting"), await self.welcome(update))

    async def help(self, update: Update, context: Context) -> None:
        """/help: what can be asked, and the commands."""
        await self._say(update, say("help"))

    async def new(self, update: Update, context: Context) -> None:
        """/new: forget the conversation of this chat."""
        to = destination(update)
        chat_id, thread = to.chat_id, to.thread_id or 0
        await self.turns.stop_everywhere(chat_id=chat_id, thread_id=thread, is_forgotten=True)
        forget = partial(self.messages.forget, chat_id, thread_id=thread)
        forgotten = await self.sender.journal.step("forget", forget)
        await self.turns.carer.forget(chat_id)
        await self._say(update, say("forgotten") if forgotten else say("nothing_to_forget"))

    async def stop(self, update: Update, context: Context) -> None:
        """/stop: end the answer to what this person asked; what was written of it stays."""
        (chat_id, user_id), thread = people_of(update), destination(update).thread_id or 0
        if not await self.turns.stop_everywhere(chat_id=chat_id, thread_id=thread, user_id=user_id):
            await self._say(update, say("nothing_to_stop"))

    async def stop_pressed(self, update: Update, context: Context) -> None:
        """The button under a draft: only who asked has one."""
        chat_id, draft = chat_of(update.api_kwargs), part(update.api_kwargs, STOPPED)
        await self.turns.stop_everywhere(chat_id=chat_id, id=number(draft.get("draft_id")))

    async def edited(self, update: Update, context: Context) -> None:
        """An edited message: the last turn is run again on its new words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        if not (message.text or "").startswith("/"):
            turn_id = await self.turn_of(message.chat.id, message.message_id)
            if turn_id is not None and await self._undo(destination(update), turn_id):
                await self.text(update, context)
                return
        await self._say(update, say("edited"))

    async def _undo(self, said_in: Destination, turn_id: int) -> bool:
        thread = said_in.thread_id or 0
        undo = partial(self.messages.undo, said_in.chat_id, turn_id, thread_id=thread)
        return await self.sender.journal.step("undo", undo)

    async def migrated(self, update: Update, context: Context) -> None:
        """A group became a supergroup, which has another id: its conversation goes along."""
        message, chats = message_of(update), self.sender.chats
        old = message.migrate_from_chat_id or message.chat.id
        new = message.migrate_to_chat_id or message.chat.id
        if chats is not None and old != new:
            await chats.migrated(old, new)

    async def member(self, update: Update, context: Context) -> None:
        """The bot was added to a group: one line on how to address it, where nobody knows it."""
        change = update.my_chat_member
        if change is None or change.chat.type not in (ChatType.GROUP, ChatType.SUPERGROUP):
            return
        was, now = (
            isinstance(each, ChatMemberLeft | ChatMemberBanned)
            for each in (change.old_chat_member, change.new_chat_member)
        )
        if was and not now and not await self.messages.recent(change.chat.id, 1):
            line = say("added_to_group", name=f"@{context.bot.username}")
            await self.sender.send(Destination(change.chat.id), line)

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
        if not await self.turns.helped(question_of(update, context.bot, said)):
            await self._say(update, sentence)

    async def failed(self, update: object, context: Context) -> None:
        """Whatever a handler raised: into the log, and one sentence to the person."""
        log.error("A handler failed", exc_info=context.error)
        if isinstance(update, Update) and update.effective_message:
            await self._say(update, say("apology"))

    async def _say(self, update: Update, markdown: str) -> None:
        await self.sender.send(destination(update), markdown)

    async def _answered_in(self, chat_id: int, message_id: int | None) -> int | None:
        """The id of the turn that a message of the bot answered."""
        if message_id is None:
            return None
        try:
            turn = await self.answered_in(chat_id, message_id)
        except Exception as error:
            log.warning("What is replied to could not be read: %s", type(error).__name__)
            return None
        return turn.turn_id if turn else None

    async def _history(self, question: Question) -> Sequence[StoredMessage]:
        """What was said before a turn, also if it is run again and has kept its own words."""
        chat_id, most = question.chat_id, self.history_messages
        recent = partial(self.messages.recent, chat_id, most, thread_id=question.thread_id)
        try:
            said = await retry_briefly(recent)
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", chat_id)
            return ()
        return [message for message in said if message.turn_id != question.id]


def lead_of(heard: Heard) -> str:
    """The line above an answer that says what was heard; empty if nothing was."""
    said = escape(" ".join(heard.transcript.text.split())[:LONGEST_LEAD])
    return f"_{say('heard', words=said)}_" if said else ""


def attached_in(history: Sequence[StoredMessage]) -> Attached | None:
    """What was read from pictures last in a conversation, if anything was."""
    found = next((each.attachment for each in reversed(history) if each.attachment), "")
    try:
        return Attached(Attachment.model_validate_json(found), now=False) if found else None
    except ValidationError:  # of an earlier release
        return None


def heard_by(user_id: int, said: StoredMessage, meant: int | None) -> StoredMessage:
    """What was said in a group as one of its people means it.

    What others asked is their own wish and rules out nothing here, but in the turn that is `meant`:
    that one was replied to.
    """
    is_shared = said.role == "assistant" or said.user_id == user_id or said.turn_id == meant
    return said if is_shared else replace(said, content=SOMEBODY_ELSE)
