"""Count the bottles of each wine that an answer recommends, and write what they cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.engine.contract import Evidence, Source
from agent.formatting import format_money
from agent.i18n import translate
from agent.numerals import find_numbers
from agent.sommelier.attachment import AnyWine, ReadWine
from agent.sommelier.conversion import find_named_currency, format_converted
from agent.sommelier.offers import Offer
from agent.sommelier.sommelier_prompts import WineRecommendation
from agent.sommelier.vocabulary import (
    Currency,
    OfferKind,
    convert,
    format_money_for_model,
)
from agent.sommelier.wine import Wine

BOTTLES: Final = frozenset(
    {OfferKind.BOTTLE, OfferKind.HALF, OfferKind.MAGNUM, OfferKind.LARGE}
)
"""The kinds of offers that are counted as bottles."""


@dataclass(frozen=True, slots=True)
class BasketLine:
    """A number of bottles or glasses of a wine, with the price of one."""

    wine_id: str
    count: int
    kind: OfferKind
    price: float
    currency: Currency | None
    """None for a wine list that names no currency."""

    @property
    def amount(self) -> float:
        """Return the price of all of them."""
        return round(self.count * self.price, 2)


def find_offer(wine: Wine, kind: OfferKind | None) -> Offer | None:
    """Return the offer of a kind, one in stock if possible.

    Without a kind, it is the first offer.
    """
    if kind is None:
        return wine.offers[0]
    of_kind = [offer for offer in wine.offers if offer.kind is kind]
    for offer in of_kind:
        if offer.in_stock:
            return offer
    if of_kind:
        return of_kind[0]
    if kind is OfferKind.BOTTLE:
        return wine.offers[0]
    return None


def find_line(item: WineRecommendation, wine: AnyWine) -> BasketLine | None:
    """Return the bottles of a recommended wine, or None if no number or no price is known."""
    if item.bottles is None:
        return None
    if isinstance(wine, ReadWine) and _has_read_prices(wine):
        return _find_listed_line(item.bottles, item.size, wine)
    offer = find_offer(wine.facts, item.size)
    if offer is None or offer.price is None:
        return None
    return BasketLine(wine.id, item.bottles, offer.kind, offer.price, offer.currency)


def _has_read_prices(wine: ReadWine) -> bool:
    """Return whether the prices of a wine are those of the picture, and not ours."""
    return wine.is_listed or wine.known is None


def _find_listed_line(
    count: int,
    kind: OfferKind | None,
    wine: ReadWine,
) -> BasketLine | None:
    """Return bottles or glasses at the price of the guest's wine list."""
    price = wine.price
    if kind is OfferKind.GLASS:
        price = wine.glass_price
    else:
        kind = OfferKind.BOTTLE
    if price is None:
        return None
    return BasketLine(wine.id, count, kind, price, wine.currency)


def has_size(kind: OfferKind, wine: AnyWine) -> bool:
    """Return whether a wine is sold in this size. The usual size always counts as sold."""
    if kind is OfferKind.BOTTLE:
        return True
    if isinstance(wine, ReadWine) and _has_read_prices(wine):
        return kind is OfferKind.GLASS and wine.glass_price is not None
    return find_offer(wine.facts, kind) is not None


def list_basket(
    wines: Iterable[WineRecommendation], sources: Mapping[str, Source]
) -> list[BasketLine]:
    """Return a line for each wine whose bottles are counted and whose price is known."""
    lines: list[BasketLine] = []
    for item in wines:
        wine = sources.get(item.wine_id)
        if not isinstance(wine, AnyWine):
            continue
        line = find_line(item, wine)
        if line is not None:
            lines.append(line)
    return lines


def format_line(line: BasketLine) -> str:
    """Return the sum of a line: `3 × €49.90 = €149.70`, `2 × half bottle €26.95 = €53.90`."""
    price = format_money(line.price, line.currency)
    if line.kind is not OfferKind.BOTTLE:
        kind = translate(f"offer_{line.kind}")
        price = f"{kind} {price}"
    amount = format_money(line.amount, line.currency)
    return f"{line.count} × {price} = {amount}"


def format_total(
    lines: Sequence[BasketLine],
    budget: float | None,
    evidence: Evidence,
) -> str:
    """Return the total of several lines, and what remains of the guest's budget.

    The text is empty if the prices are in several currencies. A budget counts only if the guest
    named it.
    """
    currencies = {line.currency for line in lines}
    if len(currencies) != 1:
        return ""
    currency = currencies.pop()
    total = sum(line.amount for line in lines)
    parts: list[str] = []
    if len(lines) > 1:
        parts.append(_format_sum(lines, total, currency, evidence))
    named: set[float] = set()
    for text in evidence.user_texts:
        named |= find_numbers(text)
    if budget is not None and budget in named:
        parts.append(_format_remainder(budget, total, currency, evidence))
    return " ".join(parts)


def _format_sum(
    lines: Sequence[BasketLine],
    total: float,
    currency: Currency | None,
    evidence: Evidence,
) -> str:
    amount = format_money(total, currency)
    if currency is not None:
        named = find_named_currency(evidence.user_texts)
        amount += format_converted(total, currency, named)
    if any(line.kind not in BOTTLES for line in lines):
        return translate("basket_total", total=amount)
    count = sum(line.count for line in lines)
    return translate("basket_bottles", count=count, total=amount)


def _format_remainder(
    budget: float,
    total: float,
    currency: Currency | None,
    evidence: Evidence,
) -> str:
    """Return what remains of the budget, in the currency in which the guest named it."""
    named = find_named_currency(evidence.user_texts) or currency
    if currency is not None and named is not None and named is not currency:
        total = convert(total, currency, named)
    rest = round(budget - total, 2)
    amount = format_money(abs(rest), named)
    shown_budget = format_money(budget, named)
    if rest < 0:
        return translate("budget_exceeded", amount=amount, budget=shown_budget)
    return translate("budget_remains", amount=amount, budget=shown_budget)


def format_total_for_model(lines: Sequence[BasketLine]) -> str:
    """Return the total of the lines as a model reads it, or an empty text."""
    currencies = {line.currency for line in lines}
    if len(currencies) != 1:
        return ""
    total = sum(line.amount for line in lines)
    return format_money_for_model(total, currencies.pop())
