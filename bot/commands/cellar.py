"""`sommelier cellar import`: show how a list of bottles is understood, and store it for a user."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Column, Table

from agent import size_limits
from agent.cellar.imports import ImportMode, ImportPlan, make_plan
from agent.cellar.items import find_drinking_window, select_in_stock, to_wine
from agent.cellar.rows import count_bottles, format_size
from agent.files import Unreadable, parse_in_process, read_regular_file
from agent.formatting import format_money
from agent.tracing.records import compute_keyed_hash
from agent.turn import MAX_CELLAR_ITEMS, CellarItem
from bot.commands.output import (
    DryRun,
    UserId,
    WithoutAsking,
    build_table,
    fail,
    open_settings,
    print_table,
    run_with_database,
    show_status,
)
from bot.resources import Stores
from bot.turn import Turn
from config import Settings
from db.changes.cellar import StoreList
from db.engine import Sessions
from db.repositories.people import MemoryRepository
from db.wines.lists.cellar import CellarFile, read_cellar

READ_SECONDS: Final = 120
"""The time limit for reading a file."""
PREVIEW_ITEMS: Final = 8
MODES: Final[dict[str, ImportMode]] = {"replace": "replace", "add": "add"}
"""The modes by what an operator types: the type checker knows the values as modes."""
MAX_GONE_SHARE: Final = 0.3
"""The share of a cellar's wines that one import with "replace" may take away."""
MIN_WINES: Final = 10
"""A cellar with fewer wines may be replaced by any other."""
UNCLEAR_STATUS: Final = 2
"""The exit status if nobody has said whether the file replaces the cellar or is added to it."""
SHRINKS_STATUS: Final = 3
"""The exit status if too much of a cellar would be gone. `sommelier wines import` has the same."""

cellar_app = typer.Typer(no_args_is_help=True, add_completion=False)


@cellar_app.callback()
def cellar() -> None:
    """Fill the cellars of users."""


@dataclass(frozen=True, slots=True)
class _Import:
    """A file that was read for the cellar of a user."""

    settings: Settings
    user_id: int
    file: CellarFile
    stored: Sequence[CellarItem]

    def plan(self, mode: ImportMode) -> ImportPlan:
        """Return what would change if the file were stored in this way."""
        return make_plan(self.file.items, self.stored, mode)


@cellar_app.command("import")
def import_cellar(
    user_id: UserId,
    file: Annotated[
        Path,
        typer.Argument(
            help="A CSV file, workbook or plain list of the user's bottles."
        ),
    ],
    *,
    replace: Annotated[
        bool | None,
        typer.Option(
            "--replace/--add",
            help="Remove what is not in the file, or add the bottles of the file.",
        ),
    ] = None,
    yes: WithoutAsking = False,
    dry_run: DryRun = False,
    allow_shrink: Annotated[
        bool,
        typer.Option(
            "--allow-shrink", help="Replace a cellar of which much would be gone."
        ),
    ] = False,
) -> None:
    """Store the bottles of a file in the cellar of a user.

    On a terminal you first see how the file was understood, and choose. In a pipe a file with rows
    that cannot be read is not stored, unless with --yes. Exit status 3: more than 30 % of the
    user's wines would be gone, and nothing was stored.
    """
    is_interactive = sys.stdin.isatty() and not yes
    imported = _read(user_id, file)
    mode = _get_mode(replace, imported.stored)
    if dry_run or is_interactive:
        _show(imported, mode)
    if is_interactive and not dry_run:
        mode = _ask(mode)
    is_declined = is_interactive and mode is None
    if dry_run or is_declined:
        typer.echo("Nothing was stored.")
        return
    if not is_interactive and not yes:
        _end_if_unread(file, imported.file)
    if mode is None:
        fail(
            "nothing was stored: the user owns bottles; say --replace or --add",
            UNCLEAR_STATUS,
        )
    plan = imported.plan(mode)
    if mode == "replace" and not allow_shrink:
        _end_if_it_shrinks(file, plan, imported.stored)
    _store(imported, mode)
    typer.echo(_describe_result(plan))


def _end_if_unread(path: Path, file: CellarFile) -> None:
    """End the command if rows of a file were not understood."""
    if file.unread_count:
        unread = _describe_unread(file)
        fail(f"nothing was stored from {path}: {unread}; --yes stores the rest")


def _end_if_it_shrinks(
    path: Path, plan: ImportPlan, stored: Sequence[CellarItem]
) -> None:
    """End the command if so much of a cellar would be gone that the file is probably wrong."""
    wine_count = len(select_in_stock(stored))
    if wine_count < MIN_WINES or plan.gone <= MAX_GONE_SHARE * wine_count:
        return
    fail(
        f"nothing was stored from {path}: {plan.gone} of the user's wines would be gone. "
        "If that is right, store it with --allow-shrink.",
        SHRINKS_STATUS,
    )


