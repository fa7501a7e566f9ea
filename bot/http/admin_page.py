"""Serve the admin page: a week of usage and cost, what went wrong, and the traces of turns.

An admin signs in with the token as the password, and with any user name. Pages are never cached.
The pages contain texts of users, which the template escapes.
"""

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import HTMLResponse, Response
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import SecretStr

from bot.charts import DARK, LIGHT, WeekPainter
from bot.reports import statistics_rows, trace_text
from bot.resources import Repositories
from bot.wanted import WishGroup, describe_reason, group_wishes, to_csv
from db.engine import Sessions
from db.export_queue import RowQueue
from db.models import TraceRow
from db.repositories.statistics import Week
from db.repositories.turns import export_turns
from db.repositories.unmet import UnmetWishes

PATH: Final = "/admin"
PASSWORD: Final = HTTPBasic(realm="Sommelier, ADMIN_TOKEN is the password")
HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
THEMES: Final = {"light": LIGHT, "dark": DARK}
# There are no turns before the first day. A day after the final one is a mistake.
FIRST_DAY: Final = date(2020, 1, 1)
FINAL_DAY: Final = date(2100, 1, 1)
LastDay = Annotated[date | None, Query(ge=FIRST_DAY, le=FINAL_DAY)]
"""The last day of the week to show. It is today if no day is given."""
MAX_TURNS: Final = 10
"""How many failed turns, and how many disliked ones, the page shows at most."""


@cache
def load_template() -> Template:
    """Return the template of the page."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["reason"] = describe_reason
    return environment.get_template("admin_page.html")


@dataclass(frozen=True, slots=True)
class AdminPage:
    """The page at /admin."""

    sessions: Sessions
    hide: Callable[[str], str]
    """Masks a text of a user."""
    token: SecretStr
    link: Callable[[str], str] | None = None
    """Returns the address of a trace in Langfuse, by its id. None if traces are not sent there."""
    painter: WeekPainter = field(default_factory=WeekPainter)

    def build_router(self) -> APIRouter:
        """Return the routes of the page, which require the token."""
        router = APIRouter(
            include_in_schema=False, dependencies=[Depends(self._require_token)]
        )
        router.get(PATH)(self.show)
        router.get(f"{PATH}/week.svg")(self.show_charts)
        router.get(f"{PATH}/wanted.csv")(self.download_wanted)
        router.get(f"{PATH}/traces/{{trace_id}}")(self.show_trace)
        return router

    def _require_token(
        self, credentials: Annotated[HTTPBasicCredentials, Depends(PASSWORD)]
    ) -> None:
        token = self.token.get_secret_value().encode()
        if not hmac.compare_digest(credentials.password.encode(), token):
            raise HTTPException(401, "Not ADMIN_TOKEN", {"WWW-Authenticate": "Basic"})

    async def show(self, until: LastDay = None) -> HTMLResponse:
        """Return the page about the week that ends with the day `until`."""
        repositories = Repositories(self.sessions)
        week = _week_until(until)
        statistics = await repositories.statistics.summarize_week(week)
        failed = await repositories.traces.list_summaries(
            MAX_TURNS, since=week.start, until=week.end, failed=True
        )
        disliked = await export_turns(
            self.sessions, self.hide, week.start, week.end, disliked=True
        )
        newest_first = disliked[::-1]
        content = {
            "trace": None,
            "now": datetime.now(UTC),
            "week": week,
            "statistics": statistics_rows([*statistics.by_day, statistics.total]),
            "wanted": await self._group_wishes(week),
            "failed": failed,
            "disliked": newest_first[:MAX_TURNS],
            "backlog": await RowQueue(self.sessions, TraceRow).count_by_state(),
        }
        template = load_template()
        # This runs in a thread, because rendering takes a while, and others must not wait.
        html = await asyncio.to_thread(template.render, content)
        return HTMLResponse(html, headers=HEADERS)

    async def show_charts(
        self,
        until: LastDay = None,
        theme: Literal["light", "dark"] = "light",
        columns: Literal["1", "2"] = "2",
    ) -> Response:
        """Return the charts of a week as a picture."""
        week = _week_until(until)
        repository = Repositories(self.sessions).statistics
        statistics = await repository.summarize_week(week)
        colors = THEMES[theme]
        picture = await self.painter.paint(statistics, "svg", colors, int(columns))
        return Response(picture, headers=HEADERS, media_type="image/svg+xml")

    async def download_wanted(self, until: LastDay = None) -> Response:
        """Return what guests wanted and did not get, as a file for spreadsheets."""
        groups = await self._group_wishes(_week_until(until))
        headers = HEADERS | {"content-disposition": "attachment; filename=wanted.csv"}
        return Response(to_csv(groups), headers=headers, media_type="text/csv")

    async def _group_wishes(self, week: Week) -> list[WishGroup]:
        wishes = await UnmetWishes(self.sessions).list_between(
            week.start, week.end, self.hide
        )
        return await asyncio.to_thread(group_wishes, wishes)

    async def show_trace(self, trace_id: str) -> HTMLResponse:
        """Return a page that shows a trace as a tree."""
        try:
            trace = await Repositories(self.sessions).traces.get(trace_id)
        except LookupError:
            raise HTTPException(404, "There is no such trace") from None
        address: str | None = None
        if self.link is not None:
            address = self.link(trace.trace_id)
        tree = trace_text(trace)
        html = load_template().render(trace=trace, tree=tree, link=address)
        return HTMLResponse(html, headers=HEADERS)


def _week_until(last_day: date | None) -> Week:
    """Return the week that ends with a day, or with today."""
    today = datetime.now(UTC).date()
    return Week(last_day or today)
