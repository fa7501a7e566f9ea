"""Show a user their cellar: its numbers, the wines to drink first, and pages of lists."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from agent.cellar.index import IndexedItem, index_cellar
from agent.cellar.items import select_in_stock
from agent.cellar.rows import count_bottles, format_item, format_items
from agent.cellar.search import CellarQuery, Readiness, list_urgent, search_cellar
from agent.i18n import format_number, translate
from agent.markdown import escape
from agent.sommelier.cards import translate_place
from agent.sommelier.vocabulary import Style
from agent.turn import CellarItem

PAGE_SIZE: Final = 10
"""The number of wines on a page, and of those that the overview lists."""
MAX_REGIONS_IN_LINE: Final = 8
"""The most regions that the overview names."""
REGION_SIGN: Final = "="
"""The sign before a region in the name of a view: "=Piemonte"."""


def count_states(items: Sequence[CellarItem], year: int) -> Mapping[str, int]:
    """Return the numbers of bottles by state, and of ready ones that should be drunk soon."""
    counts: Counter[str] = Counter()
    for indexed in index_cellar(items, year):
        counts[indexed.state] += indexed.item.count
        if indexed.is_due_soon:
            counts["soon"] += indexed.item.count
    return counts


def count_by(items: Sequence[CellarItem], field: str) -> list[tuple[str, int]]:
    """Return the numbers of bottles by a field of the wine, the most first."""
    counts: Counter[str] = Counter()
    for item in select_in_stock(items):
        value = str(item.wine.get(field) or "")
        counts[value] += item.count
    return counts.most_common()


def list_regions(items: Sequence[CellarItem]) -> list[tuple[str, int]]:
    """Return the numbers of bottles by region, or else by country, the most first."""
    counts: Counter[str] = Counter()
    for item in select_in_stock(items):
        region = get_region(item)
        if region:
            counts[region] += item.count
    return counts.most_common()


def get_region(item: CellarItem) -> str:
    """Return the region of a wine, or else its country, or "" if both are unknown."""
    for field in ("region", "country"):
        name = item.wine.get(field)
        if name:
            return str(name)
    return ""


def format_overview(items: Sequence[CellarItem], year: int) -> str:
    """Return the numbers of a cellar and the wines to drink first as Markdown."""
    in_stock = select_in_stock(items)
    if not in_stock:
        return translate("cellar_none")
    count = sum(item.count for item in in_stock)
    states = count_states(items, year)
    lines = [
        format_states(states),
        format_styles(in_stock),
        format_regions(in_stock),
    ]
    title = translate("cellar_all", count=count)
    known_lines = filter(None, lines)
    parts = [title, "\n".join(known_lines), *_list_drinkable(items, year)]
    return "\n\n".join(parts)


def _list_drinkable(items: Sequence[CellarItem], year: int) -> Iterator[str]:
    """Yield the wines to drink first, then those whose best years are unknown.

    At most `PAGE_SIZE` wines are listed in all. Those that are too young are only counted above.
    """
    indexed_items = index_cellar(items, year)
    urgent = [indexed.item for indexed in list_urgent(indexed_items)]
    urgent = urgent[:PAGE_SIZE]
    if urgent:
        yield format_items(urgent, year, translate("cellar_urgent"))
    unknown = []
    for indexed in indexed_items:
        if indexed.state == "unknown":
            unknown.append(indexed.item)
    unknown = unknown[: PAGE_SIZE - len(urgent)]
    if unknown:
        yield format_items(unknown, year, translate("cellar_unknown"))


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
    parts = []
    for style, count in count_by(items, "style"):
        if style:
            name = translate(f"style_{style}")
            parts.append(f"{name} {format_number(count)}")
    return " · ".join(parts)


def format_regions(items: Sequence[CellarItem]) -> str:
    """Return the numbers of bottles of the largest regions as one line."""
    parts = []
    for region, count in list_regions(items)[:MAX_REGIONS_IN_LINE]:
        name = escape(translate_place(region))
        parts.append(f"{name} {format_number(count)}")
    return " · ".join(parts)


def select_view(
    items: Sequence[CellarItem],
    name: str,
    year: int,
) -> Sequence[IndexedItem]:
    """Return the items of a view.

    The name of a view is a style, a readiness or `=REGION`. Any other name stands for all items.
    """
    all_items = index_cellar(items, year)
    if name in get_args(Readiness):
        query = CellarQuery.model_validate({"readiness": name})
        return search_cellar(all_items, query)

    is_style = name in set(Style)
    is_region = name.startswith(REGION_SIGN)
    if not is_style and not is_region:
        return all_items
    region = name.removeprefix(REGION_SIGN)
    selected = []
    for indexed in all_items:
        item = indexed.item
        if is_style and item.wine.get("style") == name:
            selected.append(indexed)
        if is_region and get_region(item) == region:
            selected.append(indexed)
    return selected


def format_page(
    listed: Sequence[IndexedItem],
    view: str,
    page: int,
    year: int,
) -> str:
    """Return a page of a view as Markdown, below the numbers of all its wines and bottles.

    `page` counts from 0.
    """
    if not listed:
        return translate("cellar_no_match")
    count = sum(indexed.item.count for indexed in listed)
    bottles = count_bottles(count, len(listed))
    lines = [_format_heading(view, bottles)]
    start = page * PAGE_SIZE
    for indexed in listed[start : start + PAGE_SIZE]:
        line = format_item(indexed.item, year)
        lines.append(line)
    page_count = math.ceil(len(listed) / PAGE_SIZE)
    if page_count > 1:
        lines.append(f"{page + 1}/{page_count}")
    return "\n".join(lines)


def _format_heading(view: str, bottles: str) -> str:
    """Return the name of a view and its number of bottles."""
    if view in ("soon", "past"):
        name = translate(f"cellar_{view}_button")
    elif view in set(Style):
        name = translate(f"style_{view}")
    elif view.startswith(REGION_SIGN):
        region = view.removeprefix(REGION_SIGN)
        name = escape(translate_place(region))
    else:
        return translate("cellar_found", bottles=bottles)
    return f"{name} · {bottles}"
