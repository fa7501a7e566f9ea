"""`make crash-test`: every scenario, a table of what was found, exit status 1 if any row is bad.

Names of scenarios as arguments run only those, `--short` those that a few minutes are enough for,
with fewer kills.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from tests.crash import more
from tests.crash.harness import Server, postgres
from tests.crash.scenarios import Result, crashes

Scenario = Callable[[Path, Server], Awaitable[list[Result]]]

SCENARIOS: dict[str, Scenario] = {
    "sqlite": lambda folder, server: crashes(folder, kills=100, messages=600),
    "postgres": lambda folder, server: crashes(
        folder, server=server, replicas=3, kills=100, messages=600
    ),
    "restarts": more.database_restarts,
    "stopping": lambda folder, server: more.stopping(folder),
    "dead": more.dead_replica,
    "frozen": more.frozen_replica,
    "corrections": more.corrections,
    "stops": more.stops,
    "upgrade": more.upgrade,
}
SHORT: dict[str, Scenario] = {
    "sqlite": lambda folder, server: crashes(folder, kills=12, messages=80, chats=10),
    "postgres": lambda folder, server: crashes(
        folder, server=server, replicas=2, kills=9, messages=60, chats=10
    ),
    "restarts": lambda folder, server: more.database_restarts(folder, server, restarts=1),
    "stopping": SCENARIOS["stopping"],
    "dead": lambda folder, server: more.dead_replica(folder, server, replicas=2, messages=30),
    "frozen": SCENARIOS["frozen"],
    "corrections": lambda folder, server: more.corrections(folder, server, rounds=4),
    "stops": more.stops,
    "upgrade": lambda folder, server: more.upgrade(folder, server, each=1),
}


async def run(scenarios: Mapping[str, Scenario]) -> list[Result]:
    """The scenarios, one after the other; rows are printed as they come."""
    results = []
    with tempfile.TemporaryDirectory(prefix="sommelier-crash-") as folder, postgres() as server:
        for name, scenario in scenarios.items():
            own = Path(folder) / name
            own.mkdir()
            found = await scenario(own, server)
            results += found
            print(table(found), flush=True)
    return results


def table(results: Sequence[Result]) -> str:
    """Rows in Markdown."""
    rows = [
        f"| {one.scenario} | {one.what} | {one.value} | {'yes' if one.ok else 'NO'} |"
        for one in results
    ]
    return "\n".join(
        ["| scenario | what | measured | as it must be |", "| :-- | :-- | --: | :-- |", *rows]
    )


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    scenarios = SHORT if "--short" in arguments else SCENARIOS
    names = [each for each in arguments if not each.startswith("--")] or list(scenarios)
    results = asyncio.run(run({name: scenarios[name] for name in names}))
    bad = [one for one in results if not one.ok]
    print(f"\n{len(results) - len(bad)} of {len(results)} rows are as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
