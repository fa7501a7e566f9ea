"""Commands about the memory of a user: /taste, /cellar, /privacy, /export and /forget."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from zlib import crc32

from pydantic_core import to_json
from telegram import Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.i18n import translate
from agent.memory.cellar import bottles_in_stock, read_bottles, take_bottles, whole_cellar
from agent.memory.taste import contradicted_facts, facts_in, in_words, new_facts, removed_note
from agent.memory.tools import change_notes
from agent.sommelier.safety import taste_of, written
from agent.turn import STATED_KINDS, Bottles, Change, Fact, Person
from bot.outgoing import Button
from bot.telegram.buttons import acknowledge, remove_buttons, show_rows
from bot.telegram.conversation import (
    AnyHandler,
    Context,
    Conversation,
    on_command,
    on_press,
    telegram_callback,
)
from bot.telegram.messages import (
    TYPED_BY_USER,
    behind_command,
    chat_and_user_ids,
    destination,
    message_of,
    press_of,
)
from bot.telegram.noticed import undo_button
from db.wines.lists import read_cellar

YES, NO = ":forget", ":keep"
"""Without a prefix before the colon a press waits in the lane of its chat."""
FORGET_FACT: Final = "t:"
EXPORT_FILE: Final = "sommelier.json"
MAX_FILE_BYTES: Final = 2_000_000
MAX_FACTS: Final = 40
"""The most facts that have a button."""
MAX_LABEL: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyCommands:
    """Tells, exports and deletes what is stored of a user, in their private chat.

    `days` fills the text `privacy`. Traces go `elsewhere`, if to a server; `is_deleted_there` tells
    whether they are deleted there, too.
    """

    conversation: Conversation
    days: Mapping[str, float]
    elsewhere: str = ""
    is_deleted_there: bool = False

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        commands = {"privacy": self.privacy, "export": self.export, "forget": self.forget}
        return [
            *(
                CommandHandler(name, handle, filters=TYPED_BY_USER)
                for name, handle in commands.items()
            ),
            CallbackQueryHandler(self.decided, pattern=f"^(?:{YES}|{NO})$"),
        ]

    async def privacy(self, update: Update, context: Context) -> None:
        """Answer /privacy: say what is stored, for how long, and how to delete it."""
        where = translate("privacy_elsewhere", where=self.elsewhere) if self.elsewhere else ""
        days = {name: f"{days:g}" for name, days in self.days.items()}
        await self.conversation.reply(update, translate("privacy", **days, elsewhere=where))

    async def export(self, update: Update, context: Context) -> None:
        """Answer /export with all that is stored of a user, as one JSON document."""
        _, user_id = chat_and_user_ids(update)
        personal, user = (
            self.conversation.repositories.personal,
            self.conversation.trace_name("user", user_id),
        )
        found = to_json(await personal.export(user_id, user), indent=2)
        await self.conversation.reply(update, translate("export_ready"))
        await self.conversation.sender.send_file(destination(update), EXPORT_FILE, found)

    async def forget(self, update: Update, context: Context) -> None:
        """Answer /forget: ask whether to delete all that is stored of a user."""
        yes = Button(translate("forget_yes_button"), YES)
        no = Button(translate("forget_no_button"), NO)
        await self.conversation.reply(update, translate("forget_sure"), ((yes, no),))

    async def decided(self, update: Update, context: Context) -> None:
        """Delete everything with the end of this turn, or nothing."""
        query, (_, user_id) = press_of(update), chat_and_user_ids(update)
        await acknowledge(query)
        await show_rows(query.message, ())
        if query.data != YES:
            await self.conversation.reply(update, translate("forget_kept"))
            return
        await self.conversation.turns.running.stop_everywhere(user_id=user_id, is_forgotten=True)
        stays = "forget_elsewhere" if self.is_deleted_there else "forget_not_elsewhere"
        where = translate(stays, where=self.elsewhere) if self.elsewhere else ""
        await self.conversation.reply(update, translate("forget_done", elsewhere=where))
        await self.conversation.change_memory(
            update, forget=self.conversation.trace_name("user", user_id)
        )


def memory_handlers(conversation: Conversation) -> list[AnyHandler]:
    """Return the handlers of the taste and the cellar of a user."""
    private = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
    csv = private & filters.Document.FileExtension("csv")
    return [
        on_command(conversation, "taste", _taste),
        on_command(conversation, "cellar", _cellar),
        on_press(conversation, FORGET_FACT, _forget_fact),
        MessageHandler(csv, telegram_callback(conversation, _take_file)),
    ]


async def _taste(conversation: Conversation, update: Update) -> None:
    """Answer /taste: list the known facts with buttons that forget them, or learn new ones."""
    facts = await conversation.facts(update)
    if stated := facts_in(behind_command(message_of(update).text or "")):
        new = new_facts(stated, facts)
        gone = tuple(old for fact in new for old in contradicted_facts(fact, facts))
        await _change(conversation, update, added_facts=new, removed_facts=gone)
        return
    known = _listed(facts)
    rows = tuple((Button(_label(fact), _data(fact)),) for fact in known[:MAX_FACTS])
    await conversation.reply(update, translate("taste_known" if known else "taste_unknown"), rows)


async def _forget_fact(conversation: Conversation, update: Update) -> None:
    """Forget the fact of a pressed button, and take the button away."""
    query, facts = press_of(update), _listed(await conversation.facts(update))
    gone = tuple(fact for fact in facts if _data(fact) == query.data)
    await acknowledge(query, removed_note(gone))
    await remove_buttons(query.message, lambda data: data == query.data)
    if gone:
        await conversation.change_memory(update, removed_facts=gone)


async def _cellar(conversation: Conversation, update: Update) -> None:
    """Answer /cellar: list, `add` or `remove` bottles."""
    action, _, line = behind_command(message_of(update).text or "").partition(" ")
    bottles = await conversation.bottles(update)
    if action == "add" and (bought := read_bottles(line)):
        await _change(conversation, update, bottles=(bought,))
    elif action == "remove":
        asked = read_bottles(line)
        gone = take_bottles(bottles, line, asked.count if asked else None)
        await _change(conversation, update, bottles=(gone,) if gone else ())
    else:
        hint = f"\n\n{translate('cellar_hint')}" if bottles_in_stock(bottles) else ""
        shown = whole_cellar(bottles, datetime.now(UTC).year)
        await conversation.reply(update, shown + hint)


async def _take_file(conversation: Conversation, update: Update) -> None:
    """Add the bottles of a CSV file to the cellar of the person who sends it."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    bottles, left = list[Bottles](), 0
    if (document.file_size or 0) <= MAX_FILE_BYTES:
        file = await document.get_file()
        content = bytes(await file.download_as_bytearray())
        with suppress(ValueError):
            bottles, left = await asyncio.to_thread(read_cellar, content)
    if not bottles:
        await conversation.reply(update, translate("cellar_unreadable"))
        return
    count = str(sum(wine.count for wine in bottles))
    said = translate("cellar_imported", count=count, wines=str(len(bottles)), left=str(left))
    await conversation.reply(update, said, undo_button(update.update_id))
    await conversation.change_memory(update, bottles=tuple(bottles), undo_id=update.update_id)


