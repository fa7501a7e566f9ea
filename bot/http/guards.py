"""What strangers may take of the HTTP server: connections, time for a header, wrong tokens, bodies.

Of what a request holds nothing is ever logged or sent back.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.metrics import Refusal

MOST_CONNECTIONS: Final = 256
"""Beyond these a request gets 503; beyond twice as many, a connection is dropped unread."""

HEADER_SECONDS: Final = 10.0
"""How long a request's header may take, from its first byte or from the connection on."""

MOST_ADDRESSES: Final = 10_000


@dataclass(slots=True)
class WrongTokens:
    """Counts the wrong tokens of each address: who sent `most` in `seconds` has to wait.

    Of IPv6 a network of 64 bits counts as one address, for one person has all of it.
    """

    most: int = 10
    seconds: float = 60
    now: Callable[[], float] = time.monotonic
    _counted: OrderedDict[str, tuple[float, int]] = field(default_factory=OrderedDict)

    def wait(self, request: Request) -> int:
        """Return the seconds until whoever asks is listened to again; 0: they are now."""
        until, count = self._counted.get(_network(request), (0.0, 0))
        return max(0, ceil(until - self.now())) if count >= self.most else 0

    def add(self, request: Request) -> None:
        """Count one wrong token."""
        network, now = _network(request), self.now()
        until, count = self._counted.pop(network, (0.0, 0))
        self._counted[network] = (until, count + 1) if until > now else (now + self.seconds, 1)
        while len(self._counted) > MOST_ADDRESSES:
            self._counted.popitem(last=False)


def _network(request: Request) -> str:
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host[:64]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False))
    return host


class GuardedProtocol(H11Protocol):
    """Uvicorn's protocol, which waits for a header for ever, with a limit to that."""

    _giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are far too many."""
        super().connection_made(transport)
        if len(self.connections) > 2 * MOST_CONNECTIONS:
            transport.abort()
        else:
            self._wait_for_header()

    def data_received(self, data: bytes) -> None:
        """Read on; between requests the next one's header has to arrive in time."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_header()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_for_header(self) -> None:
        if self._giving_up is None:
            self._giving_up = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


MAX_BODY_BYTES: Final = 1_000_000
BODY_SECONDS: Final = 10.0

LINGER_SECONDS: Final = 1
"""How long the rest of a refused body is thrown away before the connection is closed."""

REFUSALS: Final[dict[Refusal, tuple[int, str]]] = {
    "secret": (403, "the secret token is missing or wrong"),
    "too_many": (429, "the secret token was wrong too often"),
    "content_type": (415, "the content type must be application/json"),
    "too_large": (413, "the body is too large"),
    "too_slow": (408, "the body did not arrive in time"),
    "cut_off": (400, "the connection ended before the body did"),
    "malformed": (400, "the body is not a JSON object with an integer update_id"),
    "not_accepted": (503, "the update could not be stored, deliver it again"),
}


class Refused(Exception):
    """A request is not taken, for `reason`."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(REFUSALS[reason][1])
        self.reason = reason

    @property
    def status(self) -> int:
        """The HTTP status that says so."""
        return REFUSALS[self.reason][0]


async def bounded_body(
    request: Request, max_bytes: int, seconds: float, kind: str = "application/json"
) -> bytes:
    """The bytes of a body that says it is of a kind, at most `max_bytes`, here within `seconds`.

    Raises:
        Refused: it says it is something else, is too large, too slow, or cut off.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0]
    if media_type.strip().lower() != kind:
        raise Refused("content_type")
    if int(request.headers.get("content-length", 0)) > max_bytes:
        raise Refused("too_large")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds), aclosing(request.stream()) as parts:
            async for part in parts:
                body += part
                if len(body) > max_bytes:
                    raise Refused("too_large")
    except TimeoutError:
        raise Refused("too_slow") from None
    except ClientDisconnect:
        raise Refused("cut_off") from None
    return bytes(body)


class ClosingResponse(Response):
    """An answer given before the request was read to its end; the connection is closed after it.

    Closed at once, the connection would be reset, and the client might never see the answer; left
    open, the body would have to be read to its end, however long. So what still comes is thrown
    away, for `LINGER_SECONDS` at most.
    """

    def __init__(
        self,
        content: str,
        status: int,
        media_type: str = "text/plain",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        closing = {**(headers or {}), "connection": "close"}
        super().__init__(content, status, closing, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, linger, close."""
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b""})
