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
    """A file that is handed on to a process that starts."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getstate__(self) -> Any:
        return DupFd(self.number)

    def __setstate__(self, given: Any) -> None:
        self.number = given.detach()


class Process:
    """Runs `sommelier` with these arguments in the HOME of `environment`; killed in the end.

    Without a file of its own, standard output is in `shown` and standard error in `said`. With
    `terminal`, standard input is its controlling terminal.
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
        for number in self._written:
            weakref.finalize(self, os.close, number)
        with Path(os.devnull).open() as nothing:
            own = (nothing.fileno(), *self._written)
            given = zip((stdin, stdout, stderr), own, strict=True)
            files = [File(own if number is None else number) for number, own in given]
            work = (arguments, dict(environment), files, terminal)
            self._process = FORKS.Process(target=be_sommelier, args=work)
            self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def shown(self) -> str:
        return content(self._written[0])

    @property
    def said(self) -> str:
        return content(self._written[1])

    def poll(self) -> int | None:
        """Return the exit status, that of a signal negative; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float = 60) -> int:
        """Wait for the end; return the exit status."""
        self._process.join(timeout)
        status = self.poll()
        assert status is not None, f"it did not end in {timeout} s: {self.said[-3000:]}"
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.join()


def unnamed_file() -> int:
    """Open a new file that is deleted when it is closed; return its number."""
    number, path = tempfile.mkstemp()
    Path(path).unlink()
    return number


def content(file: int) -> str:
    """Return all that was written to a file, without moving its position."""
    return os.pread(file, os.fstat(file).st_size, 0).decode()


def take_terminal() -> None:
    """Make standard input the terminal of this process, so that its Ctrl-C comes here."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def be_sommelier(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[File],
    terminal: bool,
) -> None:
    """Run the command line of `sommelier` in a process that was just forked."""
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
