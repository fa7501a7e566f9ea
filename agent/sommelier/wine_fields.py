"""The declaration of each field of `Wine`: what the product does with it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from agent.tables import StrictModel, read_toml

CardFact = Literal["origin", "price", "allergens", "availability"]
"""A fact on the card of a wine."""


class WineField(StrictModel):
    """The declaration of a field, as `wine_fields.toml` explains it.

    By default a field is only imported and stored: nobody is told of it, and it grounds nothing.
    """

    is_evidence: bool = False
    is_searched: bool = False
    in_cellar: bool = False
    model: str | None = None
    unsaid: str | bool | None = None
    card: CardFact | None = None
    columns: frozenset[str] = frozenset()


@cache
def wine_fields() -> Mapping[str, WineField]:
    """Return the declarations by field, in the order of the fields of `Wine`."""
    return read_toml(dict[str, WineField], Path(__file__).with_suffix(".toml"))
