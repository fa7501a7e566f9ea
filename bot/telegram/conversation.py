"""What all handlers stand on: what an update says, whom the bot talks with, the turns of it."""

import logging
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from telegram import Bot, CallbackQuery, Message, MessageEntity, Update
from telegram.constants import ChatType
from telegram.ext import BaseHandler, ContextTypes, filters

from agent import lengths
from agent.engine.errors import or_else
from agent.engine.run import Run
from agent.i18n import say
from agent.markdown import escape, live
from agent.repositories import EndedTurn, StoredMessage
from agent.senses.speech import Heard
from agent.sommelier.attachment import Attached, Attachment
from agent.sommelier.history import window
from agent.sommelier.safety import care_in
from agent.sommelier.service import Answerer
from agent.text import FORWARDED, pattern
from agent.tracing.recorder import trace_id_of
from agent.turn import Bottles, Change, Fact, Reply
from bot.pending import Course, is_retry, pending_turn
from bot.resources import Repositories, Resources
from bot.retries import retry_briefly, retry_forever
from bot.telegram.sender import Delivery, Destination, Rows, Sender
from bot.turn import Kind, Question, Turns
from bot.updates.bursts import is_foreign

log = logging.getLogger(__name__)

COMMAND: Final = pattern(r"\s*/\S+\s*")

SENT: Final[Mapping[str, str]] = {
    "sticker": "sent_emoji",
    "animation": "sent_emoji",
    "contact": "sent_contact",
    "poll": "sent_poll",
    "checklist": "sent_poll",
    "dice": "sent_dice",
    "game": "sent_dice",
}
"""The sentence for what is sent instead of words, by the field of a message that holds it."""


def question_of(
    update: Update, bot: Bot, text: str, *, kind: Kind = "chat", remembered: bool = True
) -> Question:
    """What an update asks, and where the answer goes; run again, it is the same trace."""
    chat_id, user_id = people_of(update)
    turn, typed = pending_turn(), (update.message and update.message.text) or ""
    return Question(
        id=update.update_id,
        text=text,
        kind=kind,
        typed=typed if typed.startswith("/") else text,
        accepted_at=turn.accepted_at if turn else None,
        interruptions=turn.tries - 1 if turn else 0,
        course=turn.course if turn else Course(),
        chat_id=chat_id,
        user_id=user_id,
        names=names_of(update),
        trace_id=trace_id_of(bot.id, chat_id, update.update_id),
        to=destination(update) if update.effective_message else None,
        remembered=remembered,
    )


def is_addressed(message: Message, bot: Bot) -> bool:
    """Whether a message is meant for the bot.

    In a private chat each is; in a group those that mention it, reply to it or command it by name.
    """
    if message.chat.type == ChatType.PRIVATE:
        return True
    return answer_meant(message, bot) is not None or any(
        _names(entity, text, bot) for entity, text in _entities(message).items()
    )


def wording(message: Message, bot: Bot) -> str:
    """What a message says, without the mentions that only address the bot."""
    text = message.text or message.caption or ""
    for entity, words in _entities(message).items():
        if entity.type == MessageEntity.MENTION and _names(entity, words, bot):
            text = text.replace(words, " ", 1)
    return text.strip()


def behind_command(text: str) -> str:
    """What a message says behind its command."""
    command = COMMAND.match(text)
    return text[command.end() if command else 0 :].strip()


def without_words(text: str) -> str:
    """Name the sentence for a message that has no words of its own; empty for one that has."""
    links = [each for each in live(text) if each.kind == "address"]
    own = "".join(
        text[before.end if before else 0 : after.start if after else len(text)]
        for before, after in zip([None, *links], [*links, None], strict=True)
    )
    if any(map(str.isalnum, own)):
        return ""
    if links:
        return "sent_link"
    return "sent_emoji" if any(unicodedata.category(each) == "So" for each in own) else "empty"


