"""The turns of some days as a picture: one bar a day, stacked by outcome. Pure."""

# ruff: noqa: PLC0415 - Pillow is only needed when an admin asks

import math
from collections.abc import Sequence
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Final

from agent.repositories import DayStats

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

WIDTH: Final = 1280
HEIGHT: Final = 720
"""The size in pixels; twice that of a phone's screen, so that letters stay sharp."""

COLORS: Final = {
    "answered": "#2A7F62",
    "salvaged": "#7FB7DA",
    "refused": "#9A9A9A",
    "fallback": "#E8A33D",
    "failed": "#C0392B",
}
"""Outcomes from the bottom of a bar to its top."""

OTHER: Final = "other"
OTHER_COLOR: Final = "#6B5B95"
BACKGROUND: Final = "#FFFFFF"
INK: Final = "#222222"
FAINT: Final = "#DDDDDD"
LEFT, RIGHT, TOP, BOTTOM = 130, 1250, 150, 590
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 40, 30, 26
LEAST_LABELLED: Final = 34  # pixels of a part that has room for its number
DARK: Final = frozenset({"answered", "failed", OTHER})


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
    top = nice_top(max(day.turns for day in days))
    _draw_frame(chart, days, top)
    width = (RIGHT - LEFT) / len(days)
    for number, day in enumerate(days):
        _draw_bar(chart, day, LEFT + width * (number + 0.5), width * 0.62, top)
    _draw_legend(chart, days)
    png = BytesIO()
    image.save(png, "PNG", optimize=True)
    return png.getvalue()


def nice_top(highest: int) -> int:
    """The smallest of 4, 8, 12, 16, 20, 40, 80 … that holds `highest`: it has four even parts."""
    unit = 4
    while highest > 5 * unit:
        unit *= 10
    return max(1, math.ceil(highest / unit)) * unit


def parts(day: DayStats) -> list[tuple[str, int]]:
    """The outcomes of a day that any turn had, from the bottom of its bar to the top."""
    known = [(name, day.outcomes.get(name, 0)) for name in COLORS]
    rest = day.turns - sum(count for _, count in known)
    return [(name, count) for name, count in [*known, (OTHER, rest)] if count > 0]


def title(days: Sequence[DayStats]) -> str:
    """What the picture shows, and of which days."""
    first, last = days[0].day, days[-1].day
    return f"Turns a day by outcome, {_short(first)} to {_short(last)} {last.year}"


def _short(day: date) -> str:
    return f"{day.day} {day:%b}"


def _draw_frame(chart: "ImageDraw", days: Sequence[DayStats], top: int) -> None:
    chart.text((LEFT, 26), title(days), INK, _font(TITLE_SIZE))
    for quarter in range(5):
        count = top * quarter // 4
        y = _height(count, top)
        chart.line((LEFT, y, RIGHT, y), INK if quarter == 0 else FAINT, 2)
        chart.text((LEFT - 14, y), f"{count:,}", INK, _font(SMALL_SIZE), anchor="rm")
    chart.text((LEFT - 14, TOP - 44), "turns", INK, _font(SMALL_SIZE), anchor="rm")
    chart.text((RIGHT, BOTTOM + 62), "day (UTC)", INK, _font(SMALL_SIZE), anchor="rt")


def _draw_bar(chart: "ImageDraw", day: DayStats, middle: float, width: float, top: int) -> None:
    done = 0
    for name, count in parts(day):
        low, high = _height(done, top), _height(done + count, top)
        color = COLORS.get(name, OTHER_COLOR)
        box = (middle - width / 2, min(high, low - 1), middle + width / 2, low - 1)
        chart.rectangle(box, color)
        if low - high >= LEAST_LABELLED and count < day.turns:
            ink = BACKGROUND if name in DARK else INK
            place = (middle, (low + high) / 2)
            chart.text(place, f"{count:,}", ink, _font(SMALL_SIZE), anchor="mm")
        done += count
    chart.text((middle, _height(done, top) - 6), f"{done:,}", INK, _font(TEXT_SIZE), anchor="mb")
    label = f"{day.day:%a} {day.day.day}"
    chart.text((middle, BOTTOM + 40), label, INK, _font(TEXT_SIZE), anchor="ms")


def _draw_legend(chart: "ImageDraw", days: Sequence[DayStats]) -> None:
    present = {name for day in days for name, _ in parts(day)}
    x, y = float(LEFT), HEIGHT - 40
    for name in (*COLORS, OTHER):
        if name not in present:
            continue
        chart.rectangle((x, y - 13, x + 26, y + 13), COLORS.get(name, OTHER_COLOR))
        chart.text((x + 36, y), name, INK, _font(SMALL_SIZE), anchor="lm")
        x += 36 + math.ceil(chart.textlength(name, _font(SMALL_SIZE))) + 40


def _height(count: int, top: int) -> float:
    """The vertical place of a number of turns."""
    return BOTTOM - (BOTTOM - TOP) * count / top


def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)
