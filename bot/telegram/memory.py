"""What is kept of a person: shown, changed, sent and deleted, by commands or in words.

/taste and /cellar, /privacy, /export and /forget. Of their own bottles people are reminded: once a
month at most, in their day, as a turn like others. What is due is accepted like an update, under an
id that person and month make: so it is sent once, whoever else runs and whatever is killed.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from operator import eq
from typing import Any, Final
from zlib import crc32

from pydantic_core import to_json
from telegram import Message, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.i18n import say, speaking, spoken
from agent.memory.cellar import due_in, told_in
from agent.memory.service import Asked, asked_of_memory, cellar, in_words, told, whole_cellar
from agent.sommelier.taste import taste_of, written
from agent.turn import SHARED, TOLD, Bottles, Change, Fact
from bot.retries import retry_briefly
from bot.telegram.buttons import acknowledge, is_first_press, show_rows
from bot.telegram.conversation import (
    TYPED,
    AnyHandler,
    Context,
    Conversation,
    Says,
    behind_command,
    destination,
    is_private,
    message_of,
    people_of,
    press_of,
)
from bot.telegram.sender import Button, Destination, Rows, messages_of
from bot.telegram.settings import spoken_by

YES, NO, SHARE, UNSHARE = ":forget", ":keep", ":share", ":unshare"
"""Without a kind before the colon a press keeps its place among what is asked in its chat."""
STANDS: Final = timedelta(minutes=10)
"""For how long a yes in words answers whether to delete; the button does so for ever."""
EXPORT_FILE, CELLAR_FILE = "sommelier.json", "cellar.csv"
LARGEST_FILE: Final = 2_000_000
"""Bytes."""
MOST, LONGEST_LABEL = 40, 40
"""Facts that have a button, and characters on it."""
KEPT: Final = "messages facts bottles cares feedback turns traces".split()
"""What is counted before it is deleted, each told by a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCommands:
    """Tells, changes, sends and deletes what is kept of who asks, in their private chat.

    Their cellar is shown also in a chat where they share it: `read` reads a CSV file of bottles,
    and how many of its rows it could not; `write` writes one. `days` is how long what is kept, by
    names of the sentence `privacy`. Traces go `elsewhere`, if to Langfuse; `is_deleted_there` what
    is deleted here. `asked` is when it was asked last whether to delete, by chat.
    """

    talk: Conversation
    read: Callable[[bytes], tuple[list[Bottles], int]]
    write: Callable[[Sequence[Bottles]], bytes]
    days: Mapping[str, float]
    elsewhere: str = ""
    is_deleted_there: bool = False
    asked: dict[int, datetime] = field(default_factory=dict)

    @property
    def commands(self) -> Mapping[Asked, Callable[[Update, Context], Coroutine[Any, Any, None]]]:
        """What is done about what is kept; "agree" in words alone."""
        return {
            "privacy": self.privacy,
            "export": self.export,
            "forget": self.forget,
            "agree": self.agreed,
            "taste": self.taste,
            "cellar": self.cellar,
        }

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
        private = filters.ChatType.PRIVATE
        csv = filters.UpdateType.MESSAGE & private & filters.Document.FileExtension("csv")
        asks = TYPED & private & filters.TEXT
        typed = [name for name in self.commands if name != "agree"]
        return [
            *(CommandHandler(name, self.commands[name], filters=TYPED) for name in typed),
            MessageHandler(asks & ~filters.COMMAND & Says(asked_of_memory), self.in_words),
            CallbackQueryHandler(self.decided, pattern=f"^(?:{YES}|{NO})$"),
            CallbackQueryHandler(self.forget_fact, pattern="^t:"),
            MessageHandler(csv, self.take),
            CommandHandler("remind", self.remind, filters=TYPED & private),
            CallbackQueryHandler(self.no_reminders, pattern="^rm:off$"),
            CallbackQueryHandler(self.share, pattern=f"^(?:{SHARE}|{UNSHARE})$"),
        ]

    async def in_words(self, update: Update, context: Context) -> None:
        """A message that asks for a command in words."""
        if asked := asked_of_memory(message_of(update).text or ""):
            await self.commands[asked](update, context)

    async def privacy(self, update: Update, context: Context) -> None:
        """/privacy: what is kept, for how long, and what can be done about it."""
        where = say("privacy_elsewhere", where=self.elsewhere) if self.elsewhere else ""
        await self.talk.say(update, say("privacy", **self.days, elsewhere=where))

    async def export(self, update: Update, context: Context) -> None:
        """/export: all that is kept of who asks, as one JSON document."""
        if await self._is_overheard(update):
            return
        read = partial(self.talk.repositories.personal.export, *self._who(update))
        found = to_json(await retry_briefly(read), indent=2)
        await self.talk.say(update, say("export_ready"))
        await self.talk.sender.send_file(destination(update), EXPORT_FILE, found)

    async def forget(self, update: Update, context: Context) -> None:
        """/forget: ask whether all that is kept of who asks is to be deleted."""
        if await self._is_overheard(update):
            return
        kept = await self._counted(update)
        buttons = ((Button(say("forget_yes_button"), YES), Button(say("forget_no_button"), NO)),)
        sure = say("forget_sure", kept=kept) if kept else say("forget_nothing")
        await self.talk.say(update, sure, buttons)
        self.asked[destination(update).chat_id] = message_of(update).date

    async def agreed(self, update: Update, context: Context) -> None:
        """A yes in words: to being forgotten, if that was asked just before; else it is talk."""
        asked = self.asked.pop(destination(update).chat_id, None)
        if asked is None or message_of(update).date - asked > STANDS:
            await self.talk.text(update, context)
        else:
            await self._delete(update)

    async def decided(self, update: Update, context: Context) -> None:
        """Delete everything with the end of this turn, or nothing; how much is told before."""
        query = press_of(update)
        await acknowledge(query)
        if isinstance(query.message, Message):
            await show_rows(query.message, ())
        if query.data != YES:
            await self.talk.say(update, say("forget_kept"))
            return
        await self._delete(update)

    async def _delete(self, update: Update) -> None:
        user_id, user = self._who(update)
        await self.talk.turns.stop_everywhere(user_id=user_id, is_forgotten=True)
        kept = await self._counted(update)
        stays = "forget_elsewhere" if self.is_deleted_there else "forget_not_elsewhere"
        where = say(stays, where=self.elsewhere) if self.elsewhere else ""
        done = say("forget_done", kept=kept, elsewhere=where)
        await self.talk.say(update, done if kept else say("forget_nothing"))
        await self.talk.save([Change(user_id=user_id, forget=user)])

    def _who(self, update: Update) -> tuple[int, str]:
        """The id of who asks, and what stands for it in traces."""
        _, user_id = people_of(update)
        return user_id, self.talk.turns.hashed("user", user_id)

    async def _counted(self, update: Update) -> str:
        """How much is kept of who asks, in words."""
        count = partial(self.talk.repositories.personal.count, *self._who(update))
        counts = await retry_briefly(count)
        return ", ".join(
            say(f"kept_{each}", count=counts[each]) for each in KEPT if counts.get(each)
        )

    async def _is_overheard(self, update: Update) -> bool:
        """Whether others are in the chat; then it is said where to ask."""
        if is_private(update):
            return False
        await self.talk.say(update, say("only_in_private"))
        return True

    async def taste(self, update: Update, context: Context) -> None:
        """/taste: every fact that is known, with a button that forgets it."""
        if await self._is_overheard(update):
            return
        facts = await self._facts(update)
        rows = tuple((Button(_label(each), _data(each)),) for each in facts[:MOST])
        words = say("taste_known") if facts else say("taste_unknown")
        await self.talk.say(update, words, rows)

    async def forget_fact(self, update: Update, context: Context) -> None:
        """A press on a fact: it is forgotten, and its button goes."""
        query = press_of(update)
        gone = tuple(each for each in await self._facts(update) if _data(each) == query.data)
        await acknowledge(query, told(gone, "unlearned", spoken()))
        if isinstance(query.message, Message):
            this = partial(eq, query.data)
            await is_first_press(query.message, this)
        if gone:
            await self.talk.change(update, unlearned=gone)

    async def _facts(self, update: Update) -> list[Fact]:
        """What somebody told, and what their verdicts come to."""
        facts = await self.talk.facts(update)
        liked = (wanted for wanted, said in taste_of(facts).likes if not said)
        told_ = (each for each in facts if each.kind in TOLD)
        known = sorted(told_, key=lambda each: TOLD.index(each.kind))
        return [*known, *(Fact("rated", written(wanted)) for wanted in liked)]

    async def cellar(self, update: Update, context: Context) -> None:
        """/cellar: all bottles with what they cost and when to drink them; `export`: as a file."""
        to, talk = destination(update), self.talk
        if not is_private(update) and shared_in(to.chat_id) not in await talk.facts(update):
            buttons = ((Button(say("cellar_share_button"), SHARE),),)
            await talk.say(update, say("cellar_private"), buttons)
            return
        is_export = "export" in behind_command(message_of(update).text or "").lower()
        if is_export and (owned := await self._owned(update)):
            await talk.sender.send_file(to, CELLAR_FILE, self.write(owned))
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
        await talk.say(update, *reminder(due, now.year))
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

        found = await read()
        if found is None or not found[0]:
            await self.talk.say(update, say("cellar_unreadable"))
            return
        bottles, left = found
        count = sum(each.count for each in bottles)
        said = say("cellar_imported", count=str(count), wines=str(len(bottles)), left=str(left))
        await self.talk.say(update, said)
        await self.talk.change(update, bottles=tuple(bottles))


