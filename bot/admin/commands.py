"""The commands of admins: what happens, why, who is let in, and a message to everyone.

For others they do not exist.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Literal

from telegram import CallbackQuery, Message, MessageOriginUser, Update
from telegram.constants import ChatType
from telegram.ext import CallbackQueryHandler, CommandHandler, filters

from agent.engine.errors import retry
from agent.i18n import say, speaking
from agent.markdown import link, live
from agent.text import pattern
from bot.outgoing import Button, Destination, Rows
from bot.telegram.buttons import acknowledge, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import TYPED, behind_command, message_of, press_of
from bot.telegram.sender import messages_of
from bot.telegram.settings import spoken_by
from bot.updates.bursts import is_forwarded
from db.models import OutboxRow, TurnRow

DAYS: Final = 7
LOOKS: Final = 3
"""How often a trace is looked for: that of a turn that just ended is on its way."""
TREE_WIDTH: Final = 60  # characters: what a phone held sideways shows
PERSON: Final = pattern(r"\d{1,18}")
TICKS: Final = pattern("`+")
DECIDED: Final = r"^a:(\d{1,18}):(allow|block)$"
BROADCAST: Final = r"^b:(\d{1,18}):(send|cancel)$"

Decision = Literal["allow", "block"]


@dataclass(frozen=True, slots=True)
class AdminCommands:
    """/stats, /trace, /allow, /block, /clearcare and /broadcast, for those in `admin_ids`.

    A trace is shown as what `link` makes of its id, without one as a tree. A broadcast goes to
    every private chat of somebody who is not blocked, with `only_allowed` of those who are let in.
    """

    talk: Conversation
    admin_ids: frozenset[int]
    link: Callable[[str], str] | None = None
    only_allowed: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
        admins = TYPED & filters.User(self.admin_ids)
        return [
            CommandHandler("stats", self.stats, filters=admins),
            CommandHandler("trace", self.trace, filters=admins),
            CommandHandler("allow", partial(self.decide, "allow"), filters=admins),
            CommandHandler("block", partial(self.decide, "block"), filters=admins),
            CommandHandler("clearcare", self.clear_care, filters=admins),
            CallbackQueryHandler(self.decided, pattern=DECIDED),
            CommandHandler("broadcast", self.draft, filters=admins),
            CallbackQueryHandler(self.pressed, pattern=BROADCAST),
        ]

    async def stats(self, update: Update, context: Context) -> None:
        """/stats: show today and the last 7 days as a table; in private only."""
        if message_of(update).chat.type != ChatType.PRIVATE:
            await self.talk.say(update, say("stats_in_private"))
            return
        stats = await self.talk.repositories.turns.stats(self.now() - timedelta(days=DAYS - 1))
        from bot.admin.page import stats_table  # noqa: PLC0415 - only for admins

        await self.talk.say(update, as_block(stats_table(stats)))

    async def trace(self, update: Update, context: Context) -> None:
        """/trace: what happened in the turn that is replied to, else in the last of this chat."""
        replied, chat_id = replied_to(message_of(update)), message_of(update).chat.id
        turns = self.talk.repositories.turns
        if replied is None:
            turn = await turns.last(chat_id)
        else:
            turn = await turns.of_message(chat_id, replied.message_id)
        await self.talk.say(update, await self._traced(turn))

    async def _traced(self, turn: TurnRow | None) -> str:
        if turn is None:
            return say("nothing_to_trace")
        if turn.trace_id is None:
            return say("not_traced")
        if self.link is not None:
            return self.link(turn.trace_id)
        look = partial(self.talk.repositories.traces.get, turn.trace_id)
        try:
            found = await retry(look, tries=LOOKS, on=lambda each: isinstance(each, LookupError))
        except LookupError:
            return say("not_traced")
        from bot.commands.traces import tree_text  # noqa: PLC0415 - only for admins

        return as_block(tree_text(found, TREE_WIDTH))

    async def decide(self, decision: Decision, update: Update, context: Context) -> None:
        """/allow or /block with an id, or as a reply to somebody's message."""
        whom = person_meant(update)
        if whom is None:
            await self.talk.say(update, say("whom", command=decision))
        else:
            await self._decide(update, whom, decision)

    async def clear_care(self, update: Update, context: Context) -> None:
        """/clearcare with an id, or as a reply: forget what was told of somebody; say what."""
        whom = person_meant(update)
        if whom is None:
            said = say("whom", command="clearcare")
        else:
            told = await self.talk.repositories.cares.clear(whom)
            listed = ", ".join(each.replace("_", " ") for each in told)
            said = say("care_cleared" if told else "no_care_held", id=whom, told=listed)
        await self.talk.say(update, said)

    async def decided(self, update: Update, context: Context) -> None:
        """A button below "asks to be let in": like the command."""
        if pressed := await admins_press(update, self.admin_ids):
            _, person, decision = pressed
            await self._decide(update, person, "allow" if decision == "allow" else "block")

    async def _decide(self, update: Update, whom: int, decision: Decision) -> None:
        """Let somebody in, who is told the first time, or keep them out; say what was done."""
        people = self.talk.repositories.people
        known = await people.access(whom)
        if decision == "allow":
            await people.decide(whom, "allowed")
            said = say("allowed", id=whom)
        elif whom in self.admin_ids:
            said = say("admin_stays", id=whom)
        else:
            await people.decide(whom, "blocked")
            said = say("blocked", id=whom)
        if update.callback_query:
            await acknowledge(update.callback_query, said)
        await self.talk.say(update, said)
        if decision == "allow" and known != "allowed":
            with speaking(await spoken_by(self.talk, whom)):
                await self.talk.sender.send(Destination(whom), say("let_in"))

    async def draft(self, update: Update, context: Context) -> None:
        """/broadcast TEXT, or as a reply: the message as it will look, and who would get it."""
        words = words_of(update)
        if not words:
            await self.talk.say(update, say("broadcast_usage"))
            return
        chats = len(await self._chats())
        if not chats:
            await self.talk.say(update, say("broadcast_to_nobody"))
            return
        admin = update.effective_user
        broadcasts = self.talk.repositories.broadcasts
        drafted = await broadcasts.draft(words, admin.id if admin else 0)
        await self.talk.say(update, words)
        preview = say("broadcast_preview", count=chats)
        await self.talk.say(update, preview, choice(drafted))

    async def pressed(self, update: Update, context: Context) -> None:
        """Send or cancel, on the first press; any other press only says that it is over."""
        if (pressed := await admins_press(update, self.admin_ids)) is None:
            return
        query, broadcast_id, word = pressed
        await (self._send if word == "send" else self._cancel)(broadcast_id, update, query)

    async def _cancel(self, broadcast_id: int, update: Update, query: CallbackQuery) -> None:
        cancelled = await self.talk.repositories.broadcasts.cancel(broadcast_id)
        await self._heard(query, say("broadcast_over") if not cancelled else "")
        if cancelled:
            await self.talk.say(update, say("broadcast_cancelled"))

    async def _send(self, broadcast_id: int, update: Update, query: CallbackQuery) -> None:
        """Have a draft sent to everyone, once; the process that leads does it."""
        broadcasts = self.talk.repositories.broadcasts
        draft = await broadcasts.get(broadcast_id)
        parts = await messages_of(Destination(0), draft.text) if draft else []
        messages = [
            OutboxRow(chat_id=chat_id, html=part.html, follows=part.follows)
            for chat_id in await self._chats()
            for part in parts
        ]
        is_begun = draft is not None and await broadcasts.begin(broadcast_id, messages)
        await self._heard(query, "" if is_begun else say("broadcast_over"))

    async def _heard(self, query: CallbackQuery, words: str) -> None:
        """End the waiting sign, and take the buttons away."""
        await acknowledge(query, words)
        if isinstance(query.message, Message):
            await show_rows(query.message, ())

    async def _chats(self) -> list[int]:
        return await self.talk.repositories.people.private_chats(only_allowed=self.only_allowed)


