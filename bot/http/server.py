"""Serve HTTP: Telegram's webhook, health, metrics, and the routers of other modules.

A proxy in front of this server must provide TLS and rate limits. Errors are JSON, and their
`detail` says what to do. Neither bodies nor secrets of requests are logged.
"""

import asyncio
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.telemetry import TelemetryConfig
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config, Server

from agent.size_limits import NAME_CHARS
from agent.text import sanitize
from bot.metrics import MEDIA_TYPE, Metrics
from bot.telegram.connection import AcceptUpdates, read_update
from db.repositories.inbox import Backlog

log = logging.getLogger(__name__)

WEBHOOK_PATH: Final = "/telegram/webhook"
SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
TOKEN_PATHS: Final = ("/api/", "/mcp")
UNAUTHORIZED: Final = "send the token: Authorization: Bearer <API_TOKEN>"
FOREIGN_PAGE: Final = "requests of web pages from other addresses are refused"
# The limits of an answer to an invalid request, which may have thousands of mistakes:
MAX_PROBLEMS: Final = 20
MAX_PROBLEM_CHARS: Final = 300
UNAVAILABLE: Final = "the request could not be worked on, try again later"
BACKLOG_SECONDS: Final = 2
"""The time limit for reading the backlog from the database."""
MAX_CONNECTIONS: Final = 256
"""How many connections may be open. Requests over further ones are answered with 503."""
NO_TELEMETRY: Final[TelemetryConfig] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
}
"""FastAPI's telemetry is off: it would contain the texts of users. Turns are traced instead."""


class CannotListen(Exception):
    """The address of the HTTP server is taken or does not exist.

    The text of the error says which address it is, and why it cannot be used.
    """


def build_webhook_router(accept: AcceptUpdates, secret: SecretStr) -> APIRouter:
    """Return the route of Telegram's webhook.

    The route answers 200 when `accept` has stored an update.
    """
    router = APIRouter(include_in_schema=False)

    @router.post(WEBHOOK_PATH)
    async def receive(request: Request) -> Response:
        """Accept an update. The body is not read unless the secret is right."""
        if not matches_secret(request.headers.get(SECRET_HEADER, ""), secret):
            raise HTTPException(403, "the secret token is missing or wrong")
        update = read_update(await request.body())
        if update is None:
            raise HTTPException(
                400, "the body is not a JSON object with an integer update_id"
            )
        await accept([update])
        return Response()

    return router


def matches_secret(value: str, secret: SecretStr) -> bool:
    """Return whether the value of a header is the secret."""
    expected = secret.get_secret_value().encode()
    # Starlette decodes headers as Latin-1.
    return hmac.compare_digest(value.encode("latin-1"), expected)


def build_monitoring_router(
    metrics: Metrics, read_backlog: Callable[[], Awaitable[Backlog]]
) -> APIRouter:
    """Return the routes for health and metrics."""
    router = APIRouter(include_in_schema=False)

    @router.get("/healthz")
    async def show_health() -> Response:
        """Answer 200 while the process is alive."""
        return PlainTextResponse("alive\n")

    @router.get("/readyz")
    async def show_readiness() -> Response:
        """Answer 200 if updates can be stored, or else 503."""
        if await _read_in_time(read_backlog) is None:
            return PlainTextResponse("not ready\n", 503)
        return PlainTextResponse("ready\n")

    @router.get("/metrics")
    async def show_metrics() -> Response:
        """Return the metrics, even if the backlog cannot be read. Then they matter most."""
        metrics.set_backlog(await _read_in_time(read_backlog))
        return Response(metrics.to_text(), media_type=MEDIA_TYPE)

    return router


async def _read_in_time(
    read_backlog: Callable[[], Awaitable[Backlog]],
) -> Backlog | None:
    """Return the backlog, or None if it cannot be read in time."""
    try:
        async with asyncio.timeout(BACKLOG_SECONDS):
            return await read_backlog()
    except Exception as error:
        log.warning("HTTP: the backlog could not be read (%s)", type(error).__name__)
        return None


