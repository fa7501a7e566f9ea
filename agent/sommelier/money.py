"""Currencies of prices and price limits; their rates are data, in `currencies.toml`."""

import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, PositiveFloat, model_validator


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


class _Currencies(BaseModel):
    """What `currencies.toml` holds: a rate for each currency."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    euros: dict[Currency, PositiveFloat]
    signs: dict[Currency, str]

    @model_validator(mode="after")
    def _rates_are_complete(self) -> Self:
        if missing := set(Currency) - self.euros.keys():
            raise ValueError(f"currencies.toml lacks a rate for {', '.join(sorted(missing))}")
        return self


def in_euros(amount: float, currency: Currency) -> float:
    """Return `amount` of `currency` in euros, at rounded rates."""
    return round(amount * _currencies().euros[currency], 2)


def money(amount: float, currency: Currency) -> str:
    """Write an amount: `€18`, `£17.50`, `CHF 20`."""
    figure = f"{amount:.2f}".removesuffix(".00")
    return f"{_currencies().signs.get(currency, f'{currency} ')}{figure}"


@cache
def _currencies() -> _Currencies:
    file = Path(__file__).with_name("currencies.toml")
    return _Currencies.model_validate(tomllib.loads(file.read_text("utf-8")))
