"""Change offers at once, as the staff of a shop does between two imports of its list."""

from dataclasses import dataclass

from sqlalchemy import update

from db.changes.base import StoredChange, Transaction
from db.engine import count_changed
from db.models import OfferRow
from db.wines.catalogue import INCREMENT_VERSION


@dataclass(frozen=True, slots=True)
class ChangeOffers(StoredChange):
    """Changes offers of a wine. The next import of the wine's list replaces what is changed.

    `positions` are the places of the offers among those of the wine. `in_stock` or `price` stays
    as it is if it is None.
    """

    is_personal = False

    wine_id: str
    positions: tuple[int, ...]
    in_stock: bool | None = None
    price: float | None = None

    async def apply(self, transaction: Transaction) -> None:
        """Change the offers, and let all processes read the wines again."""
        values: dict[str, object] = {"changed_at": transaction.now}
        if self.in_stock is True:
            # The staff says that there are bottles, but not how many.
            values |= {"in_stock": True, "stock": None}
        elif self.in_stock is False:
            values |= {"in_stock": False, "stock": 0}
        if self.price is not None:
            values["price"] = self.price
        change = (
            update(OfferRow)
            .where(
                OfferRow.wine_id == self.wine_id,
                OfferRow.position.in_(self.positions),
            )
            .values(values)
        )
        session = transaction.session
        is_changed = await count_changed(session, change)
        if is_changed:
            await session.execute(INCREMENT_VERSION)
