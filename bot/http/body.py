"""The body of a request that is to be JSON: what is refused before it is read, and how it is read.

Of what a request holds nothing is ever logged or sent back.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.metrics import Refusal

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
