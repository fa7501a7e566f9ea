"""The commands of admins: what happens, why, and who is let in. For others they do not exist."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Literal

from telegram import CallbackQuery, Message, MessageOriginUser, Update
from telegram.constants import ChatType
from telegram.ext import CallbackQueryHandler, CommandHandler, filters

from agent.engine.errors import retry
from agent.engine.span import TraceRecord
from agent.i18n import say, speaking
from agent.repositories import CareRepository, PeopleRepository, TurnRecord, TurnRepository
from agent.text import pattern
from bot.admin.stats import stats_chart, stats_table
from bot.telegram.access import SpokenBy, spoken_by_nobody
from bot.telegram.handlers import TYPED, AnyHandler, Context
from bot.telegram.incoming import destination, message_of
from bot.telegram.look_up_text import behind_command
from bot.telegram.sender import Destination, Sender, acknowledge

DAYS: Final = 7
LOOKS: Final = 3
"""How often a trace is looked for: that of a turn that just ended is on its way."""
CHART_NAME: Final = "turns.png"
TREE_WIDTH: Final = 60  # characters: what a phone held sideways shows
PERSON: Final = pattern(r"\d{1,18}")
TICKS: Final = pattern("`+")
PRESSED: Final = r"^a:(\d{1,18}):(allow|block)$"

Decision = Literal["allow", "block"]
TraceOf = Callable[[str], Awaitable[TraceRecord]]
"""The trace with an id; raises LookupError if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminCommands:
    """/stats, /trace, /allow, /block and /clearcare, for those in `admin_ids`.

    A trace is shown as what `link` makes of its id, without one as the tree that `trace_of` finds.
    """

    sender: Sender
    people: PeopleRepository
    turns: TurnRepository
    cares: CareRepository
    admin_ids: frozenset[int]
    trace_of: TraceOf
    spoken_by: SpokenBy = spoken_by_nobody
    link: Callable[[str], str] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `Conversation.register`."""
        admins = TYPED & filters.User(self.admin_ids)
        return [
            CommandHandler("stats", self.stats, filters=admins),
            CommandHandler("trace", self.trace, filters=admins),
            CommandHandler("allow", partial(self.decide, "allow"), filters=admins),
            CommandHandler("block", partial(self.decide, "block"), filters=admins),
            CommandHandler("clearcare", self.clear_care, filters=admins),
            CallbackQueryHandler(self.decided, pattern=PRESSED),
        ]

    async def stats(self, update: Update, context: Context) -> None:
        """/stats: today and the last 7 days, as a table and as a picture; in private only."""
        if message_of(update).chat.type != ChatType.PRIVATE:
            await self.sender.send(destination(update), say("stats_in_private"))
            return
        stats = await self.turns.stats(self.now() - timedelta(days=DAYS - 1))
        await self.sender.send(destination(update), as_block(stats_table(stats)))
        picture = await asyncio.to_thread(stats_chart, stats.days)
        await self.sender.send_file(destination(update), CHART_NAME, picture, kind="photo")

    async def trace(self, update: Update, context: Context) -> None:
        """/trace: what happened in the turn that is replied to, else in the last of this chat."""
        replied, chat_id = replied_to(message_of(update)), message_of(update).chat.id
        if replied is None:
            turn = await self.turns.last(chat_id)
        else:
            turn = await self.turns.of_message(chat_id, replied.message_id)
        await self.sender.send(destination(update), await self._traced(turn))

    async def _traced(self, turn: TurnRecord | None) -> str:
        if turn is None:
            return say("nothing_to_trace")
        if turn.trace_id is None:
            return say("not_traced")
        if self.link is not None:
            return self.link(turn.trace_id)
        look = partial(self.trace_of, turn.trace_id)
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
            await self.sender.send(destination(update), say("whom", command=decision))
        else:
            await self._decide(update, whom, decision)

    async def clear_care(self, update: Update, context: Context) -> None:
        """/clearcare with an id, or as a reply: forget what was told of somebody; say what."""
        whom = person_meant(update)
        if whom is None:
            said = say("whom", command="clearcare")
        else:
            step = self.sender.journal.step
            told = await step("clearcare", lambda: self.cares.clear(whom))
            listed = ", ".join(each.replace("_", " ") for each in told)
            said = say("care_cleared" if told else "no_care_held", id=whom, told=listed)
        await self.sender.send(destination(update), said)

    async def decided(self, update: Update, context: Context) -> None:
        """A button below "asks to be let in": like the command."""
        if pressed := await admins_press(update, self.admin_ids):
            _, person, decision = pressed
            await self._decide(update, person, "allow" if decision == "allow" else "block")

    async def _decide(self, update: Update, whom: int, decision: Decision) -> None:
        """Let somebody in, who is told the first time, or keep them out; say what was done."""
        step = self.sender.journal.step
        known = await step("access", lambda: self.people.access(whom))
        if decision == "allow":
            await self.people.decide(whom, "allowed")
            said = say("allowed", id=whom)
        elif whom in self.admin_ids:
            said = say("admin_stays", id=whom)
        else:
            await self.people.decide(whom, "blocked")
            said = say("blocked", id=whom)
        if update.callback_query:
            await acknowledge(update.callback_query, said)
        await self.sender.send(destination(update), said)
        if decision == "allow" and known != "allowed":
            with speaking(await self.spoken_by(whom)):
                await self.sender.send(Destination(whom), say("let_in"))


async def admins_press(
    update: Update, admin_ids: Collection[int]
) -> tuple[CallbackQuery, int, str] | None:
    """The press, and the id and the word of its button; of others than admins None, and told."""
    query = update.callback_query
    assert query is not None  # noqa: S101 - the handler lets nothing else through
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
    if replied.forward_origin is not None:
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
