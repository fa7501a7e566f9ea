"""`sommelier people`: show, delete and import the data of a user."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic_core import to_json

from agent.cellar.items import find_items_with_room
from agent.memory.exports import MAX_EXPORT_BYTES, Exported, NotAnExport, read_export
from agent.memory.taste import describe_fact, find_new_facts
from agent.tracing.records import compute_keyed_hash
from agent.turn import Change, Drink, Fact
from bot.commands.output import (
    UserId,
    fail,
    open_settings,
    run_with_database,
    show_status,
)
from bot.resources import Stores
from bot.tracing import forget_people
from bot.turn import Turn
from config import Settings
from db.changes.ratings import RestoreRatings
from db.engine import Sessions
from db.repositories.people import MemoryRepository

people_app = typer.Typer(no_args_is_help=True, add_completion=False)


@people_app.command()
def export(user_id: UserId) -> None:
    """Print all data of a user in the database, as JSON."""
    settings = open_settings()
    user_hash = compute_keyed_hash("user", user_id, settings.trace_user_key)

    async def read(sessions: Sessions) -> object:
        return await MemoryRepository(sessions).export(user_id, user_hash)

    with show_status("Collecting the data"):
        data = run_with_database(settings, read)
    typer.echo(to_json(data, indent=2).decode())


@people_app.command()
def forget(
    user_id: UserId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete all data of a user in the database and in Langfuse. This cannot be undone.

    An earlier decision to allow or block the user remains. Messages in Telegram itself are not
    deleted.
    """
    settings = open_settings()
    user_hash = compute_keyed_hash("user", user_id, settings.trace_user_key)
    if not yes:
        typer.confirm(f"Delete all data of {user_id}?", abort=True)

    async def delete(sessions: Sessions) -> None:
        turn = Turn(user_id=user_id, trace_user=user_hash)
        turn.forget_user()
        stores = Stores(sessions)
        await stores.commits.save(turn.complete_commit())
        await forget_people(settings, stores.upkeep)

    run_with_database(settings, delete)
    typer.echo(
        "Deleted. The running bot also looks for traces that Langfuse stores later."
    )


@people_app.command("import")
def import_export(
    file: Annotated[
        Path,
        typer.Argument(help="A file from /export or `sommelier people export`."),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Store the taste, the cellar and the settings of an export.

    The export may be of any release, and of another bot. What the user has here stays as it is.
    Concerns and conversations are left out.
    """
    settings = open_settings()
    exported = _read_file(file)

    async def plan(sessions: Sessions) -> Change:
        return await _plan_import(sessions, exported)

    change = run_with_database(settings, plan)
    typer.echo(_describe_import(exported, change))
    has_changes = change != Change(user_id=exported.user_id)
    if not has_changes and not exported.ratings:
        typer.echo("There is nothing to store.")
        return
    if not yes:
        typer.confirm(f"Store this for user {exported.user_id}?", abort=True)
    _store_import(settings, exported, change)
    typer.echo("Stored.")


def _store_import(settings: Settings, exported: Exported, change: Change) -> None:
    """Store the memory and the ratings of an export."""
    user_id = exported.user_id
    user_hash = compute_keyed_hash("user", user_id, settings.trace_user_key)

    async def store(sessions: Sessions) -> None:
        turn = Turn(user_id=user_id, trace_user=user_hash)
        turn.change_memory(change)
        turn.change(RestoreRatings(user_id, exported.ratings))
        await Stores(sessions).commits.save(turn.complete_commit())

    run_with_database(settings, store)


def _read_file(file: Path) -> Exported:
    """Return the content of an exported file. If it cannot be imported, fail."""
    try:
        if file.stat().st_size > MAX_EXPORT_BYTES:
            fail(f"{file} is larger than {MAX_EXPORT_BYTES:,} bytes")
        return read_export(file.read_bytes())
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except NotAnExport as error:
        fail(f"{file} cannot be imported: {error}")


async def _plan_import(sessions: Sessions, exported: Exported) -> Change:
    """Return what an export adds to the stored memory of its user."""
    memory = MemoryRepository(sessions)
    user_id = exported.user_id
    stored_facts = await memory.list_facts(user_id)
    stored_items = await memory.list_bottles(user_id)
    stored_keys = {item.key for item in stored_items}
    stored_drinks = await memory.list_drinks(user_id)
    stored_openings = {(drink.key, drink.at) for drink in stored_drinks}
    new_facts = find_new_facts(exported.facts, stored_facts)
    new_items = [item for item in exported.items if item.key not in stored_keys]
    new_drinks: list[Drink] = []
    for drink in exported.drinks:
        if (drink.key, drink.at) not in stored_openings:
            new_drinks.append(drink)
    return Change(
        user_id=user_id,
        added_facts=_without_chosen_settings(new_facts, stored_facts),
        bottles=tuple(find_items_with_room(new_items, stored_items)),
        drinks=tuple(new_drinks),
    )


def _without_chosen_settings(
    facts: Sequence[Fact], stored_facts: Sequence[Fact]
) -> tuple[Fact, ...]:
    """Return the facts except the settings that the user has already chosen here."""
    chosen: set[str] = set()
    for fact in stored_facts:
        if fact.kind == "setting":
            chosen.add(_setting_name(fact))
    remaining: list[Fact] = []
    for fact in facts:
        if fact.kind != "setting" or _setting_name(fact) not in chosen:
            remaining.append(fact)
    return tuple(remaining)


def _setting_name(fact: Fact) -> str:
    """Return the name of a setting. In the fact `language=de` it is "language"."""
    name, _, _ = fact.value.partition("=")
    return name


def _describe_import(exported: Exported, change: Change) -> str:
    """Return lines that say what is added and what is left out."""
    wine_count = len(change.bottles)
    bottle_count = sum(item.count for item in change.bottles)
    kept_count = len(exported.items) - wine_count
    taste = []
    settings = []
    for fact in change.added_facts:
        if fact.kind == "setting":
            settings.append(fact.value)
        else:
            taste.append(describe_fact(fact))
    lines = [
        f"User {exported.user_id}",
        f"Cellar: {wine_count} wines with {bottle_count} bottles; "
        f"{kept_count} stay as they are here",
        f"Opened bottles: {len(change.drinks)}",
        f"Taste: {'; '.join(taste) or 'nothing new'}",
        f"Settings: {', '.join(settings) or 'nothing new'}",
        f"Ratings: {len(exported.ratings)}, if the user has rated nothing here",
    ]
    if exported.unread:
        lines.append(f"Left out: {exported.unread} rows that cannot be read")
    return "\n".join(lines)
