"""Notice a list that shrank suspiciously: a file that was cut off, or a column that moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.wine import Wine
from db.models import OfferRow, WineRow

MAX_CHANGED_SHARE: Final = 0.3
"""The share of a list that may vanish, or change its price by much, in one import."""
MAX_PRICE_CHANGE: Final = 0.5
"""The part of its old price by which a price changes much."""
MIN_LISTED: Final = 10
"""A shorter list may change as it likes."""


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Tells what an import would do to a list: the wines in stock, those gone, new prices."""

    listed: int
    gone: int
    repriced: int

    @property
    def is_suspicious(self) -> bool:
        """Return whether so much would change that the file is probably wrong."""
        changed = self.gone + self.repriced
        return self.listed >= MIN_LISTED and changed > MAX_CHANGED_SHARE * self.listed


class ListShrinks(Exception):
    """An import that was refused because too much of a list would change."""

    def __init__(self, shrinkage: Shrinkage) -> None:
        super().__init__(
            f"of {shrinkage.listed} wines of this list, {shrinkage.gone} would be out of stock and "
            f"{shrinkage.repriced} would change their price by more than half"
        )
        self.shrinkage = shrinkage


async def find_shrinkage(
    session: AsyncSession, source: str, wines: Sequence[Wine]
) -> Shrinkage:
    """Return what an import of these wines would do to the list of a source."""
    offers = select(OfferRow.wine_id, OfferRow.kind, OfferRow.price).where(
        OfferRow.in_stock,
        OfferRow.wine_id.in_(select(WineRow.id).where(WineRow.source == source)),
    )
    prices: dict[str, dict[str, float | None]] = {}
    for wine_id, kind, price in await session.execute(offers):
        prices.setdefault(wine_id, {})[kind] = price
    new_wines = {wine.id: wine for wine in wines}
    gone = [wine_id for wine_id in prices if wine_id not in new_wines]
    repriced = [
        wine_id
        for wine_id, old_prices in prices.items()
        if wine_id in new_wines and _changes_much(old_prices, new_wines[wine_id])
    ]
    return Shrinkage(listed=len(prices), gone=len(gone), repriced=len(repriced))


def _changes_much(old_prices: Mapping[str, float | None], wine: Wine) -> bool:
    """Return whether the price of an offer of the wine changes much, or is lost."""
    for offer in wine.offers:
        old = old_prices.get(offer.kind)
        if old and (
            offer.price is None or abs(offer.price - old) > MAX_PRICE_CHANGE * old
        ):
            return True
    return False
