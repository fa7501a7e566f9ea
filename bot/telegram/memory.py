"""/taste: what is known of somebody's taste, each fact with a button that forgets it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Final
from zlib import crc32

from telegram import Message, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.i18n import say, spoken
from agent.memory.wording import in_words, told
from agent.person import TOLD, Change, Fact
from agent.repositories import MemoryRepository
from agent.sommelier.taste import taste_of, written
from bot.telegram.handlers import TYPED, AnyHandler, Context
from bot.telegram.incoming import destination, people_of
from bot.telegram.privacy import Asks, is_private
from bot.telegram.sender import Button, Sender, acknowledge, is_first_press
from bot.turn import retry_briefly

LONGEST_LABEL: Final = 40
MOST: Final = 40
"""Facts that have a button."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasteCommand:
    """Shows what is remembered of who asks, in private; `change` changes it with the turn's end."""

    sender: Sender
    memory: MemoryRepository
    change: Callable[[Sequence[Change]], Awaitable[None]]

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `Conversation.register`."""
        return [
            CommandHandler("taste", self.taste, filters=TYPED),
            MessageHandler(TYPED & filters.TEXT & ~filters.COMMAND & Asks("taste"), self.taste),
            CallbackQueryHandler(self.forget, pattern="^t:"),
        ]

    async def taste(self, update: Update, context: Context) -> None:
        """/taste: every fact that is known, with a button that forgets it."""
        if not is_private(update):
            await self.sender.send(destination(update), say("only_in_private"))
            return
        facts = await self._facts(update)
        rows = tuple((Button(_label(each), _data(each)),) for each in facts[:MOST])
        words = say("taste_known") if facts else say("taste_unknown")
        await self.sender.send(destination(update), words, rows)

    async def forget(self, update: Update, context: Context) -> None:
        """A press on a fact: it is forgotten, and its button goes."""
        query = update.callback_query
        assert query is not None  # noqa: S101 - the handler lets nothing else through
        _, user_id = people_of(update)
        gone = tuple(each for each in await self._facts(update) if _data(each) == query.data)
        await acknowledge(query, told(gone, "unlearned", spoken()))
        if isinstance(query.message, Message):
            this = partial(eq, query.data)
            await is_first_press(self.sender.journal, query.message, this)
        if gone:
            await self.change([Change(user_id=user_id, unlearned=gone)])

    async def _facts(self, update: Update) -> list[Fact]:
        """What somebody told, and what their verdicts come to."""
        _, user_id = people_of(update)
        facts = await retry_briefly(partial(self.memory.facts, user_id))
        liked = (wanted for wanted, said in taste_of(facts).likes if not said)
        told_ = (each for each in facts if each.kind in TOLD)
        known = sorted(told_, key=lambda each: TOLD.index(each.kind))
        return [*known, *(Fact("rated", written(wanted)) for wanted in liked)]


def _label(fact: Fact) -> str:
    label = in_words(fact, spoken())
    return f"✖ {label if len(label) <= LONGEST_LABEL else f'{label[:LONGEST_LABEL]}…'}"


def _data(fact: Fact) -> str:
    return f"t:{crc32(':'.join(fact.key).encode()):08x}"
