"""Runs the candidates by turns and collects what they cost."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import IO, Any, Final

from benchmarks.environments import ROOT, Entry
from benchmarks.scenario import FAILING, KINDS

UNWANTED: Final = ("OPENAI_", "LANGFUSE_", "LANGSMITH_", "LANGCHAIN_", "OTEL_", "LLM_")
PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy"})


@dataclass(frozen=True)
class Plan:
    """How much is measured: turns of each kind, repeats, and turns of the memory part."""

    turns: int
    warm_up: int
    repeats: int
    memory_turns: int
    memory_warm_up: int


FULL: Final = Plan(100, 30, 5, 10_000, 3_000)
QUICK: Final = Plan(15, 5, 3, 400, 400)


@dataclass(frozen=True)
class Sample:
    """One measurement, per turn; memory in MiB, None where the system does not tell."""

    cpu_ms: float
    wall_ms: float
    sent: float
    peak_mib: float | None


@dataclass
class Costs:
    """What one candidate costs: samples by kind of turn, or why there are none."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    attempts: list[int] = field(default_factory=list)

    def cpu_ms(self, kind: str) -> float | None:
        """CPU per turn in milliseconds, the median of the repeats."""
        return self._median(kind, lambda sample: sample.cpu_ms)

    def wall_ms(self, kind: str) -> float | None:
        """Time per turn in milliseconds, the median of the repeats."""
        return self._median(kind, lambda sample: sample.wall_ms)

    def sent(self, kind: str) -> float | None:
        """Bytes sent per turn."""
        return self._median(kind, lambda sample: sample.sent)

    @property
    def peak_mib(self) -> float | None:
        """The highest memory seen."""
        peaks = [each.peak_mib for samples in self.samples.values() for each in samples]
        return max((peak for peak in peaks if peak is not None), default=None)

    def ratio(self, kind: str, floor: "Costs") -> float | None:
        """CPU by the floor's in the same repeat, the median of the repeats."""
        if kind in self.errors or kind in floor.errors:
            return None
        pairs = zip(self.samples[kind], floor.samples[kind], strict=True)
        return median(mine.cpu_ms / least.cpu_ms for mine, least in pairs)

    def more_ms(self, kind: str, than: "Costs") -> float | None:
        """CPU beyond another's in the same repeat, the median of the repeats, in milliseconds."""
        if kind in self.errors or kind in than.errors:
            return None
        pairs = zip(self.samples[kind], than.samples[kind], strict=True)
        return median(mine.cpu_ms - other.cpu_ms for mine, other in pairs)

    def _median(self, kind: str, of: Callable[[Sample], float]) -> float | None:
        return None if kind in self.errors else median(map(of, self.samples[kind]))


@dataclass(frozen=True)
class Growth:
    """Memory after the warm-up and at the end of so many turns."""

    turns: int
    rss_mib: tuple[float, float] | None
    objects: tuple[int, int]


class Server:
    """The scripted server, seen from outside."""

    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def sent(self) -> dict[str, Any]:
        """What it received since this was asked last."""
        with self._opener.open(f"{self.base_url}/sent", timeout=10) as response:
            taken: dict[str, Any] = json.load(response)
        return taken


class Worker:
    """A candidate in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], said: IO[str]) -> None:
        self._process = process
        self._said = said

    def run(self, kind: str, turns: int) -> dict[str, Any]:
        """What so many turns cost, or `{"error": ...}`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"kind": kind, "turns": turns}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"error": f"does not start: {self.last_words()}"}
        report: dict[str, Any] = json.loads(line)
        return report

    def last_words(self) -> str:
        """The last line of what it said on standard error."""
        self._said.seek(0)
        return ([line.strip() for line in self._said if line.strip()] or ["nothing"])[-1][:120]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a candidate: nothing that would send its requests or traces elsewhere."""
    kept = {
        name: value
        for name, value in variables.items()
        if not name.startswith(UNWANTED) and name.lower() not in PROXIES
    }
    return kept | {"PYTHONHASHSEED": "0", "LANGSMITH_TRACING": "false"}


@contextmanager
def started(*command: str, root: Path = ROOT) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A Python process at the root of a checkout, ended on leaving."""
    with (
        TemporaryFile("w+") as said,
        subprocess.Popen(
            command,
            cwd=root,
            env=environment(os.environ),
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
def serving() -> Iterator[Server]:
    """The scripted server in its own process."""
    with started(sys.executable, "-m", "benchmarks.server") as (process, _):
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()))


