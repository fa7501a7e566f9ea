"""An HTTP client whose requests end in time, also when a server sends a byte now and then.

httpx limits the time between two bytes only, and it is nobody's but the outbox's thread that waits.
"""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import httpx

OPENED: Final = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")


class BoundedClient:
    """Posts over one connection at a time; a request takes `seconds` at most."""

    def __init__(self, seconds: float, base_url: str, headers: Mapping[str, str]) -> None:
        self._seconds = seconds
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=seconds)
        self._socket: socket.socket | None = None
        self._over = threading.Event()

    def post(self, path: str, **request: Any) -> httpx.Response:
        """The response. Raises httpx.HTTPError, `httpx.ReadTimeout` when the time is over."""
        self._over.clear()
        timer = threading.Timer(self._seconds, self._cut)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread can start while the interpreter exits
            timer.start()
        try:
            response = self._http.post(path, extensions={"trace": self._seen}, **request)
        except httpx.HTTPError:
            if not self._over.is_set():
                raise
        finally:
            timer.cancel()
        if self._over.is_set():
            raise httpx.ReadTimeout(f"no whole answer within {self._seconds:g} s")
        return response

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _seen(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(OPENED):
            self._socket = info["return_value"].get_extra_info("socket")

    def _cut(self) -> None:
        """End the connection under whoever reads from it."""
        self._over.set()
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
