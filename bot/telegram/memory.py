"""/taste and /cellar: what is known of somebody's taste and bottles, shown and changed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import eq
from typing import Final
from zlib import crc32

from telegram import Message, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.i18n import say, spoken
from agent.memory.cellar import due_in, told_in
from agent.memory.wording import cellar, in_words, told, whole_cellar
from agent.person import SHARED, TOLD, Bottles, Change, Fact
from agent.repositories import MemoryRepository
from agent.sommelier.taste import taste_of, written
from bot.reminding import OFF, reminded_in
from bot.telegram.handlers import TYPED, AnyHandler, Context
from bot.telegram.incoming import destination, message_of, people_of
from bot.telegram.look_up_text import behind_command
from bot.telegram.privacy import Asks, is_private
from bot.telegram.sender import Button, Sender, acknowledge, is_first_press
from bot.turn import retry_briefly

LONGEST_LABEL: Final = 40
SHARE, UNSHARE = ":share", ":unshare"
"""Without a kind before the colon: what is asked next in the chat comes after the press."""
FILE_NAME: Final = "cellar.csv"
LARGEST_FILE: Final = 2_000_000
"""Bytes."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CellarCommand:
    """Shows what who asks owns: in private, and in a chat where they share it.

    `read` reads a CSV file, and how many of its rows it could not; `write` writes one.
    """

    sender: Sender
    memory: MemoryRepository
    change: Callable[[Sequence[Change]], Awaitable[None]]
    read: Callable[[bytes], tuple[list[Bottles], int]]
    write: Callable[[Sequence[Bottles]], bytes]

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `Conversation.register`."""
        new = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
        return [
            CommandHandler("cellar", self.cellar, filters=TYPED),
            MessageHandler(TYPED & filters.TEXT & ~filters.COMMAND & Asks("cellar"), self.cellar),
            MessageHandler(new & filters.Document.FileExtension("csv"), self.take),
            CommandHandler("remind", self.remind, filters=TYPED & filters.ChatType.PRIVATE),
            CallbackQueryHandler(self.no_reminders, pattern="^rm:off$"),
            CallbackQueryHandler(self.share, pattern=f"^(?:{SHARE}|{UNSHARE})$"),
        ]

    async def cellar(self, update: Update, context: Context) -> None:
        """/cellar: all bottles with what they cost and when to drink them; `export`: as a file."""
        to, (chat_id, user_id) = destination(update), people_of(update)
        facts = await retry_briefly(partial(self.memory.facts, user_id))
        if not is_private(update) and shared_in(chat_id) not in facts:
            buttons = ((Button(say("cellar_share_button"), SHARE),),)
            await self.sender.send(to, say("cellar_private"), buttons)
            return
        bottles = await retry_briefly(partial(self.memory.bottles, user_id))
        owned = [each for each in bottles if each.count]
        if "export" in behind_command(message_of(update).text or "").lower() and owned:
            await self.sender.send_file(to, FILE_NAME, self.write(owned))
            return
        await self._show(update, owned)

    async def _show(self, update: Update, owned: Sequence[Bottles]) -> None:
        said = whole_cellar(owned, datetime.now(UTC).year, spoken())
        if is_private(update):
            words = f"{said}\n\n{say('cellar_hint')}" if owned else said
            await self.sender.send(destination(update), words)
            return
        buttons = ((Button(say("cellar_unshare_button"), UNSHARE),),)
        await self.sender.send(destination(update), said, buttons)

    async def remind(self, update: Update, context: Context) -> None:
        """/remind: what of the cellar is to be opened this year; once a month without being asked.

        That it was told is kept with the end of the turn.
        """
        _, user_id = people_of(update)
        now = message_of(update).date
        facts = await retry_briefly(partial(self.memory.facts, user_id))
        bottles = await retry_briefly(partial(self.memory.bottles, user_id))
        due = due_in(bottles, facts, now.year)
        if not due:
            await self.sender.send(destination(update), say("cellar_not_due"))
            return
        buttons = ((Button(say("cellar_remind_no_button"), "rm:off"),),)
        words = cellar(due, now.year, spoken(), "cellar_due")
        await self.sender.send(destination(update), words, buttons)
        told_ = [Fact("setting", reminded_in(now)), *(told_in(each, now.year) for each in due)]
        await self.change([Change(user_id=user_id, learned=tuple(told_))])

    async def no_reminders(self, update: Update, context: Context) -> None:
        """The button below a reminder: there is no other."""
        query = update.callback_query
        assert query is not None  # noqa: S101 - the handler lets nothing else through
        _, user_id = people_of(update)
        await acknowledge(query)
        await self.sender.send(destination(update), say("cellar_remind_off"))
        await self.change([Change(user_id=user_id, learned=(Fact("setting", OFF),))])

    async def share(self, update: Update, context: Context) -> None:
        """Show one's cellar in this chat from now on, or no more: whoever presses shows theirs."""
        query = update.callback_query
        assert query is not None  # noqa: S101 - the handler lets nothing else through
        chat_id, user_id = people_of(update)
        await acknowledge(query)
        setting = (shared_in(chat_id),)
        if query.data == UNSHARE:
            await self.sender.send(destination(update), say("cellar_unshared"))
            await self.change([Change(user_id=user_id, unlearned=setting)])
            return
        bottles = await retry_briefly(partial(self.memory.bottles, user_id))
        await self._show(update, [each for each in bottles if each.count])
        await self.change([Change(user_id=user_id, learned=setting)])

    async def take(self, update: Update, context: Context) -> None:
        """A CSV file: its bottles are added to the cellar of who sends it."""
        document = message_of(update).document
        assert document is not None  # noqa: S101 - the handler lets nothing else through
        _, user_id = people_of(update)

        async def read() -> tuple[list[Bottles], int] | None:
            if (document.file_size or 0) > LARGEST_FILE:
                return None
            file = await context.bot.get_file(document.file_id)
            content = bytes(await file.download_as_bytearray())
            try:
                return await asyncio.to_thread(self.read, content)
            except ValueError:
                return None

        found = await self.sender.journal.step("cellar.file", read)
        if found is None or not found[0]:
            await self.sender.send(destination(update), say("cellar_unreadable"))
            return
        bottles, left = found
        count = sum(each.count for each in bottles)
        said = say("cellar_imported", count=str(count), wines=str(len(bottles)), left=str(left))
        await self.sender.send(destination(update), said)
        await self.change([Change(user_id=user_id, bottles=tuple(bottles))])


def shared_in(chat_id: int) -> Fact:
    """Return the setting of who shows their cellar in a chat."""
    return Fact("setting", SHARED.format(chat_id))
