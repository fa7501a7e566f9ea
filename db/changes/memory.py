"""Change what is remembered of a user: facts, bottles and concerns."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Delete, delete
from sqlalchemy.ext.asyncio import AsyncSession

from agent.text import strip_unstorable
from agent.turn import Change, Drink, Fact
from db.changes.base import StoredChange, Transaction
from db.changes.bottles import change_bottles
from db.models import (
    Base,
    ConcernRow,
    DrinkRow,
    FactRow,
    MessageRow,
    SettingRow,
    TasteRatingRow,
    UndoableChangeRow,
)
from db.statements import upsert

UNDOABLE_FOR: Final = timedelta(days=30)
"""How long a change can be undone."""
CHANGE_ADAPTER: Final = TypeAdapter(Change)


@dataclass(frozen=True, slots=True)
class ChangeMemory(StoredChange):
    """Adds and removes facts and bottles of a user, or undoes an earlier change."""

    change: Change

    async def apply(self, transaction: Transaction) -> None:
        """Make the change.

        Do nothing if the change to undo was undone before, or can no longer be undone.
        """
        change = self.change
        if change.reverts_id:
            undone = await _pop_undoable(transaction, change.user_id, change.reverts_id)
            if undone is None:
                return
            change = undone.inverse
        await _apply(transaction.session, change, transaction.now)


@dataclass(frozen=True, slots=True)
class TakeBackTurn(StoredChange):
    """Takes back a turn whose message was edited: its messages, and what it has changed.

    An allergy that the turn has stored stays, until the user removes it in /taste.
    """

    turn_id: int
    user_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Delete the messages of the turn, and undo what it has changed."""
        session = transaction.session
        is_of_turn = MessageRow.turn_id == self.turn_id
        await session.execute(delete(MessageRow).where(is_of_turn))
        change = await _pop_undoable(transaction, self.user_id, self.turn_id)
        if change is not None:
            inverse = without_added_allergies(change).inverse
            await _apply(session, inverse, transaction.now)


@dataclass(frozen=True, slots=True)
class SaveConcerns(StoredChange):
    """Stores concerns and allergies of a user in a chat.

    Each has the time at which it expires, or None if it never does.
    """

    chat_id: int
    user_id: int
    concerns: Mapping[str, datetime | None]

    async def apply(self, transaction: Transaction) -> None:
        """Store the concerns. If a concern is stored already, it gets the new time."""
        rows: list[ConcernRow] = []
        for name, until in self.concerns.items():
            row = ConcernRow(
                user_id=self.user_id,
                chat_id=self.chat_id,
                name=name,
                at=transaction.now,
                until=until,
            )
            rows.append(row)
        await upsert(transaction.session, *rows)


@dataclass(frozen=True, slots=True)
class ForgetConcerns(StoredChange):
    """Deletes a user's concerns and allergies in one chat, or in all chats if `chat_id` is None."""

    user_id: int
    chat_id: int | None = None
    kept: Collection[str] = ()
    """The concerns that stay."""

    async def apply(self, transaction: Transaction) -> None:
        """Delete the rows."""
        is_theirs = ConcernRow.user_id == self.user_id
        if self.chat_id is not None:
            is_theirs &= ConcernRow.chat_id == self.chat_id
        is_forgotten = ConcernRow.name.not_in(self.kept)
        forget = delete(ConcernRow).where(is_theirs, is_forgotten)
        await transaction.session.execute(forget)


def undo_condition(
    user_id: int,
    undo_id: int,
    now: datetime,
) -> ColumnElement[bool]:
    """Return the condition by which a query finds a change that the user can still undo."""
    is_theirs = UndoableChangeRow.user_id == user_id
    is_this = UndoableChangeRow.undo_id == undo_id
    is_kept = UndoableChangeRow.until > now
    return is_theirs & is_this & is_kept


def without_added_allergies(change: Change) -> Change:
    """Return a change without the allergies that it adds, so that undoing it removes none."""
    others = [fact for fact in change.added_facts if fact.kind != "allergy"]
    return replace(change, added_facts=tuple(others))


