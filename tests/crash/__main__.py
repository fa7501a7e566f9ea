"""`make crash-test`: run all scenarios, print a table of the results; exit with 1 if one is bad.

Names of scenarios as arguments run only those, `--kills=20` fewer kills.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.crash.harness import postgres
from tests.crash.scenarios import (
    Result,
    corrections,
    crashes,
    database_restarts,
    frozen_replica,
    plan,
    stopping,
)

KILLS: Final = "--kills="


def scenarios_of(
    server: Any, kills: int
) -> dict[str, Callable[[Path], Awaitable[list[Result]]]]:
    """Return all scenarios by their names."""
    is_short = kills < 50
    url = server.get_uri(driver="psycopg")
    killed = partial(
        crashes, moments=plan(kills), messages=6 * kills, chats=10 if is_short else 30
    )
    return {
        "sqlite": killed,
        "postgres": partial(killed, server_url=url, replicas=3),
        "restarts": partial(
            database_restarts, server=server, restarts=1 if is_short else 5
        ),
        "stopping": stopping,
        "frozen": partial(frozen_replica, server_url=url),
        "corrections": partial(
            corrections, server_url=url, rounds=4 if is_short else 8
        ),
    }


async def run(names: Sequence[str], kills: int) -> list[Result]:
    """Run the scenarios one after the other; print rows as they come."""
    results = []
    with (
        tempfile.TemporaryDirectory(prefix="sommelier-crash-") as folder,
        postgres() as server,
    ):
        scenarios = scenarios_of(server, kills)
        for name in names or scenarios:
            own = Path(folder) / name
            own.mkdir()
            found = await scenarios[name](own)
            results += found
            print(table(found), flush=True)
    return results


def table(results: Sequence[Result]) -> str:
    """Return rows in Markdown."""
    rows = [
        f"| {row.scenario} | {row.what} | {row.value} | {'yes' if row.ok else 'NO'} |"
        for row in results
    ]
    head = [
        "| scenario | what | measured | as it must be |",
        "| :-- | :-- | --: | :-- |",
    ]
    return "\n".join([*head, *rows])


def main(arguments: Sequence[str]) -> int:
    """Return the exit status."""
    names = [name for name in arguments if not name.startswith(KILLS)]
    kills = [
        int(argument.removeprefix(KILLS))
        for argument in arguments
        if argument not in names
    ]
    results = asyncio.run(run(names, *kills or [100]))
    bad = [row for row in results if not row.ok]
    print(f"\n{len(results) - len(bad)} of {len(results)} rows are as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
