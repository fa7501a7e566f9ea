"""The ways in which a wine can be had: sizes and glasses, each with its price and stock."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from agent.numerals import is_year
from agent.sommelier.vocabulary import (
    Currency,
    OfferKind,
    format_money_for_model,
    to_euros,
)
from agent.sommelier.wine_field import WineField
from agent.text import pattern

OFFER_FACTS: Final = ("price", "currency", "in_stock")
"""The facts of an offer that may be given for the wine itself, if it has a single offer."""
PRICE: Final = pattern(r"[0-9]{1,6}(?:[.,][0-9]{1,2})?")
"""A price without its currency: "45", "12,50"."""


class Offer(BaseModel):
    """A way in which a wine can be had, such as by the glass."""

    model_config = ConfigDict(frozen=True)

    kind: OfferKind = OfferKind.BOTTLE
    size_ml: int | None = Field(None, ge=1, le=100_000)
    """The size, or None if it is unknown or the usual one of this kind."""
    price: Annotated[
        float | None,
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="price",
            columns="sale price, retail price, bottle price, price per bottle, list price, "
            "unit price, regular price, variant price, prix, prix bouteille, prix de vente, "
            "prix unitaire, tarif, preis, vk, vk preis, verkaufspreis, flaschenpreis, "
            "preis pro flasche, bruttopreis, precio, pvp, precio botella, prezzo, "
            "prezzo bottiglia, prezzo al pubblico, prijs, verkoopprijs, flesprijs, "
            "prijs per fles, preco",
        ),
    ] = Field(None, ge=0)
    currency: Annotated[
        Currency,
        WineField(
            is_evidence=True,
            in_cellar=True,
            model="price",
            columns="devise, monnaie, wahrung, moneda, divisa, valuta, moeda",
        ),
    ] = Currency.EUR
    stock: int | None = None
    """The number of bottles, cases or glasses, or None if nobody counts.

    Some shops sell on at 0.
    """
    in_stock: Annotated[
        bool,
        WineField(
            model="in_stock",
            columns="stock, quantity, qty, on hand, available, availability, inventory, "
            "in stock, bottles, quantite, disponible, disponibilite, bouteilles, bestand, "
            "lagerbestand, lager, menge, verfugbar, verfugbarkeit, auf lager, flaschen, anzahl, "
            "existencias, cantidad, disponibilidad, botellas, giacenza, quantita, disponibile, "
            "disponibilita, bottiglie, voorraad, aantal, beschikbaar, flessen, estoque, "
            "quantidade, variant inventory qty",
        ),
    ] = True

    def __str__(self) -> str:
        """Return the facts that an answer may state, such as `half 375 ml 26.95 EUR`."""
        facts: list[str] = [self.kind]
        if self.size_ml is not None:
            facts.append(f"{self.size_ml} ml")
        if self.price is not None:
            facts.append(f"{self.price} {self.currency}")
        return " ".join(facts)

    @property
    def price_in_euros(self) -> float | None:
        """Return the price in euros at rounded rates, or None if it is unknown."""
        if self.price is None:
            return None
        return to_euros(self.price, self.currency)


def read_typed_price(word: str, *, has_currency: bool) -> float | None:
    """Return the price that somebody typed behind the name of a wine, or None.

    Without a currency beside it, a number such as "2016" is the vintage.
    """
    if not PRICE.fullmatch(word):
        return None
    if is_year(word) and not has_currency:
        return None
    return float(word.replace(",", "."))


def sort_offers(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Return offers in the order of their kinds."""
    kinds = list(OfferKind)

    def place_of_kind(offer: Offer) -> int:
        return kinds.index(offer.kind)

    return tuple(sorted(offers, key=place_of_kind))


def describe_offers(offers: Sequence[Offer]) -> list[str] | None:
    """Return the offers for a model, or None if there is only a bottle without a count."""
    if len(offers) == 1:
        offer = offers[0]
        if offer.kind is OfferKind.BOTTLE and offer.stock is None:
            return None
    return [_describe_offer(offer) for offer in offers]


def _describe_offer(offer: Offer) -> str:
    """Return an offer as a model reads it: `half, 375 ml, €26.95, in stock: 3`."""
    facts: list[str] = [offer.kind]
    if offer.size_ml is not None:
        facts.append(f"{offer.size_ml} ml")
    if offer.price is not None:
        facts.append(format_money_for_model(offer.price, offer.currency))
    if not offer.in_stock:
        facts.append("sold out")
    elif offer.stock is None:
        facts.append("in stock")
    else:
        facts.append(f"in stock: {offer.stock}")
    return ", ".join(facts)
