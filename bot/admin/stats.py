"""The turns of some days: a table for a phone, and a picture with one bar a day. Pure."""

# ruff: noqa: PLC0415 - Pillow is only needed when an admin asks

import math
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Final

from agent.repositories import DayStats, Stats

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

WIDTH: Final = 1280
HEIGHT: Final = 720
"""The size in pixels; twice that of a phone's screen, so that letters stay sharp."""

OTHER: Final = "other"
COLORS: Final = {
    "answered": "#2A7F62",
    "salvaged": "#7FB7DA",
    "refused": "#9A9A9A",
    "care": "#C79BC0",
    "fallback": "#E8A33D",
    "failed": "#C0392B",
    OTHER: "#6B5B95",
}
"""Outcomes from the bottom of a bar to its top."""

DARK: Final = frozenset({"answered", "failed", OTHER})
BACKGROUND, INK = "#FFFFFF", "#222222"
LEFT, RIGHT, TOP, BOTTOM = 40, 1240, 150, 590
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 40, 30, 26
LEAST_LABELLED: Final = 34  # pixels of a part that has room for its number


def stats_table(stats: Stats) -> str:
    """Today beside all the days; at most 34 characters wide."""
    rows = [("", "today", f"{len(stats.days)} days")]
    rows += [(label, cell(stats.today), cell(stats.all)) for label, cell in ROWS]
    return "\n".join(
        f"{label:<13}{today:>10}{all_days:>10}".rstrip() for label, today, all_days in rows
    )


def money(amount: float) -> str:
    """An amount in dollars, to the digits that say something."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def _amount(number: int) -> str:
    """A number in at most 9 characters."""
    if number < 1_000_000:
        return f"{number:,}"
    return f"{number / 1e6:.1f} M" if number < 1e9 else f"{number / 1e9:.1f} G"


def _share(part: int, whole: int) -> str:
    count = str(part) if part < 100_000 else f"{part // 1000}k"
    return f"{count} {part / whole:4.0%}" if whole else "0"


def _outcome(name: str) -> tuple[str, Callable[[DayStats], str]]:
    return name, lambda day: _share(day.outcomes.get(name, 0), day.turns)


ROWS: Final[tuple[tuple[str, Callable[[DayStats], str]], ...]] = (
    ("people", lambda day: _amount(day.people)),
    ("turns", lambda day: _amount(day.turns)),
    ("retried", lambda day: _share(day.retried, day.turns)),
    *map(_outcome, ("failed", "salvaged", "fallback", "refused")),
    ("cost", lambda day: money(day.cost_usd)),
    ("tokens", lambda day: _amount(day.tokens)),
    ("median", lambda day: f"{day.median_seconds:.1f} s"),
    ("95 % within", lambda day: f"{day.p95_seconds:.1f} s"),
    ("👍 / 👎", lambda day: f"{day.liked} / {day.disliked}"),
)


def stats_chart(days: Sequence[DayStats]) -> bytes:
    """A PNG picture of `WIDTH` by `HEIGHT` pixels of these days' turns, the oldest on the left.

    Raises:
        ValueError: there are no days.
    """
    from PIL import Image, ImageDraw

    if not days:
        raise ValueError("there are no days to draw")
    image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    chart = ImageDraw.Draw(image)
    chart.text((LEFT, 26), title(days), INK, _font(TITLE_SIZE))
    chart.line((LEFT, BOTTOM, RIGHT, BOTTOM), INK, 2)
    width = (RIGHT - LEFT) / len(days)
    scale = (BOTTOM - TOP) / max(1, *(day.turns for day in days))
    for number, day in enumerate(days):
        _draw_bar(chart, day, LEFT + width * (number + 0.5), width * 0.31, scale)
    _draw_legend(chart, {name for day in days for name, _ in parts(day)})
    png = BytesIO()
    image.save(png, "PNG", optimize=True)
    return png.getvalue()


def parts(day: DayStats) -> list[tuple[str, int]]:
    """The outcomes of a day that any turn had, from the bottom of its bar to the top."""
    counts = {name: day.outcomes.get(name, 0) for name in COLORS}
    counts[OTHER] += day.turns - sum(counts.values())
    return [(name, count) for name, count in counts.items() if count > 0]


def title(days: Sequence[DayStats]) -> str:
    """What the picture shows, and of which days."""
    first, last = (f"{each.day.day} {each.day:%b}" for each in (days[0], days[-1]))
    return f"Turns a day (UTC) by outcome, {first} to {last} {days[-1].day.year}"


def _draw_bar(chart: "ImageDraw", day: DayStats, middle: float, half: float, scale: float) -> None:
    """The outcomes of a day one above the other, their sum above them and the day below."""
    top, font = float(BOTTOM), _font(TEXT_SIZE)
    for name, count in parts(day):
        low, top = top, top - count * scale
        chart.rectangle((middle - half, min(top, low - 1), middle + half, low - 1), COLORS[name])
        if low - top >= LEAST_LABELLED and count < day.turns:
            ink, place = BACKGROUND if name in DARK else INK, (middle, (low + top) / 2)
            chart.text(place, f"{count:,}", ink, _font(SMALL_SIZE), anchor="mm")
    chart.text((middle, top - 6), f"{day.turns:,}", INK, font, anchor="mb")
    chart.text((middle, BOTTOM + 40), f"{day.day:%a} {day.day.day}", INK, font, anchor="ms")


def _draw_legend(chart: "ImageDraw", present: set[str]) -> None:
    x, y, font = float(LEFT), HEIGHT - 40, _font(SMALL_SIZE)
    for name in filter(present.__contains__, COLORS):
        chart.rectangle((x, y - 13, x + 26, y + 13), COLORS[name])
        chart.text((x + 36, y), name, INK, font, anchor="lm")
        x += 76 + math.ceil(chart.textlength(name, font))


def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)
