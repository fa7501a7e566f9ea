"""One candidate in a process of its own: reads orders from standard input, reports the cost.

An order is a line of JSON, `{"kind": "plain", "turns": 100}`; so is the report.
"""

import asyncio
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.scenario import FAILING, KINDS, VALID, Candidate, Kind

STATUS = Path("/proc/self/status")


async def run(candidate: Candidate, kind: Kind, turns: int) -> dict[str, Any]:
    """What so many turns cost, on average; memory after a garbage collection."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(turns):
        answer = await candidate.answer(kind)
        if (answer.intro, len(answer.wines)) != (VALID.intro, len(VALID.wines)):
            raise AssertionError(f"the answer to a {kind.name} turn is wrong")
    wall = time.perf_counter() - wall
    if candidate.flush is not None:
        await candidate.flush()
    cpu = time.process_time() - cpu
    gc.collect()
    return {
        "cpu_ms": cpu / turns * 1000,
        "wall_ms": wall / turns * 1000,
        "rss_mib": memory_mib("VmRSS"),
        "peak_mib": memory_mib("VmHWM"),
        "objects": len(gc.get_objects()),
    }


def memory_mib(field: str) -> float | None:
    """A figure of this process's memory; None where the system does not tell."""
    if not STATUS.exists():
        return None
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


async def obey(module: str, base_url: str) -> None:
    """Carry out orders until there are no more."""
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not a report
    candidate: Candidate = importlib.import_module(f"benchmarks.candidates.{module}").make(base_url)
    kinds = {kind.name: kind for kind in (*KINDS, FAILING)}
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        try:
            report = await run(candidate, kinds[order["kind"]], order["turns"])
        except Exception as error:
            report = {"error": type(error).__name__}
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        print(json.dumps(report), file=reports, flush=True)


if __name__ == "__main__":
    asyncio.run(obey(sys.argv[1], sys.argv[2]))
