"""Notice that an import would change so much of a list that its file is probably wrong.

A file may have been cut off, or its columns may have moved.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from agent.sommelier.wine import Wine
from db.models import OfferRow, WineRow

PricesByKind = dict[str, float | None]
"""The prices of the offers of a wine, by the kind of the offer, such as "bottle"."""

MAX_CHANGED_SHARE: Final = 0.3
"""One import may remove or reprice this share of a list."""
MAX_PRICE_CHANGE: Final = 0.5
"""A wine is repriced if its price changes by more than this part of the old price."""
MIN_LISTED: Final = 10
"""A list with fewer wines may change in any way."""


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """The numbers of wines that an import would change in a list."""

    listed: int
    """The wines that are in stock before the import."""
    gone: int
    """Those of them that the file does not have."""
    repriced: int
    """Those of them whose price would change much, or be lost."""

    @property
    def is_suspicious(self) -> bool:
        """Return whether so much would change that the file is probably wrong."""
        changed = self.gone + self.repriced
        return self.listed >= MIN_LISTED and changed > MAX_CHANGED_SHARE * self.listed


class ListShrinks(Exception):
    """An import is refused because too much of a list would change."""

    def __init__(self, shrinkage: Shrinkage) -> None:
        super().__init__(
            f"of {shrinkage.listed} wines of this list, {shrinkage.gone} would be out of stock and "
            f"{shrinkage.repriced} would change their price by more than half"
        )
        self.shrinkage = shrinkage


async def find_shrinkage(
    session: AsyncSession,
    source: str,
    wines: Sequence[Wine],
) -> Shrinkage:
    """Return what an import of these wines would do to the list of a source."""
    of_source = select(WineRow.id).where(WineRow.source == source)
    offers = select(OfferRow.wine_id, OfferRow.kind, OfferRow.price).where(
        OfferRow.in_stock,
        OfferRow.wine_id.in_(of_source),
    )
    prices: defaultdict[str, PricesByKind] = defaultdict(dict)
    for wine_id, kind, price in await session.execute(offers):
        prices[wine_id][kind] = price
    new_wines = {wine.id: wine for wine in wines}
    gone_count = 0
    repriced_count = 0
    for wine_id, old_prices in prices.items():
        new_wine = new_wines.get(wine_id)
        if new_wine is None:
            gone_count += 1
        elif _is_repriced(old_prices, new_wine):
            repriced_count += 1
    return Shrinkage(
        listed=len(prices),
        gone=gone_count,
        repriced=repriced_count,
    )


def _is_repriced(old_prices: PricesByKind, new_wine: Wine) -> bool:
    """Return whether the price of an offer changes much, or is lost."""
    for offer in new_wine.offers:
        old_price = old_prices.get(offer.kind)
        if not old_price:
            continue
        if offer.price is None:
            return True
        difference = abs(offer.price - old_price)
        if difference > MAX_PRICE_CHANGE * old_price:
            return True
    return False
