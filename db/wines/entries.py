"""Entries: the wines of the catalogue in memory, with the forms that a search compares."""

import zlib
from dataclasses import dataclass, replace

from agent.sommelier.vocabulary import (
    OfferKind,
    find_canonical_name,
    list_synonyms,
    normalize,
)
from agent.sommelier.wine import Wine, wine_fields


@dataclass(frozen=True, slots=True)
class Entry:
    """A wine, and the forms of its fields that a search compares.

    `number` is its position in the catalogue. `price` is the price of its first offer in euros.
    `origin` (region and appellation), `name` and `text` are normalised. These texts begin and end
    with a space, so that a search finds whole words such as ` rhone `. `shuffle` is a number that
    looks random and stays the same: by it, a ranking mixes equally good wines.
    """

    number: int
    wine: Wine
    price: float | None
    in_stock: bool
    country: str
    grapes: tuple[str, ...]
    origin: str
    name: str
    text: str
    shuffle: int


def make_entry(number: int, wine: Wine) -> Entry:
    """Return the entry of a wine."""
    return Entry(
        number=number,
        wine=wine,
        price=wine.price_in_euros,
        in_stock=wine.in_stock,
        country=find_canonical_name("countries", wine.country),
        grapes=tuple(find_canonical_name("grapes", grape) for grape in wine.grapes),
        origin=f" {normalize(wine.region)} | {normalize(wine.appellation)} ",
        name=f" {normalize(wine.name)} ",
        text=f" {join_searched_fields(wine)} ",
        shuffle=zlib.crc32(wine.id.encode()),
    )


def join_searched_fields(wine: Wine) -> str:
    """Return the words that a text search matches, including synonyms of the grapes."""
    words = [
        wine.field_text(name)
        for name, field in wine_fields().items()
        if field.is_searched
    ]
    if wine.vintage is None:
        words.append("NV")
    for grape in wine.grapes:
        names = list_synonyms("grapes", grape)
        # A single name is that of the field, which is there already.
        if len(names) > 1:
            words += names
    return normalize(" ".join(words))


def put_offer_first(entry: Entry, kind: OfferKind) -> Entry | None:
    """Return the entry with an offer of this kind first, or None if no such one is in stock."""
    wine = entry.wine.with_first_offer(kind)
    if wine is None:
        return None
    return replace(entry, wine=wine, price=wine.price_in_euros)
