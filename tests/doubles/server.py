"""Run the HTTP servers of the doubles, on loopback, in a thread each."""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

JsonObject = dict[str, Any]
"""A decoded JSON object."""
ACCEPT_ITERATIONS = 3
"""Iterations of the event loop until an accepted connection is in `ServerState.connections`."""


class LoopbackServer:
    """A server of routes on an ephemeral port of 127.0.0.1 between `start` and `stop`.

    It uses uvicorn's protocol without its server, whose ticks of 100 ms would slow down each test.
    As a context manager it raises errors of handlers at its end, so that a bug of a double is not
    mistaken for a network error.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.errors: list[Exception] = []
        self.base_url = ""
        self._starlette = Starlette(routes=routes)
        self._state = ServerState()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listener: asyncio.Server | None = None
        self._stopping = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self.errors:
            raise RuntimeError(f"{type(self).__name__} itself failed") from self.errors[
                0
            ]

    def start(self) -> Self:
        self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, daemon=True)
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._listen(loop), loop).result(
            timeout=30
        )
        self.base_url = f"http://127.0.0.1:{port}"
        return self

    def stop(self) -> None:
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()
        self._loop = self._thread = None

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Run `callback` in the thread of the server, if it runs; callable from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(callback)

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> int:
        options: JsonObject = {
            "log_config": None,
            "access_log": False,
            "proxy_headers": False,
        }
        options |= {"interface": "asgi3", "ws": "none", "lifespan": "off"}
        config = Config(self._serve, timeout_keep_alive=3600, **options)
        config.load()

        def make_protocol() -> H11Protocol:
            state: JsonObject = {}
            state["connection"] = H11Protocol(config, self._state, state, loop)
            return state["connection"]  # type: ignore[no-any-return]

        self._listener = await loop.create_server(make_protocol, "127.0.0.1", 0)
        return int(self._listener.sockets[0].getsockname()[1])

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._starlette(scope, receive, send)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        except Exception as error:
            self.errors.append(error)
            raise

    async def _close(self) -> None:
        assert self._listener is not None
        self._stopping = True
        # A connection that is being accepted would stay open if the listener were closed first.
        for listening_socket in self._listener.sockets:
            asyncio.get_running_loop().remove_reader(listening_socket.fileno())
        for _ in range(ACCEPT_ITERATIONS):
            await asyncio.sleep(0)
        self._listener.close()
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._listener.wait_closed()
        self._stopping = False


def transport_of(request: Request) -> asyncio.Transport:
    connection: H11Protocol = request.scope["state"]["connection"]
    return connection.transport


def gone(request: Request) -> bool:
    return transport_of(request).is_closing()


async def hang_up(request: Request, *, reset: bool = False) -> Response:
    """Close the connection without a further response, by RST instead of FIN if `reset`.

    Return a response for the route, which is not sent.
    """
    transport = transport_of(request)
    if reset:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        transport.abort()
    else:
        transport.close()
    while (await request.receive())["type"] != "http.disconnect":
        pass
    return Response()


class HalfResponse(Response):
    """A response that ends in the middle of its body: the connection is closed."""

    def __init__(
        self, request: Request, body: bytes, headers: Mapping[str, str]
    ) -> None:
        super().__init__(body, headers=dict(headers))
        self.request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {
            "type": "http.response.start",
            "status": 200,
            "headers": self.raw_headers,
        }
        half = bytes(self.body)[: len(self.body) // 2]
        await send(head)
        await send({"type": "http.response.body", "body": half, "more_body": True})
        await hang_up(self.request)


async def eventually(
    condition: Callable[[], bool],
    *,
    seconds: float = 60,
    otherwise: Callable[[], str] = str,
) -> None:
    """Wait until `condition` is true; after `seconds`, fail with the text of `otherwise`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {otherwise()}")
        await asyncio.sleep(0.005)
