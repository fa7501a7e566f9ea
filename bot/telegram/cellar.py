"""Show a user's cellar: /cellar with its picture and numbers, and the pages behind its buttons.

All pages are shown in one message. The next page replaces the last one.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from telegram import Message, Update

from agent.cellar.export import to_csv, to_workbook
from agent.cellar.index import index_cellar
from agent.cellar.items import parse_cellar_item, select_in_stock
from agent.cellar.overview import (
    PAGE_SIZE,
    count_by,
    format_overview,
    format_page,
    list_regions,
    select_view,
)
from agent.cellar.picture import CellarPainter
from agent.cellar.removal import list_identifying_words, write_number_sign
from agent.cellar.rows import count_bottles, format_items, this_year
from agent.cellar.search import select_named
from agent.engine.errors import log_failure
from agent.i18n import translate
from agent.sommelier.cards import translate_place
from agent.text import clip
from agent.turn import CellarItem, Change
from bot.telegram.bottles import (
    load_bottles,
    note_opened_bottle,
    open_named_bottle,
    remove_bottles,
)
from bot.telegram.buttons import acknowledge, parse_id, split_data
from bot.telegram.chat import AnyHandler, ChatTurn, on_command, on_press
from bot.telegram.memory import store_and_confirm
from bot.telegram.messages import message_of, press_of, text_after_command
from bot.telegram.sender import MAX_DATA_BYTES, Button, ButtonRows, in_rows
from bot.turn import Destination

VIEW: Final = "cl:"
"""The prefix of the data of the buttons of /cellar: `cl:VIEW:PAGE`, such as `cl:red:2`."""
PICTURE_FILE: Final = "cellar.png"
MAX_LABEL_CHARS: Final = 40
MAX_REGIONS: Final = 24
"""How many regions have a button. Those with the most bottles come first."""


def cellar_handlers(painter: CellarPainter) -> list[AnyHandler]:
    """Return the handlers of /cellar and of the buttons below it."""
    return [
        on_command("cellar", partial(_show_or_change_cellar, painter)),
        on_press(VIEW, _show_view),
    ]


async def _show_or_change_cellar(
    painter: CellarPainter, update: Update, turn: ChatTurn
) -> None:
    """Answer /cellar: show the cellar, or change it as in `/cellar add 2 Barolo 2016`."""
    text = text_after_command(message_of(update))
    action, _, line = text.partition(" ")
    bottles = await load_bottles(turn)
    item = parse_cellar_item(line)
    line = write_number_sign(line)
    if action == "add" and item:
        addition = Change(user_id=turn.user_id, bottles=(item,))
        await store_and_confirm(turn, addition)
    elif action == "remove":
        await remove_bottles(turn, bottles, line)
    elif action == "drank":
        await open_named_bottle(turn, bottles, line)
    elif action == "note":
        await note_opened_bottle(turn, line)
    elif action and action != "add":
        _show_named(turn, bottles, text)
    else:
        await _show_overview(painter, turn, bottles)


def _show_named(turn: ChatTurn, bottles: Sequence[CellarItem], name: str) -> None:
    """Show the bottles whose labels have the most words of a name: `/cellar Barolo`."""
    year = this_year()
    words = list_identifying_words(name)
    named = select_named(index_cellar(bottles, year), words)
    if not named:
        turn.reply(translate("cellar_no_match"))
        return
    items = [indexed.item for indexed in named]
    count = sum(item.count for item in items)
    heading = translate("cellar_found", bottles=count_bottles(count, len(items)))
    turn.reply(format_items(items, year, heading))


async def _show_overview(
    painter: CellarPainter, turn: ChatTurn, bottles: Sequence[CellarItem]
) -> None:
    """Show the picture of a cellar, its numbers and the wines to drink first."""
    if not select_in_stock(bottles):
        turn.reply(translate("cellar_none"))
        return
    try:
        picture = await painter.paint(bottles, this_year())
        turn.send_picture(PICTURE_FILE, picture)
    except Exception as error:
        # The text says all that the picture shows.
        log_failure("A cellar could not be drawn", error)
    # This runs in a thread, because a cellar may be large, and other chats must not wait.
    text = await asyncio.to_thread(format_overview, bottles, this_year())
    turn.reply(f"{text}\n\n{translate('cellar_hint')}", _view_buttons(bottles))


def _view_buttons(bottles: Sequence[CellarItem]) -> ButtonRows:
    """Return the buttons below the overview: styles, then other views, then files."""
    style_buttons = []
    for style, _ in count_by(bottles, "style"):
        if style:
            label = translate(f"style_{style}")
            style_buttons.append(Button(label, f"{VIEW}{style}:0"))
    view_buttons = []
    for view in ("soon", "past", "regions", "all"):
        label = translate(f"cellar_{view}_button")
        view_buttons.append(Button(label, f"{VIEW}{view}:0"))
    file_buttons = (
        Button("📄 CSV", f"{VIEW}csv:0"),
        Button("📄 XLSX", f"{VIEW}xlsx:0"),
    )
    return (*in_rows(style_buttons, 3), *in_rows(view_buttons, 2), file_buttons)


async def _show_view(update: Update, turn: ChatTurn) -> None:
    """Show the page that a button names in the place of the last one, or send the file."""
    query = press_of(update)
    view, page_part = split_data(query, 2)
    page = parse_id(page_part)
    await acknowledge(query)
    bottles = await load_bottles(turn)
    if view == "csv":
        turn.send_file("cellar.csv", await asyncio.to_thread(to_csv, bottles))
        return
    if view == "xlsx":
        turn.send_file("cellar.xlsx", await asyncio.to_thread(to_workbook, bottles))
        return
    message = query.message
    if not isinstance(message, Message):
        return
    to = Destination(message.chat.id, replaced_id=message.message_id)
    if view == "overview" or not select_in_stock(bottles):
        text = await asyncio.to_thread(format_overview, bottles, this_year())
        turn.send(to, text, _view_buttons(bottles))
    elif view == "regions":
        turn.send(to, translate("cellar_which_region"), _region_buttons(bottles))
    else:
        items = await asyncio.to_thread(select_view, bottles, view, this_year())
        text = format_page(items, view, page, this_year())
        buttons = _page_buttons(view, page, len(items))
        turn.send(to, text, buttons)


def _region_buttons(bottles: Sequence[CellarItem]) -> ButtonRows:
    """Return a button for each region, and the one that leads back."""
    buttons = []
    for region, count in list_regions(bottles)[:MAX_REGIONS]:
        # The "=" distinguishes a region from other views, because a region may be named "red".
        data = f"{VIEW}={region}:0"
        # Users name regions as they like, so a name may be too long, or contain the separator.
        is_too_long = len(data.encode()) > MAX_DATA_BYTES
        if is_too_long or ":" in region:
            continue
        label = f"{translate_place(region)} ({count})"
        buttons.append(Button(clip(label, MAX_LABEL_CHARS), data))
    return (*in_rows(buttons, 2), _back_button())


def _back_button() -> tuple[Button, ...]:
    return (Button(translate("cellar_back_button"), f"{VIEW}overview:0"),)


def _page_buttons(view: str, page: int, count: int) -> ButtonRows:
    """Return the buttons that turn the pages of `count` items, and the one that leads back."""
    previous_page = page - 1
    next_page = page + 1
    arrows = []
    if previous_page >= 0:
        arrows.append(Button("◀", f"{VIEW}{view}:{previous_page}"))
    # Pages are counted from 0.
    if next_page * PAGE_SIZE < count:
        arrows.append(Button("▶", f"{VIEW}{view}:{next_page}"))
    return (*in_rows(arrows, 2), _back_button())
