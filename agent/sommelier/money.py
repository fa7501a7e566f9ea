"""Currencies of prices and price limits, and rough rates to compare them by."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Currency(StrEnum):
    """Currencies that prices and price limits may be given in."""

    EUR = "EUR"
    USD = "USD"
    GBP = "GBP"
    CHF = "CHF"
    CAD = "CAD"
    AUD = "AUD"
    NZD = "NZD"
    JPY = "JPY"
    SEK = "SEK"
    DKK = "DKK"
    NOK = "NOK"
    PLN = "PLN"
    CZK = "CZK"
    BRL = "BRL"
    ZAR = "ZAR"


EUROS_PER_UNIT: Final[Mapping[Currency, float]] = MappingProxyType(
    {
        Currency.EUR: 1.0,
        Currency.USD: 0.88,
        Currency.GBP: 1.15,
        Currency.CHF: 1.07,
        Currency.CAD: 0.63,
        Currency.AUD: 0.57,
        Currency.NZD: 0.51,
        Currency.JPY: 0.0058,
        Currency.SEK: 0.091,
        Currency.DKK: 0.134,
        Currency.NOK: 0.086,
        Currency.PLN: 0.235,
        Currency.CZK: 0.041,
        Currency.BRL: 0.16,
        Currency.ZAR: 0.05,
    }
)
"""Rounded rates, enough to compare indicative prices across currencies; not for billing."""


def in_euros(amount: float, currency: Currency) -> float:
    """`amount` of `currency` in euros, at the rounded rates above."""
    return round(amount * EUROS_PER_UNIT[currency], 2)