async def admins_press(
    update: Update, admin_ids: Collection[int]
) -> tuple[CallbackQuery, int, str] | None:
    """The press, and the id and the word of its button; of others than admins None, and told."""
    query = press_of(update)
    if query.from_user.id in admin_ids:
        _, pressed_id, word = str(query.data).split(":")
        return query, int(pressed_id), word
    await acknowledge(query, say("button_too_old"))
    return None


def person_meant(update: Update) -> int | None:
    """The person whom a command names by their id, or whose message it replies to.

    Of a forwarded message it is whoever wrote it first, if they do not hide. Words that are no id
    name nobody: they may mean somebody else than who is replied to.
    """
    message = message_of(update)
    if words := behind_command(message.text or ""):
        return named(message, words)
    replied = replied_to(message)
    if replied is None or replied.sender_chat is not None:
        return None
    if is_forwarded(replied.to_dict(recursive=False)):
        origin = replied.forward_origin
        return origin.sender_user.id if isinstance(origin, MessageOriginUser) else None
    author = replied.from_user
    return author.id if author is not None and not author.is_bot else None


def named(message: Message, words: str) -> int | None:
    """The person whose id `words` are, or who is mentioned without having a @name."""
    if PERSON.fullmatch(words):
        return int(words)
    people = [entity.user for entity in message.parse_entities(["text_mention"])]
    return people[0].id if len(people) == 1 and people[0] is not None else None


def replied_to(message: Message) -> Message | None:
    """The message that an admin replied to; in a topic every message replies to its beginning."""
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created else replied


def as_block(text: str) -> str:
    """A text as a Markdown block in which every character stands as it is."""
    longest = max((len(run) for run in TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def words_of(update: Update) -> str:
    """What is to be told: the words behind the command, else those of the message replied to."""
    message = message_of(update)
    replied = message.reply_to_message
    told = (replied.text or replied.caption or "") if replied else ""
    return linked(behind_command(message.text or "") or told.strip())


def linked(words: str) -> str:
    """An admin's own words, whose web addresses can be tapped."""
    parts, end = list[str](), 0
    for found in live(words):
        address = link(words[found.start : found.end])
        parts += [words[end : found.start], address or words[found.start : found.end]]
        end = found.end
    return "".join([*parts, words[end:]])


def choice(broadcast_id: int) -> Rows:
    """The buttons below a preview."""
    send, cancel = f"b:{broadcast_id}:send", f"b:{broadcast_id}:cancel"
    return ((Button(say("send_button"), send), Button(say("cancel_button"), cancel)),)
