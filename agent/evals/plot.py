"""A run as a picture: for each metric a bar of each variant, as SVG."""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from agent.evals.evaluators import EVALUATORS
from agent.evals.report import Summary

COLOURS: Final = ("#8b1e3f", "#3c6e71", "#c9a227", "#5f4b8b", "#d9748f", "#7a8b3c", "#444444")
INK: Final = "#24292f"
TRACK: Final = "#f0ece9"
NAMES: Final = 100
LONGEST: Final = 320
BAR: Final = 14
GAP: Final = 10
TOP: Final = 52
LEGEND: Final = 20


def svg(found: Sequence[Summary]) -> str:
    """The mean score of each metric that applies, from 0 to 100 %."""
    named = [name for name in EVALUATORS if any(name in each.metrics for each in found)]
    block = BAR * len(found) + GAP
    first = TOP + LEGEND * len(found)
    width, height = NAMES + LONGEST + 60, first + block * len(named) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(12, 26, "Mean score by metric", size=15),
        *_legend(found),
    ]
    for position, name in enumerate(named):
        parts += _metric(first + block * position, name, found)
    return "\n".join([*parts, "</svg>\n"])


def _legend(found: Sequence[Summary]) -> Iterator[str]:
    for position, summary in enumerate(found):
        y = TOP - 8 + LEGEND * position
        yield _rect(12, y, 12, 12, _colour(position))
        yield _text(30, y + 10, f"{summary.label} ({summary.passed} of {summary.items} passed)")


def _metric(top: float, name: str, found: Sequence[Summary]) -> Iterator[str]:
    yield _text(NAMES - 8, top + BAR * len(found) / 2 + 4, name, anchor="end")
    for position, summary in enumerate(found):
        y = top + BAR * position
        yield _rect(NAMES, y, LONGEST, BAR - 2, TRACK)
        if average := summary.metrics.get(name):
            yield _rect(NAMES, y, average.score * LONGEST, BAR - 2, _colour(position))
            yield _text(NAMES + LONGEST + 6, y + 10, f"{average.score:.0%}")


def _colour(position: int) -> str:
    return COLOURS[position % len(COLOURS)]


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _text(x: float, y: float, said: str, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}" text-anchor="{anchor}" '
        f'font-size="{size}">{escape(said)}</text>'
    )
