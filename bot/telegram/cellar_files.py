"""Take in a file with a user's own bottles: CSV, a workbook, or a text with one wine on each line.

The bot shows what it has read, and keeps it. Only a press on "replace" or "add" changes the cellar.
"""

from functools import partial
from typing import Final, cast, get_args

from telegram import Update
from telegram.ext import filters
from telegram.ext.filters import BaseFilter

from agent.cellar.imports import ImportMode, ImportPlan, make_plan
from agent.cellar.items import select_in_stock
from agent.cellar.rows import count_bottles, format_items, this_year
from agent.files import Unreadable
from agent.i18n import translate
from agent.markdown import escape
from agent.turn import MAX_CELLAR_ITEMS
from bot.telegram.answer_buttons import undo_button
from bot.telegram.bottles import load_bottles
from bot.telegram.buttons import acknowledge, claim_once, parse_id, split_data
from bot.telegram.chat import AnyHandler, ChatTurn, on_message, on_press
from bot.telegram.media import fetch_file
from bot.telegram.messages import message_of, press_of
from bot.telegram.sender import Button, ButtonRows
from db.changes.cellar import ImportCellar, KeepImport
from db.wines.lists.cellar import CellarFile, read_cellar

IMPORT: Final = "ci:"
"""The prefix of the data of the buttons that decide about a file: `ci:MODE:IMPORT`."""
CANCEL: Final = "no"
"""Stands in the place of the mode in the data of the button that drops the file."""
MAX_FILE_BYTES: Final = 2_000_000
MAX_SAMPLES: Final = 3
"""How many wines of a file are shown, so that the user sees whether it was read rightly."""
EXTENSIONS: Final = ("csv", "tsv", "tab", "txt", "xlsx")


def cellar_file_handlers() -> list[AnyHandler]:
    """Return the handlers of files with a list of bottles, and of the buttons below them."""
    is_private = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
    first, *others = EXTENSIONS
    is_list: BaseFilter = filters.Document.FileExtension(first)
    for extension in others:
        is_list |= filters.Document.FileExtension(extension)
    return [
        on_press(IMPORT, _store_import),
        on_message(is_private & is_list, _read_file),
    ]


async def _read_file(update: Update, turn: ChatTurn) -> None:
    """Describe a file, and ask whether it replaces the cellar or is added to it."""
    file = await _download(update, turn)
    if not file.items:
        turn.reply(translate("cellar_unreadable"))
        return
    stored = await load_bottles(turn)
    plan = make_plan(file.items, stored, "replace")
    has_bottles = bool(select_in_stock(stored))
    if has_bottles and not plan.changes:
        listed = count_bottles(plan.bottles, plan.wines)
        turn.reply(translate("import_same", bottles=listed))
        return
    description = _describe_file(file, plan, has_bottles=has_bottles)
    buttons = _import_buttons(turn.id, has_bottles=has_bottles)
    turn.reply(description, buttons)
    # The id of the turn becomes the id of the import.
    items = tuple(file.items)
    turn.change(KeepImport(turn.user_id, turn.id, items))


async def _download(update: Update, turn: ChatTurn) -> CellarFile:
    """Return what was read of a file. One that cannot be read has no items."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    bot = update.get_bot()
    download = partial(fetch_file, bot, document.to_dict(), MAX_FILE_BYTES)
    files = turn.services.resources.files
    try:
        return await files.read(download, read_cellar, user_id=turn.user_id)
    except Unreadable:
        return CellarFile()


def _describe_file(file: CellarFile, plan: ImportPlan, *, has_bottles: bool) -> str:
    """Return what was understood of a file, and what replacing the cellar would change.

    `has_bottles` is true if there are bottles in the cellar.
    """
    listed = count_bottles(plan.bottles, plan.wines)
    parts = [translate("import_read", bottles=listed)]
    columns = ", ".join(title for title, _ in file.columns)
    if columns:
        parts.append(translate("import_columns", columns=escape(columns)))
    if file.unread_count:
        parts.append(translate("import_unread", left=file.unread_count))
    if has_bottles:
        parts.append(_describe_changes(plan))
    if plan.left_out:
        full = translate("cellar_full", limit=MAX_CELLAR_ITEMS, left=plan.left_out)
        parts.append(full)
    samples = file.items[:MAX_SAMPLES]
    parts.append(format_items(samples, this_year(), translate("import_samples")))
    if has_bottles:
        parts.append(translate("import_question"))
    else:
        parts.append(translate("import_question_new"))
    return "\n\n".join(parts)


def _describe_changes(plan: ImportPlan) -> str:
    """Return how many wines are new, changed and gone after an import."""
    return translate(
        "import_changes",
        new=str(plan.new),
        changed=str(plan.changed),
        gone=str(plan.gone),
    )


def _import_buttons(import_id: int, *, has_bottles: bool) -> ButtonRows:
    """Return the buttons that decide about a file. An empty cellar has nothing to replace."""
    add = _button("import_add_button", "add", import_id)
    cancel = _button("import_cancel_button", CANCEL, import_id)
    if not has_bottles:
        return ((add, cancel),)
    replace = _button("import_replace_button", "replace", import_id)
    return ((replace, add, cancel),)


def _button(label_id: str, mode: str, import_id: int) -> Button:
    """Return the button that decides about a file in a mode, or cancels its import."""
    return Button(translate(label_id), f"{IMPORT}{mode}:{import_id}")


async def _store_import(update: Update, turn: ChatTurn) -> None:
    """Change the cellar by the kept file that a button names, or drop the file."""
    query = press_of(update)
    mode, id_part = split_data(query, 2)
    import_id = parse_id(id_part)
    items = await turn.repositories.memory.find_import(turn.user_id, import_id)
    known_modes = (*get_args(ImportMode), CANCEL)
    if items is None or mode not in known_modes:
        await acknowledge(query, translate("button_too_old"))
        return
    if not await claim_once(query, turn, IMPORT):
        return
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    if mode == CANCEL:
        turn.change(ImportCellar(turn.user_id, import_id, None))
        turn.reply(translate("import_cancelled"))
        return
    import_mode = cast(ImportMode, mode)
    bottles = await load_bottles(turn)
    plan = make_plan(items, bottles, import_mode)
    turn.change(ImportCellar(turn.user_id, import_id, import_mode, undo_id=turn.id))
    stored = count_bottles(plan.bottles_after, plan.wines_after)
    turn.reply(translate("import_done", bottles=stored), undo_button(turn.id))
