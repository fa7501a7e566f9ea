"""Make the pictures and PDF files that users send ready for a model.

Parsers may hang over a file that was made for it, or take all memory. So each file gets a process
of its own with limits of time and memory. A photo needs none: Telegram itself wrote it.
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

SECONDS: Final = 20.0
MEMORY_BYTES: Final = 2_000_000_000
LONGEST_SIDE: Final = 1568
"""Pixels of the longer side; what is larger, models scale down themselves, at the same price."""
FORMATS: Final = ("JPEG", "PNG", "WEBP")
TOO_LARGE: Final = "too_large"
NO_PICTURE: Final = "no_picture"


class Unusable(ValueError):
    """A picture, a recording or a file that cannot be read; the text is the name of the reason."""


class SentFiles:
    """Reads files that users send, one at a time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._one_at_a_time = asyncio.Lock()

    async def pages(self, data: bytes) -> tuple[list[str], int]:
        """Return the first pages of a PDF file as pictures, and how many pages there are more.

        Raises:
            Unusable: it is no PDF file, is encrypted, or takes too long.
        """
        return await self._read(pages_of, data)

    async def picture(self, data: bytes, *, is_photo: bool) -> str:
        """Return a picture as a data URL that a model can be shown.

        Raises:
            Unusable: it is no picture, is too large, or takes too long.
        """
        if is_photo:
            return await asyncio.to_thread(as_shown, data)
        return await self._read(as_shown, data)

    async def _read(self, read: Callable[[bytes], R], data: bytes) -> R:
        """Return `read(data)`, called in a new process with limits of time and memory.

        `read` is a function of a module. Its process is killed at the end, hanging or not.
        """
        spawn, pid, limits = multiprocessing.get_context("spawn"), 0, (self._seconds,)
        async with self._one_at_a_time:
            pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_limit, initargs=limits)
            run = partial(asyncio.get_running_loop().run_in_executor, pool)
            try:
                async with asyncio.timeout(self._seconds):
                    pid = await run(os.getpid)
                    return await run(partial(read, data))
            except TimeoutError:
                raise Unusable(TOO_LARGE) from None
            except Unusable:
                raise
            except Exception:  # also of a process that took too much memory
                raise Unusable(NO_PICTURE) from None
            finally:
                with suppress(ProcessLookupError):
                    if pid:
                        os.kill(pid, signal.SIGKILL)
                pool.shutdown(wait=False)


def _limit(seconds: float) -> None:
    """Limit the memory of this process, and have it ended when its time is over."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    signal.alarm(int(seconds) + 2)  # the process that started this one may be gone
    logging.disable()


def pages_of(data: bytes) -> tuple[list[str], int]:
    """Return the first pages of a PDF file as pictures, and how many pages there are more."""
    from pypdfium2 import PdfDocument  # noqa: PLC0415 - heavy

    document = PdfDocument(data)
    pages = [document[number] for number in range(min(len(document), size_limits.IMAGES))]
    scales = (min(LONGEST_SIDE / max(*page.get_size(), 1), 4) for page in pages)
    shown = [page.render(scale=scale) for page, scale in zip(pages, scales, strict=True)]
    return [_as_url(picture.to_pil()) for picture in shown], len(document) - len(shown)


def as_shown(data: bytes) -> str:
    """Return a picture as a data URL: an upright JPEG of 1,568 pixels at most, without metadata.

    Raises:
        Unusable: it is too large, or no picture.
    """
    from PIL import Image  # noqa: PLC0415 - 30 ms, only for pictures

    try:
        with Image.open(BytesIO(data), formats=FORMATS) as picture:
            if picture.width * picture.height <= size_limits.IMAGE_PIXELS:
                return _as_url(picture)
    except Exception:  # the readers of formats raise anything at all over a file made for it
        raise Unusable(NO_PICTURE) from None
    raise Unusable(TOO_LARGE)


def _as_url(picture: "Picture") -> str:
    from PIL import Image, ImageOps  # noqa: PLC0415 - see as_shown

    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    upright = ImageOps.exif_transpose(picture).convert("RGBA")
    # A new picture, so that nothing but the pixels of the old one is passed on.
    flat = Image.new("RGB", upright.size, "white")
    flat.paste(upright, mask=upright.getchannel("A"))
    written = BytesIO()
    flat.save(written, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"