def _to_storable(change: Change) -> Change:
    """Return a change without characters that cannot be stored.

    An undo finds the rows by the texts of the change, so they must be the same as in the rows.
    """
    fields = _strip_texts(CHANGE_ADAPTER.dump_python(change))
    return CHANGE_ADAPTER.validate_python(fields)


def _strip_texts(value: Any) -> Any:
    """Return nested data, with every text as `strip_unstorable` leaves it."""
    if isinstance(value, str):
        return strip_unstorable(value)
    if isinstance(value, Mapping):
        stripped: dict[Any, Any] = {}
        for key, item in value.items():
            stripped[_strip_texts(key)] = _strip_texts(item)
        return stripped
    if isinstance(value, list | tuple):
        return [_strip_texts(item) for item in value]
    return value


async def _apply(
    session: AsyncSession,
    change: Change,
    now: datetime,
) -> None:
    """Make a change. If it can be undone, store it as it was made."""
    change = _to_storable(change)
    for fact in change.removed_facts:
        await _remove_fact(session, change.user_id, fact)
    for fact in change.added_facts:
        await _add_fact(session, change.user_id, fact, now)
    change = await change_bottles(session, change, now)
    for drink in change.removed_drinks:
        remove = delete(DrinkRow).where(
            DrinkRow.user_id == change.user_id,
            DrinkRow.key == drink.key,
            DrinkRow.at == drink.at,
        )
        await session.execute(remove)
    for drink in change.drinks:
        session.add(_to_row(change.user_id, drink))
    if change.undo_id:
        undoable = UndoableChangeRow(
            user_id=change.user_id,
            undo_id=change.undo_id,
            change=CHANGE_ADAPTER.dump_json(change).decode(),
            until=now + UNDOABLE_FOR,
        )
        await upsert(session, undoable)


def _to_row(user_id: int, drink: Drink) -> DrinkRow:
    """Return the row of a drink of a user."""
    return DrinkRow(
        user_id=user_id,
        key=drink.key,
        wine=dict(drink.wine),
        at=drink.at,
        rating=drink.rating,
        note=drink.note,
    )


async def _add_fact(
    session: AsyncSession,
    user_id: int,
    fact: Fact,
    now: datetime,
) -> None:
    """Store a fact or a setting of a user. A setting has the value `name=value`."""
    row: Base
    if fact.kind == "setting":
        name, _, value = fact.value.partition("=")
        row = SettingRow(
            user_id=user_id,
            name=name,
            value=value,
            at=now,
        )
    else:
        row = FactRow(
            user_id=user_id,
            kind=fact.kind,
            value=fact.value,
            said=fact.original_text,
            at=now,
        )
    await upsert(session, row)


async def _remove_fact(
    session: AsyncSession,
    user_id: int,
    fact: Fact,
) -> None:
    """Delete a fact, a rating or a setting of a user."""
    await session.execute(_delete_fact(user_id, fact))
    if fact.kind == "allergy":
        # An allergy is also stored as a concern in each chat where the user stated it.
        remove_concern = delete(ConcernRow).where(
            ConcernRow.user_id == user_id,
            ConcernRow.name == fact.value,
        )
        await session.execute(remove_concern)


def _delete_fact(user_id: int, fact: Fact) -> Delete:
    """Return the statement that deletes a fact from the table of its kind."""
    match fact.kind:
        case "setting":
            name, _, value = fact.value.partition("=")
            return delete(SettingRow).where(
                SettingRow.user_id == user_id,
                SettingRow.name == name,
                SettingRow.value == value,
            )
        case "rated":
            return delete(TasteRatingRow).where(
                TasteRatingRow.user_id == user_id,
                TasteRatingRow.taste == fact.value,
            )
        case _:
            return delete(FactRow).where(
                FactRow.user_id == user_id,
                FactRow.kind == fact.kind,
                FactRow.value == fact.value,
            )


async def _pop_undoable(
    transaction: Transaction,
    user_id: int,
    undo_id: int,
) -> Change | None:
    """Delete a stored change and return it, or None if it was undone before or has expired."""
    is_this = undo_condition(user_id, undo_id, transaction.now)
    pop = delete(UndoableChangeRow).where(is_this)
    stored = await transaction.session.scalar(pop.returning(UndoableChangeRow.change))
    if stored is None:
        return None
    return CHANGE_ADAPTER.validate_json(stored)
