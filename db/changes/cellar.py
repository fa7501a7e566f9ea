"""Changes of a whole cellar: what a file says is kept, until the user has it stored or dropped."""

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
ITEMS_ADAPTER: Final = TypeAdapter(tuple[CellarItem, ...])


@dataclass(frozen=True, slots=True)
class KeepImport(StoredChange):
    """Keeps the items of a file under an id; those of an earlier file are dropped."""

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
    """Stores the kept items of a file, once; without a mode it drops them."""

    user_id: int
    import_id: int
    mode: ImportMode | None
    undo_id: int = 0

    async def apply(self, transaction: Transaction) -> None:
        """Change the cellar as it is now; do nothing if the items are no longer kept."""
        session = transaction.session
        is_this = is_kept_import(self.user_id, self.import_id, transaction.now)
        pop = delete(KeptImportRow).where(is_this).returning(KeptImportRow.items)
        kept = await session.scalar(pop)
        if kept is None or self.mode is None:
            return
        items = ITEMS_ADAPTER.validate_json(kept)
        await StoreList(self.user_id, items, self.mode, self.undo_id).apply(transaction)


@dataclass(frozen=True, slots=True)
class StoreList(StoredChange):
    """Stores the items of a list: it replaces the cellar, or is added to it."""

    user_id: int
    items: tuple[CellarItem, ...]
    mode: ImportMode
    undo_id: int = 0

    async def apply(self, transaction: Transaction) -> None:
        """Change the cellar as it is now."""
        owned = select(BottleRow.__table__).where(BottleRow.user_id == self.user_id)
        rows = (await transaction.session.execute(owned)).all()
        stored = [to_record(CellarItem, row) for row in rows]
        plan = make_plan(self.items, stored, self.mode)
        change = Change(
            user_id=self.user_id, bottles=plan.changes, undo_id=self.undo_id
        )
        await ChangeMemory(change).apply(transaction)


def is_kept_import(user_id: int, import_id: int, now: datetime) -> ColumnElement[bool]:
    """Return the condition for the items of a file that a user may still have stored."""
    is_theirs = (KeptImportRow.user_id == user_id) & (
        KeptImportRow.import_id == import_id
    )
    return is_theirs & (KeptImportRow.until > now)
