"""Convert pictures and PDF files from users to pictures for a model.

A malicious file may make its parser hang or exhaust the memory. So each file is parsed in its own
process, with limits of time and memory. Photos are safe: Telegram has encoded them.
"""

import asyncio
import base64
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Final, TypeVar

from agent import size_limits

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

R = TypeVar("R")

PARSE_SECONDS: Final = 20.0
PARSE_MEMORY_BYTES: Final = 2_000_000_000
MAX_SIDE_PIXELS: Final = 1568
"""The maximum length of the longer side; models scale larger pictures down anyway."""
FORMATS: Final = ("JPEG", "PNG", "WEBP")
TOO_LARGE: Final = "too_large"
NOT_A_PICTURE: Final = "no_picture"


class UnusableFile(ValueError):
    """A picture, recording or file that cannot be used; the message is an error type."""


class SentFileReader:
    """Converts files from users, one at a time."""

    def __init__(self, seconds: float = PARSE_SECONDS) -> None:
        self._seconds = seconds
        self._one_at_a_time = asyncio.Lock()

    async def render_pages(self, data: bytes) -> tuple[list[str], int]:
        """Return the first pages of a PDF file as data URLs, and the number of further pages.

        Raises:
            UnusableFile: it is not a PDF file, is encrypted, or takes too long.
        """
        return await self._run_in_process(render_pages, data)

    async def to_data_url(self, data: bytes, *, is_photo: bool) -> str:
        """Return a picture as a data URL for a model.

        Raises:
            UnusableFile: it is not a picture, is too large, or takes too long.
        """
        if is_photo:
            return await asyncio.to_thread(to_data_url, data)
        return await self._run_in_process(to_data_url, data)

    async def _run_in_process(self, convert: Callable[[bytes], R], data: bytes) -> R:
        """Return `convert(data)`, run in a new process with limits of time and memory.

        `convert` must be a function of a module, so that it can be pickled.
        """
        pid = 0
        async with self._one_at_a_time:
            pool = ProcessPoolExecutor(
                max_workers=1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_limit_process,
                initargs=(self._seconds,),
            )
            run = partial(asyncio.get_running_loop().run_in_executor, pool)
            try:
                async with asyncio.timeout(self._seconds):
                    pid = await run(os.getpid)
                    return await run(convert, data)
            except TimeoutError:
                raise UnusableFile(TOO_LARGE) from None
            except UnusableFile:
                raise
            except Exception:  # also if the process ran out of memory
                raise UnusableFile(NOT_A_PICTURE) from None
            finally:
                # The process may hang, and the pool would wait for it.
                with suppress(ProcessLookupError):
                    if pid:
                        os.kill(pid, signal.SIGKILL)
                pool.shutdown(wait=False)


def _limit_process(seconds: float) -> None:
    """Limit the memory and the lifetime of this process."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_AS, (PARSE_MEMORY_BYTES, PARSE_MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    signal.alarm(int(seconds) + 2)  # needed if the parent process dies
    logging.disable()


def render_pages(data: bytes) -> tuple[list[str], int]:
    """Return the first pages of a PDF file as data URLs, and the number of further pages."""
    from pypdfium2 import PdfDocument  # noqa: PLC0415 - slow to import

    document = PdfDocument(data)
    pages = [document[number] for number in range(min(len(document), size_limits.IMAGES))]
    scales = (min(MAX_SIDE_PIXELS / max(*page.get_size(), 1), 4) for page in pages)
    bitmaps = [page.render(scale=scale) for page, scale in zip(pages, scales, strict=True)]
    return [_encode(bitmap.to_pil()) for bitmap in bitmaps], len(document) - len(bitmaps)


def to_data_url(data: bytes) -> str:
    """Return a picture as a data URL: an upright JPEG of 1,568 pixels at most, without metadata.

    Raises:
        UnusableFile: it is too large, or not a picture.
    """
    from PIL import Image  # noqa: PLC0415 - 30 ms, only for pictures

    try:
        with Image.open(BytesIO(data), formats=FORMATS) as picture:
            if picture.width * picture.height <= size_limits.IMAGE_PIXELS:
                return _encode(picture)
    except Exception:  # decoders raise errors of any type for malicious files
        raise UnusableFile(NOT_A_PICTURE) from None
    raise UnusableFile(TOO_LARGE)


def _encode(picture: "Picture") -> str:
    from PIL import Image, ImageOps  # noqa: PLC0415 - see to_data_url

    picture.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS))
    upright = ImageOps.exif_transpose(picture).convert("RGBA")
    # Copy the pixels to a new picture, without metadata.
    opaque = Image.new("RGB", upright.size, "white")
    opaque.paste(upright, mask=upright.getchannel("A"))
    jpeg = BytesIO()
    opaque.save(jpeg, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg.getvalue()).decode()}"
