"""Take bottles out of a user's cellar. The user names a wine, or presses the button of one.

`agent.cellar` finds what a user names. If several wines may be meant, buttons ask which one.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from telegram import Update

from agent.cellar.items import find_item_by_id, parse_cellar_item, to_wine
from agent.cellar.opened import attach_note, open_bottle, read_opened
from agent.cellar.removal import (
    Found,
    NotFound,
    TooFew,
    Unclear,
    find_item_to_remove,
    parse_removal,
)
from agent.cellar.rows import format_items, this_year
from agent.i18n import translate
from agent.sommelier.wine import CELLAR_PREFIX
from agent.text import clip
from agent.turn import CellarItem, Change
from bot.telegram.answer_buttons import BOUGHT, OPENED
from bot.telegram.buttons import (
    acknowledge,
    claim_once,
    parse_id,
    remove_buttons,
    split_data,
)
from bot.telegram.chat import AnyHandler, ChatTurn, on_press
from bot.telegram.memory import store_and_confirm
from bot.telegram.messages import press_of
from bot.telegram.sender import Button, ButtonRows, in_rows

REMOVE_BOTTLES: Final = "d:"
"""The prefix of the data of the buttons that ask which wine is meant, `d:COUNT:ITEM`."""
MAX_LABEL_CHARS: Final = 40


def bottle_handlers() -> list[AnyHandler]:
    """Return the handlers of the buttons that stand for a wine of the cellar."""
    return [
        on_press(REMOVE_BOTTLES, _remove_chosen_bottles),
        on_press(OPENED, _open_chosen_bottle),
        on_press(BOUGHT, _add_bought_bottles),
    ]


async def load_bottles(turn: ChatTurn) -> Sequence[CellarItem]:
    """Return the items of the user's cellar, the empty ones included."""
    return await turn.repositories.memory.list_bottles(turn.user_id)


async def remove_bottles(
    turn: ChatTurn, bottles: Sequence[CellarItem], line: str
) -> None:
    """Remove the bottles that a line like "2 Barolo 2016" names, or say why none are removed."""
    count, name = parse_removal(line)
    match find_item_to_remove(bottles, name, count):
        case Found(item):
            removal = Change(user_id=turn.user_id, bottles=(item,))
            await store_and_confirm(turn, removal)
        case TooFew(item):
            turn.reply(_say_too_few(item))
        case Unclear(items):
            buttons = _item_buttons(items, f"{REMOVE_BOTTLES}{count}:")
            turn.reply(translate("cellar_which"), buttons)
        case NotFound():
            turn.reply(translate("cellar_not_found"))


def _say_too_few(item: CellarItem) -> str:
    """Return the reply to a user who has fewer bottles of an item than they named."""
    return format_items([item], this_year(), translate("cellar_too_few"))


def _item_buttons(items: Sequence[CellarItem], prefix: str) -> ButtonRows:
    """Return a button for each item.

    The data of a button are `prefix` and the number of the item.
    """
    buttons = []
    for item in items:
        label = clip(f"{item.count} × {to_wine(item).label}", MAX_LABEL_CHARS)
        buttons.append(Button(label, f"{prefix}{item.number}"))
    return in_rows(buttons, 1)


async def _remove_chosen_bottles(update: Update, turn: ChatTurn) -> None:
    """Remove bottles of the item that a button names from the cellar of the user who presses."""
    query = press_of(update)
    count_part, number_part = split_data(query, 2)
    if not await claim_once(query, turn, REMOVE_BOTTLES):
        return
    bottles = await load_bottles(turn)
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    wine_id = f"{CELLAR_PREFIX}{parse_id(number_part)}"
    line = f"{parse_id(count_part)} {wine_id}"
    await remove_bottles(turn, bottles, line)


async def open_named_bottle(
    turn: ChatTurn, bottles: Sequence[CellarItem], line: str
) -> None:
    """Open a bottle that a line like "12 92 lovely" or "Barolo 2016" names, or say why not."""
    found, rating, note = read_opened(bottles, line)
    match found:
        case Found(item):
            drink = open_bottle(item, datetime.now(UTC), rating, note)
            opening = Change(user_id=turn.user_id, bottles=(item,), drinks=(drink,))
            await store_and_confirm(turn, opening)
        case TooFew(item):
            turn.reply(_say_too_few(item))
        case Unclear(items):
            turn.reply(translate("cellar_which"), _item_buttons(items, OPENED))
        case NotFound():
            turn.reply(translate("cellar_not_found"))


async def note_opened_bottle(turn: ChatTurn, line: str) -> None:
    """Add a rating and a note to the bottle that was opened last of an item."""
    bottles = await load_bottles(turn)
    drinks = await turn.repositories.memory.list_drinks(turn.user_id)
    drink_and_noted_drink = attach_note(bottles, drinks, line)
    if drink_and_noted_drink is None:
        turn.reply(translate("cellar_not_found"))
        return
    drink, noted_drink = drink_and_noted_drink
    change = Change(
        user_id=turn.user_id, drinks=(noted_drink,), removed_drinks=(drink,)
    )
    await store_and_confirm(turn, change)


async def _open_chosen_bottle(update: Update, turn: ChatTurn) -> None:
    """Open a bottle of the item that a button names, in the cellar of the user who presses."""
    query = press_of(update)
    (number_part,) = split_data(query, 1)
    # Each button may be pressed once: the user may open bottles of several wines.
    if not await claim_once(query, turn, str(query.data)):
        return
    bottles = await load_bottles(turn)
    item = find_item_by_id(bottles, str(parse_id(number_part)))
    if item is None:
        await acknowledge(query, translate("cellar_not_found"))
        return
    await acknowledge(query)
    remove_buttons(query, turn)
    opened = replace(item, count=-1)
    drink = open_bottle(opened, datetime.now(UTC))
    opening = Change(user_id=turn.user_id, bottles=(opened,), drinks=(drink,))
    await store_and_confirm(turn, opening)


async def _add_bought_bottles(update: Update, turn: ChatTurn) -> None:
    """Add the bottles that a button names to the cellar of the user who presses."""
    query = press_of(update)
    (line,) = split_data(query, 1)
    item = parse_cellar_item(line)
    if item is None:
        await acknowledge(query, translate("button_too_old"))
        return
    if not await claim_once(query, turn, BOUGHT):
        return
    await acknowledge(query)
    remove_buttons(query, turn, BOUGHT)
    await store_and_confirm(turn, Change(user_id=turn.user_id, bottles=(item,)))
