"""A process that hangs ends, so that another can take its lanes."""

import subprocess
import sys

HANGING = """
import asyncio, time
from bot.tasks import exit_if_loop_hangs

async def main():
    watching = asyncio.create_task(exit_if_loop_hangs(0.2))
    await asyncio.sleep(0.5)
    print("works", flush=True)
    time.sleep(10)

asyncio.run(main())
"""


def test_a_process_whose_event_loop_hangs_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING],
        capture_output=True,
        text=True,
        timeout=9,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("works\n", 1)
    assert "time.sleep" in ended.stderr or "Timeout" in ended.stderr
