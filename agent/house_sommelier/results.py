"""What the tools returned, as data; whatever is not a wine is left out."""

import json
import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.house_sommelier.conversation import ToolResult
from agent.house_sommelier.intent import SEARCH
from agent.sommelier.money import Currency, in_euros
from agent.sommelier.wine import Order, WineQuery


class ListedWine(BaseModel):
    """A wine as a tool lists it; what is unknown is left out there and empty here."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    wine_id: str = Field(min_length=1)
    name: str = ""
    country: str = ""
    region: str = ""
    appellation: str = ""
    grapes: tuple[str, ...] = ()
    style: str = ""
    colour: str = ""
    sweetness: str = ""
    body: str = ""
    acidity: str = ""
    tannin: str = ""
    abv: float | None = None
    price: float | None = None
    currency: str = "EUR"
    foods: tuple[str, ...] = ()
    allergens: tuple[str, ...] = ()
    notes: str = ""
    in_stock: bool = True


class Found(BaseModel):
    """One tool result: its wines, how many there are, what an empty search says of its limits."""

    model_config = ConfigDict(frozen=True)

    tool: str
    query: WineQuery | None = None
    total: int = 0
    wines: tuple[ListedWine, ...] = ()
    relax: dict[str, int] = Field(default_factory=dict)


def read_result(result: ToolResult) -> Found | None:
    """A tool's JSON as data; None for an error or anything else that is not a list of wines."""
    try:
        data = json.loads(result.content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("wines"), list):
        return None
    wines = {wine.wine_id: wine for wine in map(_wine, data["wines"]) if wine}
    return Found(
        tool=result.tool or SEARCH,
        query=_query(result),
        total=_total(data.get("found")),
        wines=tuple(wines.values()),
        relax=_counts(data.get("relax")),
    )


def by_price(wines: Sequence[ListedWine], order: Order) -> Sequence[ListedWine]:
    """Wines of several searches as `order` wants them; those without a price last."""
    if order == "match":
        return wines
    sign = 1 if order == "cheapest" else -1
    prices = {wine.wine_id: _euros(wine) for wine in wines}
    return sorted(wines, key=lambda wine: _last_if_none(prices[wine.wine_id], sign))


def _last_if_none(price: float | None, sign: int) -> float:
    return math.inf if price is None else sign * price


def _euros(wine: ListedWine) -> float | None:
    is_known = wine.price is not None and wine.currency in tuple(Currency)
    return in_euros(wine.price, Currency(wine.currency)) if is_known and wine.price else None


def _wine(data: object) -> ListedWine | None:
    try:
        wine = ListedWine.model_validate(data)
    except ValidationError:
        return None
    return wine if wine.wine_id.strip() else None


def _query(result: ToolResult) -> WineQuery | None:
    try:
        return WineQuery.model_validate_json(result.arguments)
    except ValidationError:
        return None


def _total(data: object) -> int:
    return data if isinstance(data, int) else 0


def _counts(data: object) -> dict[str, int]:
    items = data.items() if isinstance(data, dict) else ()
    return {str(name): count for name, count in items if isinstance(count, int) and count > 0}
