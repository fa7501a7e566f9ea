"""`sommelier` in processes of their own, forked from one that has loaded the code.

They begin a second sooner than a new interpreter does, and are the same otherwise: arguments,
environment, files, signals, death.
"""

import fcntl
import gc
import multiprocessing
import os
import sys
import tempfile
import termios
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any, Self

from bot.__main__ import main

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "tests.loaded"])


class File:
    """A file of this process that one which starts is to have too."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getstate__(self) -> Any:
        return DupFd(self.number)

    def __setstate__(self, given: Any) -> None:
        self.number = given.detach()


class Process:
    """`sommelier` with these arguments, at home where its environment says; killed in the end.

    It is given files as their numbers; what it writes to its own is in `shown` (standard output)
    and `said` (standard error). With `terminal` it sits in front of the one that it reads.
    """

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        terminal: bool = False,
    ) -> None:
        self._written = unnamed_file(), unnamed_file()
        for each in self._written:
            weakref.finalize(self, os.close, each)
        with Path(os.devnull).open() as nothing:
            own = (nothing.fileno(), *self._written)
            given = zip((stdin, stdout, stderr), own, strict=True)
            files = [File(own if number is None else number) for number, own in given]
            work = (arguments, dict(environment), files, terminal)
            self._process = FORKS.Process(target=be_sommelier, args=work)
            self._process.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid or 0

    @property
    def shown(self) -> str:
        """What it wrote to standard output so far."""
        return content(self._written[0])

    @property
    def said(self) -> str:
        """What it wrote to standard error so far."""
        return content(self._written[1])

    def poll(self) -> int | None:
        """The exit status, that of a signal negative; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float = 60) -> int:
        """The exit status, when it has ended."""
        self._process.join(timeout)
        status = self.poll()
        assert status is not None, f"it did not end in {timeout} s: {self.said[-3000:]}"
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """`kill -9`; may be called from any thread."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.join()


def unnamed_file() -> int:
    """A new file that goes when it is closed."""
    number, path = tempfile.mkstemp()
    Path(path).unlink()
    return number


def content(file: int) -> str:
    """All that was written to a file; whoever writes to it is not disturbed."""
    return os.pread(file, os.fstat(file).st_size, 0).decode()


def take_terminal() -> None:
    """Sit in front of the terminal that is read, so that its Ctrl-C comes here."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def be_sommelier(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[File],
    terminal: bool,
) -> None:
    """Become, in a process that was just forked, `sommelier` as its command line starts it."""
    gc.freeze()
    gc.enable()
    for place, file in enumerate(files):
        os.dup2(file.number, place)
        os.close(file.number)
    sys.stdin, sys.stdout, sys.stderr = (
        open(place, mode, closefd=False, buffering=1)  # noqa: SIM115
        for place, mode in enumerate("rww")
    )
    if terminal:
        take_terminal()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(environment["HOME"])
    sys.argv = ["sommelier", *arguments]
    main()
