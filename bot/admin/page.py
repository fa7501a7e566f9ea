"""Show admins what happened, what it cost and what people disliked, on a page and in /stats.

The page is for those who give the token, and nothing of it is cached. Everything on it may have
been written by anybody: the templates escape what they are given.
"""

import asyncio
import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import SecretStr

from agent.numbers import percentile
from agent.tracing.records import TraceRecord
from bot.commands.traces import tree_text
from bot.resources import Repositories
from db.records import DayStats, Stats, TracedTurn, TraceFilter

PATH: Final = "/admin"
COOKIE: Final = "sommelier_admin"
COOKIE_SECONDS: Final = 12 * 3600
MAX_FORM_BYTES: Final = 4096
HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

DAYS: Final = 30
SHOWN: Final = 10
"""How many failing turns, and how many disliked ones, are listed."""
TREE_WIDTH: Final = 100  # characters

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
    """What is served below /admin; `dislikes` are asked for since a moment.

    The token comes in a form or, once, in the address; then a cookie made of it lets in. A trace
    may stand elsewhere too: there `link` leads.
    """

    kept: Repositories
    dislikes: Callable[[datetime], Awaitable[Sequence[Dislike]]]
    token: SecretStr
    link: Callable[[str], str] | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def router(self) -> APIRouter:
        """Return the routes that `bot.http.server.http_app` serves."""
        router = APIRouter(include_in_schema=False)
        router.get(PATH)(self.show)
        router.post(PATH)(self.log_in)
        router.get(f"{PATH}/traces/{{trace_id}}")(self.trace)
        return router

    async def show(self, request: Request) -> Response:
        """The page, or the question for the token."""
        if given := request.query_params.get("token"):
            return self._answer(request, given)
        if not self._knows(request):
            return _html(login_page(), 401)
        return _html(await self.render())

    async def log_in(self, request: Request) -> Response:
        """Take the token from the form, of a body that tells that it is small."""
        if int(request.headers.get("content-length", MAX_FORM_BYTES + 1)) > MAX_FORM_BYTES:
            return _html(login_page(wrong=True), 413)
        body = await request.body()
        return self._answer(request, parse_qs(body.decode("latin-1")).get("token", [""])[0])

    async def trace(self, request: Request) -> Response:
        """One trace."""
        if not self._knows(request):
            return RedirectResponse(PATH, 303, HEADERS)
        trace_id = request.path_params["trace_id"]
        try:
            trace = await self.kept.traces.get(trace_id)
        except LookupError:
            return _html(login_page(), 404)
        return _html(trace_page(trace, self.link(trace.trace_id) if self.link else None))

    def _answer(self, request: Request, given: str) -> Response:
        """Let in, by a cookie, whoever has the token."""
        if not _same(given, self.token.get_secret_value()):
            return _html(login_page(wrong=True), 403)
        response = RedirectResponse(PATH, 303, HEADERS)
        response.set_cookie(
            COOKIE,
            self._cookie(),
            max_age=COOKIE_SECONDS,
            path=PATH,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def _knows(self, request: Request) -> bool:
        return _same(request.cookies.get(COOKIE, ""), self._cookie())

    def _cookie(self) -> str:
        """What lets in, from which nobody can tell the token."""
        key = self.token.get_secret_value().encode()
        return hmac.new(key, b"the page of admins", hashlib.sha256).hexdigest()

    async def render(self) -> str:
        """Make the page as it is now."""
        now, traces = self.now(), self.kept.traces
        since = now - timedelta(days=DAYS - 1)
        told: dict[str, Any] = {
            "now": now,
            "stats": await self.kept.turns.stats(since),
            "traced": await traces.traced(since),
            "failing": await traces.summaries(SHOWN, TraceFilter(since=since, level="WARNING")),
            "dislikes": (await self.dislikes(since))[::-1][:SHOWN],
            "backlog": await self.kept.trace_queue.backlog(),
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
    ordered = sorted(spent.items(), key=lambda item: (-sum(item[1]), item[0]))
    return [
        (f"{model} · {name}", f"{len(paid):,}", money(sum(paid))) for (model, name), paid in ordered
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
        (name, f"{len(times):,}", f"{median(times):.2f} s", f"{percentile(times, 0.95):.2f} s")
        for name, times in named
    ]


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _html(page: str, status: int = 200) -> Response:
    return HTMLResponse(page, status, HEADERS)


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


def parts(day: DayStats) -> list[tuple[str, int]]:
    """The outcomes of a day that any turn had, from the bottom of its bar to the top."""
    counts = {name: day.outcomes.get(name, 0) for name in COLORS}
    counts[OTHER] += day.turns - sum(counts.values())
    return [(name, count) for name, count in counts.items() if count > 0]