def _read(user_id: int, path: Path) -> _Import:
    """Return the bottles of a file, and those of the user. End the command if there are none."""
    settings = open_settings()
    try:
        data = read_regular_file(path, size_limits.FILE_BYTES)
        reading = parse_in_process(read_cellar, data, seconds=READ_SECONDS)
        with show_status(f"Reading {path}"):
            file = asyncio.run(reading)
    except Unreadable as error:
        fail(f"nothing was stored from {path}: {error}")
    if not file.items:
        fail(f"nothing was stored from {path}: it lists no bottles")

    async def load(sessions: Sessions) -> Sequence[CellarItem]:
        return await MemoryRepository(sessions).list_bottles(user_id)

    stored = run_with_database(settings, load)
    return _Import(settings, user_id, file, stored)


def _get_mode(replace: bool | None, stored: Sequence[CellarItem]) -> ImportMode | None:
    """Return how a file is to be stored, or None if the operator must decide.

    A file for an empty cellar is added, unless the operator has said otherwise.
    """
    if replace is True:
        return "replace"
    if replace is None and select_in_stock(stored):
        return None
    return "add"


def _show(imported: _Import, mode: ImportMode | None) -> None:
    """Show how a file was understood, and what storing it would do."""
    file = imported.file
    if file.columns:
        print_table(build_table(["Column", "Is"], file.columns))
    print_table(_item_table(file.items))
    plan = imported.plan(mode or "replace")
    listed = count_bottles(plan.bottles, plan.wines)
    typer.echo(f"{listed} were read.")
    if file.unread_count:
        typer.echo(f"{_describe_unread(file)}.")
    if plan.left_out:
        typer.echo(
            f"{plan.left_out} do not fit: a cellar holds {MAX_CELLAR_ITEMS} wines."
        )
    if mode != "add":
        typer.echo(
            f"Replace: {plan.new} new, {plan.changed} changed, {plan.gone} gone."
        )
    if mode != "replace" and select_in_stock(imported.stored):
        addition = imported.plan("add")
        typer.echo(f"Add: {addition.new} new, {addition.changed} with more bottles.")


def _item_table(items: Sequence[CellarItem]) -> Table:
    """Return a table of the first items."""
    columns: list[str | Column] = [
        Column("Bottles", justify="right"),
        "Wine",
        "Style",
        "Size",
        "Price",
        "Best years",
        "Place",
    ]
    rows = [_describe(item) for item in items[:PREVIEW_ITEMS]]
    return build_table(columns, rows)


def _describe(item: CellarItem) -> list[str]:
    """Return the cells of an item in the table."""
    wine = to_wine(item)
    price = ""
    if wine.price is not None:
        price = format_money(wine.price, wine.currency)
    years = ""
    window = find_drinking_window(item)
    if window is not None:
        first_year, last_year = window
        years = f"{first_year}-{last_year}"
    return [
        str(item.count),
        wine.label,
        wine.style or "unknown",
        format_size(item),
        price,
        years,
        item.place,
    ]


def _ask(mode: ImportMode | None) -> ImportMode | None:
    """Ask whether and how to store a file that was shown. Return None if it is not to be stored."""
    if mode is None:
        chosen = typer.prompt("Store it (replace, add, cancel)?", default="cancel")
        return MODES.get(chosen.strip().lower())
    if typer.confirm(f"Store it ({mode})?"):
        return mode
    return None


def _describe_unread(file: CellarFile) -> str:
    if file.unread_count == 1:
        return "1 row was not understood"
    return f"{file.unread_count} rows were not understood"


def _store(imported: _Import, mode: ImportMode) -> None:
    """Store the bottles. The commit drops them if the user's data were deleted meanwhile."""
    settings = imported.settings
    user_id = imported.user_id
    items = tuple(imported.file.items)

    async def store(sessions: Sessions) -> None:
        user_hash = compute_keyed_hash("user", user_id, settings.trace_user_key)
        turn = Turn(user_id=user_id, trace_user=user_hash)
        turn.change(StoreList(user_id, items, mode))
        await Stores(sessions).commits.save(turn.complete_commit())

    run_with_database(settings, store)


def _describe_result(plan: ImportPlan) -> str:
    changes = f"{plan.new} new, {plan.changed} changed, {plan.gone} gone"
    stored = count_bottles(plan.bottles_after, plan.wines_after)
    return f"{changes}; {stored} are in the cellar now."
