"""Change a whole cellar by a file.

What the file says is kept first. The cellar changes only when the user says so.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, delete, select

from agent.cellar.imports import ImportMode, make_plan
from agent.turn import CellarItem, Change
from db.changes.base import StoredChange, Transaction
from db.changes.memory import ChangeMemory
from db.models import BottleRow, KeptImportRow
from db.statements import to_record, upsert

KEPT_FOR: Final = timedelta(days=1)
"""How long a user may take to decide about a file."""
ITEMS_ADAPTER: Final = TypeAdapter(tuple[CellarItem, ...])
"""Writes the items of a file as JSON, and reads them."""


@dataclass(frozen=True, slots=True)
class KeepImport(StoredChange):
    """Keeps the items of a file under an id. Those of an earlier file of the user are dropped."""

    user_id: int
    import_id: int
    items: tuple[CellarItem, ...]

    async def apply(self, transaction: Transaction) -> None:
        """Store the items as JSON."""
        row = KeptImportRow(
            user_id=self.user_id,
            import_id=self.import_id,
            items=ITEMS_ADAPTER.dump_json(self.items).decode(),
            until=transaction.now + KEPT_FOR,
        )
        await upsert(transaction.session, row)


@dataclass(frozen=True, slots=True)
class ImportCellar(StoredChange):
    """Changes the cellar by the kept items of a file, once.

    If `mode` is None, the user does not want them, and they are dropped.
    """

    user_id: int
    import_id: int
    mode: ImportMode | None
    undo_id: int = 0

    async def apply(self, transaction: Transaction) -> None:
        """Take the items out of their row. Do nothing if they are no longer kept."""
        is_this = kept_import_condition(self.user_id, self.import_id, transaction.now)
        take_out = delete(KeptImportRow).where(is_this)
        kept_json = await transaction.session.scalar(
            take_out.returning(KeptImportRow.items)
        )
        if kept_json is None or self.mode is None:
            return
        store = StoreList(
            user_id=self.user_id,
            items=ITEMS_ADAPTER.validate_json(kept_json),
            mode=self.mode,
            undo_id=self.undo_id,
        )
        await store.apply(transaction)


@dataclass(frozen=True, slots=True)
class StoreList(StoredChange):
    """Replaces the cellar by the items of a list, or adds them to it, as `mode` says."""

    user_id: int
    items: tuple[CellarItem, ...]
    mode: ImportMode
    undo_id: int = 0

    async def apply(self, transaction: Transaction) -> None:
        """Compare the list with the cellar as it is in this transaction, and change the cellar."""
        owned = select(BottleRow.__table__).where(BottleRow.user_id == self.user_id)
        rows = await transaction.session.execute(owned)
        stored = [to_record(CellarItem, row) for row in rows]
        plan = make_plan(self.items, stored, self.mode)
        change = Change(
            user_id=self.user_id,
            bottles=plan.changes,
            undo_id=self.undo_id,
        )
        await ChangeMemory(change).apply(transaction)


def kept_import_condition(
    user_id: int,
    import_id: int,
    now: datetime,
) -> ColumnElement[bool]:
    """Return the condition by which a query finds the items of a file that are still kept."""
    is_of_user = KeptImportRow.user_id == user_id
    is_this_file = KeptImportRow.import_id == import_id
    is_kept = KeptImportRow.until > now
    return is_of_user & is_this_file & is_kept
