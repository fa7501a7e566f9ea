"""Handle a user's cellar: /cellar, its pages and buttons, opened bottles, and files with a cellar.

A file is read, shown and stored as pending; only a press on "replace" or "add" changes the cellar.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, get_args

from telegram import Message, Update
from telegram.ext import filters
from telegram.ext.filters import BaseFilter

from agent.cellar.export import to_csv, to_workbook
from agent.cellar.imports import ImportMode, make_plan
from agent.cellar.items import find_item_by_id, items_in_stock, parse_cellar_item, to_wine
from agent.cellar.opened import attach_note, open_bottle, read_opened
from agent.cellar.overview import (
    PAGE_SIZE,
    count_by,
    format_overview,
    format_page,
    list_regions,
    select_view,
)
from agent.cellar.removal import (
    Found,
    NotFound,
    TooFew,
    Unclear,
    find_item_to_remove,
    parse_removal,
)
from agent.cellar.rows import format_items, this_year
from agent.files import Unreadable
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.wine import CELLAR_PREFIX
from agent.turn import MAX_CELLAR_ITEMS, CellarItem
from bot.telegram.answer_buttons import OPENED, undo_button
from bot.telegram.buttons import acknowledge, claim_once, parse_id, remove_buttons, split_data
from bot.telegram.chat import AnyHandler, ChatTurn, on_command, on_message, on_press
from bot.telegram.media import fetch_file
from bot.telegram.memory import store_and_confirm
from bot.telegram.messages import message_of, press_of, text_after_command
from bot.telegram.sender import MAX_DATA_BYTES, Button, ButtonRows, in_rows
from bot.turn import Destination
from db.changes.cellar import ImportCellar, KeepImport
from db.wines.lists.cellar import CellarFile, read_cellar

REMOVE_BOTTLES: Final = "d:"
"""The prefix of the data of the buttons that ask which bottles are meant, `d:COUNT:ITEM`."""
VIEW: Final = "cl:"
"""The prefix of the buttons of /cellar: `cl:VIEW:PAGE`, such as `cl:red:2`."""
IMPORT: Final = "ci:"
"""The prefix of the buttons below what a file says: `ci:MODE:IMPORT`."""
CANCEL: Final = "no"
MAX_FILE_BYTES: Final = 2_000_000
MAX_LABEL_CHARS: Final = 40
MAX_REGIONS: Final = 24
MAX_SAMPLES: Final = 3
FILES: Final = ("csv", "tsv", "tab", "txt", "xlsx")


def cellar_handlers() -> list[AnyHandler]:
    """Return the handlers of /cellar, its buttons, and files with a list of bottles."""
    private = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
    lists: BaseFilter = filters.Document.FileExtension(FILES[0])
    for extension in FILES[1:]:
        lists |= filters.Document.FileExtension(extension)
    return [
        on_command("cellar", _show_or_change_cellar),
        on_press(VIEW, _show_view),
        on_press(REMOVE_BOTTLES, _remove_chosen_bottles),
        on_press(OPENED, _open_chosen_bottle),
        on_press(IMPORT, _store_import),
        on_message(private & lists, _read_file),
    ]


async def _show_or_change_cellar(update: Update, turn: ChatTurn) -> None:
    """Answer /cellar: show it, or `add`, `remove`, `drank` or `note`."""
    action, _, line = text_after_command(message_of(update)).partition(" ")
    bottles = await _load_bottles(turn)
    item = parse_cellar_item(line)
    if action == "add" and item:
        await store_and_confirm(turn, bottles=(item,))
    elif action == "remove":
        await _remove_bottles(turn, bottles, line)
    elif action == "drank":
        await _open_named_bottle(turn, bottles, line)
    elif action == "note":
        await _note_opened_bottle(turn, line)
    else:
        await _show_overview(turn, bottles)


async def _load_bottles(turn: ChatTurn) -> Sequence[CellarItem]:
    return await turn.repositories.memory.list_bottles(turn.user_id)


async def _show_overview(turn: ChatTurn, bottles: Sequence[CellarItem]) -> None:
    """Show how many bottles there are, and the readiest; in a thread, as a cellar may be large."""
    if not items_in_stock(bottles):
        turn.reply(translate("cellar_none"))
        return
    text = await asyncio.to_thread(format_overview, bottles, this_year())
    turn.reply(f"{text}\n\n{translate('cellar_hint')}", _view_buttons(bottles))


def _view_buttons(bottles: Sequence[CellarItem]) -> ButtonRows:
    """Return the buttons below the overview: colours, then other views, then files."""
    styles = [style for style, _ in count_by(bottles, "style") if style]
    colours = [Button(translate(f"style_{style}"), f"{VIEW}{style}:0") for style in styles]
    others = [
        Button(translate(f"cellar_{name}_button"), f"{VIEW}{name}:0")
        for name in ("soon", "past", "regions", "all")
    ]
    files = [Button(f"📄 {name}", f"{VIEW}{name.lower()}:0") for name in ("CSV", "XLSX")]
    return (*in_rows(colours, 3), *in_rows(others, 2), tuple(files))


async def _show_view(update: Update, turn: ChatTurn) -> None:
    """Show a page of the cellar in the place of the one before, or send it as a file."""
    query = press_of(update)
    name, page = split_data(query, 2)
    await acknowledge(query)
    bottles = await _load_bottles(turn)
    if name in ("csv", "xlsx"):
        write = to_csv if name == "csv" else to_workbook
        turn.send_file(f"cellar.{name}", await asyncio.to_thread(write, bottles))
        return
    if not isinstance(query.message, Message):
        return
    to = Destination(query.message.chat.id, edits=query.message.message_id)
    if name == "overview" or not items_in_stock(bottles):
        text = await asyncio.to_thread(format_overview, bottles, this_year())
        turn.send(to, text, _view_buttons(bottles))
    elif name == "regions":
        turn.send(to, translate("cellar_which_region"), _region_buttons(bottles))
    else:
        found = await asyncio.to_thread(select_view, bottles, name, this_year())
        text = format_page(found, parse_id(page), this_year())
        turn.send(to, text, _page_buttons(name, parse_id(page), len(found)))


def _region_buttons(bottles: Sequence[CellarItem]) -> ButtonRows:
    buttons: list[Button] = []
    for region, count in list_regions(bottles)[:MAX_REGIONS]:
        data = f"{VIEW}={region}:0"
        if len(data.encode()) <= MAX_DATA_BYTES and ":" not in region:
            buttons.append(Button(f"{region} ({count})"[:MAX_LABEL_CHARS], data))
    return (*in_rows(buttons, 2), _back_button())


def _back_button() -> tuple[Button, ...]:
    return (Button(translate("cellar_back_button"), f"{VIEW}overview:0"),)


def _page_buttons(name: str, page: int, count: int) -> ButtonRows:
    """Return the buttons that turn pages, and the one that leads back."""
    turns: list[Button] = []
    if page > 0:
        turns.append(Button("◀", f"{VIEW}{name}:{page - 1}"))
    if (page + 1) * PAGE_SIZE < count:
        turns.append(Button("▶", f"{VIEW}{name}:{page + 1}"))
    return (*in_rows(turns, 2), _back_button())


async def _remove_bottles(turn: ChatTurn, bottles: Sequence[CellarItem], line: str) -> None:
    """Remove the bottles that a line like "2 Barolo 2016" names, or say why none are removed."""
    count, name = parse_removal(line)
    match find_item_to_remove(bottles, name, count):
        case Found(item):
            await store_and_confirm(turn, bottles=(item,))
        case TooFew(item):
            turn.reply(format_items([item], this_year(), translate("cellar_too_few")))
        case Unclear(items):
            turn.reply(translate("cellar_which"), _item_buttons(items, f"{REMOVE_BOTTLES}{count}:"))
        case NotFound():
            turn.reply(translate("cellar_not_found"))


def _item_buttons(items: Sequence[CellarItem], prefix: str) -> ButtonRows:
    """Return a button for each item, whose data are a prefix and the number of the item."""
    rows: list[tuple[Button]] = []
    for item in items:
        label = f"{item.count} × {to_wine(item).label}"[:MAX_LABEL_CHARS]
        rows.append((Button(label, f"{prefix}{item.number}"),))
    return tuple(rows)


async def _remove_chosen_bottles(update: Update, turn: ChatTurn) -> None:
    """Remove bottles of the item of a button; the cellar is that of the user who presses."""
    query = press_of(update)
    count, number = split_data(query, 2)
    if not await claim_once(query, turn, REMOVE_BOTTLES):
        return
    bottles = await _load_bottles(turn)
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    await _remove_bottles(turn, bottles, f"{parse_id(count)} {CELLAR_PREFIX}{parse_id(number)}")


async def _open_named_bottle(turn: ChatTurn, bottles: Sequence[CellarItem], line: str) -> None:
    """Open a bottle that a line like "12 92 lovely" or "Barolo 2016" names, or say why not."""
    found, rating, note = read_opened(bottles, line)
    match found:
        case Found(item):
            drinks = open_bottle(item, datetime.now(UTC), rating, note)
            await store_and_confirm(turn, bottles=(item,), drinks=drinks)
        case TooFew(item):
            turn.reply(format_items([item], this_year(), translate("cellar_too_few")))
        case Unclear(items):
            turn.reply(translate("cellar_which"), _item_buttons(items, OPENED))
        case NotFound():
            turn.reply(translate("cellar_not_found"))


async def _note_opened_bottle(turn: ChatTurn, line: str) -> None:
    """Add a rating and a note to the bottle that was opened last of an item."""
    bottles = await turn.repositories.memory.list_bottles(turn.user_id)
    drinks = await turn.repositories.memory.list_drinks(turn.user_id)
    change = attach_note(bottles, drinks, line)
    if change is None:
        turn.reply(translate("cellar_not_found"))
        return
    old, new = change
    await store_and_confirm(turn, drinks=(new,), removed_drinks=(old,))


async def _open_chosen_bottle(update: Update, turn: ChatTurn) -> None:
    """Open a bottle of the item of a button; the cellar is that of the user who presses."""
    query = press_of(update)
    (number,) = split_data(query, 1)
    if not await claim_once(query, turn, str(query.data)):
        return
    item = find_item_by_id(await _load_bottles(turn), f"{parse_id(number)}")
    if item is None:
        await acknowledge(query, translate("cellar_not_found"))
        return
    await acknowledge(query)
    remove_buttons(query, turn)
    opened = replace(item, count=-1)
    drinks = open_bottle(opened, datetime.now(UTC))
    await store_and_confirm(turn, bottles=(opened,), drinks=drinks)


async def _read_file(update: Update, turn: ChatTurn) -> None:
    """Say what a file says, and ask whether it replaces the cellar or is added to it."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    download = partial(fetch_file, update.get_bot(), document.to_dict(), MAX_FILE_BYTES)
    file = CellarFile()
    with suppress(Unreadable):
        file = await turn.services.resources.files.read(download, read_cellar, user_id=turn.user_id)
    if not file.items:
        turn.reply(translate("cellar_unreadable"))
        return
    stored = await _load_bottles(turn)
    plan = make_plan(file.items, stored, "replace")
    if not plan.changes and items_in_stock(stored):
        turn.reply(translate("import_same", count=plan.bottles, wines=plan.wines))
        return
    turn.reply(_describe_file(file, stored), _import_buttons(turn.id, stored))
    turn.change(KeepImport(turn.user_id, turn.id, tuple(file.items)))


