"""Read files from outside. Only regular files are opened, and each is parsed in its own process.

A hostile file may make its parser hang or exhaust the memory. Therefore it is parsed in a new
process with limits of time and memory and without the settings, and the result is validated.
"""

import asyncio
import logging
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_type_hints
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError

if sys.platform != "win32":
    import resource

R = TypeVar("R")

PARSE_SECONDS: Final = 10
"""The processor time for one file of a user. Other files may have more."""
WAIT_SECONDS: Final = 60.0
"""The time for one file of a user, with its download and the wait for the files of others."""
MEMORY_BYTES: Final = 1_000_000_000
"""The address space of a process. A picture of 50 megapixels needs some 600,000,000 bytes."""
RESULT_BYTES: Final = 40_000_000
"""The maximum length of what a process may return."""
PROCESSES: Final = 2
"""The number of documents that are read at a time. As many photos are read beside them."""
NICENESS: Final = 5
"""Parsers give way to the answers of other users."""
CHILD_CODE: Final = "from agent.files import parse_in_this_process as run; run()"
PASSED_ON: Final = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""The names of the only environment variables that a parser sees."""


class Unreadable(ValueError):
    """A file cannot be read.

    The message completes a sentence that begins with the name of the file.
    """


class TooCostly(Unreadable):
    """A file that needs more time or memory than it may have."""


def read_regular_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        Unreadable: it is a pipe or a device, too large, or cannot be read.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody who writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("is not a file")
            data = file.read(max_bytes + 1)
            size = os.fstat(descriptor).st_size  # the file may have grown meanwhile
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise Unreadable(f"has {size:,} bytes, the limit is {max_bytes:,}; split it")
    return data


async def parse_in_process(
    parse: Callable[..., R],
    data: bytes,
    *arguments: str,
    seconds: int = PARSE_SECONDS,
) -> R:
    """Return `parse(data, *arguments)`, run in a new process with limits.

    `parse` must be a function of a module, with an annotation of its result.

    Raises:
        Unreadable: `parse` raises this or any other error.
        TooCostly: parsing takes too much time or memory, or the result is too large.
    """
    function_name = f"{parse.__module__}:{parse.__name__}"
    process = await _start_child(str(seconds), function_name, *arguments)
    try:
        async with asyncio.timeout(2 * seconds):  # the machine may be busy
            reading = _read_output(process)
            writing = _write_input(process, data)
            output, _ = await asyncio.gather(reading, writing)
            await process.wait()
    except TimeoutError:
        raise TooCostly(f"takes more than {2 * seconds} s to read") from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode == -signal.SIGXCPU:  # it has used up its processor time
        raise TooCostly(f"takes more than {seconds} s to read")
    if process.returncode != 0:
        raise TooCostly(
            f"needs more than {MEMORY_BYTES:,} bytes of memory, or breaks its parser"
        )
    return _read_result(parse, output)


async def _start_child(*arguments: str) -> asyncio.subprocess.Process:
    """Start a process that calls `parse_in_this_process`, with pipes for input and output."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CHILD_CODE,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_build_child_environment(),
    )


def _build_child_environment() -> dict[str, str]:
    """Return the environment of a parser, in which it finds our modules but no secrets."""
    folders = filter(None, sys.path)
    environment = {"PYTHONPATH": os.pathsep.join(folders)}
    for name in PASSED_ON:
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


async def _write_input(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # the process has ended early
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    output = bytearray()
    while part := await process.stdout.read(2**16):
        output += part
        if len(output) > RESULT_BYTES:
            raise TooCostly(f"holds more than {RESULT_BYTES:,} bytes")
    return bytes(output)


def _read_result(parse: Callable[..., R], output: bytes) -> R:
    """Return the result in the output of a process, or raise the error in it."""
    status, _, content = output.partition(b"\n")
    if status != b"ok":
        raise Unreadable(content.decode("utf-8", "replace"))
    try:
        return cast(R, _make_adapter(parse).validate_json(content))
    except ValidationError:
        raise Unreadable("was read into something that is not valid") from None


def _make_adapter(parse: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(parse)["return"])


def parse_in_this_process() -> None:
    """Parse the standard input with the function that the arguments name, and print the result."""
    output = os.dup(1)
    os.dup2(2, 1)  # what a parser prints must not get into the result
    seconds, name, *arguments = sys.argv[1:]
    _limit_this_process(int(seconds))
    result = _parse_to_bytes(name, arguments)
    with os.fdopen(output, "wb") as file:
        file.write(result)


def _limit_this_process(seconds: int) -> None:
    """Limit the memory and the time of this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    logging.disable()
    if sys.platform == "win32":  # Windows has no such limits
        return
    signal.alarm(2 * seconds + 2)  # needed if the parent process dies
    os.nice(NICENESS)
    _lower_limit(resource.RLIMIT_CPU, seconds, seconds + 1)
    if sys.platform != "darwin":  # macOS does not keep to a limit of the address space
        _lower_limit(resource.RLIMIT_AS, MEMORY_BYTES, MEMORY_BYTES)


def _lower_limit(
    kind: int,
    soft: int,
    hard: int,
) -> None:
    """Set a limit of this process, unless a lower limit is set already."""
    _, present = resource.getrlimit(kind)
    if present != resource.RLIM_INFINITY:  # which is a negative number
        hard = min(hard, present)
    resource.setrlimit(kind, (min(soft, hard), hard))


def _parse_to_bytes(name: str, arguments: Sequence[str]) -> bytes:
    """Return the status and the result of a parser, each on one line."""
    module_name, _, function_name = name.partition(":")
    parse = getattr(import_module(module_name), function_name)
    data = sys.stdin.buffer.read()
    try:
        result = parse(data, *arguments)
        return b"ok\n" + _make_adapter(parse).dump_json(result)
    except Unreadable as error:
        return b"unreadable\n" + str(error).encode("utf-8", "replace")
    except MemoryError:  # the process ends, and its parent gives the reason
        raise
    except Exception as error:  # parsers raise errors of any type for hostile files
        return f"unreadable\nis damaged ({type(error).__name__})".encode()


class FileReader:
    """Reads files of users: only a few at a time, and of each user one document at a time.

    Photos have places of their own, so that nobody's documents delay the photos of others.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._documents = asyncio.Semaphore(PROCESSES)
        self._photos = asyncio.Semaphore(PROCESSES)
        self._of_users: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def read(
        self,
        download: Callable[[], Awaitable[bytes]],
        parse: Callable[..., R],
        *,
        user_id: int,
        is_photo: bool = False,
    ) -> R:
        """Download a file and return what `parse_in_process` makes of it.

        Raises:
            Unreadable: see `parse_in_process`.
            TooCostly: it takes too long, including the download and the wait for other files.
        """
        try:
            async with asyncio.timeout(self._wait_seconds):
                if is_photo:
                    async with self._photos:
                        return await parse_in_process(parse, await download())
                lock = self._of_users.setdefault(user_id, asyncio.Lock())
                async with lock, self._documents:
                    return await parse_in_process(parse, await download())
        except TimeoutError:
            raise TooCostly(f"could not be read in {self._wait_seconds:g} s") from None
