"""Show admins what happened, what it cost and what people disliked, on a page and in /stats.

A browser asks for the token as the password of any user name, and nothing of the page is cached.
Everything on it may have been written by anybody: the template escapes what it is given.
"""

import asyncio
import hmac
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import SecretStr

from agent.numbers import percentile
from bot.commands.traces import tree_text
from bot.resources import Repositories
from db.records import DayStats, Stats, TracedTurn, TraceFilter

PATH: Final = "/admin"
PASSWORD: Final = HTTPBasic(realm="Sommelier, ADMIN_TOKEN is the password")
HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
DAYS: Final = 30
MAX_TURNS: Final = 10
"""The most failed turns, and the most disliked ones, that are listed."""
TREE_CHARS: Final = 100
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

Row = tuple[str, ...]


@cache
def template() -> Template:
    """Return the template of the page, which escapes what it is given."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPage:
    """The page below /admin; `dislikes` returns the disliked turns since a moment.

    `link` makes the address of a trace in Langfuse, if traces go there.
    """

    kept: Repositories
    dislikes: Callable[[datetime], Awaitable[Sequence[Mapping[str, object]]]]
    token: SecretStr
    link: Callable[[str], str] | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def router(self) -> APIRouter:
        """Return the routes for `bot.http.server.http_app`, for those who give the token."""
        router = APIRouter(include_in_schema=False, dependencies=[Depends(self._check)])
        router.get(PATH)(self.show)
        router.get(f"{PATH}/traces/{{trace_id}}")(self.trace)
        return router

    def _check(self, given: Annotated[HTTPBasicCredentials, Depends(PASSWORD)]) -> None:
        token = self.token.get_secret_value().encode()
        if not hmac.compare_digest(given.password.encode(), token):
            raise HTTPException(401, "Not ADMIN_TOKEN", {"WWW-Authenticate": "Basic"})

    async def show(self) -> HTMLResponse:
        """Serve the page as it is now."""
        now, traces = self.now(), self.kept.traces
        since = now - timedelta(days=DAYS - 1)
        known: dict[str, Any] = {
            "now": now,
            "stats": await self.kept.turns.stats(since),
            "traced": await traces.traced(since),
            "failing": await traces.summaries(MAX_TURNS, TraceFilter(since=since, level="WARNING")),
            "dislikes": (await self.dislikes(since))[::-1][:MAX_TURNS],
            "backlog": await self.kept.trace_queue.backlog(),
        }
        return HTMLResponse(await asyncio.to_thread(_rendered, **known), headers=HEADERS)

    async def trace(self, trace_id: str) -> HTMLResponse:
        """Serve one trace as a tree."""
        try:
            trace = await self.kept.traces.get(trace_id)
        except LookupError:
            raise HTTPException(404, "There is no such trace") from None
        link = self.link(trace.trace_id) if self.link else None
        tree = tree_text(trace, width=TREE_CHARS)
        page = template().render(trace=trace, tree=tree, link=link)
        return HTMLResponse(page, headers=HEADERS)


def _rendered(now: datetime, stats: Stats, traced: Sequence[TracedTurn], **known: Any) -> str:
    today = [turn for turn in traced if turn.at >= now - timedelta(days=1)]
    return template().render(
        trace=None,
        now=now,
        days=DAYS,
        numbers=[(name, cell(stats.today), cell(stats.all)) for name, cell in ROWS],
        bars=[(day.day, parts(day)) for day in stats.days],
        most=max(1, *(day.turns for day in stats.days)),
        colors=COLORS,
        errors=errors(today, traced),
        costs=costs(traced),
        latencies=latencies(traced),
        **known,
    )


def parts(day: DayStats) -> list[tuple[str, int]]:
    """Return the outcomes of a day that any turn had, from the bottom of its bar to the top."""
    counts = {name: day.outcomes.get(name, 0) for name in COLORS}
    counts[OTHER] += day.turns - sum(counts.values())
    return [(name, count) for name, count in counts.items() if count > 0]


def errors(today: Sequence[TracedTurn], turns: Sequence[TracedTurn]) -> list[Row]:
    """Count the kinds of errors, today's and all, the most frequent first."""
    counts = [
        Counter(kind for turn in part for kind in turn.error_types) for part in (today, turns)
    ]
    return [(kind, str(counts[0][kind]), str(count)) for kind, count in counts[1].most_common()]


def costs(turns: Iterable[TracedTurn]) -> list[Row]:
    """Sum up requests and cost by model and step, the dearest first."""
    paid = defaultdict[tuple[str, str], list[float]](list)
    for turn in turns:
        for step in turn.steps:
            if step.model:
                paid[step.model, step.name].append(step.cost_usd)
    ordered = sorted(paid.items(), key=lambda item: (-sum(item[1]), item[0]))
    return [
        (f"{model} · {name}", f"{len(costs):,}", money(sum(costs)))
        for (model, name), costs in ordered
    ]


def latencies(turns: Iterable[TracedTurn]) -> list[Row]:
    """Return how long turns and their steps take, by name: number, median and 95 %."""
    taken = defaultdict[tuple[bool, str], list[float]](list)
    for turn in turns:
        taken[False, turn.name].append(turn.seconds)
        for step in turn.steps[1:]:
            taken[True, step.name].append(step.seconds)
    return [
        (name, f"{len(times):,}", f"{median(times):.2f} s", f"{percentile(times, 0.95):.2f} s")
        for (_, name), times in sorted(taken.items())
    ]


def stats_table(stats: Stats) -> str:
    """Return today beside all the days; at most 34 characters wide."""
    rows = [("", "today", f"{len(stats.days)} days")]
    rows += [(name, cell(stats.today), cell(stats.all)) for name, cell in ROWS]
    return "\n".join(f"{name:<13}{today:>10}{all:>10}".rstrip() for name, today, all in rows)


def money(amount: float) -> str:
    """Return an amount in dollars with the digits that matter."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def _amount(number: int) -> str:
    """Return a number in at most 9 characters."""
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
