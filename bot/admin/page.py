"""The page of admins: what happened today and in 30 days, what it cost, what people disliked.

Everything on it may have been written by anybody: the templates escape what they are given.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agent.engine.span import TraceRecord
from agent.repositories import Stats, TracedTurn, TraceSummary, percentile
from bot.admin.stats import COLORS, ROWS, money, parts
from bot.commands.traces import tree_text

DAYS: Final = 30
SHOWN: Final = 10
"""How many failing turns, and how many disliked ones, are listed."""
TREE_WIDTH: Final = 100  # characters

Row = tuple[str, ...]
Dislike = Mapping[str, object]
"""A line of `sommelier traces export`."""


@cache
def templates() -> Environment:
    """The templates, compiled once; what they are given is escaped."""
    folder = FileSystemLoader(Path(__file__).with_name("templates"))
    return Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def login_page(*, wrong: bool = False) -> str:
    """Make the page that asks for the token."""
    return templates().get_template("login.html").render(wrong=wrong)


def trace_page(trace: TraceRecord, link: str | None) -> str:
    """Make the page of one trace: its tree; `link` is where it stands beside here."""
    tree = tree_text(trace, width=TREE_WIDTH)
    return templates().get_template("trace.html").render(trace=trace, tree=tree, link=link)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPage:
    """What the page is made of, each asked for since a moment.

    `failing` are the worst turns, `backlog` how many traces are to be sent, and were given up.
    """

    stats: Callable[[datetime], Awaitable[Stats]]
    traced: Callable[[datetime], Awaitable[Sequence[TracedTurn]]]
    failing: Callable[[datetime], Awaitable[Sequence[TraceSummary]]]
    dislikes: Callable[[datetime], Awaitable[Sequence[Dislike]]]
    backlog: Callable[[], Awaitable[Mapping[str, int]]]
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    async def render(self) -> str:
        """Make the page as it is now."""
        now = self.now()
        since = now - timedelta(days=DAYS - 1)
        told: dict[str, Any] = {
            "now": now,
            "stats": await self.stats(since),
            "traced": await self.traced(since),
            "failing": await self.failing(since),
            "dislikes": (await self.dislikes(since))[::-1][:SHOWN],
            "backlog": await self.backlog(),
        }
        return await asyncio.to_thread(_rendered, **told)


def _rendered(now: datetime, stats: Stats, traced: Sequence[TracedTurn], **told: Any) -> str:
    """Count what the page tells, and make it."""
    today = [turn for turn in traced if turn.at >= now - timedelta(days=1)]
    page = templates().get_template("page.html")
    return page.render(
        now=now,
        days=DAYS,
        numbers=[(name, cell(stats.today), cell(stats.all)) for name, cell in ROWS],
        bars=bars(stats),
        colors=COLORS,
        errors=errors(today, traced),
        costs=costs(traced),
        latencies=latencies(traced),
        **told,
    )


def bars(stats: Stats) -> list[dict[str, Any]]:
    """Make a bar a day: its outcomes from the bottom up, as shares of the busiest day."""
    most = max(1, *(day.turns for day in stats.days))
    made = []
    for day in stats.days:
        below, segments = 0.0, []
        for name, count in parts(day):
            height = 100 * count / most
            segments.append({"color": COLORS[name], "y": 100 - below - height, "height": height})
            below += height
        said = ", ".join(f"{count} {name}" for name, count in parts(day))
        made.append({"day": day.day, "said": said or "no turns", "segments": segments})
    return made


def errors(today: Sequence[TracedTurn], turns: Sequence[TracedTurn]) -> list[Row]:
    """Count the kinds of errors, today's and all, the most frequent first."""
    of_today = Counter(kind for turn in today for kind in turn.error_types)
    of_all = Counter(kind for turn in turns for kind in turn.error_types)
    return [(kind, str(of_today[kind]), str(count)) for kind, count in of_all.most_common()]


def costs(turns: Sequence[TracedTurn]) -> list[Row]:
    """Sum up requests and cost by model and step, the dearest first."""
    spent: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in turns:
        for step in turn.steps:
            if step.model:
                spent[step.model, step.name].append(step.cost_usd)
    ordered = sorted(spent.items(), key=lambda each: (-sum(each[1]), each[0]))
    return [
        (f"{model} · {name}", f"{len(each):,}", money(sum(each))) for (model, name), each in ordered
    ]


def latencies(turns: Sequence[TracedTurn]) -> list[Row]:
    """Say how long turns take by what they are, then steps by their name: median and 95 %."""
    by_kind, by_step = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for turn in turns:
        by_kind[turn.name].append(turn.seconds)
        for step in turn.steps[1:]:
            by_step[step.name].append(step.seconds)
    named = [*sorted(by_kind.items()), *sorted(by_step.items())]
    return [
        (name, f"{len(each):,}", f"{median(each):.2f} s", f"{percentile(each, 0.95):.2f} s")
        for name, each in named
    ]
