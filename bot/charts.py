"""Draw a week of turns: outcomes, times, cost and ratings of each day.

The admin page shows the charts as SVG, in light or dark colours, in one column or two. Telegram
shows them as PNG.
"""

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from agent.turn import TurnOutcome
from bot.reports import cost_text
from db.repositories.statistics import TurnStatistics, WeekStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PictureFormat = Literal["svg", "png"]

# These three are in inches.
CHART_WIDTH: Final = 4.2
CHART_HEIGHT: Final = 2.5
PADDING: Final = 0.08
"""The space around a chart."""
DOTS_PER_INCH: Final = 150
BAR_WIDTH: Final = 0.7
"""The width of a bar, as a share of the room for a day."""
MARGIN: Final = 0.6
"""The distance between the middle of the first or last bar and the edge, in the same unit."""
HEADROOM: Final = 1.15
"""How much longer an axis is than the highest bar, so that the number above it has room."""
MAX_CACHED: Final = 16
"""How many pictures are kept, so that the same week is not drawn twice."""
MIN_TOP: Final = {"turns": 5, "seconds": 2.0, "cost": 0.01, "ratings": 2}
"""How far the axis of a chart reaches at least, so that a single turn does not fill the chart."""
OUTCOME_COLOURS: Final[Mapping[TurnOutcome, str]] = {
    "answered": "#3d8a5a",
    "salvaged": "#8fae3d",
    "help": "#4a90b8",
    "stopped": "#8f8f9a",
    "refused": "#8b62b5",
    "fallback": "#d99a2b",
    "failed": "#cc4b3c",
}
BLUE: Final = "#4a90b8"
PALE_BLUE: Final = "#a5cbe2"
GREEN: Final = OUTCOME_COLOURS["answered"]
RED: Final = OUTCOME_COLOURS["failed"]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture: its background, its texts, and its lines."""

    paper: str
    ink: str
    faint: str


LIGHT: Final = Theme("#ffffff", "#222222", "#bbbbbb")
DARK: Final = Theme("#121212", "#e8e8e8", "#555555")


class WeekPainter:
    """Draws weeks in a thread, one at a time."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def paint(
        self,
        week: WeekStatistics,
        kind: PictureFormat,
        theme: Theme = LIGHT,
        columns: int = 2,
    ) -> bytes:
        """Return a picture of the four charts of a week, in `columns` columns."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(draw, week, kind, theme, columns)


@lru_cache(MAX_CACHED)
def draw(
    week: WeekStatistics,
    kind: PictureFormat,
    theme: Theme,
    columns: int,
) -> bytes:
    """Return a picture of the charts of a week. Call this in a thread: it takes about a second."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 - slow

    rows = len(CHARTS) // columns
    width = CHART_WIDTH * columns
    height = CHART_HEIGHT * rows
    figure = Figure(
        (width, height),
        DOTS_PER_INCH,
        facecolor=theme.paper,
        layout=ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING),
    )
    all_axes = figure.subplots(rows, columns).flat
    for chart, axes in zip(CHARTS, all_axes, strict=True):
        axes.set_title(chart.title, loc="left", fontsize=11, color=theme.ink)
        chart.draw(axes, week.by_day, theme)
        _finish(axes, week, theme)
    metadata: dict[str, None] = {}
    if kind == "svg":
        # Without a date, the same numbers make the same file.
        metadata["Date"] = None
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=metadata)
    return file.getvalue()


def _finish(axes: "Axes", week: WeekStatistics, theme: Theme) -> None:
    """Name the days below a chart, and replace its frame by the line on which the bars stand."""
    days = [f"{day:%a} {day.day}" for day in week.week.days]
    axes.set_xticks(range(len(days)), days, fontsize=9, color=theme.ink)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=9, labelcolor=theme.ink, length=0)
    axes.set_facecolor(theme.paper)
    # The bars stand at 0, 1, 2 and so on. There is a little room beside the first and the last one.
    last_position = len(days) - 1
    axes.set_xlim(-MARGIN, last_position + MARGIN)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=theme.faint, linewidth=0.5)
    axes.locator_params(axis="y", nbins=4)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.axhline(0, color=theme.faint, linewidth=1)
    _, labels = axes.get_legend_handles_labels()
    if labels:
        _add_legend(axes, theme)


