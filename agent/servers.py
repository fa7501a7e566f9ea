"""Call servers: retry failed calls with exponential backoff, and limit the size of answers."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pydantic import SecretStr

if TYPE_CHECKING:
    from httpx2 import Response

log = logging.getLogger(__name__)

R = TypeVar("R")
Sleep = Callable[[float], Awaitable[object]]
ShouldRetry = Callable[[Exception], bool | float]
"""Returns whether another try may help after an error.

A number is the seconds to wait before it.
"""


MAX_DOUBLINGS: Final = 60
"""Enough for any `max_wait`. Without a limit, the power would overflow after many failures."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `first_wait` seconds, doubled after every failure up to `max_wait`.

    Each wait is cut by up to a half at random, so that clients do not all retry at once.
    """

    first_wait: float = 0.5
    max_wait: float = 20.0

    def draw_wait(self, failures: int) -> float:
        """Return the seconds to wait after some consecutive failures (`failures` >= 1)."""
        doublings = min(failures - 1, MAX_DOUBLINGS)
        wait = min(self.first_wait * 2.0**doublings, self.max_wait)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - no secret depends on it


BACKOFF: Final = Backoff()
OPENAI_URL: Final = "https://api.openai.com/v1"
TRANSIENT_STATUSES: Final = frozenset({408, 409, 425, 429})
"""The statuses below 500 after which another try may help."""


async def retry(
    call: Callable[[], Awaitable[R]],
    *,
    max_tries: int | None,
    should_retry: ShouldRetry = lambda error: True,
    backoff: Backoff = BACKOFF,
    sleep: Sleep = asyncio.sleep,
    description: str = "",
) -> R:
    """Return the result of `call`, which is called up to `max_tries` times, or without a limit.

    Raises the last error, or the first one that should not be retried. Failures are logged if the
    call has a `description`, with the type of the error only: its text may contain a secret.
    """
    failures = 0
    while True:
        try:
            return await call()
        except Exception as error:
            failures += 1
            decision = should_retry(error)
            if decision is False or failures == max_tries:
                raise
            if decision is True:
                wait = backoff.draw_wait(failures)
            else:
                # The error said how long to wait.
                wait = decision
            if description:
                error_name = type(error).__name__
                log.warning(
                    "%s failed (%s), next try in %.1f s", description, error_name, wait
                )
        await sleep(wait)


def is_transient_status(status: int) -> bool:
    """Return whether another try may help after this HTTP status."""
    return status >= 500 or status in TRANSIENT_STATUSES


def build_bearer_headers(api_key: SecretStr | None) -> dict[str, str]:
    """Return the headers of a request with a key.

    Without a key, as for a local server, there are none.
    """
    if api_key is None:
        return {}
    return {"Authorization": f"Bearer {api_key.get_secret_value()}"}


async def read_body(response: "Response", max_bytes: int) -> bytes | None:
    """Return the whole body of a response, or None if it is longer than `max_bytes`."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > max_bytes:
            return None
    return bytes(body)


def limit_body(max_bytes: int) -> "Callable[[Response], Awaitable[None]]":
    """Return a response hook for an HTTP client that truncates decompressed bodies."""
    from httpx2 import AsyncByteStream, Response  # noqa: PLC0415 - slow, needed by requests only

    class TruncatedStream(AsyncByteStream):
        def __init__(self, decompressing: Response) -> None:
            self._decompressing = decompressing

        async def __aiter__(self) -> AsyncIterator[bytes]:
            remaining = max_bytes
            async for part in self._decompressing.aiter_bytes():
                yield part[:remaining]
                remaining -= len(part)
                if remaining <= 0:
                    return

        async def aclose(self) -> None:
            await self._decompressing.aclose()

    async def truncate(response: Response) -> None:
        # A stream of a response is compressed. Only `aiter_bytes` of a response decompresses it, so
        # a second response is given the stream.
        compressed = cast(AsyncByteStream, response.stream)
        decompressing = Response(
            response.status_code, headers=response.headers, stream=compressed
        )
        decompressing.request = response.request
        response.stream = TruncatedStream(decompressing)
        # Without this header, the original response does not decompress once more.
        response.headers.pop("content-encoding", None)

    return truncate
