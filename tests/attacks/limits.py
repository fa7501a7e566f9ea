"""Run code in a process with limits of work and memory, so that a test can ask what it takes."""

import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SET_LIMITS = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, -1))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, -1))
"""


def run_with_limits(code: str, *, cpu_seconds: int = 10, megabytes: int = 1_000) -> str:
    """Return what `code` prints; fail if it needs more time or memory, or fails.

    The processes that it starts may set limits of their own.
    """
    limits = SET_LIMITS.format(seconds=cpu_seconds, memory=megabytes * 1_000_000)
    ran = subprocess.run(
        [sys.executable, "-c", limits + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"ended with {ran.returncode}: {ran.stderr[-2000:]}"
    return ran.stdout.strip()


def read_own_limits(data: bytes) -> dict[str, int]:
    """Return the limits of this process, which a parser is shown."""
    return {
        "processor seconds": resource.getrlimit(resource.RLIMIT_CPU)[0],
        "bytes of memory": resource.getrlimit(resource.RLIMIT_AS)[1],
    }
