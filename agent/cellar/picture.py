"""Draw a cellar as one picture: bottles by readiness over the next years, by style, by region.

It has a background of its own, so that it is readable in light and in dark clients. The names come
from files of users, so they are drawn as they are, never as formulas.
"""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent.cellar.items import find_drinking_window, items_in_stock, state_of_window
from agent.cellar.overview import count_by, list_regions
from agent.i18n import format_number, translate
from agent.text import clip, to_one_line
from agent.turn import CellarItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_YEARS: Final = 10
MAX_BARS: Final = 8
MAX_NAME_CHARS: Final = 18
MISSING: Final = "□"
"""What stands for a character that the font does not have."""
MAX_CACHED_PICTURES: Final = 32
"""Each has some 30,000 bytes."""
PALETTE_SIZE: Final = 128
"""With a palette, a picture has a third of the bytes."""
WIDTH: Final = 7.2
"""Inches, as all lengths of the layout."""
MARGIN: Final = 0.36
YEARS_TOP: Final = 1.25
YEARS_HEIGHT: Final = 2.2
BARS_TOP: Final = 4.35
BAR_STEP: Final = 0.4
DOTS_PER_INCH: Final = 150
MIN_LABELLED_SHARE: Final = 0.09
"""A lower part of a bar has no room for its number."""
PAPER: Final = "#f7f2e8"
INK: Final = "#2a1f24"
FAINT_INK: Final = "#6b5d60"
STATE_COLOURS: Final = {"ready": "#3d7a4e", "late": "#d0742c", "young": "#9db8d1"}
STYLE_COLOURS: Final = {
    "red": "#7b1e3a",
    "white": "#d9bd5a",
    "rose": "#e08a97",
    "orange": "#d98a3a",
    "sparkling": "#8fb0a9",
    "sweet": "#b8862b",
    "fortified": "#5a3324",
    "alcohol_free": "#7f9a6a",
}
REGION_COLOUR: Final = "#64547e"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart: its name, its number as a number and as users read it, and its colour.

    Without a colour only name and number are shown.
    """

    name: str
    count: int
    label: str
    colour: str = ""


@dataclass(frozen=True, slots=True)
class CellarPicture:
    """The content of a picture of a cellar, in the user's language."""

    title: str
    years_title: str
    years: tuple[int, ...]
    states: tuple[tuple[Bar, ...], ...]
    """For each state, its bottles in each year."""
    styles_title: str
    styles: tuple[Bar, ...]
    regions_title: str
    regions: tuple[Bar, ...]


def describe_picture(items: Sequence[CellarItem], year: int) -> CellarPicture:
    """Return what the picture of a cellar shows."""
    in_stock = items_in_stock(items)
    total = sum(item.count for item in in_stock)
    styles = [(style, count) for style, count in count_by(in_stock, "style") if style]
    style_bars = [
        _make_bar(translate(f"style_{style}"), count, STYLE_COLOURS[style])
        for style, count in styles[:MAX_BARS]
    ]
    region_bars = [
        _make_bar(clip(to_one_line(region), MAX_NAME_CHARS), count, REGION_COLOUR)
        for region, count in list_regions(in_stock)[:MAX_BARS]
    ]
    years = range(year, year + SHOWN_YEARS)
    return CellarPicture(
        title=translate("cellar_all", count=total).rstrip("."),
        years_title=translate("cellar_picture_years"),
        years=tuple(years),
        states=_count_states(in_stock, years),
        styles_title=translate("cellar_picture_styles"),
        styles=_with_rest(style_bars, total),
        regions_title=translate("cellar_regions_button"),
        regions=_with_rest(region_bars, total),
    )


def _make_bar(name: str, count: int, colour: str = "") -> Bar:
    return Bar(name, count, format_number(count), colour)


def _with_rest(bars: Sequence[Bar], total: int) -> tuple[Bar, ...]:
    """Return bars, and a line for all other bottles."""
    rest = total - sum(bar.count for bar in bars)
    return (
        (*bars, _make_bar(translate("cellar_picture_other"), rest))
        if rest
        else tuple(bars)
    )


def _count_states(
    items: Sequence[CellarItem], years: Sequence[int]
) -> tuple[tuple[Bar, ...], ...]:
    """Return the bottles of each state in each year; those with unknown windows are left out."""
    counts = {state: [0] * len(years) for state in STATE_COLOURS}
    for item in items:
        window = find_drinking_window(item)
        if window is None:
            continue
        for index, year in enumerate(years):
            counts[state_of_window(window, year)][index] += item.count
    states: list[tuple[Bar, ...]] = []
    for state, colour in STATE_COLOURS.items():
        name = translate(f"cellar_picture_{state}")
        states.append(tuple(_make_bar(name, count, colour) for count in counts[state]))
    return tuple(states)


