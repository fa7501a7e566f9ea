"""The page of admins over HTTP, for those who give the token; nothing of it is cached."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from agent.engine.span import TraceRecord
from bot.admin.page import AdminPage, login_page, trace_page
from bot.http.guards import BODY_SECONDS, Refused, WrongTokens, bounded_body

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """What is served below /admin; `trace_of` finds a trace by its id, `link` is where else it is.

    The token comes in a form or, once, in the address; then a cookie made of it lets in.
    """

    page: AdminPage
    token: SecretStr
    trace_of: Callable[[str], Awaitable[TraceRecord]]
    link: Callable[[str], str] | None = None
    wrong: WrongTokens = field(default_factory=WrongTokens)

    def routes(self) -> list[BaseRoute]:
        """What `bot.http.server.http_app` is to serve."""
        return [
            Route(PATH, self.show, methods=["GET"]),
            Route(PATH, self.log_in, methods=["POST"]),
            Route(f"{PATH}/traces/{{trace_id}}", self.trace, methods=["GET"]),
        ]

    async def show(self, request: Request) -> Response:
        """The page, or the question for the token."""
        if given := request.query_params.get("token"):
            return self._answer(request, given)
        if not self._knows(request):
            return _html(login_page(), 401)
        return _html(await self.page.render())

    async def log_in(self, request: Request) -> Response:
        """The token from the form."""
        try:
            form = "application/x-www-form-urlencoded"
            body = await bounded_body(request, MAX_FORM_BYTES, BODY_SECONDS, form)
        except Refused as refused:
            return _html(login_page(wrong=True), refused.status)
        return self._answer(request, parse_qs(body.decode("latin-1")).get("token", [""])[0])

    async def trace(self, request: Request) -> Response:
        """One trace."""
        if not self._knows(request):
            return RedirectResponse(PATH, 303, HEADERS)
        trace_id = request.path_params["trace_id"]
        try:
            trace = await self.trace_of(trace_id)
        except LookupError:
            return _html(login_page(), 404)
        return _html(trace_page(trace, self.link(trace.trace_id) if self.link else None))

    def _answer(self, request: Request, given: str) -> Response:
        """Let in, by a cookie, whoever has the token; after too many wrong ones nobody is heard."""
        if self.wrong.wait(request):
            return _html(login_page(wrong=True), 429)
        if not _same(given, self.token.get_secret_value()):
            self.wrong.add(request)
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


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _html(page: str, status: int = 200) -> Response:
    return HTMLResponse(page, status, HEADERS)