def _label(fact: Fact) -> str:
    label = in_words(fact, spoken())
    return f"✖ {label if len(label) <= LONGEST_LABEL else f'{label[:LONGEST_LABEL]}…'}"


def _data(fact: Fact) -> str:
    return f"t:{crc32(':'.join(fact.key).encode()):08x}"


def shared_in(chat_id: int) -> Fact:
    """Return the setting of who shows their cellar in a chat."""
    return Fact("setting", SHARED.format(chat_id))


HOURS: Final = range(10, 20)
"""Of the day in which somebody may be reminded."""
REMINDED: Final = "reminded={}"
OFF: Final = "reminders=off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminding:
    """Reminds people of their own wines once a month; `zone` is where they live."""

    talk: Conversation
    zone: tzinfo = UTC
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def round(self) -> None:
        """Have each person to whom a reminder is due now be sent it."""
        now, memory = self.now().astimezone(self.zone), self.talk.repositories.memory
        if now.hour not in HOURS:
            return
        for user_id in await memory.owners(without=(OFF, reminded_in(now))):
            due = due_in(await memory.bottles(user_id), await memory.facts(user_id), now.year)
            if due:
                with speaking(await spoken_by(self.talk, user_id)):
                    words, buttons = reminder(due, now.year)
                told = tuple(told_in(one, now.year) for one in due)
                messages = await messages_of(Destination(user_id), words, buttons)
                month = Fact("setting", reminded_in(now))
                await memory.remind(user_id, month, told, messages)


def reminded_in(now: datetime) -> str:
    """Return the setting of who was reminded this month."""
    return REMINDED.format(f"{now:%Y-%m}")


def reminder(due: Sequence[Bottles], year: int) -> tuple[str, Rows]:
    """Return the words of a reminder, and the buttons under it."""
    buttons = ((Button(say("cellar_remind_no_button"), "rm:off"),),)
    return cellar(due, year, spoken(), "cellar_due"), buttons
