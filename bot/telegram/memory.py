"""Handle /taste, which shows a user's taste, and send reminders to drink bottles.

A reminder and the record that it was sent are stored in one transaction. So it is sent only once,
even if there are several replicas, and after a crash.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from zlib import crc32

from telegram import Update

from agent.cellar.items import find_due_items
from agent.cellar.rows import format_items
from agent.engine.errors import log_failure
from agent.i18n import translate, use_language
from agent.memory.changes import format_change
from agent.memory.taste import (
    describe_fact,
    find_contradicted_facts,
    find_new_facts,
    format_removed_facts,
    parse_facts,
)
from agent.text import clip
from agent.turn import (
    STATED_KINDS,
    CellarItem,
    Change,
    Fact,
    Person,
    get_chosen_settings,
)
from bot.telegram.answer_buttons import undo_button
from bot.telegram.buttons import acknowledge, remove_buttons
from bot.telegram.chat import (
    AnyHandler,
    ChatTurn,
    language_from_settings,
    on_command,
    on_press,
)
from bot.telegram.messages import message_of, press_of, text_after_command
from bot.telegram.sender import Button, build_messages, in_rows
from bot.turn import Destination
from db.commit import Fence
from db.models import OutboxRow
from db.repositories.people import REMINDERS, MemoryRepository, MemoryUpkeep

FORGET_FACT: Final = "t:"
"""The prefix of the data of the buttons of /taste, `t:HASH`. HASH stands for a fact."""
STOP_REMINDERS: Final = "rm:off"
"""The data of the button below a reminder."""
REMINDERS_OFF: Final = f"{REMINDERS}=off"
"""The setting of a user who wants no reminders."""
REMINDER_HOURS: Final = range(10, 20)
"""The hours of the day, in the server's time zone, in which reminders are sent."""
SEASONS: Final = ("winter", "spring", "summer", "autumn")
DECEMBER: Final = 12
MAX_FACT_BUTTONS: Final = 40
MAX_LABEL_CHARS: Final = 40


def memory_handlers() -> list[AnyHandler]:
    """Return the handlers of /taste, of its buttons, and of the button below a reminder."""
    return [
        on_command("taste", _show_or_add_facts),
        on_press(FORGET_FACT, _forget_fact),
        on_press(STOP_REMINDERS, _stop_reminders),
    ]


async def _show_or_add_facts(update: Update, turn: ChatTurn) -> None:
    """Answer /taste: add the facts that follow the command, or list the known ones.

    Each listed fact is a button that forgets it.
    """
    facts = await turn.load_facts()
    stated = parse_facts(text_after_command(message_of(update)))
    if stated:
        new = find_new_facts(stated, facts)
        contradicted: list[Fact] = []
        for fact in new:
            contradicted += find_contradicted_facts(fact, facts)
        change = Change(
            user_id=turn.user_id, added_facts=new, removed_facts=tuple(contradicted)
        )
        await store_and_confirm(turn, change)
        return
    listed = _list_facts(facts)
    if not listed:
        turn.reply(translate("taste_unknown"))
        return
    buttons = []
    for fact in listed[:MAX_FACT_BUTTONS]:
        label = clip(f"✖ {describe_fact(fact)}", MAX_LABEL_CHARS)
        buttons.append(Button(label, _fact_data(fact)))
    turn.reply(translate("taste_known"), in_rows(buttons, 1))


async def _forget_fact(update: Update, turn: ChatTurn) -> None:
    """Forget the fact of a button, and remove the button."""
    query = press_of(update)
    removed = []
    for fact in _list_facts(await turn.load_facts()):
        if _fact_data(fact) == query.data:
            removed.append(fact)
    await acknowledge(query, format_removed_facts(removed))
    remove_buttons(query, turn)
    if removed:
        change = Change(user_id=turn.user_id, removed_facts=tuple(removed))
        turn.change_memory(change)


