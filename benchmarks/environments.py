"""The environment of each candidate: ours for the floor and ourselves, one each for the peers."""

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BUILT: Final = ROOT / ".bench"
REQUIREMENTS: Final = ROOT / "benchmarks" / "requirements"
INSTALL_SECONDS: Final = 600
PIP: Final = (
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
)
SHOW_VERSIONS: Final = (
    "import importlib.metadata as m, json, sys; print(*map(m.version, sys.argv[1:]))"
)


@dataclass(frozen=True)
class Entry:
    """A candidate: its name in the report, its module, the libraries whose versions matter."""

    name: str
    module: str
    libraries: tuple[str, ...]
    environment: str | None = None
    note: str = ""


FLOOR: Final = Entry(
    "bare loop", "bare", ("openai", "pydantic"), note="in the client's own types"
)
OURS: Final = Entry("ours", "ours", ("openai", "pydantic"))
TRACED: Final = Entry("ours, traced", "ours_traced", ("langfuse", "httpx2"))
PEERS: Final = (
    Entry("pydantic-ai", "pydantic_ai", ("pydantic-ai-slim", "openai"), "pydantic-ai"),
    Entry(
        "instructor",
        "instructor",
        ("instructor", "openai"),
        "instructor",
        "runs no tools: one request of the plain client is made by hand before it",
    ),
)
ENTRIES: Final = (FLOOR, OURS, TRACED, *PEERS)


class NotInstalled(Exception):
    """An environment could not be built; the message is the reason, in one line."""


def python_of(entry: Entry) -> Path:
    """Return the interpreter of a candidate's environment, which is built if it is missing.

    Raises:
        NotInstalled: it cannot be built.
    """
    if entry.environment is None:
        return Path(sys.executable)
    folder = BUILT / entry.environment
    lock = REQUIREMENTS / f"{entry.environment}.txt"
    stamp = folder / "installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(python), *PIP, "--require-hashes", "-r", str(lock))
        stamp.write_text(wanted)
    return python


def versions(entry: Entry, python: Path) -> str:
    """Return the libraries of a candidate with their versions."""
    shown = _run(str(python), "-c", SHOW_VERSIONS, *entry.libraries).split()
    return ", ".join(
        f"{name} {number}" for name, number in zip(entry.libraries, shown, strict=True)
    )


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(type(error).__name__) from None
    if done.returncode:
        raise NotInstalled(_reason(done.stderr))
    return done.stdout


def _reason(stderr: str) -> str:
    """Return the last error of a command in one line, without addresses and paths."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = (
        [line for line in lines if line.startswith("ERROR")]
        or lines
        or ["no reason given"]
    )
    return re.sub(r"\S*/\S+", "…", errors[-1]).removeprefix("ERROR: ")[:120]