def with_context(words: str, message: Message, bot: Bot) -> str:
    """What a message asks, with the words that it points at fenced below: somebody else's.

    That is what is quoted, or what a person wrote whom it replies to. Forwarded words, and those of
    another bot, are no wish of who sends them. A reply to an answer of the bot is known from the
    conversation.
    """
    if not is_own(message):
        return f"{FORWARDED}\n{_fenced(words)}"
    replied = message.reply_to_message
    if message.quote is not None:
        return f"{words}\n\n{_fenced(message.quote.text)}".strip()
    if replied is None or answer_meant(message, bot) is not None:
        return words
    said = _fenced(replied.text or replied.caption or "")
    return f"{words}\n\n{said}".strip() if said else words


def answer_meant(message: Message, bot: Bot) -> int | None:
    """The id of the bot's message that a message replies to; None if it replies to none of them."""
    replied = message.reply_to_message
    is_ours = replied and replied.from_user and replied.from_user.id == bot.id
    return replied.message_id if replied and is_ours else None


def _fenced(said: str) -> str:
    lines = said[: lengths.MESSAGE // 2].strip().splitlines()
    return "\n".join(f"> {line}" for line in lines)


def _entities(message: Message) -> dict[MessageEntity, str]:
    if message.text:
        return message.parse_entities()
    return message.parse_caption_entities()


def _names(entity: MessageEntity, text: str, bot: Bot) -> bool:
    """Whether a mention or a command is of this bot."""
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == bot.id
    if entity.type in (MessageEntity.MENTION, MessageEntity.BOT_COMMAND):
        return text.lower().endswith(f"@{bot.username}".lower())
    return False


def message_of(update: Update) -> Message:
    """The message that an update is, or whose button was pressed."""
    assert update.effective_message is not None  # noqa: S101 - the filters let nothing else through
    return update.effective_message


def press_of(update: Update) -> CallbackQuery:
    """The press on a button that an update is."""
    assert update.callback_query is not None  # noqa: S101 - the handlers let nothing else through
    return update.callback_query


def is_private(update: Update) -> bool:
    """Whether nobody else is in the chat."""
    return message_of(update).chat.type == ChatType.PRIVATE


def people_of(update: Update) -> tuple[int, int]:
    """The ids of the chat and of the person an update is from; of the chat if nobody says."""
    chat, user = update.effective_chat, update.effective_user
    chat_id = chat.id if chat else 0
    return chat_id, user.id if user else chat_id


def names_of(update: Update) -> tuple[str, ...]:
    """What the people of a conversation are called: names that a trace must not show."""
    message = update.effective_message
    replied = message.reply_to_message.from_user if message and message.reply_to_message else None
    people = [update.effective_user, replied, update.effective_chat]
    names = [
        getattr(each, part)
        for each in people
        if each is not None and not getattr(each, "is_bot", False)
        for part in ("first_name", "last_name", "username")
    ]
    return tuple(dict.fromkeys(name[: lengths.NAME] for name in names if name))


def destination(update: Update) -> Destination:
    """Where an answer goes: the same topic, as a reply unless there are only two in the chat."""
    message = message_of(update)
    thread = message.message_thread_id if message.is_topic_message else None
    reply_to = None if message.chat.type == ChatType.PRIVATE else message.message_id
    return Destination(message.chat.id, thread, reply_to, is_answer=True)


R = TypeVar("R")

Context = ContextTypes.DEFAULT_TYPE
AnyHandler = BaseHandler[Any, Any, Any]


def is_own(message: Message) -> bool:
    """Whether the words of a message are those of who sent it."""
    return not is_foreign(message.to_dict(recursive=False))


class _Own(filters.MessageFilter):
    def filter(self, message: Message) -> bool:
        return is_own(message)


class Says(filters.MessageFilter):
    """Words that `say` something."""

    def __init__(self, say: Callable[[str], object]) -> None:
        super().__init__()
        self._say = say

    def filter(self, message: Message) -> bool:
        """Whether those of a message do."""
        return bool(self._say(message.text or ""))


TYPED: Final = filters.UpdateType.MESSAGE & _Own()
"""What somebody wrote themselves: only that is a command. Who forwards words, or sends those that
another bot made, may not know what they do here."""
PICTURE: Final = "[picture]"
"""What is remembered as the words of a message that has none."""
SOMEBODY_ELSE: Final = "…"
"""What stands for what another person of a group asked."""
LONGEST_LEAD: Final = 300
"""Characters of what was heard, as it is told above an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """What a question comes with beside its words, each read in its turn.

    `read` reads pictures, to nothing if nobody can see them: then `note` stands below the answer.
    `hear` hears what was said, `asks` makes a question of it, `aloud` reads the answer aloud if it
    is to be.
    """

    read: Callable[[Run], Awaitable[Attachment | None]] | None = None
    note: str = ""
    hear: Callable[[Run], Awaitable[Heard]] | None = None
    asks: Callable[[str], str] = str
    aloud: Callable[[Reply, Run], Awaitable[bytes]] | None = None


NOTHING: Final = Enclosed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The conversation with people.

    `history_messages` is how many earlier messages an answer may look back on.
    """

    resources: Resources
    turns: Turns
    sender: Sender
    answerer: Answerer
    history_messages: int = 20

    @property
    def repositories(self) -> Repositories:
        """Where things are kept."""
        return self.resources.repositories

    async def say(self, update: Update, markdown: str, buttons: Rows = ()) -> Delivery:
        """Answer an update with a sentence."""
        return await self.sender.send(destination(update), markdown, buttons)

    async def facts(self, update: Update) -> Sequence[Fact]:
        """Read what is remembered of who an update is from."""
        _, user_id = people_of(update)
        return await retry_briefly(partial(self.repositories.memory.facts, user_id))

    async def bottles(self, update: Update) -> Sequence[Bottles]:
        """Read what bottles somebody has told of, drunk ones too."""
        _, user_id = people_of(update)
        return await retry_briefly(partial(self.repositories.memory.bottles, user_id))

    async def change(
        self,
        update: Update,
        *,
        learned: tuple[Fact, ...] = (),
        unlearned: tuple[Fact, ...] = (),
        bottles: tuple[Bottles, ...] = (),
        undo_id: int = 0,
    ) -> None:
        """Change what is remembered of who an update is from, with the commit of the turn.

        The change can be undone under its `undo_id`, if it has one.
        """
        _, user_id = people_of(update)
        change = Change(
            user_id=user_id,
            learned=learned,
            unlearned=unlearned,
            bottles=bottles,
            undo_id=undo_id,
        )
        await self.save([change])

    async def save(self, changes: Sequence[Change]) -> None:
        """Store changes of what is remembered of people, with the commit of the turn that runs."""
        if (turn := pending_turn()) is not None:
            turn.ended.append(EndedTurn(None, changes=tuple(changes)))
        else:
            await self.repositories.turns.change(changes)

    async def text(self, update: Update, context: Context) -> None:
        """A message to answer: one turn."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        words = wording(message, context.bot)
        question = with_context(words, message, context.bot)
        if question == words and (unworded := without_words(words)):
            await self.say(update, say(unworded))
            return
        asked = question_of(update, context.bot, question)
        await self.respond(asked, answer_meant(message, context.bot))

    async def edited(self, update: Update, context: Context) -> None:
        """An edited message: the last turn is run again on its new words."""
        message = message_of(update)
        if not is_addressed(message, context.bot):
            return
        is_undone = not (message.text or "").startswith("/") and await self._undone(update)
        await (self.text(update, context) if is_undone else self.say(update, say("edited")))

    async def _undone(self, update: Update) -> bool:
        """Whether the turn that a message became part of was the last, and is forgotten now."""
        to, message, kept = destination(update), message_of(update), self.repositories
        find = partial(kept.inbox.turn_of, to.chat_id, message.message_id)
        turn_id = await retry_forever(find)
        if turn_id is None:
            return False
        # A try that was cut off may have undone it already.
        thread_id = to.thread_id or 0
        undone = await kept.messages.undo(to.chat_id, turn_id, thread_id=thread_id)
        return undone or is_retry()

    async def respond(
        self, question: Question, about: int | None = None, enclosed: Enclosed = NOTHING
    ) -> None:
        """One turn: the answer to a question, and `about` which message of the bot it is."""
        answer = _Answer(self, question, about, enclosed)
        await self.turns.turn(question, answer.work, hear=answer.hear if enclosed.hear else None)


@dataclass(slots=True)
class _Answer:
    """The work of one turn, and what was heard in it."""

    talk: Conversation
    question: Question
    about: int | None
    enclosed: Enclosed
    heard: Heard = field(default_factory=Heard)
    asked: str = ""

    async def hear(self, run: Run) -> str:
        """The words of a question that is spoken; they are shown while the answer forms."""
        assert self.enclosed.hear is not None  # noqa: S101 - it is not called without
        self.heard = await self.enclosed.hear(run)
        if said := self.heard.transcript.text:
            self.asked = self.enclosed.asks(said)
            if run.show is not None:
                run.show(lambda: lead_of(self.heard))
        return self.asked

    async def work(self, run: Run) -> Reply:
        """The answer; what came earlier is known from when the question was read."""
        if (instead := self._instead(run)) is not None:
            return instead
        enclosed, asked = self.enclosed, self.asked or self.question.text
        read = await enclosed.read(run) if enclosed.read else None
        history = await self._history()
        run = replace(run, history=window(history))
        attached = Attached(read) if read else attached_in(history)
        given = (attached,) if attached else ()
        asked = "" if asked == PICTURE else asked
        reply = await self.talk.answerer.answer(asked, run, *given)
        note = (enclosed.note,) if enclosed.note and read is None else ()
        return replace(
            reply,
            notes=(*reply.notes, *note),
            attachment=read.model_dump_json() if read else "",
            lead=lead_of(self.heard),
            audio=await enclosed.aloud(reply, run) if enclosed.aloud else b"",
        )

    def _instead(self, run: Run) -> Reply | None:
        """What is said instead of an answer: no wines from pictures to some, nothing was heard."""
        care, why = care_in(run), self.heard.why
        if self.enclosed.read and care.forbids_alcohol:
            return Reply(text=self.talk.turns.carer.help.why(care), outcome="care")
        if why:
            text, errors = say("not_heard"), (f"voice_{why}",)
            return Reply(text=text, outcome="fallback", error_types=errors)
        return None

    async def _history(self) -> Sequence[StoredMessage]:
        """What was said before, the turn that the question is about last."""
        history, meant = await self._said(), await self._meant()
        if self.question.chat_id < 0:
            history = [heard_by(self.question.user_id, each, meant) for each in history]
        newest = [each for each in history if meant is not None and each.turn_id == meant]
        return [*(each for each in history if each not in newest), *newest]

    async def _said(self) -> Sequence[StoredMessage]:
        """What was said before, also if the turn is run again and has kept its own words."""
        chat_id, thread = self.question.chat_id, self.question.thread_id
        messages, most = self.talk.repositories.messages, self.talk.history_messages
        recent = partial(messages.recent, chat_id, most, thread_id=thread)
        what = f"The history of chat {chat_id} could not be read; answering without"
        said = await or_else(partial(retry_briefly, recent), (), what)
        return [message for message in said if message.turn_id != self.question.id]

    async def _meant(self) -> int | None:
        """The id of the turn that is replied to."""
        if (about := self.about) is None:
            return None
        kept, chat_id = self.talk.repositories, self.question.chat_id
        what = "What is replied to could not be read"
        turn = await or_else(lambda: kept.turns.of_message(chat_id, about), None, what)
        return turn.turn_id if turn else None


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
