"""Take in a file with a user's own bottles: CSV, a workbook, or a text with one wine on each line.

The bot shows what it has read, and keeps it. Only a press on "replace" or "add" changes the cellar.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, cast, get_args

from telegram import Update
from telegram.ext import filters
from telegram.ext.filters import BaseFilter

from agent.cellar.imports import ImportMode, make_plan
from agent.cellar.items import items_in_stock
from agent.cellar.rows import count_bottles, format_items, this_year
from agent.files import Unreadable
from agent.i18n import translate
from agent.markdown import escape
from agent.turn import MAX_CELLAR_ITEMS, CellarItem
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
FILES: Final = ("csv", "tsv", "tab", "txt", "xlsx")


def cellar_file_handlers() -> list[AnyHandler]:
    """Return the handlers of files with a list of bottles, and of the buttons below them."""
    private = filters.UpdateType.MESSAGE & filters.ChatType.PRIVATE
    lists: BaseFilter = filters.Document.FileExtension(FILES[0])
    for extension in FILES[1:]:
        lists |= filters.Document.FileExtension(extension)
    return [on_press(IMPORT, _store_import), on_message(private & lists, _read_file)]


async def _read_file(update: Update, turn: ChatTurn) -> None:
    """Describe a file, and ask whether it replaces the cellar or is added to it."""
    document = message_of(update).document
    assert document is not None  # noqa: S101 - the handler lets nothing else through
    download = partial(fetch_file, update.get_bot(), document.to_dict(), MAX_FILE_BYTES)
    file = CellarFile()
    with suppress(Unreadable):
        file = await turn.services.resources.files.read(
            download, read_cellar, user_id=turn.user_id
        )
    if not file.items:
        turn.reply(translate("cellar_unreadable"))
        return
    stored = await load_bottles(turn)
    plan = make_plan(file.items, stored, "replace")
    if not plan.changes and items_in_stock(stored):
        listed = count_bottles(plan.bottles, plan.wines)
        turn.reply(translate("import_same", bottles=listed))
        return
    turn.reply(_describe_file(file, stored), _import_buttons(turn.id, stored))
    turn.change(KeepImport(turn.user_id, turn.id, tuple(file.items)))


def _describe_file(file: CellarFile, stored: Sequence[CellarItem]) -> str:
    """Return what was understood of a file, and what replacing the cellar would change."""
    plan = make_plan(file.items, stored, "replace")
    listed = count_bottles(plan.bottles, plan.wines)
    parts = [translate("import_read", bottles=listed)]
    columns = ", ".join(title for title, _ in file.columns)
    if columns:
        parts.append(translate("import_columns", columns=escape(columns)))
    if file.unread_count:
        parts.append(translate("import_unread", left=file.unread_count))
    question = "import_question_new"
    if items_in_stock(stored):
        question = "import_question"
        changes = translate(
            "import_changes",
            new=str(plan.new),
            changed=str(plan.changed),
            gone=str(plan.gone),
        )
        parts.append(changes)
    if plan.left_out:
        full = translate("cellar_full", limit=MAX_CELLAR_ITEMS, left=plan.left_out)
        parts.append(full)
    heading = translate("import_samples")
    parts.append(format_items(file.items[:MAX_SAMPLES], this_year(), heading))
    parts.append(translate(question))
    return "\n\n".join(parts)


def _import_buttons(import_id: int, stored: Sequence[CellarItem]) -> ButtonRows:
    """Return the buttons that decide about a file. An empty cellar has nothing to replace."""
    add = Button(translate("import_add_button"), f"{IMPORT}add:{import_id}")
    cancel = Button(translate("import_cancel_button"), f"{IMPORT}{CANCEL}:{import_id}")
    if not items_in_stock(stored):
        return ((add, cancel),)
    replace = Button(translate("import_replace_button"), f"{IMPORT}replace:{import_id}")
    return ((replace, add, cancel),)


async def _store_import(update: Update, turn: ChatTurn) -> None:
    """Change the cellar by the kept file that a button names, or drop the file."""
    query = press_of(update)
    mode, id_text = split_data(query, 2)
    import_id = parse_id(id_text)
    items = await turn.repositories.memory.find_import(turn.user_id, import_id)
    if items is None or mode not in (*get_args(ImportMode), CANCEL):
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
    plan = make_plan(items, await load_bottles(turn), import_mode)
    turn.change(ImportCellar(turn.user_id, import_id, import_mode, undo_id=turn.id))
    stored = count_bottles(plan.bottles_after, plan.wines_after)
    turn.reply(translate("import_done", bottles=stored), undo_button(turn.id))
