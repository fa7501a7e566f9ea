"""The taste and the cellar of a user: /taste, /cellar, and reminders of bottles that are due.

A reminder is a message without a turn, stored with the fact that it was given: so it is sent once,
also with replicas and after a kill.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from zlib import crc32

from telegram import Update
from telegram.ext import filters

from agent.i18n import translate, use_language
from agent.memory.cellar import (
    find_due_items,
    find_removal,
    format_cellar,
    format_items,
    items_in_stock,
    parse_cellar_item,
    reminder_fact,
)
from agent.memory.taste import (
    describe_fact,
    find_contradicted_facts,
    find_new_facts,
    format_removed_facts,
    parse_facts,
)
from agent.memory.tools import format_change
from agent.sommelier.safety import format_taste, get_liked_by_ratings
from agent.turn import STATED_KINDS, CellarItem, Change, Fact, Person
from bot.question import Destination
from bot.telegram.answer_buttons import undo_button
from bot.telegram.buttons import acknowledge, remove_buttons
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_message, on_press
from bot.telegram.messages import chat_and_user_ids, message_of, press_of, text_after_command
from bot.telegram.sender import Button, build_messages
from db.wines.lists import read_cellar

FORGET_FACT: Final = "t:"
NO_REMINDERS: Final = "rm:off"
OFF: Final = "reminders=off"
"""The setting of a user who wants no reminders."""
REMINDER_HOURS: Final = range(10, 20)
"""The hours of the day in which somebody may be reminded."""
MAX_FILE_BYTES: Final = 2_000_000
MAX_FACTS: Final = 40
"""The most facts that have a button."""
MAX_LABEL: Final = 40


def memory_handlers() -> list[AnyHandler]:
    """Return the handlers of these commands and their buttons."""
    private = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
    csv = private & filters.Document.FileExtension("csv")
    return [
        on_command("taste", _taste),
        on_command("cellar", _cellar),
        on_press(FORGET_FACT, _forget_fact),
        on_message(csv, _take_file),
        on_press(NO_REMINDERS, _end_reminders),
    ]


async def _taste(update: Update, conversation: Conversation) -> None:
    """Answer /taste: list the known facts with buttons that forget them, or learn new ones."""
    facts = await conversation.facts(update)
    if stated := parse_facts(text_after_command(message_of(update))):
        new = find_new_facts(stated, facts)
        gone = tuple(old for fact in new for old in find_contradicted_facts(fact, facts))
        await _change(update, conversation, added_facts=new, removed_facts=gone)
        return
    known = _listed(facts)
    rows = tuple(
        (Button(f"✖ {describe_fact(fact)}"[:MAX_LABEL], _data(fact)),) for fact in known[:MAX_FACTS]
    )
    await conversation.reply(update, translate("taste_known" if known else "taste_unknown"), rows)


async def _forget_fact(update: Update, conversation: Conversation) -> None:
    """Forget the fact of a pressed button, and take the button away."""
    query, facts = press_of(update), _listed(await conversation.facts(update))
    gone = tuple(fact for fact in facts if _data(fact) == query.data)
    await acknowledge(query, format_removed_facts(gone))
    await remove_buttons(query)
    if gone:
        await conversation.change_memory(update, removed_facts=gone)


async def _cellar(update: Update, conversation: Conversation) -> None:
    """Answer /cellar: list, `add` or `remove` bottles."""
    action, _, line = text_after_command(message_of(update)).partition(" ")
    _, user_id = chat_and_user_ids(update)
    bottles = await conversation.repositories.memory.list_bottles(user_id)
    if action == "add" and (bought := parse_cellar_item(line)):
        await _change(update, conversation, bottles=(bought,))
    elif action == "remove":
        asked = parse_cellar_item(line)
        gone = find_removal(bottles, line, asked.count if asked else None)
        await _change(update, conversation, bottles=(gone,) if gone else ())
    else:
        hint = f"\n\n{translate('cellar_hint')}" if items_in_stock(bottles) else ""
        shown = format_cellar(bottles, datetime.now(UTC).year)
        await conversation.reply(update, shown + hint)


async def _take_file(update: Update, conversation: Conversation) -> None:
    """Add the bottles of a CSV file to the cellar of the person who sends it."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    bottles, left = list[CellarItem](), 0
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


async def _change(update: Update, conversation: Conversation, **fields: Any) -> None:
    """Make a change with the end of the turn, and confirm it with a button that undoes it.

    `fields` are those of `Change`.
    """
    (_, user_id), undo_id = chat_and_user_ids(update), update.update_id
    change = Change(user_id=user_id, undo_id=undo_id, **fields)
    bottles = await conversation.repositories.memory.list_bottles(user_id)
    known = Person(bottles=tuple(bottles), user_id=user_id)
    if said := format_change(change, known):
        await conversation.reply(update, "\n\n".join(said), undo_button(undo_id))
        await conversation.change_memory(update, undo_id=undo_id, **fields)
    else:
        await conversation.reply(update, translate("nothing_changed"))


def _listed(facts: Sequence[Fact]) -> list[Fact]:
    """Return the stated facts of a user, and the likes that follow from their ratings."""
    stated = (fact for fact in facts if fact.kind in STATED_KINDS)
    known = sorted(stated, key=lambda fact: STATED_KINDS.index(fact.kind))
    liked = (Fact("rated", format_taste(taste)) for taste in get_liked_by_ratings(facts))
    return [*known, *liked]


def _data(fact: Fact) -> str:
    return f"{FORGET_FACT}{crc32(':'.join(fact.key).encode()):08x}"


async def _end_reminders(update: Update, conversation: Conversation) -> None:
    """Send no reminder any more."""
    await acknowledge(press_of(update))
    await conversation.reply(update, translate("cellar_remind_off"))
    await conversation.change_memory(update, added_facts=(Fact("setting", OFF),))


async def remind(conversation: Conversation) -> None:
    """Store a reminder for every user with bottles that are due, once a month and by day."""
    now, memory = datetime.now().astimezone(), conversation.repositories.memory
    if now.hour not in REMINDER_HOURS:
        return
    month = f"reminded={now:%Y-%m}"
    for user_id in await memory.list_owners(without=(OFF, month)):
        due = find_due_items(
            await memory.list_bottles(user_id), await memory.list_facts(user_id), now.year
        )
        if not due:
            continue
        with use_language(await conversation.language_of(user_id)):
            text = format_items(due, now.year, translate("cellar_due"))
            no_more = Button(translate("cellar_remind_no_button"), NO_REMINDERS)
        messages = build_messages(Destination(user_id), [text], ((no_more,),))
        facts = tuple(reminder_fact(bottles, now.year) for bottles in due)
        await memory.save_reminder(user_id, Fact("setting", month), facts, messages)
