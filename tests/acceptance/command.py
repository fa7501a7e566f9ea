"""The command line as a process of its own."""

import asyncio
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

COMMAND = [sys.executable, "-m", "bot"]


def sommelier(
    *arguments: str, environment: Mapping[str, str], **settings: str
) -> subprocess.CompletedProcess[str]:
    """`sommelier` with these arguments, when it has ended."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**environment, **settings},
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@asynccontextmanager
async def running(environment: Mapping[str, str], **settings: str) -> AsyncIterator[Process]:
    """`sommelier run` in the background; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "run", env={**environment, **settings}, cwd=environment["HOME"], stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
