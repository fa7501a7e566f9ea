"""Serve the admin page: usage, cost, failed and disliked turns, and the traces of turns.

A browser sends the token as the password of any user name. Pages are never cached. They contain
text by users, which the template escapes.
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
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import SecretStr

from bot.commands.traces import cost_text, trace_text
from bot.resources import Repositories
from db.engine import Sessions
from db.models import TraceRow, TurnRow
from db.repositories.traces import RowQueue
from db.repositories.turns import export_turns

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
"""The maximum number of failed turns, and of disliked ones, on the page."""


@cache
def load_template() -> Template:
    """Return the template of the page."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("admin_page.html")


@dataclass(frozen=True, slots=True)
class AdminPage:
    """The page at /admin. `hide` masks the messages of users.

    `link` returns the address of a trace in Langfuse; it is None if traces are not sent there.
    """

    sessions: Sessions
    hide: Callable[[str], str]
    token: SecretStr
    link: Callable[[str], str] | None = None

    def build_router(self) -> APIRouter:
        """Return the routes of the page, which require the token."""
        router = APIRouter(include_in_schema=False, dependencies=[Depends(self._require_token)])
        router.get(PATH)(self.show)
        router.get(f"{PATH}/traces/{{trace_id}}")(self.show_trace)
        return router

    def _require_token(
        self, credentials: Annotated[HTTPBasicCredentials, Depends(PASSWORD)]
    ) -> None:
        token = self.token.get_secret_value().encode()
        if not hmac.compare_digest(credentials.password.encode(), token):
            raise HTTPException(401, "Not ADMIN_TOKEN", {"WWW-Authenticate": "Basic"})

    async def show(self) -> HTMLResponse:
        """Return the page."""
        repositories = Repositories(self.sessions)
        now = datetime.now(UTC)
        since = now - timedelta(days=DAYS - 1)
        days = await repositories.turns.list_by_day(since)
        failed = await repositories.traces.list_summaries(MAX_TURNS, since=since, failed=True)
        disliked = await export_turns(self.sessions, self.hide, since, disliked=True)
        backlog = await RowQueue(self.sessions, TraceRow).count_by_state()

        def render() -> str:
            return load_template().render(
                trace=None,
                now=now,
                days=days,
                statistics=statistics_rows([*days.values(), [*chain(*days.values())]]),
                failed=failed,
                disliked=disliked[::-1][:MAX_TURNS],  # the newest first
                backlog=backlog,
            )

        return HTMLResponse(await asyncio.to_thread(render), headers=HEADERS)

    async def show_trace(self, trace_id: str) -> HTMLResponse:
        """Return a page with one trace as a tree."""
        try:
            trace = await Repositories(self.sessions).traces.get(trace_id)
        except LookupError:
            raise HTTPException(404, "There is no such trace") from None
        link = self.link(trace.trace_id) if self.link else None
        page = load_template().render(trace=trace, tree=trace_text(trace), link=link)
        return HTMLResponse(page, headers=HEADERS)


def statistics_rows(columns: Sequence[Sequence[TurnRow]]) -> list[tuple[str, list[str]]]:
    """Return the rows of a table with a column for each group of turns: a name and its values."""
    groups = [_statistics(turns) for turns in columns]
    return [(name, [group[name] for group in groups]) for name in groups[0]]


def statistics_table(days: Mapping[date, Sequence[TurnRow]]) -> str:
    """Return a table of the last day and of all days together, at most 33 characters wide."""
    *_, today = days.values()
    rows = statistics_rows([today, [*chain(*days.values())]])
    rows.insert(0, ("", ["today", f"{len(days)} days"]))
    return "\n".join(f"{name:<13}{last:>10}{total:>10}".rstrip() for name, (last, total) in rows)


def _statistics(turns: Sequence[TurnRow]) -> dict[str, str]:
    """Return the statistics of turns by their names."""
    outcomes = Counter(turn.outcome for turn in turns)
    verdicts = Counter(turn.verdict for turn in turns)
    seconds = sorted(turn.seconds for turn in turns) or [0.0]

    def with_share(count: int) -> str:
        return f"{count} {count / len(turns):4.0%}" if turns else "0"

    outcome_names = ("failed", "salvaged", "fallback", "refused")
    return {
        # The id 0 stands for the HTTP API, which is not a person.
        "people": f"{len({turn.user_id for turn in turns} - {0}):,}",
        "turns": f"{len(turns):,}",
        "retried": with_share(sum(turn.retries > 0 for turn in turns)),
        **{name: with_share(outcomes[name]) for name in outcome_names},
        "cost": cost_text(sum(turn.cost_usd for turn in turns)),
        "median": f"{seconds[ceil(0.5 * len(seconds)) - 1]:.1f} s",
        "95 % within": f"{seconds[ceil(0.95 * len(seconds)) - 1]:.1f} s",
        "👍 / 👎": f"{verdicts['liked']} / {verdicts['disliked']}",
    }
