"""One candidate in a process of its own: reads orders from standard input, reports the cost.

An order is a line of JSON, `{"kind": "plain", "turns": 100}`, the report the milliseconds of CPU a
turn, or `null` if the candidate cannot do that.
"""

import asyncio
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from benchmarks.scenario import KINDS, VALID, Candidate, Kind

ROOT: Final = Path(__file__).parents[1]
UNWANTED: Final = ("OPENAI_", "LANGFUSE_", "OTEL_", "LLM_")
PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy"})


class Worker:
    """A candidate in a process of its own, seen from outside."""

    def __init__(self, process: subprocess.Popen[str], said: IO[str]) -> None:
        self._process, self._said = process, said

    def cpu_ms(self, kind: str, turns: int) -> float | None:
        """Return the CPU of a turn of this kind; None if the candidate fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"kind": kind, "turns": turns}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        report: float | None = json.loads(line or "null")
        return report

    def last_words(self) -> str:
        """Return the last line of standard error."""
        self._said.seek(0)
        return ([line.strip() for line in self._said if line.strip()] or ["nothing"])[
            -1
        ][:120]


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Run a Python process from which nothing sends requests or traces elsewhere."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(UNWANTED) and name.lower() not in PROXIES
    }
    with (
        TemporaryFile("w+") as said,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=kept | {"PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        try:
            yield process, said
        finally:
            process.kill()


@contextmanager
def served() -> Iterator[str]:
    """Run the scripted model in its own process; yield its address."""
    with started(sys.executable, "-m", "benchmarks.server") as (process, _):
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


@contextmanager
def working(module: str, python: Path, base_url: str) -> Iterator[Worker]:
    """Run a candidate."""
    with started(str(python), "-m", "benchmarks.worker", module, base_url) as (
        process,
        said,
    ):
        yield Worker(process, said)


async def run(candidate: Candidate, kind: Kind, turns: int) -> float:
    """Return the CPU of a turn in milliseconds, on average."""
    gc.collect()
    cpu = time.process_time()
    for _ in range(turns):
        answer = await candidate.answer(kind)
        if (answer.intro, len(answer.wines)) != (VALID.intro, len(VALID.wines)):
            raise AssertionError(f"the answer to a {kind.name} turn is wrong")
    if candidate.flush is not None:
        await candidate.flush()
    return (time.process_time() - cpu) / turns * 1000


async def obey(module: str, base_url: str) -> None:
    """Carry out orders until there are no more."""
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not a report
    candidate: Candidate = importlib.import_module(
        f"benchmarks.candidates.{module}"
    ).make(base_url)
    kinds = {kind.name: kind for kind in KINDS}
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        report = None
        try:
            report = await run(candidate, kinds[order["kind"]], order["turns"])
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        print(json.dumps(report), file=reports, flush=True)


if __name__ == "__main__":
    asyncio.run(obey(sys.argv[1], sys.argv[2]))