def _add_legend(axes: "Axes", theme: Theme) -> None:
    """Explain the colours of a chart, in small type to the right of its title."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=4,
        frameon=False,
        fontsize=8,
        labelcolor=theme.ink,
        handlelength=0.8,
        handleheight=0.8,
        columnspacing=0.8,
        borderaxespad=0.2,
    )


def _draw_turns(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw a column for each day, with the outcomes of its turns on top of each other."""
    positions = range(len(days))
    heights = [0] * len(days)
    for outcome, colour in OUTCOME_COLOURS.items():
        counts = [day.count(outcome) for day in days]
        if not any(counts):
            continue
        axes.bar(
            positions,
            counts,
            BAR_WIDTH,
            bottom=heights,
            color=colour,
            label=outcome,
        )
        # The next outcome stands on top of this one.
        heights = [low + count for low, count in zip(heights, counts, strict=True)]
    for position, total in enumerate(heights):
        _label(axes, position, total, f"{total:,}", theme)
    _set_top(axes, [*heights, MIN_TOP["turns"]])


def _draw_seconds(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw for each day within how many seconds half of the turns and 95 % of them ended."""
    positions = range(len(days))
    slow = [day.slow_seconds for day in days]
    median = [day.median_seconds for day in days]
    axes.bar(positions, slow, BAR_WIDTH, color=PALE_BLUE, label="95 % within")
    axes.bar(positions, median, BAR_WIDTH, color=BLUE, label="half within")
    for position, seconds in enumerate(slow):
        _label(axes, position, seconds, f"{seconds:.1f}", theme)
    _set_top(axes, [*slow, MIN_TOP["seconds"]])


def _draw_cost(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw what the turns of each day cost."""
    costs = [day.cost_usd for day in days]
    axes.bar(range(len(days)), costs, BAR_WIDTH, color=BLUE)
    for position, cost in enumerate(costs):
        _label(axes, position, cost, cost_text(cost), theme)
    _set_top(axes, [*costs, MIN_TOP["cost"]])


def _draw_ratings(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw the liked answers of each day above the line, and the disliked ones below it."""
    positions = range(len(days))
    liked = [day.liked for day in days]
    disliked = [-day.disliked for day in days]
    axes.bar(positions, liked, BAR_WIDTH, color=GREEN, label="liked")
    axes.bar(positions, disliked, BAR_WIDTH, color=RED, label="disliked")
    _set_top(axes, [*liked, MIN_TOP["ratings"]])
    lowest = min([*disliked, -MIN_TOP["ratings"]])
    axes.set_ylim(bottom=HEADROOM * lowest)
    axes.yaxis.set_major_formatter(lambda count, _: f"{abs(count):g}")


def _set_top(axes: "Axes", heights: Sequence[float]) -> None:
    """Let the axis reach from 0 to somewhat above the highest of the bars."""
    axes.set_ylim(0, HEADROOM * max(heights))


def _label(
    axes: "Axes",
    position: int,
    height: float,
    text: str,
    theme: Theme,
) -> None:
    """Write a number above its bar, if there is one."""
    if not height:
        return
    axes.annotate(
        text,
        (position, height),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=theme.ink,
        parse_math=False,
    )


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a week: its title, and the function that draws it."""

    title: str
    draw: Callable[["Axes", Sequence[TurnStatistics], Theme], None]


CHARTS: Final = (
    Chart("Turns", _draw_turns),
    Chart("Seconds", _draw_seconds),
    Chart("Cost, US dollars", _draw_cost),
    Chart("Ratings", _draw_ratings),
)