async def store_and_confirm(turn: ChatTurn, change: Change) -> None:
    """Change the user's memory, and reply what was changed, with a button that undoes it.

    If nothing would change, the reply says so. The turn collects the change until its commit.
    """
    bottles = await turn.repositories.memory.list_bottles(turn.user_id)
    person = Person(bottles=tuple(bottles), user_id=turn.user_id)
    notes = format_change(change, person)
    if not notes:
        turn.reply(translate("nothing_changed"))
        return
    turn.reply("\n\n".join(notes), undo_button(turn.id))
    turn.change_memory(replace(change, undo_id=turn.id))


def _list_facts(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that a user has stated, by kind, and then the wines that they have rated."""
    listed = []
    for kind in (*STATED_KINDS, "rated"):
        listed += [fact for fact in facts if fact.kind == kind]
    return listed


def _fact_data(fact: Fact) -> str:
    """Return the data of the button that forgets a fact. A checksum stands for the fact."""
    key = ":".join(fact.key)
    checksum = crc32(key.encode())
    return f"{FORGET_FACT}{checksum:08x}"


async def _stop_reminders(update: Update, turn: ChatTurn) -> None:
    """Turn off the user's reminders of bottles."""
    await acknowledge(press_of(update))
    turn.reply(translate("cellar_remind_off"))
    no_reminders = (Fact("setting", REMINDERS_OFF),)
    turn.change_memory(Change(user_id=turn.user_id, added_facts=no_reminders))


async def send_reminders(
    memory: MemoryRepository,
    upkeep: MemoryUpkeep,
    trace_hash: Callable[[str, int], str],
) -> None:
    """Remind each user of bottles that are due: only by day, and at most once a season."""
    now = datetime.now().astimezone()
    if now.hour not in REMINDER_HOURS:
        return
    season = _season_of(now)
    for user_id in await memory.list_owners_to_remind(season):
        # A user may delete their data from now on. Then the fence drops the reminder.
        user_hash = trace_hash("user", user_id)
        fence = Fence(accepted_at=datetime.now(UTC), user=user_hash)
        try:
            await _remind(user_id, fence, season, memory, upkeep)
        except Exception as error:
            # The other users must be reminded all the same.
            log_failure("A user could not be reminded of bottles", error)


def _season_of(time: datetime) -> str:
    """Return the season of a time and its year: `2026-winter` is December 2025 to February 2026."""
    year = time.year
    if time.month == DECEMBER:
        year += 1
    # The months of a winter are 12, 1 and 2, those of a spring 3, 4 and 5, and so on.
    index = time.month % 12 // 3
    return f"{year}-{SEASONS[index]}"


async def _remind(
    user_id: int,
    fence: Fence,
    season: str,
    memory: MemoryRepository,
    upkeep: MemoryUpkeep,
) -> None:
    """Queue a reminder of the bottles of a user that are due this year, if there are any."""
    year = datetime.now().astimezone().year
    bottles = await memory.list_bottles(user_id)
    facts = await memory.list_facts(user_id)
    due_items = await asyncio.to_thread(find_due_items, bottles, year)
    if not due_items:
        return
    messages = await _build_reminder(user_id, due_items, facts, year)
    keys = [item.key for item in due_items]
    await upkeep.save_reminder(
        user_id, fence, season, keys=keys, year=year, messages=messages
    )


async def _build_reminder(
    user_id: int,
    due_items: Sequence[CellarItem],
    facts: Sequence[Fact],
    year: int,
) -> Sequence[OutboxRow]:
    """Return a reminder in the language of the user, with a button that ends reminders."""
    with use_language(language_from_settings(get_chosen_settings(facts))):
        text = format_items(due_items, year, translate("cellar_due"))
        stop_button = Button(translate("cellar_remind_no_button"), STOP_REMINDERS)
    buttons = ((stop_button,),)
    return await build_messages(Destination(user_id), [text], buttons)
