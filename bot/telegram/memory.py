"""Handle a user's taste and cellar: /taste, /cellar, CSV files, and reminders to drink bottles.

A reminder and the record of it are stored in one transaction, so it is sent only once, even by
several replicas or after a crash.
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
    format_cellar,
    format_items,
    items_in_stock,
    parse_cellar_item,
    reminder_fact,
)
from agent.memory.removal import (
    Found,
    NotFound,
    TooFew,
    Unclear,
    find_item_to_remove,
    format_candidates,
    parse_removal,
)
from agent.memory.taste import (
    describe_fact,
    find_contradicted_facts,
    find_new_facts,
    format_removed_facts,
    parse_facts,
)
from agent.memory.tools import format_change
from agent.safety.filters import format_taste, get_liked_by_ratings
from agent.turn import STATED_KINDS, CellarItem, Change, Fact, Person
from bot.question import Destination
from bot.telegram.answer_buttons import undo_button
from bot.telegram.buttons import acknowledge, remove_buttons
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_message, on_press
from bot.telegram.messages import chat_and_user_ids, message_of, press_of, text_after_command
from bot.telegram.sender import Button, build_messages
from db.wines.lists import read_cellar

FORGET_FACT: Final = "t:"
"""The prefix of the data of the buttons of /taste, `t:HASH_OF_FACT`."""
STOP_REMINDERS: Final = "rm:off"
"""The data of the button below a reminder."""
REMINDERS_OFF: Final = "reminders=off"
"""The setting of a user who wants no reminders."""
REMINDER_HOURS: Final = range(10, 20)
"""The hours of the day, in the server's time zone, in which reminders are sent."""
MAX_FILE_BYTES: Final = 2_000_000
MAX_FACT_BUTTONS: Final = 40
MAX_LABEL_CHARS: Final = 40


def memory_handlers() -> list[AnyHandler]:
    """Return the handlers of the commands, their buttons and CSV files."""
    private = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
    csv = private & filters.Document.FileExtension("csv")
    return [
        on_command("taste", _show_or_add_facts),
        on_command("cellar", _show_or_change_cellar),
        on_press(FORGET_FACT, _forget_fact),
        on_message(csv, _import_cellar),
        on_press(STOP_REMINDERS, _stop_reminders),
    ]


async def _show_or_add_facts(update: Update, conversation: Conversation) -> None:
    """Answer /taste: list the known facts with buttons to forget them, or add the stated facts."""
    facts = await conversation.load_facts(update)
    if stated := parse_facts(text_after_command(message_of(update))):
        new = find_new_facts(stated, facts)
        contradicted = tuple(old for fact in new for old in find_contradicted_facts(fact, facts))
        await _store_and_confirm(update, conversation, added_facts=new, removed_facts=contradicted)
        return
    listed = _listed_facts(facts)
    rows = tuple(
        (Button(f"✖ {describe_fact(fact)}"[:MAX_LABEL_CHARS], _fact_data(fact)),)
        for fact in listed[:MAX_FACT_BUTTONS]
    )
    await conversation.reply(update, translate("taste_known" if listed else "taste_unknown"), rows)


async def _forget_fact(update: Update, conversation: Conversation) -> None:
    """Forget the fact of a button, and remove the button."""
    query, facts = press_of(update), _listed_facts(await conversation.load_facts(update))
    removed = tuple(fact for fact in facts if _fact_data(fact) == query.data)
    await acknowledge(query, format_removed_facts(removed))
    await remove_buttons(query)
    if removed:
        await conversation.change_memory(update, removed_facts=removed)


async def _show_or_change_cellar(update: Update, conversation: Conversation) -> None:
    """Answer /cellar: list bottles, or `add` or `remove` some."""
    action, _, line = text_after_command(message_of(update)).partition(" ")
    _, user_id = chat_and_user_ids(update)
    bottles = await conversation.repositories.memory.list_bottles(user_id)
    item = parse_cellar_item(line)
    if action == "add" and item:
        await _store_and_confirm(update, conversation, bottles=(item,))
    elif action == "remove":
        await _remove_bottles(update, conversation, bottles, line)
    else:
        hint = f"\n\n{translate('cellar_hint')}" if items_in_stock(bottles) else ""
        text = format_cellar(bottles, datetime.now(UTC).year)
        await conversation.reply(update, text + hint)


