"""What a user sees of their cellar: its numbers, the readiest wines, and pages of lists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, get_args

from agent.cellar.index import IndexedItem, index_cellar
from agent.cellar.items import items_in_stock
from agent.cellar.rows import count_bottles, format_item, format_items
from agent.cellar.search import CellarQuery, Readiness, search_cellar
from agent.i18n import format_number, translate
from agent.markdown import escape
from agent.sommelier.cards import translate_place
from agent.sommelier.vocabulary import Style
from agent.turn import CellarItem

PAGE_SIZE: Final = 10
MAX_REGIONS_IN_LINE: Final = 8
REGION_SIGN: Final = "="
"""Stands before the name of a region in the name of a view."""


def count_states(items: Sequence[CellarItem], year: int) -> Mapping[str, int]:
    """Return the numbers of bottles by state, and of ready ones that should be drunk soon."""
    counts: Counter[str] = Counter()
    for found in index_cellar(items, year):
        counts[found.state] += found.item.count
        if found.is_due_soon:
            counts["soon"] += found.item.count
    return counts


def count_by(items: Sequence[CellarItem], field: str) -> list[tuple[str, int]]:
    """Return the numbers of bottles by a field of the wine, the most first."""
    counts: Counter[str] = Counter()
    for item in items_in_stock(items):
        counts[str(item.wine.get(field) or "")] += item.count
    return counts.most_common()


def list_regions(items: Sequence[CellarItem]) -> list[tuple[str, int]]:
    """Return the known regions, else countries, of a cellar with their bottles, the most first."""
    counts: Counter[str] = Counter()
    for item in items_in_stock(items):
        if place := get_region(item):
            counts[place] += item.count
    return counts.most_common()


def get_region(item: CellarItem) -> str:
    """Return the region of a wine, or else its country; empty if both are unknown."""
    return str(item.wine.get("region") or item.wine.get("country") or "")


def format_overview(items: Sequence[CellarItem], year: int) -> str:
    """Return the numbers of a cellar and its readiest wines as Markdown."""
    in_stock = items_in_stock(items)
    if not in_stock:
        return translate("cellar_none")
    count = sum(item.count for item in in_stock)
    states = count_states(items, year)
    parts = [
        translate("cellar_all", count=count),
        "\n".join(
            (format_states(states), format_styles(in_stock), format_regions(in_stock))
        ),
    ]
    # Nobody is told to drink what is still too young.
    readiest = [
        each.item for each in index_cellar(items, year) if each.state != "young"
    ]
    if readiest:
        parts.append(
            format_items(readiest[:PAGE_SIZE], year, translate("cellar_readiest"))
        )
    return "\n\n".join(parts)


def format_states(states: Mapping[str, int]) -> str:
    """Return the numbers of bottles by readiness as one line."""
    return translate(
        "cellar_states",
        ready=states.get("ready", 0),
        soon=states.get("soon", 0),
        late=states.get("late", 0),
        young=states.get("young", 0),
        unknown=states.get("unknown", 0),
    )


def format_styles(items: Sequence[CellarItem]) -> str:
    """Return the numbers of bottles by style as one line."""
    parts: list[str] = []
    for style, count in count_by(items, "style"):
        if style:
            parts.append(f"{translate(f'style_{style}')} {format_number(count)}")
    return " · ".join(parts)


def format_regions(items: Sequence[CellarItem]) -> str:
    """Return the numbers of bottles of the largest regions as one line."""
    regions = list_regions(items)[:MAX_REGIONS_IN_LINE]
    return " · ".join(
        f"{escape(translate_place(region))} {format_number(count)}"
        for region, count in regions
    )


def select_view(
    items: Sequence[CellarItem], name: str, year: int
) -> Sequence[IndexedItem]:
    """Return the items of a view: a style, a readiness, `=REGION`, or all by any other name."""
    indexed = index_cellar(items, year)
    if name in set(Style):
        return [each for each in indexed if each.item.wine.get("style") == name]
    if name.startswith(REGION_SIGN):
        region = name.removeprefix(REGION_SIGN)
        return [each for each in indexed if get_region(each.item) == region]
    if name in get_args(Readiness):
        return search_cellar(indexed, CellarQuery.model_validate({"readiness": name}))
    return indexed


def format_page(found: Sequence[IndexedItem], page: int, year: int) -> str:
    """Return a page of a list as Markdown, with the numbers of all its wines above."""
    if not found:
        return translate("cellar_no_match")
    start = page * PAGE_SIZE
    count = sum(each.item.count for each in found)
    heading = translate("cellar_found", bottles=count_bottles(count, len(found)))
    pages = (len(found) + PAGE_SIZE - 1) // PAGE_SIZE
    position = f"{page + 1}/{pages}" if pages > 1 else ""
    rows = [format_item(each.item, year) for each in found[start : start + PAGE_SIZE]]
    return "\n".join([heading, *rows, position]).strip()
