"""Handle a user's taste and cellar: /taste, /cellar, CSV files, and reminders to drink bottles.

A reminder and the record of it are stored in one transaction, so it is sent only once, even by
several replicas or after a crash.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from zlib import crc32

from telegram import Update
from telegram.ext import filters

from agent.engine.errors import log_failure
from agent.files import Unreadable
from agent.i18n import translate, use_language
from agent.memory.cellar import (
    find_due_items,
    find_items_with_room,
    format_cellar,
    format_items,
    items_in_stock,
    parse_cellar_item,
    reminder_fact,
    to_wine,
)
from agent.memory.removal import (
    Found,
    NotFound,
    TooFew,
    Unclear,
    find_item_to_remove,
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
from agent.sommelier.filters import format_taste, get_liked_by_ratings
from agent.sommelier.wine import CELLAR_PREFIX
from agent.turn import (
    MAX_CELLAR_ITEMS,
    STATED_KINDS,
    CellarItem,
    Change,
    Fact,
    Person,
    get_chosen_settings,
)
from bot.telegram.answer_buttons import undo_button
from bot.telegram.buttons import acknowledge, claim_once, parse_id, remove_buttons, split_data
from bot.telegram.chat import (
    AnyHandler,
    ChatTurn,
    language_from_settings,
    on_command,
    on_message,
    on_press,
)
from bot.telegram.media import fetch_file
from bot.telegram.messages import message_of, press_of, text_after_command
from bot.telegram.sender import Button, ButtonRows, build_messages
from bot.turn import Destination
from db.changes.forgetting import Fence
from db.models import OutboxRow
from db.repositories.people import MemoryRepository, MemoryUpkeep
from db.wines.lists.cellar import read_cellar

FORGET_FACT: Final = "t:"
"""The prefix of the data of the buttons of /taste, `t:HASH_OF_FACT`."""
REMOVE_BOTTLES: Final = "d:"
"""The prefix of the data of the buttons that ask which bottles are meant, `d:COUNT:ITEM`."""
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
        on_press(REMOVE_BOTTLES, _remove_chosen_bottles),
        on_message(csv, _import_cellar),
        on_press(STOP_REMINDERS, _stop_reminders),
    ]


async def _show_or_add_facts(update: Update, turn: ChatTurn) -> None:
    """Answer /taste: list the known facts with buttons to forget them, or add the stated facts."""
    facts = await turn.load_facts()
    if stated := parse_facts(text_after_command(message_of(update))):
        new = find_new_facts(stated, facts)
        contradicted = tuple(old for fact in new for old in find_contradicted_facts(fact, facts))
        await _store_and_confirm(turn, added_facts=new, removed_facts=contradicted)
        return
    listed = _listed_facts(facts)
    rows = tuple(
        (Button(f"✖ {describe_fact(fact)}"[:MAX_LABEL_CHARS], _fact_data(fact)),)
        for fact in listed[:MAX_FACT_BUTTONS]
    )
    turn.reply(translate("taste_known" if listed else "taste_unknown"), rows)


async def _forget_fact(update: Update, turn: ChatTurn) -> None:
    """Forget the fact of a button, and remove the button."""
    query, facts = press_of(update), _listed_facts(await turn.load_facts())
    removed = tuple(fact for fact in facts if _fact_data(fact) == query.data)
    await acknowledge(query, format_removed_facts(removed))
    remove_buttons(query, turn)
    if removed:
        turn.change_memory(removed_facts=removed)


async def _show_or_change_cellar(update: Update, turn: ChatTurn) -> None:
    """Answer /cellar: list bottles, or `add` or `remove` some."""
    action, _, line = text_after_command(message_of(update)).partition(" ")
    bottles = await turn.repositories.memory.list_bottles(turn.user_id)
    item = parse_cellar_item(line)
    if action == "add" and item:
        await _store_and_confirm(turn, bottles=(item,))
    elif action == "remove":
        await _remove_bottles(turn, bottles, line)
    else:
        hint = f"\n\n{translate('cellar_hint')}" if items_in_stock(bottles) else ""
        text = await asyncio.to_thread(format_cellar, bottles, datetime.now(UTC).year)
        turn.reply(text + hint)


async def _remove_bottles(turn: ChatTurn, bottles: Sequence[CellarItem], line: str) -> None:
    """Remove the bottles that a line like "2 Barolo 2016" names, or say why none are removed."""
    count, name = parse_removal(line)
    match find_item_to_remove(bottles, name, count):
        case Found(item):
            await _store_and_confirm(turn, bottles=(item,))
        case TooFew(item):
            turn.reply(format_items([item], datetime.now(UTC).year, translate("cellar_too_few")))
        case Unclear(items):
            turn.reply(translate("cellar_which"), _removal_buttons(items, count))
        case NotFound():
            turn.reply(translate("cellar_not_found"))


def _removal_buttons(items: Sequence[CellarItem], count: int) -> ButtonRows:
    """Return a button for each item, which removes `count` of its bottles."""
    rows = list[tuple[Button]]()
    for item in items:
        label = f"{item.count} × {to_wine(item).label}"[:MAX_LABEL_CHARS]
        rows.append((Button(label, f"{REMOVE_BOTTLES}{count}:{item.id}"),))
    return tuple(rows)


async def _remove_chosen_bottles(update: Update, turn: ChatTurn) -> None:
    """Remove bottles of the item of a button; the cellar is that of the user who presses."""
    query = press_of(update)
    count, item_id = split_data(query, 2)
    if not await claim_once(query, turn, REMOVE_BOTTLES):
        return
    bottles = await turn.repositories.memory.list_bottles(turn.user_id)
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    await _remove_bottles(turn, bottles, f"{parse_id(count)} {CELLAR_PREFIX}{parse_id(item_id)}")


async def _import_cellar(update: Update, turn: ChatTurn) -> None:
    """Add the bottles of a CSV file to the cellar of the user who sent it."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    download = partial(fetch_file, update.get_bot(), document.to_dict(), MAX_FILE_BYTES)
    items, skipped_count = list[CellarItem](), 0
    with suppress(Unreadable):
        items, skipped_count = await turn.services.resources.files.read(
            download, read_cellar, user_id=turn.user_id
        )
    if not items:
        turn.reply(translate("cellar_unreadable"))
        return
    stored = await turn.repositories.memory.list_bottles(turn.user_id)
    fitting = find_items_with_room(items, stored)
    count, wines = sum(item.count for item in fitting), len(fitting)
    text = translate("cellar_imported", count=count, wines=wines, left=skipped_count)
    if left_out := len(items) - len(fitting):
        full = translate("cellar_full", limit=MAX_CELLAR_ITEMS, left=left_out)
        text = f"{text}\n\n{full}"
    turn.reply(text, undo_button(turn.id))
    turn.change_memory(bottles=tuple(fitting), undo_id=turn.id)


