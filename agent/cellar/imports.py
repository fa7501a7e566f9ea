"""Plan what a file with a list of bottles changes in a cellar."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.cellar.items import find_items_with_room, items_in_stock
from agent.turn import CellarItem

ImportMode = Literal["replace", "add"]
"""Whether a file is the truth, so that what is not in it is gone, or is added to the cellar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """The changes of an import as items with counts to add, and numbers to tell the user.

    `bottles` and `wines` are those of the file; `new`, `changed`, `gone` and `left_out` are numbers
    of wines.
    """

    changes: tuple[CellarItem, ...]
    bottles: int
    wines: int
    new: int = 0
    changed: int = 0
    gone: int = 0
    left_out: int = 0
    bottles_after: int = 0
    wines_after: int = 0


def make_plan(
    listed: Sequence[CellarItem], stored: Collection[CellarItem], mode: ImportMode
) -> ImportPlan:
    """Return what an import of listed items changes in a cellar."""
    owned = {item.key: item for item in stored}
    counts = {item.key: item.count for item in items_in_stock(stored)}
    fitting = find_items_with_room(listed, stored)
    keys = {item.key for item in fitting}
    changes: list[CellarItem] = []
    changed = 0
    for item in fitting:
        old = owned.get(item.key)
        difference = item.count
        if mode == "replace" and old is not None:
            difference -= old.count
        if difference or (old is not None and _tells_more(item, old)):
            changes.append(replace(item, count=difference))
            changed += item.key in counts
    missing = [item for key, item in owned.items() if key not in keys and key in counts]
    if mode == "replace":
        changes += [replace(item, count=-item.count) for item in missing]
    after = dict(counts)
    for item in changes:
        after[item.key] = max(0, after.get(item.key, 0) + item.count)
    return ImportPlan(
        changes=tuple(changes),
        bottles=sum(item.count for item in listed),
        wines=len(listed),
        new=len(keys - counts.keys()),
        changed=changed,
        gone=len(missing),
        left_out=len(listed) - len(fitting),
        bottles_after=sum(after.values()),
        wines_after=sum(count > 0 for count in after.values()),
    )


def _tells_more(item: CellarItem, old: CellarItem) -> bool:
    """Return whether a listed item has facts that the stored one has not."""
    own = (item.drink_from, item.drink_until, item.note, item.place, item.bought)
    known = (old.drink_from, old.drink_until, old.note, old.place, old.bought)
    if any(fact and fact != before for fact, before in zip(own, known, strict=True)):
        return True
    return dict(item.wine) != {name: old.wine.get(name) for name in item.wine}
