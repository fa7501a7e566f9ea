"""What strangers may take of the HTTP server: connections, time for a header, wrong tokens."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Final

from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

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
