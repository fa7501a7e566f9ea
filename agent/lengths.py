"""The most characters, bytes or items that are read of anything from outside.

Longer texts are cut, or refused with a message. Limited elsewhere: a tool's result
(`Limits.result_chars`) and a message of the stored history (`bot.question.STORED_CHARS`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from httpx2 import Response

MESSAGE_CHARS: Final = 8_000
"""The message of a turn, all that were sent in one go together."""
NAME_CHARS: Final = 64
"""The name of a person; Telegram allows no more."""

ANSWER_CHARS: Final = 32_000
"""The answer of a model; 6,000 tokens are some 24,000."""
ARGUMENT_CHARS: Final = 32_000
"""The arguments of a tool call."""
TOOL_CALLS: Final = 64
"""Calls in one answer."""
SERVICE_RESPONSE_BYTES: Final = 8_000_000
"""An answer of Langfuse, or of an embedding source: 64 long vectors have 5,800,000."""
SEARCH_RESPONSE_BYTES: Final = 2_000_000
"""An answer of a web search."""

FILE_BYTES: Final = 20_000_000
"""A file that somebody sends; Telegram hands bots no larger ones."""
TELEGRAM_RESPONSE_BYTES: Final = 2 * FILE_BYTES
"""An answer of Telegram."""
IMAGES: Final = 8
"""Pictures of a message that are looked at, an album has up to ten; pages of a scanned list."""
IMAGE_PIXELS: Final = 50_000_000
"""Pixels of a picture, unpacked; the largest of a telephone have about as many."""
PICTURE_NAME_CHARS: Final = 120
"""A name, a region or a line that was read in a picture."""
WINES_PER_LIST: Final = 300
"""Wines of a list that somebody shows, all pages together."""

DOCUMENT_PATH_CHARS: Final = 300
"""The path that a document is known by."""
DOCUMENT_CHARS: Final = 5_000_000
"""The text of a document; the longest books have some 3,000,000."""
PDF_PAGES: Final = 2_000
"""Pages of a PDF file."""


async def read_body(response: "Response", most: int) -> bytes | None:
    """Read a body to its end; return None if it has over `most` bytes, or never ends."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most:
            return None
    return bytes(body)


def limit_body(most: int) -> "Callable[[Response], Awaitable[None]]":
    """Return a response hook for a client: bodies end after `most` bytes, counted unpacked."""
    from httpx2 import AsyncByteStream, Response  # noqa: PLC0415 - heavy, needed by a request

    class Ended(AsyncByteStream):
        def __init__(self, whole: Response) -> None:
            self._whole = whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most
            async for part in self._whole.aiter_bytes():
                yield part[:left]
                left -= len(part)
                if left <= 0:
                    return

        async def aclose(self) -> None:
            await self._whole.aclose()

    async def end(response: Response) -> None:
        packed = cast(AsyncByteStream, response.stream)
        whole = Response(response.status_code, headers=response.headers, stream=packed)
        whole.request = response.request
        response.stream = Ended(whole)
        response.headers.pop("content-encoding", None)

    return end
