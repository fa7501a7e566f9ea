"""The bot over HTTP: Telegram's webhook, health, metrics. TLS is a proxy's in front of it.

Of what a request holds nothing is ever logged or sent back: neither its body nor its secret.
"""

import asyncio
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from uvicorn import Config, Server

from agent.repositories import Backlog
from bot.http.guards import (
    BODY_SECONDS,
    MAX_BODY_BYTES,
    MOST_CONNECTIONS,
    ClosingResponse,
    GuardedProtocol,
    Refused,
    WrongTokens,
    bounded_body,
)
from bot.metrics import CONTENT_TYPE, Metrics
from bot.updates.accept import Accept, update_id_of, updates_in

T = TypeVar("T")

log = logging.getLogger(__name__)


WEBHOOK_PATH: Final = "/telegram/webhook"
SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name

CHECK_SECONDS: Final = 2
"""How long /readyz and /metrics wait for what they ask."""


class CannotListen(Exception):
    """The address of the HTTP server is taken or does not exist; its text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where Telegram delivers updates: each is handed to `accept`, 200 says that it returned.

    A body may have `max_body_bytes`, and take `body_seconds` to arrive. The right secret is let in
    whoever else sends wrong ones from the same address: that may be a proxy's.
    """

    accept: Accept
    secret: SecretStr
    metrics: Metrics
    max_body_bytes: int = MAX_BODY_BYTES
    body_seconds: float = BODY_SECONDS
    wrong: WrongTokens = field(default_factory=WrongTokens)

    async def receive(self, request: Request) -> Response:
        """Take one update; 200 means that it is accepted."""
        try:
            self._check_secret(request)
            body = await bounded_body(request, self.max_body_bytes, self.body_seconds)
            await self._accept(parse_update(body))
        except Refused as refused:
            self.metrics.webhook_refused(refused.reason)
            if refused.reason != "too_many":
                log.warning("The webhook refused a request: %s", refused)
            return ClosingResponse(f"{refused}\n", refused.status)
        return Response()

    def _check_secret(self, request: Request) -> None:
        # Header values are bytes that Starlette reads as Latin-1; this is the way back.
        given = request.headers.get(SECRET_HEADER, "").encode("latin-1")
        if not given or not hmac.compare_digest(given, self.secret.get_secret_value().encode()):
            limited = self.wrong.wait(request)
            self.wrong.add(request)
            raise Refused("too_many" if limited else "secret")

    async def _accept(self, update: dict[str, object]) -> None:
        try:
            await self.accept([update])
        except Exception as error:
            # The type alone: the text of a database error holds what was to be stored.
            log.error("Accepting an update failed with %s", type(error).__name__)  # noqa: TRY400
            raise Refused("not_accepted") from None


def parse_update(body: bytes) -> dict[str, object]:
    """The update that `body` holds.

    Raises:
        Refused: it is not a JSON object with an integer `update_id`.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Refused("malformed") from None
    found = updates_in(text)
    update = found[0] if len(found) == 1 else None
    if not isinstance(update, dict) or update_id_of(update) is None:
        raise Refused("malformed")
    return update


def http_app(
    *,
    metrics: Metrics,
    backlog: Callable[[], Awaitable[Backlog]],
    webhook: Webhook | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """Everything that is served over HTTP, and `routes`.

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
    """The process is alive."""
    return PlainTextResponse("alive\n")


async def readyz(backlog: Callable[[], Awaitable[Backlog]], _: Request) -> Response:
    """Whether updates can be taken: 200 or 503; a check that fails or takes too long is a no."""
    if await _within_limit("readiness", backlog):
        return PlainTextResponse("ready\n")
    return PlainTextResponse("not ready\n", status_code=503)


async def show_metrics(
    metrics: Metrics, backlog: Callable[[], Awaitable[Backlog]], _: Request
) -> Response:
    """The metrics; without the backlog when it cannot be read, for then they matter most."""
    metrics.backlog(await _within_limit("the backlog", backlog))
    return Response(metrics.text(), media_type=CONTENT_TYPE)


async def _within_limit(what: str, ask: Callable[[], Awaitable[T]]) -> T | None:
    """What `ask` returns, None if it fails or takes more than `CHECK_SECONDS`."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await ask()
    except Exception as error:
        log.warning("HTTP: %s could not be found out (%s)", what, type(error).__name__)
        return None


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free.

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
    app: Starlette,
    *,
    host: str,
    port: int,
    stop: asyncio.Event,
    sockets: Sequence[socket.socket] | None = None,
    finish_seconds: int = 4,
    trusted_proxies: str = "127.0.0.1",
) -> None:
    """Serve `app` on `sockets`, or on `host` and `port`, until `stop` is set.

    Of `trusted_proxies` (addresses and networks, with commas) it is believed whom they speak for.

    Returns when every request is answered; those that take more than `finish_seconds` are cut off
    with a 500. The sockets are closed then, when cancelled too. Signals are left to the caller.

    Raises:
        CannotListen: the address is taken or does not exist.
    """
    listeners = [listen(host, port)] if sockets is None else list(sockets)
    server = StoppableServer(app, stop, finish_seconds, trusted_proxies)
    log.info("HTTP on %s", ", ".join("{}:{}".format(*each.getsockname()) for each in listeners))
    try:
        await server.serve(listeners)
    except asyncio.CancelledError:
        if server.started:
            await server.shutdown(listeners)
        raise
    finally:
        # Uvicorn cancels what takes too long, but does not wait until it has ended.
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
        for each in listeners:
            each.close()


class StoppableServer(Server):
    """Uvicorn's server inside a running program: an event stops it, and it catches no signals."""

    def __init__(
        self, app: Starlette, stop: asyncio.Event, finish_seconds: int, trusted_proxies: str
    ) -> None:
        super().__init__(
            Config(
                app,
                http=GuardedProtocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="error",  # below, strangers write the log
                access_log=False,
                forwarded_allow_ips=trusted_proxies,
                limit_concurrency=MOST_CONNECTIONS,
                server_header=False,
                timeout_keep_alive=75,  # longer than a proxy's 60: who opens is to close
                timeout_graceful_shutdown=finish_seconds,
            )
        )
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Whether to exit; asked ten times a second."""
        return await super().on_tick(counter) or self._stop.is_set()
