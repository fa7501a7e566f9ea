"""The change of offers by the staff of a shop, between two imports of their list."""

from dataclasses import dataclass

from sqlalchemy import update

from db.changes.base import StoredChange, Transaction
from db.engine import count_changed
from db.models import OfferRow
from db.wines.catalogue import COUNT_VERSION


@dataclass(frozen=True, slots=True)
class ChangeOffers(StoredChange):
    """Changes offers of a wine at once, until the next import of its list replaces them.

    `positions` are their places among the offers of the wine. What is None stays as it is.
    """

    is_personal = False

    wine_id: str
    positions: tuple[int, ...]
    in_stock: bool | None = None
    price: float | None = None

    async def apply(self, transaction: Transaction) -> None:
        """Change the offers, and let all processes read the wines again."""
        values: dict[str, object] = {"changed_at": transaction.now}
        if self.in_stock is not None:
            values["in_stock"] = self.in_stock
            values["stock"] = None if self.in_stock else 0  # nobody has counted
        if self.price is not None:
            values["price"] = self.price
        is_offer = (OfferRow.wine_id == self.wine_id) & OfferRow.position.in_(
            self.positions
        )
        session = transaction.session
        if await count_changed(
            session, update(OfferRow).where(is_offer).values(values)
        ):
            await session.execute(COUNT_VERSION)