async def _store_and_confirm(turn: ChatTurn, **fields: Any) -> None:
    """Collect a change of memory, and confirm it with an undo button.

    `fields` are those of `Change`. If they change nothing, the reply says so.
    """
    bottles = await turn.repositories.memory.list_bottles(turn.user_id)
    person = Person(bottles=tuple(bottles), user_id=turn.user_id)
    notes = format_change(Change(user_id=turn.user_id, **fields), person)
    if not notes:
        turn.reply(translate("nothing_changed"))
        return
    turn.reply("\n\n".join(notes), undo_button(turn.id))
    turn.change_memory(undo_id=turn.id, **fields)


def _listed_facts(facts: Sequence[Fact]) -> list[Fact]:
    """Return the stated facts of a user, by kind, then the tastes they like by their ratings."""
    stated = [fact for fact in facts if fact.kind in STATED_KINDS]
    stated.sort(key=lambda fact: STATED_KINDS.index(fact.kind))
    return [*stated, *(Fact("rated", format_taste(t)) for t in get_liked_by_ratings(facts))]


def _fact_data(fact: Fact) -> str:
    return f"{FORGET_FACT}{crc32(':'.join(fact.key).encode()):08x}"


async def _stop_reminders(update: Update, turn: ChatTurn) -> None:
    await acknowledge(press_of(update))
    turn.reply(translate("cellar_remind_off"))
    turn.change_memory(added_facts=(Fact("setting", REMINDERS_OFF),))


async def send_reminders(
    memory: MemoryRepository, upkeep: MemoryUpkeep, trace_hash: Callable[[str, int], str]
) -> None:
    """Remind each user with bottles that are due, by day and at most once a month."""
    now = datetime.now().astimezone()
    if now.hour not in REMINDER_HOURS:
        return
    month = Fact("setting", f"reminded={now:%Y-%m}")  # the record of the month's reminder
    for user_id in await memory.list_owners(without=(REMINDERS_OFF, month.value)):
        # Data that the user deletes from now on must not come back with the reminder.
        fence = Fence(accepted_at=datetime.now(UTC), user=trace_hash("user", user_id))
        try:
            await _remind(user_id, fence, month, memory, upkeep)
        except Exception as error:  # the other users are still reminded
            log_failure("A user could not be reminded of bottles", error)


async def _remind(
    user_id: int,
    fence: Fence,
    month: Fact,
    memory: MemoryRepository,
    upkeep: MemoryUpkeep,
) -> None:
    """Queue a reminder of the bottles of a user that are due this year, if there are any."""
    year = datetime.now().astimezone().year
    bottles = await memory.list_bottles(user_id)
    facts = await memory.list_facts(user_id)
    due_items = await asyncio.to_thread(find_due_items, bottles, facts, year)
    if not due_items:
        return
    messages = await _reminder_messages(user_id, due_items, facts, year)
    reminded = [reminder_fact(item, year) for item in due_items]
    await upkeep.save_reminder(user_id, fence, month, reminded, messages)


async def _reminder_messages(
    user_id: int, due_items: Sequence[CellarItem], facts: Sequence[Fact], year: int
) -> Sequence[OutboxRow]:
    """Return a reminder in the language of the user, with a button that ends reminders."""
    with use_language(language_from_settings(get_chosen_settings(facts))):
        text = format_items(due_items, year, translate("cellar_due"))
        stop_button = Button(translate("cellar_remind_no_button"), STOP_REMINDERS)
    return await build_messages(Destination(user_id), [text], ((stop_button,),))
