"""Show admins what happened, what it cost and what people disliked, on a page and in /stats.

A browser asks for the token as the password of any user name, and nothing of the page is cached.
Everything on it may have been written by anybody: the template escapes what it is given.
"""

import asyncio
import hmac
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import SecretStr

from bot.commands.traces import cost_text, trace_text
from bot.resources import Repositories
from db.engine import Sessions
from db.repositories.turns import exported_turns

Turns = Sequence[Any]
"""Turns with the columns that are counted."""

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


@cache
def template() -> Template:
    """Return the template of the page, which escapes what it is given."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("admin_page.html")


@dataclass(frozen=True, slots=True)
class AdminPage:
    """The page below /admin over a database; `hide` masks the words of users.

    `link` makes the address of a trace in Langfuse, if traces go there.
    """

    sessions: Sessions
    hide: Callable[[str], str]
    token: SecretStr
    link: Callable[[str], str] | None = None

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
        now, repositories = datetime.now(UTC), Repositories(self.sessions)
        since = now - timedelta(days=DAYS - 1)
        days = await repositories.turns.by_day(since)
        disliked = await exported_turns(self.sessions, self.hide, since, disliked=True)
        shown = {
            "failing": await repositories.traces.summaries(MAX_TURNS, since=since, failed=True),
            "dislikes": disliked[::-1][:MAX_TURNS],
            "backlog": await repositories.trace_queue.backlog(),
        }

        def render() -> str:
            table = numbers([*days.values(), [*chain(*days.values())]])
            return template().render(trace=None, now=now, days=days, numbers=table, **shown)

        return HTMLResponse(await asyncio.to_thread(render), headers=HEADERS)

    async def trace(self, trace_id: str) -> HTMLResponse:
        """Serve one trace as a tree."""
        try:
            trace = await Repositories(self.sessions).traces.get(trace_id)
        except LookupError:
            raise HTTPException(404, "There is no such trace") from None
        link = self.link(trace.trace_id) if self.link else None
        page = template().render(trace=trace, tree=trace_text(trace), link=link)
        return HTMLResponse(page, headers=HEADERS)


def numbers(columns: Sequence[Turns]) -> list[tuple[str, list[str]]]:
    """Return the rows of a table: the name of a number, and that number of each column."""
    counted = [*map(_count, columns)]
    return [(name, [column[name] for column in counted]) for name in counted[0]]


def stats_table(days: Mapping[date, Turns]) -> str:
    """Return today beside all the days; at most 34 characters wide."""
    *_, today = days.values()
    rows = [("", ["today", f"{len(days)} days"]), *numbers([today, [*chain(*days.values())]])]
    return "\n".join(f"{name:<13}{today:>10}{all:>10}".rstrip() for name, (today, all) in rows)


def _count(turns: Turns) -> dict[str, str]:
    """Return the numbers of turns by their names."""
    outcomes = Counter(turn.outcome for turn in turns)
    verdicts = Counter(turn.verdict for turn in turns)
    seconds = sorted(turn.seconds for turn in turns) or [0.0]

    def share(part: int) -> str:
        return f"{part} {part / len(turns):4.0%}" if turns else "0"

    return {
        # The user of the HTTP API is 0, and nobody.
        "people": f"{len({turn.user_id for turn in turns} - {0}):,}",
        "turns": f"{len(turns):,}",
        "retried": share(sum(turn.retries > 0 for turn in turns)),
        **{name: share(outcomes[name]) for name in ("failed", "salvaged", "fallback", "refused")},
        "cost": cost_text(sum(turn.cost_usd for turn in turns)),
        "median": f"{seconds[ceil(0.5 * len(seconds)) - 1]:.1f} s",
        "95 % within": f"{seconds[ceil(0.95 * len(seconds)) - 1]:.1f} s",
        "👍 / 👎": f"{verdicts['liked']} / {verdicts['disliked']}",
    }
