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
from typing import Final

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.telemetry import TelemetryConfig
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config, Server

from bot.metrics import MEDIA_TYPE, Metrics
from bot.telegram.connection import Accept, read_update
from db.repositories.inbox import Backlog

log = logging.getLogger(__name__)

WEBHOOK_PATH: Final = "/telegram/webhook"
SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
TOKEN_PATHS: Final = ("/api/", "/mcp")
UNAUTHORIZED: Final = "send the token: Authorization: Bearer <API_TOKEN>"
UNAVAILABLE: Final = "the request could not be worked on, try again later"
CHECK_SECONDS: Final = 2
"""Seconds for which /readyz and /metrics wait for the database."""
MAX_CONNECTIONS: Final = 256
"""Beyond these a request gets 503."""
NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
"""Calls are traced as turns; FastAPI's own records would hold what was asked."""


class CannotListen(Exception):
    """The address of the HTTP server is taken or does not exist; its text says which and why."""


def webhook(accept: Accept, secret: SecretStr) -> APIRouter:
    """Return the route of Telegram's webhook: 200 says that `accept` has stored an update."""
    router = APIRouter(include_in_schema=False)

    @router.post(WEBHOOK_PATH)
    async def receive(request: Request) -> Response:
        """Take one update. Nothing of the body is read before the secret is right."""
        if not is_secret(request.headers.get(SECRET_HEADER, ""), secret):
            raise HTTPException(403, "the secret token is missing or wrong")
        update = read_update(await request.body())
        if update is None:
            raise HTTPException(400, "the body is not a JSON object with an integer update_id")
        await accept([update])
        return Response()

    return router


def is_secret(given: str, secret: SecretStr) -> bool:
    """Return whether a header's value, which Starlette reads as Latin-1, is the secret."""
    return hmac.compare_digest(given.encode("latin-1"), secret.get_secret_value().encode())


def pages(metrics: Metrics, read_backlog: Callable[[], Awaitable[Backlog]]) -> APIRouter:
    """Return the routes of health and metrics."""
    router = APIRouter(include_in_schema=False)

    async def backlog() -> Backlog | None:
        """Return the backlog, None if it cannot be read in time."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return await read_backlog()
        except Exception as error:
            log.warning("HTTP: the backlog could not be read (%s)", type(error).__name__)
            return None

    @router.get("/healthz")
    async def healthz() -> Response:
        """Tell that the process is alive."""
        return PlainTextResponse("alive\n")

    @router.get("/readyz")
    async def readyz() -> Response:
        """Tell whether updates can be taken: 200, else 503."""
        if await backlog() is None:
            return PlainTextResponse("not ready\n", 503)
        return PlainTextResponse("ready\n")

    @router.get("/metrics")
    async def show_metrics() -> Response:
        """Return the metrics, also when the backlog cannot be read, for then they matter most."""
        metrics.set_backlog(await backlog())
        return Response(metrics.to_text(), media_type=MEDIA_TYPE)

    return router


def http_app(
    routers: Sequence[APIRouter], routes: Sequence[BaseRoute] = (), token: SecretStr | None = None
) -> FastAPI:
    """Return an app with these routes, which answers errors in JSON.

    Everything in `TOKEN_PATHS` needs the `token`.
    """
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
    if token is not None:
        app.add_middleware(RequireToken, token=token)
    return app


@dataclass(frozen=True, slots=True)
class RequireToken:
    """Refuses requests without the bearer token, before anything of their body is read."""

    app: ASGIApp
    token: SecretStr

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        app = self.app
        if scope["type"] == "http" and scope["path"].startswith(TOKEN_PATHS):
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not is_secret(given.strip(), self.token):
                app = JSONResponse({"detail": UNAUTHORIZED}, 401, {"www-authenticate": "Bearer"})
        await app(scope, receive, send)


async def show_failure(request: Request, error: Exception) -> JSONResponse:
    """Return 503; log the type alone, for the text of a database error holds what was asked."""
    log.error("%s failed with %s", request.url.path, type(error).__name__)
    return JSONResponse({"detail": UNAVAILABLE}, 503)


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


async def serve_http(app: FastAPI, listener: socket.socket, *, finish_seconds: int = 4) -> None:
    """Serve `app` on a listening socket until cancelled; the socket is closed then.

    A cancelled server answers the requests that it has; those that take more than `finish_seconds`
    are cut off with a 500. Signals are left to the caller.
    """
    server = Server(
        Config(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # tracebacks hold what was asked; our handler logs the type
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            server_header=False,
            timeout_keep_alive=75,  # longer than a proxy's 60: who opens is to close
            timeout_graceful_shutdown=finish_seconds,
        )
    )
    server.capture_signals = nullcontext  # type: ignore[assignment]
    log.info("HTTP on %s:%s", *listener.getsockname()[:2])
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
        # Uvicorn cancels what takes too long, but does not wait until it has ended.
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