def _describe_file(file: CellarFile, stored: Sequence[CellarItem]) -> str:
    """Return what was understood of a file, and what replacing the cellar would change."""
    plan = make_plan(file.items, stored, "replace")
    lines = [translate("import_read", count=plan.bottles, wines=plan.wines)]
    columns = ", ".join(f"{title} → {field}" for title, field in file.columns)
    if columns:
        lines.append(translate("import_columns", columns=escape(columns)))
    if file.unread_count:
        lines.append(translate("import_unread", left=file.unread_count))
    if items_in_stock(stored):
        new, changed, gone = str(plan.new), str(plan.changed), str(plan.gone)
        lines.append(translate("import_changes", new=new, changed=changed, gone=gone))
    if plan.left_out:
        lines.append(translate("cellar_full", limit=MAX_CELLAR_ITEMS, left=plan.left_out))
    lines.append(format_items(file.items[:MAX_SAMPLES], this_year(), translate("import_samples")))
    lines.append(translate("import_question"))
    return "\n\n".join(lines)


def _import_buttons(import_id: int, stored: Sequence[CellarItem]) -> ButtonRows:
    """Return the buttons that store a file; an empty cellar can only be filled."""
    names: tuple[ImportMode, ...] = ("replace", "add") if items_in_stock(stored) else ("add",)
    buttons = [
        Button(translate(f"import_{name}_button"), f"{IMPORT}{name}:{import_id}") for name in names
    ]
    buttons.append(Button(translate("import_cancel_button"), f"{IMPORT}{CANCEL}:{import_id}"))
    return (tuple(buttons),)


async def _store_import(update: Update, turn: ChatTurn) -> None:
    """Store the pending file of a button, or drop it."""
    query = press_of(update)
    mode, import_id = split_data(query, 2)
    items = await turn.repositories.memory.find_import(turn.user_id, parse_id(import_id))
    if items is None or mode not in (*get_args(ImportMode), CANCEL):
        await acknowledge(query, translate("button_too_old"))
        return
    if not await claim_once(query, turn, IMPORT):
        return
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    if mode == CANCEL:
        turn.change(ImportCellar(turn.user_id, parse_id(import_id), None))
        turn.reply(translate("import_cancelled"))
        return
    kind: ImportMode = "replace" if mode == "replace" else "add"
    plan = make_plan(items, await _load_bottles(turn), kind)
    turn.change(ImportCellar(turn.user_id, parse_id(import_id), kind, undo_id=turn.id))
    text = translate("import_done", count=plan.bottles_after, wines=plan.wines_after)
    turn.reply(text, undo_button(turn.id))
