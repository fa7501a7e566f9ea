"""The bot over HTTP: Telegram's webhook, health, metrics. TLS and limits are a proxy's in front.

Errors are JSON whose `detail` says what to do. Nothing of a request is logged, neither its body nor
its secret.
"""

import asyncio
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, TypeVar

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.telemetry import TelemetryConfig
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config, Server

from bot.metrics import CONTENT_TYPE, Metrics, Refusal
from bot.updates.accept import Accept, read_update
from db.records import Backlog

T = TypeVar("T")

log = logging.getLogger(__name__)

WEBHOOK_PATH: Final = "/telegram/webhook"
SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
TOKEN_PATHS: Final = ("/api/", "/mcp")
UNAUTHORIZED: Final = "send the token: Authorization: Bearer <API_TOKEN>"
CHECK_SECONDS: Final = 2
"""Seconds for which /readyz and /metrics wait for the database."""
MAX_CONNECTIONS: Final = 256
"""Beyond these a request gets 503."""
REFUSALS: Final[dict[Refusal, tuple[int, str]]] = {
    "secret": (403, "the secret token is missing or wrong"),
    "malformed": (400, "the body is not a JSON object with an integer update_id"),
    "not_accepted": (503, "the update could not be stored, deliver it again"),
}
UNAVAILABLE: Final = "the question could not be worked on, ask again later"
NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
"""Calls are traced as turns; FastAPI's own records would hold what was asked."""


class CannotListen(Exception):
    """The address of the HTTP server is taken or does not exist; its text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Takes the updates that Telegram delivers: 200 says that `accept` has stored one."""

    accept: Accept
    secret: SecretStr
    metrics: Metrics

    async def receive(self, request: Request) -> Response:
        """Take one update. Nothing of the body is read before the secret is right."""
        # Header values are bytes that Starlette reads as Latin-1.
        given = request.headers.get(SECRET_HEADER, "").encode("latin-1")
        if not given or not hmac.compare_digest(given, self.secret.get_secret_value().encode()):
            raise self._refused("secret")
        update = read_update(await request.body())
        if update is None:
            raise self._refused("malformed")
        try:
            await self.accept([update])
        except Exception as error:
            log_type(WEBHOOK_PATH, error)
            raise self._refused("not_accepted") from None
        return Response()

    def _refused(self, reason: Refusal) -> HTTPException:
        self.metrics.webhook_refused(reason)
        return HTTPException(*REFUSALS[reason])


def http_app(
    *,
    metrics: Metrics,
    backlog: Callable[[], Awaitable[Backlog]],
    webhook: Webhook | None = None,
    routers: Sequence[APIRouter] = (),
    routes: Sequence[BaseRoute] = (),
    token: SecretStr | None = None,
) -> FastAPI:
    """Return the app of everything that is served over HTTP.

    Updates are taken only with a `webhook`. Everything in `TOKEN_PATHS` needs the `token`.
    """
    pages = APIRouter(include_in_schema=False)

    @pages.get("/healthz")
    async def healthz() -> Response:
        """Tell that the process is alive."""
        return PlainTextResponse("alive\n")

    @pages.get("/readyz")
    async def readyz() -> Response:
        """Tell whether updates can be taken: 200, or 503 if the check fails or takes too long."""
        if await call_within_limit("readiness", backlog):
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready\n", status_code=503)

    @pages.get("/metrics")
    async def show_metrics() -> Response:
        """Return the metrics, also when the backlog cannot be read, for then they matter most."""
        metrics.backlog(await call_within_limit("the backlog", backlog))
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    if webhook is not None:
        pages.post(WEBHOOK_PATH)(webhook.receive)
    app = app_of([pages, *routers], routes)
    if token is not None:
        app.add_middleware(RequireToken, token=token)
    return app


def app_of(routers: Sequence[APIRouter], routes: Sequence[BaseRoute] = ()) -> FastAPI:
    """Return an app with these routes, which answers errors in JSON."""
    app = FastAPI(
        routes=[*routes],
        title="Sommelier",
        version=version("sommelier"),
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        telemetry=NO_TELEMETRY,
        exception_handlers={Exception: show_failure},
    )
    for router in routers:
        app.include_router(router)
    return app


class RequireToken:
    """Refuses requests without the bearer token, before anything of their body is read."""

    def __init__(self, app: ASGIApp, token: SecretStr) -> None:
        self._app = app
        self._token = token.get_secret_value().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        app: ASGIApp = self._app
        if scope["type"] == "http" and scope["path"].startswith(TOKEN_PATHS):
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            # Header values are bytes that Starlette reads as Latin-1.
            is_right = hmac.compare_digest(given.strip().encode("latin-1"), self._token)
            if scheme.lower() != "bearer" or not is_right:
                app = JSONResponse({"detail": UNAUTHORIZED}, 401, {"www-authenticate": "Bearer"})
        await app(scope, receive, send)


async def call_within_limit(name: str, check: Callable[[], Awaitable[T]]) -> T | None:
    """Return what `check` returns, None if it fails or takes more than `CHECK_SECONDS`."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check()
    except Exception as error:
        log.warning("HTTP: %s could not be read (%s)", name, type(error).__name__)
        return None


async def show_failure(request: Request, error: Exception) -> JSONResponse:
    """Return 503; the log tells the type alone."""
    log_type(request.url.path, error)
    return JSONResponse({"detail": UNAVAILABLE}, 503)


def log_type(path: str, error: Exception) -> None:
    """Log the type of an error: the text of a database error holds what was asked."""
    log.error("%s failed with %s", path, type(error).__name__)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any that is free.

    Raises:
        CannotListen: the address is taken or does not exist.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CannotListen(
            f"Cannot listen on {host} port {port}: {error.strerror}. Stop what listens there, or "
            "choose another address."
        ) from None


async def serve_http(
    app: FastAPI, listener: socket.socket, stop: asyncio.Event, *, finish_seconds: int = 4
) -> None:
    """Serve `app` on a listening socket until `stop` is set; the socket is closed then.

    Returns when every request is answered; those that take more than `finish_seconds` are cut off
    with a 500. Signals are left to the caller.
    """
    server = StoppableServer(app, stop, finish_seconds)
    log.info("HTTP on %s:%s", *listener.getsockname()[:2])
    try:
        await server.serve([listener])
    except asyncio.CancelledError:
        if server.started:
            await server.shutdown([listener])
        raise
    finally:
        # Uvicorn cancels what takes too long, but does not wait until it has ended.
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
        listener.close()


class StoppableServer(Server):
    """Uvicorn's server inside a running program: an event stops it, and it catches no signals."""

    capture_signals = nullcontext  # type: ignore[assignment]

    def __init__(self, app: FastAPI, stop: asyncio.Event, finish_seconds: int) -> None:
        super().__init__(
            Config(
                app,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # tracebacks hold what was asked; our handlers log the type
                access_log=False,
                limit_concurrency=MAX_CONNECTIONS,
                server_header=False,
                timeout_keep_alive=75,  # longer than a proxy's 60: who opens is to close
                timeout_graceful_shutdown=finish_seconds,
            )
        )
        self._stop = stop

    async def on_tick(self, counter: int) -> bool:
        """Tell whether to exit; uvicorn asks ten times a second."""
        return await super().on_tick(counter) or self._stop.is_set()