def build_http_app(
    routers: Sequence[APIRouter],
    routes: Sequence[BaseRoute] = (),
    token: SecretStr | None = None,
) -> FastAPI:
    """Return an app with these routes. The app answers errors in JSON.

    If there is a `token`, requests to `TOKEN_PATHS` must send it.
    """
    app = FastAPI(
        routes=[*routes],
        title="Sommelier",
        version=version("sommelier"),
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        telemetry=NO_TELEMETRY,
        # A redirect would lead to any host that the request names.
        redirect_slashes=False,
        exception_handlers={
            Exception: handle_error,
            RequestValidationError: handle_invalid_request,
        },
    )
    for router in routers:
        app.include_router(router)
    if token is not None:
        app.add_middleware(RequireToken, token=token)
    return app


def _is_of_another_page(headers: Headers) -> bool:
    """Return whether a browser makes a request on behalf of a page from another address."""
    # A client that is no browser sends no origin.
    origin = headers.get("origin")
    if origin is None:
        return False
    return urlsplit(origin).netloc != headers.get("host")


@dataclass(frozen=True, slots=True)
class RequireToken:
    """Middleware that refuses requests without the bearer token, without reading their body."""

    app: ASGIApp
    token: SecretStr

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the app, or answer 401 or 403."""
        refusal: JSONResponse | None = None
        if scope["type"] == "http" and scope["path"].startswith(TOKEN_PATHS):
            refusal = self._find_refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _find_refusal(self, headers: Headers) -> JSONResponse | None:
        """Return the response that refuses a request with these headers, or None."""
        authorization = headers.get("authorization", "")
        scheme, _, token = authorization.partition(" ")
        is_bearer = scheme.lower() == "bearer"
        if not is_bearer or not matches_secret(token.strip(), self.token):
            challenge = {"www-authenticate": "Bearer"}
            return JSONResponse({"detail": UNAUTHORIZED}, 401, challenge)
        if _is_of_another_page(headers):
            return JSONResponse({"detail": FOREIGN_PAGE}, 403)
        return None


async def handle_invalid_request(request: Request, error: Exception) -> JSONResponse:
    """Answer 422, and say what is wrong and where.

    The answer does not repeat the input, which may be long or unprintable.
    """
    problems: Sequence[Any] = ()
    if isinstance(error, RequestValidationError):
        problems = error.errors()
    shown = []
    for problem in problems[:MAX_PROBLEMS]:
        place = [sanitize(str(key), NAME_CHARS) for key in problem["loc"]]
        message = sanitize(problem["msg"], MAX_PROBLEM_CHARS)
        shown.append({"type": problem["type"], "loc": place, "msg": message})
    return JSONResponse({"detail": shown}, 422)


async def handle_error(request: Request, error: Exception) -> JSONResponse:
    """Answer 503, and log only the type of the error: its message may contain a user's text."""
    log.error("%s failed with %s", request.url.path, type(error).__name__)
    return JSONResponse({"detail": UNAVAILABLE}, 503)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 selects a free port.

    Raises:
        CannotListen: the address is taken or does not exist.
    """
    family = socket.AF_INET
    if ":" in host:
        family = socket.AF_INET6
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CannotListen(
            f"Cannot listen on {host} port {port}: {error.strerror}. Stop what listens there, or "
            "choose another address."
        ) from None


async def serve_http(
    app: FastAPI, listener: socket.socket, *, finish_seconds: int = 4
) -> None:
    """Serve `app` on a listening socket until cancelled, then close the socket.

    After a cancellation the server finishes its current requests. Requests that take longer than
    `finish_seconds` are aborted with status 500. Signals are left to the caller.
    """
    server = Server(_configure(app, finish_seconds))
    # The server must not handle signals.
    server.capture_signals = nullcontext  # type: ignore[assignment]
    host, port, *_ = listener.getsockname()
    log.info("HTTP on %s:%s", host, port)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        # A cancelled server would not finish its requests.
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
        # Uvicorn cancels the requests that take too long, but does not wait until they end.
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)


def _configure(app: FastAPI, finish_seconds: int) -> Config:
    """Return the configuration of a server. See `serve_http`."""
    return Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        # Tracebacks contain texts of users. `handle_error` logs what may be logged.
        log_level="critical",
        access_log=False,
        limit_concurrency=MAX_CONNECTIONS,
        server_header=False,
        # This is longer than the usual 60 s of a proxy, so the proxy closes an idle connection. If
        # this server closed it, the proxy might send a request at the same moment.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=finish_seconds,
    )
