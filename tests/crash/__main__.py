"""`make crash-test`: run all scenarios, print a table of the results; exit with 1 if one is bad.

Names of scenarios as arguments run only those; `--short` runs fewer kills.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.crash.harness import Server, postgres
from tests.crash.scenarios import (
    Result,
    corrections,
    crashes,
    database_restarts,
    frozen_replica,
    plan,
    stopping,
    stops,
    upgrade,
)

Scenario = Callable[[Path, Server], Awaitable[list[Result]]]


def scenarios_of(*, short: bool) -> dict[str, Scenario]:
    """Return all scenarios by their names."""
    kills, messages, chats = (12, 80, 10) if short else (100, 600, 30)

    async def killed(folder: Path, server: Server | None, replicas: int) -> list[Result]:
        return await crashes(
            folder, plan(kills), server=server, replicas=replicas, messages=messages, chats=chats
        )

    return {
        "sqlite": lambda folder, server: killed(folder, None, 1),
        "postgres": lambda folder, server: killed(folder, server, 3),
        "restarts": partial(database_restarts, restarts=1 if short else 5),
        "stopping": stopping,
        "frozen": frozen_replica,
        "corrections": partial(corrections, rounds=4 if short else 8),
        "stops": stops,
        "upgrade": partial(upgrade, messages=20 if short else 60),
    }


async def run(scenarios: Mapping[str, Scenario]) -> list[Result]:
    """Run the scenarios one after the other; print rows as they come."""
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
    """Return rows in Markdown."""
    rows = [
        f"| {row.scenario} | {row.what} | {row.value} | {'yes' if row.ok else 'NO'} |"
        for row in results
    ]
    return "\n".join(
        ["| scenario | what | measured | as it must be |", "| :-- | :-- | --: | :-- |", *rows]
    )


def main(arguments: Sequence[str]) -> int:
    """Return the exit status."""
    scenarios = scenarios_of(short="--short" in arguments)
    names = [name for name in arguments if not name.startswith("--")] or list(scenarios)
    results = asyncio.run(run({name: scenarios[name] for name in names}))
    bad = [row for row in results if not row.ok]
    print(f"\n{len(results) - len(bad)} of {len(results)} rows are as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
