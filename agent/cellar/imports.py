"""Plan what a file with a list of bottles changes in a cellar."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.cellar.items import find_items_with_room, select_in_stock
from agent.turn import CellarItem

ImportMode = Literal["replace", "add"]
"""Whether a file replaces the cellar, so that bottles it lacks are removed, or is added to it."""
ITEM_FACTS: Final = ("drink_from", "drink_until", "note", "place", "bought")
"""The fields of an item that a file may have, besides those of the wine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """The changes that an import would make, and the numbers that the user is told.

    `new`, `changed`, `gone` and `left_out` are numbers of wines.
    """

    changes: tuple[CellarItem, ...]
    """Items with the number of bottles to add. A negative number removes bottles."""
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
    listed: Sequence[CellarItem],
    stored: Collection[CellarItem],
    mode: ImportMode,
) -> ImportPlan:
    """Return the changes that an import of listed items makes in a cellar."""
    in_stock = select_in_stock(stored)
    counts = Counter({item.key: item.count for item in in_stock})
    fitting = find_items_with_room(listed, stored)
    changes = _find_changes(fitting, stored, mode)
    changed_count = sum(item.key in counts for item in changes)
    fitting_keys = {item.key for item in fitting}
    gone = [item for item in in_stock if item.key not in fitting_keys]
    if mode == "replace":
        for item in gone:
            changes.append(replace(item, count=-item.count))
    counts_after = counts.copy()
    for item in changes:
        counts_after[item.key] += item.count
    owned_after = [count for count in counts_after.values() if count > 0]
    return ImportPlan(
        changes=tuple(changes),
        bottles=sum(item.count for item in listed),
        wines=len(listed),
        new=len(fitting_keys - counts.keys()),
        changed=changed_count,
        gone=len(gone),
        left_out=len(listed) - len(fitting),
        bottles_after=counts_after.total(),
        wines_after=len(owned_after),
    )


def _find_changes(
    listed: Sequence[CellarItem],
    stored: Collection[CellarItem],
    mode: ImportMode,
) -> list[CellarItem]:
    """Return the listed items that change a stored item or are new, with the count to add."""
    stored_by_key = {item.key: item for item in stored}
    changes = []
    for item in listed:
        stored_item = stored_by_key.get(item.key)
        change = _find_change(item, stored_item, mode)
        if change is not None:
            changes.append(change)
    return changes


def _find_change(
    listed: CellarItem,
    stored: CellarItem | None,
    mode: ImportMode,
) -> CellarItem | None:
    """Return a listed item with the count to add to the stored one, or None if nothing changes."""
    added = listed.count
    if stored is not None and mode == "replace":
        added -= stored.count
    has_new_facts = stored is not None and _has_new_facts(listed, stored)
    if added == 0 and not has_new_facts:
        return None
    return replace(listed, count=added)


def _has_new_facts(listed: CellarItem, stored: CellarItem) -> bool:
    """Return whether a listed item has facts that the stored item lacks."""
    for name in ITEM_FACTS:
        fact = getattr(listed, name)
        if fact and fact != getattr(stored, name):
            return True
    for name, value in listed.wine.items():
        if stored.wine.get(name) != value:
            return True
    return False
