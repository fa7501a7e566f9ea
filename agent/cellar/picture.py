"""Draw a cellar as one picture: its bottles by readiness in the next years, style and region.

The picture has a background of its own, so that it is readable in light and in dark clients. The
names come from files of users, so they are drawn as they are, never as formulas.
"""

import asyncio
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent.cellar.items import find_drinking_window, find_state, select_in_stock
from agent.cellar.overview import count_by, list_regions
from agent.i18n import format_number, translate
from agent.text import clip, to_one_line
from agent.turn import CellarItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_YEARS: Final = 10
"""The number of years, beginning with the present one."""
MAX_BARS: Final = 8
"""Maximum number of styles or regions, without the bar of all others."""
MAX_NAME_CHARS: Final = 18
"""The length to which the name of a region is cut."""
MISSING: Final = "□"
"""The sign in place of a character that the font does not have."""
MAX_CACHED_PICTURES: Final = 32
"""The most pictures in the cache. A picture has some 30,000 bytes."""
PALETTE_SIZE: Final = 128
"""The number of colours. With a palette, a picture has a third of the bytes."""
WIDTH: Final = 7.2
"""The width in inches, like all lengths of the layout."""
MARGIN: Final = 0.36
YEARS_TOP: Final = 1.25
YEARS_HEIGHT: Final = 2.2
REGIONS_LEFT: Final = 3.85
NAMES_WIDTH: Final = 1.45
"""The room for the names on the left of the bars."""
BARS_WIDTH: Final = 1.1
BARS_TOP: Final = 4.35
TITLE_GAP: Final = 0.2
"""The room between the title of a chart and its first bar."""
BARS_GAP: Final = 0.3
"""The room from the title of a chart to its first bar, and below its last one."""
BAR_STEP: Final = 0.4
"""The distance from one bar to the next."""
DOTS_PER_INCH: Final = 150
MIN_LABELLED_SHARE: Final = 0.09
"""The smallest part of a bar that has room for its number."""
PAPER: Final = "#f7f2e8"
INK: Final = "#2a1f24"
FAINT_INK: Final = "#6b5d60"
STATE_COLOURS: Final = {
    "ready": "#3d7a4e",
    "late": "#d0742c",
    "young": "#9db8d1",
}
"""The colours of the states, the lowest bars of a column first."""
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
    """A bar of a chart."""

    name: str
    count: int
    label: str
    """The count as users read it."""
    colour: str = ""
    """If it is empty, only the name and the count are shown."""


@dataclass(frozen=True, slots=True)
class CellarPicture:
    """The content of a picture of a cellar, in the user's language."""

    title: str
    years_title: str
    years: tuple[int, ...]
    states: tuple[tuple[Bar, ...], ...]
    """The bars of each state, one for each year."""
    styles_title: str
    styles: tuple[Bar, ...]
    regions_title: str
    regions: tuple[Bar, ...]


def describe_picture(items: Sequence[CellarItem], year: int) -> CellarPicture:
    """Return the content of the picture of a cellar."""
    in_stock = select_in_stock(items)
    total = sum(item.count for item in in_stock)
    style_bars = []
    for style, count in count_by(in_stock, "style"):
        if style:
            name = translate(f"style_{style}")
            colour = STYLE_COLOURS[style]
            style_bars.append(_make_bar(name, count, colour))
    region_bars = []
    for region, count in list_regions(in_stock):
        name = clip(to_one_line(region), MAX_NAME_CHARS)
        region_bars.append(_make_bar(name, count, REGION_COLOUR))
    years = range(year, year + SHOWN_YEARS)
    title = translate("cellar_all", count=total)
    return CellarPicture(
        title=title.rstrip("."),
        years_title=translate("cellar_picture_years"),
        years=tuple(years),
        states=_count_states(in_stock, years),
        styles_title=translate("cellar_picture_styles"),
        styles=_add_rest(style_bars[:MAX_BARS], total),
        regions_title=translate("cellar_regions_button"),
        regions=_add_rest(region_bars[:MAX_BARS], total),
    )


def _make_bar(
    name: str,
    count: int,
    colour: str = "",
) -> Bar:
    return Bar(name, count, format_number(count), colour)


def _add_rest(bars: Sequence[Bar], total: int) -> tuple[Bar, ...]:
    """Return bars, and a line for all other bottles."""
    shown = sum(bar.count for bar in bars)
    if shown == total:
        return tuple(bars)
    name = translate("cellar_picture_other")
    rest = _make_bar(name, total - shown)
    return *bars, rest


def _count_states(
    items: Sequence[CellarItem], years: Sequence[int]
) -> tuple[tuple[Bar, ...], ...]:
    """Return the bottles of each state in each year. Those of unknown windows are left out."""
    counts: Counter[tuple[str, int]] = Counter()  # by state and year
    for item in items:
        window = find_drinking_window(item)
        if window is None:
            continue
        for year in years:
            state_in_year = find_state(window, year)
            counts[state_in_year, year] += item.count
    states: list[tuple[Bar, ...]] = []
    for state, colour in STATE_COLOURS.items():
        name = translate(f"cellar_picture_{state}")
        bars = []
        for year in years:
            count = counts[state, year]
            bars.append(_make_bar(name, count, colour))
        states.append(tuple(bars))
    return tuple(states)


