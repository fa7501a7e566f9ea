"""Plan what a file with a list of bottles changes in a cellar."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.cellar.items import find_items_with_room, items_in_stock
from agent.turn import CellarItem

ImportMode = Literal["replace", "add"]
"""Whether a file replaces the cellar, so that bottles it lacks are removed, or is added to it."""
TOLD_FACTS: Final = ("drink_from", "drink_until", "note", "place", "bought")
"""The fields of an item that a file may have, besides those of the wine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """The changes that an import would make, and the numbers that the user is told.

    `new`, `changed`, `gone` and `left_out` are numbers of wines.
    """

    changes: tuple[CellarItem, ...]
    """Items whose count is the number of bottles to add; a negative count removes bottles."""
    bottles: int
    """The number of bottles in the file."""
    wines: int
    """The number of wines in the file."""
    new: int = 0
    changed: int = 0
    gone: int = 0
    """The wines of the cellar that are not in the file."""
    left_out: int = 0
    """The wines for which the cellar has no room."""
    bottles_after: int = 0
    wines_after: int = 0


def make_plan(
    listed: Sequence[CellarItem], stored: Collection[CellarItem], mode: ImportMode
) -> ImportPlan:
    """Return the changes that an import of listed items makes in a cellar."""
    old_items = {item.key: item for item in stored}
    in_stock = items_in_stock(stored)
    counts = Counter({item.key: item.count for item in in_stock})
    fitting = find_items_with_room(listed, stored)
    changes = []
    for item in fitting:
        changes += _find_change(item, old_items.get(item.key), mode)
    changed = sum(item.key in counts for item in changes)
    listed_keys = {item.key for item in fitting}
    missing = [item for item in in_stock if item.key not in listed_keys]
    if mode == "replace":
        changes += [replace(item, count=-item.count) for item in missing]
    counts_after = counts.copy()
    for item in changes:
        counts_after[item.key] += item.count
    return ImportPlan(
        changes=tuple(changes),
        bottles=sum(item.count for item in listed),
        wines=len(listed),
        new=len(listed_keys - counts.keys()),
        changed=changed,
        gone=len(missing),
        left_out=len(listed) - len(fitting),
        bottles_after=counts_after.total(),
        wines_after=sum(count > 0 for count in counts_after.values()),
    )


def _find_change(
    item: CellarItem, old: CellarItem | None, mode: ImportMode
) -> list[CellarItem]:
    """Return the change for a listed item: one item with the count to add, or none."""
    added = item.count
    if old is not None and mode == "replace":
        added -= old.count
    tells_more = old is not None and _tells_more(item, old)
    if added == 0 and not tells_more:
        return []
    return [replace(item, count=added)]


def _tells_more(item: CellarItem, old: CellarItem) -> bool:
    """Return whether a listed item has facts that the stored item lacks."""
    for name in TOLD_FACTS:
        told = getattr(item, name)
        if told and told != getattr(old, name):
            return True
    return any(old.wine.get(name) != value for name, value in item.wine.items())