async def _remove_bottles(
    update: Update, conversation: Conversation, bottles: Sequence[CellarItem], line: str
) -> None:
    """Remove the bottles that a line like "2 Barolo 2016" names, or say why none are removed."""
    count, name = parse_removal(line)
    match find_item_to_remove(bottles, name, count):
        case Found(item):
            await _store_and_confirm(update, conversation, bottles=(item,))
        case TooFew(item):
            text = format_items([item], datetime.now(UTC).year, translate("cellar_too_few"))
            await conversation.reply(update, text)
        case Unclear(items):
            await conversation.reply(update, format_candidates(items, count))
        case NotFound():
            await conversation.reply(update, translate("cellar_not_found"))


async def _import_cellar(update: Update, conversation: Conversation) -> None:
    """Add the bottles of a CSV file to the cellar of the user who sent it."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    bottles, skipped_count = list[CellarItem](), 0
    if (document.file_size or 0) <= MAX_FILE_BYTES:
        file = await document.get_file()
        content = bytes(await file.download_as_bytearray())
        with suppress(ValueError):
            bottles, skipped_count = await asyncio.to_thread(read_cellar, content)
    if not bottles:
        await conversation.reply(update, translate("cellar_unreadable"))
        return
    count, wines = sum(item.count for item in bottles), len(bottles)
    text = translate("cellar_imported", count=str(count), wines=str(wines), left=str(skipped_count))
    await conversation.reply(update, text, undo_button(update.update_id))
    await conversation.change_memory(update, bottles=tuple(bottles), undo_id=update.update_id)


async def _store_and_confirm(update: Update, conversation: Conversation, **fields: Any) -> None:
    """Store a change when the turn is committed, and confirm it with an undo button.

    `fields` are those of `Change`. If they change nothing, the reply says so.
    """
    (_, user_id), undo_id = chat_and_user_ids(update), update.update_id
    change = Change(user_id=user_id, undo_id=undo_id, **fields)
    bottles = await conversation.repositories.memory.list_bottles(user_id)
    person = Person(bottles=tuple(bottles), user_id=user_id)
    if notes := format_change(change, person):
        await conversation.reply(update, "\n\n".join(notes), undo_button(undo_id))
        await conversation.change_memory(update, undo_id=undo_id, **fields)
    else:
        await conversation.reply(update, translate("nothing_changed"))


def _listed_facts(facts: Sequence[Fact]) -> list[Fact]:
    """Return the stated facts of a user, by kind, then the tastes they like by their ratings."""
    stated = [fact for fact in facts if fact.kind in STATED_KINDS]
    stated.sort(key=lambda fact: STATED_KINDS.index(fact.kind))
    return [*stated, *(Fact("rated", format_taste(t)) for t in get_liked_by_ratings(facts))]


def _fact_data(fact: Fact) -> str:
    return f"{FORGET_FACT}{crc32(':'.join(fact.key).encode()):08x}"


async def _stop_reminders(update: Update, conversation: Conversation) -> None:
    await acknowledge(press_of(update))
    await conversation.reply(update, translate("cellar_remind_off"))
    await conversation.change_memory(update, added_facts=(Fact("setting", REMINDERS_OFF),))


async def send_reminders(conversation: Conversation) -> None:
    """Remind each user with bottles that are due, by day and at most once a month."""
    now, memory = datetime.now().astimezone(), conversation.repositories.memory
    if now.hour not in REMINDER_HOURS:
        return
    month = f"reminded={now:%Y-%m}"
    for user_id in await memory.list_owners(without=(REMINDERS_OFF, month)):
        bottles, facts = await memory.list_bottles(user_id), await memory.list_facts(user_id)
        due_items = find_due_items(bottles, facts, now.year)
        if not due_items:
            continue
        with use_language(await conversation.load_language(user_id)):
            text = format_items(due_items, now.year, translate("cellar_due"))
            stop_button = Button(translate("cellar_remind_no_button"), STOP_REMINDERS)
        messages = build_messages(Destination(user_id), [text], ((stop_button,),))
        reminded = [reminder_fact(item, now.year) for item in due_items]
        await memory.save_reminder(user_id, Fact("setting", month), reminded, messages)
