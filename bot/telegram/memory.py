"""/taste and /cellar: what is known of somebody's taste and bottles, shown and changed."""

import asyncio
from collections.abc import Callable, Sequence
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
from agent.person import SHARED, TOLD, Bottles, Fact
from agent.sommelier.taste import taste_of, written
from bot.reminding import OFF, reminded_in
from bot.telegram.buttons import Button, acknowledge, is_first_press
from bot.telegram.conversation import TYPED, AnyHandler, Context, Conversation
from bot.telegram.incoming import (
    behind_command,
    destination,
    is_private,
    message_of,
    people_of,
    press_of,
)
from bot.telegram.privacy import Asks

LONGEST_LABEL: Final = 40
SHARE, UNSHARE = ":share", ":unshare"
"""Without a kind before the colon: what is asked next in the chat comes after the press."""
FILE_NAME: Final = "cellar.csv"
LARGEST_FILE: Final = 2_000_000
"""Bytes."""
MOST: Final = 40
"""Facts that have a button."""


@dataclass(frozen=True, slots=True)
class TasteCommand:
    """Shows what is remembered of who asks, in private."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
        return [
            CommandHandler("taste", self.taste, filters=TYPED),
            MessageHandler(TYPED & filters.TEXT & ~filters.COMMAND & Asks("taste"), self.taste),
            CallbackQueryHandler(self.forget, pattern="^t:"),
        ]

    async def taste(self, update: Update, context: Context) -> None:
        """/taste: every fact that is known, with a button that forgets it."""
        if not is_private(update):
            await self.talk.say(update, say("only_in_private"))
            return
        facts = await self._facts(update)
        rows = tuple((Button(_label(each), _data(each)),) for each in facts[:MOST])
        words = say("taste_known") if facts else say("taste_unknown")
        await self.talk.say(update, words, rows)

    async def forget(self, update: Update, context: Context) -> None:
        """A press on a fact: it is forgotten, and its button goes."""
        query = press_of(update)
        gone = tuple(each for each in await self._facts(update) if _data(each) == query.data)
        await acknowledge(query, told(gone, "unlearned", spoken()))
        if isinstance(query.message, Message):
            this = partial(eq, query.data)
            await is_first_press(self.talk.sender.journal, query.message, this)
        if gone:
            await self.talk.change(update, unlearned=gone)

    async def _facts(self, update: Update) -> list[Fact]:
        """What somebody told, and what their verdicts come to."""
        facts = await self.talk.facts(update)
        liked = (wanted for wanted, said in taste_of(facts).likes if not said)
        told_ = (each for each in facts if each.kind in TOLD)
        known = sorted(told_, key=lambda each: TOLD.index(each.kind))
        return [*known, *(Fact("rated", written(wanted)) for wanted in liked)]


def _label(fact: Fact) -> str:
    label = in_words(fact, spoken())
    return f"✖ {label if len(label) <= LONGEST_LABEL else f'{label[:LONGEST_LABEL]}…'}"


def _data(fact: Fact) -> str:
    return f"t:{crc32(':'.join(fact.key).encode()):08x}"


@dataclass(frozen=True, slots=True)
class CellarCommand:
    """Shows what who asks owns: in private, and in a chat where they share it.

    `read` reads a CSV file, and how many of its rows it could not; `write` writes one.
    """

    talk: Conversation
    read: Callable[[bytes], tuple[list[Bottles], int]]
    write: Callable[[Sequence[Bottles]], bytes]

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
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
        to, talk = destination(update), self.talk
        if not is_private(update) and shared_in(to.chat_id) not in await talk.facts(update):
            buttons = ((Button(say("cellar_share_button"), SHARE),),)
            await talk.say(update, say("cellar_private"), buttons)
            return
        is_export = "export" in behind_command(message_of(update).text or "").lower()
        if is_export and (owned := await self._owned(update)):
            await talk.sender.send_file(to, FILE_NAME, self.write(owned))
            return
        await self._show(update)

    async def _owned(self, update: Update) -> list[Bottles]:
        return [each for each in await self.talk.bottles(update) if each.count]

    async def _show(self, update: Update) -> None:
        owned = await self._owned(update)
        said = whole_cellar(owned, datetime.now(UTC).year, spoken())
        if is_private(update):
            words = f"{said}\n\n{say('cellar_hint')}" if owned else said
            await self.talk.say(update, words)
            return
        buttons = ((Button(say("cellar_unshare_button"), UNSHARE),),)
        await self.talk.say(update, said, buttons)

    async def remind(self, update: Update, context: Context) -> None:
        """/remind: what of the cellar is to be opened this year; once a month without being asked.

        That it was told is kept with the end of the turn.
        """
        now, talk = message_of(update).date, self.talk
        due = due_in(await talk.bottles(update), await talk.facts(update), now.year)
        if not due:
            await talk.say(update, say("cellar_not_due"))
            return
        buttons = ((Button(say("cellar_remind_no_button"), "rm:off"),),)
        words = cellar(due, now.year, spoken(), "cellar_due")
        await talk.say(update, words, buttons)
        told_ = [Fact("setting", reminded_in(now)), *(told_in(each, now.year) for each in due)]
        await talk.change(update, learned=tuple(told_))

    async def no_reminders(self, update: Update, context: Context) -> None:
        """The button below a reminder: there is no other."""
        await acknowledge(press_of(update))
        await self.talk.say(update, say("cellar_remind_off"))
        await self.talk.change(update, learned=(Fact("setting", OFF),))

    async def share(self, update: Update, context: Context) -> None:
        """Show one's cellar in this chat from now on, or no more: whoever presses shows theirs."""
        query, (chat_id, _) = press_of(update), people_of(update)
        await acknowledge(query)
        setting = (shared_in(chat_id),)
        if query.data == UNSHARE:
            await self.talk.say(update, say("cellar_unshared"))
            await self.talk.change(update, unlearned=setting)
        else:
            await self._show(update)
            await self.talk.change(update, learned=setting)

    async def take(self, update: Update, context: Context) -> None:
        """A CSV file: its bottles are added to the cellar of who sends it."""
        document = message_of(update).document
        assert document is not None  # noqa: S101 - the handler lets nothing else through

        async def read() -> tuple[list[Bottles], int] | None:
            if (document.file_size or 0) > LARGEST_FILE:
                return None
            file = await context.bot.get_file(document.file_id)
            content = bytes(await file.download_as_bytearray())
            try:
                return await asyncio.to_thread(self.read, content)
            except ValueError:
                return None

        found = await self.talk.step("cellar.file", read)
        if found is None or not found[0]:
            await self.talk.say(update, say("cellar_unreadable"))
            return
        bottles, left = found
        count = sum(each.count for each in bottles)
        said = say("cellar_imported", count=str(count), wines=str(len(bottles)), left=str(left))
        await self.talk.say(update, said)
        await self.talk.change(update, bottles=tuple(bottles))


def shared_in(chat_id: int) -> Fact:
    """Return the setting of who shows their cellar in a chat."""
    return Fact("setting", SHARED.format(chat_id))
