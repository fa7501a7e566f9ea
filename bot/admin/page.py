"""Show admins what happened, what it cost and what people disliked, on a page and in /stats.

A browser asks for the token as the password of any user name, and nothing of the page is cached.
Everything on it may have been written by anybody: the template escapes what it is given.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import SecretStr

from bot.commands.traces import cost_text, tree_text
from bot.resources import Repositories
from db.records import DayStats, Stats

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
DAYS: Final = 7
MAX_TURNS: Final = 10
"""The most failed turns, and the most disliked ones, that are listed."""
TREE_CHARS: Final = 100


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
        stats = await self.kept.turns.stats(since)
        render = partial(
            template().render,
            trace=None,
            now=now,
            days=[f"{day.day:%a %d}" for day in stats.days],
            numbers=[
                (name, [cell(day) for day in stats.days], cell(stats.all)) for name, cell in ROWS
            ],
            failing=await traces.summaries(MAX_TURNS, since=since, failed=True),
            dislikes=(await self.dislikes(since))[::-1][:MAX_TURNS],
            backlog=await self.kept.trace_queue.backlog(),
        )
        return HTMLResponse(await asyncio.to_thread(render), headers=HEADERS)

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


def stats_table(stats: Stats) -> str:
    """Return today beside all the days; at most 34 characters wide."""
    rows = [("", "today", f"{len(stats.days)} days")]
    rows += [(name, cell(stats.today), cell(stats.all)) for name, cell in ROWS]
    return "\n".join(f"{name:<13}{today:>10}{all:>10}".rstrip() for name, today, all in rows)


def _amount(number: int) -> str:
    """Return a number in at most 9 characters."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:,.1f} M"


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
    ("cost", lambda day: cost_text(day.cost_usd)),
    ("tokens", lambda day: _amount(day.tokens)),
    ("median", lambda day: f"{day.median_seconds:.1f} s"),
    ("95 % within", lambda day: f"{day.p95_seconds:.1f} s"),
    ("👍 / 👎", lambda day: f"{day.liked} / {day.disliked}"),
)
