"""Serve the admin page: usage, cost, failed and disliked turns, and the traces of turns.

A browser sends the token as the password of any user name. Pages are never cached. They contain
text by users, which the template escapes.
"""

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import HTMLResponse, Response
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from pydantic import SecretStr

from bot.reports import statistics_rows, trace_text
from bot.resources import Repositories
from bot.wanted import WishGroup, describe_reason, group_wishes, to_csv
from db.engine import Sessions
from db.models import TraceRow
from db.repositories.turns import export_turns
from db.repositories.unmet import UnmetWishes
from db.traces import RowQueue

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
    environment.filters["reason"] = describe_reason
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
        router.get(f"{PATH}/wanted.csv")(self.download_wanted)
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
        total = [*chain(*days.values())]
        newest_first = disliked[::-1]
        wanted = await self._group_wishes(since, now)

        def render() -> str:
            return load_template().render(
                trace=None,
                now=now,
                days=days,
                statistics=statistics_rows([*days.values(), total]),
                failed=failed,
                disliked=newest_first[:MAX_TURNS],
                backlog=backlog,
                wanted=wanted,
            )

        return HTMLResponse(await asyncio.to_thread(render), headers=HEADERS)

    async def _group_wishes(self, start: datetime, end: datetime) -> list[WishGroup]:
        wishes = await UnmetWishes(self.sessions).list_between(start, end, self.hide)
        return await asyncio.to_thread(group_wishes, wishes)

    async def download_wanted(self) -> Response:
        """Return what guests wanted and did not get, as a file for spreadsheets."""
        now = datetime.now(UTC)
        content = to_csv(await self._group_wishes(now - timedelta(days=DAYS - 1), now))
        name = {"content-disposition": "attachment; filename=wanted.csv"}
        return Response(content, headers={**HEADERS, **name}, media_type="text/csv")

    async def show_trace(self, trace_id: str) -> HTMLResponse:
        """Return a page with one trace as a tree."""
        try:
            trace = await Repositories(self.sessions).traces.get(trace_id)
        except LookupError:
            raise HTTPException(404, "There is no such trace") from None
        link = self.link(trace.trace_id) if self.link else None
        page = load_template().render(trace=trace, tree=trace_text(trace), link=link)
        return HTMLResponse(page, headers=HEADERS)
