"""The ratios as a picture: one row of bars for each candidate, one panel for each kind of turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from benchmarks.environments import FLOOR, OURS, TRACED, Entry
from benchmarks.measure import Costs
from benchmarks.scenario import KINDS

NAMES: Final = 140
PANEL: Final = 178
BAR: Final = 20
STEP: Final = 30
TOP: Final = 74
INK: Final = "#24292f"
MUTED: Final = "#6e7781"
COLOURS: Final = {FLOOR: "#8c959f", OURS: "#8b1e3f", TRACED: "#c06c84"}
PEER: Final = "#c9d1d9"


@dataclass(frozen=True)
class Bar:
    """One bar: how long it is, in floors, or why it is missing."""

    entry: Entry
    ratio: float | None


def svg(costs: Mapping[Entry, Costs]) -> str:
    """CPU per turn as a multiple of the floor's."""
    panels = [
        [Bar(entry, each.ratio(kind.name, costs[FLOOR])) for entry, each in costs.items()]
        for kind in KINDS
    ]
    longest = max(bar.ratio or 0 for bars in panels for bar in bars)
    width, height = NAMES + PANEL * len(panels) + 12, TOP + STEP * len(costs) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(12, 24, "CPU per turn, as a multiple of the bare loop's", INK, size=15),
        *(text(NAMES - 8, bar_y(i) + 14, entry.name, INK, "end") for i, entry in enumerate(costs)),
    ]
    for position, (kind, bars) in enumerate(zip(KINDS, panels, strict=True)):
        left = NAMES + PANEL * position
        parts += panel(left, kind.name, bars, (PANEL - 52) / longest)
    return "\n".join([*parts, "</svg>\n"])


def panel(left: float, title: str, bars: Sequence[Bar], scale: float) -> Iterator[str]:
    """The bars of one kind of turn, and a line where the floor ends."""
    yield text(left, TOP - 16, title, MUTED, size=13)
    for position, bar in enumerate(bars):
        y = bar_y(position)
        if bar.ratio is None:
            yield text(left + scale + 5, y + 14, "gives up", MUTED)
            continue
        colour = COLOURS.get(bar.entry, PEER)
        length = bar.ratio * scale
        yield f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
        yield text(left + max(length, scale) + 5, y + 14, f"×{bar.ratio:.2f}", INK)
    floor = left + scale
    yield (
        f'<line x1="{floor:.1f}" x2="{floor:.1f}" y1="{TOP - 8}" y2="{bar_y(len(bars)) - 4}" '
        f'stroke="{INK}" stroke-width="1" stroke-dasharray="3 3"/>'
    )


def bar_y(position: int) -> int:
    """The top of a row."""
    return TOP + STEP * position


def text(x: float, y: float, said: str, colour: str, anchor: str = "start", size: int = 12) -> str:
    """A line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" '
        f'font-size="{size}">{escape(said)}</text>'
    )