@lru_cache(MAX_CACHED_PICTURES)
def draw(picture: CellarPicture) -> bytes:
    """Return a picture as PNG. This takes about half a second, so call it in a thread."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow

    style_count = len(picture.styles)
    region_count = len(picture.regions)
    rows = max(style_count, region_count)
    bars_height = rows * BAR_STEP
    height = BARS_TOP + BARS_GAP + bars_height + MARGIN
    figure = Figure((WIDTH, height), DOTS_PER_INCH, facecolor=PAPER)
    _write_at(figure, MARGIN, 0.45, picture.title, size=17, weight="bold")
    _write_at(figure, MARGIN, 0.8, picture.years_title, size=12, color=FAINT_INK)
    years_width = WIDTH - 2 * MARGIN
    years = _add_axes(figure, (MARGIN, YEARS_TOP), (years_width, YEARS_HEIGHT))
    _draw_years(years, picture)
    charts = (
        (MARGIN, picture.styles_title, picture.styles),
        (REGIONS_LEFT, picture.regions_title, picture.regions),
    )
    for left, title, bars in charts:
        _write_at(figure, left, BARS_TOP, title, size=12, color=FAINT_INK)
        place = (left + NAMES_WIDTH, BARS_TOP + TITLE_GAP)
        axes = _add_axes(figure, place, (BARS_WIDTH, bars_height))
        _draw_bars(axes, bars, rows)
    return _write_small_png(figure)


def _write_small_png(figure: "Figure") -> bytes:
    """Return a figure as PNG with a palette."""
    from PIL import Image  # noqa: PLC0415 - slow

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")  # by Agg, which needs no display
    image = Image.open(drawn).convert("RGB")
    with_palette = image.quantize(PALETTE_SIZE)
    file = io.BytesIO()
    with_palette.save(file, "PNG", optimize=True)
    return file.getvalue()


def _add_axes(
    figure: "Figure",
    place: tuple[float, float],
    size: tuple[float, float],
) -> "Axes":
    """Return axes without a frame, with their top left corner at `place`.

    Both are in inches, `place` from the top left corner of the figure. Matplotlib takes shares of
    the figure, from its bottom left corner.
    """
    left, top = place
    width, height = size
    figure_height = figure.get_figheight()
    bottom = figure_height - top - height
    position = (left / WIDTH, bottom / figure_height)
    extent = (width / WIDTH, height / figure_height)
    axes = figure.add_axes((*position, *extent))
    axes.set_axis_off()
    return axes


def _write_at(
    figure: "Figure",
    left: float,
    top: float,
    text: str,
    **style: Any,
) -> None:
    """Write a text as it is, at a distance in inches from the top left corner."""
    style.setdefault("color", INK)
    x = left / WIDTH
    y = 1 - top / figure.get_figheight()
    figure.text(x, y, text, parse_math=False, **style)


def _replace_unknown_characters(text: str) -> str:
    """Return a text without characters that the font does not have."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415 - slow

    default_font = get_font(findfont(FontProperties()))
    known_codes = default_font.get_charmap()
    shown = ""
    for char in text:
        shown += char if ord(char) in known_codes else MISSING
    return shown


def _write(
    axes: "Axes",
    x: float,
    y: float,
    text: str,
    **style: Any,
) -> None:
    """Write a text unchanged. A "$" in a name does not begin a formula."""
    style.setdefault("color", INK)
    text = _replace_unknown_characters(text)
    axes.text(x, y, text, va="center", parse_math=False, **style)


def _draw_years(axes: "Axes", picture: CellarPicture) -> None:
    """Draw a column for each year, with the bottles of each state on top of each other.

    The lowest bars are labelled with their counts.
    """
    positions = range(len(picture.years))
    tops = [0] * len(picture.years)
    for bars in picture.states:
        counts = [bar.count for bar in bars]
        state = bars[0]
        axes.bar(positions, counts, 0.78, tops, color=state.colour, label=state.name)
        for index, count in enumerate(counts):
            tops[index] += count
    highest = max(tops) or 1
    below_columns = -0.07 * highest
    for index, year in enumerate(picture.years):
        _write(axes, index, below_columns, str(year), size=11, ha="center")
    lowest_bars = picture.states[0]
    for index, bar in enumerate(lowest_bars):
        if bar.count >= MIN_LABELLED_SHARE * highest:
            middle = bar.count / 2
            _write(axes, index, middle, bar.label, size=9, color="white", ha="center")
    axes.set_ylim(0, highest)
    last_position = len(picture.years) - 1
    axes.set_xlim(-0.4, last_position + 0.4)
    _add_legend(axes, len(picture.states))


def _add_legend(axes: "Axes", columns: int) -> None:
    """Add a legend in one line above the columns."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        ncols=columns,
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


def _draw_bars(
    axes: "Axes",
    bars: Sequence[Bar],
    rows: int,
) -> None:
    """Draw horizontal bars, the first on top, with their names and numbers."""
    coloured_counts = [bar.count for bar in bars if bar.colour]
    longest = max(coloured_counts, default=1)
    before_bar = -0.08 * longest
    gap_behind_bar = 0.06 * longest
    for index, bar in enumerate(bars):
        length = 0
        if bar.colour:
            length = bar.count
            axes.barh(index, length, 0.62, color=bar.colour)
        behind_bar = length + gap_behind_bar
        _write(axes, before_bar, index, bar.name, size=10.5, ha="right")
        _write(axes, behind_bar, index, bar.label, size=10.5)
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