@lru_cache(MAX_CACHED_PICTURES)
def draw(picture: CellarPicture) -> bytes:
    """Return a picture as PNG. It takes about half a second, so call it in a thread."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow
    from PIL import Image  # noqa: PLC0415 - slow

    rows = max(len(picture.styles), len(picture.regions))
    height = BARS_TOP + 0.3 + rows * BAR_STEP + MARGIN
    figure = Figure((WIDTH, height), DOTS_PER_INCH, facecolor=PAPER)
    _write_at(figure, MARGIN, 0.45, picture.title, size=17, weight="bold")
    _write_at(figure, MARGIN, 0.8, picture.years_title, size=12, color=FAINT_INK)
    years = _add_axes(figure, (MARGIN, YEARS_TOP), (WIDTH - 2 * MARGIN, YEARS_HEIGHT))
    _draw_years(years, picture)
    for left, title, bars in (
        (MARGIN, picture.styles_title, picture.styles),
        (3.85, picture.regions_title, picture.regions),
    ):
        _write_at(figure, left, BARS_TOP, title, size=12, color=FAINT_INK)
        place = (left + 1.45, BARS_TOP + 0.2)
        _draw_bars(_add_axes(figure, place, (1.1, rows * BAR_STEP)), bars, rows)
    drawn, file = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png")  # by Agg, which needs no display
    Image.open(drawn).convert("RGB").quantize(PALETTE_SIZE).save(
        file, "PNG", optimize=True
    )
    return file.getvalue()


def _add_axes(
    figure: "Figure", place: tuple[float, float], size: tuple[float, float]
) -> "Axes":
    """Return axes without a frame; `place` is their top left corner, from the top left."""
    left, top = place
    width, height = size
    total = figure.get_figheight()
    bottom = total - top - height
    axes = figure.add_axes(
        (left / WIDTH, bottom / total, width / WIDTH, height / total)
    )
    axes.set_axis_off()
    return axes


def _write_at(
    figure: "Figure", left: float, top: float, text: str, **style: Any
) -> None:
    """Write a text as it is, at a distance from the top left corner."""
    height = figure.get_figheight()
    style = {"color": INK} | style
    figure.text(left / WIDTH, 1 - top / height, text, parse_math=False, **style)


def _with_known_characters(text: str) -> str:
    """Return a text without characters that the font does not have."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415 - slow

    known = get_font(findfont(FontProperties())).get_charmap()
    return "".join(char if ord(char) in known else MISSING for char in text)


def _write(axes: "Axes", x: float, y: float, text: str, **style: Any) -> None:
    """Write a text as it is: a "$" in a name begins no formula."""
    text = _with_known_characters(text)
    axes.text(x, y, text, va="center", parse_math=False, **({"color": INK} | style))


def _draw_years(axes: "Axes", picture: CellarPicture) -> None:
    """Draw a column for each year, with the bottles of each state on top of each other."""
    positions = range(len(picture.years))
    bottoms = [0] * len(picture.years)
    for bars in picture.states:
        counts = [bar.count for bar in bars]
        axes.bar(
            positions, counts, 0.78, bottoms, color=bars[0].colour, label=bars[0].name
        )
        bottoms = [
            bottom + count for bottom, count in zip(bottoms, counts, strict=True)
        ]
    highest = max(bottoms) or 1
    for index, (year, ready) in enumerate(
        zip(picture.years, picture.states[0], strict=True)
    ):
        _write(axes, index, -0.07 * highest, str(year), size=11, ha="center")
        if ready.count >= MIN_LABELLED_SHARE * highest:
            _write(
                axes,
                index,
                ready.count / 2,
                ready.label,
                size=9,
                color="white",
                ha="center",
            )
    axes.set_ylim(0, highest)
    axes.set_xlim(-0.4, len(picture.years) - 0.6)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        ncols=len(picture.states),
        frameon=False,
        fontsize=11,
        labelcolor=INK,
        handlelength=0.9,
        handleheight=0.9,
        handletextpad=0.5,
        borderaxespad=0,
        borderpad=0.2,
        columnspacing=1.2,
    )


def _draw_bars(axes: "Axes", bars: Sequence[Bar], rows: int) -> None:
    """Draw horizontal bars, the first on top, with their names and numbers."""
    longest = max((bar.count for bar in bars if bar.colour), default=1)
    for index, bar in enumerate(bars):
        length = 0
        if bar.colour:
            length = bar.count
            axes.barh(index, length, 0.62, color=bar.colour)
        _write(axes, -0.08 * longest, index, bar.name, size=10.5, ha="right")
        _write(axes, length + 0.06 * longest, index, bar.label, size=10.5)
    axes.set_xlim(0, longest)
    axes.set_ylim(rows - 0.5, -0.5)


class CellarPainter:
    """Draws cellars in a thread, one at a time."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def paint(self, items: Sequence[CellarItem], year: int) -> bytes:
        """Return the picture of a cellar as PNG."""
        picture = await asyncio.to_thread(describe_picture, items, year)
        async with self._one_at_a_time:
            return await asyncio.to_thread(draw, picture)
