"""Read the pictures and PDF files that users send, in processes that can be killed.

Parsers may hang over a file that was made for it, or take all memory. Each file gets a process of
its own with limits of time and memory.
"""

import asyncio
import logging
import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from agent import lengths
from agent.senses.pdf import Unreadable, read_pdf_text
from agent.senses.pictures import (
    LONGEST_SIDE,
    NO_PICTURE,
    TOO_LARGE,
    Pages,
    Unusable,
    as_shown,
    as_url,
    is_light,
)

R = TypeVar("R")

SECONDS: Final = 20.0
MEMORY_BYTES: Final = 2_000_000_000
MIN_TEXT: Final = 40
"""A PDF file with fewer characters is shown to a model as pictures of its pages."""


async def run_in_process(function: Callable[..., R], *arguments: object, seconds: float) -> R:
    """Return `function(*arguments)`, called in a new process with limits of time and memory.

    `function` is one of a module; arguments, result and errors are plain data.

    Raises:
        TimeoutError: it took more than `seconds`; the process was killed.
        MemoryError: the process ended without a result.
        Exception: the error that `function` raised.
    """
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_run, args=(sender, seconds, function, arguments), daemon=True)

    def wait() -> Any:
        process.start()
        sender.close()  # now the end of the process ends the wait
        if not receiver.poll(seconds):
            raise TimeoutError
        return receiver.recv()

    try:
        result = await asyncio.to_thread(wait)
    except EOFError:
        raise MemoryError from None
    finally:
        if process.pid is not None:
            process.kill()
            await asyncio.to_thread(process.join)
    if isinstance(result, Exception):
        raise result
    found: R = result
    return found


def _run(
    sender: Connection, seconds: float, function: Callable[..., object], arguments: Any
) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    signal.alarm(int(seconds) + 2)  # the process that started this one may be gone
    logging.disable()
    try:
        result = function(*arguments)
    except Exception as error:
        result = error
    sender.send(result)


class SentFiles:
    """Reads files that users send; heavy ones one at a time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._one_at_a_time = asyncio.Lock()

    async def pages(self, data: bytes) -> Pages:
        """Return the text of a PDF file, or its first pages as pictures.

        Raises:
            Unusable: it is no PDF file, is encrypted, or takes too long.
        """
        return await self._read(read_pages, data)

    async def picture(self, data: bytes) -> str:
        """Return a picture as a data URL that a model can be shown.

        Raises:
            Unusable: it is no picture, is too large, or takes too long.
        """
        if await asyncio.to_thread(is_light, data):
            return await asyncio.to_thread(as_shown, data)
        return await self._read(as_shown, data)

    async def _read(self, read: Callable[[bytes], R], data: bytes) -> R:
        async with self._one_at_a_time:
            try:
                return await run_in_process(read, data, seconds=self._seconds)
            except TimeoutError:
                raise Unusable(TOO_LARGE) from None
            except Unusable:
                raise
            except Exception:
                raise Unusable(NO_PICTURE) from None


def read_pages(data: bytes) -> Pages:
    """Return the text of a PDF file, or its first pages as pictures if it holds little text."""
    from pypdfium2 import PdfDocument  # noqa: PLC0415 - heavy

    with suppress(Unreadable):
        text = "\n".join(read_pdf_text(data).pages)
        if len(text) >= MIN_TEXT:
            return Pages(text[: lengths.DOCUMENT])
    document = PdfDocument(data)
    shown = range(min(len(document), lengths.IMAGES))
    return Pages("", tuple(_picture(document[number]) for number in shown), len(document))


def _picture(page: Any) -> str:
    scale = min(LONGEST_SIDE / max(*page.get_size(), 1), 4)
    return as_url(page.render(scale=scale).to_pil())
