"""Draw a week of turns: outcomes, times, cost and ratings of each day.

For the admin page as SVG, in light and in dark and for narrow screens; for Telegram as PNG.
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

CHART_WIDTH: Final = 4.2
"""Inches, like the height."""
CHART_HEIGHT: Final = 2.5
PADDING: Final = 0.08
DOTS_PER_INCH: Final = 150
MAX_CACHED: Final = 16
MIN_TOP: Final = {"turns": 5, "seconds": 2.0, "cost": 0.01, "ratings": 2}
"""What the axis of a chart shows at least, so that one turn does not fill it."""
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
        """Return the four charts of a week, in so many columns."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(draw, week, kind, theme, columns)


@lru_cache(MAX_CACHED)
def draw(
    week: WeekStatistics, kind: PictureFormat, theme: Theme, columns: int
) -> bytes:
    """Return the charts of a week. It takes about a second, so call it in a thread."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 - slow

    rows = len(CHARTS) // columns
    size = (CHART_WIDTH * columns, CHART_HEIGHT * rows)
    layout = ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING)
    figure = Figure(size, DOTS_PER_INCH, facecolor=theme.paper, layout=layout)
    all_axes = figure.subplots(rows, columns).flat
    for (title, draw_chart), axes in zip(CHARTS.items(), all_axes, strict=True):
        axes.set_title(title, loc="left", fontsize=11, color=theme.ink)
        draw_chart(axes, week.by_day, theme)
        _finish(axes, week, theme)
    file = io.BytesIO()
    figure.savefig(
        file, format=kind, metadata=None if kind == "png" else {"Date": None}
    )
    return file.getvalue()


def _finish(axes: "Axes", week: WeekStatistics, theme: Theme) -> None:
    """Name the days, and leave of the frame only the line that the bars stand on."""
    days = [f"{day:%a} {day.day}" for day in week.week.days]
    axes.set_xticks(range(len(days)), days, fontsize=9, color=theme.ink)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=9, labelcolor=theme.ink, length=0)
    axes.set_facecolor(theme.paper)
    axes.set_xlim(-0.6, len(days) - 0.4)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=theme.faint, linewidth=0.5)
    axes.locator_params(axis="y", nbins=4)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.axhline(0, color=theme.faint, linewidth=1)
    if axes.get_legend_handles_labels()[1]:
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
    bottoms = [0] * len(days)
    for outcome, colour in OUTCOME_COLOURS.items():
        counts = [day.count(outcome) for day in days]
        if any(counts):
            axes.bar(
                range(len(days)), counts, 0.7, bottoms, color=colour, label=outcome
            )
        bottoms = [
            bottom + count for bottom, count in zip(bottoms, counts, strict=True)
        ]
    for position, total in enumerate(bottoms):
        _label(axes, position, total, f"{total:,}", theme)
    axes.set_ylim(0, 1.15 * max(*bottoms, MIN_TOP["turns"]))


def _draw_seconds(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw for each day within how many seconds half of the turns ended, and 95 %."""
    slow = [day.slow_seconds for day in days]
    median = [day.median_seconds for day in days]
    axes.bar(range(len(days)), slow, 0.7, color=PALE_BLUE, label="95 % within")
    axes.bar(range(len(days)), median, 0.7, color=BLUE, label="half within")
    for position, seconds in enumerate(slow):
        _label(axes, position, seconds, f"{seconds:.1f}", theme)
    axes.set_ylim(0, 1.15 * max(*slow, MIN_TOP["seconds"]))


def _draw_cost(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw what the turns of each day cost."""
    costs = [day.cost_usd for day in days]
    axes.bar(range(len(days)), costs, 0.7, color=BLUE)
    for position, cost in enumerate(costs):
        _label(axes, position, cost, cost_text(cost), theme)
    axes.set_ylim(0, 1.15 * max(*costs, MIN_TOP["cost"]))


def _draw_ratings(axes: "Axes", days: Sequence[TurnStatistics], theme: Theme) -> None:
    """Draw the liked answers of each day above the line, and the disliked ones below it."""
    liked = [day.liked for day in days]
    disliked = [-day.disliked for day in days]
    axes.bar(range(len(days)), liked, 0.7, color=GREEN, label="liked")
    axes.bar(range(len(days)), disliked, 0.7, color=RED, label="disliked")
    axes.set_ylim(
        1.15 * min(*disliked, -MIN_TOP["ratings"]),
        1.15 * max(*liked, MIN_TOP["ratings"]),
    )
    axes.yaxis.set_major_formatter(lambda count, _: f"{abs(count):g}")


def _label(axes: "Axes", position: int, height: float, text: str, theme: Theme) -> None:
    """Write a number above its bar, if there is one."""
    if height:
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


DrawChart = Callable[["Axes", Sequence[TurnStatistics], Theme], None]
CHARTS: Final[dict[str, DrawChart]] = {
    "Turns": _draw_turns,
    "Seconds": _draw_seconds,
    "Cost, US dollars": _draw_cost,
    "Ratings": _draw_ratings,
}
