"""The bot over HTTP: Telegram's webhook, health, metrics. TLS and limits are a proxy's in front.

Nothing of a request is logged or sent back: neither its body nor its secret.
"""

import asyncio
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from uvicorn import Config, Server

from bot.metrics import CONTENT_TYPE, Metrics, Refusal
from bot.updates.accept import Accept, read_update
from db.records import Backlog

T = TypeVar("T")

log = logging.getLogger(__name__)

WEBHOOK_PATH: Final = "/telegram/webhook"
SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
CHECK_SECONDS: Final = 2
"""How long /readyz and /metrics wait for the database."""
MAX_CONNECTIONS: Final = 256
"""Beyond these a request gets 503."""
REFUSALS: Final[dict[Refusal, tuple[int, str]]] = {
    "secret": (403, "the secret token is missing or wrong"),
    "malformed": (400, "the body is not a JSON object with an integer update_id"),
    "not_accepted": (503, "the update could not be stored, deliver it again"),
}


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
            # The type alone: the text of a database error holds what was to be stored.
            log.error("Accepting an update failed with %s", type(error).__name__)  # noqa: TRY400
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
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """Return the app of everything that is served over HTTP, `routes` included.

    POST /telegram/webhook exists only with a `webhook`. GET /healthz: the process is alive. GET
    /readyz: 200 if the `backlog` can be read, else 503. GET /metrics: both in Prometheus' text
    format.
    """
    pages: list[BaseRoute] = [
        Route("/healthz", healthz),
        Route("/readyz", partial(readyz, backlog)),
        Route("/metrics", partial(show_metrics, metrics, backlog)),
        *routes,
    ]
    if webhook is not None:
        pages.append(Route(WEBHOOK_PATH, webhook.receive, methods=["POST"]))
    return Starlette(routes=pages)


async def healthz(_: Request) -> Response:
    """Tell that the process is alive."""
    return PlainTextResponse("alive\n")


async def readyz(backlog: Callable[[], Awaitable[Backlog]], _: Request) -> Response:
    """Tell whether updates can be taken: 200, or 503 if the check fails or takes too long."""
    if await call_within_limit("readiness", backlog):
        return PlainTextResponse("ready\n")
    return PlainTextResponse("not ready\n", status_code=503)


async def show_metrics(
    metrics: Metrics, backlog: Callable[[], Awaitable[Backlog]], _: Request
) -> Response:
    """Return the metrics; without the backlog when it cannot be read, for then they matter most."""
    metrics.backlog(await call_within_limit("the backlog", backlog))
    return Response(metrics.text(), media_type=CONTENT_TYPE)


async def call_within_limit(name: str, check: Callable[[], Awaitable[T]]) -> T | None:
    """Return what `check` returns, None if it fails or takes more than `CHECK_SECONDS`."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check()
    except Exception as error:
        log.warning("HTTP: %s could not be read (%s)", name, type(error).__name__)
        return None


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
    app: Starlette, listener: socket.socket, stop: asyncio.Event, *, finish_seconds: int = 4
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

    def __init__(self, app: Starlette, stop: asyncio.Event, finish_seconds: int) -> None:
        config = Config(
            app,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",  # tracebacks hold what was asked; our handlers log the type
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            server_header=False,
            timeout_keep_alive=75,  # longer than a proxy's 60: who opens is to close
            timeout_graceful_shutdown=finish_seconds,
        )
        super().__init__(config)
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Tell whether to exit; uvicorn asks ten times a second."""
        return await super().on_tick(counter) or self._stop.is_set()