@contextmanager
def working(entry: Entry, python: Path, server: Server) -> Iterator[Worker]:
    """A candidate's worker."""
    command = (str(python), "-m", "benchmarks.worker", entry.module, server.base_url)
    with started(*command, root=entry.root) as (process, said):
        yield Worker(process, said)


def compare(
    pythons: Mapping[Entry, Path], plan: Plan, progress: Callable[[str], None]
) -> dict[Entry, Costs]:
    """What every candidate costs; in each repeat all of them take turns, in rotated order."""
    costs = {entry: Costs() for entry in pythons}
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        workers = {
            entry: stack.enter_context(working(entry, python, server))
            for entry, python in pythons.items()
        }
        for entry, worker in workers.items():
            progress(f"warming up {entry.name}")
            warm_up(worker, costs[entry], plan)
        for repeat in range(plan.repeats):
            for kind in KINDS:
                progress(f"repeat {repeat + 1} of {plan.repeats}: {kind.name}")
                for entry in rotated(workers, repeat):
                    measure(workers[entry], kind.name, server, costs[entry], plan)
        for entry, worker in workers.items():
            progress(f"attempts of {entry.name}")
            server.sent()
            if "error" not in worker.run(FAILING.name, 1):
                costs[entry].attempts = server.sent()["sizes"]
    return costs


def warm_up(worker: Worker, costs: Costs, plan: Plan) -> None:
    """Run each kind a few times, and note the kinds that a candidate cannot do."""
    for kind in KINDS:
        report = worker.run(kind.name, plan.warm_up)
        if "error" in report:
            costs.errors[kind.name] = report["error"]


def measure(worker: Worker, kind: str, server: Server, costs: Costs, plan: Plan) -> None:
    """Add one sample of a kind of turn."""
    if kind in costs.errors:
        return
    server.sent()
    report = worker.run(kind, plan.turns)
    if "error" in report:
        costs.errors[kind] = report["error"]
        return
    sent = sum(server.sent()["sizes"]) / plan.turns
    sample = Sample(report["cpu_ms"], report["wall_ms"], sent, report["peak_mib"])
    costs.samples.setdefault(kind, []).append(sample)


def rotated(entries: Iterable[Entry], by: int) -> list[Entry]:
    """The entries in their order, begun at another one in each repeat."""
    listed = list(entries)
    start = by % len(listed)
    return listed[start:] + listed[:start]


async def growths(pythons: Mapping[Entry, Path], plan: Plan) -> dict[Entry, Growth]:
    """Memory over many turns of all kinds, the candidates side by side."""
    grown = await asyncio.gather(
        *(asyncio.to_thread(growth, entry, python, plan) for entry, python in pythons.items())
    )
    return dict(zip(pythons, grown, strict=True))


def growth(entry: Entry, python: Path, plan: Plan) -> Growth:
    """How one candidate's memory grows after its warm-up."""
    with serving() as server, working(entry, python, server) as worker:
        before = after_turns(worker, plan.memory_warm_up)
        after = after_turns(worker, plan.memory_turns)
    rss = None if before["rss_mib"] is None else (before["rss_mib"], after["rss_mib"])
    return Growth(plan.memory_turns, rss, (before["objects"], after["objects"]))


def after_turns(worker: Worker, turns: int) -> dict[str, Any]:
    """The report after so many turns, of all kinds in equal parts; in batches, as people come."""
    batch = 100
    for _ in range(turns // (batch * len(KINDS))):
        for kind in KINDS:
            report = worker.run(kind.name, batch)
    return report