async def _change(conversation: Conversation, update: Update, **fields: Any) -> None:
    """Make a change with the end of the turn, and confirm it with a button that undoes it.

    `fields` are those of `Change`.
    """
    (_, user_id), undo_id = chat_and_user_ids(update), update.update_id
    change = Change(user_id=user_id, undo_id=undo_id, **fields)
    known = Person(bottles=tuple(await conversation.bottles(update)), user_id=user_id)
    if said := change_notes(change, known):
        await conversation.reply(update, "\n\n".join(said), undo_button(undo_id))
        await conversation.store_change(change)
    else:
        await conversation.reply(update, translate("nothing_changed"))


def _listed(facts: Sequence[Fact]) -> list[Fact]:
    """Return the stated facts of a user, and the likes that follow from their ratings."""
    liked = (wanted for wanted, said in taste_of(facts).likes if not said)
    stated = (fact for fact in facts if fact.kind in STATED_KINDS)
    known = sorted(stated, key=lambda fact: STATED_KINDS.index(fact.kind))
    return [*known, *(Fact("rated", written(wanted)) for wanted in liked)]


def _label(fact: Fact) -> str:
    label = in_words(fact)
    return f"✖ {label if len(label) <= MAX_LABEL else f'{label[:MAX_LABEL]}…'}"


def _data(fact: Fact) -> str:
    return f"{FORGET_FACT}{crc32(':'.join(fact.key).encode()):08x}"
